"""Errors for what is wrong with a matrix: in which row, which label, and what to do about it."""

import reprlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from scipy import sparse

from hidldl.arrays import BoolArray


def fault_at(
    at_fault: BoolArray, frame: pd.DataFrame | None, name: str, fault: str, remedy: str, first_row: int = 0
) -> ValueError:
    """The error for the first share of a matrix that is at fault."""
    i, j = np.unravel_index(int(at_fault.argmax()), at_fault.shape)
    row, label = row_name(frame, int(i), first_row), label_name(frame, int(j))
    return ValueError(f"{name} {fault} in {row}, {label}; {remedy}.")


def refuse_text_and_dates(frame: pd.DataFrame, name: str) -> None:
    """Columns must hold numbers; text that reads as one, as in "0.5", is one."""
    for j, dtype in enumerate(frame.dtypes):
        column = frame.iloc[:, j]
        row = None if is_numeric_dtype(dtype) or _reads_as_numbers(column) else _first_other(column)
        if row is not None:
            place = f"{row_name(frame, row)}, column {_name(frame.columns, j)}"
            shown = repr(str(column.iloc[row])[:40])
            remedy = "encode text and dates as numbers, or leave the column out"
            raise ValueError(f"{name} holds {shown} in {place}, which is not a number; {remedy}.")


def _reads_as_numbers(column: "pd.Series[Any]") -> bool:
    try:
        column.astype(float)
    except (TypeError, ValueError):
        return False
    return True


def _first_other(column: "pd.Series[Any]") -> int | None:
    """The first row that holds neither what NumPy takes for a number nor nothing at all."""
    return next((i for i, value in enumerate(column) if not _is_number(value)), None)


def _is_number(value: Any) -> bool:
    """Whether NumPy takes it for a number, as it does nothing at all."""
    try:
        float(value)
    except (TypeError, ValueError):
        return value is None or value is pd.NA
    return True


def nonfinite_feature(X: Any, original: Any, name: str) -> ValueError:
    """The error for the first feature that is NaN, or infinite if none is."""
    values = X.data if sparse.issparse(X) else X
    nan = np.isnan(values)
    kind, at_fault = ("NaN", nan) if nan.any() else ("inf", np.isinf(values))
    place = _place(X, at_fault, original)
    return ValueError(f"{name} contains {kind} in {place}; impute the value, or drop the row or the column.")


def huge_feature(X: Any, original: Any, name: str, largest: float) -> ValueError:
    """The error for the first feature that is larger than it may be."""
    values = X.data if sparse.issparse(X) else X
    place = _place(X, np.abs(values) > largest, original)
    return ValueError(f"{name} exceeds {largest:g} in {place}, so that squares overflow; scale the features.")


def _place(X: Any, at_fault: BoolArray, original: Any) -> str:
    """Row and column of the first feature at fault, among those that a sparse matrix stores or among all."""
    first = np.argwhere(at_fault)[0]
    i, j = (axis[first[0]] for axis in sparse.coo_array(X).coords) if sparse.issparse(X) else first
    frame = original if isinstance(original, pd.DataFrame) else None
    return f"{row_name(frame, int(i))}, column {int(j) if frame is None else _name(frame.columns, int(j))}"


def refuse_misaligned(
    first: "pd.Index[Any]", second: "pd.Index[Any]", first_name: str, second_name: str, remedy: str, kind: str
) -> None:
    """Rows or labels must have the same names in the same order; unnamed ones (0, 1, 2, ...) go by position."""
    if first.equals(second):
        return
    # Also 0, 1, 2, ... in another order are names: of a table that was sorted or shuffled.
    if len(first) == len(second) and set(first) == set(second):
        for i, (one, other) in enumerate(zip(first, second, strict=True)):
            if one != other:
                raise ValueError(
                    f"{first_name} and {second_name} have the same {kind} in different order, first at position {i} "
                    f"({one!r} and {other!r}); use {remedy}, or pass arrays, which go by position."
                )
        return
    if _is_positional(first) or _is_positional(second):
        return
    difference = f"{first_name} and {second_name} have different {kind}{lacking(second_name, second, first)}"
    raise ValueError(f"{difference}; use the same names, or pass arrays, which have none.")


def lacking(name: str, names: Iterable[Any], wanted: Iterable[Any]) -> str:
    """What a message adds about names that are missing, if any are."""
    known = set(names)
    missing = [each for each in wanted if each not in known]
    return f": {name} lacks {reprlib.repr(missing)}" if missing else ""


def _is_positional(index: "pd.Index[Any]") -> bool:
    return isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1


def row_name(frame: "pd.DataFrame | pd.Series[Any] | None", i: int, first: int = 0) -> str:
    """What a message calls a row: its number, counted from ``first`` (1 in files), and its name if it has one."""
    names = None if frame is None or _is_positional(frame.index) else frame.index
    return f"row {i + first}" + ("" if names is None else f" (index {_name(names, i)})")


def label_name(frame: pd.DataFrame | None, j: int) -> str:
    """What a message calls a label."""
    return f"label {j}" if frame is None else f"label {_name(frame.columns, j)}"


def _name(index: "pd.Index[Any]", i: int) -> str:
    """A name as it would be written in Python: 7, where NumPy shows np.int64(7)."""
    return repr(index[i : i + 1].tolist()[0])
