"""From a table to its complete distributions: whole where it fits, else chunk by chunk with a model of a sample."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from hidldl.arrays import BoolArray, FloatArray
from hidldl.base import Recoverer
from hidldl.errors import TableError
from hidldl.parallel import row_blocks
from hidldl.recovery.bayeshidldl import BayesHidLDL
from hidldl.simplex import restore_proportions
from hidldl.tables.encoding import FeatureEncoding
from hidldl.tables.methods import make_model
from hidldl.tables.planning import Options, Plan
from hidldl.tables.reading import Table
from hidldl.tables.roles import Roles
from hidldl.tables.shares import Shares

AT_ONCE = 200_000
"""Rows that are fitted as a whole. Of a longer table ``bayes`` fits a sample of that many, and completes the rest."""
CHUNK_ROWS = 20_000
Progress: TypeAlias = Callable[[str, float], None]
"""Told what is being done, and which share of the whole is done."""


@dataclass(frozen=True)
class RecoveredRows:
    """A piece of the result. ``names`` are None where the table has no column that names its rows."""

    numbers: Any
    names: Any
    D_obs: FloatArray
    observed: BoolArray
    distributions: FloatArray
    low: FloatArray | None = None
    high: FloatArray | None = None
    mass_low: FloatArray | None = None
    mass_high: FloatArray | None = None

    @property
    def hidden_mass(self) -> FloatArray:
        return np.where(self.observed, 0, self.distributions).sum(axis=1)


@dataclass(frozen=True)
class Part:
    """Rows of a table as numbers."""

    numbers: Any
    names: Any
    X: FloatArray
    D_obs: FloatArray
    observed: BoolArray

    @property
    def labelled(self) -> BoolArray:
        return np.asarray(self.observed.any(axis=1))

    def at(self, block: slice) -> "Part":
        names = None if self.names is None else self.names[block]
        return Part(self.numbers[block], names, self.X[block], self.D_obs[block], self.observed[block])

    def without_labels(self) -> "Part":
        return replace(self, D_obs=np.zeros_like(self.D_obs), observed=np.zeros_like(self.observed))


@dataclass
class TableRecovery:
    """A model fitted to a table, and the table's rows recovered by it, piece by piece."""

    table: Table
    plan: Plan
    encoding: FeatureEncoding
    model: Recoverer
    notes: list[str]
    _whole: Part | None
    _level: float | None

    @classmethod
    def of(cls, table: Table, options: Options, progress: Progress = lambda what, share: None) -> "TableRecovery":
        """Read, plan and fit."""
        progress(f"reading {table.name}", 0.02)
        model = make_model(options)
        plan = Plan.of(table, options)
        streams = isinstance(model, BayesHidLDL) and table.n_rows > AT_ONCE
        keep = _drawn(table.n_rows, options.random_state) if streams else None
        frame = _checked_rows(table, plan, keep, progress)
        encoding = FeatureEncoding.of(frame, plan.roles)
        part = _part(frame, plan, encoding, plan.shares(table))
        notes = [*plan.notes, *encoding.describe(), *_about(part, table, streams, model)]
        progress("choosing parameters and fitting", 0.2)
        _fit(model, part, table.name, progress)
        progress("recovering", 0.6)
        return cls(table, plan, encoding, model, notes, None if streams else part, options.level)

    def pieces(self, progress: Progress = lambda what, share: None) -> Iterator[RecoveredRows]:
        """The recovered rows, in the order of the table."""
        n_done, n_rows = 0, self.table.n_rows
        parts = self._reread() if self._whole is None else self._blocks(self._whole)
        for recovered in parts:
            n_done += len(recovered.distributions)
            progress(f"recovering, {n_done:,} of {n_rows:,} rows", 0.6 + 0.4 * n_done / n_rows)
            yield recovered

    def _blocks(self, whole: Part) -> Iterator[RecoveredRows]:
        """What was fitted as a whole, with rows that had no labels predicted."""
        fitted = whole.labelled
        D = np.empty_like(whole.D_obs)
        D[fitted] = self.model.distributions_
        if not fitted.all():
            D[~fitted] = self.model.predict(whole.X[~fitted])
        for block in row_blocks(len(D), CHUNK_ROWS):
            yield self._recovered(whole.at(block), D[block])

    def _reread(self) -> Iterator[RecoveredRows]:
        for part in read_parts(self.table, self.plan, self.encoding):
            yield self._recovered(part, complete(self.model, part))

    def _recovered(self, part: Part, D: FloatArray) -> RecoveredRows:
        return recovered_rows(self.model, part, D, self._level)


