"""How well the columns of a table are told apart where nobody says what they are for.

    python benchmarks/guessing.py [--write FOLDER] [--shape SHAPE]

Tables of many shapes are made from real distributions and from generated ones, and go through ``assign_roles`` without
any option. A table is *right* if its labels are guessed, rows are named by the column that names them, and totals,
constants and dates are no features. It is *asked* if nothing is guessed and the error shows the right labels among the
readings of the table, *refused* if it does not show them. It is *wrong* if anything else is guessed, and *wrong and
silent* if no note expresses doubt either. The paper's datasets come in where ``HIDLDL_DATA``
names their folder.
"""

import argparse
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from provenance import write_markdown

from hidldl import hide_labels, load_dataset, make_distributions
from hidldl.arrays import FloatArray
from hidldl.datasets.registry import FILES
from hidldl.errors import TableError
from hidldl.tables.columns import Tally
from hidldl.tables.planning import AmbiguousLabelsError, assign_roles

MOST_ROWS = 500
OUTCOMES = ("right", "asked", "refused", "wrong", "wrong and silent")
# fmt: off
EMOTIONS = [
    "joy", "fear", "anger", "sadness", "surprise", "disgust", "neutral", "awe", "calm", "love", "pride", "shame",
]
PLAIN_WORDS = [
    "north", "south", "east", "west", "red", "green", "blue", "oak", "pine", "birch", "elm", "ash", "iron", "zinc",
    "copper", "tin", "gold", "lead",
]
# fmt: on
LIKERT = ("strongly disagree", "disagree", "neither", "agree", "strongly agree")
Rng: TypeAlias = np.random.Generator


@dataclass(frozen=True)
class Source:
    """Features and distributions from which tables are made."""

    name: str
    X: FloatArray
    D: FloatArray


@dataclass(frozen=True)
class Case:
    """A table, and what its columns are."""

    frame: pd.DataFrame
    labels: list[str]
    row_names: str | None = None
    no_features: tuple[str, ...] = ()


def sources() -> Iterator[Source]:
    folder = os.environ.get("HIDLDL_DATA")
    here = [name for name in FILES if folder and (Path(folder) / FILES[name].file).is_file()]
    for name in [*here, "VADER"]:
        data = load_dataset(name)
        X, D = np.asarray(data.features, float), np.asarray(data.distributions, float)
        rows = np.sort(np.random.default_rng(0).permutation(len(X))[:MOST_ROWS])
        yield Source(name, X[rows], D[rows])
    for n_labels, n_rows in [(2, 300), (3, 40), (5, 12), (9, 200), (25, 500), (70, 500)]:
        data = make_distributions(n_rows=n_rows, n_features=8, n_labels=n_labels, random_state=n_labels)
        yield Source(f"generated, {n_labels} labels", np.asarray(data.features), np.asarray(data.distributions))


# Names of columns.


def label_names(style: int, n: int) -> list[str]:
    styles = [
        EMOTIONS[:n] if n <= len(EMOTIONS) else [f"emotion {k + 1}" for k in range(n)],
        [f"label_{k + 1}" for k in range(n)],
        [f"share of {PLAIN_WORDS[k % len(PLAIN_WORDS)]} {k}" for k in range(n)],
        PLAIN_WORDS[:n] if n <= len(PLAIN_WORDS) else [f"tree {k}" for k in range(n)],
        [f"d{k}" for k in range(n)],
        [str(k + 1) for k in range(n)],
        [f"{PLAIN_WORDS[k % len(PLAIN_WORDS)]}{k // len(PLAIN_WORDS) or ''}_pct" for k in range(n)],
    ]
    return styles[style % len(styles)]


def feature_names(style: int, n: int) -> list[str]:
    few = ["width", "height", "age", "score", "tempo", "loudness", "price", "distance"]
    styles = [
        [f"x{j}" for j in range(n)],
        [f"feature_{j + 1}" for j in range(n)],
        [f"col{j}" for j in range(n)],
        few[:n] if n <= len(few) else [f"PC{j + 1}" for j in range(n)],
        [f"measure.{j}" for j in range(n)],
    ]
    return styles[style % len(styles)]


