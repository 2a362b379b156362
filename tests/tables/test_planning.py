"""Which columns are for what: as told, and as guessed."""

from io import StringIO

import numpy as np
import pandas as pd
import pytest

from hidldl.errors import TableError
from hidldl.tables.columns import Tally
from hidldl.tables.planning import AmbiguousLabelsError, Options, Plan, Roles, assign_roles
from hidldl.tables.reading import open_table

SHARES = np.random.default_rng(0).dirichlet([2, 2, 2], 30)


def roles(frame: pd.DataFrame, **told) -> Roles:
    frame = frame.set_axis(pd.RangeIndex(1, len(frame) + 1))
    tally = Tally(tuple(frame.columns))
    tally.add(frame)
    return assign_roles("t.csv", tally.columns(), frame, **told)


def table(**columns) -> pd.DataFrame:
    """30 rows: the columns given, then shares a, b and c."""
    return pd.DataFrame(columns, index=range(30)).join(pd.DataFrame(SHARES, columns=["a", "b", "c"]))


X = np.linspace(-1, 5, 30)


@pytest.mark.parametrize(
    "labels", ["a,b,c", " a , b,c,", "a..c", "3..5", "[abc]", "a,[bc]", "b..c,a", "a,a..c"], ids=lambda told: told
)
def test_labels_as_told(labels):
    found = roles(table(x=X, y=X**2), labels=labels)
    assert sorted(found.labels) == ["a", "b", "c"]
    assert found.numbers == ("x", "y")
    assert (found.row_names, found.guessed_as) == (None, "")


def test_a_guess_says_what_it_takes_the_labels_for():
    found = roles(table(x=X).round(6))
    assert found.labels == ("a", "b", "c")
    assert found.guessed_as.startswith("shares, which sum to 1 in 100 % of the rows")
    assert f"labels were guessed as {found.guessed_as}" in found.notes


def test_a_name_with_a_comma_or_a_star_is_a_name():
    frame = table(x=X).rename(columns={"a": "a, or b", "b": "2..3"})
    assert roles(frame, labels="2..3,c").labels == ("2..3", "c")
    with pytest.raises(TableError, match="one label column"):
        roles(frame, labels="a, or b")


@pytest.mark.parametrize(
    ("told", "says"),
    [
        ({"labels": "a,nope"}, "no column 'nope' \\(labels\\); its columns are 'x', 'a', 'b', 'c'"),
        ({"labels": "c..a"}, "no column 'c..a'"),
        ({"labels": "1..9"}, "no column '1..9'"),
        ({"labels": "a..c", "features": "x,a"}, "'a' cannot be a feature too"),
        ({"labels": "a..c", "row_names": "a"}, "'a' cannot be both"),
        ({"labels": "a..c", "row_names": "z"}, "no column 'z'; name the column by id="),
    ],
)
def test_what_cannot_be_is_refused(told, says):
    with pytest.raises(TableError, match=says):
        roles(table(x=X), **told)


NAMED = {
    "texts in the first column": ("face", [f"f{i}" for i in range(30)]),
    "numbers of rows": ("face", range(7, 37)),
    "rising numbers": ("respondent", np.arange(30) ** 2),
    "a column called id": ("id", np.random.default_rng(0).permutation(30)),
    "a column called so": ("Film_ID", [f"tt{i}" for i in range(30)]),
    "names that come twice": ("word", ["same", "same", *(f"w{i}" for i in range(28))]),
    "no name": ("", range(30)),
}


@pytest.mark.parametrize("case", NAMED)
def test_row_names_are_guessed_and_said(case):
    name, values = NAMED[case]
    found = roles(table(**{name: values, "x": X}))
    assert found.row_names == name
    assert found.numbers == ("x",)
    assert any("rows are named by" in note for note in found.notes)


NOT_NAMES = {
    "a number": X,
    "a category": ["old", "new"] * 15,
    "whole numbers in any order": np.random.default_rng(0).permutation(30),
    "numbers with an odd cell": ["many", *map(str, range(29))],
}


@pytest.mark.parametrize("case", NOT_NAMES)
def test_other_columns_name_no_rows(case):
    assert roles(table(y=NOT_NAMES[case], x=X)).row_names is None


