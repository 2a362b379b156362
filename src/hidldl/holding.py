"""Files that a program holds while it lives: others see by that what a dead one has left behind."""

import os
import stat
import sys
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _hold(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _hold(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


FLAGS = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def create_held(path: Path) -> int | None:
    """Create a file and hold it until its descriptor is closed; None if another program took it for left behind."""
    descriptor = os.open(path, FLAGS | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        _hold(descriptor)
    except (BlockingIOError, PermissionError):
        os.close(descriptor)
        return None
    except OSError:
        return descriptor  # no locks on this file system: it looks held to everyone
    if _is_still(path, descriptor):
        return descriptor
    os.close(descriptor)
    return None


def take_over(path: Path) -> int | None:
    """Hold a file that nobody holds any more; None if somebody does, or if it is not an ordinary file."""
    try:
        descriptor = os.open(path, FLAGS)
    except OSError:
        return None
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            _hold(descriptor)
            return descriptor
    except OSError:
        pass
    os.close(descriptor)
    return None


def _is_still(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except OSError:
        return False
