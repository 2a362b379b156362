"""Parquet files, read batch by batch."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hidldl.errors import TableError
from hidldl.tables.delimited import CHUNK_BYTES, LONGEST_CELL, MOST_COLUMNS
from hidldl.tables.sources import HARMLESS_BYTES, MOST_EXPANSION, quoted


class Parquet:
    """A Parquet file of numbers, texts and times."""

    decimal = "."

    def __init__(self, path: Path | str, name: str, files: Any = None) -> None:
        """With ``files``, a file system of fsspec, the path is there."""
        self.path, self.name, self._files = path, name, files
        self.notes: list[str] = []
        with self._opened() as file:
            schema = file.schema_arrow
            stored = _without_index_names(schema, name)
            if len(stored) > MOST_COLUMNS:
                raise TableError(f"{name} has more than {MOST_COLUMNS:,} columns; leave out those not needed.")
            for field in schema:
                if not _is_readable(field.type):
                    raise TableError(
                        f"column {quoted(field.name)} of {name} holds {quoted(field.type)}; "
                        "write one number or text in a cell."
                    )
            self._refuse_traps(file.metadata)
            self._texts = [field.name for field in schema if _is_text(field.type)]
        self._order = list(stored)
        nullable = _masked(schema)
        self.nullable = {j for j, field in enumerate(stored) if field in nullable}
        self.columns = tuple(stored.values())

    def frames(self, rows: int, text: Collection[int] = ()) -> Iterator[pd.DataFrame]:
        """Pieces of at most so many rows; columns in `text` as text, the others as numbers where they are."""
        first = 1
        # Texts stay as a dictionary: one long text in a million rows is stored once.
        with self._opened(read_dictionary=self._texts) as file:
            for batch in file.iter_batches(batch_size=min(rows, self._rows_at_once(file.metadata))):
                columns = {
                    j: _column(batch.column(name), as_text=j in text, name=f"{quoted(name)} of {self.name}")
                    for j, name in enumerate(self._order)
                }
                yield pd.DataFrame(columns, index=pd.RangeIndex(first, first + batch.num_rows))
                first += batch.num_rows

    def originals(self, rows: int, columns: Sequence[int]) -> Iterator[pd.DataFrame]:
        """Pieces of some columns with the types that the file has."""
        first = 1
        names = {j: self._order[j] for j in columns}
        with self._opened(read_dictionary=self._texts) as file:
            size = min(rows, self._rows_at_once(file.metadata))
            for batch in file.iter_batches(batch_size=size, columns=list(names.values())):
                cells = {
                    j: _original(batch.column(name), name=f"{quoted(name)} of {self.name}") for j, name in names.items()
                }
                yield pd.DataFrame(cells).set_axis(pd.RangeIndex(first, first + batch.num_rows))
                first += batch.num_rows

    @contextmanager
    def _opened(self, **options: Any) -> Iterator[Any]:
        try:
            import pyarrow as pa
            from pyarrow.parquet import ParquetFile
        except ImportError as error:
            raise ImportError("Parquet files need pyarrow; install it with pip install 'hidldl[parquet]'.") from error
        try:
            place = nullcontext(self.path) if self._files is None else self._files.open(self.path)
            with place as source, ParquetFile(source, **options) as file:
                yield file
        except (pa.ArrowException, OSError, MemoryError, UnicodeDecodeError) as error:
            raise TableError(f"{self.name} is cut off or damaged ({quoted(error, 80)}); write it again.") from None

    def _refuse_traps(self, metadata: Any) -> None:
        size = Path(self.path).stat().st_size if self._files is None else self._files.size(self.path)
        unpacked = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
        # A column of one repeated value takes no room at all, so the number of cells is a size of its own.
        largest = max(unpacked, metadata.num_rows * metadata.num_columns)
        if largest > max(HARMLESS_BYTES, MOST_EXPANSION * size):
            raise TableError(f"{self.name} unpacks to {largest:,} bytes or cells, as a trap would; write it again.")

    def _rows_at_once(self, metadata: Any) -> int:
        groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
        widest = max((group.total_byte_size // max(group.num_rows, 1) for group in groups), default=1)
        return max(1, CHUNK_BYTES // max(widest, 1, metadata.num_columns))


def _without_index_names(schema: Any, file_name: str) -> dict[str, str]:
    """Column by column what is stored and what it is called: first what pandas wrote as index, "" if it had no name."""
    names = list(schema.names)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TableError(f"{file_name} has two columns named {quoted(twice)}; rename one.")
    try:
        index = [name for name in schema.pandas_metadata["index_columns"] if name in names]
    except (TypeError, KeyError, ValueError):
        index = []
    order = index + [name for name in names if name not in index]
    return {name: "" if name == "__index_level_0__" else name for name in order}


def _masked(schema: Any) -> set[str]:
    """Columns that were of a type of pandas with a mask for gaps, such as Int64."""
    try:
        types = {column["field_name"]: column["numpy_type"] for column in schema.pandas_metadata["columns"]}
        return {name for name, kind in types.items() if kind[0].isupper() or kind == "boolean"}
    except (TypeError, KeyError, ValueError, IndexError, AttributeError):
        return set()


def _is_text(kind: Any) -> bool:
    from pyarrow import types

    return bool(types.is_string(kind) or types.is_large_string(kind))


def _is_readable(kind: Any) -> bool:
    from pyarrow import types

    if types.is_dictionary(kind):
        kind = kind.value_type
    checks = (types.is_integer, types.is_floating, types.is_decimal, types.is_boolean, types.is_null, types.is_temporal)
    return _is_text(kind) or any(check(kind) for check in checks)


def _column(array: Any, *, as_text: bool, name: str) -> Any:
    """The cells of a batch's column for a frame: numbers, or texts with None where they are missing."""
    import pyarrow as pa
    from pyarrow import compute, types

    if types.is_dictionary(array.type):
        array.validate(full=True)  # in a damaged file, cells may point beyond the dictionary
        if _is_text(array.type.value_type):
            longest = compute.max(compute.binary_length(array.dictionary)).as_py() or 0
            if longest > LONGEST_CELL:
                raise TableError(f"column {name} has a cell of more than {LONGEST_CELL:,} characters; shorten it.")
            texts = np.append(array.dictionary.to_numpy(zero_copy_only=False), np.array([None], dtype=object))
            return texts[array.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)]
        array = array.dictionary_decode()
    if types.is_null(array.type):
        return np.full(len(array), np.nan)
    if types.is_decimal(array.type) and not as_text:
        array = array.cast(pa.float64(), safe=False)
    if types.is_duration(array.type):
        return array.to_pandas().map(str, na_action="ignore").to_numpy(object)
    if as_text or types.is_temporal(array.type) or _is_text(array.type):
        array = array.cast(pa.string())
    return array.to_numpy(zero_copy_only=False)


def _original(array: Any, *, name: str) -> "pd.Series[Any]":
    """The cells of a batch's column with a type of pandas that is the same in every batch, with gaps or without."""
    from pyarrow import types

    if types.is_dictionary(array.type) or _is_text(array.type) or types.is_null(array.type):
        return pd.Series(_column(array, as_text=True, name=name), dtype=object)
    if types.is_integer(array.type) or types.is_boolean(array.type):
        plain = pd.Series(dtype=array.type.to_pandas_dtype())
        return array.to_pandas(types_mapper={array.type: plain.convert_dtypes().dtype}.get)
    if types.is_floating(array.type):
        return pd.Series(array.to_numpy(zero_copy_only=False))
    if types.is_timestamp(array.type) or types.is_duration(array.type):
        return array.to_pandas()
    return pd.Series(pd.arrays.ArrowExtensionArray(array))  # dates, times of day and decimals
