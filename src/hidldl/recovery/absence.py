"""Labels that a row does not have.

In some tables a label has either a share worth the name or none: a share of 0, or the same next to nothing in every
row. Log-shares are then far from normal. So the set of labels that a row has is a model of its own, and the shares of
these labels, which are logistic-normal (``latent``), come after it:

    P(row has the labels h) = exp(sum_j h_j a_j(x) + sum_{j<k} h_j h_k c_jk) / Z(x)        h is not empty

a is a kernel logistic regression on the features, and c says which labels come together. All sets are counted, so
labels must be few.

Next to nothing tells more than that: hidden labels inflate it as they inflate all that was handed in, so a row in which
it is large has lost much.
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import logsumexp

from hidldl.arrays import BoolArray, FloatArray, IntArray
from hidldl.simplex import clip_and_close

MOST_LABELS = 10
"""There are 1,023 sets of so many labels."""
GAP = np.log(5.0)
"""Between what labels have that are there and what absent ones have, hardly any share lies over this range of logs."""
IN_GAP, FEWEST_BESIDE = 0.01, 0.05
"""The largest part of the shares that may lie in the gap, and the least on either side of it."""
FEWEST_SHARES = 200
"""Shares from which a gap is told."""
NEARLY_ALL = 0.98
"""What absent labels of a row have differs by less than a tolerance in this part of the rows."""
MOST_TOLERANCE = 0.5
"""Absent labels of a row have nearly the same."""
TIE = 1e-6
"""Shares that are the same may differ by this in their logarithms."""
MOST_ON_ABSENT = 0.5
"""The largest part of a row that all its absent labels may hold."""
SMALLEST = 1e-300


@dataclass(frozen=True)
class Gap:
    """How to tell labels that are there from absent ones, in rows as they were handed in.

    A share is of an absent label if its logarithm is below the largest one's of its row by ``depth``. What absent
    labels of a row have is the same within ``tolerance`` of its logarithm. Where only such labels are observed, there
    is nothing to compare them with; ``ties`` is how often labels that are there have the same share as well. With
    ``zero``, absent labels have exactly 0, and a row of which only such labels are handed in is not in the table;
    ``rate_of_nothing`` is how often a label of those that are there is hidden, then, and else 0.
    """

    depth: float
    tolerance: float
    ties: float
    zero: bool

    @property
    def is_sound(self) -> bool:
        """Whether there can be such a gap; that of a damaged file may not."""
        in_range = self.depth > 0 and self.tolerance >= 0 and 0 < self.ties <= 1
        return in_range and bool(np.isfinite((self.depth, self.tolerance)).all())

    @classmethod
    def of(cls, shares: FloatArray, observed: BoolArray) -> "Gap | None":
        """The gap, or None if there is none."""
        if shares.shape[1] > MOST_LABELS:
            return None
        below = _below_largest(shares, observed)
        others = below[observed & (below > 0)]
        depth = _depth(others)
        if depth is None:
            return None
        zero = bool(np.isinf(others[others > depth]).all())
        plain = cls(depth, TIE, 0.0, zero)
        low, tolerance = plain.absent(shares, observed), TIE
        if not zero and (several := low.sum(axis=1) > 1).any():
            tolerance = max(TIE, float(np.quantile(_range(below[several], low[several]), NEARLY_ALL)))
            if tolerance > MOST_TOLERANCE:
                return None
        there = observed & ~low
        several = low.any(axis=1) & (there.sum(axis=1) > 1)
        tied = _range(below[several], there[several]) <= tolerance
        ties = (tied.sum() + 1) / (len(tied) + 2)
        return cls(depth, tolerance, float(ties), zero)

    def absent(self, shares: FloatArray, observed: BoolArray) -> BoolArray:
        """Labels that are visibly absent: next to nothing beside another label."""
        return observed & (_below_largest(shares, observed) > self.depth)

    def there(self, shares: FloatArray, observed: BoolArray) -> tuple[FloatArray, BoolArray]:
        """Rows of the labels alone that are surely there, and which these are."""
        there = observed & ~self.absent(shares, observed) & ~self.in_doubt(shares, observed)[:, None]
        there = there | (observed.all(axis=1) & self.in_doubt(shares, observed))[:, None]
        kept = np.where(there, shares, 0)
        total = kept.sum(axis=1, keepdims=True)
        return np.divide(kept, total, out=kept, where=total > 0), there

    def in_doubt(self, shares: FloatArray, observed: BoolArray) -> BoolArray:
        """Rows of which all that was handed in has the same share: all of these labels are there, or none."""
        if self.zero:
            return np.zeros(len(shares), dtype=bool)
        return observed.any(axis=1) & (_range(_below_largest(shares, observed), observed) <= self.tolerance)


def _below_largest(shares: FloatArray, observed: BoolArray) -> FloatArray:
    """How far the logarithms of observed shares are below the largest of their row."""
    with np.errstate(divide="ignore"):
        logs = np.where(observed, np.log(shares), -np.inf)
    largest = logs.max(axis=1, keepdims=True)
    return np.asarray(np.where(np.isfinite(largest), largest, 0) - logs)


def _range(below: FloatArray, chosen: BoolArray) -> FloatArray:
    """The largest difference between the logarithms of the chosen shares of each row."""
    high = np.where(chosen, below, -np.inf).max(axis=1)
    return np.asarray(high - np.where(chosen, below, np.inf).min(axis=1))


def _depth(below: FloatArray) -> float | None:
    """The middle of the range in which the fewest values lie, if those are next to none, and many on either side."""
    if len(below) < FEWEST_SHARES:
        return None
    values = np.sort(below)
    n_finite = int(np.isfinite(values).sum())
    if len(values) - n_finite >= FEWEST_BESIDE * len(values) and n_finite:
        return float(values[n_finite - 1] + GAP / 2)
    first = np.searchsorted(values, values[:n_finite] + GAP)
    inside = first - np.arange(1, n_finite + 1)
    beside = np.minimum(np.arange(1, n_finite + 1), len(values) - first) >= FEWEST_BESIDE * len(values)
    candidates = np.flatnonzero(beside & (inside <= IN_GAP * len(values)))
    if not len(candidates):
        return None
    return float(values[candidates[inside[candidates].argmin()]] + GAP / 2)


@cache
def sets_of(n_labels: int) -> FloatArray:
    """All sets of labels but the empty one, 1 for each label that is in: (sets, labels)."""
    numbers = np.arange(1, 2**n_labels)
    return ((numbers[:, None] >> np.arange(n_labels)) & 1).astype(np.float64)


def energies(pairs: FloatArray) -> FloatArray:
    """What the pairs in each set add to the logarithm of its probability, from a symmetric matrix."""
    sets = sets_of(len(pairs))
    return np.asarray(((sets @ pairs) * sets).sum(axis=1) / 2)


def log_chances(gap: Gap, shares: FloatArray, observed: BoolArray, log_odds: float = -np.inf) -> FloatArray:
    """The logarithm of how likely what was handed in is, if a row has each set of labels: (rows, sets).

    It is up to a constant. ``log_odds`` are those of being hidden; see ``log_alone``.
    """
    sets, absent, in_doubt = sets_of(shares.shape[1]), gap.absent(shares, observed), gap.in_doubt(shares, observed)
    there = (observed & ~absent).astype(np.float64)
    other = there @ (1 - sets.T) + absent.astype(np.float64) @ sets.T
    none = np.where(in_doubt[:, None], observed.astype(np.float64) @ sets.T, 1)
    # A single label is as large as itself, whether it is there or not.
    ties = np.log(np.where(in_doubt & (observed.sum(axis=1) > 1), gap.ties, 1.0))[:, None]
    alone = np.where(is_alone(gap, shares, observed)[:, None], log_alone(log_odds, shares.shape[1]), 0)
    return np.where(other == 0, ties + alone, np.where(none == 0, 0.0, -np.inf))


def is_alone(gap: Gap, shares: FloatArray, observed: BoolArray) -> BoolArray:
    """Rows of which one label was handed in that has a share."""
    return gap.zero & ((observed & ~gap.absent(shares, observed)).sum(axis=1) == 1)


def log_alone(log_odds: float, n_labels: int) -> FloatArray:
    """How much more likely it is, for each set of labels, that one of them alone is handed in: its logarithm.

    Had a row lost all of them, it would not be in the table; so one is handed in all the same. That is the more likely
    the fewer labels the row has.
    """
    return np.log1p(np.exp(log_odds) / sets_of(n_labels).sum(axis=1))


@dataclass(frozen=True)
class Absences:
    """The fitted model of which labels a row has.

    ``coef`` and ``intercept`` are those of a, ``pairs`` is the matrix c. ``log_odds`` are those of being hidden, where
    they matter. ``floor`` is the logarithm of what absent labels have, and ``floor_spread`` its standard deviation over
    the rows.
    """

    gap: Gap
    coef: FloatArray
    intercept: FloatArray
    pairs: FloatArray
    log_odds: float = 0.0
    floor: float = 0.0
    floor_spread: float = 1.0

    def fits(self, n_labels: int, n_columns: int) -> bool:
        """Whether the parts fit together; those of a damaged file may not."""
        shapes = (self.coef.shape, self.intercept.shape, self.pairs.shape)
        numbers = (self.coef, self.intercept, self.pairs, np.array([self.log_odds, self.floor, self.floor_spread]))
        sizes = shapes == ((n_columns, n_labels), (n_labels,), (n_labels, n_labels)) and n_labels <= MOST_LABELS
        sound = self.gap.is_sound and self.floor_spread > 0
        return sizes and sound and all(np.isfinite(part).all() for part in numbers)

    @property
    def typical_number(self) -> float:
        """How many labels a row with average features has."""
        nothing = np.zeros((1, len(self.intercept)))
        return float((self.posterior(self.intercept[None], nothing, nothing > 0) @ sets_of(nothing.shape[1])).sum())

    def chance_of_seen(self, shares: FloatArray, observed: BoolArray) -> FloatArray:
        """How likely a label that is alone was seen, and was not handed in only since all others were hidden."""
        chance = 1 / (1 + np.exp(self.log_odds) / self.typical_number)
        return np.where(is_alone(self.gap, shares, observed), chance, 1.0)

    def posterior(self, logits: FloatArray, shares: FloatArray, observed: BoolArray) -> FloatArray:
        """How likely each set of labels is, given what was handed in: (rows, sets)."""
        logs = logits @ sets_of(len(self.intercept)).T + energies(self.pairs)
        logs += log_chances(self.gap, shares, observed, self.log_odds)
        return np.asarray(np.exp(logs - logsumexp(logs, axis=1, keepdims=True)))

    def completed(
        self,
        D: FloatArray,
        weights: FloatArray,
        chosen: IntArray,
        noise: FloatArray,
        shares: FloatArray,
        observed: BoolArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Draws of rows that have the ``chosen`` sets of labels, and their weights.

        ``D`` are draws of rows that have every label, (rows, m, draws); ``chosen`` and the standard normal ``noise``
        of what absent labels have are (rows, draws).
        """
        there, held = self.held(D, chosen)
        seen = observed[:, :, None]
        if not self.gap.zero:
            n_absent = np.count_nonzero(~there, axis=1)
            each = np.exp(self.floor + self.floor_spread * noise)
            at = self.gap.absent(shares, observed).any(axis=1)
            logs, chances = self.log_floors(held[at], n_absent[at], shares[at], observed[at])
            each[at], weights = np.exp(logs), weights.copy()
            weights[at] = clip_and_close(weights[at] * chances)
            each = np.minimum(each, MOST_ON_ABSENT / np.maximum(n_absent, 1))[:, None]
            held = np.where(there, held * (1 - n_absent[:, None] * each), each)
        mass = np.where(seen, held, 0).sum(axis=1, keepdims=True)
        return np.where(seen, mass * shares[:, :, None], held), weights

    @staticmethod
    def held(D: FloatArray, chosen: IntArray) -> tuple[BoolArray, FloatArray]:
        """Which labels are there in draws of rows, (rows, m, draws), and the shares in rows of these labels alone."""
        there = sets_of(D.shape[1])[chosen].transpose(0, 2, 1) > 0
        held = np.where(there, np.maximum(D, SMALLEST), 0)
        return there, held / held.sum(axis=1, keepdims=True)

    def log_floors(
        self, held: FloatArray, n_absent: IntArray, shares: FloatArray, observed: BoolArray
    ) -> tuple[FloatArray, FloatArray]:
        """In draws of rows in which absent labels are seen: the logarithm of what those have, and how likely that is.

        They seem to have s, and truly have s times the mass of all that was handed in. ``held`` is what labels that
        are there have of all that such labels have.
        """
        low = self.gap.absent(shares, observed)
        on_low = np.where(low, shares, 0).sum(axis=1)
        s = (on_low / np.maximum(low.sum(axis=1), 1))[:, None]
        # Labels that are there have 1 - n_absent * s * mass, and of that (1 - on_low) * mass was handed in.
        part = np.where((observed & ~low)[:, :, None], held, 0).sum(axis=1)
        mass = part / ((1 - on_low)[:, None] + part * n_absent * s)
        logs = np.log(np.maximum(s * mass, SMALLEST))
        squares = -0.5 * ((logs - self.floor) / self.floor_spread) ** 2
        return logs, np.exp(squares - logsumexp(squares, axis=1, keepdims=True))
