"""Features as numbers: gaps filled and marked, categories as indicators. Plain values, which a model file can hold."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from hidldl.arrays import FloatArray
from hidldl.errors import TableError
from hidldl.tables.columns import Column
from hidldl.tables.roles import Roles
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
    def of(cls, rows: pd.DataFrame, roles: Roles) -> "FeatureEncoding":
        """The encoding for these rows."""
        numbers = rows[list(roles.numbers)].to_numpy(float)
        missing = np.isnan(numbers)
        # A column that is empty in these rows, which may be a sample, still has a value to stand for its gaps.
        medians = np.array([np.median(filled) if len(filled) else 0.0 for filled in _filled(numbers)])
        gappy = tuple(name for name, gap in zip(roles.numbers, missing.any(axis=0), strict=True) if gap)
        values = {name: sorted(rows[name].dropna().unique()) for name in roles.categories}
        return cls(roles.numbers, medians, gappy, tuple((name, tuple(found)) for name, found in values.items()))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table that it needs."""
        return (*self.numbers, *(name for name, _ in self.categories))

    @property
    def n_columns(self) -> int:
        """Columns of the matrix that it makes."""
        return len(self.numbers) + len(self.gappy) + sum(len(values) for _, values in self.categories)

    def __call__(self, rows: pd.DataFrame) -> FloatArray:
        """The features of rows of the table, or of another with the same columns."""
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
        said = []
        if self.gappy:
            where = quoted(self.gappy[0]) if len(self.gappy) == 1 else f"{len(self.gappy)} feature columns"
            said.append(f"missing numbers in {where} are filled with the median, and another column marks them")
        if self.categories:
            names = [f"{quoted(name)} ({len(values)})" for name, values in self.categories]
            more = " ..." if len(names) > 12 else ""
            said.append(f"categories, one feature for each of their values: {', '.join(names[:12])}{more}")
        return said


def _filled(numbers: FloatArray) -> list[FloatArray]:
    return [column[~np.isnan(column)] for column in numbers.T]
