"""Reading a user's table: CSV and its kin, Parquet and Excel, from a file or standard input, in chunks.

Which cells are missing: empty ones, white space, and the words that pandas takes as missing (NA, N/A, NaN, null, None
and the like, see `hidldl.tables.cells.MISSING`), words that the user gives, and among numbers what people write for a
missing one ("?", "-", "unknown"; see `hidldl.tables.cells.MARK_WORDS`). Per cent signs, decimal commas and signs
between thousands are understood where a whole column can be read in one way only; `Column.odd_value` shows what cannot.
Blank lines do not count; lines above the column names are skipped. `Table.notes` says what was assumed.
"""

import shutil
import stat
import sys
import tempfile
import weakref
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import pandas as pd

from hidldl.errors import TableError
from hidldl.tables.cells import CellFormat, as_values, convert
from hidldl.tables.columns import Column, Contents, Reader, summarise
from hidldl.tables.delimited import Delimited
from hidldl.tables.folders import ParquetFolder, is_dataset
from hidldl.tables.headers import FOR_MISSING_NAMES, HeaderRows, parse_header_rows
from hidldl.tables.in_memory import InMemory
from hidldl.tables.parquet import Parquet
from hidldl.tables.sources import (
    BLOCK_BYTES,
    MOST_BYTES,
    Source,
    identify,
    quoted,
    quoted_list,
)
from hidldl.tables.workbook import write_sheet

LONGEST_NAME = 200
R = TypeVar("R", bound=Reader)


