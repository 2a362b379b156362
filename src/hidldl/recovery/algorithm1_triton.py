"""Algorithm 1 on an NVIDIA card, in single precision: two kernels per iteration, written in Triton.

As in ``algorithm1_compiled``, an iteration reads and writes D, Y and W once, and M, which shrinks the singular values,
is applied in the next one. The first kernel multiplies the graph with D: each row looks its neighbours up, so that no
row waits for another. The second does the rest row by row and leaves Y'Y and the distances between D and its splits,
which the host turns into the next M. That is one short message each way per iteration; the graph needs no M, so its
next product is computed meanwhile.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from hidldl.arrays import Tensor
from hidldl.recovery.algorithm1 import Solution, history_of, shrinkage

FEWEST_COLUMNS = 16
"""Labels are padded to a power of 2 of at least this size, the smallest of a product of matrices in Triton."""
LOOKUP_ROWS, LOOKUPS_AT_ONCE = 16, 8
"""Rows of a program of the first kernel, and neighbours of each that are on their way from memory at a time."""
LINE = 16
"""Numbers in single precision that come from memory together."""
TILE_ROWS, TILES, TILE_WARPS = 16, 32, 1
"""Rows that a program of the second kernel holds in registers, how many such tiles it goes through, and its warps."""


def solve(
    laplacian: Tensor,
    D_obs: Tensor,
    observed: Tensor,
    *,
    alpha: float,
    rho: float,
    step: float,
    max_iter: int,
    tol: float,
    constraint: bool,
) -> Solution:
    """As ``algorithm1.solve``, to rounding. The Laplacian is a sparse tensor in CSR layout."""
    n_rows, n_labels = D_obs.shape
    columns = padded(n_labels)
    D, D_next, product = aligned(D_obs), aligned(D_obs), torch.empty_like(D_obs)
    Y, W = torch.empty_like(D_obs), torch.empty_like(D_obs if constraint else D_obs[:1])
    n_programs = triton.cdiv(n_rows, TILE_ROWS * TILES)
    grams, gaps = D_obs.new_empty((n_programs, columns, columns)), D_obs.new_empty((n_programs, 2))
    M, steps = D_obs.new_zeros((columns, columns)), D_obs.new_tensor([rho, step, 1 / rho, 1 / n_labels])
    mask = observed.view(torch.uint8)
    low_rank_gaps: list[float] = []
    proportion_gaps: list[float] = []
    multiply(laplacian, D, product)
    for n_iter in range(max_iter + 1):
        with torch.cuda.device_of(D):
            _step_rows[(n_programs,)](
                *(product, D, D_next, Y, W, D_obs, mask, M, steps, grams, gaps, n_rows),
                **{"n_labels": n_labels, "WIDTH": D.stride(0), "COLUMNS": columns, "ROWS": TILE_ROWS, "TILES": TILES},
                START=n_iter == 0,
                CONSTRAINT=constraint,
                num_warps=TILE_WARPS,
            )
        arrived = _send_to_host(grams, gaps, n_labels)
        if n_iter < max_iter:
            multiply(laplacian, D_next, product)
        gram, (low_rank, proportions) = arrived()
        if n_iter:
            low_rank_gaps.append(float(low_rank))
            if constraint:
                proportion_gaps.append(float(proportions))
            converged = bool(max(low_rank, proportions) < tol)
            if converged or n_iter == max_iter:
                return Solution(D.contiguous(), history_of(low_rank_gaps, proportion_gaps), converged, n_iter)
        M[:n_labels, :n_labels] = torch.from_numpy(shrinkage(gram, alpha / rho)).to(M, non_blocking=True)
        D, D_next = D_next, D
    raise AssertionError("the last sweep returns")


def multiply(matrix: Tensor, D: Tensor, out: Tensor) -> Tensor:
    """The product of a sparse matrix in CSR layout and a dense one with few columns."""
    n_rows, n_labels = len(out), D.shape[1]
    with torch.cuda.device_of(D):
        _multiply[(triton.cdiv(n_rows, LOOKUP_ROWS),)](
            *(matrix.crow_indices(), matrix.col_indices(), matrix.values(), D, out, n_rows),
            **{"n_labels": n_labels, "WIDTH": D.stride(0), "COLUMNS": padded(n_labels)},
            **{"ROWS": LOOKUP_ROWS, "AT_ONCE": LOOKUPS_AT_ONCE},
        )
    return out


def aligned(D: Tensor) -> Tensor:
    """A copy whose rows lie within as few lines of memory as they can: a look-up fetches whole lines."""
    n_rows, n_labels = D.shape
    width = min(triton.next_power_of_2(n_labels), triton.cdiv(n_labels, LINE) * LINE)
    return D.new_zeros((n_rows, width))[:, :n_labels].copy_(D)


def padded(n_labels: int) -> int:
    """Columns of a tile in registers."""
    return max(FEWEST_COLUMNS, triton.next_power_of_2(n_labels))


def _send_to_host(grams: Tensor, gaps: Tensor, n_labels: int) -> Callable[[], tuple[Any, Any]]:
    """Y'Y and the largest gaps, in one copy; the function that comes back waits for it."""
    gram = grams.sum(dim=0, dtype=torch.float64)[:n_labels, :n_labels]
    numbers = torch.cat([gram.reshape(-1), gaps.amax(dim=0).double()])
    on_host = torch.empty(numbers.shape, dtype=numbers.dtype, pin_memory=numbers.is_cuda)
    on_host.copy_(numbers, non_blocking=True)
    copied = torch.cuda.current_stream(numbers.device).record_event() if numbers.is_cuda else None

    def arrived() -> tuple[Any, Any]:
        if copied is not None:
            copied.synchronize()
        received = on_host.numpy()
        return np.ascontiguousarray(received[:-2].reshape(n_labels, n_labels)), received[-2:]

    return arrived


