"""``hidldl predict``: a saved model on another table."""

from contextlib import ExitStack
from pathlib import Path
from time import perf_counter

import click

from hidldl.cli.recover import (
    facts_of,
    one_line_errors,
    quiet_warnings,
    refuse_targets,
    say,
    table_options,
    write_all,
)


@click.command()
@click.argument("table", type=click.Path(allow_dash=True, path_type=Path))
@click.option("--model", required=True, type=click.Path(dir_okay=False, path_type=Path),
              help="The model that 'hidldl recover --model' saved.")  # fmt: skip
@click.option("--id", "row_names", help="The column that names the rows; that of the model's table by default.")
@table_options
def predict(
    table: Path,
    model: Path,
    row_names: str | None,
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
    from hidldl.cli.progress import shown_progress
    from hidldl.tables.model_files import TablePrediction
    from hidldl.tables.reading import open_table

    started = perf_counter()
    with one_line_errors(), ExitStack() as stack:
        source = stack.enter_context(open_table(table, kind=kind, sheet=sheet))
        refuse_targets(output, report, None)
        stack.enter_context(quiet_warnings())
        told = stack.enter_context(shown_progress(progress))
        prediction = TablePrediction.of(model, source, row_names=row_names, level=level, n_jobs=jobs)
        facts = facts_of(prediction, level)
        write_all(prediction.pieces(told), prediction.plan.roles, output, report, facts, started)
        stack.close()
        if not quiet:
            say(prediction.notes, output, report, None)
