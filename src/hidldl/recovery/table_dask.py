"""A table on a Dask cluster. Partitions are checked and read where they are; only sums and samples of rows come back.

Partitions are not kept in memory: each task reads its own, unless the user has persisted them (``partitions_dask``).
"""

import re
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, NamedTuple
from uuid import uuid4

import dask
import dask.array as da
import numpy as np
import pandas as pd
from dask import delayed
from scipy import sparse

from hidldl.arrays import BoolArray, FloatArray, IntArray, is_dask
from hidldl.errors import DivergenceError, warn_user
from hidldl.masks import ZEROS_ARE_HIDDEN, Zeros
from hidldl.parallel import one_blas_thread
from hidldl.recovery.meanfill import filled, rest
from hidldl.recovery.partitions_dask import Partitions, read
from hidldl.recovery.rowweights import weights_of_rows
from hidldl.validation import (
    ObservedRows,
    check_features,
    check_features_of_rows,
    check_observed_rows,
    check_one_per_row,
    refuse_unseen_labels,
)

FAN = 8
"""Sums that are added by one task. The order is fixed, so that it makes no difference which worker is first."""


class PartitionRows(NamedTuple):
    """Rows of a partition, after every check."""

    features: Any
    rows: ObservedRows
    votes: FloatArray | None

    @property
    def shares(self) -> FloatArray:
        """In double precision and one layout, as compiled code needs them."""
        return self.rows.shares.astype(np.float64, order="C")

    @property
    def observed(self) -> BoolArray:
        return self.rows.observed.copy(order="C")


class Sample(NamedTuple):
    """Some rows of the table, in memory."""

    features: Any
    shares: Any
    observed: Any
    weights: Any


class Survey(NamedTuple):
    """What is known of all rows after one look at them; parts can be added."""

    seen: FloatArray
    shares: FloatArray
    votes: float
    has_zeros: int
    has_single: int


class LazyMatrix:
    """A matrix of the table: its shape, and some of its rows on demand."""

    def __init__(self, table: "ClusterTable", name: str, shape: tuple[int, ...]) -> None:
        self._table, self._name, self.shape = table, name, shape

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, positions: IntArray) -> Any:
        return getattr(self._table.take(positions), self._name)


