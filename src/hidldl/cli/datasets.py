"""``hidldl datasets``: what data there is, where it is, and getting it."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from hidldl.datasets.registry import DatasetFile


@click.group(invoke_without_command=True)
@click.pass_context
def datasets(context: click.Context) -> None:
    """List the datasets, fetch them, or say where their files are.

    Files are looked for in the folder that the environment variable HIDLDL_DATA names, then in the cache.
    """
    if context.invoked_subcommand is None:
        context.invoke(list_)


@datasets.command("list")
def list_() -> None:
    """List the datasets with their sizes and where each one is."""
    from rich.console import Console
    from rich.table import Table

    from hidldl.datasets.files import DATA_VARIABLE, cache_folder, locate
    from hidldl.datasets.registry import FILES
    from hidldl.datasets.vader import VADER_NAME, VADER_SHAPE, lexicon_path

    table = Table()
    table.add_column("name", no_wrap=True)
    for heading in ("rows", "features", "labels", "size"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("where")

    def add_row(name: str, shape: tuple[int, ...], file: Path | None, where: str) -> None:
        size = f"{file.stat().st_size / 1e6:.1f} MB" if file else ""
        table.add_row(name, *(f"{count:,}" for count in shape), size, where)

    cache = cache_folder()
    for entry in FILES.values():
        file = locate(entry)
        where = "[dim]not here[/dim]" if file is None else "cache" if file.parent == cache else DATA_VARIABLE
        add_row(entry.name, (entry.n_rows, entry.n_features, entry.n_labels), file, where)
    try:
        add_row(VADER_NAME, VADER_SHAPE, lexicon_path(), "vaderSentiment")
    except ImportError:
        add_row(VADER_NAME, VADER_SHAPE, None, "[dim]pip install 'hidldl\\[data]'[/dim]")
    console = Console()
    console.print(table)
    for name, folder in ((DATA_VARIABLE, os.environ.get(DATA_VARIABLE, "not set")), ("cache", cache)):
        console.print(f"  {name}: {folder}", highlight=False, soft_wrap=True)
    console.print("'hidldl datasets fetch NAME' downloads what is not here.", highlight=False)


@datasets.command()
@click.argument("names", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="All of the paper's datasets.")
def fetch(names: tuple[str, ...], everything: bool) -> None:
    """Download datasets into the cache and verify them; what is here already is only verified."""
    from hidldl.datasets.files import fetch as fetch_file
    from hidldl.datasets.registry import FILES
    from hidldl.errors import DatasetUnavailableError
    from hidldl.progress import at_terminal, shown

    if everything == bool(names):
        raise click.UsageError("Name some datasets, or use --all.")
    failures = 0
    for entry in list(FILES.values()) if everything else [_entry(name) for name in names]:
        try:
            with shown(at_terminal(sys.stderr)) as progress:
                path = fetch_file(entry, progress=progress)
            click.echo(f"{entry.name}: {path}")
        except DatasetUnavailableError as error:
            failures += 1
            click.echo(f"{entry.name}: {error}", err=True)
    if failures:
        raise SystemExit(1)


@datasets.command()
@click.argument("name")
def path(name: str) -> None:
    """Print the path of a dataset's file, if it is here."""
    from hidldl.datasets.files import locate

    entry = _entry(name)
    file = locate(entry)
    if file is None:
        raise click.ClickException(f"{entry.name} is not here; 'hidldl datasets fetch {entry.name}' downloads it.")
    click.echo(file)


def _entry(name: str) -> "DatasetFile":
    from hidldl.datasets.registry import FILES, find_entry, simplified
    from hidldl.datasets.vader import VADER_NAME

    entry = find_entry(name)
    if simplified(name) == simplified(VADER_NAME):
        raise click.ClickException(f"{VADER_NAME} has no file of its own: it ships inside the package vaderSentiment.")
    if entry is None:
        raise click.ClickException(f"there is no file for {name!r}. Known names: {', '.join(FILES)}.")
    return entry
