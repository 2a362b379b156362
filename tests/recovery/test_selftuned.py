import numpy as np
import pandas as pd
import pytest

from hidldl import BayesHidLDL, HidLDL, IncomLDL, MeanFill, SelfTuned, hide_labels, make_distributions, score


@pytest.fixture(scope="module")
def problem():
    data = make_distributions(n_rows=150, n_features=3, n_labels=5, random_state=1)
    D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=2)
    return data.features, data.distributions, D_obs, observed


def test_it_is_the_recoverer_with_the_chosen_parameters(problem):
    X, D, D_obs, observed = problem
    grid = {"alpha": [0.1, 1.0, 30.0], "n_neighbors": [3, 10]}
    model = SelfTuned(HidLDL(max_iter=30), grid, random_state=0).fit(X, D_obs, observed)
    assert len(model.selection_.candidates) == 7  # the grid, and the recoverer as it was
    alone = HidLDL(max_iter=30, **model.selection_.chosen, random_state=0).fit(X, D_obs, observed)
    assert np.allclose(model.distributions_, alone.distributions_)
    errors = []
    for alpha in grid["alpha"]:
        for n_neighbors in grid["n_neighbors"]:
            tried = HidLDL(alpha, n_neighbors=n_neighbors, max_iter=30).fit(X, D_obs, observed)
            errors.append(score(D, tried.distributions_, "chebyshev")["chebyshev"])
    assert score(D, model.distributions_, "chebyshev")["chebyshev"] < 1.05 * min(errors)


def test_by_default_it_is_hidldl_with_alpha_chosen(problem):
    X, _, D_obs, observed = problem
    tuned = SelfTuned(random_state=0).fit(X, D_obs, observed)
    assert isinstance(tuned.recoverer_, HidLDL)
    auto = HidLDL("auto", random_state=0).fit(X, D_obs, observed)
    assert auto.selection_.chosen["alpha"] == auto.alpha_
    assert np.array_equal(auto.raw_distributions_, HidLDL(auto.alpha_).fit(X, D_obs, observed).raw_distributions_)


@pytest.mark.parametrize("recoverer", [IncomLDL(), MeanFill()])
def test_any_recoverer_and_any_measure_will_do(problem, recoverer):
    X, _, D_obs, observed = problem
    grid = {"alpha": [0.01, 1.0]} if isinstance(recoverer, IncomLDL) else {"max_iter": [1, 100]}
    for measure in ("chebyshev", "cosine"):
        model = SelfTuned(recoverer, grid, measure=measure, n_draws=2, random_state=0).fit(X, D_obs, observed)
        assert model.selection_.measure == measure
        assert np.allclose(model.distributions_, model.recoverer_.distributions_)
        assert np.allclose(model.predict(X), model.recoverer_.predict(X))


def test_workers_change_nothing(problem):
    X, _, D_obs, observed = problem
    results = [
        SelfTuned(grid={"alpha": [1.0, 8.0]}, n_draws=2, n_jobs=n_jobs, random_state=0).fit(X, D_obs, observed)
        for n_jobs in (1, 2)
    ]
    assert np.array_equal(*(model.distributions_ for model in results))
    assert results[0].selection_.candidates.equals(results[1].selection_.candidates)


def test_too_few_rows_leave_the_recoverer_as_it_is():
    X = np.arange(12.0).reshape(4, 3)
    D_obs = np.array([[1, np.nan], [np.nan, 1], [0.3, 0.7], [1, np.nan]])
    assert SelfTuned(random_state=0).fit(X, D_obs).selection_ is None
    assert HidLDL("auto", random_state=0).fit(X, D_obs).alpha_ == 16


