"""Algorithm 1 compiled: one sweep over the rows per iteration, for tables that do not fit into a cache.

The splits and multipliers of the paper need not be stored. With U = Lambda / rho and Y = D + U before the shrinkage,
A = Y M and the next U is Y - A, where M is m × m; with U' likewise and W = D + U', B is W with its observed part made
proportional, and the next U' is W - B. So an iteration reads and writes D, Y and W once and reads D_obs, the mask and
the graph once. M needs Y'Y, which the same sweep adds up, and is applied in the next one. The distances between D and
its splits, which decide when to stop, are known one sweep later; by then D itself is still there, in the other buffer.

What a row alone needs is stored in tiles of rows, label by label, so that the compiler turns loops over the rows of a
tile into vector instructions, however few labels there are. Only D, which other rows look up, stays row by row; while
a tile is computed, the rows of D that the next one looks up are on their way from memory.
"""

import numpy as np
from scipy import sparse

from hidldl.arrays import BoolArray, FloatArray
from hidldl.compiling import compiled
from hidldl.parallel import Mapper, for_each, row_blocks
from hidldl.recovery.algorithm1 import Solution, history_of, shrinkage
from hidldl.recovery.lookups import collect, fetch

TILE_ROWS = 128
"""A tile's arrays stay in a cache close to the core, and its loops are long enough for vector instructions."""
N_BLOCKS, FEWEST_TILES = 16, 64
"""Tasks of a sweep, and fewest tiles of one; sums are taken in this order whatever the number of threads."""


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
    n_labels = D_obs.shape[1]
    number = D_obs.dtype.type
    D, D_next = D_obs.copy(), np.empty_like(D_obs)
    shares, mask = in_tiles(D_obs), in_tiles(observed)
    Y = np.empty_like(shares)
    W = np.empty_like(shares if constraint else shares[:0])
    M = np.eye(n_labels, dtype=D_obs.dtype)
    blocks = row_blocks(len(shares), max(FEWEST_TILES, -(-len(shares) // N_BLOCKS)))
    grams, gaps = np.empty((len(blocks), n_labels, n_labels)), np.empty((len(blocks), 2))
    graph = (laplacian.indptr, laplacian.indices, laplacian.data)
    tiles, labels = (Y, W, shares, mask), (0,) * n_labels
    low_rank_gaps: list[float] = []
    proportion_gaps: list[float] = []
    for n_iter in range(max_iter + 1):

        def task(k: int, first: bool = n_iter == 0, D: FloatArray = D, D_next: FloatArray = D_next) -> None:
            span, steps = (blocks[k].start, blocks[k].stop), (number(rho), number(step))
            sweep(span, graph, D, D_next, labels, tiles, M, *steps, first, constraint, grams[k], gaps[k])

        for_each(mapper, task, range(len(blocks)))
        if n_iter:
            low_rank, proportions = gaps.max(axis=0)
            low_rank_gaps.append(float(low_rank))
            if constraint:
                proportion_gaps.append(float(proportions))
            converged = bool(max(low_rank, proportions) < tol)
            if converged or n_iter == max_iter:
                return Solution(D, history_of(low_rank_gaps, proportion_gaps), converged, n_iter)
        M[:] = shrinkage(grams.sum(axis=0), alpha / rho)
        D, D_next = D_next, D
    raise AssertionError("the last sweep returns")


def in_tiles(D: np.ndarray) -> np.ndarray:
    """The rows in tiles, each label by label; zeros fill the last tile."""
    n_rows, n_labels = D.shape
    whole = np.zeros((-(-n_rows // TILE_ROWS) * TILE_ROWS, n_labels), D.dtype)
    whole[:n_rows] = D
    return np.ascontiguousarray(whole.reshape(-1, TILE_ROWS, n_labels).transpose(0, 2, 1))


@compiled
def sweep(span, graph, D, D_next, labels, tiles, M, rho, step, start, constraint, gram, gaps):  # type: ignore[no-untyped-def]
    """One iteration for the tiles of a block; leaves its part of Y'Y and the largest gaps of the iterate before."""
    all_Y, all_W, all_shares, all_masks = tiles
    _, m, tile_rows = all_Y.shape
    # Allocated one by one: the compiler would treat parts of one array as strided, and vectorise no loop.
    d, slope = np.empty((m, tile_rows), D.dtype), np.empty((m, tile_rows), D.dtype)
    split = np.empty((m, tile_rows), D.dtype)
    low_rank_gaps, proportion_gaps = np.zeros(tile_rows, D.dtype), np.zeros(tile_rows, D.dtype)
    gram[:] = 0
    for tile in range(*span):
        begin = tile * tile_rows
        count = min(tile_rows, len(D) - begin)
        Y = all_Y[tile]
        fetch(graph, D, begin + count, min(begin + count + tile_rows, len(D)))
        collect(graph, D, begin, count, labels, d, slope)
        low_rank_split(Y, M, rho, start, count, split)
        descend(d, split, Y, rho, count, slope, low_rank_gaps)
        if constraint:
            W = all_W[tile]
            proportional_split(W, all_shares[tile], all_masks[tile], rho, start, count, split)
            descend(d, split, W, rho, count, slope, proportion_gaps)
        step_onto_simplex(d, slope, step, count)
        for r in range(count):
            for j in range(m):
                D_next[begin + r, j] = d[j, r]
        add(d, count, Y)
        if constraint:
            add(d, count, W)
        add_products(Y, count, gram)
    gaps[0], gaps[1] = low_rank_gaps.max(), proportion_gaps.max()


@compiled
def low_rank_split(Y, M, rho, start, count, A):  # type: ignore[no-untyped-def]
    """A = Y M; Y becomes the multiplier over rho. Both are 1 (and 1 / rho) in the beginning."""
    one = Y.dtype.type(1)
    for j in range(len(Y)):
        for r in range(count):
            A[j, r] = one if start else 0
        if not start:
            for k in range(len(Y)):
                weight = M[k, j]
                for r in range(count):
                    A[j, r] += weight * Y[k, r]
    for j in range(len(Y)):
        for r in range(count):
            Y[j, r] = one / rho if start else Y[j, r] - A[j, r]


@compiled
def proportional_split(W, shares, mask, rho, start, count, B):  # type: ignore[no-untyped-def]
    """B is W with its observed part made proportional to the shares; W becomes the multiplier over rho."""
    one = W.dtype.type(1)
    product, square = np.zeros(count, W.dtype), np.zeros(count, W.dtype)
    if not start:
        for j in range(len(W)):
            for r in range(count):
                product[r] += W[j, r] * shares[j, r]
                square[r] += shares[j, r] * shares[j, r]
        for r in range(count):
            product[r] /= square[r]
    for j in range(len(W)):
        for r in range(count):
            near = product[r] * shares[j, r] if mask[j, r] else W[j, r]
            B[j, r] = one if start else near
            W[j, r] = one / rho if start else W[j, r] - near


@compiled
def descend(d, split, multiplier, rho, count, slope, gaps):  # type: ignore[no-untyped-def]
    """Add the slope of the penalty for being off the split; record how far off each row is at most."""
    for j in range(len(d)):
        for r in range(count):
            off = d[j, r] - split[j, r]
            gaps[r] = max(gaps[r], abs(off))
            slope[j, r] += rho * (off + multiplier[j, r])


@compiled
def step_onto_simplex(d, slope, step, count):  # type: ignore[no-untyped-def]
    """d after the gradient step, clipped and divided by its sum; uniform where nothing is left."""
    zero, one = d.dtype.type(0), d.dtype.type(1)
    factor, rest = np.zeros(count, d.dtype), np.zeros(count, d.dtype)
    for j in range(len(d)):
        for r in range(count):
            d[j, r] = max(d[j, r] - step * slope[j, r], zero)
            factor[r] += d[j, r]
    for r in range(count):
        rest[r] = zero if factor[r] > 0 else one / len(d)
        factor[r] = one / factor[r] if factor[r] > 0 else zero
    for j in range(len(d)):
        for r in range(count):
            d[j, r] = d[j, r] * factor[r] + rest[r]


@compiled
def add(d, count, total):  # type: ignore[no-untyped-def]
    for j in range(len(d)):
        for r in range(count):
            total[j, r] += d[j, r]


@compiled
def add_products(Y, count, gram):  # type: ignore[no-untyped-def]
    """Add the tile's part of Y'Y."""
    for k in range(len(Y)):
        for j in range(k + 1):
            total = Y.dtype.type(0)
            for r in range(count):
                total += Y[k, r] * Y[j, r]
            gram[k, j] += total
            gram[j, k] = gram[k, j]
