"""PT-Bayes against scikit-learn's naive Bayes on the pairs that it draws."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.naive_bayes import GaussianNB

from hidldl import PTBayes, make_distributions
from hidldl.learners import ptbayes
from hidldl.randomness import random_generator

DATA = make_distributions(n_rows=150, n_features=5, n_labels=4, random_state=0)


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_it_is_gaussian_naive_bayes_on_the_drawn_pairs(offset, container, monkeypatch):
    X, D = DATA.features + offset, DATA.distributions
    counts = random_generator(3).multinomial(D.size, D.ravel() / D.sum())
    rows, labels = np.divmod(np.repeat(np.arange(D.size), counts), 4)
    expected = GaussianNB(var_smoothing=0.1).fit(X[rows], labels).predict_proba(X)
    assert np.allclose(PTBayes(random_state=3).fit(container(X), D).predict(container(X)), expected, atol=1e-6)
    monkeypatch.setattr(ptbayes, "BLOCK_ENTRIES", 40)
    assert np.allclose(PTBayes(random_state=3).fit(container(X), D).predict(container(X)), expected, atol=1e-6)


def test_a_label_that_is_never_drawn_is_never_predicted():
    D = np.c_[DATA.distributions, np.zeros(150)]
    model = PTBayes(random_state=0).fit(DATA.features, D)
    assert model.priors_[4] == 0
    assert (model.predict(DATA.features)[:, 4] == 0).all()


def test_constant_features_tell_nothing():
    model = PTBayes(random_state=0).fit(np.ones((150, 2)), DATA.distributions)
    assert np.allclose(model.predict(np.ones((3, 2))), model.priors_)


def test_smoothing_must_be_positive():
    with pytest.raises(ValueError, match="var_smoothing must be greater than 0"):
        PTBayes(var_smoothing=0).fit(DATA.features, DATA.distributions)
