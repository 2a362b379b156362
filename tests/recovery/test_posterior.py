"""Weighted draws: their means, their quantiles and what is taken from them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from hidldl import hide_labels
from hidldl.recovery.fitting import fit_latent_model
from hidldl.recovery.fittinghiding import fit_hiding
from hidldl.recovery.latent import Estimates, Parameters, Rows, draw_rows
from hidldl.recovery.posterior import (
    Draws,
    _first_above,
    acted_rows,
    bounds_of_rows,
    mean_rows,
    quantiles,
    relative_rows,
    resampled,
    sampled_tables,
    weighted_shares,
)
from hidldl.selection import renormalised


@pytest.fixture(scope="module")
def mixture():
    """A model of three kinds, and the posterior of its first rows; nothing is known of the last of them."""
    rng = np.random.default_rng(0)
    offsets = 1.2 * rng.normal(size=(3, 5))
    D = softmax(offsets[rng.integers(3, size=400)] + 0.4 * rng.standard_normal((400, 5)), axis=1)
    X, (D_obs, observed) = rng.normal(size=(400, 2)), hide_labels(D, 0.5, random_state=0)
    model = fit_latent_model(
        X, D_obs, observed, Parameters(60.0, 10.0, 5.0, n_components=3), max_iter=60, tol=3e-3
    ).model
    X, D_obs, observed = X[:12], D_obs[:12].copy(), observed[:12].copy()
    D_obs[-1], observed[-1] = 0, False
    rows = model.prior(X, D_obs, observed)
    model.condition(rows)
    return model, rows


@pytest.fixture(scope="module")
def curved():
    """A model with a curve of hiding, and the rows that it was fitted to."""
    rng = np.random.default_rng(0)
    D = softmax(rng.normal(size=(200, 5)), axis=1)
    X, (D_obs, observed) = (
        rng.normal(size=(200, 2)),
        hide_labels(D, 0.5, random_state=0, mechanism="degree", slope=2.0),
    )
    fit = fit_latent_model(X, D_obs, observed, Parameters(300.0, 10.0, 5.0), max_iter=60, tol=3e-3)
    fit = fit_hiding(fit, tol=3e-3, always=True)
    return fit.model, fit.rows


def mean_by_brute_force(model, rows, i, n_draws=20_000):
    """A row's mean from many draws of each kind's normal posterior, kinds weighed by their probabilities."""
    rng, seen, total = np.random.default_rng(i), rows.observed[i], 0.0
    for k, (S, offset) in enumerate(zip(model.estimates.covariances, model.estimates.offsets, strict=True)):
        prior = rows.scale[i] * S
        mode = rows.mean[i] + offset + prior @ rows.weights[k, i]
        p, W = np.where(seen, np.exp(mode), 0), np.zeros_like(S)
        if seen.any():
            p /= p.sum()
            W = rows.nu[i] * (np.diag(p) - np.outer(p, p))
        covariance = prior @ np.linalg.inv(np.eye(len(S)) + W @ prior)
        z = rng.multivariate_normal(mode, (covariance + covariance.T) / 2, n_draws, method="eigh")
        total = total + rows.kinds[i, k] * softmax(z, axis=1).mean(axis=0)
    return total


def test_weighted_draws_have_the_mean_of_the_mixture(mixture):
    model, rows = mixture
    rng = np.random.default_rng(0)
    D, weights = weighted_shares(model, rows, slice(0, 12), Draws.shared(rng, 4000, 5), None, rng)
    assert np.allclose(weights.sum(axis=1), 1)
    assert (weights >= 0).all()
    mean = (D * weights[:, None]).sum(axis=2)
    expected = np.array([mean_by_brute_force(model, rows, i) for i in range(12)])
    assert np.allclose(mean, expected, atol=0.012)
    # The recovered rows are these means, with the observed part in its proportions.
    recovered = mean_rows(model, rows, Draws.shared(np.random.default_rng(0), 4000, 5))
    hidden = ~rows.observed
    assert np.allclose(recovered[hidden], mean[hidden])


@pytest.mark.parametrize("n_draws", [2, 6, 64])
def test_each_kind_gets_the_weight_that_it_has(mixture, n_draws):
    model, rows = mixture
    normals = np.random.default_rng(0).standard_normal((2, 1, 5, n_draws))
    _, weights, kinds = draw_rows(model.estimates, rows, *normals)
    assert np.allclose(weights.sum(axis=1), 1)
    assert (np.diff(kinds, axis=1) >= 0).all()
    for i in range(12):
        drawn = np.unique(kinds[i])
        share = np.bincount(kinds[i], weights[i], minlength=3)
        # Kinds that are too unlikely for a draw leave theirs to the others.
        assert np.allclose(share[drawn], rows.kinds[i, drawn] / rows.kinds[i, drawn].sum())


def test_draws_of_one_kind_weigh_alike(curved):
    model, rows = curved
    plain = replace(model, estimates=replace(model.estimates, curve=None))
    rng = np.random.default_rng(0)
    _, weights = weighted_shares(plain, rows, slice(0, 5), Draws.shared(rng, 64, 5), False, rng)
    assert (weights == 1 / 64).all()
    _, weights = weighted_shares(model, rows, slice(0, 5), Draws.shared(rng, 64, 5), False, rng)
    assert np.ptp(weights, axis=1).min() > 1e-3
    assert np.allclose(weights.sum(axis=1), 1)


class TestQuantiles:
    def test_equal_weights_give_the_usual_ones(self):
        values = np.random.default_rng(0).normal(size=(3, 4, 50))
        levels = (0.05, 0.95)
        assert np.array_equal(quantiles(values, np.full((3, 50), 1 / 50), levels), np.quantile(values, levels, axis=2))

    def test_weights_count_draws_several_times(self):
        rng = np.random.default_rng(0)
        values, times = rng.normal(size=(1, 2, 40)), rng.integers(1, 9, 40)
        repeated = np.repeat(values, times, axis=2)
        for levels in ((0.05, 0.95), (0.25, 0.75), (0.001, 0.999)):
            weighted = quantiles(values, (times / times.sum())[None], levels)
            for side, level in enumerate(levels):
                for label in range(2):
                    in_order = np.sort(values[0, label])
                    expected = np.quantile(repeated[0, label], level)
                    steps = np.searchsorted(in_order, [weighted[side, 0, label], expected])
                    assert abs(steps[0] - steps[1]) <= 1
                    assert np.isin(weighted[side, 0, label], in_order)

    def test_draws_without_weight_do_not_count(self):
        values = np.r_[np.full(10, -100.0), np.arange(10.0), np.full(10, 100.0)][None, None]
        weights = np.r_[np.zeros(10), np.full(10, 0.1), np.zeros(10)][None]
        low, high = quantiles(values, weights, (0.05, 0.95))
        assert (low.item(), high.item()) == (0.0, 9.0)

    def test_each_row_has_its_own_weights(self):
        values = np.tile(np.arange(4.0), (2, 1, 1))
        weights = np.array([[0.97, 0.01, 0.01, 0.01], [0.01, 0.01, 0.01, 0.97]])
        assert quantiles(values, weights, (0.4, 0.6))[:, :, 0].tolist() == [[0, 3], [0, 3]]


def test_samples_are_drawn_by_their_weights():
    D = np.arange(3.0)[None, None] * np.ones((1, 2, 1))
    weights = np.array([[0.2, 0.0, 0.8]])
    chosen = resampled(D, weights, 20_000, np.random.default_rng(0))
    assert chosen.shape == (1, 2, 20_000)
    assert np.array_equal(chosen[:, 0], chosen[:, 1])
    assert (chosen == 1).sum() == 0
    assert (chosen[0, 0] == 2).mean() == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize("case", ["mixture", "curved"])
def test_tables_have_the_mean_of_the_posterior(case, request):
    model, rows = request.getfixturevalue(case)
    rows = rows.part(slice(0, 12))
    tables = sampled_tables(model, rows, 300, 1.0, False, 0)
    assert np.allclose(tables.sum(axis=2), 1)
    mean = mean_rows(model, rows, Draws.shared(np.random.default_rng(0), 2000, 5))
    assert np.allclose(tables.mean(axis=0), mean, atol=0.05)
    assert np.abs(tables.mean(axis=0) - mean).mean() < 0.012


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("case", ["mixture", "curved"])
def test_every_estimate_is_a_distribution_that_keeps_what_was_observed(case, zeros, request):
    model, rows = request.getfixturevalue(case)
    rows = rows.part(slice(0, 12))
    draws, seen = Draws.shared(np.random.default_rng(0), 64, 5), rows.observed.any(axis=1)
    estimates = [mean_rows(model, rows, draws), relative_rows(model, rows, draws, 0)]
    estimates += [acted_rows(model, rows, draws, zeros, measure, 0) for measure in ("chebyshev", "clark", "canberra")]
    for D in estimates:
        assert (D >= 0).all()
        assert np.allclose(D.sum(axis=1), 1, rtol=0, atol=1e-9)
        assert np.allclose(renormalised(D, rows.observed)[seen], rows.shares[seen], rtol=0, atol=1e-9)


def test_a_curve_moves_bounds_down_where_labels_are_hidden(curved):
    model, rows = curved
    plain = replace(model, estimates=replace(model.estimates, curve=None))
    draws, hidden = Draws.shared(np.random.default_rng(0), 200, 5), ~rows.observed.all(axis=1)
    (_, with_curve), (_, without) = (bounds_of_rows(each, rows, draws, False, 0, 0.9) for each in (model, plain))
    assert (with_curve[0] <= with_curve[1]).all()
    assert with_curve[:, hidden].mean() < 0.95 * without[:, hidden].mean()


@settings(max_examples=50)
@given(st.integers(1, 40), st.integers(0, 10_000))
def test_the_first_weight_above_a_level_is_found(n_draws, seed):
    rng = np.random.default_rng(seed)
    below = np.cumsum(rng.dirichlet(np.ones(n_draws), (3, 2)), axis=2)
    levels = rng.random((3, 2, 5))
    counted = np.minimum((below[..., None, :] < levels[..., None]).sum(axis=-1), n_draws - 1)
    assert np.array_equal(_first_above(below, levels), counted)


@pytest.mark.parametrize("n_draws", [3, 7, 67])
def test_an_odd_number_of_draws_is_filled_and_not_exceeded(n_draws):
    rng = np.random.default_rng(0)
    S = np.stack([np.eye(4) - 0.25] * 2)
    estimates = Estimates(S, np.zeros((2, 4)), np.full(6, 0.5), np.zeros((0, 6)))
    ones, zeros = np.ones(5), np.zeros((5, 4))
    kinds = np.array([[1, 0], [0, 1], [0.5, 0.5], [0.99, 0.01], [0.7, 0.3]])
    rows = Rows(zeros, zeros.astype(bool), ones, zeros, ones, kinds, np.zeros((2, 5, 4)), zeros)
    z, weights, of_draw = draw_rows(estimates, rows, *rng.standard_normal((2, 1, 4, n_draws)))
    assert z.shape == (5, 4, n_draws)
    assert np.isfinite(z).all()
    assert of_draw.max() <= 1
    assert np.allclose(weights.sum(axis=1), 1)
