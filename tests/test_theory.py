"""Theorem 1, evaluated."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hidldl import HidLDL, recovery_bound

MASSES = st.floats(0.01, 0.99)


@given(s=MASSES, r=MASSES)
def test_the_bound_holds_exactly_where_r_squared_is_at_most_s(s, r):
    if abs(r * r - s) < 1e-9 or abs(s - r * (2 - r)) < 1e-9:
        return
    row = recovery_bound([[s, 1 - s]], [[r, 1 - r]], [[True, False]]).iloc[0]
    assert row.true_coefficient == pytest.approx(1 / s)
    assert row.recovered_coefficient == pytest.approx(1 / r)
    assert row.error == pytest.approx(1 / s - 1 / r, abs=1e-12)
    assert row.bound == pytest.approx((1 - r) / s)
    assert row.holds == (r * r <= s)
    assert row.holds_squared == (r * r <= s <= r * (2 - r))


def test_with_nothing_hidden_the_bound_is_zero_and_holds():
    D = np.random.default_rng(0).dirichlet(np.ones(7), 500)
    bound = recovery_bound(D, D, np.ones_like(D, dtype=bool))
    assert bound["bound"].max() < 1e-12
    assert bound[["holds", "holds_squared"]].all(axis=None)


def test_coefficients_of_a_fitted_model(hidden):
    index = [f"row {i}" for i in range(len(hidden.D))]
    truth = pd.DataFrame(hidden.D, index=index)
    model = HidLDL(alpha=1).fit(hidden.X, hidden.D_obs, observed=hidden.observed)
    bound = recovery_bound(truth, model.distributions_, hidden.observed)
    assert list(bound.index) == index
    assert np.allclose(bound["recovered_coefficient"], 1 / model.scaling_)


def test_a_row_without_observed_mass_is_refused():
    with pytest.raises(ValueError, match="row 1 of D_true has no mass"):
        recovery_bound(np.eye(2), np.full((2, 2), 0.5), [[True, False], [True, False]])


def test_messages_name_the_recovered_rows():
    with pytest.raises(ValueError, match="D_recovered is not a finite number in row 0, label 1"):
        recovery_bound(np.eye(2), [[1.0, np.nan], [0.0, 1.0]], np.eye(2, dtype=bool))


def test_a_mask_in_another_order_is_refused():
    D = pd.DataFrame(np.full((2, 2), 0.5), columns=["a", "b"])
    mask = pd.DataFrame([[True, False], [True, False]], columns=["b", "a"])
    with pytest.raises(ValueError, match="same labels in different order"):
        recovery_bound(D, D, mask)
