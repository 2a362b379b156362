"""Threads for code that releases the interpreter's lock: compiled loops and linear algebra."""

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, wraps
from threading import Lock
from typing import Any, TypeAlias

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

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


class _SharedLimit:
    """One thread for BLAS, from when the first user enters until the last one leaves.

    The limit belongs to the process. Were it set and restored by each Python thread that fits a model, one would lift
    it while another computes, whose digits then change, and the last to leave could restore another's limit.
    """

    def __init__(self) -> None:
        self._lock, self._users = Lock(), 0
        self._limit: Any = None

    def enter(self) -> None:
        with self._lock:
            if self._users == 0:
                _let_any_thread_set_limits()
                self._limit = _pools("blas").limit(limits=1)
            self._users += 1

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                _let_any_thread_set_limits()
                self._limit.restore_original_limits()
                _let_any_thread_set_limits()


_ONE_BLAS_THREAD = _SharedLimit()


@cache
def _pools(user_api: str) -> ThreadpoolController:
    """The thread pools of BLAS or OpenMP in this process; to look for them takes milliseconds."""
    import scipy.linalg  # noqa: F401  SciPy has a BLAS of its own, which must be there to be seen

    return ThreadpoolController().select(user_api=user_api)


def _let_any_thread_set_limits() -> None:
    """Some releases of threadpoolctl silently ignore all threads but the first that set a limit of OpenBLAS."""
    for pool in _pools("blas").lib_controllers:
        if hasattr(pool, "clear_controlling_thread"):
            pool.clear_controlling_thread(force=True)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS keeps to one thread, so that digits depend neither on the machine nor on what else the process does.

    NumPy and SciPy each have a pool of BLAS threads. Used in turns, as by L-BFGS, each pool waits busily while the
    other computes: ten times slower on two cores. And products as narrow as ours gain little from threads.
    """
    _ONE_BLAS_THREAD.enter()
    try:
        yield
    finally:
        _ONE_BLAS_THREAD.leave()


def on_one_blas_thread(method: Callable[..., Any]) -> Callable[..., Any]:
    """The method with BLAS on one thread. A frame of ours: warnings point at the first one that is not."""

    @wraps(method)
    def run(*arguments: Any, **options: Any) -> Any:
        with one_blas_thread():
            return method(*arguments, **options)

    return run


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for BLAS and for OpenMP, whose limit each Python thread has for itself."""
    with one_blas_thread(), _pools("openmp").limit(limits=1):
        yield


@contextmanager
def threads(n_jobs: int | None) -> Iterator[Mapper]:
    """``map`` over that many threads; BLAS keeps to one each, so that results do not depend on their number."""
    with one_blas_thread():
        workers = effective_n_jobs(n_jobs)
        if workers == 1:
            yield map
            return
        with ThreadPoolExecutor(workers) as pool:
            yield pool.map
