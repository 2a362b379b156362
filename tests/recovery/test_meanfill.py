"""The proportional mean fill against its definition."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from hidldl import MeanFill


def literal_mean_fill(D_obs, observed, rounds=2000):
    D = D_obs.copy()
    for _ in range(rounds):
        mean = D.mean(axis=0)
        for i in range(len(D)):
            D[i] = np.where(observed[i], (1 - mean[~observed[i]].sum()) * D_obs[i], mean)
    return D


def test_it_is_the_fixed_point_of_its_definition(hidden):
    model = MeanFill(tol=0).fit(hidden.X, hidden.D_obs, observed=hidden.observed)
    assert np.allclose(model.distributions_, literal_mean_fill(hidden.D_obs, hidden.observed), rtol=0, atol=1e-9)
    assert np.allclose(model.mean_, model.distributions_.mean(axis=0), rtol=0, atol=1e-9)


def test_rows_that_are_all_alike_are_recovered_exactly(hidden):
    row = np.array([0.4, 0.3, 0.15, 0.1, 0.05])
    D_obs = np.where(hidden.observed, row, 0)
    model = MeanFill(tol=1e-12).fit(hidden.X, D_obs / D_obs.sum(axis=1, keepdims=True), observed=hidden.observed)
    assert np.allclose(model.distributions_, row, atol=1e-9)


def test_every_new_row_gets_the_mean(hidden):
    model = MeanFill().fit(hidden.X, hidden.D_obs, observed=hidden.observed)
    assert np.allclose(model.predict(hidden.X[:4]), model.mean_)


def test_stopping_early_is_a_warning(hidden):
    with pytest.warns(ConvergenceWarning, match="MeanFill stopped after 2 iterations"):
        model = MeanFill(max_iter=2).fit(hidden.X, hidden.D_obs, observed=hidden.observed)
    assert len(model.history_["change"]) == model.n_iter_ == 2


def test_a_label_seen_once_among_zeros_keeps_some_mass():
    D_obs = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    observed = np.array([[True, False], [True, True], [True, True]])
    D = MeanFill().fit(np.zeros((3, 1)), D_obs, observed=observed).distributions_
    assert 0 < D[0, 0] < 1e-6
    assert np.allclose(D.sum(axis=1), 1)


def test_rounding_gives_no_negative_share():
    # The first label's mean sinks to 0; the others' then sum to 1, and with these numbers to a little more.
    D_obs = np.zeros((4, 6))
    D_obs[0, 0] = 1
    D_obs[1:, 1:] = np.random.default_rng(25).dirichlet(np.ones(5), size=3)
    observed = D_obs > 0
    observed[1:] = True
    model = MeanFill(tol=0, max_iter=3000).fit(np.zeros((4, 1)), D_obs, observed=observed)
    assert (model.predict(np.zeros((1, 1))) >= 0).all()
