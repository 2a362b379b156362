"""Delimited text: records cut from a stream without a loop over rows, each with the right number of fields."""

import codecs
import csv
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from io import BytesIO, StringIO
from itertools import takewhile
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hidldl.errors import TableError
from hidldl.tables.cells import MISSING, READS_EVERY_DIGIT
from hidldl.tables.headers import FOR_MISSING_NAMES, MOST_TITLES, HeaderRows, count_titles, join_names, note_on_titles
from hidldl.tables.sources import Source, UnreadableError, quoted

MOST_COLUMNS = 10_000
# A name is read by people and a cell may hold an article, but not a whole file behind an unclosed quotation mark.
LONGEST_NAME = 10_000
LONGEST_CELL = 1_000_000
LONGEST_ROW = 10_000_000
CHUNK_BYTES = 8 * 2**20
SAMPLE_BYTES = 2**20
SMALL_BYTES = 2**24
_DELIMITERS = ",;\t|"
_LF, _CR, _QUOTE = b'\n\r"'
_EDGE = rb'(?:^|(?<=[;\t|"\r\n]))[ ]*[-+]?'
_ENDS = rb'(?:[ ]|\xc2\xa0|\xe2\x80\xaf)*%?[ ]*(?=[;\t|"\r\n])'  # a percent sign may follow, also after spaces
_COMMA_NUMBER = re.compile(_EDGE + rb"\d*,\d+" + _ENDS)
_POINT_NUMBER = re.compile(_EDGE + rb"\d*\.\d+" + _ENDS)
_THOUSANDS = re.compile(rb"\s*[-+]?\d{1,3}(,\d{3})+\D*")


@dataclass(frozen=True)
class _Records:
    """Whole records: the text, where each ends, how many fields it has, and how long its longest field is."""

    text: bytes
    ends: NDArray[np.intp]
    n_fields: NDArray[np.intp]
    lengths: NDArray[np.intp]
    stray_quote: int | None

    @property
    def starts(self) -> NDArray[np.intp]:
        return np.append(0, self.ends[:-1])

    def fields(self, i: int, delimiter: str) -> list[str]:
        """What a record holds."""
        record = self.text[self.starts[i] : self.ends[i]].decode()
        return next(csv.reader(StringIO(record, newline=""), delimiter=delimiter), None) or [""]

    def blank(self) -> NDArray[np.bool_]:
        """Which records are empty lines, or lines of white space only."""
        if not len(self.ends):
            return np.empty(0, dtype=bool)
        text = np.frombuffer(self.text, dtype=np.uint8)
        first = text[self.starts]
        blank = (self.n_fields == 1) & ((first == _LF) | (first == _CR))
        for i in np.flatnonzero((self.n_fields == 1) & ((first == ord(" ")) | (first == ord("\t")))):
            blank[i] = not self.text[self.starts[i] : self.ends[i]].strip(b" \t\r\n")
        return blank


def _cut(text: bytes, delimiter: str, *, last: bool = False) -> _Records:
    """Cut what is whole from the text; what is between quotation marks is no delimiter and no line end."""
    marks_at = np.frombuffer(text, dtype=np.uint8)
    is_end = marks_at == _LF
    if b"\r" in text:
        lone = marks_at == _CR
        lone[:-1] &= marks_at[1:] != _LF
        lone[-1] &= last  # a line feed may follow in the next block
        is_end |= lone
    marks = np.flatnonzero(is_end | (marks_at == ord(delimiter)))
    stray = None
    if b'"' in text:
        quotes = np.flatnonzero(marks_at == _QUOTE)
        marks = marks[np.searchsorted(quotes, marks) % 2 == 0]
    which = np.flatnonzero(is_end[marks])
    if len(which) and b'"' in text:
        stray = _stray_quote(marks_at, quotes[quotes < marks[which[-1]]], ord(delimiter))
    marks = marks[: which[-1] + 1] if len(which) else marks[:0]
    lengths = np.diff(marks, prepend=-1) - 1
    starts = np.append(0, which[:-1] + 1) if len(which) else which
    longest = np.maximum.reduceat(lengths, starts) if len(which) else lengths
    ends = marks[which] + 1
    return _Records(text[: ends[-1]] if len(ends) else b"", ends, np.diff(which, prepend=-1), longest, stray)


def _stray_quote(text: NDArray[np.uint8], quotes: NDArray[np.intp], delimiter: int) -> int | None:
    """The first quotation mark that neither opens nor closes a field and is not one of a pair within it."""
    around = np.isin(np.arange(256), [delimiter, _LF, _CR, _QUOTE])
    opening, closing = quotes[::2], quotes[1::2]
    stray_opening = opening[~around[text[opening - 1]] & (opening > 0)]
    stray_closing = closing[~around[text[closing + 1]]]
    return min((int(stray[0]) for stray in (stray_opening, stray_closing) if len(stray)), default=None)