# Cells.


def blanked(D: FloatArray, rng: Rng, rate: float = 0.5) -> FloatArray:
    """Shares as annotators who overlook labels hand them in; what they overlook is blank."""
    D_obs, observed = hide_labels(D, rate=rate, random_state=int(rng.integers(1 << 30)))
    return np.where(observed, D_obs, np.nan)


def zeroed(D: FloatArray, rng: Rng) -> FloatArray:
    return np.nan_to_num(blanked(D, rng))


def counted(D: FloatArray, totals: Any, rng: Rng) -> FloatArray:
    shares = np.clip(D, 0, None)
    return rng.multinomial(totals, shares / shares.sum(axis=1, keepdims=True)).astype(float)


def small_fractions(X: FloatArray) -> FloatArray:
    """Features in 0 to 1, most of them small, that sum to about 1 without being shares."""
    unit = (X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-12)
    return unit**2 / max((unit**2).sum(axis=1).mean(), 1e-12)


def one_hot(X: FloatArray, n: int) -> FloatArray:
    return np.eye(n)[pd.qcut(X[:, 0].argsort().argsort(), n, labels=False)]


def histogram(X: FloatArray, rng: Rng, n: int = 8) -> FloatArray:
    amounts = np.exp(X[:, rng.integers(X.shape[1], size=n)] / (X.std() + 1e-12) + rng.normal(size=n))
    return amounts / amounts.sum(axis=1, keepdims=True)


def table(
    X: FloatArray,
    cells: FloatArray,
    k: int,
    *,
    where: str = "after",
    x_names: list[str] | None = None,
    d_names: list[str] | None = None,
) -> tuple[pd.DataFrame, list[str]]:
    """Features before, after or on both sides of the labels, or labels scattered among them."""
    labels = d_names or label_names(k, cells.shape[1])
    features = pd.DataFrame(X, columns=x_names or feature_names(k, X.shape[1]))
    shares = pd.DataFrame(cells, columns=labels)
    half = X.shape[1] // 2
    parts = {
        "after": [features, shares],
        "before": [shares, features],
        "between": [features.iloc[:, :half], shares, features.iloc[:, half:]],
    }
    if where in parts:
        return pd.concat(parts[where], axis=1), labels
    mixed = pd.concat([features, shares], axis=1)
    order = np.random.default_rng(k).permutation(mixed.shape[1])
    mixed = mixed.iloc[:, order]
    return mixed, [name for name in mixed.columns if name in set(labels)]


# Shapes: each makes a table of a source; k varies the names.

Shape: TypeAlias = Callable[[Source, int, Rng], Case | None]


def blanks(where: str) -> Shape:
    return lambda s, k, rng: Case(*table(s.X, blanked(s.D, rng), k, where=where))


def nothing_hidden(s: Source, k: int, rng: Rng) -> Case:
    return Case(*table(s.X, s.D, k, where=("after", "before", "between")[k % 3]))


def zeros(s: Source, k: int, rng: Rng) -> Case:
    return Case(*table(s.X, zeroed(s.D, rng), k, where=("before", "between", "after")[k % 3]))


def rounded(digits: int, scale: float = 1) -> Shape:
    def make(s: Source, k: int, rng: Rng) -> Case:
        hidden = (blanked(s.D, rng), zeroed(s.D, rng), s.D)[k % 3]
        return Case(*table(s.X, (scale * hidden).round(digits), k, where=("after", "between", "before")[k % 3]))

    return make


def votes(s: Source, k: int, rng: Rng) -> Case:
    """As many votes in every row."""
    return Case(*table(s.X, counted(s.D, 10 + 5 * (k % 4), rng), k))


def likert(s: Source, k: int, rng: Rng) -> Case:
    """Answers counted, by rows of different totals."""
    counts = counted(s.D, rng.integers(5, 60, len(s.D)), rng)
    names = list(LIKERT) if s.D.shape[1] == 5 else None
    return Case(*table(s.X, counts, k, d_names=names, where=("after", "before")[k % 2]))


