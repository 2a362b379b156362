"""BayesHidLDL on a small cluster whose workers cannot hold the table: seconds, memory, and what a lost worker changes.

    python benchmarks/cluster.py [--gib 2] [--method bayes] [--rounds 12] [--write FOLDER]

A Parquet table of the given size, with 500 features and 5 labels of which 40 % are hidden, is made in a temporary
folder, in files of 2,048 rows. Four workers with one thread and 512 MiB each recover it; one of them is killed after
the third round of EM. Then the same table is recovered in memory, which takes about four times its size, and rows of
both results are compared. Parameters are given, so that the fit alone is measured.
"""

import argparse
import ctypes
import os
import resource
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from provenance import write_markdown

N_FEATURES, N_LABELS, ROWS_OF_PART = 500, 5, 2048
FEATURES, LABELS = [f"x{j}" for j in range(N_FEATURES)], [f"label {j}" for j in range(N_LABELS)]
N_WORKERS, MEMORY = 4, "512MiB"
SMALL = {
    "distributed.worker.memory.target": 0.6,
    "distributed.worker.memory.spill": 0.85,
    "distributed.worker.memory.pause": 0.92,
    "distributed.worker.memory.terminate": 0.98,
    "distributed.worker.profile.enabled": False,
    "distributed.admin.low-level-log-length": 100,
}
"""Python and the libraries take 350 MiB of a worker, so that it would pause too early by Dask's own thresholds, and its
profiler keeps some 30 kB of each second."""
ENVIRONMENT = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "2"}
"""Arrow's own pool, and one of the C library for each thread, keep what they have had."""
COMPARED, KILLED_AFTER = 20_000, 3
GIVEN: dict[str, Any] = {
    "nu": 256.0,
    "ridge": 10.0,
    "width": 1.0,
    "standardize": True,
    "prior_rows": 1.0,
    "ordered": False,
    "n_components": 1,
    "n_landmarks": 50,
    "hiding": "uniform",
    "random_state": 0,
}


def part_of_table(number: int) -> pd.DataFrame:
    """Rows whose labels follow some of the features; a label is hidden with probability 0.4, but never all."""
    rng, fixed = np.random.default_rng([1, number]), np.random.default_rng(0)
    X = rng.standard_normal((ROWS_OF_PART, N_FEATURES))
    z = np.tanh(X[:, :8] @ fixed.standard_normal((8, N_LABELS))) + 0.5 * rng.standard_normal((ROWS_OF_PART, N_LABELS))
    D = np.exp(z)
    hidden = rng.random(D.shape) < 0.4
    hidden[np.arange(len(D)), rng.integers(N_LABELS, size=len(D))] = False
    D[hidden] = 0
    shares = np.where(hidden, np.nan, D / D.sum(axis=1, keepdims=True))
    return pd.DataFrame(np.hstack([X, shares]), columns=[*FEATURES, *LABELS])


def write_table(folder: Path, gib: float) -> tuple[int, float]:
    """Parts of the table, and its size in GiB."""
    n_parts, size = 0, 0
    while size < gib * 2**30:
        path = folder / f"part-{n_parts:05d}.parquet"
        part_of_table(n_parts).to_parquet(path, use_dictionary=False)
        n_parts, size = n_parts + 1, size + path.stat().st_size
    return n_parts, size / 2**30


def make_model(method: str, rounds: int, **more: Any) -> Any:
    from hidldl import BayesHidLDL, MeanFill

    return MeanFill() if method == "meanfill" else BayesHidLDL(**GIVEN, max_iter=rounds, **more)


