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
from hidldl.recovery.latent import Estimates, Parameters, draw_rows
from hidldl.recovery.lostvotes import Votes
from hidldl.recovery.posterior import (
    Draws,
    _first_above,
    acted_rows,
    bounds_of_rows,
    complete,
    draw_blocks,
    draw_lost_share,
    mean_rows,
    quantiles,
    relative_rows,
    resampled,
    sampled_tables,
    weigh_votes,
    weighted_shares,
)
from hidldl.recovery.rows import Rows
from hidldl.recovery.zerorates import ZeroRates
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
    (_, with_curve), (_, without) = (
        bounds_of_rows(each, rows, draws, False, 0, (0.05, 0.95)) for each in (model, plain)
    )
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


class TestDraws:
    def test_draws_come_in_pairs_that_cancel(self):
        rng = np.random.default_rng(0)
        shared = Draws.shared(rng, 10, 4, spread=2.0)
        assert (shared.shape, shared.spread, shared.times(3.0).spread) == ((4, 10), 2.0, 3.0)
        assert Draws.shared(rng, 9, 4).shape == (4, 10)
        for part in (shared.normals, shared.noise):
            assert part.shape == (1, 4, 10)
            assert np.array_equal(part[..., ::2], -part[..., 1::2])
        assert not np.isin(shared.normals, shared.noise).any()
        alone = Draws.independent(rng, 3, 7, 4, 1.5)
        assert (alone.normals.shape, alone.noise.shape, alone.spread) == ((3, 4, 7), (3, 4, 7), 1.5)
        assert len(np.unique(np.abs(alone.normals))) == 3 * 4 * 7

    @pytest.mark.parametrize(
        ("n_draws", "n_parts", "even"), [(64, 16, True), (10, 4, True), (8, 4, True), (7, 4, False)]
    )
    def test_parts_are_all_draws_in_order_and_keep_pairs(self, n_draws, n_parts, even):
        draws = replace(Draws.independent(np.random.default_rng(0), 2, n_draws, 3), spread=1.5)
        parts = draws.parts(n_parts)
        assert len(parts) == n_parts
        assert np.array_equal(np.concatenate([part.normals for part in parts], axis=2), draws.normals)
        assert np.array_equal(np.concatenate([part.noise for part in parts], axis=2), draws.noise)
        sizes = [part.shape[1] for part in parts]
        assert min(sizes) >= 1
        assert max(sizes) - min(sizes) <= (2 if even else 1)
        assert all(size % 2 == 0 for size in sizes) is even
        assert {part.spread for part in parts} == {1.5}

    def test_lots_are_evenly_apart_in_random_order(self):
        for draws in (Draws.shared(np.random.default_rng(0), 4, 5), Draws.paired(np.random.default_rng(0), 3, 4, 5)):
            lots, other = (draws.lots(8, np.random.default_rng(seed)) for seed in (1, 2))
            assert lots.shape == (len(draws.normals), 5, 8)
            assert lots.min() > 0
            assert lots.max() < 1
            assert np.allclose(np.diff(np.sort(lots, axis=2), axis=2), 1 / 8)
            assert (np.diff(lots, axis=2) < 0).any(axis=2).all()
            # Rows that share their draws share their lots, whatever the generator.
            assert np.array_equal(lots, other) == (len(lots) == 1)

    def test_blocks_hold_about_a_million_numbers(self):
        blocks = draw_blocks(1000, 16, 128)
        assert [block.start for block in blocks] == [0, 512]
        assert blocks[-1].stop == 1000
        assert len(draw_blocks(3, 2**11, 2**10)) == 3


def test_observed_labels_take_what_hidden_ones_leave():
    hidden, shares = np.array([[0.0, 0.0, 0.4], [0.0, 0.7, 0.7]]), np.array([[0.25, 0.75, 0.0], [1.0, 0, 0]])
    assert np.allclose(complete(hidden, shares), [[0.15, 0.45, 0.4], [0, 0.5, 0.5]])


