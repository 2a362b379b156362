"""Which columns name the rows of a table, which are features and which labels: as told, or guessed and said aloud."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain
from typing import Literal, TypeAlias

import pandas as pd

from hidldl.errors import TableError
from hidldl.tables.columns import MOST_DISTINCT, Column, why_not_a_number
from hidldl.tables.guessing import MOST_CATEGORIES, guessed_labels, guessed_row_names
from hidldl.tables.sources import quoted

ColumnNames: TypeAlias = str | Sequence[str] | None
"""Columns as a user tells them: a text with commas, patterns and ranges, or a list of exact names."""


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

    @property
    def features(self) -> tuple[str, ...]:
        return (*self.numbers, *self.categories)


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
        The columns; guessed where not told.
    row_names : str or False, optional
        The column that names the rows, or False if none does; guessed where not told.
    """
    known = {column.name: column for column in columns}
    notes = []
    chosen = _select(labels, table, list(known), "--labels") if labels else ()
    asked_for = _select(features, table, list(known), "--features") if features else ()
    named = _row_names(table, columns, row_names, {*chosen, *asked_for}, first_rows)
    if not chosen:
        free = [column for column in columns if column.name != named]
        chosen = _guessed_labels(table, free, first_rows)
        notes.append(f"labels, guessed: {_listed(chosen)}; name them with --labels if that is wrong")
    refuse_unusable_labels(table, [known[name] for name in chosen])
    if named in chosen:
        raise TableError(f"{table}: column {quoted(named)} cannot be both a label and the name of rows.")
    if named is not None and row_names is None:
        notes.append(f"rows are named by {'the first column' if named == '' else f'column {quoted(named)}'}")
    rest = [name for name in known if name not in {named, *chosen}]
    wanted = asked_for or rest
    taken = [name for name in wanted if name not in rest]
    if taken:
        raise TableError(f"{table}: column {quoted(taken[0])} cannot be a feature too; it is a label or names rows.")
    left_out = {name: why for name in wanted if (why := _why_no_feature(known[name]))}
    if features and left_out:
        name, why = next(iter(left_out.items()))
        raise TableError(f"{table}: column {quoted(name)} cannot be a feature: {why}.")
    used = [known[name] for name in wanted if name not in left_out]
    if not used:
        raise TableError(f"{table} has no feature columns: rows that are alike cannot be told. Add some columns.")
    notes += [f"column {quoted(name)} is left out: {why}" for name, why in left_out.items()]
    return Roles(
        labels=tuple(chosen),
        numbers=tuple(column.name for column in used if column.kind == "number"),
        categories=tuple(column.name for column in used if column.kind == "text"),
        row_names=named,
        left_out=tuple(left_out.items()),
        notes=tuple(notes),
    )


def _select(wanted: str | Sequence[str], table: str, names: list[str], option: str) -> tuple[str, ...]:
    known = set(names)
    if isinstance(wanted, str) and wanted not in known:
        found = {part: _columns_named(part, names) for part in re.split(r"\s*,\s*", wanted.strip(" ,"))}
    else:
        exact = [wanted] if isinstance(wanted, str) else wanted
        found = {name: [name] if name in known else [] for name in exact}
    for part, columns in found.items():
        if not columns:
            raise TableError(f"{table} has no column {quoted(part)} ({option}); its columns are {_listed(names)}.")
    return tuple(dict.fromkeys(chain.from_iterable(found.values())))


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
    told: str | Literal[False] | None,
    taken: Collection[str],
    first_rows: pd.DataFrame,
) -> str | None:
    if told is False:
        return None
    if told is not None:
        if told not in [column.name for column in columns]:
            raise TableError(f"{table} has no column {quoted(told)} (--id).")
        return told
    return guessed_row_names(columns, first_rows, taken)


def _guessed_labels(table: str, columns: Sequence[Column], first_rows: pd.DataFrame) -> tuple[str, ...]:
    guessed = guessed_labels(columns, first_rows)
    if not guessed:
        raise TableError(
            f"{table} does not show which columns are labels: none next to each other sum to the same in every row. "
            f"Name them with --labels; its columns are {_listed([column.name for column in columns])}."
        )
    return guessed


def refuse_unusable_labels(table: str, labels: Sequence[Column], at_least: int = 2) -> None:
    """Refuse label columns that hold text or nothing."""
    if len(labels) < at_least:
        raise TableError(f"{table} has one label column; a distribution needs two or more (--labels).")
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


def _listed(names: Sequence[str], longest: int = 12) -> str:
    shown = ", ".join(quoted(name) for name in names[:longest])
    return shown + (f" and {len(names) - longest} more" if len(names) > longest else "")
