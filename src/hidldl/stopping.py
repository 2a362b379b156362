"""Requests to end: Ctrl-C, another program's, or a terminal that is closed.

This is what the command loads first, so it needs next to nothing.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def when_asked_to_end(act: Callable[[int, FrameType | None], None], *names: str) -> Iterator[None]:
    """Have the signals of these names call ``act``, where this system has them.

    One that is ignored stays so: ``nohup`` means that a closed terminal ends nothing.
    """
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    try:
        before = {
            number: signal.signal(number, act) for number in numbers if signal.getsignal(number) is not signal.SIG_IGN
        }
    except ValueError:
        before = {}  # only the main thread may say what signals do
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_at_once(number: int, frame: FrameType | None) -> None:
    """End without a word, with the status that shells know an interrupted program by."""
    os._exit(128 + number)
