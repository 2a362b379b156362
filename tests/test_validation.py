"""One meaning of "observed", and an error with argument, place and remedy for everything that is not valid."""

import re
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from estimators import LEARNERS, RECOVERERS
from hidldl import SABFGS, BayesHidLDL, HidLDL, MeanFill
from hidldl.randomness import random_generator
from hidldl.validation import (
    ROW_SUM_TOLERANCE,
    check_distributions,
    check_features_of_rows,
    check_flag,
    check_number,
    check_observed_rows,
    check_same_labels,
    check_sample_weight,
    check_verbose,
    check_workers,
)

NAN = np.nan


class TestMeaningOfObserved:
    def test_the_mask_wins_over_values(self):
        D_obs = np.array([[0.5, 0.5, NAN], [0.0, 1.0, 0.7]])
        mask = np.array([[True, True, False], [True, True, False]])
        mask_of_all = np.vstack([mask, [[True, False, True]]])
        rows = check_observed_rows(np.vstack([D_obs, [[0.4, 0.3, 0.6]]]), mask_of_all)
        assert np.array_equal(rows.observed, mask_of_all)
        assert np.allclose(rows.shares, [[0.5, 0.5, 0], [0, 1, 0], [0.4, 0, 0.6]])

    def test_without_a_mask_nan_is_hidden_and_zero_is_observed(self):
        rows = check_observed_rows(np.array([[0.5, 0.5, NAN], [0.0, 0.5, 0.5]]))
        assert rows.observed.tolist() == [[True, True, False], [True, True, True]]

    def test_without_nan_zeros_are_hidden_and_a_warning_names_the_parameter(self):
        with pytest.warns(UserWarning, match="observed=") as caught:
            rows = check_observed_rows(np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]))
        assert len(caught) == 1
        assert rows.observed.tolist() == [[True, True, False], [True, True, True]]

    def test_complete_rows_need_no_warning(self):
        assert check_observed_rows(np.array([[0.5, 0.5], [0.2, 0.8]])).observed.all()

    def test_fit_points_its_warning_at_the_caller(self, hidden):
        with pytest.warns(UserWarning, match="observed=") as caught:
            MeanFill().fit(hidden.X, hidden.D_obs)
        assert caught[0].filename == __file__

    def test_rows_within_the_tolerance_are_closed_exactly(self):
        nearly = np.array([[0.5, 0.5], [0.2, 0.8]]) * (1 + 0.9 * ROW_SUM_TOLERANCE)
        assert np.allclose(check_observed_rows(nearly).shares.sum(axis=1), 1, rtol=0, atol=1e-15)

    def test_nullable_pandas_columns_are_read(self):
        frame = pd.DataFrame({"a": [0.5, 0.4], "b": [0.5, 0.4], "c": [None, 0.2]}, dtype="Float64")
        assert check_observed_rows(frame).observed.tolist() == [[True, True, False], [True, True, True]]


def spoiled(D_obs, place, value):
    D_obs = D_obs.copy()
    D_obs[place] = value
    return D_obs


BAD_ROWS = {
    "a row that does not sum to 1": (
        lambda D: spoiled(D, (3,), D[3] * 0.9),
        "row 3 of D_obs sums to 0.9.*within 0.001",
    ),
    "percentages": (lambda D: D * 100, "row 0 of D_obs sums to 100.*Divide"),
    "a negative share": (lambda D: spoiled(D, (5, 2), -0.1), "D_obs is negative in row 5, label 2"),
    "an infinite share": (lambda D: spoiled(D, (5, 2), np.inf), "D_obs is not a finite number in row 5, label 2"),
    "a row with nothing observed": (lambda D: spoiled(D, (7,), NAN), "row 7 of D_obs has no positive observed share"),
    "a label hidden in every row": (
        lambda D: spoiled(np.c_[D, D[:, 0]], np.s_[:, -1], NAN),
        "label 5 of D_obs is hidden in every row.*observed=",
    ),
    "one label": (lambda D: np.ones((len(D), 1)), "D_obs has 1 label"),
    "one dimension": (lambda D: D[:, 0], "D_obs has one dimension; give a row per item"),
    "fewer rows than X": (lambda D: D[:-1], "X has 60 rows but D_obs has 59"),
    "text": (lambda D: D.astype(str).astype(object) + "!", "could not convert string to float"),
    "nothing": (lambda D: None, "D_obs is None"),
}


