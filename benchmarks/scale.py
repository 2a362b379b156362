"""HidLDL on large tables: time and memory against rows, labels and threads, beside NumPy and the memory's own speed.

    python benchmarks/scale.py [--quick] [--write FOLDER]

Artificial rows with 16 features, half of the labels hidden. "compiled" is what HidLDL runs on large tables, in the
order of rows that it uses; "NumPy" is the same algorithm with NumPy and a sparse graph; "dense" is the same with the
graph as an n × n array, the way python-ldl keeps it, and runs only where that fits. The limit is the time that the
bytes of one sweep take at the bandwidth of a[i] = b[i] + s * c[i], measured in the same run with the same threads, if
every value moves once; the limit with look-ups also counts a row for each neighbour, as a table that exceeds the caches
needs in whatever order.
Every setting runs in a process of its own; its peers run in turns, and the best of their turns counts. "whole" is
``HidLDL().fit`` from features to recovered rows. Writes scale.json, scale.md and scale.png.
"""

import argparse
import json
import os
import subprocess
import sys
import tracemalloc
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from bayes_scale import peak_memory
from provenance import provenance, write_markdown
from scipy import sparse

Result = dict[str, Any]
OPTIONS: dict[str, Any] = {"alpha": 16.0, "rho": 2.0, "step": 0.01, "tol": 0.0, "constraint": True}
ROWS = (1_000, 10_000, 100_000, 200_000, 1_000_000)
LABELS = (5, 10, 20, 50)
DENSE_UP_TO = 10_000
HEADLINE = (200_000, 10, 2)
"""Rows, labels and threads of the setting that runs all 100 iterations."""
TURNS = 3


