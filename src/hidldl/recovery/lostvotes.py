"""How many votes a row lost, with the labels that were overlooked.

Where every complete row has the same number of votes, the shares that are left tell how many are left: 1/3 and 2/3 are
of 3, 6 or 9 votes, so at least one of ten was lost, on a label that was overlooked. A row that has all of its votes
lost none, whatever was overlooked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from scipy.special import expit, gammaln, logit, xlog1py, xlogy

from hidldl.arrays import BoolArray, FloatArray, IntArray

MOST_VOTES = 40
"""More votes cannot be told from any other shares."""
TOLERANCE = 1e-4
"""How far shares may be from those of votes: files have four decimals or more."""
EXACT_ROWS, FEWEST_ROWS = 0.99, 50
"""Rows that must be shares of votes, where all seem to be: the least part of them, and the least number."""
MOST_ROWS = 0.5
SEVERAL_LABELS = 0.2
"""Rows that must have three labels or more, where votes may be split."""
COMMON, FEWEST_COMMON = 1e-3, 3
"""A complete row has the largest number of votes that this part of the rows have, or more, and at least this many."""
DOUBT = 0.03
"""How likely a row looks like shares of votes by chance, if none were."""
SPLIT = 0.5
"""The part of the votes that count as independent where some are split: people who split votes likely have several."""
FACTOR_ROUNDS = 20
LEAST_CHANCE = 1e-12
"""Draws of rows that fit no number of votes keep this weight, so that every row has some."""


@dataclass(frozen=True)
class Votes:
    """How many votes every complete row has.

    ``doubt`` is how likely a row that seems to have such shares has others. ``independent`` is the part of the votes
    that tell as much as all of them: less than 1 where a person has several.
    """

    number: int
    doubt: float = 0.0
    independent: float = 1.0

    @classmethod
    def of(cls, shares: FloatArray) -> "Votes | None":
        """The votes behind these shares, or None if they are not the votes of a few people.

        In some rows votes may be split, so that shares are finer than elsewhere. These can look like more votes than
        there are, so the most common number counts, of rows with three labels: with two, many do by chance. Where few
        rows have three, hardly any is complete, and the most common number is not that of complete rows.
        """
        n_labels = (shares > 0).sum(axis=1)
        fewest, _ = _fewest_votes(shares[n_labels > 1])
        if len(fewest) >= max(FEWEST_ROWS, EXACT_ROWS * (n_labels > 1).sum()):
            common = np.bincount(fewest) >= max(FEWEST_COMMON, COMMON * len(fewest))
            return cls(int(np.flatnonzero(common).max()))
        several = n_labels > 2
        fewest, others = _fewest_votes(shares[several])
        has_enough = several.sum() >= SEVERAL_LABELS * (n_labels > 0).sum()
        if has_enough and len(fewest) >= max(FEWEST_ROWS, MOST_ROWS * several.sum()):
            return cls(int(np.bincount(fewest).argmax()), DOUBT * others, SPLIT)
        return None

    @property
    def is_sound(self) -> bool:
        """Whether there can be such votes; those of a damaged file may not."""
        return 1 <= self.number <= MOST_VOTES and 0 <= self.doubt < 1 and 0 < self.independent <= 1

    def weights(self, shares: FloatArray) -> FloatArray:
        """How likely these shares are if so many votes are left, 1 to all of them: (rows, number)."""
        return np.maximum(possible_votes(shares, self.number), self.doubt)

    def are_all_needed(self, shares: FloatArray) -> BoolArray:
        """Which rows can be the shares of all votes only."""
        possible = possible_votes(shares, self.number)
        return possible[:, -1] & (possible.sum(axis=1) == 1)

    def are_predicted(self, predicted: FloatArray, shares: FloatArray) -> bool:
        """Whether a model predicts, (rows, number), in which rows many votes are left, where that is sure.

        If rows simply had different numbers of votes, how often each number occurs would tell as much as the model.
        A model that expects too many or too few of them in all rows may still tell rows apart, so each number gets a
        factor with which it is expected as often as it occurs.
        """
        possible = possible_votes(shares, self.number)
        is_sure = possible.sum(axis=1) == 1
        if is_sure.sum() < FEWEST_ROWS:
            return False
        numbers, left = np.unique(possible[is_sure].argmax(axis=1), return_inverse=True)
        frequency = np.bincount(left) / len(left)
        expected, factors = predicted[is_sure][:, numbers], np.ones(len(numbers))
        for _ in range(FACTOR_ROUNDS):
            among_sure = factors * expected
            among_sure /= np.maximum(among_sure.sum(axis=1, keepdims=True), LEAST_CHANCE)
            factors *= frequency / np.maximum(among_sure.mean(axis=0), LEAST_CHANCE)
        least = max(self.doubt / self.number, LEAST_CHANCE)
        by_model = np.maximum(among_sure[np.arange(len(left)), left], least)
        return bool(np.log(by_model).mean() > np.log(frequency[left]).mean())


def are_votes(shares: FloatArray) -> bool:
    """Whether most rows are shares of a few votes, each row maybe of another number of them, or rounded.

    Rows with one or two labels often are by chance.
    """
    has_several = (shares > 0).sum(axis=1) > 2
    return bool(has_several.any() and _fits(shares[has_several], MOST_VOTES).any(axis=1).mean() > MOST_ROWS)


def possible_votes(shares: FloatArray, n_votes: int) -> BoolArray:
    """Of which numbers of votes, 1 to ``n_votes``, rows can be the shares: (rows, n_votes). Of any, if of none."""
    fits = _fits(shares, n_votes)
    return fits | ~fits.any(axis=1, keepdims=True)


def _fewest_votes(shares: FloatArray) -> tuple[IntArray, float]:
    """The fewest votes that rows can be the shares of, where they can, and the part of the rows that cannot."""
    fits = _fits(shares, MOST_VOTES)
    can_be = fits.any(axis=1)
    return fits[can_be].argmax(axis=1) + 1, 1 - float(can_be.sum()) / max(len(fits), 1)


def _fits(shares: FloatArray, n_votes: int) -> BoolArray:
    fits = np.empty((len(shares), n_votes), dtype=bool)
    for n in range(1, n_votes + 1):
        fits[:, n - 1] = (np.abs(shares - np.rint(n * shares) / n) <= TOLERANCE).all(axis=1)
    return fits


def chances_of_votes(D: FloatArray, observed: BoolArray, n_votes: int) -> FloatArray:
    """How likely so many votes are left in draws of rows, (rows, n_votes, draws): those on what was handed in."""
    mass = np.clip(np.where(observed[:, :, None], D, 0).sum(axis=1), LEAST_CHANCE, 1)[:, None]
    left = np.arange(1, n_votes + 1)
    ways = gammaln(n_votes + 1) - gammaln(left + 1) - gammaln(n_votes - left + 1)
    left, ways = left[:, None], ways[:, None]
    return np.exp(ways + xlogy(left, mass) + xlog1py(n_votes - left, -mass))


@dataclass
class VoteSums:
    """Sums over draws of rows: what the votes that may be left say about the labels that may be overlooked."""

    possible: FloatArray
    rates: FloatArray
    independent: float = 1.0
    total: FloatArray = field(init=False)
    left: FloatArray = field(init=False)
    predicted: FloatArray = field(init=False)
    overlooked: FloatArray = field(init=False)
    took_votes: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        shape = len(self.possible), len(self.rates)
        self.total, self.left, self.predicted = np.zeros(shape[0]), np.zeros(shape[0]), np.zeros(self.possible.shape)
        self.overlooked, self.took_votes = np.zeros(shape), np.zeros(shape)

    def add(self, D: FloatArray, observed: BoolArray, weights: FloatArray) -> None:
        """Add draws, (rows, m, draws), with their weights; ``observed`` says what was handed in, in all of them.

        Given the other labels that were overlooked, votes that were lost had to fall on these or on the label.
        """
        n_votes = self.possible.shape[1]
        lost = np.arange(n_votes - 1.0, -1.0, -1.0)
        hidden = np.where(observed[:, :, None], 0, D)
        others = np.maximum(hidden.sum(axis=1, keepdims=True) - hidden, LEAST_CHANCE)
        gains = self.independent * np.log1p(D / others)
        chances = chances_of_votes(D, observed, n_votes) * weights[:, None]
        for k in range(D.shape[2]):
            likely = np.maximum(chances[:, :, k], LEAST_CHANCE) * self.possible
            joint = expit(logit(self.rates)[:, None] + lost * gains[:, :, k, None]) * likely[:, None]
            self.overlooked += joint.sum(axis=2)
            self.took_votes += joint[:, :, lost > 0].sum(axis=2)
            self.left += likely @ (n_votes - lost)
            self.total += likely.sum(axis=1)
        self.predicted += chances.sum(axis=2)

    def means(self) -> "VoteMeans":
        """What the sums say of each row."""
        total = self.total[:, None]
        return VoteMeans(self.overlooked / total, self.took_votes / total, self.left / self.total, self.predicted)


class VoteMeans(NamedTuple):
    """How likely labels were overlooked, and that they took votes with them; how many votes are left.

    ``predicted`` is how likely each number of votes was before it was known which are possible.
    """

    overlooked: FloatArray
    took_votes: FloatArray
    left: FloatArray
    predicted: FloatArray

    @classmethod
    def joined(cls, parts: Sequence["VoteMeans"]) -> "VoteMeans":
        """The means of several blocks of rows."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def shares_of_votes(
    expected: FloatArray, shares: FloatArray, observed: BoolArray, chances: FloatArray, rng: np.random.Generator | None
) -> FloatArray:
    """Draws of rows in which what was handed in has its votes, and the lost votes are on hidden labels.

    Votes are what is expected of them, or drawn if there is a generator.
    """
    n_votes = chances.shape[1]
    hidden = np.where(observed[:, :, None], 0, expected)
    hidden /= np.maximum(hidden.sum(axis=1, keepdims=True), LEAST_CHANCE)
    total = np.maximum(chances.sum(axis=1), LEAST_CHANCE)
    if rng is None:
        left = np.minimum(np.tensordot(chances, np.arange(1.0, n_votes + 1), axes=(1, 0)) / total, n_votes)
        on_hidden = (n_votes - left)[:, None] * hidden
    else:
        lots = rng.random(total.shape) * chances.sum(axis=1)
        left = np.minimum(1 + (np.cumsum(chances, axis=1) < lots[:, None]).sum(axis=1), n_votes)
        on_hidden = np.moveaxis(_multinomial(n_votes - left, np.moveaxis(hidden, 1, 2), rng), 2, 1)
    rows = left[:, None] * shares[:, :, None] + on_hidden
    return rows / np.maximum(rows.sum(axis=1, keepdims=True), LEAST_CHANCE)


def _multinomial(n: FloatArray, p: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Counts with probabilities along the last axis; none where there are no probabilities."""
    can_fall = p.sum(axis=-1) > 0.5
    p = np.where(can_fall[..., None], p, 1 / p.shape[-1])
    return rng.multinomial(np.where(can_fall, n, 0), p / p.sum(axis=-1, keepdims=True)).astype(np.float64)
