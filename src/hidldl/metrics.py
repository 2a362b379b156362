"""The six measures of label distribution learning, each with its direction.

A measure compares two matrices row by row. ``measure(D_true, D_pred)`` is the mean over rows,
``measure.rows(D_true, D_pred)`` the value of each row.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import rel_entr

from hidldl.arrays import FloatArray
from hidldl.validation import check_distributions, check_matrix_pair


@dataclass(frozen=True)
class Measure:
    """A measure of how near ``D_pred`` is to ``D_true``, with the direction in which it improves."""

    name: str
    higher_is_better: bool
    description: str
    compute: Callable[[FloatArray, FloatArray], FloatArray]

    def __call__(self, D_true: Any, D_pred: Any) -> float:
        return float(self.rows(D_true, D_pred).mean())

    def rows(self, D_true: Any, D_pred: Any) -> FloatArray:
        """The measure of each row."""
        return self.compute(*check_matrix_pair(D_true, D_pred))

    @property
    def arrow(self) -> str:
        """An arrow for table heads: which way is better."""
        return "↑" if self.higher_is_better else "↓"


def score(D_true: Any, D_pred: Any, measures: str | Iterable[str] | None = None) -> dict[str, float]:
    """Mean of each measure over the rows.

    Parameters
    ----------
    D_true : array or DataFrame of shape (n, m)
        Ground truth: rows of shares of 0 or more that sum to 1 within 1e-3.
    D_pred : array or DataFrame of shape (n, m)
        What to compare with it, taken as it is, also off the simplex, where a method's own matrix
        (``raw_distributions_``) may be. Divide rows of percentages or counts by their sums first.
    measures : name or names, optional
        Some of ``MEASURES``; all of them by default.

    Examples
    --------
    >>> from hidldl import score
    >>> score([[0.5, 0.5, 0.0]], [[0.5, 0.25, 0.25]], measures=["chebyshev", "intersection"])
    {'chebyshev': 0.25, 'intersection': 0.75}
    """
    if isinstance(measures, str):
        measures = [measures]
    names = list(MEASURES) if measures is None else list(measures)
    unknown = [name for name in names if name not in MEASURES]
    if unknown:
        raise ValueError(f"measures has unknown names {unknown}; choose from {list(MEASURES)}.")
    true, pred = check_matrix_pair(D_true, D_pred)
    check_distributions(D_true, name="D_true")
    return {name: float(MEASURES[name].compute(true, pred).mean()) for name in names}


def _chebyshev(true: FloatArray, pred: FloatArray) -> FloatArray:
    return np.asarray(np.abs(true - pred).max(axis=1))


def _clark(true: FloatArray, pred: FloatArray) -> FloatArray:
    return np.asarray(np.sqrt((_relative_difference(true, pred) ** 2).sum(axis=1)))


def _canberra(true: FloatArray, pred: FloatArray) -> FloatArray:
    return np.asarray(_relative_difference(true, pred).sum(axis=1))


def _kl(true: FloatArray, pred: FloatArray) -> FloatArray:
    return np.asarray(rel_entr(true, pred).sum(axis=1))


def _cosine(true: FloatArray, pred: FloatArray) -> FloatArray:
    norms = np.linalg.norm(true, axis=1) * np.linalg.norm(pred, axis=1)
    products = (true * pred).sum(axis=1)
    # Rounding can push the cosine of a row with itself past 1.
    return np.clip(np.divide(products, norms, out=np.zeros_like(norms), where=norms > 0), -1, 1)


def _intersection(true: FloatArray, pred: FloatArray) -> FloatArray:
    return np.asarray(np.minimum(true, pred).sum(axis=1))


def _relative_difference(true: FloatArray, pred: FloatArray) -> FloatArray:
    """|d - p| / (|d| + |p|), with 0/0 = 0; the absolute values matter only off the simplex."""
    difference, total = np.abs(true - pred), np.abs(true) + np.abs(pred)
    return np.divide(difference, total, out=np.zeros_like(total), where=total > 0)


MEASURES: dict[str, Measure] = {
    measure.name: measure
    for measure in (
        Measure("chebyshev", False, "largest difference, max |d - p|", _chebyshev),
        Measure("clark", False, "sqrt of the sum of ((d - p) / (d + p))²", _clark),
        Measure("canberra", False, "sum of |d - p| / (d + p)", _canberra),
        Measure("kl", False, "Kullback–Leibler divergence, sum of d log(d / p)", _kl),
        Measure("cosine", True, "cosine of the angle between d and p", _cosine),
        Measure("intersection", True, "shared mass, sum of min(d, p)", _intersection),
    )
}
"""The measures by name, in the order in which tables show them."""
