"""From a table to its complete distributions: ``recover_table`` and what it returns.

A table that fits is recovered as a whole; of a longer one a model of a sample completes the rows chunk by chunk.
"""

import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any, Literal

import numpy as np
import pandas as pd

from hidldl.arrays import BoolArray
from hidldl.base import Recoverer
from hidldl.errors import Remedy, TableError
from hidldl.methods import find_method, make_recoverer
from hidldl.progress import Progress, share_of, silent
from hidldl.tables.labels import Shares
from hidldl.tables.numbers import NumberReader, Part
from hidldl.tables.planning import Options, Plan
from hidldl.tables.reading import Table, open_table, table_of
from hidldl.tables.results import CHUNK_ROWS, RecoveredTable
from hidldl.tables.votes import count_votes, guess_vote_columns

AT_ONCE = 200_000
"""Rows that are fitted as a whole. Of a longer table ``bayes`` fits a sample of that many, and completes the rest."""
READ, FITTED = 0.2, 0.6
"""Shares of the whole work after which the table is read, and the model fitted."""


def recover_table(
    source: Any,
    *,
    labels: str | Sequence[str] | None = None,
    features: str | Sequence[str] | None = None,
    id: str | Literal[False] | None = None,
    hidden: str = "auto",
    normalise: bool = False,
    method: str = "bayes",
    parameters: Mapping[str, Any] | None = None,
    intervals: float | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    skip_bad_rows: bool = False,
    item: str | None = None,
    label: str | None = None,
    annotator: str | None = None,
    shown: str | None = None,
    features_from: Any = None,
    kind: str | None = None,
    sheet: str | None = None,
    header_row: int | str | None = None,
    name: str | None = None,
    progress: Progress = silent,
) -> RecoveredTable:
    """Recover the hidden labels of a table. The shell and the web page do the same by this function.

    Parameters
    ----------
    source : path, DataFrame or open file
        CSV, TSV, Parquet or Excel, also compressed text; "-" is standard input. A folder of Parquet files is one table,
        here or at a URL that fsspec knows, such as "s3://bucket/table". A DataFrame may be of pandas, polars or Arrow.
    labels, features : str or list of str, optional
        The columns: a list of exact names, or one text with names, patterns (``label_*``) and ranges
        (``joy..anger``) by commas. Labels are guessed by default; features are all columns that are left, or none
        of them if the list is empty.
    id : str or False, optional
        The column that names the rows, or False if none does; guessed by default.
    hidden : str, default="auto"
        What marks a hidden label: "empty", "zero", "none", a number, a word, or several by commas; "unknown" if zeros
        may be hidden or true. By default empty cells do, and where no cell is empty zeros are unknown, or hidden for
        methods that cannot tell.
    normalise : bool, default=False
        Divide each row by its sum: its cells are counts or amounts. Percentages and counts are recognised without it.
    method : str, default="bayes"
        What ``hidldl recover --help`` lists, or a method that you registered.
    parameters : dict, optional
        Parameters of the method; what is not given is chosen without ground truth.
    intervals : float, optional
        The level of intervals to write and report, such as 0.9.
    random_state : int, default=0
        Same seed, same result.
    n_jobs : int or None
        Threads; -1 is every core.
    skip_bad_rows : bool, default=False
        Leave out rows whose labels cannot be right instead of refusing the table; ``bad_rows`` lists them.
    item, label, annotator : str, optional
        The columns of a long table with one row per vote: what was annotated, the label, and who chose it. The columns
        task, label and worker are recognised without it. A cell may hold several labels, separated by ";" or "|".
    shown : str, optional
        In a long table, the column with the labels that could be chosen: one that nobody was shown is hidden.
    features_from : path, DataFrame or open file, optional
        Features of the items of a long table, joined by the column that has the name of ``item``.
    kind, sheet : str, optional
        What the file is, if its name does not say, and the sheet of a workbook.
    header_row : int or str, optional
        The row of the column names, counted from 1, or a range such as "2-3" for names in two rows.
    name : str, optional
        What to call the table in messages and in the report.
    progress : callable, optional
        Called with what is done, of how much, and words.

    Returns
    -------
    RecoveredTable
        With ``frame``, ``hidden_mass``, ``intervals``, ``report``, ``write`` and ``save_model``.

    Examples
    --------
    >>> import pandas as pd
    >>> from hidldl import recover_table
    >>> faces = pd.DataFrame(
    ...     {
    ...         "age": [20, 30, 40, 50],
    ...         "joy": [0.6, 0.5, 0.75, None],
    ...         "fear": [0.3, 0.25, 0.25, 0.6],
    ...         "anger": [0.1, 0.25, None, 0.4],
    ...     }
    ... )
    >>> result = recover_table(faces, labels=["joy", "fear", "anger"], method="meanfill")
    >>> result.frame.round(2)
       age   joy  fear  anger  hidden_mass
    0   20  0.60  0.30   0.10         0.00
    1   30  0.50  0.25   0.25         0.00
    2   40  0.62  0.21   0.17         0.17
    3   50  0.57  0.26   0.17         0.57
    """
    table, options, notes = understand(
        source,
        item=item,
        label=label,
        annotator=annotator,
        shown=shown,
        features_from=features_from,
        reading={"kind": kind, "sheet": sheet, "header_row": header_row, "name": name},
        options=Options(
            labels=labels,
            features=features,
            row_names=id,
            hidden=hidden,
            normalise=normalise,
            method=method,
            parameters=parameters or {},
            level=intervals,
            random_state=random_state,
            n_jobs=n_jobs,
            skip_bad_rows=skip_bad_rows,
        ),
    )
    result = recover_rows(table, options, progress)
    return replace(result, notes=[*notes, *result.notes])


