"""What commands on a table say: how far they are, what was guessed and done, and where the results are."""

import json
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from hidldl.progress import Progress, shown, silent

if TYPE_CHECKING:
    from hidldl.reports.summary import Summary
    from hidldl.tables.writing import Targets


@contextmanager
def progress_on(how: str) -> Iterator[Progress]:
    """Progress on standard error: a bar at a terminal, a line of JSON per step for programs, or nothing."""
    if how == "json":
        yield _print_json
    elif how == "none" or not sys.stderr.isatty():
        yield silent
    else:
        with shown() as progress:
            yield progress


def _print_json(done: float, total: float | None, words: str) -> None:
    click.echo(json.dumps({"done": round(done, 4), "total": total, "words": words}), err=True)


def report_results(notes: Iterable[str], summary: "Summary", targets: "Targets") -> None:
    """Say what was guessed and done, on standard error: standard output may be the result."""
    for note in notes:
        echo_wrapped(f"- {note}", err=True)
    click.echo(_sentence(summary), err=True)
    for what, path in (("result", targets.output), ("report", targets.report), ("model", targets.model)):
        if path in targets.files:
            click.echo(f"{what + ':':8}{path}", err=True)


def _sentence(summary: "Summary") -> str:
    n_rows, n_labels = summary.n_rows, len(summary.label_names)
    size = f"{n_rows:,} row{'s' * (n_rows > 1)}, {n_labels} labels"
    hidden, mass = int(summary.hidden_counts.sum()) / (n_rows * n_labels), float(summary.hidden_mass.sum())
    return f"{size}: {hidden:.0%} of the cells were hidden and hold {mass:.0%} of the shares."


def echo_wrapped(text: str, *, err: bool = False) -> None:
    """Print a line for people, in several where a terminal is too narrow for it."""
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        text = click.wrap_text(text, shutil.get_terminal_size().columns, subsequent_indent="  ")
    click.echo(text, err=err)
