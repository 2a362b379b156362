"""From a table to its complete distributions: whole where it fits, else chunk by chunk with a model of a sample."""

from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass, replace
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd

from hidldl.arrays import BoolArray, FloatArray
from hidldl.base import Recoverer
from hidldl.errors import ModelFileError, TableError
from hidldl.methods import make_recoverer
from hidldl.progress import Progress, share_of, silent
from hidldl.replacing import replacing_all
from hidldl.reports.recovery_page import Facts, recovery_page
from hidldl.reports.summary import Summarizer, Summary
from hidldl.saving import load_model, save_model
from hidldl.tables.columns import Column
from hidldl.tables.numbers import FeatureEncoding, Marks, NumberReader, Part, Shares
from hidldl.tables.planning import Options, Plan, Roles, refuse_unusable_labels
from hidldl.tables.reading import Table, open_table
from hidldl.tables.sources import quoted
from hidldl.tables.writing import Targets, open_writer

AT_ONCE = 200_000
"""Rows that are fitted as a whole. Of a longer table ``bayes`` fits a sample of that many, and completes the rest."""
CHUNK_ROWS = 20_000
READ, FITTED = 0.2, 0.6
"""Shares of the whole work after which the table is read, and the model fitted."""


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

    def frame(self, labels: tuple[str, ...], row_names: str | None) -> pd.DataFrame:
        """The columns of the output: names of rows, shares, hidden mass, and intervals if there are any."""
        taken: set[str] = set(labels)
        parts: list[pd.DataFrame] = []
        if row_names is not None:
            name = row_names or "row"
            parts.append(pd.DataFrame({name if row_names else _free(name, taken): pd.Series(self.names, dtype=object)}))
            taken.add(name)
        parts.append(pd.DataFrame(self.distributions, columns=list(labels)))
        extra: dict[str, Any] = {_free("hidden_mass", taken): self.hidden_mass}
        if self.low is not None and self.high is not None:
            extra |= {_free("hidden_mass_low", taken): self.mass_low, _free("hidden_mass_high", taken): self.mass_high}
            for j, label in enumerate(labels):
                extra[_free(f"{label}_low", taken)] = self.low[:, j]
                extra[_free(f"{label}_high", taken)] = self.high[:, j]
        return pd.concat([*parts, pd.DataFrame(extra)], axis=1)


@dataclass
class TableRecovery:
    """A model, and the rows of a table that it recovers, piece by piece.

    ``notes`` tell what was guessed and decided. ``whole`` are the rows that the model was fitted to, where those are
    all rows of the table; others are read again and completed chunk by chunk.
    """

    table: Table
    plan: Plan
    reader: NumberReader
    model: Recoverer
    notes: list[str]
    level: float | None
    whole: Part | None = None
    done_before: float = 0.0
    """The share of the whole work that was done before the rows are recovered."""

    def pieces(self, progress: Progress = silent) -> Iterator[RecoveredRows]:
        """The recovered rows, in the order of the table."""
        n_rows = self.table.n_rows if self.whole is None else len(self.whole.X)
        done = 0
        for part, D in self._completed():
            done += len(D)
            share = self.done_before + (1 - self.done_before) * done / n_rows
            progress(share, 1, f"recovering, {done:,} of {n_rows:,} rows")
            bounds: tuple[Any, ...] = ()
            if self.level is not None:
                bounds = self.model.intervals(self.level, X=part.X, D_obs=part.D_obs, observed=part.observed)
            yield RecoveredRows(part.numbers, part.names, part.D_obs, part.observed, D, *bounds)

    def _completed(self) -> Iterator[tuple[Part, FloatArray]]:
        if self.whole is None:
            for part in self._parts():
                yield part, np.asarray(self.model.predict(part.X, part.D_obs, part.observed))
            return
        fitted = self.whole.has_labels
        D = np.empty_like(self.whole.D_obs)
        D[fitted] = self.model.distributions_
        if not fitted.all():
            D[~fitted] = self.model.predict(self.whole.X[~fitted])
        for at, part in self.whole.blocks(CHUNK_ROWS):
            yield part, D[at]

    def _parts(self) -> Iterator[Part]:
        """The rows of the table as numbers, ``CHUNK_ROWS`` at a time however the file comes."""
        encoding = self.reader.encoding
        # Categories too, since a table of its own may have nothing but numbers in such a column.
        texts = [*_texts(self.plan.roles), *(name for name, _ in encoding.categories)]
        columns = [*encoding.columns, *_kept(self.table, self.plan.roles)]
        for rows in _even(self.table.chunks(CHUNK_ROWS, as_text=texts), columns):
            yield self.reader(rows)

    def write(self, targets: Targets, command: str, started: float, progress: Progress = silent) -> Summary:
        """Write the rows, the report and the model that are asked for: all of them complete, or none."""
        labels, row_names = self.plan.roles.labels, self.plan.roles.row_names
        summarizer = Summarizer(labels)
        with ExitStack() as stack:
            places = dict(zip(targets.files, stack.enter_context(replacing_all(targets.files)), strict=True))
            if targets.model is not None:
                self.save_model(places[targets.model])
            writer = None
            if targets.output is not None:
                writer = stack.enter_context(open_writer(targets.output, places.get(targets.output)))
            for rows in self.pieces(progress):
                if writer is not None:
                    writer.write(rows.frame(labels, row_names))
                numbered = (f"row {number}" for number in rows.numbers)
                names = list(numbered if rows.names is None else map(str, rows.names))
                summarizer.add(names, rows.D_obs, rows.observed, rows.distributions, rows.low, rows.high)
            summary = summarizer.finish()
            if targets.report is not None:
                page = recovery_page(summary, self._facts(command, perf_counter() - started))
                places[targets.report].write_text(page, encoding="utf-8")
        return summary

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

    def save_model(self, path: str | PathLike[str]) -> None:
        """Save the model with what `predict_rows` needs to read another table of the same kind."""
        about = {
            "roles": asdict(self.plan.roles),
            "marks": asdict(self.plan.marks),
            "normalise": self.plan.normalise,
            "encoding": asdict(self.reader.encoding),
        }
        save_model(path, self.model, about)


