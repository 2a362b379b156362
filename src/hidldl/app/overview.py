"""What a table holds and how it would be read, for the page."""

from pathlib import Path
from typing import Any

import pandas as pd

from hidldl.app.words import WORDS
from hidldl.errors import TableError, notes_in
from hidldl.tables.columns import MOST_DISTINCT, Column
from hidldl.tables.planning import Options, Plan
from hidldl.tables.prediction import predict_table
from hidldl.tables.reading import open_table
from hidldl.tables.workbook import SeveralSheetsError

SHOWN_ROWS = 5
SHOWN_COLUMNS = 60
LONGEST_CELL = 60


def overview(path: Path, name: str, sheet: str | None = None) -> dict[str, Any]:
    """Rows, columns with the roles guessed for them, the first rows; ``problem`` if roles cannot be guessed.

    Of a workbook in which a sheet has to be chosen, only ``sheets``.
    """
    try:
        table = open_table(path, name=name, sheet=sheet)
    except SeveralSheetsError as error:
        return {"sheets": error.titles}
    with table:
        columns = table.scan()
        first = next(table.chunks(SHOWN_ROWS, as_text=table.columns[:SHOWN_COLUMNS]))
        plan, problem = None, None
        try:
            plan = Plan.of(table, Options())
        except TableError as error:
            problem = error.worded(WORDS)
        return {
            "n_rows": table.n_rows,
            "columns": [
                {"name": column.name, "holds": _holds(column, table.n_rows), "role": role, "why": why}
                for column, (role, why) in zip(columns, _roles(columns, plan), strict=True)
            ],
            "first_rows": _cells(first.iloc[:, :SHOWN_COLUMNS]),
            "guessed_as": "" if plan is None else plan.roles.guessed_as,
            "hidden": _hidden(columns, plan),
            "zeros_unknown": plan is not None and plan.marks.unknown,
            "notes": [] if plan is None else notes_in(WORDS, plan.notes),
            "problem": problem,
        }


def model_overview(path: Path, name: str, sheet: str | None, model: Path) -> dict[str, Any]:
    """What a model would predict in a table; an error if they do not fit together."""
    result = predict_table(path, model, name=name, sheet=sheet)
    return {
        "method": result.model.method_name,
        "labels": list(result.plan.roles.labels),
        "features": list(result.reader.encoding.columns),
        "has_intervals": result.model.has_intervals,
        "notes": notes_in(WORDS, result.notes),
    }


def _roles(columns: list[Column], plan: Plan | None) -> list[tuple[str, str]]:
    """Each column's role, and why it is left out if it is."""
    if plan is None:
        return [("feature" if column.kind == "number" else "out", "") for column in columns]
    known = {name: ("out", why) for name, why in plan.roles.left_out} | dict.fromkeys(plan.roles.labels, ("label", ""))
    return [
        ("id", "") if column.name == plan.roles.row_names else known.get(column.name, ("feature", ""))
        for column in columns
    ]


def _holds(column: Column, n_rows: int) -> str:
    """A column in a few words."""
    if column.kind == "empty":
        return "nothing"
    if column.kind == "number":
        words = f"{'whole numbers' if column.whole else 'numbers'}, {column.minimum:.4g} to {column.maximum:.4g}"
    else:
        count = "many" if column.n_distinct >= MOST_DISTINCT else f"{column.n_distinct:,}"
        words = f"text, {count} different" if column.n_distinct > 1 else "text, always the same"
    return words + (f"; {column.n_missing / n_rows:.0%} empty" if column.n_missing else "")


def _hidden(columns: list[Column], plan: Plan | None) -> str:
    """What the guess takes for hidden labels."""
    if plan is None:
        return ""
    labels = set(plan.roles.labels)
    has_gaps = any(column.n_missing for column in columns if column.name in labels)
    if plan.marks.unknown:
        return "nobody knows which zeros are hidden: each is weighed"
    return "zeros are hidden" if plan.marks.zeros else "empty cells are hidden" if has_gaps else "no label is hidden"


def _cells(rows: pd.DataFrame) -> list[list[str | None]]:
    return [
        [None if not isinstance(cell, str) else cell[:LONGEST_CELL] for cell in row] for row in rows.to_numpy().tolist()
    ]
