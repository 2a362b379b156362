"""Which columns are guessed as labels: by sums, gaps and names, each with a known answer."""

from time import perf_counter

import numpy as np
import pandas as pd
import pytest

from hidldl import hide_labels
from hidldl.tables.columns import Tally
from hidldl.tables.label_guesses import Guess
from hidldl.tables.role_guesses import guess_labels
from hidldl.tables.words import name_points, words

N = 120
RNG = np.random.default_rng(5)
D = RNG.dirichlet([2, 2, 1, 1], N)
ABCD = ("a", "b", "c", "d")
FRACTIONS = RNG.random((N, 6))


def guess(*parts: pd.DataFrame, marks=()) -> Guess:
    frame = pd.concat(parts, axis=1)
    frame.index = pd.RangeIndex(1, len(frame) + 1)
    tally = Tally(tuple(frame.columns))
    tally.add(frame)
    return guess_labels(tally.columns(), frame, marks)


def columns(cells, names=ABCD) -> pd.DataFrame:
    return pd.DataFrame(cells, columns=list(names))


def numbered(cells, stem: str) -> pd.DataFrame:
    return pd.DataFrame(cells).add_prefix(stem)


def blanked(shares, seed=0):
    D_obs, observed = hide_labels(shares, rate=0.5, random_state=seed)
    return np.where(observed, D_obs, np.nan)


def votes(totals, seed=0):
    return np.random.default_rng(seed).multinomial(totals, D)


def labels_of(found: Guess) -> tuple[str, ...]:
    assert found.best is not None, found.readings
    return found.best.labels


CELLS = {
    "shares": D,
    "shares with gaps": blanked(D),
    "zeros for gaps": np.nan_to_num(blanked(D)),
    "two decimals": D.round(2),
    "three significant digits": np.array([[float(f"{cell:.3g}") for cell in row] for row in D]),
    "single precision": D.astype(np.float32).astype(float),
    "percentages": (100 * D).round(1),
    "whole percentages": (100 * D).round(),
    "gaps in percentages": (100 * blanked(D)).round(1),
    "gaps that leave sums below 1": np.where(RNG.random(D.shape) < 0.2, np.nan, D),
    "twelve votes": votes(12),
    "a slip in some rows": np.where(np.arange(N)[:, None] % 40 == 0, 1.5 * D, D),
    "most rows without labels": np.where(np.arange(N)[:, None] % 5 > 0, np.nan, blanked(D)),
}
PLACES = {"before": slice(0, 0), "between": slice(0, 3), "after": slice(0, 6)}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", CELLS)
def test_labels_among_fractions_are_found_by_their_sums(kind, place):
    """Names tell nothing: all columns have names of one letter."""
    features = columns(FRACTIONS, "pqrstu")
    left = features.iloc[:, PLACES[place]]
    found = guess(left, columns(CELLS[kind]), features.drop(columns=left.columns))
    assert labels_of(found) == ABCD


def test_a_tiny_feature_beside_rounded_labels_is_none_of_them():
    """Rounding hides whether a small number belongs to a sum; that it is written otherwise tells."""
    for seed in range(5):
        tiny = columns(0.05 * np.random.default_rng(seed).random((N, 3)), "pqr")
        assert labels_of(guess(tiny, columns((100 * D).round()))) == ABCD
        tags = numbered(np.random.default_rng(seed).random((25, 3)) < 0.2, "tag")
        assert labels_of(guess(columns((100 * D[:25]).round()), tags)) == ABCD


def test_features_that_sum_to_about_1_are_no_labels():
    """Many small fractions before the labels, as in SJAFFE; the widest block that nearly sums to 1 used to win."""
    about = np.random.default_rng(0).dirichlet(np.full(20, 50), N) * np.random.default_rng(1).normal(1, 0.01, (N, 1))
    assert labels_of(guess(numbered(about, "c"), columns(D))) == ABCD


def test_indicators_are_no_labels():
    kinds, sizes = np.eye(4)[np.arange(N) % 4], np.eye(3)[np.arange(N) % 3]
    assert guess(numbered(kinds, "kind"), numbered(sizes, "size")).best is None
    assert labels_of(guess(numbered(kinds, "kind"), numbered(sizes, "size"), columns(D))) == ABCD


HISTOGRAM = np.random.default_rng(8).dirichlet(np.ones(6), N)


