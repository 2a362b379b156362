"""Label cells as shares."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from hidldl.errors import TableError
from hidldl.tables.columns import Tally
from hidldl.tables.labels import PERCENT, SHARES, Marks, Shares, count_decimals, total_of_rows, understand_labels
from hidldl.tables.reading import table_of

LABELS = ("a", "b", "c")


def frame_of(cells) -> pd.DataFrame:
    frame = pd.DataFrame(np.array(cells, float), columns=LABELS)
    return frame.set_axis(pd.RangeIndex(1, len(frame) + 1))


def columns_of(cells):
    tally = Tally(LABELS)
    tally.add(frame_of(cells))
    return tally.columns()


def shares(cells, total=SHARES):
    return Shares("t.csv", LABELS, Marks(), total)(frame_of(cells))


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
    for option in ("many", "empty,many", "-1,many"):
        with pytest.raises(TableError, match=r"'many' must be auto, empty, zero, unknown, none or a number, or a word"):
            Marks.parse(option, "t.csv", columns_of(GAPS))
    with pytest.raises(TableError, match="empty cells in label column 'c'"):
        Marks.parse("none", "t.csv", columns_of(GAPS))


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("auto", ()),
        ("?", ("?",)),
        ("-1", ()),
        ("-9,999", ()),
        ("empty, ?", ("?",)),
        ("NA,zero", ()),
        ("x,y", ("x", "y")),
    ],
)
def test_words_among_the_marks(option, words):
    assert Marks.words_in(option) == words


def test_words_mark_hidden_labels():
    cells = pd.DataFrame({"a": ["0.5", "?", "gone"], "b": ["0.5", "1", "0"], "c": ["Missing", "0", "1"]})
    table = table_of(cells, missing=Marks.words_in("?,gone,missing"))
    marks, said = Marks.parse("?,gone,missing", "t.csv", table.scan())
    assert marks.words == ("?", "gone", "missing")
    assert said == "hidden labels are marked by: ?,gone,missing"
    D, observed = Shares("t.csv", LABELS, marks, SHARES)(table.read())
    assert observed.tolist() == [[True, True, False], [False, True, True], [False, True, True]]
    assert D.tolist() == [[0.5, 0.5, 0], [0, 1, 0], [0, 0, 1]]
    _, said = Marks.parse("auto", "t.csv", table.scan())
    assert said.startswith("empty label cells and those with '?', 'Missing', 'gone' are hidden labels")


@settings(deadline=None, max_examples=50)
@given(
    arrays(float, (4, 3), elements=st.floats(0.01, 1e6)),
    arrays(bool, (4, 3)),
    st.floats(1e-3, 1e3),
)
def test_shares_are_proportional_to_amounts(amounts, hidden, factor):
    cells = np.where(hidden, NAN, amounts)
    D, observed = shares(cells, total=None)
    assert np.array_equal(observed, ~hidden)
    assert not D[hidden].any()
    assert D.sum(axis=1) == pytest.approx(observed.any(axis=1).astype(float))
    again, _ = shares(cells * factor, total=None)
    assert again == pytest.approx(D)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ([-0.1, 0.4, 0.7], "row 2 of t.csv: -0.1 in label column 'a' is negative"),
        ([0.5, 0.1, NAN], "row 2 of t.csv: its labels sum to 0.6, not to 1; correct it; pass normalise=True"),
        ([0, NAN, 0], "row 2 of t.csv: it has labels but none above 0"),
    ],
)
def test_wrong_rows_are_named(row, says):
    with pytest.raises(TableError, match=says):
        shares([[0.5, 0.3, 0.2], row])


@settings(deadline=None, max_examples=100)
@given(st.integers(1, 4), st.integers(2, 9), st.integers(0, 2**32 - 1))
def test_rounding_never_takes_a_row_beyond_the_tolerance(decimals, n_labels, seed):
    rows = np.random.default_rng(seed).dirichlet(np.ones(n_labels), size=20).round(decimals)
    labels = tuple(f"y{j}" for j in range(n_labels))
    frame = pd.DataFrame(rows, columns=labels)
    assert count_decimals(rows) <= decimals
    some = frame[rows.sum(axis=1) > 0]
    D, _ = Shares("t.csv", labels, Marks(), SHARES)(some)
    assert D.sum(axis=1) == pytest.approx(np.ones(len(some)))


@pytest.mark.parametrize(
    ("row", "is_rounded"),
    [
        ([0.25, 0.25, 0.24, 0.24], True),  # 0.98: four labels, half a hundredth each
        ([0.25, 0.25, 0.24, 0.23], False),
        ([0.333, 0.333, 0.333, 0], True),
        ([0.333, 0.333, 0.331, 0], False),
        ([0.33333333, 0.33333333, 0.33333333, 0], True),
        ([0.3333, 0.3333, 0.3303, 0], False),
        ([1, 1, 0, 0], False),
    ],
)
def test_a_row_may_be_as_far_from_one_as_rounding_takes_it(row, is_rounded):
    labels = ("a", "b", "c", "d")
    frame = pd.DataFrame([row], columns=labels, index=[7])
    if is_rounded:
        D, _ = Shares("t.csv", labels, Marks(), SHARES)(frame)
        assert D[0] == pytest.approx(np.array(row) / sum(row))
    else:
        with pytest.raises(
            TableError,
            match=rf"row 7 of t\.csv: its labels sum to {sum(row):.6g}, not to 1; correct it; pass normalise",
        ):
            Shares("t.csv", labels, Marks(), SHARES)(frame)


@pytest.mark.parametrize("guessed", [False, True])
def test_what_helps_depends_on_the_fault_and_not_on_its_words(guessed):
    labels = ("sum to", "b")
    reader = Shares("t.csv", labels, Marks(), SHARES, guessed=guessed)
    helps = {"sum": ["labels" if guessed else "normalise", "skip"], "negative": ["skip"], "none above 0": ["skip"]}
    for fault, row in {"sum": [0.5, 0.1], "negative": [-1, 2], "none above 0": [0, 0]}.items():
        with pytest.raises(TableError, match=fault) as caught:
            reader(pd.DataFrame([row], columns=labels, dtype=float))
        assert [remedy.what for remedy in caught.value.remedies] == helps[fault]


def test_the_decimals_of_all_rows_so_far_count():
    reader = Shares("t.csv", LABELS, Marks(), SHARES)
    reader(frame_of([[0.55, 0.25, 0.2]]))
    with pytest.raises(TableError, match=r"sum to 0\.9, not to 1"):
        reader(frame_of([[0.5, 0.2, 0.2]]))


def test_rounded_rows_are_noted():
    for cells, note in (
        (
            [[0.33, 0.33, 0.33], [0.5, 0.51, 0]],
            "rows sum to 0.99 to 1.01 by rounding to 2 decimals, and are divided by",
        ),
        ([[0.5, 0.3, 0.2]], None),
    ):
        _, total, said = understand_labels("auto", False, "t.csv", columns_of(cells), frame_of(cells))
        assert total == SHARES
        assert [line for line in said if "rounding" in line] == ([f"{note} their sums"] if note else [])


def test_a_label_that_is_never_seen_is_refused():
    reader = Shares("t.csv", LABELS, Marks(zeros=True), SHARES)
    reader(frame_of(ZEROS[:1]))
    with pytest.raises(TableError, match=r"label column 'c' of t\.csv is hidden in every row"):
        reader.refuse_unseen()
    reader(frame_of(ZEROS[1:]))
    reader.refuse_unseen()


def test_a_table_without_label_columns_has_no_labels():
    D, observed = Shares("t.csv", LABELS, Marks(), SHARES)(frame_of(GAPS)[["a"]] * 0 + 1)
    assert observed.tolist() == [[True, False, False]] * 2
    assert D.tolist() == [[1, 0, 0]] * 2


@pytest.mark.parametrize(
    ("cells", "total"),
    [
        (GAPS, SHARES),
        ([[50, 50, NAN], [20, 0, 80.0]], PERCENT),
        ([[12.5, 87.5, 0], [33.3, 33.3, 33.4]], PERCENT),
        ([[12.5, 87.5, 0], [33.3, 33.3, 33.4], [50, 60.5, 0]], PERCENT),
        ([[50, 50, 0]] * 19 + [[50, 5, 0]], PERCENT),
        ([[50, 50, 0]] * 3 + [[50, 5, 0]], None),
        ([[3, 0, 9], [1, 1, 1]], None),
        ([[1, 0, 0], [0, 1, 0]], SHARES),
        ([[0.5, 0.2, 0.1], [0.5, 0.1, 0.1]], SHARES),
    ],
)
def test_percentages_and_counts_are_recognised(cells, total):
    found, said = total_of_rows(columns_of(cells), frame_of(cells), Marks())
    assert found == total
    assert bool(said) is (total != SHARES)


@pytest.mark.parametrize("decimals", [0, 1])
def test_a_percentage_that_does_not_fit_is_named(decimals):
    rng = np.random.default_rng(0)
    cells = (100 * rng.dirichlet(np.ones(3), 30)).round(decimals)
    cells[4] = 40, 40, 40
    reader = Shares("t.csv", LABELS, Marks(), total_of_rows(columns_of(cells), frame_of(cells), Marks())[0])
    assert reader.faults(frame_of(cells)).to_dict() == {5: "its labels sum to 120, not to 100; correct it"}
