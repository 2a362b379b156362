"""Threads: neither a user's nor ours change a result, or the limits of the process."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from estimators import ESTIMATORS, LEARNERS, seeded
from hidldl import SABFGS, SAIIS, make_distributions
from hidldl.estimator import HOOKS
from hidldl.parallel import _pools, one_blas_thread, one_thread


def blas_threads():
    """Of the pools that ours are: other packages may have brought more."""
    return [pool["num_threads"] for pool in _pools("blas").info()]


@pytest.fixture(autouse=True)
def two_blas_threads():
    """Two threads for BLAS, also where the environment allows one only."""
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        if 2 not in before:
            pytest.skip("this BLAS has one thread only")
        yield
        assert blas_threads() == before


def test_limits_that_overlap_hold_until_the_last_one_ends():
    entered, may_leave, seen = threading.Event(), threading.Event(), []

    def longer():
        with one_blas_thread():
            entered.set()
            may_leave.wait(10)
            seen.extend(blas_threads())

    other = threading.Thread(target=longer)
    with one_blas_thread():
        other.start()
        assert entered.wait(10)
    may_leave.set()
    other.join()
    assert set(seen) == {1}
    assert 2 in blas_threads()


def test_limits_end_with_an_error():
    with pytest.raises(RuntimeError), one_thread():
        raise RuntimeError
    assert 2 in blas_threads()


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore")
def test_every_method_computes_with_one_blas_thread(kind, hidden):
    seen = []

    def watched(name):
        def hook(self, *arguments):
            seen.extend(blas_threads())
            return getattr(kind, name)(self, *arguments)

        return hook

    hooks = [name for name in HOOKS[:5] if hasattr(kind, name)]
    model = seeded(kind, max_iter=3)
    model.__class__ = type("Watched", (kind,), {name: watched(name) for name in hooks})
    target = hidden.D if kind in LEARNERS else np.where(hidden.observed, hidden.D_obs, np.nan)
    model.fit(hidden.X, target).predict(hidden.X)
    assert set(seen) == {1}


def test_fits_in_threads_have_the_digits_of_a_fit_alone():
    data = make_distributions(n_rows=400, n_features=60, n_labels=6, random_state=0)
    models = [kind(max_iter=20, random_state=0) for kind in (SABFGS, SAIIS) for _ in range(3)]

    def predicted(model):
        return model.fit(data.features, data.distributions).predict(data.features)

    alone = [predicted(model) for model in models]
    with ThreadPoolExecutor(len(models)) as pool:
        together = list(pool.map(predicted, models))
    assert all(map(np.array_equal, alone, together))
