"""What every estimator promises, checked for each one in the registry, also of other packages that are installed."""

import pickle
import re
import warnings
from functools import cache

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from estimators import DISGUISED, ESTIMATORS, LEARNERS, RECOVERERS, seeded
from hidldl import (
    LDLLDM,
    LDLLRR,
    SABFGS,
    BayesHidLDL,
    HidLDL,
    IncomLDL,
    IncomLDLProx,
    PTBayes,
    SelfTuned,
    WInLDL,
    hide_labels,
    make_distributions,
)

pytestmark = pytest.mark.usefixtures("short_search")

# Random groups and starts (LDLLDM), folds and posterior draws (BayesHidLDL), labels that are hidden again (SelfTuned).
DRAWS_BY_POSITION = {LDLLDM, BayesHidLDL, SelfTuned}

ONE_COLUMN = "it wants one predicted column per row; a distribution has one per label"
CANNOT_FIT = {"check_estimator_sparse_array": ONE_COLUMN, "check_estimator_sparse_matrix": ONE_COLUMN}

every_estimator = pytest.mark.parametrize("kind", ESTIMATORS, ids=lambda kind: kind.__name__)
every_recoverer = pytest.mark.parametrize("kind", RECOVERERS, ids=lambda kind: kind.__name__)


def fit(kind, problem, **parameters):
    """Fit on hidden rows, or on the truth for those that learn from complete rows."""
    estimator = seeded(kind, **parameters)
    if kind in LEARNERS:
        return estimator.fit(problem.X, problem.D)
    return estimator.fit(problem.X, problem.D_obs, observed=problem.observed)


@pytest.fixture(scope="module")
def fitted(hidden_once, short_search):
    """The model that each kind makes of ``hidden``, fitted once, for tests that do not change it."""
    return cache(lambda kind: fit(kind, hidden_once))


@parametrize_with_checks(DISGUISED, expected_failed_checks=lambda estimator: CANNOT_FIT)
def test_scikit_learns_own_checks(estimator, check):
    with warnings.catch_warnings():
        # Some checks hand over features with which Algorithm 1 or L-BFGS cannot converge, or a graph that vanishes.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "sigma=1 is small")
        check(estimator)


@every_estimator
def test_predictions_are_distributions(kind, hidden, fitted):
    P = fitted(kind).predict(hidden.X)
    assert P.shape == hidden.D.shape
    assert (P >= 0).all()
    assert np.allclose(P.sum(axis=1), 1, rtol=0, atol=1e-9)


@st.composite
def hidden_problems(draw):
    data = make_distributions(
        n_rows=draw(st.integers(8, 40)),
        n_features=draw(st.integers(1, 5)),
        n_labels=draw(st.integers(2, 7)),
        zeros=draw(st.sampled_from([0.0, 0.4])),
        random_state=draw(st.integers(0, 10**6)),
    )
    D_obs, observed = hide_labels(data.distributions, draw(st.floats(0, 0.9)), draw(st.integers(0, 10**6)))
    # A label that is hidden in every row is refused; give it back to the rows that have it.
    back = ~observed.any(axis=0)
    observed[:, back] = True
    D_obs = np.where(observed, data.distributions, 0)
    return data.features, D_obs / D_obs.sum(axis=1, keepdims=True), observed


@every_recoverer
@settings(max_examples=15, deadline=None)
@given(problem=hidden_problems(), scale=st.sampled_from([0.01, 1.0, 100.0]))
def test_recovered_rows_keep_what_was_observed(kind, problem, scale):
    X, D_obs, observed = problem
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = seeded(kind, max_iter=10).fit(scale * X, D_obs, observed=observed)
    D = model.distributions_
    assert (D >= 0).all()
    assert np.allclose(D.sum(axis=1), 1, rtol=0, atol=1e-9)
    P = model.predict(scale * X)
    assert (P >= 0).all()
    assert np.allclose(P.sum(axis=1), 1, rtol=0, atol=1e-9)
    assert (model.hidden_mass_ >= 0).all()
    assert (model.scaling_ >= 0).all()
    if model.keeps_proportions:
        check_proportions(D, D_obs, observed)


