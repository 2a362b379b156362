"""Which library finds the nearest neighbours of many rows: time from a cold start, recall, memory, determinism.

    python benchmarks/neighbors.py [--rows 100000 1000000] [--write docs/results]

Needs pynndescent, faiss-cpu, hnswlib and usearch; what is not installed is left out. Each runs in a process of its own,
so that imports and compilation count. Rows are normal in 16 dimensions, the hard case, or curves through them, as
features often are. Searches are by the settings that reach a recall of 95 % on the curves. Graphs that grow with every
row (HNSW) depend on the order in which threads add rows, so they get one thread; so does pynndescent. "same" says
whether a second process, with another number of threads where that is allowed, finds the same neighbours.
"""

import argparse
import hashlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from provenance import show

N_NEIGHBORS, N_FEATURES, N_JUDGED = 10, 16, 500
SHAPES = ("normal", "curves")
Search = Callable[[Any, int], Any]


def rows(shape: str, n_rows: int) -> Any:
    rng = np.random.default_rng(0)
    if shape == "normal":
        return rng.standard_normal((n_rows, N_FEATURES), dtype=np.float32)
    inner = rng.standard_normal((n_rows, 4))
    waves = np.sin(inner @ rng.standard_normal((4, N_FEATURES)) + rng.uniform(0, 6, N_FEATURES))
    return (waves + 0.05 * rng.standard_normal((n_rows, N_FEATURES))).astype(np.float32)


def by_pynndescent(X: Any, threads: int) -> Any:
    from pynndescent import NNDescent

    return NNDescent(X, n_neighbors=2 * N_NEIGHBORS + 1, random_state=0, n_jobs=1).neighbor_graph[0]


def by_faiss(X: Any, threads: int) -> Any:
    import faiss

    faiss.omp_set_num_threads(threads)
    n_cells = int(2 * np.sqrt(len(X)))
    index = faiss.IndexIVFFlat(faiss.IndexFlatL2(X.shape[1]), X.shape[1], n_cells)
    index.cp.niter, index.cp.max_points_per_centroid = 10, 64
    index.train(X)
    index.add(X)
    index.nprobe = 24
    return index.search(X, N_NEIGHBORS + 1)[1]


def by_hnswlib(X: Any, threads: int) -> Any:
    import hnswlib

    index = hnswlib.Index("l2", X.shape[1])
    index.init_index(len(X), M=16, ef_construction=100, random_seed=0)
    index.add_items(X, num_threads=1)
    index.set_ef(64)
    return index.knn_query(X, N_NEIGHBORS + 1, num_threads=threads)[0].astype(np.int64)


def by_usearch(X: Any, threads: int) -> Any:
    from usearch.index import Index

    index = Index(ndim=X.shape[1], metric="l2sq", dtype="f32", connectivity=16, expansion_add=100, expansion_search=64)
    index.add(np.arange(len(X)), X, threads=1)
    return index.search(X, N_NEIGHBORS + 1, threads=threads).keys.astype(np.int64)


SEARCHES: dict[str, Search] = {
    "pynndescent": by_pynndescent,
    "faiss-cpu": by_faiss,
    "hnswlib": by_hnswlib,
    "usearch": by_usearch,
}


def run(library: str, shape: str, n_rows: int, threads: int) -> dict[str, Any]:
    """In this process: seconds from before the import, recall, memory above that of the rows, and a digest."""
    X = rows(shape, n_rows)
    before, start = _peak_mib(), perf_counter()
    neighbors = SEARCHES[library](X, threads)
    seconds = perf_counter() - start
    at = np.random.default_rng(1).choice(n_rows, N_JUDGED, replace=False)
    return {
        "seconds": seconds,
        "MiB": _peak_mib() - before,
        "recall": recall(X, np.asarray(neighbors)[at], at),
        "digest": hashlib.sha256(np.asarray(neighbors)[at].tobytes()).hexdigest(),
    }


def recall(X: Any, neighbors: Any, at: Any) -> float:
    """Share of the true neighbours of some rows, itself left out, that are among the nearest ones that were found."""
    hits = 0
    for i, candidates in zip(at, neighbors, strict=True):
        distances = ((X - X[i]) ** 2).sum(axis=1)
        distances[i] = np.inf
        others = np.unique(candidates[(candidates != i) & (candidates >= 0)])
        nearest = others[np.argsort(distances[others])[:N_NEIGHBORS]]
        hits += np.isin(nearest, np.argpartition(distances, N_NEIGHBORS)[:N_NEIGHBORS]).sum()
    return float(hits / (len(at) * N_NEIGHBORS))


def elsewhere(*arguments: Any) -> dict[str, Any]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--one", *map(str, arguments)]
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2"}
    return dict(json.loads(subprocess.run(command, check=True, capture_output=True, env=environment).stdout))


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _is_installed(library: str) -> bool:
    try:
        version(library)
    except PackageNotFoundError:
        return False
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--write", type=Path, help="also write the table into this folder")
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        library, shape, n_rows, threads = arguments.one
        print(json.dumps(run(library, shape, int(n_rows), int(threads))))
        return
    table = []
    for n_rows in arguments.rows:
        for shape in SHAPES:
            for library in filter(_is_installed, SEARCHES):
                two = elsewhere(library, shape, n_rows, 2)
                same = elsewhere(library, shape, n_rows, 1)["digest"] == two["digest"] if n_rows <= 100_000 else None
                table.append(
                    {
                        "rows": f"{n_rows:,}",
                        "shape": shape,
                        "library": f"{library} {version(library)}",
                        **{
                            name: round(two[name], 2 if name == "recall" else 0)
                            for name in ("seconds", "recall", "MiB")
                        },
                        "same": {None: "", True: "yes", False: "no"}[same],
                    }
                )
                print(table[-1], file=sys.stderr, flush=True)
    show({"neighbors.md": _markdown(pd.DataFrame(table))}, arguments.write)


def _markdown(table: pd.DataFrame) -> str:
    lines = [list(table.columns), ["---"] * table.shape[1], *table.astype(str).to_numpy().tolist()]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


if __name__ == "__main__":
    main()
