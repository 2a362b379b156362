"""Is the exact solver's objective ever above that of Algorithm 1, run for 10,000 iterations?

    HIDLDL_DATA=folder python benchmarks/long_run.py [--write FOLDER] [DATASET ...]

Half of the labels hidden. Both objectives are of rows that users get: on the simplex, and proportional to what was
observed. The last column is how far Algorithm 1 is still above the exact solver, relative to the objective; below
-1e-5, the gap that the exact solver promises, it would be a fault. ``nan``: Algorithm 1 diverged.
"""

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from convergence import DATASETS
from provenance import write_markdown
from threadpoolctl import threadpool_limits

from hidldl import HidLDL, hide_labels, load_dataset
from hidldl.errors import DivergenceError
from hidldl.progress import count, shown
from hidldl.recovery.exact import ConvexProblem

ALPHAS = (0.25, 1.0, 4.0, 16.0)
ITERATIONS = 10_000


def measure(name: str, alpha: float) -> dict[str, Any]:
    data = load_dataset(name)
    X, D_obs, observed = data.features, *hide_labels(data.distributions, rate=0.5, random_state=0)
    exact = HidLDL(alpha, solver="exact").fit(X, D_obs, observed)
    graph = exact._prepare(np.asarray(X, float), np.asarray(D_obs, float)).laplacian
    problem = ConvexProblem(graph, np.asarray(D_obs, float), np.asarray(observed), alpha)
    try:
        long = HidLDL(alpha, max_iter=ITERATIONS, tol=0.0).fit(X, D_obs, observed)
        residual = max(float(gaps[-1]) for gaps in long.history_.values())
        theirs = problem.objective(np.asarray(long.distributions_))
    except DivergenceError:
        residual = theirs = np.nan
    ours = problem.objective(np.asarray(exact.distributions_))
    return {"dataset": name, "alpha": alpha, "exact": ours, "long": theirs, "residual": residual}


def table(rows: list[dict[str, Any]]) -> str:
    heads = (
        "dataset",
        "alpha",
        "exact",
        f"Algorithm 1, {ITERATIONS:,} iterations",
        "its residual",
        "above the exact by",
    )
    lines = [f"| {' | '.join(heads)} |", "| --- |" + " --- |" * (len(heads) - 1)]
    for row in rows:
        cells = [row["dataset"], f"{row['alpha']:g}", f"{row['exact']:.8g}", f"{row['long']:.8g}"]
        cells += [f"{row['residual']:.1e}", f"{(row['long'] - row['exact']) / row['exact']:+.1e}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # Algorithm 1 stops by iterations
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=DATASETS, help="names; all eleven by default")
    parser.add_argument("--write", type=Path, help="also write long_run.md into this folder")
    arguments = parser.parse_args()
    conditions = [(name, alpha) for name in arguments.datasets for alpha in ALPHAS]
    with threadpool_limits(limits=1, user_api="blas"), shown(sys.stderr.isatty()) as progress:
        measured = [measure(*condition) for condition in count(conditions, progress, len(conditions), "conditions")]
    text = table(measured)
    print(text)
    if arguments.write:
        write_markdown(arguments.write / "long_run.md", text)
