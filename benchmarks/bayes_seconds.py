"""How long a fit of BayesHidLDL takes on the paper's datasets, self-tuned and with given parameters.

    HIDLDL_DATA=folder python benchmarks/bayes_seconds.py [--write FOLDER] [DATASET ...]

Each fit runs alone, in one process and one thread; run nothing beside it. The mask is the first of ``quality.py``.
"""

import argparse
import sys
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np
from provenance import write_markdown
from quality import DATASETS
from threadpoolctl import threadpool_limits

from hidldl import BayesHidLDL, hide_labels, load_dataset
from hidldl.experiments.protocol import Condition
from hidldl.progress import count, shown

RATES = (0.5, 0.8)


def measure(name: str, rate: float) -> tuple[float, float]:
    """Seconds of a fit with given parameters, and of one that tunes itself."""
    data = load_dataset(name)
    seed = Condition("recovery", name, rate, 0).seed
    D_obs, observed = hide_labels(data.distributions, rate=rate, random_state=seed)
    started = perf_counter()
    model = BayesHidLDL(random_state=seed).fit(data.features, D_obs, observed)
    tuned = perf_counter()
    BayesHidLDL(**model.parameters_, random_state=seed).fit(data.features, D_obs, observed)
    return perf_counter() - tuned, tuned - started


def table(seconds: dict[tuple[str, float], tuple[float, float]]) -> str:
    heads = [f"{what}, {rate:.0%} hidden" for what in ("given", "self-tuned") for rate in RATES]
    lines = [f"| dataset | {' | '.join(heads)} |", "| --- |" + " --- |" * len(heads)]
    for name in dict.fromkeys(name for name, _ in seconds):
        cells = [f"{seconds[name, rate][kind]:.2f} s" for kind in (0, 1) for rate in RATES]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=list(DATASETS), help="names; all eleven by default")
    parser.add_argument("--write", type=Path, help="also write bayes_seconds.md into this folder")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    # A fit that compiles, or loads what is compiled.
    BayesHidLDL(random_state=0).fit(np.eye(30), np.full((30, 3), 1 / 3))
    runs = [(name, rate) for name in arguments.datasets for rate in RATES]
    with threadpool_limits(limits=1), shown(sys.stderr.isatty()) as progress:
        measured = {run: measure(*run) for run in count(runs, progress, len(runs), "datasets and rates")}
    made = table(measured)
    print(made)
    if arguments.write:
        write_markdown(arguments.write / "bayes_seconds.md", made)
