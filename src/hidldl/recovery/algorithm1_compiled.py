"""Algorithm 1 compiled: one sweep over the rows per iteration, for tables that do not fit into a cache.

The splits and multipliers of the paper need not be stored. With U = Lambda / rho and Y = D + U before the shrinkage,
A = Y M and the next U is Y - A, where M is m × m; with U' likewise and W = D + U', B is W with its observed part made
proportional, and the next U' is W - B. So an iteration reads and writes D, Y and W once and reads D_obs, the mask and
the graph once. M needs Y'Y, which the same sweep adds up, and is applied in the next one. The distances between D and
its splits, which decide when to stop, are known one sweep later; by then D itself is still there, in the other buffer.
"""

from collections.abc import Callable
from functools import lru_cache

import numba
import numpy as np
from scipy import sparse

from hidldl.parallel import Mapper, for_each, row_blocks
from hidldl.recovery.algorithm1 import Solution, history_of, shrinkage
from hidldl.validation import BoolArray, FloatArray

BLOCK_ROWS = 8192
"""Rows of a task; sums are taken in this order whatever the number of threads."""


def solve(
    laplacian: sparse.csr_array,
    D_obs: FloatArray,
    observed: BoolArray,
    *,
    alpha: float,
    rho: float,
    step: float,
    max_iter: int,
    tol: float,
    constraint: bool,
    mapper: Mapper = map,
) -> Solution:
    """As ``algorithm1.solve``, to rounding."""
    n_rows, n_labels = D_obs.shape
    number = D_obs.dtype.type
    D, D_next, Y = D_obs.copy(), np.empty_like(D_obs), np.empty_like(D_obs)
    W = np.empty_like(D_obs) if constraint else np.empty((0, n_labels), D_obs.dtype)
    M = np.eye(n_labels, dtype=D_obs.dtype)
    blocks = row_blocks(n_rows, BLOCK_ROWS)
    grams, gaps = np.empty((len(blocks), n_labels, n_labels)), np.empty((len(blocks), 2))
    sweep = _sweep_for(n_labels)
    graph = (laplacian.indptr, laplacian.indices, laplacian.data)
    low_rank_gaps: list[float] = []
    proportion_gaps: list[float] = []
    for finished in range(max_iter + 1):

        def task(k: int, finished: int = finished, D: FloatArray = D, D_next: FloatArray = D_next) -> None:
            rows = (D, D_next, Y, W, D_obs, observed)
            first, last = blocks[k].start, blocks[k].stop
            sweep(first, last, graph, rows, M, number(rho), number(step), finished == 0, constraint, grams[k], gaps[k])

        for_each(mapper, task, range(len(blocks)))
        if finished:
            low_rank, proportions = gaps.max(axis=0)
            low_rank_gaps.append(float(low_rank))
            if constraint:
                proportion_gaps.append(float(proportions))
            converged = bool(max(low_rank, proportions) < tol)
            if converged or finished == max_iter:
                return Solution(D, history_of(low_rank_gaps, proportion_gaps), converged, finished)
        M[:] = shrinkage(grams.sum(axis=0), alpha / rho)
        D, D_next = D_next, D
    raise AssertionError("the last sweep returns")


@lru_cache(maxsize=32)
def _sweep_for(m: int) -> Callable[..., None]:
    """The sweep for m labels: with their number known to the compiler, loops over labels become vector instructions."""

    @numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})
    def sweep(first, last, graph, rows, M, rho, step, start, constraint, gram, gaps):  # type: ignore[no-untyped-def]
        indptr, indices, data = graph
        D, D_next, Y, W, D_obs, observed = rows
        slope, A, U, B = np.empty(m, D.dtype), np.empty(m, D.dtype), np.empty(m, D.dtype), np.empty(m, D.dtype)
        sums = np.zeros((m, m))
        low_rank_gap, proportion_gap = 0.0, 0.0
        one = D.dtype.type(1)
        for i in range(first, last):
            for j in range(m):
                slope[j] = 0
            for entry in range(indptr[i], indptr[i + 1]):
                weight, neighbor = data[entry], indices[entry]
                for j in range(m):
                    slope[j] += weight * D[neighbor, j]
            for j in range(m):
                A[j] = one if start else 0
                U[j] = one / rho
            if not start:
                for k in range(m):
                    y = Y[i, k]
                    for j in range(m):
                        A[j] += y * M[k, j]
                for j in range(m):
                    U[j] = Y[i, j] - A[j]
            for j in range(m):
                low_rank_gap = max(low_rank_gap, abs(D[i, j] - A[j]))
                slope[j] += rho * (D[i, j] - A[j] + U[j])
            if constraint:
                product, square = 0 * one, 0 * one
                for j in range(m):
                    product += W[i, j] * D_obs[i, j]
                    square += D_obs[i, j] * D_obs[i, j]
                scaling = product / square
                for j in range(m):
                    B[j] = scaling * D_obs[i, j] if observed[i, j] else W[i, j]
                    W[i, j] -= B[j]
                    if start:
                        B[j], W[i, j] = one, one / rho
                    proportion_gap = max(proportion_gap, abs(D[i, j] - B[j]))
                    slope[j] += rho * (D[i, j] - B[j] + W[i, j])
            total = 0 * one
            for j in range(m):
                slope[j] = max(D[i, j] - step * slope[j], 0 * one)
                total += slope[j]
            for j in range(m):
                value = slope[j] / total if total > 0 else one / m
                D_next[i, j] = value
                U[j] += value
                Y[i, j] = U[j]
                if constraint:
                    W[i, j] += value
            for k in range(m):
                for j in range(m):
                    sums[k, j] += U[k] * U[j]
        gram[:] = sums
        gaps[0], gaps[1] = low_rank_gap, proportion_gap

    return sweep