@triton.jit
def _multiply(
    starts,
    columns,
    values,
    D,
    out,
    n_rows,
    n_labels: tl.constexpr,
    WIDTH: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    AT_ONCE: tl.constexpr,
):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    labels = tl.arange(0, COLUMNS)
    inside, known = rows < n_rows, labels < n_labels
    first = tl.load(starts + rows, mask=inside, other=0)
    count = tl.load(starts + rows + 1, mask=inside, other=0) - first
    total = tl.zeros([ROWS, COLUMNS], dtype=D.dtype.element_ty)
    for k in range(0, tl.max(count, axis=0), AT_ONCE):
        for u in tl.static_range(AT_ONCE):
            there = k + u < count
            neighbor = tl.load(columns + first + (k + u), mask=there, other=0).to(tl.int64)
            weight = tl.load(values + first + (k + u), mask=there, other=0.0)
            cells = neighbor[:, None] * WIDTH + labels[None, :]
            total += weight[:, None] * tl.load(D + cells, mask=there[:, None] & known[None, :], other=0.0)
    cells = rows.to(tl.int64)[:, None] * n_labels + labels[None, :]
    tl.store(out + cells, total, mask=inside[:, None] & known[None, :])


@triton.jit
def _step_rows(
    product,
    D,
    D_next,
    Y,
    W,
    shares,
    observed,
    M,
    steps,
    grams,
    gaps,
    n_rows,
    n_labels: tl.constexpr,
    WIDTH: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    TILES: tl.constexpr,
    START: tl.constexpr,
    CONSTRAINT: tl.constexpr,
):
    program = tl.program_id(0)
    labels = tl.arange(0, COLUMNS)
    square = labels[:, None] * COLUMNS + labels[None, :]
    shrinking = tl.load(M + square)
    rho, step = tl.load(steps), tl.load(steps + 1)
    multiplier, uniform = tl.load(steps + 2), tl.load(steps + 3)
    gram = tl.zeros([COLUMNS, COLUMNS], dtype=D.dtype.element_ty)
    low_rank_gaps = tl.zeros([ROWS], dtype=D.dtype.element_ty)
    proportion_gaps = tl.zeros([ROWS], dtype=D.dtype.element_ty)
    for tile in range(TILES):
        rows = (program * TILES + tile) * ROWS + tl.arange(0, ROWS)
        cells = rows.to(tl.int64)[:, None] * n_labels + labels[None, :]
        real = (rows < n_rows)[:, None] & (labels < n_labels)[None, :]
        places = rows.to(tl.int64)[:, None] * WIDTH + labels[None, :]
        d = tl.load(D + places, mask=real, other=0.0)
        slope = tl.load(product + cells, mask=real, other=0.0)
        # The split A = Y M, and the multiplier over rho, which is what it leaves of Y.
        if START:
            split = tl.full([ROWS, COLUMNS], 1.0, dtype=D.dtype.element_ty)
            low_rank_rest = split * multiplier
        else:
            y = tl.load(Y + cells, mask=real, other=0.0)
            split = tl.dot(y, shrinking, input_precision="ieee")
            low_rank_rest = y - split
        off = tl.where(real, d - split, 0.0)
        low_rank_gaps = tl.maximum(low_rank_gaps, tl.max(tl.abs(off), axis=1))
        slope += rho * (off + low_rank_rest)
        if CONSTRAINT:
            # The split B: W with its observed part proportional to the shares.
            if START:
                split = tl.full([ROWS, COLUMNS], 1.0, dtype=D.dtype.element_ty)
                rest = split * multiplier
            else:
                w = tl.load(W + cells, mask=real, other=0.0)
                share = tl.load(shares + cells, mask=real, other=0.0)
                seen = tl.load(observed + cells, mask=real, other=0) != 0
                squares = tl.sum(share * share, axis=1)
                scaling = tl.sum(w * share, axis=1) / tl.where(squares > 0, squares, 1.0)
                split = tl.where(seen, scaling[:, None] * share, w)
                rest = w - split
            off = tl.where(real, d - split, 0.0)
            proportion_gaps = tl.maximum(proportion_gaps, tl.max(tl.abs(off), axis=1))
            slope += rho * (off + rest)
        d = tl.where(real, tl.maximum(d - step * slope, 0.0), 0.0)
        total = tl.sum(d, axis=1)[:, None]
        d = tl.where(total > 0, d / tl.where(total > 0, total, 1.0), uniform)
        tl.store(D_next + places, d, mask=real)
        y = tl.where(real, low_rank_rest + d, 0.0)
        tl.store(Y + cells, y, mask=real)
        gram += tl.dot(tl.trans(y), y, input_precision="ieee")
        if CONSTRAINT:
            tl.store(W + cells, rest + d, mask=real)
    tl.store(grams + program * COLUMNS * COLUMNS + square, gram)
    tl.store(gaps + program * 2, tl.max(low_rank_gaps, axis=0))
    tl.store(gaps + program * 2 + 1, tl.max(proportion_gaps, axis=0))