def test_wrong_grids_and_measures_are_named(problem):
    X, _, D_obs, observed = problem
    with pytest.raises(ValueError, match="alpha must be at least 0"):
        SelfTuned(grid={"alpha": [-1.0]}).fit(X, D_obs, observed)
    with pytest.raises(ValueError, match="measure must be 'chebyshev'"):
        SelfTuned(measure="chebychev").fit(X, D_obs, observed)
    with pytest.raises(ValueError, match="HidLDL has no parameter 'beta'; take it out of the grid"):
        SelfTuned(grid={"beta": [1.0]}).fit(X, D_obs, observed)
    with pytest.raises(ValueError, match="MeanFill has no parameter 'alpha'; give a grid"):
        SelfTuned(MeanFill()).fit(X, D_obs, observed)
    with pytest.raises(TypeError, match="recoverer must be a Recoverer"):
        SelfTuned(5).fit(X, D_obs, observed)


def test_the_rows_are_those_of_the_chosen_recoverer_whatever_the_grid(problem):
    X, _, D_obs, observed = problem
    recoverer = HidLDL(constraint=False, max_iter=20)
    model = SelfTuned(recoverer, {"constraint": [True]}, measure="chebyshev", random_state=0).fit(X, D_obs, observed)
    assert model.selection_.chosen == {"constraint": True}
    assert np.allclose(model.distributions_, model.recoverer_.distributions_)
    observed_part = np.where(observed, model.distributions_, 0)
    assert np.allclose(observed_part / observed_part.sum(axis=1, keepdims=True), D_obs)


def test_a_list_of_grids_names_every_parameter_of_every_candidate(problem):
    X, _, D_obs, observed = problem
    grids = [{"alpha": [1.0]}, {"sigma": [2.0]}]
    model = SelfTuned(HidLDL(max_iter=5), grids, n_draws=1, random_state=0).fit(X, D_obs, observed)
    assert not model.selection_.candidates.isna().any(axis=None)
    assert len(model.selection_.candidates) == 3


def test_rows_that_are_shares_of_a_larger_whole_are_refused(problem):
    X, D, _, observed = problem
    with pytest.raises(ValueError, match="rows must sum to 1"):
        SelfTuned(IncomLDL(), {"alpha": [1.0]}).fit(X, np.where(observed, D, 0), observed)


def test_sigma_auto_is_the_median_distance_between_neighbours(problem):
    X, _, D_obs, observed = problem
    model = HidLDL(sigma="auto").fit(50 * X, D_obs, observed)
    assert model.sigma_ == pytest.approx(50 * HidLDL(sigma="auto").fit(X, D_obs, observed).sigma_)
    same = HidLDL(sigma=model.sigma_).fit(50 * X, D_obs, observed)
    assert np.array_equal(model.raw_distributions_, same.raw_distributions_)


def test_a_tuned_recoverer_can_do_what_the_recoverer_can(hidden):
    settings = {"ridge": 10.0, "width": 1.0, "standardize": True, "prior_rows": 1.0, "n_components": 2}
    inner = BayesHidLDL(nu=64.0, **settings, random_state=0)
    tuned = SelfTuned(inner, {"nu": [64.0]}, random_state=0)
    assert tuned.has_intervals
    assert not SelfTuned(HidLDL(constraint=False)).keeps_proportions
    index = [f"row {i}" for i in range(60)]
    D_obs = pd.DataFrame(np.where(hidden.observed, hidden.D_obs, np.nan), index=index, columns=list("vwxyz"))
    tuned.fit(hidden.X, D_obs)
    alone = inner.fit(hidden.X, D_obs)
    assert np.allclose(tuned.intervals(0.9).low, alone.intervals(0.9).low)
    assert tuned.intervals(0.9).hidden_mass_low.index.tolist() == index
    assert np.allclose(tuned.sample(2, random_state=1), alone.sample(2, random_state=1))
    assert np.allclose(tuned.predict(hidden.X, D_obs), alone.predict(hidden.X, D_obs))
    assert np.allclose(tuned.predict_kinds(hidden.X, D_obs), alone.predict_kinds(hidden.X, D_obs))
    assert tuned.describe_kinds("vwxyz") == alone.describe_kinds("vwxyz") != []
    assert tuned.findings("vwxyz") == alone.findings("vwxyz") != []
    assert (tuned.method_name, tuned.parameters_) == ("BayesHidLDL", alone.parameters_)
