"""What columns are for, where nobody says: by what they are called, by what they hold and by what they sum to."""

import re
from collections.abc import Collection, Sequence

import numpy as np
import pandas as pd

from hidldl.arrays import FloatArray
from hidldl.tables.columns import MOST_DISTINCT, Column
from hidldl.tables.numbers import ROUNDING

MOST_CATEGORIES = 50
"""A column of text with more different values is not a feature: each would be a column of its own."""
MOST_GUESSED = 1000
"""Columns beyond which labels are not guessed from their sums."""
SUMS = (1, 100)
"""What shares and percentages sum to."""
MOST_SUMMED = 200_000
"""Cells that are summed in every way; of wide tables fewer rows are looked at."""
LABEL_STEMS = {"label", "vote", "rating", "star", "share", "degree", "count"}
FEATURE_STEMS = {"feature", "feat", "x", "f", "attr", "attribute", "dim", "pc", "var", "v", "embedding"}
ROW_NAMES = {"", "id", "name", "title", "index", "key", "item", "row", "uid", "uuid"}


def guess_row_names(columns: Sequence[Column], first_rows: pd.DataFrame, taken: Collection[str]) -> str | None:
    """The column that names the rows, if one seems to: called so, or first and no feature anyway."""
    free = [column for column in columns if column.name not in taken]
    called = [column for column in free if _is_called_a_name(column.name) and _tells_apart(column, first_rows)]
    if called:
        return called[0].name
    first = columns[0]
    if first in free and (
        _counts_rows(first, first_rows) or (first.kind == "text" and _tells_apart(first, first_rows))
    ):
        return first.name
    return None


def _is_called_a_name(name: str) -> bool:
    """id, name and the like, also film_id and "face id"."""
    words = re.split(r"[\s_.-]+", name.strip().lower())
    return name.strip().lower() in ROW_NAMES or (len(words) > 1 and words[-1] in {"id", "uid", "uuid"})


def _tells_apart(column: Column, first_rows: pd.DataFrame) -> bool:
    """Whether nearly every row has another text or whole number; names may come twice."""
    is_name = column.whole or (column.kind == "text" and column.odd_row is None)
    if not is_name or column.n_missing:
        return False
    return column.n_distinct > MOST_CATEGORIES or column.n_distinct >= 0.9 * min(len(first_rows), MOST_DISTINCT)


def _counts_rows(column: Column, first_rows: pd.DataFrame) -> bool:
    """Whether a column numbers the rows: 1, 2, 3 and so on from anywhere."""
    if not column.whole or column.n_missing or len(first_rows) < 3:
        return False
    return bool((np.diff(first_rows[column.name].to_numpy(float)) == 1).all())


def guess_labels(columns: Sequence[Column], first_rows: pd.DataFrame) -> tuple[str, ...]:
    """By what they are called, or else by what they sum to, or else the only group of whole numbers called alike."""
    shares = [column for column in columns if column.kind == "number" and column.minimum >= 0]
    groups: dict[str, list[str]] = {}
    for column in shares:
        groups.setdefault(_stem(column.name), []).append(column.name)
    called = [names for stem, names in groups.items() if stem in LABEL_STEMS and len(names) > 1]
    if len(called) == 1:
        return tuple(called[0])
    summing = _columns_that_sum(columns, first_rows)
    if summing:
        return summing
    whole = {column.name for column in shares if column.whole}
    alike = [g for stem, g in groups.items() if stem not in FEATURE_STEMS and len(g) > 2 and whole.issuperset(g)]
    return tuple(alike[0]) if len(alike) == 1 else ()


def _stem(name: str) -> str:
    """The word that numbered or prefixed names share: "votes_3", "vote 4" and "5 votes" have "vote"."""
    first = re.search(r"[^\W\d_]+", name.lower())
    return first.group().removesuffix("s") if first else ""


def _columns_that_sum(columns: Sequence[Column], rows: pd.DataFrame) -> tuple[str, ...]:
    """The columns next to each other that sum to 1, or to 100, in nearly every row, and look most like labels."""
    is_share = [column.kind == "number" and column.minimum >= 0 for column in columns]
    found: list[tuple[str, ...]] = []
    for run in _runs(is_share):
        names = [column.name for column in columns[run]][-MOST_GUESSED:]
        some = rows[names].head(max(100, MOST_SUMMED // len(names)))
        found += [tuple(names[block]) for block in _blocks_that_sum(np.nan_to_num(some.to_numpy(float)))]
    return max(found, key=lambda names: _likeness_to_labels(rows[list(names)].to_numpy(float)), default=())


def _blocks_that_sum(cells: FloatArray) -> list[slice]:
    """Blocks of columns that do not overlap, the widest first."""
    n_columns = cells.shape[1]
    upto = np.concatenate([np.zeros((len(cells), 1)), cells.cumsum(axis=1)], axis=1)
    is_empty = np.asarray(~cells.any(axis=0))
    taken = np.zeros(n_columns, dtype=bool)
    blocks = []
    for width in range(n_columns, 1, -1):
        fits = _sum_alike(upto[:, width:] - upto[:, :-width])
        for start in np.flatnonzero(fits)[::-1]:
            block = slice(int(start), int(start) + width)
            # A column of zeros beside the labels changes no sum and is none of them.
            if not (taken[block].any() or is_empty[start] or is_empty[start + width - 1]):
                taken[block] = True
                blocks.append(block)
    return blocks


def _likeness_to_labels(cells: FloatArray) -> tuple[bool, bool, float, int]:
    """Features can sum to 1 too: histograms do, and indicators of categories. Labels have gaps, or zeros for them."""
    are_indicators = np.isin(cells, (0, 1)).all()
    return bool(np.isnan(cells).any()), not are_indicators, round(float((cells == 0).mean()), 1), cells.shape[1]


def _sum_alike(sums: FloatArray) -> FloatArray:
    """Which columns of sums are 1, or 100, in nearly all rows that have a label at all."""
    labelled = np.maximum((sums > 0).sum(axis=0), 0.5 * len(sums))
    hits = [(np.abs(sums - total) <= ROUNDING * total).sum(axis=0) for total in SUMS]
    return np.asarray(np.max(hits, axis=0) >= 0.98 * labelled)


def _runs(flags: Sequence[bool]) -> list[slice]:
    edges = np.flatnonzero(np.diff([False, *flags, False]))
    return [slice(int(a), int(b)) for a, b in edges.reshape(-1, 2)]
