"""Zeros of which nobody knows whether they are hidden: chances, rates, probabilities, and users' journeys."""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, softmax

from hidldl import BayesHidLDL, MeanFill, hide_labels, infer_observed, load_model, make_distributions, save_model, score
from hidldl.recovery import inferring
from hidldl.recovery.fitting import fit_latent_model
from hidldl.recovery.hidingcurve import HidingCurve
from hidldl.recovery.latent import Parameters
from hidldl.recovery.posterior import Draws, weighted_shares
from hidldl.recovery.unknownzeros import _predicted_by_curve
from hidldl.recovery.zerochances import chances_of_zero
from hidldl.recovery.zerorates import ZeroRates

RATE = 0.4
KNOWN = {"ridge": 1.0, "width": 1.0, "standardize": True, "prior_rows": 1.0, "n_components": 1, "random_state": 0}


def votes(n_rows=500, n_labels=5, n_votes=10, seed=0):
    """Shares of a few votes: small expectations come out as true zeros."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 3))
    z = X @ rng.standard_normal((3, n_labels)) + rng.standard_normal((n_rows, n_labels))
    return X, np.array([rng.multinomial(n_votes, p) for p in softmax(z, axis=1)]) / n_votes


@pytest.fixture(scope="module")
def table():
    X, D = votes()
    D_obs, observed = hide_labels(D, RATE, random_state=0)
    return X, D, D_obs, observed


@pytest.fixture(scope="module")
def unaware(table):
    X, _, D_obs, _ = table
    return BayesHidLDL(zeros="unknown", **KNOWN).fit(X, D_obs)


def without_true_zeros():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 3))
    return X, softmax(X @ rng.standard_normal((3, 5)) + 0.3 * rng.standard_normal((300, 5)), axis=1)


@pytest.fixture(scope="module")
def by_share():
    """No true zeros, and small shares are overlooked more than large ones."""
    X, D = without_true_zeros()
    D_obs, observed = hide_labels(D, 0.5, random_state=0, mechanism="degree", slope=1.5)
    return X, D, D_obs, observed


@pytest.fixture(scope="module")
def found(by_share):
    X, _, D_obs, _ = by_share
    return BayesHidLDL(zeros="unknown", **KNOWN).fit(X, D_obs)


@pytest.fixture(scope="module")
def model_and_rows():
    X, D = votes(200)
    D_obs, observed = hide_labels(D, RATE, random_state=0)
    fit = fit_latent_model(X, D_obs, observed, Parameters(8.0, 10.0, 5.0), max_iter=60, tol=3e-3)
    return fit.model, fit.rows


class TestChances:
    def test_of_a_hidden_label_is_the_mean_over_the_posterior(self, model_and_rows):
        model, rows = model_and_rows
        chances, mass = chances_of_zero(model.estimates, rows, rows.nu)
        draws = Draws.paired(np.random.default_rng(0), len(rows.mean), 4000, 5)
        D, _ = weighted_shares(model, rows, slice(None), draws, None, np.random.default_rng(0))
        present = np.where(rows.observed[:, :, None], D, 0).sum(axis=1, keepdims=True)
        by_draws = ((present / (present + D)) ** rows.nu[:, None, None]).mean(axis=2)
        hidden = ~rows.observed
        assert np.abs(chances - by_draws)[hidden].max() < 0.12
        assert np.abs(chances - by_draws)[hidden].mean() < 0.02
        assert np.abs(mass - present[:, 0].mean(axis=1)).mean() < 0.1

    def test_of_an_observed_label_are_those_without_its_own_share(self, model_and_rows):
        model, rows = model_and_rows
        enough = np.flatnonzero(rows.observed.sum(axis=1) >= 3)
        rows = rows.chosen(enough, rows.shares[enough], rows.observed[enough])
        chances, _ = chances_of_zero(model.estimates, rows, rows.nu)
        at, label = np.arange(len(enough)), rows.observed.argmax(axis=1)
        left = rows.observed.copy()
        left[at, label] = False
        shares = np.where(left, rows.shares, 0)
        has_others = shares.sum(axis=1) > 0
        shares /= np.where(has_others, shares.sum(axis=1), 1)[:, None]
        without = rows.chosen(at, shares, left)
        model.condition(without)
        expected, _ = chances_of_zero(model.estimates, without, without.nu)
        gap = np.abs(chances[at, label] - expected[at, label])[has_others]
        assert np.median(gap) < 0.03

    def test_are_between_0_and_1(self, model_and_rows):
        model, rows = model_and_rows
        for exponent in (1e-3, 1.0, 1e9):
            chances, mass = chances_of_zero(model.estimates, rows, np.full(len(rows.mean), exponent))
            assert (chances >= 0).all() and (chances <= 1 + 1e-12).all()
            assert (mass > 0).all() and (mass <= 1).all()


class TestRates:
    def test_of_zeros_that_are_all_hidden_are_their_share(self):
        rng = np.random.default_rng(0)
        unknown = rng.random((4000, 3)) < [0.2, 0.5, 0.7]
        rates = ZeroRates.first(3, None, None)
        for _ in range(50):
            rates = rates.improved(np.zeros((4000, 3)), unknown, ~unknown)
        # Rates lean on each other.
        assert np.all(np.diff(rates.rates) > 0.1) and abs(rates.rates.mean() - unknown.mean()) < 1e-9
        assert np.all((rates.errors > 0) & (rates.errors < 0.05))

    def test_say_nothing_where_zeros_come_by_themselves(self):
        unknown = np.random.default_rng(0).random((4000, 3)) < 0.5
        rates = ZeroRates.first(3, None, None)
        for _ in range(500):
            rates = rates.improved(np.full((4000, 3), 0.5), unknown, ~unknown)
        assert (rates.rates < 0.05).all()

    def test_that_are_given_stay(self):
        given = ZeroRates.first(3, np.array([0.1, 0.2, 0.3]), None)
        unknown = np.zeros((10, 3), dtype=bool)
        assert given.improved(np.zeros((10, 3)), ~unknown, unknown) is given

    def test_count_rows_whose_mask_is_known(self):
        observed = np.random.default_rng(0).random((1000, 3)) < 0.7
        nothing = np.zeros((1000, 3), dtype=bool)
        rates = ZeroRates.first(3, None, None).improved(np.zeros((1000, 3)), nothing, observed)
        assert np.allclose(rates.rates.mean(), 1 - observed.mean())


class TestRecovery:
    def test_is_better_than_to_take_all_zeros_as_hidden_or_as_true(self, table, unaware):
        X, D, D_obs, observed = table
        errors = {
            zeros: score(D, BayesHidLDL(zeros=zeros, **KNOWN).fit(X, D_obs).distributions_)["chebyshev"]
            for zeros in ("hidden", "true")
        }
        known = BayesHidLDL(**KNOWN).fit(X, D_obs, observed=observed)
        error = score(D, unaware.distributions_)["chebyshev"]
        assert error < 0.9 * min(errors.values())
        assert error < 1.5 * score(D, known.distributions_)["chebyshev"]

    def test_finds_the_rate_and_the_zeros(self, table, unaware):
        _, D, D_obs, observed = table
        assert abs(np.mean(unaware.hidden_rate_) - RATE) < 0.1
        assert np.all((unaware.hidden_rate_error_ > 0) & (unaware.hidden_rate_error_ < 0.2))
        zero = D_obs == 0
        probability = unaware.hidden_probability_
        assert (probability[~zero] == 0).all() and (probability[zero] > 0).all() and (probability <= 1).all()
        overlooked, absent = zero & (D > 0.2), zero & observed
        assert probability[overlooked].mean() > probability[absent].mean() + 0.15

    def test_keeps_proportions(self, table, unaware):
        _, _, D_obs, _ = table
        D = unaware.distributions_
        assert (D >= 0).all() and np.allclose(D.sum(axis=1), 1, rtol=0, atol=1e-9)
        kept = np.where(D_obs > 0, D, 0)
        assert np.allclose(kept / kept.sum(axis=1, keepdims=True), D_obs, rtol=0, atol=1e-12)

    def test_does_not_depend_on_the_number_of_threads(self, table):
        X, _, D_obs, _ = (part[:100] for part in table)
        alone, threaded = (BayesHidLDL(zeros="unknown", **KNOWN, n_jobs=n_jobs).fit(X, D_obs) for n_jobs in (1, 2))
        assert np.array_equal(threaded.distributions_, alone.distributions_)
        assert np.array_equal(threaded.hidden_probability_, alone.hidden_probability_)

    def test_without_true_zeros_is_that_of_hidden_zeros(self):
        X, D = without_true_zeros()
        D_obs, observed = hide_labels(D, RATE, random_state=0)
        known = BayesHidLDL(**KNOWN, hiding="uniform").fit(X, D_obs, observed=observed)
        model = BayesHidLDL(zeros="unknown", **KNOWN).fit(X, D_obs)
        assert score(D, model.distributions_)["chebyshev"] < 1.02 * score(D, known.distributions_)["chebyshev"]
        assert abs(np.mean(model.hidden_rate_) - (1 - observed.mean())) < 0.05

    def test_doubts_no_zero_where_small_shares_are_never_0(self):
        """Rows differ much, so that shares below the smallest seem possible; which cells are 0 says otherwise."""
        rng = np.random.default_rng(0)
        X = rng.standard_normal((300, 2))
        D = softmax(X @ rng.standard_normal((2, 5)) + 3 * rng.standard_normal((300, 5)), axis=1).clip(min=0.01)
        D_obs, _ = hide_labels(D / D.sum(axis=1, keepdims=True), RATE, random_state=0)
        model = BayesHidLDL(nu=16.0, zeros="unknown", **(KNOWN | {"ridge": 10.0})).fit(X, D_obs)
        assert (model.hidden_probability_[D_obs == 0] > 0.98).all()

    def test_takes_exact_shares_not_for_those_of_few_votes(self):
        """Small shares are cut off to 0; the rest are no multiples of anything."""
        data = make_distributions(n_rows=300, n_labels=6, zeros=0.3, random_state=0)
        D_obs, _ = hide_labels(data.distributions, RATE, random_state=0)
        given = KNOWN | {"ridge": 0.1, "width": 0.3}
        hidden, unknown = (BayesHidLDL(zeros=z, **given).fit(data.features, D_obs) for z in ("hidden", "unknown"))
        errors = [score(data.distributions, each.distributions_)["chebyshev"] for each in (hidden, unknown)]
        assert errors[1] <= 1.05 * errors[0]

    def test_of_a_table_without_zeros_or_with_a_mask_is_what_it_was(self, table):
        X, _, D_obs, observed = table
        complete = without_true_zeros()[1][: len(X)]
        for rows, mask in ((D_obs, observed), (complete, None)):
            results = [
                BayesHidLDL(**KNOWN, nu=10.0, zeros=zeros).fit(X[: len(rows)], rows, observed=mask).distributions_
                for zeros in ("auto", "unknown", "hidden", "true")
            ]
            assert all(np.array_equal(result, results[0]) for result in results)

    def test_warns_what_was_inferred(self, table):
        X, _, D_obs, _ = (part[:100] for part in table)
        with pytest.warns(UserWarning, match=r"about [\d,]+ of [\d,]+ zeros are labels that were overlooked"):
            BayesHidLDL(**KNOWN, nu=6.0).fit(X, D_obs)

    def test_of_several_kinds(self, table):
        X, D, D_obs, _ = (part[:100] for part in table)
        model = BayesHidLDL(**KNOWN | {"n_components": 2}, nu=6.0, zeros="unknown").fit(X, D_obs)
        assert np.allclose(model.distributions_.sum(axis=1), 1) and np.isfinite(model.hidden_probability_).all()
        assert score(D, model.distributions_)["chebyshev"] < 0.35

    def test_of_ten_rows(self, table):
        X, _, D_obs, _ = table
        model = BayesHidLDL(zeros="unknown", random_state=0).fit(X[:10], D_obs[:10])
        assert np.allclose(model.distributions_.sum(axis=1), 1)


class TestWhatUsersKnow:
    def test_rates(self, table):
        X, _, D_obs, _ = (part[:100] for part in table)
        model = BayesHidLDL(**KNOWN, nu=6.0, zeros="unknown", hidden_rate=0.2).fit(X, D_obs)
        assert np.all(model.hidden_rate_ == 0.2) and np.all(model.hidden_rate_error_ == 0)
        by_label = BayesHidLDL(**KNOWN, nu=6.0, zeros="unknown", hidden_rate=[0.1, 0.2, 0.3, 0.4, 0.5]).fit(X, D_obs)
        assert np.allclose(by_label.hidden_rate_, [0.1, 0.2, 0.3, 0.4, 0.5])

    @pytest.mark.parametrize(
        ("rate", "message"),
        [
            (0, 'say zeros="true"'),
            (1.0, "below 1"),
            (-0.1, "below 1"),
            ("often", "below 1"),
            ([0.1, 0.2], "2 rates but D_obs has 5 labels"),
        ],
    )
    def test_wrong_rates_are_refused(self, table, rate, message):
        X, _, D_obs, _ = table
        with pytest.raises(ValueError, match=message):
            BayesHidLDL(hidden_rate=rate).fit(X, D_obs)

    def test_audited_rows(self, table):
        X, _, D_obs, observed = table
        mask = np.where(D_obs > 0, 1.0, np.nan)
        mask[:100] = observed[:100]
        model = BayesHidLDL(**KNOWN, nu=6.0).fit(X, D_obs, observed=mask)
        assert np.array_equal(model.hidden_probability_[:100], 1.0 - observed[:100])
        inside = model.hidden_probability_[100:][D_obs[100:] == 0]
        assert ((inside > 0) & (inside < 1)).any()

    def test_masks_with_three_values_in_any_container(self, table):
        X, _, D_obs, _ = (part[:100] for part in table)
        floats = np.where(D_obs > 0, 1.0, np.nan)
        objects = np.where(D_obs > 0, True, None)
        nullable = pd.DataFrame(objects).astype("boolean")
        results = [
            BayesHidLDL(**KNOWN, nu=6.0, zeros="unknown").fit(X, D_obs, observed=mask).distributions_
            for mask in (floats, objects, nullable)
        ]
        assert all(np.array_equal(result, results[0]) for result in results)

    def test_blanks_are_hidden_and_zeros_unknown(self, table):
        X, _, D_obs, observed = (part[:150] for part in table)
        with_blanks = D_obs.copy()
        with_blanks[:50][~observed[:50]] = np.nan
        model = BayesHidLDL(**KNOWN, nu=6.0, zeros="unknown").fit(X, with_blanks)
        assert (model.hidden_probability_[:50][~observed[:50]] == 1).all()
        assert (model.hidden_probability_[50:][D_obs[50:] == 0] < 1).any()


class TestNewRows:
    def test_get_what_the_rows_of_fit_get(self, table, unaware):
        X, _, D_obs, _ = table
        again = unaware.predict(X, D_obs)
        assert np.abs(again - unaware.distributions_).mean() < 0.02
        assert np.abs(unaware.predict_hidden(X, D_obs) - unaware.hidden_probability_).mean() < 0.1

    def test_do_not_depend_on_their_neighbours(self, table, unaware):
        X, _, D_obs, _ = table
        together, alone = unaware.predict(X, D_obs)[:7], unaware.predict(X[:7], D_obs[:7])
        assert np.allclose(together, alone, rtol=0, atol=1e-9)

    def test_of_a_saved_model(self, table, unaware, tmp_path):
        X, _, D_obs, _ = table
        save_model(tmp_path / "model.npz", unaware)
        loaded, _ = load_model(tmp_path / "model.npz")
        new = X[:60], D_obs[:60]
        assert np.array_equal(loaded.predict(*new), unaware.predict(*new))
        assert np.array_equal(loaded.hidden_rate_, unaware.hidden_rate_)
        assert np.array_equal(loaded.predict_hidden(*new), unaware.predict_hidden(*new))

    def test_without_labels(self, table, unaware):
        X, _, D_obs, _ = table
        blank = np.full_like(D_obs[:3], np.nan)
        assert np.allclose(unaware.predict(X[:3], blank).sum(axis=1), 1)
        assert (unaware.predict_hidden(X[:3], blank) == 1).all()

    def test_with_unknown_zeros_are_refused_by_a_model_that_cannot_tell(self, table):
        X, _, D_obs, observed = table
        model = BayesHidLDL(**KNOWN, nu=6.0).fit(X, D_obs, observed=observed)
        with pytest.raises(ValueError, match="is a zero that may be hidden or true"):
            model.predict(X, D_obs, observed=np.where(D_obs > 0, 1.0, np.nan))


class TestHidingByShare:
    """Small shares that are overlooked make the same pattern of zeros as small shares that come out as 0."""

    @pytest.mark.parametrize("slope", [0.0, 1.5])
    def test_predicts_zeros_by_the_shares_of_rows_without_the_cell(self, slope):
        X, D = without_true_zeros()
        observed = np.ones(D.shape, dtype=bool)
        observed[:, 0] = False
        shares = np.where(observed, D, 0) / (1 - D[:, :1])
        fit = fit_latent_model(X, shares, observed, Parameters(1000.0, 1.0, 5.0), max_iter=60, tol=3e-3)
        model, curve = fit.model, HidingCurve(2.0, slope, zeros=False)
        by_curve = replace(model, estimates=replace(model.estimates, curve=curve))
        predicted = _predicted_by_curve(by_curve, fit.rows, np.zeros(len(X), dtype=int))
        draws = Draws.paired(np.random.default_rng(0), len(X), 2000, 5)
        rows, _ = model.draw(fit.rows, draws.normals, draws.noise)
        # The other labels were handed in, and that says something about the first one too.
        handed_in = expit(2.0 + slope * np.log(rows.transpose(0, 2, 1) + 0.01))
        weights = handed_in[:, :, 1:].prod(axis=2) / (1 - (1 - handed_in).prod(axis=2))
        expected = (weights * (1 - handed_in[:, :, 0])).sum(axis=1) / weights.sum(axis=1)
        assert np.abs(predicted - expected).max() < 0.05

    def test_is_found_without_a_mask(self, by_share, found):
        X, D, D_obs, observed = by_share
        alike = BayesHidLDL(zeros="unknown", hiding="uniform", **KNOWN).fit(X, D_obs)
        known = BayesHidLDL(**KNOWN).fit(X, D_obs, observed=observed)
        errors = [score(D, model.distributions_)["chebyshev"] for model in (found, alike, known)]
        assert errors[0] < 0.9 * errors[1]
        assert errors[0] < 1.05 * errors[2]
        assert found.hiding_slope_ == pytest.approx(1.5 / np.log(D + 0.01).std(), rel=0.25)
        assert found.hiding_slope_error_ > 0
        assert alike.hiding_slope_ == 0
        assert (found.hidden_probability_[~observed] == 1).all()

    def test_is_kept_for_new_rows_and_in_files(self, by_share, found, tmp_path):
        X, D, D_obs, _ = by_share
        assert np.abs(found.predict(X, D_obs) - found.distributions_).mean() < 0.02
        assert np.array_equal(found.predict_hidden(X, D_obs), found.hidden_probability_)
        save_model(tmp_path / "model.npz", found)
        loaded, _ = load_model(tmp_path / "model.npz")
        assert np.array_equal(loaded.predict(X, D_obs), found.predict(X, D_obs))
        low, high, *_ = found.intervals(0.9)
        hidden = D_obs == 0
        assert ((low <= D) & (high >= D))[hidden].mean() > 0.65
        assert np.allclose(found.sample(2, random_state=0).sum(axis=2), 1)

    def test_is_not_found_where_labels_are_hidden_alike(self, unaware):
        X, D = without_true_zeros()
        D_obs, _ = hide_labels(D, 0.5, random_state=0)
        alike, found = (
            BayesHidLDL(zeros="unknown", hiding=hiding, **KNOWN, nu=1000.0).fit(X, D_obs)
            for hiding in ("uniform", "auto")
        )
        assert found.hiding_slope_ == unaware.hiding_slope_ == 0
        assert np.array_equal(found.distributions_, alike.distributions_)

    def test_is_not_asked_for_where_rates_or_masks_are_known(self, by_share):
        X, _, D_obs, observed = by_share
        mask = np.where(D_obs > 0, 1.0, np.nan)
        mask[:50] = observed[:50]
        for rate, given in ((0.5, None), ("auto", mask)):
            model = BayesHidLDL(zeros="unknown", **KNOWN, nu=1000.0, hidden_rate=rate).fit(X, D_obs, observed=given)
            assert model.hiding_slope_ == 0


class TestUncertainty:
    def test_samples_draw_masks(self, table, unaware):
        _, _, D_obs, _ = table
        tables = unaware.sample(200, random_state=0)
        assert np.allclose(tables.sum(axis=2), 1) and (tables >= 0).all()
        zero = D_obs == 0
        is_zero = (tables == 0).mean(axis=0)[zero]
        # A hidden share may be 0 too.
        assert (is_zero >= 1 - unaware.hidden_probability_[zero] - 0.1).all()
        kept = np.where(D_obs > 0, tables, 0)
        assert np.allclose(kept / kept.sum(axis=2, keepdims=True), D_obs)

    def test_intervals_hold_zero_where_a_zero_is_likely_true(self, table, unaware):
        _, _, D_obs, _ = table
        low, high, *_ = unaware.intervals(0.9)
        likely = (D_obs == 0) & (unaware.hidden_probability_ < 0.8)
        assert likely.any() and (low[likely] == 0).all() and (high >= low).all()

    def test_relative_estimates_are_0_where_a_true_0_is_likely(self, table, unaware):
        X, D, D_obs, _ = table
        relative = BayesHidLDL(**unaware.parameters_, zeros="unknown", estimate="relative", random_state=0).fit(
            X, D_obs
        )
        assert (relative.distributions_[D_obs == 0] == 0).mean() > 0.2
        clark = [score(D, model.distributions_)["clark"] for model in (relative, unaware)]
        assert clark[0] < clark[1]


class TestOtherMethods:
    def test_take_the_inferred_mask(self, table, monkeypatch):
        X, D, D_obs, _ = table
        monkeypatch.setattr(inferring, "BayesHidLDL", partial(BayesHidLDL, **KNOWN))
        frame = pd.DataFrame(D_obs, columns=list("abcde"))
        inferred = infer_observed(X[:150], frame[:150], random_state=0)
        assert list(inferred.observed.columns) == list("abcde")
        assert inferred.observed.to_numpy()[D_obs[:150] > 0].all()
        assert np.array_equal(inferred.observed.to_numpy(), inferred.probability.to_numpy() < 0.5)
        fill = MeanFill().fit(X[:150], frame[:150], observed=inferred.observed)
        with pytest.warns(UserWarning, match="every zero is taken as hidden"):
            all_hidden = MeanFill().fit(X[:150], frame[:150])
        errors = [score(D[:150], model.distributions_.to_numpy())["chebyshev"] for model in (fill, all_hidden)]
        assert errors[0] < errors[1]

    def test_refuse_unknown_zeros(self, table):
        X, _, D_obs, _ = table
        with pytest.raises(ValueError, match="infer_observed"):
            MeanFill().fit(X, D_obs, observed=np.where(D_obs > 0, 1.0, np.nan))


def test_telling_zeros_apart_shows_progress(table):
    X, _, D_obs, _ = table
    said = []
    BayesHidLDL(**KNOWN, zeros="unknown", verbose=lambda *words: said.append(words)).fit(X[:100], D_obs[:100])
    assert any("telling hidden zeros from true ones" in words for _, _, words in said)
