"""The VADER lexicon as label distributions."""

import numpy as np
import pytest

from hidldl import load_dataset
from hidldl.datasets import vader


@pytest.fixture(scope="module")
def data():
    return load_dataset("vader")


def test_every_word_has_ten_ratings(data):
    D = data.distributions.to_numpy()
    assert D.shape == (7520, 9)
    assert np.allclose(10 * D, np.round(10 * D))
    assert np.allclose(D.sum(axis=1), 1)
    assert data.label_names == ("-4", "-3", "-2", "-1", "0", "+1", "+2", "+3", "+4")


def test_ratings_have_the_mean_that_the_lexicon_states(data):
    mean = data.distributions.loc["horrible"].to_numpy() @ np.arange(-4, 5)
    assert mean == pytest.approx(-2.5)


def test_features_are_finite_the_same_each_time_and_know_spelling(data):
    X = data.features
    assert X.shape == vader.VADER_SHAPE[:2]
    assert np.isfinite(X.to_numpy()).all()
    assert np.array_equal(load_dataset("VADER").features, X)

    def cosine(a, b):
        return X.loc[a] @ X.loc[b] / np.linalg.norm(X.loc[a]) / np.linalg.norm(X.loc[b])

    assert cosine("happier", "happiest") > 0.5 > cosine("happier", "abandon")


def test_without_the_package_the_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(vader, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'hidldl\[data\]'"):
        load_dataset("VADER")
