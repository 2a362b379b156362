"""What marks a hidden label in a table."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hidldl.arrays import BoolArray, FloatArray
from hidldl.errors import Note, Remedy, TableError
from hidldl.tables.columns import MISSING, Column
from hidldl.tables.sources import quoted, quoted_list

MARKS = ("auto", "empty", "zero", "unknown", "none")


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
    def words_in(given: str) -> tuple[str, ...]:
        """The words in what the user says: for reading, before anything is known about the columns.

        Examples
        --------
        >>> from hidldl.tables.numbers import Marks
        >>> Marks.words_in("empty,?,-9")
        ('?',)
        """
        words = (part for part in _parts(given) if part not in MARKS and part not in MISSING)
        return tuple(word for word in words if _number(word) is None)

    @staticmethod
    def numbers_in(given: str) -> tuple[float, ...]:
        """The numbers in what the user says."""
        return tuple(number for part in _parts(given) if (number := _number(part)) is not None)

    @classmethod
    def parse(cls, given: str, table: str, labels: Sequence[Column], can_tell: bool = False) -> tuple["Marks", str]:
        """From what the user said, or from what the columns hold, with a sentence about it.

        ``can_tell`` if the method tells hidden zeros from true ones.
        """
        has_gaps = any(column.n_missing for column in labels)
        if given == "auto":
            zeros = not has_gaps and any(column.n_zero for column in labels)
            return cls(zeros=zeros, unknown=zeros and can_tell), _note_on_auto(
                has_gaps, zeros, can_tell, _words(labels)
            )
        parts = _parts(given)
        if "none" in parts and has_gaps:
            gap = next(column.name for column in labels if column.n_missing)
            raise TableError(
                f"{table} has empty cells in label column {quoted(gap)}, which are hidden labels; fill them, or do not "
                "say that none is hidden."
            )
        if "unknown" in parts and not can_tell:
            raise TableError("this method cannot tell which zeros are hidden", Remedy("bayes"))
        words = cls.words_in(given)
        present = {word.casefold() for word in _words(labels)}
        absent = [word for word in words if word.casefold() not in present]
        if absent:
            raise TableError(
                f"the mark {quoted(absent[0])} must be auto, empty, zero, unknown, none or a number, or a word that "
                f"stands in label columns of {table} beside numbers."
            )
        is_unknown = "unknown" in parts
        note = "nobody knows which zeros are hidden, so each is weighed" if is_unknown else ""
        marked = ",".join(part for part in parts if part != "unknown") if is_unknown else given
        note = "; ".join(part for part in (f"hidden labels are marked by: {marked}" if marked else "", note) if part)
        return cls("zero" in parts or is_unknown, cls.numbers_in(given), words, is_unknown), note

    def __call__(self, cells: FloatArray) -> BoolArray:
        """True where a label is observed."""
        hidden = np.isnan(cells)
        for value in (*((0.0,) if self.zeros else ()), *self.numbers):
            hidden |= cells == value
        return ~hidden

    def doubts(self, cells: FloatArray) -> BoolArray:
        """True where a zero may be hidden or true."""
        return (cells == 0) & self.unknown


def _parts(given: str) -> list[str]:
    return [part.strip() for part in given.split(",")]


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
