"""BayesHidLDL on large tables: seconds and memory against the number of rows.

    python benchmarks/bayes_scale.py [--rows 10000 100000 1000000] [--jobs 2] [--write FOLDER]

Artificial rows with 16 features and 10 labels, half of them hidden; given parameters, so that the fit alone is
measured. Each size runs in a process of its own. The last line is the exponent of growth between the smallest and the
largest.
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from provenance import write_markdown

GIVEN: dict[str, Any] = {
    "nu": 1024.0,
    "ridge": 1.0,
    "width": 1.0,
    "standardize": True,
    "prior_rows": 1.0,
    "n_components": 1,
}


def measure(n_rows: int, n_jobs: int) -> dict[str, float]:
    from hidldl import BayesHidLDL, hide_labels, make_distributions

    BayesHidLDL(**GIVEN).fit(np.eye(30), np.full((30, 10), 0.1))  # compiles, or loads what is compiled
    data = make_distributions(n_rows=n_rows, n_features=16, n_labels=10, random_state=0)
    D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=0)
    before = peak_memory()
    started = perf_counter()
    model = BayesHidLDL(**GIVEN, n_jobs=n_jobs, random_state=0).fit(data.features, D_obs, observed)
    return {"seconds": perf_counter() - started, "rounds": model.n_iter_, "data": before, "peak": peak_memory()}


def peak_memory() -> float:
    """The most memory, in GiB, that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)


def in_a_process_of_its_own(n_rows: int, n_jobs: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", str(n_rows), "--jobs", str(n_jobs)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    measured: dict[str, float] = json.loads(result.stdout)
    return measured


def table(results: dict[int, dict[str, float]]) -> str:
    lines = [
        "| rows | seconds | rounds of EM | microseconds per row and round | memory before, GiB | at most, GiB |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for n_rows, result in results.items():
        each = 1e6 * result["seconds"] / n_rows / result["rounds"]
        cells = [f"{n_rows:,}", f"{result['seconds']:.1f}", f"{result['rounds']:.0f}", f"{each:.2f}"]
        lines.append(f"| {' | '.join([*cells, *(f'{result[key]:.2f}' for key in ('data', 'peak'))])} |")
    few, many = min(results), max(results)
    if few < many:
        growth = np.log(results[many]["seconds"] / results[few]["seconds"]) / np.log(many / few)
        lines += ["", f"Exponent of growth: {growth:.2f}."]
    return "\n".join(lines)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--jobs", type=int, default=2, help="threads")
    parser.add_argument("--write", type=Path, help="also write the table into this folder")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.jobs)))
        sys.exit()
    made = table({n_rows: in_a_process_of_its_own(n_rows, arguments.jobs) for n_rows in arguments.rows})
    print(made)
    if arguments.write:
        write_markdown(arguments.write / "bayes_scale.md", made)
