"""IncomLDL, IncomLDL-prox and WInLDL against transcriptions of their definitions and cases with known answers."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import minimize
from sklearn.base import clone

from hidldl import LDLLDM, IncomLDL, IncomLDLProx, WInLDL, hide_labels
from hidldl.recovery.linear import LeastSquares
from hidldl.simplex import project_onto_simplex


@pytest.fixture
def linear():
    """Distributions that are linear in their features: mixtures of four fixed rows."""
    rng = np.random.default_rng(0)
    X, W = rng.dirichlet(np.ones(4), 100), rng.dirichlet(np.ones(5), 4)
    return X, X @ W


def row_problem(d, m, v, z, rho):
    """IncomLDL's problem for one row, by a general solver."""
    n = len(d)
    solved = minimize(
        lambda q: ((m * (q - d)) ** 2).sum() / 2 + v @ q + rho / 2 * ((q - z) ** 2).sum(),
        np.full(n, 1 / n),
        bounds=[(0, None)] * n,
        constraints={"type": "eq", "fun": lambda q: q.sum() - 1},
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    )
    return solved.x


def literal_incomldl(X, D, M, alpha, rho, iterations):
    Z = V = np.ones_like(D)
    for _ in range(iterations):
        Q = np.array([row_problem(*row, rho) for row in zip(D, M, V, Z, strict=True)])
        W = np.linalg.pinv(X.T @ X) @ X.T @ Q
        U, s, Vt = np.linalg.svd(X @ W + V / rho, full_matrices=False)
        Z = (U * np.maximum(s - alpha / rho, 0)) @ Vt
        V = V + rho * (X @ W - Z)
    return X @ W


def literal_winldl(X, D, M, rho, iterations, max_iter):
    n, m = D.shape
    c = [D[D[:, j] > 0, j].mean() for j in range(m)]
    Z = V = np.ones_like(D)
    for t in range(1, iterations + 1):
        W = np.linalg.solve(X.T @ X + 1e-5 * np.eye(X.shape[1]), X.T @ (Z - V / rho))
        XW = X @ W
        Y, Q = XW.copy(), np.empty((n, m))
        for i in range(n):
            for j in range(m):
                Q[i, j] = 2 ** (1 - D[i, j]) if M[i, j] else (1 + t / max_iter) ** c[j]
                if M[i, j]:
                    Y[i, j] = D[i, j]
        Z = project_onto_simplex((rho * XW + V + Q**2 * Y) / (Q**2 + rho))
        V = V + rho * (XW - Z)
    return XW


def test_incomldl_equals_its_transcription(hidden):
    X, D, M = hidden.X[:25], hidden.D_obs[:25], hidden.observed[:25]
    for iterations in (1, 4):
        model = IncomLDL(alpha=0.5, rho=1.5, max_iter=iterations).fit(X, D, observed=M)
        assert np.allclose(model.raw_distributions_, literal_incomldl(X, D, M, 0.5, 1.5, iterations), atol=1e-6)


def test_winldl_equals_its_transcription(hidden):
    model = WInLDL(max_iter=6).fit(hidden.X, hidden.D_obs, observed=hidden.observed)
    expected = literal_winldl(hidden.X, hidden.D_obs, hidden.observed, 2.0, model.n_iter_, 6)
    assert np.allclose(model.raw_distributions_, expected, atol=1e-10)


@pytest.mark.parametrize(
    "method",
    [IncomLDL(alpha=0, max_iter=2000), WInLDL(max_iter=2000), IncomLDLProx(alpha=0, max_iter=20_000, tol=1e-9)],
    ids=lambda method: type(method).__name__,
)
def test_complete_linear_distributions_are_reproduced(linear, method):
    X, D = linear
    model = method.fit(X, D)
    assert model.converged_
    assert np.abs(model.distributions_ - D).max() < 0.01
    assert np.allclose(model.predict(X), model.distributions_, atol=1e-12)


def test_prox_meets_the_optimality_conditions(hidden):
    alpha = 0.5
    model = IncomLDLProx(alpha, max_iter=20_000, tol=1e-10).fit(hidden.X, hidden.D_obs, observed=hidden.observed)
    W = model.coef_
    gradient = hidden.X.T @ np.where(hidden.observed, hidden.X @ W - hidden.D_obs, 0)
    # -gradient / alpha is a subgradient of the trace norm at W: spectral norm at most 1, and <., W> = |W|_*.
    assert np.linalg.norm(gradient, ord=2) <= alpha * (1 + 1e-5)
    assert -(gradient * W).sum() == pytest.approx(alpha * np.linalg.norm(W, ord="nuc"), rel=1e-4)
    assert model.history_["loss"][-1] <= model.history_["loss"].min() + 1e-9


def test_a_large_alpha_gives_prox_no_weights(hidden):
    model = IncomLDLProx(alpha=1e6).fit(hidden.X, hidden.D_obs, observed=hidden.observed)
    assert np.array_equal(model.coef_, np.zeros((4, 5)))
    assert np.allclose(model.distributions_, 0.2)


