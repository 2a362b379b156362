"""The ways in which the columns of a table can be read as labels, with points for what speaks for each."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from hidldl.arrays import BoolArray, FloatArray, IntArray
from hidldl.tables.blocks import LOOSEST, MOSTLY, Block, find_blocks
from hidldl.tables.words import TOTAL_WORDS, goes_on, name_points, name_traits, words

MOST_SCATTERED = 200
"""Columns among which labels are looked for that are not next to each other."""
MOST_FAMILIES = 20
"""Families of names whose columns are tried as neighbours."""
MOST_TOTALS = 8
"""Columns, and fixed numbers of votes, that are tried as totals."""
FEW_ROWS = 10
"""Rows with labels below which sums may be a matter of chance."""
SUMS, GAPS, NAMES = 2.0, 2.0, 2.0
"""Points of a reading: its rows sum to a total, also where they have gaps, and its names are those of labels. Names of
features cost as many."""
COUNTS, GAPS_IN_COUNTS = 1.0, 1.0
"""Points of counts, which sum to something else in every row: with zeros in a group of their own, and with gaps."""
LEAD = 1.5
"""Points by which a reading must be ahead of all others."""


@dataclass(frozen=True)
class Reading:
    """Columns that can be the labels, and what speaks for them.

    ``low``, ``middle`` and ``high`` are typical sums of rows: all but the outer 5 % are between low and high. ``fits``
    is the part of the rows with labels that sum to the total; NaN where sums differ from row to row. ``is_apart`` says
    whether anything tells where the block ends; ``n_rows`` are the rows with labels that were looked at.
    """

    labels: tuple[str, ...]
    kind: Literal["shares", "percentages", "counts"]
    low: float
    middle: float
    high: float
    fits: float
    points: float
    is_apart: bool
    n_rows: int

    def describe(self) -> str:
        """Kind and typical sums in a few words."""
        if np.isnan(self.fits) or self.high - self.low > 0.2 * self.middle:
            return f"{self.kind}, whose rows sum to {self.low:.4g} to {self.high:.4g}"
        return f"{self.kind}, which sum to {self.middle:.6g} in {np.floor(100 * self.fits):.0f} % of the rows"


@dataclass(frozen=True)
class Guess:
    """The readings of a table, the best first.

    ``rivals`` are those between which nothing decides. ``best`` is the reading that is well ahead, if there is one and
    something speaks for it. ``confidence`` says how sure it is: by sums and something else, by sums or names, or by
    less or by few rows. ``described`` says kind, typical sums and confidence in a few words.
    """

    readings: tuple[Reading, ...] = ()
    rivals: tuple[Reading, ...] = ()
    best: Reading | None = None
    confidence: Literal["sure", "likely", "unsure"] = "unsure"
    described: str = ""

    @classmethod
    def of(cls, candidates: Sequence[Reading]) -> "Guess":
        """From all readings."""
        readings = tuple(sorted(candidates, key=lambda reading: -reading.points))
        rivals = tuple(reading for reading in readings if reading.points > readings[0].points - LEAD)
        if len(rivals) != 1 or rivals[0].points <= 0 or not rivals[0].is_apart:
            return cls(readings, rivals)
        best = rivals[0]
        points = best.points if best.n_rows >= FEW_ROWS else 0
        confidence: Literal["sure", "likely", "unsure"] = (
            "sure" if points >= SUMS + NAMES else "likely" if points >= SUMS else "unsure"
        )
        described = best.describe() + ("" if confidence == "sure" else f" ({confidence})")
        return cls(readings, rivals, best, confidence, described)


def guess_among(names: Sequence[str], cells: FloatArray) -> Guess:
    """All readings of columns of numbers, NaN where a cell is hidden."""
    return _Candidates.of(names, cells).guess()


@dataclass(frozen=True)
class _Candidates:
    """Columns that can be labels, in the order of the table: numbers that are never negative and not constant."""

    names: tuple[str, ...]
    cells: FloatArray
    steps: FloatArray
    families: NDArray[np.str_]
    groups: NDArray[np.str_]
    are_features: list[bool]
    others: tuple[str, ...]

    @classmethod
    def of(cls, names: Sequence[str], cells: FloatArray) -> "_Candidates":
        low = np.fmin.reduce(cells, axis=0, initial=np.inf)
        high = np.fmax.reduce(cells, axis=0, initial=-np.inf)
        # Zeros only may be a label that was never seen; another constant without gaps is none.
        varies = (low < high) | (high == 0) | np.isnan(cells).any(axis=0)
        keep = (low >= 0) & (high < np.inf) & varies
        others = tuple(name for name, kept in zip(names, keep, strict=True) if not kept)
        kept_names = tuple(name for name, kept in zip(names, keep, strict=True) if kept)
        families, groups, are_features = name_traits(kept_names)
        return cls(
            names=kept_names,
            cells=cells[:, keep],
            steps=_steps(cells[:, keep]),
            families=np.array(families, dtype=np.str_),
            groups=np.array(groups, dtype=np.str_),
            are_features=are_features,
            others=others,
        )

    @cached_property
    def gaps(self) -> BoolArray:
        return np.isnan(self.cells)

    @cached_property
    def highest(self) -> FloatArray:
        return np.fmax.reduce(self.cells, axis=0, initial=0)

    @cached_property
    def _have_zeros(self) -> BoolArray:
        """Which columns have zeros or gaps, or belong to a family of which most have, as those of counts do."""
        alone = np.asarray(((self.cells == 0) | self.gaps).any(axis=0))
        shares = pd.Series(alone).groupby(self.families).transform("mean").to_numpy(float)
        return alone | ((shares >= 0.5) & (self.families != ""))

    @cached_property
    def counts(self) -> BoolArray:
        """Which columns hold whole numbers that are more than yes and no."""
        return (self.steps == 1) & (self.highest > 1)

    def guess(self) -> Guess:
        if self.cells.shape[0] < 2 or self.cells.shape[1] < 2:
            return Guess()
        readings = self._sum_readings(complete_only=False) or self._sum_readings(complete_only=True)
        readings = readings or self._scattered_readings()
        taken = {name for reading in readings for name in reading.labels}
        readings += [reading for reading in self._count_readings() if taken.isdisjoint(reading.labels)]
        readings = readings or [self._reading(sorted(run), np.nan) for run in self._runs(self.counts, at_least=2)]
        return Guess.of(readings)

    # Labels by their sums.

    def _sum_readings(self, complete_only: bool) -> list[Reading]:
        """Blocks that do not overlap: with the smallest residual first, then as they stand in the table, then wide."""
        pairs: list[tuple[int, Block]] = []
        for total in self._totals():
            tried: set[bytes] = set()
            for rank, order in enumerate(self._orders(total)):
                if order.tobytes() not in tried and self._can_reach(total, order):
                    blocks = self._blocks(order, total, complete_only)
                    pairs += [(rank, block) for block in blocks if self._is_mixture(block)]
                tried.add(order.tobytes())
        if any(block.is_exact for _, block in pairs):
            pairs = [(rank, block) for rank, block in pairs if block.is_exact]
        chosen: list[Block] = []
        for _, block in sorted(pairs, key=lambda pair: (round(pair[1].residual, 6), pair[0], -len(pair[1].columns))):
            places = set(block.columns)
            # Blocks next to each other sum to something fixed together as well.
            is_union = any(places > set(other.columns) for _, other in pairs)
            if not is_union and all(places.isdisjoint(other.columns) for other in chosen):
                chosen.append(block)
        return [self._reading(block.columns, block.fits) for block in chosen]

    def _totals(self) -> Iterator[FloatArray]:
        """What the rows of labels may sum to: 1, 100, a column called total, or a fixed number of votes."""
        n_rows = len(self.cells)
        yield np.ones(n_rows)
        yield np.full(n_rows, 100.0)
        called = [j for j, name in enumerate(self.names) if not TOTAL_WORDS.isdisjoint(words(name))]
        for j in [j for j in called if self.highest[j] > 1 and not self.gaps[:, j].any()][:MOST_TOTALS]:
            yield self.cells[:, j]
        for total in self._fixed_totals():
            yield np.full(n_rows, total)

    def _fixed_totals(self) -> list[float]:
        """Numbers to which columns of counts next to each other sum in nearly every row."""
        counts = np.flatnonzero(self.counts)[:MOST_SCATTERED]
        rows = np.nan_to_num(self.cells[:: max(1, len(self.cells) // 50)][:, counts])
        upto = np.concatenate([np.zeros((len(rows), 1)), rows.cumsum(axis=1)], axis=1)
        starts, ends = np.triu_indices(len(counts) + 1, k=2)
        sums = upto[:, ends] - upto[:, starts]
        is_fixed = (sums == np.median(sums, axis=0)).mean(axis=0) >= MOSTLY
        totals, n_blocks = np.unique(np.median(sums[:, is_fixed], axis=0), return_counts=True)
        return [float(total) for total in totals[np.argsort(-n_blocks)] if total > 1 and total != 100][:MOST_TOTALS]

    def _orders(self, total: FloatArray) -> Iterator[IntArray]:
        """Ways to put columns next to each other: as in the table, only those with gaps, and those called alike."""
        fits = (np.nan_to_num(self.cells) <= 1.05 * total[:, None]).mean(axis=0) >= MOSTLY
        is_total = (self.cells == total[:, None]).all(axis=0)
        usable = fits & ~is_total
        yield np.flatnonzero(usable)
        has_gaps = self.gaps.any(axis=0)
        if has_gaps.any() and not has_gaps.all():
            yield np.flatnonzero(usable & has_gaps)
        sizes = Counter(self.families.tolist())
        for name in [name for name, size in sizes.most_common(MOST_FAMILIES) if name and size > 1]:
            places = np.flatnonzero((self.families == name) & usable)
            if (np.diff(places) > 1).any():
                yield places
        labels = self.groups != ""
        if labels.any():
            yield np.flatnonzero(labels & usable)

    def _can_reach(self, total: FloatArray, order: IntArray) -> bool:
        """Whether all these columns together come near the total in any row; a block of them does only then."""
        return bool((np.nansum(self.cells[:, order], axis=1) >= (1 - 2 * LOOSEST) * total).any())

    def _blocks(self, order: IntArray, total: FloatArray, complete_only: bool) -> list[Block]:
        if len(order) < 2:
            return []
        rows = total > 0
        # Counts are not rounded, nor are zeros and ones; whole percentages are.
        is_rounded = bool((total == total[0]).all()) and total[0] in (1, 100)
        rounded = self.steps * (is_rounded & ((self.steps < 1) | (self.highest > 1)))
        cells, traits = self.cells[rows][:, order], self._traits(order)
        blocks = find_blocks(cells, total[rows], rounded[order], traits, complete_only)
        return [replace(block, columns=tuple(order[list(block.columns)].tolist())) for block in blocks]

    def _traits(self, order: IntArray) -> IntArray:
        """What columns have in common: their family of names, gaps or none, and how far they are rounded, if at all."""
        is_indicator = (self.steps == 1) & (self.highest <= 1)
        traits: list[Any] = [self.families, self.gaps.any(axis=0), np.where(is_indicator, np.inf, self.steps)]
        return np.stack([pd.factorize(trait)[0] for trait in traits])[:, order]

    def _is_mixture(self, block: Block) -> bool:
        """Whether rows spread over columns: those of indicators, and of a total beside zeros, do not."""
        cells = np.nan_to_num(self.cells[:, list(block.columns)])
        spread = ((cells > 0).sum(axis=1) > 1).mean() >= 0.05 and ((cells > 0).mean(axis=0) > 0.01).sum() > 1
        return bool(spread and not np.isin(cells, (0, 1)).all())

    def _scattered_readings(self) -> list[Reading]:
        """Labels anywhere in the table: the columns that least squares needs once each to make up the total."""
        has_gaps = self.gaps.any(axis=0)
        rows = ~self.gaps[:, has_gaps].all(axis=1) if has_gaps.any() else np.ones(len(self.cells), dtype=bool)
        for total in (1.0, 100.0):
            places = np.flatnonzero((self.highest <= 1.05 * total) & (self.highest > 0))
            if not 2 <= len(places) <= min(MOST_SCATTERED, rows.sum() // 2):
                continue
            cells = np.nan_to_num(self.cells[rows][:, places])
            weights = np.linalg.lstsq(cells, np.full(len(cells), total), rcond=None)[0]
            order = places[weights > 0.5]
            blocks = self._blocks(order, np.full(len(self.cells), total), complete_only=False)
            if len(blocks) == 1 and len(blocks[0].columns) == len(order) and self._is_mixture(blocks[0]):
                return [self._reading(blocks[0].columns, blocks[0].fits)]
        return []

    # Counts whose sums differ from row to row.

    def _count_readings(self) -> list[Reading]:
        """Counts called as labels are, and counts next to each other, with zeros or without."""
        called = self.groups
        groups = [{*np.flatnonzero((called == name) & self.counts).tolist()} for name in sorted({*called} - {""})]
        # Of labels with names of their own, some may have a name that is not known: then there are two readings.
        likely = self.counts & (self._have_zeros | (called == "value"))
        for run in self._runs(likely) + self._runs(self.counts & (called == "")):
            if not any(run <= group for group in groups):
                groups.append(run)
        return [self._reading(sorted(group), np.nan) for group in groups if len(group) > 1]

    def _runs(self, flags: BoolArray, at_least: int = 3) -> list[set[int]]:
        """Columns next to each other, with gaps or without, of one family of names or each of its own."""
        places = np.flatnonzero(flags).tolist()
        sizes = Counter(self.families[places].tolist())
        has_gaps = np.asarray(self.gaps.any(axis=0))
        kinds = []
        for place in places:
            group, name = str(self.groups[place]), str(self.families[place])
            is_family = sizes[name] > 1 or self.are_features[place]
            kinds.append(("" if group == "value" else group or (name if is_family else ""), has_gaps[place]))
        cuts = [i for i in range(1, len(places)) if kinds[i] != kinds[i - 1] or places[i] != places[i - 1] + 1]
        runs = [places[a:b] for a, b in pairwise([0, *cuts, len(places)])]
        return [set(run) for run in runs if len(run) >= at_least or (len(run) == 2 and self._are_apart(run))]

    def _reading(self, places: Sequence[int], fits: float) -> Reading:
        places = self._with_empty_neighbours(places) if not np.isnan(fits) else places
        labels = tuple(self.names[place] for place in places)
        cells = self.cells[:, list(places)]
        gaps = np.isnan(cells)
        sums = np.nansum(cells, axis=1)
        low, middle, high = np.quantile(sums[sums > 0], [0.05, 0.5, 0.95]) if (sums > 0).any() else (0, 0, 0)
        in_part = bool((gaps.any(axis=1) & ~gaps.all(axis=1)).any())
        others = [name for name in (*self.names, *self.others) if name not in labels]
        points = NAMES * name_points(labels, others)
        if np.isnan(fits):
            points += COUNTS * self._have_zeros[list(places)].all() + GAPS_IN_COUNTS * in_part
        else:
            points += SUMS + GAPS * in_part
        is_share, is_percentage = abs(middle - 1) < 0.5, abs(middle - 100) < 5 and not np.isnan(fits)
        kind: Literal["shares", "percentages", "counts"] = (
            "shares" if is_share else "percentages" if is_percentage else "counts"
        )
        is_apart = not np.isnan(fits) or self._are_apart(list(places))
        n_rows = int((sums > 0).sum())
        return Reading(labels, kind, float(low), float(middle), float(high), fits, points, is_apart, n_rows)

    def _are_apart(self, places: list[int]) -> bool:
        """Whether names or gaps tell where counts end: a count of something else may be next to them."""
        labels = [self.names[place] for place in places]
        others = [name for name in (*self.names, *self.others) if name not in labels]
        has_gaps = np.asarray(self.gaps.any(axis=0))
        is_family = len(set(self.families[places])) == 1 and bool(others) and not goes_on(labels, others)
        is_gappy = has_gaps[places].all() and has_gaps.sum() == len(places)
        return bool(is_family or is_gappy or name_points(labels, others) > 0)

    def _with_empty_neighbours(self, places: Sequence[int]) -> tuple[int, ...]:
        """A label that is nowhere above 0 in these rows belongs to the others if all of them have its name."""
        name = self.families[places[0]]
        alike = {*np.flatnonzero((self.families == name) & (name != "")).tolist()}
        beyond = alike.difference(places)
        if alike.issuperset(places) and not self.highest[list(beyond)].any():
            return tuple(sorted(alike))
        return tuple(places)


def _steps(cells: FloatArray) -> FloatArray:
    """The steps to which columns are rounded: 1, 0.1 and so on to 0.00001, or 0."""
    steps = np.zeros(cells.shape[1])
    for digits in range(5, -1, -1):
        scaled = np.nan_to_num(cells) * 10.0**digits
        steps[(np.abs(scaled - np.rint(scaled)) < 1e-3).all(axis=0)] = 10.0**-digits
    return steps
