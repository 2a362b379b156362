"""Long tables of votes: counted, joined with features, with labels that nobody was shown."""

import numpy as np
import pandas as pd
import pytest

from hidldl.errors import TableError
from hidldl.tables.reading import table_of
from hidldl.tables.votes import count_votes, guess_vote_columns

LONG = pd.DataFrame(
    {
        "task": ["a", "a", "a", "b", "b", "c"],
        "worker": ["w1", "w2", "w3", "w1", "w2", "w1"],
        "label": ["joy", "joy", "fear", "anger", "joy;fear", None],
        "width": [1.0, 1.0, 1.0, 2.0, 2.0, 3.0],
        "seconds": [5, 6, 7, 8, 9, 10],
    }
)


def test_votes_are_counted_by_item_and_label():
    votes = count_votes(table_of(LONG), "task", "label", "worker")
    assert votes.labels == ("anger", "fear", "joy")
    frame = votes.frame.set_index("task")
    assert frame.loc["a", list(votes.labels)].tolist() == [0, 1, 2]
    assert frame.loc["b", list(votes.labels)].tolist() == [1, 1, 1]
    assert frame.loc["c", list(votes.labels)].isna().all()
    assert frame["n_votes"].tolist() == [3, 3, 0]
    assert frame["width"].tolist() == [1, 2, 3]
    assert "seconds" not in frame  # it differs within an item
    assert "6 votes for 3 labels on 3 items" in votes.notes[0]
    assert votes.notes[1] == "rows without a label: 1"


def test_an_annotator_counts_once_for_a_label():
    twice = pd.concat([LONG, LONG.iloc[:1]])
    first, again = (count_votes(table_of(table), "task", "label", "worker") for table in (LONG, twice))
    pd.testing.assert_frame_equal(first.frame, again.frame)
    without = count_votes(table_of(twice), "task", "label").frame.set_index("task")
    assert without.loc["a", "joy"] == 3


def test_a_label_that_nobody_was_shown_is_hidden_and_one_without_a_vote_is_zero():
    shown = LONG.assign(choices=["joy;fear", "joy;fear", "joy;fear", "joy|fear|anger", "joy|fear|anger", "joy"])
    frame = count_votes(table_of(shown), "task", "label", "worker", shown="choices").frame.set_index("task")
    assert np.isnan(frame.loc["a", "anger"])
    assert frame.loc["b", "anger"] == 1
    assert frame.loc["a", "fear"] == 1


def test_features_of_another_table_are_joined_by_item():
    features = pd.DataFrame({"task": ["b", "a", "z"], "height": [20.0, 10.0, 0.0]})
    frame = count_votes(table_of(LONG), "task", "label", features=table_of(features)).frame.set_index("task")
    assert frame["height"].tolist()[:2] == [10, 20]
    assert np.isnan(frame.loc["c", "height"])
    with pytest.raises(TableError, match="by which it could be joined"):
        count_votes(table_of(LONG), "task", "label", features=table_of(features.rename(columns={"task": "item"})))
    with pytest.raises(TableError, match="no item of the table is in"):
        count_votes(table_of(LONG), "task", "label", features=table_of(features.assign(task=["x", "y", "z"])))


def test_the_columns_of_crowd_kit_are_guessed():
    assert guess_vote_columns(table_of(LONG)) == ("task", "label", "worker")
    assert guess_vote_columns(table_of(LONG.drop(columns="worker"))) is None
    assert guess_vote_columns(table_of(LONG.drop_duplicates("task"))) is None


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(TableError, match="no column 'image'"):
        count_votes(table_of(LONG), "image", "label")
    with pytest.raises(TableError, match="holds one label"):
        count_votes(table_of(LONG.assign(label="joy")), "task", "label")


def test_what_is_not_counted_is_noted():
    long = pd.DataFrame(
        {
            "task": ["a", "a", "a", "a", "b", None],
            "worker": ["w1", "w1", None, None, "w1", "w2"],
            "label": ["joy", "joy", "joy", "joy", "fear", "fear"],
        }
    )
    votes = count_votes(table_of(long), "task", "label", "worker")
    assert votes.frame.set_index("task").loc["a", "joy"] == 3
    assert votes.notes[1:] == (
        "rows without an item, which are left out: 1",
        "votes of an annotator for the same label and item again, which count once: 1",
    )
