"""How far long work is: one protocol for estimators, experiments, tables, the shell and the page.

A progress function is called with what is done, out of how much (None where nobody knows), and in words. Functions take
it as ``progress``, estimators as ``verbose``.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TypeAlias, TypeVar

Progress: TypeAlias = Callable[[float, float | None, str], None]
Verbose: TypeAlias = bool | Progress
"""False for silence, True for a bar, or a progress function."""

T = TypeVar("T")
SECONDS_BETWEEN_LINES = 5.0
USUAL_STEPS = 25
"""Where nobody knows how many steps there will be, so many of them are half of the work."""


def silent(done: float, total: float | None, words: str) -> None:
    """Progress that nobody wants to see."""


def share_of(progress: Progress, first: float, last: float) -> Progress:
    """Progress of a part of the work, which takes the whole from one share of it to another.

    Examples
    --------
    >>> from hidldl.progress import share_of
    >>> half = share_of(lambda done, total, words: print(f"{done:.0%} {words}"), 0.5, 1.0)
    >>> half(20, 40, "rows written")
    75% rows written
    """

    def inside(done: float, total: float | None, words: str) -> None:
        share = done / (done + USUAL_STEPS) if total is None else done / max(total, 1e-300)
        progress(first + (last - first) * min(share, 1.0), 1.0, words)

    return inside


def count(items: Iterable[T], progress: Progress, total: int | None, words: str) -> Iterator[T]:
    """The items, one by one; ``progress`` is called after each."""
    for done, item in enumerate(items, 1):
        progress(done, total, f"{words}: {done:,}" + (f" of {total:,}" if total is not None else ""))
        yield item


@contextmanager
def shown(verbose: Verbose = True) -> Iterator[Progress]:
    """A progress function for ``verbose``: a bar at a terminal, a line every few seconds elsewhere."""
    if callable(verbose):
        yield verbose
    elif not verbose:
        yield silent
    elif sys.stderr.isatty():
        with _bar() as progress:
            yield progress
    else:
        yield _lines()


@contextmanager
def _bar() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description:<48}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting", total=None)
        yield lambda done, total, words: bar.update(task, description=words, completed=done, total=total)


def _lines() -> Progress:
    last = monotonic()

    def progress(done: float, total: float | None, words: str) -> None:
        nonlocal last
        if monotonic() - last >= SECONDS_BETWEEN_LINES or done == total:
            last = monotonic()
            print(words, file=sys.stderr)

    return progress
