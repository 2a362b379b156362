"""Rows of a table as numbers: label cells as shares, and features without gaps."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import pandas as pd

from hidldl.arrays import BoolArray, FloatArray
from hidldl.base import Recoverer
from hidldl.errors import Remedy, TableError
from hidldl.tables.columns import Column
from hidldl.tables.marks import Marks
from hidldl.tables.sources import quoted

MOST_DECIMALS = 6
"""Numbers with more decimals are as good as exact."""


def tolerance(decimals: int, n_labels: int) -> float:
    """How far rounding may take the sum of a row from the whole: half a unit of the last decimal for each label.

    Examples
    --------
    >>> from hidldl.tables.numbers import tolerance
    >>> tolerance(2, 4)
    0.02
    """
    return n_labels * 0.5 * 10.0**-decimals


def count_decimals(numbers: FloatArray, at_least: int = 0) -> int:
    """The decimals of the number that has most, `MOST_DECIMALS` at most."""
    left = numbers
    for decimals in range(at_least, MOST_DECIMALS):
        left = left[np.abs(left - np.round(left, decimals)) > 1e-9]
        if not len(left):
            return decimals
    return MOST_DECIMALS


def _sums_to(whole: float, sums: FloatArray, decimals: int, n_labels: int) -> BoolArray:
    # Computing a sum of binary numbers errs too, far less than any rounding.
    return np.asarray(np.abs(sums - whole) <= tolerance(decimals, n_labels) + 1e-9 * whole)


@dataclass
class Shares:
    """The shares in the label columns of a table, checked chunk by chunk."""

    table: str
    labels: tuple[str, ...]
    marks: Marks
    normalise: bool
    seen: BoolArray | bool = False
    """Which labels have been observed so far."""
    decimals: int = 0
    """The most decimals so far: how far rounding may take sums."""
    guessed: bool = False
    """Whether nobody named the labels."""

    def __call__(self, rows: pd.DataFrame) -> tuple[FloatArray, BoolArray]:
        """Shares (0 where hidden) that sum to 1, or to 0 in rows without any label, and which are observed."""
        given, observed = self._cells(rows)
        faults = self._faults(given, observed, rows.index)
        if len(faults):
            raise TableError(
                f"row {faults.index[0]} of {self.table}: {faults.iloc[0]}", *self._remedies(faults.iloc[0])
            )
        self.seen = self.seen | np.asarray(observed.any(axis=0))
        sums = given.sum(axis=1, keepdims=True)
        return np.divide(given, sums, out=np.zeros_like(given), where=sums > 0), observed

    def doubts(self, rows: pd.DataFrame) -> BoolArray | None:
        """Which zeros may be hidden or true; None if nobody doubts them."""
        if not self.marks.unknown:
            return None
        return self.marks.doubts(rows.reindex(columns=list(self.labels)).to_numpy(float))

    def totals(self, rows: pd.DataFrame) -> FloatArray:
        """The sum of each row's cells."""
        return np.asarray(self._cells(rows)[0].sum(axis=1))

    def _remedies(self, fault: str) -> list[Remedy]:
        """What helps; that cells are amounts is a thought for users who named the labels, not for a wrong guess."""
        if "sum to" not in fault:
            return [Remedy("skip")]
        amounts = Remedy("normalise", "if its cells are counts or amounts")
        return [Remedy("labels", "if the guess is wrong") if self.guessed else amounts, Remedy("skip")]

    def faults(self, rows: pd.DataFrame) -> "pd.Series[str]":
        """What is wrong with the labels of rows, by the number of the row; rows without a fault are not in it."""
        return self._faults(*self._cells(rows), rows.index)

    def _cells(self, rows: pd.DataFrame) -> tuple[FloatArray, BoolArray]:
        # A table to predict may lack label columns: they are hidden.
        cells = rows.reindex(columns=list(self.labels)).to_numpy(float)
        observed = self.marks(cells)
        return np.where(observed, cells, 0), observed

    def _faults(self, given: FloatArray, observed: BoolArray, index: Any) -> "pd.Series[str]":
        sums, labelled = given.sum(axis=1), np.asarray(observed.any(axis=1))
        faults = pd.Series("", index=index, dtype=object)
        if not self.normalise:
            self.decimals = count_decimals(given, self.decimals)
            # Whole numbers are not shares that were rounded, so their sums are exact.
            wrong = labelled & ~_sums_to(1, sums, self.decimals or MOST_DECIMALS, len(self.labels))
            faults[wrong] = (
                pd.Series(sums[wrong]).map("its labels sum to {:.6g}, not to 1; correct it".format).to_numpy()
            )
        faults[labelled & (sums <= 0)] = "it has labels but none above 0; give it one, or empty its label cells"
        negative = np.asarray((given < 0).any(axis=1))
        where = (given[negative] < 0).argmax(axis=1)
        words = [
            f"{value:g} in label column {quoted(self.labels[j])} is negative; shares and counts are 0 or more"
            for value, j in zip(given[negative, where], where, strict=True)
        ]
        faults[negative] = np.array(words, dtype=object)
        return faults[faults != ""]

    def refuse_unseen(self) -> None:
        """After all rows: a label that is nowhere observed cannot be recovered."""
        unseen = ~np.broadcast_to(self.seen, len(self.labels))
        if unseen.any():
            label = self.labels[int(unseen.argmax())]
            raise TableError(
                f"label column {quoted(label)} of {self.table} is hidden in every row, so nothing says how much of it "
                "there is",
                Remedy("drop label"),
                Remedy("hidden=none", "if its zeros are true ones"),
            )