def test_of_two_blocks_that_sum_the_one_with_gaps_wins():
    for parts in ([numbered(HISTOGRAM, "h"), columns(blanked(D))], [columns(blanked(D)), numbered(HISTOGRAM, "h")]):
        found = guess(*parts)
        assert labels_of(found) == ABCD
        assert found.confidence == "sure"


def test_of_two_blocks_that_sum_names_tell():
    emotions = ["joy", "fear", "anger", "hope"]
    assert labels_of(guess(numbered(HISTOGRAM, "h"), columns(D, emotions))) == tuple(emotions)
    assert labels_of(guess(numbered(HISTOGRAM, "feature_"), columns(D))) == ABCD


@pytest.mark.parametrize("cells", [D, np.nan_to_num(blanked(D)), votes(np.arange(N) % 30 + 5)], ids=str)
def test_where_nothing_tells_nothing_is_chosen(cells):
    found = guess(numbered(HISTOGRAM, "h"), columns(cells, ["k1", "k2", "k3", "k4"]))
    assert found.best is None
    assert {len(reading.labels) for reading in found.rivals} == {4, 6}


def test_names_alone_decide_nothing():
    """The columns called as labels do not sum to anything; others do."""
    shares = columns(D)
    assert labels_of(guess(columns(FRACTIONS[:, :3], ["joy", "fear", "anger"]), shares)) == ABCD
    assert guess(columns(FRACTIONS[:, :3], ["joy", "fear", "anger"])).best is None
    assert guess(numbered(HISTOGRAM, "feature_")).best is None


def test_names_of_the_whole_table_say_nothing_about_a_part():
    """R calls all columns V1, V2 and so on."""
    cells = np.hstack([FRACTIONS, D])
    frame = columns(cells, [f"V{j + 1}" for j in range(10)])
    assert labels_of(guess(frame)) == ("V7", "V8", "V9", "V10")


@pytest.mark.parametrize("cells", [D, blanked(D), (100 * D).round(1)], ids=["shares", "gaps", "percentages"])
def test_labels_that_are_not_next_to_each_other(cells):
    labels, features = columns(cells), columns(FRACTIONS, "pqrstu")
    frame = pd.concat([labels["a"], features["p"], labels[["b", "c"]], features[list("qrstu")], labels["d"]], axis=1)
    assert labels_of(guess(frame)) == ABCD


TOTALS = np.random.default_rng(4).integers(5, 60, N)


@pytest.mark.parametrize(
    "names",
    [
        ["1", "2", "3", "4"],
        ["1 star", "2 stars", "3 stars", "4 stars"],
        ["votes_a", "votes_b", "votes_c", "votes_d"],
        ["joyVotes", "fearVotes", "angerVotes", "otherVotes"],
        ["agree", "strongly agree", "disagree", "neither"],
        ["k1", "k2", "k3", "k4"],
        ["oak trees", "elm trees", "ash trees", "fir trees"],
    ],
)
def test_counts_with_totals_of_their_own(names):
    others = pd.DataFrame({"year": 1950 + TOTALS, "p": FRACTIONS[:, 0], "age": TOTALS % 50 + 18})
    found = guess(others, columns(votes(TOTALS), names))
    assert labels_of(found) == tuple(names)
    assert found.best.kind == "counts"
    assert found.best.low < found.best.middle < found.best.high


def test_counts_with_nothing_in_common_are_asked_for():
    """A count of something else beside them would not be told from them; gaps do tell."""
    others, trees = columns(FRACTIONS, "pqrstu"), ["oak", "elm", "ash", "fir"]
    counts = columns(votes(TOTALS), trees)
    found = guess(others, counts)
    assert found.best is None
    assert [reading.labels for reading in found.readings] == [tuple(trees)]
    assert labels_of(guess(others, counts.mask(RNG.random(counts.shape) < 0.3))) == tuple(trees)


def test_a_family_of_counts_is_not_torn_by_a_column_without_zeros():
    counts = columns(votes(TOTALS), ["k1", "k2", "k3", "k4"])
    counts["k2"] += 1
    assert labels_of(guess(columns(FRACTIONS, "pqrstu"), counts)) == ("k1", "k2", "k3", "k4")


def test_two_counts_are_shown_even_where_they_are_not_chosen():
    found = guess(columns(FRACTIONS, "pqrstu"), columns(votes(TOTALS)[:, :2] + 1, ["oak", "elm"]))
    assert found.best is None
    assert [reading.labels for reading in found.readings] == [("oak", "elm")]


