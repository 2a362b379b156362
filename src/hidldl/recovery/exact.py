"""The optimum of the paper's problem (Eq. 8), with a certificate.

The problem is convex. With k_i and the hidden shares of row i as unknowns, each row lies on a simplex of its own,
k_i + sum of hidden = 1, onto which a weighted projection maps; the trace norm is the largest inner product with a
matrix Z whose spectral norm is at most alpha. Condat's and Vũ's primal-dual method needs one sparse product, one
projection and one m × m eigenproblem per iteration. For any D and Z that are feasible, a row's least inner product with
a linear function over its simplex is at a vertex, so a lower bound of the optimum needs only one pass over the rows.
The distance to it is the duality gap, which certifies the result.
"""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from hidldl.arrays import BoolArray, FloatArray
from hidldl.recovery.algorithm1 import Solution, shrinkage
from hidldl.simplex import project_onto_simplex

CHECK_EVERY = 10
REBALANCE_EVERY = 20
REBALANCE_BY = 1.5
"""Factor between the primal and the dual step, applied where one residual is much larger than the other."""
SMALLEST_STEP = 1e-8
OUT_OF_REACH = -1e6
"""Value of an observed label's slot among the hidden ones: so low that the projection makes it 0."""


@dataclass
class Iterate:
    """A feasible primal and dual pair, from which a neighbouring problem can start."""

    D: FloatArray
    Z: FloatArray


class ConvexProblem:
    """1/2 tr(D' G D) + alpha ||D||_* over rows on the simplex that are proportional to the observed ones."""

    def __init__(self, laplacian: sparse.csr_array, D_obs: FloatArray, observed: BoolArray, alpha: float) -> None:
        self.laplacian, self.alpha = laplacian, alpha
        self.D_obs, self.observed = D_obs, observed
        self._squares = (D_obs**2).sum(axis=1)
        # A unit of k_i moves the row by the length of its observed part, a unit of a hidden share by 1.
        self._weights = np.column_stack([self._squares, np.ones_like(D_obs)])

    def project(self, Y: FloatArray) -> FloatArray:
        """The nearest feasible matrix."""
        scaling = (Y * self.D_obs).sum(axis=1) / self._squares
        slots = np.column_stack([scaling, np.where(self.observed, OUT_OF_REACH, Y)])
        projected = project_onto_simplex(slots, self._weights)
        return projected[:, :1] * self.D_obs + np.where(self.observed, 0, projected[:, 1:])

    def project_dual(self, Z: FloatArray) -> FloatArray:
        """The nearest matrix whose spectral norm is at most alpha: what shrinking by alpha takes away."""
        if self.alpha == 0:
            return np.zeros_like(Z)
        return Z - Z @ shrinkage(Z.T @ Z, self.alpha)

    def objective(self, D: FloatArray) -> float:
        """What is minimised."""
        return float((D * (self.laplacian @ D)).sum() / 2 + self.alpha * trace_norm(D))

    def bounds(self, D: FloatArray, Z: FloatArray) -> tuple[float, float]:
        """The objective at a feasible D, and a number that no feasible matrix's objective is below."""
        product = self.laplacian @ D
        quadratic = float((D * product).sum())
        prices = product + Z
        cheapest_hidden = np.where(self.observed, np.inf, prices).min(axis=1)
        cheapest = np.minimum((prices * self.D_obs).sum(axis=1), cheapest_hidden)
        return quadratic / 2 + self.alpha * trace_norm(D), float(cheapest.sum()) - quadratic / 2


def solve(
    problem: ConvexProblem, *, max_iter: int, tol: float, start: Iterate | None = None
) -> tuple[Solution, Iterate]:
    """Iterate until the duality gap is at most ``tol`` of the objective.

    The result is the best matrix so far with the best bound so far; both are computed every few iterations, which is
    what the history records.
    """
    node_degrees = problem.laplacian.diagonal()[:, None]
    D = problem.project(problem.D_obs if start is None else start.D)
    Z = np.zeros_like(D) if start is None else problem.project_dual(start.Z)
    # Steps in the proportion of the largest dual matrix to the primal one.
    dual_step = max(problem.alpha / spectral_norm(D), SMALLEST_STEP)
    best_D, lowest, highest_bound = D, np.inf, -np.inf
    objectives, gaps = [], []
    for iteration in range(1, max_iter + 1):
        # Twice the degrees of the nodes bound the Laplacian, so each row has its own step: hubs do not slow the rest.
        step = 0.99 / (node_degrees + dual_step)
        D_next = problem.project(D - step * (problem.laplacian @ D + Z))
        Z_next = problem.project_dual(Z + dual_step * (2 * D_next - D))
        if iteration % CHECK_EVERY == 0 or iteration == max_iter:
            objective, bound = problem.bounds(D_next, Z_next)
            if objective < lowest:
                best_D, lowest = D_next, objective
            highest_bound = max(highest_bound, bound)
            objectives.append(lowest)
            gaps.append(max(lowest - highest_bound, 0) / max(abs(lowest), np.finfo(float).tiny))
            if gaps[-1] <= tol:
                break
        if iteration % REBALANCE_EVERY == 0:
            dual_step *= _rebalance(D - D_next, Z - Z_next, step, dual_step)
        D, Z = D_next, Z_next
    history = {"objective": np.array(objectives), "gap": np.array(gaps)}
    return Solution(best_D, history, gaps[-1] <= tol, iteration), Iterate(D, Z)


def trace_norm(D: FloatArray) -> float:
    """The sum of the singular values, from the eigenvalues of D'D."""
    return float(np.sqrt(np.maximum(np.linalg.eigvalsh(D.T @ D), 0)).sum())


def spectral_norm(D: FloatArray) -> float:
    """The largest singular value."""
    return float(np.sqrt(np.linalg.eigvalsh(D.T @ D)[-1]))


def _rebalance(change: FloatArray, dual_change: FloatArray, step: FloatArray, dual_step: float) -> float:
    """The factor on the dual step that brings the primal and the dual residual closer together."""
    primal = np.linalg.norm(change / step - dual_change)
    dual = np.linalg.norm(dual_change / dual_step - change)
    if primal > 2 * dual:
        return 1 / REBALANCE_BY
    return REBALANCE_BY if dual > 2 * primal else 1.0
