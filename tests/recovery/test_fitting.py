"""Kinds of rows, the prior of ordered labels, and votes, in the fit itself."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.special import softmax

from hidldl import BayesHidLDL, hide_labels, score
from hidldl.recovery.covariances import centred, shifted
from hidldl.recovery.fitting import fit_latent_model
from hidldl.recovery.latent import Estimates, Parameters

GIVEN = {"width": 1.0, "standardize": True, "hiding": "uniform", "random_state": 0}


@pytest.fixture(scope="module")
def two_kinds():
    """Rows around two points that are far apart, and which of them each row belongs to."""
    rng = np.random.default_rng(0)
    kind = (rng.random(300) < 0.4).astype(int)
    offsets = np.array([[1.5, -1.5, 1.0, -1.0, 0.0], [-1.5, 1.5, -1.0, 1.0, 0.0]])
    D = softmax(offsets[kind] + 0.3 * rng.standard_normal((300, 5)), axis=1)
    return rng.normal(size=(300, 2)), D, *hide_labels(D, 0.5, random_state=0), kind


def fitted(problem, n_components, **options):
    X, _, D_obs, observed, _ = problem
    parameters = Parameters(300.0, 10.0, 5.0, n_components=n_components)
    return fit_latent_model(X, D_obs, observed, parameters, **{"max_iter": 100, "tol": 3e-3, **options})


def test_one_kind_is_the_model_without_kinds(two_kinds):
    fit = fitted(two_kinds, 1)
    estimates = fit.model.estimates
    assert (fit.rows.kinds == 1).all()
    assert (estimates.offsets == 0).all()
    assert np.allclose(estimates.shares_of_kinds, 1)
    assert np.allclose(estimates.covariance, estimates.covariances[0])
    assert np.allclose(estimates.intercept[5:], 1)
    assert np.allclose(estimates.coef[:, 5:], 0)
    assert fit.model.has_even_draws


def test_two_kinds_are_told_apart_and_recover_better(two_kinds):
    X, D, D_obs, observed, kind = two_kinds
    settings = {"nu": 300.0, "ridge": 10.0, "prior_rows": 1.0, "ordered": False}
    one, two = (BayesHidLDL(**settings, n_components=k, **GIVEN).fit(X, D_obs, observed) for k in (1, 2))
    for measure in ("chebyshev", "kl"):
        assert score(D, two.distributions_)[measure] < 0.92 * score(D, one.distributions_)[measure]
    assert two.kinds_.shape == (300, 2)
    assert np.allclose(two.kinds_.sum(axis=1), 1)
    assert (two.kinds_ >= 0).all()
    agree = (two.kinds_.argmax(axis=1) == kind).mean()
    assert max(agree, 1 - agree) > 0.85
    # Rows that show four labels or more are hardly ever mistaken.
    rich = observed.sum(axis=1) >= 4
    agree = (two.kinds_.argmax(axis=1) == kind)[rich].mean()
    assert max(agree, 1 - agree) > 0.97


def test_kinds_lean_on_each_other_where_rows_show_few_labels(two_kinds):
    X, D, *_ = two_kinds
    weights = [
        fitted((X, D, *hide_labels(D, rate, random_state=0), None), 2).rounds.weight_of_row for rate in (0.0, 0.4, 0.8)
    ]
    # With a fifth of the labels, rows show about one pair in 25.
    assert weights == [1.0, 1.0, pytest.approx((4 / 25) ** 1.5, rel=0.5)]


def test_kinds_that_hardly_any_row_is_of_are_left_out(two_kinds):
    model, rows = fitted(two_kinds, 8).of_common_kinds()
    shares = rows.kinds.mean(axis=0)
    assert 2 <= len(shares) < 8
    assert (np.diff(shares) <= 0).all()
    assert np.allclose(rows.kinds.sum(axis=1), 1)
    assert model.parameters.n_components == len(shares) == len(rows.weights)
    model.check()


@pytest.mark.parametrize("n_components", [1, 2, 3])
def test_the_evidence_ends_above_its_start(two_kinds, n_components):
    fit = fitted(two_kinds, n_components)
    evidence = fit.history["evidence"]
    assert fit.converged
    assert len(evidence) == len(fit.history["change"])
    assert evidence[-1] > evidence[0]


@pytest.mark.parametrize("n_labels", [70, 140])
def test_the_fit_goes_on_until_small_directions_have_settled(n_labels):
    """Bumps on a line of labels: a few directions have nearly all variance, and the others tell hidden labels."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    center = n_labels / 2 + n_labels / 8 * (X[:, :1] + 0.5 * rng.standard_normal((200, 1)))
    logs = -0.5 * ((np.arange(n_labels) - center) * 8 / n_labels) ** 2 + 0.03 * rng.standard_normal((200, n_labels))
    D_obs, observed = hide_labels(softmax(logs, axis=1), 0.8, random_state=0)
    parameters = Parameters(1e4, 10.0, n_labels, ordered=True)
    usual, close = (
        fit_latent_model(X, D_obs, observed, parameters, max_iter=80, tol=tol).history["evidence"][-1]
        for tol in (3e-3, 1e-5)
    )
    assert usual > close - 0.02 * n_labels


def test_two_kinds_explain_rows_of_two_kinds_better(two_kinds):
    one, two = (fitted(two_kinds, k).history["evidence"][-1] for k in (1, 2))
    assert two > one + 0.3


