"""Excel workbooks: one sheet written out as CSV, which is then read like any other."""

import csv
import re
import warnings
import zipfile
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import chain, islice
from pathlib import Path
from typing import Any

from hidldl.errors import Remedy, TableError
from hidldl.tables.headers import FOR_MISSING_NAMES, MOST_TITLES, HeaderRows, count_titles, join_names, note_on_titles
from hidldl.tables.sources import HARMLESS_BYTES, MOST_BYTES, MOST_EXPANSION, quoted
from hidldl.tables.workbook_traps import refuse_traps

MOST_ROWS = 1_048_576
MOST_CELLS = 200_000_000
"""Cells of one sheet, with the empty ones between the others: a full sheet has 190 columns at most."""
DTYPES = {str: "object", datetime: "datetime64[us]"}
"""Types of columns that cannot be told from their texts."""
_FORMULA_BYTES = 2**20
# A cell with a formula and no value, which a spreadsheet program has never computed; a computed text may be empty.
# No part of it matches across the next "<" or backtracks, so its time grows with the length of the text only.
_UNCOMPUTED = re.compile(
    rb"<(?:\w++:)?c\s(?![^<>]*\bt=.str.)([^<>]*+)>\s*+<(?:\w++:)?f\b[^<]*+(?:</(?:\w++:)?f>\s*+)?"
    rb"(?:<(?:\w++:)?v\s*+/>|<(?:\w++:)?v>\s*+</(?:\w++:)?v>)?\s*+</(?:\w++:)?c>"
)


class SeveralSheetsError(TableError):
    """More than one sheet has content; ``titles`` are theirs."""

    def __init__(self, problem: str, titles: list[str]) -> None:
        super().__init__(problem, Remedy("sheet"))
        self.titles = titles


def write_sheet(
    path: Path, name: str, sheet: str | None, header: HeaderRows | None, target: Path
) -> tuple[list[str], dict[int, str]]:
    """Write one sheet's values as CSV, its header first.

    Returns notes on what is skipped above it, and the types of columns that hold only texts or only times.
    """
    try:
        from openpyxl.reader.excel import ExcelReader
    except ImportError as error:
        raise ImportError("Excel files need openpyxl; install it with pip install 'hidldl[excel]'.") from error
    try:
        refuse_traps(path, name)
        # The file is opened here, since openpyxl leaves that of a damaged workbook open.
        with warnings.catch_warnings(), path.open("rb") as source:
            warnings.simplefilter("ignore")  # about parts of the workbook that hold no cells
            reader = ExcelReader(source, read_only=True, data_only=True, keep_links=False)
            reader.read_worksheets = _once_each(reader, name)
            reader.read()
            chosen = _choose(reader.wb.worksheets, name, sheet)
            _refuse_uncomputed(path, name, chosen)
            notes: list[str] = []
            kinds: list[set[type]] = []
            rows = _with_kinds(_rows(chosen, name, header, notes), kinds)
            most = min(MOST_BYTES, max(HARMLESS_BYTES, MOST_EXPANSION * path.stat().st_size))
            # With a byte order mark, so that none is taken from the first name.
            with target.open("w", encoding="utf-8-sig", newline="") as file:
                csv.writer(file).writerows(_within(most, rows, name))
            return notes, {j: dtype for j, kind in enumerate(kinds) for only, dtype in DTYPES.items() if kind == {only}}
    except TableError:
        raise
    except Exception as error:
        # A damaged workbook breaks openpyxl anywhere: in the archive, in the XML, in its own lookups. It puts a long
        # sentence before some reasons.
        if isinstance(error.__cause__, TableError):
            raise error.__cause__ from None
        reason = quoted(error.__cause__ or error, 80)
        raise TableError(f"{name} is damaged or no .xlsx workbook ({reason}); save it again.") from None


def _once_each(reader: Any, name: str) -> Callable[[], None]:
    """The reader's way to read sheets, unless one is listed again and again: each time takes as long as the first."""
    read = reader.read_worksheets

    def read_once_each() -> None:
        targets = [relation.target for _, relation in reader.parser.find_sheets()]
        if len(set(targets)) < len(targets):
            raise TableError(f"{name} lists a sheet twice, as a trap would; save the table as .csv.")
        read()

    return read_once_each


def _within(most: int, rows: Iterator[list[Any]], name: str) -> Iterator[list[Any]]:
    """The rows, as long as their texts are not too long together: one that is stored once may stand in many cells."""
    size = 0
    for row in rows:
        size += sum(len(cell) for cell in row if isinstance(cell, str))
        if size > most:
            raise TableError(f"{name} unpacks to more than {most:,} bytes, as a trap would; save the table as .csv.")
        yield row


def _with_kinds(rows: Iterator[list[Any]], kinds: list[set[type]]) -> Iterator[list[Any]]:
    """The rows; below the header, what cells there are in each column."""
    header = next(rows)
    kinds += [set() for _ in header]
    yield header
    for row in rows:
        for kind, cell in zip(kinds, row, strict=True):
            if cell is not None:
                kind.add(type(cell))
        yield row


