"""What the columns of a table hold: which cells are missing, which are numbers, and the summary of a whole column."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hidldl.errors import TableError

# What pandas reads as missing; cells of white space only are missing too. A single "-" is text.
# fmt: off
MISSING = frozenset([
    "", "#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "-NaN", "-nan", "1.#IND", "1.#QNAN",
    "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null",
])
# fmt: on
MOST_DISTINCT = 1000
MOSTLY = 0.8
_TRUTHS = {"True": "1", "TRUE": "1", "true": "1", "False": "0", "FALSE": "0", "false": "0"}
# Numbers in a writing that is not read, since it can be read in two ways: 45%, 1,234.5, 1 234, 0,45.
_NUMBER_LIKE = re.compile(r"[-+]?(?:\d+(?:\.\d+)?\s?%|\d+,\d+\s?%?|\d{1,3}(?:[,' \u00a0\u202f]\d{3})+(?:\.\d+)?)")


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
        Cells that are empty, white space, or one of the words in `MISSING`.
    n_distinct : int
        Different cells, at most `MOST_DISTINCT`. Two ways of writing one number count once.
    n_zero : int
        Cells that hold the number 0.
    minimum, maximum : float
        Of the numbers; NaN unless the kind is "number".
    whole : bool
        Whether the kind is "number" and all are whole.
    odd_row, odd_value : int and str, optional
        In a text column that is mostly numbers, or numbers in a writing that is not read ("45%", "1,234", "inf"): the
        first cell that is not a number.
    """

    name: str
    kind: Literal["number", "text", "empty"]
    n_missing: int
    n_distinct: int
    n_zero: int
    minimum: float
    maximum: float
    whole: bool
    odd_row: int | None = None
    odd_value: str | None = None


@dataclass(frozen=True)
class Cells:
    """The different cells of a piece of a column, and which one each row holds; the last stands for a missing one."""

    codes: NDArray[np.intp]
    texts: NDArray[np.object_]
    numbers: NDArray[np.float64]
    missing: NDArray[np.bool_]
    number_like: NDArray[np.bool_]

    @property
    def odd(self) -> NDArray[np.bool_]:
        """Which of the different cells are neither missing nor finite numbers."""
        return ~self.missing & ~np.isfinite(self.numbers)


def examine(column: "pd.Series[Any]", decimal: str = ".") -> Cells:
    """Look at each different cell of a column of text once."""
    codes, written = pd.factorize(column)
    # Plain lists: there are often few different cells, and methods of a Series take long for few.
    texts = [str(cell) for cell in written]
    bare = [text.strip() for text in texts]
    figures = [_TRUTHS.get(text, text) for text in bare]
    if decimal == ",":
        figures = [text.replace(".", " ").replace(",", ".") for text in figures]
    missing = np.array([text in MISSING for text in bare], dtype=bool)
    numbers = np.where(missing, np.nan, pd.to_numeric(np.array(figures, dtype=object), errors="coerce"))
    number_like = np.isinf(numbers)
    for i in np.flatnonzero(np.isnan(numbers) & ~missing):
        number_like[i] = _NUMBER_LIKE.fullmatch(bare[i]) is not None
    return Cells(
        codes=codes,
        texts=np.array([*texts, None], dtype=object),
        numbers=np.append(numbers, np.nan),
        missing=np.append(missing, True),
        number_like=np.append(number_like, False),
    )


def summarise(frames: Iterable[pd.DataFrame], names: tuple[str, ...], decimal: str = ".") -> tuple[list["Column"], int]:
    """What each column of a table holds, and how many rows there are."""
    tally = Tally(names)
    for frame in frames:
        tally.add(frame, decimal)
    return tally.columns(), tally.n_rows