def read_parts(table: Table, plan: Plan, encoding: FeatureEncoding) -> Iterator[Part]:
    """The rows of a table as numbers, chunk by chunk, ``CHUNK_ROWS`` at a time however the file comes."""
    shares = plan.shares(table)
    # Categories too, since a table of its own may have nothing but numbers in such a column.
    texts = [*_texts(plan.roles), *(name for name, _ in encoding.categories)]
    for rows in _even(table.chunks(CHUNK_ROWS, as_text=texts), [*encoding.columns, *_kept(table, plan.roles)]):
        yield _part(rows, plan, encoding, shares)


def _even(chunks: Iterator[pd.DataFrame], columns: list[str]) -> Iterator[pd.DataFrame]:
    """The same rows in chunks of one size: what is drawn at random for a chunk must not depend on the file's format."""
    waiting: list[pd.DataFrame] = []
    n_waiting = 0
    for chunk in chunks:
        waiting.append(chunk[columns])
        n_waiting += len(chunk)
        if n_waiting >= CHUNK_ROWS:
            rows = pd.concat(waiting)
            yield rows[:CHUNK_ROWS]
            waiting, n_waiting = [rows[CHUNK_ROWS:]], n_waiting - CHUNK_ROWS
    if n_waiting:
        yield pd.concat(waiting)


def complete(model: Recoverer, part: Part) -> FloatArray:
    """Rows that a model has not seen, from their features and, if it can use them, the labels that they have."""
    if isinstance(model, BayesHidLDL):
        return np.asarray(model.predict(part.X, part.D_obs, observed=part.observed))
    D = np.asarray(model.predict(part.X))
    known = part.labelled
    if model._keeps_proportions and known.any():
        D[known] = restore_proportions(D[known], part.D_obs[known], part.observed[known])
    return D


def recovered_rows(model: Recoverer, part: Part, D: FloatArray, level: float | None) -> RecoveredRows:
    """The rows with what was observed, and intervals if they are asked for."""
    bounds: tuple[Any, ...] = ()
    if level is not None and isinstance(model, BayesHidLDL):
        bounds = tuple(model.intervals(level, X=part.X, D_obs=part.D_obs, observed=part.observed))
    return RecoveredRows(part.numbers, part.names, part.D_obs, part.observed, D, *bounds)


def _checked_rows(table: Table, plan: Plan, keep: BoolArray | None, progress: Progress) -> pd.DataFrame:
    """The rows to fit; the labels of all rows are checked on the way."""
    shares = plan.shares(table)
    used = [*plan.roles.features, *_kept(table, plan.roles)]
    kept = []
    for whole_chunk in table.chunks(CHUNK_ROWS, as_text=_texts(plan.roles)):
        chunk = whole_chunk[used]
        shares(chunk)
        last = int(chunk.index[-1])
        progress(f"reading, {last:,} of {table.n_rows:,} rows", 0.05 + 0.15 * last / table.n_rows)
        kept.append(chunk if keep is None else chunk[keep[chunk.index.to_numpy() - 1]])
    shares.refuse_unseen()
    return pd.concat(kept)


def _fit(model: Recoverer, part: Part, name: str, progress: Progress) -> None:
    # Some thirty trials are usual; nobody knows how many before.
    model._on_trial = lambda tried: progress(f"choosing parameters, {tried} trials", 0.2 + 0.4 * tried / (tried + 25))
    fitted = part.labelled
    try:
        model.fit(part.X[fitted], part.D_obs[fitted], observed=part.observed[fitted])
    except ValueError as error:
        raise TableError(f"{name}: {error}") from error
    finally:
        model.__dict__.pop("_on_trial", None)


def _drawn(n_rows: int, seed: int) -> BoolArray:
    keep = np.zeros(n_rows, dtype=bool)
    keep[np.random.default_rng(seed).choice(n_rows, AT_ONCE, replace=False)] = True
    return keep


def _texts(roles: Roles) -> tuple[str, ...]:
    return () if roles.row_names is None else (roles.row_names,)


def _kept(table: Table, roles: Roles) -> list[str]:
    """The columns of the table that are needed beside the features; a table to predict may lack labels."""
    return [*_texts(roles), *(name for name in roles.labels if name in table.columns)]


def _part(rows: pd.DataFrame, plan: Plan, encoding: FeatureEncoding, shares: Shares) -> Part:
    D_obs, observed = shares(rows)
    named = plan.roles.row_names
    names = None if named is None else rows[named].fillna("").to_numpy(object)
    return Part(rows.index.to_numpy(), names, encoding(rows), D_obs, observed)


def _about(part: Part, table: Table, streams: bool, model: Recoverer) -> list[str]:
    said = []
    if not model._keeps_proportions:
        said.append("this method takes observed shares as they are and changes them too: proportions are not kept")
    if streams:
        said.append(
            f"{len(part.X):,} of {table.n_rows:,} rows, drawn at random, were fitted; the rest completed by them"
        )
    without = int((~part.labelled).sum())
    if without:
        said.append(f"rows without any label: {without:,}; their distributions are predicted from the features")
    return said
