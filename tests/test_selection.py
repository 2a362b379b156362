import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hidldl import hide_labels, make_distributions
from hidldl.selection import LOST, Selection, choose, clearly_better, hide_again, judge, play, renormalised


@given(rate=st.floats(0, 0.9), seed=st.integers(0, 10**6), share=st.sampled_from([0.3, 1.0]))
def test_at_most_one_more_label_is_hidden_and_something_positive_stays(rate, seed, share):
    D = make_distributions(n_rows=30, n_labels=4, zeros=0.4, random_state=seed).distributions
    D_obs, observed = hide_labels(D, rate, random_state=seed)
    again = hide_again(D_obs, observed, np.random.default_rng(seed), share)
    lost = observed & ~again
    assert not (again & ~observed).any()
    assert (lost.sum(axis=1) <= 1).all()
    assert ((D_obs * again).sum(axis=1) > 0).all()
    if share == 1:
        alone = observed.sum(axis=1) == 1
        assert not lost[alone].any()
        rich = ((D_obs > 0) & observed).sum(axis=1) >= 2
        assert lost[rich].any(axis=1).all()


@given(seed=st.integers(0, 10**6))
def test_several_labels_are_hidden_again_where_something_positive_stays(seed):
    D = make_distributions(n_rows=30, n_labels=6, zeros=0.4, random_state=seed).distributions
    D_obs, observed = hide_labels(D, 0.3, random_state=seed)
    n_lost = np.random.default_rng(seed).integers(1, 4, size=30)
    again = hide_again(D_obs, observed, np.random.default_rng(seed), n_lost=n_lost)
    lost = (observed & ~again).sum(axis=1)
    assert not (again & ~observed).any()
    assert ((lost == n_lost) | (lost == 0)).all()
    assert ((D_obs * again).sum(axis=1) > 0).all()
    sure_to_play = ((D_obs > 0) & observed).sum(axis=1) > n_lost
    assert (lost[sure_to_play] > 0).all()


def test_labels_are_hidden_again_in_proportion_to_their_odds():
    shares = np.full((20_000, 4), 0.25)
    odds = np.array([0.5, 1.0, 2.5, 40.0])
    observed = np.array([[True, True, True, False]] * 20_000)
    lost = observed & ~hide_again(shares, observed, np.random.default_rng(0), odds=np.tile(odds, (20_000, 1)))
    counts, expected = lost.sum(axis=0)[:3], 20_000 * odds[:3] / odds[:3].sum()
    assert lost.sum() == counts.sum() == 20_000
    # Chi-squared with two degrees of freedom is above this once in a thousand draws.
    assert ((counts - expected) ** 2 / expected).sum() < 13.8
    alike = observed & ~hide_again(shares, observed, np.random.default_rng(0))
    assert ((alike.sum(axis=0)[:3] - 20_000 / 3) ** 2 / (20_000 / 3)).sum() < 13.8


def test_odds_that_are_equal_change_nothing():
    D = make_distributions(n_rows=200, n_labels=5, zeros=0.3, random_state=0).distributions
    D_obs, observed = hide_labels(D, 0.4, random_state=0)
    plain, equal = (hide_again(D_obs, observed, np.random.default_rng(3), odds=odds) for odds in (1.0, np.full(5, 7.0)))
    assert np.array_equal(plain, equal)


def test_a_candidate_that_must_prove_more_needs_more_evidence():
    noise = np.random.default_rng(0).normal(size=200)
    noise -= noise.mean()
    better = noise - 0.9 * noise.std(ddof=1) / np.sqrt(200)
    assert clearly_better(better, np.zeros(200))
    assert clearly_better(better, np.zeros(200), 0.8)
    assert not clearly_better(better, np.zeros(200), 1.0)


def test_hiding_again_is_what_an_annotator_who_saw_less_would_hand_in():
    D = make_distributions(n_rows=20, n_labels=4, random_state=0).distributions
    D_obs, observed = hide_labels(D, 0.3, random_state=0)
    again = hide_again(D_obs, observed, np.random.default_rng(0))
    assert np.allclose(renormalised(D_obs, again), renormalised(D, again))


