"""How the share of a label decides whether an annotator hands it in.

P(label is handed in) = sigmoid(intercept + slope * log(share + 0.01)). With a positive slope small shares are
overlooked more often, so the mask itself says something about the hidden shares: they tend to be small. Posterior draws
of rows are weighted by the probability of the mask, and the curve is fitted to the draws with these weights.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

from hidldl.arrays import BoolArray, FloatArray
from hidldl.hiding import SMALLEST_SHARE

LARGEST_LOGIT = 30.0
LARGEST_SLOPE = 50.0
LONGEST_STEP = 2.0
RATE_ROUNDS = 200
WIDER_BY_STEEPNESS = 0.15
"""Labels that can be hidden again to calibrate intervals are those that were easy to see, the more so the steeper the
curve is: intervals are at least so much wider than the posterior, per unit of steepness."""
INFORMATIVE = 0.5
"""Least share of the annotated rows that must have two labels or more."""


class WeightedRows(NamedTuple):
    """Draws of rows given their masks: weights (rows, draws), the evidence of each row's mask, and what sums need.

    ``counted`` is how much each label's probability counts in the gradient: more for labels that the row has, one of
    which had to be handed in.
    """

    weights: FloatArray
    evidence: FloatArray
    logs: FloatArray
    logits: FloatArray
    counted: FloatArray
    observed: BoolArray

    def sums(self) -> FloatArray:
        """Gradient (2), curvature (2 × 2) and products of the rows' own gradients (2 × 2), side by side.

        The curvature is that without the condition that something is handed in: it is larger, and steps are the safer.
        """
        weights = np.where(self.observed.any(axis=1, keepdims=True), self.weights, 0)
        p = expit(self.logits)
        excess = self.observed[:, :, None] - p * self.counted
        sides = (excess.sum(axis=1), (excess * self.logs).sum(axis=1))
        own = np.stack([(weights * side).sum(axis=1) for side in sides])
        p *= 1 - p
        moments = [(weights * (p * self.logs**power).sum(axis=1)).sum() for power in range(3)]
        curvature = np.array([[moments[0], moments[1]], [moments[1], moments[2]]])
        return np.hstack([own.sum(axis=1)[:, None], curvature, own @ own.T])


@dataclass(frozen=True)
class HidingCurve:
    """The curve; the standard error of its slope, and the slope per standard deviation of the log-shares.

    ``zeros`` says whether shares can be exactly 0.
    """

    intercept: float
    slope: float
    zeros: bool
    slope_error: float = 0.0
    steepness: float = 0.0

    @classmethod
    def flat(cls, observed: BoolArray, zeros: bool) -> "HidingCurve":
        """Every label is handed in with the same probability, whatever its share is."""
        annotated, m = observed[observed.any(axis=1)], observed.shape[1]
        mean = float(np.clip(annotated.mean(), (1 + 1e-6) / m, 1 - 1e-9))
        # Rows of which nothing is handed in are not in the table.
        p = brentq(lambda p: p / -np.expm1(m * np.log1p(-p)) - mean, 1e-12, 1 - 1e-12)
        return cls(float(logit(p)), 0.0, zeros)

    @property
    def least_spread(self) -> float:
        """How far draws must spread at least, whatever labels that were hidden again say."""
        return 1 + WIDER_BY_STEEPNESS * abs(self.steepness)

    def odds_of_hiding(self, shares: FloatArray) -> FloatArray:
        """P(hidden) / P(handed in) of labels with these shares."""
        return np.exp(-self._logits(np.log(shares + SMALLEST_SHARE)))

    def hidden(self, shares: FloatArray) -> FloatArray:
        """P(hidden) of labels with these shares."""
        return np.asarray(expit(-self._logits(np.log(shares + SMALLEST_SHARE))))

    def weigh(self, weights: FloatArray, D: FloatArray, shares: FloatArray, observed: BoolArray) -> WeightedRows:
        """Weigh draws of rows, (rows, m, draws), by the probability of which labels were handed in.

        That is given that a label was that the row has: if none was, the row was not annotated, and says nothing.
        """
        logs = _logs(D, shares, observed)
        logits = self._logits(logs)
        log_hidden = -np.log1p(np.exp(logits))
        log_nothing = np.where(D > 0, log_hidden, 0).sum(axis=1)
        something = np.maximum(-np.expm1(log_nothing), 1e-300)
        log_likelihood = np.where(observed[:, :, None], logits + log_hidden, log_hidden).sum(axis=1) - np.log(something)
        annotated = np.asarray(observed.any(axis=1))
        log_likelihood = np.where(annotated[:, None], log_likelihood, 0)
        top = log_likelihood.max(axis=1, keepdims=True)
        new = weights * np.exp(log_likelihood - top)
        total = new.sum(axis=1, keepdims=True)
        new /= total
        evidence = top[:, 0] + np.log(total[:, 0])
        counted = 1 + np.where(D > 0, (np.exp(log_nothing) / something)[:, None], 0)
        return WeightedRows(new, evidence, logs, logits, counted, observed)

    def _logits(self, logs: FloatArray) -> FloatArray:
        return np.clip(self.intercept + self.slope * logs, -LARGEST_LOGIT, LARGEST_LOGIT)

    def improved(self, sums: FloatArray) -> "HidingCurve":
        """A step of Newton's method, and the slope's standard error, from the sums over all rows."""
        gradient, curvature, scores = sums[:, 0], sums[:, 1:3], sums[:, 3:]
        step = np.linalg.solve(curvature + 1e-6 * (1 + np.trace(curvature)) * np.eye(2), gradient)
        step *= min(1.0, LONGEST_STEP / max(abs(step[1]), 1e-12))
        slope = float(np.clip(self.slope + step[1], -LARGEST_SLOPE, LARGEST_SLOPE))
        error = float(1 / np.sqrt(_information_on_slope(scores)))
        mean, square = curvature[1] / max(curvature[0, 0], 1e-300)
        spread = float(np.sqrt(max(square - mean**2, 0)))
        return HidingCurve(self.intercept + float(step[0]), slope, self.zeros, error, slope * spread)

    def change(self, other: "HidingCurve") -> float:
        """How far two slopes differ, relative to their size."""
        return abs(self.slope - other.slope) / (1 + abs(other.slope))


def says_something(observed: BoolArray) -> bool:
    """Whether masks can tell how shares decide them: a row with one label says nothing about its shares."""
    n_observed = observed.sum(axis=1)
    return bool((n_observed > 1).sum() >= INFORMATIVE * (n_observed > 0).sum())


def evidence_of_label_rates(observed: BoolArray) -> float:
    """Mean log-likelihood of the masks, given that something is handed in, if each label has a rate of its own."""
    annotated = observed[observed.any(axis=1)].astype(np.float64)
    frequencies = np.clip(annotated.mean(axis=0), 1e-9, 1 - 1e-9)
    rates = frequencies
    for _ in range(RATE_ROUNDS):
        rates = np.clip(frequencies * -np.expm1(np.log1p(-rates).sum()), 1e-9, 1 - 1e-9)
    log_chances = annotated @ logit(rates) + np.log1p(-rates).sum() - np.log(-np.expm1(np.log1p(-rates).sum()))
    return float(log_chances.sum() / len(observed))


def evidence_of_slope(sums: FloatArray) -> float:
    """The score test against a flat curve, in standard deviations: sums are those under a flat curve."""
    gradient, scores = sums[:, 0], sums[:, 3:]
    adjusted = gradient[1] - scores[0, 1] / max(scores[0, 0], 1e-300) * gradient[0]
    return float(adjusted / np.sqrt(_information_on_slope(scores)))


def _information_on_slope(scores: FloatArray) -> float:
    return max(float(scores[1, 1] - scores[0, 1] ** 2 / max(scores[0, 0], 1e-300)), 1e-12)


def _logs(D: FloatArray, shares: FloatArray, observed: BoolArray) -> FloatArray:
    """log(share + 0.01) in draws of rows, with the observed part in its exact proportions."""
    seen = observed[:, :, None]
    mass = np.where(seen, D, 0).sum(axis=1, keepdims=True)
    return np.log(np.where(seen, mass * shares[:, :, None], D) + SMALLEST_SHARE)
