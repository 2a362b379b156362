"""A table checked without recovering it: how it is understood, what is wrong row by row, and what is implausible."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from hidldl.errors import Remedy, TableError, notes_in
from hidldl.reports.check_page import CheckFacts, check_page
from hidldl.tables.labels import Shares
from hidldl.tables.planning import Options, Plan
from hidldl.tables.reading import Table
from hidldl.tables.recovery import make_model, understand
from hidldl.tables.results import CHUNK_ROWS

MOST_HIDDEN = 0.8
SELDOM = 0.01
"""A label that is observed in a smaller part of the rows is nearly never seen."""
SINGLE = 0.9
"""Where that many rows have one positive label only, they may be classes, not shares."""


@dataclass
class TableCheck:
    """What a check found.

    Attributes
    ----------
    name : str
        What the table is called.
    skips_bad_rows : bool
        Whether a run would leave out rows that cannot be right.
    n_rows : int
        Rows of the table.
    plan : Plan or None
        How the table is understood; None where that failed.
    notes : tuple of str
        What was guessed and decided.
    errors : list of TableError
        What would end a run, beside single rows.
    bad_rows : DataFrame
        Rows whose labels cannot be right: ``row``, ``name`` and ``reason``.
    warnings : list of str
        What is implausible, but would not end a run.
    """

    name: str
    skips_bad_rows: bool = False
    n_rows: int = 0
    plan: Plan | None = None
    notes: tuple[str, ...] = ()
    errors: list[TableError] = field(default_factory=list)
    bad_rows: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["row", "name", "reason"]))
    warnings: list[str] = field(default_factory=list)

    @property
    def would_succeed(self) -> bool:
        """Whether a run with the same options would."""
        return not self.failures

    @property
    def failures(self) -> list[TableError]:
        """What would end a run, bad rows included."""
        if self.skips_bad_rows or not len(self.bad_rows):
            return self.errors
        problem = f"{len(self.bad_rows):,} rows of {self.name} cannot be right; correct them"
        return [*self.errors, TableError(problem, Remedy("skip", "to leave them out"))]

    @property
    def columns(self) -> dict[str, tuple[str, ...]]:
        """The names of the columns, by what they are for."""
        if self.plan is None:
            return {}
        roles = self.plan.roles
        return {"labels": roles.labels, "numbers": roles.numbers, "categories": roles.categories}

    def page(self, words: Mapping[str, str], command: str) -> str:
        """The outcome as a page, in the words of a front end."""
        roles = None if self.plan is None else self.plan.roles
        namer = () if roles is None or roles.row_names is None else (roles.row_names or "(the first column)",)
        return check_page(
            CheckFacts(
                source=self.name,
                n_rows=self.n_rows,
                would_succeed=self.would_succeed,
                command=command,
                problems=[error.worded(words) for error in self.failures],
                warnings=self.warnings,
                notes=notes_in(words, self.notes),
                columns={**self.columns, "names of rows": namer} if roles else {},
                left_out=roles.left_out if roles else (),
                bad_rows=self.bad_rows,
            )
        )


def check_file(path: Path, options: Options, *, votes: Mapping[str, Any], reading: Mapping[str, Any]) -> TableCheck:
    """Check a table, or votes, as ``recover_table`` would read them; a table that cannot be read is an error too."""
    try:
        table, options, notes = understand(path, options, **votes, reading=reading)
    except TableError as error:
        name = reading.get("name") or ("standard input" if str(path) == "-" else path.name)
        return TableCheck(name, errors=[error])
    with table:
        return check_rows(table, options, notes)


def check_rows(table: Table, options: Options, notes: tuple[str, ...] = ()) -> TableCheck:
    """Check every row of a table as a run would read it."""
    check = TableCheck(table.name, options.skip_bad_rows, notes=notes)
    try:
        make_model(options)
        check.n_rows = table.n_rows
        check.plan = plan = Plan.of(table, options)
        check.notes = (*notes, *plan.notes)
    except TableError as error:
        check.errors.append(error)
        return check
    counts = _Counts(len(plan.roles.labels))
    shares = Shares(table.name, plan.roles.labels, plan.marks, plan.total)
    named, bad = plan.roles.row_names, []
    for chunk in table.chunks(CHUNK_ROWS, as_text=[named] if named is not None else []):
        faults = shares.faults(chunk)
        names = chunk.loc[faults.index, named].to_numpy() if named is not None else faults.index
        bad.append(pd.DataFrame({"row": faults.index, "name": names, "reason": faults.to_numpy()}))
        good = chunk.drop(faults.index)
        counts.add(*shares(good), good[[*plan.roles.numbers, *plan.roles.categories, *plan.roles.labels]])
    check.bad_rows = pd.concat(bad, ignore_index=True)
    try:
        shares.refuse_unseen()
    except TableError as error:
        check.errors.append(error)
    if not counts.n_labelled:
        check.errors.append(TableError(f"no row of {table.name} has a label that can be right", Remedy("labels")))
    check.warnings = counts.warnings(plan.roles.labels)
    return check


class _Counts:
    """What is counted to tell what is implausible."""

    def __init__(self, n_labels: int) -> None:
        self.n_rows = self.n_labelled = self.n_single = 0
        self.n_observed = np.zeros(n_labels, dtype=np.int64)
        self.hashes: list[Any] = []

    def add(self, D_obs: Any, observed: Any, rows: pd.DataFrame) -> None:
        labelled = observed.any(axis=1)
        self.n_rows += len(rows)
        self.n_labelled += int(labelled.sum())
        self.n_single += int(((D_obs > 0).sum(axis=1) == 1).sum())
        self.n_observed += observed[labelled].sum(axis=0)
        self.hashes.append(pd.util.hash_pandas_object(rows, index=False).to_numpy())

    def warnings(self, labels: tuple[str, ...]) -> list[str]:
        rows = max(self.n_labelled, 1)
        warnings = []
        if self.n_single > SINGLE * rows:
            warnings.append(
                f"{self.n_single:,} of {rows:,} rows have one positive label only: are they classes, not shares?"
            )
        if self.n_labelled < len(labels):
            warnings.append(f"there are fewer rows with labels ({self.n_labelled:,}) than labels ({len(labels)})")
        hidden = 1 - self.n_observed.sum() / (rows * len(labels))
        if hidden > MOST_HIDDEN:
            warnings.append(f"{hidden:.0%} of the label cells are hidden: little is left to learn from")
        for label, n_observed in zip(labels, self.n_observed, strict=True):
            if 0 < n_observed < SELDOM * rows:
                warnings.append(f"label {label!r} is observed in {n_observed:,} of {rows:,} rows only")
        n_twice = self.n_rows - len(np.unique(np.concatenate(self.hashes))) if self.hashes else 0
        if n_twice:
            warnings.append(f"{n_twice:,} rows are the same as others, labels and features alike")
        return warnings
