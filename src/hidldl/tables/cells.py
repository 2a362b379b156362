"""Cells of text: which are missing, which are numbers, and what they stand for."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hidldl.errors import TableError
from hidldl.tables.notation import Notation

# What pandas reads as missing; cells of white space only are missing too.
# fmt: off
READS_EVERY_DIGIT = tuple(map(int, pd.__version__.split(".")[:2])) >= (3, 1)
"""Releases of pandas before 3.1 lose the last of 17 digits unless asked not to; later ones warn of being asked."""
MISSING = frozenset([
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
])
# fmt: on
# What people write for a missing number, in any case; elsewhere than among numbers it is text.
MARK_WORDS = frozenset(
    ["?", "-", "--", "–", "—", ".", "..", "...", "…", "na", "n.a", "n.a.", "missing", "unknown", "hidden"]
)
_LONGEST_MARK = max(map(len, MARK_WORDS))
LONGEST_EXACT = 2.0**53
"""From here on, floats cannot tell neighbouring whole numbers apart."""
_TRUTHS = {"True": "1", "TRUE": "1", "true": "1", "False": "0", "FALSE": "0", "false": "0"}


@dataclass(frozen=True)
class CellFormat:
    """How the cells of a table are read.

    ``words`` mark missing cells wherever they stand. ``notations`` are those of columns, by number, whose numbers are
    not written as elsewhere in the table.
    """

    decimal: str = "."
    words: frozenset[str] = frozenset()
    notations: Mapping[int, Notation] = field(default_factory=dict)

    @cached_property
    def plain(self) -> Notation:
        """The notation of all other columns."""
        return Notation(self.decimal)

    def examine(self, column: "pd.Series[Any]", j: int) -> "Cells":
        """Look at the cells of column number j."""
        return examine(column, self.notations.get(j, self.plain), self.words)

    def look(self, frame: pd.DataFrame) -> "Piece":
        """Look at all cells of a piece of a table, whose columns are numbers or text."""
        is_read = np.array([is_number(dtype) for dtype in frame.dtypes])
        numbers = np.empty(frame.shape, order="F")
        numbers[:, is_read] = frame.loc[:, is_read].to_numpy(float)
        texts = {j: self.examine(frame.iloc[:, j], j) for j in np.flatnonzero(~is_read).tolist()}
        for j, cells in texts.items():
            numbers[:, j] = cells.numbers[cells.codes]
        are_truths = np.array([dtype.kind == "b" for dtype in frame.dtypes])
        return Piece(numbers, is_read, are_truths, is_long(numbers), texts)


USUAL = CellFormat()
CHANGED = "the table has changed while it was read; read it again."


@dataclass(frozen=True)
class Cells:
    """The different cells of a piece of a column, and which one each row holds; the last stands for a missing one.

    Arrays of truth values say which of the different cells something is true of.
    """

    codes: NDArray[np.intp]
    texts: NDArray[np.object_]
    plain: NDArray[np.object_]
    """The texts as Python writes numbers, where they are numbers."""
    numbers: NDArray[np.float64]
    missing: NDArray[np.bool_]
    marks: NDArray[np.bool_]
    """Which would be missing in a column of numbers."""
    words: frozenset[str]
    """Those of the user's words that occur."""
    odd: NDArray[np.bool_]
    """Which are neither missing nor marks nor finite numbers."""
    truths: NDArray[np.bool_]
    """Which are true or false."""
    long: NDArray[np.bool_]
    """Which are numbers so large that a float may have lost digits."""

    def whole_numbers(self) -> NDArray[np.object_]:
        """The different cells of a column of whole numbers with every digit, None where they are missing."""
        whole = [None if np.isnan(number) else int(number) for number in self.numbers]
        for i in np.flatnonzero(self.long):
            whole[i] = every_digit(self.plain[i])
        return np.array(whole, dtype=object)


