import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from hidldl import BayesHidLDL, MeanFill, hide_labels, load_dataset, make_distributions, score

GIVEN = {
    "nu": 300.0,
    "ridge": 1.0,
    "width": 1.0,
    "standardize": True,
    "prior_rows": 1.0,
    "ordered": False,
    "n_components": 1,
    "n_landmarks": 500,
    "learn_distance": False,
    "absent_labels": False,
}
# What is left to choose is how far an annotation is trusted, and a search along one axis is a search.
MOSTLY_GIVEN = {name: value for name, value in GIVEN.items() if name not in ("nu", "n_landmarks")}


@pytest.fixture(scope="module")
def problem():
    data = make_distributions(n_rows=400, n_features=4, n_labels=6, random_state=1)
    D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=2)
    return data.features, data.distributions, D_obs, observed


@pytest.fixture(scope="module")
def model(problem):
    X, _, D_obs, observed = problem
    return BayesHidLDL(random_state=0).fit(X, D_obs, observed)


def chebyshev(D, P):
    return score(D, P, "chebyshev")["chebyshev"]


def test_intervals_have_a_short_display(hidden):
    model = BayesHidLDL(**GIVEN, random_state=0).fit(hidden.X, hidden.D_obs, hidden.observed)
    assert repr(model.intervals()) == (
        "<Intervals of 60 rows and 5 labels: low, high, hidden_mass_low, hidden_mass_high>"
    )


def test_it_tunes_itself_and_beats_the_mean_fill(problem, model):
    X, D, D_obs, observed = problem
    filled = MeanFill().fit(X, D_obs, observed).distributions_
    assert chebyshev(D, model.distributions_) < chebyshev(D, filled) / 4
    assert model.selection_.chosen == model.parameters_
    assert model.selection_.n_rows > 300
    assert set(model.parameters_) == set(GIVEN)
    assert model.converged_


def test_what_is_chosen_is_about_as_good_as_the_best_that_was_tried(problem, model):
    X, D, D_obs, observed = problem
    errors = []
    for candidate in model.selection_.candidates[list(GIVEN)].to_dict("records"):
        fitted = BayesHidLDL(**candidate, random_state=0).fit(X, D_obs, observed)
        errors.append(chebyshev(D, fitted.distributions_))
    assert chebyshev(D, model.distributions_) < 1.1 * min(errors)


def test_given_parameters_are_used_as_they_are(problem):
    X, _, D_obs, observed = problem
    model = BayesHidLDL(**GIVEN, random_state=0).fit(X, D_obs, observed)
    assert model.parameters_ == GIVEN
    assert model.selection_ is None
    partly = BayesHidLDL(nu=300.0, width=0.5, n_components=1, random_state=0).fit(X[:80], D_obs[:80], observed[:80])
    assert (partly.parameters_["nu"], partly.parameters_["width"]) == (300.0, 0.5)
    assert set(partly.selection_.candidates["nu"]) == {300.0}


def test_without_features_that_matter_it_is_no_worse_than_the_mean_fill():
    rng = np.random.default_rng(0)
    D = rng.dirichlet(np.full(5, 4.0), 1000)
    D_obs, observed = hide_labels(D, 0.6, random_state=0)
    X = rng.normal(size=(1000, 3))
    for features in (X, np.ones((1000, 2))):
        mine = BayesHidLDL(n_landmarks=100, random_state=0).fit(features, D_obs, observed).distributions_
        filled = MeanFill().fit(features, D_obs, observed).distributions_
        assert chebyshev(D, mine) < 1.005 * chebyshev(D, filled)


