"""The two settings, exact as the paper's experiments use them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hidldl import hide_labels, make_distributions

DATA = make_distributions(n_rows=400, n_labels=6, n_features=5, zeros=0.3, random_state=0).distributions


@given(rate=st.floats(0, 1), seed=st.integers(0, 2**32 - 1))
def test_hidden_rows_are_the_observed_part_divided_by_its_sum(rate, seed):
    D_obs, observed = hide_labels(DATA, rate=rate, random_state=seed)
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
