"""What ``logisticnormal`` computes row by row, as one kernel for an NVIDIA card, written in Triton.

A program holds some rows with their m × m matrices in registers and goes through all of Newton's method with them, so
that a row is read and written once. B⁻¹ comes from sweeping B label by label, which also gives the determinant: the
pivots are those of the Cholesky factor, squared.
"""

import torch
import triton
import triton.language as tl

from hidldl.arrays import Tensor
from hidldl.recovery.logisticnormal_torch import NEVER, SMALLEST_STEP

MOST_LABELS = 32
"""Matrices of more labels do not fit into the registers of a program."""
NUMBERS, TILES = 2048, 32
"""Numbers of the matrices that a program holds at a time, and through how many such sets of rows it goes."""


def find_modes(
    S: Tensor,
    mean: Tensor,
    scale: Tensor,
    shares: Tensor,
    presence: Tensor,
    nu: Tensor,
    max_newton: int,
    tol: float,
    importance: Tensor,
    weights: Tensor,
    slope: Tensor,
    evidence: Tensor,
) -> None:
    """As ``logisticnormal.find_modes``, for at most ``MOST_LABELS`` labels. Arrays are contiguous.

    Numbers are float64 within: where nu is large, sweeping loses too many digits of float32.
    """
    n_rows, n_labels = mean.shape
    outputs = weights, evidence
    arrays = (S, mean, scale, shares, presence, nu, importance, weights, evidence)
    S, mean, scale, shares, presence, nu, importance, weights, evidence = (array.double() for array in arrays)
    columns = triton.next_power_of_2(n_labels)
    rows = max(NUMBERS // columns**2, 1)
    n_programs = triton.cdiv(n_rows, rows * TILES)
    slopes = mean.new_empty((n_programs, columns, columns))
    with torch.cuda.device_of(mean):
        _find_modes[(n_programs,)](
            *(S, mean, scale, shares, presence, nu, importance, weights, evidence, slopes, n_rows, tol),
            MAX_NEWTON=max_newton,
            **{"n_labels": n_labels, "COLUMNS": columns, "ROWS": rows, "TILES": TILES},
            **{"SLACK": 4 * torch.finfo(mean.dtype).eps, "NEVER": NEVER, "SMALLEST_STEP": SMALLEST_STEP},
        )
    slope += slopes.sum(dim=0)[:n_labels, :n_labels].to(slope)
    for kept, computed in zip(outputs, (weights, evidence), strict=True):
        kept.copy_(computed)


@triton.jit
def _find_modes(
    S,
    mean,
    scale,
    shares,
    presence,
    nu,
    importance,
    weights,
    evidence,
    slopes,
    n_rows,
    tol,
    MAX_NEWTON: tl.constexpr,
    n_labels: tl.constexpr,
    COLUMNS: tl.constexpr,
    ROWS: tl.constexpr,
    TILES: tl.constexpr,
    SLACK: tl.constexpr,
    NEVER: tl.constexpr,
    SMALLEST_STEP: tl.constexpr,
):
    program = tl.program_id(0)
    labels = tl.arange(0, COLUMNS)
    known = labels < n_labels
    prior = tl.load(S + labels[:, None] * n_labels + labels[None, :], mask=known[:, None] & known[None, :], other=0.0)
    slope = tl.zeros([COLUMNS, COLUMNS], dtype=mean.dtype.element_ty)
    for tile in range(TILES):
        rows = (program * TILES + tile) * ROWS + tl.arange(0, ROWS)
        inside = rows < n_rows
        cells = rows.to(tl.int64)[:, None] * n_labels + labels[None, :]
        real = inside[:, None] & known[None, :]
        there = tl.load(presence + cells, mask=real, other=0.0)
        seen = there > 0
        center = tl.load(mean + cells, mask=real, other=0.0) + tl.log(tl.where(seen, there, 1.0))
        center = tl.where(seen, center, NEVER)
        d = tl.where(seen, tl.load(shares + cells, mask=real, other=0.0), 0.0)
        a = tl.where(seen, tl.load(weights + cells, mask=real, other=0.0), 0.0)
        t = tl.load(scale + rows, mask=inside, other=1.0)
        counts = tl.load(nu + rows, mask=inside, other=1.0)
        weight = tl.load(importance + rows, mask=inside, other=0.0)
        works = tl.sum(seen.to(tl.int32), axis=1) > 0
        if MAX_NEWTON == 0:
            works = works & (weight > 0)
        f = _times(a, prior, t)
        loss, p = _loss(center, a, f, d, counts)
        # The last round's a, under this round's S, can be worse than a = 0.
        nothing = tl.zeros_like(a)
        loss_at_0, p_at_0 = _loss(center, nothing, nothing, d, counts)
        worse = loss_at_0 <= loss
        a, f = tl.where(worse[:, None], 0.0, a), tl.where(worse[:, None], 0.0, f)
        p, loss = tl.where(worse[:, None], p_at_0, p), tl.where(worse, loss_at_0, loss)
        inverse, log_determinant = _invert(prior, t, counts, p, n_labels, COLUMNS)
        # How many steps each row may still take.
        left = tl.where(works, MAX_NEWTON, 0)
        while tl.max(left, axis=0) > 0:
            active = left > 0
            r = tl.sqrt(p)
            b = counts[:, None] * (p * (f - tl.sum(p * f, axis=1)[:, None]) + d - p)
            x = _project(r * _times(b, prior, t), r)
            x = _project(tl.sum(inverse * x[:, None, :], axis=2), r)
            along = b - counts[:, None] * r * x - a
            along_f = _times(along, prior, t)
            length = tl.full([ROWS], 1.0, dtype=mean.dtype.element_ty)
            new_loss, new_p = _loss(center, a + along, f + along_f, d, counts)
            # What rounding adds to the loss is no rise.
            highest = loss + SLACK * tl.abs(loss)
            rises = active & ((new_loss <= highest) == 0)
            while tl.max(rises.to(tl.int32), axis=0) > 0:
                length = tl.where(rises, 0.5 * length, length)
                step = length[:, None]
                new_loss, new_p = _loss(center, a + step * along, f + step * along_f, d, counts)
                rises = active & ((new_loss <= highest) == 0) & (length > SMALLEST_STEP)
            moves = active & (new_loss <= highest)
            moved = tl.where(moves, length, 0.0)[:, None]
            a += moved * along
            f += moved * along_f
            # Steps that gain no more than rounding do would only add to it.
            goes_on = moves & (loss - new_loss >= tl.maximum(tol, SLACK * tl.abs(loss)))
            loss, p = tl.where(moves, new_loss, loss), tl.where(moves[:, None], new_p, p)
            inverse, log_determinant = _invert(prior, t, counts, p, n_labels, COLUMNS)
            left = tl.where(goes_on, left - 1, 0)
        tl.store(weights + cells, a, mask=real & works[:, None])
        tl.store(evidence + rows, -loss - log_determinant, mask=inside & works)
        # A = nu diag(r) P B⁻¹ P diag(r), with P = I - r r'.
        r = tl.sqrt(p)
        y = tl.sum(inverse * r[:, None, :], axis=2)
        inner = tl.sum(r * y, axis=1)[:, None, None]
        both = r[:, :, None] * r[:, None, :]
        A = inverse - r[:, :, None] * y[:, None, :] - y[:, :, None] * r[:, None, :] + inner * both
        factor = tl.where(works & (weight > 0), weight * t, 0.0)[:, None, None]
        slope += tl.sum(factor * (a[:, :, None] * a[:, None, :] - counts[:, None, None] * both * A), axis=0)
    square = labels[:, None] * COLUMNS + labels[None, :]
    tl.store(slopes + program.to(tl.int64) * COLUMNS * COLUMNS + square, slope)


@triton.jit
def _times(x, S, t):
    return t[:, None] * tl.sum(x[:, :, None] * S[None, :, :], axis=1)


@triton.jit
def _project(x, r):
    return x - tl.sum(r * x, axis=1)[:, None] * r


@triton.jit
def _loss(center, a, f, d, counts):
    z = center + f
    top = tl.max(z, axis=1)
    p = tl.exp(z - top[:, None])
    total = tl.sum(p, axis=1)
    excess = top + tl.log(total) - tl.sum(d * z, axis=1)
    return 0.5 * tl.sum(a * f, axis=1) + counts * excess, p / total[:, None]


@triton.jit
def _invert(S, t, counts, p, n_labels: tl.constexpr, COLUMNS: tl.constexpr):
    """The inverse of B and half the logarithm of its determinant."""
    labels = tl.arange(0, COLUMNS)
    row, column = labels[None, :, None], labels[None, None, :]
    r, q = tl.sqrt(p), _times(p, S, t)
    inner = tl.sum(p * q, axis=1)[:, None, None]
    B = t[:, None, None] * S[None, :, :] - q[:, :, None] - q[:, None, :] + inner
    B = (counts[:, None] * r)[:, :, None] * r[:, None, :] * B + tl.where(row == column, 1.0, 0.0)
    log_determinant = tl.zeros_like(t)
    for j in range(n_labels):
        own = tl.sum(tl.where(column == j, B, 0.0), axis=2)
        # At least 1 but for rounding.
        pivot = tl.maximum(tl.sum(tl.where(labels[None, :] == j, own, 0.0), axis=1), 1.0)
        log_determinant += 0.5 * tl.log(pivot)
        ratio = own / pivot[:, None]
        swept = B - own[:, :, None] * ratio[:, None, :]
        swept = tl.where(row == j, ratio[:, None, :], tl.where(column == j, ratio[:, :, None], swept))
        B = tl.where((row == j) & (column == j), (-1.0 / pivot)[:, None, None], swept)
    return -B, log_determinant
