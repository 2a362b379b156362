"""The logistic-normal model of a table with hidden labels, fitted by expectation–maximisation.

Row i's log-shares are z_i ~ N(mu(x_i), S); mu is kernel ridge regression, S is shared. The E step finds each row's
posterior given its observed shares (``logisticnormal``), the M step regresses the posterior means on the features and
averages the posterior spread. A row's prior mean leaves the row itself out, so that no row confirms itself; the hat
matrix gives that in closed form.
"""

from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np
from scipy.special import xlogy

from hidldl.arrays import BoolArray, FloatArray
from hidldl.parallel import BLOCK_ROWS, Mapper, for_each, row_blocks
from hidldl.recovery.kernelmean import Ridge
from hidldl.recovery.logisticnormal import draw_log_shares, find_modes

MAX_NEWTON = 20
LOOSE, TIGHT = 1e-3, 1e-9
"""How little a row's loss must fall for Newton's method to stop: during the rounds, and at the end."""
LONGEST_STRIDE = 8.0
"""Longest extrapolation, in units of a round's change; a stride covers about its square in rounds."""
BLOCK_WORK, FEWEST_IN_BLOCK = 2**26, 32
"""Rows times labels³ of a block, and its fewest rows: with many labels, a few rows are enough work for a thread."""
LARGEST_LEVERAGE = 0.99
LARGEST_VARIANCE = 1e4
"""Of log-shares. With exact zeros S would grow without end; a share e¹⁰⁰ times smaller than another is 0 in effect."""


@dataclass(frozen=True)
class Parameters:
    """The parameters of the model, chosen by the user or by selection."""

    nu: float
    ridge: float
    prior_rows: float


@dataclass(frozen=True)
class Estimates:
    """What EM estimates: the covariance of the log-shares and their mean as a function of the features."""

    S: FloatArray
    intercept: FloatArray
    coef: FloatArray


@dataclass
class Rows:
    """Prior and posterior of rows: prior mean and scale, and the weights that lead from there to the mode."""

    shares: FloatArray
    observed: BoolArray
    mean: FloatArray
    scale: FloatArray
    weights: FloatArray

    def part(self, block: slice) -> "Rows":
        """Views of some of the rows."""
        mean, scale, weights = self.mean[block], self.scale[block], self.weights[block]
        return Rows(self.shares[block], self.observed[block], mean, scale, weights)


