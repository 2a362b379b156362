from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.special import softmax

from hidldl import hide_labels
from hidldl.recovery.covariances import moments_of_log_ratios, sums_over_pairs
from hidldl.recovery.fitting import fit_latent_model
from hidldl.recovery.latent import Parameters
from hidldl.selection import renormalised


def simulated(n_rows=3000, n_labels=5, seed=0):
    """Rows of the model itself: one feature that matters, and labels that vary together."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n_labels, 2)) * 0.6
    root -= root.mean(axis=0)
    slope = rng.normal(size=n_labels)
    slope -= slope.mean()
    x = rng.normal(size=(n_rows, 1))
    rest = rng.standard_normal((n_rows, 2)) @ root.T + 0.1 * rng.standard_normal((n_rows, n_labels))
    return x, softmax(x * slope + rest, axis=1), np.cov((rest - rest.mean(axis=1, keepdims=True)).T), slope


def test_em_finds_the_parameters_that_made_the_rows():
    x, D, S, slope = simulated(10_000)
    D_obs, observed = hide_labels(D, 0.5, random_state=0)
    fit = fit_latent_model(x, D_obs, observed, Parameters(1e5, 1e-3, 0.1), max_iter=200, tol=1e-4)
    assert fit.converged
    assert np.allclose(fit.model.estimates.coef[0, :5], slope, atol=0.03)
    assert np.allclose(fit.model.estimates.covariance, S, atol=0.03)


def test_without_hidden_labels_and_without_features_it_is_the_covariance_of_the_log_shares():
    _, D, _, _ = simulated(400)
    logs = np.log(D) - np.log(D).mean(axis=1, keepdims=True)
    none = np.empty((400, 0))
    fit = fit_latent_model(none, D, np.ones_like(D, dtype=bool), Parameters(1e8, 1.0, 1e-9), max_iter=300, tol=1e-8)
    # Means leave their own row out, which makes each residual larger by n / (n - 1) and each scale too.
    assert np.allclose(fit.model.estimates.covariance, np.cov(logs.T), rtol=0.01, atol=1e-4)
    assert np.allclose(fit.model.estimates.intercept[:5], logs.mean(axis=0), atol=1e-4)


def test_a_rows_prior_mean_is_the_prediction_of_the_other_rows():
    x, D, _, _ = simulated(60)
    logs = np.log(D) - np.log(D).mean(axis=1, keepdims=True)
    everything = np.ones_like(D, dtype=bool)
    fit = fit_latent_model(x, D, everything, Parameters(1e8, 2.0, 1.0), max_iter=500, tol=1e-9)
    for i in (0, 7):
        others = np.arange(60) != i
        center, target = x.mean(axis=0), logs[others]
        # Centred at all rows, as the hat matrix is; the intercept is not penalised.
        design = np.column_stack([np.ones(59), x[others] - center])
        coefficients = np.linalg.solve(design.T @ design + np.diag([0, 2.0]), design.T @ target)
        predicted = np.concatenate([[1.0], x[i] - center]) @ coefficients
        assert np.allclose(fit.rows.mean[i], predicted, atol=1e-4)


@pytest.mark.parametrize("rate", [0.5, 0.8])
def test_leaping_ends_where_walking_does_in_fewer_rounds(rate, monkeypatch):
    x, D, _, _ = simulated(500)
    D_obs, observed = hide_labels(D, rate, random_state=0)
    parameters = Parameters(1000.0, 1.0, 2.0)
    leaping = fit_latent_model(x, D_obs, observed, parameters, max_iter=2000, tol=1e-6)
    monkeypatch.setattr("hidldl.recovery.fitting._leap", lambda first, second, third, longest: third)
    walking = fit_latent_model(x, D_obs, observed, parameters, max_iter=2000, tol=1e-6)
    assert leaping.converged
    assert walking.converged
    assert len(leaping.history["change"]) < len(walking.history["change"]) / 2
    assert np.allclose(leaping.model.estimates.covariance, walking.model.estimates.covariance, atol=1e-3)
    assert leaping.history["evidence"][-1] == pytest.approx(walking.history["evidence"][-1], abs=1e-3)


def test_the_result_does_not_depend_on_how_blocks_are_mapped():
    x, D, _, _ = simulated(5000)
    D_obs, observed = hide_labels(D, 0.5, random_state=0)
    alone = fit_latent_model(x, D_obs, observed, Parameters(100.0, 1.0, 1.0), max_iter=20, tol=1e-3)
    with ThreadPoolExecutor(3) as pool:
        together = fit_latent_model(
            x, D_obs, observed, Parameters(100.0, 1.0, 1.0), max_iter=20, tol=1e-3, mapper=pool.map
        )
    assert np.array_equal(alone.rows.mean, together.rows.mean)
    assert np.array_equal(alone.model.estimates.covariance, together.model.estimates.covariance)


def test_labels_that_are_permuted_give_permuted_estimates():
    x, D, _, _ = simulated(300)
    D_obs, observed = hide_labels(D, 0.5, random_state=0)
    labels, rows = np.array([3, 0, 4, 1, 2]), np.random.default_rng(0).permutation(300)
    parameters = Parameters(500.0, 1.0, 3.0)
    straight = fit_latent_model(x, D_obs, observed, parameters, max_iter=50, tol=1e-4)
    permuted = fit_latent_model(
        x[rows], D_obs[rows][:, labels], observed[rows][:, labels], parameters, max_iter=50, tol=1e-4
    )
    assert np.allclose(
        permuted.model.estimates.covariance, straight.model.estimates.covariance[np.ix_(labels, labels)], atol=1e-8
    )
    assert np.allclose(permuted.rows.mean, straight.rows.mean[rows][:, labels], atol=1e-8)


def test_log_ratios_of_pairs_tell_mean_and_covariance_whatever_is_hidden():
    _, D, _, _ = simulated(20_000)
    logs = np.log(D) - np.log(D).mean(axis=1, keepdims=True)
    observed = np.random.default_rng(0).random(D.shape) < 0.6
    observed[:, 0] = True
    mean, S = moments_of_log_ratios(sums_over_pairs(renormalised(D, observed), observed, 1e9), 1e9)
    assert np.allclose(mean, logs.mean(axis=0), atol=0.03)
    covariance = np.cov(logs.T)
    isotropic = np.trace(covariance) / 4 * (np.eye(5) - 1 / 5)
    assert np.allclose(S, (covariance + isotropic) / 2, atol=0.05)
