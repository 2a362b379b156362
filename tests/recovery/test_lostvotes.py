"""Votes that rows lost with the labels that were overlooked: what shares tell of them, and what they then tell."""

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import binom

from hidldl import BayesHidLDL, hide_labels, load_model, save_model, score
from hidldl.recovery.lostvotes import (
    MOST_VOTES,
    Votes,
    VoteSums,
    are_votes,
    chances_of_votes,
    possible_votes,
    shares_of_votes,
)

KNOWN = {"nu": 6.0, "ridge": 1.0, "width": 1.0, "standardize": True, "prior_rows": 1.0, "n_components": 1}


def votes(n_rows=400, n_labels=6, n_votes=10, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 4))
    z = X @ rng.standard_normal((4, n_labels)) + rng.standard_normal((n_rows, n_labels))
    return X, np.array([rng.multinomial(n_votes, p) / n_votes for p in softmax(z, axis=1)])


def with_split_votes(D, n_votes):
    """The same shares, but in every fourth row a vote is split in three between two labels."""
    D = D.copy()
    at = np.arange(0, len(D), 4)
    most, least = D[at].argmax(axis=1), D[at].argmin(axis=1)
    D[at, most] -= 2 / (3 * n_votes)
    D[at, least] += 2 / (3 * n_votes)
    return D


def test_shares_of_votes_are_told_from_others(table):
    _, D, D_obs, _ = table
    rng = np.random.default_rng(0)
    several = rng.multinomial(rng.integers(5, 30, len(D)), np.full(6, 1 / 6)).astype(float)
    assert are_votes(D_obs) and are_votes(several / several.sum(axis=1, keepdims=True))
    smooth = rng.dirichlet(np.ones(6), len(D))
    assert not are_votes(smooth)
    assert not are_votes(hide_labels(smooth, 0.5, random_state=0)[0])


@pytest.fixture(scope="module")
def table():
    X, D = votes()
    return X, D, *hide_labels(D, 0.4, random_state=0)


@pytest.fixture(scope="module")
def unaware(table):
    X, _, D_obs, _ = table
    return BayesHidLDL(zeros="unknown", random_state=0, **KNOWN).fit(X, D_obs)


class TestVotesOfShares:
    def test_thirds_are_of_a_multiple_of_three_votes(self):
        possible = possible_votes(np.array([[1 / 3, 2 / 3, 0], [0.3333, 0.6667, 0], [0.1, 0.9, 0], [1, 0, 0]]), 10)
        for thirds in possible[:2]:
            assert list(np.flatnonzero(thirds) + 1) == [3, 6, 9]
        assert list(np.flatnonzero(possible[2]) + 1) == [10]
        assert possible[3].all()

    def test_shares_of_no_votes_may_have_any(self):
        assert possible_votes(np.array([[0.123456, 0.876544]]), 10).all()

    @pytest.mark.parametrize("n_votes", [5, 10, 30])
    @pytest.mark.parametrize("rate", [0, 0.5, 0.7])
    def test_their_number_is_that_of_complete_rows(self, n_votes, rate):
        _, D = votes(1500, n_votes=n_votes)
        D_obs, observed = hide_labels(D, rate, random_state=0)
        assert Votes.of(D_obs) == Votes(n_votes)
        left = np.rint((D * observed).sum(axis=1) * n_votes).astype(int)
        assert possible_votes(D_obs, n_votes)[np.arange(len(D)), left - 1].all()

    def test_other_shares_are_no_votes(self):
        rng = np.random.default_rng(0)
        for smooth in (rng.dirichlet(np.ones(4), 500), rng.dirichlet(np.ones(12), 500)):
            assert Votes.of(smooth) is None
            assert Votes.of(hide_labels(smooth, 0.5, random_state=0)[0]) is None
        assert Votes.of(np.eye(4)[rng.integers(4, size=500)]) is None
        assert Votes.of(votes(n_votes=2 * MOST_VOTES)[1]) is None
        assert Votes.of(np.zeros((100, 3))) is None

    @pytest.mark.parametrize("rate", [0, 0.3, 0.5])
    def test_votes_may_be_split_in_some_rows(self, rate):
        _, D = votes(1500, n_votes=20)
        found = Votes.of(hide_labels(with_split_votes(D, 20), rate, random_state=0)[0])
        assert found.number == 20
        assert found.independent < 1
        assert 0 < found.doubt < 0.02
        assert np.array_equal(np.unique(found.weights(D)), [found.doubt, 1])


