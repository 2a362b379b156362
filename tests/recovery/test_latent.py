from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from hidldl import hide_labels
from hidldl.recovery.covariances import moments_of_log_ratios, sums_over_pairs
from hidldl.recovery.fitting import fit_latent_model
from hidldl.recovery.hidingcurve import HidingCurve
from hidldl.recovery.kernelmean import Ridge
from hidldl.recovery.latent import TIGHT, Estimates, LatentModel, Parameters, draw_rows, modes, work_blocks
from hidldl.recovery.lostvotes import Votes
from hidldl.recovery.rows import Rows
from hidldl.recovery.zerorates import ZeroRates
from hidldl.selection import renormalised


def simulated(n_rows=3000, n_labels=5, seed=0):
    """Rows of the model itself: one feature that matters, and labels that vary together."""
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(n_labels, 2)) * 0.6
    root -= root.mean(axis=0)
    slope = rng.normal(size=n_labels)
    slope -= slope.mean()
    x = rng.normal(size=(n_rows, 1))
    rest = rng.standard_normal((n_rows, 2)) @ root.T + 0.1 * rng.standard_normal((n_rows, n_labels))
    return x, softmax(x * slope + rest, axis=1), np.cov((rest - rest.mean(axis=1, keepdims=True)).T), slope


def test_em_finds_the_parameters_that_made_the_rows():
    x, D, S, slope = simulated(10_000)
    D_obs, observed = hide_labels(D, 0.5, random_state=0)
    fit = fit_latent_model(x, D_obs, observed, Parameters(1e5, 1e-3, 0.1), max_iter=200, tol=1e-4)
    assert fit.converged
    assert np.allclose(fit.model.estimates.coef[0, :5], slope, atol=0.03)
    assert np.allclose(fit.model.estimates.covariance, S, atol=0.03)


def test_without_hidden_labels_and_without_features_it_is_the_covariance_of_the_log_shares():
    _, D, _, _ = simulated(400)
    logs = np.log(D) - np.log(D).mean(axis=1, keepdims=True)
    none = np.empty((400, 0))
    fit = fit_latent_model(none, D, np.ones_like(D, dtype=bool), Parameters(1e8, 1.0, 1e-9), max_iter=300, tol=1e-8)
    # Means leave their own row out, which makes each residual larger by n / (n - 1) and each scale too.
    assert np.allclose(fit.model.estimates.covariance, np.cov(logs.T), rtol=0.01, atol=1e-4)
    assert np.allclose(fit.model.estimates.intercept[:5], logs.mean(axis=0), atol=1e-4)


def test_a_rows_prior_mean_is_the_prediction_of_the_other_rows():
    x, D, _, _ = simulated(60)
    logs = np.log(D) - np.log(D).mean(axis=1, keepdims=True)
    everything = np.ones_like(D, dtype=bool)
    fit = fit_latent_model(x, D, everything, Parameters(1e8, 2.0, 1.0), max_iter=500, tol=1e-9)
    for i in (0, 7):
        others = np.arange(60) != i
        center, target = x.mean(axis=0), logs[others]
        # Centred at all rows, as the hat matrix is; the intercept is not penalised.
        design = np.column_stack([np.ones(59), x[others] - center])
        coefficients = np.linalg.solve(design.T @ design + np.diag([0, 2.0]), design.T @ target)
        predicted = np.concatenate([[1.0], x[i] - center]) @ coefficients
        assert np.allclose(fit.rows.mean[i], predicted, atol=1e-4)


@pytest.mark.parametrize("rate", [0.5, 0.8])
def test_leaping_ends_where_walking_does_in_fewer_rounds(rate, monkeypatch):
    x, D, _, _ = simulated(500)
    D_obs, observed = hide_labels(D, rate, random_state=0)
    parameters = Parameters(1000.0, 1.0, 2.0)
    leaping = fit_latent_model(x, D_obs, observed, parameters, max_iter=2000, tol=1e-6)
    monkeypatch.setattr("hidldl.recovery.fitting.leap", lambda first, second, third, longest: third)
    walking = fit_latent_model(x, D_obs, observed, parameters, max_iter=2000, tol=1e-6)
    assert leaping.converged
    assert walking.converged
    assert len(leaping.history["change"]) < len(walking.history["change"]) / 2
    assert np.allclose(leaping.model.estimates.covariance, walking.model.estimates.covariance, atol=1e-3)
    assert leaping.history["evidence"][-1] == pytest.approx(walking.history["evidence"][-1], abs=1e-3)


