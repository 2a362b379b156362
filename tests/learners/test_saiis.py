"""Improved iterative scaling: the equations of a round, and where the rounds lead."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import brentq

from hidldl import SABFGS, SAIIS, make_distributions
from hidldl.learners import saiis
from hidldl.learners.saiis import ScalingEquations
from hidldl.randomness import random_generator


@pytest.fixture
def data():
    return make_distributions(n_rows=80, n_features=4, n_labels=3, random_state=0)


def root_of_equation(X, target, p, k):
    """The equation of weight (k, j) as it is written, solved by bisection."""
    size = np.abs(X).sum(axis=1)
    return brentq(lambda t: (p * X[:, k] * np.exp(t * np.sign(X[:, k]) * size)).sum() - target, -3, 3, xtol=1e-14)


@pytest.mark.parametrize("kind", ["mixed signs", "positive", "rows of one size"])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_the_equations_of_a_round_are_solved(data, kind, container):
    X = data.features if kind == "mixed signs" else np.abs(data.features) + 0.01
    if kind == "rows of one size":
        X = X / X.sum(axis=1, keepdims=True)
    P = np.random.default_rng(0).dirichlet(np.ones(3), 80)
    targets = X.T @ data.distributions
    steps = ScalingEquations(container(X), targets).solve(P)
    for k in range(4):
        for j in range(3):
            assert steps[k, j] == pytest.approx(root_of_equation(X, targets[k, j], P[:, j], k), abs=1e-9)


def test_a_round_never_makes_it_worse(data):
    losses = SAIIS(max_iter=60, random_state=0).fit(data.features, data.distributions).history_["loss"]
    assert (np.diff(losses) <= 1e-9).all()


def test_it_reaches_the_optimum_of_sabfgs(data):
    slow = SAIIS(max_iter=5000, tol=1e-10, random_state=0).fit(data.features, data.distributions)
    fast = SABFGS(random_state=1).fit(data.features, data.distributions)
    assert slow.converged_
    assert slow.history_["loss"][-1] == pytest.approx(fast.history_["loss"][-1], rel=1e-5)
    assert np.allclose(slow.predict(data.features), fast.predict(data.features), atol=1e-3)


def test_labels_and_features_that_never_occur_do_no_harm(data):
    X = np.abs(data.features)
    X[:, 1] = 0
    D = data.distributions.copy()
    D[:, 2] = 0
    D /= D.sum(axis=1, keepdims=True)
    model = SAIIS(random_state=0).fit(X, D)
    assert np.isfinite(model.coef_).all()
    assert model.predict(X)[:, 2].max() < 0.05


def test_weights_are_repetitions(data):
    weights = np.ones(80)
    weights[:10] = 2
    weighted = SAIIS(random_state=0).fit(data.features, data.distributions, sample_weight=weights)
    repeated = SAIIS(random_state=0).fit(*(np.r_[A[:10], A] for A in (data.features, data.distributions)))
    assert np.allclose(weighted.coef_, repeated.coef_, atol=1e-8)


def test_sums_in_blocks_are_the_whole(data, monkeypatch):
    whole = SAIIS(max_iter=5, random_state=0).fit(data.features, data.distributions).coef_
    monkeypatch.setattr(saiis, "BLOCK_ENTRIES", 100)
    assert np.allclose(SAIIS(max_iter=5, random_state=0).fit(data.features, data.distributions).coef_, whole)


def test_it_stops_by_its_tolerance_or_its_rounds(data):
    stopped = SAIIS(max_iter=7, tol=0, random_state=0).fit(data.features, data.distributions)
    assert stopped.n_iter_ == 7
    assert not stopped.converged_
    finished = SAIIS(max_iter=5000, tol=1e-3, random_state=0).fit(data.features, data.distributions)
    falls = -np.diff(finished.history_["loss"])
    assert falls[-1] < 1e-3 <= falls[:-1].min()


@pytest.mark.parametrize(("count", "reach"), saiis.REACH_OF_NODES.items())
def test_the_interpolation_is_exact_within_its_reach(count, reach):
    size = np.linspace(1, 3, 400)
    nodes, basis = saiis._interpolation(size, count)
    for t in (reach, -reach):  # half the range of the sizes is 1
        assert np.allclose(basis @ np.exp(t * nodes), np.exp(t * size), rtol=1e-10)


def test_features_that_are_all_zero_take_no_steps(data):
    model = SAIIS(random_state=0).fit(0 * data.features, data.distributions)
    assert np.array_equal(model.coef_, random_generator(0).random((4, 3)))
