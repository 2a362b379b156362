"""SA-BFGS: its gradient, its optimum, its weights."""

import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning

from hidldl import SABFGS, make_distributions


@pytest.fixture
def data():
    return make_distributions(n_rows=80, n_features=4, n_labels=3, zeros=0.1, random_state=0)


def test_a_true_maximum_entropy_model_is_found():
    rng = np.random.default_rng(1)
    X, W = rng.normal(size=(200, 3)), rng.normal(size=(3, 4))
    model = SABFGS(random_state=0).fit(X, softmax(X @ W, axis=1))
    assert model.converged_
    assert np.allclose(model.predict(X), softmax(X @ W, axis=1), atol=1e-4)
    # Adding the same number to every label's weight of a feature changes nothing.
    assert np.allclose(
        model.coef_ - model.coef_.mean(axis=1, keepdims=True), W - W.mean(axis=1, keepdims=True), atol=1e-2
    )


def test_the_loss_falls_to_the_same_optimum_from_any_start(data):
    models = [SABFGS(random_state=seed).fit(data.features, data.distributions) for seed in range(3)]
    for model in models:
        losses = model.history_["loss"]
        assert len(losses) == model.n_iter_
        assert (np.diff(losses) <= 1e-9).all()
        assert losses[-1] == pytest.approx(models[0].history_["loss"][-1], rel=1e-6)


def test_a_weight_of_two_is_a_row_twice(data):
    weights = np.ones(80)
    weights[:10] = 2
    weighted = SABFGS(random_state=0).fit(data.features, data.distributions, sample_weight=weights)
    repeated = SABFGS(random_state=0).fit(*(np.r_[A[:10], A] for A in (data.features, data.distributions)))
    assert np.allclose(weighted.predict(data.features), repeated.predict(data.features), atol=1e-4)


def test_sparse_features_give_the_same_model(data):
    dense = SABFGS(random_state=0).fit(data.features, data.distributions)
    thin = SABFGS(random_state=0).fit(sparse.csr_array(data.features), data.distributions)
    assert np.allclose(dense.coef_, thin.coef_, atol=1e-6)


def test_huge_scores_do_not_overflow(data):
    prediction = (
        SABFGS(random_state=0, max_iter=20).fit(data.features * 1e4, data.distributions).predict(data.features * 1e4)
    )
    assert np.isfinite(prediction).all()


def test_stopping_early_is_a_warning_with_the_gradient(data):
    with pytest.warns(ConvergenceWarning, match="SABFGS stopped after 2 iterations.*gradient"):
        SABFGS(max_iter=2, random_state=0).fit(data.features, data.distributions)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.ones(3), r"sample_weight has shape \(3,\); give one weight for each of the 80 rows"),
        (np.where(np.arange(80) == 7, -1.0, 1.0), "sample_weight is negative in row 7"),
        (np.zeros(80), "sample_weight is zero in every row"),
        (np.full(80, np.nan), "sample_weight is not a finite number in row"),
    ],
)
def test_bad_weights_are_refused(data, weights, message):
    with pytest.raises(ValueError, match=message):
        SABFGS().fit(data.features, data.distributions, sample_weight=weights)


def test_incomplete_distributions_are_refused(data):
    D = data.distributions.copy()
    D[3, 1] = np.nan
    with pytest.raises(ValueError, match="D is not a finite number in row 3, label 1"):
        SABFGS().fit(data.features, D)


def test_scores_are_weighted(data):
    model = SABFGS(random_state=0).fit(data.features, data.distributions)
    first = np.zeros(80)
    first[0] = 1
    alone = model.score(data.features[:1], data.distributions[:1])
    assert model.score(data.features, data.distributions, sample_weight=first) == pytest.approx(alone)