def test_the_result_does_not_depend_on_how_blocks_are_mapped():
    x, D, _, _ = simulated(5000)
    D_obs, observed = hide_labels(D, 0.5, random_state=0)
    alone = fit_latent_model(x, D_obs, observed, Parameters(100.0, 1.0, 1.0), max_iter=20, tol=1e-3)
    with ThreadPoolExecutor(3) as pool:
        together = fit_latent_model(
            x, D_obs, observed, Parameters(100.0, 1.0, 1.0), max_iter=20, tol=1e-3, mapper=pool.map
        )
    assert np.array_equal(alone.rows.mean, together.rows.mean)
    assert np.array_equal(alone.model.estimates.covariance, together.model.estimates.covariance)


def test_labels_that_are_permuted_give_permuted_estimates():
    x, D, _, _ = simulated(300)
    D_obs, observed = hide_labels(D, 0.5, random_state=0)
    labels, rows = np.array([3, 0, 4, 1, 2]), np.random.default_rng(0).permutation(300)
    parameters = Parameters(500.0, 1.0, 3.0)
    straight = fit_latent_model(x, D_obs, observed, parameters, max_iter=50, tol=1e-4)
    permuted = fit_latent_model(
        x[rows], D_obs[rows][:, labels], observed[rows][:, labels], parameters, max_iter=50, tol=1e-4
    )
    assert np.allclose(
        permuted.model.estimates.covariance, straight.model.estimates.covariance[np.ix_(labels, labels)], atol=1e-8
    )
    assert np.allclose(permuted.rows.mean, straight.rows.mean[rows][:, labels], atol=1e-8)


def test_log_ratios_of_pairs_tell_mean_and_covariance_whatever_is_hidden():
    _, D, _, _ = simulated(20_000)
    logs = np.log(D) - np.log(D).mean(axis=1, keepdims=True)
    observed = np.random.default_rng(0).random(D.shape) < 0.6
    observed[:, 0] = True
    mean, S = moments_of_log_ratios(sums_over_pairs(renormalised(D, observed), observed, 1e9), 1e9)
    assert np.allclose(mean, logs.mean(axis=0), atol=0.03)
    covariance = np.cov(logs.T)
    isotropic = np.trace(covariance) / 4 * (np.eye(5) - 1 / 5)
    assert np.allclose(S, (covariance + isotropic) / 2, atol=0.05)


LABELS = 4


@pytest.fixture
def two_kinds():
    """A model of two kinds of rows, and rows with some of their labels."""
    rng = np.random.default_rng(0)
    roots, features = rng.normal(size=(2, LABELS, LABELS)), rng.normal(size=(9, 2))
    intercept = np.r_[rng.normal(size=LABELS), 0.7, 0.3]
    estimates = Estimates(
        roots @ roots.transpose(0, 2, 1), rng.normal(size=(2, LABELS)), intercept, rng.normal(size=(2, LABELS + 2))
    )
    model = LatentModel(Parameters(30.0, 1.0, 1.0), estimates, Ridge.of(rng.normal(size=(50, 2)), 1.0))
    observed = rng.random((9, LABELS)) < 0.6
    observed[:, 0], observed[-1] = True, False
    shares = np.where(observed, rng.dirichlet(np.ones(LABELS), 9), 0)
    shares[:-1] /= shares[:-1].sum(axis=1, keepdims=True)
    return model, features, shares, observed


def test_the_covariance_is_that_within_kinds_and_that_between_them(two_kinds):
    estimates = two_kinds[0].estimates
    assert np.allclose(estimates.shares_of_kinds, [0.7, 0.3])
    center = 0.7 * estimates.offsets[0] + 0.3 * estimates.offsets[1]
    total = np.zeros((LABELS, LABELS))
    for share, S, offset in zip((0.7, 0.3), estimates.covariances, estimates.offsets, strict=True):
        total += share * (S + np.outer(offset - center, offset - center))
    assert np.allclose(estimates.covariance, total)


def test_kinds_follow_the_regression_and_a_tenth_of_all_rows(two_kinds):
    estimates = two_kinds[0].estimates
    kinds = estimates.kinds(np.array([[1.0, 0.0], [2.0, 6.0], [-1.0, 3.0]]))
    expected = 0.9 * np.array([[1, 0], [0.25, 0.75], [0, 1]]) + 0.1 * np.array([0.7, 0.3])
    assert np.allclose(kinds, expected, atol=1e-8)
    turned = estimates.of_kinds(np.array([1, 0]))
    assert np.allclose(turned.kinds(np.array([[0.0, 1.0]])), expected[:1, ::-1], atol=1e-8)
    assert np.allclose(turned.covariance, estimates.covariance)
    alone = estimates.of_kinds(np.array([1]))
    assert np.array_equal(alone.kinds(np.zeros((3, 1))), np.ones((3, 1)))
    assert np.array_equal(alone.coef, estimates.coef[:, [0, 1, 2, 3, 5]])