def peak_memory() -> float:
    """The most memory, in MiB, that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


def give_memory_back() -> None:
    """The C library keeps some 80 MiB of a worker in free pieces until it is told to give them back."""
    if sys.platform == "linux":
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def on_workers() -> Any:
    """A plugin of Dask: workers, also those that replace a lost one, give memory back every two seconds."""
    from distributed import WorkerPlugin
    from tornado.ioloop import PeriodicCallback

    class GivesBack(WorkerPlugin):
        def setup(self, worker: Any) -> None:
            worker.periodic_callbacks["give-back"] = callback = PeriodicCallback(give_memory_back, 2000)
            callback.start()

    return GivesBack()


def recover_on_cluster(table: Path, out: Path, method: str, rounds: int) -> dict[str, Any]:
    import dask
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    killed: list[int] = []

    def kill_one(done: float, total: float | None, words: str) -> None:
        print(words, file=sys.stderr)
        if words.startswith("rounds") and done == KILLED_AFTER and not killed:
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)

    options: dict[str, Any] = {"n_workers": N_WORKERS, "threads_per_worker": 1, "memory_limit": MEMORY}
    dask.config.set(SMALL)
    dask.config.set({f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in ENVIRONMENT.items()})
    with LocalCluster(**options, dashboard_address=":0") as cluster, Client(cluster) as client:
        client.register_plugin(on_workers())
        started = perf_counter()
        parts = dd.read_parquet(table)
        model = make_model(method, rounds, **({} if method == "meanfill" else {"verbose": kill_one}))
        model.fit(parts[FEATURES], parts[LABELS])
        fitted = perf_counter()
        model.distributions_.to_parquet(out)
        written = perf_counter()
        peaks = list(client.run(peak_memory).values())
    return {
        "rounds": model.n_iter_,
        "fit": fitted - started,
        "write": written - fitted,
        "worker": max(peaks),
        "client": peak_memory(),
        "killed": len(killed),
    }


def largest_difference(table: Path, out: Path, n_parts: int, method: str, rounds: int) -> tuple[float, float]:
    """Between rows of the cluster and of a fit in memory, and the seconds of that."""
    frames = [pd.read_parquet(table / f"part-{number:05d}.parquet") for number in range(n_parts)]
    X = np.concatenate([frame[FEATURES].to_numpy() for frame in frames])
    D_obs = np.concatenate([frame[LABELS].to_numpy() for frame in frames])
    del frames
    started = perf_counter()
    model = make_model(method, rounds, **({} if method == "meanfill" else {"n_jobs": -1})).fit(X, D_obs)
    seconds = perf_counter() - started
    # Dask numbers its files without zeros, and pandas reads them by their names.
    files = sorted(out.glob("*.parquet"), key=lambda file: int(file.name.split(".")[1]))
    recovered = np.concatenate([pd.read_parquet(file)[LABELS].to_numpy() for file in files])
    if recovered.shape != D_obs.shape:
        raise SystemExit(f"the cluster wrote {recovered.shape} of {D_obs.shape}")
    at = np.random.default_rng(0).choice(len(X), min(COMPARED, len(X)), replace=False)
    return float(np.abs(recovered[at] - model.distributions_[at]).max()), seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gib", type=float, default=2.0, help="size of the table")
    parser.add_argument("--method", choices=["bayes", "meanfill"], default="bayes")
    parser.add_argument("--rounds", type=int, default=12, help="rounds of EM at most")
    parser.add_argument("--write", type=Path, help="also write the table into this folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if shutil.disk_usage(folder).free < 3 * arguments.gib * 2**30:
            raise SystemExit(f"{folder} needs {3 * arguments.gib:g} GiB; name a larger disk by TMPDIR.")
        table, out = Path(folder, "table"), Path(folder, "recovered")
        table.mkdir()
        n_parts, size = write_table(table, arguments.gib)
        print(f"{n_parts} parts, {size:.2f} GiB", file=sys.stderr)
        how = (arguments.method, arguments.rounds)
        result = recover_on_cluster(table, out, *how)
        print(result, file=sys.stderr)
        difference, seconds = largest_difference(table, out, n_parts, *how)
    cells = {
        "table, GiB": f"{size:.2f}",
        "rows": f"{n_parts * ROWS_OF_PART:,}",
        "features": f"{N_FEATURES}",
        "labels": f"{N_LABELS}",
        "rounds": f"{result['rounds']}",
        "workers killed": f"{result['killed']}",
        "fit, s": f"{result['fit']:.0f}",
        "write, s": f"{result['write']:.0f}",
        "largest worker, MiB": f"{result['worker']:.0f}",
        "client, MiB": f"{result['client']:.0f}",
        "fit in memory, s": f"{seconds:.0f}",
        "largest difference": f"{difference:.1e}",
    }
    text = "\n".join(f"| {' | '.join(line)} |" for line in (cells, ["---"] * len(cells), cells.values()))
    print(text)
    if arguments.write:
        write_markdown(arguments.write / "cluster.md", text)


if __name__ == "__main__":
    main()
