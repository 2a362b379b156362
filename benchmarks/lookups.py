"""What explicit vector instructions gain in Algorithm 1's look-ups, beside a plain twin that numba compiles.

    python benchmarks/lookups.py [--rows 100000] [--write FOLDER]

The twin below is ``hidldl/recovery/lookups.py`` as one would write it without instructions for the compiler: a loop
over the labels, and no memory asked for ahead. Both run in turns, in one process and one thread, on the same graph;
times are the best of all turns, and what counts is their ratio. "Iteration" is a whole iteration of Algorithm 1 with
either.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from types import FunctionType
from typing import Any

import numba
import numpy as np
from provenance import write_markdown
from scale import OPTIONS, table

from hidldl.graph import graph_laplacian, locality_order, nearest_neighbors, reordered, weighted_graph
from hidldl.recovery import algorithm1_compiled
from hidldl.recovery.lookups import collect, fetch

LABELS = (3, 5, 10, 20, 50)
TURNS, ITERATIONS = 5, 10
TILE_ROWS = algorithm1_compiled.TILE_ROWS
compiled = numba.njit(nogil=True, fastmath={"reassoc", "contract", "nsz"})


@compiled
def plain_collect(graph, D, begin, count, labels, d, slope):  # type: ignore[no-untyped-def]
    indptr, indices, weights = graph
    m = len(labels)
    sums = np.empty(m, D.dtype)
    for r in range(count):
        for j in range(m):
            sums[j] = 0
        for entry in range(indptr[begin + r], indptr[begin + r + 1]):
            weight, other = weights[entry], indices[entry]
            for j in range(m):
                sums[j] += weight * D[other, j]
        for j in range(m):
            slope[j, r] = sums[j]
            d[j, r] = D[begin + r, j]


@compiled
def no_fetch(graph, D, begin, end):  # type: ignore[no-untyped-def]
    pass


def look_ups(collect: Any, fetch: Any) -> Any:
    """All look-ups of an iteration, and nothing else."""

    @compiled
    def run(graph, D, labels):  # type: ignore[no-untyped-def]
        m = len(labels)
        d, slope = np.empty((m, TILE_ROWS), D.dtype), np.empty((m, TILE_ROWS), D.dtype)
        total = 0.0
        for begin in range(0, len(D), TILE_ROWS):
            count = min(TILE_ROWS, len(D) - begin)
            fetch(graph, D, begin + count, min(begin + count + TILE_ROWS, len(D)))
            collect(graph, D, begin, count, labels, d, slope)
            total += slope[0, 0]
        return total

    return run


def plain_sweep() -> Any:
    """An iteration of Algorithm 1, compiled with the twin in place of the look-ups."""
    sweep = algorithm1_compiled.sweep.py_func
    names = {**sweep.__globals__, "collect": plain_collect, "fetch": no_fetch}
    return compiled(FunctionType(sweep.__code__, names, sweep.__name__))


def in_turns(works: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """The best milliseconds of each, measured in turns so that the machine's moods meet all of them."""
    best = dict.fromkeys(works, np.inf)
    for work in works.values():
        work()
    for _ in range(TURNS):
        for name, work in works.items():
            started = perf_counter()
            work()
            best[name] = min(best[name], 1e3 * (perf_counter() - started))
    return best


def graph_of(n_rows: int) -> Any:
    """A graph whose rows are in the order in which Algorithm 1 has them."""
    X, *_ = table(n_rows, LABELS[0])
    G = graph_laplacian(weighted_graph(nearest_neighbors(X, 10, "auto"), 1.0))
    return reordered(G, locality_order(G))


def measure(G: Any, n_labels: int) -> dict[str, float]:
    _, D_obs, observed = table(G.shape[0], n_labels)
    graph, labels = (G.indptr, G.indices, G.data), (0,) * n_labels
    vectors, plain = look_ups(collect, fetch), look_ups(plain_collect, no_fetch)
    sweeps = {"vector": algorithm1_compiled.sweep, "plain": plain_sweep()}

    def iterate(sweep: Any) -> None:
        algorithm1_compiled.sweep = sweep
        algorithm1_compiled.solve(G, D_obs, observed, **OPTIONS, max_iter=ITERATIONS)

    best = in_turns(
        {
            "vector": lambda: vectors(graph, D_obs, labels),
            "plain": lambda: plain(graph, D_obs, labels),
            "vector iteration": lambda: iterate(sweeps["vector"]),
            "plain iteration": lambda: iterate(sweeps["plain"]),
        }
    )
    return {name: value / (ITERATIONS + 1 if "iteration" in name else 1) for name, value in best.items()}


def markdown(results: dict[int, dict[str, float]], n_rows: int) -> str:
    heads = ("labels", "plain look-ups, ms", "vector, ms", "ratio", "plain iteration, ms", "vector, ms", "ratio")
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    for n_labels, best in results.items():
        cells = [str(n_labels)]
        for kind in ("", " iteration"):
            slow, quick = best[f"plain{kind}"], best[f"vector{kind}"]
            cells += [f"{slow:.2f}", f"{quick:.2f}", f"{slow / quick:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"{n_rows:,} rows, 10 neighbours each, one thread."])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--write", type=Path, help="also write lookups.md into this folder")
    arguments = parser.parse_args()
    G = graph_of(arguments.rows)
    text = markdown({n_labels: measure(G, n_labels) for n_labels in LABELS}, arguments.rows)
    print(text)
    if arguments.write:
        write_markdown(arguments.write / "lookups.md", text)