@dataclass(frozen=True)
class LatentModel:
    """A fitted model: prior for any row from its features, posterior from the labels that it has."""

    parameters: Parameters
    estimates: Estimates
    regression: Ridge

    def check(self) -> None:
        """Refuse parts that do not fit together, as a damaged file may have."""
        m, p = len(self.estimates.intercept), len(self.regression.center)
        squares = (self.regression.gram, self.regression.factor)
        shapes = (self.estimates.S.shape, self.estimates.coef.shape, *(square.shape for square in squares))
        numbers = (*vars(self.estimates).values(), self.regression.center, *squares)
        if shapes != ((m, m), (p, m), (p, p), (p, p)) or not all(np.isfinite(part).all() for part in numbers):
            raise ValueError("the parts of the model do not fit together.")

    def prior(self, features: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean of the log-shares of new rows, and the factor by which their covariance exceeds S."""
        mean = np.empty((len(features), len(self.estimates.intercept)))
        for block in row_blocks(len(features)):
            mean[block] = self.estimates.intercept + (features[block] - self.regression.center) @ self.estimates.coef
        return mean, 1 + self.regression.leverage(features)

    def condition(self, features: FloatArray, shares: FloatArray, observed: BoolArray, mapper: Mapper = map) -> Rows:
        """The posterior of new rows given some of their labels; rows without any keep their prior."""
        rows = Rows(shares, observed, *self.prior(features), np.zeros_like(shares))
        self.find_modes(rows, mapper)
        return rows

    def find_modes(self, rows: Rows, mapper: Mapper = map) -> FloatArray:
        """Set the rows' weights to those of the modes; returns each row's evidence."""
        evidence = np.zeros(len(rows.mean))

        def solve(block: slice) -> None:
            _modes(self.estimates.S, self.parameters.nu, rows.part(block), evidence[block], TIGHT)

        for_each(mapper, solve, _work_blocks(*rows.mean.shape))
        return evidence

    def draw(self, rows: Rows, block: slice, normals: FloatArray, noise: FloatArray) -> FloatArray:
        """Posterior draws of the log-shares of a block of rows, (rows, m, draws); see ``draw_log_shares``."""
        S = self.estimates.S
        eigenvalues, vectors = np.linalg.eigh(S)
        prior_draws = (vectors * np.sqrt(np.maximum(eigenvalues, 0))) @ normals
        part = rows.part(block)
        out = np.empty((len(part.mean), *normals.shape[1:]))
        draw_log_shares(
            S, part.mean, part.scale, part.observed, self.parameters.nu, part.weights, prior_draws, noise, out
        )
        return out


def _work_blocks(n_rows: int, n_labels: int) -> list[slice]:
    return row_blocks(n_rows, int(np.clip(BLOCK_WORK // n_labels**3, FEWEST_IN_BLOCK, BLOCK_ROWS)))


@dataclass(frozen=True)
class Fit:
    """A model, the rows that it was fitted to, and how the fit went."""

    model: LatentModel
    rows: Rows
    history: dict[str, FloatArray]
    converged: bool


def fit_latent_model(
    features: FloatArray,
    shares: FloatArray,
    observed: BoolArray,
    parameters: Parameters,
    *,
    max_iter: int,
    tol: float,
    regression: Ridge | None = None,
    mapper: Mapper = map,
) -> Fit:
    """EM from pairwise log-ratios to a standstill: no round changes S or the means by more than ``tol`` of their size.

    Two rounds, then a leap along the direction in which they moved (SQUAREM, Varadhan and Roland 2008), and so on:
    EM itself is slow where much is hidden.
    """
    if regression is None:
        regression = Ridge.of(features, parameters.ridge)
    rounds = _Rounds(features, shares, observed, parameters, regression, mapper)
    start = rounds.start()
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
            path, safe = [_leap(path[0], path[1], path[2], stride)], path[2]
    current = path[-1]
    model = LatentModel(parameters, current, regression)
    rows = rounds.rows(current)
    evidence = model.find_modes(rows, mapper)
    entropy = -xlogy(shares, shares).sum() / len(shares)
    evidences = np.array([*rounds.evidence[1:], evidence.mean()]) + parameters.nu * entropy
    history = {"change": np.array(changes), "evidence": evidences}
    return Fit(model, rows, history, converged)


class _Rounds:
    """What the rounds of EM share, and the state of each row between them."""

    def __init__(
        self,
        features: FloatArray,
        shares: FloatArray,
        observed: BoolArray,
        parameters: Parameters,
        regression: Ridge,
        mapper: Mapper,
    ) -> None:
        self.features, self.shares, self.observed = features, shares, observed
        self.parameters, self.regression, self.mapper = parameters, regression, mapper
        self.leverage = np.minimum(regression.leverage(features), LARGEST_LEVERAGE)
        self.scale = 1 / (1 - self.leverage)
        self.weights = np.zeros_like(shares)
        self.residuals = np.zeros_like(shares)
        self.evidence: list[float] = []

    def start(self) -> Estimates:
        intercept, S = moments_of_log_ratios(self.shares, self.observed, self.parameters.nu)
        return Estimates(S, intercept, np.zeros((self.features.shape[1], len(S))))

    def means(self, estimates: Estimates, block: slice) -> FloatArray:
        """Prior means of rows, each without the row's own part: fitted - leverage * residual.

        At convergence this is the leave-one-out prediction, (fitted - leverage * z) / (1 - leverage); before, that
        formula would amplify errors of the start.
        """
        fitted = estimates.intercept + (self.features[block] - self.regression.center) @ estimates.coef
        return fitted - self.leverage[block, None] * self.residuals[block]

    def rows(self, estimates: Estimates) -> Rows:
        mean = np.empty_like(self.shares)
        for block in row_blocks(len(mean)):
            mean[block] = self.means(estimates, block)
        return Rows(self.shares, self.observed, mean, self.scale, self.weights)

    def update(self, estimates: Estimates) -> Estimates:
        """One round of EM: a pass over the rows, then m × m and q × q algebra."""
        n_rows, n_labels = self.shares.shape
        parts = self.mapper(lambda block: self._pass(estimates, block), _work_blocks(n_rows, n_labels))
        slope, total, products, evidence = reduce(lambda sums, part: tuple(map(add, sums, part)), parts)
        self.evidence.append(evidence / n_rows)
        S = estimates.S
        S = centred(S + S @ (slope / n_rows) @ S)
        typical = np.trace(S) / (n_labels - 1)
        if typical > LARGEST_VARIANCE:
            S, typical = S * (LARGEST_VARIANCE / typical), LARGEST_VARIANCE
        isotropic = typical * (np.eye(n_labels) - 1 / n_labels)
        prior_rows = self.parameters.prior_rows
        S = (n_rows * S + prior_rows * isotropic) / (n_rows + prior_rows)
        return Estimates(S, total / n_rows, self.regression.coefficients(products))

    def _pass(self, estimates: Estimates, block: slice) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        """E step on a block of rows, and its part of the sums that the M step needs."""
        mean = self.means(estimates, block)
        rows = Rows(self.shares[block], self.observed[block], mean, self.scale[block], self.weights[block])
        evidence = np.zeros(len(mean))
        slope = _modes(estimates.S, self.parameters.nu, rows, evidence, LOOSE)
        self.residuals[block] = rows.scale[:, None] * (rows.weights @ estimates.S)
        z = mean + self.residuals[block]
        products = (self.features[block] - self.regression.center).T @ z
        return slope, z.sum(axis=0), products, evidence.sum()

    def change(self, before: Estimates, after: Estimates) -> float:
        """The larger of the changes of S and of the means, relative to the spread of a row's log-shares."""
        n_labels = len(after.S)
        resolution = n_labels / self.parameters.nu
        variance = np.trace(after.S) / (n_labels - 1) + resolution
        difference = after.coef - before.coef
        squared = ((after.intercept - before.intercept) ** 2).mean()
        squared += np.sum(difference * (self.regression.gram @ difference)) / self.shares.size
        of_S = np.linalg.norm(after.S - before.S) / (np.linalg.norm(after.S) + np.sqrt(n_labels) * resolution)
        return float(max(np.sqrt(squared / variance), of_S))


def moments_of_log_ratios(shares: FloatArray, observed: BoolArray, nu: float) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of the log-shares from pairs of labels that are observed together.

    Log-ratios of two observed labels are free of what was hidden. Their means give the mean log-shares by least
    squares, and their variances the variation matrix, of which -1/2 in centred coordinates is the covariance.
    Half a pseudo-count keeps zeros finite. Half of the result is isotropic: EM shrinks a direction quickly, but is
    slow to find one that is missing at the start.
    """
    n_labels = shares.shape[1]
    logs = np.where(observed, np.log(shares + 0.5 / nu), 0)
    mask = observed.astype(np.float64)
    pairs, sums, squares = mask.T @ mask, logs.T @ mask, (logs**2).T @ mask
    differences = sums - sums.T
    connections = np.diag(pairs.sum(axis=1)) - pairs
    mean = np.linalg.lstsq(connections, differences.sum(axis=1), rcond=None)[0]
    mean -= mean.mean()
    gaps = mean[:, None] - mean
    squared = squares + squares.T - 2 * logs.T @ logs - 2 * differences * gaps + pairs * gaps**2
    overall = squared.sum() / max(pairs.sum() - np.trace(pairs), 1)
    variation = (squared + 2 * overall) / (pairs + 2)
    np.fill_diagonal(variation, 0)
    eigenvalues, vectors = np.linalg.eigh(centred(-variation / 2))
    S = (vectors * np.maximum(eigenvalues, 0)) @ vectors.T
    typical = max(np.trace(S) / (n_labels - 1), 1 / nu)
    return mean, (S + typical * (np.eye(n_labels) - 1 / n_labels)) / 2


def centred(S: FloatArray) -> FloatArray:
    """A symmetric matrix in the space in which rows and columns sum to 0."""
    S = S - S.mean(axis=0)
    S = S - S.mean(axis=1, keepdims=True)
    return (S + S.T) / 2


def _modes(S: FloatArray, nu: float, rows: Rows, evidence: FloatArray, tol: float) -> FloatArray:
    slope = np.zeros_like(S)
    find_modes(S, rows.mean, rows.scale, rows.shares, rows.observed, nu, MAX_NEWTON, tol, rows.weights, slope, evidence)
    return slope


def _leap(first: Estimates, second: Estimates, third: Estimates, longest: float) -> Estimates:
    """Extrapolate three iterates; S stays positive on the space of centred vectors."""
    S = centred(_extrapolate(first.S, second.S, third.S, longest))
    eigenvalues, vectors = np.linalg.eigh(S)
    smallest = np.linalg.eigvalsh(third.S)[1] / 10
    S = centred((vectors * np.maximum(eigenvalues, max(smallest, 0))) @ vectors.T)
    means = [np.vstack([each.intercept, each.coef]) for each in (first, second, third)]
    mean = _extrapolate(means[0], means[1], means[2], longest)
    return replace(third, S=S, intercept=mean[0], coef=mean[1:])


def _extrapolate(first: FloatArray, second: FloatArray, third: FloatArray, longest: float) -> FloatArray:
    step, bend = second - first, third - 2 * second + first
    size = np.linalg.norm(bend)
    stride = np.clip(np.linalg.norm(step) / size, 1, longest) if size > 0 else 1.0
    return np.asarray(first + 2 * stride * step + stride**2 * bend)
