"""Progress of long work: one protocol for estimators, experiments, tables, the shell and the page.

A progress function is called with the work done, the total (None where it is unknown) and a text. Functions take it as
``progress``, estimators as ``verbose``.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TextIO, TypeAlias, TypeVar

Progress: TypeAlias = Callable[[float, float | None, str], None]
Verbose: TypeAlias = bool | Progress
"""False for silence, True for a bar, or a progress function."""

T = TypeVar("T")
SECONDS_BETWEEN_LINES = 5.0
WIDEST_BAR = 100
USUAL_STEPS = 25
"""Where the total is unknown, this many steps count as half of the work."""


def silent(done: float, total: float | None, words: str) -> None:
    """Report nothing."""


def share_of(progress: Progress, first: float, last: float) -> Progress:
    """Progress of one part of the work, which takes the whole from the fraction ``first`` to ``last``.

    Examples
    --------
    >>> from hidldl.progress import share_of
    >>> half = share_of(lambda done, total, words: print(f"{done:.0%} {words}"), 0.5, 1.0)
    >>> half(20, 40, "rows written")
    75% rows written
    """

    def inside(done: float, total: float | None, words: str) -> None:
        fraction = done / (done + USUAL_STEPS) if total is None else done / max(total, 1e-300)
        progress(first + (last - first) * min(fraction, 1.0), 1.0, words)

    return inside


def count(items: Iterable[T], progress: Progress, total: int | None, words: str) -> Iterator[T]:
    """The items, one by one; ``progress`` is called after each."""
    for done, item in enumerate(items, 1):
        progress(done, total, f"{words}: {done:,}" + (f" of {total:,}" if total is not None else ""))
        yield item


def at_terminal(stream: TextIO | None) -> bool:
    """Whether a person sees what is printed there; a stream that is closed is None."""
    return stream is not None and stream.isatty()


@contextmanager
def shown(verbose: Verbose = True) -> Iterator[Progress]:
    """A progress function for ``verbose``: a bar at a terminal, a line every few seconds elsewhere."""
    if callable(verbose):
        yield verbose
    elif not verbose:
        yield silent
    elif at_terminal(sys.stderr):
        with _bar() as progress:
            yield progress
    else:
        yield _lines()


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    # Where a terminal is narrow, words are cut and the bar is short; numbers stay whole.
    columns = (
        TextColumn("{task.description}", markup=False, table_column=Column(ratio=3, no_wrap=True, overflow="ellipsis")),
        BarColumn(bar_width=None, table_column=Column(ratio=1)),
        TaskProgressColumn(table_column=Column(no_wrap=True)),
        TimeElapsedColumn(table_column=Column(no_wrap=True)),
        TimeRemainingColumn(table_column=Column(no_wrap=True)),
        TextColumn("{task.fields[left]}"),
    )
    console = Console(stderr=True)
    console.width = min(console.width, WIDEST_BAR)
    with Bar(*columns, console=console, transient=True, expand=True) as bar:
        task = bar.add_task("starting", total=None, left="")

        def progress(done: float, total: float | None, words: str) -> None:
            bar.update(task, description=words, completed=done, total=total, left="" if total is None else "left")

        yield progress


def _lines() -> Progress:
    last = monotonic()

    def progress(done: float, total: float | None, words: str) -> None:
        nonlocal last
        if monotonic() - last >= SECONDS_BETWEEN_LINES or done == total:
            last = monotonic()
            if sys.stderr is not None:
                print(words, file=sys.stderr)

    return progress
