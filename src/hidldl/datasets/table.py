"""A table of one's own: feature and label columns in a CSV or Parquet file."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd
from pandas.api.types import is_datetime64_any_dtype, is_timedelta64_dtype

from hidldl.datasets.dataset import Dataset

_SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}


def load_table(
    path: str | PathLike[str],
    labels: str | Sequence[str],
    features: str | Sequence[str] | None = None,
    *,
    index: str | None = None,
) -> Dataset:
    """Read features and label degrees from a CSV, TSV or Parquet file.

    An empty cell in a label column is a hidden label: it becomes NaN, which every recoverer reads as hidden.

    Parameters
    ----------
    path : path
        A ``.csv``, ``.tsv`` or ``.parquet`` file; CSV and TSV may be compressed (``.csv.gz``). Parquet needs
        ``pip install 'hidldl[parquet]'``.
    labels : names or pattern
        The label columns: their names, or one pattern such as ``"label_*"``.
    features : names or pattern, optional
        The feature columns; all that are neither labels nor the index by default.
    index : str, optional
        The column that names the rows. A first column without a name is taken as the index by itself.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from hidldl import load_table
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "faces.csv"
    ...     _ = path.write_text("face,width,joy,fear,anger\\na,0.3,0.7,0.3,\\nb,0.4,0.5,0.25,0.25\\n")
    ...     data = load_table(path, labels=["joy", "fear", "anger"], index="face")
    >>> data.distributions
          joy  fear  anger
    face
    a     0.7  0.30    NaN
    b     0.5  0.25   0.25
    """
    path = Path(path)
    table = _read(path)
    if table.empty:
        raise ValueError(f"{path.name} has no rows.")
    if index is not None:
        _refuse_missing_columns([index], table, path, "index")
    label_names = _select(labels, table, path, "labels")
    if index in label_names:
        raise ValueError(f"column {index!r} of {path.name} is named in both index and labels; name it in one.")
    rest = [name for name in table.columns if name not in {index, *label_names}]
    feature_names = rest if features is None else _select(features, table, path, "features")
    shared = [name for name in feature_names if name in {index, *label_names}]
    if shared:
        raise ValueError(f"column {shared[0]!r} of {path.name} is named in both features and labels; name it in one.")
    if not feature_names:
        raise ValueError(f"{path.name} has no feature columns: every column is a label or the index.")
    if index is not None:
        table = table.set_index(index)
    return Dataset(
        name=_stem(path),
        features=_numeric(table[feature_names], path, "features"),
        distributions=_numeric(table[label_names], path, "labels"),
        feature_names=tuple(map(str, feature_names)),
        label_names=tuple(map(str, label_names)),
    )


def _kind(path: Path) -> str | None:
    """The suffix that says what is in the file, whatever its case; compression comes after it."""
    return next((s for s in reversed([s.lower() for s in path.suffixes]) if s in (*_SEPARATORS, ".parquet")), None)


def _stem(path: Path) -> str:
    """The file's name without the suffixes that say what it is."""
    kind = _kind(path)
    return path.name if kind is None else path.name[: path.name.lower().rindex(kind)]


def _read(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    kind = _kind(path)
    if kind is None or path.suffix.lower() not in (kind, ".gz", ".bz2", ".xz", ".zst"):
        raise ValueError(f"{path.name}: load_table reads .csv, .tsv and .parquet files, plain or as .csv.gz.")
    return _read_parquet(path) if kind == ".parquet" else _read_text(path, _SEPARATORS[kind])


def _read_parquet(path: Path) -> pd.DataFrame:
    try:
        table = pd.read_parquet(path)
    except ImportError as error:
        raise ImportError("Parquet files need pyarrow; install it with pip install 'hidldl[parquet]'.") from error
    # An index that was saved with a name is a column like any other.
    return table if table.index.name is None else table.reset_index()


def _read_text(path: Path, separator: str) -> pd.DataFrame:
    try:
        # pandas renames the second of two equal column names without a word, so the header is read first.
        header = pd.read_csv(path, sep=separator, header=None, nrows=1, dtype=str).iloc[0]
        # index_col=False: a row with one field too many must not shift the others.
        table = pd.read_csv(path, sep=separator, index_col=False)
    except pd.errors.EmptyDataError:
        raise ValueError(f"{path.name} is empty.") from None
    except UnicodeError:
        raise ValueError(f"{path.name} is not text in UTF-8; save it so.") from None
    except pd.errors.ParserError as error:
        raise ValueError(f"{path.name} is not a table: {str(error).strip()}.") from None
    if header.dropna().duplicated().any():
        twice = header[header.duplicated()].iloc[0]
        raise ValueError(f"{path.name} has two columns named {twice!r}; rename one.")
    if pd.isna(header.iloc[0]):
        # What pandas and R write as a first column without a name is the index.
        table = table.set_index(table.columns[0]).rename_axis(None)
    if header.iloc[1:].isna().any():
        raise ValueError(f"column {int(header.iloc[1:].isna().argmax()) + 2} of {path.name} has no name; give it one.")
    return table


def _select(wanted: str | Sequence[str], table: pd.DataFrame, path: Path, role: str) -> list[Any]:
    if isinstance(wanted, str):
        chosen = [name for name in table.columns if fnmatchcase(str(name), wanted)]
        if not chosen:
            raise ValueError(f"no column of {path.name} matches {role}={wanted!r}; its columns are {_listed(table)}.")
        return chosen
    names = list(wanted)
    if not names:
        raise ValueError(f"{role} is empty; name the {role} columns of {path.name}: its columns are {_listed(table)}.")
    if len(set(names)) < len(names):
        raise ValueError(f"{role} names a column of {path.name} twice; name each once.")
    _refuse_missing_columns(names, table, path, role)
    return names


def _refuse_missing_columns(wanted: Sequence[str], table: pd.DataFrame, path: Path, role: str) -> None:
    missing = [name for name in wanted if name not in table.columns]
    if missing:
        only = str(table.columns[0])
        hint = " Is the separator right?" if len(table.columns) == 1 and any(mark in only for mark in ";\t|") else ""
        raise ValueError(f"{path.name} has no column {missing[0]!r} ({role}); its columns are {_listed(table)}.{hint}")


def _numeric(part: pd.DataFrame, path: Path, role: str) -> pd.DataFrame:
    for name in part.columns:
        column = part[name]
        is_time = is_datetime64_any_dtype(column) or is_timedelta64_dtype(column)
        # Times would turn into nanoseconds since 1970, which nobody means.
        at_fault = column.notna() if is_time else pd.to_numeric(column, errors="coerce").isna() & column.notna()
        if at_fault.any():
            row, value = part.index[at_fault][0], column[at_fault].iloc[0]
            raise ValueError(
                f"column {name!r} of {path.name} holds {value!r} in row {row!r}, which is not a number; correct it, "
                f"or name the columns that are {role}."
            )
    return part.apply(pd.to_numeric).astype(float)


def _listed(table: pd.DataFrame) -> str:
    names = [repr(name) for name in table.columns]
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
