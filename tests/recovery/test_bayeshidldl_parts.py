"""Kinds of rows, hiding by share, votes and estimates of ``BayesHidLDL``, from its own door."""

import warnings

import numpy as np
import pytest
from scipy.special import softmax

from hidldl import BayesHidLDL, MeanFill, SelfTuned, hide_labels, load_model, make_distributions, save_model, score
from hidldl.selection import renormalised

GIVEN = {"nu": 300.0, "ridge": 3.0, "width": 1.0, "standardize": True, "prior_rows": 1.0, "ordered": False}
ESTIMATES = ("mean", "relative", "chebyshev", "clark", "canberra")


def bayes(**parameters):
    return BayesHidLDL(**{**GIVEN, "n_components": 1, "hiding": "uniform", "random_state": 0, **parameters})


@pytest.fixture(scope="module")
def problem():
    """Rows of two kinds whose small shares are overlooked more often."""
    rng = np.random.default_rng(0)
    X, kind = rng.normal(size=(200, 2)), rng.integers(2, size=200)
    offsets = np.array([[1.2, -1.2, 0.8, -0.8, 0.0], [-1.2, 1.2, -0.8, 0.8, 0.0]])
    z = 0.5 * X @ rng.normal(size=(2, 5)) + offsets[kind] + 0.4 * rng.standard_normal((200, 5))
    D = softmax(z, axis=1)
    return X, D, *hide_labels(D, 0.4, random_state=0, mechanism="degree", slope=1.5)


@pytest.fixture(scope="module")
def coarse():
    """Shares of eight votes, of which many are 0."""
    data = make_distributions(n_rows=250, n_features=3, n_labels=5, random_state=0)
    D = np.random.default_rng(0).multinomial(8, softmax(3 * np.log(data.distributions), axis=1)) / 8
    return data.features, D, *hide_labels(D, 0.5, random_state=0)


@pytest.fixture(scope="module")
def several(problem):
    X, _, D_obs, observed = problem
    return bayes(n_components=2, hiding="degree").fit(X, D_obs, observed)


def test_the_number_of_threads_does_not_matter(problem, several):
    X, _, D_obs, observed = problem
    threaded = bayes(n_components=2, hiding="degree", n_jobs=2).fit(X, D_obs, observed)
    assert np.array_equal(threaded.distributions_, several.distributions_)
    assert np.array_equal(threaded.kinds_, several.kinds_)
    assert threaded.hiding_slope_ == several.hiding_slope_
    assert np.array_equal(threaded.sample(3, random_state=1), several.sample(3, random_state=1))
    assert np.array_equal(threaded.intervals(n_draws=50).low, several.intervals(n_draws=50).low)
    votes = np.arange(1, 201)
    assert np.array_equal(
        threaded.predict(X, D_obs, observed, votes=votes), several.predict(X, D_obs, observed, votes=votes)
    )


@pytest.mark.parametrize("name", ["m.npz", "m.json"])
def test_a_saved_model_keeps_kinds_and_curve(problem, several, tmp_path, name):
    X, _, D_obs, observed = problem
    save_model(tmp_path / name, several)
    again, _ = load_model(tmp_path / name)
    assert np.array_equal(again.predict(X), several.predict(X))
    assert np.array_equal(again.predict(X, D_obs, observed), several.predict(X, D_obs, observed))
    assert again.hiding_slope_ == several.hiding_slope_ > 0.3
    assert again.hiding_slope_error_ == several.hiding_slope_error_
    new = {"X": X[:20], "D_obs": D_obs[:20], "observed": observed[:20]}
    assert np.array_equal(again.intervals(n_draws=50, **new).high, several.intervals(n_draws=50, **new).high)
    assert np.array_equal(again.sample(2, random_state=0, **new), several.sample(2, random_state=0, **new))


