"""Geng's artificial set, and its generalisation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hidldl import make_distributions


def test_the_default_is_gengs_set():
    data = make_distributions(n_rows=20, random_state=0)
    for x, d in zip(data.features, data.distributions, strict=True):
        t = [value + 0.5 * value**2 + 0.2 * value**3 + 1 for value in x]
        psi1 = (4 * t[0] + 2 * t[1] + 1 * t[2]) ** 2
        psi2 = (1 * t[0] + 2 * t[1] + 4 * t[2] + 0.01 * psi1) ** 2
        psi3 = (1 * t[0] + 4 * t[1] + 2 * t[2] + 0.01 * psi2) ** 2
        assert d == pytest.approx(np.array([psi1, psi2, psi3]) / (psi1 + psi2 + psi3))


@given(
    shape=st.tuples(st.integers(1, 30), st.integers(1, 40), st.integers(2, 60)),
    correlation=st.floats(0, 0.99),
    zeros=st.floats(0, 0.99),
    seed=st.integers(0, 10**6),
)
def test_any_size_gives_distributions(shape, correlation, zeros, seed):
    data = make_distributions(*shape, correlation=correlation, zeros=zeros, random_state=seed)
    assert data.features.shape == shape[:2]
    assert data.distributions.shape == (shape[0], shape[2])
    assert np.abs(data.features).max() <= 1
    assert np.allclose(data.distributions.sum(axis=1), 1)
    assert (data.distributions >= 0).all()
    n_zeros = min(round(zeros * data.distributions.size), data.distributions.size - shape[0])
    assert (data.distributions == 0).sum() == n_zeros


def test_correlation_makes_neighbouring_labels_alike():
    def likeness(correlation):
        D = make_distributions(2000, 10, 8, correlation=correlation, random_state=0).distributions
        return np.mean([np.corrcoef(np.log(D[:, j]), np.log(D[:, j + 1]))[0, 1] for j in range(7)])

    assert likeness(0.0) < likeness(0.6) < likeness(0.9)


def test_labels_depend_on_features_however_many_there_are():
    for n_features in (1, 3, 30, 300):
        D = make_distributions(500, n_features, 5, random_state=0).distributions
        assert (D.std(axis=0) / D.mean(axis=0)).mean() > 0.1


def test_seeds():
    first, again, other = (make_distributions(n_labels=4, random_state=seed).distributions for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_rows": 0}, "n_rows"),
        ({"n_labels": 1}, "n_labels"),
        ({"zeros": 1.0}, "zeros"),
        ({"correlation": 1}, "below 1"),
    ],
)
def test_bad_sizes_are_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        make_distributions(**parameters)