@pytest.mark.parametrize("kind", RECOVERERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(("spoil", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_bad_rows_are_refused(hidden, kind, spoil, message):
    with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)):
        kind().fit(hidden.X, spoil(hidden.D))


@pytest.mark.parametrize("kind", LEARNERS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize("case", [case for case in BAD_ROWS if case != "a label hidden in every row"])
def test_learners_refuse_bad_rows_too(hidden, kind, case):
    with pytest.raises(ValueError, match=r"D |2D array|could not convert"):
        kind().fit(hidden.X, BAD_ROWS[case][0](hidden.D))


BAD_MASKS = {
    "integers": (lambda mask: mask.astype(int), r"observed must be a boolean array.*astype\(bool\)"),
    "another shape": (lambda mask: mask[:, :-1], "observed has shape"),
    "text": (lambda mask: "observed", "observed must be a boolean array"),
    "nothing observed in a row": (lambda mask: spoiled(mask, (2,), False), "row 2 of D_obs has no positive"),
}


@pytest.mark.parametrize(("spoil", "message"), BAD_MASKS.values(), ids=BAD_MASKS)
def test_bad_masks_are_refused(hidden, spoil, message):
    with pytest.raises(ValueError, match=re.compile(message, re.DOTALL)):
        MeanFill().fit(hidden.X, hidden.D_obs, observed=spoil(hidden.observed))


def test_a_label_that_the_mask_hides_everywhere_is_refused(hidden):
    mask = np.ones_like(hidden.observed)
    mask[:, 1] = False
    D_obs = np.where(mask, hidden.D, 0)
    with pytest.raises(ValueError, match="label 1 of D_obs is hidden in every row"):
        MeanFill().fit(hidden.X, D_obs / D_obs.sum(axis=1, keepdims=True), observed=mask)


def test_nan_where_the_mask_says_observed_is_refused(hidden):
    D_obs = spoiled(hidden.D_obs, (1, 0), NAN)
    mask = spoiled(hidden.observed, (1, 0), True)
    with pytest.raises(ValueError, match="D_obs is NaN but observed is True in row 1, label 0; set observed"):
        MeanFill().fit(hidden.X, D_obs, observed=mask)


@pytest.mark.parametrize("value", [NAN, np.inf, -np.inf])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_features_that_are_not_finite_are_refused(hidden, value, container):
    X = spoiled(hidden.X, (4, 1), value)
    with pytest.raises(ValueError, match=r"X contains (NaN|inf) in row 4, column 1"):
        HidLDL().fit(container(X), hidden.D_obs, observed=hidden.observed)


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, pd.DataFrame])
def test_features_whose_squares_overflow_are_refused_in_words(hidden, container):
    X = hidden.X * 1e140
    assert MeanFill().fit(container(X), hidden.D_obs, observed=hidden.observed).n_features_in_ == X.shape[1]
    X = np.abs(X) * 1e167  # also their sum is infinite, but they are not
    X[:3] = 1
    with pytest.raises(ValueError, match=r"^X exceeds 1e\+150 in row 3, column 0, so .*; scale"):
        MeanFill().fit(container(X), hidden.D_obs, observed=hidden.observed)


def test_frames_name_the_row_and_the_label():
    frame = pd.DataFrame({"joy": [0.5, 0.4], "fear": [0.5, -0.2]}, index=["face 1", "face 2"])
    with pytest.raises(ValueError, match=r"D_obs is negative in row 1 \(index 'face 2'\), label 'fear'"):
        check_observed_rows(frame)


NOT_NUMBERS = {
    "text": ["a"] * 60,
    "text below numbers": [0.2] * 59 + ["a"],
    "categories": pd.Categorical(["a"] * 60),
    "dates": pd.Timestamp("2020-01-01"),
    "dates with a zone": pd.Timestamp("2020-01-01", tz="UTC"),
    "durations": pd.Timedelta("1s"),
    "periods": pd.Period("2020"),
}


