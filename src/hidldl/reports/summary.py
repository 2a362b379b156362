"""What a report of a recovery needs, gathered chunk by chunk: a long table needs no more memory than a short one.

Nothing depends on where the table is cut: shares are summed as integers, which have no rounding to accumulate, and
every row draws its random number from one stream in the order of the table.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from hidldl.arrays import BoolArray, FloatArray, IntArray
from hidldl.reports.reannotation import ONE, ListOptions, Ranker, Reannotation, exact

N_BINS = 20
"""Bins of 0.05 for the hidden mass of rows."""


@dataclass(frozen=True)
class SampledRows:
    """Rows to look at, in the order of the table.

    ``numbers`` count the table's rows from 1; ``D_obs`` is NaN where a label was hidden; ``in_sample`` tells the rows
    that are a uniform sample from those that are here only because they are worth annotating again.
    """

    names: tuple[str, ...]
    numbers: IntArray
    D_obs: FloatArray
    observed: BoolArray
    distributions: FloatArray
    hidden_mass: FloatArray
    uncertainty: FloatArray
    in_sample: BoolArray
    low: FloatArray | None = None
    high: FloatArray | None = None
    kinds: FloatArray | None = None
    """How likely the rows are of each kind, where there is more than one."""
    hidden: FloatArray | None = None
    """How likely each share was overlooked, where zeros may be hidden or true."""

    def __len__(self) -> int:
        return len(self.names)

    def at(self, positions: IntArray) -> "SampledRows":
        """The rows at these positions."""
        values = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "names"}
        parts: dict[str, Any] = {name: None if value is None else value[positions] for name, value in values.items()}
        return SampledRows(names=tuple(self.names[position] for position in positions), **parts)

    def to_annotate(self, most: int) -> IntArray:
        """Positions of the rows to look at first: the most uncertain ones, and some of those without any label."""
        seen = self.observed.any(axis=1)
        with_labels = np.flatnonzero(seen)
        without = np.flatnonzero(~seen)[: max(most // 5, most - len(with_labels))]
        order = np.lexsort((self.numbers[with_labels], -self.uncertainty[with_labels]))
        return np.concatenate([with_labels[order][: most - len(without)], without])

    def fewer(self, most: int, most_to_annotate: int) -> "SampledRows":
        """At most that many rows: some to annotate again, the rest spread over the table."""
        if len(self) <= most:
            return self
        top = self.to_annotate(min(most, most_to_annotate))
        rest = np.setdiff1d(np.arange(len(self)), top)
        spread = np.linspace(0, len(rest), most - len(top), endpoint=False).astype(int)
        return self.at(np.sort(np.concatenate([top, rest[spread]])))


@dataclass(frozen=True)
class Summary:
    """What was hidden in a table and what was recovered; means are over all rows, a hidden label was handed in as 0.

    Attributes
    ----------
    label_names : tuple of str
        The labels.
    n_rows, n_complete : int
        All rows, and those in which nothing was hidden.
    hidden_counts : array of shape (m,)
        Rows in which the label was hidden.
    both_hidden : array of shape (m, m)
        Rows in which both labels were hidden.
    hidden_mass : array of shape (m,)
        Mean recovered share of the label where it was hidden, 0 where it was not: their sum is the mean hidden mass.
    mean_handed_in, mean_recovered : arrays of shape (m,)
        Mean shares before and after.
    mass_histogram : array of shape (20,)
        Rows by hidden mass, in bins of 0.05.
    rows : SampledRows
        Rows to annotate again and a uniform sample of all; all of a small table.
    reannotation : Reannotation
        The list of rows to annotate again, with the labels to ask for.
    """

    label_names: tuple[str, ...]
    n_rows: int
    n_complete: int
    hidden_counts: IntArray
    both_hidden: IntArray
    hidden_mass: FloatArray
    mean_handed_in: FloatArray
    mean_recovered: FloatArray
    mass_histogram: IntArray
    rows: SampledRows
    reannotation: Reannotation

    @property
    def mean_when_hidden(self) -> FloatArray:
        """Mean recovered share of a label over the rows in which it was hidden; NaN where it never was."""
        return _quotient(self.hidden_mass * self.n_rows, self.hidden_counts)

    @property
    def overlooked_together(self) -> FloatArray:
        """Correlation of being hidden, label by label (phi); NaN for labels that are always or never hidden.

        Rows without any label do not count: they would make all labels look as if they were overlooked together.
        """
        n_without = self.reannotation.n_without_labels
        n = max(1, self.n_rows - n_without)
        share = (self.hidden_counts - n_without) / n
        covariance = (self.both_hidden - n_without) / n - np.outer(share, share)
        deviation = np.sqrt(share * (1 - share))
        return np.clip(_quotient(covariance, np.outer(deviation, deviation)), -1, 1)


class Summarizer:
    """Gathers a :class:`Summary` from chunks of rows.

    Parameters
    ----------
    label_names : sequence of str
        The labels, in the order of the columns.
    most_rows : int, default=1000
        How many rows to keep for a closer look; a fifth are those to annotate again.
    random_state : int
        Seed of the sample.
    reannotation : ListOptions, optional
        What the list of rows to annotate again holds.

    Examples
    --------
    >>> import numpy as np
    >>> from hidldl.reports.summary import Summarizer
    >>> summarizer = Summarizer(["joy", "fear", "anger"])
    >>> summarizer.add(["first"], [[0.6, 0.4, np.nan]], [[True, True, False]], [[0.3, 0.2, 0.5]])
    >>> summarizer.add(["second"], [[0.5, 0.2, 0.3]], [[True, True, True]], [[0.5, 0.2, 0.3]])
    >>> summary = summarizer.finish()
    >>> summary.hidden_mass
    array([0.  , 0.  , 0.25])
    >>> summary.rows.names
    ('first', 'second')
    """

    def __init__(
        self,
        label_names: Sequence[str],
        *,
        most_rows: int = 1000,
        random_state: int = 0,
        reannotation: ListOptions | None = None,
    ) -> None:
        self.label_names = tuple(label_names)
        self._ranker = Ranker(self.label_names, reannotation)
        self.most_rows = most_rows
        m = len(self.label_names)
        self._rng = np.random.default_rng(random_state)
        self._n_rows = self._n_complete = 0
        self._both_hidden = np.zeros((m, m), np.int64)
        self._sums = {name: np.zeros(m, np.int64) for name in ("hidden_mass", "mean_handed_in", "mean_recovered")}
        self._histogram = np.zeros(N_BINS, np.int64)
        self._pool: SampledRows | None = None
        self._draws: FloatArray = np.empty(0)

    def add(
        self,
        names: Sequence[str],
        D_obs: Any,
        observed: Any,
        distributions: Any,
        low: Any = None,
        high: Any = None,
        groups: Any = None,
        kinds: Any = None,
        hidden: Any = None,
    ) -> None:
        """Add the next rows of the table.

        Parameters
        ----------
        names : sequence of str
            The rows' names.
        D_obs, observed, distributions : arrays of shape (k, m)
            Shares as handed in (NaN or 0 where hidden), the mask of what was seen, and the recovered rows.
        low, high : arrays of shape (k, m), optional
            Bounds of the recovered shares; for every chunk or for none.
        groups : sequence of k values, optional
            The group of each row, such as its annotator or source; for every chunk or for none.
        kinds : array of shape (k, kinds), optional
            How likely each row is of each kind; for every chunk or for none.
        hidden : array of shape (k, m), optional
            How likely each share was overlooked, where zeros may be hidden or true; for every chunk or for none.
        """
        seen = np.asarray(observed, bool)
        self._check_shape(seen, "observed", len(names))
        D = self._matrix(distributions, "distributions", len(names))
        handed_in = np.where(seen, self._matrix(D_obs, "D_obs", len(names), finite=seen), np.nan)
        low, high = (
            None if bound is None else self._matrix(bound, name, len(names))
            for name, bound in (("low", low), ("high", high))
        )
        uncertainty = self._ranker.add(names, seen, D, low, high, groups)
        mass = self._count(handed_in, seen, D)
        if not len(names):
            return
        numbers = np.arange(self._n_rows + 1, self._n_rows + len(names) + 1)
        self._n_rows += len(names)
        in_sample = np.ones(len(names), bool)
        shares = (handed_in, seen, D, mass, uncertainty)
        chunk = SampledRows(tuple(names), numbers, *shares, in_sample, low, high, kinds, hidden)
        self._keep(chunk, self._rng.random(len(names)))

    def finish(self) -> Summary:
        """The summary of all rows that were added."""
        if self._pool is None:
            raise ValueError("no rows were added; a table without rows has no summary.")
        means = {name: sums / (ONE * self._n_rows) for name, sums in self._sums.items()}
        return Summary(
            label_names=self.label_names,
            n_rows=self._n_rows,
            n_complete=self._n_complete,
            hidden_counts=self._both_hidden.diagonal().copy(),
            both_hidden=self._both_hidden.copy(),
            mass_histogram=self._histogram.copy(),
            rows=self._sample(),
            reannotation=self._ranker.finish(),
            **means,
        )

    def _matrix(self, values: Any, name: str, n_rows: int, finite: BoolArray | None = None) -> FloatArray:
        matrix = np.asarray(values, np.float64)
        self._check_shape(matrix, name, n_rows)
        bad = np.argwhere(~np.isfinite(matrix) & (True if finite is None else finite))
        if len(bad):
            row, label = bad[0]
            raise ValueError(
                f"{name} is not a finite number in row {self._n_rows + row + 1}, label {self.label_names[label]!r}."
            )
        return matrix

    def _check_shape(self, matrix: np.ndarray[Any, Any], name: str, n_rows: int) -> None:
        m = len(self.label_names)
        if matrix.shape != (n_rows, m):
            raise ValueError(f"{name} has shape {matrix.shape}, but there are {n_rows} names and {m} labels.")

    def _count(self, handed_in: FloatArray, seen: BoolArray, D: FloatArray) -> FloatArray:
        """Add the rows to the counts and return their hidden mass."""
        hidden = ~seen
        together = hidden.astype(np.float64)
        self._both_hidden += (together.T @ together).astype(np.int64)
        self._n_complete += int((~hidden.any(axis=1)).sum())
        recovered, observed_shares = exact(np.stack([D, np.where(seen, handed_in, 0)]))
        lost = np.where(hidden, recovered, 0)
        mass = lost.sum(axis=1)
        self._sums["hidden_mass"] += lost.sum(axis=0)
        self._sums["mean_recovered"] += recovered.sum(axis=0)
        self._sums["mean_handed_in"] += observed_shares.sum(axis=0)
        self._histogram += np.bincount(np.clip(mass * N_BINS // ONE, 0, N_BINS - 1), minlength=N_BINS)
        return mass / ONE

    def _keep(self, chunk: SampledRows, draws: FloatArray) -> None:
        """Keep the rows that may be in the final sample; the chunk is thinned first, so that little is copied."""
        chunk, draws = self._thinned(chunk, draws)
        if self._pool is not None:
            chunk, draws = _joined(self._pool, chunk), np.concatenate([self._draws, draws])
        self._pool, self._draws = self._thinned(chunk, draws)

    def _thinned(self, rows: SampledRows, draws: FloatArray) -> tuple[SampledRows, FloatArray]:
        top = rows.to_annotate(_n_to_annotate(self.most_rows))
        lucky = np.argsort(draws, kind="stable")[: self.most_rows]
        positions = np.union1d(top, lucky)
        return rows.at(positions), draws[positions]

    def _sample(self) -> SampledRows:
        assert self._pool is not None
        n_top = _n_to_annotate(self.most_rows)
        if self._n_rows <= self.most_rows:
            return self._pool
        in_sample = np.zeros(len(self._pool), bool)
        in_sample[np.argsort(self._draws, kind="stable")[: self.most_rows - n_top]] = True
        positions = np.union1d(self._pool.to_annotate(n_top), np.flatnonzero(in_sample))
        return replace(self._pool, in_sample=in_sample).at(positions)


def _n_to_annotate(most_rows: int) -> int:
    """How many rows of a sample are in it because they are to annotate again."""
    return max(1, most_rows // 5)


def _joined(first: SampledRows, second: SampledRows) -> SampledRows:
    pairs = {field.name: (getattr(first, field.name), getattr(second, field.name)) for field in fields(first)}
    names = first.names + second.names
    arrays: dict[str, Any] = {
        key: None if a is None else np.concatenate([a, b]) for key, (a, b) in pairs.items() if key != "names"
    }
    return SampledRows(names=names, **arrays)


def _quotient(numerator: FloatArray, denominator: Any) -> FloatArray:
    out = np.full(np.shape(numerator), np.nan)
    return np.divide(numerator, denominator, out=out, where=np.asarray(denominator) > 0)
