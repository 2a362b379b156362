import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hidldl import hide_labels, make_distributions
from hidldl.selection import Selection, choose, clearly_better, hide_again, judge, play, renormalised


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