def test_a_saved_model_remembers_how_many_votes_are_usual(coarse, tmp_path):
    X, _, D_obs, observed = coarse
    votes = np.random.default_rng(0).integers(5, 50, 250)
    model = bayes(nu=16.0).fit(X, D_obs, observed, votes=votes)
    save_model(tmp_path / "m.npz", model)
    again, _ = load_model(tmp_path / "m.npz")
    assert np.array_equal(
        again.predict(X, D_obs, observed, votes=votes), model.predict(X, D_obs, observed, votes=votes)
    )
    assert not np.allclose(again.predict(X, D_obs, observed, votes=9 * votes), model.predict(X, D_obs, observed))


@pytest.mark.parametrize("hiding", ["uniform", "degree"])
@pytest.mark.parametrize("estimate", ESTIMATES)
def test_every_estimate_is_a_distribution_that_keeps_what_was_observed(coarse, problem, estimate, hiding):
    for table in (coarse, problem):
        X, _, D_obs, observed = (part[:60] for part in table)
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            model = bayes(nu=30.0, n_components=2, hiding=hiding, estimate=estimate, n_draws=32)
            model.fit(X, D_obs, observed)
            predicted = model.predict(X, D_obs, observed)
        for D in (model.distributions_, predicted):
            assert (D >= 0).all()
            assert np.allclose(D.sum(axis=1), 1, rtol=0, atol=1e-9)
            assert np.allclose(renormalised(D, observed), D_obs, rtol=0, atol=1e-9)
        alone = model.predict(X)
        assert (alone >= 0).all()
        assert np.allclose(alone.sum(axis=1), 1, rtol=0, atol=1e-9)


@pytest.mark.parametrize("measure", ["chebyshev", "clark", "canberra"])
def test_asking_for_a_measure_is_no_worse_in_it_than_the_mean(coarse, measure):
    X, D, D_obs, observed = coarse
    mean, best = (bayes(nu=16.0, estimate=name).fit(X, D_obs, observed).distributions_ for name in ("mean", measure))
    assert score(D, best)[measure] < (1.005 if measure == "chebyshev" else 0.97) * score(D, mean)[measure]


def test_kinds_are_probabilities(several, problem):
    assert several.kinds_.shape == (200, 2)
    assert np.allclose(several.kinds_.sum(axis=1), 1)
    X, _, D_obs, observed = problem
    one = bayes().fit(X, D_obs, observed)
    assert (one.kinds_ == 1).all()
    assert one.describe_kinds("abcde") == []


def test_new_rows_are_of_the_kind_that_they_were_in_the_fit(several, problem):
    X, _, D_obs, observed = problem
    kinds = several.predict_kinds(X, D_obs, observed)
    assert kinds.shape == (200, 2)
    assert (kinds.argmax(axis=1) == several.kinds_.argmax(axis=1)).mean() > 0.95
    assert np.allclose(several.predict_kinds(X).sum(axis=1), 1)
    assert (MeanFill().fit(X, D_obs, observed).predict_kinds(X, D_obs, observed) == 1).all()
    assert len(several.describe_kinds("abcde")) == 2


def test_a_history_of_several_fits_has_one_entry_for_each_round(several):
    assert len(several.history_["evidence"]) == len(several.history_["change"]) == several.n_iter_


def test_intervals_hold_what_they_promise_where_small_shares_are_hidden(problem):
    X, D, D_obs, observed = problem
    alike, found = (bayes(hiding=hiding).fit(X, D_obs, observed) for hiding in ("uniform", "degree"))
    held = []
    for model in (alike, found):
        low, high, mass_low, mass_high = model.intervals(0.9, n_draws=200)
        mass = np.where(observed, 0, D).sum(axis=1)
        of_mass = ((mass_low <= mass) & (mass <= mass_high))[~observed.all(axis=1)]
        held.append((((low <= D) & (high >= D))[~observed].mean(), of_mass.mean()))
    assert 0.87 < held[1][0] < 0.97
    assert held[1][1] > 0.85
    assert held[0][0] < held[1][0] - 0.05


