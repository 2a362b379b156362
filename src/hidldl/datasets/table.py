"""A table of one's own: feature and label columns in a CSV or Parquet file."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

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
        The column that names the rows.

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
        table = table.set_index(index)
    label_names = _select(labels, table, path, "labels")
    rest = [name for name in table.columns if name not in set(label_names)]
    feature_names = rest if features is None else _select(features, table, path, "features")
    shared = [name for name in feature_names if name in set(label_names)]
    if shared:
        raise ValueError(f"column {shared[0]!r} of {path.name} is named in both features and labels; name it in one.")
    if not feature_names:
        raise ValueError(f"{path.name} has no feature columns: every column is a label or the index.")
    return Dataset(
        name=path.name.split(".")[0],
        features=_numeric(table[feature_names], path, "features"),
        distributions=_numeric(table[label_names], path, "labels"),
        feature_names=tuple(map(str, feature_names)),
        label_names=tuple(map(str, label_names)),
    )


def _read(path: Path) -> pd.DataFrame:
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    if path.suffix == ".parquet":
        try:
            table = pd.read_parquet(path)
        except ImportError as error:
            raise ImportError("Parquet files need pyarrow; install it with pip install 'hidldl[parquet]'.") from error
    else:
        kind = next((suffix for suffix in path.suffixes if suffix in _SEPARATORS), None)
        if kind is None:
            raise ValueError(f"{path.name}: load_table reads .csv, .tsv and .parquet files, plain or as .csv.gz.")
        try:
            # pandas renames the second of two equal column names without a word, so the header is read first.
            header = pd.read_csv(path, sep=_SEPARATORS[kind], header=None, nrows=1, dtype=str).iloc[0]
            table = pd.read_csv(path, sep=_SEPARATORS[kind])
        except pd.errors.EmptyDataError:
            raise ValueError(f"{path.name} is empty.") from None
        if header.duplicated().any():
            raise ValueError(f"{path.name} has two columns named {header[header.duplicated()].iloc[0]!r}; rename one.")
    return table


def _select(wanted: str | Sequence[str], table: pd.DataFrame, path: Path, role: str) -> list[Any]:
    if isinstance(wanted, str):
        chosen = [name for name in table.columns if fnmatchcase(str(name), wanted)]
        if not chosen:
            raise ValueError(f"no column of {path.name} matches {role}={wanted!r}; its columns are {_listed(table)}.")
        return chosen
    _refuse_missing_columns(wanted, table, path, role)
    return list(wanted)


def _refuse_missing_columns(wanted: Sequence[str], table: pd.DataFrame, path: Path, role: str) -> None:
    missing = [name for name in wanted if name not in table.columns]
    if missing:
        raise ValueError(f"{path.name} has no column {missing[0]!r} ({role}); its columns are {_listed(table)}.")


def _numeric(part: pd.DataFrame, path: Path, role: str) -> pd.DataFrame:
    for name in part.columns:
        as_numbers = pd.to_numeric(part[name], errors="coerce")
        at_fault = as_numbers.isna() & part[name].notna()
        if at_fault.any():
            row = part.index[at_fault][0]
            value = part[name][at_fault].iloc[0]
            raise ValueError(
                f"column {name!r} of {path.name} holds {value!r} in row {row!r}, which is not a number; correct it, "
                f"or name the columns that are {role}."
            )
    return part.apply(pd.to_numeric).astype(float)


def _listed(table: pd.DataFrame) -> str:
    names = [repr(name) for name in table.columns]
    return ", ".join(names[:12]) + (f" and {len(names) - 12} more" if len(names) > 12 else "")