@pytest.fixture(scope="module")
def doubtful(mixture):
    """The mixture's rows, in which a hidden label is a true zero with probability 1/4, and their votes if known."""
    model, rows = mixture
    doubts = ~rows.observed & (np.cumsum(~rows.observed, axis=1) == 1) & rows.observed.any(axis=1, keepdims=True)
    rows = replace(rows, presence=np.where(doubts, 0.25, rows.presence))
    zeros = ZeroRates(np.full(5, 0.4), np.zeros(5))
    return model, rows, doubts, replace(model, estimates=replace(model.estimates, zeros=zeros, votes=Votes(10)))


@pytest.mark.parametrize("zeros", [None, False, True])
@pytest.mark.parametrize("votes", [False, True])
def test_zeros_in_doubt_are_0_in_as_many_draws_as_they_are_likely(doubtful, zeros, votes):
    model, rows, doubts, voted = doubtful
    rng = np.random.default_rng(0)
    D, weights = weighted_shares(voted if votes else model, rows, slice(2, 9), Draws.shared(rng, 64, 5), zeros, rng)
    part, doubts = rows.part(slice(2, 9)), doubts[2:9]
    assert (D.shape, weights.shape) == ((7, 5, 64), (7, 64))
    assert np.allclose(weights.sum(axis=1), 1)
    assert (weights >= 0).all()
    assert (D >= 0).all()
    assert np.allclose(D.sum(axis=1), 1)
    seen = np.where(part.observed[:, :, None], D, 0)
    assert np.allclose(seen, seen.sum(axis=1, keepdims=True) * part.shares[:, :, None])
    if zeros is None and not votes:
        # Masks are evenly apart: of 16, 4 say that the zero is true.
        assert np.array_equal((D[doubts] == 0).sum(axis=1), np.full(doubts.sum(), 16))
        assert (D[~doubts & ~part.observed] > 0).all()


def test_draws_weigh_alike_whatever_the_size_of_their_mask_s_part(curved):
    model, rows = curved
    plain = replace(model, estimates=replace(model.estimates, curve=None))
    doubts = ~rows.observed & (np.cumsum(~rows.observed, axis=1) == 1)
    rows = replace(rows, presence=np.where(doubts, 0.25, rows.presence))
    rng = np.random.default_rng(0)
    draws = Draws.shared(rng, 40, 5)
    assert len({part.shape for part in draws.parts(16)}) == 2
    _, weights = weighted_shares(plain, rows, slice(0, 9), draws, None, rng)
    assert np.allclose(weights, 1 / 40)


def test_votes_that_are_left_say_whether_labels_were_overlooked(doubtful):
    _, rows, _, voted = doubtful
    # All ten votes are left of shares of tenths that no smaller number has: nothing was lost.
    shares = np.where(rows.observed, 1.0, 0)
    several = rows.observed.sum(axis=1) >= 2
    first = rows.observed & (np.cumsum(rows.observed, axis=1) == 1)
    left = rows.observed.sum(axis=1, keepdims=True) - 1
    full = np.where(first, 1 - 0.1 * left, 0.1 * shares)
    means = weigh_votes(voted, replace(rows, shares=np.where(several[:, None], full, rows.shares)))
    assert means.overlooked.shape == rows.shares.shape
    assert ((means.overlooked >= 0) & (means.overlooked <= 1)).all()
    hardest = several & (10 * full[np.arange(12), first.argmax(axis=1)] % 2 > 0.5)
    assert hardest.any()
    assert np.allclose(means.left[hardest], 10)
    again = weigh_votes(voted, rows, lambda task, blocks: [task(block) for block in blocks])
    assert np.array_equal(again.overlooked, weigh_votes(voted, rows).overlooked)


