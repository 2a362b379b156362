"""The compiler for loops over rows. What it compiles is kept for the next start, where there is room for it."""

import logging
from collections.abc import Callable
from multiprocessing import current_process
from typing import Any

import numba
from numba.core.caching import FunctionCache, NullCache

logger = logging.getLogger(__name__)
NOT_KEPT = (
    "hidldl cannot keep its compiled code (%s), so every start compiles it again; "
    "set NUMBA_CACHE_DIR to a folder of yours that can be written, to save these seconds."
)
_noted: set[str] = set()


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function when it is first called; NaN and infinities keep their meaning.

    Sums may be reordered, so that they use vector instructions. To have no room for compiled code costs time, never
    the result: ``cache=True`` would make it an error.
    """
    dispatcher = numba.njit(nogil=True, fastmath={"reassoc", "contract", "nsz"})(function)
    if hasattr(dispatcher, "enable_caching"):  # NUMBA_DISABLE_JIT leaves the function as it is
        dispatcher._cache = _cache(function)
    return dispatcher


def can_keep() -> bool:
    """Whether there is a folder for compiled code."""
    return isinstance(_cache(compiled), _Cache)


def _cache(function: Callable[..., Any]) -> Any:
    try:
        return _Cache(function)
    except (RuntimeError, OSError):
        return _NoCache()


class _NoCache(NullCache):
    """Nowhere to write: an installation that is read-only, and no home."""

    def save_overload(self, signature: Any, result: Any) -> None:
        _note("no folder for it can be written")


class _Cache(FunctionCache):
    """A cache whose errors are its own: a full disk or files of another user do not end what is computed."""

    def load_overload(self, signature: Any, context: Any) -> Any:
        try:
            return super().load_overload(signature, context)
        except (OSError, EOFError):
            return None

    def save_overload(self, signature: Any, result: Any) -> None:
        try:
            super().save_overload(signature, result)
        except (OSError, EOFError) as error:
            _note(f"{self.cache_path}: {getattr(error, 'strerror', error)}")


def _note(why: str) -> None:
    """Say it once, for however many functions and processes."""
    if not _noted and current_process().name == "MainProcess":
        logger.warning(NOT_KEPT, why)
    _noted.add(why)