class TestChances:
    def test_are_binomial(self):
        rng = np.random.default_rng(0)
        D, observed = rng.dirichlet(np.ones(4), (5, 3)).transpose(0, 2, 1), rng.random((5, 4)) < 0.6
        chances = chances_of_votes(D, observed, 7)
        mass = np.where(observed[:, :, None], D, 0).sum(axis=1)
        for left in range(1, 8):
            assert chances[:, left - 1] == pytest.approx(binom.pmf(left, 7, mass))

    def test_a_label_without_others_that_lost_votes_was_overlooked(self):
        D = np.array([0.5, 0.3, 0.2])[None, :, None]
        for left, expected in ((6, 1.0), (10, 0.25)):
            sums = VoteSums(np.arange(1, 11)[None] == left, np.full(3, 0.25))
            sums.add(D, np.array([[True, True, False]]), np.ones((1, 1)))
            means = sums.means()
            assert means.overlooked[0, 2] == pytest.approx(expected, abs=1e-6)
            assert means.took_votes[0, 2] == pytest.approx(0 if left == 10 else 1, abs=1e-6)
            assert means.left[0] == pytest.approx(left)

    def test_a_model_must_predict_them_better_than_their_frequencies(self):
        rng = np.random.default_rng(0)
        left = rng.integers(6, 11, 300)
        possible = left[:, None] == np.arange(1, 11)
        good = binom.pmf(np.arange(1, 11), 10, left[:, None] / 10)
        shares = np.array([np.array([1, n - 1]) / n for n in left])
        assert (possible_votes(shares, 10) >= possible).all()
        assert Votes(10).are_predicted(good, shares)
        assert not Votes(10).are_predicted(good[rng.permutation(300)], shares)
        assert not Votes(10).are_predicted(good[:20], shares[:20])
        too_few = good / 3.0 ** np.arange(10)
        assert Votes(10).are_predicted(too_few, shares)
        assert not Votes(10).are_predicted(too_few[rng.permutation(300)], shares)

    def test_some_rows_may_only_seem_to_have_votes(self):
        rng = np.random.default_rng(0)
        left = rng.integers(6, 11, 300)
        shares = np.array([np.array([1, n - 1]) / n for n in left])
        predicted = binom.pmf(np.arange(1, 11), 10, left[:, None] / 10)
        predicted[:30] = np.arange(10) == 0
        assert not Votes(10).are_predicted(predicted, shares)
        assert Votes(10, doubt=0.02).are_predicted(predicted, shares)

    def test_votes_that_are_not_independent_tell_less(self):
        D, observed = np.array([0.4, 0.3, 0.2, 0.1])[None, :, None], np.array([[True, True, False, False]])
        overlooked = {}
        for independent in (1.0, 0.5):
            sums = VoteSums(np.arange(1, 11)[None] == 7, np.full(4, 0.25), independent)
            sums.add(D, observed, np.ones((1, 1)))
            overlooked[independent] = sums.means().overlooked[0, 2]
        # Three votes fell on the last two labels: with all of them, the odds of 1/3 grow by (0.3 / 0.1)³.
        assert overlooked[1.0] == pytest.approx(9 / 10)
        assert overlooked[0.5] == pytest.approx(1 / (1 + 3 / 27**0.5))

    @pytest.mark.parametrize("rng", [None, np.random.default_rng(0)])
    def test_lost_votes_are_on_hidden_labels(self, rng):
        expected = np.repeat(np.array([[0.4, 0.2, 0.3, 0.1]]), 2, axis=0)[:, :, None]
        shares, observed = np.array([[0.5, 0.5, 0, 0]] * 2), np.array([[True, True, False, False]] * 2)
        chances = np.zeros((2, 10, 1))
        chances[0, 5], chances[1, 9] = 0.2, 0.1
        D = shares_of_votes(expected, shares, observed, chances, rng)[:, :, 0]
        assert D.sum(axis=1) == pytest.approx([1, 1])
        assert D[0, :2] == pytest.approx([0.3, 0.3])
        assert D[0, 2:].sum() == pytest.approx(0.4)
        assert D[1] == pytest.approx([0.5, 0.5, 0, 0])


