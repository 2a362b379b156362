"""Features as numbers: gaps filled and marked, categories as indicators. Plain values, which a model file can hold."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from hidldl.tables.roles import Roles
from hidldl.tables.sources import TableError, quoted
from hidldl.validation import FloatArray


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
        # A column whose gaps are everywhere here, and only here, still has a value to stand for it.
        medians = np.array([np.median(column[~gap]) if not gap.all() else 0.0 for column, gap in _columns(numbers)])
        gappy = tuple(name for name, gap in zip(roles.numbers, missing.any(axis=0), strict=True) if gap)
        values = {name: sorted(set(rows[name].dropna().map(str))) for name in roles.categories}
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
            (rows[name].map(str, na_action="ignore").to_numpy(object)[:, None] == np.array(values, object)).astype(
                float
            )
            for name, values in self.categories
            if values
        ]
        return np.hstack([np.where(missing, self.medians, numbers), marks, *indicators])

    def refuse_missing(self, table: str, columns: dict[str, Any]) -> None:
        """A new table must have the columns that the model was fitted with, of the same kind."""
        for name in self.columns:
            if name not in columns:
                raise TableError(f"{table} has no column {quoted(name)}, which the model needs; add it, even if empty.")
        for name in self.numbers:
            if columns[name].kind == "text":
                where = f" ({quoted(columns[name].odd_value)} in row {columns[name].odd_row})" * bool(
                    columns[name].odd_row
                )
                raise TableError(f"column {quoted(name)} of {table} holds text{where}; the model needs numbers there.")

    def describe(self) -> list[str]:
        """What it does, for people."""
        said = []
        if self.gappy:
            said.append(f"missing numbers in {len(self.gappy)} feature columns are filled with medians and marked")
        if self.categories:
            said.append(f"categories as indicators: {', '.join(quoted(name) for name, _ in self.categories[:12])}")
        return said


def _columns(numbers: FloatArray) -> list[tuple[FloatArray, Any]]:
    return [(numbers[:, j], np.isnan(numbers[:, j])) for j in range(numbers.shape[1])]
