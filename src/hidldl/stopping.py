"""Requests to end: Ctrl-C, another program's, or a terminal that is closed."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def when_asked_to_end(act: Callable[[int, Any], None], *names: str) -> Iterator[None]:
    """Have the signals of these names call ``act``, where this system has them.

    One that is ignored stays so: ``nohup`` means that a closed terminal ends nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what signals do
        return
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    changed = {number: handler for number, handler in before.items() if handler is not signal.SIG_IGN}
    for number in changed:
        signal.signal(number, act)
    try:
        yield
    finally:
        for number, handler in changed.items():
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
