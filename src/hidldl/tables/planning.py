"""How a table is to be read, before anything is computed: as the user says, or by a guess that is shown."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any, Literal, TypeAlias

import pandas as pd

from hidldl.errors import Remedy, TableError
from hidldl.tables.columns import MOST_DISTINCT, Column, why_not_a_number
from hidldl.tables.guessing import MOST_CATEGORIES, guess_labels, guess_row_names
from hidldl.tables.numbers import Marks, understand_labels
from hidldl.tables.reading import Table
from hidldl.tables.sources import quoted, quoted_list

ColumnNames: TypeAlias = str | Sequence[str] | None
"""Columns as a user names them: a text with commas, patterns and ranges, or a list of exact names."""


@dataclass(frozen=True)
class Options:
    """What a user may say about a table; everything else is guessed."""

    labels: ColumnNames = None
    features: ColumnNames = None
    row_names: str | Literal[False] | None = None
    hidden: str = "auto"
    normalise: bool = False
    method: str = "bayes"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    level: float | None = None
    random_state: int = 0
    n_jobs: int | None = None


@dataclass(frozen=True)
class Roles:
    """What each column is for.

    ``left_out`` has the reason for each column that is for nothing; ``notes`` say what was guessed.
    """

    labels: tuple[str, ...]
    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    row_names: str | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """How the columns of a table are read: roles, marks of hidden labels, and notes on what was guessed."""

    roles: Roles
    marks: Marks
    normalise: bool
    notes: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, options: Options) -> "Plan":
        """From what the table holds and what the user says."""
        columns = table.scan()
        first = table.first_rows
        roles = assign_roles(
            table.name,
            columns,
            first,
            labels=options.labels,
            features=options.features,
            row_names=options.row_names,
        )
        labels = [column for column in columns if column.name in roles.labels]
        marks, normalise, notes = understand_labels(options.hidden, options.normalise, table.name, labels, first)
        return cls(roles, marks, normalise, (*roles.notes, *notes))


def assign_roles(
    table: str,
    columns: Sequence[Column],
    first_rows: pd.DataFrame,
    *,
    labels: ColumnNames = None,
    features: ColumnNames = None,
    row_names: str | Literal[False] | None = None,
) -> Roles:
    """The roles of the columns of a table.

    Columns are named in one text by their names, separated by commas, by patterns (``label_*``) or by ranges in the
    order of the table (``joy..anger``, or ``5..11`` by number from 1); or by a list of names, each taken as it is.

    Parameters
    ----------
    table : str
        The table's name, for messages.
    columns : sequence of Column
        What each column holds.
    first_rows : DataFrame
        Some rows, to guess labels by what they sum to.
    labels, features : str or list of str, optional
        The columns; guessed by default.
    row_names : str or False, optional
        The column that names the rows, or False if none does; guessed by default.
    """
    known = {column.name: column for column in columns}
    label_names = _select(labels, table, list(known), "labels") if labels else ()
    wanted = _select(features, table, list(known), "features") if features else ()
    namer = _row_names(table, columns, row_names, {*label_names, *wanted}, first_rows)
    notes = []
    if not label_names:
        label_names = _guess_labels(table, [column for column in columns if column.name != namer], first_rows)
        notes.append(f"labels, guessed: {quoted_list(label_names)}")
    refuse_unusable_labels(table, [known[name] for name in label_names])
    if namer in label_names:
        raise TableError(f"{table}: column {quoted(namer)} cannot be both a label and the name of rows.")
    if namer is not None and row_names is None:
        notes.append(f"rows are named by {'the first column' if namer == '' else f'column {quoted(namer)}'}")
    free = [column for column in columns if column.name not in {namer, *label_names}]
    used, left_out = _assign_features(table, known, free, wanted)
    notes += [f"column {quoted(name)} is left out: {reason}" for name, reason in left_out.items()]
    return Roles(
        labels=label_names,
        numbers=tuple(column.name for column in used if column.kind == "number"),
        categories=tuple(column.name for column in used if column.kind == "text"),
        row_names=namer,
        left_out=tuple(left_out.items()),
        notes=tuple(notes),
    )


def _assign_features(
    table: str, known: Mapping[str, Column], free: Sequence[Column], wanted: Sequence[str]
) -> tuple[list[Column], dict[str, str]]:
    """The feature columns, and the reason for each column that cannot be one."""
    names = {column.name for column in free}
    for name in wanted:
        if name not in names:
            raise TableError(f"{table}: column {quoted(name)} cannot be a feature too; it is a label or names rows.")
    candidates = [known[name] for name in wanted] or free
    left_out = {column.name: reason for column in candidates if (reason := _why_no_feature(column))}
    if wanted and left_out:
        name, reason = next(iter(left_out.items()))
        raise TableError(f"{table}: column {quoted(name)} cannot be a feature: {reason}.")
    used = [column for column in candidates if column.name not in left_out]
    if not used:
        raise TableError(f"{table} has no feature columns: features are needed to find similar rows. Add some columns.")
    return used, left_out


def _select(wanted: str | Sequence[str], table: str, names: list[str], option: str) -> tuple[str, ...]:
    known = set(names)
    if isinstance(wanted, str) and wanted not in known:
        matches = {part: _columns_named(part, names) for part in re.split(r"\s*,\s*", wanted.strip(" ,"))}
    else:
        exact = [wanted] if isinstance(wanted, str) else wanted
        matches = {name: [name] if name in known else [] for name in exact}
    for part, columns in matches.items():
        if not columns:
            raise TableError(f"{table} has no column {quoted(part)} ({option}); its columns are {quoted_list(names)}.")
    return tuple(dict.fromkeys(chain.from_iterable(matches.values())))


def _columns_named(part: str, names: list[str]) -> list[str]:
    if part in names:
        return [part]
    ends = part.split("..")
    if len(ends) == 2:
        first, last = (_position(end, names) for end in ends)
        if first is None or last is None or first > last:
            return []
        return names[first : last + 1]
    return [name for name in names if fnmatchcase(name, part)]


def _position(end: str, names: list[str]) -> int | None:
    if end in names:
        return names.index(end)
    return int(end) - 1 if end.isdigit() and 1 <= int(end) <= len(names) else None


def _row_names(
    table: str,
    columns: Sequence[Column],
    given: str | Literal[False] | None,
    taken: Collection[str],
    first_rows: pd.DataFrame,
) -> str | None:
    if given is False:
        return None
    if given is None:
        return guess_row_names(columns, first_rows, taken)
    if given not in [column.name for column in columns]:
        raise TableError(f"{table} has no column {quoted(given)}", Remedy("id", "in another way"))
    return given


def _guess_labels(table: str, columns: Sequence[Column], first_rows: pd.DataFrame) -> tuple[str, ...]:
    guess = guess_labels(columns, first_rows)
    if not guess:
        raise TableError(
            f"{table} does not show which columns are labels: none next to each other sum to the same in every row; "
            f"its columns are {quoted_list([column.name for column in columns])}",
            Remedy("labels"),
        )
    return guess


def refuse_unusable_labels(table: str, labels: Sequence[Column], at_least: int = 2) -> None:
    """Refuse label columns that hold text or nothing."""
    if len(labels) < at_least:
        raise TableError(f"{table} has one label column; a distribution needs two or more", Remedy("labels"))
    for column in labels:
        if column.kind == "text":
            row, value = column.odd_row, column.odd_value
            where = f" holds {quoted(value)} in row {row}, {why_not_a_number(str(value))}." if row else " holds text."
            raise TableError(f"label column {quoted(column.name)} of {table}{where}")
        if column.kind == "empty":
            raise TableError(f"label column {quoted(column.name)} of {table} is empty; drop it, or name others.")


def _why_no_feature(column: Column) -> str | None:
    if column.kind == "empty":
        return "it is empty"
    if column.n_distinct < 2 and not (column.n_missing and column.n_distinct):
        return "it is the same in every row"
    if column.kind == "text" and column.odd_row is not None:
        return f"it holds {quoted(column.odd_value)} in row {column.odd_row} among numbers"
    if column.kind == "text" and column.n_distinct > MOST_CATEGORIES:
        count = "many" if column.n_distinct >= MOST_DISTINCT else str(column.n_distinct)
        return f"it is text with {count} different values, not a category"
    return None
