"""``hidldl recover``: a table with hidden labels, back complete."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hidldl.cli.terminal import echo_wrapped, one_line_errors, progress_on, report_results
from hidldl.methods import method_names

if TYPE_CHECKING:
    from hidldl.tables.results import Keep, Unit

MOST_LISTED = 40
PROGRESS = ["auto", "bar", "json", "none"]


def _parameters(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
    """name=value pairs as numbers, truth values or words."""
    parameters: dict[str, Any] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"{pair!r} is not name=value, such as alpha=16.")
        parameters[name.strip()] = _value(value.strip())
    return parameters


def _columns(context: click.Context, option: click.Parameter, given: str | None) -> str | list[str] | None:
    """The text as it is, or the exact names in a list as JSON has them."""
    if given is None or not given.lstrip().startswith('["'):
        return given
    try:
        names = json.loads(given)
    except ValueError:
        names = []
    if not names or not all(isinstance(name, str) for name in names):
        raise click.BadParameter(f'{given[:40]!r} is not a list of names, such as ["joy", "fear, or so"].')
    return list(names)


def _value(text: str) -> Any:
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def command_line() -> str:
    """The command as it was typed, for the report."""
    return shlex.join(["hidldl", *sys.argv[1:]])


def table_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that every command on a table has."""
    options = [
        click.option("--output", "-o", type=click.Path(path_type=Path),
                     help="The result; beside the table by default, - is standard output."),
        click.option("--format", "kind", help="What the table is, if its name does not say: csv, tsv, parquet, xlsx."),
        click.option("--sheet", help="The sheet of an Excel workbook."),
        click.option("--intervals", "level", type=click.FloatRange(0, 1, min_open=True, max_open=True), metavar="LEVEL",
                     help="Also bounds that hold this part of the true shares, such as 0.9."),
        click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="A page to look at (.html)."),
        click.option("--keep", type=click.Choice(["all", "id", "none"]), default="all", show_default=True,
                     help="Which columns beside the labels are kept in the result."),
        click.option("--as", "unit", type=click.Choice(["shares", "percent"]),
                     help="The unit of the result; that of the table by default."),
        click.option("--full-precision", is_flag=True, help="Write all digits, not six."),
        click.option("--flags", is_flag=True, help="Also columns that say which cells were hidden."),
        click.option("--jobs", type=int, default=-1, show_default=True, help="Threads; -1 is every core."),
        click.option("--progress", type=click.Choice(PROGRESS), default="auto", show_default=True),
        click.option("--quiet", "-q", is_flag=True, help="Do not print what was guessed and done."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("table", type=click.Path(allow_dash=True, path_type=Path))
@click.option("--labels", callback=_columns, help="The label columns: names, patterns (label_*) or ranges (joy..anger, "
              "5..11), by commas; or exact names as a JSON list.")  # fmt: skip
@click.option("--features", callback=_columns, help="The feature columns, in the same way; all others by default.")
@click.option("--id", "row_names", help="The column that names the rows; it is kept.")
@click.option("--no-id", is_flag=True, help="No column names the rows.")
@click.option("--name", help="What to call the table in messages and in the report.")
@click.option("--hidden", default="auto", show_default=True,
              help="What marks a hidden label: empty, zero, none, a number, or several by commas.")  # fmt: skip
@click.option("--normalise", is_flag=True, help="Divide each row by its sum: its cells are counts or amounts.")
@click.option("--method", type=click.Choice(method_names()), default="bayes", show_default=True)
@click.option("--set", "parameters", multiple=True, callback=_parameters, metavar="NAME=VALUE",
              help="A parameter of the method; chosen without ground truth where not given.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed, same result.")
@click.option("--model", type=click.Path(dir_okay=False, path_type=Path),
              help="Save the fitted model (.npz or .json) for 'hidldl predict'.")  # fmt: skip
@click.option("--check", is_flag=True, help="Only print how the table is understood; write nothing.")
@table_options
def recover(
    table: Path,
    labels: str | list[str] | None,
    features: str | list[str] | None,
    row_names: str | None,
    no_id: bool,
    name: str | None,
    hidden: str,
    normalise: bool,
    method: str,
    parameters: dict[str, Any],
    seed: int,
    model: Path | None,
    check: bool,
    output: Path | None,
    kind: str | None,
    sheet: str | None,
    level: float | None,
    report: Path | None,
    keep: "Keep",
    unit: "Unit | None",
    full_precision: bool,
    flags: bool,
    jobs: int,
    progress: str,
    quiet: bool,
) -> None:
    """Recover the hidden labels of TABLE: CSV, TSV, Parquet or Excel; - is standard input.

    \b
    hidldl recover faces.csv -o recovered.csv --report report.html

    Columns are guessed where you do not name them, and the guess is printed. The output is the table with its labels
    complete, and how much of each row was hidden; what was observed keeps its proportions.
    """
    with one_line_errors(), progress_on(progress) as show:
        reading: dict[str, Any] = {"kind": kind, "sheet": sheet, "name": name}
        asked: dict[str, Any] = {
            "labels": labels,
            "features": features,
            "id": False if no_id else row_names,
            "hidden": hidden,
            "normalise": normalise,
            "method": method,
            "parameters": parameters,
            "intervals": level,
            "random_state": seed,
            "n_jobs": jobs,
        }
        if check:
            _print_plan(table, asked, reading)
            return
        from hidldl.tables.recovery import recover_table
        from hidldl.tables.writing import checked_targets

        targets = checked_targets("recovered", table, output, report, model)
        result = recover_table(table, **asked, **reading, progress=show)
        summary = result.write(
            targets.output,
            report=targets.report,
            model=targets.model,
            keep=keep,
            unit=unit,
            full_precision=full_precision,
            flags=flags,
            command=command_line(),
            progress=show,
        )
    if not quiet:
        report_results(result.notes, summary, targets)


def _print_plan(path: Path, asked: dict[str, Any], reading: dict[str, Any]) -> None:
    from hidldl.tables.planning import Options, Plan
    from hidldl.tables.reading import open_table

    options = Options(asked["labels"], asked["features"], asked["id"], asked["hidden"], asked["normalise"])
    with open_table(path, **reading) as table:
        plan = Plan.of(table, options)
        click.echo(f"{table.name}: {table.n_rows:,} rows")
    roles = plan.roles
    for title, names in (("labels", roles.labels), ("numbers", roles.numbers), ("categories", roles.categories)):
        more = f", and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
        echo_wrapped(f"{title} ({len(names)}): {', '.join(names[:MOST_LISTED]) or 'none'}{more}")
    for note in plan.notes:
        echo_wrapped(f"- {note}")
