"""True shares scatter around what the model expects, like shares of nu counts.

Counts where the data have exact zeros, so that a hidden share can be exactly 0 too, and their continuous counterpart
(Dirichlet) where they have none.
"""

import numpy as np

from hidldl.arrays import BoolArray, FloatArray

COUNTS_THAT_SCATTER = 1e9
"""Larger counts scatter by less than a ten-thousandth; they are taken as they are."""
LARGEST_COUNT = 1e200
SMALLEST_MASS = 1e-150
TINY_COUNT = 0.5
"""Counts are hardly ever below this, even where a hidden label inflated the row or the row counts less."""


def has_zeros(shares: FloatArray, observed: BoolArray) -> bool:
    """Whether an observed share is exactly 0."""
    return bool((shares[observed] == 0).any())


def scatters_as_counts(shares: FloatArray, observed: BoolArray, nu: FloatArray) -> bool:
    """Whether observed zeros are like counts of nought, with nu counts in a row: smaller shares than a count are rare.

    A few exact zeros among many tiny shares are tiny shares that were rounded.
    """
    tiny = observed & (shares > 0) & (shares * nu[:, None] < TINY_COUNT)
    return bool((shares[observed] == 0).sum() > tiny.sum())


def scattered_rows(
    D: FloatArray, shares: FloatArray, observed: BoolArray, nu: FloatArray, zeros: bool, rng: np.random.Generator
) -> FloatArray:
    """Complete rows around draws of expected shares, (rows, m, draws).

    They are on the simplex, and their observed part is in its exact proportions.
    """
    observed, shares = observed[:, :, None], shares[:, :, None]
    ratio = np.where(observed, 0, D / observed_mass(D, observed))
    counts, observed_counts = counts_of(ratio, nu, zeros, rng)
    observed_counts = np.where(observed.any(axis=1, keepdims=True), observed_counts, 0)
    total = observed_counts + counts.sum(axis=1, keepdims=True)
    # A row without observed labels may draw no counts at all.
    return np.where(total > 0, (counts + observed_counts * shares) / np.where(total > 0, total, 1), D)


def observed_mass(D: FloatArray, observed: BoolArray) -> FloatArray:
    """The mass of the observed labels in each draw; 1 where there are none, so that shares are their own ratios."""
    mass = np.where(observed, D, 0).sum(axis=1, keepdims=True)
    return np.where(observed.any(axis=1, keepdims=True), np.maximum(mass, SMALLEST_MASS), 1)


def counts_of(
    ratio: FloatArray, nu: FloatArray, zeros: bool, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Pseudo-counts of hidden labels and of all observed ones, which count nu on average; ``ratio`` is their ratio."""
    nu = nu[:, None, None]
    observed_counts = rng.gamma(nu, size=(len(ratio), 1, ratio.shape[2]))
    if not zeros:
        return rng.gamma(np.minimum(nu * ratio, LARGEST_COUNT)), observed_counts
    expected = np.minimum(ratio * observed_counts, LARGEST_COUNT)
    counts = rng.poisson(np.minimum(expected, COUNTS_THAT_SCATTER))
    return np.where(expected < COUNTS_THAT_SCATTER, counts, expected), np.broadcast_to(nu, observed_counts.shape)