def test_a_title_that_is_not_the_first_column():
    assert roles(table(x=X, title=[f"Film {i}" for i in range(30)])).row_names == "title"


def test_labels_are_guessed_by_their_sums():
    assert roles(table(x=X)).labels == ("a", "b", "c")
    assert roles(table(x=np.abs(X))).labels == ("a", "b", "c")
    first = table(x=np.abs(X))[["a", "b", "c", "x"]]
    assert roles(first).labels == ("a", "b", "c")
    percent = table(x=np.abs(X))
    percent[["a", "b", "c"]] = (100 * percent[["a", "b", "c"]]).round(1)
    assert roles(percent).labels == ("a", "b", "c")


def test_gaps_and_rows_without_labels_do_not_hinder_the_guess():
    frame = table(x=np.abs(X))
    frame.loc[:20, "a"] = np.nan
    frame[["a", "b", "c"]] = frame[["a", "b", "c"]].div(frame[["a", "b", "c"]].sum(axis=1), axis=0)
    frame.loc[:5, ["a", "b", "c"]] = np.nan
    assert roles(frame).labels == ("a", "b", "c")


def test_rounded_shares_are_shares():
    frame = table(x=X)
    assert roles(frame.round({"a": 2, "b": 2, "c": 2})).labels == ("a", "b", "c")


def test_zeros_beside_the_labels_are_none_of_them():
    frame = table(x=X, nothing=[0, *[0] * 29])
    assert roles(frame).labels == ("a", "b", "c")


@pytest.mark.parametrize(
    "names",
    [
        ["votes_1", "votes_2", "votes_3"],
        ["1 star", "2 stars", "3 stars"],
        ["Rating: low", "Rating: mid", "Rating: high"],
        ["emotion.joy", "emotion.fear", "emotion.awe"],
    ],
)
def test_counts_are_guessed_by_their_names(names):
    counts = np.random.default_rng(1).integers(0, 50, (30, 3))
    frame = pd.DataFrame({"year": np.random.default_rng(2).integers(1950, 2020, 30), "x": X})
    assert roles(frame.join(pd.DataFrame(counts, columns=names))).labels == tuple(names)


def test_without_labels_the_cell_that_hides_them_is_named(tmp_path):
    (tmp_path / "t.csv").write_text("id;a;b;c\n" + "".join(f"r{i};1,{i}00;20;30\n" for i in range(1, 9)))
    with (
        open_table(tmp_path / "t.csv") as told,
        pytest.raises(TableError, match=r"'1,100' in row 1, which can be read"),
    ):
        Plan.of(told, Options())


