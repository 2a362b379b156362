"""The list of rows to annotate again is the one that sorting the whole table would give."""

import numpy as np
import pandas as pd
import pytest

from hidldl.reports.reannotation import MOST_GROUPS, OTHER_GROUPS, ListOptions, Ranker

LABELS = ("joy", "fear", "anger", "shame")
MEANS = ("share_hidden", "hidden_mass", "uncertainty")


def a_table(n_rows=60, m=4, seed=0, without=(3, 17, 40)):
    rng = np.random.default_rng(seed)
    D = rng.dirichlet(np.ones(m), size=n_rows)
    observed = rng.random((n_rows, m)) > 0.5
    observed[np.arange(n_rows), D.argmax(axis=1)] = True
    observed[list(without)] = False
    half = rng.random((n_rows, m)) * np.minimum(D, 1 - D)
    return [f"row {i}" for i in range(n_rows)], observed, D, D - half, D + half


def list_of(table, size=7, groups=None, **options):
    """The list of a table that comes in pieces of that many rows."""
    ranker = Ranker(LABELS, ListOptions(**options))
    for start in range(0, len(table[0]), size):
        piece = slice(start, start + size)
        ranker.add(*(part[piece] for part in table), groups=None if groups is None else groups[piece])
    return ranker.finish()


def expected_order(table, uncertainty):
    """Positions of rows with some hidden labels by the sum over these, computed from the whole table."""
    hidden = ~table[1]
    candidates = np.flatnonzero(hidden.any(axis=1) & ~hidden.all(axis=1))
    scores = np.where(hidden, uncertainty, 0).sum(axis=1)
    return candidates[np.argsort(-scores[candidates], kind="stable")], scores


@pytest.mark.parametrize("size", [1, 7, 60])
def test_rows_are_ranked_by_the_widths_of_their_intervals(size):
    table = names, observed, D, low, high = a_table()
    result = list_of(table, size, most_rows=20)
    order, scores = expected_order(table, high - low)
    ranked = result.rows[:20]
    assert ranked["name"].tolist() == [names[i] for i in order[:20]]
    assert ranked["number"].tolist() == (order[:20] + 1).tolist()
    np.testing.assert_allclose(ranked["uncertainty"], scores[order[:20]], atol=1e-8)
    np.testing.assert_allclose(ranked["hidden_mass"], np.where(observed, 0, D).sum(axis=1)[order[:20]], atol=1e-8)
    assert (result.n_candidates, result.has_intervals) == (len(order), True)


def test_without_intervals_share_times_rest_stands_in():
    names, _, D, *_ = table = a_table()
    result = list_of(table[:3], most_rows=60)
    order, scores = expected_order(table, D * (1 - D))
    assert result.rows["name"][: len(order)].tolist() == [names[i] for i in order]
    np.testing.assert_allclose(result.rows["uncertainty"][: len(order)], scores[order], atol=1e-8)
    assert not result.has_intervals
    assert result.rows["low_1"].isna().all()


def test_the_most_telling_labels_are_asked_for_first():
    table = _, observed, D, low, high = a_table()
    result = list_of(table, most_rows=60, labels_per_row=4)
    for row in result.rows.to_dict("records"):
        i = row["number"] - 1
        hidden = [j for j in np.argsort(low[i] - high[i], kind="stable") if not observed[i, j]]
        assert [row[f"label_{k}"] for k in range(1, 5)] == [LABELS[j] for j in hidden] + [""] * (4 - len(hidden))
        for name, values in (("share", D), ("low", low), ("high", high)):
            np.testing.assert_array_equal(
                [row[f"{name}_{k}"] for k in range(1, 5)], [*values[i, hidden]] + [np.nan] * (4 - len(hidden))
            )


@pytest.mark.parametrize("size", [1, 7, 60])
def test_rows_without_any_label_stand_at_the_end_in_the_order_of_the_table(size):
    result = list_of(a_table(), size, most_rows=2, threshold=100)
    assert result.rows["number"].tolist() == [4, 18]
    assert result.rows["labels_seen"].tolist() == [0, 0]
    assert (result.n_candidates, result.n_without_labels) == (0, 3)


