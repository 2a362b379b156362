"""The logistic-normal model of a table with hidden labels: a mixture of kinds of rows around a common mean.

Row i is of kind k with probability pi_k(x_i), and its log-shares are then z_i ~ N(mu(x_i) + offset_k, S_k). Both mu and
pi are kernel ridge regressions on the features. Given its observed shares, a row's posterior is normal within each kind
(``logisticnormal``), and the kinds are weighed by their evidence. ``fitting`` estimates the parts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import logsumexp

from hidldl.arrays import BoolArray, FloatArray, IntArray
from hidldl.parallel import BLOCK_ROWS, Mapper, for_each, row_blocks
from hidldl.recovery import lowrank, widerows
from hidldl.recovery.absence import Absences
from hidldl.recovery.hidingcurve import HidingCurve
from hidldl.recovery.kernelmean import Ridge
from hidldl.recovery.logisticnormal import draw_log_shares, find_modes
from hidldl.recovery.lostvotes import Votes
from hidldl.recovery.rows import Rows
from hidldl.recovery.zerorates import ZeroRates

MAX_NEWTON = 20
LOOSE, TIGHT = 1e-3, 1e-9
"""How little a row's loss must fall for Newton's method to stop: during the rounds, and at the end."""
BLOCK_WORK, FEWEST_IN_BLOCK = 2**26, 32
"""Rows times labels³ of a block, and its fewest rows: with many labels, a few rows are enough work for a thread."""
BLOCK_ROWS_OF_MANY, BLOCK_DRAWN = 512, 2**22
"""Rows of a block where labels are so many that their covariance has factors, and most shares that are drawn there."""
SHARE_OF_OVERALL = 0.1
"""How far a row's kinds follow all rows, whatever its features say: a regression is no proof that a kind is absent."""
RARE = 1e-3
"""A kind that is less likely than this in a row does not move the estimates."""


@dataclass(frozen=True)
class Parameters:
    """The parameters of the model, chosen by the user or by selection."""

    nu: float
    ridge: float
    prior_rows: float
    ordered: bool = False
    n_components: int = 1
    absent_labels: bool = False


@dataclass(frozen=True)
class Estimates:
    """What EM estimates: the mean of the log-shares as a function of the features, and the kinds around it.

    The regression has a column per label and one per kind: the log-shares, and which kind a row is.
    """

    covariances: FloatArray
    offsets: FloatArray
    intercept: FloatArray
    coef: FloatArray
    curve: HidingCurve | None = None
    zeros: ZeroRates | None = None
    votes: Votes | None = None
    absences: Absences | None = None

    @property
    def coef_of_labels(self) -> FloatArray:
        """The regression's columns for the log-shares, or for which labels there are, if that varies."""
        return self.coef[:, : self.offsets.shape[1]] if self.absences is None else self.absences.coef

    @property
    def shares_of_kinds(self) -> FloatArray:
        """How common each kind is."""
        return _as_probabilities(self.intercept[None, self.offsets.shape[1] :])[0]

    @classmethod
    def around(
        cls,
        parts: Sequence[FloatArray | lowrank.Factors],
        offsets: FloatArray,
        intercept: FloatArray,
        coef: FloatArray,
        curve: HidingCurve | None = None,
    ) -> "Estimates":
        """From covariances, or from their factors, which then need not be found again."""
        factors = [part if isinstance(part, lowrank.Factors) else None for part in parts]
        covariances = [part.covariance if isinstance(part, lowrank.Factors) else part for part in parts]
        estimates = cls(np.array(covariances), offsets, intercept, coef, curve)
        estimates.__dict__["factors"] = factors
        return estimates

    @cached_property
    def factors(self) -> list[lowrank.Factors | None]:
        """Of each kind's covariance, if it is of low rank but for a constant."""
        return [lowrank.Factors.of(S) for S in self.covariances]

    @property
    def covariance(self) -> FloatArray:
        """The covariance of log-shares around the common mean, over all kinds."""
        weights = self.shares_of_kinds
        between = self.offsets - weights @ self.offsets
        within = np.tensordot(weights, self.covariances, axes=1)
        return np.asarray(within + (between.T * weights) @ between)

    def kinds(self, fitted: FloatArray) -> FloatArray:
        """Probabilities of the kinds, from the regression's columns for them."""
        if len(self.offsets) == 1:
            return np.ones((len(fitted), 1))
        return (1 - SHARE_OF_OVERALL) * _as_probabilities(fitted) + SHARE_OF_OVERALL * self.shares_of_kinds

    def of_kinds(self, chosen: IntArray) -> "Estimates":
        """Some of the kinds, in that order."""
        n_labels = self.offsets.shape[1]
        columns = np.concatenate([np.arange(n_labels), n_labels + chosen])
        return replace(
            self,
            covariances=self.covariances[chosen],
            offsets=self.offsets[chosen],
            intercept=self.intercept[columns],
            coef=self.coef[:, columns],
        )


