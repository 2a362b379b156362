from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.special import softmax

from hidldl import BayesHidLDL, hide_labels, load_model, save_model
from hidldl.recovery import fitting, logisticnormal, lowrank
from hidldl.recovery.fitting import fit_latent_model
from hidldl.recovery.latent import Estimates, Parameters, draw_rows
from hidldl.recovery.lowrank import FACTOR_LABELS, FIRST_FACTORS, Factors
from hidldl.recovery.rows import Rows

M = FACTOR_LABELS
GIVEN = {"nu": 1e4, "ridge": 1.0, "width": 1.0, "standardize": True, "prior_rows": 1.0, "ordered": True}


def low_rank(rng, n_labels=M, rank=5):
    root = rng.normal(size=(n_labels, rank))
    root -= root.mean(axis=0)
    return root @ root.T + 0.05 * (np.eye(n_labels) - 1 / n_labels)


@pytest.fixture
def problem():
    """Rows with different labels, one of them without any, zeros that may be hidden, and unequal scales."""
    rng = np.random.default_rng(0)
    observed = rng.random((12, M)) < 0.4
    observed[0] = False
    observed[1] = np.arange(M) == 3
    presence = observed * np.where(rng.random((12, M)) < 0.2, rng.random((12, M)), 1.0)
    shares = np.where(observed, rng.dirichlet(np.ones(M), 12), 0)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    return low_rank(rng), rng.normal(size=(12, M)), rng.uniform(1, 2, 12), shares, presence