def understand_labels(
    hidden: str, normalise: bool, table: str, labels: Sequence[Column], first_rows: pd.DataFrame, can_tell: bool = False
) -> tuple[Marks, bool, list[str]]:
    """What marks a hidden label, whether rows are divided by their sums, and notes on both."""
    marks, note = Marks.parse(hidden, table, labels, can_tell)
    if normalise:
        return marks, True, [note, "rows are divided by their sums"]
    amounts, note_on_amounts = are_amounts(labels, first_rows, marks)
    return marks, amounts, [note, *([note_on_amounts] if note_on_amounts else [])]


def are_percentages(cells: FloatArray, marks: Marks) -> bool:
    """Whether the label cells of some rows are percentages: their rows sum to 100."""
    given = np.where(marks(cells), cells, 0)
    sums = given.sum(axis=1)
    sums = sums[sums > 0]
    return bool(len(sums)) and bool(_sums_to(100, sums, count_decimals(given), cells.shape[1]).mean() > 0.98)


def are_amounts(labels: Sequence[Column], first_rows: pd.DataFrame, marks: Marks) -> tuple[bool, str | None]:
    """Whether rows are to be divided by sums other than 1, and a sentence about it: whole numbers are counts."""
    cells = first_rows[[column.name for column in labels]].to_numpy(float)
    given = np.where(marks(cells), cells, 0)
    decimals = count_decimals(given)
    sums = given.sum(axis=1)
    sums = sums[sums > 0]
    if not len(sums) or _sums_to(1, sums, decimals or MOST_DECIMALS, len(labels)).mean() > 0.5:
        return False, _note_on_rounding(sums, decimals, len(labels))
    if are_percentages(cells, marks):
        return True, "labels are percentages and are divided by 100"
    if all(column.whole for column in labels):
        return True, "labels are whole numbers: taken as counts, each row divided by its sum"
    return False, None


def _note_on_rounding(sums: FloatArray, decimals: int, n_labels: int) -> str | None:
    sums = sums[_sums_to(1, sums, decimals or MOST_DECIMALS, n_labels)]
    if not len(sums) or np.abs(sums - 1).max() < tolerance(MOST_DECIMALS, 1):
        return None
    low, high = sums.min(), sums.max()
    return f"rows sum to {low:.6g} to {high:.6g} by rounding to {decimals} decimals, and are divided by their sums"


