"""Excel workbooks: one sheet written out as CSV, which is then read like any other."""

import csv
import re
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hidldl.errors import TableError
from hidldl.tables.sources import HARMLESS_BYTES, MOST_EXPANSION, quoted

# A full sheet of 26 columns is about 1 GB of XML; all its different texts are kept in memory, so these have less.
MOST_XML_BYTES = 4 * 2**30
MOST_TEXT_BYTES = 256 * 2**20
MOST_ROWS = 1_048_576
_FORMULA_BYTES = 2**20
# A cell with a formula and no value, which a spreadsheet program has never computed; a computed text may be empty.
# Nothing in it reaches over the next "<" or gives back what it took, so that it takes no longer than the text is long.
_UNCOMPUTED = re.compile(
    rb"<(?:\w++:)?c\s(?![^<>]*\bt=.str.)([^<>]*+)>\s*+<(?:\w++:)?f\b[^<]*+(?:</(?:\w++:)?f>\s*+)?"
    rb"(?:<(?:\w++:)?v\s*+/>|<(?:\w++:)?v>\s*+</(?:\w++:)?v>)?\s*+</(?:\w++:)?c>"
)


class SeveralSheetsError(TableError):
    """More than one sheet has content; ``titles`` are theirs."""

    def __init__(self, message: str, titles: list[str]) -> None:
        super().__init__(message)
        self.titles = titles


def write_sheet(path: Path, name: str, sheet: str | None, target: Path) -> None:
    """Write one sheet's values as CSV; row 1 is the first below its header."""
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise ImportError("Excel files need openpyxl; install it with pip install 'hidldl[excel]'.") from error
    try:
        _refuse_traps(path, name)
        # The file is opened here, since openpyxl leaves that of a damaged workbook open.
        with warnings.catch_warnings(), path.open("rb") as source:
            warnings.simplefilter("ignore")  # about parts of the workbook that hold no cells
            workbook = load_workbook(source, read_only=True, data_only=True, keep_links=False)
            chosen = _choose(workbook.worksheets, name, sheet)
            _refuse_uncomputed(path, name, chosen)
            with target.open("w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows(_rows(chosen, name))
    except TableError:
        raise
    except Exception as error:
        # A damaged workbook breaks openpyxl anywhere: in the archive, in the XML, in its own lookups.
        reason = quoted(error, 80)
        raise TableError(f"{name} is damaged or no .xlsx workbook ({reason}); save it again.") from None


def _refuse_traps(path: Path, name: str) -> None:
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
    unpacked = sum(member.file_size for member in members)
    most = min(MOST_XML_BYTES, max(HARMLESS_BYTES, MOST_EXPANSION * path.stat().st_size))
    texts = max((member.file_size for member in members if "sharedStrings" in member.filename), default=0)
    if unpacked > most or texts > MOST_TEXT_BYTES:
        raise TableError(f"{name} unpacks to {unpacked:,} bytes, as a trap would; save the table as .csv.")


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
        message = f"{name} has several sheets ({titles}); name the one to read with sheet."
        raise SeveralSheetsError(message, [sheet.title for sheet in chosen])
    return chosen[0]


def _filled_rows(sheet: Any, name: str) -> Iterator[tuple[int, list[Any]]]:
    """The rows that are not empty, each with its number, without the empty cells at its end."""
    sheet.reset_dimensions()  # the size that a sheet declares may be any
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
    if n_cells > max(HARMLESS_BYTES, MOST_EXPANSION * n_filled):
        raise TableError(
            f"{name} spreads {n_filled:,} values over {n_cells:,} cells, as a trap would; save it as .csv."
        )


def _rows(sheet: Any, name: str) -> Iterator[list[Any]]:
    rows = _filled_rows(sheet, name)
    first = next(rows, None)
    if first is None:
        raise TableError(f"sheet {quoted(sheet.title)} of {name} is empty.")
    before, header = first
    top, n_filled = before, len(header)
    yield header
    for number, cells in rows:
        if len(cells) > len(header):
            raise TableError(
                f"row {number} of sheet {quoted(sheet.title)} in {name} has {len(cells)} cells, but the header "
                f"{len(header)}; name every column in the first row."
            )
        n_filled += len(cells) - cells.count(None)
        _refuse_sparse((number - top) * len(header), n_filled, name)
        # Empty rows within the table stay, so that row numbers are those that the spreadsheet shows.
        yield from ([None] * len(header) for _ in range(before + 1, number))
        yield cells + [None] * (len(header) - len(cells))
        before = number


def _refuse_uncomputed(path: Path, name: str, sheet: Any) -> None:
    """A formula without a stored value would be read as an empty cell."""
    tail = b""
    with zipfile.ZipFile(path) as archive, archive.open(sheet._worksheet_path) as xml:
        while block := xml.read(_FORMULA_BYTES):
            found = _UNCOMPUTED.search(tail + block)
            if found:
                where = re.search(rb"\br=.([A-Z]+\d+)", found.group(1))
                cell = where.group(1).decode() if where else "a cell"
                raise TableError(f"{cell} of {name} holds a formula without a value; compute and save it in Excel.")
            tail = block[-20_000:]  # longer than any formula
