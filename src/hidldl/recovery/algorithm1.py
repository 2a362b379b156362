"""Algorithm 1 of the paper: ADMM for the graph, the trace norm and the proportional constraint.

Minimises ``1/2 tr(D' G D) + alpha ||D||_*`` over rows on the simplex that are proportional to the observed
rows, with D split into D (graph, simplex), A (trace norm) and B (proportions). The steps are in the order of
the paper. They run on arrays of NumPy and on tensors of PyTorch alike.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from hidldl.arrays import BoolArray, FloatArray, namespace
from hidldl.simplex import clip_and_close


@dataclass(frozen=True)
class Solution:
    """The last iterate and the residuals on the way to it."""

    D: FloatArray
    history: dict[str, FloatArray]
    converged: bool
    n_iter: int


def solve(
    laplacian: Any,
    D_obs: FloatArray,
    observed: BoolArray,
    *,
    alpha: float,
    rho: float,
    step: float,
    max_iter: int,
    tol: float,
    constraint: bool,
) -> Solution:
    """Algorithm 1 from its start to its stop: ``max_iter`` iterations, or all residuals below ``tol``.

    Without ``constraint`` the split B and its multiplier drop out, and D_obs enters as the start only.
    """
    D, xp = D_obs, namespace(D_obs)
    A = B = Lambda = xp.ones_like(D)
    Lambda_B = xp.ones_like(D) if constraint else xp.zeros_like(D)
    low_rank_gaps: list[float] = []
    proportion_gaps: list[float] = []
    for _ in range(max_iter):
        gradient = laplacian @ D + Lambda + rho * (D - A)
        if constraint:
            gradient += Lambda_B + rho * (D - B)
        D = clip_and_close(D - step * gradient)
        A = shrink_singular_values(D + Lambda / rho, alpha / rho)
        Lambda = Lambda + rho * (D - A)
        low_rank_gaps.append(float(abs(D - A).max()))
        if constraint:
            B = impose_proportions(D + Lambda_B / rho, D_obs, observed)
            Lambda_B = Lambda_B + rho * (D - B)
            proportion_gaps.append(float(abs(D - B).max()))
        if max(low_rank_gaps[-1], proportion_gaps[-1] if constraint else 0) < tol:
            return Solution(D, history_of(low_rank_gaps, proportion_gaps), True, len(low_rank_gaps))
    return Solution(D, history_of(low_rank_gaps, proportion_gaps), False, max_iter)


def shrink_singular_values(Y: FloatArray, threshold: float) -> FloatArray:
    """Singular value thresholding (Eq. 16): every singular value loses ``threshold``, none falls below 0.

    With Y'Y = V S² V', the result is Y V max(1 - threshold/S, 0) V': an m × m eigenproblem instead of an SVD
    of n × m. Singular values lose half their digits in Y'Y, but only those far below the largest one, which
    carry as little of Y. With fewer rows than labels, Y Y' from the other side is the smaller problem.
    """
    if threshold == 0:
        return Y
    return Y @ shrinkage(Y.T @ Y, threshold) if len(Y) >= Y.shape[1] else shrinkage(Y @ Y.T, threshold) @ Y


def shrinkage(gram: FloatArray, threshold: float) -> FloatArray:
    """The matrix by which Y is multiplied to shrink its singular values, from Y'Y, or from Y Y' for the other side."""
    if threshold == 0:
        return np.eye(len(gram), dtype=gram.dtype)
    eigenvalues, V = namespace(gram).linalg.eigh(gram)
    # At least the threshold, so that the factor of what is smaller is exactly 0.
    singular_values = (eigenvalues.clip(min=0) ** 0.5).clip(min=threshold)
    return (V * (1 - threshold / singular_values)) @ V.T


def impose_proportions(Y: FloatArray, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
    """The nearest matrix whose observed part is proportional to ``D_obs`` in every row (Eq. 18)."""
    scaling = (Y * D_obs).sum(axis=1, keepdims=True) / (D_obs**2).sum(axis=1, keepdims=True)
    return namespace(Y).where(observed, scaling * D_obs, Y)


def history_of(low_rank_gaps: list[float], proportion_gaps: list[float]) -> dict[str, FloatArray]:
    """The residuals by their names in ``history_``."""
    history = {"low_rank": np.array(low_rank_gaps)}
    if proportion_gaps:
        history["proportions"] = np.array(proportion_gaps)
    return history