@dataclass(frozen=True)
class FeatureEncoding:
    """Turns the feature columns of a table into a matrix without gaps.

    A number that is missing is the median of its column; where the rows that were fitted had gaps in a column, another
    column tells them. A category is one column of 0 and 1 per value; one that is missing, or unknown, is 0 in all.
    """

    numbers: tuple[str, ...]
    medians: FloatArray
    gappy: tuple[str, ...]
    categories: tuple[tuple[str, tuple[str, ...]], ...]

    @classmethod
    def of(
        cls, rows: pd.DataFrame, number_names: tuple[str, ...], category_names: tuple[str, ...]
    ) -> "FeatureEncoding":
        """The encoding for these rows."""
        numbers = rows[list(number_names)].to_numpy(float)
        missing = np.isnan(numbers)
        # A column that is empty in these rows, which may be a sample, still has a value to stand for its gaps.
        medians = np.array([np.median(column) if len(column) else 0.0 for column in _without_gaps(numbers)])
        gappy = tuple(name for name, gap in zip(number_names, missing.any(axis=0), strict=True) if gap)
        values = {name: sorted(rows[name].dropna().unique()) for name in category_names}
        return cls(number_names, medians, gappy, tuple((name, tuple(different)) for name, different in values.items()))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that it needs."""
        return (*self.numbers, *(name for name, _ in self.categories))

    @property
    def n_columns(self) -> int:
        """Columns of the matrix that it makes."""
        return max(1, len(self.numbers) + len(self.gappy) + sum(len(values) for _, values in self.categories))

    def __call__(self, rows: pd.DataFrame) -> FloatArray:
        """The features of rows of the table, or of another with the same columns; a constant where there are none."""
        if not self.columns:
            return np.zeros((len(rows), 1))
        numbers = rows[list(self.numbers)].to_numpy(float)
        missing = np.isnan(numbers)
        marks = missing[:, [self.numbers.index(name) for name in self.gappy]]
        indicators = [
            rows[name].to_numpy(object)[:, None] == np.array(values, dtype=object) for name, values in self.categories
        ]
        return np.hstack([np.where(missing, self.medians, numbers), marks, *indicators])

    def refuse_missing(self, table: str, columns: Mapping[str, Column]) -> None:
        """A new table must have the columns that the model was fitted with, of the same kind."""
        for name in self.columns:
            if name not in columns:
                raise TableError(f"{table} has no column {quoted(name)}, which the model needs; add it, even if empty.")
        for name in self.numbers:
            column = columns[name]
            if column.kind == "text":
                where = f" ({quoted(column.odd_value)} in row {column.odd_row})" if column.odd_row else ""
                raise TableError(f"column {quoted(name)} of {table} holds text{where}; the model needs numbers there.")

    def describe(self) -> list[str]:
        """What it does, for people."""
        notes = []
        if self.gappy:
            where = quoted(self.gappy[0]) if len(self.gappy) == 1 else f"{len(self.gappy)} feature columns"
            notes.append(f"missing numbers in {where} are filled with the median, and another column marks them")
        if self.categories:
            names = [f"{quoted(name)} ({len(values)})" for name, values in self.categories]
            more = " ..." if len(names) > 12 else ""
            notes.append(f"categories, one feature for each of their values: {', '.join(names[:12])}{more}")
        return notes


def _without_gaps(numbers: FloatArray) -> list[FloatArray]:
    return [column[~np.isnan(column)] for column in numbers.T]


@dataclass(frozen=True)
class Part:
    """Rows of a table as numbers. ``names`` are None where the table has no column that names its rows."""

    numbers: Any
    names: Any
    X: FloatArray
    D_obs: FloatArray
    observed: BoolArray
    has_labels: BoolArray
    """Which rows have an observed label."""
    votes: FloatArray | None = None
    """How many votes the shares of each row are made of, where cells are counts."""
    doubts: BoolArray | None = None
    """Which zeros may be hidden or true."""

    def mask(self, can_tell: bool, at: Any = slice(None)) -> Any:
        """What is observed in some of the rows, NaN where nobody knows and the method can tell."""
        observed = self.observed[at]
        if self.doubts is None or not can_tell or not self.doubts[at].any():
            return observed
        return np.where(self.doubts[at], np.nan, observed)

    def votes_for(self, model: Recoverer, at: Any = slice(None)) -> dict[str, Any]:
        """The argument ``votes`` of a model that uses them, for some of the rows."""
        return {} if self.votes is None or not model.uses_votes else {"votes": self.votes[at]}

    def blocks(self, size: int) -> Iterator[tuple[slice, "Part"]]:
        """The rows in pieces of at most so many, with where they are."""
        for start in range(0, len(self.X), size):
            at = slice(start, start + size)
            arrays = (getattr(self, field.name) for field in fields(self))
            pieces: list[Any] = [None if array is None else array[at] for array in arrays]
            yield at, Part(*pieces)


@dataclass(frozen=True)
class NumberReader:
    """Turns rows of a table into numbers, and checks their labels on the way."""

    shares: Shares
    encoding: FeatureEncoding
    row_names: str | None
    counts: bool = False
    """Whether label cells are counts."""

    @classmethod
    def of(
        cls,
        rows: pd.DataFrame,
        shares: Shares,
        number_names: tuple[str, ...],
        category_names: tuple[str, ...],
        row_names: str | None,
        counts: bool,
    ) -> tuple["NumberReader", list[str]]:
        """The reader for rows like these, and notes on what it does."""
        encoding = FeatureEncoding.of(rows, number_names, category_names)
        return cls(shares, encoding, row_names, counts), encoding.describe()

    def __call__(self, rows: pd.DataFrame, *, is_whole_table: bool = False) -> Part:
        D_obs, observed = self.shares(rows)
        if is_whole_table:
            self.shares.refuse_unseen()
        names = None if self.row_names is None else rows[self.row_names].fillna("").to_numpy(object)
        has_labels = np.asarray(observed.any(axis=1))
        votes = self.shares.totals(rows) if self.counts else None
        doubts = self.shares.doubts(rows)
        return Part(rows.index.to_numpy(), names, self.encoding(rows), D_obs, observed, has_labels, votes, doubts)