def check_proportions(D, D_obs, observed):
    """What is observed keeps its proportions; rows in which nothing is observed have none to keep."""
    known = observed.any(axis=1)
    observed_part = np.where(observed, D, 0)[known]
    assert np.allclose(observed_part / observed_part.sum(axis=1, keepdims=True), D_obs[known], rtol=1e-9, atol=1e-15)


@every_recoverer
def test_new_rows_keep_the_proportions_of_the_labels_that_they_have(kind, hidden, fitted):
    model = fitted(kind)
    rng = np.random.default_rng(0)
    X = hidden.X + 0.1 * rng.normal(size=hidden.X.shape)
    observed = hidden.observed.copy()
    observed[:5] = False
    P = model.predict(X, np.where(observed, hidden.D_obs, np.nan))
    assert (P >= 0).all()
    assert np.allclose(P.sum(axis=1), 1, rtol=0, atol=1e-9)
    check_proportions(P, hidden.D_obs, observed)
    assert np.allclose(P[:5], model.predict(X)[:5])
    assert np.array_equal(P, model.predict(X, hidden.D_obs, observed))


@every_recoverer
def test_labels_of_new_rows_that_do_not_fit_are_refused(kind, hidden, fitted):
    model = fitted(kind)
    with pytest.raises(ValueError, match="D_obs is None"):
        model.predict(hidden.X, observed=hidden.observed)
    with pytest.raises(ValueError, match="4 labels but the model was fitted with 5"):
        model.predict(hidden.X, hidden.D[:, :4], hidden.observed[:, :4])
    with pytest.raises(ValueError, match="X has 59 rows"):
        model.predict(hidden.X[1:], hidden.D_obs, hidden.observed)


@every_recoverer
def test_intervals_and_samples_come_from_those_that_have_them(kind, fitted):
    model = fitted(kind)
    if not model.has_intervals:
        with pytest.raises(TypeError, match="has no intervals"):
            model.intervals()
        with pytest.raises(TypeError, match="has no intervals"):
            model.sample(2)
        return
    low, high, mass_low, mass_high = model.intervals(0.8)
    assert (low <= high).all()
    assert (mass_low <= mass_high).all()
    assert np.allclose(model.sample(2, random_state=0).sum(axis=2), 1)


@every_recoverer
def test_a_recoverer_says_which_parameters_it_used(kind, fitted):
    model = fitted(kind)
    assert not {"n_jobs", "verbose"} & model.parameters_.keys()
    assert "auto" not in [value for value in model.parameters_.values() if isinstance(value, str)]
    if model.tunes_itself:
        assert model.selection_ is None or set(model.selection_.chosen) <= model.parameters_.keys()


@every_estimator
def test_same_seed_same_result(kind, hidden, fitted):
    first, again = fitted(kind), fit(kind, hidden)
    assert np.array_equal(first.predict(hidden.X), again.predict(hidden.X))


@every_recoverer
def test_permuting_rows_and_labels_permutes_the_result(kind, hidden, fitted):
    if kind in DRAWS_BY_POSITION:
        pytest.skip("what it draws at random belongs to rows and labels by their position")
    rng = np.random.default_rng(0)
    rows, labels = rng.permutation(60), rng.permutation(5)
    straight = fitted(kind).distributions_
    permuted = seeded(kind).fit(
        hidden.X[rows], hidden.D_obs[rows][:, labels], observed=hidden.observed[rows][:, labels]
    )
    assert np.allclose(permuted.distributions_, straight[rows][:, labels], atol=1e-9)