def test_percentages_that_lack_a_column_are_no_counts(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n<1 %,50 %,50 %\n" + 30 * "20 %,30 %,50 %\n")
    with (
        open_table(tmp_path / "t.csv") as told,
        pytest.raises(TableError, match=r"'<1 %' in row 1, which is not a num"),
    ):
        Plan.of(told, Options())


def test_what_cannot_be_guessed_is_asked_for():
    frame = pd.DataFrame({"x": X, "y": X**2, "z": X**3})
    with pytest.raises(TableError, match=r"does not show which columns are labels.*its columns are 'x'") as error:
        roles(frame)
    assert [remedy.what for remedy in error.value.remedies] == ["labels"]


def test_labels_alone_are_enough():
    for found in (roles(table()), roles(table(x=X), labels="x,a,b,c")):
        assert found.numbers == found.categories == ()
        assert "no features: rows are recovered from their labels alone" in found.notes


def test_an_empty_list_of_features_leaves_all_columns_out():
    for labels in ("a,b,c", None):
        chosen = roles(table(x=X, mood=["good", "bad"] * 15), labels=labels, features=[])
        assert chosen.labels == ("a", "b", "c")
        assert chosen.numbers == chosen.categories == ()
    assert roles(table(x=X), features="").numbers == ("x",)


def test_totals_dates_and_second_ids_are_no_features():
    frame = table(
        id=range(30),
        x=X,
        user_id=np.random.default_rng(0).permutation(30),
        day=["2024-03-01", "2024-03-02"] * 15,
        visit=["1.3.2024 10:00", "02.03.24"] * 15,
    )
    frame[["a", "b", "c"]] = np.random.default_rng(0).multinomial(np.arange(30) + 9, SHARES)
    frame["Total"] = frame[["a", "b", "c"]].sum(axis=1)
    found = roles(frame)
    assert found.labels == ("a", "b", "c")
    assert found.numbers == ("x",)
    assert dict(found.left_out) == {
        "Total": "it is the sum of the labels",
        "user_id": "it names the rows",
        "day": "it holds dates",
        "visit": "it holds dates",
    }
    assert roles(frame, features="x,Total").numbers == ("x", "Total")


def test_a_row_of_totals_is_reported_and_does_not_hinder():
    frame = table(place=[*(f"p{i}" for i in range(29)), "Total"], x=X)
    frame.loc[29, ["a", "b", "c"]] = frame.loc[:28, ["a", "b", "c"]].sum()
    found = roles(frame.tail(12))
    assert found.labels == ("a", "b", "c")
    assert any("row 12 is called 'Total'" in note for note in found.notes)


def test_two_readings_are_shown_and_none_is_chosen():
    histogram = np.random.default_rng(3).dirichlet(np.ones(4), 30)
    frame = table(**{f"h{j}": histogram[:, j] for j in range(4)})
    with pytest.raises(
        AmbiguousLabelsError, match=r"'h0\.\.h3' \(4 columns of shares, which sum to 1 in 100 %"
    ) as error:
        roles(frame)
    assert {reading.labels for reading in error.value.readings} == {("h0", "h1", "h2", "h3"), ("a", "b", "c")}
    for reading, choice in zip(error.value.readings, error.value.choices, strict=True):
        assert roles(frame, labels=choice).labels == reading.labels


def test_a_choice_is_exact_even_for_odd_names():
    odd = np.random.default_rng(3).dirichlet(np.ones(3), 30)
    frame = table(**{"p, q": odd[:, 0], "*": odd[:, 1], "1..2": odd[:, 2], "x": X})
    with pytest.raises(AmbiguousLabelsError) as error:
        roles(frame)
    for reading, choice in zip(error.value.readings, error.value.choices, strict=True):
        assert roles(frame, labels=choice).labels == reading.labels


def test_a_mark_is_asked_for_and_used_only_if_given():
    frame = table(x=np.abs(X))
    frame.loc[::3, "a"] = 0
    frame[["a", "b", "c"]] = frame[["a", "b", "c"]].div(frame[["a", "b", "c"]].sum(axis=1), axis=0)
    frame.loc[::3, "a"] = -9
    with pytest.raises(TableError, match="does -9 in column 'a' mark hidden labels"):
        roles(frame)
    assert roles(frame, marks=[-9]).labels == ("a", "b", "c")


def test_columns_that_are_no_features_are_left_out_and_said():
    frame = table(
        x=X,
        empty=np.nan,
        same=[3, *[3] * 29],
        unit=["1 mm", *map(str, range(29))],
        genre=["old", None, "new"] * 10,
        gappy=np.where(X > 0, 1.0, np.nan),
        text=[f"a comment {i}" for i in range(29)] + ["a comment 1"],
    )
    frame = pd.concat([frame] * 2, ignore_index=True)
    frame["text"] = [f"a comment {i}" for i in range(60)]
    found = roles(frame)
    assert found.numbers == ("x", "gappy")
    assert found.categories == ("genre",)
    assert dict(found.left_out) == {
        "empty": "it is empty",
        "same": "it is the same in every row",
        "unit": "it holds '1 mm' in row 1 among numbers",
        "text": "it is text with 60 different values, not a category",
    }
    assert sum("is left out" in note for note in found.notes) == 4
    with pytest.raises(TableError, match="'text' cannot be a feature: it is text with 60"):
        roles(frame, features="x,text")


@pytest.mark.parametrize(("cell", "says"), [("many", "is not a number"), ("45%", "write 0.45"), ("1,5", "two ways")])
def test_text_among_labels_is_named(cell, says):
    frame = pd.read_csv(StringIO(table(x=X).to_csv(index=False)), dtype={"b": str})
    frame.loc[4, "b"] = cell
    with pytest.raises(TableError, match=rf"label column 'b' of t.csv holds '{cell}' in row 5, .*{says}"):
        roles(frame, labels="a..c")
