"""The rounds of EM on a Dask cluster: what grows with the rows is done partition by partition, where they are.

A round adds up a few small matrices over the partitions; the M step and the leaps are those of ``fitting``. What rows
keep from round to round stays on the workers. Dask knows how it was computed, so that it can compute it again, to the
last digit, if a worker is lost.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import dask
import numpy as np
from scipy.special import xlogy
from sklearn.base import clone

from hidldl.arrays import FloatArray, IntArray
from hidldl.parallel import row_blocks
from hidldl.progress import Progress
from hidldl.recovery.covariances import sums_over_pairs
from hidldl.recovery.fitting import LARGEST_LEVERAGE, Rounds, Sums, climb, common_kinds, every_so_many
from hidldl.recovery.kernelmean import SMALLEST_FEATURE, KernelMap, Ridge, without_rounding
from hidldl.recovery.latent import Estimates, LatentModel, Parameters
from hidldl.recovery.partitions_dask import constant
from hidldl.recovery.rows import Rows
from hidldl.recovery.rowweights import weights_of_rows
from hidldl.recovery.table_dask import ClusterTable, PartitionRows, Recovered, added, in_a_tree, keep_results, recovered


class State(NamedTuple):
    """What a partition's rows keep between rounds."""

    leverage: FloatArray
    weights: FloatArray
    residuals: FloatArray


class KernelRows:
    """The features of a kernel, block by block: all at once they would be larger than the table."""

    def __init__(self, kernel: KernelMap, X: FloatArray) -> None:
        self._kernel, self._X = kernel, X
        self.shape = (len(X), kernel.n_columns)
        self.size = len(X) * kernel.n_columns
        self._last: tuple[slice, FloatArray] | None = None

    def __len__(self) -> int:
        return len(self._X)

    def __getitem__(self, block: slice) -> FloatArray:
        # A round reads each block twice in a row.
        if self._last is None or self._last[0] != block:
            self._last = block, self._kernel(self._X[block])
        return self._last[1]


class Fixed(NamedTuple):
    """What is the same in all rounds and all partitions."""

    kernel: KernelMap
    regression: Ridge
    parameters: Parameters
    mean_votes: float


class PartRounds(Rounds):
    """The rounds of one partition, from the state after the last one."""

    features: Any
    weights: Any

    def __init__(self, part: PartitionRows, fixed: Fixed, state: State | None) -> None:
        kernel, self.regression, self.parameters, mean_votes = fixed
        self.features = KernelRows(kernel, part.features)
        self.shares, self.observed, self.mapper = part.shares, part.observed, map
        self.presence = self.observed.astype(np.float64)
        self.nu = weights_of_rows(part.votes, mean_votes, len(self.shares)) * self.parameters.nu
        if state is None:
            (n_rows, n_labels), n_kinds = self.shares.shape, self.parameters.n_components
            leverage = np.minimum(self.regression.leverage(self.features), LARGEST_LEVERAGE)
            state = State(leverage, np.zeros((n_kinds, n_rows, n_labels)), np.zeros((n_rows, n_labels + n_kinds)))
        self.leverage, self.scale = state.leverage, 1 / (1 - state.leverage)
        # Copies: a task that changes what it was given could not be run again.
        self.weights, self.residuals = state.weights.copy(), state.residuals.copy()

    @property
    def state(self) -> State:
        return State(self.leverage, self.weights, self.residuals)


def center_and_deviation(table: ClusterTable) -> tuple[FloatArray, FloatArray]:
    """Means and standard deviations of the features, as of ``kernelmean``."""
    peak = np.maximum(table.total(largest_features, combine=largest), SMALLEST_FEATURE)
    _, mean, squares = table.total(moments, peak, combine=merged_moments)
    return mean * peak, without_rounding(np.sqrt(squares / len(table))) * peak


def largest_features(part: PartitionRows) -> FloatArray:
    return np.abs(part.features).max(axis=0).astype(np.float64)


def moments(part: PartitionRows, peak: FloatArray) -> tuple[int, FloatArray, FloatArray]:
    """Rows, means and sums of squares around them, of features divided by their largest value."""
    scaled = part.features / peak
    mean = scaled.mean(axis=0)
    return len(scaled), mean, ((scaled - mean) ** 2).sum(axis=0)


