"""``hidldl predict``: a saved model on another table."""

from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

import click

from hidldl.cli.errors import one_line_errors, quiet_warnings
from hidldl.cli.recover import table_options
from hidldl.cli.results import Targets, page_of, say, write_results


@click.command()
@click.argument("table", type=click.Path(allow_dash=True, path_type=Path))
@click.option("--model", required=True, type=click.Path(dir_okay=False, path_type=Path),
              help="The model that 'hidldl recover --model' saved.")  # fmt: skip
@click.option("--id", "row_names", help="The column that names the rows; that of the model's table by default.")
@click.option("--normalise", is_flag=True, help="Divide each row by its sum: its cells are counts or amounts.")
@table_options
def predict(
    table: Path,
    model: Path,
    row_names: str | None,
    normalise: bool,
    output: Path | None,
    kind: str | None,
    sheet: str | None,
    level: float | None,
    report: Path | None,
    jobs: int,
    progress: str,
    quiet: bool,
) -> None:
    """Predict the distributions of the rows of TABLE with a model that 'hidldl recover --model' saved.

    \b
    hidldl predict new.csv --model model.npz -o predicted.csv

    TABLE needs the feature columns that the model was fitted with. Labels that it has are used where the method can.
    """
    started = perf_counter()
    targets = Targets(output, report)
    with one_line_errors(), ExitStack() as stack:
        from hidldl.cli.progress import shown_progress
        from hidldl.tables.model_files import TablePrediction
        from hidldl.tables.reading import open_table

        source = stack.enter_context(open_table(table, kind=kind, sheet=sheet))
        targets.check(table, model)
        stack.enter_context(quiet_warnings())
        told = stack.enter_context(shown_progress(progress))
        prediction = TablePrediction.of(
            model, source, row_names=row_names, normalise=normalise, level=level, n_jobs=jobs
        )
        done = write_results(
            targets,
            prediction.pieces(told),
            prediction.plan.roles,
            page=lambda summary: page_of(prediction, summary, level, perf_counter() - started),
        )
    if not quiet:
        say(prediction.notes, done, targets)