@pytest.mark.parametrize("kind", [kind for kind in LEARNERS if kind is not PTBayes], ids=lambda kind: kind.__name__)
def test_permuting_rows_changes_no_prediction(kind, hidden):
    rows = np.random.default_rng(0).permutation(60)
    straight, permuted = seeded(kind).fit(hidden.X, hidden.D), seeded(kind).fit(hidden.X[rows], hidden.D[rows])
    assert np.allclose(straight.predict(hidden.X), permuted.predict(hidden.X), atol=1e-3)


@pytest.mark.parametrize("kind", [SABFGS, LDLLRR], ids=lambda kind: kind.__name__)
def test_permuting_labels_permutes_what_converges(kind, hidden):
    labels = np.random.default_rng(0).permutation(5)
    straight, permuted = seeded(kind).fit(hidden.X, hidden.D), seeded(kind).fit(hidden.X, hidden.D[:, labels])
    assert np.allclose(straight.predict(hidden.X)[:, labels], permuted.predict(hidden.X), atol=1e-3)


@every_estimator
def test_float32_stays_float32(kind, hidden):
    hidden.X, hidden.D, hidden.D_obs = (A.astype(np.float32) for A in (hidden.X, hidden.D, hidden.D_obs))
    model = fit(kind, hidden)
    assert model.predict(hidden.X).dtype == np.float32
    if kind in RECOVERERS:
        assert model.distributions_.dtype == np.float32
        assert np.allclose(model.distributions_.sum(axis=1), 1, atol=1e-5)


@every_estimator
def test_frames_in_frames_out(kind, hidden, fitted):
    plain = fitted(kind)
    index, columns = [f"item {i}" for i in range(60)], list("vwxyz")
    hidden.X = pd.DataFrame(hidden.X, index=index, columns=["a", "b", "c", "d"])
    hidden.D, hidden.D_obs, hidden.observed = (
        pd.DataFrame(part, index=index, columns=columns) for part in (hidden.D, hidden.D_obs, hidden.observed)
    )
    model = fit(kind, hidden)
    results = [model.predict(hidden.X)]
    assert np.allclose(results[0], plain.predict(hidden.X.to_numpy()))
    if kind in RECOVERERS:
        results += [model.distributions_, model.raw_distributions_, model.observed_]
        assert model.observed_.equals(hidden.observed)
        assert model.hidden_mass_.index.equals(model.scaling_.index)
        assert list(model.hidden_mass_.index) == index
    for frame in results:
        assert list(frame.index) == index
        assert list(frame.columns) == columns


@every_estimator
def test_sparse_features_give_the_same_predictions(kind, hidden, fitted):
    dense = fitted(kind).predict(hidden.X)
    hidden.X = sparse.csr_array(hidden.X)
    assert np.allclose(fit(kind, hidden).predict(hidden.X), dense, atol=1e-6)


@every_estimator
def test_pickles_and_clones(kind, hidden, fitted):
    model = fitted(kind)
    back = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert np.allclose(back.predict(hidden.X), model.predict(hidden.X))
    with pytest.raises(NotFittedError):
        clone(model).predict(hidden.X)


@every_estimator
def test_fit_leaves_parameters_and_data_alone(kind, hidden):
    before = {name: getattr(hidden, name).copy() for name in ("X", "D", "D_obs", "observed")}
    model = fit(kind, hidden)
    assert model.get_params() == seeded(kind).get_params()
    for name, values in before.items():
        assert np.array_equal(getattr(hidden, name), values)


@every_estimator
def test_a_search_over_parameters_works(kind, hidden):
    target = hidden.D if kind in LEARNERS else np.where(hidden.observed, hidden.D_obs, np.nan)
    values = {"max_iter": [2, 20], "var_smoothing": [0.01, 0.1], "n_draws": [1, 2]}
    parameters = kind().get_params(deep=False)
    grid = next(
        ({name: values[name]} for name in values if name in parameters), {n: [v] for n, v in parameters.items()}
    )
    search = GridSearchCV(seeded(kind), grid, cv=3, error_score="raise")
    search.fit(hidden.X, target)
    assert 0 < search.best_score_ <= 1


