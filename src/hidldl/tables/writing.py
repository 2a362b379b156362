"""Where results go, and rows in the format that the name of the file says."""

import csv
import gzip
import io
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
import pandas as pd

from hidldl.errors import Remedy, TableError
from hidldl.replacing import refuse_unwritable
from hidldl.reports.page import load_template
from hidldl.tables.folders import is_dataset, refuse_taken, url_of
from hidldl.tables.sources import quoted, split_suffix

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
NEEDED = {".parquet": ("pyarrow", "parquet"), ".xlsx": ("openpyxl", "excel")}
"""The packages that other formats need, and the extras that bring them."""
PIECES_OF_PART = 25
"""Pieces of 20,000 rows in a file of a folder."""
MOST_EXCEL_ROWS = 1_048_575
LONGEST_EXCEL_TEXT = 32_767
LONGEST_EXCEL_NUMBER = 10**15
"""Excel keeps 15 digits of a number, so whole numbers with more are written as texts."""
_EXCEL_TYPES = (int, float, np.integer, np.floating, Decimal, date, time, timedelta)
# A sign alone is a text. Programs in East Asian languages also know the wide forms of these signs.
_FORMULA = re.compile(r"\s*[-=+@＝＋－＠].|[\t\r\n]", re.DOTALL)
_PLAIN_NUMBER = re.compile(r"\s*[-+]?[\d.,]*\d[\d.,]*(?:[eE][-+]?\d+)?\s*%?\s*")


@dataclass
class Targets:
    """Where results go; "-" as output is standard output, and the output may be elsewhere, by a URL."""

    output: Path | None
    report: Path | None = None
    model: Path | None = None
    reannotate: Path | None = None
    bad_rows: Path | None = None
    in_parts: bool = field(default=False, kw_only=True)
    """Whether the table came in several files, so that the output may do so too."""

    named: dict[str, Any] = field(init=False)
    """The paths that are named, by what they are for."""
    url: str | None = field(init=False)
    """Where the output goes, if that is elsewhere."""
    files: dict[str, Path] = field(init=False)
    """All of them that are files, or folders here."""
    folders: list[Path] = field(init=False)
    """The output, if it is a folder of Parquet files: its name has no ending, and that is on purpose."""

    def __post_init__(self) -> None:
        names = ("output", "report", "model", "reannotate", "bad_rows")
        self.named = {name: path for name in names if (path := getattr(self, name)) is not None}
        self.url = None if self.output is None else url_of(self.output)
        is_file = self.url is None and str(self.output) != "-"
        self.files = {name: path for name, path in self.named.items() if name != "output" or is_file}
        output = self.files.get("output")
        in_parts = output is not None and not output.suffix and (self.in_parts or output.is_dir())
        self.folders = [output] if output is not None and in_parts else []

    @property
    def is_text(self) -> bool:
        """Whether the output is a file of text."""
        return self.output is not None and not self.url and not self.folders and _suffixes(self.output)[0] in SEPARATORS

    def check(self, *inputs: Path) -> None:
        """Refuse what cannot be written, before the work and not after it."""
        if self.output is None and not self.files:
            raise TableError("there is nothing to write", Remedy("output"))
        if "-" in map(str, self.files.values()):
            raise TableError("only the table can go to standard output; name files for the rest.")
        if self.url is not None:
            refuse_taken(self.url)
        output = Path("part.parquet") if self.url is not None or self.folders else self.output
        for table in (output, self.reannotate, self.bad_rows):
            if table is not None:
                refuse_unusable_format(table)
        for path, suffixes in ((self.report, (".html", ".htm")), (self.model, (".npz", ".json"))):
            if path is not None and path.suffix not in suffixes:
                raise TableError(f"{path.name} must end in {' or '.join(suffixes)}.")
        files = self.files.values()
        refuse_unwritable(*files, folders=self.folders)
        if str(self.output) == "-" and sys.stdout is None:
            raise TableError("standard output is closed", Remedy("output"))
        places = [path.resolve() for path in (*inputs, *files)]
        for place in files:
            if places.count(place.resolve()) > 1:
                raise TableError(f"{place} is named twice; what is read and what is written need names of their own.")
        if self.report is not None:
            load_template("recovery.html.j2")


class Writer(Protocol):
    """Takes the pieces of a result in turn; all have the same columns."""

    def write(self, frame: pd.DataFrame) -> None: ...

    def close(self) -> None: ...


