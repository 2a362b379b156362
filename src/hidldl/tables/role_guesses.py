"""What columns are for, guessed where nobody says: which are labels, which names the rows, which are no features."""

import re
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import pandas as pd

from hidldl.tables.blocks import MOSTLY
from hidldl.tables.columns import MOST_DISTINCT, Column
from hidldl.tables.label_guesses import Guess, guess_among
from hidldl.tables.words import ID_WORDS, ROW_NAMES, words

MOST_CATEGORIES = 50
"""A column of text with more different values is not a feature: each would be a column of its own."""


def guess_row_names(columns: Sequence[Column], first_rows: pd.DataFrame, taken: Collection[str]) -> str | None:
    """The column that names the rows, if one seems to: called so, or first and no feature anyway."""
    free = [column for column in columns if column.name not in taken]
    called = [column for column in free if _is_id(column, first_rows)]
    if called:
        return called[0].name
    first = columns[0]
    if first in free and (
        _counts_rows(first, first_rows) or (first.kind == "text" and _tells_apart(first, first_rows))
    ):
        return first.name
    return None


def _is_id(column: Column, first_rows: pd.DataFrame) -> bool:
    """Whether a column tells rows apart and has no name, is called id, name and the like, or film_id or "face id"."""
    parts = words(column.name)
    is_called_so = (len(parts) == 1 and parts[0] in ROW_NAMES) or not ID_WORDS.isdisjoint(parts[-1:])
    return (is_called_so or column.name.strip() in {"", "#"}) and _tells_apart(column, first_rows)


def _tells_apart(column: Column, first_rows: pd.DataFrame) -> bool:
    """Whether nearly every row has another text or whole number; names may come twice."""
    is_name = column.whole or (column.kind == "text" and column.odd_row is None)
    if not is_name or column.n_missing:
        return False
    return column.n_distinct > MOST_CATEGORIES or column.n_distinct >= 0.9 * min(len(first_rows), MOST_DISTINCT)


def _counts_rows(column: Column, first_rows: pd.DataFrame) -> bool:
    """Whether a column numbers the rows: 1, 2, 3 and so on from anywhere, or with holes in a table that is not tiny."""
    if not column.whole or column.n_missing or len(first_rows) < 3:
        return False
    steps = np.diff(first_rows[column.name].to_numpy())  # of whole numbers, where floats would lose digits
    return bool((steps == 1).all() or (len(steps) >= 10 and (steps > 0).all()))


def guess_labels(columns: Sequence[Column], first_rows: pd.DataFrame, marks: Collection[float] = ()) -> Guess:
    """All readings of a table.

    Parameters
    ----------
    columns : sequence of Column
        What each column holds, without the one that names the rows.
    first_rows : DataFrame
        Some rows, NaN where a cell is empty.
    marks : collection of float
        Numbers that mark hidden labels, such as -1. None is guessed.
    """
    names = [column.name for column in columns if column.kind == "number" and not _is_id(column, first_rows)]
    cells = first_rows[names].to_numpy(float)
    cells = np.where(np.isin(cells, list(marks)), np.nan, cells)
    guess = guess_among(names, cells)
    with_sign = {column.name for column in columns if column.notation is not None and column.notation.percent}
    if guess.best is not None and guess.best.kind == "counts" and not with_sign.isdisjoint(guess.best.labels):
        return Guess()  # cells with a percent sign are no counts: a column that belongs to them could not be read
    return guess


def no_features_beside(labels: Sequence[str], free: Sequence[Column], first_rows: pd.DataFrame) -> dict[str, str]:
    """The reason for each column that says nothing about rows beside the labels: totals, dates and other names."""
    totals = dict.fromkeys(_find_totals(labels, free, first_rows), "it is the sum of the labels")
    ids = {column.name: "it names the rows" for column in free if _is_id(column, first_rows)}
    texts = [column.name for column in free if column.kind == "text"]
    dates = {name: "it holds dates" for name in texts if _are_dates(first_rows[name])}
    return totals | ids | dates


def _are_dates(cells: "pd.Series[Any]") -> bool:
    """Whether all cells are dates in digits, with or without a time of day."""
    date = r"\s*(?:\d{4}([-/.])\d{1,2}\1\d{1,2}|\d{1,2}([-/.])\d{1,2}\2\d{2,4})(?:[T ]\d.*)?\s*"
    different = [str(cell) for cell in cells.dropna().unique()]
    return bool(different) and all(re.fullmatch(date, cell) for cell in different)


def _find_totals(labels: Sequence[str], others: Sequence[Column], first_rows: pd.DataFrame) -> list[str]:
    """Other columns that hold the sums of the labels: they are no features."""
    names = [column.name for column in others if column.kind == "number"]
    sums = first_rows[list(labels)].sum(axis=1).to_numpy(float)
    cells = first_rows[names].to_numpy(float)
    is_sum = (np.abs(cells - sums[:, None]) <= 1e-6 * np.abs(sums[:, None])).mean(axis=0) >= MOSTLY
    return [name for name, holds in zip(names, is_sum, strict=True) if holds]
