"""What a command on a table leaves behind: the result, a page and a model, all of them complete or none."""

import shlex
import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from hidldl.reports.summary import Summary
    from hidldl.tables.model_files import TablePrediction
    from hidldl.tables.recovering import RecoveredRows, TableRecovery
    from hidldl.tables.roles import Roles


@dataclass(frozen=True)
class Targets:
    """Where results go; "-" as output is standard output."""

    output: Path | None
    report: Path | None
    model: Path | None = None

    @property
    def files(self) -> list[Path]:
        given = (self.output, self.report, self.model)
        return [path for path in given if path is not None and str(path) != "-"]

    def check(self, *inputs: Path) -> None:
        """What cannot be written is told before the work, not after it."""
        from hidldl.errors import TableError
        from hidldl.replacing import refuse_unwritable
        from hidldl.tables.writing import check_target

        if self.output is None and not self.files:
            raise TableError("nothing to write; name an output file (-o recovered.csv), a --report or both.")
        if self.output is not None:
            check_target(self.output)
        for path, suffixes in ((self.report, (".html", ".htm")), (self.model, (".npz", ".json"))):
            if path is not None and path.suffix not in suffixes:
                raise TableError(f"{path.name} must end in {' or '.join(suffixes)}.")
            if path is not None:
                refuse_unwritable(path)
        places = [path.resolve() for path in (*inputs, *self.files)]
        for place in self.files:
            if places.count(place.resolve()) > 1:
                raise TableError(f"{place} is named twice; what is read and what is written need names of their own.")
        if self.report is not None:
            from hidldl.reports.page import load_template

            load_template("recovery.html.j2")


def write_results(
    targets: Targets,
    pieces: "Iterable[RecoveredRows]",
    roles: "Roles",
    page: Callable[["Summary"], str],
    save: Callable[[Path], None] | None = None,
) -> str:
    """Write everything, and say in a sentence what was recovered.

    ``page`` makes the report from the summary of the rows; ``save`` writes the model to a path.
    """
    from hidldl.replacing import replacing_all
    from hidldl.reports.summary import Summarizer
    from hidldl.tables.writing import as_frame, open_writer, to_standard_output

    summarizer = Summarizer(roles.labels)
    with ExitStack() as stack:
        places = dict(zip(targets.files, stack.enter_context(replacing_all(targets.files)), strict=True))
        if save is not None and targets.model is not None:
            save(places[targets.model])
        writer = None
        if targets.output is not None:
            place = places.get(targets.output)
            opened = to_standard_output() if place is None else open_writer(targets.output, place)
            writer = stack.enter_context(opened)
        for rows in pieces:
            if writer is not None:
                writer.write(as_frame(rows, roles.labels, roles.row_names))
            numbered = (f"row {number}" for number in rows.numbers)
            names = list(numbered if rows.names is None else map(str, rows.names))
            summarizer.add(names, rows.D_obs, rows.observed, rows.distributions, rows.low, rows.high)
        summary = summarizer.finish()
        if targets.report is not None:
            places[targets.report].write_text(page(summary), encoding="utf-8")
    return _in_a_sentence(summary)


def page_of(
    recovery: "TableRecovery | TablePrediction", summary: "Summary", level: float | None, seconds: float
) -> str:
    """The report, as HTML."""
    from hidldl.reports.recovery_page import Facts, recovery_page

    model: Any = recovery.model
    tuned = getattr(model, "recoverer_", model)
    facts = Facts(
        source=recovery.table.name,
        method=type(tuned).__name__,
        parameters=getattr(model, "parameters_", None) or _given(tuned),
        seconds=seconds,
        command=shlex.join(["hidldl", *sys.argv[1:]]),
        notes=recovery.notes,
        level=level,
        selection=getattr(model, "selection_", None),
        history=getattr(tuned, "history_", None),
        converged=getattr(tuned, "converged_", None),
    )
    return recovery_page(summary, facts)


def _given(model: Any) -> dict[str, Any]:
    shown = model.get_params(deep=False)
    return {
        name: getattr(model, f"{name}_", value) for name, value in shown.items() if name not in ("n_jobs", "verbose")
    }


def _in_a_sentence(summary: "Summary") -> str:
    n_rows, n_labels = summary.n_rows, len(summary.label_names)
    size = f"{n_rows:,} row{'s' * (n_rows > 1)}, {n_labels} labels"
    hidden, mass = int(summary.hidden_counts.sum()) / (n_rows * n_labels), float(summary.hidden_mass.sum())
    return f"{size}: {hidden:.0%} of the cells were hidden and hold {mass:.0%} of the shares."


def say(notes: Iterable[str], done: str, targets: Targets) -> None:
    """What was guessed and done, on standard error: standard output may be the result."""
    for note in notes:
        echo_wrapped(f"- {note}", err=True)
    click.echo(done, err=True)
    for what, path in (("result", targets.output), ("report", targets.report), ("model", targets.model)):
        if path in targets.files:
            click.echo(f"{what + ':':8}{path}", err=True)


def echo_wrapped(text: str, *, err: bool = False) -> None:
    """A line for people, in several where a terminal is too narrow for it."""
    stream = sys.stderr if err else sys.stdout
    if stream.isatty():
        text = click.wrap_text(text, shutil.get_terminal_size().columns, subsequent_indent="  ")
    click.echo(text, err=err)
