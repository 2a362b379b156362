"""HidLDL for its users: what comes out, what predict does, what a warning says."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from hidldl import SABFGS, HidLDL, MeanFill, hide_labels, load_dataset, make_distributions, score


def fitted(hidden, **parameters):
    return HidLDL(**parameters).fit(hidden.X, hidden.D_obs, observed=hidden.observed)


def test_the_raw_iterate_is_off_and_the_result_is_not(hidden):
    model = fitted(hidden)
    scaled = model.scaling_[:, None] * hidden.D_obs
    raw_gap, gap = (
        np.abs(np.where(hidden.observed, D - scaled, 0)).max() for D in (model.raw_distributions_, model.distributions_)
    )
    assert gap < 1e-15
    assert raw_gap > 1e-5


def test_hidden_mass_and_scaling_share_the_row(hidden):
    model = fitted(hidden)
    assert np.allclose(model.hidden_mass_, np.where(hidden.observed, 0, model.distributions_).sum(axis=1))
    assert np.allclose(model.scaling_, np.where(hidden.observed, model.distributions_, 0).sum(axis=1))
    assert (model.hidden_mass_[hidden.observed.all(axis=1)] == 0).all()


def test_without_the_constraint_proportions_go_and_the_simplex_stays(hidden):
    D = fitted(hidden, constraint=False).distributions_
    assert np.allclose(D.sum(axis=1), 1)
    observed_part = np.where(hidden.observed, D, 0)
    assert np.abs(observed_part / observed_part.sum(axis=1, keepdims=True) - hidden.D_obs).max() > 0.01


def test_recovery_beats_what_was_handed_in_and_the_mean():
    data = make_distributions(n_rows=500, n_labels=5, n_features=3, random_state=0)
    D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=0)
    recovered = HidLDL(alpha=1).fit(data.features, D_obs, observed).distributions_
    filled = MeanFill().fit(data.features, D_obs, observed).distributions_
    errors = [score(data.distributions, D)["chebyshev"] for D in (recovered, filled, D_obs)]
    assert errors == sorted(errors)


def test_complete_rows_come_back_as_they_are(hidden):
    model = HidLDL().fit(hidden.X, hidden.D)
    assert np.allclose(model.distributions_, hidden.D, rtol=0, atol=1e-15)
    assert (model.hidden_mass_ == 0).all()


def test_history_tells_the_residuals(hidden):
    model = fitted(hidden)
    assert {name: len(gaps) for name, gaps in model.history_.items()} == {"low_rank": 100, "proportions": 100}
    assert set(fitted(hidden, constraint=False).history_) == {"low_rank"}


def test_stopping_early_is_a_warning_with_the_residual(hidden):
    with pytest.warns(
        ConvergenceWarning, match=r"HidLDL stopped after 3 iterations.*residual is 0\.\d+, tol is 0.001"
    ) as caught:
        model = fitted(hidden, max_iter=3)
    assert not model.converged_
    assert caught[0].filename == __file__


def test_predict_is_sabfgs_trained_on_the_recovered_rows(hidden):
    model = fitted(hidden, random_state=5)
    expected = SABFGS(random_state=5).fit(hidden.X, model.distributions_).predict(hidden.X)
    assert np.allclose(model.predict(hidden.X), expected)


def test_predict_trains_once(hidden, monkeypatch):
    fits = []
    original = SABFGS._fit
    monkeypatch.setattr(SABFGS, "_fit", lambda self, *args: (fits.append(1), original(self, *args)))
    model = fitted(hidden, random_state=0)
    assert fits == []
    model.predict(hidden.X[:3])
    model.predict(hidden.X)
    model.score(hidden.X, hidden.D)
    assert fits == [1]
    assert model.learner_.coef_.shape == (4, 5)


def test_what_becomes_of_the_data_after_fit_does_not_matter(hidden):
    X = hidden.X.copy()
    model = HidLDL(random_state=0).fit(X, hidden.D_obs, observed=hidden.observed)
    X[:], model.distributions_[:] = 0, 0.2
    assert np.array_equal(model.predict(hidden.X), fitted(hidden, random_state=0).predict(hidden.X))


def test_a_copy_from_before_the_first_prediction_predicts_the_same(hidden):
    model = fitted(hidden)
    copy = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert np.array_equal(copy.predict(hidden.X), model.predict(hidden.X))


def test_a_fit_that_failed_does_not_count(hidden):
    model = HidLDL()
    with pytest.raises(ValueError, match="every row of X is the same"):
        model.fit(np.ones_like(hidden.X), hidden.D_obs, observed=hidden.observed)
    for use in (lambda: model.predict(hidden.X), lambda: model.learner_):
        with pytest.raises(NotFittedError):
            use()


def test_warnings_of_the_graph_and_the_learner_point_at_the_caller(hidden):
    with pytest.warns(UserWarning, match="sigma=1 is small") as caught:
        model = HidLDL().fit(1e3 * hidden.X, hidden.D_obs, observed=hidden.observed)
    assert {warning.filename for warning in caught} == {__file__}
    model._follower._learner.max_iter = 1
    with pytest.warns(ConvergenceWarning, match="SABFGS") as caught:
        model.predict(hidden.X)
    assert {warning.filename for warning in caught} == {__file__}


def test_few_rows_need_no_smaller_n_neighbors():
    model = HidLDL().fit([[0.0], [1.0], [2.0]], np.full((3, 5), 0.2))
    assert model.distributions_.shape == (3, 5)


@pytest.mark.parametrize(("name", "paper"), [("SJAFFE", 0.0785), ("Yeast-spo", 0.0403)])
def test_the_papers_figures_are_reached(data_folder, name, paper):
    data = load_dataset(name)
    best = []
    for repetition in range(5):
        D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=repetition)
        models = (HidLDL(2.0**p).fit(data.features, D_obs, observed) for p in range(2, 7))
        best.append(min(score(data.distributions, m.raw_distributions_)["chebyshev"] for m in models))
    assert np.mean(best) < 1.03 * paper


def test_the_choice_of_alpha_shows_progress_on_request(hidden, capsys):
    HidLDL("auto", random_state=0).fit(hidden.X, hidden.D_obs, hidden.observed)
    assert capsys.readouterr().err == ""
    HidLDL("auto", verbose=True, random_state=0).fit(hidden.X, hidden.D_obs, hidden.observed)
    assert capsys.readouterr().err == "choosing parameters, trials: 44 of 44\n"


def test_a_function_hears_of_every_trial(hidden):
    steps = []
    HidLDL("auto", verbose=lambda *step: steps.append(step), random_state=0).fit(
        hidden.X, hidden.D_obs, hidden.observed
    )
    assert [done for done, _, _ in steps] == list(range(1, 45))
    assert {total for _, total, _ in steps} == {44}
    assert steps[-1][2] == "choosing parameters, trials: 44 of 44"
