"""What holds for all measures, projections, hiders, recoverers and learners, which are found, not listed."""

import inspect
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from estimators import ESTIMATORS, LEARNERS, RECOVERERS, seeded
from hidldl import SelfTuned, hide_labels, simplex
from hidldl.hiding import Mechanism
from hidldl.metrics import MEASURES

PROJECTIONS = [
    function
    for name, function in inspect.getmembers(simplex, inspect.isfunction)
    if function.__module__ == simplex.__name__
    and [p.default for p in inspect.signature(function).parameters.values()].count(inspect.Parameter.empty) == 1
    and np.shape(function(np.eye(2))) == (2, 2)
]
MECHANISMS = get_args(Mechanism)
# SelfTuned has processes, which take seconds to start; its own tests compare their numbers.
WITH_THREADS = [kind for kind in ESTIMATORS if "n_jobs" in kind().get_params() and kind is not SelfTuned]
HUGE = 1e150


def strided(A):
    """The same numbers, every other one in memory."""
    wide = np.full((2 * A.shape[0], 2 * A.shape[1]), -7, dtype=A.dtype)
    wide[::2, ::2] = A
    return wide[::2, ::2]


def read_only(A):
    copy = A.copy()
    copy.flags.writeable = False
    return copy


FORMS = {"read-only": read_only, "Fortran": np.asfortranarray, "strided": strided, "reversed": lambda A: A[::-1][::-1]}
shapes = st.tuples(st.integers(1, 6), st.integers(2, 7))
any_matrix = arrays(np.float64, shapes, elements=st.floats(-HUGE, HUGE))
seeds = st.integers(0, 10**6)


def distributions(seed, *size):
    rng = np.random.default_rng(seed)
    D = rng.dirichlet(np.full(size[-1], rng.choice([0.05, 1.0, 50.0])), size=size[:-1])
    D[rng.random(D.shape) < 0.2] = 0
    D[..., 0] += D.sum(axis=-1) == 0
    return D / D.sum(axis=-1, keepdims=True)


def on_the_simplex(D, atol=1e-9):
    return bool((D >= 0).all() and np.allclose(D.sum(axis=1), 1, rtol=0, atol=atol))


@pytest.mark.parametrize("project", PROJECTIONS, ids=lambda function: function.__name__)
@settings(max_examples=60)
@given(Y=any_matrix, seed=seeds)
def test_projections(project, Y, seed):
    before, rng = Y.copy(), np.random.default_rng(seed)
    P = project(Y)
    assert on_the_simplex(P)
    assert np.array_equal(Y, before)
    assert np.allclose(project(P), P, rtol=0, atol=1e-12)
    rows, labels = rng.permutation(len(Y)), rng.permutation(Y.shape[1])
    assert np.allclose(project(Y[rows][:, labels]), P[rows][:, labels], rtol=0, atol=1e-12)
    for form in FORMS.values():
        assert np.allclose(project(form(Y)), P, rtol=0, atol=1e-12)
    narrow = project(np.clip(Y, -1e15, 1e15).astype(np.float32))
    assert narrow.dtype == np.float32
    assert on_the_simplex(narrow, 1e-5)


@pytest.mark.parametrize("measure", MEASURES.values(), ids=MEASURES)
@settings(max_examples=30)
@given(seed=seeds, n_rows=st.integers(1, 6), n_labels=st.integers(2, 7))
def test_measures(measure, seed, n_rows, n_labels):
    D, P = distributions(seed, 2, n_rows, n_labels)
    before, rng = (D.copy(), P.copy()), np.random.default_rng(seed)
    values = measure.rows(D, P)
    assert values.shape == (n_rows,)
    rows, labels = rng.permutation(n_rows), rng.permutation(n_labels)
    with np.errstate(invalid="ignore"):
        assert np.allclose(measure.rows(D[rows][:, labels], P[rows][:, labels]), values[rows])
        for form in FORMS.values():
            assert np.allclose(measure.rows(form(D), form(P)), values)
    best = measure.rows(D, D)
    assert np.allclose(best, 1 if measure.higher_is_better else 0, rtol=0, atol=1e-9)
    assert (values <= best + 1e-9).all() if measure.higher_is_better else (values >= best - 1e-9).all()
    assert np.array_equal(D, before[0])
    assert np.array_equal(P, before[1])


