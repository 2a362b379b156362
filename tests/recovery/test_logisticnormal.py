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


def solve(S, mean, scale, shares, observed, nu):
    weights, slope, evidence = np.zeros_like(mean), np.zeros_like(S), np.zeros(len(mean))
    importance, nus = np.ones(len(mean)), np.broadcast_to(nu, len(mean)).astype(float)
    find_modes(S, mean, scale, shares, observed, nus, 50, 1e-12, importance, weights, slope, evidence)
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
