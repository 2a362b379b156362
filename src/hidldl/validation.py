"""The only home of input checks; ``masks`` says what "observed" means."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import sparse

from hidldl.arrays import BoolArray, FloatArray, in_memory
from hidldl.masks import Zeros, resolve_mask
from hidldl.refusals import (
    fault_at,
    huge_feature,
    label_name,
    lacking,
    nonfinite_feature,
    refuse_misaligned,
    refuse_text_and_dates,
    row_name,
)

Auto: TypeAlias = Literal["auto"]
AUTO: Auto = "auto"
"""The value of a parameter that is chosen without ground truth."""
MOST_LEARNABLE = 10_000
"""Of more features, directions take too much memory."""

FLOAT_TYPES = [np.float64, np.float32]
_FEATURE_CHECKS: dict[str, Any] = {"dtype": FLOAT_TYPES, "accept_sparse": "csr", "ensure_all_finite": False}
_FEATURE_CHECKS["order"] = "C"  # sums in another order of memory have other last digits
MOST_WORKERS = 1024
"""More threads than any machine has cores are a slip of the pen, or of a model file."""
LARGEST_FEATURE = 1e150
ROW_SUM_TOLERANCE = 1e-3
"""How far a row's sum may be from 1: enough for shares that were rounded to four decimals."""