class TestTable:
    def test_rows_with_all_votes_lose_nothing_and_others_what_they_lost(self, table, unaware):
        _, _, D_obs, _ = table
        assert unaware._model.estimates.votes == Votes(10)
        possible = possible_votes(D_obs, 10)
        is_sure = possible.sum(axis=1) == 1
        lost = 1 - (possible[is_sure].argmax(axis=1) + 1) / 10
        assert unaware.hidden_mass_[is_sure] == pytest.approx(lost, abs=1e-9)
        assert unaware.distributions_[is_sure][lost == 0] == pytest.approx(D_obs[is_sure][lost == 0], abs=1e-9)

    def test_votes_bring_rows_nearer_to_the_truth(self, table, unaware):
        X, D, D_obs, observed = table
        uneven = np.where(np.arange(len(X)) < 10, 1.01, 1)  # votes that are given are not counted
        without = BayesHidLDL(zeros="unknown", random_state=0, **KNOWN).fit(X, D_obs, votes=uneven)
        assert without._model.estimates.votes is None
        errors = [score(D, model.distributions_)["chebyshev"] for model in (unaware, without)]
        assert errors[0] < 0.97 * errors[1]
        unknown = D_obs == 0
        brier = [
            np.mean((model.hidden_probability_ - ~observed)[unknown & (D > 0)] ** 2) for model in (unaware, without)
        ]
        assert brier[0] < brier[1]

    def test_draws_and_bounds_are_of_votes(self, table, unaware):
        _, _, D_obs, _ = table
        tables = unaware.sample(5, random_state=0)
        assert tables.min() >= 0
        assert np.abs(tables.sum(axis=2) - 1).max() < 1e-12
        is_sure = possible_votes(D_obs, 10).sum(axis=1) == 1
        assert np.abs(10 * tables[:, is_sure] - np.rint(10 * tables[:, is_sure])).max() < 1e-6
        low, high, *_ = unaware.intervals(0.9)
        assert (low <= high).all()

    def test_new_rows_and_saved_models_have_them_too(self, table, unaware, tmp_path):
        X, _, D_obs, _ = table
        save_model(tmp_path / "model.npz", unaware)
        loaded, *_ = load_model(tmp_path / "model.npz")
        expected = unaware.predict(X[:50], D_obs[:50])
        assert (loaded.predict(X[:50], D_obs[:50]) == expected).all()
        assert np.abs(expected - unaware.distributions_[:50]).mean() < 0.02

    @pytest.mark.parametrize("max_iter", [1, 200])
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_rows_with_different_numbers_of_votes_lose_none(self, max_iter):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((400, 3))
        p = softmax(0.7 * X @ rng.standard_normal((3, 5)), axis=1)
        D = np.array([rng.multinomial(n, row) / n for n, row in zip(rng.integers(8, 13, 400), p, strict=True)])
        assert Votes.of(D) == Votes(12)
        model = BayesHidLDL(zeros="unknown", random_state=0, max_iter=max_iter, **KNOWN).fit(X, D)
        assert model._model.estimates.votes is None
        assert score(D, model.distributions_)["chebyshev"] < 0.02
        assert model.converged_ == (max_iter > 1)


