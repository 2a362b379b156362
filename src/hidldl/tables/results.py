"""Recovered tables: their rows, piece by piece, laid out and written."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from html import escape
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from hidldl.arrays import BoolArray, FloatArray
from hidldl.base import Recoverer
from hidldl.progress import Progress, silent
from hidldl.replacing import replacing_all
from hidldl.reports.recovery_page import Facts, recovery_page
from hidldl.reports.summary import Summarizer, Summary
from hidldl.saving import save_model
from hidldl.tables.numbers import NumberReader, Part
from hidldl.tables.planning import Plan
from hidldl.tables.reading import Table
from hidldl.tables.writing import Targets, open_writer

Keep: TypeAlias = Literal["all", "id", "none"]
Unit: TypeAlias = Literal["shares", "percent"]
CHUNK_ROWS = 20_000
PERCENT_TOLERANCE = 2.0


@dataclass(frozen=True)
class Layout:
    """The columns of an output: those of the table in their order, with complete labels, and what was recovered."""

    columns: tuple[str, ...]
    labels: tuple[str, ...]
    row_names: str | None
    whole_numbers: frozenset[str] = frozenset()
    keep: Keep = "all"
    unit: Unit = "shares"
    digits: int | None = 6
    """Digits of a share; None for all of them."""
    flags: bool = False


@dataclass(frozen=True)
class RecoveredRows:
    """A piece of the result. ``names`` are None where the table has no column that names its rows."""

    numbers: Any
    names: Any
    D_obs: FloatArray
    observed: BoolArray
    distributions: FloatArray
    as_read: pd.DataFrame | None = None
    """The rows as they came, with the columns that are neither labels nor names."""
    low: FloatArray | None = None
    high: FloatArray | None = None
    mass_low: FloatArray | None = None
    mass_high: FloatArray | None = None

    @property
    def hidden_mass(self) -> FloatArray:
        return np.where(self.observed, 0, self.distributions).sum(axis=1)

    @property
    def row_names(self) -> list[str]:
        """What to call the rows: their names, or their numbers."""
        return [f"row {number}" for number in self.numbers] if self.names is None else list(map(str, self.names))

    def bounds(self, labels: tuple[str, ...], free: Callable[[str], str] = str) -> pd.DataFrame:
        """Columns of bounds: of the hidden mass, and of each label."""
        assert self.low is not None and self.high is not None
        columns: dict[str, Any] = {
            free("hidden_mass_low"): self.mass_low,
            free("hidden_mass_high"): self.mass_high,
        }
        for j, label in enumerate(labels):
            columns[free(f"{label}_low")] = self.low[:, j]
            columns[free(f"{label}_high")] = self.high[:, j]
        return pd.DataFrame(columns)

    def frame(self, layout: Layout) -> pd.DataFrame:
        """The columns of the output."""
        scale = 100.0 if layout.unit == "percent" else 1.0
        digits = None if layout.digits is None else layout.digits - (2 if layout.unit == "percent" else 0)
        taken = set(layout.labels)
        shares = self.distributions if digits is None else round_shares(self.distributions, layout.digits or 0)
        complete = dict(zip(layout.labels, (_scaled(column, scale, digits) for column in shares.T), strict=True))
        columns: dict[str, Any] = {}
        for name in (*layout.columns, *(label for label in layout.labels if label not in layout.columns)):
            if name in complete:
                columns[name] = complete[name]
            elif name == layout.row_names and layout.keep != "none":
                columns[name or _free("row", taken)] = pd.Series(self.names, dtype=object)
            elif layout.keep == "all" and self.as_read is not None and name in self.as_read:
                columns[name] = _as_it_came(self.as_read[name], name in layout.whole_numbers)
        taken.update(columns)
        columns[_free("hidden_mass", taken)] = _scaled(np.where(self.observed, 0, shares).sum(axis=1), scale, digits)
        if layout.flags:
            for j, label in enumerate(layout.labels):
                columns[_free(f"{label}_was_hidden", taken)] = ~self.observed[:, j]
        parts = [pd.DataFrame(columns)]
        if self.low is not None:
            bounds = self.bounds(layout.labels, lambda name: _free(name, taken))
            parts.append(bounds.apply(lambda column: _scaled(column.to_numpy(), scale, digits)))
        return pd.concat(parts, axis=1)


@dataclass
class RecoveredTable:
    """A table with its hidden labels recovered; made by ``recover_table`` and ``predict_table``.

    Attributes
    ----------
    notes : list of str
        What was guessed and decided.
    model : Recoverer
        The fitted model.
    plan : Plan
        How the columns of the table were read.
    level : float or None
        The level of the intervals that tables and reports show, if any.
    """

    table: Table
    plan: Plan
    reader: NumberReader
    model: Recoverer
    notes: list[str]
    level: float | None = None
    whole: Part | None = None
    rows: pd.DataFrame | None = None
    """The rows that the model was fitted to, as numbers and as they came, where those are all rows of the table."""
    done_before: float = 0.0
    """The share of the whole work that was done before the rows are recovered."""
    started: float = 0.0

    @property
    def frame(self) -> pd.DataFrame:
        """The whole table: its columns, with the labels complete, and ``hidden_mass``."""
        layout = self.layout(digits=None)
        return pd.concat([rows.frame(layout) for rows in self.pieces()], ignore_index=True)

    @property
    def distributions(self) -> pd.DataFrame:
        """The recovered shares, by the names of the rows."""
        return self._by_name(lambda rows: pd.DataFrame(rows.distributions, columns=list(self.plan.roles.labels)))

    @property
    def hidden_mass(self) -> "pd.Series[float]":
        """How much of each row the hidden labels hold, by the names of the rows."""
        return self._by_name(lambda rows: pd.DataFrame({"hidden_mass": rows.hidden_mass}))["hidden_mass"]

    def intervals(self, level: float = 0.9) -> pd.DataFrame:
        """Bounds of every share and of the hidden mass, by the names of the rows, from methods that have them."""
        return self._by_name(lambda rows: rows.bounds(self.plan.roles.labels), level)

    def _by_name(self, of: Any, level: float | None = None) -> pd.DataFrame:
        pieces = list(self.pieces(level=level))
        index = np.concatenate([rows.numbers if rows.names is None else rows.names for rows in pieces])
        return pd.concat([of(rows) for rows in pieces]).set_axis(index).rename_axis(self.plan.roles.row_names or "row")

    def pieces(self, progress: Progress = silent, level: float | None = None) -> Iterator[RecoveredRows]:
        """The recovered rows, in the order of the table, with intervals of a level if one is given."""
        n_rows = self.table.n_rows if self.whole is None else len(self.whole.X)
        done = 0
        for part, D, as_read in self._completed():
            done += len(D)
            share = self.done_before + (1 - self.done_before) * done / n_rows
            progress(share, 1, f"recovering, {done:,} of {n_rows:,} rows")
            bounds: tuple[Any, ...] = ()
            if level is not None:
                bounds = self.model.intervals(level, X=part.X, D_obs=part.D_obs, observed=part.observed)
            yield RecoveredRows(part.numbers, part.names, part.D_obs, part.observed, D, as_read, *bounds)

    def _completed(self) -> Iterator[tuple[Part, FloatArray, pd.DataFrame]]:
        if self.whole is None or self.rows is None:
            for rows in _even(self.table.chunks(CHUNK_ROWS, as_text=self._texts())):
                part = self.reader(rows)
                yield part, np.asarray(self.model.predict(part.X, part.D_obs, part.observed)), rows
            return
        fitted = self.whole.has_labels
        D = np.empty_like(self.whole.D_obs)
        D[fitted] = self.model.distributions_
        if not fitted.all():
            D[~fitted] = self.model.predict(self.whole.X[~fitted])
        for at, part in self.whole.blocks(CHUNK_ROWS):
            yield part, D[at], self.rows.iloc[at]

    def _texts(self) -> list[str]:
        # Categories too, since a table of its own may have nothing but numbers in such a column.
        categories = {name for name, _ in self.reader.encoding.categories}
        roles = self.plan.roles
        numbers = {*roles.labels, *roles.numbers, *roles.categories} - categories
        return [name for name in self.table.columns if name not in numbers]

    def layout(
        self, keep: Keep = "all", unit: Unit | None = None, digits: int | None = 6, flags: bool = False
    ) -> Layout:
        """How the rows are laid out in a table: see ``write``."""
        roles, whole = self.plan.roles, self.table.whole_numbers
        return Layout(
            self.table.columns, roles.labels, roles.row_names, whole, keep, unit or self._unit(), digits, flags
        )

    def _unit(self) -> Unit:
        """Percent where the labels of the table sum to 100."""
        if not self.plan.normalise:
            return "shares"
        cells = self.table.first_rows.reindex(columns=list(self.plan.roles.labels)).to_numpy(float)
        sums = np.where(self.plan.marks(cells), cells, 0).sum(axis=1)
        are_percent = (np.abs(sums[sums > 0] - 100) <= PERCENT_TOLERANCE).mean() > 0.9 if (sums > 0).any() else False
        return "percent" if are_percent else "shares"

    def write(
        self,
        output: str | PathLike[str] | None = None,
        *,
        report: str | PathLike[str] | None = None,
        model: str | PathLike[str] | None = None,
        keep: Keep = "all",
        unit: Unit | None = None,
        full_precision: bool = False,
        flags: bool = False,
        command: str = "",
        progress: Progress = silent,
    ) -> Summary:
        """Write the table, a report and the model: all of them complete, or none.

        Parameters
        ----------
        output : path, optional
            The table: .csv, .tsv (also .csv.gz), .parquet or .xlsx; "-" is standard output.
        report : path, optional
            A page to look at (.html).
        model : path, optional
            The fitted model (.npz or .json), for ``predict_table``.
        keep : {"all", "id", "none"}
            Which columns beside the labels to keep: all of them, in their order, the names of rows only, or none.
        unit : {"shares", "percent"}, optional
            What to write; as in the input by default.
        full_precision : bool, default=False
            Write all digits. Six are written by default, so that every row still sums to 1 exactly.
        flags : bool, default=False
            Also a column per label that says whether it was hidden.
        command : str
            What the report names as the way it was made.
        progress : callable, optional
            Called with what is done, of how much, and words.

        Returns
        -------
        Summary
            What was hidden and recovered, in figures.
        """
        targets = Targets(*(None if path is None else Path(path) for path in (output, report, model)))
        layout = self.layout(keep, unit, None if full_precision else 6, flags)
        summarizer = Summarizer(self.plan.roles.labels)
        with ExitStack() as stack:
            places = dict(zip(targets.files, stack.enter_context(replacing_all(targets.files)), strict=True))
            if targets.model is not None:
                self.save_model(places[targets.model])
            writer = None
            if targets.output is not None:
                place = places.get(targets.output)
                writer = stack.enter_context(
                    open_writer(targets.output, place, self.table.delimiter, self.table.decimal)
                )
            for rows in self.pieces(progress, self.level):
                if writer is not None:
                    writer.write(rows.frame(layout))
                summarizer.add(rows.row_names, rows.D_obs, rows.observed, rows.distributions, rows.low, rows.high)
            summary = summarizer.finish()
            if targets.report is not None:
                page = recovery_page(summary, self._facts(command, perf_counter() - self.started))
                places[targets.report].write_text(page, encoding="utf-8")
        return summary

    def report(self, path: str | PathLike[str]) -> None:
        """Write a page about what was hidden and recovered, which needs nothing from elsewhere."""
        self.write(report=path, command="hidldl.recover_table(...)")

    def save_model(self, path: str | PathLike[str]) -> None:
        """Save the model with what ``predict_table`` needs to read another table of the same kind."""
        about = {
            "roles": asdict(self.plan.roles),
            "marks": asdict(self.plan.marks),
            "normalise": self.plan.normalise,
            "encoding": asdict(self.reader.encoding),
        }
        save_model(path, self.model, about)

    def _facts(self, command: str, seconds: float) -> Facts:
        return Facts(
            source=self.table.name,
            method=self.model.method_name,
            parameters=self.model.parameters_,
            seconds=seconds,
            command=command,
            notes=self.notes,
            level=self.level,
            selection=getattr(self.model, "selection_", None),
            history=getattr(self.model, "history_", None),
            converged=getattr(self.model, "converged_", None),
        )

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{escape(note)}</li>" for note in self.notes)
        return f"<ul>{notes}</ul>{self.frame.head(10).to_html(border=0)}"


def _even(chunks: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The same rows in chunks of one size: what is drawn at random for a chunk must not depend on the file's format."""
    waiting: list[pd.DataFrame] = []
    n_waiting = 0
    for chunk in chunks:
        waiting.append(chunk)
        n_waiting += len(chunk)
        if n_waiting >= CHUNK_ROWS:
            rows = pd.concat(waiting)
            yield rows[:CHUNK_ROWS]
            waiting, n_waiting = [rows[CHUNK_ROWS:]], n_waiting - CHUNK_ROWS
    if n_waiting:
        yield pd.concat(waiting)


def round_shares(D: FloatArray, digits: int) -> FloatArray:
    """Rows rounded to so many digits that still sum to exactly 1: the largest remainders are rounded up.

    Examples
    --------
    >>> import numpy as np
    >>> from hidldl.tables.results import round_shares
    >>> round_shares(np.array([[1 / 3, 1 / 3, 1 / 3]]), 2)
    array([[0.34, 0.33, 0.33]])
    """
    unit = 10**digits
    parts = np.floor(D * unit)
    missing = np.rint(unit - parts.sum(axis=1)).astype(int)
    ranks = np.argsort(np.argsort(parts - D * unit, axis=1, kind="stable"), axis=1)
    return (parts + (ranks < missing[:, None])) / unit


def _scaled(values: FloatArray, scale: float, digits: int | None) -> FloatArray:
    return values * scale if digits is None else np.round(values * scale, digits)


def _as_it_came(column: "pd.Series[Any]", is_whole: bool) -> Any:
    """A column of the table; whole numbers without a decimal point."""
    return column.astype("Int64").array if is_whole and column.dtype.kind == "f" else column.array


def _free(name: str, taken: set[str]) -> str:
    """The name, or one that no column has yet."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name