def test_a_spread_is_a_factor_on_standard_deviations(mixture):
    model, rows = mixture
    rng = np.random.default_rng(0)
    draws = Draws.shared(rng, 64, 5)

    def log_shares(spread):
        D, weights = weighted_shares(model, rows, slice(0, 12), draws.times(spread), None, rng)
        return np.log(D) - np.log(D).mean(axis=1, keepdims=True), weights

    (one, weights), (three, other) = log_shares(1.0), log_shares(3.0)
    assert np.array_equal(weights, other)
    # Draws come in pairs around the mode of their kind.
    middle = (one[..., ::2] + one[..., 1::2]) / 2
    assert np.allclose((three[..., ::2] + three[..., 1::2]) / 2, middle)
    assert np.allclose(three[..., ::2] - middle, 3 * (one[..., ::2] - middle))


def test_a_spread_does_not_change_the_weights_of_a_curve(curved):
    model, rows = curved
    draws = Draws.shared(np.random.default_rng(0), 64, 5)
    found = [weighted_shares(model, rows, slice(0, 9), draws.times(s), None, np.random.default_rng(0)) for s in (1, 2)]
    assert np.allclose(found[0][1], found[1][1])
    assert not np.allclose(found[0][0], found[1][0])


def test_scatter_is_wider_with_a_spread_and_zeros_are_counts(curved):
    model, rows = curved
    draws = Draws(np.zeros((1, 5, 4000)), np.zeros((1, 5, 4000)))
    hidden = ~rows.observed[:9]
    deviations = []
    for spread in (1.0, 2.0):
        D, _ = weighted_shares(model, rows, slice(0, 9), draws.times(spread), False, np.random.default_rng(0))
        deviations.append(D.std(axis=2)[hidden])
    assert np.median(deviations[1] / deviations[0]) == pytest.approx(2, abs=0.15)
    few = replace(rows, nu=np.full(len(rows.nu), 3.0))
    D, _ = weighted_shares(model, few, slice(0, 9), draws, True, np.random.default_rng(0))
    assert (D[hidden] == 0).mean() > 0.2


def test_bounds_hold_as_much_as_their_level_says(mixture):
    model, rows = mixture
    draws = Draws.shared(np.random.default_rng(0), 2000, 5)
    D, weights = weighted_shares(model, rows, slice(0, 12), draws, False, np.random.default_rng([7, 0]))
    hidden, mass = ~rows.observed, np.where(rows.observed[:, :, None], 0, D).sum(axis=1)
    for level in (0.5, 0.9):
        bounds, of_mass = bounds_of_rows(model, rows, draws, False, 7, ((1 - level) / 2, (1 + level) / 2))
        assert (bounds[0] <= bounds[1]).all()
        low, high = bounds[..., None]
        held = ((low <= D) & (high >= D)) * weights[:, None]
        assert held.sum(axis=2)[hidden] == pytest.approx(level, abs=0.01)
        below = (low > D) * weights[:, None]
        assert below.sum(axis=2)[hidden] == pytest.approx((1 - level) / 2, abs=0.01)
        some = hidden.any(axis=1) & rows.observed.any(axis=1)
        held = ((mass >= of_mass[0][:, None]) & (mass <= of_mass[1][:, None])) * weights
        assert held.sum(axis=1)[some] == pytest.approx(level, abs=0.01)
        assert np.allclose(of_mass[:, -1], 1)


def test_a_share_is_0_where_that_has_the_smaller_expected_relative_error(curved):
    model, rows = curved
    few = replace(rows, nu=np.full(len(rows.nu), 3.0))
    draws = Draws.shared(np.random.default_rng(0), 400, 5)
    found = relative_rows(model, few, draws, 5)[:40]
    D, weights = weighted_shares(model, few, slice(0, 200), draws, True, np.random.default_rng([5, 0]))
    D, weights = D[:40], weights[:40, None]
    mean = (D * weights).sum(axis=2)
    with np.errstate(invalid="ignore"):
        error_of_mean = np.nan_to_num(np.abs(D - mean[..., None]) / (D + mean[..., None]))
    expected = {"mean": (error_of_mean * weights).sum(axis=2), "zero": ((D > 0) * weights).sum(axis=2)}
    absent = (expected["zero"] < expected["mean"]) & ~few.observed[:40]
    assert 0.02 < absent[~few.observed[:40]].mean() < 0.98
    assert np.array_equal(found == 0, absent | (few.observed[:40] & (few.shares[:40] == 0)))
    kept = ~few.observed[:40] & ~absent
    assert np.allclose(found[kept], mean[kept])