def test_raw_rows_are_reachable_and_public_ones_their_projection(hidden):
    for method in (IncomLDL(0.1), WInLDL(), IncomLDLProx()):
        model = method.fit(hidden.X, hidden.D_obs, observed=hidden.observed)
        assert np.allclose(model.raw_distributions_, hidden.X @ model.coef_)
        assert np.allclose(model.distributions_, project_onto_simplex(model.raw_distributions_))
        assert np.abs(model.raw_distributions_.sum(axis=1) - 1).max() > 1e-6


@pytest.mark.parametrize("ridge", [0.0, 0.3])
@pytest.mark.parametrize("shape", [(30, 5), (4, 9)])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_least_squares_solves_the_normal_equations(ridge, shape, container):
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=shape), rng.normal(size=(shape[0], 3))
    X[:, 0] = X[:, 1]
    X[:, 2] *= 1e5
    W = LeastSquares(container(X), ridge).solve(Y)
    if ridge == 0:
        assert np.allclose(X @ W, X @ np.linalg.lstsq(X, Y, rcond=1e-12)[0], atol=1e-8)
    else:
        assert np.allclose(W, np.linalg.solve(X.T @ X + ridge * np.eye(shape[1]), X.T @ Y), atol=1e-8)


def test_rank_falls_with_alpha(linear):
    X, D = linear
    D_obs, observed = hide_labels(D, rate=0.3, random_state=0)
    ranks = [
        np.linalg.matrix_rank(IncomLDLProx(alpha).fit(X, D_obs, observed).raw_distributions_, tol=1e-3)
        for alpha in (1e-3, 0.3, 3.0)
    ]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] > ranks[-1]


INCOMPLETE = [IncomLDL(alpha=0.01), IncomLDLProx(), WInLDL(), LDLLDM(random_state=0)]


@pytest.mark.parametrize("method", INCOMPLETE, ids=lambda method: type(method).__name__)
def test_rows_of_the_incomplete_setting_are_taken_as_they_are(linear, method):
    X, D = linear
    D_obs, observed = hide_labels(D, rate=0.4, random_state=0, setting="incomplete")
    model = method.fit(X, D_obs, observed=observed)
    inflated = D_obs / D_obs.sum(axis=1, keepdims=True)
    of_inflated = clone(method).fit(X, inflated, observed=observed)
    error, inflated_error = (np.abs(m.distributions_ - D).max(axis=1).mean() for m in (model, of_inflated))
    # With true shares these methods do what they were made for.
    assert error < 0.8 * inflated_error
    assert 0 < model.score(X, D_obs, observed=observed) <= 1


@pytest.mark.parametrize("method", INCOMPLETE, ids=lambda method: type(method).__name__)
def test_rows_that_sum_to_more_than_one_are_refused(hidden, method):
    with pytest.raises(ValueError, match=r"row 0 of D_obs sums to 1\.1"):
        method.fit(hidden.X, 1.1 * hidden.D_obs, observed=hidden.observed)


@pytest.mark.parametrize("method", [IncomLDL(), WInLDL(), IncomLDLProx()], ids=lambda method: type(method).__name__)
@pytest.mark.parametrize("case", ["float32, more features than rows", "features twice, large", "an offset", "zeros"])
def test_features_that_are_hard_for_linear_algebra(hidden, method, case):
    rng = np.random.default_rng(0)
    X = {
        "float32, more features than rows": rng.normal(size=(60, 200)).astype(np.float32),
        "features twice, large": 1e5 * np.hstack([hidden.X, hidden.X]),
        "an offset": hidden.X + 1e8,
        "zeros": np.zeros((60, 3)),
    }[case]
    D = clone(method).fit(X, hidden.D_obs, observed=hidden.observed).distributions_
    assert np.allclose(D.sum(axis=1), 1)


@pytest.mark.parametrize("method", [IncomLDL(0.5), WInLDL()], ids=lambda method: type(method).__name__)
def test_the_admm_stops_when_its_residuals_are_small(linear, method):
    X, D = linear
    D_obs, observed = hide_labels(D, rate=0.3, random_state=0)
    model = clone(method).set_params(max_iter=1000).fit(X, D_obs, observed)
    assert model.converged_
    size = np.linalg.norm(model.raw_distributions_)
    limit = np.sqrt(len(X)) * 1e-4 + 1e-3 * size
    primal = model.history_["primal"]
    assert primal[-1] <= limit * 1.01
    assert model.history_["dual"].shape == primal.shape == (model.n_iter_,)


def test_extreme_parameters_are_an_error_not_nan(hidden):
    with np.errstate(all="ignore"), pytest.raises(ValueError, match=r"IncomLDL\(rho=1e-300\) diverged"):
        IncomLDL(rho=1e-300).fit(hidden.X, hidden.D_obs, observed=hidden.observed)


def test_features_whose_squares_vanish_tell_nothing(hidden):
    tiny = IncomLDLProx().fit(hidden.X * 1e-170, hidden.D_obs, observed=hidden.observed)
    constant = IncomLDLProx().fit(np.ones((len(hidden.X), 1)) * 1e-170, hidden.D_obs, observed=hidden.observed)
    assert np.array_equal(tiny.distributions_, constant.distributions_)
