"""``hidldl reproduce``: the paper's tables and figures from one command."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hidldl.experiments.runner import Progress
    from hidldl.experiments.store import Store

TABLE_NUMBERS = ("1", "2", "3", "A2", "A3", "A4", "A5", "A6")
FIGURE_NUMBERS = ("2", "3", "A1", "A2", "residuals")
QUICK_WITHOUT = "Movie"


@click.command()
@click.option("--table", "tables", type=click.Choice(TABLE_NUMBERS), multiple=True, help="A table; may be repeated.")
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
    from hidldl.experiments.reproduction import reproduce as write_all
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
        raise click.ClickException("none of the paper's datasets is here; 'hidldl datasets fetch --all' gets them.")
    try:
        with progress_bar() as show:
            page = write_all(
                output,
                tables=tables,
                figures=figures,
                datasets=chosen,
                repetitions=repetitions,
                n_jobs=jobs,
                retry_failed=retry_failed,
                report=show,
                command=" ".join(["hidldl", *sys.argv[1:]]),
            )
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    tell_failures(Store(output / "results.sqlite"))
    click.echo(f"Open {page}")


@contextmanager
def progress_bar() -> "Iterator[Callable[[Progress], None]]":
    """A bar that says what was finished last and how long is left; Ctrl-C ends it with how to go on."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=None)

        def show(progress: "Progress") -> None:
            last = progress.last
            what = f"{last.setting} {last.dataset} {last.rate:.0%} #{last.repetition + 1}"
            bar.update(task, description=f"{what:<36}", completed=progress.done, total=progress.total)

        try:
            yield show
        except KeyboardInterrupt:
            raise click.ClickException("interrupted; run the same command again to go on where it stopped.") from None


def tell_failures(store: "Store") -> None:
    """One line about evaluations that failed, with an example."""
    failed = store.results().query("status == 'failed'")
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