@pytest.mark.parametrize("values", NOT_NUMBERS.values(), ids=NOT_NUMBERS)
def test_columns_of_text_and_dates_are_named(hidden, values):
    X, D = pd.DataFrame(hidden.X), pd.DataFrame(hidden.D, columns=list("abcde"))
    place = r"in row (0|59), column 'odd', which is not a number; encode text and dates as numbers, or leave the column"
    for kind in (MeanFill, SABFGS):
        with pytest.raises(ValueError, match=f"X holds '.*' {place}"):
            kind().fit(X.assign(odd=values), D)
        with pytest.raises(ValueError, match=f"D(_obs)? holds '.*' {place}"):
            kind().fit(X, D.assign(odd=values))
    with pytest.raises(ValueError, match=f"X holds '.*' {place}"):
        check_features_of_rows(X[[0]].assign(odd=values), check_distributions(D), name="X", rows_name="D")


def test_a_table_of_nothing_but_dates_is_no_table_of_numbers(hidden):
    with pytest.raises(ValueError, match="X holds '2020-01-01 00:00:00' in row 0, column 'day', which is not a number"):
        MeanFill().fit(pd.DataFrame({"day": [pd.Timestamp("2020-01-01")] * 60}), hidden.D)


def test_numbers_as_objects_are_numbers(hidden):
    X, D = pd.DataFrame(hidden.X), pd.DataFrame(hidden.D)
    D.iloc[0, 0] = np.nan
    D.iloc[0] /= D.iloc[0].sum()
    expected = MeanFill().fit(X, D).distributions_
    D = D.astype(object).where(D.notna(), None)
    assert MeanFill().fit(X.astype(str), D).distributions_.equals(expected)


class TestWhatCameInOtherContainers:
    def test_a_masked_entry_is_hidden(self, hidden):
        masked = np.ma.masked_array(hidden.D_obs, mask=~hidden.observed)
        assert np.array_equal(check_observed_rows(masked).observed, hidden.observed)

    def test_nullable_boolean_masks_are_masks(self, hidden):
        mask = pd.DataFrame(hidden.observed).astype("boolean")
        assert np.array_equal(check_observed_rows(hidden.D_obs, mask).observed, hidden.observed)

    def test_two_labels_of_one_name_are_refused(self, hidden):
        with pytest.raises(ValueError, match="D_obs has two labels named 'a'"):
            check_observed_rows(pd.DataFrame(hidden.D, columns=list("abcda")))

    def test_subnormal_shares_count_as_zero(self):
        rows = check_observed_rows(np.array([[1.0, 5e-324], [0.5, 0.5]]), np.ones((2, 2), dtype=bool))
        assert rows.shares[0].tolist() == [1.0, 0.0]