class Tally:
    """Counts what columns hold, one piece of the table after the other."""

    def __init__(self, names: tuple[str, ...]) -> None:
        width = len(names)
        self.names = names
        self.n_rows = 0
        self._n_missing, self._n_zero, self._n_number, self._n_like = np.zeros((4, width), dtype=np.int64)
        self._minimum, self._maximum = np.full((2, width), np.nan)
        self._whole = np.ones(width, dtype=bool)
        self._odd: dict[int, tuple[int, str]] = {}
        self._distinct: dict[int, tuple[NDArray[np.float64], NDArray[np.uint64]]] = {
            j: (np.empty(0), np.empty(0, dtype=np.uint64)) for j in range(width)
        }

    def add(self, frame: pd.DataFrame, decimal: str = ".") -> None:
        """Count the next piece, whose columns are numbers or text and whose index is the row numbers."""
        self.n_rows += len(frame)
        readable = np.array([is_number(dtype) for dtype in frame.dtypes])
        values = np.empty(frame.shape, order="F")
        values[:, readable] = frame.loc[:, readable].to_numpy(float)
        self._n_missing[readable] += np.isnan(values[:, readable]).sum(axis=0)
        for j in np.flatnonzero(~readable).tolist():
            cells = examine(frame.iloc[:, j], decimal)
            values[:, j] = cells.numbers[cells.codes]
            self._n_missing[j] += cells.missing[cells.codes].sum()
            self._n_like[j] += cells.number_like[cells.codes].sum()
            self._add_odd(j, cells, frame.index)
            self._add_distinct(j, texts=cells.texts[:-1][(cells.odd & ~np.isinf(cells.numbers))[:-1]])
        for j in list(self._distinct):
            self._add_distinct(j, numbers=values[:, j])
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

    def _add_odd(self, j: int, cells: Cells, rows: "pd.Index[int]") -> None:
        odd = cells.odd[cells.codes]
        if j not in self._odd and odd.any():
            first = int(odd.argmax())
            self._odd[j] = int(rows[first]), str(cells.texts[cells.codes[first]])

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
        n_number = int(self._n_number[j])
        kind: Literal["number", "text", "empty"] = (
            "empty" if not n_filled else "number" if n_number == n_filled else "text"
        )
        is_odd = kind == "text" and n_number + self._n_like[j] >= MOSTLY * n_filled
        odd_row, odd_value = self._odd[j] if is_odd else (None, None)
        return Column(
            name=self.names[j],
            kind=kind,
            n_missing=int(self._n_missing[j]),
            n_distinct=sum(map(len, self._distinct[j])) if j in self._distinct else MOST_DISTINCT,
            n_zero=int(self._n_zero[j]),
            minimum=float(self._minimum[j]) if kind == "number" else np.nan,
            maximum=float(self._maximum[j]) if kind == "number" else np.nan,
            whole=kind == "number" and bool(self._whole[j]),
            odd_row=odd_row,
            odd_value=odd_value,
        )


def convert(frame: pd.DataFrame, names: tuple[str, ...], kinds: Sequence[str], decimal: str) -> pd.DataFrame:
    """The cells of a piece of a table by the kinds of its columns: numbers as float64, text as str, NaN where missing.

    In a column of the kind "written" only an empty cell is missing, and everything else is as written.
    """
    readers = {"written": _as_written, "text": _as_text}
    columns = {}
    for j, kind in enumerate(kinds):
        columns[j] = readers[kind](frame[j]) if kind in readers else _as_numbers(frame[j], decimal)
    converted = pd.DataFrame(columns, index=frame.index, copy=False)
    converted.columns = pd.Index(names, dtype=object)
    return converted


def _as_numbers(column: "pd.Series[Any]", decimal: str) -> Any:
    if is_number(column.dtype):
        return column.to_numpy(float)
    cells = examine(column, decimal)
    if cells.odd.any():
        raise TableError("the table has changed while it was read; read it again.")
    return cells.numbers[cells.codes]


def _as_written(column: "pd.Series[Any]") -> Any:
    written = column.astype(object)
    return written.where(written.notna() & (written != ""), np.nan)


def _as_text(column: "pd.Series[Any]") -> Any:
    cells = examine(column)
    texts = np.where(cells.missing, np.array(np.nan, dtype=object), cells.texts)[cells.codes]
    return pd.Series(texts, index=column.index, dtype=object)  # explicit, since pandas 3 makes it str where it can


def is_number(dtype: Any) -> bool:
    """Whether pandas has read a column as numbers or as true and false."""
    return isinstance(dtype, np.dtype) and dtype.kind in "biuf"


def why_not_a_number(value: str) -> str:
    """What is wrong with a cell that should be a number, and the remedy: the end of "column x holds y in row z, "."""
    bare = value.strip()
    if bare.endswith("%"):
        return "which is a percentage; write 0.45 for 45%"
    if np.isinf(pd.to_numeric(bare, errors="coerce")):
        return "which is not finite; correct it"
    if _NUMBER_LIKE.fullmatch(bare):
        return "which can be read in two ways; write a point before decimals and nothing between thousands"
    return "which is not a number; correct it"
