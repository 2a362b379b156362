"""Writing recovered rows: complete or not at all, in the format that the name of the file says."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

import pandas as pd

from hidldl.saving import replacing
from hidldl.tables.recovering import RecoveredRows
from hidldl.tables.sources import TableError

SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
MOST_EXCEL_ROWS = 1_048_575


class Writer:
    """Takes pieces of a result, in turn."""

    def write(self, frame: pd.DataFrame) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """All pieces are written."""


class TextWriter(Writer):
    """CSV and TSV, to a file, a compressed file or standard output; numbers with all their digits."""

    def __init__(self, target: Path | IO[str], separator: str, compression: Literal["gzip"] | None) -> None:
        self.target, self.separator, self.compression = target, separator, compression
        self.begun = False

    def write(self, frame: pd.DataFrame) -> None:
        frame.to_csv(
            self.target,
            sep=self.separator,
            index=False,
            header=not self.begun,
            mode="a",
            compression=self.compression,
            lineterminator="\n",
        )
        self.begun = True


class ParquetWriter(Writer):
    def __init__(self, target: Path) -> None:
        self.target = target
        self.file: Any = None

    def write(self, frame: pd.DataFrame) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        piece = pa.Table.from_pandas(frame, preserve_index=False)
        if self.file is None:
            self.file = pq.ParquetWriter(self.target, piece.schema)
        self.file.write_table(piece)

    def close(self) -> None:
        if self.file is not None:
            self.file.close()


class ExcelWriter(Writer):
    def __init__(self, target: Path) -> None:
        from openpyxl import Workbook

        self.target, self.book = target, Workbook(write_only=True)
        self.sheet = self.book.create_sheet("recovered")
        self.n_rows = 0

    def write(self, frame: pd.DataFrame) -> None:
        if not self.n_rows:
            self.sheet.append(list(frame.columns))
        self.n_rows += len(frame)
        if self.n_rows > MOST_EXCEL_ROWS:
            raise TableError(f"an Excel sheet holds {MOST_EXCEL_ROWS:,} rows; write a .csv or .parquet file.")
        for row in frame.itertuples(index=False):  # openpyxl takes rows one by one
            self.sheet.append([self._cell(value) for value in row])

    def _cell(self, value: Any) -> Any:
        """Text stays text, also where it begins as a formula does."""
        if not isinstance(value, str):
            return value
        from openpyxl.cell import WriteOnlyCell

        cell = WriteOnlyCell(self.sheet, value)
        cell.data_type = "s"
        return cell

    def close(self) -> None:
        self.book.save(self.target)


def check_target(path: Path) -> None:
    """Refuse a file that cannot be written, before any work is done."""
    _suffixes(path)
    folder = path.absolute().parent
    if not folder.is_dir():
        raise TableError(f"{path} cannot be written: there is no folder {folder.name!r}.")
    if path.is_dir():
        raise TableError(f"{path} is a folder; name a file.")
    kind = _suffixes(path)[0]
    module, extra = {".parquet": ("pyarrow", "parquet"), ".xlsx": ("openpyxl", "excel")}.get(kind, ("pandas", ""))
    try:
        __import__(module)
    except ImportError as error:
        raise ImportError(f"{kind} files need {module}; install it with pip install 'hidldl[{extra}]'.") from error


@contextmanager
def open_writer(path: Path) -> Iterator[Writer]:
    """A writer for that file, or for standard output ("-"); the file is there at the end, or unchanged."""
    if str(path) == "-":
        yield TextWriter(sys.stdout, ",", None)
        return
    kind, compression = _suffixes(path)
    with replacing(path) as target:
        writer: Writer
        if kind == ".parquet":
            writer = ParquetWriter(target)
        elif kind == ".xlsx":
            writer = ExcelWriter(target)
        else:
            writer = TextWriter(target, SEPARATORS[kind], "gzip" if compression else None)
        yield writer
        writer.close()


def as_frame(rows: RecoveredRows, labels: tuple[str, ...], row_names: str | None) -> pd.DataFrame:
    """The columns of the output: names of rows, shares, hidden mass, and intervals if there are any."""
    parts: list[pd.DataFrame] = []
    if row_names is not None:
        parts.append(pd.DataFrame({row_names or "row": rows.names}))
    parts.append(pd.DataFrame(rows.distributions, columns=list(labels)))
    taken = {row_names, *labels}
    extra: dict[str, Any] = {_free("hidden_mass", taken): rows.hidden_mass}
    if rows.low is not None and rows.high is not None:
        extra |= {_free("hidden_mass_low", taken): rows.mass_low, _free("hidden_mass_high", taken): rows.mass_high}
        for j, label in enumerate(labels):
            extra[_free(f"{label}_low", taken)] = rows.low[:, j]
            extra[_free(f"{label}_high", taken)] = rows.high[:, j]
    return pd.concat([*parts, pd.DataFrame(extra)], axis=1)


def _free(name: str, taken: set[str | None]) -> str:
    """The name, or one that no column has yet."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _suffixes(path: Path) -> tuple[str, str]:
    if str(path) == "-":
        return ".csv", ""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    compression = suffixes.pop() if suffixes[-1:] == [".gz"] else ""
    kind = suffixes[-1] if suffixes else ""
    if kind not in (*SEPARATORS, ".parquet", ".xlsx") or (compression and kind not in SEPARATORS):
        raise TableError(f"{path.name}: hidldl writes .csv, .tsv (also .csv.gz), .parquet and .xlsx files.")
    return kind, compression
