"""From posterior draws of log-shares to shares: point estimates, intervals and imputations.

An annotation is worth nu pseudo-counts, so true shares scatter around softmax(z) like shares of so many counts. Draws
of shares include that scatter: counts where the data have exact zeros, so that a hidden share can be exactly 0 too, and
their continuous counterpart (Dirichlet) where they have none.
"""

from dataclasses import dataclass

import numpy as np

from hidldl.arrays import BoolArray, FloatArray
from hidldl.parallel import Mapper, for_each, row_blocks
from hidldl.recovery.latent import LatentModel, Rows

BLOCK_ENTRIES = 2**20
"""Draws at a time: a few megabytes."""
COUNTS_THAT_SCATTER = 1e9
"""Larger counts scatter by less than a ten-thousandth; they are taken as they are."""
LARGEST_COUNT = 1e200
SMALLEST_MASS = 1e-150


@dataclass(frozen=True)
class Draws:
    """Standard normal draws behind posterior draws: (1, m, draws) shared by all rows, or (rows, m, draws)."""

    normals: FloatArray
    noise: FloatArray
    spread: float = 1.0
    """Factor on the posterior's standard deviations, in log-shares and in counts alike."""

    @classmethod
    def shared(cls, rng: np.random.Generator, n_draws: int, n_labels: int, spread: float = 1.0) -> "Draws":
        """Draws that all rows share, in pairs that cancel: means over them are steadier than over independent ones."""
        half = rng.standard_normal((2, 1, n_labels, (n_draws + 1) // 2))
        normals, noise = np.concatenate([half, -half], axis=3)
        return cls(normals, noise, spread)

    @classmethod
    def independent(
        cls, rng: np.random.Generator, n_rows: int, n_draws: int, n_labels: int, spread: float = 1.0
    ) -> "Draws":
        """Separate draws for each row."""
        normals, noise = rng.standard_normal((2, n_rows, n_labels, n_draws))
        return cls(normals, noise, spread)

    def times(self, spread: float) -> "Draws":
        """The same draws with another spread."""
        return Draws(self.normals, self.noise, spread)

    @property
    def shape(self) -> tuple[int, int]:
        """Labels, and draws per row."""
        return self.normals.shape[1], self.normals.shape[2]


def expected_shares(model: LatentModel, rows: Rows, block: slice, draws: Draws) -> FloatArray:
    """softmax(z) for each draw of a block of rows: (rows, m, draws)."""
    z = model.draw(rows, block, draws.spread * draws.normals, draws.spread * draws.noise)
    z -= z.max(axis=1, keepdims=True)
    np.exp(z, out=z)
    z /= z.sum(axis=1, keepdims=True)
    return z


def mean_rows(model: LatentModel, rows: Rows, draws: Draws, mapper: Mapper = map) -> FloatArray:
    """Posterior mean of each row's shares, with the observed ones in their exact proportions."""
    out = np.empty_like(rows.mean)

    def average(block: slice) -> None:
        mean = expected_shares(model, rows, block, draws).mean(axis=2)
        out[block] = complete(np.where(rows.observed[block], 0, mean), rows.shares[block])

    for_each(mapper, average, draw_blocks(len(out), *draws.shape))
    return out


def relative_rows(model: LatentModel, rows: Rows, draws: Draws, seed: int, mapper: Mapper = map) -> FloatArray:
    """As ``mean_rows``, but 0 where that makes the expected relative error |d - p| / (d + p) smaller.

    For a true 0, Clark and Canberra count any positive estimate, however small, as the largest error.
    """
    out = np.empty_like(rows.mean)

    def decide(block: slice) -> None:
        D = draw_shares(model, rows, block, draws, True, np.random.default_rng([seed, block.start]))
        mean, observed = D.mean(axis=2), rows.observed[block]
        total = D + mean[..., None]
        error = np.divide(np.abs(D - mean[..., None]), total, out=np.zeros_like(D), where=total > 0).mean(axis=2)
        absent = (D > 0).mean(axis=2) < error
        # Some label must hold the row's mass: the observed ones, or else the largest.
        absent &= observed.any(axis=1, keepdims=True) | (mean < mean.max(axis=1, keepdims=True))
        out[block] = complete(np.where(observed | absent, 0, mean), rows.shares[block])

    for_each(mapper, decide, draw_blocks(len(out), *draws.shape))
    return out


def draw_shares(
    model: LatentModel, rows: Rows, block: slice, draws: Draws, zeros: bool, rng: np.random.Generator
) -> FloatArray:
    """Draws of complete rows, (rows, m, draws): on the simplex, and the observed part in its exact proportions."""
    D = expected_shares(model, rows, block, draws)
    observed, shares = rows.observed[block, :, None], rows.shares[block, :, None]
    ratio = np.where(observed, 0, D / _observed_mass(D, observed))
    counts, observed_counts = _scatter(ratio, model, draws, zeros, rng)
    observed_counts = np.where(observed.any(axis=1, keepdims=True), observed_counts, 0)
    total = observed_counts + counts.sum(axis=1, keepdims=True)
    # A row without observed labels may draw no counts at all.
    return np.where(total > 0, (counts + observed_counts * shares) / np.where(total > 0, total, 1), D)


def interval_bounds(
    model: LatentModel, rows: Rows, block: slice, draws: Draws, zeros: bool, rng: np.random.Generator, level: float
) -> tuple[FloatArray, FloatArray]:
    """Low and high bounds (first axis) of each share and of the hidden mass, for a block of rows."""
    D = draw_shares(model, rows, block, draws, zeros, rng)
    hidden = np.where(rows.observed[block, :, None], 0, D).sum(axis=1)
    tails = [(1 - level) / 2, (1 + level) / 2]
    return np.quantile(D, tails, axis=2), np.quantile(hidden, tails, axis=1)


def draw_lost_share(
    model: LatentModel, rows: Rows, draws: Draws, zeros: bool, lost: BoolArray, rng: np.random.Generator
) -> FloatArray:
    """Draws of one hidden label's share, among it and the observed ones: (rows, draws). ``lost`` marks it."""
    out = np.empty((len(lost), draws.shape[1]))
    for block in draw_blocks(len(lost), *draws.shape):
        D = expected_shares(model, rows, block, draws)
        share = np.where(lost[block, :, None], D, 0).sum(axis=1, keepdims=True)
        ratio = share / _observed_mass(D, rows.observed[block, :, None])
        counts, observed_counts = _scatter(ratio, model, draws, zeros, rng)
        out[block] = (counts / (counts + observed_counts))[:, 0]
    return out


def complete(hidden: FloatArray, shares: FloatArray) -> FloatArray:
    """Rows with these hidden shares, in which the observed labels take the rest, in their own proportions."""
    rows = hidden + np.maximum(1 - hidden.sum(axis=1, keepdims=True), 0) * shares
    return rows / rows.sum(axis=1, keepdims=True)


def draw_blocks(n_rows: int, n_labels: int, n_draws: int) -> list[slice]:
    """Blocks of rows whose draws fit into a few megabytes."""
    return row_blocks(n_rows, max(1, BLOCK_ENTRIES // (n_labels * n_draws)))


def _observed_mass(D: FloatArray, observed: BoolArray) -> FloatArray:
    """The mass of the observed labels in each draw; 1 where there are none, so that shares are their own ratios."""
    mass = np.where(observed, D, 0).sum(axis=1, keepdims=True)
    return np.where(observed.any(axis=1, keepdims=True), np.maximum(mass, SMALLEST_MASS), 1)


def _scatter(
    ratio: FloatArray, model: LatentModel, draws: Draws, zeros: bool, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Pseudo-counts of hidden labels and of all observed ones, which count nu on average; ``ratio`` is their ratio.

    A spread s leaves nu / s² counts: shares of counts scatter by one over the root of their number.
    """
    nu = model.parameters.nu / draws.spread**2
    observed_counts = rng.gamma(nu, size=(len(ratio), 1, ratio.shape[2]))
    if not zeros:
        return rng.gamma(np.minimum(nu * ratio, LARGEST_COUNT)), observed_counts
    expected = np.minimum(ratio * observed_counts, LARGEST_COUNT)
    counts = rng.poisson(np.minimum(expected, COUNTS_THAT_SCATTER))
    return np.where(expected < COUNTS_THAT_SCATTER, counts, expected), np.full_like(observed_counts, nu)
