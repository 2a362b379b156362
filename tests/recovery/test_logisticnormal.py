import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.optimize import minimize
from scipy.special import logsumexp

from hidldl.recovery.logisticnormal import draw_log_shares, find_modes


@pytest.fixture
def problem():
    """Six rows with different labels observed, a covariance that is singular along 1, and unequal scales."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 4))
    root -= root.mean(axis=0)
    observed = rng.random((6, 5)) < 0.6
    observed[:, 0] = True
    observed[0] = True
    shares = np.where(observed, rng.dirichlet(np.ones(5), 6), 0)
    shares[0, 1] = 0  # a true zero
    shares /= shares.sum(axis=1, keepdims=True)
    return root, root @ root.T, rng.normal(size=(6, 5)), rng.uniform(1, 2, 6), shares, observed


def solve(S, mean, scale, shares, observed, nu, importance=1.0, start=0.0, steps=50):
    weights, slope, evidence = np.full_like(mean, start), np.zeros_like(S), np.zeros(len(mean))
    importance, nus = (np.broadcast_to(each, len(mean)).astype(float) for each in (importance, nu))
    find_modes(S, mean, scale, shares, observed, nus, steps, 1e-12, importance, weights, slope, evidence)
    return weights, slope, evidence


@pytest.mark.parametrize("nu", [3.0, 300.0, 3e5])
def test_the_mode_minimises_the_loss(problem, nu):
    root, S, mean, scale, shares, observed = problem
    weights, *_ = solve(S, mean, scale, shares, observed, nu)
    for i in range(len(mean)):
        mask = observed[i]

        def loss(y, i=i, mask=mask):
            z = mean[i] + np.sqrt(scale[i]) * root @ y
            return y @ y / 2 + nu * (logsumexp(z[mask]) - shares[i, mask] @ z[mask])

        mode = mean[i] + scale[i] * S @ weights[i]
        y = np.linalg.lstsq(np.sqrt(scale[i]) * root, mode - mean[i], rcond=None)[0]
        best = minimize(loss, y + 0.01, method="BFGS", options={"gtol": 1e-9})
        assert loss(y) <= best.fun + 1e-8 * abs(best.fun)
        assert (weights[i][~mask] == 0).all()


def posterior_covariance(S, t, p, observed, nu):
    """(S⁻¹ + W)⁻¹ without an inverse of S."""
    W = np.zeros_like(S)
    W[np.ix_(observed, observed)] = nu * (np.diag(p) - np.outer(p, p))
    return t * S @ np.linalg.inv(np.eye(len(S)) + W @ (t * S))


def test_draws_have_the_posteriors_mean_and_covariance(problem):
    _, S, mean, scale, shares, observed = problem
    nu, n_draws = 40.0, 200_000
    weights, *_ = solve(S, mean, scale, shares, observed, nu)
    rng = np.random.default_rng(1)
    eigenvalues, vectors = np.linalg.eigh(S)
    prior = (vectors * np.sqrt(np.maximum(eigenvalues, 0))) @ rng.standard_normal((1, 5, n_draws))
    noise, out = rng.standard_normal((1, 5, n_draws)), np.empty((6, 5, n_draws))
    everything = np.zeros(6, dtype=np.int64), np.full(6, n_draws)
    draw_log_shares(S, mean, scale, observed, np.full(6, nu), weights, prior, noise, *everything, out)
    for i in range(6):
        mode = mean[i] + scale[i] * S @ weights[i]
        p = np.exp(mode[observed[i]])
        expected = posterior_covariance(S, scale[i], p / p.sum(), observed[i], nu)
        assert np.allclose(out[i].mean(axis=1), mode, atol=0.02)
        assert np.allclose(np.cov(out[i]), expected, atol=0.05)


def test_the_slope_is_that_of_the_expected_log_likelihood(problem):
    _, S, mean, scale, shares, observed = problem
    nu = 40.0
    weights, slope, _ = solve(S, mean, scale, shares, observed, nu)
    expected = np.zeros_like(S)
    for i in range(6):
        mode = mean[i] + scale[i] * S @ weights[i]
        p = np.exp(mode[observed[i]])
        covariance = posterior_covariance(S, scale[i], p / p.sum(), observed[i], nu)
        residual = mode - mean[i]
        expected += (np.outer(residual, residual) + covariance) / scale[i] - S
    assert np.allclose(S @ slope @ S, expected)


def test_the_evidence_is_the_integral_over_the_log_shares(problem):
    # Two observed labels: one dimension matters, and the integral can be done on a grid.
    _, S, mean, scale, _, _ = problem
    observed = np.zeros((1, 5), dtype=bool)
    observed[0, [1, 3]] = True
    shares = np.array([[0, 0.6, 0, 0.4, 0]])
    nu = 400.0
    *_, evidence = solve(S, mean[:1], scale[:1], shares, observed, nu)
    variance = scale[0] * (S[1, 1] + S[3, 3] - 2 * S[1, 3])
    gap = np.linspace(-8, 8, 200_001)
    prior = np.exp(-((gap - (mean[0, 1] - mean[0, 3])) ** 2) / (2 * variance)) / np.sqrt(2 * np.pi * variance)
    likelihood = np.exp(-nu * (np.logaddexp(0, -gap) * 0.6 + np.logaddexp(0, gap) * 0.4))
    integral = np.log(trapezoid(prior * likelihood, gap))
    assert evidence[0] == pytest.approx(integral, abs=0.01)


def test_a_row_without_labels_keeps_its_prior(problem):
    _, S, mean, scale, shares, observed = problem
    weights, *_ = solve(S, mean, scale, np.zeros_like(shares), np.zeros_like(observed), 10.0)
    assert (weights == 0).all()


@pytest.mark.parametrize(("nu", "far"), [(1.0, 0.1), (1.0, 30.0), (1e3, 3.0), (1e3, 30.0), (1e6, 1.0), (1e6, 30.0)])
def test_at_the_mode_the_pull_of_the_labels_is_that_of_the_prior(problem, nu, far):
    """The gradient is 0: a = nu (d - p), from any start, also where the prior's mean is far off."""
    _, S, mean, scale, shares, observed = problem
    for start in (0.0, 0.5):
        weights, _, evidence = solve(S, far * mean, scale, shares, observed, nu, start=start)
        z = far * mean + scale[:, None] * (weights * observed) @ S
        p = np.where(observed, np.exp(z - np.where(observed, z, -np.inf).max(axis=1, keepdims=True)), 0)
        pull = nu * (shares - p / p.sum(axis=1, keepdims=True))
        assert np.allclose((weights * observed)[observed], pull[observed], rtol=1e-3, atol=1e-6 * nu)
        assert np.allclose(evidence, solve(S, far * mean, scale, shares, observed, nu)[2], rtol=1e-6)