def test_a_threshold_leaves_out_rows_that_tell_little():
    table = a_table()
    order, scores = expected_order(table, table[4] - table[3])
    threshold = float(np.median(scores[order]))
    result = list_of(table, most_rows=60, threshold=threshold)
    n_enough = int((scores[order] >= threshold).sum())
    assert 0 < result.n_candidates == n_enough < len(order)
    assert (result.rows["labels_seen"] > 0).sum() == n_enough


def test_groups_have_the_means_of_their_rows():
    table = _, observed, D, low, high = a_table()
    groups = np.array(["Ann", "Bob", None, 4, float("nan")], dtype=object)[np.arange(60) % 5]
    texts = pd.Series(groups, dtype=object).map(str, na_action="ignore").fillna("")
    result = list_of(table, groups=groups, group_name="annotator")
    hidden = ~observed
    expected = (
        pd.DataFrame(
            {
                "rows": 1,
                "without_labels": hidden.all(axis=1).astype(int),
                "share_hidden": hidden.mean(axis=1),
                "hidden_mass": np.where(hidden, D, 0).sum(axis=1),
                "uncertainty": np.where(hidden, high - low, 0).sum(axis=1),
            }
        )
        .groupby(texts.to_numpy())
        .agg(dict.fromkeys(["rows", "without_labels"], "sum") | dict.fromkeys(MEANS, "mean"))
        .sort_values("uncertainty", ascending=False)
    )
    pd.testing.assert_frame_equal(
        result.by_group.set_index("group"), expected, check_names=False, check_index_type=False, atol=1e-8
    )
    assert set(result.by_group["group"]) == {"Ann", "Bob", "", "4"}
    assert result.rows["group"].tolist() == [texts[number - 1] for number in result.rows["number"]]
    assert result.frame()["annotator"].tolist() == result.rows["group"].tolist()


def test_so_many_groups_that_they_are_none_need_no_more_memory():
    n_rows = MOST_GROUPS + 300
    table = a_table(n_rows, without=())
    by_group = list_of(table, 500, groups=[f"group {i}" for i in range(n_rows)]).by_group
    assert len(by_group) == MOST_GROUPS + 1
    assert by_group.set_index("group")["rows"][OTHER_GROUPS] == 300
    assert by_group["rows"].sum() == n_rows


def test_the_frame_is_for_a_spreadsheet():
    table = a_table()
    frame = list_of(table, most_rows=10, labels_per_row=2).frame()
    assert list(frame) == ["number", "row", "hidden_mass", "uncertainty", "labels_seen", "ask_1", "ask_2"]
    assert not frame.isna().any().any()
    assert len(frame) == 13
    grouped = list_of(table, groups=["x"] * 60, group_name="row").frame()
    assert list(grouped)[:3] == ["number", "row", "row_"]


def test_labels_beyond_those_of_the_table_are_not_asked_for():
    assert list(list_of(a_table(), labels_per_row=9).frame())[-1] == "ask_4"


def test_a_table_with_nothing_hidden_has_an_empty_list():
    names, observed, D, low, high = a_table()
    result = list_of((names, np.ones_like(observed), D, low, high), groups=["x"] * 60)
    assert len(result.frame()) == 0
    assert "ask_1" in result.frame()
    assert result.by_group["uncertainty"].tolist() == [0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"most_rows": 0}, "most_rows must be at least 1, got 0"),
        ({"labels_per_row": 0}, "labels_per_row must be at least 1, got 0"),
        ({"threshold": float("nan")}, "threshold must be finite, got nan"),
        ({"threshold": -1}, "threshold must be at least 0, got -1"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        ListOptions(**options)


def test_groups_that_do_not_fit_the_rows_are_refused():
    ranker = Ranker(LABELS)
    table = a_table(5, without=())
    with pytest.raises(ValueError, match="groups has 2 values, but there are 5 names"):
        ranker.add(*table, groups=["a", "b"])
    ranker.add(*table, groups=list("aabbb"))
    with pytest.raises(ValueError, match="groups were given for some chunks only"):
        ranker.add(*table)
    with pytest.raises(ValueError, match="low and high were given for some chunks only"):
        ranker.add(*table[:3], groups=list("aabbb"))


def test_a_list_of_no_rows_is_refused():
    ranker = Ranker(LABELS)
    assert len(ranker.add([], np.empty((0, 4), bool), np.empty((0, 4)))) == 0
    with pytest.raises(ValueError, match="no rows were added"):
        ranker.finish()
