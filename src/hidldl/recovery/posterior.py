"""From posterior draws of log-shares to shares: point estimates, intervals and imputations."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy.special import ndtri

from hidldl.arrays import BoolArray, FloatArray, IntArray
from hidldl.parallel import Mapper, for_each, row_blocks
from hidldl.recovery.absence import Absences
from hidldl.recovery.acts import best_rows
from hidldl.recovery.latent import TIGHT, LatentModel, modes
from hidldl.recovery.lostvotes import LEAST_CHANCE, TOLERANCE, VoteMeans, VoteSums, chances_of_votes, shares_of_votes
from hidldl.recovery.rows import Rows
from hidldl.recovery.scatter import scattered_rows
from hidldl.simplex import clip_and_close

BLOCK_ENTRIES = 2**20
"""Draws at a time: a few megabytes."""
MEAN_SEED = 11
FEWEST_RESAMPLED = 64
"""Draws from which samples are taken where draws have weights."""
MASK_SEED, N_MASKS = 13, 16
"""Masks that are drawn for each row whose zeros may be hidden or true."""
VOTE_DRAWS = 128
"""Draws of each row, over all of its masks, by which its votes are weighed."""
EVEN = 1e-12
"""Weights that differ by less are the same."""


@dataclass(frozen=True)
class Draws:
    """Standard normal draws behind posterior draws: (1, m, draws) shared by all rows, or (rows, m, draws)."""

    normals: FloatArray
    noise: FloatArray
    spread: float = 1.0
    """Factor on the posterior's standard deviations, in log-shares and in counts alike."""

    @classmethod
    def shared(cls, rng: np.random.Generator, n_draws: int, n_labels: int, spread: float = 1.0) -> "Draws":
        """Draws that all rows share."""
        return replace(cls.paired(rng, 1, n_draws, n_labels), spread=spread)

    @classmethod
    def paired(cls, rng: np.random.Generator, n_rows: int, n_draws: int, n_labels: int) -> "Draws":
        """Draws for each row, in pairs that cancel: means over them are steadier than over independent ones."""
        half = rng.standard_normal((2, n_rows, n_labels, (n_draws + 1) // 2))
        normals, noise = np.stack([half, -half], axis=-1).reshape(2, n_rows, n_labels, -1)
        return cls(normals, noise)

    @classmethod
    def independent(
        cls, rng: np.random.Generator, n_rows: int, n_draws: int, n_labels: int, spread: float = 1.0
    ) -> "Draws":
        """Separate draws for each row."""
        normals, noise = rng.standard_normal((2, n_rows, n_labels, n_draws))
        return cls(normals, noise, spread)

    def times(self, spread: float) -> "Draws":
        """The same draws with another spread."""
        return replace(self, spread=spread)

    def lots(self, n_masks: int, rng: np.random.Generator) -> FloatArray:
        """Numbers between 0 and 1 that decide about zeros, (rows or 1, m, masks): evenly apart, in random order."""
        rows_and_labels = self.normals.shape[:2]
        # Rows that share draws share lots too, so that what a row gets does not depend on the rows beside it.
        rng = np.random.default_rng(MASK_SEED) if rows_and_labels[0] == 1 else rng
        order = rng.permuted(np.broadcast_to(np.arange(n_masks), (*rows_and_labels, n_masks)), axis=2)
        return (order + rng.random((*rows_and_labels, 1))) / n_masks

    def parts(self, n_parts: int) -> list["Draws"]:
        """The draws in parts of about the same size; pairs stay together where there are enough of them."""
        unit = 2 if self.shape[1] >= 2 * n_parts else 1
        ends = unit * np.linspace(0, self.shape[1] // unit, n_parts + 1).round().astype(int)
        ends[-1] = self.shape[1]
        pieces = [slice(*between) for between in pairwise(ends)]
        return [replace(self, normals=self.normals[..., at], noise=self.noise[..., at]) for at in pieces]

    @property
    def shape(self) -> tuple[int, int]:
        """Labels, and draws per row."""
        return self.normals.shape[1], self.normals.shape[2]


def drawn_sets(absences: Absences, part: Rows, draws: Draws, rng: np.random.Generator) -> tuple[IntArray, FloatArray]:
    """The set of labels of each draw of rows, and standard normal noise, both (rows, draws)."""
    lots = draws.lots(draws.shape[1], rng)
    levels, noise = (np.broadcast_to(lots[:, j], (len(part), draws.shape[1])) for j in range(2))
    assert part.logits is not None
    likely = absences.posterior(part.logits, part.shares, part.observed)
    return _first_above(np.cumsum(likely, axis=1), levels), ndtri(noise)


def weighted_shares(
    model: LatentModel, rows: Rows, block: slice, draws: Draws, zeros: bool | None, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draws of the shares of a block of rows, (rows, m, draws), and their weights (rows, draws).

    With ``zeros`` None, shares are what the model expects, softmax(z). Else they scatter around that. Where zeros may
    be hidden or true, some draws are of rows in which they are hidden, and some of rows in which they are true.
    """
    part = rows.part(block)
    if not part.has_doubts:
        D, own = _weighted_shares(model, part, draws, zeros, rng)
        return D, own if model.estimates.votes is None else own / own.sum(axis=1, keepdims=True)
    shares, weights = [], []
    for known, own_draws in masked_rows(model, part, draws, rng):
        D, own_weights = _weighted_shares(model, known, own_draws, zeros, rng)
        seen = known.observed[:, :, None]
        # What is observed is in its own proportions in every draw, and true zeros are 0.
        shares.append(np.where(seen, np.where(seen, D, 0).sum(axis=1, keepdims=True) * part.shares[:, :, None], D))
        weights.append(own_weights * own_draws.shape[1])
    total = np.concatenate(weights, axis=1)
    return np.concatenate(shares, axis=2), total / total.sum(axis=1, keepdims=True)


def masked_rows(model: LatentModel, part: Rows, draws: Draws, rng: np.random.Generator) -> Iterator[tuple[Rows, Draws]]:
    """Rows whose zeros may be hidden or true, with masks that are drawn, and the draws for each."""
    parts = draws.parts(min(N_MASKS, draws.shape[1]))
    for own_draws, observed in zip(parts, part.drawn_masks(draws.lots(len(parts), rng)), strict=True):
        known = part.with_mask(observed)
        # Kinds stay as they are: a mask that is drawn is no evidence.
        modes(model.estimates, known, TIGHT)
        yield known, own_draws


def predicted_votes(model: LatentModel, rows: Rows, n_votes: int) -> FloatArray:
    """How likely each number of votes is left in rows whose masks are known, 1 to all: (rows, votes)."""
    draws = Draws.shared(np.random.default_rng(MEAN_SEED), VOTE_DRAWS, rows.shares.shape[1])
    predicted = np.empty((len(rows), n_votes))
    for block in draw_blocks(len(rows), *draws.shape):
        rng = np.random.default_rng([MEAN_SEED, block.start])
        D, weights = weighted_shares(model, rows, block, draws, True if model.needs_zeros else None, rng)
        predicted[block] = _average(chances_of_votes(D, rows.observed[block], n_votes), weights)
    return predicted


def weigh_votes(model: LatentModel, rows: Rows, mapper: Mapper = map) -> VoteMeans:
    """What the votes that rows may have left say about their zeros."""
    n_rows, n_labels = rows.shares.shape
    draws = Draws.shared(np.random.default_rng(MEAN_SEED), VOTE_DRAWS, n_labels)

    def weigh(block: slice) -> VoteMeans:
        part, zeros, votes = rows.part(block), model.estimates.zeros, model.estimates.votes
        assert zeros is not None
        assert votes is not None
        sums = VoteSums(votes.weights(part.shares), zeros.rates, votes.independent)
        for known, own_draws in masked_rows(model, part, draws, np.random.default_rng(MEAN_SEED)):
            D, weights = model.draw(known, own_draws.normals, own_draws.noise)
            sums.add(D, known.observed, weights)
        return sums.means()

    return VoteMeans.joined(list(mapper(weigh, draw_blocks(n_rows, n_labels, VOTE_DRAWS))))


def _weighted_shares(
    model: LatentModel, part: Rows, draws: Draws, zeros: bool | None, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draws of rows whose masks are known; where votes are known too, the sum of weights is how likely those are."""
    spread = draws.spread
    D, weights = model.draw(part, spread * draws.normals, spread * draws.noise)
    curve, votes = model.estimates.curve, model.estimates.votes
    if (absences := model.estimates.absences) is not None:
        if zeros is not None and votes is None:
            there = absences.gap.there(part.shares, part.observed)
            D = scattered_rows(D, *there, part.nu / spread**2, False, rng)
        chosen, noise = drawn_sets(absences, part, draws, rng)
        D, weights = absences.completed(D, weights, chosen, spread * noise, part.shares, part.observed)
        if votes is None:
            return D, weights
    if votes is not None:
        chances = chances_of_votes(D, part.observed, votes.number) * votes.weights(part.shares)[:, :, None]
        weights = weights * np.maximum(chances.sum(axis=1), LEAST_CHANCE)
        D = shares_of_votes(D, part.shares, part.observed, chances, None if zeros is None else rng)
        if curve is not None:
            by_mask = curve.weigh(weights, D, part.shares, part.observed)
            weights = by_mask.weights * np.exp(by_mask.evidence)[:, None]
        return D, weights
    if curve is not None and not curve.zeros:
        # Weights are those of the posterior as it is, or a wide spread would be weighed away.
        base = D if spread == 1 else model.draw(part, draws.normals, draws.noise)[0]
        weights = curve.weigh(weights, base, part.shares, part.observed).weights
    if zeros is not None:
        D = scattered_rows(D, part.shares, part.observed, part.nu / spread**2, zeros, rng)
    if curve is not None and curve.zeros:
        # An exact zero is overlooked more than a small share, so what scatters counts.
        weights = curve.weigh(weights, D, part.shares, part.observed).weights
    return D, weights


def mean_rows(
    model: LatentModel, rows: Rows, draws: Draws, mapper: Mapper = map, among: BoolArray | None = None
) -> FloatArray:
    """Posterior mean of each row's shares, with the observed ones in their exact proportions.

    Or of the shares ``among`` some of the labels, which is not their mean as a part of the row.
    """
    out = np.empty_like(rows.mean)

    def average(block: slice) -> None:
        rng = np.random.default_rng([MEAN_SEED, block.start])
        D, weights = weighted_shares(model, rows, block, draws, True if model.needs_zeros else None, rng)
        if among is not None:
            D = clip_and_close(np.where(among[block, :, None], D, 0))
        mean = _average(D, weights)
        hidden = np.where(rows.observed[block], 0, mean)
        if model.needs_zeros or model.can_be_zero:
            # A share that no draw has is less than one count among them all, but not 0.
            likely = np.where(rows.observed[block], 0, np.maximum(mean, 0.1 / (draws.shape[1] * rows.nu[block, None])))
            hidden = likely if model.estimates.votes is None else _with_mass_of(hidden, likely)
        out[block] = complete(hidden, rows.shares[block])

    for_each(mapper, average, draw_blocks(len(out), *draws.shape))
    return out


def relative_rows(model: LatentModel, rows: Rows, draws: Draws, seed: int, mapper: Mapper = map) -> FloatArray:
    """As ``mean_rows``, but 0 where that makes the expected relative error |d - p| / (d + p) smaller.

    For a true 0, Clark and Canberra count any positive estimate, however small, as the largest error.
    """
    out = np.empty_like(rows.mean)

    def decide(block: slice) -> None:
        D, weights = weighted_shares(model, rows, block, draws, True, np.random.default_rng([seed, block.start]))
        mean, observed = _average(D, weights), rows.observed[block]
        total = D + mean[..., None]
        error = np.divide(np.abs(D - mean[..., None]), total, out=np.zeros_like(D), where=total > 0)
        absent = _average((D > 0).astype(np.float64), weights) < _average(error, weights)
        # Some label must hold the row's mass: the observed ones, or else the largest.
        absent &= observed.any(axis=1, keepdims=True) | (mean < mean.max(axis=1, keepdims=True))
        out[block] = complete(np.where(observed | absent, 0, mean), rows.shares[block])

    for_each(mapper, decide, draw_blocks(len(out), *draws.shape))
    return out


def acted_rows(
    model: LatentModel, rows: Rows, draws: Draws, zeros: bool, measure: str, seed: int, mapper: Mapper = map
) -> FloatArray:
    """The rows with the smallest expected distance, in a measure, to posterior draws."""
    starts = [mean_rows(model, rows, draws, mapper)]
    if zeros:
        starts.append(relative_rows(model, rows, draws, seed, mapper))
    out = np.empty_like(rows.mean)

    def act(block: slice) -> None:
        D, weights = weighted_shares(model, rows, block, draws, zeros, np.random.default_rng([seed, block.start]))
        labels = rows.shares[block], rows.observed[block]
        out[block] = best_rows(measure, [start[block] for start in starts], D, weights, *labels)

    for_each(mapper, act, draw_blocks(len(out), *draws.shape))
    return out


def resampled(D: FloatArray, weights: FloatArray, n_samples: int, rng: np.random.Generator) -> FloatArray:
    """So many of each row's draws, (rows, m, samples), each drawn with its weight."""
    chosen = _first_above(np.cumsum(weights, axis=1)[:, None], rng.random((len(D), 1, n_samples)))
    return np.take_along_axis(D, chosen, axis=2)


def sampled_tables(
    model: LatentModel, rows: Rows, n_samples: int, spread: float, zeros: bool, seed: int, mapper: Mapper = map
) -> FloatArray:
    """Complete tables drawn from the posterior, (samples, rows, m)."""
    n_rows, n_labels = rows.shares.shape
    out = np.empty((n_samples, n_rows, n_labels))
    n_draws = n_samples if model.has_even_draws else max(4 * n_samples, FEWEST_RESAMPLED)

    def draw(block: slice) -> None:
        rng = np.random.default_rng([seed, block.start])
        draws = Draws.independent(rng, len(rows.shares[block]), n_draws, n_labels, spread)
        D, weights = weighted_shares(model, rows, block, draws, zeros, rng)
        if n_draws > n_samples:
            D = resampled(D, weights, n_samples, rng)
        out[:, block] = D.transpose(2, 0, 1)

    for_each(mapper, draw, draw_blocks(n_rows, n_labels, n_draws))
    return out


def bounds_of_rows(
    model: LatentModel,
    rows: Rows,
    draws: Draws,
    zeros: bool,
    seed: int,
    levels: tuple[float, float],
    mapper: Mapper = map,
) -> tuple[FloatArray, FloatArray]:
    """Quantiles (first axis) of each share and of the hidden mass of all rows."""
    bounds, mass = np.empty((2, *rows.shares.shape)), np.empty((2, len(rows.shares)))

    def bound(block: slice) -> None:
        bounds[:, block], mass[:, block] = interval_bounds(model, rows, block, draws, zeros, seed, levels)

    for_each(mapper, bound, draw_blocks(len(rows.shares), *draws.shape))
    return bounds, mass


def interval_bounds(
    model: LatentModel, rows: Rows, block: slice, draws: Draws, zeros: bool, seed: int, levels: tuple[float, float]
) -> tuple[FloatArray, FloatArray]:
    """As ``bounds_of_rows``, for a block of rows."""
    D, weights = weighted_shares(model, rows, block, draws, zeros, np.random.default_rng([seed, block.start]))
    hidden = np.where(rows.observed[block, :, None], 0, D).sum(axis=1, keepdims=True)
    bounds = quantiles(np.concatenate([D, hidden], axis=1), weights, levels)
    if model.estimates.votes is not None:
        # Shares of votes come rounded, so an interval of one value would miss them.
        bounds = np.clip(bounds + np.array([-TOLERANCE, TOLERANCE])[:, None, None], 0, 1)
    return bounds[:, :, :-1], bounds[:, :, -1]


def quantiles(values: FloatArray, weights: FloatArray, levels: tuple[float, float]) -> FloatArray:
    """Quantiles (first axis) over weighted draws, the last axis of (rows, labels, draws)."""
    if np.ptp(weights) < EVEN:
        return np.asarray(np.quantile(values, levels, axis=2))
    order = np.argsort(values, axis=2)
    values = np.take_along_axis(values, order, axis=2)
    below = np.cumsum(np.take_along_axis(weights[:, None], order, axis=2), axis=2)
    at = _first_above(below, np.broadcast_to(levels, (*values.shape[:2], 2)))
    return np.moveaxis(np.take_along_axis(values, at, axis=2), 2, 0)


def draw_lost_share(
    model: LatentModel, rows: Rows, draws: Draws, zeros: bool, lost: BoolArray, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Draws of one hidden label's share, among it and the observed ones, and their weights: both (rows, draws).

    ``lost`` marks the label.
    """
    out, weights = np.empty((2, len(lost), draws.shape[1]))
    for block in draw_blocks(len(lost), *draws.shape):
        part, is_lost = rows.part(block), lost[block, :, None]
        has_counts = model.needs_zeros or model.estimates.votes is not None
        D, weights[block] = weighted_shares(model, rows, block, draws, True if has_counts else None, rng)
        if not has_counts:
            # Of the hidden labels only the lost one has to scatter.
            D = np.where(is_lost | part.observed[:, :, None], D, 0)
            D = scattered_rows(D, part.shares, part.observed, part.nu / draws.spread**2, zeros, rng)
        share = np.where(is_lost, D, 0).sum(axis=1)
        out[block] = share / (share + np.where(part.observed[:, :, None], D, 0).sum(axis=1))
    return out, weights


def complete(hidden: FloatArray, shares: FloatArray) -> FloatArray:
    """Rows with these hidden shares, in which the observed labels take the rest, in their own proportions."""
    rows = hidden + (1 - hidden.sum(axis=1, keepdims=True)).clip(min=0) * shares
    return rows / rows.sum(axis=1, keepdims=True)


def draw_blocks(n_rows: int, n_labels: int, n_draws: int) -> list[slice]:
    """Blocks of rows whose draws fit into a few megabytes."""
    return row_blocks(n_rows, max(1, BLOCK_ENTRIES // (n_labels * n_draws)))


def _with_mass_of(hidden: FloatArray, other: FloatArray) -> FloatArray:
    """The other hidden shares, with the mass that these have: where all votes are there, labels hold none."""
    mass, total = hidden.sum(axis=1, keepdims=True), other.sum(axis=1, keepdims=True)
    return np.asarray(other * (mass / np.where(total > 0, total, 1)))


def _average(values: FloatArray, weights: FloatArray) -> FloatArray:
    """Mean over weighted draws: (rows, m, draws) and (rows, draws) give (rows, m)."""
    return np.asarray((values @ weights[:, :, None])[:, :, 0])


def _first_above(below: FloatArray, levels: FloatArray) -> IntArray:
    """Position of the first cumulative weight, along the last axis, that reaches each level."""
    n_draws = below.shape[-1]
    # Weights end at 1, so rows that are two apart can be searched as one long list.
    apart = 2.0 * np.arange(below.size // n_draws).reshape(*below.shape[:-1], 1)
    positions = np.searchsorted((below + apart).ravel(), levels + apart)
    return np.clip(positions - (n_draws * apart / 2).astype(np.int64), 0, n_draws - 1)