class ClusterTable:
    """Features, shares, mask and votes in the same partitions, which fit into a worker's memory one by one."""

    def __init__(self, estimator: Any, X: Any, D_obs: Any, observed: Any, votes: Any, *, zeros: Zeros) -> None:
        if votes is not None and not estimator.uses_votes:
            estimator._check_votes(votes, 0)
        inputs = {"X": X, "D_obs": D_obs, "observed": observed, "votes": votes}
        self._refuse_mixed(inputs)
        self.frame = D_obs if hasattr(D_obs, "to_dask_array") else None
        self.label_names = None if self.frame is None else D_obs.columns
        self._check_columns(estimator, X)
        self._partitions = Partitions(inputs)
        every = range(len(self._partitions))
        glances = dask.compute(*[delayed(glance, pure=False)(self._partitions.arguments(i)) for i in every])
        self.lengths = [n_rows for n_rows, *_ in glances]
        self._firsts = np.cumsum([0, *self.lengths])[:-1].tolist()
        self.zeros = zeros if observed is not None else _meaning_of_zeros(zeros, glances, estimator.can_tell_zeros)
        self._last: tuple[IntArray, Sample] | None = None
        n_rows, n_labels = sum(self.lengths), glances[0][1]
        self.survey: Survey = self.total(survey)
        stand_in = pd.DataFrame(columns=self.label_names) if self.frame is not None else None
        refuse_unseen_labels(self.survey.seen[None] > 0, stand_in, "D_obs")
        self.dtype = np.dtype(np.float32 if self.survey.has_single else np.float64)
        self.shape = (n_rows, n_labels)
        self.features: Any = LazyMatrix(self, "features", (n_rows, estimator.n_features_in_))
        self.shares: Any = LazyMatrix(self, "shares", self.shape)
        self.observed: Any = LazyMatrix(self, "observed", self.shape)
        self.mean_votes = 1.0 if votes is None else self.survey.votes / n_rows
        if not self.mean_votes:
            raise ValueError("votes is zero in every row; give at least one row a positive number.")
        self.row_weights: Any = LazyMatrix(self, "weights", (n_rows,))

    def __len__(self) -> int:
        return self.shape[0]

    @staticmethod
    def _refuse_mixed(inputs: dict[str, Any]) -> None:
        for name, value in inputs.items():
            if value is not None and not is_dask(value):
                raise ValueError(
                    f"{name} is in memory, but other arguments are Dask collections; give all of them as Dask "
                    "collections with the same partitions, or none."
                )

    @staticmethod
    def _check_columns(estimator: Any, X: Any) -> None:
        """Note number and names of the features, as every fit does."""
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimension; give a row per item with a column per feature.")
        stand_in: Any = np.zeros((1, X.shape[1]))
        check_features(
            estimator, pd.DataFrame(stand_in, columns=X.columns) if hasattr(X, "columns") else stand_in, reset=True
        )

    @property
    def n_parts(self) -> int:
        """Partitions that have rows."""
        return sum(n_rows > 0 for n_rows in self.lengths)

    def map(self, function: Callable[..., Any], *arguments: Any, each: Sequence[Any] | None = None) -> list[Any]:
        """Tasks of ``function(part, *arguments)``, one for each partition with rows; ``each`` has another for each."""
        numbers = [number for number, n_rows in enumerate(self.lengths) if n_rows]
        return self._tasks(function, arguments, numbers, each)

    def _tasks(
        self, function: Callable[..., Any], arguments: Sequence[Any], numbers: Sequence[int], each: Sequence[Any] | None
    ) -> list[Any]:
        # The dashboard shows tasks by the function's name.
        name, task = f"{function.__name__}-{uuid4().hex}", delayed(on_part, pure=False)
        more = [()] * len(numbers) if each is None else [(one,) for one in each]
        return [
            task(
                function,
                self._partitions.arguments(i),
                self._firsts[i],
                self.zeros,
                *arguments,
                *own,
                dask_key_name=f"{name}-{i}",
            )
            for i, own in zip(numbers, more, strict=True)
        ]

    def total(self, function: Callable[..., Any], *arguments: Any, combine: Callable[..., Any] | None = None) -> Any:
        """The sums of ``function`` over all partitions."""
        return in_a_tree(self.map(function, *arguments), combine or added).compute()

    def without_features(self) -> "ClusterTable":
        """The same table without features, which then need not be read."""
        other = copy(self)
        other._partitions = self._partitions.without("X")
        return other

    def take(self, positions: IntArray) -> Sample:
        """Some rows, from their sorted positions."""
        if self._last is None or not np.array_equal(self._last[0], positions):
            bounds = np.searchsorted(positions, np.cumsum([0, *self.lengths]))
            chosen = [positions[begin:end] for begin, end in pairwise(bounds)]
            parts = [(i, own - self._firsts[i]) for i, own in enumerate(chosen) if len(own)]
            samples = dask.compute(*self._tasks(rows_at, [self.mean_votes], *zip(*parts, strict=True)))
            self._last = positions, Sample(*map(np.concatenate, zip(*samples, strict=True)))
        return self._last[1]

    def collection(self, blocks: Sequence[Any], dtype: Any, *, per_row: bool = False) -> Any:
        """A lazy collection like ``D_obs`` of blocks of labels, or of values per row, from each partition with rows."""
        if self.frame is None:
            return self.array(blocks, None if per_row else self.shape[1], dtype)
        import dask.dataframe as dd

        index, every = self.frame._meta.index, iter(blocks)
        meta = pd.Series(index=index, dtype=dtype) if per_row else pd.DataFrame(index=index, columns=self.label_names)
        meta = meta.astype(dtype)
        frames = [next(every) if n_rows else delayed(meta) for n_rows in self.lengths]
        return dd.from_delayed(frames, meta=meta, divisions=self.frame.divisions, verify_meta=False)

    def array(self, blocks: Sequence[Any], width: int | None, dtype: Any) -> Any:
        """The same as a lazy array of so many columns."""
        shapes = [(n_rows,) if width is None else (n_rows, width) for n_rows in self.lengths if n_rows]
        parts = [da.from_delayed(block, shape, dtype=dtype) for block, shape in zip(blocks, shapes, strict=True)]
        return da.concatenate(parts)


def _meaning_of_zeros(zeros: Zeros, glances: Sequence[tuple[int, int, bool, bool]], can_tell: bool) -> Zeros:
    """What zeros are in a table without a mask; ``masks`` has the rules."""
    has_nan, has_zero = (any(side) for side in list(zip(*glances, strict=True))[2:])
    if zeros == "auto":
        zeros = "true" if has_nan or not has_zero else "unknown" if can_tell else "hidden"
        if zeros == "hidden":
            warn_user(f"D_obs {ZEROS_ARE_HIDDEN}")
    if zeros == "unknown" and has_zero:
        raise ValueError(
            "D_obs has zeros that may be hidden or true, which a fit on Dask cannot weigh; pass observed=, or "
            'zeros="hidden" or zeros="true", or fit a sample of the rows in memory.'
        )
    return zeros


def glance(partition: Any) -> tuple[int, int, bool, bool]:
    """Rows, labels, and whether there are NaN and zeros."""
    values = np.asarray(read(partition, "D_obs"), dtype=np.float64)
    return len(values), np.shape(values)[-1], bool(np.isnan(values).any()), bool((values == 0).any())