def recover_file(
    path: Path,
    options: Options,
    targets: Targets,
    *,
    kind: str | None = None,
    sheet: str | None = None,
    name: str | None = None,
    command: str = "",
    progress: Progress = silent,
) -> tuple[list[str], Summary]:
    """Recover the table in a file and write what is asked for; notes on what was guessed, and a summary of the rows."""
    started = perf_counter()
    with closing(open_table(path, kind=kind, sheet=sheet, name=name)) as table:
        targets.check(path)
        recovery = recover_rows(table, options, progress)
        return recovery.notes, recovery.write(targets, command, started, progress)


def predict_file(
    path: Path,
    model: Path,
    targets: Targets,
    *,
    kind: str | None = None,
    sheet: str | None = None,
    row_names: str | None = None,
    normalise: bool = False,
    level: float | None = None,
    n_jobs: int | None = None,
    command: str = "",
    progress: Progress = silent,
) -> tuple[list[str], Summary]:
    """Complete the table in a file with a saved model, as `recover_file` does with one of its own."""
    started = perf_counter()
    with closing(open_table(path, kind=kind, sheet=sheet)) as table:
        targets.check(path, model)
        recovery = predict_rows(model, table, row_names=row_names, normalise=normalise, level=level, n_jobs=n_jobs)
        return recovery.notes, recovery.write(targets, command, started, progress)


def recover_rows(table: Table, options: Options, progress: Progress = silent) -> TableRecovery:
    """Read a table, plan how, and fit a model to it."""
    progress(0.02, 1, f"reading {table.name}")
    model = make_model(options)
    plan = Plan.of(table, options)
    roles = plan.roles
    is_sampled = model.is_inductive and table.n_rows > AT_ONCE
    keep = _sample(table.n_rows, options.random_state) if is_sampled else None
    shares = Shares(table.name, roles.labels, plan.marks, plan.normalise)
    rows = _rows_to_fit(table, plan, shares, keep, progress)
    reader, notes = NumberReader.of(rows, shares, roles.numbers, roles.categories, roles.row_names)
    part = reader(rows, is_whole_table=True)
    notes = [*plan.notes, *notes, *_notes_on_fit(part, table, is_sampled, model)]
    progress(READ, 1, "choosing parameters and fitting")
    _fit(model, part, table.name, progress)
    return TableRecovery(table, plan, reader, model, notes, options.level, None if is_sampled else part, FITTED)


def predict_rows(
    path: Path,
    table: Table,
    *,
    row_names: str | None = None,
    normalise: bool = False,
    level: float | None = None,
    n_jobs: int | None = None,
) -> TableRecovery:
    """Read a model, and check that the table has what it needs."""
    model, plan, encoding = load_table_model(path)
    if level is not None and not model.has_intervals:
        raise TableError(f"{model.method_name} has no intervals; leave out --intervals.")
    if "n_jobs" in model.get_params(deep=False):
        model.set_params(n_jobs=n_jobs)
    columns = {column.name: column for column in table.scan()}
    encoding.refuse_missing(table.name, columns)
    if row_names is not None and row_names not in columns:
        raise TableError(f"{table.name} has no column {quoted(row_names)} (--id).")
    namer = row_names if row_names is not None else plan.roles.row_names
    roles = replace(plan.roles, row_names=namer if namer in columns else None)
    notes = [_note_on_labels(roles, columns, table.name)]
    plan = replace(plan, roles=roles, normalise=plan.normalise or normalise)
    shares = Shares(table.name, roles.labels, plan.marks, plan.normalise)
    reader = NumberReader(shares, encoding, roles.row_names)
    return TableRecovery(table, plan, reader, model, notes, level)