class Delimited:
    """A file of delimited text, its columns named in its first record, below titles or where the user says."""

    def __init__(self, source: Source, delimiters: str = _DELIMITERS, rows: HeaderRows | None = None) -> None:
        self.source = source
        self.notes = source.notes
        self.dtypes: dict[int, str] = {}
        """Of columns whose cells a workbook has as texts or as times, whatever they look like here."""
        self._kept: list[tuple[bytes, NDArray[np.intp]]] | None = None
        self._whole: bytes | None = None
        sample = self._sample()
        self.delimiter = max(delimiters, key=lambda mark: _how_well_it_divides(sample, mark, rows))
        self.decimal = _decimal(sample) if self.delimiter != "," else "."
        self.columns, self._start = self._header(sample, rows)

    def frames(self, rows: int, text: Collection[int] = ()) -> Iterator[pd.DataFrame]:
        """Pieces of at most so many rows; columns in `text` as written, the others as pandas reads them."""
        yield from self._parsed(rows, text, range(len(self.columns)))

    def originals(self, rows: int, columns: Sequence[int]) -> Iterator[pd.DataFrame]:
        """Pieces of some columns, as written."""
        yield from self._parsed(rows, columns, columns)

    def _parsed(self, rows: int, text: Collection[int], columns: Sequence[int]) -> Iterator[pd.DataFrame]:
        self.keep()
        missing: Any = {j: sorted(MISSING) for j in columns if j not in text}
        exactly: Any = {} if READS_EVERY_DIGIT else {"float_precision": "round_trip"}
        wanted: Any = None if len(columns) == len(self.columns) else list(columns)
        first = 1
        for data, n_rows in self._pieces(rows):
            if data.startswith(codecs.BOM_UTF8):
                data = codecs.BOM_UTF8 + data  # pandas drops one, which is part of a cell here
            frame = pd.read_csv(
                BytesIO(data),
                sep=self.delimiter,
                decimal=self.decimal,
                header=None,
                names=range(len(self.columns)),
                usecols=wanted,
                index_col=False,
                dtype=dict.fromkeys(text, str),
                na_values=missing,
                keep_default_na=False,
                low_memory=False,
                **exactly,
            )
            if frame.shape != (n_rows, len(columns)):
                raise TableError(f"{self.source.name} is not a clear table near row {first}; save it again as .csv.")
            frame.index = pd.RangeIndex(first, first + n_rows)
            first += n_rows
            yield frame

    def _sample(self) -> bytes:
        """The beginning, for looking at."""
        parts: list[bytes] = []
        trouble = None
        try:
            with closing(self.source.blocks()) as blocks:
                while sum(map(len, parts)) < SAMPLE_BYTES and (block := next(blocks, b"")):
                    parts.append(block)
        except UnreadableError as error:
            trouble = error
        sample = b"".join(parts)
        if trouble is None and len(sample) < SAMPLE_BYTES:
            self._whole = sample
        if trouble is not None and len(sample.splitlines()) < 2:
            raise TableError(f"the header of {self.source.name} {trouble}.")
        if not sample.strip():
            raise TableError(f"{self.source.name} is empty.")
        return sample if sample.endswith((b"\n", b"\r")) else sample + b"\n"

    def _header(self, sample: bytes, rows: HeaderRows | None) -> tuple[tuple[str, ...], int]:
        """The names of the columns, and where the text below them begins."""
        name = self.source.name
        records = _cut(sample, self.delimiter, last=True)
        if records.blank().all():
            raise TableError(f"the header of {name} opens a quotation mark that is not closed; close it.")
        first, last = _place_of_header(records, self.delimiter, rows)
        if last >= len(records.ends) or records.blank()[last]:
            raise TableError(f"row {last + 1} of {name} holds no column names; name the row that does.")
        end = int(records.ends[last])
        if records.stray_quote is not None and records.stray_quote < end:
            raise TableError(_stray_quote_message(name, 0))
        if records.n_fields[last] > MOST_COLUMNS:
            raise TableError(f"{name} has more than {MOST_COLUMNS:,} columns; leave out those not needed.")
        if records.lengths[first : last + 1].max() > LONGEST_NAME:
            raise TableError(f"{name} has a column name of more than {LONGEST_NAME:,} characters; is it a table?")
        above = np.flatnonzero(~records.blank()[:first])
        if rows is None and len(above):
            self.notes.append(note_on_titles(len(above), quoted(records.fields(int(above[0]), self.delimiter)[0])))
        header = [records.fields(i, self.delimiter) for i in range(first, last + 1)]
        return tuple(header[0] if len(header) == 1 else join_names(header)), end

    def _pieces(self, rows: int) -> Iterator[tuple[bytes, int]]:
        """Text of at most so many whole rows, and how many they are."""
        parts: list[bytes] = []
        n_rows = size = 0
        for text, ends in self._rows() if self._kept is None else self._kept:
            i = start = 0
            while i < len(ends):
                taken = min(rows - n_rows, len(ends) - i)
                stop = int(ends[i + taken - 1])
                parts.append(text[start:stop])
                n_rows, size, i, start = n_rows + taken, size + stop - start, i + taken, stop
                if n_rows == rows or size >= CHUNK_BYTES:
                    yield b"".join(parts), n_rows
                    parts, n_rows, size = [], 0, 0
        if n_rows:
            yield b"".join(parts), n_rows

    def keep(self) -> None:
        """Keep the text of a small file: it is read once, however often its rows are asked for."""
        if self._kept is None and self.source.path.stat().st_size <= SMALL_BYTES and not self.source.compression:
            self._kept = list(self._rows())

    def _rows(self) -> Iterator[tuple[bytes, NDArray[np.intp]]]:
        """Checked text below the header, cut after a record, and where its records end."""
        blocks = _without_beginning(self.source.blocks() if self._whole is None else iter([self._whole]), self._start)
        n_seen = 1  # the number of the next row
        rest = b""
        last = False
        while not last:
            try:
                block = next(blocks, b"")
            except UnreadableError as error:
                raise TableError(f"{self._place(n_seen)} {error}.") from None
            last = not block
            text = rest + (block or (b"" if rest.endswith((b"\n", b"\r")) else b"\n"))
            records = _cut(text, self.delimiter, last=last)
            rest = text[len(records.text) :]
            if len(rest) > LONGEST_ROW:
                raise TableError(
                    f"{self._place(n_seen)} is longer than {LONGEST_ROW:,} characters; is a quotation mark not closed?"
                )
            ends = self._checked(records, n_seen)
            if len(ends):
                yield records.text, ends
                n_seen += len(ends)
        if rest:
            raise TableError(f"{self._place(n_seen)} opens a quotation mark that is not closed; close it.")

    def _checked(self, records: _Records, n_seen: int) -> NDArray[np.intp]:
        """Where the records that are not blank end, if all of them are sound."""
        filled = np.flatnonzero(~records.blank())
        ends, n_fields = records.ends[filled], records.n_fields[filled]
        width = len(self.columns)
        if records.stray_quote is not None:
            row = n_seen + int(np.searchsorted(ends, records.stray_quote, side="right"))
            raise TableError(_stray_quote_message(self.source.name, row))
        if (n_fields != width).any():
            at_fault = int((n_fields != width).argmax())
            raise self._ragged(n_seen + at_fault, int(n_fields[at_fault]))
        if (records.lengths[filled] > LONGEST_CELL).any():
            row = n_seen + int((records.lengths[filled] > LONGEST_CELL).argmax())
            raise TableError(f"{self._place(row)} has a cell of more than {LONGEST_CELL:,} characters; shorten it.")
        return ends

    def _ragged(self, row: int, n_fields: int) -> TableError:
        width = len(self.columns)
        problem = f"{self._place(row)} has {_count(n_fields, 'field')}, but the header {_count(width, 'name')}"
        if row == 1 and width == 1:
            return TableError(problem, *FOR_MISSING_NAMES)
        if row == 1 and n_fields == width + 1:
            return TableError(f"{problem}; name every column, also that of the row names.")
        return TableError(f"{problem}; complete it, or put a field that holds {self.delimiter!r} in quotation marks.")

    def _place(self, row: int) -> str:
        return _place(self.source.name, row)


