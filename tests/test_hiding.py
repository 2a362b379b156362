"""The two settings, exact as the paper's experiments use them, and the ways in which labels get lost."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse

from hidldl import hide_labels, make_distributions

MADE = make_distributions(n_rows=400, n_labels=6, n_features=5, zeros=0.3, random_state=0)
DATA, FEATURES = MADE.distributions, MADE.features
MECHANISMS = ("uniform", "label", "row", "feature", "degree", "top-k")


def hide(D=DATA, rate=0.5, random_state=0, **options):
    """The labels of ``D`` that are observed, whatever the mechanism needs given."""
    return hide_labels(D, rate, random_state, features=FEATURES[: len(D)], **options)


@given(
    rate=st.floats(0, 1), seed=st.integers(0, 2**32 - 1), mechanism=st.sampled_from(MECHANISMS), slope=st.floats(0, 100)
)
@example(rate=5e-323, seed=0, mechanism="label", slope=0.0)
def test_hidden_rows_are_the_observed_part_divided_by_its_sum(rate, seed, mechanism, slope):
    D_obs, observed = hide(rate=rate, random_state=seed, mechanism=mechanism, slope=slope)
    observed_part = np.where(observed, DATA, 0)
    assert (observed_part.sum(axis=1) > 0).all()
    assert np.allclose(D_obs, observed_part / observed_part.sum(axis=1, keepdims=True), rtol=1e-12, atol=0)


def test_incomplete_rows_are_left_as_they_are():
    D_obs, observed = hide_labels(DATA, rate=0.5, random_state=0, setting="incomplete")
    assert np.allclose(D_obs, np.where(observed, DATA, 0), rtol=1e-12, atol=0)
    assert D_obs.sum(axis=1).min() < 0.5


def test_both_settings_hide_the_same_labels():
    _, hidden = hide_labels(DATA, rate=0.5, random_state=0)
    _, incomplete = hide_labels(DATA, rate=0.5, random_state=0, setting="incomplete")
    assert np.array_equal(hidden, incomplete)


def test_entries_are_hidden_at_the_rate_independently():
    D = np.full((4000, 10), 0.1)
    _, observed = hide_labels(D, rate=0.3, random_state=0)
    assert observed.mean() == pytest.approx(0.7, abs=0.01)
    assert np.abs(np.corrcoef(observed.T) - np.eye(10)).max() < 0.08


def test_true_zeros_can_stay_observed():
    _, observed = hide_labels(DATA, rate=0.5, random_state=0)
    assert observed[DATA == 0].mean() == pytest.approx(0.5, abs=0.1)


def test_a_bare_row_gets_one_of_its_positive_labels_back_at_random():
    D = np.tile([0.5, 0.0, 0.3, 0.2], (3000, 1))
    _, observed = hide_labels(D, rate=1.0, random_state=0)
    assert (observed.sum(axis=1) == 1).all()
    assert observed.mean(axis=0) == pytest.approx([1 / 3, 0, 1 / 3, 1 / 3], abs=0.03)


def test_same_seed_same_mask():
    first, again, other = (hide_labels(DATA, random_state=seed)[1] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_frames_come_back_as_frames():
    frame = pd.DataFrame(DATA[:5], index=list("abcde"), columns=[f"y{j}" for j in range(6)])
    D_obs, observed = hide_labels(frame, random_state=0)
    for part in (D_obs, observed):
        assert part.index.equals(frame.index)
        assert part.columns.equals(frame.columns)
    assert all(kind == np.bool_ for kind in observed.dtypes)


def test_float32_stays_float32():
    assert hide_labels(DATA.astype(np.float32), random_state=0)[0].dtype == np.float32


def test_an_unknown_setting_is_refused():
    with pytest.raises(ValueError, match="setting must be 'hidden' or 'incomplete'"):
        hide_labels(DATA, setting="missing")


@given(rate=st.floats(0, 1), seed=st.integers(0, 2**32 - 1))
def test_uniform_masks_are_those_of_the_paper_s_experiments(rate, seed):
    """Published results belong to these masks: they must not change."""
    rng = np.random.default_rng(seed)
    expected = rng.random(DATA.shape) >= rate
    bare = np.flatnonzero(~((DATA > 0) & expected).any(axis=1))
    lottery = np.where(DATA[bare] > 0, rng.random((len(bare), DATA.shape[1])), -1)
    expected[bare, lottery.argmax(axis=1)] = True
    assert np.array_equal(hide_labels(DATA, rate, seed)[1], expected)
    assert np.array_equal(hide(rate=rate, random_state=seed, mechanism="uniform")[1], expected)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("rate", [0.2, 0.5, 0.7])
@pytest.mark.parametrize("slope", [0, 1, 2.5])
def test_the_mean_rate_is_the_one_asked_for(mechanism, rate, slope):
    D = np.random.default_rng(0).dirichlet(np.ones(40), size=400)  # so many labels that no row is bare
    _, observed = hide(D, rate, mechanism=mechanism, slope=slope)
    assert 1 - observed.mean() == pytest.approx(rate, abs=0.02)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("rate", [0, 1])
def test_all_or_all_but_one_label_can_be_hidden(mechanism, rate):
    _, observed = hide(rate=rate, mechanism=mechanism)
    assert (observed.sum(axis=1) == (1 if rate else DATA.shape[1])).all()


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_every_mechanism_repeats_itself_for_a_seed_only(mechanism):
    first, again, other = (hide(random_state=seed, mechanism=mechanism)[1] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@given(rate=st.floats(0, 1), seed=st.integers(0, 2**32 - 1))
def test_top_k_hides_no_label_that_is_larger_than_an_observed_one(rate, seed):
    _, observed = hide(rate=rate, random_state=seed, mechanism="top-k")
    smallest_observed = np.where(observed, DATA, np.inf).min(axis=1)
    largest_hidden = np.where(observed, -np.inf, DATA).max(axis=1)
    assert (smallest_observed >= largest_hidden).all()


def test_top_k_varies_by_row_and_breaks_ties_at_random():
    _, observed = hide_labels(np.full((4000, 10), 0.1), random_state=0, mechanism="top-k")
    assert set(observed.sum(axis=1)) >= {3, 4, 5, 6, 7}
    assert observed.mean(axis=0) == pytest.approx(np.full(10, 0.5), abs=0.03)


@pytest.mark.parametrize("slope", [1, 2.5])
def test_degree_hides_by_the_sigmoid_of_the_standardised_log_share(slope):
    D = np.random.default_rng(0).dirichlet(np.full(20, 0.5), size=5000)
    _, observed = hide_labels(D, rate=0.4, random_state=0, mechanism="degree", slope=slope)
    scores = np.log(D + 0.01)
    scores = (scores - scores.mean()) / scores.std()
    # The logit of the observed share is a line in the score, whose slope is the one asked for.
    bins = [np.abs(scores - centre) < 0.05 for centre in (-0.8, 0, 0.8)]
    logits = np.array([np.log(observed[b].mean() / (1 - observed[b].mean())) for b in bins])
    assert np.diff(logits) / 0.8 == pytest.approx([slope, slope], abs=0.3)


def test_degree_treats_equal_shares_alike():
    _, observed = hide_labels(np.full((4000, 10), 0.1), rate=0.3, random_state=0, mechanism="degree", slope=2.5)
    assert observed.mean() == pytest.approx(0.7, abs=0.01)


@pytest.mark.parametrize(("mechanism", "axis"), [("label", 0), ("row", 1)])
def test_rates_differ_from_label_to_label_or_from_row_to_row(mechanism, axis):
    D = np.full((300, 300), 1 / 300)
    _, observed = hide_labels(D, random_state=0, mechanism=mechanism, slope=2.0)
    binomial = 0.5 / np.sqrt(300)
    assert observed.mean(axis=axis).std() > 8 * binomial
    assert observed.mean(axis=1 - axis).std() < 1.3 * binomial


def test_rates_follow_a_linear_function_of_the_features():
    X = np.random.default_rng(1).standard_normal((500, 3)) * [1, 100, 0.01]
    D = np.full((500, 200), 1 / 200)
    _, observed = hide_labels(D, random_state=0, mechanism="feature", features=X)
    shares = observed.mean(axis=1)
    logits = np.log(shares / (1 - shares))
    with_intercept = np.column_stack([X, np.ones(500)])
    fitted = with_intercept @ np.linalg.lstsq(with_intercept, logits, rcond=None)[0]
    assert np.corrcoef(fitted, logits)[0, 1] > 0.97
    assert fitted.std() == pytest.approx(1, abs=0.1)


def test_sparse_features_hide_what_dense_ones_do():
    dense = hide_labels(DATA, random_state=0, mechanism="feature", features=FEATURES)[1]
    thin = hide_labels(DATA, random_state=0, mechanism="feature", features=sparse.csr_array(FEATURES))[1]
    assert np.array_equal(dense, thin)


@pytest.mark.parametrize("rate", [-1, -0.01, 1.01, 2, np.nan])
def test_a_rate_is_a_probability(rate):
    with pytest.raises(ValueError, match="rate must be"):
        hide_labels(DATA, rate)


def test_bad_arguments_of_a_mechanism_are_named():
    with pytest.raises(ValueError, match="mechanism must be 'uniform' or"):
        hide_labels(DATA, mechanism="degrees")
    with pytest.raises(ValueError, match="slope must be at least 0"):
        hide_labels(DATA, mechanism="degree", slope=-1)
    with pytest.raises(ValueError, match="slope must be at most 100"):
        hide_labels(DATA, mechanism="degree", slope=100.5)
    with pytest.raises(ValueError, match="pass features=X"):
        hide_labels(DATA, mechanism="feature")
    with pytest.raises(ValueError, match="features has 3 rows but D has 400"):
        hide_labels(DATA, mechanism="feature", features=FEATURES[:3])
    with pytest.raises(ValueError, match="features contains NaN in row 0, column 0"):
        hide_labels(DATA, mechanism="feature", features=np.full((400, 1), np.nan))
