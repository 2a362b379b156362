"""Expectation–maximisation for the logistic-normal model of ``latent``.

The E step finds each row's posterior within each kind, the M step regresses the posterior means on the features and
averages the posterior spread. A row's prior mean leaves the row itself out, so that no row confirms itself; the hat
matrix gives that in closed form.
"""

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add
from typing import NamedTuple

import numpy as np
from scipy.special import softmax, xlogy
from sklearn.cluster import KMeans

from hidldl.arrays import BoolArray, FloatArray, IntArray
from hidldl.parallel import Mapper, one_thread, row_blocks
from hidldl.recovery.covariances import centred, moments_of_log_ratios, shrunk, sums_over_pairs
from hidldl.recovery.kernelmean import Ridge
from hidldl.recovery.latent import LOOSE, Estimates, LatentModel, Parameters, draw_rows, modes, work_blocks
from hidldl.recovery.lowrank import FACTOR_LABELS, FIRST_FACTORS, SETTLING, Factors
from hidldl.recovery.posterior import Draws
from hidldl.recovery.rows import Rows
from hidldl.recovery.scatter import scattered_rows
from hidldl.recovery.steps import in_bounds, leap, relative_changes
from hidldl.recovery.zerorates import ZeroRates

LONGEST_STRIDE = 8.0
"""Longest extrapolation, in units of a round's change; a stride covers about its square in rounds."""
DIRECTION = 0.3
"""How much the change of S in each direction, in relation to S there, counts beside that of S as a whole."""
LARGEST_LEVERAGE = 0.99
COMMON_ROWS = 2.0
"""Rows per label with which the covariance of a kind leans on that of all kinds, and its offset on 0."""
MASK_SEED, MASK_DRAWS = 7, 64
"""Draws per row behind the moments of rows whose mask says something about their shares."""
RAREST_KIND = 0.01
"""A kind that fewer rows are of says nothing to a reader, and is left out of the result."""
CLUSTERED_ROWS = 10_000
"""Rows from which the kinds are started."""


@dataclass(frozen=True)
class Fit:
    """A model, the rows that it was fitted to, and how the fit went."""

    model: LatentModel
    rows: Rows
    history: dict[str, FloatArray]
    converged: bool
    rounds: "Rounds"

    @property
    def some_residuals(self) -> FloatArray:
        """How far the modes of some rows, evenly apart, lie from the mean."""
        return self.model.residuals(self.rows.part(every_so_many(len(self.rows.shares))))

    def with_rates(self, zeros: ZeroRates) -> "Fit":
        """The fit that also says how often labels are overlooked."""
        return replace(self, model=replace(self.model, estimates=replace(self.model.estimates, zeros=zeros)))

    def of_common_kinds(self) -> tuple[LatentModel, Rows]:
        """Model and rows with the kinds by how common they are, without those that hardly any row is of."""
        kinds = self.rows.kinds
        chosen = common_kinds(kinds.mean(axis=0), kinds.max(axis=0))
        return self.model.of_kinds(chosen), self.rows.of_kinds(chosen)


