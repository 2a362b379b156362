"""Rows end on the simplex, with the observed proportions exact, whatever comes in."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from hidldl.simplex import clip_and_close, project_onto_simplex, restore_proportions, smallest_scaling

SHAPES = st.tuples(st.integers(1, 6), st.integers(2, 6))


@st.composite
def problems(draw, dtype=np.float64):
    """Any matrix at all, with observed rows and a mask that leaves every row something positive."""
    shape = draw(SHAPES)
    width = 64 if dtype == np.float64 else 32
    D = draw(arrays(dtype, shape, elements=st.floats(-2, 2, width=width)))
    weights = draw(arrays(dtype, shape, elements=st.floats(0, 1, width=width)))
    observed = draw(arrays(bool, shape))
    label = draw(arrays(int, shape[0], elements=st.integers(0, shape[1] - 1)))
    observed[np.arange(shape[0]), label] = True
    weights[np.arange(shape[0]), label] += dtype(0.01)
    D_obs = np.where(observed, weights, 0).astype(dtype)
    return D, D_obs / D_obs.sum(axis=1, keepdims=True), observed


def assert_restored(D, D_obs, observed, tolerance):
    restored = restore_proportions(D, D_obs, observed)
    assert restored.dtype == D.dtype
    assert (restored >= 0).all()
    assert np.allclose(restored.sum(axis=1), 1, rtol=0, atol=tolerance)
    observed_part = np.where(observed, restored, 0)
    assert (observed_part.sum(axis=1) > 0).all()
    assert np.allclose(
        observed_part / observed_part.sum(axis=1, keepdims=True), D_obs, rtol=1e3 * tolerance, atol=tolerance
    )


@given(problems())
def test_restored_rows_keep_proportions(problem):
    assert_restored(*problem, tolerance=1e-12)


@given(problems(np.float32))
def test_restored_rows_keep_proportions_in_float32(problem):
    assert_restored(*problem, tolerance=1e-5)


@given(problems())
def test_restoring_twice_changes_nothing(problem):
    D, D_obs, observed = problem
    once = restore_proportions(D, D_obs, observed)
    assert np.allclose(restore_proportions(once, D_obs, observed), once, rtol=0, atol=1e-7)


@given(problems())
def test_feasible_rows_are_left_alone(problem):
    D, D_obs, observed = problem
    hidden = np.where(observed | (np.abs(D) < 1e-100), 0, np.abs(D))
    shares = hidden / np.maximum(hidden.sum(axis=1, keepdims=True), 1e-200)
    feasible = np.where(hidden.any(axis=1, keepdims=True), 0.4 * D_obs + 0.6 * shares, D_obs)
    assert np.allclose(restore_proportions(feasible, D_obs, observed), feasible, rtol=0, atol=1e-12)


def test_observed_labels_never_vanish():
    D, D_obs = np.array([[0.0, 1.0]]), np.array([[1.0, 0.0]])
    restored = restore_proportions(D, D_obs, D_obs > 0)
    assert restored[0, 0] == smallest_scaling(D) > 0


@given(arrays(np.float64, SHAPES, elements=st.floats(-1e6, 1e6)))
def test_clip_and_close_lands_on_the_simplex(D):
    closed = clip_and_close(D)
    assert (closed >= 0).all()
    assert np.allclose(closed.sum(axis=1), 1)
    positive = D.max(axis=1) > 0
    assert np.allclose(closed[~positive], 1 / D.shape[1])
    assert (closed[positive][D[positive] <= 0] == 0).all()


def test_clip_and_close_keeps_proportions():
    assert np.allclose(clip_and_close(np.array([[3.0, 1.0, -5.0]])), [[0.75, 0.25, 0.0]])


@st.composite
def weighted_rows(draw):
    shape = draw(SHAPES)
    Y = draw(arrays(np.float64, shape, elements=st.floats(-3, 3)))
    weights = draw(arrays(np.float64, shape, elements=st.floats(0.1, 10)))
    return Y, weights


@given(weighted_rows())
def test_projections_meet_the_optimality_conditions(problem):
    Y, weights = problem
    Q = project_onto_simplex(Y, weights)
    assert (Q >= 0).all()
    assert np.allclose(Q.sum(axis=1), 1)
    # w (y - q) is one number where q is positive, and nowhere larger.
    pull = weights * (Y - Q)
    multiplier = np.where(Q > 0, pull, -np.inf).max(axis=1, keepdims=True)
    assert np.allclose(np.where(Q > 0, pull, multiplier), multiplier, atol=1e-9)
    assert (pull <= multiplier + 1e-9).all()


def test_projections_agree_with_a_qp_solver():
    rng = np.random.default_rng(0)
    Y, weights = rng.normal(size=(20, 5)), rng.uniform(0.5, 3, (20, 5))
    sum_to_one = {"type": "eq", "fun": lambda q: q.sum() - 1}
    for y, w, plain, weighted in zip(
        Y, weights, project_onto_simplex(Y), project_onto_simplex(Y, weights), strict=True
    ):
        for v, projected in ((np.ones(5), plain), (w, weighted)):
            solved = minimize(
                lambda q, v=v, y=y: (v * (q - y) ** 2).sum(),
                np.full(5, 0.2),
                bounds=[(0, None)] * 5,
                constraints=sum_to_one,
                method="SLSQP",
                options={"ftol": 1e-14, "maxiter": 500},
            )
            assert np.allclose(projected, solved.x, atol=1e-6)


def test_projections_of_rows_far_away_are_exact():
    Y = np.array([[1e8, 1e8 - 0.5, 0.0], [-1e8, -1e8, -1e8], [1e17, 9e16, 0.0], [1e20, 1e20, 1e20]])
    expected = np.array([[0.75, 0.25, 0], [1 / 3, 1 / 3, 1 / 3], [1, 0, 0], [1 / 3, 1 / 3, 1 / 3]])
    assert np.allclose(project_onto_simplex(Y), expected, atol=1e-6)
    assert np.allclose(project_onto_simplex(Y, np.full(Y.shape, 2.0)), expected, atol=1e-6)
    assert np.allclose(project_onto_simplex(Y[2:].astype(np.float32)), expected[2:])


def test_projecting_a_distribution_changes_nothing():
    D = np.random.default_rng(0).dirichlet(np.ones(4), 30)
    assert np.allclose(project_onto_simplex(D), D, rtol=0, atol=1e-15)
