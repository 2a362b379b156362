"""The rows that a measure asks for: those with the smallest expected distance to posterior draws.

The posterior mean is best for the Kullback–Leibler divergence. Other measures have other best rows: relative ones
punish any positive estimate of a true 0, and the Chebyshev distance counts a row's largest error only. A row is
described by its hidden shares and the mass of its observed part, which keeps its proportions; that is a point of a
simplex, on which exponentiated gradients descend.
"""

from collections.abc import Callable

import numpy as np

from hidldl.arrays import BoolArray, FloatArray

N_STEPS = 60
LONGEST_STEP = 0.5
"""Largest change of the logarithm of a share in the first step; steps get shorter with the root of their number."""
SMALLEST = 1e-12


def chebyshev(p: FloatArray, D: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Distance of a row to each draw, (rows, draws), and its derivative by the row, (rows, m, draws)."""
    difference = p[:, :, None] - D
    size = np.abs(difference)
    largest = size.max(axis=1, keepdims=True)
    return largest[:, 0], np.where(size == largest, np.sign(difference), 0)


def clark(p: FloatArray, D: FloatArray) -> tuple[FloatArray, FloatArray]:
    """As ``chebyshev``."""
    relative, slope = _relative(p, D)
    distance = np.sqrt((relative**2).sum(axis=1, keepdims=True))
    return distance[:, 0], relative / np.maximum(distance, SMALLEST) * slope


def canberra(p: FloatArray, D: FloatArray) -> tuple[FloatArray, FloatArray]:
    """As ``chebyshev``."""
    relative, slope = _relative(p, D)
    return np.abs(relative).sum(axis=1), np.sign(relative) * slope


ACTS: dict[str, Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]] = {
    "chebyshev": chebyshev,
    "clark": clark,
    "canberra": canberra,
}


def best_rows(
    measure: str, starts: list[FloatArray], D: FloatArray, weights: FloatArray, shares: FloatArray, observed: BoolArray
) -> FloatArray:
    """Rows with the smallest expected distance to weighted draws D, (rows, m, draws), as found from several starts.

    Shares that are 0 at a start stay 0 on its way.
    """
    best, least = starts[0], np.full(len(D), np.inf)
    for start in starts:
        p = start
        for step in range(N_STEPS):
            distance, gradient = ACTS[measure](p, D)
            expected = (distance * weights).sum(axis=1)
            better = expected < least
            best, least = np.where(better[:, None], p, best), np.where(better, expected, least)
            gradient = (gradient @ weights[:, :, None])[:, :, 0]
            p = _descended(p, gradient, shares, observed, LONGEST_STEP / np.sqrt(1 + step))
    return best


def _descended(
    p: FloatArray, gradient: FloatArray, shares: FloatArray, observed: BoolArray, longest: float
) -> FloatArray:
    """A step down on the simplex of hidden shares and observed mass."""
    mass = np.where(observed, p, 0).sum(axis=1, keepdims=True)
    of_mass = np.where(observed, gradient * shares, 0).sum(axis=1, keepdims=True)
    # In the gradient's mean direction all shares would grow alike, which changes nothing.
    mean = (np.where(observed, 0, p * gradient)).sum(axis=1, keepdims=True) + mass * of_mass
    slopes, slope_of_mass = np.where(observed | (p == 0), 0, gradient - mean), np.where(mass > 0, of_mass - mean, 0)
    largest = np.maximum(np.abs(slopes).max(axis=1, keepdims=True), np.abs(slope_of_mass))
    rate = longest / np.maximum(largest, SMALLEST)
    hidden, mass = np.where(observed, 0, p * np.exp(-rate * slopes)), mass * np.exp(-rate * slope_of_mass)
    rows = hidden + mass * shares
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))


def _relative(p: FloatArray, D: FloatArray) -> tuple[FloatArray, FloatArray]:
    """(p - D) / (p + D), 0 where both are 0, and its derivative by p."""
    total = np.maximum(p[:, :, None] + D, SMALLEST)
    return (p[:, :, None] - D) / total, 2 * D / total**2