def test_rows_of_which_nothing_is_known_keep_their_largest_label(mixture):
    model, rows = mixture
    few, draws = replace(rows, nu=np.full(12, 2.0)), Draws.shared(np.random.default_rng(0), 64, 5)
    found = relative_rows(model, few, draws, 0)
    assert np.allclose(found.sum(axis=1), 1)
    D, weights = weighted_shares(model, few, slice(0, 12), draws, True, np.random.default_rng([0, 0]))
    largest = (D[-1] @ weights[-1]).argmax()
    assert found[-1].argmax() == largest
    assert (found[-1] == 0).any()


def test_means_of_counts_are_never_0(curved):
    model, rows = curved
    curve = replace(model.estimates.curve, zeros=True)
    model = replace(model, estimates=replace(model.estimates, curve=curve))
    few, draws = replace(rows, nu=np.full(len(rows.nu), 0.5)), Draws.shared(np.random.default_rng(0), 16, 5)
    found = mean_rows(model, few, draws)
    hidden = ~rows.observed
    assert found[hidden].min() == pytest.approx(0.1 / (16 * 0.5), rel=0.2)
    assert np.allclose(found.sum(axis=1), 1)


@pytest.mark.parametrize("case", ["mixture", "curved"])
def test_a_lost_share_is_that_among_it_and_the_observed_ones(case, request):
    model, rows = request.getfixturevalue(case)
    chosen = np.flatnonzero(rows.observed.any(axis=1) & ~rows.observed.all(axis=1))[:8]
    rows = rows.chosen(chosen, rows.shares[chosen], rows.observed[chosen])
    rows = replace(rows, weights=np.ascontiguousarray(rows.weights))  # so that nothing is compiled for other layouts
    lost = ~rows.observed & (np.cumsum(~rows.observed, axis=1) == 1)
    draws = Draws.shared(np.random.default_rng(0), 2000, 5)
    share, weights = draw_lost_share(model, rows, draws, False, lost, np.random.default_rng(1))
    assert share.shape == weights.shape == (8, 2000)
    assert ((share >= 0) & (share <= 1)).all()
    assert np.allclose(weights.sum(axis=1), 1)
    D, own_weights = weighted_shares(model, rows, slice(0, 8), draws, False, np.random.default_rng(2))
    taken, seen = np.where(lost[:, :, None], D, 0).sum(axis=1), np.where(rows.observed[:, :, None], D, 0).sum(axis=1)
    expected = (taken / (taken + seen) * own_weights).sum(axis=1)
    assert np.allclose((share * weights).sum(axis=1), expected, atol=0.02)


def test_a_lost_share_of_counts_can_be_0(curved):
    model, rows = curved
    few = replace(rows, nu=np.full(len(rows.nu), 3.0)).part(slice(0, 9))
    lost = ~few.observed & (np.cumsum(~few.observed, axis=1) == 1)
    draws = Draws.shared(np.random.default_rng(0), 64, 5)
    for zeros in (True, False):
        curve = replace(model.estimates.curve, zeros=zeros)
        own = replace(model, estimates=replace(model.estimates, curve=curve))
        share, _ = draw_lost_share(own, few, draws, zeros, lost, np.random.default_rng(1))
        assert (share[lost.any(axis=1)] == 0).any() == zeros


def test_tables_of_another_seed_are_others_and_as_many_as_asked_for(mixture):
    model, rows = mixture
    first, again, other = (sampled_tables(model, rows, 3, 1.0, False, seed) for seed in (0, 0, 1))
    assert first.shape == (3, 12, 5)
    assert np.array_equal(first, again)
    assert not np.isclose(first, other)[:, ~rows.observed].any()
    assert len(np.unique(first[:, 0, 0])) > 1