@every_recoverer
def test_a_perfect_prediction_scores_one(kind, hidden, fitted, monkeypatch):
    model = fitted(kind)
    monkeypatch.setattr(kind, "_predict", lambda self, X: hidden.D)
    assert model.score(hidden.X, hidden.D_obs, observed=hidden.observed) == pytest.approx(1)


@every_recoverer
def test_rows_in_which_a_label_is_never_seen_can_be_scored(kind, hidden, fitted):
    model = fitted(kind)
    row = np.array([[0.5, 0.5, np.nan, np.nan, np.nan]])
    assert 0 <= model.score(hidden.X[:1], row) <= 1


@every_estimator
def test_scores_want_the_labels_of_the_fit(kind, hidden):
    names = list("vwxyz")
    hidden.D, hidden.D_obs, hidden.observed = (
        pd.DataFrame(part, columns=names) for part in (hidden.D, hidden.D_obs, hidden.observed)
    )
    model = fit(kind, hidden)
    with pytest.raises(ValueError, match="same labels in different order"):
        model.score(hidden.X, hidden.D[names[::-1]])
    with pytest.raises(
        ValueError, match=r"4 labels but the model was fitted with 5: D(_obs)? lacks \['z'\]; give the same"
    ):
        model.score(hidden.X, hidden.D[names[:4]])
    with pytest.raises(ValueError, match="X has 59 rows"):
        model.score(hidden.X[1:], hidden.D)


@every_estimator
def test_features_that_overflow_are_refused_not_answered_with_nan(kind, hidden, fitted):
    model = fitted(kind)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            P = model.predict(1e308 * np.sign(hidden.X))
        except ValueError as error:
            assert re.match(r"row \d+ of X is so large that the model's scores overflow", str(error))
        else:
            assert np.isfinite(P).all()


@every_estimator
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.filterwarnings("ignore")
def test_features_up_to_the_largest_that_are_accepted_give_distributions(kind, container, hidden):
    hidden.X = container(hidden.X * (1e150 / np.abs(hidden.X).max()))
    with np.errstate(all="ignore"):
        model = fit(kind, hidden, max_iter=3)
        D = model.predict(hidden.X) if kind in LEARNERS else model.distributions_
    assert (D >= 0).all()
    assert np.allclose(D.sum(axis=1), 1, rtol=0, atol=1e-9)
    hidden.X = hidden.X * 1e50
    with pytest.raises(ValueError, match=r"^X exceeds 1e\+150 in row \d+, column \d"):
        fit(kind, hidden)


@pytest.mark.parametrize("kind", [HidLDL, IncomLDL, IncomLDLProx], ids=lambda kind: kind.__name__)
def test_a_path_of_alphas_equals_the_single_fits(kind, hidden):
    alphas = [0.0, 0.1, 4.0]
    path = list(seeded(kind).alpha_path(alphas, hidden.X, hidden.D_obs, hidden.observed))
    for alpha, model in zip(alphas, path, strict=True):
        alone = fit(kind, hidden, alpha=alpha)
        assert model.alpha == alpha
        assert np.array_equal(model.raw_distributions_, alone.raw_distributions_)
        assert np.array_equal(model.predict(hidden.X), alone.predict(hidden.X))


def test_a_path_needs_an_alpha(hidden):
    with pytest.raises(TypeError, match="WInLDL has no parameter alpha"):
        next(WInLDL().alpha_path([1.0], hidden.X, hidden.D_obs, hidden.observed))


def test_the_graph_of_a_path_is_made_once(hidden, monkeypatch):
    calls = []
    original = HidLDL._prepare
    monkeypatch.setattr(HidLDL, "_prepare", lambda self, *args: (calls.append(1), original(self, *args))[1])
    assert len(list(HidLDL().alpha_path([1.0, 2.0, 4.0], hidden.X, hidden.D_obs, hidden.observed))) == 3
    assert calls == [1]