def understand(
    source: Any,
    options: Options,
    *,
    item: str | None = None,
    label: str | None = None,
    annotator: str | None = None,
    shown: str | None = None,
    features_from: Any = None,
    reading: Mapping[str, Any],
) -> tuple[Table, Options, tuple[str, ...]]:
    """The table with a row per item that a source holds, the options for it, and notes; votes are counted."""
    table = as_table(source, **reading)
    columns = (item, label, annotator) if item and label else _vote_columns(table, options)
    if columns is None:
        return table, options, ()
    votes = count_votes(
        table, *columns, shown=shown, features=None if features_from is None else as_table(features_from)
    )
    # A label that was shown and got no vote is a true zero. Without the column of shown labels, it may also be hidden.
    zeros = "unknown" if find_method(options.method).tells_zeros else "zero"
    hidden = ("empty" if shown else f"empty,{zeros}") if options.hidden == "auto" else options.hidden
    counted = replace(options, labels=list(votes.labels), row_names=votes.item, normalise=True, hidden=hidden)
    return table_of(votes.frame, table.name), counted, votes.notes


def _vote_columns(table: Table, options: Options) -> tuple[str, str, str | None] | None:
    """The columns of votes in a table that looks like a long one and shows no labels otherwise."""
    columns = None if options.labels else guess_vote_columns(table)
    if columns is None:
        return None
    try:
        Plan.of(table, options)
    except TableError:
        return columns
    return None


def as_table(source: Any, *, name: str | None = None, **reading: Any) -> Table:
    """A path, a DataFrame of pandas, polars or Arrow, or an open file, as a table; ``reading`` is for files only."""
    if isinstance(source, str | PathLike):
        return open_table(Path(source), name=name, **reading)
    if isinstance(source, pd.DataFrame):
        return table_of(source, name or "the table")
    if hasattr(source, "to_pandas"):
        return table_of(source.to_pandas(), name or "the table")
    if hasattr(source, "read"):
        return _open_file(source, name, reading)
    raise TypeError(f"source must be a path, a DataFrame or an open file, got {type(source).__name__}.")


def _open_file(file: Any, name: str | None, reading: Mapping[str, Any]) -> Table:
    """A copy of an open file, since tables are read more than once; it goes with the table."""
    content = file.read()
    folder = Path(tempfile.mkdtemp(prefix="hidldl-"))
    try:
        copy = folder / Path(str(getattr(file, "name", "") or "table.csv")).name
        copy.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
        table = open_table(copy, name=name, **reading)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    weakref.finalize(table, shutil.rmtree, folder, ignore_errors=True)
    return table


def recover_rows(table: Table, options: Options, progress: Progress = silent) -> RecoveredTable:
    """Read a table, plan how, and fit a model to it."""
    started = perf_counter()
    progress(0.02, 1, f"reading {table.name}")
    model = make_model(options)
    plan = Plan.of(table, options)
    try:
        return _recover_planned(table, plan, model, options, started, progress)
    except TableError as error:
        error.notes = plan.notes
        raise