def every_so_many(n_rows: int) -> slice:
    """Rows that are enough to start several kinds."""
    return slice(None, None, -(-n_rows // CLUSTERED_ROWS))


def common_kinds(mean: FloatArray, largest: FloatArray) -> IntArray:
    """The kinds by how common they are, by the mean and the largest of their probabilities, without rare ones."""
    order = np.argsort(-mean, kind="stable")
    return np.asarray(order[((mean >= RAREST_KIND) | (largest >= 0.5))[order]])


def fit_latent_model(
    features: FloatArray,
    shares: FloatArray,
    observed: BoolArray,
    parameters: Parameters,
    *,
    max_iter: int,
    tol: float,
    row_weights: FloatArray | float = 1.0,
    regression: Ridge | None = None,
    simple: Fit | None = None,
    presence: FloatArray | None = None,
    mapper: Mapper = map,
    rounds_on: "type[Rounds] | None" = None,
) -> Fit:
    """EM from pairwise log-ratios to a standstill: no round changes S or the means by more than ``tol`` of their size.

    Two rounds, then a leap along the direction in which they moved (SQUAREM, Varadhan and Roland 2008), and so on:
    EM itself is slow where much is hidden. Several kinds start from the residuals of a fit with one, ``simple``.
    ``rounds_on`` is where the rounds run: here, or on a device (``fitting_torch``).
    """
    if regression is None:
        regression = Ridge.of(features, parameters.ridge)
    if parameters.n_components > 1 and simple is None:
        one = replace(parameters, n_components=1)
        simple = fit_latent_model(
            features,
            shares,
            observed,
            one,
            max_iter=max_iter,
            tol=tol,
            row_weights=row_weights,
            regression=regression,
            presence=presence,
            mapper=mapper,
            rounds_on=rounds_on,
        )
    presence = observed.astype(np.float64) if presence is None else presence
    nu = np.full(len(shares), parameters.nu * row_weights)
    rounds = (rounds_on or Rounds)(features, shares, observed, presence, nu, parameters, regression, mapper)
    start = rounds.start() if simple is None or parameters.n_components == 1 else rounds.split(simple)
    current, changes, converged = climb(rounds, start, max_iter, tol)
    model = LatentModel(parameters, current, regression)
    rows, evidence = rounds.posterior(model)
    evidences = np.array([*rounds.evidence[1:], evidence.mean()]) + rounds.entropy
    return Fit(model, rows, {"change": np.array(changes), "evidence": evidences}, converged, rounds)


def climb(rounds: "Rounds", start: Estimates, max_iter: int, tol: float) -> tuple[Estimates, list[float], bool]:
    changes: list[float] = []
    stride = LONGEST_STRIDE
    path, safe = [start], None
    converged = False
    while not converged and len(changes) < max_iter:
        updated = rounds.update(path[-1])
        if safe is not None and rounds.evidence[-1] < rounds.evidence[-2]:
            # The leap went too far: return to its start, and leap less far from now on.
            path, safe, stride = [safe], None, max(stride / 2, 1.0)
            changes.append(changes[-1])
            continue
        changes.append(rounds.change(path[-1], updated))
        converged = changes[-1] <= tol
        path, safe = [*path, updated], None
        if len(path) == 3 and not converged and len(changes) < max_iter:
            path, safe = [leap(path[0], path[1], path[2], stride)], path[2]
    return path[-1], changes, converged


class Sums(NamedTuple):
    """What the M step needs of the rows: sums over them, which blocks of rows can be added to."""

    scatter: FloatArray
    residuals: FloatArray
    total: FloatArray
    products: FloatArray
    evidence: float
    mask: FloatArray


class Rounds:
    """What the rounds of EM share, and the state of each row between them."""

    def __init__(
        self,
        features: FloatArray,
        shares: FloatArray,
        observed: BoolArray,
        presence: FloatArray,
        nu: FloatArray,
        parameters: Parameters,
        regression: Ridge,
        mapper: Mapper,
    ) -> None:
        n_rows, n_labels = shares.shape
        n_kinds = parameters.n_components
        self.features, self.shares, self.observed, self.presence, self.nu = features, shares, observed, presence, nu
        self.parameters, self.regression, self.mapper = parameters, regression, mapper
        self.leverage = np.minimum(regression.leverage(features), LARGEST_LEVERAGE)
        self.scale = 1 / (1 - self.leverage)
        self.weights = np.zeros((n_kinds, n_rows, n_labels))
        self.residuals = np.zeros((n_rows, n_labels + n_kinds))
        self.evidence: list[float] = []
        self.entropy = -float((nu * xlogy(shares, shares).sum(axis=1)).mean())

    def start(self) -> Estimates:
        """One kind, from pairs of labels that are observed together."""
        n_labels = self.shares.shape[1]
        intercept, S = moments_of_log_ratios(self._over_pairs(), self.parameters.nu)
        part = S if n_labels < FACTOR_LABELS else Factors.nearest(S, most=FIRST_FACTORS)
        coef = np.zeros((len(self.regression.center), n_labels + 1))
        return Estimates.around([part], np.zeros((1, n_labels)), np.append(intercept, 1.0), coef)

    def _over_pairs(self) -> FloatArray:
        return sums_over_pairs(self.shares, self.observed, self.parameters.nu)

    @cached_property
    def weight_of_row(self) -> float:
        """How much a row tells about its kind: 1 with half of the labels or more, and little with few.

        A covariance needs two labels of a row, and a third tells the row's kind. So below a half it is the share of
        labels that rows have to the power of three, here by the pairs of labels that they have.
        """
        together = self._over_pairs()[0]
        n_labels = len(together)
        n_pairs = len(self.shares) * n_labels * (n_labels - 1)
        seen = float(together.sum() - np.trace(together)) / max(n_pairs, 1)
        return min((4 * seen) ** 1.5, 1.0)

    def _own_part(self, sizes: FloatArray | IntArray) -> FloatArray:
        """How far kinds of these sizes follow their own rows; the rest is common to all kinds."""
        weights = sizes * self.weight_of_row
        return weights / (weights + COMMON_ROWS * self.shares.shape[1])

    def split(self, simple: Fit) -> Estimates:
        """Several kinds, from clusters of the residuals of a fit with one."""
        n_kinds, n_labels = self.parameters.n_components, self.shares.shape[1]
        before = simple.model.estimates
        with one_thread():
            clusters = KMeans(n_kinds, n_init=3, random_state=0).fit(simple.some_residuals)
        sizes = np.bincount(clusters.labels_, minlength=n_kinds)
        offsets = clusters.cluster_centers_ * self._own_part(sizes)[:, None]
        share = sizes / sizes.sum()
        between = (offsets.T * share) @ offsets
        S = before.covariances[0]
        within = in_bounds(centred(S - between), S, before.factors[0])
        return Estimates.around(
            [within] * n_kinds,
            offsets,
            np.concatenate([before.intercept[:n_labels], share]),
            np.hstack([before.coef[:, :n_labels], np.zeros((len(before.coef), n_kinds))]),
        )

    def posterior(self, model: LatentModel) -> tuple[Rows, FloatArray]:
        """The rows under the model, and the evidence of each."""
        rows = self.rows(model.estimates)
        return rows, model.condition(rows, self.mapper)

    def rows(self, estimates: Estimates) -> Rows:
        parts = [self._prior(estimates, block) for block in row_blocks(len(self.shares))]
        mean = np.concatenate([part.mean for part in parts])
        kinds = np.concatenate([part.kinds for part in parts])
        # A copy: later rounds must not change what this fit found.
        weights = self.weights.copy()
        return Rows(self.shares, self.observed, self.nu, mean, self.scale, kinds, weights, self.presence)

    def _prior(self, estimates: Estimates, block: slice) -> Rows:
        """Prior of rows, each without the row's own part: fitted - leverage * residual.

        At convergence this is the leave-one-out prediction, (fitted - leverage * z) / (1 - leverage); before, that
        formula would amplify errors of the start.
        """
        n_labels = self.shares.shape[1]
        fitted = estimates.intercept + self.regression.fitted(self.features[block], estimates.coef)
        fitted -= self.leverage[block, None] * self.residuals[block]
        mean, kinds = np.ascontiguousarray(fitted[:, :n_labels]), estimates.kinds(fitted[:, n_labels:])
        shares, observed, presence = self.shares[block], self.observed[block], self.presence[block]
        scale, weights = self.scale[block], self.weights[:, block]
        return Rows(shares, observed, self.nu[block], mean, scale, kinds, weights, presence)

    def update(self, estimates: Estimates) -> Estimates:
        """One round of EM: a pass over the rows, then m × m and q × q algebra."""
        sums = self.sums(estimates)
        self.evidence.append(sums.evidence / len(self.shares))
        return self._maximise(estimates, sums)

    def sums(self, estimates: Estimates) -> Sums:
        """The E step."""
        n_rows, n_labels = self.shares.shape
        blocks = work_blocks(n_rows, n_labels, 1 if estimates.curve is None else MASK_DRAWS)
        parts = self.mapper(lambda block: self._pass(estimates, block), blocks)
        return reduce(lambda sums, part: Sums(*map(add, sums, part)), parts)

    def _pass(self, estimates: Estimates, block: slice) -> Sums:
        """E step on a block of rows, and its part of the sums that the M step needs."""
        rows = self._prior(estimates, block)
        prior_kinds = rows.kinds
        slopes = np.zeros_like(estimates.covariances) if estimates.curve is None else None
        evidence, rows.kinds = modes(estimates, rows, LOOSE, slopes)
        if slopes is not None:
            moments = _moments(estimates, rows, slopes)
        else:
            rng = np.random.default_rng([MASK_SEED, block.start])
            moments, of_mask = _moments_given_mask(estimates, rows, rng)
            evidence = evidence + of_mask
        target = np.hstack([rows.mean + moments.residuals.sum(axis=0), moments.kinds])
        self.residuals[block] = target - np.hstack([rows.mean, prior_kinds])
        products = self.regression.products(self.features[block], target)
        residuals = moments.residuals.sum(axis=1)
        return Sums(moments.scatter, residuals, target.sum(axis=0), products, float(evidence.sum()), moments.mask)

    def _maximise(self, estimates: Estimates, sums: Sums) -> Estimates:
        n_rows, n_labels = self.shares.shape
        sizes = np.maximum(sums.total[n_labels:], 1e-9)
        S = np.array([centred(scatter / size) for scatter, size in zip(sums.scatter, sizes, strict=True)])
        common = np.tensordot(sizes / n_rows, S, axes=1)
        own = self._own_part(sizes)[:, None, None]
        offsets = own[:, 0] * (estimates.offsets + sums.residuals / sizes[:, None])
        if len(offsets) == 1:
            offsets = np.zeros_like(offsets)
        intercept, coef = sums.total / n_rows, self.regression.coefficients(sums.products)
        S = common + own * (S - common)
        parts = [self._shrunk(s, before) for s, before in zip(S, estimates.factors, strict=True)]
        curve = estimates.curve and estimates.curve.improved(sums.mask)
        return Estimates.around(parts, offsets, intercept, coef, curve)

    def _shrunk(self, S: FloatArray, before: Factors | None) -> FloatArray | Factors:
        n_rows, n_labels = self.shares.shape
        prior = (n_rows, self.parameters.prior_rows, self.parameters.ordered)
        if n_labels < FACTOR_LABELS:
            return shrunk(S, *prior)
        fewest = 0 if before is None or len(self.evidence) <= SETTLING else before.n_factors
        return Factors.shrunk(S, *prior, fewest)

    def change(self, before: Estimates, after: Estimates) -> float:
        """The largest change: of the means, of S, over all kinds, and of S in each direction.

        Means and S are taken in relation to the spread of log-shares.
        """
        n_labels = self.shares.shape[1]
        resolution = n_labels / self.parameters.nu
        share = after.shares_of_kinds
        variance = np.trace(after.covariance) / (n_labels - 1) + resolution
        difference = (after.coef - before.coef)[:, :n_labels]
        squared = ((after.intercept - before.intercept)[:n_labels] ** 2).mean()
        squared += self.regression.squared_size(difference) / (len(self.shares) * n_labels)
        of_offsets = share @ ((after.offsets - before.offsets) ** 2).mean(axis=1)
        of_S, size_of_S = (
            np.sqrt(share @ (S**2).sum(axis=(1, 2)))
            for S in (after.covariances - before.covariances, after.covariances)
        )
        of_S /= size_of_S + np.sqrt(n_labels) * resolution
        by_direction = DIRECTION * np.sqrt(share @ relative_changes(before, after, resolution))
        of_curve = after.curve.change(before.curve) if after.curve and before.curve else 0.0
        return float(max(np.sqrt(max(squared, of_offsets) / variance), of_S, by_direction, of_curve))


class _Moments(NamedTuple):
    """Posterior moments of rows: probabilities of kinds, residuals by kind (kinds, rows, m) times these, scatter."""

    kinds: FloatArray
    residuals: FloatArray
    scatter: FloatArray
    mask: FloatArray


def _moments(estimates: Estimates, rows: Rows, slopes: FloatArray) -> _Moments:
    """In closed form, where the mask says nothing about the shares."""
    S = estimates.covariances
    residuals = rows.kinds.T[:, :, None] * rows.scale[:, None] * (rows.weights @ S)
    scatter = rows.kinds.sum(axis=0)[:, None, None] * S
    for k, factors in enumerate(estimates.factors):
        scatter[k] += S[k] @ slopes[k] @ S[k] if factors is None else factors.around(slopes[k])
    return _Moments(rows.kinds, residuals, scatter, np.zeros((2, 5)))


def _moments_given_mask(estimates: Estimates, rows: Rows, rng: np.random.Generator) -> tuple[_Moments, FloatArray]:
    """From draws that are weighted by the probability of the mask; also the evidence of each row's mask."""
    assert estimates.curve is not None
    n_rows, n_labels = rows.mean.shape
    draws = Draws.paired(rng, n_rows, MASK_DRAWS, n_labels)
    z, weights, kind_of_draw = draw_rows(estimates, rows, draws.normals, draws.noise)
    D = softmax(z, axis=1)
    if estimates.curve.zeros:
        D = scattered_rows(D, rows.shares, rows.observed, rows.nu, True, rng)
    weighted = estimates.curve.weigh(weights, D, rows.shares, rows.observed)
    kinds, residuals = np.empty_like(rows.kinds), np.empty_like(rows.weights)
    scatter = np.empty_like(estimates.covariances)
    for k, offset in enumerate(estimates.offsets):
        own = np.where(kind_of_draw == k, weighted.weights, 0)
        kinds[:, k] = own.sum(axis=1)
        deviation = z - (rows.mean + offset)[:, :, None]
        residuals[k] = (deviation @ own[:, :, None])[:, :, 0]
        deviation *= np.sqrt(own / rows.scale[:, None])[:, None]
        flat = deviation.transpose(1, 0, 2).reshape(len(offset), -1)
        scatter[k] = flat @ flat.T
    return _Moments(kinds, residuals, scatter, weighted.sums()), weighted.evidence
