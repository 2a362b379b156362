"""The measures against SciPy's and against their formulas, and exact on degenerate rows."""

import math
from dataclasses import FrozenInstanceError

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.spatial import distance
from scipy.stats import entropy

from hidldl import MEASURES, make_distributions, score

ONE_HOT = np.eye(3)
UNIFORM = np.full((1, 3), 1 / 3)


@st.composite
def distribution_pairs(draw):
    shape = (draw(st.integers(1, 5)), draw(st.integers(2, 6)))
    pair = []
    for _ in range(2):
        weights = draw(arrays(np.float64, shape, elements=st.sampled_from([0.0, 1e-9, 0.1, 0.5, 1.0])))
        weights[~weights.any(axis=1)] = 1
        pair.append(weights / weights.sum(axis=1, keepdims=True))
    return pair


def row_by_row(d, p):
    """The formulas of the protocol, one entry at a time."""
    relative = [abs(a - b) / (a + b) if a + b > 0 else 0.0 for a, b in zip(d, p, strict=True)]
    kl = sum(0.0 if a == 0 else math.inf if b == 0 else a * math.log(a / b) for a, b in zip(d, p, strict=True))
    return {
        "chebyshev": distance.chebyshev(d, p),
        "clark": math.sqrt(sum(r * r for r in relative)),
        "canberra": distance.canberra(d, p),
        "kl": kl,
        "cosine": 1 - distance.cosine(d, p),
        "intersection": sum(map(min, d, p)),
    }


@given(distribution_pairs())
def test_measures_are_their_formulas(pair):
    D, P = pair
    for i in range(len(D)):
        for name, expected in row_by_row(D[i], P[i]).items():
            assert MEASURES[name].rows(D, P)[i] == pytest.approx(expected, rel=1e-9, abs=1e-12), name


@given(distribution_pairs())
def test_a_row_compared_with_itself_is_perfect(pair):
    perfect = {"chebyshev": 0, "clark": 0, "canberra": 0, "kl": 0, "cosine": 1, "intersection": 1}
    assert score(pair[0], pair[0]) == pytest.approx(perfect, abs=1e-12)


def test_one_hot_rows_that_share_nothing():
    apart = score(ONE_HOT, np.roll(ONE_HOT, 1, axis=0))
    expected = {"chebyshev": 1, "clark": math.sqrt(2), "canberra": 2, "kl": math.inf, "cosine": 0, "intersection": 0}
    assert apart == pytest.approx(expected)


def test_zero_over_zero_counts_zero():
    D, P = np.array([[0.0, 0.4, 0.6]]), np.array([[0.0, 0.6, 0.4]])
    assert MEASURES["canberra"](D, P) == pytest.approx(0.4)
    assert MEASURES["clark"](D, P) == pytest.approx(math.sqrt(0.08))


def test_kl_agrees_with_scipy():
    data = make_distributions(n_rows=20, n_labels=4, random_state=0).distributions
    assert np.allclose(MEASURES["kl"].rows(data, data[::-1]), entropy(data, data[::-1], axis=1))


def test_directions_point_towards_the_truth():
    rng = np.random.default_rng(0)
    D = rng.dirichlet(np.ones(5), 200)
    near, far = 0.9 * D + 0.1 * 0.2, 0.1 * D + 0.9 * 0.2
    for measure in MEASURES.values():
        improves = measure(D, near) > measure(D, far)
        assert improves == measure.higher_is_better, measure.name
        assert measure.arrow == ("↑" if measure.higher_is_better else "↓")


def test_nobody_can_turn_a_measure_round():
    with pytest.raises(FrozenInstanceError):
        MEASURES["kl"].higher_is_better = True


def test_score_returns_what_is_asked_for_in_order():
    assert list(score(ONE_HOT, ONE_HOT, measures=["cosine", "clark"])) == ["cosine", "clark"]
    assert list(score(ONE_HOT, ONE_HOT)) == list(MEASURES)
    assert list(score(ONE_HOT, ONE_HOT, measures="clark")) == ["clark"]
    with pytest.raises(ValueError, match=r"unknown names \['kullback'\]"):
        score(ONE_HOT, ONE_HOT, measures=["kullback"])


def test_matrices_off_the_simplex_can_be_compared():
    off = np.array([[1.2, -0.2, 0.0]])
    values = score(UNIFORM, off)
    assert values["chebyshev"] == pytest.approx(1.2 - 1 / 3)
    assert values["canberra"] == pytest.approx(distance.canberra(UNIFORM[0], off[0]))
    assert score(UNIFORM, np.zeros((1, 3)))["cosine"] == 0


def test_the_truth_is_on_the_simplex():
    with pytest.raises(ValueError, match=r"row 0 of D_true sums to 2; .*Divide each row by its sum"):
        score(2 * ONE_HOT, ONE_HOT)
    with pytest.raises(ValueError, match="D_true is negative in row 0, label 1"):
        score([[1.2, -0.2, 0.0]], UNIFORM)


def test_mismatches_are_refused():
    with pytest.raises(ValueError, match=r"D_true has shape \(3, 3\) but D_pred has shape \(1, 3\)"):
        score(ONE_HOT, UNIFORM)
    with pytest.raises(ValueError, match="D_pred is not a finite number in row 0, label 1"):
        score(UNIFORM, [[0.5, np.nan, 0.5]])
    frame = pd.DataFrame(ONE_HOT, columns=list("abc"))
    with pytest.raises(ValueError, match="same labels in different order"):
        score(frame, frame[list("cba")])
    with pytest.raises(
        ValueError, match=r"same rows .* position 0 \(0 and 2\); use D_pred.reindex\(index=D_true.index\)"
    ):
        score(frame, frame.iloc[::-1])
    with pytest.raises(ValueError, match=r"same labels .* position 0 \(0 and 2\); use D_pred.reindex\(columns="):
        score(pd.DataFrame(ONE_HOT), pd.DataFrame(ONE_HOT)[[2, 1, 0]])
    assert score(frame, frame.set_axis(list("xyz")))["clark"] == 0
