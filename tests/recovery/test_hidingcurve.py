"""The curve by which shares decide what is handed in."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, softmax

from hidldl import BayesHidLDL, hide_labels
from hidldl.recovery.fitting import fit_latent_model
from hidldl.recovery.fittinghiding import _with_hidden_zeros, fit_hiding, fit_hiding_of_zeros
from hidldl.recovery.hidingcurve import HidingCurve, evidence_of_label_rates, evidence_of_slope
from hidldl.recovery.latent import Parameters

PARAMETERS = Parameters(1000.0, 1.0, 6.0)
GIVEN = {"nu": 1000.0, "ridge": 1.0, "width": 1.0, "standardize": True, "prior_rows": 1.0, "ordered": False}


def simulated(n_rows, seed=0):
    """Rows of the model: a feature that matters, and labels that vary together."""
    rng = np.random.default_rng(seed)
    root, x = 0.7 * rng.normal(size=(6, 3)), rng.normal(size=(n_rows, 1))
    z = x * np.linspace(-1, 1, 6) + rng.standard_normal((n_rows, 3)) @ root.T
    return x, softmax(z + 0.2 * rng.standard_normal((n_rows, 6)), axis=1)


def hidden_by_degree(n_rows, slope, seed=0):
    """The rows, and the slope of the curve that hid their labels, on log(share + 0.01)."""
    X, D = simulated(n_rows, seed)
    D_obs, observed = hide_labels(D, 0.5, random_state=1, mechanism="degree", slope=slope)
    return X, D, D_obs, observed, slope / np.log(D + 0.01).std()


def fitted(X, D_obs, observed):
    return fit_latent_model(X, D_obs, observed, PARAMETERS, max_iter=50, tol=3e-3)


def evidence_against_a_flat_curve(fit):
    flat = HidingCurve.flat(fit.rounds.observed, False)
    return evidence_of_slope(fit.rounds.sums(replace(fit.model.estimates, curve=flat)).mask)


@pytest.fixture
def draws():
    """Draws of four rows, their weights, and what was observed; nothing in the last row."""
    rng = np.random.default_rng(0)
    D = rng.dirichlet(np.ones(5), (4, 30)).transpose(0, 2, 1)
    observed = np.array([[1, 1, 0, 0, 0], [1, 0, 1, 1, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]], dtype=bool)
    shares = np.where(observed, rng.dirichlet(np.ones(5), 4), 0)
    return rng.dirichlet(np.ones(30), 4), D, shares / np.maximum(shares.sum(axis=1, keepdims=True), 1e-9), observed


def test_a_flat_curve_leaves_weights_as_they_are(draws):
    weights, D, shares, observed = draws
    flat = HidingCurve.flat(observed, False)
    weighted = flat.weigh(weights, D, shares, observed)
    assert np.allclose(weighted.weights, weights, rtol=1e-12, atol=0)
    # Ten of the fifteen labels of annotated rows were handed in, and rows with no label at all are not annotated.
    rate = expit(flat.intercept)
    assert rate / (1 - (1 - rate) ** 5) == pytest.approx(2 / 3)
    handed_in = observed[:3].sum(axis=1)
    masks = handed_in * np.log(rate) + (5 - handed_in) * np.log(1 - rate) - np.log(1 - (1 - rate) ** 5)
    assert np.allclose(weighted.evidence, [*masks, 0])


def test_weights_are_multiplied_by_the_probability_of_the_mask(draws):
    weights, D, shares, observed = draws
    curve = HidingCurve(2.0, 0.8, False)
    weighted = curve.weigh(weights, D, shares, observed)
    for i in range(4):
        products = np.ones(30)
        for k in range(30):
            row = np.where(observed[i], D[i, observed[i], k].sum() * shares[i], D[i, :, k])
            handed_in = expit(2.0 + 0.8 * np.log(row + 0.01))
            if observed[i].any():
                something = 1 - (1 - handed_in).prod()
                products[k] = np.where(observed[i], handed_in, 1 - handed_in).prod() / something
        assert np.allclose(weighted.weights[i], weights[i] * products / (weights[i] @ products))
        assert weighted.evidence[i] == pytest.approx(np.log(weights[i] @ products))


def test_a_rising_curve_prefers_draws_in_which_hidden_labels_are_small(draws):
    weights, D, shares, observed = draws
    hidden = np.where(observed[:, :, None], 0, D).sum(axis=1)
    before = (weights * hidden).sum(axis=1)
    after = (HidingCurve(2.0, 2.0, False).weigh(weights, D, shares, observed).weights * hidden).sum(axis=1)
    assert (after[:2] < 0.8 * before[:2]).all()
    assert np.allclose(after[2:], before[2:])


def test_sums_are_slopes_of_the_evidence(draws):
    weights, D, shares, observed = draws
    curve, step = HidingCurve(1.0, 0.7, False), 1e-5
    gradient = curve.weigh(weights, D, shares, observed).sums()[:, 0]
    for position, name in enumerate(("intercept", "slope")):
        up, down = (
            replace(curve, **{name: getattr(curve, name) + side}).weigh(weights, D, shares, observed).evidence.sum()
            for side in (step, -step)
        )
        assert gradient[position] == pytest.approx((up - down) / (2 * step), rel=1e-5)


def test_newton_finds_the_curve_where_shares_are_known():
    _, D = simulated(4000)
    observed = np.random.default_rng(0).random(D.shape) < expit(2.5 + 1.2 * np.log(D + 0.01))
    # Rows with no label at all are not in a table.
    known = observed.any(axis=1)
    D, observed = D[known], observed[known]
    shares = np.where(observed, D, 0)
    shares /= shares.sum(axis=1, keepdims=True)
    curve = HidingCurve.flat(observed, False)
    for _ in range(10):
        curve = curve.improved(curve.weigh(np.ones((len(D), 1)), D[:, :, None], shares, observed).sums())
    assert abs(curve.slope - 1.2) < 4 * curve.slope_error
    assert curve.slope == pytest.approx(1.2, abs=0.1)
    assert curve.intercept == pytest.approx(2.5, abs=0.2)
    assert 0 < curve.slope_error < 0.05


@pytest.mark.parametrize("rate", [0.3, 0.9])
def test_rates_of_labels_explain_masks_as_well_as_they_can(rate):
    rng = np.random.default_rng(0)
    rates = np.linspace(0.1, rate, 5)
    observed = rng.random((2000, 5)) < rates
    observed = observed[observed.any(axis=1)]

    def likelihood(p):
        given = observed * np.log(p) + ~observed * np.log(1 - p)
        return (given.sum(axis=1) - np.log(1 - (1 - p).prod())).mean()

    best = minimize(lambda logits: -likelihood(expit(logits)), np.zeros(5)).fun
    assert evidence_of_label_rates(observed) == pytest.approx(-best, abs=1e-6)
    assert evidence_of_label_rates(observed) >= likelihood(rates)


def test_labels_with_rates_of_their_own_are_no_slope():
    X, D = simulated(600)
    D_obs, observed = hide_labels(D, 0.5, random_state=2, mechanism="label", slope=1.5)
    model = BayesHidLDL(**GIVEN, n_components=1, random_state=0).fit(X, D_obs, observed)
    assert model.hiding_slope_ == 0


def test_odds_are_those_of_the_curve():
    curve = HidingCurve(1.0, 0.5, False)
    shares = np.array([[0.0, 0.2, 0.8]])
    handed_in = expit(1.0 + 0.5 * np.log(shares + 0.01))
    assert np.allclose(curve.odds_of_hiding(shares), (1 - handed_in) / handed_in)
    steep = HidingCurve(0.0, 50.0, False).odds_of_hiding(np.array([0.0, 1.0]))
    assert np.isfinite(steep).all()
    assert (steep > 0).all()


def test_without_a_slope_the_evidence_for_one_is_about_standard_normal():
    values = []
    for seed in range(20):
        X, D = simulated(200, seed)
        values.append(evidence_against_a_flat_curve(fitted(X, *hide_labels(D, 0.5, random_state=seed))))
    assert abs(np.mean(values)) < 3.5 / np.sqrt(20)
    assert 0.6 < np.std(values) < 1.5
    assert np.abs(values).max() < 4


@pytest.mark.parametrize("slope", [1.0, 2.0])
def test_the_slope_that_hid_the_labels_is_found(slope):
    X, _, D_obs, observed, true_slope = hidden_by_degree(600, slope)
    fit = fitted(X, D_obs, observed)
    assert evidence_against_a_flat_curve(fit) > 8
    curve = fit_hiding(fit, tol=3e-3).model.estimates.curve
    assert curve.slope == pytest.approx(true_slope, rel=0.15)
    assert abs(curve.slope - true_slope) < 4 * curve.slope_error


@pytest.mark.parametrize("n_components", [1, 2])
def test_the_bias_of_the_hidden_mass_goes(n_components):
    X, D, D_obs, observed, _ = hidden_by_degree(300, 1.5)
    truth = np.where(observed, 0, D).sum(axis=1)
    bias, errors = {}, {}
    for hiding in ("uniform", "auto", "degree"):
        model = BayesHidLDL(**GIVEN, n_components=n_components, hiding=hiding, random_state=0).fit(X, D_obs, observed)
        bias[hiding] = (model.hidden_mass_ - truth).mean()
        errors[hiding] = np.abs(model.distributions_ - D).mean()
        assert (model.hiding_slope_ == 0) == (hiding == "uniform")
        assert (model.hiding_slope_error_ is None) == (hiding == "uniform")
    assert bias["uniform"] > 0.05
    assert abs(bias["auto"]) < bias["uniform"] / 5
    assert bias["degree"] == pytest.approx(bias["auto"], abs=2e-3)
    assert errors["auto"] < 0.85 * errors["uniform"]


@pytest.mark.parametrize("n_components", [1, 2])
def test_labels_that_are_hidden_alike_have_no_slope(n_components):
    X, D = simulated(300)
    D_obs, observed = hide_labels(D, 0.5, random_state=1)
    alike, found = (
        BayesHidLDL(**GIVEN, n_components=n_components, hiding=hiding, random_state=0).fit(X, D_obs, observed)
        for hiding in ("uniform", "auto")
    )
    assert found.hiding_slope_ == 0
    assert found.hiding_slope_error_ is None
    assert np.array_equal(found.distributions_, alike.distributions_)
    assert np.array_equal(found.kinds_, alike.kinds_)


def test_a_curve_that_is_not_kept_leaves_no_trace(monkeypatch):
    monkeypatch.setattr("hidldl.recovery.fittinghiding.SMALLEST_STEEPNESS", {False: 100.0, True: 100.0})
    X, _, D_obs, observed, _ = hidden_by_degree(300, 1.0)
    alike, refused = (
        BayesHidLDL(**GIVEN, n_components=1, hiding=hiding, random_state=0).fit(X, D_obs, observed)
        for hiding in ("uniform", "auto")
    )
    assert refused.hiding_slope_ == 0
    assert np.allclose(refused.distributions_, alike.distributions_, rtol=0, atol=1e-9)


def test_without_a_mask_all_zeros_that_are_hidden_give_the_same_curve():
    X, _, D_obs, observed, _ = hidden_by_degree(300, 1.0)
    fit = fitted(X, D_obs, observed)
    known, unknown = fit_hiding(fit, tol=3e-3), fit_hiding_of_zeros(fitted(X, D_obs, observed), tol=3e-3)
    assert unknown.model.estimates.curve.slope == pytest.approx(known.model.estimates.curve.slope, rel=0.05)
    # The evidence for a flat curve is what the curve has to beat.
    rounds = _with_hidden_zeros(fitted(X, D_obs, observed)).rounds
    assert rounds.evidence[-1] + rounds.entropy == pytest.approx(fit.history["evidence"][-1], abs=1e-3)


def test_the_history_has_one_evidence_for_each_round():
    X, _, D_obs, observed, _ = hidden_by_degree(300, 1.0)
    before = fitted(X, D_obs, observed)
    after = fit_hiding(before, tol=3e-3, always=True)
    evidence, n_before = after.history["evidence"], len(before.history["evidence"])
    assert len(evidence) == len(after.history["change"])
    assert np.array_equal(evidence[:n_before], before.history["evidence"])
    assert evidence[-1] >= evidence[n_before]
    # In units of the rounds before: the masks cost at most the entropy of a toss per label.
    assert np.abs(evidence[n_before:] - evidence[n_before - 1]).max() < 6


def test_exact_zeros_are_overlooked_too():
    X, D = simulated(300)
    D = np.random.default_rng(0).multinomial(8, D) / 8
    D_obs, observed = hide_labels(D, 0.5, random_state=1, mechanism="degree", slope=1.5)
    truth = np.where(observed, 0, D).sum(axis=1)
    settings = {**GIVEN, "nu": 4.0, "n_components": 1, "random_state": 0}
    alike, found = (BayesHidLDL(**settings, hiding=hiding).fit(X, D_obs, observed) for hiding in ("uniform", "auto"))
    assert found.hiding_slope_ > 0.5
    biases = [abs((model.hidden_mass_ - truth).mean()) for model in (alike, found)]
    assert biases[1] < biases[0] / 2


@pytest.mark.parametrize("decimals", [1, 2, 3])
def test_shares_that_were_rounded_to_zero_are_no_counts(decimals):
    rng = np.random.default_rng(0)
    D = rng.dirichlet(5 * np.array([0.3, 0.25, 0.2, 0.15, 0.1]), 300)
    D_obs, observed = hide_labels(D, 0.3, random_state=1)
    D_obs = D_obs.round(decimals)
    D_obs /= D_obs.sum(axis=1, keepdims=True)
    assert (D_obs[observed] == 0).any()
    model = BayesHidLDL(**{**GIVEN, "nu": 4.0, "n_components": 1}, random_state=0)
    model.fit(np.zeros((300, 1)), D_obs, observed)
    truth = np.where(observed, 0, D).sum(axis=1).mean()
    assert model.hidden_mass_.mean() == pytest.approx(truth, rel=0.15)


def test_intervals_are_wider_where_the_curve_is_steeper():
    flat = HidingCurve.flat(np.array([[True, False], [True, True]]), zeros=False)
    assert flat.least_spread == 1
    assert replace(flat, steepness=2.0).least_spread > replace(flat, steepness=1.0).least_spread > 1
    X, D = simulated(200)
    D_obs, observed = hide_labels(D, 0.5, random_state=1, mechanism="degree", slope=2)
    model = BayesHidLDL(**{**GIVEN, "n_components": 1}, random_state=0, hiding="degree").fit(X, D_obs, observed)
    assert model.spread_ >= model._model.estimates.curve.least_spread > 1
