"""Directions of the features along which the labels change.

The mean of the log-shares is a smooth function of the features. Most features say little about it, and rows that differ
in these only should count as neighbours. The gradients of a first fit tell which combinations of the features matter:
the principal axes of the gradients at many rows, each as long as the function changes along it (the average gradient
outer product; Radhakrishnan, Beaglehole, Pandit and Belkin, Science 2024). Distances along them are added to the plain
ones, which keep a part: a first fit is no proof that a feature says nothing.
"""

from typing import Any

import numpy as np
from scipy import sparse

from hidldl.arrays import FloatArray
from hidldl.recovery.kernelmean import Landmarks

FEWEST_ROWS, MOST_ROWS, MOST_NUMBERS = 50, 1500, 2**20
"""Rows at which gradients are taken: as many as keep the gradients' numbers below the last."""
MOST_OUTPUTS = 16
"""Principal components of the labels that have gradients."""
SMALLEST = 1e-3
"""Directions along which the function changes less than this, squared and beside the first, are left out."""
PART_LEARNED = 3.0
"""How much the squared distances along the directions count beside the plain ones, which count 1."""


def telling_directions(landmarks: Landmarks, width: float, weights: FloatArray, X: FloatArray) -> FloatArray:
    """Combinations of scaled features, in columns, along which the labels change: none if they do not change at all.

    The labels are sums of kernels around the landmarks with these ``weights``, (landmarks, labels).
    """
    weights = _outputs(weights)
    n_chosen = int(np.clip(MOST_NUMBERS // (X.shape[1] * weights.shape[1]), FEWEST_ROWS, MOST_ROWS))
    rows = _dense(landmarks.scaled(X[:: -(-X.shape[0] // n_chosen)]))
    squares, axes = _principal_axes(_gradients(landmarks, width, weights, rows))
    telling = squares > SMALLEST * squares.max(initial=0)
    directions = axes[:, telling] * np.sqrt(squares[telling] / squares.max(initial=1e-300))
    own = (rows @ directions).var(axis=0).sum()
    if not own > 0:
        return np.empty((X.shape[1], 0))
    return np.asarray(directions * np.sqrt(PART_LEARNED * rows.var(axis=0).sum() / own))


def _outputs(weights: FloatArray) -> FloatArray:
    """The weights for the differences between labels that vary most."""
    between = weights - weights.mean(axis=1, keepdims=True)
    _, directions = np.linalg.eigh(between.T @ between)
    return np.asarray(between @ directions[:, ::-1][:, :MOST_OUTPUTS])


def _gradients(landmarks: Landmarks, width: float, weights: FloatArray, rows: FloatArray) -> FloatArray:
    """Gradients of the sums of kernels at some rows, up to a common factor."""
    closeness, centers = np.exp(-landmarks.squared_distances_of(rows) / width), _dense(landmarks.rows)
    return np.concatenate(
        [(closeness @ weight)[:, None] * rows - (closeness * weight) @ centers for weight in weights.T]
    )


def _dense(rows: Any) -> FloatArray:
    return np.asarray(rows.toarray() if sparse.issparse(rows) else rows)


def _principal_axes(rows: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sums of squares along the principal axes of rows around 0, and the axes in columns."""
    if rows.shape[0] >= rows.shape[1]:
        squares, axes = np.linalg.eigh(rows.T @ rows)
        return np.maximum(squares, 0), axes
    squares, sides = np.linalg.eigh(rows @ rows.T)
    large = squares > SMALLEST * squares[-1]
    return squares[large], rows.T @ (sides[:, large] / np.sqrt(squares[large]))