def test_a_label_that_is_observed_in_part_has_the_logarithm_of_that_in_its_mean(problem):
    _, S, mean, scale, shares, observed = problem
    presence = np.where(observed & (shares == 0), 0.3, observed * 1.0)
    assert (presence == 0.3).any()
    shift = np.log(np.where(presence == 0.3, 0.3, 1))
    partly, whole = solve(S, mean, scale, shares, presence, 40.0), solve(S, mean + shift, scale, shares, observed, 40.0)
    for found, expected in zip(partly, whole, strict=True):
        assert np.allclose(found, expected)


def test_rows_count_in_the_slope_by_their_importance(problem):
    _, S, mean, scale, shares, observed = problem
    importance = np.array([0, 1, 0, 2.5, 0, 0.5])
    weights, slope, evidence = solve(S, mean, scale, shares, observed, 40.0, importance)
    expected = np.zeros_like(S)
    for i in np.flatnonzero(importance):
        part = slice(i, i + 1)
        own = solve(S, mean[part], scale[part], shares[part], observed[part], 40.0)
        expected += importance[i] * own[1]
        assert np.allclose(weights[i], own[0][0])
        assert np.allclose(evidence[i], own[2][0])
    assert np.allclose(slope, expected)
    assert np.array_equal(slope, slope.T)
    # Rows without importance have a mode too, unless no step is to be taken.
    assert np.allclose(weights, solve(S, mean, scale, shares, observed, 40.0)[0])
    untouched, again, nothing = solve(S, mean, scale, shares, observed, 40.0, importance, start=0.01, steps=0)
    assert (untouched[importance == 0] == 0.01).all()
    assert (nothing[importance == 0] == 0).all()
    assert np.abs(again).max() > 0


def test_more_steps_never_make_the_loss_larger(problem):
    _, S, mean, scale, shares, observed = problem
    for far in (1.0, 20.0):
        losses = [loss_of(S, far * mean, scale, shares, observed, 1e4, steps) for steps in (0, 1, 2, 4, 8, 50)]
        assert (np.diff(losses, axis=0) <= 1e-9 * np.abs(losses[0])).all()
        assert (losses[-1] < losses[0])[observed.sum(axis=1) > 1].all()


def loss_of(S, mean, scale, shares, observed, nu, steps):
    weights = solve(S, mean, scale, shares, observed, nu, steps=steps)[0]
    f = scale[:, None] * weights @ S
    z = np.where(observed, mean + f, -np.inf)
    return (weights * f).sum(axis=1) / 2 + nu * (logsumexp(z, axis=1) - (shares * (mean + f)).sum(axis=1))


def test_draws_are_written_from_the_first_to_the_last_of_each_row(problem):
    _, S, mean, scale, shares, observed = problem
    weights, *_ = solve(S, mean, scale, shares, observed, 40.0)
    prior, noise = np.random.default_rng(1).standard_normal((2, 1, 5, 8))
    nus, whole = np.full(6, 40.0), np.full((6, 5, 8), np.nan)
    draw_log_shares(S, mean, scale, observed, nus, weights, prior, noise, np.zeros(6, int), np.full(6, 8), whole)
    assert np.isfinite(whole).all()
    first, last, part = np.array([0, 2, 3, 8, 0, 5]), np.array([8, 5, 3, 8, 1, 8]), np.full((6, 5, 8), np.nan)
    # With draws of each row's own, which are the same for all here.
    own = [np.repeat(each, 6, axis=0) for each in (prior, noise)]
    draw_log_shares(S, mean, scale, observed, nus, weights, *own, first, last, part)
    for i in range(6):
        written = np.arange(8)
        written = (written >= first[i]) & (written < last[i])
        assert np.allclose(part[i][:, written], whole[i][:, written])
        assert np.isnan(part[i][:, ~written]).all()


@pytest.mark.parametrize("n_rows", [2, 6])
def test_a_row_without_labels_is_drawn_from_its_prior(problem, n_rows):
    _, S, mean, scale, *_ = problem
    mean, scale = mean[:n_rows], scale[:n_rows]
    prior, noise = np.random.default_rng(1).standard_normal((2, n_rows, 5, 8))
    out, nothing = np.empty((n_rows, 5, 8)), np.zeros((n_rows, 5))
    limits = np.zeros(n_rows, int), np.full(n_rows, 8)
    draw_log_shares(S, mean, scale, nothing.astype(bool), np.full(n_rows, 40.0), nothing, prior, noise, *limits, out)
    assert np.allclose(out, mean[:, :, None] + np.sqrt(scale)[:, None, None] * prior)
