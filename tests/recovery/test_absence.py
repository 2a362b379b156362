"""Labels that rows lack: sets of labels, what absent labels tell, and tables that have them."""

import warnings
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from hidldl import BayesHidLDL, hide_labels, load_model, make_distributions, save_model, score
from hidldl.recovery.absence import (
    MOST_LABELS,
    Absences,
    Gap,
    energies,
    is_alone,
    log_alone,
    log_chances,
    sets_of,
)
from hidldl.recovery.fittingabsence import fit_absences
from hidldl.recovery.kernelmean import Ridge

FLOOR = 2e-4
SHAPE = {"width": 1.0, "standardize": True, "prior_rows": 1.0, "ordered": False, "learn_distance": False}
GIVEN = {**SHAPE, "nu": 65536.0, "ridge": 1.0, "n_landmarks": 100, "n_components": 1}


def lacking(n_rows=500, n_labels=6, floor=FLOOR, seed=0):
    """Features, and rows that lack about half of their labels; absent ones have 0, or about the same floor."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 4))
    pull = 1.2 * X @ rng.standard_normal((4, n_labels)) + 0.7 * rng.standard_normal((n_rows, 1)) - 0.3
    pull += 0.5 * rng.standard_normal(pull.shape)
    there = (pull > 0) | (pull == pull.max(axis=1, keepdims=True))
    z = 0.2 * X @ rng.standard_normal((4, n_labels)) + 0.35 * rng.standard_normal((n_rows, n_labels))
    D = np.where(there, np.exp(z), 0)
    D /= D.sum(axis=1, keepdims=True)
    own = floor * np.exp(0.1 * rng.standard_normal((n_rows, 1)))
    D = np.where(there, D * (1 - (~there).sum(axis=1, keepdims=True) * own), own)
    return X, D / D.sum(axis=1, keepdims=True)


@pytest.fixture(scope="module", params=[FLOOR, 0.0], ids=["floor", "zero"])
def table(request):
    X, D = lacking(floor=request.param)
    return X, D, *hide_labels(D, 0.5, random_state=0)


class TestGap:
    def test_it_lies_between_absent_labels_and_the_others(self, table):
        _, D, D_obs, observed = table
        gap = Gap.of(D_obs, observed)
        truly_absent = observed & (D < 2 * FLOOR)
        beside_another = (observed & (D > 2 * FLOOR)).any(axis=1, keepdims=True)
        assert np.array_equal(gap.absent(D_obs, observed), truly_absent & beside_another)
        assert gap.zero == (D.min() == 0)

    def test_labels_of_one_size_are_in_doubt_unless_absent_ones_have_nothing(self, table):
        _, D, D_obs, observed = table
        gap = Gap.of(D_obs, observed)
        only_absent = observed.any(axis=1) & ~(observed & (D > 2 * FLOOR)).any(axis=1)
        in_doubt = gap.in_doubt(D_obs, observed)
        assert in_doubt[only_absent].all()
        assert not in_doubt[gap.absent(D_obs, observed).any(axis=1)].any()
        assert in_doubt.any() != gap.zero

    def test_rows_of_the_labels_that_are_there_sum_to_one_or_are_empty(self, table):
        _, _, D_obs, observed = table
        gap = Gap.of(D_obs, observed)
        shares, there = gap.there(D_obs, observed)
        assert np.array_equal(shares > 0, there)
        assert np.allclose(shares.sum(axis=1), there.any(axis=1))
        own = np.where(there, D_obs, 0).sum(axis=1, keepdims=True)
        assert np.allclose(shares * own, np.where(there, D_obs, 0))

    def test_plain_tables_have_none(self):
        D = make_distributions(n_rows=400, n_labels=6, random_state=0).distributions
        assert Gap.of(*hide_labels(D, 0.5, random_state=0)) is None
        rng = np.random.default_rng(0)
        for concentration in (0.05, 0.2, 1.0):
            D = np.maximum(rng.dirichlet(np.full(5, concentration), 500), 1e-6)
            assert Gap.of(*hide_labels(D / D.sum(axis=1, keepdims=True), 0.5, random_state=0)) is None

    def test_few_rows_and_many_labels_have_none(self):
        _, D = lacking(n_rows=30)
        assert Gap.of(*hide_labels(D, 0.5, random_state=0)) is None
        _, D = lacking(n_labels=MOST_LABELS + 1)
        assert Gap.of(*hide_labels(D, 0.5, random_state=0)) is None


def literal_chances(gap, row, observed, odds):
    """Each set's chance, by the definition, up to what all sets have in common."""
    chances = []
    absent, in_doubt = gap.absent(row[None], observed[None])[0], gap.in_doubt(row[None], observed[None])[0]
    alone = gap.zero and (observed & (row > 0)).sum() == 1
    for numbers in sets_of(len(row)):
        there = numbers > 0
        if in_doubt and not (observed & there).any():
            chance = 1.0
        elif (observed & ~absent & ~there).any() or (absent & there).any():
            chance = 0.0
        else:
            chance = gap.ties if in_doubt and observed.sum() > 1 else 1.0
            chance *= 1 + odds / there.sum() if alone else 1.0
        chances.append(chance)
    return np.array(chances)