def _recover_planned(
    table: Table, plan: Plan, model: Recoverer, options: Options, started: float, progress: Progress
) -> RecoveredTable:
    roles = plan.roles
    is_sampled = model.is_inductive and table.n_rows > AT_ONCE
    keep = _sample(table.n_rows, options.random_state) if is_sampled else None
    guessed = options.labels is None
    shares = Shares(table.name, roles.labels, plan.marks, plan.total, guessed=guessed)
    rows, faults = _rows_to_fit(table, plan, shares, keep, options.skip_bad_rows, progress)
    counts = plan.total is None and plan.whole_numbers.issuperset(roles.labels)
    reader, part, notes = NumberReader.of(rows, shares, roles.numbers, roles.categories, roles.row_names, counts)
    notes = [*plan.notes, *notes, *_notes_on_fit(part, table, is_sampled, model)]
    if len(faults):
        notes.append(f"{len(faults):,} rows are left out: their labels cannot be right")
    progress(READ, 1, "choosing parameters and fitting")
    _fit(model, part, table.name, progress)
    notes += model.findings(roles.labels)
    whole, as_read = (None, None) if is_sampled else (part, rows)
    return RecoveredTable(table, plan, reader, model, notes, options.level, whole, as_read, FITTED, started, faults)


def make_model(options: Options) -> Recoverer:
    """The recoverer that the options name, with the parameters that they give."""
    try:
        model = make_recoverer(options.method, options.parameters)
    except (TypeError, ValueError) as error:
        raise TableError(str(error)) from error
    if options.level is not None and not model.has_intervals:
        raise TableError(f"{options.method} has no intervals", Remedy("no intervals"), Remedy("bayes"))
    common = {"random_state": options.random_state, "n_jobs": options.n_jobs}
    present = model.get_params(deep=False)
    return model.set_params(**{name: value for name, value in common.items() if name in present})


def _rows_to_fit(
    table: Table, plan: Plan, shares: Shares, keep: BoolArray | None, skip_bad_rows: bool, progress: Progress
) -> tuple[pd.DataFrame, "pd.Series[str]"]:
    """All rows, or a sample of them, and the faults of rows that are left out; labels of all rows are checked."""
    used = {*plan.roles.labels, *plan.roles.numbers, *plan.roles.categories}
    rows, faults = [], [pd.Series(dtype=object)]
    for chunk in table.chunks(CHUNK_ROWS, as_text=[name for name in table.columns if name not in used]):
        if skip_bad_rows:
            faults.append(shares.faults(chunk))
            chunk = chunk.drop(faults[-1].index)
        if keep is not None:
            last = int(chunk.index[-1]) if len(chunk) else 0
            progress(READ * last / table.n_rows, 1, f"reading, {last:,} of {table.n_rows:,} rows")
            shares(chunk)
            chunk = chunk[keep[chunk.index.to_numpy() - 1]]
        rows.append(chunk)
    return pd.concat(rows), pd.concat(faults)


def _fit(model: Recoverer, part: Part, name: str, progress: Progress) -> None:
    shows_progress = "verbose" in model.get_params(deep=False)
    if shows_progress:
        model.set_params(verbose=share_of(progress, READ, FITTED))
    try:
        model.fit(**part.arguments_for(model, part.has_labels))
    except ValueError as error:
        raise TableError(f"{name}: {error}") from error
    finally:
        if shows_progress:
            model.set_params(verbose=False)


def _sample(n_rows: int, seed: int) -> BoolArray:
    keep = np.zeros(n_rows, dtype=bool)
    keep[np.random.default_rng(seed).choice(n_rows, AT_ONCE, replace=False)] = True
    return keep


def _notes_on_fit(part: Part, table: Table, is_sampled: bool, model: Recoverer) -> list[str]:
    notes = []
    if not model.keeps_proportions:
        notes.append("this method takes observed shares as they are and changes them too: proportions are not kept")
    if is_sampled:
        notes.append(f"the model is fitted to {len(part.X):,} of {table.n_rows:,} rows, drawn at random")
    if model.uses_votes and part.votes is not None and np.ptp(votes := part.votes[part.has_labels]) > 0:
        notes.append(f"a row with more votes counts as more exact: rows have {votes.min():g} to {votes.max():g}")
    n_without = int((~part.has_labels).sum())
    if n_without:
        notes.append(f"rows without any label: {n_without:,}; their distributions are predicted from the features")
    return notes
