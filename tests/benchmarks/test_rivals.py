"""The rivals of benchmarks/rivals.py are fair ones: valid rows, observed proportions kept, gradients that are right."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from hidldl import BayesHidLDL, MeanFill, hide_labels, make_distributions, score

rival_methods = pytest.importorskip("rival_methods", reason="the benchmarks are not here")
rivals = pytest.importorskip("rivals")

DATA = make_distributions(n_rows=40, n_features=4, n_labels=5, zeros=0.1, random_state=0)
TITLES = [rival.title for rival in rivals.RIVALS]


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Networks and forests that take moments only."""
    monkeypatch.setattr(rival_methods, "EPOCHS", 5)
    monkeypatch.setattr(rival_methods, "N_TREES", 5)


def fitted(title, D_obs, observed, seed=0):
    (contender,) = (rival for rival in rivals.RIVALS if rival.title == title)
    return contender.make(seed).fit(DATA.features, D_obs, observed)


@pytest.mark.parametrize("title", TITLES)
def test_rows_are_distributions_that_keep_what_was_observed(title):
    D_obs, observed = hide_labels(DATA.distributions, random_state=1)
    D = fitted(title, D_obs, observed).distributions_
    assert np.allclose(D.sum(axis=1), 1)
    assert (D >= 0).all()
    mass = np.where(observed, D, 0).sum(axis=1, keepdims=True)
    assert np.allclose(np.where(observed, D, 0), mass * D_obs, atol=1e-9)
    assert np.isfinite(score(DATA.distributions, D)["kl"])  # no label is ruled out
    assert np.array_equal(D, fitted(title, D_obs, observed).distributions_)


def test_a_matrix_of_rank_one_is_completed_by_soft_impute():
    rng = np.random.default_rng(0)
    logs = np.outer(rng.standard_normal(60), [1, -1, 0.5, -0.5, 0.2, -0.2])
    D = np.exp(logs - np.log(np.exp(logs).sum(axis=1, keepdims=True)))
    D_obs, observed = hide_labels(D, rate=0.3, random_state=0)
    model = rival_methods.SoftImpute(shrinkage=0.002, max_iter=2000).fit(np.zeros((60, 1)), D_obs, observed)
    error, at_start = (score(D, m.distributions_)["chebyshev"] for m in (model, MeanFill().fit(logs, D_obs, observed)))
    assert error < 0.3 * at_start


def test_log_shares_are_an_exact_fit_where_rows_are_alike():
    D = np.tile([0.4, 0.3, 0.2, 0.1], (30, 1))
    D_obs, observed = hide_labels(D, rate=0.4, random_state=0)
    logs = rival_methods.LogShares.of(D_obs, observed)
    assert np.allclose(logs.z(observed), 0, atol=1e-3)
    assert np.allclose(logs.rows(np.zeros_like(D), D_obs, observed), D, atol=1e-3)


def network_items(sees_labels):
    D_obs, observed = hide_labels(DATA.distributions, random_state=2)
    means = rival_methods.LogShares.of(D_obs, observed).means
    return rival_methods._Items(DATA.features, D_obs, observed, means, sees_labels)


def test_labels_lost_in_training_were_observed_and_a_positive_one_stays():
    items = network_items(sees_labels=True)
    for seed in range(20):
        kept = items.lose_labels(np.random.default_rng(seed))
        assert not (kept & ~items.observed).any()
        assert (kept & (items.shares > 0)).any(axis=1).all()
        can_lose = (items.observed & (items.shares > 0)).sum(axis=1) > 1
        assert (kept.sum(axis=1) < items.observed.sum(axis=1))[can_lose].all()


def test_networks_do_not_see_what_was_lost():
    """Not even by the size of the rest, where a zero is among it."""
    items = network_items(sees_labels=True)
    kept = items.lose_labels(np.random.default_rng(0))
    lost = items.observed & ~kept
    assert (kept & (items.shares == 0)).any()
    changed = np.where(lost, 7 * items.shares + 1, items.shares)
    other = replace(items, shares=changed / changed.sum(axis=1, keepdims=True))
    assert np.allclose(items.inputs(kept), other.inputs(kept), atol=1e-5)


@pytest.mark.parametrize("layer", range(10))
def test_gradients_are_those_of_the_divergence(layer, monkeypatch):
    monkeypatch.setattr(rival_methods, "DROPOUT", 0.0)
    items, rng = network_items(sees_labels=False), np.random.default_rng(0)
    weights = rival_methods._random_weights(4, items.means, rng)

    def loss(change):
        changed = [part + (change if k == layer else 0) for k, part in enumerate(weights)]
        D = np.where(items.observed, items.rows(changed, items.observed), 0)
        D = np.where(items.observed, D / D.sum(axis=1, keepdims=True), 1)
        return -(items.shares * np.log(D)).sum() / len(D)

    direction = rng.standard_normal(weights[layer].shape) / np.sqrt(weights[layer].size)
    slope = (loss(1e-2 * direction) - loss(-1e-2 * direction)) / 2e-2
    gradient = rival_methods._gradients(weights, items, rng)[layer]
    assert (gradient * direction).sum() == pytest.approx(slope, rel=0.05, abs=2e-3)


def test_quotients_above_one_are_for_bayeshidldl():
    rows = [
        {"dataset": "here", "repetition": mask, "status": "done", "method": title, "kl": 0.1 * (mask + 1) * factor}
        for mask in range(2)
        for title, factor in [(rivals.BAYES, 1), *((title, 2) for title in TITLES)]
    ]
    table = rivals.quotients(pd.DataFrame(rows), "kl", ["there", "here"])
    assert list(table.index) == ["here"]
    assert np.allclose(table, 2)
    assert "| *BayesHidLDL better on* | 1 of 1 |" in rivals.quotient_table(pd.DataFrame(rows), "kl", ["here"])


def test_bayeshidldl_takes_part_as_users_have_it():
    (ours,) = (contender for contender in rivals.CONTENDERS if contender.title == rivals.BAYES)
    assert ours.make(0).get_params() == clone(BayesHidLDL(random_state=0)).get_params()
