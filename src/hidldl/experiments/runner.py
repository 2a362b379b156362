"""How experiments are run: in parallel, resumable, every failure on record."""

import sys
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, Executor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import current_thread, main_thread
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone

from hidldl.arrays import BoolArray, FloatArray
from hidldl.base import Recoverer
from hidldl.datasets.dataset import Dataset
from hidldl.experiments.protocol import Condition, Contender, Evaluation, Experiment, Mask, dataset_loader
from hidldl.experiments.store import Result, Store
from hidldl.hiding import hide_labels
from hidldl.learners.sabfgs import SABFGS
from hidldl.metrics import MEASURES, score
from hidldl.parallel import one_thread
from hidldl.progress import Progress, silent
from hidldl.recovery.inferring import infer_observed

TEST_SHARE = 0.2
ROUNDING = 1e-12
"""Of intervals' bounds, which are sums."""
Work: TypeAlias = tuple[Condition, list[tuple[str, Contender]], Callable[[], Dataset]]
"""A condition, the contenders under it with their keys, and what loads the dataset."""


def run(
    experiments: Iterable[Experiment],
    store: Store,
    *,
    n_jobs: int = 1,
    executor: Executor | None = None,
    retry_failed: bool = False,
    data: Dataset | None = None,
    progress: Progress = silent,
) -> int:
    """Run what the store does not have yet, and return how many evaluations that were.

    Results are written as they are finished, so an interrupted run goes on where it stopped. Whatever ``n_jobs``, each
    evaluation runs in one thread: its numbers do not depend on how many run beside it. With an ``executor`` they run
    there instead, such as on a cluster, and only this process writes to the store. ``data`` stands for the datasets
    that the experiments name, where they need not be loaded.
    """
    finished = store.finished_keys(retry_failed=retry_failed)
    pending: dict[Condition, dict[str, Contender]] = defaultdict(dict)
    for experiment in experiments:
        for evaluation in experiment.evaluations():
            if evaluation.key not in finished:
                pending[evaluation.condition][evaluation.key] = evaluation.contender
    total = sum(map(len, pending.values()))
    works: list[Work] = [
        (condition, _fits_together(contenders), dataset_loader(condition.dataset) if data is None else _Given(data))
        for condition, contenders in pending.items()
    ]
    done = 0
    for condition, count in _in_processes(works, store, n_jobs) if executor is None else _on(executor, works, store):
        done += count
        progress(done, total, str(condition))
    return total


def _in_processes(works: list[Work], store: Store, n_jobs: int) -> Iterator[tuple[Condition, int]]:
    """Processes of this machine write their results themselves, each as soon as it is there."""
    tasks = (delayed(_evaluate_and_record)(*work, store.path) for work in works)
    try:
        yield from Parallel(n_jobs=n_jobs, return_as="generator_unordered")(tasks)
    except BrokenExecutor as error:
        raise MemoryError(
            "a process was killed, perhaps because there was not enough memory; what is finished is kept, so run it "
            "again, with fewer processes at a time."
        ) from error


def _on(executor: Executor, works: list[Work], store: Store) -> Iterator[tuple[Condition, int]]:
    """Workers of an executor may be on other machines, which cannot reach the store."""
    # Before any thread starts: threads change the filters of warnings too, and afterwards the old ones are restored.
    with _quiet():
        futures = [executor.submit(_evaluate, *work) for work in works]
        try:
            for future in as_completed(futures):
                results = future.result()
                for key, evaluation, result in results:
                    store.record(evaluation, result, key)
                yield results[0][1].condition, len(results)
        finally:
            for future in futures:
                future.cancel()


@dataclass(frozen=True)
class _Given:
    """Loads a dataset that is there already."""

    data: Dataset

    def __call__(self) -> Dataset:
        return self.data