class TestFramesInAnotherOrder:
    def test_names_of_several_types_are_compared_without_sorting(self, hidden):
        X = pd.DataFrame(hidden.X, index=[*range(30), *map(str, range(30))])
        D_obs = pd.DataFrame(hidden.D, index=X.index[::-1])
        with pytest.raises(ValueError, match="same rows in different order"):
            MeanFill().fit(X, D_obs)

    def test_other_rows_are_refused_and_unnamed_ones_go_by_position(self, hidden):
        D_obs = pd.DataFrame(hidden.D, index=np.arange(1, 61))
        with pytest.raises(ValueError, match="X and D_obs have different rows"):
            MeanFill().fit(pd.DataFrame(hidden.X, index=np.arange(2, 62)), D_obs)
        assert MeanFill().fit(pd.DataFrame(hidden.X), D_obs).distributions_.index.equals(D_obs.index)

    def test_a_table_without_names_that_was_sorted_or_shuffled_does_not_go_by_position(self, hidden):
        X, D = pd.DataFrame(hidden.X), pd.DataFrame(hidden.D, columns=list("abcde"))
        for other in (D.iloc[::-1], D.take(np.roll(range(60), -1))):
            with pytest.raises(
                ValueError, match=r"same rows in different order.*position 0 \(0 and (59|1)\); use D_obs.loc"
            ):
                MeanFill().fit(X, other)
            with pytest.raises(ValueError, match=r"position 0 \((59|1) and 0\); use observed.loc\[D_obs.index\]"):
                MeanFill().fit(hidden.X, other, observed=D > -1)

    def test_votes_and_weights(self, hidden):
        D = pd.DataFrame(hidden.D, index=[f"item {i}" for i in range(60)])
        ones = pd.Series(1.0, D.index)
        with pytest.raises(
            ValueError, match=r"D_obs and votes .*position 0 \('item 0' and 'item 59'\); use votes.loc\[D_obs"
        ):
            BayesHidLDL().fit(hidden.X, D, votes=ones[::-1])
        with pytest.raises(
            ValueError, match=r"D and sample_weight .* in different order.*use sample_weight.loc\[D.index"
        ):
            SABFGS().fit(hidden.X, D, sample_weight=ones[::-1])
        learner = SABFGS(max_iter=1).fit(hidden.X, D, sample_weight=ones.reset_index(drop=True))
        with pytest.raises(ValueError, match="D and sample_weight have the same rows in different order"):
            learner.score(hidden.X, D, sample_weight=ones[::-1])

    def test_rows_of_the_mask(self, hidden):
        names = [f"item {i}" for i in range(60)]
        D_obs, mask = (pd.DataFrame(part, index=names) for part in (hidden.D_obs, hidden.observed))
        with pytest.raises(ValueError, match=r"same rows in different order.*observed.loc\[D_obs.index\]"):
            MeanFill().fit(hidden.X, D_obs, observed=mask.iloc[::-1])

    def test_rows_of_features_and_distributions(self, hidden):
        names = [f"item {i}" for i in range(60)]
        X, D_obs = pd.DataFrame(hidden.X, index=names), pd.DataFrame(hidden.D, index=names)
        with pytest.raises(ValueError, match=r"same rows in different order.*D_obs.loc\[X.index\]"):
            MeanFill().fit(X, D_obs.iloc[::-1])

    def test_labels_of_the_mask(self, hidden):
        D_obs, mask = (pd.DataFrame(part, columns=list("abcde")) for part in (hidden.D_obs, hidden.observed))
        with pytest.raises(ValueError, match=r"same labels in different order.*observed\[D_obs.columns\]"):
            MeanFill().fit(hidden.X, D_obs, observed=mask[mask.columns[::-1]])


BAD_PARAMETERS = [
    ({"alpha": -1}, ValueError, "alpha must be at least 0"),
    ({"alpha": NAN}, ValueError, "alpha must be finite"),
    ({"alpha": "16"}, TypeError, "alpha must be a number"),
    ({"sigma": 0}, ValueError, "sigma must be greater than 0"),
    ({"rho": -2}, ValueError, "rho must be greater than 0"),
    ({"step": 0}, ValueError, "step must be greater than 0"),
    ({"max_iter": 0}, ValueError, "max_iter must be at least 1"),
    ({"max_iter": 2.5}, TypeError, "max_iter must be an integer"),
    ({"tol": -1e-3}, ValueError, "tol must be at least 0"),
    ({"alpha": 10**400}, ValueError, "alpha must be finite"),
    ({"constraint": "no"}, TypeError, "constraint must be True or False"),
    ({"n_neighbors": 0}, ValueError, "n_neighbors must be at least 1"),
    ({"n_neighbors": 60}, ValueError, "n_neighbors=60 needs more than 60 rows.*at most 59"),
]


@pytest.mark.parametrize(("parameters", "kind", "message"), BAD_PARAMETERS, ids=lambda p: str(p)[:30])
def test_bad_parameters_of_hidldl_are_refused(hidden, parameters, kind, message):
    with pytest.raises(kind, match=message):
        HidLDL(**parameters).fit(hidden.X, hidden.D_obs, observed=hidden.observed)


