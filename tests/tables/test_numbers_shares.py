"""Label cells as shares."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hidldl.errors import TableError
from hidldl.tables.columns import Tally
from hidldl.tables.numbers import Marks, Shares, are_amounts

LABELS = ("a", "b", "c")


def frame_of(cells) -> pd.DataFrame:
    frame = pd.DataFrame(np.array(cells, float), columns=LABELS)
    return frame.set_axis(pd.RangeIndex(1, len(frame) + 1))


def columns_of(cells):
    tally = Tally(LABELS)
    tally.add(frame_of(cells))
    return tally.columns()


def shares(cells, normalise=False):
    return Shares("t.csv", LABELS, Marks(), normalise)(frame_of(cells))


NAN = np.nan
GAPS = [[0.5, 0.5, NAN], [0.2, 0.0, 0.8]]
ZEROS = [[0.5, 0.5, 0], [0.2, 0, 0.8]]


@pytest.mark.parametrize(
    ("told", "cells", "hidden"),
    [
        ("auto", GAPS, [[0, 0, 1], [0, 0, 0]]),
        ("auto", ZEROS, [[0, 0, 1], [0, 1, 0]]),
        ("auto", [[0.5, 0.3, 0.2]], [[0, 0, 0]]),
        ("empty", ZEROS, [[0, 0, 0], [0, 0, 0]]),
        ("none", ZEROS, [[0, 0, 0], [0, 0, 0]]),
        ("empty,zero", GAPS, [[0, 0, 1], [0, 1, 0]]),
        ("zero", GAPS, [[0, 0, 1], [0, 1, 0]]),
        ("-1, 99", [[-1, 1, 99], [0, 1, NAN]], [[1, 0, 1], [0, 0, 1]]),
    ],
)
def test_what_marks_a_hidden_label(told, cells, hidden):
    marks, said = Marks.parse(told, "t.csv", columns_of(cells))
    assert (~marks(np.array(cells, float))).tolist() == np.array(hidden, bool).tolist()
    assert said


def test_marks_that_mean_nothing_are_refused():
    with pytest.raises(TableError, match=r"'many' must be auto, empty, zero, none or a number"):
        Marks.parse("many", "t.csv", columns_of(GAPS))
    with pytest.raises(TableError, match="empty cells in label column 'c'"):
        Marks.parse("none", "t.csv", columns_of(GAPS))


@settings(deadline=None, max_examples=50)
@given(
    arrays(float, (4, 3), elements=st.floats(0.01, 1e6)),
    arrays(bool, (4, 3)),
    st.floats(1e-3, 1e3),
)
def test_shares_are_proportional_to_amounts(amounts, hidden, factor):
    cells = np.where(hidden, NAN, amounts)
    D, observed = shares(cells, normalise=True)
    assert np.array_equal(observed, ~hidden)
    assert not D[hidden].any()
    assert D.sum(axis=1) == pytest.approx(observed.any(axis=1).astype(float))
    again, _ = shares(cells * factor, normalise=True)
    assert again == pytest.approx(D)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ([-0.1, 0.4, 0.7], "-0.1 in row 2, label column 'a' of t.csv is negative"),
        ([0.5, 0.1, NAN], "the labels of row 2 of t.csv sum to 0.6, not to 1; correct it; pass normalise=True"),
        ([0, NAN, 0], "row 2 of t.csv has labels but none above 0"),
    ],
)
def test_wrong_rows_are_named(row, says):
    with pytest.raises(TableError, match=says):
        shares([[0.5, 0.3, 0.2], row])


def test_a_label_that_is_never_seen_is_refused():
    reader = Shares("t.csv", LABELS, Marks(zeros=True), False)
    reader(frame_of(ZEROS[:1]))
    with pytest.raises(TableError, match=r"label column 'c' of t\.csv is hidden in every row"):
        reader.refuse_unseen()
    reader(frame_of(ZEROS[1:]))
    reader.refuse_unseen()


def test_a_table_without_label_columns_has_no_labels():
    D, observed = Shares("t.csv", LABELS, Marks(), False)(frame_of(GAPS)[["a"]] * 0 + 1)
    assert observed.tolist() == [[True, False, False]] * 2
    assert D.tolist() == [[1, 0, 0]] * 2


@pytest.mark.parametrize(
    ("cells", "amounts"),
    [
        (GAPS, False),
        ([[50, 50, NAN], [20, 0, 80.0]], True),
        ([[12.5, 87.5, 0], [33.3, 33.3, 33.4]], True),
        ([[3, 0, 9], [1, 1, 1]], True),
        ([[1, 0, 0], [0, 1, 0]], False),
        ([[0.5, 0.2, 0.1], [0.5, 0.1, 0.1]], False),
    ],
)
def test_percentages_and_counts_are_recognised(cells, amounts):
    found, said = are_amounts(columns_of(cells), frame_of(cells), Marks())
    assert found is amounts
    assert bool(said) is amounts
