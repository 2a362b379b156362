"""How long BayesHidLDL takes on tables that nobody has measured: a plan from measured rates and stated numbers.

    python benchmarks/plan.py [--rows 100000] [--results docs/results] [--write FOLDER]

The CPU time of a row is measured here, with the code of the cluster on one core: a fit of a Parquet file of so many
rows in 15 rounds, and its recovered rows. The table has 16 features and 10 labels, half of them hidden, in double
precision, and the model 500 landmarks. What the card and one machine do is read from the tables of gpu.py and
bayes_scale.py. Numbers of networks and of Dask's scheduler are stated, in ``STATED``. Parts are added up as if none ran
while another waits.
"""

import argparse
import tempfile
from math import ceil, log, log10
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

import pandas as pd
from provenance import PACKAGES, provenance, write_markdown

N_FEATURES, N_LABELS, N_LANDMARKS, ROUNDS = 16, 10, 500, 15
GIVEN: dict[str, Any] = {
    "nu": 1024.0,
    "ridge": 1.0,
    "width": 1.0,
    "standardize": True,
    "prior_rows": 1.0,
    "ordered": False,
    "n_components": 1,
    "n_landmarks": N_LANDMARKS,
    "hiding": "uniform",
    "random_state": 0,
}
PASSES = ROUNDS + 8
"""Rounds, and once each a glance, checks, largest features, moments, landmarks, sums for the start, end and result."""
FAN = 8
"""Sums that one task adds, as in the library."""
BYTES_OF_TABLE, BYTES_OF_STATE = 8 * (N_FEATURES + N_LABELS), 8 * (2 * N_LABELS + 2)
"""Of a row: what is read in each pass, and what workers keep between rounds."""
BYTES_OF_SUMS = 8 * (N_LANDMARKS * (N_LABELS + 1) + N_LABELS**2)
NETWORK, MESSAGE, TASK = 1.25e9, 1e-3, 1e-3
STATED = {
    "bytes per second into a machine, 10 Gbit/s": NETWORK,
    "seconds until a message arrives": MESSAGE,
    "seconds of Dask's scheduler for a task": TASK,
}
CARD_BYTES = 139 * 2**30
FITS, SWEEPS = "BayesHidLDL, all of these", "HidLDL, 100 iterations, if each value moves once"
MILLISECONDS = "compiled, ms"
COLLECTED = "The tables of these scripts say at which commit each was measured. The plan:"


class Cluster(NamedTuple):
    n_rows: int
    machines: int
    cores: int
    rows_of_part: int


CLUSTERS = (Cluster(10**8, 1, 16, 250_000), Cluster(10**8, 8, 16, 250_000), Cluster(10**10, 100, 16, 1_000_000))


def microseconds_of_a_row(n_rows: int) -> float:
    """CPU time of a fit and its result on one core, tasks and files included."""
    import dask
    import dask.dataframe as dd

    from hidldl import BayesHidLDL, hide_labels, make_distributions

    data = make_distributions(n_rows=n_rows, n_features=N_FEATURES, n_labels=N_LABELS, random_state=0)
    D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=0)
    features, labels = [f"x{j}" for j in range(N_FEATURES)], [f"label {j}" for j in range(N_LABELS)]
    with tempfile.TemporaryDirectory() as folder, dask.config.set(scheduler="synchronous"):
        shares = pd.DataFrame(D_obs, columns=labels).where(observed)
        pd.DataFrame(data.features, columns=features).join(shares).to_parquet(Path(folder, "part.parquet"))
        parts = dd.read_parquet(folder)
        for rounds in (1, ROUNDS):  # the first compiles, or loads what is compiled
            started = process_time()
            model = BayesHidLDL(**GIVEN, max_iter=rounds, tol=0).fit(parts[features], parts[labels])
            model.distributions_.compute()
    return 1e6 * (process_time() - started) / n_rows


