"""A model of a table in a file: the fitted recoverer, and how the columns of its table are read."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from hidldl.base import Recoverer
from hidldl.errors import ModelFileError, TableError
from hidldl.recovery.bayeshidldl import BayesHidLDL
from hidldl.saving import load_model, save_model
from hidldl.tables.columns import Column
from hidldl.tables.encoding import FeatureEncoding
from hidldl.tables.planning import Plan
from hidldl.tables.reading import Table
from hidldl.tables.recovering import Progress, RecoveredRows, TableRecovery, complete, read_parts, recovered_rows
from hidldl.tables.roles import Roles, refuse_unusable_labels
from hidldl.tables.shares import Marks
from hidldl.tables.sources import quoted


def save_table_model(path: Path, recovery: TableRecovery) -> None:
    """Save a fitted model with what ``hidldl predict`` needs to read another table of the same kind."""
    about = {
        "roles": asdict(recovery.plan.roles),
        "marks": asdict(recovery.plan.marks),
        "normalise": recovery.plan.normalise,
        "encoding": asdict(recovery.encoding),
    }
    save_model(path, recovery.model, about)


def load_table_model(path: Path) -> tuple[Recoverer, Plan, FeatureEncoding]:
    """The recoverer, and how its table was read."""
    model, about = load_model(path)
    try:
        roles, marks, encoding = Roles(**about["roles"]), Marks(**about["marks"]), FeatureEncoding(**about["encoding"])
        plan = Plan(roles, marks, bool(about["normalise"]), ())
        fits = _fit_together(model, plan, encoding)
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise ModelFileError(f"{path.name} is no model of a table; 'hidldl recover --model' saves one.") from error
    if not fits:
        raise ModelFileError(f"{path.name} is damaged: its parts do not fit together; save it again.")
    return model, plan, encoding


def _fit_together(model: Any, plan: Plan, encoding: FeatureEncoding) -> bool:
    labels, row_names = plan.roles.labels, plan.roles.row_names
    texts = [*labels, *encoding.columns, *encoding.gappy, *("" if row_names is None else (row_names,))]
    texts += [value for _, values in encoding.categories for value in values]
    return (
        isinstance(model, Recoverer)
        and all(isinstance(text, str) for text in texts)
        and len({*labels, *encoding.columns}) == len(labels) + len(encoding.columns)
        and set(encoding.gappy) <= set(encoding.numbers)
        and encoding.medians.shape == (len(encoding.numbers),)
        and encoding.n_columns == model.n_features_in_
        and np.shape(model.predict(np.zeros((1, encoding.n_columns)))) == (1, len(labels))
        and bool(np.isfinite([0.0, *plan.marks.numbers]).all())
    )


@dataclass
class TablePrediction:
    """The rows of a table, completed by a model that was fitted to another."""

    table: Table
    plan: Plan
    encoding: FeatureEncoding
    model: Recoverer
    notes: list[str]
    level: float | None

    @classmethod
    def of(
        cls,
        path: Path,
        table: Table,
        *,
        row_names: str | None = None,
        normalise: bool = False,
        level: float | None = None,
        n_jobs: int | None = None,
    ) -> "TablePrediction":
        """Read the model, and check that the table has what it needs."""
        model, plan, encoding = load_table_model(path)
        if level is not None and not isinstance(model, BayesHidLDL):
            raise TableError("intervals need a model of the method bayes; leave out --intervals.")
        if "n_jobs" in model.get_params(deep=False):
            model.set_params(n_jobs=n_jobs)
        columns = {column.name: column for column in table.scan()}
        encoding.refuse_missing(table.name, columns)
        if row_names is not None and row_names not in columns:
            raise TableError(f"{table.name} has no column {quoted(row_names)} (--id).")
        named = row_names if row_names is not None else plan.roles.row_names
        roles = replace(plan.roles, row_names=named if named in columns else None)
        notes = [_about_labels(model, roles, columns, table.name)]
        plan = replace(plan, roles=roles, normalise=plan.normalise or normalise)
        return cls(table, plan, encoding, model, notes, level)

    def pieces(self, progress: Progress = lambda what, share: None) -> Iterator[RecoveredRows]:
        """The completed rows, in the order of the table."""
        n_done, n_rows = 0, self.table.n_rows
        for read in read_parts(self.table, self.plan, self.encoding):
            part = read if self.model._keeps_proportions else read.without_labels()
            D = complete(self.model, part)
            n_done += len(D)
            progress(f"predicting, {n_done:,} of {n_rows:,} rows", n_done / n_rows)
            yield recovered_rows(self.model, part, D, self.level)


def _about_labels(model: Recoverer, roles: Roles, columns: dict[str, Column], table: str) -> str:
    present = [columns[name] for name in roles.labels if name in columns]
    filled = [column for column in present if column.kind != "empty"]
    if not filled:
        return "the table has no labels: distributions are predicted from the features"
    refuse_unusable_labels(table, filled, at_least=1)
    if not model._keeps_proportions:
        return "labels in the table are not looked at: this method cannot use those of new rows"
    return f"labels in {len(filled)} of {len(roles.labels)} columns are used; what is observed keeps its proportions"
