"""The exact solver against an independent one, and its certificate against what it certifies."""

import cvxpy as cp
import numpy as np
import pytest

from graphs import similarity_graph
from hidldl import HidLDL, SelfTuned, hide_labels, make_distributions
from hidldl.graph import graph_laplacian
from hidldl.recovery.exact import ConvexProblem, solve
from hidldl.simplex import project_onto_simplex

ALPHAS = [0.0, 2**-10, 2**-3, 1.0, 2**4]


def small_problem(alpha, n_rows=14, rate=0.5, seed=0):
    data = make_distributions(n_rows=n_rows, n_features=3, n_labels=4, random_state=seed)
    D_obs, observed = hide_labels(data.distributions, rate, random_state=seed)
    graph = graph_laplacian(similarity_graph(data.features, 4, 0.5))
    return ConvexProblem(graph, D_obs, observed, alpha)


def feasible(problem, rng):
    """A random feasible matrix: a mixture of each row's vertices."""
    shares = rng.dirichlet(np.ones(5), len(problem.D_obs))
    hidden = np.where(problem.observed, 0, shares[:, 1:])
    return hidden + (1 - hidden.sum(axis=1, keepdims=True)) * problem.D_obs


@pytest.mark.parametrize("alpha", ALPHAS)
def test_the_objective_is_that_of_an_independent_solver(alpha):
    problem = small_problem(alpha)
    D, k = cp.Variable(problem.D_obs.shape), cp.Variable((14, 1))
    G = problem.laplacian.toarray()
    root = np.linalg.cholesky(G + 1e-12 * np.eye(len(G))).T
    mask = problem.observed.astype(float)
    constraints = [
        D >= 0,
        cp.sum(D, axis=1) == 1,
        cp.multiply(mask, D) == cp.multiply(k @ np.ones((1, 4)), problem.D_obs),
    ]
    objective = cp.sum_squares(root @ D) / 2 + alpha * cp.normNuc(D)
    expected = cp.Problem(cp.Minimize(objective), constraints).solve(solver=cp.CLARABEL)
    solution, _ = solve(problem, max_iter=50_000, tol=1e-8)
    assert solution.converged
    assert problem.objective(solution.D) == pytest.approx(expected, rel=1e-6, abs=1e-7)


@pytest.mark.parametrize("alpha", ALPHAS)
def test_no_feasible_matrix_is_below_the_bound(alpha):
    problem, rng = small_problem(alpha, rate=0.7), np.random.default_rng(0)
    for _ in range(50):
        D, Z = feasible(problem, rng), problem.project_dual(rng.normal(size=(14, 4)))
        objective, bound = problem.bounds(D, Z)
        assert objective == pytest.approx(problem.objective(D))
        others = [problem.objective(feasible(problem, rng)) for _ in range(5)]
        assert bound <= min(objective, *others) + 1e-12


def test_the_projection_is_the_nearest_feasible_matrix():
    problem, rng = small_problem(1.0), np.random.default_rng(0)
    Y = rng.normal(size=(14, 4))
    P = problem.project(Y)
    assert np.allclose(P.sum(axis=1), 1)
    assert (P >= 0).all()
    observed_part = np.where(problem.observed, P, 0)
    mass = observed_part.sum(axis=1, keepdims=True)
    assert np.allclose(observed_part, mass * problem.D_obs)
    # The nearest point of a convex set makes an obtuse angle with every other.
    for _ in range(200):
        other = feasible(problem, rng)
        assert (((Y - P) * (other - P)).sum(axis=1) <= 1e-9).all()


@pytest.mark.parametrize("alpha", [2**-10, 1.0, 16.0])
def test_it_is_never_above_algorithm_1(hidden, alpha):
    exact = HidLDL(alpha, solver="exact").fit(hidden.X, hidden.D_obs, hidden.observed)
    assert exact.converged_
    assert exact.duality_gap_ <= 1e-5
    assert exact.n_iter_ < 10_000
    slow = HidLDL(alpha, max_iter=10_000, tol=1e-7).fit(hidden.X, hidden.D_obs, hidden.observed)
    graph = graph_laplacian(similarity_graph(hidden.X, 5, 1.0))
    problem = ConvexProblem(graph, hidden.D_obs, hidden.observed, alpha)
    assert problem.objective(exact.distributions_) <= problem.objective(slow.distributions_) * (1 + 1e-5)


def test_algorithm_1_would_arrive_if_it_went_to_the_nearest_point_of_the_simplex(hidden, monkeypatch):
    """What keeps it from the optimum is that it divides by the sum instead."""
    exact = HidLDL(2.0, solver="exact", tol=1e-8).fit(hidden.X, hidden.D_obs, hidden.observed)
    problem = ConvexProblem(graph_laplacian(similarity_graph(hidden.X, 5, 1.0)), hidden.D_obs, hidden.observed, 2.0)
    best = problem.objective(exact.distributions_)

    def excess():
        model = HidLDL(2.0, max_iter=5000, tol=0.0).fit(hidden.X, hidden.D_obs, hidden.observed)
        return problem.objective(model.distributions_) / best - 1

    assert excess() > 1e-4
    monkeypatch.setattr("hidldl.recovery.algorithm1.clip_and_close", project_onto_simplex)
    assert abs(excess()) < 1e-6


def test_rows_and_proportions_are_exact(hidden):
    model = HidLDL(2.0, solver="exact").fit(hidden.X, hidden.D_obs, hidden.observed)
    D = model.distributions_
    assert np.allclose(D, model.raw_distributions_, atol=1e-12)
    assert (D >= 0).all()
    assert np.allclose(D.sum(axis=1), 1, rtol=0, atol=1e-12)
    observed_part = np.where(hidden.observed, D, 0)
    assert np.allclose(observed_part / observed_part.sum(axis=1, keepdims=True), hidden.D_obs, atol=1e-12)


def test_a_path_starts_each_problem_where_the_last_one_ended(hidden):
    alphas = [1.0, 1.1, 1.2]
    path = list(HidLDL(solver="exact", tol=1e-7).alpha_path(alphas, hidden.X, hidden.D_obs, hidden.observed))
    for alpha, model in zip(alphas, path, strict=True):
        alone = HidLDL(alpha, solver="exact", tol=1e-7).fit(hidden.X, hidden.D_obs, hidden.observed)
        assert np.allclose(model.distributions_, alone.distributions_, atol=1e-3)
        assert model.history_["objective"][-1] == pytest.approx(alone.history_["objective"][-1], rel=1e-6)
    assert path[1].n_iter_ < path[0].n_iter_


def test_what_was_solved_before_does_not_matter_off_a_path(hidden):
    games = [
        SelfTuned(HidLDL(solver="exact", tol=1e-2), {"alpha": [0.5, 4.0]}, n_draws=2, n_jobs=n_jobs, random_state=0)
        for n_jobs in (1, 2)
    ]
    tables = [game.fit(hidden.X, hidden.D_obs, hidden.observed).selection_.candidates for game in games]
    assert tables[0].equals(tables[1])


def test_single_precision_and_no_constraint(hidden):
    model = HidLDL(1.0, solver="exact").fit(hidden.X, hidden.D_obs.astype(np.float32), hidden.observed)
    assert model.distributions_.dtype == np.float32
    with pytest.raises(ValueError, match="needs constraint=True"):
        HidLDL(solver="exact", constraint=False).fit(hidden.X, hidden.D_obs, hidden.observed)