class TestVotes:
    def test_equal_votes_change_nothing(self, problem):
        X, _, D_obs, observed = problem
        votes = np.full(len(X), 8)
        plain, voted = bayes(nu=16.0).fit(X, D_obs, observed), bayes(nu=16.0)
        voted.fit(X, D_obs, observed, votes=votes)
        assert np.array_equal(voted.distributions_, plain.distributions_)
        assert np.array_equal(voted.predict(X, D_obs, observed, votes=votes), plain.predict(X, D_obs, observed))
        assert np.array_equal(
            voted.sample(2, 0, X=X, D_obs=D_obs, observed=observed, votes=votes),
            plain.sample(2, 0, X=X, D_obs=D_obs, observed=observed),
        )

    def test_votes_that_are_given_are_not_counted_again(self, coarse):
        X, _, D_obs, observed = coarse
        counted, given = bayes(nu=16.0).fit(X, D_obs, observed), bayes(nu=16.0)
        given.fit(X, D_obs, observed, votes=np.full(250, 8))
        assert (counted.distributions_[~observed] == 0).any()
        assert (given.distributions_[~observed] > 0).all()

    def test_only_proportions_of_votes_count(self, coarse):
        X, _, D_obs, observed = coarse
        votes = np.random.default_rng(0).integers(2, 30, 250)
        once, thrice = (bayes(nu=16.0).fit(X, D_obs, observed, votes=k * votes).distributions_ for k in (1, 4))
        assert np.allclose(once, thrice, rtol=0, atol=1e-12)

    def test_rows_of_many_votes_are_followed_more_closely(self, problem):
        X, _, D_obs, observed = problem
        model = bayes(nu=8.0).fit(X, D_obs, observed, votes=np.full(200, 8))
        alone = model.predict(X)
        few, usual, many = (
            model.predict(X, D_obs, observed, votes=np.full(200, votes)) for votes in (0.08, 8.0, 800.0)
        )
        # With hardly any votes a row's hidden part is what its features say.
        parted = (~observed).sum(axis=1) > 1
        expected, *shapes = (renormalised(D, ~observed)[parted] for D in (alone, few, usual, many))
        distances = [np.abs(shape - expected).sum(axis=1).mean() for shape in shapes]
        assert distances[0] < 0.1 * distances[1]
        assert distances[1] < 0.8 * distances[2]
        new = {"X": X, "D_obs": D_obs, "observed": observed}
        unsure, sure = (model.intervals(0.9, 100, **new, votes=np.full(200, votes)) for votes in (0.8, 80.0))
        widths = [(side.high - side.low)[~observed].mean() for side in (unsure, sure)]
        assert widths[0] > 1.1 * widths[1]

    def test_votes_improve_the_recovery_of_unequal_rows(self):
        # Half of the rows have three votes, the others three hundred.
        rng = np.random.default_rng(0)
        X = rng.normal(size=(400, 2))
        expected = softmax(X @ rng.normal(size=(2, 5)) + rng.normal(size=(400, 2)) @ rng.normal(size=(2, 5)), axis=1)
        votes = np.where(rng.random(400) < 0.5, 3, 300)
        D = rng.multinomial(votes, expected) / votes[:, None]
        D_obs, observed = hide_labels(D, 0.4, random_state=0)
        plain = [bayes(nu=nu).fit(X, D_obs, observed) for nu in (3.0, 10.0, 30.0, 100.0)]
        voted = bayes(nu=100.0).fit(X, D_obs, observed, votes=votes)
        best = min(score(expected, model.distributions_)["chebyshev"] for model in plain)
        assert score(expected, voted.distributions_)["chebyshev"] < best

    def test_a_row_without_votes_is_hardly_believed(self, coarse):
        X, _, D_obs, observed = coarse
        votes = np.full(250, 8.0)
        votes[:5] = 0
        model = bayes(nu=16.0).fit(X, D_obs, observed, votes=votes)
        assert np.isfinite(model.distributions_).all()
        assert all(np.isfinite(side).all() for side in model.intervals(n_draws=20))

    def test_a_method_that_tunes_it_fits_it_without_votes(self, coarse):
        X, _, D_obs, observed = (part[:60] for part in coarse)
        tuned = SelfTuned(bayes(), grid={"nu": [4.0, 64.0]}, n_draws=1, random_state=0).fit(X, D_obs, observed)
        assert tuned.parameters_["nu"] in (4.0, 64.0)
