"""A table of one's own: feature and label columns in a CSV, Parquet or Excel file."""

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from hidldl.datasets.dataset import Dataset
from hidldl.errors import TableError
from hidldl.tables.column_names import select_columns
from hidldl.tables.columns import why_not_a_number
from hidldl.tables.reading import open_table
from hidldl.tables.sources import quoted, quoted_list, split_suffix


def load_table(
    path: str | PathLike[str],
    labels: str | Sequence[str],
    features: str | Sequence[str] | None = None,
    *,
    index: str | None = None,
    sheet: str | None = None,
    header_row: int | str | None = None,
) -> Dataset:
    """Read features and label shares from a CSV, TSV, Parquet or Excel file.

    An empty cell in a label column is a hidden label: it becomes NaN, which every recoverer reads as hidden.

    Parameters
    ----------
    path : path
        A ``.csv``, ``.tsv``, ``.txt``, ``.parquet`` or ``.xlsx`` file, or a folder of ``.parquet`` files; text may be
        compressed (``.csv.gz``). Parquet needs ``pip install 'hidldl[parquet]'``, Excel ``'hidldl[excel]'``.
    labels : str or list of str
        The label columns: a list of exact names, or one text with names, patterns (``label_*``) and ranges
        (``joy..anger``) by commas, as for ``recover_table``.
    features : str or list of str, optional
        The feature columns, in the same way; all that are neither labels nor the index by default.
    index : str, optional
        The column that names the rows. A first column without a name is taken as the index by itself.
    sheet : str, optional
        The sheet of a workbook; needed where more than one has content.
    header_row : int or str, optional
        The row of the column names, 3 for the third of the file, or "2-3" for names in two rows, which are joined. By
        default the first row below titles.

    Raises
    ------
    TableError
        What cannot be read, or be what it is asked to be, and where. It is a ``ValueError``.

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
    table = _read(path, index, sheet, header_row)
    if index is not None:
        _refuse_missing_columns([index], table, path, "index")
    label_names = _select(labels, table, path, "labels")
    if index in label_names:
        raise TableError(f"column {index!r} of {path.name} is named in both index and labels; name it in one.")
    rest = [name for name in table.columns if name not in {index, *label_names}]
    feature_names = rest if features is None else _select(features, table, path, "features")
    shared = [name for name in feature_names if name in {index, *label_names}]
    if shared:
        raise TableError(f"column {shared[0]!r} of {path.name} is named in both features and labels; name it in one.")
    if not feature_names:
        raise TableError(f"{path.name} has no feature columns: every column is a label or the index.")
    if index is not None:
        table = table.set_index(index)
    return Dataset(
        name=split_suffix(path.name)[0],
        features=_numeric(table[feature_names], path, "features"),
        distributions=_numeric(table[label_names], path, "labels"),
        feature_names=tuple(map(str, feature_names)),
        label_names=tuple(map(str, label_names)),
    )


def _read(path: Path, index: str | None, sheet: str | None, header_row: int | str | None) -> pd.DataFrame:
    """The whole table; its index is the column without a name, where there is one, or counts from 0."""
    with open_table(path, sheet=sheet, header_row=header_row) as table:
        # Names of rows are whole numbers or as written: not 7.0 for 7.
        names = [name for name in ("", index) if name is not None and name in table.columns]
        numbers = {column.name for column in table.scan() if column.kind == "number"}
        frame = table.read(as_text=names)
    for name in names:
        frame[name] = pd.to_numeric(frame[name], errors="coerce") if name in numbers else frame[name]
    # What pandas and R write as a first column without a name is the index.
    return frame.set_index("").rename_axis(None) if "" in names else frame.reset_index(drop=True)


def _select(wanted: str | Sequence[str], table: pd.DataFrame, path: Path, role: str) -> list[Any]:
    if not isinstance(wanted, str):
        names = list(wanted)
        if not names:
            known = quoted_list([*map(str, table.columns)])
            raise TableError(f"{role} is empty; name the {role} columns of {path.name}: its columns are {known}.")
        if len(set(names)) < len(names):
            raise TableError(f"{role} names a column of {path.name} twice; name each once.")
        _refuse_missing_columns(names, table, path, role)
    return list(select_columns(wanted, path.name, [*map(str, table.columns)], role))


def _refuse_missing_columns(wanted: Sequence[str], table: pd.DataFrame, path: Path, role: str) -> None:
    missing = [name for name in wanted if name not in table.columns]
    if missing:
        only = str(table.columns[0])
        hint = " Is the separator right?" if len(table.columns) == 1 and any(mark in only for mark in ";\t|") else ""
        known = quoted_list([*map(str, table.columns)])
        raise TableError(f"{path.name} has no column {missing[0]!r} ({role}); its columns are {known}.{hint}")


def _numeric(part: pd.DataFrame, path: Path, role: str) -> pd.DataFrame:
    for name in part.columns:
        column = part[name]
        at_fault = pd.to_numeric(column, errors="coerce").isna() & column.notna()
        if at_fault.any():
            row = int(at_fault.to_numpy().argmax())
            raise TableError(
                f"column {name!r} of {path.name} holds {quoted(column.iloc[row])} in row {row + 1}, "
                f"{why_not_a_number(column.iloc[row])}, or name the columns that are {role}."
            )
    return part.apply(pd.to_numeric).astype(float)