BAD_VOTES = {
    "too few": (np.ones(59), r"votes has shape \(59,\); give one number for each of the 60 rows"),
    "a table": (np.ones((60, 5)), r"votes has shape \(60, 5\); give one number for each of the 60 rows"),
    "negative": (spoiled(np.ones(60), 7, -1.0), "votes is negative in row 7; give numbers of 0 or more"),
    "none at all": (np.zeros(60), "votes is zero in every row; give at least one row a positive number"),
    "not a number": (spoiled(np.ones(60), 7, NAN), "votes is not a finite number in row 7; give numbers of 0 or more"),
    "infinite": (
        pd.Series(spoiled(np.ones(60), 7, np.inf), range(1, 61)),
        r"not a finite number in row 7 \(index 8\); give",
    ),
}


@pytest.mark.parametrize(("votes", "message"), BAD_VOTES.values(), ids=BAD_VOTES)
def test_bad_votes_are_refused(hidden, votes, message):
    with pytest.raises(ValueError, match=re.compile(message, re.IGNORECASE)):
        BayesHidLDL().fit(hidden.X, hidden.D_obs, hidden.observed, votes=votes)


def test_bad_votes_of_new_rows_are_refused(hidden):
    given = {"nu": 64.0, "ridge": 10.0, "width": 1.0, "standardize": True, "prior_rows": 1.0, "n_components": 1}
    model = BayesHidLDL(**given, ordered=False, random_state=0).fit(hidden.X, hidden.D_obs, hidden.observed)
    new = {"X": hidden.X, "D_obs": hidden.D_obs, "observed": hidden.observed, "votes": np.ones(59)}
    for call in (model.predict, model.intervals, model.sample):
        with pytest.raises(ValueError, match=r"votes has shape \(59,\); give one number for each of the 60 rows"):
            call(**new)
    for call in (model.intervals, model.sample):
        with pytest.raises(ValueError, match="votes belong to new rows; give their features X too"):
            call(votes=np.ones(60))


@pytest.mark.parametrize("kind", [kind for kind in RECOVERERS if not kind.uses_votes], ids=lambda kind: kind.__name__)
def test_methods_that_do_not_use_votes_refuse_them(hidden, kind):
    with pytest.raises(TypeError, match="does not use votes; leave them out, or use BayesHidLDL"):
        kind().fit(hidden.X, hidden.D_obs, hidden.observed, votes=np.ones(60))


def test_one_row_is_too_few_for_a_graph():
    with pytest.raises(ValueError, match="1 sample"):
        HidLDL().fit([[1.0]], [[0.5, 0.5]])


def test_constant_features_are_refused_with_the_alternative(hidden):
    for X in (np.ones_like(hidden.X), sparse.csr_array(np.ones_like(hidden.X))):
        with pytest.raises(ValueError, match=r"every row of X is the same.*MeanFill"):
            HidLDL().fit(X, hidden.D_obs, observed=hidden.observed)


def test_duplicate_rows_and_some_constant_columns_are_data_like_any_other(hidden):
    X = np.repeat(hidden.X[:20], 3, axis=0)
    X[:, 0] = 7.0
    model = HidLDL().fit(X, hidden.D_obs, observed=hidden.observed)
    assert np.isfinite(model.distributions_).all()


class ArrayOnCard:
    """What CuPy's arrays are to us: NumPy may not look inside, they have to be fetched."""

    __cuda_array_interface__ = None

    def __init__(self, values):
        self.values = np.asarray(values)

    def __array__(self, *args, **options):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")

    def get(self):
        return self.values


def test_arrays_on_a_card_are_fetched(hidden):
    table = [hidden.X, hidden.D_obs, hidden.observed]
    expected = MeanFill().fit(*table).distributions_
    assert np.array_equal(MeanFill().fit(*map(ArrayOnCard, table)).distributions_, expected)


def test_random_states_of_every_kind():
    same = [random_generator(seed).random() for seed in (7, np.int64(7), np.random.default_rng(7))]
    assert len(set(same)) == 1
    legacy = [random_generator(np.random.RandomState(7)).random() for _ in range(2)]
    assert legacy[0] == legacy[1]
    assert random_generator(None).random() != random_generator(None).random()