def ages(n_rows, n_labels=M, seed=0):
    """Bumps on a line of labels, whose centres follow a feature."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 3))
    center = n_labels * (0.5 + 0.15 * X[:, :1] + 0.05 * rng.standard_normal((n_rows, 1)))
    logs = -0.5 * ((np.arange(n_labels) - center) / (0.1 * n_labels)) ** 2 + 0.05 * rng.standard_normal((n_rows, 1))
    return X, softmax(np.logaddexp(logs, -7) + 0.05 * rng.standard_normal((n_rows, n_labels)), axis=1)


def test_factors_are_those_of_the_covariance():
    S = low_rank(np.random.default_rng(0))
    for factors in (Factors.of(S), Factors.nearest(S)):
        assert factors.loadings.shape == (M, 5)
        assert np.allclose(factors.covariance, S, atol=1e-12)
    rows = np.random.default_rng(1).normal(size=(4, M))
    rows -= rows.mean(axis=1, keepdims=True)
    assert np.allclose(factors.times(rows), rows @ S)
    assert np.allclose(factors.around(rows.T @ rows), S @ rows.T @ rows @ S)


def test_a_covariance_of_full_rank_or_of_few_labels_has_no_factors():
    rng = np.random.default_rng(0)
    full = np.cov(rng.normal(size=(M, 3 * M)))
    assert Factors.of(full) is None
    assert Factors.of(low_rank(rng, M - 1)) is None
    nearest = Factors.nearest(full - full.mean(axis=0) - full.mean(axis=1, keepdims=True) + full.mean())
    assert nearest.loadings.shape[1] <= M // 3


@pytest.mark.parametrize("nu", [3.0, 300.0, 10_000.0])
@pytest.mark.parametrize("max_newton", [50, 0])
def test_rows_are_as_with_the_whole_covariance(problem, nu, max_newton):
    S, mean, scale, shares, presence = problem
    start = shares - np.where(presence > 0, 1, 0) / np.maximum((presence > 0).sum(axis=1, keepdims=True), 1)
    tol, results = 1e-13, []
    for find_modes, part in ((logisticnormal.find_modes, S), (lowrank.find_modes, Factors.of(S))):
        weights, slope, evidence = start.copy(), np.zeros_like(S), np.zeros(12)
        importance = np.linspace(0, 1, 12)
        row = (mean, scale, shares, presence, np.full(12, nu))
        find_modes(part, *row, max_newton, tol, importance, weights, slope, evidence)
        results.append((weights @ S, S @ slope @ S, evidence))
    # The search ends where the loss falls by less than tol, which leaves the root of tol to its lowest point.
    close = np.sqrt(tol) if max_newton else 1e-8
    for whole, by_factors, near in zip(*results, (close, close, 1e-8), strict=True):
        assert np.allclose(whole, by_factors, rtol=near, atol=near * np.abs(whole).max())


def test_draws_have_the_posteriors_mean_and_covariance(problem):
    S, mean, scale, shares, presence = problem
    rng, n_draws, nu = np.random.default_rng(1), 20_000, np.full(12, 40.0)
    estimates = Estimates(S[None], np.zeros((1, M)), np.zeros(M + 1), np.zeros((0, M + 1)))
    at = [0, 1, 5]
    rows = Rows(shares, presence == 1, nu, mean, scale, np.ones((12, 1)), np.zeros((1, 12, M)), presence)
    evidence = np.zeros(12)
    lowrank.find_modes(
        Factors.of(S), mean, scale, shares, presence, nu, 50, 1e-12, np.zeros(12), rows.weights[0], S * 0, evidence
    )
    chosen = Rows(
        *(part[at] for part in (shares, presence == 1, nu, mean, scale, rows.kinds)), rows.weights[:, at], presence[at]
    )
    z, _, _ = draw_rows(estimates, chosen, *rng.standard_normal((2, 1, M, n_draws)))
    for k, i in enumerate(at):
        mode = mean[i] + scale[i] * S @ rows.weights[0, i]
        p = presence[i] * np.exp(mode - mode.max())
        p /= max(p.sum(), 1e-300)
        W = nu[i] * (np.diag(p) - np.outer(p, p))
        expected = scale[i] * S @ np.linalg.inv(np.eye(M) + W @ (scale[i] * S))
        size = np.sqrt(np.diag(expected).max())
        assert np.allclose(z[k].mean(axis=1), mode, atol=0.03 * size)
        assert np.allclose(np.cov(z[k]), expected, atol=0.06 * size**2)


def test_only_its_own_draws_of_a_kind_are_written(problem):
    S, mean, scale, _, presence = problem
    factors = Factors.of(S)
    normals, noise = np.random.default_rng(1).standard_normal((2, 1, M, 10))
    out, everything = np.full((12, M, 10), np.nan), np.empty((12, M, 10))
    row = (factors.loadings, factors.rest, mean, scale, presence, np.full(12, 40.0), np.zeros((12, M)))
    lowrank.draw_log_shares(*row, factors.draws(normals), noise, np.full(12, 2), np.full(12, 6), out)
    lowrank.draw_log_shares(*row, factors.draws(normals), noise, np.full(12, 0), np.full(12, 10), everything)
    assert np.isnan(out[..., :2]).all()
    assert np.isnan(out[..., 6:]).all()
    assert np.allclose(out[..., 2:6], everything[..., 2:6])


@pytest.mark.parametrize("n_components", [1, 2])
def test_the_result_does_not_depend_on_threads(n_components, monkeypatch):
    monkeypatch.setattr("hidldl.recovery.latent.BLOCK_ROWS_OF_MANY", 50)
    X, D = ages(150)
    D_obs, observed = hide_labels(D, 0.5, random_state=0)
    parameters = Parameters(1e4, 1.0, float(M), True, n_components)
    alone = fit_latent_model(X, D_obs, observed, parameters, max_iter=4, tol=1e-3)
    with ThreadPoolExecutor(3) as pool:
        together = fit_latent_model(X, D_obs, observed, parameters, max_iter=4, tol=1e-3, mapper=pool.map)
    assert np.array_equal(alone.rows.mean, together.rows.mean)
    assert np.array_equal(alone.model.estimates.covariances, together.model.estimates.covariances)


@pytest.mark.parametrize("rank", [2, 2 * FIRST_FACTORS])
def test_em_finds_as_many_factors_as_there_are(rank):
    """The start has eight factors at most, and noise among them."""
    rng = np.random.default_rng(0)
    root = np.linalg.qr(rng.normal(size=(M, rank)))[0] * np.sqrt(M)
    D = softmax(rng.standard_normal((400, rank)) @ root.T + 0.1 * rng.standard_normal((400, M)), axis=1)
    D_obs, observed = hide_labels(D, 0.5, random_state=0)
    fit = fit_latent_model(np.zeros((400, 0)), D_obs, observed, Parameters(1e5, 1.0, 1.0), max_iter=30, tol=3e-3)
    factors = fit.model.estimates.factors[0]
    eigenvalues = np.sort(factors.eigenvalues)[::-1]
    assert rank <= factors.n_factors < 32
    assert (eigenvalues[:rank] > 50 * factors.rest).all()
    assert (eigenvalues[rank:] < 10 * factors.rest).all()


def test_a_table_with_many_labels_tunes_itself():
    X, D = ages(60, 80)
    D_obs, observed = hide_labels(D, 0.5, random_state=0)
    model = BayesHidLDL(random_state=0).fit(X, D_obs, observed=observed)
    assert model.selection_ is not None
    assert np.abs(model.distributions_ - D).max(axis=1).mean() < 0.02


MANY = 32


@pytest.fixture
def few_count_as_many(monkeypatch):
    """Factors from fewer labels on; the calls to find modes with them."""
    for place in (lowrank, fitting):
        monkeypatch.setattr(place, "FACTOR_LABELS", MANY)
    calls, find_modes = [], lowrank.find_modes
    monkeypatch.setattr(lowrank, "find_modes", lambda *row: (calls.append(row), find_modes(*row))[1])
    return calls


def test_what_a_posterior_is_asked_works_with_many_labels(tmp_path, monkeypatch, few_count_as_many):
    monkeypatch.setattr("hidldl.recovery.heldout.N_CALIBRATION_DRAWS", 40)
    X, D = ages(40, MANY)
    D_obs, observed = hide_labels(D, 0.5, random_state=0)
    how = GIVEN | {"max_iter": 4, "random_state": 0}
    model = BayesHidLDL(**how, n_components=2, hiding="degree").fit(X, D_obs, observed=observed)
    low, high, *_ = model.intervals(0.9)
    assert 0.7 < ((low <= D) & (high >= D))[~observed].mean() <= 1
    assert model.sample(2, random_state=0).shape == (2, 40, MANY)
    assert few_count_as_many
    save_model(tmp_path / "model.npz", model)
    loaded, _ = load_model(tmp_path / "model.npz")
    assert np.allclose(loaded.predict(X[:5]), model.predict(X[:5]), atol=1e-10)


def test_zeros_may_be_unknown_with_many_labels(few_count_as_many):
    X, D = ages(20, MANY)
    D_obs, _ = hide_labels(D, 0.5, random_state=0)
    how = GIVEN | {"max_iter": 4, "random_state": 0, "hidden_rate": 0.5}
    model = BayesHidLDL(**how, n_components=1, zeros="unknown").fit(X, D_obs)
    assert np.allclose(model.distributions_.sum(axis=1), 1)
    assert (model.hidden_probability_[D_obs > 0] == 0).all()
    assert few_count_as_many
