"""``hidldl recover``: a table with hidden labels, back complete."""

import json
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hidldl.cli.terminal import WORDS, WrongInput, echo_wrapped, report_results, running
from hidldl.errors import notes_in
from hidldl.methods import method_names
from hidldl.replacing import replacing

if TYPE_CHECKING:
    from hidldl.tables.checking import TableCheck

MOST_LISTED = 40
PROGRESS = ["auto", "bar", "json", "none"]


def _pair(text: str) -> tuple[str, Any]:
    """name=value with a number, a truth value or a word."""
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise click.BadParameter(f"{text!r} is not name=value, such as alpha=16.")
    return name.strip(), _value(value.strip())


def _columns(text: str) -> str | list[str]:
    """The text as it is, or the exact names in a list as JSON has them."""
    if not text.lstrip().startswith('["'):
        return text
    try:
        names = json.loads(text)
    except ValueError:
        names = []
    if not names or not all(isinstance(name, str) for name in names):
        raise click.BadParameter(f'{text[:40]!r} is not a list of names, such as ["joy", "fear, or so"].')
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


sheet_option = click.option("--sheet", help="The sheet of an Excel workbook.")
header_row_option = click.option(
    "--header-row", help="The row of the column names, such as 3, or 2-3 for names in two rows."
)


