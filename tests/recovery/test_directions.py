import numpy as np
import pytest
from scipy import sparse
from scipy.special import softmax

from hidldl import BayesHidLDL, hide_labels, load_model, save_model, score
from hidldl.recovery.directions import _gradients, telling_directions
from hidldl.recovery.kernelmean import Landmarks
from hidldl.validation import MOST_LEARNABLE

GIVEN = {"nu": 1000.0, "ridge": 1.0, "width": 1.0, "standardize": True, "prior_rows": 1.0, "n_components": 1}
LEARNS = {**GIVEN, "n_landmarks": 200, "learn_distance": True, "hiding": "uniform", "random_state": 0}


@pytest.fixture(name="table", scope="module")
def table_of_which_two_features_of_twenty_tell():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20))
    told = np.stack([np.sin(2 * X[:, 0]), np.cos(2 * X[:, 1]), X[:, 0] * X[:, 1]], axis=1)
    D = softmax(told @ rng.normal(size=(3, 5)) + 0.1 * rng.normal(size=(300, 5)), axis=1)
    return X, D, *hide_labels(D, 0.4, random_state=0)


def test_gradients_are_those_of_finite_differences():
    rng = np.random.default_rng(0)
    landmarks = Landmarks.choose(rng.normal(size=(12, 3)), 12, True, rng)
    weights, rows, step = rng.normal(size=(12, 2)), rng.normal(size=(4, 3)), 1e-6

    def function(rows):
        return np.exp(-landmarks.squared_distances_of(rows) / 2.0) @ weights

    differences = [(function(rows + step * e) - function(rows - step * e)) / (2 * step) for e in np.eye(3)]
    gradients = _gradients(landmarks, 2.0, weights, rows).reshape(2, 4, 3)
    # They are up to a common factor, which is this:
    expected = -2 / (2.0 * landmarks.typical) * gradients
    assert np.allclose(np.stack(differences, axis=2).transpose(1, 0, 2), expected, atol=1e-6)


def test_features_that_tell_nothing_get_no_part_of_the_directions():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    landmarks = Landmarks.choose(X, 100, True, rng)
    closeness = np.exp(-landmarks.squared_distances(X))
    told = np.stack([np.sin(X[:, 0]), -np.sin(X[:, 0])], axis=1)
    weights = np.linalg.lstsq(closeness, told, rcond=1e-3)[0]
    directions = telling_directions(landmarks, 1.0, weights, X)
    lengths = (directions**2).sum(axis=1)
    assert lengths[0] > 0.8 * lengths.sum()


def test_directions_count_as_often_as_the_plain_distances_whatever_the_units():
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(200, 4)), rng.normal(size=(50, 3))
    for factor in (1e-9, 1.0, 1e9):
        landmarks = Landmarks.choose(factor * X, 50, False, np.random.default_rng(1))
        directions = telling_directions(landmarks, 1.0, weights, factor * X)
        rows = landmarks.scaled(factor * X)
        assert (rows @ directions).var(axis=0).sum() == pytest.approx(3 * rows.var(axis=0).sum(), rel=1e-6)


@pytest.mark.parametrize("X", [np.ones((30, 4)), np.zeros((30, 4))])
def test_a_function_that_does_not_change_has_no_directions(X):
    landmarks = Landmarks.choose(X, 10, True, np.random.default_rng(0))
    assert telling_directions(landmarks, 1.0, np.ones((10, 3)), X).shape == (4, 0)
    varies = Landmarks.choose(np.arange(30.0)[:, None] * np.ones(4), 10, True, np.random.default_rng(0))
    assert telling_directions(varies, 1.0, np.zeros((10, 3)), X).shape == (4, 0)


def test_learned_distances_find_the_features_that_tell(table):
    X, D, D_obs, observed = table
    plain, learned = (
        BayesHidLDL(**{**LEARNS, "learn_distance": learn}).fit(X, D_obs, observed).distributions_
        for learn in (False, True)
    )
    assert score(D, learned)["chebyshev"] < 0.9 * score(D, plain)["chebyshev"]