class TextWriter:
    """CSV and TSV in UTF-8; numbers with all their digits.

    With ``safe``, an apostrophe stands before texts that a spreadsheet program would take as formulas.
    """

    def __init__(self, file: IO[bytes], separator: str, decimal: str = ".", *, safe: bool = False) -> None:
        self.text = io.TextIOWrapper(file, encoding="utf-8", newline="", write_through=True)
        self.separator, self.decimal, self.safe = separator, decimal, safe
        self.begun = False

    def write(self, frame: pd.DataFrame) -> None:
        # One form for all times of a column: pandas leaves out the time of day where a piece has midnights only.
        times = frame.select_dtypes(["datetime", "datetimetz"]).columns
        frame = frame.assign(**{str(name): frame[name].map(str, na_action="ignore") for name in times})
        if self.safe:
            frame = _without_formulas(frame)
        # Some releases of Python do not quote a lone carriage return, which ends a line for every reader.
        texts = [*map(str, frame.columns), *frame.select_dtypes(exclude="number").to_numpy().ravel()]
        has_return = any("\r" in text for text in texts if isinstance(text, str))
        quoting: Any = csv.QUOTE_NONNUMERIC if has_return else csv.QUOTE_MINIMAL
        frame.to_csv(
            self.text,
            sep=self.separator,
            decimal=self.decimal,
            index=False,
            header=not self.begun,
            lineterminator="\n",
            quoting=quoting,
        )
        self.begun = True

    def close(self) -> None:
        self.text.detach()


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    texts = frame.select_dtypes(exclude="number").columns
    return frame.assign(**{str(name): frame[name].map(_harmless) for name in texts}).rename(columns=_harmless)


def _harmless(cell: Any) -> Any:
    """A text with an apostrophe before it where it begins as a formula does; numbers stay as they are."""
    is_formula = isinstance(cell, str) and _FORMULA.match(cell) and not _PLAIN_NUMBER.fullmatch(cell)
    return f"'{cell}" if is_formula else cell


class ParquetWriter:
    """Parquet, one group of rows per piece."""

    def __init__(self, target: Path) -> None:
        self.target = target
        self.file: Any = None

    def write(self, frame: pd.DataFrame) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        dense = {name: kind.subtype for name, kind in frame.dtypes.items() if isinstance(kind, pd.SparseDtype)}
        frame = frame.astype(dense)
        types = {str(name): _stored_as(frame[name]) for name in frame.columns}
        # Objects may be of several types, and a piece may have none at all: as texts, all pieces are alike.
        texts = {name: frame[name].map(str, na_action="ignore") for name, kind in types.items() if kind is None}
        schema = pa.schema([(name, kind or pa.string()) for name, kind in types.items()])
        piece = pa.Table.from_pandas(frame.assign(**texts), schema=schema, preserve_index=False)
        if self.file is None:
            self.file = pq.ParquetWriter(self.target, piece.schema)
        self.file.write_table(piece)

    def close(self) -> None:
        if self.file is not None:
            self.file.close()

    discard = close


def _stored_as(column: "pd.Series[Any]") -> Any:
    """The type that Parquet has for the type of a column, whatever its cells; None where it has none."""
    import pyarrow as pa

    try:
        kind = pa.Array.from_pandas(column.iloc[:0]).type
    except (pa.ArrowException, TypeError):
        return None
    return None if pa.types.is_null(kind) else kind