def test_the_prior_of_a_row_is_what_its_features_say(two_kinds):
    model, features, shares, observed = two_kinds
    rows = model.prior(features, shares, observed, np.arange(1.0, 10))
    fitted = model.estimates.intercept + (features - model.regression.center) @ model.estimates.coef
    assert np.allclose(rows.mean, fitted[:, :LABELS])
    assert np.allclose(rows.kinds, model.estimates.kinds(fitted[:, LABELS:]))
    assert np.allclose(rows.kinds.sum(axis=1), 1)
    assert np.allclose(rows.nu, 30 * np.arange(1.0, 10))
    assert np.allclose(rows.scale, 1 + model.regression.leverage(features))
    assert np.array_equal(rows.presence, observed)
    assert not rows.weights.any()


def test_kinds_are_weighed_by_their_evidence_and_slopes_by_the_kinds(two_kinds):
    model, features, shares, observed = two_kinds
    prior = model.prior(features, shares, observed)
    prior.kinds[0] = [1 - 1e-9, 1e-9]  # so rare that it moves no estimate
    alone, slopes = [], []
    for k in range(2):
        part, slope = replace(prior, weights=np.zeros((1, 9, LABELS))), np.zeros((1, LABELS, LABELS))
        alone.append(modes(model.estimates.of_kinds(np.array([k])), part, TIGHT, slope)[0])
        slopes.append(slope[0])
    evidence = np.array(alone).T
    rows = replace(prior, weights=np.zeros((2, 9, LABELS)), kinds=prior.kinds.copy())
    found = np.zeros((2, LABELS, LABELS))
    total, kinds = modes(model.estimates, rows, TIGHT, found)
    logs = np.log(prior.kinds) + evidence
    assert np.allclose(total, logsumexp(logs, axis=1))
    assert np.allclose(kinds, softmax(logs, axis=1))
    assert kinds[0, 1] < 1e-3
    # Each row adds its own slope as often as it is of the kind.
    expected = np.zeros_like(found)
    for k in range(2):
        for i in range(1 if k else 0, 9):
            own = replace(rows.part(slice(i, i + 1)), weights=np.zeros((1, 1, LABELS)), kinds=np.ones((1, 1)))
            slope = np.zeros((1, LABELS, LABELS))
            modes(model.estimates.of_kinds(np.array([k])), own, TIGHT, slope)
            expected[k] += kinds[i, k] * slope[0]
    assert np.allclose(found, expected, atol=1e-6)
    assert np.allclose(model.condition(prior), total)
    assert np.allclose(prior.kinds, kinds)


def test_parts_that_do_not_fit_together_are_refused(two_kinds):
    model = two_kinds[0]
    model.check()
    replace(model, estimates=model.estimates.of_kinds(np.array([0]))).check()
    rates = ZeroRates(np.full(LABELS, 0.2), np.zeros(LABELS))
    replace(model, estimates=replace(model.estimates, zeros=rates, curve=HidingCurve(0.0, 1.0, False))).check()
    estimates, regression = model.estimates, model.regression
    wrong = [{"offsets": estimates.offsets[0]}, {"offsets": estimates.offsets[:1]}, {"offsets": np.empty((0, LABELS))}]
    wrong += [{"covariances": estimates.covariances[:, 1:]}, {"intercept": estimates.intercept[1:]}]
    wrong += [
        {"coef": estimates.coef[1:]},
        {"coef": estimates.coef * np.nan},
        {"intercept": estimates.intercept + np.inf},
    ]
    wrong += [{"curve": HidingCurve(np.nan, 1.0, False)}, {"curve": HidingCurve(0.0, np.inf, False)}]
    wrong += [{"zeros": ZeroRates(rates.rates[1:], rates.errors[1:])}]
    broken = [replace(model, estimates=replace(estimates, **part)) for part in wrong]
    for part in ({"gram": regression.gram[1:]}, {"factor": regression.factor[:, 1:]}, {"center": np.zeros(3)}):
        broken.append(replace(model, regression=replace(regression, **part)))
    broken.append(replace(model, estimates=estimates.of_kinds(np.empty(0, dtype=np.int64))))
    for each in broken:
        with pytest.raises(ValueError, match="the parts of the model do not fit together"):
            each.check()


