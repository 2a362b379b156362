"""BayesHidLDL on large tables: seconds and memory against the number of rows and threads.

    python benchmarks/bayes_scale.py [--rows 10000 100000 1000000] [--jobs 1 2] [--write FOLDER]

Artificial rows with 16 features and 10 labels, half of them hidden; given parameters, so that the fit alone is
measured. Each size runs in a process of its own. "CPU seconds" sum over threads, and are steadier than seconds where
the machine has other work. The last lines are the exponents of growth between the smallest and the largest.
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter, process_time
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
    started, started_cpu = perf_counter(), process_time()
    model = BayesHidLDL(**GIVEN, n_jobs=n_jobs, random_state=0).fit(data.features, D_obs, observed)
    seconds, cpu = perf_counter() - started, process_time() - started_cpu
    return {"seconds": seconds, "cpu": cpu, "rounds": model.n_iter_, "data": before, "peak": peak_memory()}


def peak_memory() -> float:
    """The most memory, in GiB, that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**30 if sys.platform == "darwin" else 2**20)


def in_a_process_of_its_own(n_rows: int, n_jobs: int) -> dict[str, float]:
    command = [sys.executable, __file__, "--measure", str(n_rows), "--jobs", str(n_jobs)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    measured: dict[str, float] = json.loads(result.stdout)
    return measured


def table(results: dict[tuple[int, int], dict[str, float]]) -> str:
    """By threads and rows."""
    heads = ["rows", "threads", "seconds", "CPU seconds", "rounds of EM", "CPU microseconds per row and round"]
    heads += ["memory before, GiB", "at most, GiB"]
    lines = [f"| {' | '.join(line)} |" for line in (heads, ["---"] * len(heads))]
    for (n_jobs, n_rows), result in results.items():
        each = 1e6 * result["cpu"] / n_rows / result["rounds"]
        cells = [f"{n_rows:,}", f"{n_jobs}", *(f"{result[key]:.1f}" for key in ("seconds", "cpu"))]
        cells += [f"{result['rounds']:.0f}", f"{each:.2f}", *(f"{result[key]:.2f}" for key in ("data", "peak"))]
        lines.append(f"| {' | '.join(cells)} |")
    few, many = (choose(n_rows for _, n_rows in results) for choose in (min, max))
    if few < many:
        growth = {jobs: _exponent(results[jobs, few], results[jobs, many], many / few) for jobs, _ in results}
        words = ", ".join(f"{exponent} on {jobs} thread{'s'[: jobs - 1]}" for jobs, exponent in growth.items())
        lines += ["", f"Exponents of growth from {few:,} to {many:,} rows: {words}."]
    return "\n".join(lines)


def _exponent(few: dict[str, float], many: dict[str, float], ratio: float) -> str:
    """Of the seconds, and of those of a round."""
    whole, of_rounds = (np.log(many[key] / few[key]) / np.log(ratio) for key in ("seconds", "rounds"))
    return f"{whole:.2f} ({whole - of_rounds:.2f} for a round)"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2], help="threads")
    parser.add_argument("--write", type=Path, help="also write the table into this folder")
    parser.add_argument("--measure", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure, arguments.jobs[0])))
        sys.exit()
    settings = [(n_jobs, n_rows) for n_jobs in arguments.jobs for n_rows in arguments.rows]
    text = table({(n_jobs, n_rows): in_a_process_of_its_own(n_rows, n_jobs) for n_jobs, n_rows in settings})
    print(text)
    if arguments.write:
        write_markdown(arguments.write / "bayes_scale.md", text)