@pytest.mark.parametrize("mechanism", MECHANISMS)
@settings(max_examples=20)
@given(seed=seeds, n_rows=st.integers(2, 8), n_labels=st.integers(2, 7), rate=st.floats(0, 1))
def test_hiders(mechanism, seed, n_rows, n_labels, rate):
    D = distributions(seed, n_rows, n_labels)
    X, before = np.random.default_rng(seed).normal(size=(n_rows, 2)), D.copy()
    options = {"rate": rate, "random_state": seed, "mechanism": mechanism}
    options |= {"features": X} if mechanism == "feature" else {}
    D_obs, observed = hide_labels(D, **options)
    assert on_the_simplex(D_obs)
    assert not D_obs[~observed].any()
    kept = np.where(observed, D, 0)
    assert np.allclose(D_obs * kept.sum(axis=1, keepdims=True), kept, rtol=1e-12, atol=0)
    assert np.array_equal(D, before)
    for form in FORMS.values():
        assert np.array_equal(hide_labels(form(D), **options)[1], observed)
    if rate == 0:
        assert np.allclose(D_obs, D, rtol=0, atol=1e-15)


def results(kind, X, target, **options):
    """What a quick fit finds, and what it predicts."""
    model = seeded(kind, max_iter=5, n_draws=2, **options).fit(X, target)
    return [model.predict(X)] if kind in LEARNERS else [model.distributions_, model.predict(X)]


def target_of(kind, hidden):
    return hidden.D if kind in LEARNERS else np.where(hidden.observed, hidden.D_obs, np.nan)


@pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore")
def test_the_form_of_arrays_changes_no_result(kind, hidden):
    X, target = hidden.X, target_of(kind, hidden)
    plain = results(kind, X, target)
    for form in (read_only, lambda A: strided(np.asfortranarray(A))):
        for found, expected in zip(results(kind, form(X), form(target)), plain, strict=True):
            assert np.array_equal(found, expected)


@pytest.mark.parametrize("kind", WITH_THREADS, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore")
def test_the_number_of_threads_changes_no_digit(kind, hidden):
    one, three = (results(kind, hidden.X, target_of(kind, hidden), n_jobs=n_jobs) for n_jobs in (1, 3))
    assert all(map(np.array_equal, one, three))


@pytest.mark.parametrize("kind", RECOVERERS, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore")
def test_mask_nan_and_zeros_are_three_ways_to_say_the_same(kind, hidden):
    zeros = {"zeros": "hidden"} if "zeros" in kind().get_params() else {}
    model = seeded(kind, max_iter=5, **zeros)
    by_nan = model.fit(hidden.X, target_of(kind, hidden)).distributions_
    assert np.array_equal(model.fit(hidden.X, hidden.D_obs, observed=hidden.observed).distributions_, by_nan)
    assert (hidden.D_obs[hidden.observed] > 0).all()
    assert np.array_equal(model.fit(hidden.X, hidden.D_obs).distributions_, by_nan)


@pytest.mark.parametrize("kind", RECOVERERS, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore")
def test_rows_in_which_nothing_is_hidden_stay_as_they_are(kind, hidden):
    model = seeded(kind, max_iter=5).fit(hidden.X, hidden.D, observed=np.ones(hidden.D.shape, dtype=bool))
    assert not np.asarray(model.hidden_mass_).any()
    if model.keeps_proportions:
        assert np.allclose(model.distributions_, hidden.D, rtol=1e-12, atol=0)