def _choose(sheets: list[Any], name: str, wanted: str | None) -> Any:
    titles = ", ".join(quoted(sheet.title) for sheet in sheets)
    if wanted is not None:
        chosen = [sheet for sheet in sheets if sheet.title == wanted]
        if not chosen:
            raise TableError(f"{name} has no sheet {quoted(wanted)}; its sheets are {titles or 'none'}.")
    else:
        chosen = [sheet for sheet in sheets if next(_filled_rows(sheet, name), None)]
    if not chosen:
        raise TableError(f"{name} is empty.")
    if len(chosen) > 1:
        raise SeveralSheetsError(f"{name} has several sheets ({titles})", [sheet.title for sheet in chosen])
    return chosen[0]


def _filled_rows(sheet: Any, name: str) -> Iterator[tuple[int, list[Any]]]:
    """The rows that are not empty, each with its number, without the empty cells at its end."""
    sheet.reset_dimensions()  # a sheet may declare any size
    n_cells = n_filled = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), start=1):
        if number > MOST_ROWS:
            raise TableError(f"{name} has more than {MOST_ROWS:,} rows, which no sheet can; save the table as .csv.")
        cells = list(row)
        n_cells, n_filled = n_cells + len(cells), n_filled + len(cells) - cells.count(None)
        _refuse_sparse(n_cells, n_filled, name)
        while cells and cells[-1] in (None, ""):
            cells.pop()
        if cells:
            yield number, cells


def _refuse_sparse(n_cells: int, n_filled: int, name: str) -> None:
    """An empty cell takes no room in a workbook, but a byte in what is written of it."""
    if n_cells > min(MOST_CELLS, max(HARMLESS_BYTES, MOST_EXPANSION * n_filled)):
        raise TableError(
            f"{name} spreads {n_filled:,} values over {n_cells:,} cells, as a trap would; save it as .csv."
        )


def _rows(sheet: Any, name: str, header_rows: HeaderRows | None, notes: list[str]) -> Iterator[list[Any]]:
    rows = _filled_rows(sheet, name)
    first = list(islice(rows, max(MOST_TITLES + 1, header_rows.last if header_rows else 0)))
    before, header = _header(first, f"sheet {quoted(sheet.title)} of {name}", header_rows, notes)
    yield header
    width = n_filled = len(header)
    top = before
    for number, cells in chain((row for row in first if row[0] > top), rows):
        if len(cells) > width:
            raise TableError(
                f"row {number} of sheet {quoted(sheet.title)} in {name} has {len(cells)} cells, but the header {width}",
                *FOR_MISSING_NAMES,
            )
        n_filled += len(cells) - cells.count(None)
        _refuse_sparse((number - top) * width, n_filled, name)
        # Empty rows within the table stay, so that row numbers are those that the spreadsheet shows.
        yield from ([None] * width for _ in range(before + 1, number))
        yield cells + [None] * (width - len(cells))
        before = number


def _header(
    first: list[tuple[int, list[Any]]], place: str, wanted: HeaderRows | None, notes: list[str]
) -> tuple[int, list[Any]]:
    """The number of the row that the header ends in, and the names in it."""
    if not first:
        raise TableError(f"{place} is empty.")
    if wanted is not None:
        rows = {number: _texts(cells) for number, cells in first if wanted.first <= number <= wanted.last}
        if wanted.last not in rows:
            raise TableError(f"row {wanted.last} of {place} holds no column names; name the row that does.")
        return wanted.last, join_names(list(rows.values())) if len(rows) > 1 else rows[wanted.last]
    n_titles = count_titles(_texts(cells) for _, cells in first)
    below = [len(cells) > 1 for _, cells in first[n_titles + 1 :]]
    if sum(below) <= len(below) / 2:
        n_titles = 0
    if n_titles:
        notes.append(note_on_titles(n_titles, quoted(first[0][1][0])))
    number, cells = first[n_titles]
    return number, cells


def _texts(cells: list[Any]) -> list[str]:
    return ["" if cell is None else str(cell) for cell in cells]


def _refuse_uncomputed(path: Path, name: str, sheet: Any) -> None:
    """A formula without a stored value would be read as an empty cell."""
    tail = b""
    with zipfile.ZipFile(path) as archive, archive.open(sheet._worksheet_path) as xml:
        while block := xml.read(_FORMULA_BYTES):
            match = _UNCOMPUTED.search(tail + block)
            if match:
                where = re.search(rb"\br=.([A-Z]+\d+)", match.group(1))
                cell = where.group(1).decode() if where else "a cell"
                raise TableError(f"{cell} of {name} holds a formula without a value; compute and save it in Excel.")
            tail = block[-20_000:]  # longer than any formula
