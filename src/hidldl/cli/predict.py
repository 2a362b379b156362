"""``hidldl predict``: a saved model on another table."""

from pathlib import Path
from typing import Any

import click

from hidldl.cli.recover import command_line, table_options
from hidldl.cli.terminal import report_results, running


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
    header_row: str | None,
    level: float | None,
    report: Path | None,
    jobs: int,
    progress: str,
    quiet: bool,
    **layout: Any,
) -> None:
    """Predict the distributions of the rows of TABLE with a model that 'hidldl recover --model' saved.

    \b
    hidldl predict new.csv --model model.npz -o predicted.csv

    TABLE needs the feature columns that the model was fitted with. Labels that it has keep their proportions.
    """
    with running(progress) as show:
        from hidldl.tables.prediction import predict_table
        from hidldl.tables.writing import checked_targets

        targets = checked_targets("predicted", table, output, report, reads=(model,))
        result = predict_table(
            table,
            model,
            id=row_names,
            normalise=normalise,
            intervals=level,
            n_jobs=jobs,
            kind=kind,
            sheet=sheet,
            header_row=header_row,
        )
        summary = result.write(**targets.named, **layout, command=command_line(), progress=show)
    if not quiet:
        report_results(result.notes, summary, targets.files)
