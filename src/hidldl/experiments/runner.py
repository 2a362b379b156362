"""How experiments are run: in parallel, resumable, every failure on record."""

import resource
import sys
import traceback
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from hidldl.arrays import BoolArray, FloatArray
from hidldl.base import Recoverer
from hidldl.datasets.dataset import Dataset
from hidldl.experiments.protocol import Condition, Evaluation, Experiment, Method, dataset_loader
from hidldl.experiments.store import Result, Store
from hidldl.hiding import hide_labels
from hidldl.learners.sabfgs import SABFGS
from hidldl.metrics import MEASURES, score

TEST_SHARE = 0.2


@dataclass(frozen=True)
class Progress:
    """How far a run is: evaluations done and in all, and what was finished last."""

    done: int
    total: int
    last: Condition


def run(
    experiments: Iterable[Experiment],
    store: Store,
    *,
    n_jobs: int = 1,
    retry_failed: bool = False,
    report: Callable[[Progress], None] = lambda progress: None,
) -> int:
    """Run what the store does not have yet, and return how many evaluations that were.

    Results are written as they are finished, so an interrupted run goes on where it stopped. Whatever ``n_jobs``, each
    evaluation runs in one thread: its numbers do not depend on how many run beside it.
    """
    finished = store.finished_keys(retry_failed=retry_failed)
    pending: dict[Condition, dict[str, Evaluation]] = defaultdict(dict)
    for experiment in experiments:
        for evaluation in experiment.evaluations():
            if evaluation.key not in finished:
                pending[evaluation.condition][evaluation.key] = evaluation
    total = sum(map(len, pending.values()))
    tasks = (
        delayed(_run_condition)(
            condition, [e.method for e in group.values()], dataset_loader(condition.dataset), store.path
        )
        for condition, group in pending.items()
    )
    done = 0
    for condition, count in Parallel(n_jobs=n_jobs, return_as="generator_unordered")(tasks):
        done += count
        report(Progress(done, total, condition))
    return total


def _run_condition(
    condition: Condition, methods: list[Method], loader: Callable[[], Dataset], path: Path
) -> tuple[Condition, int]:
    """Every method under one condition, on the same mask; each result is written as soon as it is there."""
    store = Store(path)
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # convergence is on record
        for method in methods:
            store.record(Evaluation(condition, method), _evaluate(condition, method, loader))
    return condition, len(methods)


def _evaluate(condition: Condition, method: Method, loader: Callable[[], Dataset]) -> Result:
    started = perf_counter()
    try:
        task = _task(condition, loader)
        started = perf_counter()
        fitted = _fit(method, task, condition.seed)
        recovered = (
            fitted.raw if condition.setting == "recovery" else _predict_test_rows(fitted.public, task, condition)
        )
        seconds = perf_counter() - started
        return Result(
            "done",
            score(task.target, recovered),
            alpha=getattr(fitted.model, "alpha", None),
            iterations=getattr(fitted.model, "n_iter_", None),
            converged=getattr(fitted.model, "converged_", None),
            seconds=seconds,
            peak_memory_mb=_peak_memory_mb(),
        )
    except Exception:
        return Result("failed", {}, seconds=perf_counter() - started, traceback=traceback.format_exc())


@dataclass(frozen=True)
class _Task:
    """The arrays of a condition: rows to recover with their truth, and what the result is compared with."""

    X: Any
    D_obs: FloatArray
    observed: BoolArray
    truth: FloatArray
    X_test: Any
    target: FloatArray


@lru_cache(maxsize=2)
def _task(condition: Condition, loader: Callable[[], Dataset]) -> _Task:
    data = loader()
    X, truth = np.asarray(data.features), np.asarray(data.distributions)
    D_obs, observed = hide_labels(truth, rate=condition.rate, random_state=condition.seed)
    if condition.setting == "recovery":
        return _Task(X, D_obs, observed, truth, X, truth)
    order = np.random.default_rng(condition.seed).permutation(len(X))
    test, train = np.split(order, [round(TEST_SHARE * len(X))])
    return _Task(X[train], D_obs[train], observed[train], truth[train], X[test], truth[test])


@dataclass(frozen=True)
class _Fitted:
    """A fitted model with the matrix that the paper measures and the one that users get."""

    model: Any
    raw: FloatArray
    public: FloatArray


def _fit(method: Method, task: _Task, seed: int) -> _Fitted:
    estimator = method.make(seed)
    if not isinstance(estimator, Recoverer):
        model = estimator.fit(task.X, task.D_obs)
        predicted = model.predict(task.X)
        return _Fitted(model, predicted, predicted)
    if not method.alphas:
        model = estimator.fit(task.X, task.D_obs, task.observed)
        return _Fitted(model, model.raw_distributions_, model.distributions_)
    return min(_path(estimator, method, task), key=lambda fit: MEASURES["chebyshev"](task.truth, fit.raw))


def _path(estimator: Recoverer, method: Method, task: _Task) -> Iterator[_Fitted]:
    for model in estimator.alpha_path(method.alphas, task.X, task.D_obs, task.observed):
        yield _Fitted(model, model.raw_distributions_, model.distributions_)


def _predict_test_rows(recovered: FloatArray, task: _Task, condition: Condition) -> FloatArray:
    learner = SABFGS(random_state=condition.seed).fit(task.X, recovered)
    return np.asarray(learner.predict(task.X_test))


def _peak_memory_mb() -> float:
    """The most memory that this process has held so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)
