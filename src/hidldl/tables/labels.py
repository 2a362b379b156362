"""Label cells: what marks a hidden one, whether they are shares, percentages or counts, and the shares, checked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hidldl.arrays import BoolArray, FloatArray
from hidldl.errors import Note, Remedy, TableError
from hidldl.tables.cells import MISSING
from hidldl.tables.columns import Column
from hidldl.tables.sources import quoted, quoted_list

MARKS = ("auto", "empty", "zero", "unknown", "none")
MOST_DECIMALS = 6
"""Numbers with more decimals are as good as exact."""
SHARES, PERCENT = 1.0, 100.0
MOST_ROWS = 0.5
"""If more rows than this sum to the whole, all rows must."""
MOST_ROWS_OF_COUNTS = 0.9
"""As above for whole numbers, which may as well be counts that happen to sum to about 100."""


@dataclass(frozen=True)
class Marks:
    """What marks a hidden label: empty cells, zeros, numbers or words; an empty cell is never anything else.

    Words are taken as empty cells when a table is read (`hidldl.tables.reading.Table.read_as_missing`), since a column
    with other words is no column of numbers.
    """

    zeros: bool = False
    numbers: tuple[float, ...] = ()
    words: tuple[str, ...] = ()
    unknown: bool = False
    """Whether zeros may be true ones as well."""

    @staticmethod
    def words_in(text: str) -> tuple[str, ...]:
        """The words in what the user says.

        Examples
        --------
        >>> from hidldl.tables.labels import Marks
        >>> Marks.words_in("empty,?,-9")
        ('?',)
        """
        words = (part for part in _parts(text) if part not in MARKS and part not in MISSING)
        return tuple(word for word in words if _number(word) is None)

    @staticmethod
    def numbers_in(text: str) -> tuple[float, ...]:
        """The numbers in what the user says."""
        return tuple(number for part in _parts(text) if (number := _number(part)) is not None)

    @classmethod
    def named_in(cls, text: str) -> "Marks":
        """The words and numbers in what the user says, before anything is known about the columns."""
        return cls(numbers=cls.numbers_in(text), words=cls.words_in(text))

    @classmethod
    def parse(cls, text: str, table: str, labels: Sequence[Column], can_tell: bool = False) -> tuple["Marks", str]:
        """From what the user said, or from what the columns hold, with a sentence about it.

        ``can_tell`` if the method tells hidden zeros from true ones.
        """
        has_gaps = any(column.n_missing for column in labels)
        if text == "auto":
            zeros = not has_gaps and any(column.n_zero for column in labels)
            return cls(zeros=zeros, unknown=zeros and can_tell), _note_on_auto(
                has_gaps, zeros, can_tell, _words(labels)
            )
        parts = _parts(text)
        if "none" in parts and has_gaps:
            gap = next(column.name for column in labels if column.n_missing)
            raise TableError(
                f"{table} has empty cells in label column {quoted(gap)}, which are hidden labels; fill them, or do not "
                "say that none is hidden."
            )
        if "unknown" in parts and not can_tell:
            raise TableError("this method cannot tell which zeros are hidden", Remedy("bayes"))
        words = cls.words_in(text)
        present = {word.casefold() for word in _words(labels)}
        absent = [word for word in words if word.casefold() not in present]
        if absent:
            raise TableError(
                f"the mark {quoted(absent[0])} must be auto, empty, zero, unknown, none or a number, or a word that "
                f"stands in label columns of {table} beside numbers."
            )
        is_unknown = "unknown" in parts
        note = "nobody knows which zeros are hidden, so each is weighed" if is_unknown else ""
        marked = ",".join(part for part in parts if part != "unknown") if is_unknown else text
        note = "; ".join(part for part in (f"hidden labels are marked by: {marked}" if marked else "", note) if part)
        return cls("zero" in parts or is_unknown, cls.numbers_in(text), words, is_unknown), note

    def __call__(self, cells: FloatArray) -> BoolArray:
        """True where a label is observed."""
        hidden = np.isnan(cells)
        for value in (*((0.0,) if self.zeros else ()), *self.numbers):
            hidden |= cells == value
        return ~hidden

    def doubts(self, cells: FloatArray) -> BoolArray:
        """True where a zero may be hidden or true."""
        return (cells == 0) & self.unknown


def _parts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _number(part: str) -> float | None:
    try:
        number = float(part)
    except ValueError:
        return None
    return number if np.isfinite(number) else None


def _words(labels: Sequence[Column]) -> list[str]:
    """The words that stand for empty cells."""
    return sorted({word for column in labels for word in column.words})


def _note_on_auto(has_gaps: bool, zeros: bool, can_tell: bool, words: Sequence[str]) -> str:
    if has_gaps:
        which = f"empty label cells and those with {quoted_list(words, 3)}" if words else "empty label cells"
        return Note(f"{which} are hidden labels, zeros are true zeros", Remedy("hidden=empty,zero", "if they are not"))
    if zeros and can_tell:
        remedies = Remedy("hidden=none", "if all are true zeros"), Remedy("hidden=zero", "if all are hidden")
        return Note("no label cell is empty, so nobody knows which zeros are hidden, and each is weighed", *remedies)
    if zeros:
        true_zeros = Remedy("hidden=none", "if they are true zeros")
        return Note("no label cell is empty, so zeros are taken as hidden labels", true_zeros)
    return "no label is hidden"


def understand_labels(
    hidden: str, normalise: bool, table: str, labels: Sequence[Column], first_rows: pd.DataFrame, can_tell: bool = False
) -> tuple[Marks, float | None, list[str]]:
    """What marks a hidden label, what rows sum to (None if each has a sum of its own), and notes on both."""
    marks, note = Marks.parse(hidden, table, labels, can_tell)
    if normalise:
        return marks, None, [note, "rows are divided by their sums"]
    total, note_on_total = total_of_rows(labels, first_rows, marks)
    return marks, total, [note, *([note_on_total] if note_on_total else [])]


def are_percentages(cells: FloatArray, marks: Marks) -> bool:
    """Whether the label cells of some rows are percentages: most rows sum to 100."""
    amounts = np.where(marks(cells), cells, 0)
    sums, decimals = amounts.sum(axis=1), count_decimals(amounts)
    sums = sums[sums > 0]
    most = MOST_ROWS if decimals else MOST_ROWS_OF_COUNTS
    return bool(len(sums)) and bool(_sums_to(PERCENT, sums, decimals, cells.shape[1]).mean() > most)


def total_of_rows(labels: Sequence[Column], first_rows: pd.DataFrame, marks: Marks) -> tuple[float | None, str | None]:
    """What rows sum to, None if each has a sum of its own, and a sentence about it: whole numbers are counts."""
    cells = first_rows[[column.name for column in labels]].to_numpy(float)
    amounts = np.where(marks(cells), cells, 0)
    decimals = count_decimals(amounts)
    sums = amounts.sum(axis=1)
    sums = sums[sums > 0]
    if not len(sums) or _sums_to(SHARES, sums, decimals or MOST_DECIMALS, len(labels)).mean() > MOST_ROWS:
        return SHARES, _note_on_rounding(sums, decimals, len(labels))
    if are_percentages(cells, marks):
        return PERCENT, "labels are percentages and are divided by 100"
    if all(column.whole for column in labels):
        return None, "labels are whole numbers: taken as counts, each row divided by its sum"
    return SHARES, None


def _note_on_rounding(sums: FloatArray, decimals: int, n_labels: int) -> str | None:
    sums = sums[_sums_to(SHARES, sums, decimals or MOST_DECIMALS, n_labels)]
    if not len(sums) or np.abs(sums - 1).max() < tolerance(MOST_DECIMALS, 1):
        return None
    low, high = sums.min(), sums.max()
    return f"rows sum to {low:.6g} to {high:.6g} by rounding to {decimals} decimals, and are divided by their sums"


def tolerance(decimals: int, n_labels: int) -> float:
    """How far rounding may take the sum of a row from the whole: half a unit of the last decimal for each label.

    Examples
    --------
    >>> from hidldl.tables.labels import tolerance
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