def make_model(options: Options) -> Recoverer:
    """The recoverer that the options name, with the parameters that they give."""
    try:
        model = make_recoverer(options.method, options.parameters)
    except (TypeError, ValueError) as error:
        raise TableError(str(error)) from error
    if options.level is not None and not model.has_intervals:
        raise TableError(f"{options.method} has no intervals; leave out --intervals, or choose the method bayes.")
    common = {"random_state": options.random_state, "n_jobs": options.n_jobs}
    present = model.get_params(deep=False)
    return model.set_params(**{name: value for name, value in common.items() if name in present})


def load_table_model(path: Path) -> tuple[Recoverer, Plan, FeatureEncoding]:
    """The recoverer, and how its table was read."""
    model, about = load_model(path)
    try:
        roles, marks, encoding = Roles(**about["roles"]), Marks(**about["marks"]), FeatureEncoding(**about["encoding"])
        plan = Plan(roles, marks, bool(about["normalise"]), ())
        fits = _fit_together(model, plan, encoding)
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise ModelFileError(f"{path.name} is not the model of a table; 'hidldl recover --model' saves one.") from error
    if not fits:
        raise ModelFileError(f"{path.name} is damaged: its parts do not fit together; save it again.")
    return model, plan, encoding


def _fit_together(model: Any, plan: Plan, encoding: FeatureEncoding) -> bool:
    labels, row_names = plan.roles.labels, plan.roles.row_names
    texts = [*labels, *encoding.columns, *encoding.gappy, *("" if row_names is None else (row_names,))]
    texts += [value for _, values in encoding.categories for value in values]
    return (
        hasattr(model, "keeps_proportions")
        and all(isinstance(text, str) for text in texts)
        and len({*labels, *encoding.columns}) == len(labels) + len(encoding.columns)
        and set(encoding.gappy) <= set(encoding.numbers)
        and encoding.medians.shape == (len(encoding.numbers),)
        and encoding.n_columns == model.n_features_in_
        and np.shape(model.predict(np.zeros((1, encoding.n_columns)))) == (1, len(labels))
        and bool(np.isfinite([0.0, *plan.marks.numbers]).all())
    )


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


def _rows_to_fit(table: Table, plan: Plan, shares: Shares, keep: BoolArray | None, progress: Progress) -> pd.DataFrame:
    """All rows, or a sample of them; where it is a sample, the labels of all rows are checked on the way."""
    used = [*plan.roles.numbers, *plan.roles.categories, *_kept(table, plan.roles)]
    rows = []
    for whole_chunk in table.chunks(CHUNK_ROWS, as_text=_texts(plan.roles)):
        chunk = whole_chunk[used]
        if keep is not None:
            last = int(chunk.index[-1])
            progress(READ * last / table.n_rows, 1, f"reading, {last:,} of {table.n_rows:,} rows")
            shares(chunk)
            chunk = chunk[keep[chunk.index.to_numpy() - 1]]
        rows.append(chunk)
    return pd.concat(rows)


def _fit(model: Recoverer, part: Part, name: str, progress: Progress) -> None:
    shows_progress = "verbose" in model.get_params(deep=False)
    if shows_progress:
        model.set_params(verbose=share_of(progress, READ, FITTED))
    fitted = part.has_labels
    try:
        model.fit(part.X[fitted], part.D_obs[fitted], observed=part.observed[fitted])
    except ValueError as error:
        raise TableError(f"{name}: {error}") from error
    finally:
        if shows_progress:
            model.set_params(verbose=False)


def _sample(n_rows: int, seed: int) -> BoolArray:
    keep = np.zeros(n_rows, dtype=bool)
    keep[np.random.default_rng(seed).choice(n_rows, AT_ONCE, replace=False)] = True
    return keep


def _texts(roles: Roles) -> tuple[str, ...]:
    return () if roles.row_names is None else (roles.row_names,)


def _kept(table: Table, roles: Roles) -> list[str]:
    """The columns of the table that are needed beside the features; a table to predict may lack labels."""
    return [*_texts(roles), *(name for name in roles.labels if name in table.columns)]


def _free(name: str, taken: set[str]) -> str:
    """The name, or one that no column has yet."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _notes_on_fit(part: Part, table: Table, is_sampled: bool, model: Recoverer) -> list[str]:
    notes = []
    if not model.keeps_proportions:
        notes.append("this method takes observed shares as they are and changes them too: proportions are not kept")
    if is_sampled:
        notes.append(f"the model is fitted to {len(part.X):,} of {table.n_rows:,} rows, drawn at random")
    n_without = int((~part.has_labels).sum())
    if n_without:
        notes.append(f"rows without any label: {n_without:,}; their distributions are predicted from the features")
    return notes


def _note_on_labels(roles: Roles, columns: dict[str, Column], table: str) -> str:
    present = [columns[name] for name in roles.labels if name in columns]
    filled = [column for column in present if column.kind != "empty"]
    if not filled:
        return "the table has no labels: distributions are predicted from the features"
    refuse_unusable_labels(table, filled, at_least=1)
    return f"labels in {len(filled)} of {len(roles.labels)} columns are used; what is observed keeps its proportions"