def seconds_of(cluster: Cluster, microseconds: float) -> dict[str, float]:
    """Of each part of a fit."""
    n_rows, machines, cores, rows_of_part = cluster
    n_parts = ceil(n_rows / rows_of_part)
    # A task for each partition, two that take sums and state from its result, and those that add sums.
    n_tasks = n_parts * (3 + 1 / (FAN - 1))
    return {
        "compute": n_rows * microseconds * 1e-6 / (machines * cores),
        "read": PASSES * n_rows * BYTES_OF_TABLE / (machines * NETWORK),
        "schedule": PASSES * n_tasks * TASK,
        "add": PASSES * ceil(log(n_parts, FAN)) * (MESSAGE + FAN * BYTES_OF_SUMS / NETWORK),
    }


def power(n_rows: int) -> str:
    return f"1e{log10(n_rows):.0f}"


def table_of_clusters(microseconds: float) -> str:
    heads = ["rows", "machines × cores", "table", "kept between rounds, per machine", "partitions"]
    heads += ["compute, s", "read, s", "schedule, s", "add sums, s", "together"]
    lines = [f"| {' | '.join(line)} |" for line in (heads, ["---"] * len(heads))]
    for cluster in CLUSTERS:
        seconds = seconds_of(cluster, microseconds)
        n_rows, machines, cores, rows_of_part = cluster
        cells = [
            power(n_rows),
            f"{machines} × {cores}",
            f"{n_rows * BYTES_OF_TABLE / 1e9:,.0f} GB",
        ]
        cells += [f"{n_rows * BYTES_OF_STATE / machines / 1e9:,.1f} GB", f"{ceil(n_rows / rows_of_part):,}"]
        cells += [*(f"{value:,.0f}" for value in seconds.values()), f"{sum(seconds.values()) / 60:,.0f} min"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def arithmetic(microseconds: float) -> str:
    """The last of the clusters, step by step."""
    cluster = CLUSTERS[-1]
    n_rows, machines, cores, rows_of_part = cluster
    seconds, n_parts, many = seconds_of(cluster, microseconds), ceil(n_rows / rows_of_part), power(n_rows)
    return "\n".join(
        [
            f"For {many} rows in {n_parts:,} partitions, {ROUNDS} rounds and {PASSES} passes:",
            "",
            f"- compute: {many} rows × {microseconds:.0f} µs / ({machines} × {cores} cores) = "
            f"{seconds['compute']:,.0f} s;",
            f"- read: {PASSES} × {many} × {BYTES_OF_TABLE} bytes / ({machines} × {NETWORK / 1e9:g} GB/s) = "
            f"{seconds['read']:,.0f} s;",
            f"- schedule: {PASSES} × {n_parts:,} × {3 + 1 / (FAN - 1):.2f} tasks × {TASK * 1e3:g} ms = "
            f"{seconds['schedule']:,.0f} s;",
            f"- add sums: {PASSES} × {ceil(log(n_parts, FAN))} levels × ({MESSAGE * 1e3:g} ms + {FAN} × "
            f"{BYTES_OF_SUMS / 1e3:.0f} kB / {NETWORK / 1e9:g} GB/s) = {seconds['add']:,.1f} s.",
            "",
            "Stated, not measured: " + ", ".join(f"{value:g} {words}" for words, value in STATED.items()) + ".",
        ]
    )


def lines_of(path: Path) -> list[dict[str, str]]:
    """The first table of a file in docs/results, line by line, by the heads of its columns."""
    text = path.read_text(encoding="utf-8").partition("\n\n")[0]
    heads, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
    return [dict(zip(heads, row, strict=True)) for row in rows]


def number(text: str) -> float:
    return float(text.replace(",", ""))


def table_of_measured(results: Path) -> str:
    """One core, two cores, the card and a cluster, from what the other benchmarks have written."""
    heads = ["method", "where", "rows", "seconds", "memory", "script"]
    rows = []
    for line in lines_of(results / "bayes_scale.md"):
        # Files of before had two threads, and did not say so.
        where = f"threads: {line.get('threads', '2')}"
        how, memory = f"{line['seconds']}, {line['rounds of EM']} rounds", f"{line['at most, GiB']} GiB"
        rows.append(["BayesHidLDL", where, line["rows"], how, memory, "bayes_scale.py"])
    cluster = lines_of(results / "cluster.md")[-1]
    where = f"4 workers, {cluster['features']} features, from disk"
    how, memory = f"{cluster['fit, s']}, {cluster['rounds']} rounds", f"{cluster['largest worker, MiB']} MiB per worker"
    rows.append(["BayesHidLDL", where, cluster["rows"], how, memory, "cluster.py"])
    card = {line["what"]: line["seconds"] for line in lines_of(results / "gpu.md")}
    rows.append(["BayesHidLDL", "card, float32", "10,000,000", f"{card[FITS]}, 30 rounds", "", "gpu.py"])
    for line in lines_of(results / "scale.md"):
        if line["labels"] == "10" and number(line["rows"]) >= 100_000:
            how, memory = f"{number(line[MILLISECONDS]) / 10:.1f}, 100 iterations", f"{line['compiled, MB']} MB"
            rows.append(["HidLDL, graph given", f"threads: {line['threads']}", line["rows"], how, memory, "scale.py"])
    how = f"{card[SWEEPS]}, 100 iterations"
    rows.append(["HidLDL, graph given", "card, float32", "10,000,000", how, "", "gpu.py"])
    table = "\n".join(f"| {' | '.join(line)} |" for line in (heads, ["---"] * len(heads), *rows))
    bayes, sweeps = (exponents(results / name) for name in ("bayes_scale.md", "scale.md"))
    return f"{table}\n\nBayesHidLDL: {bayes} HidLDL: {sweeps}"


def exponents(path: Path) -> str:
    """What a file in docs/results says of growth."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("Exponent"))


def one_machine_and_card(results: Path) -> str:
    """What they would need for 1e8 rows, from what they needed for 1e6 and 1e7."""
    largest = lines_of(results / "bayes_scale.md")[-1]
    card = {line["what"]: float(line["seconds"]) for line in lines_of(results / "gpu.md")}
    times = round(10**8 / number(largest["rows"]))
    gib, minutes = times * number(largest["at most, GiB"]), times * number(largest["seconds"]) / 60
    most = CARD_BYTES / (4 * N_LANDMARKS)
    bayes, sweeps = (10 * card[name] for name in (FITS, SWEEPS))
    neighbors = 10 * card["neighbours, 16 features, uniform"]
    return "\n".join(
        [
            "For 1e8 rows elsewhere, if time and memory grow as the rows do:",
            "",
            f"- in the memory of one machine: {times:,} × {largest['at most, GiB']} GiB = {gib:,.0f} GiB, {times:,} × "
            f"{largest['seconds']} s = {minutes:,.0f} min on two cores;",
            f"- BayesHidLDL on the card: 10 × {bayes / 10:.1f} s = {bayes:,.0f} s, but its memory holds "
            f"139 GiB / (4 bytes × {N_LANDMARKS} landmarks) = {most / 1e6:.0f} million rows; "
            f"1e8 rows fit with {int(CARD_BYTES / 4e8):,} landmarks;",
            f"- HidLDL on the card: neighbours 10 × {neighbors / 10:.0f} s = {neighbors:,.0f} s, 100 iterations 10 × "
            f"{sweeps / 10:.2f} s = {sweeps:.1f} s.",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000, help="rows whose CPU time is measured")
    parser.add_argument("--results", type=Path, default=Path(__file__).parents[1] / "docs/results")
    parser.add_argument("--write", type=Path, help="also write the plan into this folder")
    arguments = parser.parse_args()
    microseconds = microseconds_of_a_row(arguments.rows)
    rate = f"A row takes {microseconds:.0f} µs of one core in {ROUNDS} rounds (measured on {arguments.rows:,} rows)."
    parts = [table_of_clusters(microseconds), rate, arithmetic(microseconds), one_machine_and_card(arguments.results)]
    text = "\n\n".join([table_of_measured(arguments.results), COLLECTED, *parts])
    print(text)
    if arguments.write:
        write_markdown(arguments.write / "plan.md", text, provenance((*PACKAGES, "dask")))


if __name__ == "__main__":
    main()
