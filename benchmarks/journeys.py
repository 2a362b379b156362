"""What a user of ``hidldl recover`` meets: tables of many kinds, from the file to the report, without any option.

    python benchmarks/journeys.py [NAME ...] [--million] [--write FOLDER]

Every table is written as a file in which about half of the labels are blank, and the command runs in a process of its
own. "guessed" says whether it found the label columns, and the column that names the rows, by itself. Seconds are for
all: start, reading, choice of parameters, result and report. ``--million`` times a table of 1,000,000 rows with 16
features and 10 labels instead, and its peak memory. The paper's datasets come in where ``HIDLDL_DATA`` names their
folder. Prints a table in Markdown; with ``--write`` it is journeys.md (or million.md) in that folder.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from provenance import write_markdown

from hidldl import hide_labels, load_dataset, make_distributions
from hidldl.datasets.registry import FILES

LABELS = ("joy", "fear", "anger", "calm", "awe")


@dataclass(frozen=True)
class Journey:
    """A table, what its labels and row names are, and how it is written."""

    frame: pd.DataFrame
    labels: list[str]
    row_names: str | None = None
    filename: str = "table.csv"
    options: dict[str, Any] = field(default_factory=dict)

    def write(self, folder: Path) -> Path:
        path = folder / self.filename
        self.frame.to_csv(path, index=False, **self.options)
        return path


def table_with_gaps(
    n_rows: int = 500, n_labels: int = 5, names: Any = None, n_features: int = 6
) -> tuple[pd.DataFrame, list[str]]:
    """A table of features and blanked shares."""
    data = make_distributions(n_rows=n_rows, n_features=n_features, n_labels=n_labels, random_state=1)
    labels = list(names or LABELS[:n_labels])
    frame = pd.DataFrame(data.features, columns=[f"x_{j}" for j in range(n_features)])
    return frame.join(pd.DataFrame(blanked(data.distributions), columns=labels)), labels


def blanked(D: Any, rate: float = 0.5) -> Any:
    """Shares as annotators who overlook labels hand them in; what they overlook is blank."""
    D_obs, observed = hide_labels(np.asarray(D), rate=rate, random_state=0)
    return np.where(observed, D_obs, np.nan)


def of_dataset(name: str) -> Journey:
    """Columns are called c1, c2 and so on: their names do not tell what they are."""
    data = load_dataset(name)
    cells = np.hstack([np.asarray(data.features), blanked(data.distributions)])
    frame = pd.DataFrame(cells, columns=[f"c{j + 1}" for j in range(cells.shape[1])])
    labels = list(frame.columns[-len(data.label_names) :])
    if not isinstance(data.distributions, pd.DataFrame):
        return Journey(frame, labels)
    named = str(data.distributions.index.name or "word")
    frame.insert(0, named, data.distributions.index)
    return Journey(frame, labels, named)


def votes() -> Journey:
    """Whole numbers of votes per star, a title, a year, a genre; stars that nobody noted are blank."""
    rng = np.random.default_rng(2)
    frame, labels = table_with_gaps(400, 5, [f"{k} stars" for k in range(1, 6)], 2)
    counts = pd.DataFrame(np.rint(frame[labels] * rng.integers(20, 2000, (400, 1))), columns=labels)
    films = pd.DataFrame({"title": [f"Film, the {i}th" for i in range(400)], "year": rng.integers(1960, 2024, 400)})
    films["genre"] = np.array(["drama", "comedy", "thriller", ""])[(frame["x_0"].rank() // 101).astype(int)]
    return Journey(pd.concat([films, frame[["x_0", "x_1"]], counts], axis=1), labels, "title")


def gappy() -> Journey:
    frame, labels = table_with_gaps()
    features = frame.columns.difference(labels)
    lost = np.random.default_rng(3).random((len(frame), len(features))) < 0.4
    frame[features] = frame[features].mask(lost)
    return Journey(frame, labels)


def european() -> Journey:
    frame, labels = table_with_gaps()
    frame.insert(0, "Datei", [f"Gesicht {i}" for i in range(len(frame))])
    options = {"sep": ";", "decimal": ",", "encoding": "utf-8-sig", "lineterminator": "\r\n"}
    return Journey(frame, labels, "Datei", options=options)


def labels_first() -> Journey:
    frame, labels = table_with_gaps()
    return Journey(frame[[*labels, *frame.columns.difference(labels)]], labels)


def odd_names() -> Journey:
    return Journey(*table_with_gaps(names=["joy, or so", 'the "other"', "😀", "Ärger; Wut", "a\nb"]))


def percentages() -> Journey:
    frame, labels = table_with_gaps()
    frame[labels] = (100 * frame[labels]).round(2)
    return Journey(frame, labels)


def zeros() -> Journey:
    frame, labels = table_with_gaps()
    return Journey(frame.fillna(0), labels, filename="table.tsv", options={"sep": "\t"})


def plain(*arguments: Any) -> Journey:
    return Journey(*table_with_gaps(*arguments))


JOURNEYS: dict[str, Callable[[], Journey]] = {
    "VADER": lambda: of_dataset("VADER"),
    **{name: lambda name=name: of_dataset(name) for name in FILES},  # type: ignore[misc]
    "votes for films": votes,
    "40 % of the features missing": gappy,
    "200 labels": lambda: plain(200, 200, [f"emotion {k}" for k in range(200)]),
    "semicolons and decimal commas": european,
    "labels first": labels_first,
    "odd names of labels": odd_names,
    "percentages": percentages,
    "zeros for hidden labels": zeros,
    "3 rows": lambda: plain(3, 3),
    "2 labels": lambda: plain(300, 2),
}


def run(table: Path, folder: Path, *options: str) -> tuple[float, int, str]:
    """Seconds, peak memory in bytes and what the command said."""
    command = [sys.executable, "-m", "hidldl", "recover", str(table), "-o", str(folder / "out.csv"), *options]
    started = perf_counter()
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    assert process.stderr is not None
    messages = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = perf_counter() - started
    if status:
        raise SystemExit(f"{table.name}: {messages}")
    return seconds, usage.ru_maxrss * 1024, messages


def row_of(name: str, journey: Journey) -> list[str]:
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        seconds, _, _ = run(journey.write(folder), folder, "--report", str(folder / "report.html"))
        columns = pd.read_csv(folder / "out.csv", nrows=5).columns.tolist()
        lines = pd.read_csv(folder / "out.csv", usecols=["hidden_mass"])
    expected = [*([] if journey.row_names is None else [journey.row_names]), *journey.labels, "hidden_mass"]
    assert len(lines) == len(journey.frame)
    guessed = "yes" if columns == expected else "no"
    return [name, f"{len(journey.frame):,}", str(len(journey.labels)), guessed, f"{seconds:.1f}"]


def million(n_rows: int = 1_000_000) -> list[str]:
    rng = np.random.default_rng(0)
    with TemporaryDirectory() as scratch:
        folder = Path(scratch)
        path = folder / "table.csv"
        for start in range(0, n_rows, 100_000):
            data = make_distributions(n_rows=100_000, n_features=16, n_labels=10, random_state=start)
            D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=start)
            frame = pd.DataFrame(data.features.round(6)).add_prefix("x_")
            frame = frame.join(pd.DataFrame(np.where(observed, D_obs, np.nan)).add_prefix("label_"))
            frame.insert(0, "id", rng.permutation(np.arange(start, start + 100_000)))
            frame.to_csv(path, index=False, mode="a", header=not start)
        seconds, memory, _ = run(path, folder)
        size = path.stat().st_size
    return [f"{n_rows:,}", "16 + 10", f"{size / 1e6:,.0f} MB", f"{seconds:.0f}", f"{memory / 2**30:.2f} GiB"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these journeys")
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    if arguments.million:
        header, rows = ["rows", "features + labels", "file", "seconds", "peak memory"], [million()]
    else:
        header = ["table", "rows", "labels", "guessed", "seconds"]
        rows = [row_of(name, JOURNEYS[name]()) for name in arguments.names or JOURNEYS if is_here(name)]
    lines = [" | ".join(row) for row in [header, ["---"] * len(header), *rows]]
    text = "".join(f"| {line} |\n" for line in lines)
    print(text)
    if arguments.write:
        write_markdown(arguments.write / ("million.md" if arguments.million else "journeys.md"), text)


def is_here(name: str) -> bool:
    folder = os.environ.get("HIDLDL_DATA")
    return name not in FILES or (folder is not None and (Path(folder) / FILES[name].file).is_file())


if __name__ == "__main__":
    main()
