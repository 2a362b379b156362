"""A model of a table in a file: the fitted recoverer, and how the columns of its table are read."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from hidldl.base import Recoverer
from hidldl.recovery.bayeshidldl import BayesHidLDL
from hidldl.saving import ModelFileError, load_model, save_model
from hidldl.tables.columns import Column
from hidldl.tables.encoding import FeatureEncoding
from hidldl.tables.planning import Plan
from hidldl.tables.reading import Table, TableError
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
        plan = Plan(Roles(**about["roles"]), Marks(**about["marks"]), bool(about["normalise"]), ())
        encoding = FeatureEncoding(**about["encoding"])
        fits = encoding.n_columns == model.n_features_in_ and len(encoding.medians) == len(encoding.numbers)
    except (TypeError, KeyError, AttributeError) as error:
        raise ModelFileError(f"{path.name} is no model of a table; 'hidldl recover --model' saves one.") from error
    if not (fits and isinstance(model, Recoverer)):
        raise ModelFileError(f"{path.name} is damaged: its parts do not fit together; save it again.")
    return model, plan, encoding


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
        return cls(table, replace(plan, roles=roles), encoding, model, notes, level)

    def pieces(self, progress: Progress = lambda what, share: None) -> Iterator[RecoveredRows]:
        """The completed rows, in the order of the table."""
        n_done, n_rows = 0, self.table.n_rows
        for part in read_parts(self.table, self.plan, self.encoding):
            D = complete(self.model, part)
            if D.shape != part.D_obs.shape:
                raise ModelFileError("the model is damaged: its labels and its numbers do not fit together.")
            n_done += len(D)
            progress(f"predicting, {n_done:,} of {n_rows:,} rows", n_done / n_rows)
            yield recovered_rows(self.model, part, D, self.level)


def _about_labels(model: Recoverer, roles: Roles, columns: dict[str, Column], table: str) -> str:
    present = [columns[name] for name in roles.labels if name in columns]
    filled = [column for column in present if column.kind != "empty"]
    if not filled:
        return "the table has no labels: distributions are predicted from the features"
    refuse_unusable_labels(table, filled, at_least=1)
    if not isinstance(model, BayesHidLDL):
        return "labels in the table are not looked at: only a model of the method bayes can use them"
    return f"labels in {len(filled)} columns are used; what is observed keeps its proportions"
