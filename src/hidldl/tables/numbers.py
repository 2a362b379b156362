"""Rows of a table as numbers: shares and features without gaps."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from hidldl.arrays import BoolArray, FloatArray
from hidldl.base import Recoverer
from hidldl.errors import TableError
from hidldl.tables.columns import Column
from hidldl.tables.labels import Shares
from hidldl.tables.sources import quoted


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

    def notes_on_new(self, columns: Mapping[str, Column], first_rows: pd.DataFrame) -> list[str]:
        """A note for each category column whose first rows in another table hold a value that is not known."""
        notes = []
        for name, values in self.categories:
            cells = first_rows[name].dropna()
            unknown = cells[~cells.isin(values)]
            if columns[name].kind == "text" and len(unknown):
                cell = f"{quoted(unknown.iloc[0])} in row {unknown.index[0]}"
                notes.append(f"column {quoted(name)} holds {cell}, which the model does not know: it says nothing")
        return notes

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

    def arguments_for(self, model: Recoverer, at: Any = slice(None), *, new: bool = False) -> dict[str, Any]:
        """The arguments of ``fit``, or of ``predict`` where rows are new to the model, for some of the rows.

        What is observed is NaN where nobody knows and the method can tell; votes are for methods that use them.
        """
        arguments: dict[str, Any] = {"X": self.X[at], "D_obs": self.D_obs[at], "observed": self.observed[at]}
        can_tell = model.can_tell_new_zeros if new else model.can_tell_zeros
        if can_tell and self.doubts is not None and self.doubts[at].any():
            arguments["observed"] = np.where(self.doubts[at], np.nan, arguments["observed"])
        return arguments | ({} if self.votes is None or not model.uses_votes else {"votes": self.votes[at]})


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
    ) -> tuple["NumberReader", Part, list[str]]:
        """The reader for rows like these, these rows, which show every label, and notes on what it does."""
        encoding = FeatureEncoding.of(rows, number_names, category_names)
        reader = cls(shares, encoding, row_names, counts)
        return reader, reader(rows, is_whole_table=True), encoding.describe()

    def __call__(self, rows: pd.DataFrame, *, is_whole_table: bool = False) -> Part:
        cells = self.shares.read(rows, is_whole_table=is_whole_table)
        return Part(
            numbers=rows.index.to_numpy(),
            names=None if self.row_names is None else rows[self.row_names].fillna("").to_numpy(object),
            X=self.encoding(rows),
            D_obs=cells.shares,
            observed=cells.observed,
            has_labels=np.asarray(cells.observed.any(axis=1)),
            votes=cells.totals if self.counts else None,
            doubts=cells.doubts,
        )