def _place(name: str, row: int) -> str:
    return f"row {row} of {name}" if row else f"the header of {name}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _stray_quote_message(name: str, row: int) -> str:
    return f"{_place(name, row)} has a quotation mark within a field; put the field in quotation marks and double it."


def _without_beginning(blocks: Iterator[bytes], start: int) -> Iterator[bytes]:
    for block in blocks:
        if start < len(block):
            yield block[start:]
        start = max(0, start - len(block))


def _how_well_it_divides(sample: bytes, delimiter: str, rows: HeaderRows | None) -> float:
    """How many more fields than one the header has, times the share of the records below that have as many."""
    records = _cut(sample, delimiter, last=True)
    if records.blank().all() or records.n_fields.max() == 1:
        return 0
    _, last = _place_of_header(records, delimiter, rows)
    n_fields = records.n_fields[last:][~records.blank()[last:]]
    return float((n_fields[0] - 1) * (n_fields == n_fields[0]).mean()) if len(n_fields) else 0


def _place_of_header(records: _Records, delimiter: str, rows: HeaderRows | None) -> tuple[int, int]:
    """The first and the last record of the header."""
    if rows is not None:
        return rows.first - 1, rows.last - 1
    filled = np.flatnonzero(~records.blank())
    n_fields = records.n_fields[filled]
    # A title is short, and what is wide below it is the table.
    shown = takewhile(lambda i: records.lengths[i] <= LONGEST_NAME, filled[: MOST_TITLES + 1].tolist())
    first_rows = [records.fields(i, delimiter) for i in shown]
    has_title = bool(first_rows) and sum(cell.strip() != "" for cell in first_rows[0]) < 2
    n_titles = count_titles(first_rows) if has_title else 0
    if n_titles and (n_fields[n_titles:] == n_fields[n_titles]).mean() <= 0.5:
        n_titles = 0
    return int(filled[n_titles]), int(filled[n_titles])


def _decimal(sample: bytes) -> str:
    """A comma where numbers are written with one and none with a point; 1,234 alone may be thousands."""
    with_comma = _COMMA_NUMBER.finditer(sample)
    is_comma = any(not _THOUSANDS.fullmatch(match.group()) for match in with_comma)
    return "," if is_comma and not _POINT_NUMBER.search(sample) else "."
