"""How commands talk to people and programs: progress, what was done, and errors in one line."""

import json
import shutil
import signal
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hidldl.errors import ModelFileError, TableError, notes_in
from hidldl.progress import Progress, at_terminal, shown, silent
from hidldl.stopping import when_asked_to_end

if TYPE_CHECKING:
    from hidldl.reports.summary import Summary

WORDS = {
    "sheet": "name the one to read with --sheet",
    "name columns": "name every column",
    "header row": "name the row or rows of the column names with --header-row",
    "labels": "name them with --labels",
    "drop label": "leave it out of --labels",
    "id": "name the column with --id",
    "hidden=none": "use --hidden none",
    "hidden=zero": "use --hidden zero",
    "hidden=empty,zero": "use --hidden empty,zero",
    "normalise": "use --normalise",
    "no intervals": "leave out --intervals",
    "bayes": "use --method bayes",
    "output": "name an output file (-o recovered.csv), a --report or both",
    "skip": "use --skip-bad-rows",
    "save": "save it again with hidldl recover --model",
    "save table": "save one with hidldl recover --model",
    "register": "install the package that adds it",
}
"""What the shell calls each remedy of an error."""


class WrongInput(click.ClickException):
    """Something that the user can put right; one line."""

    exit_code = 2


class Stopped(BaseException):
    """Another program asked this one to end."""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """What is wrong with a file or an option, as one line; an interrupted command leaves every file as it was.

    What the library warns programmers of is ignored: notes and the report tell users in other words.
    """
    try:
        with _ending_in_order(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except BrokenPipeError:
        raise  # the reader of standard output has closed it; click ends quietly
    except OSError as error:
        why = f"the result cannot be written: {error.strerror}." if error.errno else str(error)
        raise WrongInput(why) from error
    except TableError as error:
        echo_wrapped(*_items(error.notes), err=True)
        raise WrongInput(error.worded(WORDS)) from error
    except ModelFileError as error:
        raise WrongInput(error.worded(WORDS)) from error
    except (ValueError, TypeError, ImportError, MemoryError) as error:
        raise WrongInput(" ".join(str(error).split()) or "there is not enough memory for this table.") from error
    except (KeyboardInterrupt, Stopped) as stop:
        click.echo("Interrupted; nothing was written.", err=True)
        number = signal.SIGINT if isinstance(stop, KeyboardInterrupt) else stop.args[0]
        raise click.exceptions.Exit(128 + number) from None


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """A request to end, or a terminal that is closed, cleans up as Ctrl-C does."""
    signals: list[int] = []

    def stop(number: int, frame: Any) -> None:
        signals.append(number)
        raise Stopped(number)

    try:
        with when_asked_to_end(stop, "SIGINT", "SIGTERM", "SIGHUP"):
            yield
    except click.exceptions.Exit:
        raise
    except Exception as error:
        # A library that is interrupted while it is loaded may call that by another name.
        if signals:
            raise Stopped(signals[0]) from error
        raise


@contextmanager
def running(how: str) -> Iterator[Progress]:
    """The work on a table: errors are one line, and progress is shown as ``how`` says."""
    with one_line_errors(), _progress_on(how) as progress:
        yield progress


@contextmanager
def _progress_on(how: str) -> Iterator[Progress]:
    """Progress on standard error: a bar at a terminal, a line of JSON per step for programs, or nothing."""
    if how == "json":
        yield _print_json
    elif how == "none" or not at_terminal(sys.stderr):
        yield silent
    else:
        with shown() as progress:
            yield progress


def _print_json(done: float, total: float | None, words: str) -> None:
    click.echo(json.dumps({"done": round(done, 4), "total": total, "words": words}), err=True)


def report_results(notes: Iterable[str], summary: "Summary", files: Mapping[str, Path]) -> None:
    """Say what was guessed and done, and which files were written, by what they are for.

    All of it on standard error: standard output may be the result.
    """
    echo_wrapped(*_items(notes), _sentence(summary), err=True)
    words = {"output": "result", "reannotate": "list", "bad_rows": "left out"}
    for what, path in files.items():
        click.echo(f"{words.get(what, what) + ':':10}{path}", err=True)


def _items(notes: Iterable[str]) -> list[str]:
    return [f"- {note}" for note in notes_in(WORDS, notes)]


def _sentence(summary: "Summary") -> str:
    n_rows, n_labels = summary.n_rows, len(summary.label_names)
    size = f"{n_rows:,} row{'s' * (n_rows > 1)}, {n_labels} labels"
    hidden, mass = int(summary.hidden_counts.sum()) / (n_rows * n_labels), float(summary.hidden_mass.sum())
    if summary.rows.hidden is not None:
        return f"{size}: {hidden:.0%} of the cells are 0 or empty; what was overlooked holds {mass:.0%} of the shares."
    return f"{size}: {hidden:.0%} of the cells were hidden and hold {mass:.0%} of the shares."


def echo_wrapped(*lines: str, err: bool = False) -> None:
    """Print lines for people, each in several where a terminal is too narrow for it."""
    is_seen = at_terminal(sys.stderr if err else sys.stdout)
    width = shutil.get_terminal_size().columns
    for line in lines:
        click.echo(click.wrap_text(line, width, subsequent_indent="  ") if is_seen else line, err=err)