class TestTableWithMask:
    """Where the mask is known, votes say how much the hidden labels hold."""

    @pytest.fixture(scope="class")
    @staticmethod
    def aware(table):
        X, _, D_obs, observed = table
        return BayesHidLDL(random_state=0, hiding="uniform", **KNOWN).fit(X, D_obs, observed=observed)

    def test_hidden_labels_hold_the_votes_that_are_missing(self, table, aware):
        _, _, D_obs, observed = table
        assert aware._model.estimates.votes == Votes(10)
        possible = possible_votes(D_obs, 10)
        is_sure = (possible.sum(axis=1) == 1) & ~observed.all(axis=1)
        assert aware.hidden_mass_[is_sure] == pytest.approx(1 - (possible[is_sure].argmax(axis=1) + 1) / 10, abs=1e-9)

    def test_votes_bring_rows_nearer_to_the_truth(self, table, aware):
        X, D, D_obs, observed = table
        uneven = np.where(np.arange(len(X)) < 10, 1.01, 1)
        without = BayesHidLDL(random_state=0, hiding="uniform", **KNOWN).fit(X, D_obs, observed=observed, votes=uneven)
        assert without._model.estimates.votes is None
        errors = [score(D, model.distributions_)["chebyshev"] for model in (aware, without)]
        assert errors[0] < 0.9 * errors[1]

    def test_votes_and_masks_tell_together_what_hidden_labels_hold(self, table):
        X, D, *_ = table
        D_obs, observed = hide_labels(D, 0.5, random_state=0, mechanism="top-k")
        uneven = np.where(np.arange(len(X)) < 10, 1.01, 1)  # votes that are given are not counted
        counted, by_mask = (
            BayesHidLDL(random_state=0, hiding="degree", **KNOWN).fit(X, D_obs, observed=observed, votes=given)
            for given in (None, uneven)
        )
        assert counted.hiding_slope_ > 0.3
        assert counted._model.estimates.votes is not None
        assert by_mask._model.estimates.votes is None
        errors = [score(D, model.distributions_)["chebyshev"] for model in (counted, by_mask)]
        assert errors[0] < 0.9 * errors[1]
        is_sure = (possible_votes(D_obs, 10).sum(axis=1) == 1) & ~observed.all(axis=1)
        lost = 1 - (possible_votes(D_obs, 10)[is_sure].argmax(axis=1) + 1) / 10
        assert counted.hidden_mass_[is_sure] == pytest.approx(lost, abs=1e-9)

    @pytest.mark.usefixtures("full_calibration")
    def test_intervals_hold_shares_that_are_rounded(self, table, aware):
        _, D, _, observed = table
        low, high, mass_low, mass_high = aware.intervals(0.9)
        rounded = np.round(D, 4)
        assert 0.87 < ((low <= rounded) & (rounded <= high))[~observed].mean() <= 1
        mass = np.where(observed, 0, rounded).sum(axis=1)
        assert ((mass_low <= mass) & (mass <= mass_high))[~observed.all(axis=1)].mean() > 0.87
        assert (low >= 0).all() and (high <= 1).all()

    def test_rows_without_labels_lost_all_votes(self, table, aware):
        X, *_ = table
        predicted = aware.predict(X[:20])
        assert np.abs(predicted.sum(axis=1) - 1).max() < 1e-9
        nothing = aware.predict(X[:20], np.zeros((20, 6)), observed=np.zeros((20, 6), bool))
        assert nothing == pytest.approx(predicted, abs=1e-9)

    def test_rows_with_different_numbers_of_votes_lose_none(self, table):
        X, *_ = table
        rng = np.random.default_rng(0)
        p = softmax(0.7 * X @ rng.standard_normal((4, 5)), axis=1)
        D = np.array([rng.multinomial(n, row) / n for n, row in zip(rng.integers(8, 13, len(X)), p, strict=True)])
        D_obs, observed = hide_labels(D, 0.3, random_state=0)
        model = BayesHidLDL(random_state=0, hiding="uniform", **KNOWN).fit(X, D_obs, observed=observed)
        assert model._model.estimates.votes is None


def test_votes_that_are_all_needed():
    shares = np.array([[0.1, 0.9, 0.0], [0.2, 0.8, 0.0], [0.5, 0.3, 0.2], [1, 0, 0]])
    assert Votes(10).are_all_needed(shares).tolist() == [True, False, True, False]


@pytest.mark.parametrize("n_votes", [3, 5, 10])
def test_rows_that_have_all_votes_hide_nothing_though_nothing_says_what_to_expect(n_votes):
    D = np.random.default_rng(0).multinomial(n_votes, [0.4, 0.3, 0.2, 0.1], 300) / n_votes
    search = {**KNOWN, "nu": "auto", "random_state": 0}
    model = BayesHidLDL(zeros="unknown", **search).fit(np.zeros((300, 1)), D)
    assert model.hidden_probability_.max() < 0.1
    assert model.hiding_slope_ == 0
    assert score(D, model.distributions_)["chebyshev"] < 0.01
