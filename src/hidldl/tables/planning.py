"""How a table is to be read, before anything is computed: as the user says, or by a guess that is shown.

Where nobody says what columns are for, it is guessed by what they sum to, by their gaps, and by their names. Every
block of columns that can be the labels is a reading with points; labels are guessed only where one is well ahead of the
others.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import pandas as pd

from hidldl.errors import Note, Remedy, TableError
from hidldl.methods import find_method
from hidldl.tables.column_names import ColumnNames, select_columns, shortest_choice
from hidldl.tables.columns import MOST_DISTINCT, Column, why_not_a_number
from hidldl.tables.label_guesses import Guess, Reading
from hidldl.tables.labels import Marks, understand_labels
from hidldl.tables.reading import Table
from hidldl.tables.role_guesses import MOST_CATEGORIES, guess_labels, guess_row_names, no_features_beside
from hidldl.tables.sources import quoted, quoted_list
from hidldl.tables.words import TOTAL_ROWS

LOW_CODES, HIGH_CODES = (-1, -9, -99, -999), (999, 9999)
"""Numbers that often stand for a missing one."""


class AmbiguousLabelsError(TableError):
    """A table whose labels can be read in several ways.

    Attributes
    ----------
    readings : tuple of Reading
        The columns that can be the labels, the likeliest first.
    choices : tuple of str or list of str
        For each reading, the value for ``labels`` that chooses it.
    """

    def __init__(self, problem: str, readings: tuple[Reading, ...], choices: tuple[str | list[str], ...]) -> None:
        self.readings, self.choices = readings, choices
        super().__init__(problem, Remedy("labels"))


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
    skip_bad_rows: bool = False


@dataclass(frozen=True)
class Roles:
    """What each column is for.

    ``left_out`` has the reason for each column that is for nothing; ``notes`` say what was guessed. ``guessed_as`` says
    what the labels were taken for, with typical sums of rows and how sure that is; it is empty where a user named them.
    """

    labels: tuple[str, ...]
    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    row_names: str | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    guessed_as: str = ""


@dataclass(frozen=True)
class Plan:
    """How the columns of a table are read: roles, marks of hidden labels, and notes on what was guessed."""

    roles: Roles
    marks: Marks
    total: float | None
    """What the labels of a row sum to: 1, 100, or None if they are amounts with a sum of their own."""
    notes: tuple[str, ...]
    whole_numbers: frozenset[str]
    """The columns of whole numbers."""

    @classmethod
    def of(cls, table: Table, options: Options) -> "Plan":
        """From what the table holds and what the user says."""
        user_marks = Marks.named_in(options.hidden)
        contents = table.contents(missing=user_marks.words)
        columns, first = contents.columns, contents.first_rows
        roles = assign_roles(
            table.name,
            columns,
            first,
            labels=options.labels,
            features=options.features,
            row_names=options.row_names,
            marks=user_marks.numbers,
        )
        labels = [column for column in columns if column.name in roles.labels]
        can_tell = find_method(options.method).tells_zeros
        marks, total, notes = understand_labels(options.hidden, options.normalise, table.name, labels, first, can_tell)
        notes = [*contents.notes, *roles.notes, *notes]
        return cls(roles, marks, total, tuple(notes), contents.whole_numbers)


def assign_roles(
    table: str,
    columns: Sequence[Column],
    first_rows: pd.DataFrame,
    *,
    labels: ColumnNames = None,
    features: ColumnNames = None,
    row_names: str | Literal[False] | None = None,
    marks: Collection[float] = (),
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
        The columns; guessed by default. An empty list of features says that there are none.
    row_names : str or False, optional
        The column that names the rows, or False if none does; guessed by default.
    marks : collection of float, optional
        Numbers that mark hidden labels, such as -1, where the user says so.

    Raises
    ------
    AmbiguousLabelsError
        Where several blocks of columns can be the labels and nothing decides between them.
    TableError
        Where columns are not there, cannot be what they are said to be, or nothing shows which are labels.
    """
    known = {column.name: column for column in columns}
    label_names = select_columns(labels, table, list(known), "labels") if labels else ()
    wanted = select_columns(features, table, list(known), "features") if features else ()
    namer = _row_names(table, columns, row_names, {*label_names, *wanted}, first_rows)
    total_row = _name_of_total_row(columns, first_rows)
    notes, guessed_as = [], ""
    if total_row is not None:
        notes.append(f"row {first_rows.index[-1]} is called {quoted(total_row)}: remove it if it sums up the others")
        first_rows = first_rows.iloc[:-1]
    if not label_names:
        free = [column for column in columns if column.name != namer]
        guess = guess_labels([column for column in free if column.name not in wanted], first_rows, marks)
        if wanted and guess.best is None:
            guess = guess_labels(free, first_rows, marks)
        if guess.best is None:
            raise _no_labels(table, guess, columns, first_rows)
        label_names, guessed_as = guess.best.labels, guess.described
        notes += _notes_on_guess(label_names, guessed_as)
    refuse_unusable_labels(table, [known[name] for name in label_names])
    if namer in label_names:
        raise TableError(f"{table}: column {quoted(namer)} cannot be both a label and the name of rows.")
    if namer is not None and row_names is None:
        notes.append(f"rows are named by {'the first column' if namer == '' else f'column {quoted(namer)}'}")
    free = [column for column in columns if column.name not in {namer, *label_names}]
    has_no_features = features is not None and len(features) == 0 and not isinstance(features, str)
    used, left_out = _assign_features(table, known, [] if has_no_features else free, wanted)
    if not wanted:
        left_out |= no_features_beside(label_names, used, first_rows)
        used = [column for column in used if column.name not in left_out]
    if not used:
        notes.append("no features: rows are recovered from their labels alone")
    notes += [f"column {quoted(name)} is left out: {reason}" for name, reason in left_out.items()]
    return Roles(
        labels=label_names,
        numbers=tuple(column.name for column in used if column.kind == "number"),
        categories=tuple(column.name for column in used if column.kind == "text"),
        row_names=namer,
        left_out=tuple(left_out.items()),
        notes=tuple(notes),
        guessed_as=guessed_as,
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
    return [column for column in candidates if column.name not in left_out], left_out


def _name_of_total_row(columns: Sequence[Column], first_rows: pd.DataFrame) -> str | None:
    """What the last of the rows is called, if that says that it sums up the others."""
    texts = [column.name for column in columns if column.kind == "text"]
    if len(first_rows) < 3 or not texts:
        return None
    last = [str(cell) for cell in first_rows[texts].iloc[-1]]
    return next((cell for cell in last if cell.strip().lower() in TOTAL_ROWS), None)


def _row_names(
    table: str,
    columns: Sequence[Column],
    choice: str | Literal[False] | None,
    taken: Collection[str],
    first_rows: pd.DataFrame,
) -> str | None:
    if choice is False:
        return None
    if choice is None:
        return guess_row_names(columns, first_rows, taken)
    choice = str(choice)
    if choice not in [column.name for column in columns]:
        raise TableError(f"{table} has no column {quoted(choice)}", Remedy("id", "in another way"))
    return choice


def _notes_on_guess(labels: Sequence[str], guessed_as: str) -> list[str]:
    return [
        Note(f"labels, guessed: {quoted_list(labels)}", Remedy("labels", "if that is wrong")),
        f"labels were guessed as {guessed_as}",
    ]


def _no_labels(table: str, guess: Guess, columns: Sequence[Column], first_rows: pd.DataFrame) -> TableError:
    """Why labels are not guessed: several readings, one for which too little speaks, or none."""
    names = [column.name for column in columns]
    if guess.readings:
        rivals = guess.rivals
        choices = tuple(shortest_choice(reading.labels, table, names) for reading in rivals)
        ways = [
            f"{quoted(choice) if isinstance(choice, str) else quoted_list(choice)} ({len(reading.labels)} columns of "
            f"{reading.describe()})"
            for choice, reading in zip(choices, rivals, strict=True)
        ]
        problem = (
            f"{table} does not show which columns are labels: they can be {', or '.join(ways)}"
            if len(ways) > 1
            else f"{table} does not show which columns are labels: only {ways[0]} can be, which is not certain"
        )
        return AmbiguousLabelsError(problem, rivals, choices)
    return TableError(
        f"{table} does not show which columns are labels: none sum to the same in every row, and none are counts"
        f"{_question_on_marks(columns, first_rows) or _doubt_on_numbers(columns)}; "
        f"its columns are {quoted_list(names)}",
        Remedy("labels"),
    )


def _question_on_marks(columns: Sequence[Column], first_rows: pd.DataFrame) -> str:
    """A question about a number that looks like a mark of hidden labels, if there is one; it is never taken as one."""
    for column in columns:
        code = column.minimum if column.minimum in LOW_CODES else column.maximum
        if code not in {*LOW_CODES, *HIGH_CODES}:
            continue
        others = first_rows[column.name][first_rows[column.name] != code]
        if others.min() >= 0 and others.max() <= 100:
            return f" (does {code:g} in column {quoted(column.name)} mark hidden labels? Then say so)"
    return ""


def _doubt_on_numbers(columns: Sequence[Column]) -> str:
    """The first cell that keeps a column of numbers from being one, if there is one."""
    odd = next((column for column in columns if column.odd_row is not None), None)
    return f" (column {quoted(odd.name)}{_odd_cell(odd)})" if odd else ""


def _odd_cell(column: Column) -> str:
    value = str(column.odd_value)
    return f" holds {quoted(value)} in row {column.odd_row}, {why_not_a_number(value)}"


def refuse_unusable_labels(table: str, labels: Sequence[Column], at_least: int = 2) -> None:
    """Refuse label columns that hold text or nothing."""
    if len(labels) < at_least:
        raise TableError(f"{table} has one label column; a distribution needs two or more", Remedy("labels"))
    for column in labels:
        if column.kind == "text":
            where = f"{_odd_cell(column)}." if column.odd_row else " holds text."
            raise TableError(f"label column {quoted(column.name)} of {table}{where}")
        if column.kind == "empty":
            raise TableError(f"label column {quoted(column.name)} of {table} is empty; drop it, or name others.")


def _why_no_feature(column: Column) -> str | None:
    if column.kind == "empty":
        return "it is empty"
    if column.n_distinct < 2 and not (column.n_missing and column.n_distinct):
        return "it is the same in every row"
    if column.minimum == column.maximum and not column.n_missing:
        return "its numbers are too long to be told apart as a feature"
    if column.kind == "text" and column.odd_row is not None:
        return f"it holds {quoted(column.odd_value)} in row {column.odd_row} among numbers"
    if column.kind == "text" and column.n_distinct > MOST_CATEGORIES:
        count = "many" if column.n_distinct >= MOST_DISTINCT else str(column.n_distinct)
        return f"it is text with {count} different values, not a category"
    return None
