"""``hidldl reproduce``: the paper's tables and figures from one command."""

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hidldl.cli.terminal import Stopped, WrongInput, one_line_errors

if TYPE_CHECKING:
    import pandas as pd

    from hidldl.progress import Progress

TABLE_NUMBERS = ("1", "2", "3", "A2", "A3", "A4", "A5", "A6")
FIGURE_NUMBERS = ("2", "3", "A1", "A2", "residuals")
QUICK_WITHOUT = "Movie"


@click.command()
@click.option("--table", "tables", type=click.Choice((*TABLE_NUMBERS, "U")), multiple=True,
              help="A table; may be repeated. U is not the paper's: its methods without a mask.")  # fmt: skip
@click.option(
    "--figure", "figures", type=click.Choice(FIGURE_NUMBERS), multiple=True, help="A figure; may be repeated."
)
@click.option("--all", "everything", is_flag=True, help="Every table and figure.")
@click.option("--quick", is_flag=True, help=f"Two repetitions, without {QUICK_WITHOUT}: minutes instead of an hour.")
@click.option("--dataset", "datasets", multiple=True, help="Only these datasets; all that are here by default.")
@click.option("--repetitions", type=click.IntRange(1), default=5, show_default=True)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option("--retry-failed", is_flag=True, help="Run again what failed before.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("hidldl-results"),
    show_default=True,
    help="Folder for tables, figures, the page and the store of results.",
)
def reproduce(
    tables: tuple[str, ...],
    figures: tuple[str, ...],
    everything: bool,
    quick: bool,
    datasets: tuple[str, ...],
    repetitions: int,
    jobs: int,
    retry_failed: bool,
    output: Path,
) -> None:
    """Run the paper's experiments and write its tables and figures, ours beside the paper's.

    Results are kept in results.sqlite in the output folder as they are finished: an interrupted run goes on where it
    stopped, and nothing is run twice. Datasets are those that 'hidldl datasets' finds here.
    """
    from hidldl.datasets.registry import FILES, find_entry
    from hidldl.experiments.reproduce import needed_experiments
    from hidldl.experiments.reproduce import reproduce as write_all
    from hidldl.experiments.store import Store

    if everything or not (tables or figures):
        tables, figures = TABLE_NUMBERS, FIGURE_NUMBERS
    entries = [find_entry(name) for name in datasets]
    unknown = [name for name, entry in zip(datasets, entries, strict=True) if entry is None]
    if unknown:
        raise click.BadParameter(
            f"there is no dataset {unknown[0]!r}. Known: {', '.join(FILES)}.", param_hint="--dataset"
        )
    chosen = tuple(entry.name for entry in entries if entry) or None
    if quick:
        repetitions = min(repetitions, 2)
        chosen = tuple(name for name in chosen or _here() if name != QUICK_WITHOUT)
    if not (chosen or _here()):
        raise WrongInput("none of the paper's datasets is here; 'hidldl datasets fetch --all' gets them.")
    with resumable() as progress:
        page = write_all(
            output,
            tables=tables,
            figures=figures,
            datasets=chosen,
            repetitions=repetitions,
            n_jobs=jobs,
            retry_failed=retry_failed,
            progress=progress,
            command=" ".join(["hidldl", *sys.argv[1:]]),
        )
        experiments = needed_experiments(tables, figures, repetitions, chosen)
        results = Store(output / "results.sqlite").results(experiments)
    tell_failures(results)
    click.echo(f"Open {page}")


@contextmanager
def resumable() -> "Iterator[Progress]":
    """Progress for work that can go on later: an interrupted run says how, and errors are one line."""
    from hidldl.progress import at_terminal, shown

    with one_line_errors():
        try:
            with shown(at_terminal(sys.stderr)) as progress:
                yield progress
        except (KeyboardInterrupt, Stopped) as stop:
            click.echo("Interrupted; run the same command again to go on where it stopped.", err=True)
            number = signal.SIGINT if isinstance(stop, KeyboardInterrupt) else stop.args[0]
            raise click.exceptions.Exit(128 + number) from None


def tell_failures(results: "pd.DataFrame") -> None:
    """One line about evaluations that failed, with an example."""
    failed = results[results["status"] == "failed"]
    if len(failed):
        first = failed.iloc[0]
        reason = first["traceback"].strip().splitlines()[-1]
        click.echo(
            f"{len(failed)} evaluations failed, such as {first['method']} on {first['dataset']}: {reason}", err=True
        )


def _here() -> tuple[str, ...]:
    from hidldl.datasets.files import locate
    from hidldl.datasets.registry import FILES

    return tuple(name for name, entry in FILES.items() if locate(entry) is not None)