class Table:
    """A table that can be read again and again; made by `open_table`.

    Attributes
    ----------
    name : str
        The file's name, for messages.
    columns : tuple of str
        The names of the columns; "" for a first column without one, which names the rows.
    index : Index or None
        The index of the DataFrame that the table was, if it is its first column here.
    """

    def __init__(self, name: str, reader: Reader, temporary: Path | None = None, missing: Collection[str] = ()) -> None:
        self.name = name
        self._reader = reader
        self._format = CellFormat(reader.decimal, frozenset(missing))
        self._remove = weakref.finalize(self, shutil.rmtree, temporary, ignore_errors=True) if temporary else None
        self._contents: Contents | None = None
        self.index: pd.Index[Any] | None = None
        self.columns = reader.columns
        self.in_parts = isinstance(reader, ParquetFolder)
        self.decimal, self.delimiter = reader.decimal, getattr(reader, "delimiter", ",")

    def __enter__(self) -> "Table":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove what was written to the disk for reading; the table cannot be read afterwards."""
        if self._remove is not None:
            self._remove()

    @property
    def n_rows(self) -> int:
        """How many rows there are below the header."""
        return self.contents().n_rows

    @property
    def first_rows(self) -> pd.DataFrame:
        """Some rows to look at, as `chunks` gives them."""
        return self.contents().first_rows

    @property
    def whole_numbers(self) -> frozenset[str]:
        """The columns of whole numbers."""
        return self.contents().whole_numbers

    @property
    def notes(self) -> list[str]:
        """What reading assumed: encoding, rows above the header, words for missing cells, how numbers are written."""
        return list(self.contents().notes)

    def read_as_missing(self, words: Collection[str]) -> None:
        """Take cells that hold one of these words as missing, in addition to those that are so anyway."""
        if not self._format.words.issuperset(words):
            self._format = CellFormat(self._reader.decimal, self._format.words.union(words))
            self._contents = None

    def scan(self) -> list[Column]:
        """Read and check every cell, and say what each column holds."""
        return self.contents().columns

    def contents(self, missing: Collection[str] = ()) -> Contents:
        """All that is known of the table when every cell is read; ``missing`` as for `read_as_missing`."""
        self.read_as_missing(missing)
        if self._contents is None:
            contents = summarise(self._reader, self._format)
            if not contents.n_rows:
                raise TableError(f"{self.name} has no rows; add some below the column names.")
            columns = contents.columns
            notes = (*self._reader.notes, *_notes_on_words(columns), *_notes_on_notations(columns))
            self._format, self._contents = contents.cell_format, replace(contents, notes=notes)
        return self._contents

    def chunks(self, rows: int = 50_000, as_text: Collection[str] = ()) -> Iterator[pd.DataFrame]:
        """The table in pieces of at most so many rows (fewer where rows are long), from the beginning.

        Parameters
        ----------
        rows : int
            The most rows in a piece.
        as_text : names
            Columns that come as str exactly as written, whatever they hold.

        Yields
        ------
        DataFrame
            Columns of numbers as float64, of text as str; NaN where a cell is missing. In columns of ``as_text``
            only an empty cell is missing, and words such as "NA" are as written. The index is the row number: the
            first row below the header is 1.
        """
        if rows < 1:
            raise ValueError(f"rows must be at least 1; got {rows}.")
        absent = [name for name in as_text if name not in self.columns]
        if absent:
            raise TableError(f"{self.name} has no column {quoted(absent[0])}; it cannot be read as text.")
        kinds = ["written" if column.name in as_text else column.kind for column in self.scan()]
        text = {j for j, kind in enumerate(kinds) if kind in ("written", "text")} | self._format.notations.keys()
        for frame in self._reader.frames(rows, text):
            yield convert(frame, self.columns, kinds, self._format)

    def originals(
        self, names: Sequence[str], rows: int = 50_000, *, as_text: bool = False, texts: Collection[str] = ()
    ) -> Iterator[pd.DataFrame]:
        """Some columns as they came, in pieces as `chunks` gives them.

        Columns of Parquet files and of a DataFrame have the types that they have there.

        Parameters
        ----------
        names : sequence of str
            The columns.
        rows : int
            The most rows in a piece.
        as_text : bool
            Whether the cells of a text file come as the text that stands there. Otherwise whole numbers come as
            integers with every digit, other numbers as float64, true and false as such, and text as str.
        texts : names
            Columns of text files that are text, whatever they look like.
        """
        numbers = [self.columns.index(name) for name in names]
        dtypes = [] if as_text else self._dtypes_of_text(texts)
        try:
            for frame in self._reader.originals(rows, numbers):
                if dtypes:
                    columns = {j: as_values(frame[j], dtypes[j], self._format, j) for j in numbers}
                    frame = pd.DataFrame(columns, index=frame.index)
                elif isinstance(self._reader, Parquet | ParquetFolder):
                    frame = frame.astype(self._types_without_gaps(frame, self._reader.nullable))
                yield frame[numbers].set_axis(list(names), axis=1)
        except FileNotFoundError:
            raise TableError(f"{self.name} is no longer there; it holds the columns to keep.") from None

    def _types_without_gaps(self, frame: pd.DataFrame, nullable: Collection[int]) -> dict[Any, Any]:
        """The plain types of columns of Parquet that have no gaps in any piece, unless the file says otherwise."""
        columns = self.scan()
        types: dict[Any, Any] = {j: getattr(dtype, "numpy_dtype", None) for j, dtype in frame.dtypes.items()}
        return {j: dtype for j, dtype in types.items() if dtype and not columns[j].n_missing and j not in nullable}

    def _dtypes_of_text(self, texts: Collection[str]) -> list[str]:
        """What the columns of a text file hold; nothing for other tables, whose columns have types."""
        if not isinstance(self._reader, Delimited):
            return []
        known = self._reader.dtypes
        return [
            "object" if column.name in texts else known.get(j, column.dtype) for j, column in enumerate(self.scan())
        ]

    def read(self, as_text: Collection[str] = ()) -> pd.DataFrame:
        """The whole table at once, as `chunks` gives it."""
        return pd.concat(list(self.chunks(as_text=as_text)))


def _notes_on_words(columns: Sequence[Column]) -> list[str]:
    words = sorted({word for column in columns for word in column.words})
    return [
        f"{quoted(word)} in {_listed([column.name for column in columns if word in column.words])} is read as missing"
        for word in words
    ]


def _notes_on_notations(columns: Sequence[Column]) -> list[str]:
    notes = []
    for notation in dict.fromkeys(column.notation for column in columns if column.notation is not None):
        alike = [column for column in columns if column.notation == notation]
        example = str(alike[0].example)
        notes.append(
            f"{quoted(example)} in {_listed([column.name for column in alike])} is read as {notation.plain(example)}"
        )
    return notes


def _listed(names: Sequence[str]) -> str:
    return ("column " if len(names) == 1 else "columns ") + quoted_list(names, 3)


def table_of(frame: pd.DataFrame, name: str = "the table", missing: Collection[str] = ()) -> Table:
    """A DataFrame as a table; an index with a name is its first column."""
    _refuse_levels(frame, name)
    index = frame.index if frame.index.name is not None or not isinstance(frame.index, pd.RangeIndex) else None
    if index is not None:
        frame = frame.reset_index(names=str(index.name or ""))
    table = Table(name, _named(InMemory(frame), name), missing=missing)
    table.index = index
    return table


def _refuse_levels(frame: pd.DataFrame, name: str) -> None:
    """Rows and columns need one name each, not one on each of several levels."""
    if isinstance(frame.index, pd.MultiIndex):
        raise TableError(f"the rows of {name} have names on {frame.index.nlevels} levels; call reset_index() first.")
    if isinstance(frame.columns, pd.MultiIndex):
        raise TableError(
            f"the columns of {name} have names on {frame.columns.nlevels} levels; join them first, as by "
            "frame.columns = frame.columns.map(' '.join)."
        )


def open_table(
    path: Path | str,
    *,
    kind: str | None = None,
    sheet: str | None = None,
    name: str | None = None,
    missing: Collection[str] = (),
    header_row: int | str | None = None,
) -> Table:
    """Open a table of any format, whatever its size.

    Parameters
    ----------
    path : path
        A ``.csv``, ``.tsv`` or ``.txt`` file, which may be compressed (``.csv.gz``, also .bz2, .xz and .zst), a
        ``.parquet`` or an ``.xlsx`` file, or a folder of ``.parquet`` files, here or at a URL that fsspec knows; "-" is
        standard input. The encoding of text and its delimiter (comma, semicolon, tab or bar) are found out. Parquet
        needs ``pip install 'hidldl[parquet]'``, Excel ``'hidldl[excel]'``.
    kind : str, optional
        What the file is, where its name does not say so: "csv", "csv.gz", "xlsx", ...
    sheet : str, optional
        The sheet of a workbook; needed where more than one has content.
    name : str, optional
        What messages call the table; the file's name by default.
    missing : collection of str
        Words that stand for missing cells, in addition to those that are understood anyway.
    header_row : int or str, optional
        The row of the column names, 3 for the third of the file; a range such as "2-3" where the names stand in several
        rows, as with merged cells, which are joined ("Emotion joy"). By default the first row below titles.

    Returns
    -------
    Table
        What is wrong with it is a `TableError` of one line, here or in `Table.scan`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from hidldl.tables.reading import open_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "faces.csv"
    ...     _ = path.write_text("face;joy;fear\\n007;0,7;0,3\\n008;1;\\n")
    ...     with open_table(path) as table:
    ...         frame = table.read(as_text=["face"])
    ...         [(column.name, column.kind, column.n_missing) for column in table.scan()]
    [('face', 'number', 0), ('joy', 'number', 0), ('fear', 'number', 1)]
    >>> frame
      face  joy  fear
    1  007  0.7   0.3
    2  008  1.0   NaN
    """
    is_standard_input = str(path) == "-"
    path = Path(path)
    name = printable(name or ("standard input" if is_standard_input else path.name or str(path)))
    try:
        if is_dataset(path):
            return Table(name, _named(ParquetFolder(path, name), name), missing=missing)
        is_stream = is_standard_input or stat.S_ISFIFO(path.stat().st_mode)
        promise = kind or (None if is_stream else path.name)
        rows = None if header_row is None else parse_header_rows(header_row)
        with _folder(needed=is_stream or str(promise).lower().endswith("xlsx")) as folder:
            if is_stream and folder is not None:
                path = _spooled(None if is_standard_input else path, folder / "input", name)
            return Table(name, _reader(path, name, promise, sheet, rows, folder), folder, missing)
    except FileNotFoundError:
        raise TableError(f"there is no file {printable(str(path))}.") from None
    except OSError as error:
        raise TableError(f"{name} cannot be read: {error.strerror or error}.") from None


def printable(name: str) -> str:
    """A file's name for messages: on one line, without control characters, cut where it is long."""
    return repr(name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…")[1:-1]


@contextmanager
def _folder(*, needed: bool) -> Iterator[Path | None]:
    """A folder for what must be on the disk to be read twice; it is left to the table unless opening fails."""
    folder = Path(tempfile.mkdtemp(prefix="hidldl-")) if needed else None
    try:
        yield folder
    except BaseException:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def _spooled(pipe: Path | None, target: Path, name: str) -> Path:
    if pipe is None and sys.stdin is None:
        raise TableError("standard input is closed; name a file.")
    with nullcontext(sys.stdin.buffer) if pipe is None else pipe.open("rb") as stream, target.open("wb") as file:
        while block := stream.read(BLOCK_BYTES):
            file.write(block)
            if file.tell() > MOST_BYTES:
                raise TableError(f"{name} has more than {MOST_BYTES:,} bytes; save it to a file and read that.")
    return target


def _reader(
    path: Path, name: str, promise: str | None, sheet: str | None, rows: HeaderRows | None, folder: Path | None
) -> Reader:
    if not path.is_file():
        raise TableError(f"{name} is not a file; name the file that holds the table.")
    kind, compression = identify(path, name, promise)
    if sheet is not None and kind != ".xlsx":
        raise TableError(f"{name} has no sheets; leave out the sheet.")
    if kind == ".parquet":
        if rows is not None:
            raise TableError(f"{name} keeps its column names apart from its rows; leave out the row of the header.")
        return _named(Parquet(path, name), name)
    if kind == ".xlsx" and folder is not None:
        notes, dtypes = write_sheet(path, name, sheet, rows, folder / "sheet.csv")
        reader = _named(Delimited(Source(folder / "sheet.csv", name), ",", HeaderRows(1, 1)), name)
        reader.notes += notes
        reader.dtypes = dtypes
        return reader
    reader = Delimited(Source(path, name, compression), "\t" if kind == ".tsv" else ",;\t|", rows)
    if rows is None:
        _refuse_numbers_for_names(reader.columns, name)
    return _named(reader, name)


def _named(reader: R, name: str) -> R:
    """The reader, if each column has a name of its own; the first may have none."""
    names = tuple(column if column.strip() else "" for column in reader.columns)
    reader.columns = names
    if not any(names):
        raise TableError(f"{name} has no column names; write them in its first row.")
    if "" in names[1:]:
        raise TableError(f"column {names.index('', 1) + 1} of {name} has no name", *FOR_MISSING_NAMES)
    if len(set(names)) < len(names):
        twice = next(column for column in names if names.count(column) > 1)
        raise TableError(f"{name} has two columns named {quoted(twice)}; rename one.")
    return reader


def _refuse_numbers_for_names(names: tuple[str, ...], name: str) -> None:
    """Numbers in the first row are a missing header, unless they number the columns."""
    titles = [column for column in names if column.strip()]
    numbers = pd.to_numeric(pd.Series(titles, dtype=object), errors="coerce")
    counted = (list(map(str, range(start, start + len(titles)))) for start in (0, 1))
    if titles and numbers.notna().all() and titles not in counted:
        raise TableError(f"{name} has numbers for column names; write the names in its first row.")