def table_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options that every command on a table has."""
    options = [
        click.option("--output", "-o", type=click.Path(path_type=Path),
                     help="The result; beside the table by default, - is standard output."),
        click.option("--format", "kind", help="What the table is, if its name does not say: csv, tsv, parquet, xlsx."),
        sheet_option,
        header_row_option,
        click.option("--intervals", "level", type=click.FloatRange(0, 1, min_open=True, max_open=True), metavar="LEVEL",
                     help="Also bounds that hold this part of the true shares, such as 0.9."),
        click.option("--report", type=click.Path(dir_okay=False, path_type=Path), help="A page to look at (.html)."),
        click.option("--keep", type=click.Choice(["all", "id", "none"]), default="all", show_default=True,
                     help="Which columns beside the labels are kept in the result."),
        click.option("--as", "unit", type=click.Choice(["shares", "percent"]),
                     help="The unit of the result; that of the table by default."),
        click.option("--full-precision", is_flag=True, help="Write all digits, not six."),
        click.option("--flags", is_flag=True, help="Also columns that say which cells were hidden, or how likely."),
        click.option("--safe-csv", is_flag=True,
                     help="In CSV, write ' before texts that a spreadsheet would take as formulas, such as =1+1."),
        click.option("--jobs", type=int, default=-1, show_default=True, help="Threads; -1 is every core."),
        click.option("--progress", type=click.Choice(PROGRESS), default="auto", show_default=True),
        click.option("--quiet", "-q", is_flag=True, help="Do not print what was guessed and done."),
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


@click.command()
@click.argument("table", type=click.Path(allow_dash=True, path_type=Path))
@click.option("--labels", type=_columns, metavar="TEXT",
              help="The label columns: names, patterns (label_*) or ranges (joy..anger, 5..11), by commas; or exact "
              "names as a JSON list.")  # fmt: skip
@click.option("--features", type=_columns, metavar="TEXT",
              help="The feature columns, in the same way; all others by default.")  # fmt: skip
@click.option("--id", "row_names", help="The column that names the rows; it is kept.")
@click.option("--no-id", is_flag=True, help="No column names the rows.")
@click.option("--name", help="What to call the table in messages and in the report.")
@click.option("--hidden", default="auto", show_default=True,
              help="What marks a hidden label: empty, zero, none, a number, a word, or several by commas; unknown if "
              "zeros may be hidden or true, the default for tables with zeros and no empty cells.")  # fmt: skip
@click.option("--normalise", is_flag=True, help="Divide each row by its sum: its cells are counts or amounts.")
@click.option("--method", type=click.Choice(method_names()), default="bayes", show_default=True)
@click.option("--set", "parameters", multiple=True, type=_pair, metavar="NAME=VALUE",
              help="A parameter of the method; chosen without ground truth where not given.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Same seed, same result.")
@click.option("--model", type=click.Path(dir_okay=False, path_type=Path),
              help="Save the fitted model (.npz or .json) for 'hidldl predict'.")  # fmt: skip
@click.option("--reannotate", type=click.Path(dir_okay=False, path_type=Path),
              help="A list of the rows to annotate again (.csv), the most telling first.")  # fmt: skip
@click.option("--rows", "most_rows", type=click.IntRange(1), default=100, show_default=True, help="Rows in that list.")
@click.option("--group", help="A column by which list and report are broken down, such as the annotator.")
@click.option(
    "--skip-bad-rows", is_flag=True, help="Leave out rows whose labels cannot be right; they are listed beside."
)
@click.option("--item", help="In a table with a row per vote: the column that names what was annotated.")
@click.option("--label", help="In such a table: the column of the label.")
@click.option("--annotator", help="In such a table: the column of who chose it.")
@click.option("--shown", "shown_labels", help="In such a table: the column of the labels that could be chosen.")
@click.option("--features-from", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Features of the items of such a table, joined by the column of --item.")  # fmt: skip
@click.option("--check", is_flag=True, help="Check every row, and print how the table is understood; write "
              "nothing but the --report, if one is named.")  # fmt: skip
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
    parameters: tuple[tuple[str, Any], ...],
    seed: int,
    model: Path | None,
    reannotate: Path | None,
    most_rows: int,
    group: str | None,
    skip_bad_rows: bool,
    item: str | None,
    label: str | None,
    annotator: str | None,
    shown_labels: str | None,
    features_from: Path | None,
    check: bool,
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
    """Recover the hidden labels of TABLE: CSV, TSV, Excel, Parquet or a folder of it; - is standard input.

    \b
    hidldl recover faces.csv -o recovered.csv --report report.html

    Columns are guessed where you do not name them, and the guess is printed. The output is the table with its labels
    complete, and how much of each row was hidden; what was observed keeps its proportions.
    """
    with running(progress) as show:
        options: dict[str, Any] = {
            "labels": labels,
            "features": features,
            "hidden": hidden,
            "normalise": normalise,
            "method": method,
            "parameters": dict(parameters),
            "random_state": seed,
            "n_jobs": jobs,
            "skip_bad_rows": skip_bad_rows,
        }
        votes: dict[str, Any] = {"item": item, "label": label, "annotator": annotator, "shown": shown_labels}
        votes["features_from"] = features_from
        reading: dict[str, Any] = {"kind": kind, "sheet": sheet, "header_row": header_row, "name": name}
        if no_id and row_names is not None:
            raise WrongInput("--id names a column and --no-id says that there is none; leave one out.")
        namer: Any = False if no_id else row_names
        if check:
            _check(table, {**options, "row_names": namer, "level": level}, votes, reading, report)
            return
        from hidldl.tables.recovery import recover_table
        from hidldl.tables.writing import checked_targets, list_beside

        bad_rows = list_beside(table, "bad_rows") if skip_bad_rows else None
        targets = checked_targets("recovered", table, output, report, model, reannotate, bad_rows)
        result = recover_table(table, **options, id=namer, intervals=level, **votes, **reading, progress=show)
        summary = result.write(
            **targets.named, group=group, most_rows=most_rows, **layout, command=command_line(), progress=show
        )
    if not quiet:
        unwritten = () if len(result.faults) else ("bad_rows",)
        files = {what: path for what, path in targets.files.items() if what not in unwritten}
        report_results(result.notes, summary, files)


def _check(
    path: Path, options: dict[str, Any], votes: dict[str, Any], reading: dict[str, Any], report: Path | None
) -> None:
    """Say how the table is understood and what is wrong with it; end with 2 if a run would not succeed."""
    from hidldl.tables.checking import check_file
    from hidldl.tables.planning import Options
    from hidldl.tables.writing import Targets

    if report is not None:
        Targets(None, report).check(path)
    check = check_file(path, Options(**options), votes=votes, reading=reading)
    _print_check(check)
    if report is not None:
        with replacing(report) as target:
            target.write_text(check.page(WORDS, command_line()), encoding="utf-8")
        click.echo(f"report:   {report}", err=True)
    if check.failures:
        raise check.failures[0]
    click.echo("A run would succeed.")


def _print_check(check: "TableCheck") -> None:
    if check.plan is not None:
        click.echo(f"{check.name}: {check.n_rows:,} rows")
        for title, names in check.columns.items():
            more = f", and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
            echo_wrapped(f"{title} ({len(names)}): {', '.join(names[:MOST_LISTED]) or 'none'}{more}")
        echo_wrapped(*(f"- {note}" for note in notes_in(WORDS, check.notes)))
    echo_wrapped(*(f"warning: {warning}" for warning in check.warnings))
    for row, name, reason in check.bad_rows.head(MOST_LISTED).to_numpy().tolist():
        echo_wrapped(f"row {row}{'' if name == row else f' ({name})'}: {reason}")
    n_bad = len(check.bad_rows)
    if n_bad:
        more = f"; the first {MOST_LISTED} are listed" if n_bad > MOST_LISTED else ""
        click.echo(f"{n_bad:,} of {check.n_rows:,} rows cannot be right{more}.")
