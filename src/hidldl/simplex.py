"""Pure functions on the rows of a matrix: closure, projection and the proportional restore."""

import numpy as np

from hidldl.arrays import BoolArray, FloatArray, namespace


def clip_and_close(D: FloatArray) -> FloatArray:
    """The paper's map onto the simplex (Eq. 15): negative entries to 0, then divide by the row's sum.

    It keeps proportions, which the Euclidean projection does not. A row with nothing positive becomes uniform.
    """
    xp = namespace(D)
    D = D.clip(min=0)
    sums = D.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return xp.where(sums > 0, D / sums, xp.full_like(sums, 1 / D.shape[1]))


def project_onto_simplex(Y: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """The nearest rows on the simplex: minimise sum_j w_j (q_j - y_j)² over rows q; all weights are 1 by default.

    The solution is q_j = max(y_j - t / w_j, 0), with t such that the row sums to 1. Label j stays positive while
    t < w_j y_j, so sorting by w_j y_j finds which labels do, for all rows at once.
    """
    # A shift by t / w does not change the result; with the largest w y at 0, large entries lose no digits.
    if weights is None:
        Y = Y - Y.max(axis=1, keepdims=True)
        breakpoints = -np.sort(-Y, axis=1)
        thresholds = (breakpoints.cumsum(axis=1) - 1) / np.arange(1, Y.shape[1] + 1, dtype=Y.dtype)
    else:
        Y = Y - (weights * Y).max(axis=1, keepdims=True) / weights
        order = np.argsort(-weights * Y, axis=1)
        sums = np.take_along_axis(Y, order, axis=1).cumsum(axis=1)
        inverse_sums = np.take_along_axis(1 / weights, order, axis=1).cumsum(axis=1)
        breakpoints = np.take_along_axis(weights * Y, order, axis=1)
        thresholds = (sums - 1) / inverse_sums
    # With k labels left positive the threshold is the k-th; k is the last for which it is below the k-th breakpoint.
    last = Y.shape[1] - 1 - (thresholds < breakpoints)[:, ::-1].argmax(axis=1)
    threshold = thresholds[np.arange(len(Y)), last][:, None]
    projected = np.maximum(Y - (threshold if weights is None else threshold / weights), 0)
    return projected / projected.sum(axis=1, keepdims=True)


def restore_proportions(D: FloatArray, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
    """Rows on the simplex that are exactly proportional to ``D_obs`` where observed, as near ``D`` as that allows.

    The observed part of a row is k times the row of ``D_obs``, k by least squares (the paper's Eq. 18 without
    the multiplier); the hidden part keeps its own proportions and takes the rest, 1 - k. A row without hidden
    mass is its observed row. k stays positive, since the observed labels hold some mass.
    """
    hidden = np.where(observed, 0, np.maximum(D, 0)).astype(D.dtype, copy=False)
    hidden_sum = hidden.sum(axis=1, keepdims=True)
    has_hidden = hidden_sum > np.finfo(D.dtype).tiny
    least_squares = (D * D_obs).sum(axis=1, keepdims=True) / (D_obs**2).sum(axis=1, keepdims=True)
    scaling = np.where(has_hidden, np.clip(least_squares, smallest_scaling(D), 1), 1)
    hidden_shares = np.divide(hidden, hidden_sum, out=np.zeros_like(hidden), where=has_hidden)
    return (scaling * D_obs + (1 - scaling) * hidden_shares).astype(D.dtype, copy=False)


def smallest_scaling(D: FloatArray) -> float:
    """The least observed mass of a row: large enough to divide by without losing the proportions."""
    return float(np.sqrt(np.finfo(D.dtype).eps))