@dataclass(frozen=True)
class ObservedRows:
    """Rows as annotators hand them in, after every check.

    ``shares`` are 0 where hidden and sum to 1 in every row, or to less in the incomplete setting; ``frame`` is the
    DataFrame that they came in, if they came in one. ``unknown`` are the zeros of which nobody knows whether they are
    hidden, None if there are none.
    """

    shares: FloatArray
    observed: BoolArray
    frame: pd.DataFrame | None
    unknown: BoolArray | None = None
    label_names: "pd.Index[Any] | None" = field(init=False)
    """The labels' names, where the rows came in a DataFrame."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "label_names", None if self.frame is None else self.frame.columns)

    def like_input(self, *values: npt.NDArray[Any]) -> list[Any]:
        """Arrays of n × m, or of one value per row, in the container that the rows came in."""
        if self.frame is None:
            return list(values)
        index, columns = self.frame.index, self.frame.columns
        return [pd.Series(v, index=index) if v.ndim == 1 else pd.DataFrame(v, index, columns) for v in values]


def check_features(estimator: Any, X: Any, *, reset: bool, min_rows: int = 1) -> Any:
    """Features as a float array or CSR matrix without NaN and infinities; ``reset`` in ``fit``.

    In ``fit`` they may not be huge either. What ``predict`` makes of huge ones is checked afterwards.
    """
    from sklearn.utils.validation import validate_data  # here, since reading a table needs no scikit-learn

    X = in_memory(X)
    if isinstance(X, pd.DataFrame):
        refuse_text_and_dates(X, "X")
    checked = validate_data(estimator, X, reset=reset, ensure_min_samples=min_rows, **_FEATURE_CHECKS)
    _check_feature_values(checked, X, "X", may_be_huge=not reset)
    return checked


def check_features_of_rows(X: Any, rows: ObservedRows, *, name: str, rows_name: str) -> Any:
    """Features outside an estimator: finite numbers, sparse or not, one row for each row of labels."""
    from sklearn.utils import check_array

    X = in_memory(X)
    if isinstance(X, pd.DataFrame):
        refuse_text_and_dates(X, name)
    checked = check_array(X, input_name=name, **_FEATURE_CHECKS)
    _check_feature_values(checked, X, name)
    check_same_rows(X, checked.shape[0], rows, name=rows_name, features_name=name)
    return checked


def check_table(
    estimator: Any,
    X: Any,
    D_obs: Any,
    observed: Any,
    *,
    min_rows: int,
    may_be_partial: bool,
    zeros: Zeros = AUTO,
    can_tell: bool = False,
) -> tuple[Any, ObservedRows]:
    """What a recoverer is fitted to: features and rows as handed in, of the same items."""
    rows = check_observed_rows(D_obs, observed, may_be_partial=may_be_partial, zeros=zeros, can_tell=can_tell)
    features = check_features(estimator, X, reset=True, min_rows=min_rows)
    check_same_rows(X, features.shape[0], rows)
    return features, rows


def check_observed_rows(
    D_obs: Any,
    observed: Any = None,
    *,
    every_label_seen: bool = True,
    may_be_partial: bool = False,
    may_be_empty: bool = False,
    zeros: Zeros = AUTO,
    can_tell: bool = False,
) -> ObservedRows:
    """The rows of ``D_obs``, with the one meaning of "observed" applied and every row checked.

    Rows are divided by their sums, so that they sum to exactly 1. Rows that ``may_be_partial``, as in the incomplete
    setting, are left as they are and may sum to less. Rows without any observed label are refused unless they
    ``may_be_empty``. Unknown zeros are refused unless the method ``can_tell``.
    """
    shares, frame = _as_matrix(D_obs, "D_obs")
    mask, unknown = resolve_mask(shares, observed, frame, name="D_obs", zeros=zeros, can_tell=can_tell)
    # A row without any positive share says nothing about its zeros.
    unknown &= (shares > 0).any(axis=1, keepdims=True)
    if unknown.any() and not can_tell:
        remedy = 'fit BayesHidLDL with zeros="unknown", which weighs the two, or pass the mask of infer_observed'
        raise fault_at(unknown, frame, "D_obs", "is a zero that may be hidden or true", remedy)
    shares = np.where(mask, shares, 0)
    empty = np.logical_and(may_be_empty, ~mask.any(axis=1))
    _check_shares(shares, frame, "D_obs", empty)
    partial = np.logical_and(may_be_partial, ~mask.all(axis=1)) | empty
    _check_row_sums(shares, frame, "D_obs", partial, over=" over its observed labels")
    if every_label_seen:
        refuse_unseen_labels(mask, frame, "D_obs")
    if not may_be_partial:
        sums = shares.sum(axis=1, keepdims=True)
        shares = np.divide(shares, sums, out=np.zeros_like(shares), where=sums > 0)
    return ObservedRows(shares, mask, frame, unknown if unknown.any() else None)


def check_distributions(D: Any, *, name: str = "D", first_row: int = 0) -> ObservedRows:
    """Complete distributions: every entry counts as observed. Messages count rows from ``first_row``, 1 for files."""
    shares, frame = _as_matrix(D, name)
    shares = shares.copy()
    _check_shares(shares, frame, name, first_row=first_row)
    _check_row_sums(shares, frame, name, np.zeros(len(shares), dtype=bool), first_row=first_row)
    closed = shares / shares.sum(axis=1, keepdims=True)
    return ObservedRows(closed, np.ones(shares.shape, dtype=bool), frame)


def check_same_rows(X: Any, n_rows: int, rows: ObservedRows, *, name: str = "D_obs", features_name: str = "X") -> None:
    """Features and distributions must have the same rows in the same order."""
    if n_rows != len(rows.shares):
        sizes = f"{features_name} has {n_rows} rows but {name} has {len(rows.shares)}"
        raise ValueError(f"{sizes}; give one row of each per item.")
    if isinstance(X, pd.DataFrame) and rows.frame is not None:
        remedy = f"{name}.loc[{features_name}.index]"
        refuse_misaligned(X.index, rows.frame.index, features_name, name, remedy, "rows")


def check_same_labels(label_names: Any, n_labels: int, D_obs: Any, *, name: str = "D_obs") -> None:
    """Rows for a model must have the labels that it was fitted with, in the same order.

    It is asked before the rows are checked: without some of its labels, a row sums to less than 1.
    """
    shares, frame = _as_matrix(D_obs, name)
    if shares.shape[1] != n_labels:
        missing = "" if frame is None or label_names is None else lacking(name, frame.columns, label_names)
        sizes = f"{name} has {shares.shape[1]} labels but the model was fitted with {n_labels}"
        raise ValueError(f"{sizes}{missing}; give the same labels.")
    if label_names is not None and frame is not None:
        refuse_misaligned(label_names, frame.columns, "the model", name, f"{name}[model.label_names_]", "labels")


def check_matrix_pair(D_true: Any, D_pred: Any, *, name: str = "D_pred") -> tuple[FloatArray, FloatArray]:
    """Two matrices of the same shape to compare; the second, ``name``, need not be on the simplex."""
    true, true_frame = _as_matrix(D_true, "D_true")
    pred, pred_frame = _as_matrix(D_pred, name)
    if true.shape != pred.shape:
        raise ValueError(
            f"D_true has shape {true.shape} but {name} has shape {pred.shape}; compare the same rows and labels."
        )
    if true_frame is not None and pred_frame is not None:
        for kind, axis in (("rows", "index"), ("labels", "columns")):
            remedy = f"{name}.reindex({axis}=D_true.{axis})"
            refuse_misaligned(getattr(true_frame, axis), getattr(pred_frame, axis), "D_true", name, remedy, kind)
    for values, frame, side in ((true, true_frame, "D_true"), (pred, pred_frame, name)):
        odd = ~np.isfinite(values)
        if odd.any():
            raise fault_at(odd, frame, side, "is not a finite number", "compare complete distributions")
    return true, pred


def check_sample_weight(sample_weight: Any, n_rows: int, frame: pd.DataFrame | None = None) -> FloatArray:
    """One finite, non-negative weight per row of ``D``, which is ``frame``; ones where none are given."""
    if sample_weight is None:
        return np.ones(n_rows)
    return check_one_per_row(sample_weight, n_rows, "sample_weight", "weight", frame, rows_name="D")


def check_one_per_row(
    values: Any, n_rows: int, name: str, what: str, frame: pd.DataFrame | None = None, *, rows_name: str = "D_obs"
) -> FloatArray:
    """One finite number of 0 or more per row of ``rows_name``, which is ``frame``, and not 0 in every row."""
    from sklearn.utils import check_array

    series = values if isinstance(values, pd.Series) else None
    checked = check_array(in_memory(values), ensure_2d=False, dtype=np.float64, ensure_all_finite=False)
    if checked.shape != (n_rows,):
        raise ValueError(f"{name} has shape {checked.shape}; give one {what} for each of the {n_rows} rows.")
    if series is not None and frame is not None:
        refuse_misaligned(frame.index, series.index, rows_name, name, f"{name}.loc[{rows_name}.index]", "rows")
    for wrong, fault in ((~np.isfinite(checked), "is not a finite number"), (checked < 0, "is negative")):
        if wrong.any():
            row = row_name(series, int(wrong.argmax()))
            raise ValueError(f"{name} {fault} in {row}; give {what}s of 0 or more.")
    if not checked.any():
        raise ValueError(f"{name} is zero in every row; give at least one row a positive {what}.")
    return np.asarray(checked)


def check_number(
    value: Any,
    name: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    above: float | None = None,
    below: float | None = None,
    integer: bool = False,
    or_auto: bool = False,
) -> None:
    """A finite number within its bounds, or the word "auto" where that is allowed; booleans are not numbers here."""
    if or_auto and isinstance(value, str) and value == AUTO:
        return
    kinds = (int, np.integer) if integer else (int, float, np.integer, np.floating)
    if isinstance(value, bool | np.bool_) or not isinstance(value, kinds):
        kind = ("an integer" if integer else "a number") + (f" or {AUTO!r}" if or_auto else "")
        raise TypeError(f"{name} must be {kind}, got {value!r}.")
    # In single precision the largest number would be infinite.
    value = value.item() if isinstance(value, np.generic) else value
    if not -sys.float_info.max <= value <= sys.float_info.max:  # false for NaN too
        raise ValueError(f"{name} must be finite, got {value!r}.")
    if at_least is not None and value < at_least:
        raise ValueError(f"{name} must be at least {at_least}, got {value!r}.")
    if at_most is not None and value > at_most:
        raise ValueError(f"{name} must be at most {at_most}, got {value!r}.")
    if above is not None and value <= above:
        raise ValueError(f"{name} must be greater than {above}, got {value!r}.")
    if below is not None and value >= below:
        raise ValueError(f"{name} must be below {below}, got {value!r}.")


def check_flag(value: Any, name: str, *, or_auto: bool = False) -> None:
    """True or False, not something that is merely truthy, or the word "auto" where that is allowed."""
    if or_auto and isinstance(value, str) and value == AUTO:
        return
    if not isinstance(value, bool | np.bool_):
        choices = f"True, False or {AUTO!r}" if or_auto else "True or False"
        raise TypeError(f"{name} must be {choices}, got {value!r}.")


def check_hidden_rate(hidden_rate: Any, n_labels: int) -> FloatArray | None:
    """How often each label is overlooked, from one rate for all or one for each; None if it is "auto"."""
    if isinstance(hidden_rate, str) and hidden_rate == AUTO:
        return None
    rates = np.asarray(hidden_rate)
    if rates.ndim > 1 or rates.dtype.kind not in "fiu" or not ((rates >= 0) & (rates < 1)).all():
        raise ValueError(f'hidden_rate must be "auto", or from 0 to below 1, got {hidden_rate!r}.')
    if rates.ndim and len(rates) != n_labels:
        raise ValueError(f"hidden_rate has {len(rates)} rates but D_obs has {n_labels} labels; give one for each.")
    if not rates.any():
        raise ValueError('hidden_rate is 0 for every label, so nothing was overlooked; say zeros="true" instead.')
    return np.broadcast_to(rates.astype(np.float64), n_labels)


def check_learn_distance(learn_distance: Any, X: Any) -> bool:
    """Whether distances between these rows can be learned; an error if that is asked of too many features."""
    n_features = X.shape[1]
    if learn_distance is True and n_features > MOST_LEARNABLE:
        raise ValueError(
            f'learn_distance=True needs at most {MOST_LEARNABLE:,} features, X has {n_features:,}; leave it at "auto".'
        )
    return 1 < n_features <= MOST_LEARNABLE


def check_verbose(value: Any) -> None:
    """False, True, or a function that is called with done, total and words."""
    if not isinstance(value, bool | np.bool_) and not callable(value):
        raise TypeError(f"verbose must be True, False or a function (done, total, words), got {value!r}.")


def check_workers(n_jobs: Any) -> None:
    """None, or a number of workers as joblib counts them: -1 is every core."""
    if n_jobs is not None:
        check_number(n_jobs, "n_jobs", at_least=-MOST_WORKERS, at_most=MOST_WORKERS, integer=True)
        if n_jobs == 0:
            raise ValueError("n_jobs must not be 0; use 1 for a single worker, or -1 for every core.")


def check_choice(value: Any, name: str, choices: Sequence[str]) -> None:
    """One of a few words."""
    if value not in choices:
        raise ValueError(f"{name} must be {' or '.join(map(repr, choices))}, got {value!r}.")


def _as_matrix(values: Any, name: str) -> tuple[FloatArray, pd.DataFrame | None]:
    if values is None:
        # The words in brackets are scikit-learn's, whose tests look for them.
        raise ValueError(
            f"{name} is None; give an array or a DataFrame "
            "(the estimator requires y to be passed, but the target y is None)."
        )
    values = in_memory(values)
    frame = values if isinstance(values, pd.DataFrame) else None
    if frame is not None:
        if frame.columns.has_duplicates:
            duplicate = frame.columns[frame.columns.duplicated()][0]
            raise ValueError(f"{name} has two labels named {duplicate!r}; rename one.")
        refuse_text_and_dates(frame, name)
    if np.ndim(values) == 1:
        raise ValueError(f"{name} has one dimension; give a row per item with a column per label.")
    if isinstance(values, np.ma.MaskedArray):
        values = np.ma.filled(values.astype(float), np.nan)  # a masked entry is hidden, which is NaN here
    from sklearn.utils import check_array

    matrix = check_array(values, dtype=FLOAT_TYPES, ensure_all_finite=False, ensure_min_features=1, input_name=name)
    if matrix.shape[1] < 2:
        raise ValueError(f"{name} has 1 label; a distribution needs two or more label columns.")
    return matrix, frame


def _check_feature_values(X: Any, original: Any, name: str, *, may_be_huge: bool = False) -> None:
    """Features are finite, and their squares, or sums of them, do not overflow unless they may be huge."""
    values = X.data if sparse.issparse(X) else X
    # One pass and no temporary in the usual case: a sum is finite only if (nearly) everything in it is.
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite = np.isfinite(values.sum()) or np.isfinite(values).all()
    if not is_finite:
        raise nonfinite_feature(X, original, name)
    if not may_be_huge and values.size and max(float(values.max()), -float(values.min())) > LARGEST_FEATURE:
        raise huge_feature(X, original, name, LARGEST_FEATURE)


def _check_shares(
    shares: FloatArray,
    frame: pd.DataFrame | None,
    name: str,
    may_be_empty: BoolArray | bool = False,
    *,
    first_row: int = 0,
) -> None:
    for wrong, fault in ((~np.isfinite(shares), "is not a finite number"), (shares < 0, "is negative")):
        if wrong.any():
            raise fault_at(wrong, frame, name, fault, "give a share between 0 and 1", first_row)
    # Subnormal numbers have too few digits to keep a proportion.
    shares[shares < np.finfo(shares.dtype).tiny] = 0
    empty = ~(shares > 0).any(axis=1) & ~np.asarray(may_be_empty)
    if empty.any():
        row = row_name(frame, int(empty.argmax()), first_row)
        raise ValueError(
            f"{row} of {name} has no positive observed share; drop the row, or give at least one positive share."
        )


def _check_row_sums(
    shares: FloatArray, frame: pd.DataFrame | None, name: str, partial: BoolArray, *, over: str = "", first_row: int = 0
) -> None:
    """Rows sum to 1, or to at most 1 where they are ``partial``."""
    sums = shares.sum(axis=1)
    wrong = np.where(partial, sums - 1, np.abs(sums - 1)) > ROW_SUM_TOLERANCE
    if wrong.any():
        i = int(wrong.argmax())
        raise ValueError(
            f"{row_name(frame, i, first_row)} of {name} sums to {sums[i]:.6g}{over}; rows must sum to 1 within "
            f"{ROW_SUM_TOLERANCE:g}. Divide each row by its sum if its entries are counts or shares of a larger whole."
        )


def refuse_unseen_labels(mask: BoolArray, frame: pd.DataFrame | None, name: str) -> None:
    """Refuse labels that no row has."""
    unseen = ~mask.any(axis=0)
    if unseen.any():
        label = label_name(frame, int(unseen.argmax()))
        raise ValueError(
            f"{label} of {name} is hidden in every row, so it cannot be estimated; drop that column, or pass "
            "observed= if its zeros are true ones."
        )
