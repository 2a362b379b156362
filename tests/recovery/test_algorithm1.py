"""Algorithm 1 against an independent, literal transcription, and its steps against what they minimise."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from hidldl import HidLDL, hide_labels, make_distributions
from hidldl.recovery.algorithm1 import impose_proportions, shrink_singular_values, solve
from literal_algorithm1 import algorithm1, laplacian


@pytest.mark.parametrize("iterations", [1, 2, 3, 10, 100])
@pytest.mark.parametrize("alpha", [0, 2**-10, 1, 16, 2**7])
@pytest.mark.parametrize("constraint", [True, False])
def test_iterates_equal_the_literal_transcription(hidden, alpha, iterations, constraint):
    G = laplacian(hidden.X, hidden.D.shape[1], sigma=1.0)
    expected, n_iter = algorithm1(G, hidden.D_obs, hidden.observed, alpha, max_iter=iterations, constraint=constraint)
    model = HidLDL(alpha, max_iter=iterations, constraint=constraint).fit(hidden.X, hidden.D_obs, hidden.observed)
    assert model.n_iter_ == n_iter
    assert np.abs(model.raw_distributions_ - expected).max() < 1e-10


def test_iterates_equal_the_literal_transcription_with_other_parameters():
    data = make_distributions(n_rows=40, n_features=6, n_labels=9, zeros=0.3, random_state=1)
    D_obs, observed = hide_labels(data.distributions, rate=0.8, random_state=2)
    observed[:, :] |= ~observed.any(axis=0)
    D_obs = np.where(observed, data.distributions, 0)
    D_obs /= D_obs.sum(axis=1, keepdims=True)
    G = laplacian(data.features, 4, sigma=0.7)
    expected, n_iter = algorithm1(G, D_obs, observed, 0.5, rho=1.0, step=0.05, max_iter=3000, tol=1e-4)
    model = HidLDL(0.5, rho=1.0, step=0.05, n_neighbors=4, sigma=0.7, max_iter=3000, tol=1e-4)
    model.fit(data.features, D_obs, observed)
    assert model.n_iter_ == n_iter < 3000
    assert model.converged_
    assert np.abs(model.raw_distributions_ - expected).max() < 1e-10


@pytest.mark.parametrize("constraint", [True, False])
def test_a_solution_says_whether_its_residuals_are_below_the_tolerance(hidden, constraint):
    G = laplacian(hidden.X, hidden.D.shape[1], sigma=1.0)
    options = {"alpha": 1.0, "rho": 2.0, "step": 0.01, "constraint": constraint}
    short = solve(G, hidden.D_obs, hidden.observed, **options, max_iter=7, tol=0)
    assert (short.converged, short.n_iter) == (False, 7)
    assert set(short.history) == ({"low_rank", "proportions"} if constraint else {"low_rank"})
    gaps = np.max(list(short.history.values()), axis=0)
    assert gaps.shape == (7,)
    smallest = int(gaps.argmin())
    for tol, converged in ((gaps[smallest], False), (np.nextafter(gaps[smallest], 1), True)):
        again = solve(G, hidden.D_obs, hidden.observed, **options, max_iter=smallest + 1, tol=tol)
        assert (again.converged, again.n_iter) == (converged, smallest + 1)
        assert [len(values) for values in again.history.values()] == [smallest + 1] * len(again.history)


@pytest.mark.parametrize("shape", [(50, 6), (4, 6), (1, 3)])
@pytest.mark.parametrize("threshold", [0.0, 0.3, 1.0, 100.0])
def test_shrinking_equals_the_svd(shape, threshold):
    Y = np.random.default_rng(0).normal(size=shape)
    U, s, Vt = np.linalg.svd(Y, full_matrices=False)
    expected = (U * np.maximum(s - threshold, 0)) @ Vt
    assert np.allclose(shrink_singular_values(Y, threshold), expected, atol=1e-12)


@pytest.mark.parametrize("shape", [(50, 6), (6, 50)])
def test_the_eigenproblem_has_the_smaller_side(shape, monkeypatch):
    sizes, eigh = [], np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", lambda matrix: (sizes.append(matrix.shape), eigh(matrix))[1])
    shrink_singular_values(np.random.default_rng(0).normal(size=shape), 0.3)
    assert sizes == [(6, 6)]


def test_shrinking_a_matrix_of_low_rank():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 7))
    assert np.linalg.matrix_rank(shrink_singular_values(Y, 0.01), tol=1e-6) == 2


def test_imposed_proportions_are_the_nearest(hidden):
    Y = np.random.default_rng(0).normal(size=hidden.D.shape)
    B = impose_proportions(Y, hidden.D_obs, hidden.observed)
    assert np.array_equal(B[~hidden.observed], Y[~hidden.observed])
    for i in range(len(Y)):
        mask = hidden.observed[i]
        best = minimize_scalar(lambda k, i=i, mask=mask: ((k * hidden.D_obs[i] - Y[i])[mask] ** 2).sum()).x
        assert np.allclose(B[i, mask], best * hidden.D_obs[i, mask], atol=1e-6)