def test_draws_belong_to_kinds_as_often_as_these_are_likely(two_kinds):
    model, features, shares, observed = two_kinds
    rows = model.prior(features, shares, observed)
    rows.kinds[:, 0] = np.linspace(0, 1, 9)
    rows.kinds[:, 1] = 1 - rows.kinds[:, 0]
    for n_draws in (8, 64):
        normals, noise = np.random.default_rng(0).standard_normal((2, 1, LABELS, n_draws))
        _, weights, kinds = draw_rows(model.estimates, rows, normals, noise)
        n_first = (kinds == 0).sum(axis=1)
        assert (n_first % 2 == 0).all()
        assert (np.abs(n_first - n_draws * rows.kinds[:, 0]) <= 1 + 1e-9).all()
        both = (n_first > 0) & (n_first < n_draws)
        assert np.allclose(np.where(kinds == 0, weights, 0).sum(axis=1)[both], rows.kinds[both, 0])
        assert np.allclose(weights.sum(axis=1), 1)


def test_what_is_drawn_weighs_the_same_without_kinds_curves_and_votes(two_kinds):
    model = two_kinds[0]
    alone = replace(model, estimates=model.estimates.of_kinds(np.array([0])))

    def even(each, **parts):
        return replace(each, estimates=replace(each.estimates, **parts)).has_even_draws

    rates = ZeroRates(np.full(LABELS, 0.2), np.zeros(LABELS))
    assert even(alone)
    assert even(alone, zeros=rates)
    assert not even(model)
    assert not even(alone, curve=HidingCurve(0.0, 1.0, False))
    assert not even(alone, votes=Votes(10))
    assert not alone.needs_zeros
    for zeros in (True, False):
        curved = replace(alone, estimates=replace(alone.estimates, curve=HidingCurve(0.0, 1.0, zeros)))
        assert curved.needs_zeros is zeros
    # A row that weighs half as much has half of the votes, all of which count if they are independent.
    nu = np.array([0.5, 1.0]) * alone.parameters.nu
    assert np.allclose(alone.exponents(rates, nu), nu)
    assert np.allclose(alone.with_votes(Votes(10)).exponents(rates, nu), [5, 10])
    assert np.allclose(alone.with_votes(Votes(10, independent=0.5)).exponents(rates, nu), [2.5, 5])


def test_zeros_in_doubt_are_true_or_hidden_in_masks_that_are_drawn():
    observed = np.array([[True, True, False, False]])
    presence = np.array([[1.0, 1.0, 0.3, 0.0]])
    shares, weights = np.array([[0.5, 0.5, 0, 0]]), np.ones((1, 1, 4))
    one = np.ones(1)
    rows = Rows(shares, observed, one, np.zeros((1, 4)), one, np.ones((1, 1)), weights, presence)
    assert rows.has_doubts
    assert np.allclose(rows.hidden_probability, [[0, 0, 0.7, 1]])
    assert np.allclose(replace(rows, overlooked=presence / 2).hidden_probability, presence / 2)
    lots = np.broadcast_to([0.2, 0.3, 0.4], (1, 4, 3))
    assert [mask[0].tolist() for mask in rows.drawn_masks(lots)] == [[True, True, True, False]] + 2 * [
        [True, True, False, False]
    ]
    known = rows.with_mask(observed)
    assert not known.has_doubts
    assert np.array_equal(known.presence, observed)
    assert np.array_equal(known.weights[0], observed)
    other = np.array([[True, False, False, False]])
    chosen = rows.chosen(np.array([0]), other * 1.0, other)
    assert np.allclose(chosen.presence, [[1, 0, 0.3, 0]])


@pytest.mark.parametrize(("n_labels", "size"), [(2, 1024), (64, 256), (100, 67), (127, 32), (128, 512), (500, 512)])
def test_blocks_are_smaller_the_more_labels_there_are(n_labels, size):
    blocks = work_blocks(2000, n_labels)
    assert [block.start for block in blocks] == list(range(0, 2000, size))
    assert blocks[-1].stop == 2000


@pytest.mark.parametrize(("n_labels", "size"), [(20, 1024), (64, 256), (128, 512), (1000, 65), (10**6, 1)])
def test_blocks_are_smaller_where_draws_would_fill_the_memory(n_labels, size):
    assert work_blocks(2000, n_labels, 64)[0].stop == size