def test_sets_are_all_but_the_empty_one():
    sets = {tuple(row) for row in sets_of(4)}
    assert sets == {row for row in product((0.0, 1.0), repeat=4) if any(row)}


def test_chances_of_sets_are_those_of_their_definition(table):
    _, _, D_obs, observed = table
    gap = Gap.of(D_obs, observed)
    found = np.exp(log_chances(gap, D_obs[:60], observed[:60], np.log(1.5)))
    for i in range(60):
        assert np.allclose(found[i], literal_chances(gap, D_obs[i], observed[i], 1.5))


@pytest.mark.parametrize("rate", [0.3, 0.8])
def test_a_row_is_handed_in_with_one_of_its_labels_or_more(rate):
    """Over all masks of which some label has a share, chances sum to 1, whatever the row has."""
    gap = Gap(depth=5.0, tolerance=1e-6, ties=0.1, zero=True)
    masks = sets_of(5) > 0
    for k, labels in enumerate(sets_of(5)):
        rows = np.where(masks, labels, 0)
        handed_in, n_hidden = rows.any(axis=1), (~masks).sum(axis=1)
        chances = rate**n_hidden * (1 - rate) ** (5 - n_hidden)
        more = np.exp(log_alone(np.log(rate / (1 - rate)), 5)[k])
        chances = np.where(is_alone(gap, rows, masks), chances * more, chances)
        assert chances[handed_in].sum() == pytest.approx(1)


def test_pairs_add_their_energy_to_sets_that_have_both():
    pairs = np.array([[0, 1.0, 0], [1.0, 0, -2.0], [0, -2.0, 0]])
    expected = {(1, 1, 0): 1.0, (0, 1, 1): -2.0, (1, 0, 1): 0.0, (1, 1, 1): -1.0, (1, 0, 0): 0.0}
    found = dict(zip(map(tuple, sets_of(3).astype(int)), energies(pairs), strict=True))
    assert all(found[labels] == energy for labels, energy in expected.items())


def test_the_fit_matches_how_often_labels_and_pairs_are_there():
    """Without features, and without penalties, the moments of the model at the maximum are those of the data."""
    _, D = lacking(n_rows=2000)
    everything = np.ones_like(D, dtype=bool)
    none = np.zeros((2000, 1))
    absences = fit_absences(none, D, everything, Gap.of(D, everything), Ridge.of(none, 1.0), 1.0)
    likely = absences.posterior(np.broadcast_to(absences.intercept, D.shape), D, np.zeros_like(everything))[0]
    sets, there = sets_of(6), (D > 2 * FLOOR).astype(float)
    assert likely @ sets == pytest.approx(there.mean(axis=0), abs=0.01)
    assert (sets.T * likely) @ sets == pytest.approx(there.T @ there / 2000, abs=0.01)


@pytest.mark.parametrize("rate", [0.5, 0.8])
def test_rows_that_were_handed_in_are_no_sample_of_their_labels(rate):
    """Most rows keep a single label with a share beside zeros; that does not make labels rare."""
    X, D = lacking(n_rows=2000, floor=0.0)
    D_obs, observed = hide_labels(D, rate, random_state=0)
    absences = fit_absences(X, D_obs, observed, Gap.of(D_obs, observed), Ridge.of(X, 1.0), 1.0)
    likely = absences.posterior(absences.intercept + X @ absences.coef, D_obs, observed)
    assert (likely @ sets_of(6)).sum(axis=1).mean() == pytest.approx((D > 0).sum(axis=1).mean(), rel=0.05)
    assert absences.log_odds == pytest.approx(np.log(rate / (1 - rate)), abs=0.1)


