"""Statistics against SciPy, published values and hand-made cases."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from hidldl.statistics import average_ranks, count_wins, critical_difference, holm, paired_t_test, wilcoxon_holm

MEANS = pd.DataFrame(
    {"ours": [0.1, 0.2, 0.3], "a": [0.2, 0.1, 0.4], "b": [0.3, 0.2, 0.5]}, index=["first", "second", "third"]
)
REPETITIONS = arrays(np.float64, (2, 5), elements=st.floats(0, 1, allow_subnormal=False))


@given(REPETITIONS, st.booleans())
def test_the_paired_t_test_is_scipys(pair, higher_is_better):
    ours, theirs = pair
    if np.ptp(ours - theirs) < 1e-6:
        return
    better, worse = ("greater", "less") if higher_is_better else ("less", "greater")
    expected = ""
    if stats.ttest_rel(ours, theirs, alternative=better).pvalue < 0.05:
        expected = "better"
    elif stats.ttest_rel(ours, theirs, alternative=worse).pvalue < 0.05:
        expected = "worse"
    assert paired_t_test(ours, theirs, higher_is_better=higher_is_better) == expected


def test_the_paired_t_test_on_degenerate_repetitions():
    ones, twos = np.ones(5), np.full(5, 2.0)
    assert paired_t_test(ones, ones, higher_is_better=False) == ""
    assert paired_t_test(ones, twos, higher_is_better=False) == "better"
    assert paired_t_test(ones, twos, higher_is_better=True) == "worse"
    assert paired_t_test(ones[:1], twos[:1], higher_is_better=False) == ""
    assert paired_t_test(ones, np.full(5, np.inf), higher_is_better=False) == ""


def test_average_ranks_share_ties():
    ranks = average_ranks(MEANS, higher_is_better=False)
    assert ranks.to_dict() == pytest.approx({"ours": (1 + 2.5 + 1) / 3, "a": (2 + 1 + 2) / 3, "b": (3 + 2.5 + 3) / 3})
    assert average_ranks(MEANS, higher_is_better=True)["b"] == pytest.approx((1 + 1.5 + 1) / 3)


def test_wins_are_counted_as_in_the_paper():
    assert count_wins(MEANS, "ours", higher_is_better=False) == (4, 6)
    assert count_wins(MEANS, "ours", higher_is_better=True) == (1, 6)
    missing = MEANS.copy()
    missing.loc["first", "a"] = np.nan
    assert count_wins(missing, "ours", higher_is_better=False) == (3, 5)


def test_holm_by_hand():
    corrected = holm(pd.Series({"a": 0.04, "b": 0.01, "c": 0.03, "d": 0.9}))
    assert corrected.to_dict() == pytest.approx({"a": 0.09, "b": 0.04, "c": 0.09, "d": 0.9})


def test_wilcoxon_is_scipys_with_the_gain_in_the_right_direction():
    rng = np.random.default_rng(0)
    means = pd.DataFrame(rng.random((12, 3)), columns=["ours", "a", "b"])
    means["a"] += 0.8
    result = wilcoxon_holm(means, "ours", higher_is_better=False)
    assert result.loc["a", "p"] == pytest.approx(stats.wilcoxon(means["ours"], means["a"]).pvalue)
    assert result.loc["a", "median_gain"] > 0
    assert wilcoxon_holm(means, "ours", higher_is_better=True).loc["a", "median_gain"] < 0
    assert (result["p_holm"] >= result["p"]).all()


def test_methods_that_never_differ_are_not_told_apart():
    same = pd.DataFrame({"ours": [0.1, 0.2], "a": [0.1, 0.2]})
    assert wilcoxon_holm(same, "ours", higher_is_better=False).loc["a", "p"] == 1


def test_the_critical_difference_of_demsar():
    # J. Demšar, JMLR 7, 2006: q = 2.569 for four methods at 0.05, and 14 datasets give 1.25.
    assert critical_difference(4, 14) == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 14)), abs=1e-3)
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.01)
