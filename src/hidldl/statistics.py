"""The statistics of comparisons: over repetitions of one dataset, and over datasets.

Tables are DataFrames with a row per dataset and a column per method; ``higher_is_better`` is the measure's direction.
"""

from typing import Literal

import numpy as np
import pandas as pd
from scipy import stats

from hidldl.arrays import FloatArray

Verdict = Literal["better", "worse", ""]
LEVEL = 0.05
"""Of all tests here, as in the paper."""


def paired_t_test(ours: FloatArray, theirs: FloatArray, *, higher_is_better: bool) -> Verdict:
    """Single-tailed paired t-tests over repetitions: is ours significantly better, or significantly worse?

    Repetitions are paired by their masks. The verdict is empty for fewer than two of them, for differences that are
    all 0 and for values that are not finite. Differences that are all the same number count as significant.
    """
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return ""
    gain = (ours - theirs) * (1 if higher_is_better else -1)
    if len(gain) < 2 or not gain.any():
        return ""
    if np.ptp(gain) == 0:
        return "better" if gain[0] > 0 else "worse"
    if stats.ttest_1samp(gain, 0, alternative="greater").pvalue < LEVEL:
        return "better"
    return "worse" if stats.ttest_1samp(gain, 0, alternative="less").pvalue < LEVEL else ""


def average_ranks(means: pd.DataFrame, *, higher_is_better: bool) -> "pd.Series[float]":
    """Mean over datasets of each method's rank, 1 for the best; ties share their ranks."""
    return means.rank(axis=1, ascending=not higher_is_better).mean()


def count_wins(means: pd.DataFrame, ours: str, *, higher_is_better: bool) -> tuple[int, int]:
    """Number of comparisons (another method on a dataset) in which ours has the better mean, and of all of them."""
    others = means.drop(columns=ours)
    gain = others.rsub(means[ours], axis=0) * (1 if higher_is_better else -1)
    return int((gain > 0).to_numpy().sum()), int(others.notna().to_numpy().sum())


def wilcoxon_holm(means: pd.DataFrame, ours: str, *, higher_is_better: bool) -> pd.DataFrame:
    """Wilcoxon's signed-rank test of ours against each other method over datasets, with Holm's correction.

    The columns are ``p`` (two-sided), ``p_holm``, and ``median_gain``, positive where ours is better.
    """
    gains = means.drop(columns=ours).rsub(means[ours], axis=0) * (1 if higher_is_better else -1)
    p = pd.Series({name: _signed_rank(gain.dropna().to_numpy()) for name, gain in gains.items()})
    return pd.DataFrame({"p": p, "p_holm": holm(p), "median_gain": gains.median()})


def holm(p: "pd.Series[float]") -> "pd.Series[float]":
    """Holm's step-down correction: the i-th smallest of k p-values times k - i + 1, never falling, at most 1."""
    ordered = p.sort_values()
    factors = np.arange(len(p), 0, -1)
    return (ordered * factors).cummax().clip(upper=1).reindex(p.index)


def critical_difference(n_methods: int, n_datasets: int) -> float:
    """Nemenyi's critical difference: average ranks that differ by more differ significantly."""
    quantile = stats.studentized_range.ppf(1 - LEVEL, n_methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))


def _signed_rank(gain: FloatArray) -> float:
    return float(stats.wilcoxon(gain).pvalue) if len(gain) and np.any(gain != 0) else 1.0
