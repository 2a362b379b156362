"""``hidldl reproduce``: the paper's tables and figures from one command."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hidldl.experiments.protocol import Experiment
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
    from hidldl.experiments.paper import FIGURES, TABLES
    from hidldl.experiments.store import Store
    from hidldl.reports.reproduction import write

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
    experiments = [experiment for n in tables for experiment in TABLES[n].experiments(repetitions, chosen)]
    evaluated = [FIGURES[n] for n in figures if n in FIGURES]
    experiments += [experiment for figure in evaluated for experiment in figure.experiments(repetitions, chosen)]
    store = Store(output / "results.sqlite")
    run_with_progress(experiments, store, jobs=jobs, retry_failed=retry_failed)
    try:
        written = write(
            store,
            output,
            tables=tables,
            figures=figures,
            repetitions=repetitions,
            datasets=chosen,
            command=" ".join(["hidldl", *sys.argv[1:]]),
        )
    except ImportError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"{len(written)} files in {output}; open {output / 'index.html'}")


def run_with_progress(experiments: "list[Experiment]", store: "Store", *, jobs: int, retry_failed: bool) -> None:
    """Run what is missing, with a bar that says what was finished and how long is left."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from hidldl.experiments.runner import Progress as Done
    from hidldl.experiments.runner import run

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=None)

        def show(done: Done) -> None:
            last = done.last
            what = f"{last.setting} {last.dataset} {last.rate:.0%} #{last.repetition + 1}"
            bar.update(task, description=f"{what:<36}", completed=done.done, total=done.total)

        try:
            run(experiments, store, n_jobs=jobs, retry_failed=retry_failed, report=show)
        except KeyboardInterrupt:
            raise click.ClickException(f"interrupted; run the same command again to go on ({store.path}).") from None
    failed = store.results(experiments).query("status == 'failed'")
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
