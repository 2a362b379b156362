"""What convergence does to recovery: Algorithm 1 after 100 iterations beside the optimum of its problem.

    HIDLDL_DATA=folder python benchmarks/convergence.py [--write FOLDER] [DATASET ...]

For each dataset, 50 % and 80 % of the labels hidden, alpha from 2^-10 to 2^6: how many iterations and seconds the exact
solver needs for a duality gap of 1e-5 of the objective, and the Chebyshev distance to the truth of both solutions, at
the alpha that is best for each.
"""

import argparse
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numpy as np
from provenance import write_markdown
from threadpoolctl import threadpool_limits

from hidldl import MEASURES, HidLDL, hide_labels, load_dataset
from hidldl.experiments.paper import published_results
from hidldl.progress import count, shown

DATASETS = [name for name in published_results()["dataset"].unique() if name != "RAF-ML"]
EXPONENTS = range(-10, 7)
RATES = (0.5, 0.8)
chebyshev = MEASURES["chebyshev"]


@dataclass(frozen=True)
class Row:
    """One dataset at one rate: the exact solver's work over all alphas, and the best of both solutions."""

    dataset: str
    rate: float
    iterations: list[int]
    seconds: list[float]
    gap: float
    stopped: float
    optimum: float


def measure(name: str, rate: float) -> Row:
    data = load_dataset(name)
    X, D = data.features, data.distributions
    D_obs, observed = hide_labels(D, rate=rate, random_state=0)
    alphas = [2.0**exponent for exponent in EXPONENTS]
    stopped = min(chebyshev(D, model.distributions_) for model in HidLDL().alpha_path(alphas, X, D_obs, observed))
    solved = list(timed(HidLDL(solver="exact").alpha_path(alphas, X, D_obs, observed)))
    return Row(
        name,
        rate,
        [model.n_iter_ for model, _ in solved],
        [seconds for _, seconds in solved],
        max(model.duality_gap_ for model, _ in solved),
        stopped,
        min(chebyshev(D, model.distributions_) for model, _ in solved),
    )


def timed(models: Iterator[HidLDL]) -> Iterator[tuple[HidLDL, float]]:
    started = perf_counter()
    for model in models:
        yield model, perf_counter() - started
        started = perf_counter()


def table(rows: list[Row]) -> str:
    heads = (
        *("dataset", "hidden", "iterations, median", "most", "seconds, median", "most", "largest gap"),
        *("Chebyshev, 100 iterations", "optimum", "optimum / 100 iterations"),
    )
    lines = [f"| {' | '.join(heads)} |", "| --- |" + " --- |" * (len(heads) - 1)]
    for row in rows:
        cells = [row.dataset, f"{row.rate:.0%}", f"{np.median(row.iterations):.0f}", f"{max(row.iterations)}"]
        cells += [f"{np.median(row.seconds):.2f}", f"{max(row.seconds):.2f}", f"{row.gap:.1e}"]
        cells += [f"{row.stopped:.4f}", f"{row.optimum:.4f}", f"{row.optimum / row.stopped:.3f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # Algorithm 1 stops by iterations, and sigma = 1 makes Emotion6's graph vanish
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=DATASETS, help="names; all eleven by default")
    parser.add_argument("--write", type=Path, help="also write convergence.md into this folder")
    arguments = parser.parse_args()
    conditions = [(name, rate) for name in arguments.datasets for rate in RATES]
    with threadpool_limits(limits=1, user_api="blas"), shown(sys.stderr.isatty()) as progress:
        measured = [measure(*condition) for condition in count(conditions, progress, len(conditions), "conditions")]
    text = table(measured)
    print(text)
    if arguments.write:
        write_markdown(arguments.write / "convergence.md", text)