def test_features_tell_which_labels_there_are(table):
    X, D, D_obs, observed = table
    regression = Ridge.of(X, 1.0)
    absences = fit_absences(X, D_obs, observed, Gap.of(D_obs, observed), regression, 1.0)
    logits = absences.intercept + regression.fitted(X, absences.coef)
    chance = absences.posterior(logits, D_obs, np.zeros_like(observed)) @ sets_of(6)
    there = D > 2 * FLOOR
    assert all(chance[there[:, j], j].mean() > chance[~there[:, j], j].mean() + 0.15 for j in range(6))
    # Given the labels that were handed in, those are certain.
    known = absences.posterior(logits, D_obs, observed) @ sets_of(6)
    sure = observed & ~absences.gap.in_doubt(D_obs, observed)[:, None]
    assert np.allclose(known[sure], there[sure])


def test_draws_keep_proportions_and_the_floor_that_is_seen(table):
    _, _, D_obs, observed = table
    gap, rng = Gap.of(D_obs, observed), np.random.default_rng(0)
    absences = Absences(gap, np.zeros((0, 6)), np.zeros(6), np.zeros((6, 6)), float(np.log(FLOOR)), 0.1)
    likely = absences.posterior(np.zeros_like(D_obs), D_obs, observed)
    chosen = np.array([rng.choice(len(row), 30, p=row) for row in likely])
    D = softmax(rng.standard_normal((500, 6, 30)), axis=1)
    weights = np.full((500, 30), 1 / 30)
    rows, weights = absences.completed(D, weights, chosen, rng.standard_normal((500, 30)), D_obs, observed)
    assert np.allclose(rows.sum(axis=1), 1)
    assert (rows >= 0).all()
    assert np.allclose(weights.sum(axis=1), 1)
    mass = np.where(observed[:, :, None], rows, 0).sum(axis=1, keepdims=True)
    assert np.allclose(np.where(observed[:, :, None], rows, 0), mass * np.where(observed, D_obs, 0)[:, :, None])
    there = sets_of(6)[chosen].transpose(0, 2, 1) > 0
    sure = ~gap.in_doubt(D_obs, observed)
    assert ((rows > 2e-3) == there)[sure].mean() > 0.95
    if gap.zero:
        assert (rows[~there] == 0).all()


@pytest.fixture(scope="module")
def models(table):
    """Fits that may and may not find that rows lack labels."""
    X, _, D_obs, observed = table
    given = {name: value for name, value in GIVEN.items() if name not in ("ridge", "nu")}
    found = BayesHidLDL(**given, random_state=0).fit(X, D_obs, observed=observed)
    plain = BayesHidLDL(**given, absent_labels=False, random_state=0).fit(X, D_obs, observed=observed)
    return found, plain


class TestRecovery:
    def test_it_is_found_and_worth_it(self, table, models):
        _, D, _, _ = table
        found, plain = models
        assert found.parameters_["absent_labels"] is True
        assert plain.parameters_["absent_labels"] is False
        errors, before = (score(D, model.distributions_) for model in models)
        assert errors["chebyshev"] < 0.9 * before["chebyshev"]
        assert errors["kl"] < 0.9 * before["kl"]
        assert np.isfinite(errors["kl"])

    @pytest.mark.usefixtures("full_calibration")
    def test_intervals_hold(self, table, models):
        _, D, _, observed = table
        low, high, *_ = models[0].intervals(0.9)
        held = ((low <= D + 1e-9) & (high >= D - 1e-9))[~observed]
        assert 0.84 < held.mean() < 0.98

    def test_what_is_promised_of_rows(self, table, models):
        _, _, D_obs, observed = table
        model = models[0]
        for D in (model.distributions_, *model.sample(3, random_state=1)):
            assert (D >= 0).all()
            assert np.allclose(D.sum(axis=1), 1, atol=1e-9)
            mass = np.where(observed, D, 0).sum(axis=1, keepdims=True)
            assert np.allclose(np.where(observed, D, 0), mass * np.where(observed, D_obs, 0))

    def test_absent_labels_come_out_as_such_in_samples(self, table, models):
        _, D, _, observed = table
        samples = models[0].sample(20, random_state=0)
        rate = (np.array(samples) < 2 * FLOOR)[:, ~observed].mean()
        assert rate == pytest.approx((D < 2 * FLOOR)[~observed].mean(), abs=0.06)

    def test_new_rows_and_saved_models(self, table, models, tmp_path):
        X, D, D_obs, observed = table
        model = models[0]
        save_model(tmp_path / "m.npz", model)
        again, _ = load_model(tmp_path / "m.npz")
        for arguments in ((X[:50],), (X[:50], D_obs[:50], observed[:50])):
            assert np.array_equal(model.predict(*arguments), again.predict(*arguments))
        with_labels = model.predict(X, D_obs, observed)
        assert score(D, with_labels)["chebyshev"] < 0.8 * score(D, model.predict(X))["chebyshev"]
        assert np.array_equal(model.intervals(0.9)[0], model.intervals(0.9)[0])

    def test_threads_change_nothing(self, table):
        X, _, D_obs, observed = table
        one, two = (
            BayesHidLDL(**GIVEN, absent_labels=True, n_jobs=jobs, random_state=0).fit(X, D_obs, observed=observed)
            for jobs in (1, 2)
        )
        assert np.array_equal(one.distributions_, two.distributions_)

    def test_findings_say_so(self, models):
        found, plain = (model.findings(list("abcdef")) for model in models)
        assert any("lack labels" in sentence for sentence in found)
        assert not any("lack labels" in sentence for sentence in plain)