@dataclass(frozen=True)
class LatentModel:
    """A fitted model: prior for any row from its features, posterior from the labels that it has."""

    parameters: Parameters
    estimates: Estimates
    regression: Ridge

    def check(self) -> None:
        """Refuse parts that do not fit together, as a damaged file may have."""
        estimates, squares = self.estimates, (self.regression.gram, self.regression.factor)
        p = len(self.regression.center)
        if estimates.offsets.ndim != 2:
            raise ValueError("the parts of the model do not fit together.")
        k, m = estimates.offsets.shape
        shapes = (estimates.covariances.shape, estimates.intercept.shape, estimates.coef.shape)
        numbers = (
            estimates.covariances,
            estimates.offsets,
            estimates.intercept,
            estimates.coef,
            self.regression.center,
            *squares,
        )
        curve = [] if estimates.curve is None else [estimates.curve.intercept, estimates.curve.slope]
        fits = shapes == ((k, m, m), (m + k,), (p, m + k)) and all(square.shape == (p, p) for square in squares)
        fits = fits and (estimates.zeros is None or estimates.zeros.fits(m))
        fits = fits and (estimates.votes is None or estimates.votes.is_sound)
        fits = fits and (estimates.absences is None or estimates.absences.fits(m, p))
        if not fits or k < 1 or not all(np.isfinite(part).all() for part in (*numbers, curve)):
            raise ValueError("the parts of the model do not fit together.")

    def prior(
        self, features: FloatArray, shares: FloatArray, observed: BoolArray, row_weights: FloatArray | float = 1.0
    ) -> Rows:
        """The prior of new rows: from their features alone."""
        estimates, (k, m) = self.estimates, self.estimates.offsets.shape
        n_rows, absences = len(features), estimates.absences
        mean, kinds = np.empty((n_rows, m)), np.empty((n_rows, k))
        logits = None if absences is None else np.empty((n_rows, m))
        for block in row_blocks(n_rows):
            fitted = estimates.intercept + self.regression.fitted(features[block], estimates.coef)
            mean[block], kinds[block] = fitted[:, :m], estimates.kinds(fitted[:, m:])
            if absences is not None and logits is not None:
                logits[block] = absences.intercept + self.regression.fitted(features[block], absences.coef)
        nu = np.full(n_rows, self.parameters.nu * row_weights)
        scale = 1 + self.regression.leverage(features)
        weights, presence = np.zeros((k, n_rows, m)), observed.astype(np.float64)
        return Rows(shares, observed, nu, mean, scale, kinds, weights, presence, logits=logits)

    def of_kinds(self, chosen: IntArray) -> "LatentModel":
        """The model with some of the kinds, in that order."""
        parameters = replace(self.parameters, n_components=len(chosen))
        return replace(self, parameters=parameters, estimates=self.estimates.of_kinds(chosen))

    def residuals(self, rows: Rows) -> FloatArray:
        """How far the rows' modes lie from their mean, if there is one kind."""
        return np.asarray(rows.scale[:, None] * (rows.weights[0] @ self.estimates.covariances[0]))

    def condition(self, rows: Rows, mapper: Mapper = map) -> FloatArray:
        """Turn rows from their prior to their posterior given their labels; returns each row's evidence."""
        evidence = np.zeros(len(rows.mean))

        def solve(block: slice) -> None:
            part = rows.part(block).there(self.estimates.absences)
            evidence[block], part.kinds[:] = modes(self.estimates, part, TIGHT)

        for_each(mapper, solve, work_blocks(*rows.mean.shape))
        return evidence

    def with_votes(self, votes: Votes | None) -> "LatentModel":
        """The model of rows of which every complete one has so many votes."""
        return replace(self, estimates=replace(self.estimates, votes=votes))

    def exponents(self, zeros: ZeroRates, nu: FloatArray) -> FloatArray:
        """The exponents of ``zeros`` in rows that weigh so much; all independent votes count, if votes are known."""
        votes = self.estimates.votes
        by_votes = 1.0 if votes is None else votes.independent * votes.number / self.parameters.nu
        return by_votes * zeros.exponents(nu)

    @property
    def has_even_draws(self) -> bool:
        """Whether all draws of a row weigh the same."""
        estimates = self.estimates
        parts = (estimates.curve, estimates.votes, estimates.absences)
        return len(estimates.offsets) == 1 and all(part is None for part in parts)

    @property
    def needs_zeros(self) -> bool:
        """Whether draws must scatter as counts do: exact zeros decide what is handed in."""
        return self.estimates.curve is not None and self.estimates.curve.zeros

    @property
    def can_be_zero(self) -> bool:
        """Whether labels that rows lack have a share of exactly 0."""
        return self.estimates.absences is not None and self.estimates.absences.gap.zero

    def draw(self, rows: Rows, normals: FloatArray, noise: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Posterior draws of the expected shares of rows, (rows, m, draws), and their weights (rows, draws)."""
        z, weights, _ = draw_rows(self.estimates, rows.there(self.estimates.absences), normals, noise)
        # A softmax in place: fresh arrays of this size take longer than the exponentials.
        z -= z.max(axis=1, keepdims=True)
        np.exp(z, out=z)
        z /= z.sum(axis=1, keepdims=True)
        return z, weights


def draw_rows(
    estimates: Estimates, rows: Rows, normals: FloatArray, noise: FloatArray
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Posterior draws of log-shares, (rows, m, draws), their weights and their kinds, both (rows, draws).

    Each kind gets as many draws as it is likely; what rounding takes from it, the weights give back.
    """
    n_rows, n_draws = len(rows.mean), normals.shape[2]
    out, kinds = np.empty((n_rows, *normals.shape[1:])), np.zeros((n_rows, n_draws), np.int64)
    # Even numbers: draws come in pairs that cancel.
    ends = 2 * np.rint(np.cumsum(rows.kinds, axis=1) * (n_draws / 2)).astype(np.int64)
    # Compiled code does not check where it writes.
    ends = np.minimum(ends, n_draws)
    ends[:, -1] = n_draws
    first = np.zeros(n_rows, dtype=np.int64)
    for k, (S, offset) in enumerate(zip(estimates.covariances, estimates.offsets, strict=True)):
        last = np.ascontiguousarray(ends[:, k])
        kind = (rows.mean + offset, rows.scale, rows.presence, rows.nu, rows.weights[k])
        if (factors := estimates.factors[k]) is not None:
            lowrank.draw_log_shares(
                factors.loadings, factors.rest, *kind, factors.draws(normals), noise, first, last, out
            )
        else:
            eigenvalues, vectors = np.linalg.eigh(S)
            prior_draws = (vectors * np.sqrt(np.maximum(eigenvalues, 0))) @ normals
            draw = widerows.draw_log_shares if len(S) >= widerows.WIDE_LABELS else draw_log_shares
            draw(S, *kind, prior_draws, noise, first, last, out)
        kinds += last[:, None] <= np.arange(n_draws)
        first = last
    counts = np.maximum(np.diff(ends, axis=1, prepend=0), 1)
    weights = np.take_along_axis(rows.kinds / counts, np.minimum(kinds, len(estimates.offsets) - 1), axis=1)
    return out, weights / weights.sum(axis=1, keepdims=True), kinds


def work_blocks(n_rows: int, n_labels: int, n_draws: int = 1) -> list[slice]:
    """Blocks of rows that are enough work for a thread, and not more; fewer rows if many draws of each are taken."""
    if n_labels >= lowrank.FACTOR_LABELS:
        return row_blocks(n_rows, max(min(BLOCK_ROWS_OF_MANY, BLOCK_DRAWN // (n_labels * n_draws)), 1))
    return row_blocks(n_rows, int(np.clip(BLOCK_WORK // n_labels**3, FEWEST_IN_BLOCK, BLOCK_ROWS)))


def modes(
    estimates: Estimates, rows: Rows, tol: float, slopes: FloatArray | None = None
) -> tuple[FloatArray, FloatArray]:
    """Find each row's mode within each kind; returns the rows' evidence and the posterior probabilities of their kinds.

    Adds to ``slopes`` what the M step needs for the covariances, each row with the probability of the kind.
    """
    n_kinds, n_rows = len(estimates.covariances), len(rows.mean)
    evidence = np.zeros((n_kinds, n_rows))
    # A single kind needs no second pass to know its probability.
    at_once = np.ones(n_rows) if n_kinds == 1 and slopes is not None else np.zeros(n_rows)
    nothing = np.zeros(estimates.covariances.shape[1:])
    for k in range(n_kinds):
        slope = nothing if slopes is None else slopes[k]
        _find_modes(estimates, rows, k, MAX_NEWTON, tol, at_once, slope, evidence[k])
    if n_kinds == 1:
        return evidence[0], np.ones((n_rows, 1))
    with np.errstate(divide="ignore"):
        logs = np.log(rows.kinds) + evidence.T
    total = logsumexp(logs, axis=1)
    kinds = np.exp(logs - total[:, None])
    if slopes is not None:
        for k in range(n_kinds):
            likely = np.where(kinds[:, k] > RARE, kinds[:, k], 0)
            _find_modes(estimates, rows, k, 0, tol, likely, slopes[k], evidence[k])
    return total, kinds


def _find_modes(
    estimates: Estimates,
    rows: Rows,
    k: int,
    max_newton: int,
    tol: float,
    importance: FloatArray,
    slope: FloatArray,
    evidence: FloatArray,
) -> None:
    arguments = (
        rows.mean + estimates.offsets[k],
        rows.scale,
        rows.shares,
        rows.presence,
        rows.nu,
        max_newton,
        tol,
        importance,
        rows.weights[k],
        slope,
        evidence,
    )
    factors = estimates.factors[k]
    if factors is not None:
        lowrank.find_modes(factors, *arguments)
    elif rows.mean.shape[1] >= widerows.WIDE_LABELS:
        widerows.find_modes(estimates.covariances[k], *arguments)
    else:
        find_modes(estimates.covariances[k], *arguments)


def _as_probabilities(fitted: FloatArray) -> FloatArray:
    positive = np.maximum(fitted, 1e-9)
    return np.asarray(positive / positive.sum(axis=1, keepdims=True))