def merged_moments(parts: Sequence[tuple[int, FloatArray, FloatArray]]) -> tuple[int, FloatArray, FloatArray]:
    """Moments of all rows from those of parts (Chan, Golub and LeVeque 1983)."""
    n_rows, mean, squares = parts[0]
    for n_more, mean_of_more, squares_of_more in parts[1:]:
        total, gap = n_rows + n_more, mean_of_more - mean
        mean = mean + gap * (n_more / total)
        squares = squares + squares_of_more + gap**2 * (n_rows * n_more / total)
        n_rows = total
    return n_rows, mean, squares


def largest(parts: Sequence[FloatArray]) -> FloatArray:
    return np.asarray(reduce(np.maximum, parts))


class StartSums(NamedTuple):
    """What the rounds start from: sums over rows of the kernel's features, pairs of labels and entropies."""

    total: FloatArray
    gram: FloatArray
    pairs: FloatArray
    entropy: float


class EndSums(NamedTuple):
    """What the end of a fit needs of all rows."""

    evidence: float
    kinds: FloatArray
    largest: FloatArray


def bayes_start(part: PartitionRows, kernel: KernelMap, origin: FloatArray, nu: float, mean_votes: float) -> StartSums:
    """Sums over a partition; features are relative to ``origin``, so that no digits are lost."""
    total, gram = np.zeros(len(origin)), np.zeros((len(origin), len(origin)))
    for block in row_blocks(len(part.features)):
        features = kernel(part.features[block]) - origin
        total += features.sum(axis=0)
        gram += features.T @ features
    shares = part.shares
    weights = weights_of_rows(part.votes, mean_votes, len(shares))
    entropy = -float((nu * weights * xlogy(shares, shares).sum(axis=1)).sum())
    return StartSums(total, gram, sums_over_pairs(shares, part.observed, nu), entropy)


def bayes_round(part: PartitionRows, fixed: Fixed, estimates: Estimates, state: State | None) -> tuple[Sums, State]:
    """The E step of a partition: its part of the sums, and its new state."""
    rounds = PartRounds(part, fixed, state)
    return rounds.sums(estimates), rounds.state


def bayes_end(part: PartitionRows, fixed: Fixed, model: LatentModel, state: State) -> EndSums:
    rows, evidence = PartRounds(part, fixed, state).posterior(model)
    return EndSums(float(evidence.sum()), rows.kinds.sum(axis=0), rows.kinds.max(axis=0))


def end_of_all(parts: Sequence[EndSums]) -> EndSums:
    sums: EndSums = added(parts)
    return sums._replace(largest=np.max([part.largest for part in parts], axis=0))


def bayes_residuals(part: PartitionRows, fixed: Fixed, model: LatentModel, of: tuple[State, slice]) -> FloatArray:
    state, some = of
    rows, _ = PartRounds(part, fixed, state).posterior(model)
    return model.residuals(rows.part(some))


def bayes_rows(part: PartitionRows, fixed: Fixed, model: LatentModel, chosen: IntArray, state: State) -> Rows:
    """The posterior of a partition's rows."""
    rows, _ = PartRounds(part, fixed, state).posterior(model)
    return rows.of_kinds(chosen)


def bayes_recovery(
    part: PartitionRows, fixed: Fixed, model: LatentModel, chosen: IntArray, estimator: Any, state: State
) -> Recovered:
    """A partition's recovered rows."""
    return recovered(part, estimator._estimate(bayes_rows(part, fixed, model, chosen, state)), estimator)


@dataclass(frozen=True)
class ClusterRows:
    """What is known here of rows that are on the cluster."""

    seen: FloatArray
    kinds: Any
    n_rows: int

    def __len__(self) -> int:
        return self.n_rows


def bayes_kinds(part: PartitionRows, fixed: Fixed, model: LatentModel, chosen: IntArray, state: State) -> FloatArray:
    return bayes_rows(part, fixed, model, chosen, state).kinds