def test_blocks_next_to_each_other_are_not_merged():
    wins = RNG.integers(10, 70, N)
    found = guess(columns(np.column_stack([wins, 82 - wins]), ["won", "lost"]), columns(votes(12)))
    assert {reading.labels for reading in found.rivals} == {("won", "lost"), ABCD}


def test_counts_with_a_name_that_is_not_known_are_asked_for():
    """Whether "hope" is a label or a count of something else, nothing tells."""
    found = guess(columns(FRACTIONS, "pqrstu"), columns(votes(TOTALS), ["joy", "fear", "anger", "hope"]))
    assert found.best is None
    assert {len(reading.labels) for reading in found.rivals} == {3, 4}


@pytest.mark.parametrize("name", ["Total", "n", "sum", "all votes"])
@pytest.mark.parametrize("at", [0, 3])
def test_a_column_of_totals_gives_the_labels_away(name, at):
    """Large counts without zeros, next to another column of large whole numbers."""
    counts = columns(votes(1000 + 9 * TOTALS) + 1)
    frame = pd.concat([pd.DataFrame({"w": TOTALS * 7, "z": TOTALS**2, "p": FRACTIONS[:, 0]}), counts], axis=1)
    frame.insert(at, name, counts.sum(axis=1))
    assert labels_of(guess(frame)) == ABCD


def test_answers_on_a_scale_are_no_counts():
    assert guess(numbered(RNG.integers(1, 6, (N, 8)), "q")).best is None


def test_counts_that_all_columns_are_may_be_anything():
    assert guess(numbered(votes(TOTALS), "c")).best is None


def test_constants_and_zeros_beside_the_labels_are_none_of_them():
    beside = pd.DataFrame({"zero": np.zeros(N), "one": np.ones(N)})
    assert labels_of(guess(beside, columns(D), columns(np.zeros((N, 1)), ["none"]))) == ABCD


def test_a_label_that_is_nowhere_belongs_to_the_others_by_its_name():
    never = columns(np.column_stack([D, np.zeros(N)]), [f"k{j}" for j in range(5)])
    assert labels_of(guess(columns(FRACTIONS, "pqrstu"), never)) == tuple(never.columns)


def test_marks_are_hidden_only_where_given():
    marked = np.where(np.isnan(blanked(D)), -1, blanked(D))
    assert guess(columns(FRACTIONS, "pqrstu"), columns(marked)).best is None
    assert labels_of(guess(columns(FRACTIONS, "pqrstu"), columns(marked), marks=[-1])) == ABCD


def test_few_rows_make_unsure():
    assert guess(columns(D)).confidence == "likely"
    assert guess(columns(D[:5])).confidence == "unsure"


@pytest.mark.parametrize("shape", [(1, 4), (5, 1)])
def test_nearly_empty_tables_have_no_labels(shape):
    assert guess(columns(D[: shape[0], : shape[1]], ABCD[: shape[1]])).best is None


@pytest.mark.parametrize("digits", [9, 2])
def test_a_thousand_columns_are_searched_quickly(digits):
    rng = np.random.default_rng(0)
    cells = np.hstack([rng.random((1000, 500)), rng.dirichlet(np.ones(7), 1000), rng.random((1000, 493))])
    frame = numbered(cells.round(digits), "c")
    frame.index = pd.RangeIndex(1, 1001)
    tally = Tally(tuple(frame.columns))
    tally.add(frame)
    started = perf_counter()
    found = guess_labels(tally.columns(), frame)
    assert perf_counter() - started < 5  # a tenth of it on a machine that does nothing else
    assert labels_of(found) == tuple(f"c{j}" for j in range(500, 507))


@pytest.mark.parametrize(
    ("name", "parts"),
    [("Star ratings_3", ("star", "rating", "3")), ("happiness", ("happiness",)), ("x12", ("x", "12")), ("", ())],
)
def test_words_of_names(name, parts):
    assert words(name) == parts


@pytest.mark.parametrize(
    ("block", "points"),
    [
        (["joy", "fear", "hope"], 1),
        (["-1", "0", "+1"], 1),
        (["f1", "f2", "f3"], -1),
        (["age 0 to 14", "age 15 to 64", "age 65 or more"], 0),
        (["oak", "elm"], 0),
        (["D", "E", "F"], 0),
    ],
)
def test_what_names_speak_for(block, points):
    assert name_points(block, ["width", "height"]) == points
    assert name_points(block, block) == 0
