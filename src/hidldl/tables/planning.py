"""How a table is to be read, before anything is computed: as told, or guessed and said."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from hidldl.tables.reading import Table
from hidldl.tables.roles import ColumnNames, Roles, assign_roles
from hidldl.tables.shares import Marks, Shares, are_amounts

FIRST_ROWS = 1000
"""Rows that guesses look at."""


@dataclass(frozen=True)
class Options:
    """What a user may say about a table; everything else is guessed, and said."""

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
class Plan:
    """How the columns of a table are read: roles, marks of hidden labels, and what was guessed."""

    roles: Roles
    marks: Marks
    normalise: bool
    notes: tuple[str, ...]

    @classmethod
    def of(cls, table: Table, options: Options) -> "Plan":
        """From what the table holds and what the user says."""
        columns = table.scan()
        first = next(table.chunks(FIRST_ROWS))
        roles = assign_roles(
            table.name,
            columns,
            first,
            labels=options.labels,
            features=options.features,
            row_names=options.row_names,
        )
        labels = [column for column in columns if column.name in roles.labels]
        marks, said = Marks.parse(options.hidden, table.name, labels)
        amounts, what = (
            (True, "rows are divided by their sums") if options.normalise else are_amounts(labels, first, marks)
        )
        return cls(roles, marks, amounts, (*roles.notes, said, *([what] if what else [])))

    def shares(self, table: Table) -> Shares:
        """The reader of the label columns."""
        return Shares(table.name, self.roles.labels, self.marks, self.normalise)
