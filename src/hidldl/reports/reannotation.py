"""Which rows to annotate again, and what to ask for: those first where an answer would tell most.

The score of a hidden share is how uncertain it is, that of a row the sum over its hidden labels. Rows come chunk by
chunk and only the first of the list are kept, so a long table needs no more memory than a short one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from hidldl.arrays import BoolArray, FloatArray, IntArray
from hidldl.validation import check_number

MOST_GROUPS = 1000
"""Groups with numbers of their own; a column with more values than that hardly groups anything."""
OTHER_GROUPS = "all other groups"
ObjectArray: TypeAlias = np.ndarray[Any, np.dtype[np.object_]]
DIGITS = 4
"""Decimals of the numbers in a list for people."""
ONE = 2**32
"""Shares are summed in units of 1 / ONE: far finer than any number in a report, and two billion rows fit."""


def exact(shares: FloatArray) -> IntArray:
    """The shares in units of 1 / ONE: sums of integers do not depend on where a table is cut."""
    return np.rint(shares * ONE).astype(np.int64)


@dataclass(frozen=True)
class ListOptions:
    """What a re-annotation list holds.

    Attributes
    ----------
    most_rows : int
        Rows in the list; as many rows without any label may follow.
    threshold : float
        The least uncertainty of a row in the list. Rows without any label are listed in any case.
    labels_per_row : int
        Labels to ask for in a row.
    group_name : str
        What the groups are: the name of their column.
    """

    most_rows: int = 100
    threshold: float = 0.0
    labels_per_row: int = 3
    group_name: str = "group"

    def __post_init__(self) -> None:
        for name in ("most_rows", "labels_per_row"):
            check_number(getattr(self, name), name, at_least=1, integer=True)
        check_number(self.threshold, "threshold", at_least=0)

    def places(self, n_labels: int) -> range:
        """The numbers of the labels to ask for, from 1, in a table of that many labels."""
        return range(1, min(self.labels_per_row, n_labels) + 1)


@dataclass(frozen=True)
class Reannotation:
    """Rows to annotate again, those first where an answer would tell most.

    Attributes
    ----------
    label_names : tuple of str
        The labels of the table.
    options : ListOptions
        What was asked for.
    rows : DataFrame
        The list, and at its end the first rows without any label in the order of the table. Columns: ``name``,
        ``group`` if there are groups, ``number`` (the table's rows count from 1), ``hidden_mass``, ``uncertainty``,
        ``labels_seen``, and for each label to ask for, the most telling first, ``label_1``, ``share_1``, ``low_1``,
        ``high_1`` and so on. The label is "" where fewer are hidden, bounds are NaN where there are no intervals.
    n_candidates : int
        Rows of the table with some labels hidden and at least the uncertainty that was asked for.
    n_without_labels : int
        Rows of the table without any label.
    has_intervals : bool
        Whether uncertainty is the width of intervals. Else it is share × (1 − share), a stand-in.
    by_group : DataFrame or None
        For each ``group``: its ``rows``, ``without_labels`` (rows without any), ``share_hidden`` (of its cells), and
        the means ``hidden_mass`` and ``uncertainty`` over all its rows, the most uncertain group first.
    """

    label_names: tuple[str, ...]
    options: ListOptions
    rows: pd.DataFrame
    n_candidates: int
    n_without_labels: int
    has_intervals: bool
    by_group: pd.DataFrame | None = None

    def frame(self) -> pd.DataFrame:
        """The list for a spreadsheet: one column per label to ask for, so that it can be sorted and filtered."""
        columns = {"number": self.rows["number"], "row": self.rows["name"]}
        if "group" in self.rows:
            columns[self._group_column()] = self.rows["group"]
        columns |= {name: self.rows[name].round(DIGITS) for name in ("hidden_mass", "uncertainty")}
        columns["labels_seen"] = self.rows["labels_seen"]
        columns |= {f"ask_{k}": self.rows[f"label_{k}"] for k in self.places}
        return pd.DataFrame(columns)

    @property
    def places(self) -> range:
        """The numbers of the labels to ask for, from 1."""
        return self.options.places(len(self.label_names))

    def _group_column(self) -> str:
        name = self.options.group_name
        taken = {"number", "row", "hidden_mass", "uncertainty", "labels_seen", *(f"ask_{k}" for k in self.places)}
        while name in taken:
            name += "_"
        return name


@dataclass(frozen=True)
class _Chunk:
    """Rows as they come; ``cells`` is how uncertain each hidden share is, in exact units, and 0 where one was seen."""

    names: Sequence[str]
    first_number: int
    hidden: BoolArray
    distributions: FloatArray
    low: FloatArray | None
    high: FloatArray | None
    groups: ObjectArray | None

    @cached_property
    def cells(self) -> IntArray:
        if self.low is None or self.high is None:
            width = self.distributions * (1 - self.distributions)
        else:
            width = np.maximum(self.high - self.low, 0)
        return np.where(self.hidden, exact(width), 0)

    @cached_property
    def uncertainty(self) -> IntArray:
        return np.asarray(self.cells.sum(axis=1))

    @cached_property
    def hidden_mass(self) -> IntArray:
        return np.asarray(np.where(self.hidden, exact(self.distributions), 0).sum(axis=1))

    @cached_property
    def without_labels(self) -> BoolArray:
        return np.asarray(self.hidden.all(axis=1))

    def rows(self, at: IntArray, n_labels: int) -> pd.DataFrame:
        """The rows at these positions with that many labels to ask for; a label is a number here, -1 where none is."""
        texts = {"name": [self.names[i] for i in at]} | ({} if self.groups is None else {"group": self.groups[at]})
        columns: dict[str, Any] = {name: pd.Series(values, dtype=object) for name, values in texts.items()}
        columns |= {
            "number": self.first_number + at,
            "hidden_mass": self.hidden_mass[at],
            "uncertainty": self.uncertainty[at],
            "labels_seen": (~self.hidden[at]).sum(axis=1),
        }
        order = np.argsort(np.where(self.hidden[at], -self.cells[at], 1), axis=1, kind="stable")
        for k, label in enumerate(order.T[:n_labels], start=1):
            is_hidden = self.hidden[at, label]
            columns[f"label_{k}"] = np.where(is_hidden, label, -1)
            for name, values in (("share", self.distributions), ("low", self.low), ("high", self.high)):
                columns[f"{name}_{k}"] = np.where(is_hidden, np.nan if values is None else values[at, label], np.nan)
        return pd.DataFrame(columns)


class Ranker:
    """Gathers a :class:`Reannotation` from chunks of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from hidldl.reports.reannotation import Ranker
    >>> ranker = Ranker(["joy", "fear", "anger"])
    >>> observed = np.array([[True, True, False], [True, False, False]])
    >>> ranker.add(["first", "second"], observed, np.array([[0.5, 0.4, 0.1], [0.5, 0.2, 0.3]]))
    array([0.09, 0.37])
    >>> ranker.finish().frame()[["row", "hidden_mass", "uncertainty", "ask_1"]]
          row  hidden_mass  uncertainty  ask_1
    0  second          0.5         0.37  anger
    1   first          0.1         0.09  anger
    """

    def __init__(self, label_names: Sequence[str], options: ListOptions | None = None) -> None:
        self.label_names = tuple(label_names)
        self.options = options or ListOptions()
        self._n_rows = self._n_candidates = self._n_without = 0
        self._ranked: list[pd.DataFrame] = []
        self._without: list[pd.DataFrame] = []
        self._has_intervals = self._has_groups = False
        self._groups: dict[str, int] = {}
        self._totals = np.zeros((MOST_GROUPS + 1, 5), np.int64)

    def add(
        self,
        names: Sequence[str],
        observed: BoolArray,
        distributions: FloatArray,
        low: FloatArray | None = None,
        high: FloatArray | None = None,
        groups: Any = None,
    ) -> FloatArray:
        """Add the next rows of the table; returns how uncertain each of them is.

        Parameters
        ----------
        names : sequence of str
            The rows' names.
        observed, distributions : arrays of shape (k, m)
            The mask of what was seen, and the recovered rows.
        low, high : arrays of shape (k, m), optional
            Bounds of the recovered shares; for every chunk or for none.
        groups : sequence of k values, optional
            The group of each row, such as its annotator or source; for every chunk or for none.
        """
        if not len(names):
            return np.empty(0)
        self._check(len(names), low is not None and high is not None, groups)
        texts = None if groups is None else _texts(groups)
        chunk = _Chunk(names, self._n_rows + 1, ~observed, distributions, low, high, texts)
        if texts is not None:
            self._count_groups(chunk, texts)
        self._rank(chunk)
        self._n_rows += len(names)
        return np.asarray(chunk.uncertainty / ONE)

    def finish(self) -> Reannotation:
        """The list of all rows that were added."""
        if not self._n_rows:
            raise ValueError("no rows were added; a table without rows has no list.")
        rows = pd.concat([*self._ranked, *self._without], ignore_index=True)
        texts = np.array([*self.label_names, ""], dtype=object)
        rows[["hidden_mass", "uncertainty"]] /= ONE
        for name in [f"label_{k}" for k in self.options.places(len(self.label_names))]:
            rows[name] = pd.Series(texts[rows[name].to_numpy(int)], dtype=object)
        return Reannotation(
            label_names=self.label_names,
            options=self.options,
            rows=rows,
            n_candidates=self._n_candidates,
            n_without_labels=self._n_without,
            has_intervals=self._has_intervals,
            by_group=self._breakdown() if self._has_groups else None,
        )

    def _check(self, n_rows: int, has_intervals: bool, groups: Any) -> None:
        if groups is not None and len(groups) != n_rows:
            raise ValueError(f"groups has {len(groups)} values, but there are {n_rows} names.")
        for name, before, now in (
            ("low and high", self._has_intervals, has_intervals),
            ("groups", self._has_groups, groups is not None),
        ):
            if self._n_rows and before != now:
                raise ValueError(f"{name} were given for some chunks only; give them for every chunk or for none.")
        self._has_intervals, self._has_groups = has_intervals, groups is not None

    def _rank(self, chunk: _Chunk) -> None:
        """Keep the rows that may be in the final list."""
        without = chunk.without_labels
        most, n_labels = self.options.most_rows, self.options.labels_per_row
        enough = chunk.uncertainty >= round(self.options.threshold * ONE)
        candidates = np.flatnonzero(chunk.hidden.any(axis=1) & ~without & enough)
        best = candidates[np.argsort(-chunk.uncertainty[candidates], kind="stable")[:most]]
        ranked = pd.concat([*self._ranked, chunk.rows(best, n_labels)], ignore_index=True)
        self._ranked = [ranked.sort_values("uncertainty", ascending=False, kind="stable")[:most]]
        first = np.flatnonzero(without)[: max(0, most - self._n_without)]
        if len(first):
            self._without.append(chunk.rows(first, n_labels))
        self._n_candidates += len(candidates)
        self._n_without += int(without.sum())

    def _count_groups(self, chunk: _Chunk, texts: ObjectArray) -> None:
        codes, names = pd.factorize(texts)
        places = np.array([self._place(name) for name in names])
        n_hidden = chunk.hidden.sum(axis=1)
        ones = np.ones_like(n_hidden)
        sums = [ones, chunk.without_labels, n_hidden, chunk.hidden_mass, chunk.uncertainty]
        np.add.at(self._totals, places[codes], np.column_stack(sums))

    def _place(self, group: str) -> int:
        """Where the sums of the group are: the first groups have a place of their own, the others share the last."""
        if len(self._groups) < MOST_GROUPS:
            self._groups.setdefault(group, len(self._groups))
        return self._groups.get(group, MOST_GROUPS)

    def _breakdown(self) -> pd.DataFrame:
        names = [*self._groups, OTHER_GROUPS]
        totals = self._totals[[*self._groups.values(), MOST_GROUPS]]
        is_used = totals[:, 0] > 0
        rows = np.maximum(totals[:, 0], 1)
        table = pd.DataFrame(
            {
                "group": pd.Series(names, dtype=object),
                "rows": rows,
                "without_labels": totals[:, 1],
                "share_hidden": totals[:, 2] / (rows * len(self.label_names)),
                "hidden_mass": totals[:, 3] / (rows * ONE),
                "uncertainty": totals[:, 4] / (rows * ONE),
            }
        )
        return table[is_used].sort_values("uncertainty", ascending=False, kind="stable", ignore_index=True)


def _texts(groups: Any) -> ObjectArray:
    """The groups' names row by row, "" where one is missing."""
    codes, values = pd.factorize(pd.Series(list(groups), dtype=object))
    # The code of a missing value is -1, which is the last of these.
    return np.array([*map(str, values), ""], dtype=object)[codes]
