"""The rows with the smallest expected distance to posterior draws."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hidldl.metrics import MEASURES
from hidldl.recovery.acts import ACTS, best_rows
from hidldl.selection import renormalised

every_measure = pytest.mark.parametrize("measure", list(ACTS))


def posterior(seed, zeros=0.0, n_rows=6, n_labels=5, n_draws=24):
    """Draws of rows whose observed part has one proportion, their weights, and what was observed."""
    rng = np.random.default_rng(seed)
    observed = rng.random((n_rows, n_labels)) < 0.5
    observed[0] = False  # nothing is known of this row
    observed[1] = True
    shares = renormalised(rng.dirichlet(np.ones(n_labels), n_rows), observed)
    hidden = np.where(observed[:, :, None], 0, rng.gamma(0.7, size=(n_rows, n_labels, n_draws)))
    hidden *= rng.random(hidden.shape) >= zeros
    hidden[0, 0] += 1e-3
    mass = rng.gamma(2.0, size=(n_rows, 1, n_draws)) * observed.any(axis=1)[:, None, None]
    D = hidden + mass * shares[:, :, None]
    return D / D.sum(axis=1, keepdims=True), rng.dirichlet(np.ones(n_draws), n_rows), shares, observed


def expected(measure, p, D, weights):
    return (ACTS[measure](p, D)[0] * weights).sum(axis=1)


def mean_of(D, weights):
    return (D @ weights[:, :, None])[:, :, 0]


@every_measure
def test_distances_are_those_of_the_measures(measure):
    D, *_ = posterior(0, zeros=0.3)
    p = posterior(1)[0][:, :, 0]
    distance, _ = ACTS[measure](p, D)
    for draw in range(D.shape[2]):
        assert np.allclose(distance[:, draw], MEASURES[measure].compute(D[:, :, draw], p))


@every_measure
def test_derivatives_are_those_of_the_distance(measure):
    D = posterior(0)[0]
    p = posterior(1)[0][:, :, 0]
    _, derivative = ACTS[measure](p, D)
    step = 1e-7
    for j in range(5):
        nudge = step * np.eye(5)[j]
        numeric = (ACTS[measure](p + nudge, D)[0] - ACTS[measure](p - nudge, D)[0]) / (2 * step)
        # A distance of 0, and two labels with the same largest error, are kinks; these rows have none.
        assert np.allclose(derivative[:, j], numeric, rtol=1e-4, atol=1e-5)


@every_measure
@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), zeros=st.sampled_from([0.0, 0.4]))
def test_it_is_never_farther_than_its_start_and_keeps_what_was_observed(measure, seed, zeros):
    D, weights, shares, observed = posterior(seed, zeros)
    start = mean_of(D, weights)
    best = best_rows(measure, [start], D, weights, shares, observed)
    assert (expected(measure, best, D, weights) <= expected(measure, start, D, weights) + 1e-12).all()
    assert (best >= 0).all()
    assert np.allclose(best.sum(axis=1), 1, rtol=0, atol=1e-9)
    seen = observed.any(axis=1)
    assert np.allclose(renormalised(best, observed)[seen], shares[seen], rtol=0, atol=1e-9)


@every_measure
def test_a_certain_posterior_gives_what_it_is_certain_of(measure):
    D, weights, shares, observed = posterior(3)
    point = D[:, :, :1]
    best = best_rows(measure, [point[:, :, 0]], np.repeat(point, 24, axis=2), weights, shares, observed)
    assert np.allclose(best, point[:, :, 0], rtol=0, atol=1e-12)
    # From elsewhere it comes close.
    start = mean_of(D, weights)
    best = best_rows(measure, [start], np.repeat(point, 24, axis=2), weights, shares, observed)
    before, after = (expected(measure, p, np.repeat(point, 24, axis=2), weights) for p in (start, best))
    away = before > 1e-6
    assert away.sum() >= 4
    assert (after[away] < 0.35 * before[away]).all()


@every_measure
def test_the_best_of_several_starts_counts(measure):
    D, weights, shares, observed = posterior(4, zeros=0.5)
    starts = [D[:, :, 0], mean_of(D, weights), D[:, :, 1]]
    best = expected(measure, best_rows(measure, starts, D, weights, shares, observed), D, weights)
    alone = [expected(measure, best_rows(measure, [s], D, weights, shares, observed), D, weights) for s in starts]
    assert np.allclose(best, np.min(alone, axis=0))


@every_measure
def test_no_point_of_a_grid_is_much_closer(measure):
    # Two hidden labels and the observed mass: all rows lie in a triangle.
    rng = np.random.default_rng(0)
    observed = np.array([[True, True, False, False]])
    shares = np.array([[0.7, 0.3, 0.0, 0.0]])
    parts = rng.dirichlet([4.0, 2.0, 1.0], 60)
    D = (parts[:, :1] * shares + parts[:, 1:] @ np.eye(4)[2:]).T[None]
    weights = np.full((1, 60), 1 / 60)
    best = expected(measure, best_rows(measure, [mean_of(D, weights)], D, weights, shares, observed), D, weights)
    a, b = np.meshgrid(np.linspace(0.005, 0.99, 80), np.linspace(0.005, 0.99, 80))
    inside = a + b < 0.995
    grid = (1 - a - b)[inside][:, None] * shares + np.c_[a[inside], b[inside]] @ np.eye(4)[2:]
    least = min(expected(measure, row[None], D, weights)[0] for row in grid)
    assert best[0] <= least + 2e-3
