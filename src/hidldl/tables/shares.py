"""Label cells as shares: what marks a hidden label, and whether cells are shares, percentages or counts."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from hidldl.arrays import BoolArray, FloatArray, IntArray
from hidldl.errors import TableError
from hidldl.tables.columns import Column
from hidldl.tables.sources import quoted

MARKS = ("auto", "empty", "zero", "none")
ROUNDING = 0.02
"""How far rounding may take the sum of a row of shares from 1; all rows are divided by their sums in the end."""


@dataclass(frozen=True)
class Marks:
    """What marks a hidden label: empty cells, zeros or numbers; an empty cell is never anything else."""

    zeros: bool = False
    numbers: tuple[float, ...] = ()

    @classmethod
    def parse(cls, told: str, table: str, labels: Sequence[Column]) -> tuple["Marks", str]:
        """From what the user said, or from what the columns hold, with a sentence about it."""
        has_gaps = any(column.n_missing for column in labels)
        if told == "auto":
            zeros = not has_gaps and any(column.n_zero for column in labels)
            return cls(zeros=zeros), _said_of_auto(has_gaps, zeros)
        parts = [part.strip() for part in told.split(",")]
        if "none" in parts and has_gaps:
            gap = next(column.name for column in labels if column.n_missing)
            raise TableError(
                f"{table} has empty cells in label column {quoted(gap)}, which are hidden labels; fill them or leave "
                "out --hidden none."
            )
        numbers = [part for part in parts if part not in MARKS]
        try:
            marks = cls("zero" in parts, tuple(float(part) for part in numbers))
        except ValueError:
            raise TableError(f"--hidden {quoted(told)} is none of {', '.join(MARKS)} and no number.") from None
        return marks, f"hidden labels are marked by: {told}"

    def __call__(self, cells: FloatArray) -> BoolArray:
        """True where a label is observed."""
        hidden = np.isnan(cells)
        for value in (*((0.0,) if self.zeros else ()), *self.numbers):
            hidden |= cells == value
        return ~hidden


def _said_of_auto(has_gaps: bool, zeros: bool) -> str:
    if has_gaps:
        return "empty label cells are hidden labels, zeros are true zeros (--hidden empty,zero if they are not)"
    if zeros:
        return "no label cell is empty, so zeros are taken as hidden labels (--hidden none if they are true zeros)"
    return "no label is hidden"


@dataclass
class Shares:
    """The shares in the label columns of a table, checked chunk by chunk."""

    table: str
    labels: tuple[str, ...]
    marks: Marks
    normalise: bool
    seen: BoolArray = field(init=False)

    def __post_init__(self) -> None:
        self.seen = np.zeros(len(self.labels), dtype=bool)

    def __call__(self, rows: pd.DataFrame) -> tuple[FloatArray, BoolArray]:
        """Shares (0 where hidden) that sum to 1, or to 0 in rows without any label, and which are observed."""
        # A table to predict may lack label columns: they are hidden.
        cells = rows.reindex(columns=list(self.labels)).to_numpy(float)
        observed = self.marks(cells)
        given = np.where(observed, cells, 0)
        numbers = rows.index.to_numpy()
        self._refuse(given < 0, numbers, given, "is negative; shares and counts are 0 or more")
        sums = given.sum(axis=1)
        labelled = np.asarray(observed.any(axis=1))
        empty_handed = labelled & (sums <= 0)
        if empty_handed.any():
            row = numbers[int(empty_handed.argmax())]
            raise TableError(
                f"row {row} of {self.table} has labels but none above 0; give it one, or empty its label cells."
            )
        if not self.normalise:
            self._refuse_other_sums(sums, labelled, numbers)
        self.seen |= observed.any(axis=0)
        return np.divide(given, sums[:, None], out=np.zeros_like(given), where=sums[:, None] > 0), observed

    def refuse_unseen(self) -> None:
        """After all rows: a label that is nowhere observed cannot be recovered."""
        if not self.seen.all():
            label = self.labels[int((~self.seen).argmax())]
            raise TableError(
                f"label column {quoted(label)} of {self.table} is hidden in every row, so nothing says how much of it "
                "there is; leave it out of --labels, or use --hidden none if its zeros are true ones."
            )

    def _refuse(self, at_fault: BoolArray, numbers: IntArray, cells: FloatArray, what: str) -> None:
        if at_fault.any():
            i, j = np.unravel_index(int(at_fault.argmax()), at_fault.shape)
            value, label = cells[i, j], quoted(self.labels[j])
            raise TableError(f"{value:g} in row {numbers[i]}, label column {label} of {self.table} {what}.")

    def _refuse_other_sums(self, sums: FloatArray, labelled: BoolArray, numbers: IntArray) -> None:
        wrong = labelled & (np.abs(sums - 1) > ROUNDING)
        if wrong.any():
            i = int(wrong.argmax())
            raise TableError(
                f"the labels of row {numbers[i]} of {self.table} sum to {sums[i]:.6g}, not to 1; correct it, or use "
                "--normalise if its cells are counts or amounts."
            )


def are_amounts(labels: Sequence[Column], first_rows: pd.DataFrame, marks: Marks) -> tuple[bool, str | None]:
    """Whether rows are to be divided by their sums, and a sentence about it: whole numbers are counts."""
    cells = first_rows[[column.name for column in labels]].to_numpy(float)
    sums = np.where(marks(cells), cells, 0).sum(axis=1)
    sums = sums[sums > 0]
    if not len(sums) or (np.abs(sums - 1) <= ROUNDING).mean() > 0.5:
        return False, None
    if (np.abs(sums - 100) <= 100 * ROUNDING).mean() > 0.98:
        return True, "labels are percentages and are divided by 100"
    if all(column.whole for column in labels):
        return True, "labels are whole numbers: taken as counts, each row divided by its sum"
    return False, None