def on_part(function: Callable[..., Any], partition: Any, first: int, zeros: Zeros, *arguments: Any) -> Any:
    """Run a function on a partition, checked; messages count rows from the beginning of the table."""
    try:
        part = _checked(partition, zeros)
    except ValueError as error:
        message = re.sub(r"\brow (\d+)", lambda row: f"row {int(row[1]) + first}", str(error), count=1)
        raise ValueError(message) from None
    with one_blas_thread():
        return function(part, *arguments)


def _checked(partition: Any, zeros: Zeros) -> PartitionRows:
    X, D_obs, observed, votes = (read(partition, name) for name in ("X", "D_obs", "observed", "votes"))
    rows = check_observed_rows(D_obs, observed, every_label_seen=False, zeros=zeros, can_tell=True)
    if rows.unknown is not None:
        raise ValueError(
            f"observed is NaN in row {int(rows.unknown.any(axis=1).argmax())}, where D_obs is 0, which a fit on Dask "
            "cannot weigh; say True or False, or fit a sample of the rows in memory."
        )
    features = None if X is None else check_features_of_rows(X, rows, name="X", rows_name="D_obs")
    if sparse.issparse(features):
        raise ValueError("X is sparse, which a fit on Dask cannot use; make its blocks dense, or fit in memory.")
    if votes is not None:
        # A partition may have no votes at all; the table may not.
        votes = check_one_per_row(np.append(votes, 1.0), len(rows.shares) + 1, "votes", "number")[:-1]
    return PartitionRows(features, rows, votes)


def survey(part: PartitionRows) -> Survey:
    rows = part.rows
    zeros = bool((rows.shares[rows.observed] == 0).any())
    votes = 0.0 if part.votes is None else float(part.votes.sum())
    seen, single = rows.observed.sum(axis=0), rows.shares.dtype == np.float32
    return Survey(seen, rows.shares.sum(axis=0, dtype=np.float64), votes, int(zeros), int(single))


def rows_at(part: PartitionRows, mean_votes: float, positions: IntArray) -> Sample:
    weights = weights_of_rows(part.votes, mean_votes, len(part.rows.shares))
    return Sample(*(side[positions] for side in (part.features, part.shares, part.observed, weights)))


def added(parts: Sequence[Any]) -> Any:
    """Tuples of numbers and arrays, added side by side, in order."""
    return reduce(lambda sums, part: type(sums)(*map(add, sums, part)), parts)


def in_a_tree(parts: Sequence[Any], combine: Callable[[Sequence[Any]], Any]) -> Any:
    """One task for the whole, from tasks for a few parts each."""
    while len(parts) > 1:
        parts = [delayed(combine, pure=False)(list(group)) for group in _groups(parts)]
    return parts[0]


def _groups(parts: Sequence[Any]) -> Iterator[Sequence[Any]]:
    return (parts[begin : begin + FAN] for begin in range(0, len(parts), FAN))


class Recovered(NamedTuple):
    """A partition's results, in its container."""

    raw: Any
    distributions: Any
    hidden_mass: Any
    observed: Any


def recovered(part: PartitionRows, raw: FloatArray, estimator: Any) -> Recovered:
    """As the end of every fit in memory."""
    rows = part.rows
    if not np.isfinite(raw).all():
        raise DivergenceError(f"{estimator} diverged to numbers that are not finite; choose less extreme parameters.")
    D = estimator._on_the_simplex(raw, rows.shares, rows.observed)
    mass = np.minimum(np.where(rows.observed, 0, D).sum(axis=1), 1)
    return Recovered(*rows.like_input(raw, D, mass, rows.observed))


def keep_results(estimator: Any, table: ClusterTable, parts: Sequence[Any]) -> None:
    """Set the attributes that every fit sets, as lazy collections of tasks that return ``Recovered``."""
    sides = list(zip(*[[part[k] for k in range(4)] for part in parts], strict=True))
    estimator.raw_distributions_, estimator.distributions_ = (table.collection(side, table.dtype) for side in sides[:2])
    estimator.hidden_mass_ = table.collection(sides[2], table.dtype, per_row=True)
    estimator.observed_ = table.collection(sides[3], bool)
    estimator._observed_shares = None
    estimator.n_labels_ = table.shape[1]
    estimator.label_names_ = table.label_names


def part_of_mean(part: PartitionRows, mean: FloatArray) -> FloatArray:
    """A partition's part of a round of the mean fill."""
    return np.asarray(rest((~part.rows.observed).astype(mean.dtype), mean) @ part.rows.shares)


def part_of_recovery(part: PartitionRows, mean: FloatArray, estimator: Any) -> Recovered:
    """A partition's recovered rows by the mean fill."""
    return recovered(part, filled(part.rows.shares, (~part.rows.observed).astype(mean.dtype), mean), estimator)