def test_a_floor_that_is_seen_tells_how_much_is_hidden():
    """A label with next to nothing is inflated as much as all others, so it says how much was lost."""
    X, D = lacking(n_rows=800, seed=3)
    D_obs, observed = hide_labels(D, 0.5, random_state=0)
    model = BayesHidLDL(**GIVEN, absent_labels=True, random_state=0).fit(X, D_obs, observed=observed)
    mass = np.where(observed, 0, D).sum(axis=1)
    seen = (observed & (D < 2 * FLOOR)).any(axis=1) & (observed & (D > 2 * FLOOR)).any(axis=1)
    error = np.abs(model.hidden_mass_ - mass)
    assert error[seen].mean() < min(0.04, 0.7 * error[~seen].mean())


@pytest.mark.usefixtures("short_search")
def test_unknown_zeros_are_hidden_where_absent_labels_have_a_floor():
    X, D = lacking(n_rows=400)
    D_obs, observed = hide_labels(D, 0.4, random_state=0)
    known = BayesHidLDL(random_state=0).fit(X, D_obs, observed=observed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        unknown = BayesHidLDL(random_state=0).fit(X, D_obs)
    assert unknown.parameters_["absent_labels"] is True
    assert (unknown.hidden_probability_ == ~observed).all()
    assert unknown.hidden_rate_ == pytest.approx(1 - observed.mean(axis=0), abs=0.05)
    errors = [score(D, model.distributions_)["chebyshev"] for model in (known, unknown)]
    assert errors[1] < 1.03 * errors[0]
    assert unknown.predict(X[:5], D_obs[:5]).shape == (5, 6)


@pytest.mark.usefixtures("short_search")
def test_shares_that_decide_what_is_hidden_come_first():
    X, D = lacking(n_rows=400, floor=0.0)
    D_obs, observed = hide_labels(D, 0.5, random_state=0, mechanism="degree", slope=2.5)
    model = BayesHidLDL(random_state=0).fit(X, D_obs, observed=observed)
    assert model.parameters_["absent_labels"] is False
    assert model.hiding_slope_ > 0.3


def test_dataframes_come_back():
    X, D = lacking(n_rows=200)
    D_obs, observed = hide_labels(pd.DataFrame(D, columns=list("abcdef")), 0.4, random_state=0)
    model = BayesHidLDL(**GIVEN, absent_labels=True, random_state=0).fit(X, D_obs, observed=observed)
    assert list(model.distributions_.columns) == list("abcdef")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": 2}, "absent_labels=True needs n_components=1"),
        ({"hiding": "degree"}, "absent_labels=True needs n_components=1"),
        ({"absent_labels": "often"}, "absent_labels must be True, False or 'auto'"),
    ],
)
def test_what_does_not_go_together_is_refused(table, options, message):
    X, _, D_obs, observed = table
    with pytest.raises((TypeError, ValueError), match=message):
        BayesHidLDL(**{"absent_labels": True, **options}).fit(X, D_obs, observed=observed)


def test_a_table_without_a_gap_is_refused_if_one_is_asked_for():
    data = make_distributions(n_rows=100, n_labels=5, random_state=0)
    D_obs, observed = hide_labels(data.distributions, 0.5, random_state=0)
    with pytest.raises(ValueError, match="D_obs has no such gap, so leave it at"):
        BayesHidLDL(**GIVEN, absent_labels=True).fit(data.features, D_obs, observed=observed)
    X, D = lacking(n_rows=300, floor=0.0)
    with pytest.raises(ValueError, match="needs to know which zeros of D_obs are hidden"):
        BayesHidLDL(**GIVEN, absent_labels=True).fit(X, hide_labels(D, 0.3, random_state=0)[0])