class FolderWriter:
    """A folder of Parquet files, each of so many pieces."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.n_pieces = folder, 0
        self.part: ParquetWriter | None = None

    def write(self, frame: pd.DataFrame) -> None:
        if self.n_pieces % PIECES_OF_PART == 0:
            self.close()
            self.part = ParquetWriter(self.folder / f"part-{self.n_pieces // PIECES_OF_PART:05d}.parquet")
        assert self.part is not None
        self.part.write(frame)
        self.n_pieces += 1

    def close(self) -> None:
        if self.part is not None:
            self.part.close()

    discard = close


class ExcelWriter:
    """A workbook of one sheet."""

    def __init__(self, target: Path) -> None:
        from openpyxl import Workbook

        self.target, self.book = target, Workbook(write_only=True)
        self.sheet = self.book.create_sheet("recovered")
        self.n_rows = 0

    def write(self, frame: pd.DataFrame) -> None:
        if not self.n_rows:
            self.sheet.append([self._cell(name) for name in frame.columns])
        self.n_rows += len(frame)
        if self.n_rows > MOST_EXCEL_ROWS:
            raise TableError(f"an Excel sheet holds {MOST_EXCEL_ROWS:,} rows; write a .csv or .parquet file.")
        for row in frame.itertuples(index=False):  # openpyxl takes rows one by one
            self.sheet.append([self._cell(value) for value in row])

    def _cell(self, value: Any) -> Any:
        """Text stays text, also where it begins as a formula does; what is missing is empty."""
        if value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and value != value):
            return None
        if isinstance(value, np.bool_):
            return bool(value)  # openpyxl takes those of NumPy for numbers
        has_zone = isinstance(value, datetime | time) and value.tzinfo is not None
        is_long = isinstance(value, int | np.integer) and abs(int(value)) >= LONGEST_EXCEL_NUMBER
        if isinstance(value, _EXCEL_TYPES) and not has_zone and not is_long:
            return value
        value = str(value)
        from openpyxl.cell import WriteOnlyCell
        from openpyxl.utils.exceptions import IllegalCharacterError

        if len(value) > LONGEST_EXCEL_TEXT:
            raise TableError(f"{quoted(value)} is too long for a cell of Excel; write a .csv or .parquet file.")
        try:
            cell = WriteOnlyCell(self.sheet, value)
        except IllegalCharacterError:
            raise TableError(f"{quoted(value)} has characters that Excel cannot hold; write a .csv file.") from None
        cell.data_type = "s"
        return cell

    def close(self) -> None:
        self.book.save(self.target)

    def discard(self) -> None:
        """Something went wrong: let go of what is open."""
        # openpyxl keeps rows in a temporary file of its own until a workbook is saved.
        with suppress(Exception):
            self.sheet.close()
            self.sheet._writer.cleanup()


def refuse_unusable_format(path: Path) -> None:
    """Refuse a file whose format is not written, or needs a package that is not installed."""
    kind, _ = _suffixes(path)
    if kind in NEEDED:
        module, extra = NEEDED[kind]
        try:
            __import__(module)
        except ImportError as error:
            raise ImportError(f"{kind} files need {module}; install it with pip install 'hidldl[{extra}]'.") from error


@contextmanager
def open_writer(
    path: Path, target: Path | None, delimiter: str = ",", decimal: str = ".", *, safe: bool = False
) -> Iterator[Writer]:
    """A writer to the target in the format that the path promises; to standard output if there is no target.

    Text has the delimiter and the decimal mark that are given; .tsv is separated by tabs whatever is given. With
    ``safe``, text holds no formulas; in the other formats texts are never taken as such.
    """
    if target is not None and target.is_dir():
        with _closing(FolderWriter(target)) as parts:
            yield parts
        return
    kind, compression = _suffixes(path)
    separator = delimiter if kind == ".csv" else SEPARATORS.get(kind, ",")
    decimal = "." if separator == decimal else decimal
    if target is None:
        with _to_standard_output(separator, decimal, safe) as to_output:
            yield to_output
        return
    if kind in NEEDED:
        with _closing(ParquetWriter(target) if kind == ".parquet" else ExcelWriter(target)) as writer:
            yield writer
        return
    with target.open("wb") as file:
        # Without the time and the name of the temporary file: the same result is the same bytes.
        packed: Any = gzip.GzipFile("", "wb", 6, file, mtime=0) if compression else file
        with packed:
            text = TextWriter(packed, separator, decimal, safe=safe)
            yield text
            text.close()


@contextmanager
def _closing(writer: Any) -> Iterator[Writer]:
    try:
        yield writer
    except BaseException:
        writer.discard()
        raise
    writer.close()


@contextmanager
def _to_standard_output(separator: str, decimal: str, safe: bool) -> Iterator[Writer]:
    """A writer of CSV; what it was given goes out when all went well, so that nobody is handed half a table."""
    with tempfile.TemporaryFile() as file:
        writer = TextWriter(file, separator, decimal, safe=safe)
        yield writer
        writer.close()
        file.seek(0)
        shutil.copyfileobj(file, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def _suffixes(path: Path) -> tuple[str, str]:
    if str(path) == "-":
        return ".csv", ""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = suffixes.pop() if suffixes[-1:] == [".gz"] else ""
    kind = suffixes[-1] if suffixes else ""
    if kind not in (*SEPARATORS, *NEEDED) or (compression and kind not in SEPARATORS):
        raise TableError(f"{path.name}: hidldl writes .csv, .tsv (also .csv.gz), .parquet and .xlsx files.")
    return kind, compression


def checked_targets(word: str, table: Path, *paths: Path | None, reads: tuple[Path, ...] = ()) -> Targets:
    """Targets that can be written; the output is a file beside the table, with a word in its name, if none is named."""
    if paths[0] is None and str(table) != "-":
        paths = (beside(table, word), *paths[1:])
    output = paths[0]
    # Only a name without an ending leaves open whether it is a folder.
    in_parts = output is not None and not output.suffix and is_dataset(table)
    targets = Targets(*paths, in_parts=in_parts)
    targets.check(table, *reads)
    return targets


def list_beside(table: Path, word: str) -> Path | None:
    """A name for a list of rows beside the table, a file also where the table is a folder; None if it is no path."""
    if str(table) == "-" or url_of(table) is not None:
        return None
    return table.with_name(f"{table.name}.{word}.csv") if table.is_dir() else beside(table, word)


def beside(path: Path, word: str) -> Path:
    """A name for a result beside the input: "mine.recovered.csv" for "mine.csv"."""
    stem, kind, compression = split_suffix(path.name)
    if is_dataset(path):
        return path.with_name(f"{stem}_{word}")
    if kind not in (*SEPARATORS, *NEEDED):
        kind, compression = ".csv", ""
    return path.with_name(f"{stem}.{word}{kind}{compression if compression == '.gz' else ''}")
