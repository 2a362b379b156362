"""How long a fit of BayesHidLDL takes on the paper's datasets, self-tuned and with given parameters.

    HIDLDL_DATA=folder python benchmarks/bayes_seconds.py [--write FOLDER] [--against FOLDER] [DATASET ...]

Each fit runs alone, in one process and one thread; run nothing beside it. The mask is the first of ``quality.py``.
``--against`` also fits with the package in another folder, such as the ``src`` of an older checkout, each dataset right
after ours, and divides by its time.
"""

import argparse
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from time import perf_counter
from typing import TypeAlias

import numpy as np
from provenance import write_markdown
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


Seconds: TypeAlias = dict[tuple[str, float], tuple[float, float]]


def measure_all(name: str) -> Seconds:
    """The seconds of a dataset at every rate."""
    with threadpool_limits(limits=1):
        return {(name, rate): measure(name, rate) for rate in RATES}


def all_datasets() -> list[str]:
    """Those of ``quality.py``, which older code need not be able to run."""
    from quality import DATASETS

    return list(DATASETS)


def elsewhere(source: Path, name: str) -> Seconds:
    """The same by the package in another folder, in a process of its own."""
    command = [sys.executable, __file__, "--json", name]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    printed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return {(name, rate): seconds for rate, seconds in zip(RATES, json.loads(printed), strict=True)}


def table(seconds: Seconds, others: Seconds) -> str:
    heads = [f"{what}, {rate:.0%} hidden" for what in ("given", "self-tuned") for rate in RATES]
    heads += [f"self-tuned / before, {rate:.0%}" for rate in RATES] if others else []
    lines = [f"| dataset | {' | '.join(heads)} |", "| --- |" + " --- |" * len(heads)]
    quotients = {run: seconds[run][1] / before for run, (_, before) in others.items()}
    for name in dict.fromkeys(name for name, _ in seconds):
        cells = [f"{seconds[name, rate][kind]:.2f} s" for kind in (0, 1) for rate in RATES]
        cells += [f"{quotients[name, rate]:.2f}" for rate in RATES if others]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    if others:
        means = [np.exp(np.mean([np.log(quotients[run]) for run in others if run[1] == rate])) for rate in RATES]
        lines.append(f"| *geometric mean* | {' | ' * 4}{' | '.join(f'{mean:.2f}' for mean in means)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", help="names; all eleven by default")
    parser.add_argument("--write", type=Path, help="also write bayes_seconds.md into this folder")
    parser.add_argument("--against", type=Path, help="the src folder of another checkout")
    parser.add_argument("--json", action="store_true", help="print the seconds of one dataset for a program")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    # A fit that compiles, or loads what is compiled.
    BayesHidLDL(random_state=0).fit(np.eye(30), np.full((30, 3), 1 / 3))
    if arguments.json:
        print(json.dumps(list(measure_all(arguments.datasets[0]).values())))
        sys.exit()
    names = arguments.datasets or all_datasets()
    ours: Seconds = {}
    theirs: Seconds = {}
    with shown(sys.stderr.isatty()) as progress:
        for name in count(names, progress, len(names), "datasets"):
            ours |= measure_all(name)
            theirs |= elsewhere(arguments.against.resolve(), name) if arguments.against else {}
    text = table(ours, theirs)
    print(text)
    if arguments.write:
        write_markdown(arguments.write / "bayes_seconds.md", text)