@pytest.mark.parametrize(
    ("seed", "kind"), [(-1, ValueError), (np.int64(-1), ValueError), ("a", TypeError), (0.5, TypeError)]
)
def test_seeds_that_are_none_are_refused_by_name(seed, kind):
    with pytest.raises(kind, match=r"random_state must be an integer of 0 or more, .* or None, got .*(-1|a|0\.5)"):
        random_generator(seed)


def test_one_dimension_is_refused_in_one_line():
    with pytest.raises(ValueError, match=r"^D_obs has one dimension; give a row per item with a column per label\.$"):
        check_observed_rows([0.5, 0.5])


class TestChecksOnTheirOwn:
    def test_complete_rows_are_closed_exactly_and_left_alone(self):
        nearly = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]]) * (1 + 0.9 * ROW_SUM_TOLERANCE)
        before = nearly.copy()
        rows = check_distributions(nearly)
        assert np.allclose(rows.shares, [[0.5, 0.5, 0], [0.2, 0.3, 0.5]], rtol=0, atol=1e-15)
        assert rows.observed.all()
        assert np.array_equal(nearly, before)
        with pytest.raises(ValueError, match="row 1 of D has no positive observed share"):
            check_distributions([[0.5, 0.5], [0.0, 0.0]])
        with pytest.raises(ValueError, match=r"row 0 of D sums to 1\.002"):
            check_distributions([[0.502, 0.5], [0.5, 0.5]])

    def test_rows_of_the_incomplete_setting_may_hold_less_than_1_but_not_more(self):
        D_obs = np.array([[0.3, 0.2, NAN], [0.2, 0.3, 0.5]])
        assert np.array_equal(check_observed_rows(D_obs, may_be_partial=True).shares, [[0.3, 0.2, 0], [0.2, 0.3, 0.5]])
        for most in (0.81, 1.5):
            with pytest.raises(ValueError, match=f"row 0 of D_obs sums to {most + 0.2:.6g} over its observed labels"):
                check_observed_rows(spoiled(D_obs, (0, 0), most), may_be_partial=True)
        with pytest.raises(ValueError, match=r"row 1 of D_obs sums to 0\.9"):
            check_observed_rows(spoiled(D_obs, (1, 2), 0.4), may_be_partial=True)

    def test_a_zero_that_nobody_knows_is_unknown_where_a_method_can_tell(self):
        D_obs = np.array([[0.5, 0.5, 0.0], [0.2, 0.3, 0.5]])
        rows = check_observed_rows(D_obs, can_tell=True)
        assert rows.unknown.tolist() == [[False, False, True], [False, False, False]]
        assert check_observed_rows(D_obs[1:], can_tell=True).unknown is None
        with pytest.raises(ValueError, match="D_obs is a zero that may be hidden or true in row 0, label 2"):
            check_observed_rows(D_obs, zeros="unknown")

    def test_a_row_without_any_share_says_nothing_about_its_zeros(self):
        D_obs = np.array([[0.0, 0.0, 0.0], [0.2, 0.3, 0.5]])
        rows = check_observed_rows(D_obs, can_tell=True, may_be_empty=True)
        assert rows.unknown is None
        assert not rows.observed[0].any()
        assert np.array_equal(rows.shares, D_obs)

    def test_labels_of_a_model_and_of_rows_are_the_same(self):
        frame = pd.DataFrame([[0.5, 0.5], [0.2, 0.8]], columns=["joy", "fear"])
        for names in (None, pd.Index(["joy", "fear"])):
            check_same_labels(names, 2, frame)
            check_same_labels(names, 2, frame.to_numpy())
        with pytest.raises(ValueError, match="same labels in different order"):
            check_same_labels(pd.Index(["fear", "joy"]), 2, frame)
        with pytest.raises(
            ValueError, match=r"the model and D_obs have different labels: D_obs lacks \['anger'\]; use"
        ):
            check_same_labels(pd.Index(["anger", "joy"]), 2, frame)
        for given, missing in ((frame.to_numpy(), ""), (frame, r": D_obs lacks \['anger'\]")):
            with pytest.raises(ValueError, match=f"D_obs has 2 labels but the model was fitted with 3{missing}; give"):
                check_same_labels(pd.Index(["joy", "anger", "fear"]), 3, given)

    def test_features_outside_an_estimator_have_the_rows_of_the_labels(self, hidden):
        rows = check_distributions(hidden.D)
        assert np.array_equal(check_features_of_rows(hidden.X, rows, name="X", rows_name="D"), hidden.X)
        for X in (hidden.X[:5], hidden.X[:4]):
            with pytest.raises(ValueError, match=f"X has {len(X)} rows but D has 60"):
                check_features_of_rows(X, rows, name="X", rows_name="D")
        with pytest.raises(ValueError, match=r"X exceeds 1e\+150"):
            check_features_of_rows(hidden.X * 1e200, rows, name="X", rows_name="D")

    def test_results_come_back_in_the_container_of_the_rows(self):
        frame = pd.DataFrame([[0.5, 0.5], [0.2, 0.8]], index=["a", "b"], columns=["joy", "fear"])
        rows = check_observed_rows(frame)
        table, column = rows.like_input(rows.shares, np.array([1.0, 2.0]))
        assert table.equals(frame)
        assert column.equals(pd.Series([1.0, 2.0], ["a", "b"]))
        assert rows.label_names.equals(frame.columns)
        plain = check_observed_rows(frame.to_numpy())
        assert plain.label_names is None
        assert plain.like_input(plain.shares)[0] is plain.shares

    def test_no_label_at_all_is_refused(self):
        with pytest.raises(ValueError, match=r"0 feature\(s\)"):
            check_observed_rows(np.empty((3, 0)))

    @pytest.mark.parametrize(
        ("bounds", "allowed", "refused"),
        [
            ({"at_least": 2}, [2, 2.5, np.float32(3)], [1.99, -np.inf, NAN, np.float32(np.inf)]),
            ({"at_most": 2}, [2, -5], [2.01, np.inf]),
            ({"above": 2}, [2.01], [2, 1]),
            ({"below": 2}, [1.99], [2, 3]),
            ({}, [0, sys.float_info.max, -sys.float_info.max], [np.inf, -np.inf]),
        ],
    )
    def test_numbers_have_bounds(self, bounds, allowed, refused):
        for value in allowed:
            check_number(value, "x", **bounds)
        for value in refused:
            with pytest.raises(ValueError, match="x must be"):
                check_number(value, "x", **bounds)

    def test_words_and_truths_are_no_numbers_and_numbers_no_truths(self):
        check_number("auto", "x", or_auto=True)
        check_flag("auto", "x", or_auto=True)
        check_number(np.int64(3), "x", integer=True)
        for flag in (True, False, np.True_):
            check_flag(flag, "x")
            check_verbose(flag)
        check_verbose(print)
        for word in ("a", "b", "auto ", "Auto"):
            with pytest.raises(TypeError, match="x must be a number or 'auto'"):
                check_number(word, "x", or_auto=True)
            with pytest.raises(TypeError, match="x must be True, False or 'auto'"):
                check_flag(word, "x", or_auto=True)
        for value in (True, np.True_, "auto", None):
            with pytest.raises(TypeError, match="x must be a number, got"):
                check_number(value, "x")
        with pytest.raises(TypeError, match="x must be an integer, got"):
            check_number(2.0, "x", integer=True)
        for value in (1, "auto", None):
            with pytest.raises(TypeError, match="x must be True or False, got"):
                check_flag(value, "x")
            with pytest.raises(TypeError, match="verbose must be"):
                check_verbose(value)

    def test_workers_are_counted_as_joblib_does(self):
        for n_jobs in (None, 1, -1, 1024, -1024):
            check_workers(n_jobs)
        for n_jobs in (0, 1025, -1025):
            with pytest.raises(ValueError, match="n_jobs must"):
                check_workers(n_jobs)

    def test_weights_are_ones_where_none_are_given(self):
        assert check_sample_weight(None, 3).tolist() == [1, 1, 1]
        assert check_sample_weight([0, 2, 1], 3).tolist() == [0, 2, 1]
        for wrong in ([1, 2], [0, 0, 0], [1, -1, 1], [1, NAN, 1]):
            with pytest.raises(ValueError, match="sample_weight"):
                check_sample_weight(wrong, 3)