def measure(n_rows: int, n_labels: int, n_threads: int) -> Result:
    """Milliseconds per iteration and megabytes of each solver on one graph."""
    from hidldl.graph import graph_laplacian, locality_order, nearest_neighbors, reordered, weighted_graph
    from hidldl.parallel import threads
    from hidldl.recovery import algorithm1, algorithm1_compiled

    X, D_obs, observed = table(n_rows, n_labels)
    G = graph_laplacian(weighted_graph(nearest_neighbors(X, 10, "auto"), 1.0))
    started = perf_counter()
    order = locality_order(G)
    ordered = (reordered(G, order), D_obs[order], observed[order])
    result: Result = {"rows": n_rows, "labels": n_labels, "threads": n_threads, "edges": G.nnz - n_rows}
    result["seconds_to_order"] = perf_counter() - started
    iterations = 100 if (n_rows, n_labels, n_threads) == HEADLINE else max(20, min(100, 4_000_000 // n_rows))
    with threads(n_threads) as mapper:
        options = {**OPTIONS, "max_iter": iterations}
        solvers: dict[str, Callable[[], Any]] = {
            "compiled": lambda: algorithm1_compiled.solve(*ordered, **options, mapper=mapper),
            "as_they_come": lambda: algorithm1_compiled.solve(G, D_obs, observed, **options, mapper=mapper),
            "numpy": lambda: algorithm1.solve(G, D_obs, observed, **options),
        }
        if n_rows <= DENSE_UP_TO:
            dense = np.asarray(G.toarray())
            solvers["dense"] = lambda: algorithm1.solve(dense, D_obs, observed, **options)
        algorithm1_compiled.solve(*ordered, **{**OPTIONS, "max_iter": 1})  # compiles, or loads what is compiled
        speed = bandwidth(mapper, n_threads)
        result["gb_per_second"] = speed / 1e9
        result["limit_ms"] = 1e3 * bytes_per_sweep(G, D_obs) / speed
        result["limit_with_lookups_ms"] = result["limit_ms"] + 1e3 * G.nnz * n_labels * D_obs.itemsize / speed
        best = dict.fromkeys(solvers, np.inf)
        for _ in range(TURNS):
            for name, solve in solvers.items():
                best[name] = min(best[name], seconds(solve))
        result |= {f"{name}_ms": 1e3 * best[name] / iterations for name in solvers}
        result |= {f"{name}_mb": megabytes(solve) for name, solve in solvers.items() if name != "as_they_come"}
        if "dense" in solvers:
            result["dense_mb"] += dense.nbytes / 1e6
    return result


def measure_whole(n_rows: int, n_threads: int) -> Result:
    """Seconds and the peak of memory of a whole fit with 10 labels, compiling included."""
    from hidldl import HidLDL

    X, D_obs, observed = table(n_rows, 10)
    before = peak_memory()
    started = perf_counter()
    model = HidLDL(n_jobs=n_threads).fit(X, D_obs, observed)
    return {
        "rows": n_rows,
        "seconds": perf_counter() - started,
        "recall": model.neighbor_recall_,
        "data_gib": before,
        "peak_gib": peak_memory(),
    }


def table(n_rows: int, n_labels: int) -> tuple[Any, Any, Any]:
    from hidldl import hide_labels, make_distributions

    data = make_distributions(n_rows=n_rows, n_features=16, n_labels=n_labels, random_state=0)
    return data.features, *hide_labels(data.distributions, rate=0.5, random_state=0)


def bytes_per_sweep(G: sparse.csr_array, D_obs: Any) -> int:
    """What a sweep must move between memory and the processor if every value moves once."""
    tables = 2 + 2 + 2 + 1  # D and its next, Y in and out, W in and out, D_obs
    graph = G.data.nbytes + G.indices.nbytes + G.indptr.nbytes
    return int(tables * D_obs.nbytes + D_obs.size + graph)  # a byte per entry of the mask


def bandwidth(mapper: Any, n_threads: int) -> float:
    """Bytes per second of a[i] = b[i] + s * c[i]: two read, one written, as STREAM counts."""
    import numba

    @numba.njit(nogil=True)
    def triad(a: Any, b: Any, c: Any) -> None:
        for i in range(len(a)):
            a[i] = b[i] + 0.5 * c[i]

    parts = [np.ones((3, 12_000_000 // n_threads)) for _ in range(n_threads)]
    triad(*(part[:10] for part in parts[0]))

    def run() -> None:
        for _ in mapper(lambda part: triad(*part), parts):
            pass

    return sum(part.nbytes for part in parts) / min(seconds(run) for _ in range(10))


def seconds(work: Callable[[], Any]) -> float:
    started = perf_counter()
    work()
    return perf_counter() - started


def megabytes(work: Callable[[], Any]) -> float:
    """The most that it holds at a time beyond its input."""
    tracemalloc.start()
    work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak / 1e6


def in_a_process_of_its_own(*what: object) -> Result:
    command = [sys.executable, __file__, "--measure", *map(str, what)]
    environment = {**os.environ, "OMP_NUM_THREADS": str(what[-1]), "OPENBLAS_NUM_THREADS": str(what[-1])}
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment).stdout
    result: Result = json.loads(output.splitlines()[-1])
    print(json.dumps(result), file=sys.stderr, flush=True)
    return result


def exponent(few: Result, many: Result, key: str) -> float:
    return float(np.log(many[key] / few[key]) / np.log(many["rows"] / few["rows"]))


def markdown(results: dict[str, list[Result]]) -> str:
    heads = ["rows", "labels", "threads", "compiled, ms", "rows as they come, ms", "NumPy, ms", "dense graph, ms"]
    heads += ["NumPy / compiled", "limit / compiled", "limit with look-ups / compiled", "memory, GB/s"]
    heads += ["compiled, MB", "NumPy, MB", "dense graph, MB"]
    lines = [f"| {' | '.join(heads)} |", f"| {' | '.join(['---'] * len(heads))} |"]
    for r in results["iterations"]:
        times = [f"{r[f'{name}_ms']:.2f}" if f"{name}_ms" in r else "" for name in PEERS]
        ratios = [f"{r['numpy_ms'] / r['compiled_ms']:.1f}", f"{r['limit_ms'] / r['compiled_ms']:.2f}"]
        ratios += [f"{r['limit_with_lookups_ms'] / r['compiled_ms']:.2f}", f"{r['gb_per_second']:.0f}"]
        memory = [f"{r[f'{name}_mb']:.0f}" if f"{name}_mb" in r else "" for name in ("compiled", "numpy", "dense")]
        cells = [f"{r['rows']:,}", str(r["labels"]), str(r["threads"]), *times, *ratios, *memory]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| rows | whole fit, s | recall of the neighbours | memory before, GiB | at most, GiB |"]
    lines += ["| --- | --- | --- | --- | --- |"]
    for r in results["whole"]:
        cells = [f"{r['rows']:,}", f"{r['seconds']:.1f}", f"{r['recall']:.3f}"]
        lines.append(f"| {' | '.join([*cells, *(f'{r[key]:.2f}' for key in ('data_gib', 'peak_gib'))])} |")
    by_rows = growing(results)
    growth = ", ".join(
        f"{exponent(few, many, 'compiled_ms'):.2f} from {few['rows']:,} to {many['rows']:,} rows"
        for few, many in pairwise(by_rows)
    )
    lines += ["", f"Exponent of growth of an iteration: {growth}."]
    return "\n".join(lines)


PEERS = {
    "compiled": "compiled",
    "as_they_come": "compiled, rows as they come",
    "numpy": "NumPy",
    "dense": "dense graph",
}
COLORS = {"compiled": "#0072B2", "as_they_come": "#56B4E9", "numpy": "#E69F00", "dense": "#D55E00", "limit": "#000000"}


def growing(results: dict[str, list[Result]]) -> list[Result]:
    return [r for r in results["iterations"] if r["labels"] == 10 and r["threads"] == HEADLINE[2]]


def picture(results: dict[str, list[Result]], path: Path) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    by_rows, by_labels = figure.subplots(1, 2)
    labels = [r for r in results["iterations"] if r["rows"] == 100_000 and r["threads"] == HEADLINE[2]]
    panels = [(by_rows, growing(results), "rows"), (by_labels, sorted(labels, key=lambda r: r["labels"]), "labels")]
    for axes, shown, key in panels:
        for name, text in {**PEERS, "limit": "the memory's limit"}.items():
            points = [(r[key], r[f"{name}_ms"]) for r in shown if f"{name}_ms" in r]
            if points:
                line = "--" if name == "limit" else "-o"
                axes.loglog(*zip(*points, strict=True), line, color=COLORS[name], label=text, markersize=4)
        axes.set_xlabel(key)
        axes.set_ylabel("milliseconds per iteration")
        axes.grid(alpha=0.3)
    by_rows.set_title("10 labels", fontsize=10)
    by_labels.set_title("100,000 rows", fontsize=10)
    by_labels.set_xticks(LABELS, [str(count) for count in LABELS])
    by_labels.minorticks_off()
    by_rows.legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=150)


def main(quick: bool, folder: Path | None) -> None:
    most = 100_000 if quick else ROWS[-1]
    settings = {(n_rows, 10, 2) for n_rows in ROWS} | {(100_000, n_labels, 2) for n_labels in LABELS}
    settings |= {(200_000, 10, 1)}
    ordered = sorted(setting for setting in settings if setting[0] <= most)
    results = {"iterations": [in_a_process_of_its_own(*setting) for setting in ordered]}
    results["whole"] = [in_a_process_of_its_own(n_rows, 2) for n_rows in ROWS if n_rows in (100_000, most)]
    lines = markdown(results)
    print(lines)
    if folder:
        text = json.dumps({"provenance": provenance(), **results}, indent=1)
        (folder / "scale.json").write_text(text + "\n", encoding="utf-8")
        write_markdown(folder / "scale.md", lines)
        picture(results, folder / "scale.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="100,000 rows at most")
    parser.add_argument("--write", type=Path, help="also write JSON, table and picture into this folder")
    parser.add_argument("--measure", type=int, nargs="+", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        warnings.simplefilter("ignore")
        measured = measure_whole if len(arguments.measure) == 2 else measure
        print(json.dumps(measured(*arguments.measure)))
    else:
        main(arguments.quick, arguments.write)
