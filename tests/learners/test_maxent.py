"""The losses of the maximum entropy model: gradients, optima, weights."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from scipy.stats import rankdata
from sklearn.linear_model import LogisticRegression

from hidldl import LDLDPA, LDLLRR, SABFGS, make_distributions
from hidldl.learners import ldllrr
from hidldl.learners.maxent import objective_and_gradient

DATA = make_distributions(n_rows=60, n_features=4, n_labels=5, zeros=0.2, random_state=0)
LEARNERS = [
    SABFGS(),
    LDLLRR(alpha=0.5, beta=0.1),
    LDLLRR(alpha=0.5, margin=0.2),
    LDLDPA(alpha=0.3, beta=20.0, gamma=0.1),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_gradients_agree_with_finite_differences(learner):
    rng = np.random.default_rng(1)
    loss = learner._loss(DATA.distributions, rng.random(60))

    def at(flat):
        value, gradient = objective_and_gradient(flat.reshape(4, 5), DATA.features, loss, learner._ridge())
        return value, gradient.ravel()

    for W in (np.zeros(20), rng.normal(size=20)):
        difference = check_grad(lambda w: at(w)[0], lambda w: at(w)[1], W)
        assert difference < 1e-5 * max(1, np.linalg.norm(at(W)[1]))


@pytest.mark.parametrize("learner", LEARNERS, ids=str)
def test_the_objective_falls(learner):
    model = learner.set_params(random_state=0).fit(DATA.features, DATA.distributions)
    assert (np.diff(model.history_["loss"]) <= 1e-9).all()
    assert len(model.history_["loss"]) == model.n_iter_


def logistic_regression(X, D, ridge):
    """The same model by scikit-learn: every label of every row is an example, weighted by its share."""
    n, m = D.shape
    penalty = {"C": np.inf} if ridge == 0 else {"C": 1 / ridge}
    model = LogisticRegression(fit_intercept=False, tol=1e-10, max_iter=10_000, **penalty)
    model.fit(np.repeat(X, m, axis=0), np.tile(np.arange(m), n), sample_weight=D.ravel())
    return model.predict_proba(X)


def test_sabfgs_is_logistic_regression_on_shares():
    P = SABFGS(random_state=0, max_iter=5000).fit(DATA.features, DATA.distributions).predict(DATA.features)
    assert np.allclose(P, logistic_regression(DATA.features, DATA.distributions, 0), atol=1e-3)


def test_ldllrr_without_ranking_is_sabfgs_with_a_ridge():
    model = LDLLRR(alpha=0, beta=0.05, random_state=0).fit(DATA.features, DATA.distributions)
    # scikit-learn sums over rows where LDL-LRR takes the mean.
    expected = logistic_regression(DATA.features, DATA.distributions, 0.05 * 60)
    assert np.allclose(model.predict(DATA.features), expected, atol=1e-4)


def test_ldldpa_without_its_terms_is_sabfgs():
    plain = LDLDPA(alpha=0, beta=0, gamma=0, random_state=0).fit(DATA.features, DATA.distributions)
    expected = SABFGS(random_state=0).fit(DATA.features, DATA.distributions)
    assert np.allclose(plain.predict(DATA.features), expected.predict(DATA.features), atol=1e-3)


def ranking_by_hand(P, D, margin):
    """The ranking loss as it is written, one pair at a time."""
    values = np.zeros(len(P))
    for i, j, k in np.ndindex(len(P), P.shape[1], P.shape[1]):
        sigmoid = 1 / (1 + np.exp(-(P[i, j] - P[i, k])))
        target = 0.5 if D[i, j] == D[i, k] else float(D[i, j] - D[i, k] > margin)
        entropy = -(target * np.log(sigmoid) + (1 - target) * np.log(1 - sigmoid))
        values[i] += (D[i, j] - D[i, k]) ** 2 * entropy
    return values


@pytest.mark.parametrize("margin", [0.0, 0.15])
def test_the_ranking_loss_is_its_formula_however_it_is_cut(margin, monkeypatch):
    D = DATA.distributions
    P = np.random.default_rng(0).dirichlet(np.ones(5), 60)
    whole = ldllrr.ranking_loss(P, D, margin)
    assert np.allclose(whole[0], ranking_by_hand(P, D, margin))
    for few_labels, block in ((32, 7 * 25), (1, 7 * 25), (1, 2**20)):
        monkeypatch.setattr(ldllrr, "FEW_LABELS", few_labels)
        monkeypatch.setattr(ldllrr, "SMALL_BLOCK", block)
        monkeypatch.setattr(ldllrr, "LARGE_BLOCK", block)
        for one, other in zip(whole, ldllrr.ranking_loss(P, D, margin), strict=True):
            assert np.allclose(one, other, rtol=1e-12)


def test_objectives_are_those_of_the_docstrings():
    rng = np.random.default_rng(2)
    D, P, w = DATA.distributions, rng.dirichlet(np.ones(5), 60), rng.uniform(0.5, 2, 60)
    kl = np.array(
        [sum(d * np.log(d / p) for d, p in zip(*rows, strict=True) if d > 0) for rows in zip(D, P, strict=True)]
    )
    ranking = LDLLRR(alpha=0.7, margin=0.1)._loss(D, w)(P, np.log(P))[0]
    expected = (w * kl).sum() / w.sum() + 0.7 / (2 * w.sum()) * (w * ranking_by_hand(P, D, 0.1)).sum()
    assert ranking == pytest.approx(expected)
    average = LDLDPA(alpha=0.3, beta=2.0)._loss(D, w)(P, np.log(P))[0]
    ranks = np.array([rankdata(d) for d in D])
    terms = kl - 0.3 * (ranks * P).mean(axis=1) + 2.0 * (D.var(axis=1) - P.var(axis=1)) ** 2
    assert average == pytest.approx((w * terms).sum())


def test_more_weight_on_the_order_keeps_it_better():
    def disorder(alpha):
        P = LDLLRR(alpha=alpha, beta=0.1, random_state=0).fit(DATA.features, DATA.distributions).predict(DATA.features)
        return ldllrr.ranking_loss(P, DATA.distributions, 0.0)[0].sum()

    assert disorder(10.0) < disorder(0.1) < disorder(0.0)


@pytest.mark.parametrize("kind", [LDLLRR, LDLDPA])
@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_negative_weights_are_refused(kind, name):
    with pytest.raises(ValueError, match=f"{name} must be at least 0"):
        kind(**{name: -1}).fit(DATA.features, DATA.distributions)


def test_starts_are_as_published():
    rng = np.random.default_rng(0)
    assert 0 <= SABFGS()._start(rng, 50, 4).min() < SABFGS()._start(rng, 50, 4).max() <= 1
    limit = np.sqrt(6 / 54)
    start = LDLDPA()._start(rng, 50, 4)
    assert 0.9 * limit < np.abs(start).max() <= limit


def test_a_start_that_meets_the_criterion_has_a_loss_all_the_same():
    model = SABFGS(random_state=0).fit(np.zeros_like(DATA.features), DATA.distributions)
    assert np.isfinite(model.history_["loss"][-1])
    assert np.allclose(model.predict(np.zeros((3, 4))), 0.2)
