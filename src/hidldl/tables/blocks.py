"""Blocks of columns whose rows sum to a total, found among many columns without trying every block on every row."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hidldl.arrays import BoolArray, FloatArray, IntArray

MOSTLY = 0.95
"""The part of the rows with labels that must sum to the total: a few may have a slip of the pen."""
LOOSEST = 0.1
"""How far from the total a sum may be, as a part of it, however coarsely the cells are rounded."""
TIGHTEST = 1e-3
"""How far a sum may be from the total where the cells are not rounded: they may be printed with few digits."""
EXACT = 1e-6
"""How far sums are from the total where nothing was rounded; files with single precision are about as far."""
N_SCREENED = 30
"""Rows by which most blocks are ruled out: few, since few may have labels."""
AT_ONCE = 2_000_000
"""Sums that are held in memory at the same time."""


@dataclass(frozen=True)
class Block:
    """Columns whose rows sum to a total, by their places.

    ``residual`` is the root mean square of the sums' distance from the total, as a part of it; ``is_exact`` says
    whether rounding explains it. ``fits`` is the part of the rows with labels that sum to the total.
    """

    columns: tuple[int, ...]
    residual: float
    is_exact: bool
    fits: float


def find_blocks(
    cells: FloatArray, total: FloatArray, steps: FloatArray, traits: IntArray, complete_only: bool
) -> list[Block]:
    """Blocks of neighbours among columns that do not overlap; of those that do, the one with the smallest residual.

    Hidden cells are NaN; ``total`` is what each row should sum to. ``steps`` are the steps to which columns are
    rounded, 0 where they are not. ``traits`` are numbers for what columns have in common, one row per trait. The first,
    a family of names, may differ within a block; the others seldom do.
    """
    return _Sums.of(cells, total, steps, traits, complete_only).blocks()


@dataclass(frozen=True)
class _Sums:
    """Running sums over columns, from which the sums of any block follow by one subtraction."""

    upto: FloatArray
    n_observed: IntArray
    variance: FloatArray
    is_empty: BoolArray
    alike: FloatArray
    n_changes: FloatArray
    complete_only: bool

    @classmethod
    def of(
        cls, cells: FloatArray, total: FloatArray, steps: FloatArray, traits: IntArray, complete_only: bool
    ) -> "_Sums":
        """For cells in the order in which columns are to be neighbours."""
        shares = np.nan_to_num(cells) / total[:, None]
        # No share is above 1. Cut off what is, or large features would cost the digits of small shares.
        shares = np.clip(shares, 0, 2)
        is_like_next = traits[:, 1:] == traits[:, :-1]
        return cls(
            upto=_running(shares),
            n_observed=_running(~np.isnan(cells)).astype(np.int64),
            variance=_running((steps / np.median(total)) ** 2 / 12),
            is_empty=np.asarray(~shares.any(axis=0)),
            alike=np.pad(np.where(is_like_next[1:].all(axis=0), 1.0 + is_like_next[0], 0), 1),
            n_changes=_running((~is_like_next[1:]).sum(axis=0)),
            complete_only=complete_only,
        )

    def blocks(self) -> list[Block]:
        starts, ends = self._candidates()
        candidates: list[tuple[int, int, float, float]] = []
        size = max(1, AT_ONCE // len(self.upto))
        for at in range(0, len(starts), size):
            candidates += self._check(starts[at : at + size], ends[at : at + size])
        chosen = _without_overlaps(candidates, self._oddity, noise=3 / np.sqrt(len(self.upto)))
        return [
            Block(tuple(range(a, b)), residual, residual <= 3 * max(float(self._expected(a, b)), EXACT), fits)
            for a, b, residual, fits in chosen
        ]

    def _candidates(self) -> tuple[IntArray, IntArray]:
        """Starts and ends of blocks that fit more than half of some rows with many observed cells.

        Cells are not negative, so running sums never fall: for each start and row, the ends that fit are an interval.
        """
        rows = np.argsort(-self.n_observed[:, -1], kind="stable")[:N_SCREENED]
        upto = self.upto[rows]
        n_rows, n_edges = upto.shape
        # One search for all rows: each row is lifted above the one before.
        lift = np.arange(n_rows)[:, None] * (2.0 * n_edges + 4)
        lifted, first_edge = upto + lift, np.arange(n_rows)[:, None] * n_edges
        widest = float(self._tolerance(0, n_edges - 1))
        low = np.searchsorted(lifted.ravel(), lifted + (1 - widest), side="left") - first_edge
        high = np.searchsorted(lifted.ravel(), lifted + (1 + widest), side="right") - 1 - first_edge
        nth = int(0.6 * (n_rows - 1))
        from_end = np.maximum(np.partition(low, nth, axis=0)[nth], np.arange(n_edges) + 2)
        to_end = np.minimum(np.partition(high, n_rows - 1 - nth, axis=0)[n_rows - 1 - nth], n_edges - 1)
        counts = np.maximum(to_end - from_end + 1, 0)
        starts = np.repeat(np.arange(n_edges), counts)
        ends = np.arange(len(starts)) - np.repeat(counts.cumsum() - counts, counts) + np.repeat(from_end, counts)
        # A column of zeros beside the labels changes no sum and is none of them.
        keep = ~self.is_empty[starts] & ~self.is_empty[ends - 1]
        return starts[keep], ends[keep]

    def _check(self, starts: IntArray, ends: IntArray) -> list[tuple[int, int, float, float]]:
        """Start, end, residual and fit of the blocks that sum to the total in nearly all rows with labels."""
        sums = self.upto[:, ends] - self.upto[:, starts]
        n_observed = self.n_observed[:, ends] - self.n_observed[:, starts]
        labelled = n_observed == ends - starts if self.complete_only else n_observed > 0
        positive = labelled & (sums > EXACT)
        off = np.where(positive, np.abs(sums - 1), 0)
        n_fit = (positive & (off <= self._tolerance(starts, ends))).sum(axis=0)
        n_positive, n_labelled = positive.sum(axis=0), labelled.sum(axis=0)
        n_rows = len(sums)
        enough = min(n_rows, max(3, (0.1 if self.complete_only else 0.02) * n_rows))
        good = (n_fit >= MOSTLY * n_positive) & (n_positive >= 0.5 * n_labelled) & (n_positive >= enough)
        divisor = np.maximum(n_positive, 1)
        residual = np.sqrt((np.minimum(off, 2 * LOOSEST) ** 2).sum(axis=0) / divisor)
        fits = zip(starts[good], ends[good], residual[good], (n_fit / divisor)[good], strict=True)
        return [(int(a), int(b), float(r), float(f)) for a, b, r, f in fits]

    def _expected(self, starts: IntArray | int, ends: IntArray | int) -> FloatArray:
        return np.sqrt(self.variance[ends] - self.variance[starts])

    def _tolerance(self, starts: IntArray | int, ends: IntArray | int) -> FloatArray:
        return np.clip(3 * self._expected(starts, ends), TIGHTEST, LOOSEST)

    def _oddity(self, start: int, end: int) -> float:
        """How much a block mixes columns of other kinds, and how much those at its edges are like those beyond."""
        return float(self.alike[start] + self.alike[end] + self.n_changes[end - 1] - self.n_changes[start])


def _running(cells: NDArray[np.generic]) -> FloatArray:
    """Sums over the columns before each edge, from 0."""
    sums = np.cumsum(cells, axis=-1, dtype=float)
    return np.concatenate([np.zeros((*sums.shape[:-1], 1)), sums], axis=-1)


def _without_overlaps(
    candidates: list[tuple[int, int, float, float]], oddity: Callable[[int, int], float], noise: float
) -> Iterator[tuple[int, int, float, float]]:
    """The blocks with the smallest residuals; of about equal ones that overlap the least odd."""
    rest = sorted(candidates, key=lambda block: block[2])
    while rest:
        first = rest[0]
        rivals = [block for block in rest if _overlap(block, first) and block[2] <= (1 + noise) * first[2] + EXACT]
        best = min(rivals, key=lambda block: (oddity(block[0], block[1]), block[0] - block[1]))
        yield best
        rest = [block for block in rest if not _overlap(block, best)]


def _overlap(one: tuple[int, int, float, float], other: tuple[int, int, float, float]) -> bool:
    return one[0] < other[1] and other[0] < one[1]
