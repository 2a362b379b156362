import numpy as np
import pytest

from hidldl import BayesHidLDL, hide_labels
from hidldl.recovery import latent, logisticnormal, widerows
from hidldl.recovery.widerows import WIDE_LABELS

M, N = 40, 12


@pytest.fixture
def problem():
    """Rows with different labels, one without any, one with a single one, true zeros, zeros in doubt, and scales."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(M, M)) * np.geomspace(1, 0.01, M)
    root -= root.mean(axis=0)
    observed = rng.random((N, M)) < 0.6
    observed[0] = False
    observed[1] = np.arange(M) == 3
    shares = np.where(observed & (rng.random((N, M)) < 0.8), rng.dirichlet(np.ones(M), N), 0)
    shares[1, 3] = 1
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    presence = observed * np.where((shares == 0) & (rng.random((N, M)) < 0.5), rng.random((N, M)), 1.0)
    return root @ root.T, rng.normal(size=(N, M)), rng.uniform(1, 2, N), shares, presence


def solved(module, problem, nu, max_newton, start, tol=1e-13):
    S, *row = problem
    weights, slope, evidence = start.copy(), np.zeros_like(S), np.zeros(N)
    module.find_modes(S, *row, np.full(N, nu), max_newton, tol, np.linspace(0, 1, N), weights, slope, evidence)
    return weights, slope, evidence


@pytest.mark.parametrize("nu", [3.0, 300.0, 1e6])
@pytest.mark.parametrize("is_far", [False, True])
def test_modes_are_those_of_the_plain_loops(problem, nu, is_far):
    S, _, _, shares, presence = problem
    # A start that is no mode of anything, and shares below 0 in its place.
    start = np.where(presence > 0, 10 * nu * np.sin(np.arange(M)), 0) if is_far else np.zeros_like(shares)
    plain, wide = (solved(module, problem, nu, 50, start) for module in (logisticnormal, widerows))
    # Losses have ten digits after the point at most, which leaves half as many to the lowest point.
    assert np.allclose(wide[0] @ S, plain[0] @ S, rtol=1e-5, atol=1e-5)
    assert np.allclose(wide[1], plain[1], rtol=1e-5, atol=1e-5 * np.abs(plain[1]).max())
    assert np.allclose(wide[2], plain[2], rtol=1e-8)
    assert (wide[0][presence == 0] == 0).all()


@pytest.mark.parametrize("nu", [30.0, 3000.0])
def test_from_next_to_the_mode_the_curvature_is_computed_once_and_is_right(problem, nu):
    S, *_ = problem
    modes, slope, evidence = solved(widerows, problem, nu, 50, np.zeros((N, M)))
    near = solved(widerows, problem, nu, 50, modes * (1 + 1e-4 * np.cos(np.arange(M))), tol=1e-3)
    assert np.allclose(near[0] @ S, modes @ S, atol=1e-3)
    assert np.allclose(near[1], slope, atol=1e-2 * np.abs(slope).max())
    assert np.allclose(near[2], evidence, atol=1e-2)


@pytest.mark.parametrize("nu", [3.0, 300.0, 1e6])
def test_at_a_given_point_all_is_as_in_the_plain_loops(problem, nu):
    found = solved(logisticnormal, problem, nu, 50, np.zeros((N, M)))[0]
    plain, wide = (solved(module, problem, nu, 0, found) for module in (logisticnormal, widerows))
    for expected, same in zip(plain, wide, strict=True):
        assert np.allclose(same, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_draws_are_those_of_the_plain_loops(problem):
    S, mean, scale, _, presence = problem
    nu = np.full(N, 40.0)
    weights = solved(logisticnormal, problem, 40.0, 50, np.zeros((N, M)))[0]
    normals, noise = np.random.default_rng(1).standard_normal((2, 1, M, 10))
    first, last = np.full(N, 2), np.full(N, 7)
    last[4] = 2
    results = []
    for module in (logisticnormal, widerows):
        out = np.full((N, M, 10), np.nan)
        module.draw_log_shares(S, mean, scale, presence, nu, weights, normals, noise, first, last, out)
        results.append(out)
    plain, wide = results
    assert np.allclose(wide, plain, rtol=1e-9, atol=1e-9, equal_nan=True)
    assert np.isnan(wide[..., :2]).all()
    assert np.isnan(wide[..., 7:]).all()


def test_annotations_that_weigh_without_bound_stay_finite(problem):
    for max_newton in (20, 0):
        for found in solved(widerows, problem, 1e12, max_newton, np.zeros((N, M)), tol=1e-9):
            assert np.isfinite(found).all()


@pytest.mark.parametrize(("n_labels", "is_wide"), [(WIDE_LABELS - 1, False), (WIDE_LABELS, True)])
def test_the_number_of_labels_decides(n_labels, is_wide, monkeypatch):
    rng, calls = np.random.default_rng(0), []
    for module, name in ((latent, "plain"), (widerows, "wide")):
        find_modes = module.find_modes
        monkeypatch.setattr(
            module, "find_modes", lambda *row, find=find_modes, name=name: (calls.append(name), find(*row))[1]
        )
    D_obs, observed = hide_labels(rng.dirichlet(np.ones(n_labels), 30), 0.5, random_state=0)
    given = {"nu": 100.0, "ridge": 1.0, "width": 1.0, "standardize": True, "prior_rows": 1.0, "n_components": 1}
    BayesHidLDL(**given, max_iter=2, random_state=0).fit(rng.normal(size=(30, 3)), D_obs, observed=observed)
    assert set(calls) == {"wide" if is_wide else "plain"}
