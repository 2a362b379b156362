"""Threads for code that releases the interpreter's lock: compiled loops and linear algebra."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeAlias

from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

Mapper: TypeAlias = Callable[[Callable[..., Any], Iterable[Any]], Iterable[Any]]
"""``map``, or a version of it that uses threads."""


BLOCK_ROWS = 1024
"""Default size of a block of rows: its work arrays stay in cache, and there are enough blocks for all threads."""


def row_blocks(n_rows: int, size: int = BLOCK_ROWS) -> list[slice]:
    """The rows in blocks. These do not depend on the number of workers, so neither do sums over them."""
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def for_each(mapper: Mapper, task: Callable[[Any], None], items: Iterable[Any]) -> None:
    """Run the task on every item; the task stores its own results."""
    for _ in mapper(task, items):
        pass


@contextmanager
def threads(n_jobs: int | None) -> Iterator[Mapper]:
    """``map`` over that many threads; BLAS keeps to one each, so that results do not depend on their number."""
    with threadpool_limits(limits=1, user_api="blas"):
        workers = effective_n_jobs(n_jobs)
        if workers == 1:
            yield map
            return
        with ThreadPoolExecutor(workers) as pool:
            yield pool.map