def test_the_covariance_over_all_kinds_is_that_of_the_mixture(two_kinds):
    estimates = fitted(two_kinds, 2).model.estimates
    rng = np.random.default_rng(0)
    kinds = rng.choice(2, size=100_000, p=estimates.shares_of_kinds)
    z = np.empty((100_000, 5))
    for k in (0, 1):
        here = kinds == k
        z[here] = rng.multivariate_normal(estimates.offsets[k], estimates.covariances[k], here.sum(), method="eigh")
    assert np.allclose(np.cov(z.T), estimates.covariance, atol=0.03)


def test_kinds_of_rows_are_weighed_by_their_evidence(two_kinds):
    X, D, _, _, _ = two_kinds
    model = fitted(two_kinds, 2).model
    everything, nothing = np.ones((300, 5), dtype=bool), np.zeros((300, 5), dtype=bool)
    prior = model.prior(X, D, everything)
    before = prior.kinds.copy()
    evidence = model.condition(prior)
    alone = []
    for k in (0, 1):
        single = Estimates(
            model.estimates.covariances[[k]],
            model.estimates.offsets[[k]],
            np.append(model.estimates.intercept[:5], 1.0),
            np.hstack([model.estimates.coef[:, :5], np.zeros((2, 1))]),
        )
        one = type(model)(model.parameters, single, model.regression)
        alone.append(one.condition(one.prior(X, D, everything)))
    total = before * np.exp(np.transpose(alone))
    assert np.allclose(prior.kinds, total / total.sum(axis=1, keepdims=True), atol=1e-9)
    assert np.allclose(evidence, np.log(total.sum(axis=1)))
    blank = model.prior(X, np.zeros_like(D), nothing)
    before = blank.kinds.copy()
    model.condition(blank)
    assert np.allclose(blank.kinds, before)


def test_kinds_do_not_depend_on_how_blocks_are_mapped(two_kinds):
    X, _, D_obs, observed, _ = two_kinds
    # More rows than a block has.
    table = tuple(np.tile(part, (4, 1)) for part in (X, D_obs, observed))
    parameters = Parameters(300.0, 10.0, 5.0, n_components=2)
    alone = fit_latent_model(*table, parameters, max_iter=10, tol=1e-3)
    with ThreadPoolExecutor(2) as pool:
        together = fit_latent_model(*table, parameters, max_iter=10, tol=1e-3, mapper=pool.map)
    assert np.array_equal(alone.rows.kinds, together.rows.kinds)
    assert np.array_equal(alone.model.estimates.covariances, together.model.estimates.covariances)


def test_a_row_that_weighs_twice_is_a_row_of_twice_the_nu(two_kinds):
    X, _, D_obs, observed, _ = two_kinds
    options = {"max_iter": 20, "tol": 1e-3}
    weighted = fit_latent_model(
        X, D_obs, observed, Parameters(100.0, 10.0, 5.0), row_weights=np.full(300, 2.0), **options
    )
    plain = fit_latent_model(X, D_obs, observed, Parameters(200.0, 10.0, 5.0), **options)
    assert np.allclose(weighted.rows.nu, plain.rows.nu)
    # The start, and what counts as a change, know nu without the weights.
    assert np.allclose(weighted.model.estimates.covariance, plain.model.estimates.covariance, atol=0.02)


class TestOrderedLabels:
    def test_a_covariance_by_distance_stays_as_it_is(self):
        S = toeplitz(0.8 ** np.arange(8))
        assert np.allclose(shifted(S), centred(S), atol=1e-12)

    def test_around_a_circle_it_stays_as_it_is_even_when_centred(self):
        ring = np.minimum(np.arange(9), 9 - np.arange(9))
        S = centred(toeplitz(np.exp(-ring)))
        assert np.allclose(shifted(S), S, atol=1e-12)

    def test_it_is_the_mean_over_each_diagonal(self):
        root = np.random.default_rng(0).normal(size=(6, 12))
        S = root @ root.T
        means = toeplitz([np.diag(S, lag).mean() for lag in range(6)])
        eigenvalues, vectors = np.linalg.eigh(centred(means))
        floored = (vectors * np.maximum(eigenvalues, 1e-3 * np.trace(S) / 6)) @ vectors.T
        assert np.allclose(shifted(S), centred(floored))

    def test_it_stays_positive_on_centred_vectors(self):
        S = centred(np.diag([5.0, 0.0, 5.0, 0.0, 5.0, 0.0]) - 1.0 * np.eye(6)[::-1])
        eigenvalues = np.linalg.eigvalsh(shifted(S))
        assert abs(eigenvalues[0]) < 1e-12
        assert (eigenvalues[1:] > 0).all()

    def test_few_rows_of_many_ordered_labels_are_recovered_better(self):
        rng = np.random.default_rng(0)
        S = toeplitz(np.exp(-((np.arange(40) / 4) ** 2) / 2)) + 0.01 * np.eye(40)
        D = softmax(rng.multivariate_normal(np.zeros(40), S, 80), axis=1)
        X, (D_obs, observed) = rng.normal(size=(80, 2)), hide_labels(D, 0.5, random_state=0)
        settings = {"nu": 1000.0, "ridge": 100.0, "prior_rows": 1.0, "n_components": 1}
        plain, ordered = (
            BayesHidLDL(**settings, ordered=ordered, **GIVEN).fit(X, D_obs, observed).distributions_
            for ordered in (False, True)
        )
        assert score(D, ordered)["kl"] < 0.5 * score(D, plain)["kl"]
        # In another order of the labels, the prior is wrong.
        labels = rng.permutation(40)
        model = BayesHidLDL(**settings, ordered=True, **GIVEN).fit(X, D_obs[:, labels], observed[:, labels])
        assert score(D[:, labels], model.distributions_)["kl"] > 1.5 * score(D, ordered)["kl"]