def _fits_together(contenders: dict[str, Contender]) -> list[tuple[str, Contender]]:
    """Keys and contenders, those that share a fitted model side by side."""
    by_fit: dict[str, list[tuple[str, Contender]]] = defaultdict(list)
    for key, contender in contenders.items():
        by_fit[contender.fit_name].append((key, contender))
    return [pair for pairs in by_fit.values() for pair in pairs]


def _evaluate_and_record(
    condition: Condition, contenders: list[tuple[str, Contender]], loader: Callable[[], Dataset], path: Path
) -> tuple[Condition, int]:
    store = Store(path)
    for key, evaluation, result in _results(condition, contenders, loader):
        store.record(evaluation, result, key)
    return condition, len(contenders)


def _evaluate(*work: Any) -> list[tuple[str, Evaluation, Result]]:
    return list(_results(*work))


def _results(
    condition: Condition, contenders: list[tuple[str, Contender]], loader: Callable[[], Dataset]
) -> Iterator[tuple[str, Evaluation, Result]]:
    """Every contender under one condition, on the same mask."""
    bench = _Bench(condition, loader)
    with one_thread(), _quiet():
        for key, contender in contenders:
            yield key, Evaluation(condition, contender), bench.evaluate(contender)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without warnings: convergence is on record. Filters belong to the process, so only its main thread sets them."""
    if current_thread() is not main_thread():
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@dataclass(frozen=True)
class _Task:
    """The arrays of a condition: rows to recover with their truth, and what the result is compared with."""

    X: Any
    D_obs: FloatArray
    observed: BoolArray
    truth: FloatArray
    X_test: Any
    target: FloatArray
    memory: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, condition: Condition, data: Dataset) -> "_Task":
        X, truth = np.asarray(data.features), np.asarray(data.distributions)
        D_obs, observed = hide_labels(truth, rate=condition.rate, random_state=condition.seed)
        if condition.setting != "predictive":
            return cls(X, D_obs, observed, truth, X, truth)
        order = np.random.default_rng(condition.seed).permutation(len(X))
        test, train = np.split(order, [round(TEST_SHARE * len(X))])
        return cls(X[train], D_obs[train], observed[train], truth[train], X[test], truth[test])

    def mask(self, kind: Mask, can_tell: bool, seed: int) -> Any:
        """The mask that a contender gets; one that can tell infers it itself."""
        if kind == "known":
            return self.observed
        if kind == "hidden":
            return self.D_obs > 0
        return np.where(self.D_obs > 0, 1.0, np.nan) if can_tell else self._inferred(seed)

    def _inferred(self, seed: int) -> Any:
        """Inferred once for all contenders."""
        if "mask" not in self.memory:
            self.memory["mask"] = infer_observed(self.X, self.D_obs, random_state=seed).observed
        return self.memory["mask"]


@dataclass(frozen=True)
class _Fitted:
    """A fitted model, its matrix that the paper measures, the rows that users get, and how long it took."""

    model: Any
    raw: FloatArray
    public: FloatArray
    seconds: float = 0.0


class _Bench:
    """Where the contenders of a condition are evaluated: it keeps the arrays and the last fitted model."""

    def __init__(self, condition: Condition, loader: Callable[[], Dataset]) -> None:
        self.condition = condition
        self.loader = loader
        self._task: _Task | None = None
        self._last: tuple[str, _Fitted] | None = None

    def evaluate(self, contender: Contender) -> Result:
        """What comes out of a contender, whatever happens."""
        started = perf_counter()
        try:
            fitted = self._fit(contender)
            started = perf_counter()
            task = self._arrays()
            scored = _scored_rows(contender, fitted, task, self.condition)
            model, seconds = fitted.model, fitted.seconds + perf_counter() - started
            held = self._coverage(contender, model)
            return Result(
                "done",
                score(task.target, scored),
                alpha=getattr(model, "alpha_", getattr(model, "alpha", None)),
                iterations=getattr(model, "n_iter_", None),
                converged=getattr(model, "converged_", None),
                seconds=seconds,
                peak_memory_mb=_peak_memory_mb(),
                shares_held=held.shares,
                masses_held=held.masses,
            )
        except Exception:
            return Result("failed", {}, seconds=perf_counter() - started, traceback=traceback.format_exc())

    def _arrays(self) -> _Task:
        if self._task is None:
            self._task = _Task.of(self.condition, self.loader())
        return self._task

    def _fit(self, contender: Contender) -> _Fitted:
        if self._last is None or self._last[0] != contender.fit_name:
            task = self._arrays()
            started = perf_counter()
            best = _fit(contender, task, self.condition.seed)
            fitted = _Fitted(best.model, best.raw, best.public, perf_counter() - started)
            self._last = contender.fit_name, fitted
        return self._last[1]

    def _coverage(self, contender: Contender, model: Any) -> "Coverage":
        if contender.interval_level is None or self.condition.setting != "recovery":
            return Coverage(None, None)
        return coverage(model, self._arrays().truth, contender.interval_level)


def _fit(contender: Contender, task: _Task, seed: int) -> _Fitted:
    estimator = contender.make(seed)
    if not isinstance(estimator, Recoverer):
        model = estimator.fit(task.X, task.D_obs)
        predicted = model.predict(task.X)
        return _Fitted(model, predicted, predicted)
    mask = task.mask(contender.mask, estimator.can_tell_zeros, seed)
    if not contender.alphas:
        model = estimator.fit(task.X, task.D_obs, mask)
        return _Fitted(model, model.raw_distributions_, model.distributions_)
    return min(_path(estimator, contender, task, mask), key=lambda fit: MEASURES["chebyshev"](task.truth, fit.raw))


def _path(estimator: Recoverer, contender: Contender, task: _Task, mask: Any) -> Iterator[_Fitted]:
    for model in estimator.alpha_path(contender.alphas, task.X, task.D_obs, mask):
        yield _Fitted(model, model.raw_distributions_, model.distributions_)


def _scored_rows(contender: Contender, fitted: _Fitted, task: _Task, condition: Condition) -> FloatArray:
    """The rows of the contender that are compared with the truth."""
    if condition.setting != "predictive":
        return _recovered_rows(contender, fitted, task, condition.seed)
    if contender.predicts:
        return np.asarray(fitted.model.predict(task.X_test))
    learner = SABFGS(random_state=condition.seed).fit(task.X, fitted.public)
    return np.asarray(learner.predict(task.X_test))


def _recovered_rows(contender: Contender, fitted: _Fitted, task: _Task, seed: int) -> FloatArray:
    if contender.rows == "raw":
        return fitted.raw
    if contender.rows == "public":
        return fitted.public
    # With the parameters that were chosen already, a fit takes little.
    model = clone(fitted.model).set_params(**fitted.model.parameters_, estimate="relative")
    mask = task.mask(contender.mask, model.can_tell_zeros, seed)
    return np.asarray(model.fit(task.X, task.D_obs, mask).distributions_)


class Coverage(NamedTuple):
    """Which part of the hidden shares, and of the hidden masses, lies in its interval."""

    shares: float | None
    masses: float | None


def coverage(model: Any, truth: FloatArray, level: float) -> Coverage:
    """How much of the truth the intervals of a fitted model hold."""
    intervals, hidden = model.intervals(level), ~np.asarray(model.observed_)
    shares = (intervals.low <= truth + ROUNDING) & (intervals.high >= truth - ROUNDING)
    mass = np.where(hidden, truth, 0).sum(axis=1)
    masses = (intervals.hidden_mass_low <= mass + ROUNDING) & (intervals.hidden_mass_high >= mass - ROUNDING)
    return Coverage(float(shares[hidden].mean()), float(masses[hidden.any(axis=1)].mean()))


def _peak_memory_mb() -> float | None:
    """The most memory that this process has held so far; None where the system does not say."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
