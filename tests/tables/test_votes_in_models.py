"""Counts of votes reach the model, in recovery and in prediction, and what the model found reaches the notes."""

import numpy as np
import pandas as pd
import pytest

from hidldl import BayesHidLDL, MeanFill, hide_labels, make_distributions, predict_table, recover_table

LABELS = ["joy", "fear", "anger", "calm"]
GIVEN = {"nu": 20, "ridge": 1, "width": 1, "standardize": True, "prior_rows": 1, "n_components": 1, "hiding": "uniform"}


def votes_table(n_rows: int = 80) -> pd.DataFrame:
    """Counts of 3 to 60 votes, with some labels empty."""
    rng = np.random.default_rng(0)
    data = make_distributions(n_rows=n_rows, n_features=3, n_labels=4, random_state=0)
    n_votes = rng.choice([3, 12, 60], n_rows)
    counts = np.array([rng.multinomial(n, p) for n, p in zip(n_votes, data.distributions, strict=True)], float)
    counts[:, 0] += 1
    counts[rng.random(counts.shape) < 0.3] = np.nan
    counts[:, 0] = np.where(np.nansum(counts, axis=1) > 0, counts[:, 0], 1)
    features = pd.DataFrame(data.features + 5, columns=["f1", "f2", "f3"])
    return pd.concat([features, pd.DataFrame(counts, columns=LABELS)], axis=1)


def recovered(table: pd.DataFrame, **more):
    return recover_table(table, labels=LABELS, features=["f1", "f2", "f3"], parameters=GIVEN, **more)


def test_counts_are_votes():
    table = votes_table()
    result = recovered(table)
    cells = table[LABELS].to_numpy()
    shares = np.nan_to_num(cells) / np.nansum(cells, axis=1, keepdims=True)
    model = BayesHidLDL(**GIVEN, random_state=0)
    model.fit(table[["f1", "f2", "f3"]], shares, ~np.isnan(cells), votes=np.nansum(cells, axis=1))
    np.testing.assert_allclose(result.distributions, model.distributions_, atol=1e-12)
    assert any("more votes counts as more exact" in note for note in result.notes)


def test_shares_are_not_votes():
    table = votes_table()
    cells = table[LABELS].to_numpy()
    shares = table.assign(**dict(zip(LABELS, (cells / np.nansum(cells, axis=1, keepdims=True)).T, strict=True)))
    of_shares, of_counts = recovered(shares), recovered(table)
    assert not any("votes" in note for note in of_shares.notes)
    assert np.abs(of_shares.distributions - of_counts.distributions).to_numpy().max() > 1e-3


def test_votes_reach_predictions(tmp_path):
    table = votes_table()
    path = tmp_path / "model.npz"
    result = recovered(table)
    result.save_model(path)
    more = table.head(10)
    often = more.assign(**{label: more[label] * 50 for label in LABELS})
    few, many = (predict_table(rows, path).distributions.to_numpy() for rows in (more, often))
    assert np.abs(few - many).max() > 1e-4


def test_a_method_without_votes_takes_counts():
    result = recover_table(votes_table(), labels=LABELS, features=["f1", "f2", "f3"], method="meanfill")
    np.testing.assert_allclose(result.distributions.sum(axis=1), 1)
    with pytest.raises(TypeError, match="does not use votes"):
        MeanFill().fit(np.zeros((2, 1)), [[0.5, 0.5], [1, 0]], [[True, True], [True, True]], votes=[1, 2])


def test_what_the_model_found_is_noted():
    data = make_distributions(n_rows=400, n_features=3, n_labels=6, random_state=0)
    D_obs, observed = hide_labels(data.distributions, 0.5, 0, mechanism="top-k")
    labels = [f"label {j}" for j in range(6)]
    table = pd.DataFrame(np.where(observed, D_obs, np.nan), columns=labels)
    table = pd.concat([pd.DataFrame(data.features, columns=["f1", "f2", "f3"]), table], axis=1)
    result = recover_table(table, labels=labels, parameters={**GIVEN, "nu": 4096, "hiding": "auto"})
    assert any("small shares are overlooked more" in note for note in result.notes)