def examine(column: "pd.Series[Any]", notation: Notation, words: frozenset[str]) -> Cells:
    """Look at each different cell of a column of text once."""
    codes, written = pd.factorize(column)
    # Plain lists: there are often few different cells, and methods of a Series take long for few.
    texts = [str(cell) for cell in written]
    bare = [text.strip() for text in texts]
    missing = np.array([text in MISSING or text in words for text in bare], dtype=bool)
    plain = np.array(_plain_texts(bare, notation), dtype=object)
    numbers = np.where(missing, np.nan, pd.to_numeric(plain, errors="coerce"))
    if not READS_EVERY_DIGIT:
        numbers[np.isfinite(numbers)] = plain[np.isfinite(numbers)].astype(float)
    marks = np.array([len(text) <= _LONGEST_MARK and text.casefold() in MARK_WORDS for text in bare], dtype=bool)
    marks &= ~missing
    return Cells(
        codes=codes,
        texts=np.array([*texts, None], dtype=object),
        plain=np.array([*plain, None], dtype=object),
        numbers=np.append(numbers, np.nan),
        missing=np.append(missing, True),
        marks=np.append(marks, False),
        words=words.intersection(bare),
        odd=np.append(~missing & ~marks & ~np.isfinite(numbers), False),
        truths=np.array([*(text in _TRUTHS for text in bare), False], dtype=bool),
        long=np.append(is_long(numbers), False),
    )


class Piece(NamedTuple):
    """All cells of a piece of a table: numbers, NaN where there is none, and the cells of columns that came as text."""

    numbers: NDArray[np.float64]
    is_read: NDArray[np.bool_]
    """Which columns came as numbers."""
    are_truths: NDArray[np.bool_]
    """Which of these are of true and false."""
    long: NDArray[np.bool_]
    """Which numbers are so large that a float may have lost digits."""
    texts: dict[int, Cells]


def _plain_texts(texts: list[str], notation: Notation) -> list[str]:
    """Texts as Python writes numbers, where they are numbers."""
    if notation == Notation("."):
        return [_TRUTHS.get(text, text) for text in texts]
    if notation == Notation(","):
        return [_TRUTHS.get(text, text.replace(".", " ").replace(",", ".")) for text in texts]
    return [notation.plain(text) for text in texts]


def is_long(numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which numbers are so large that a float may have lost digits."""
    return np.isfinite(numbers) & (np.abs(numbers) >= LONGEST_EXACT)


def every_digit(text: str) -> int:
    """A whole number as Python writes it, also in a form such as 1e20."""
    return int(Decimal(text))


def convert(frame: pd.DataFrame, names: tuple[str, ...], kinds: Sequence[str], cell_format: CellFormat) -> pd.DataFrame:
    """The cells of a piece of a table by the kinds of its columns: numbers as float64, text as str, NaN where missing.

    In a column of the kind "written" only an empty cell is missing, and everything else is as written.
    """
    columns = {}
    for j, kind in enumerate(kinds):
        if kind == "written":
            columns[j] = _as_written(frame[j])
        elif kind != "text" and is_number(frame[j].dtype):
            columns[j] = frame[j].to_numpy(float)
        else:
            cells = cell_format.examine(frame[j], j)
            columns[j] = _as_text(cells, frame.index) if kind == "text" else _as_numbers(cells)
    converted = pd.DataFrame(columns, index=frame.index, copy=False)
    converted.columns = pd.Index(names, dtype=object)
    return converted


def as_values(column: "pd.Series[Any]", dtype: str, cell_format: CellFormat, j: int) -> Any:
    """The cells of a column of text as what they stand for, whole numbers with every digit; text as written."""
    if dtype == "object":
        return _as_written(column)
    if dtype == "datetime64[us]":
        return column.to_numpy(np.dtype("U")).astype(dtype)
    cells = cell_format.examine(column, j)
    if dtype == "float64":
        return _as_numbers(cells)
    _refuse_odd(cells)
    whole: Any = cells.whole_numbers()
    return pd.array(whole, dtype="Int64")[cells.codes].astype(dtype)


def _as_numbers(cells: Cells) -> Any:
    _refuse_odd(cells)
    return cells.numbers[cells.codes]


def _refuse_odd(cells: Cells) -> None:
    if cells.odd.any():
        raise TableError(CHANGED)


def _as_written(column: "pd.Series[Any]") -> Any:
    written = column.astype(object)
    return written.where(written.notna() & (written != ""), np.nan)


def _as_text(cells: Cells, index: Any) -> Any:
    texts = np.where(cells.missing, np.array(np.nan, dtype=object), cells.texts)[cells.codes]
    return pd.Series(texts, index=index, dtype=object)  # explicit, since pandas 3 makes it str where it can


def is_number(dtype: Any) -> bool:
    """Whether pandas has read a column as numbers or as true and false."""
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"