class ClusterRounds(Rounds):
    """The rounds of all partitions."""

    shares: Any

    def __init__(
        self, table: ClusterTable, fixed: Fixed, pairs: FloatArray, entropy: float, progress: Progress
    ) -> None:
        self.table, self.shares, self.pairs = table, table.shares, pairs
        self.regression, self.parameters = fixed.regression, fixed.parameters
        self.fixed = constant(fixed)
        self.states: list[Any] | None = None
        self.evidence, self.entropy, self._progress = [], entropy, progress

    def _over_pairs(self) -> FloatArray:
        return self.pairs

    def sums(self, estimates: Estimates) -> Sums:
        states = self.states or [None] * self.table.n_parts
        parts = self.table.map(bayes_round, self.fixed, constant(estimates), each=states)
        total = in_a_tree([part[0] for part in parts], added)
        self.states, total = dask.persist([part[1] for part in parts], total)
        sums: Sums = total.compute()
        self._progress(len(self.evidence) + 1, None, f"rounds of EM: {len(self.evidence) + 1}")
        return sums


@dataclass(frozen=True)
class ClusterFit:
    """A model, and the states of the rows that it was fitted to."""

    model: LatentModel
    rounds: ClusterRounds
    history: dict[str, FloatArray]
    converged: bool
    end: EndSums

    @cached_property
    def chosen(self) -> IntArray:
        """The kinds that are worth showing."""
        return common_kinds(self.end.kinds / len(self.rounds.table), self.end.largest)

    @property
    def some_residuals(self) -> FloatArray:
        """As those of a ``Fit``."""
        table, step = self.rounds.table, every_so_many(len(self.rounds.table)).step
        assert self.rounds.states is not None
        lengths = [n_rows for n_rows in table.lengths if n_rows]
        some = [slice(-int(first) % step, None, step) for first in np.cumsum([0, *lengths[:-1]])]
        each = list(zip(self.rounds.states, some, strict=True))
        parts = table.map(bayes_residuals, self.rounds.fixed, constant(self.model), each=each)
        return np.concatenate(dask.compute(*parts))

    def map(self, function: Any, *arguments: Any) -> list[Any]:
        """Tasks on the rows of the fit."""
        constants = (self.rounds.fixed, constant(self.model), self.chosen, *arguments)
        return self.rounds.table.map(function, *constants, each=self.rounds.states)


def fit_on_cluster(
    table: ClusterTable,
    kernel: KernelMap,
    parameters: Parameters,
    *,
    max_iter: int,
    tol: float,
    progress: Progress,
) -> ClusterFit:
    """As ``fit_latent_model`` on the features of a kernel."""
    origin = kernel.from_distances(kernel.landmarks.distances_between).mean(axis=0)
    start: StartSums = table.total(bayes_start, constant(kernel), origin, parameters.nu, table.mean_votes)
    shift = start.total / len(table)
    gram = start.gram - len(table) * np.outer(shift, shift)
    regression = Ridge.from_gram(origin + shift, gram, len(table), parameters.ridge)
    simple: ClusterFit | None = None
    for n_kinds in dict.fromkeys((1, parameters.n_components)):
        own = Parameters(parameters.nu, parameters.ridge, parameters.prior_rows, parameters.ordered, n_kinds)
        fixed = Fixed(kernel, regression, own, table.mean_votes)
        rounds = ClusterRounds(table, fixed, start.pairs, start.entropy / len(table), progress)
        simple = _climbed(rounds, max_iter, tol, simple)
    assert simple is not None
    return simple


def _climbed(rounds: ClusterRounds, max_iter: int, tol: float, simple: Any) -> ClusterFit:
    start = rounds.start() if simple is None else rounds.split(simple)
    current, changes, converged = climb(rounds, start, max_iter, tol)
    model = LatentModel(rounds.parameters, current, rounds.regression)
    parts = rounds.table.map(bayes_end, rounds.fixed, constant(model), each=rounds.states)
    end: EndSums = in_a_tree(parts, end_of_all).compute()
    evidence = np.array([*rounds.evidence[1:], end.evidence / len(rounds.table)]) + rounds.entropy
    return ClusterFit(model, rounds, {"change": np.array(changes), "evidence": evidence}, converged, end)


def keep_rows(estimator: Any, fit: ClusterFit) -> Any:
    """Set the lazy results of a fit; returns what is known here of its rows."""
    table, worker = fit.rounds.table, clone(estimator).set_params(verbose=False, random_state=None, n_jobs=None)
    for name in ("_model", "_seed", "_dtype", "_true_zeros"):
        setattr(worker, name, getattr(estimator, name))
    keep_results(estimator, table, fit.map(bayes_recovery, constant(worker)))
    kinds = table.array(fit.map(bayes_kinds), len(fit.chosen), np.float64)
    return ClusterRows(table.survey.seen / len(table), kinds, len(table))