def likert_with_gaps(s: Source, k: int, rng: Rng) -> Case:
    counts = counted(s.D, rng.integers(5, 60, len(s.D)), rng)
    gaps = rng.random(counts.shape) < 0.3
    gaps[gaps.all(axis=1)] = False
    return Case(*table(s.X, np.where(gaps, np.nan, counts), k, where=("after", "before")[k % 2]))


def with_total(s: Source, k: int, rng: Rng) -> Case:
    frame, labels = table(s.X, counted(s.D, rng.integers(20, 900, len(s.D)), rng), k)
    name = ("Total", "sum", "n", "total votes")[k % 4]
    frame.insert(k % 2 * frame.shape[1], name, frame[labels].sum(axis=1))
    return Case(frame, labels, no_features=(name,))


def with_extras(s: Source, k: int, rng: Rng) -> Case:
    """An id, a date and a constant beside; now and then a total of percentages."""
    scale = 100 if k % 2 else 1
    frame, labels = table(s.X, scale * blanked(s.D, rng), k)
    n = len(frame)
    days = pd.date_range("2021-01-01", periods=30).strftime(("%Y-%m-%d", "%d.%m.%Y")[k % 2])
    frame.insert(0, "version", 3)
    frame.insert(0, "date", rng.choice(days, n))
    ids: list[Any] = [
        rng.permutation(n) + 10_000,
        [f"face {i}" for i in range(n)],
        np.sort(rng.permutation(10 * n)[:n]),
    ]
    name = ("id", "face", "respondent")[k % 3]
    frame.insert(0, name, ids[k % 3])
    frame["Sum"] = frame[labels].sum(axis=1).round(6)
    return Case(frame, labels, name, ("version", "date", "Sum"))


def beside_fractions(s: Source, k: int, rng: Rng) -> Case:
    cells = (blanked(s.D, rng), s.D.round(2), (100 * s.D).round(), zeroed(s.D, rng))[k % 4]
    return Case(*table(small_fractions(s.X).round((9, 2)[k % 2]), cells, k, where=("after", "before")[k % 2]))


def beside_one_hot(s: Source, k: int, rng: Rng) -> Case:
    cells = (blanked(s.D, rng), s.D, (100 * s.D).round(), zeroed(s.D, rng))[k % 4]
    X = np.hstack([one_hot(s.X, 4), one_hot(s.X[:, ::-1], 3)])
    return Case(*table(X, cells, k, x_names=[f"type_{j}" for j in range(4)] + [f"size_{j}" for j in range(3)]))