class LabelCells(NamedTuple):
    """What the label cells of some rows say."""

    shares: FloatArray
    """0 where hidden; each row sums to 1, or to 0 without any label."""
    observed: BoolArray
    totals: FloatArray
    """The sum of each row's cells."""
    doubts: BoolArray | None
    """Which zeros may be hidden or true; None if nobody doubts them."""


class Faults(NamedTuple):
    """Rows whose labels cannot be right."""

    reasons: "pd.Series[str]"
    """What is wrong, by the number of the row."""
    are_of_sums: BoolArray
    """Whether it is the sum of the row, which is right if its cells are amounts."""


@dataclass
class Shares:
    """The shares in the label columns of a table, checked chunk by chunk."""

    table: str
    labels: tuple[str, ...]
    marks: Marks
    total: float | None
    """What the cells of a row sum to; None if they are amounts with a sum of their own."""
    seen: BoolArray | bool = False
    """Which labels have been observed so far."""
    decimals: int = 0
    """The most decimals so far: how far rounding may take sums."""
    guessed: bool = False
    """Whether nobody named the labels."""
    can_skip: bool = True
    """Whether rows at fault can be left out."""

    def __call__(self, rows: pd.DataFrame) -> tuple[FloatArray, BoolArray]:
        """Shares (0 where hidden) that sum to 1, or to 0 in rows without any label, and which are observed."""
        return self.read(rows)[:2]

    def read(self, rows: pd.DataFrame, *, is_whole_table: bool = False) -> LabelCells:
        """All that label cells say; of a whole table, every label must be observed somewhere."""
        amounts, observed = self._cells(rows)
        faults = self._faults(amounts, observed, rows.index)
        if len(faults.reasons):
            row, reason = faults.reasons.index[0], faults.reasons.iloc[0]
            is_of_sum = bool(faults.are_of_sums[0])
            absent = [label for label in self.labels if is_of_sum and label not in rows]
            if absent:
                reason += f" (the table has no column for the label{'s' * (len(absent) > 1)} {quoted_list(absent)})"
            remedies = self._remedies(is_of_sum)
            raise TableError(f"row {row} of {self.table}: {reason}{'' if remedies else '.'}", *remedies)
        self.seen = self.seen | np.asarray(observed.any(axis=0))
        if is_whole_table:
            self.refuse_unseen()
        sums = amounts.sum(axis=1, keepdims=True)
        shares = np.divide(amounts, sums, out=np.zeros_like(amounts), where=sums > 0)
        return LabelCells(shares, observed, sums[:, 0], self._doubts(rows))

    def _doubts(self, rows: pd.DataFrame) -> BoolArray | None:
        if not self.marks.unknown:
            return None
        return self.marks.doubts(rows.reindex(columns=list(self.labels)).to_numpy(float))

    def _remedies(self, is_of_sum: bool) -> list[Remedy]:
        """What helps. Cells may be amounts if the user named the labels; if not, the guess of labels may be wrong."""
        skip = [Remedy("skip")] if self.can_skip else []
        if not is_of_sum:
            return skip
        amounts = Remedy("normalise", "if its cells are counts or amounts")
        return [Remedy("labels", "if the guess is wrong") if self.guessed else amounts, *skip]

    def faults(self, rows: pd.DataFrame) -> "pd.Series[str]":
        """What is wrong with the labels of rows, by the number of the row; rows without a fault are not in it."""
        return self._faults(*self._cells(rows), rows.index).reasons

    def _cells(self, rows: pd.DataFrame) -> tuple[FloatArray, BoolArray]:
        # A table to predict may lack label columns: they are hidden.
        cells = rows.reindex(columns=list(self.labels)).to_numpy(float)
        observed = self.marks(cells)
        return np.where(observed, cells, 0), observed

    def _faults(self, amounts: FloatArray, observed: BoolArray, index: Any) -> Faults:
        sums, labelled = amounts.sum(axis=1), np.asarray(observed.any(axis=1))
        faults = pd.Series("", index=index, dtype=object)
        wrong = np.zeros(len(faults), dtype=bool)
        if self.total is not None:
            self.decimals = count_decimals(amounts, self.decimals)
            # Whole numbers are percentages that were rounded, but no shares that were: those sum to exactly 1.
            decimals = self.decimals or (MOST_DECIMALS if self.total == SHARES else 0)
            wrong = labelled & ~_sums_to(self.total, sums, decimals, len(self.labels))
            words = f"its labels sum to {{:.6g}}, not to {self.total:g}; correct it"
            faults[wrong] = pd.Series(sums[wrong]).map(words.format).to_numpy()
        empty = labelled & (sums <= 0)
        faults[empty] = "it has labels but none above 0; give it one, or empty its label cells"
        negative = np.asarray((amounts < 0).any(axis=1))
        where = (amounts[negative] < 0).argmax(axis=1)
        reasons = [
            f"{value:g} in label column {quoted(self.labels[j])} is negative; shares and counts are 0 or more"
            for value, j in zip(amounts[negative, where], where, strict=True)
        ]
        faults[negative] = np.array(reasons, dtype=object)
        at_fault = (faults != "").to_numpy()
        return Faults(faults[at_fault], (wrong & ~empty & ~negative)[at_fault])

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
