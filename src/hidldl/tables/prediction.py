"""A saved model on another table: ``predict_table``."""

from dataclasses import replace
from os import PathLike
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from hidldl.base import Recoverer
from hidldl.errors import ModelFileError, Remedy, TableError
from hidldl.saving import load_model
from hidldl.tables.columns import Column
from hidldl.tables.labels import PERCENT, SHARES, Marks, Shares, are_percentages
from hidldl.tables.numbers import FeatureEncoding, NumberReader
from hidldl.tables.planning import Plan, Roles, refuse_unusable_labels
from hidldl.tables.reading import Table
from hidldl.tables.recovery import as_table
from hidldl.tables.results import RecoveredTable
from hidldl.tables.sources import quoted


def predict_table(
    source: Any,
    model: str | PathLike[str],
    *,
    id: str | None = None,
    normalise: bool = False,
    intervals: float | None = None,
    n_jobs: int | None = None,
    kind: str | None = None,
    sheet: str | None = None,
    header_row: int | str | None = None,
    name: str | None = None,
) -> RecoveredTable:
    """Complete the rows of a table with a model that ``RecoveredTable.save_model`` or ``hidldl recover --model`` saved.

    The table needs the feature columns of the model's table. Labels that it has keep their proportions.

    Parameters
    ----------
    source : path, DataFrame or open file
        The table, as for ``recover_table``.
    model : path
        The model's file.
    id : str, optional
        The column that names the rows; that of the model's table by default.
    normalise, intervals, n_jobs, kind, sheet, header_row, name
        As for ``recover_table``.
    """
    table = as_table(source, kind=kind, sheet=sheet, header_row=header_row, name=name)
    return predict_rows(Path(model), table, row_names=id, normalise=normalise, level=intervals, n_jobs=n_jobs)


def predict_rows(
    path: Path,
    table: Table,
    *,
    row_names: str | None = None,
    normalise: bool = False,
    level: float | None = None,
    n_jobs: int | None = None,
) -> RecoveredTable:
    """Read a model, and check that the table has what it needs."""
    started = perf_counter()
    model, plan, encoding = load_table_model(path)
    if level is not None and not model.has_intervals:
        raise TableError(f"{model.method_name} has no intervals", Remedy("no intervals"))
    if "n_jobs" in model.get_params(deep=False):
        model.set_params(n_jobs=n_jobs)
    contents = table.contents(missing=plan.marks.words)
    columns = {column.name: column for column in contents.columns}
    encoding.refuse_missing(table.name, columns)
    if row_names is not None and row_names not in columns:
        raise TableError(f"{table.name} has no column {quoted(row_names)}", Remedy("id", "in another way"))
    namer = row_names if row_names is not None else plan.roles.row_names
    roles = replace(plan.roles, row_names=namer if namer in columns else None)
    notes = [*contents.notes, *encoding.notes_on_new(columns, contents.first_rows)]
    notes.append(_note_on_labels(roles, columns, table.name))
    cells = contents.first_rows.reindex(columns=list(roles.labels)).to_numpy(float)
    whole = PERCENT if are_percentages(cells, plan.marks) else SHARES
    total = None if normalise or plan.total is None else whole
    plan = replace(plan, roles=roles, total=total, whole_numbers=contents.whole_numbers)
    shares = Shares(table.name, roles.labels, plan.marks, total, can_skip=False)
    counts = total is None and plan.whole_numbers.issuperset(columns.keys() & set(roles.labels))
    reader = NumberReader(shares, encoding, roles.row_names, counts)
    return RecoveredTable(table, plan, reader, model, notes, level, started=started)


def load_table_model(path: Path) -> tuple[Recoverer, Plan, FeatureEncoding]:
    """The recoverer, and how its table was read."""
    model, about = load_model(path)
    try:
        roles, marks, encoding = Roles(**about["roles"]), Marks(**about["marks"]), FeatureEncoding(**about["encoding"])
        plan = Plan(roles, marks, None if about["normalise"] else SHARES, (), frozenset())
        fits = _fit_together(model, plan, encoding)
    except Exception as error:  # what a hostile file holds in the place of words can raise anything
        raise ModelFileError(path.name, "is not the model of a table", Remedy("save table")) from error
    if not fits:
        raise ModelFileError(path.name, "is damaged: its parts do not fit together", Remedy("save"))
    return model, plan, encoding


def _fit_together(model: Any, plan: Plan, encoding: FeatureEncoding) -> bool:
    roles, marks, labels = plan.roles, plan.marks, plan.roles.labels
    names = (labels, roles.numbers, roles.categories, marks.words, encoding.numbers, encoding.gappy)
    return (
        hasattr(model, "keeps_proportions")
        and all(_are_texts(some) for some in (*names, *(values for _, values in encoding.categories)))
        and _are_texts(tuple(name for name, _ in encoding.categories))
        and isinstance(roles.row_names, str | None)
        and all(isinstance(flag, bool) for flag in (marks.zeros, marks.unknown))
        and len({*labels, *encoding.columns}) == len(labels) + len(encoding.columns)
        and set(encoding.gappy) <= set(encoding.numbers)
        and encoding.medians.shape == (len(encoding.numbers),)
        and encoding.medians.dtype.kind == "f"
        and encoding.n_columns == model.n_features_in_
        and np.shape(model.predict(np.zeros((1, encoding.n_columns)))) == (1, len(labels))
        and bool(np.isfinite([0.0, *marks.numbers]).all())
    )


def _are_texts(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(text, str) for text in value)


def _note_on_labels(roles: Roles, columns: dict[str, Column], table: str) -> str:
    present = [columns[name] for name in roles.labels if name in columns]
    filled = [column for column in present if column.kind != "empty"]
    if not filled:
        return "the table has no labels: distributions are predicted from the features"
    refuse_unusable_labels(table, filled, at_least=1)
    return f"labels in {len(filled)} of {len(roles.labels)} columns are used; what is observed keeps its proportions"