def beside_histogram(s: Source, k: int, rng: Rng) -> Case:
    """Features that sum to 1 as well: only gaps or names tell, and where they do not, one must ask."""
    cells = (blanked(s.D, rng), s.D)[k % 2]
    X, where = histogram(s.X, rng), ("after", "before")[k // 2 % 2]
    names = [f"{('h', 'feature', 'bin')[k % 3]}{j}" for j in range(X.shape[1])]
    return Case(*table(X, cells, k, x_names=names, where=where))


def same_names(s: Source, k: int, rng: Rng) -> Case:
    """All columns V1, V2 and so on: names tell nothing."""
    cells = (blanked(s.D, rng), s.D.round(3), 100 * s.D)[k % 3]
    every = [f"V{j + 1}" for j in range(s.X.shape[1] + s.D.shape[1])]
    x_names, d_names = every[: s.X.shape[1]], every[s.X.shape[1] :]
    return Case(*table(s.X, cells, k, x_names=x_names, d_names=d_names))


def scattered(s: Source, k: int, rng: Rng) -> Case | None:
    """Labels in any order among the features."""
    if s.X.shape[1] > 100 or len(s.X) < 100:
        return None
    return Case(*table(s.X, blanked(s.D, rng), k, where="scattered"))


def labels_alone(s: Source, k: int, rng: Rng) -> Case:
    frame, labels = table(s.X[:, :0], blanked(s.D, rng), k)
    frame.insert(0, "word", [f"w{i}" for i in range(len(frame))])
    return Case(frame, labels, "word")


def mostly_unlabelled(s: Source, k: int, rng: Rng) -> Case | None:
    if len(s.X) < 100:
        return None
    cells = blanked(s.D, rng)
    cells[rng.random(len(cells)) < 0.8] = np.nan
    return Case(*table(s.X, cells, k, where=("after", "before")[k % 2]))


SHAPES: dict[str, Shape] = {
    "features before, blanks": blanks("after"),
    "features after, blanks": blanks("before"),
    "features on both sides, blanks": blanks("between"),
    "labels scattered": scattered,
    "nothing hidden": nothing_hidden,
    "zeros for hidden": zeros,
    "shares with 2 decimals": rounded(2),
    "shares with 3 decimals": rounded(3),
    "percentages": rounded(1, 100),
    "whole percentages": rounded(0, 100),
    "as many votes in each row": votes,
    "Likert counts": likert,
    "Likert counts with blanks": likert_with_gaps,
    "counts with a total": with_total,
    "id, date, constant, sum": with_extras,
    "small fractions as features": beside_fractions,
    "one-hot features": beside_one_hot,
    "a histogram as features": beside_histogram,
    "all named V1, V2, ...": same_names,
    "no features": labels_alone,
    "four in five rows unlabelled": mostly_unlabelled,
}


def outcome(case: Case) -> tuple[str, str, float]:
    """The class of a guess, what was guessed or why not, and the seconds it took."""
    frame = case.frame.set_axis(pd.RangeIndex(1, len(case.frame) + 1))
    tally = Tally(tuple(frame.columns))
    tally.add(frame)
    columns = tally.columns()
    started = perf_counter()
    try:
        roles = assign_roles("table", columns, frame)
    except AmbiguousLabelsError as error:
        shows_truth = any(list(reading.labels) == case.labels for reading in error.readings)
        return ("asked" if shows_truth else "refused"), str(error), perf_counter() - started
    except TableError as error:
        return "refused", str(error), perf_counter() - started
    seconds = perf_counter() - started
    what = f"labels {', '.join(roles.labels[:8])} ({len(roles.labels)}); rows by {roles.row_names!r}"
    wrong_features = {*case.no_features} & {*roles.numbers, *roles.categories}
    if list(roles.labels) == case.labels and roles.row_names == case.row_names and not wrong_features:
        return "right", what, seconds
    doubts = any("unsure" in note for note in roles.notes)
    return ("wrong" if doubts else "wrong and silent"), f"{what}; {sorted(wrong_features)}", seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    parser.add_argument("--shape", help="only this shape")
    arguments = parser.parse_args()
    counts: dict[str, Counter[str]] = {shape: Counter() for shape in SHAPES if arguments.shape in (None, shape)}
    failures, slowest = [], (0.0, "")
    for i, source in enumerate(sources()):
        for k, shape in enumerate(SHAPES):
            case = SHAPES[shape](source, i + k, np.random.default_rng([i, k])) if shape in counts else None
            if case is None:
                continue
            result, what, seconds = outcome(case)
            counts[shape][result] += 1
            slowest = max(slowest, (seconds, f"{shape}, {source.name}"))
            if result != "right":
                failures.append(f"- {shape}, {source.name}: {result}: {what}")
    text = report(counts, failures, slowest)
    print(text)
    if arguments.write:
        write_markdown(arguments.write / "guessing.md", text)


def report(counts: dict[str, Counter[str]], failures: list[str], slowest: tuple[float, str]) -> str:
    total = sum(counts.values(), Counter[str]())
    rows = [["shape", "tables", *OUTCOMES], ["---"] * (len(OUTCOMES) + 2)]
    for name, count in [*counts.items(), ("**all**", total)]:
        rows.append([name, str(count.total()), *(str(count[result] or "") for result in OUTCOMES)])
    lines = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    summary = f"\n{total['right'] / max(total.total(), 1):.1%} are right. The slowest guess took {slowest[0]:.2f} s"
    summary += f" ({slowest[1]}).\n"
    return lines + summary + ("\n" + "\n".join(failures) + "\n" if failures else "")


if __name__ == "__main__":
    main()
