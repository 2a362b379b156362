"""LDL-LDM: its gradient, its combinations of labels, its special case."""

import numpy as np
import pytest
from scipy.optimize import check_grad
from sklearn.manifold._locally_linear import barycenter_weights

from hidldl import LDLLDM, SABFGS
from hidldl.learners.maxent import objective_and_gradient
from hidldl.recovery.ldlldm import BARYCENTRE_RIDGE, label_combinations, manifold_loss


def test_the_gradient_agrees_with_finite_differences(hidden):
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(2, 5, 5))
    penalties = factors @ factors.transpose(0, 2, 1)
    loss = manifold_loss(hidden.D_obs, hidden.observed, rng.integers(0, 2, 60), penalties)

    def at(flat):
        value, gradient = objective_and_gradient(flat.reshape(4, 5), hidden.X, loss, 0.1)
        return value, gradient.ravel()

    W = rng.normal(size=20)
    assert check_grad(lambda w: at(w)[0], lambda w: at(w)[1], W) < 1e-3


def test_combinations_are_the_weights_of_locally_linear_embedding(hidden):
    Z = label_combinations(hidden.D)
    assert np.allclose(np.diag(Z), 0)
    assert np.allclose(Z.sum(axis=0), 1)
    columns = hidden.D.T
    for j in range(5):
        others = [k for k in range(5) if k != j]
        expected = barycenter_weights(columns[[j]], columns, np.array([others]), reg=BARYCENTRE_RIDGE)
        assert np.allclose(Z[others, j], expected[0])


def test_without_manifolds_and_with_all_observed_it_is_sabfgs(hidden):
    model = LDLLDM(l1=0, l2=0, l3=0, random_state=0).fit(hidden.X, hidden.D)
    expected = SABFGS(random_state=0).fit(hidden.X, hidden.D).predict(hidden.X)
    assert np.allclose(model.distributions_, expected, atol=1e-3)
    assert np.allclose(model.predict(hidden.X), model.distributions_)


def test_predictions_come_nearer_to_the_manifold(hidden):
    def distance(l2):
        P = LDLLDM(l2=l2, l3=0, random_state=0).fit(hidden.X, hidden.D_obs, hidden.observed).distributions_
        return np.linalg.norm(P - P @ label_combinations(P))

    assert distance(100.0) < distance(0.0)


def test_one_group_and_few_rows(hidden):
    alone = LDLLDM(n_groups=1, l3=5.0, random_state=0).fit(hidden.X, hidden.D_obs, hidden.observed)
    without = LDLLDM(l3=0, n_groups=1, random_state=0).fit(hidden.X, hidden.D_obs, hidden.observed)
    assert np.allclose(alone.distributions_, without.distributions_)
    few = LDLLDM(random_state=0).fit(hidden.X[:3], hidden.D[:3])
    assert few.distributions_.shape == (3, 5)


@pytest.mark.parametrize("name", ["l1", "l2", "l3"])
def test_negative_weights_are_refused(hidden, name):
    with pytest.raises(ValueError, match=f"{name} must be at least 0"):
        LDLLDM(**{name: -1}).fit(hidden.X, hidden.D)


def test_shares_under_the_mask_are_not_looked_at(hidden):
    spoiled = np.where(hidden.observed, hidden.D_obs, 0.77)
    plain, other = (LDLLDM(random_state=0).fit(hidden.X, D, hidden.observed) for D in (hidden.D_obs, spoiled))
    assert np.array_equal(plain.distributions_, other.distributions_)


def test_what_is_missing_is_not_taken_for_zero(hidden):
    incomplete = np.where(hidden.observed, hidden.D, 0)
    model = LDLLDM(l2=0, l3=0, random_state=0).fit(hidden.X, incomplete, hidden.observed)
    missing = ~hidden.observed
    assert model.distributions_[missing].mean() == pytest.approx(hidden.D[missing].mean(), abs=0.02)


def test_groups_count(hidden):
    without, with_groups = (
        LDLLDM(l2=0, l3=l3, n_groups=3, random_state=0).fit(hidden.X, hidden.D_obs, hidden.observed).distributions_
        for l3 in (0.0, 50.0)
    )
    assert np.abs(without - with_groups).max() > 0.01