def test_the_search_learns_distances_where_that_helps(table):
    X, _, D_obs, observed = table
    searched = {"nu": 1000.0, "width": 1.0, "standardize": True, "prior_rows": 1.0, "n_components": 1}
    model = BayesHidLDL(**searched, random_state=0).fit(X, D_obs, observed)
    assert model.parameters_["learn_distance"]
    noise = np.random.default_rng(1).normal(size=X.shape)
    assert not BayesHidLDL(**searched, random_state=0).fit(noise, D_obs, observed).parameters_["learn_distance"]


def test_the_chosen_parameters_give_the_same_rows(table):
    X, _, D_obs, observed = table
    model = BayesHidLDL(nu=1000.0, width=1.0, prior_rows=1.0, n_components=1, random_state=0).fit(X, D_obs, observed)
    assert model.parameters_["learn_distance"]
    again = BayesHidLDL(**model.parameters_, random_state=0).fit(X, D_obs, observed)
    assert again.parameters_ == model.parameters_
    assert np.allclose(again.distributions_, model.distributions_, atol=0.02)


@pytest.mark.parametrize("suffix", [".npz", ".json"])
def test_a_saved_model_predicts_with_learned_distances(table, tmp_path, suffix):
    X, _, D_obs, observed = table
    model = BayesHidLDL(**LEARNS).fit(X, D_obs, observed)
    save_model(tmp_path / f"model{suffix}", model)
    assert np.array_equal(load_model(tmp_path / f"model{suffix}")[0].predict(X), model.predict(X))


def test_threads_change_nothing_and_intervals_hold_what_they_say(table):
    X, D, D_obs, observed = table
    model, with_threads = (BayesHidLDL(**LEARNS, n_jobs=n_jobs).fit(X, D_obs, observed) for n_jobs in (1, 2))
    assert np.array_equal(model.distributions_, with_threads.distributions_)
    low, high, *_ = model.intervals(0.9)
    assert 0.8 < ((low <= D) & (high >= D))[~observed].mean() < 0.97


def test_zeros_that_nobody_knows_are_told_apart_with_learned_distances(table):
    X, _, D_obs, _ = table
    model = BayesHidLDL(**LEARNS, zeros="unknown").fit(X[:150], D_obs[:150])
    assert model.parameters_["learn_distance"]
    assert np.allclose(model.distributions_.sum(axis=1), 1)


def test_features_that_say_nothing_leave_distances_as_they_are(table):
    _, _, D_obs, observed = table
    for X in (np.ones((300, 3)), np.random.default_rng(0).integers(2, size=(300, 2)) * 1e-9):
        assert np.isfinite(BayesHidLDL(**LEARNS).fit(X, D_obs, observed).distributions_).all()


def test_sparse_features_have_the_same_directions(table):
    X, _, D_obs, observed = table
    X = X * (np.random.default_rng(0).random(X.shape) < 0.5)
    dense, thin = (BayesHidLDL(**LEARNS).fit(each, D_obs, observed).distributions_ for each in (X, sparse.csr_array(X)))
    assert np.allclose(dense, thin, atol=1e-6)


def test_too_many_features_are_refused_if_distances_are_to_be_learned(table):
    _, _, D_obs, observed = table
    X = sparse.csr_array((np.ones(300), (np.arange(300), np.arange(300))), shape=(300, MOST_LEARNABLE + 1))
    with pytest.raises(ValueError, match="learn_distance=True needs at most 10,000 features, X has 10,001"):
        BayesHidLDL(**LEARNS).fit(X, D_obs, observed)
    model = BayesHidLDL(**{**LEARNS, "learn_distance": "auto"}).fit(X, D_obs, observed)
    assert not model.parameters_["learn_distance"]


def test_enormous_features_stay_finite(table):
    X, _, D_obs, observed = table
    for factor in (1e-200, np.geomspace(1e-140, 1e140, 20)):
        assert np.isfinite(BayesHidLDL(**LEARNS).fit(factor * X, D_obs, observed).distributions_).all()