@pytest.mark.parametrize("measure", ["kl", "chebyshev", "cosine"])
def test_the_truth_loses_nothing_more_than_anything_else(measure):
    D = make_distributions(n_rows=20, n_labels=4, random_state=0).distributions
    D_obs, observed = hide_labels(D, 0.3, random_state=0)
    truth = judge(D, D_obs, observed, measure)
    assert np.allclose(truth, -1 if measure == "cosine" else 0, atol=1e-5)
    assert (judge(np.full_like(D, 0.25), D_obs, observed, measure) >= truth - 1e-9).all()


def test_the_game_prefers_the_candidate_that_knows_the_truth():
    D = make_distributions(n_rows=50, n_labels=4, random_state=0).distributions
    D_obs, observed = hide_labels(D, 0.5, random_state=0)

    def recover(candidate, shares, mask):
        assert np.allclose(shares.sum(axis=1), 1)
        assert (shares[~mask] == 0).all()
        return (1 - candidate["error"]) * D + candidate["error"] / 4

    candidates = [{"error": error} for error in (0.5, 0.0, 0.2)]
    losses = play(recover, candidates, D_obs, observed, measure="kl", n_draws=3, rng=np.random.default_rng(0))
    assert choose(losses) == 1
    selection = Selection.of(candidates, losses, 1, "kl", np.random.default_rng(0))
    assert selection.chosen == {"error": 0.0}
    assert selection.confidence == 1
    assert list(selection.candidates["error"]) == [0.0, 0.2, 0.5]
    assert selection.n_rows == losses.shape[1] <= 50


def test_a_candidate_that_diverges_loses_even_against_a_bad_one():
    # Rows near the uniform one, so that the bad candidate is worse than a uniform answer would be.
    D = np.random.default_rng(0).dirichlet(np.full(4, 50.0), 60)
    D_obs, observed = hide_labels(D, 0.2, random_state=0)
    answers = {"diverged": np.nan, "bad": np.tile([0.97, 0.01, 0.01, 0.01], (60, 1))}
    losses = play(
        lambda candidate, shares, mask: np.broadcast_to(answers[candidate["answer"]], shares.shape),
        [{"answer": "diverged"}, {"answer": "bad"}],
        D_obs.astype(np.float32),
        observed,
        measure="kl",
        n_draws=2,
        rng=np.random.default_rng(0),
    )
    assert np.isfinite(losses).all()
    assert choose(losses) == 1
    assert choose(losses, safe=0) == 1


def test_the_safe_choice_stays_where_evidence_is_thin():
    rng = np.random.default_rng(0)
    noise = rng.normal(size=200)
    losses = np.array([np.zeros(200), noise - noise.mean() - 0.2 / np.sqrt(200), noise - noise.mean() - 0.2])
    assert not clearly_better(losses[1], losses[0])
    assert clearly_better(losses[2], losses[0])
    assert choose(losses[:2], safe=0) == 0
    assert choose(losses[:2]) == 1
    assert choose(losses, safe=0) == 2


def test_confidence_tells_a_clear_winner_from_a_coin_toss():
    rng = np.random.default_rng(0)
    toss = rng.normal(size=(2, 300))
    clear = np.array([np.zeros(300), np.ones(300)])
    candidates = [{"a": 0}, {"a": 1}]
    unsure = Selection.of(candidates, toss - toss.mean(axis=1, keepdims=True), 0, "kl", rng)
    sure = Selection.of(candidates, clear, 0, "kl", rng)
    assert 0.3 < unsure.confidence < 0.7
    assert sure.confidence == 1


def test_confidence_counts_ties_as_wins_and_many_rows_in_groups():
    rng = np.random.default_rng(0)
    same = np.tile(rng.normal(size=20_000), (3, 1))
    assert Selection.of([{"a": k} for k in range(3)], same, 2, "kl", rng).confidence == 1
    toss = rng.normal(size=(2, 20_000))
    unsure = Selection.of([{"a": 0}, {"a": 1}], toss - toss.mean(axis=1, keepdims=True), 0, "kl", rng)
    assert 0.3 < unsure.confidence < 0.7


def selection_of(candidates, losses, chosen):
    """A selection from one mean loss per candidate, the same in each of 20 rows."""
    return Selection.of(
        candidates, np.tile(np.array(losses, float)[:, None], 20), chosen, "kl", np.random.default_rng(0)
    )