@pytest.mark.usefixtures("full_calibration")
@pytest.mark.parametrize("rate", [0.5, 0.8])
@pytest.mark.parametrize("votes", [None, 10])
def test_intervals_hold_what_they_promise(rate, votes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    root = rng.normal(size=(2, 7))
    D = softmax(np.sin(X) @ rng.normal(size=(2, 7)) + 0.5 * rng.normal(size=(400, 2)) @ root, axis=1)
    if votes is not None:  # shares are coarse and often 0
        D = rng.multinomial(votes, D) / votes
    D_obs, observed = hide_labels(D, rate, random_state=0)
    model = BayesHidLDL(**MOSTLY_GIVEN, n_landmarks=100, random_state=0).fit(X, D_obs, observed)
    wide, narrow = model.intervals(0.9), model.intervals(0.5)
    hidden = ~observed
    inside = (wide.low <= D + 1e-12) & (wide.high + 1e-12 >= D)
    # Bounds of shares of ten votes move in steps, so they can hold more than they promise.
    assert 0.85 < inside[hidden].mean() < (0.95 if votes is None else 0.98)
    assert (narrow.low >= wide.low - 1e-12).all()
    assert (narrow.high <= wide.high + 1e-12).all()
    mass = np.where(observed, 0, D).sum(axis=1)
    held = (wide.hidden_mass_low <= mass + 1e-12) & (mass <= wide.hidden_mass_high + 1e-12)
    assert held[hidden.any(axis=1)].mean() > 0.8


def test_samples_are_tables_that_keep_what_was_observed(problem, model):
    _, D, D_obs, observed = problem
    tables = model.sample(20, random_state=0)
    assert tables.shape == (20, 400, 6)
    assert (tables >= 0).all()
    assert np.allclose(tables.sum(axis=2), 1, rtol=0, atol=1e-9)
    observed_part = np.where(observed, tables, 0)
    assert np.allclose(observed_part / observed_part.sum(axis=2, keepdims=True), D_obs, atol=1e-9)
    assert np.array_equal(tables, model.sample(20, random_state=0))
    assert not np.array_equal(tables, model.sample(20, random_state=1))
    assert chebyshev(D, tables.mean(axis=0)) < 1.2 * chebyshev(D, model.distributions_)
    # Rows err independently, or the variance between tables would be too large.
    deviations = (tables - tables.mean(axis=0))[:, ~observed[:, 0], 0]
    together = np.corrcoef(deviations.T)
    assert abs(together[np.triu_indices(len(together), 1)].mean()) < 0.02


@pytest.mark.usefixtures("full_calibration")
def test_more_labels_of_a_new_row_make_a_better_prediction():
    data = make_distributions(n_rows=700, n_features=4, n_labels=6, random_state=1)
    X, D = data.features, np.random.default_rng(0).dirichlet(np.ones(6), 700) * 0.3 + data.distributions * 0.7
    D_obs, observed = hide_labels(D, rate=0.5, random_state=2)
    model = BayesHidLDL(**MOSTLY_GIVEN, n_landmarks=100, random_state=0)
    model.fit(X[:500], D_obs[:500], observed[:500])
    alone = model.predict(X[500:])
    informed = model.predict(X[500:], D_obs[500:], observed[500:])
    assert chebyshev(D[500:], informed) < 0.9 * chebyshev(D[500:], alone)
    nothing = np.full((200, 6), np.nan)
    assert np.allclose(model.predict(X[500:], nothing), alone)
    everything = model.predict(X[500:], D[500:], np.ones((200, 6), dtype=bool))
    assert np.allclose(everything, D[500:])
    low, high, *_ = model.intervals(X=X[500:], D_obs=D_obs[500:], observed=observed[500:])
    hidden = ~observed[500:]
    assert 0.8 < ((low <= D[500:]) & (D[500:] <= high))[hidden].mean() < 0.98


def test_new_rows_with_other_labels_are_refused(problem, model):
    X, _, D_obs, observed = problem
    with pytest.raises(ValueError, match="5 labels but the model was fitted with 6"):
        model.predict(X, D_obs[:, :5] / D_obs[:, :5].sum(axis=1, keepdims=True).clip(1e-9), observed[:, :5])
    with pytest.raises(ValueError, match="X has 3 rows"):
        model.predict(X[:3], D_obs, observed)


def test_zeros_are_recovered_only_where_asked_for_and_where_data_have_them():
    rng = np.random.default_rng(0)
    data = make_distributions(n_rows=600, n_features=4, n_labels=6, random_state=0)
    # Numbers of votes that differ cannot be counted, or rows that lost none would have zeros in any case.
    n_votes = rng.integers(4, 9, 600)
    D = rng.multinomial(n_votes, data.distributions**3 / (data.distributions**3).sum(axis=1, keepdims=True))
    D = D / n_votes[:, None]
    D_obs, observed = hide_labels(D, 0.5, random_state=0)
    mean = BayesHidLDL(**MOSTLY_GIVEN, n_landmarks=100, random_state=0)
    mean.fit(data.features, D_obs, observed)
    chosen = mean.parameters_
    relative = BayesHidLDL(**chosen, estimate="relative", random_state=0).fit(data.features, D_obs, observed)
    assert (mean.distributions_[~observed] > 0).all()
    assert (relative.distributions_[~observed] == 0).any()
    for measure in ("clark", "canberra"):
        assert score(D, relative.distributions_)[measure] < 0.95 * score(D, mean.distributions_)[measure]
    smooth = hide_labels(data.distributions, 0.5, random_state=0)
    assert np.array_equal(
        BayesHidLDL(**GIVEN, estimate="relative", random_state=0).fit(data.features, *smooth).distributions_,
        BayesHidLDL(**GIVEN, random_state=0).fit(data.features, *smooth).distributions_,
    )


def test_frames_go_through_intervals_and_predictions(problem):
    X, _, D_obs, observed = (part[:80] for part in problem)
    index, columns = [f"row {i}" for i in range(80)], list("abcdef")
    frame = pd.DataFrame(np.where(observed, D_obs, np.nan), index=index, columns=columns)
    features = pd.DataFrame(X, index=index)
    features.columns = features.columns.astype(str)
    model = BayesHidLDL(**GIVEN, random_state=0).fit(features, frame)
    low, high, mass_low, mass_high = model.intervals()
    for table in (low, high, model.predict(features, frame)):
        assert list(table.index) == index
        assert list(table.columns) == columns
    assert list(mass_low.index) == list(mass_high.index) == index


def test_a_frame_of_features_makes_a_frame_of_predictions(problem):
    X, _, D_obs, observed = (part[:80] for part in problem)
    features = pd.DataFrame(X, index=[f"row {i}" for i in range(80)]).rename(columns=str)
    model = BayesHidLDL(**GIVEN, random_state=0).fit(features, D_obs, observed)
    for table in (model.predict(features, D_obs, observed), model.intervals(X=features).low):
        assert list(table.index) == list(features.index)


@pytest.mark.parametrize("estimate", ["mean", "relative"])
@pytest.mark.parametrize("zeros", [0.0, 0.5])
def test_rows_of_which_nothing_is_known_are_answered_by_their_features(estimate, zeros):
    data = make_distributions(n_rows=300, n_features=4, n_labels=6, zeros=zeros, random_state=1)
    X, D = data.features, data.distributions
    D_obs, observed = hide_labels(D, 0.4, random_state=0)
    model = BayesHidLDL(**GIVEN, estimate=estimate, random_state=0).fit(X[:200], D_obs[:200], observed[:200])
    predicted = model.predict(X[200:])
    assert np.allclose(predicted.sum(axis=1), 1, rtol=0, atol=1e-12)
    assert chebyshev(D[200:], predicted) < 0.6 * chebyshev(D[200:], np.full((100, 6), 1 / 6))
    low, high, *_ = model.intervals(X=X[200:])
    assert ((low <= D[200:] + 1e-12) & (high >= D[200:] - 1e-12)).mean() > 0.7
    tables = model.sample(30, random_state=0, X=X[200:])
    assert np.allclose(tables.sum(axis=2), 1)
    assert chebyshev(predicted, tables.mean(axis=0)) < 0.1


def test_arguments_that_belong_together_are_asked_for_together(problem, model):
    X, _, D_obs, observed = problem
    with pytest.raises(ValueError, match="give their features X too"):
        model.intervals(D_obs=D_obs, observed=observed)
    with pytest.raises(ValueError, match="give D_obs too"):
        model.predict(X, observed=observed)


def test_single_precision_stays_single_precision(problem):
    X, _, D_obs, observed = (part[:80] for part in problem)
    model = BayesHidLDL(**GIVEN, random_state=0).fit(X.astype(np.float32), D_obs.astype(np.float32), observed)
    results = (*model.intervals(), model.sample(2), model.predict(X.astype(np.float32), D_obs, observed))
    assert {result.dtype for result in results} == {np.dtype(np.float32)}


def test_what_becomes_of_the_callers_arrays_does_not_matter(problem):
    X, _, D_obs, observed = (part[:80].copy() for part in problem)
    model = BayesHidLDL(**GIVEN, random_state=0).fit(X, D_obs, observed)
    before = model.sample(2, random_state=0)
    X[:], D_obs[:], observed[:] = 0, 0, ~observed
    assert np.array_equal(before, model.sample(2, random_state=0))


def test_frames_and_arrays_of_any_layout_give_the_same_numbers(problem):
    X, _, D_obs, observed = (part[:80] for part in problem)
    plain = BayesHidLDL(**GIVEN, random_state=0).fit(X, D_obs, observed).distributions_
    turned = BayesHidLDL(**GIVEN, random_state=0).fit(X, np.asfortranarray(D_obs), np.asfortranarray(observed))
    assert np.array_equal(turned.distributions_, plain)


def test_intervals_after_a_pickle_are_those_before(problem):
    X, _, D_obs, observed = (part[:80] for part in problem)
    model = BayesHidLDL(**GIVEN, random_state=0).fit(X, D_obs, observed)
    again = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert np.array_equal(again.intervals().low, model.intervals().low)


def test_a_complete_table_converges_and_comes_back(problem):
    X, D, _, _ = problem
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = BayesHidLDL(**GIVEN, random_state=0).fit(X, D, np.ones_like(D, dtype=bool))
    assert np.allclose(model.distributions_, D)


def test_an_interrupted_fit_does_not_pass_for_a_fitted_model(problem, monkeypatch):
    X, _, D_obs, observed = (part[:80] for part in problem)
    model = BayesHidLDL(**GIVEN, random_state=0).fit(X, D_obs, observed)

    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("hidldl.recovery.bayeshidldl.fit_model", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X[:40], D_obs[:40], observed[:40])
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_large_tables_in_single_precision_features_give_the_same_rows(problem, monkeypatch):
    X, _, D_obs, observed = problem
    double = BayesHidLDL(**GIVEN, random_state=0).fit(X, D_obs, observed).distributions_
    monkeypatch.setattr("hidldl.recovery.kernelmean.LARGE", 0)
    single = BayesHidLDL(**GIVEN, random_state=0).fit(X, D_obs, observed).distributions_
    assert not np.array_equal(single, double)
    assert np.allclose(single, double, atol=1e-4)


@pytest.mark.parametrize("nu", [0.1, 1e12])
def test_extreme_weights_of_an_annotation_stay_finite(nu):
    data = make_distributions(n_rows=60, n_features=3, n_labels=4, zeros=0.5, random_state=0)
    D_obs, observed = hide_labels(data.distributions, 0.5, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = BayesHidLDL(**{**GIVEN, "nu": nu}, estimate="relative", random_state=0)
        model.fit(data.features, D_obs, observed)
        results = (*model.intervals(), model.sample(2), model.predict(data.features))
    assert all(np.isfinite(result).all() for result in results)


def test_threads_change_nothing(problem):
    X, _, D_obs, observed = (part[:80] for part in problem)
    alone, threaded = (
        BayesHidLDL(**MOSTLY_GIVEN, random_state=0, n_jobs=n_jobs).fit(X, D_obs, observed) for n_jobs in (1, 3)
    )
    assert np.array_equal(threaded.distributions_, alone.distributions_)
    assert np.array_equal(threaded.intervals().low, alone.intervals().low)
    assert np.array_equal(threaded.sample(3, random_state=1), alone.sample(3, random_state=1))


def test_too_few_rows_to_tune_fall_back_on_the_safe_choice():
    D_obs = np.array([[0.5, 0.5, np.nan], [np.nan, 0.4, 0.6], [1.0, np.nan, np.nan]])
    model = BayesHidLDL(random_state=0).fit(np.eye(3), D_obs)
    assert model.selection_ is None
    assert np.allclose(model.distributions_.sum(axis=1), 1)
    assert model.intervals().low.shape == (3, 3)


def test_unfinished_fits_warn(problem):
    X, _, D_obs, observed = problem
    with pytest.warns(ConvergenceWarning, match="a round still changes"):
        BayesHidLDL(**GIVEN, max_iter=2, tol=0).fit(X, D_obs, observed)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"nu": 0}, "nu must be at least 0.1"),
        ({"ridge": 1e300}, "ridge must be at most"),
        ({"n_jobs": 0}, "n_jobs must not be 0"),
        ({"n_jobs": "all"}, "n_jobs must be an integer"),
        ({"ridge": "big"}, "ridge must be a number or 'auto'"),
        ({"standardize": 1}, "standardize must be True, False or 'auto'"),
        ({"ordered": "yes"}, "ordered must be True, False or 'auto'"),
        ({"n_components": 0}, "n_components must be at least 1"),
        ({"n_components": 1.5}, "n_components must be an integer"),
        ({"hiding": "by share"}, "hiding must be 'auto' or 'uniform' or 'degree'"),
        ({"estimate": "mode"}, "estimate must be 'mean' or 'relative' or 'chebyshev' or 'clark' or 'canberra'"),
        ({"n_landmarks": 0}, "n_landmarks must be at least 1"),
    ],
)
def test_wrong_parameters_are_named(problem, parameters, message):
    X, _, D_obs, observed = problem
    with pytest.raises((TypeError, ValueError), match=message):
        BayesHidLDL(**parameters).fit(X, D_obs, observed)


def test_levels_out_of_range_are_named(model):
    with pytest.raises(ValueError, match="level must be below 1"):
        model.intervals(1.0)


@pytest.mark.parametrize("name", ["SJAFFE", "Yeast-cold"])
def test_it_beats_the_mean_fill_on_real_data(name, data_folder):
    data = load_dataset(name)
    X, D = data.features[:1200], data.distributions[:1200]
    D_obs, observed = hide_labels(D, 0.5, random_state=0)
    quick = {"n_components": 1, "n_landmarks": 100, "standardize": True, "random_state": 0}
    mine = BayesHidLDL(**quick).fit(X, D_obs, observed).distributions_
    filled = MeanFill().fit(X, D_obs, observed).distributions_
    assert chebyshev(D, mine) < 0.98 * chebyshev(D, filled)
