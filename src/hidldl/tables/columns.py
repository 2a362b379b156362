"""What the columns of a table hold: the summary of each whole column."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hidldl.tables.cells import USUAL, CellFormat, Cells, convert, every_digit
from hidldl.tables.notation import Notation, PossibleNotations, are_number_like, is_number_like

MOST_DISTINCT = 1000
MOSTLY = 0.8
FIRST_ROWS = 1000
"""Rows that are kept to be looked at."""
_MAYBE_THOUSANDS = re.compile(r"\d[.,]\d{3}(?!\d)")


@dataclass(frozen=True)
class Column:
    """What a whole column holds.

    Attributes
    ----------
    name : str
        Its name; "" for a first column without one, which names the rows.
    kind : {"number", "text", "empty"}
        "number" where every cell that is not missing is a finite number, or true or false (1 and 0). Dates are text.
    n_missing : int
        Cells that are empty, white space, one of the words in `MISSING` or one that the user gives; in a column of
        numbers also the words in `MARK_WORDS`.
    n_distinct : int
        Different cells, at most `MOST_DISTINCT`. Two ways of writing one number count once.
    n_zero : int
        Cells that hold the number 0.
    minimum, maximum : float
        Of the numbers; NaN unless the kind is "number".
    whole, boolean : bool
        Whether the kind is "number" and all are whole, or true or false.
    odd_row, odd_value : int and str, optional
        In a text column that is mostly numbers, or numbers that can be read in two ways ("1,234") or are infinite: the
        first cell that is no number however one reads it, or else the first that cannot be read for certain.
    words : tuple of str
        The words of `MARK_WORDS` and of the user that stand for missing cells here.
    notation : Notation, optional
        How the numbers are written, where it is not as elsewhere in the table.
    example : str, optional
        One of them as it is written.
    """

    name: str
    kind: Literal["number", "text", "empty"]
    n_missing: int
    n_distinct: int
    n_zero: int
    minimum: float
    maximum: float
    whole: bool
    boolean: bool = False
    odd_row: int | None = None
    odd_value: str | None = None
    words: tuple[str, ...] = ()
    notation: Notation | None = None
    example: str | None = None

    @property
    def dtype(self) -> str:
        """What holds its cells in pandas without loss; "object" for text."""
        if self.kind != "number":
            return "object"
        if self.boolean:
            return "boolean" if self.n_missing else "bool"
        if self.whole and self.minimum >= -(2.0**63) and self.maximum < 2.0**63:
            return "Int64" if self.n_missing else "int64"
        return "float64"


class Reader(Protocol):
    """What reads the pieces of a table: columns in ``text`` as written, the others as pandas reads them."""

    columns: tuple[str, ...]
    decimal: str
    notes: list[str]

    def frames(self, rows: int, text: Collection[int] = ()) -> Iterator[pd.DataFrame]: ...

    def originals(self, rows: int, columns: Sequence[int]) -> Iterator[pd.DataFrame]:
        """Pieces of some columns as they came: texts from a file of text, elsewhere values with their types."""
        ...


@dataclass(frozen=True)
class Contents:
    """What a whole table holds; ``first_rows`` are some to look at, and ``notes`` say what reading assumed."""

    columns: list[Column]
    n_rows: int
    first_rows: pd.DataFrame
    cell_format: CellFormat
    whole_numbers: frozenset[str]
    """The columns of whole numbers."""
    notes: tuple[str, ...] = ()


def summarise(reader: Reader, cell_format: CellFormat) -> Contents:
    """Read and check every cell of a table."""
    tally, first = _counted(reader, cell_format)
    # Columns whose numbers are not plain, or too long for floats, are read again as text; what they are is known then.
    while (notations := tally.notations()) != cell_format.notations:
        cell_format = replace(cell_format, notations=notations)
        tally, first = _counted(reader, cell_format)
    columns = tally.columns()
    if tally.n_rows:
        raw, first = first, convert(first, reader.columns, [column.kind for column in columns], cell_format)
        for j in [j for j, column in enumerate(columns) if column.whole and tally.has_long[j]]:
            cells = cell_format.examine(raw[j], j)
            first[columns[j].name] = cells.whole_numbers()[cells.codes]
    whole_numbers = frozenset(column.name for column in columns if column.whole)
    return Contents(columns, tally.n_rows, first, cell_format, whole_numbers)


def _counted(reader: Reader, cell_format: CellFormat) -> tuple["Tally", pd.DataFrame]:
    tally, first = Tally(reader.columns, cell_format), pd.DataFrame()
    for frame in reader.frames(50_000, cell_format.notations):
        if not tally.n_rows:
            first = frame.head(FIRST_ROWS)
        tally.add(frame)
    return tally, first


class Tally:
    """Counts what columns hold, one piece of the table after the other."""

    def __init__(self, names: tuple[str, ...], cell_format: CellFormat = USUAL) -> None:
        width = len(names)
        self.names = names
        self.cell_format = cell_format
        self.n_rows = 0
        self._n_missing, self._n_zero, self._n_number, self._n_mark, self._n_like, self._n_truth = np.zeros(
            (6, width), dtype=np.int64
        )
        self.has_long = np.zeros(width, dtype=bool)
        """Which columns hold numbers that floats may confuse."""
        self._minimum, self._maximum = np.full((2, width), np.nan)
        self._whole = np.ones(width, dtype=bool)
        self._odd: dict[int, tuple[int, str]] = {}
        self._strange: dict[int, tuple[int, str]] = {}
        self._words: dict[int, frozenset[str]] = {}
        self._marks: dict[int, frozenset[str]] = {}
        self._candidates: dict[int, PossibleNotations | None] = {}
        self._examples: dict[int, str] = {}
        self._distinct: dict[int, tuple[NDArray[np.float64], NDArray[np.uint64]]] = {
            j: (np.empty(0), np.empty(0, dtype=np.uint64)) for j in range(width)
        }

    def add(self, frame: pd.DataFrame) -> None:
        """Count the next piece, whose columns are numbers or text and whose index is the row numbers."""
        self.n_rows += len(frame)
        piece = self.cell_format.look(frame)
        values, readable = piece.numbers, piece.is_read
        self._n_missing[readable] += np.isnan(values[:, readable]).sum(axis=0)
        self._n_truth += len(frame) * piece.are_truths
        for j, cells in piece.texts.items():
            self._add_texts(j, cells, frame.index)
        long = piece.long
        self.has_long |= long.any(axis=0)
        for j in list(self._distinct):
            # Long numbers in text were counted by their digits.
            self._add_distinct(j, numbers=values[:, j] if readable[j] else values[~long[:, j], j])
        for j in np.flatnonzero(np.isinf(values).any(axis=0)).tolist():
            infinite = np.isinf(values[:, j])
            if readable[j]:
                self._n_like[j] += infinite.sum()
                self._odd.setdefault(j, (int(frame.index[infinite][0]), str(values[infinite, j][0])))
            values[infinite, j] = np.nan
        self._n_number += np.isfinite(values).sum(axis=0)
        self._n_zero += (values == 0).sum(axis=0)
        self._minimum = np.fmin(self._minimum, np.fmin.reduce(values, axis=0))
        self._maximum = np.fmax(self._maximum, np.fmax.reduce(values, axis=0))
        self._whole &= ((values == np.rint(values)) | np.isnan(values)).all(axis=0)

    def _add_texts(self, j: int, cells: Cells, rows: "pd.Index[int]") -> None:
        self._n_missing[j] += cells.missing[cells.codes].sum()
        self._n_mark[j] += cells.marks[cells.codes].sum()
        self._n_truth[j] += cells.truths[cells.codes].sum()
        self._words[j] = self._words.get(j, frozenset()) | cells.words
        self._marks[j] = self._marks.get(j, frozenset()) | {text.strip() for text in cells.texts[cells.marks]}
        like = self._like_numbers(cells)
        self._note_first(self._odd, j, cells, cells.odd, rows)
        self._note_first(self._strange, j, cells, cells.odd & ~like, rows)
        odd_texts = cells.texts[cells.odd & ~np.isinf(cells.numbers)]
        self._n_like[j] += like[cells.codes].sum()
        self._add_distinct(j, texts=odd_texts)
        self._add_distinct(j, texts=[str(every_digit(text)) for text in cells.plain[cells.long]])
        self._add_notations(j, cells)

    @staticmethod
    def _note_first(
        firsts: dict[int, tuple[int, str]], j: int, cells: Cells, which: NDArray[np.bool_], rows: "pd.Index[int]"
    ) -> None:
        """Note the first row that holds one of these cells, unless one is known."""
        here = which[cells.codes]
        if j not in firsts and here.any():
            first = int(here.argmax())
            firsts[j] = int(rows[first]), str(cells.texts[cells.codes[first]])

    @staticmethod
    def _like_numbers(cells: Cells) -> NDArray[np.bool_]:
        """Which of the different cells a notation could make a number, or are infinite."""
        like = np.isinf(cells.numbers)
        odd = np.flatnonzero(cells.odd & ~like)
        if len(odd):
            like[odd] = are_number_like(cells.texts[odd].tolist())
        return like

    def _add_notations(self, j: int, cells: Cells) -> None:
        """Look for how numbers are written: in pieces that pandas has read as numbers it is not known any more."""
        is_known = j in self.cell_format.notations
        texts = cells.texts[~cells.missing & ~cells.marks if is_known else cells.odd]
        if j not in self._candidates:
            self._candidates[j] = PossibleNotations() if is_known or self._n_like[j] else None
        candidates = self._candidates[j]
        if candidates:
            candidates.add([text.strip() for text in texts])
        if is_known and j not in self._examples:
            example = next((text for text in texts if not self.cell_format.plain.fits(text.strip())), None)
            if example is not None:
                self._examples[j] = example.strip()

    def notations(self) -> dict[int, Notation]:
        """How the columns should be read instead: those in question only, to be read as text for certainty."""
        notations = {}
        for j, candidates in self._candidates.items():
            if candidates is None:
                continue
            if j in self.cell_format.notations:
                notations[j] = candidates.only(self.cell_format.decimal) or self.cell_format.plain
            elif j in self._odd and (likely := candidates.only(self.cell_format.decimal) or candidates.first()):
                notations[j] = likely
        # Floats would take whole numbers for the same that differ in their last digits.
        return dict.fromkeys(np.flatnonzero(self.has_long).tolist(), self.cell_format.plain) | notations

    def _add_distinct(self, j: int, numbers: Any = (), texts: Any = ()) -> None:
        if j not in self._distinct:
            return
        seen_numbers, seen_texts = self._distinct[j]
        if len(numbers):
            numbers = np.asarray(numbers)
            seen_numbers = np.union1d(seen_numbers, numbers[~np.isnan(numbers)])
        if len(texts):
            # Hashes, since a thousand long texts in each of many columns would fill the memory.
            seen_texts = np.union1d(seen_texts, pd.util.hash_array(np.asarray(texts, dtype=object)))
        if len(seen_numbers) + len(seen_texts) >= MOST_DISTINCT:
            del self._distinct[j]
        else:
            self._distinct[j] = seen_numbers, seen_texts

    def columns(self) -> list[Column]:
        """The summary of every column."""
        return [self._column(j) for j in range(len(self.names))]

    def _column(self, j: int) -> Column:
        n_filled = self.n_rows - int(self._n_missing[j])
        n_number, n_mark = int(self._n_number[j]), int(self._n_mark[j])
        is_number = n_number > 0 and n_number + n_mark == n_filled
        kind: Literal["number", "text", "empty"] = "empty" if not n_filled else "number" if is_number else "text"
        is_odd = kind == "text" and j in self._odd and n_number + self._n_like[j] >= MOSTLY * (n_filled - n_mark)
        odd_row, odd_value = self._strange.get(j, self._odd[j]) if is_odd else (None, None)
        marks = self._marks.get(j, frozenset())
        n_distinct = sum(map(len, self._distinct[j])) if j in self._distinct else MOST_DISTINCT
        notation = self.cell_format.notations.get(j) if is_number and j in self._examples else None
        return Column(
            name=self.names[j],
            kind=kind,
            n_missing=int(self._n_missing[j]) + n_mark * is_number,
            n_distinct=n_distinct if is_number else min(n_distinct + len(marks), MOST_DISTINCT),
            n_zero=int(self._n_zero[j]),
            minimum=float(self._minimum[j]) if kind == "number" else np.nan,
            maximum=float(self._maximum[j]) if kind == "number" else np.nan,
            whole=kind == "number" and bool(self._whole[j]),
            boolean=kind == "number" and int(self._n_truth[j]) == n_number,
            odd_row=odd_row,
            odd_value=odd_value,
            words=tuple(sorted(self._words.get(j, frozenset()) | (marks if is_number else frozenset()))),
            notation=None if notation == self.cell_format.plain else notation,
            example=self._examples.get(j) if is_number else None,
        )


def why_not_a_number(value: str) -> str:
    """What is wrong with a cell that should be a number, and the remedy: the end of "column x holds y in row z, "."""
    bare = value.strip()
    if bare.endswith("%") and is_number_like(bare) and not _MAYBE_THOUSANDS.search(bare):
        return "which is a percentage beside other numbers; write 0.45 for 45%"
    if np.isinf(pd.to_numeric(bare, errors="coerce")):
        return "which is not finite; correct it"
    if is_number_like(bare):
        return "which can be read in two ways; write a point before decimals and nothing between thousands"
    return "which is not a number; correct it"