class TestPath:
    def test_it_holds_the_candidates_that_differ_from_the_choice_in_one_parameter(self):
        candidates = [{"alpha": alpha, "scale": scale} for alpha in (16.0, 1.0, 4.0) for scale in (False, True)]
        selection = selection_of(candidates, [5, 1, 4, 0.5, 3, 2], chosen=1)
        assert selection.parameters == ["alpha", "scale"]
        path = selection.path("alpha")
        assert path["alpha"].tolist() == [1, 4, 16]
        assert path["loss"].tolist() == [0.5, 2, 1]
        assert path["excess"].tolist() == [-0.5, 1, 0]
        assert path["chosen"].tolist() == [False, False, True]
        assert selection.path("scale")["scale"].tolist() == [False, True]
        assert selection.path("scale")["chosen"].tolist() == [False, True]

    @pytest.mark.parametrize(
        "in_order",
        [
            [2, 10],
            [5, 10, None],
            [0.5, 10.0, None],
            ["auto", "kernel", None],
            [False, True],
            [0.5, 1, False, True, "auto", None],
        ],
        ids=repr,
    )
    def test_values_of_any_kind_have_an_order_and_a_choice(self, in_order):
        for chosen, value in enumerate(in_order):
            candidates = [{"k": k, "other": other} for other in (None, 3) for k in in_order]
            selection = selection_of(candidates[::-1], range(len(candidates)), len(candidates) - 1 - chosen)
            assert selection.chosen == {"k": value, "other": None}
            path = selection.path("k")
            assert [(type(k), k) for k in path["k"]] == [(type(k), k) for k in in_order]
            assert path["chosen"].tolist() == [i == chosen for i in range(len(in_order))]
            assert selection.values("k") == in_order
            assert selection.is_numeric("k") == (in_order == [2, 10])
            assert selection.candidates[selection.is_choice]["excess"].tolist() == [0]

    def test_a_table_of_numbers_may_have_nan_for_none(self):
        table = pd.DataFrame({"k": [5.0, np.nan], "loss": [0.1, 0.2], "excess": [0.0, 0.1], "standard_error": 0.1})
        selection = Selection("kl", table, {"k": None}, 1.0, 20)
        assert selection.path("k")["chosen"].tolist() == [False, True]
        assert selection.is_choice.tolist() == [False, True]

    def test_a_value_that_was_tried_twice_is_there_once(self):
        selection = selection_of([{"alpha": 1.0}, {"alpha": 2.0}, {"alpha": 1}], [1, 2, 1], 0)
        assert selection.path("alpha")["alpha"].tolist() == [1, 2]

    def test_candidates_that_diverged_are_left_out(self):
        selection = selection_of([{"alpha": 1.0}, {"alpha": 2.0}, {"alpha": 4.0}], [0.1, 0.2, LOST], 0)
        assert selection.path("alpha")["alpha"].tolist() == [1, 2]

    def test_where_all_diverged_nothing_is_left(self):
        selection = selection_of([{"alpha": 1.0}, {"alpha": 2.0}], [LOST, LOST], 0)
        assert selection.path("alpha").empty
        assert selection.is_choice.tolist() == [True, False]


def test_one_row_that_diverged_in_one_draw_is_enough_however_many_rows_there_are():
    losses = np.full((4, 2000), 0.1)
    losses[1, 7] = LOST / 4  # a mean of about 125
    losses[2, :8] = LOST / 4  # a mean of about 1000
    losses[3] = 500  # a table of many labels can honestly lose that much, in Canberra's measure for one
    selection = Selection.of([{"k": k} for k in range(4)], losses, 0, "canberra", np.random.default_rng(0))
    assert dict(zip(selection.candidates["k"], selection.diverged, strict=True)) == {
        0: False,
        3: False,
        1: True,
        2: True,
    }
    assert dict(zip(selection.candidates["k"], selection.candidates["loss"], strict=True)) == pytest.approx(
        {0: 0.1, 3: 500, 1: np.inf, 2: np.inf}
    )
    assert selection.path("k")["k"].tolist() == [0, 3]
