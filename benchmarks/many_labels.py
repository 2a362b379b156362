"""BayesHidLDL, self-tuned, on tables with many ordered labels: seconds, memory and errors, beside goals.

    python benchmarks/many_labels.py [--tables 1000x70 2000x200 5000x1000] [--jobs 2] [--rate 0.5] [--masks 1]
                                     [--against FOLDER] [--write FOLDER]

Rows are bumps on a line of labels: their centres follow the features, their widths vary. Every table is recovered in a
process of its own. "CPU seconds" sum over threads, and are steadier than seconds where the machine has other work.
``--against`` also runs the package in another folder, such as the ``src`` of an older checkout, on the same masks.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np
from provenance import write_markdown

GOALS = {"1000x70": (15, 4), "2000x200": (60, 4), "5000x1000": (600, 4)}
"""Seconds on two cores, and GiB."""
GIVEN: dict[str, Any] = {"nu": 1e4, "ridge": 1.0, "width": 1.0, "standardize": True, "prior_rows": 1.0}


def bumps(n_rows: int, n_labels: int, seed: int) -> tuple[Any, Any]:
    """Features and distributions."""
    rng = np.random.default_rng(seed)
    unit = n_labels / 70
    X = rng.standard_normal((n_rows, 10))
    center = n_labels / 2 + 12 * unit * (X @ rng.standard_normal(10)) / np.sqrt(10)
    center += 6 * unit * rng.standard_normal(n_rows)
    width = 6 * unit * np.exp(0.3 * rng.standard_normal(n_rows))
    D = np.exp(-0.5 * ((np.arange(n_labels) - center[:, None]) / width[:, None]) ** 2) + 1e-3
    D *= np.exp(0.05 * rng.standard_normal(D.shape))
    return X, D / D.sum(axis=1, keepdims=True)


def measure(size: str, rate: float, seed: int, n_jobs: int) -> dict[str, float]:
    from hidldl import BayesHidLDL, hide_labels, score

    n_rows, n_labels = map(int, size.split("x"))
    small, labels = bumps(40, n_labels, 1)
    for n_components in (1, 2):  # compiles, or loads what is compiled
        BayesHidLDL(**GIVEN, n_components=n_components, max_iter=2, random_state=0).fit(small, labels)
    X, D = bumps(n_rows, n_labels, seed)
    D_obs, observed = hide_labels(D, rate, seed)
    started, started_cpu = perf_counter(), process_time()
    model = BayesHidLDL(n_jobs=n_jobs, random_state=0).fit(X, D_obs, observed=observed)
    seconds, cpu = perf_counter() - started, process_time() - started_cpu
    scores = score(D, model.distributions_)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)
    candidates = 0 if model.selection_ is None else len(model.selection_.candidates)
    errors = {name: scores[name] for name in ("chebyshev", "kl")}
    return {"seconds": seconds, "cpu": cpu, "peak": peak, "candidates": candidates, **errors}


def in_a_process_of_its_own(source: Path | None, size: str, rate: float, seed: int, n_jobs: int) -> dict[str, float]:
    environment = os.environ | ({} if source is None else {"PYTHONPATH": str(source)})
    arguments = ["--measure", size, "--rate", str(rate), "--masks", str(seed), "--jobs", str(n_jobs)]
    command = [sys.executable, __file__, *arguments]
    result = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    return dict(json.loads(result.stdout.splitlines()[-1]))


def table(runs: list[tuple[str, str, list[dict[str, float]]]]) -> str:
    lines = [
        "| rows x labels | code | seconds | goal | CPU seconds | GiB | goal | candidates | Chebyshev | KL |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for size, name, results in runs:
        mean = {key: float(np.mean([result[key] for result in results])) for key in results[0]}
        goals = [str(goal) for goal in GOALS.get(size, ("", ""))]
        cells = [size, name, f"{mean['seconds']:.1f}", goals[0], f"{mean['cpu']:.1f}", f"{mean['peak']:.2f}", goals[1]]
        cells += [f"{mean['candidates']:.0f}", f"{mean['chebyshev']:.5f}", f"{mean['kl']:.5f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", nargs="+", default=list(GOALS), help="rows x labels, such as 1000x70")
    parser.add_argument("--jobs", type=int, default=2, help="threads")
    parser.add_argument("--rate", type=float, default=0.5, help="share of labels that is hidden")
    parser.add_argument("--masks", type=int, default=1, help="tables and masks of each size")
    parser.add_argument("--against", type=Path, help="the src folder of another checkout")
    parser.add_argument("--write", type=Path, help="also write the table into this folder")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.rate, arguments.masks, arguments.jobs)))
        sys.exit()
    sources: dict[str, Path | None] = {"ours": None}
    if arguments.against is not None:
        sources[arguments.against.name] = arguments.against.resolve()
    runs = []
    for size in arguments.tables:
        for name, source in sources.items():
            seeds = range(arguments.masks)
            how = (arguments.rate, arguments.jobs)
            runs.append((size, name, [in_a_process_of_its_own(source, size, how[0], seed, how[1]) for seed in seeds]))
    text = table(runs)
    print(text)
    if arguments.write:
        write_markdown(arguments.write / "many_labels.md", text)
