"""How far a command is: a bar at a terminal, a line of JSON per step for programs, or nothing."""

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click


@contextmanager
def shown_progress(how: str) -> Iterator[Callable[[str, float], None]]:
    """A function that is told what is being done and which share of the whole is done; speaks on standard error."""
    if how == "auto":
        how = "bar" if sys.stderr.isatty() else "none"
    if how == "none":
        yield lambda what, share: None
    elif how == "json":
        yield lambda what, share: click.echo(json.dumps({"what": what, "share": round(share, 4)}), err=True)
    else:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        columns = (TextColumn("{task.description:<48}"), BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("starting", total=1.0)
            yield lambda what, share: bar.update(task, description=what, completed=share)
