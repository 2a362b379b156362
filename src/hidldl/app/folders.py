"""Where tables are while a server runs, and the removal of what servers that died have left."""

import os
import shutil
import tempfile
from pathlib import Path

from hidldl.holding import create_held, take_over

PREFIX = "hidldl-app-"
LOCK = "lock"


class ServerFolder:
    """A folder with one for each table. The server holds a file in it, so that no other takes it for left behind."""

    def __init__(self) -> None:
        remove_dead()
        lock = None
        while lock is None:
            self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
            lock = create_held(self.path / LOCK)
        self._lock: int | None = lock

    def new(self) -> Path:
        """A folder for a table."""
        return Path(tempfile.mkdtemp(prefix="table-", dir=self.path))

    def remove(self) -> None:
        """Remove everything; the file that is held goes last."""
        for path in self.path.glob("*"):
            if path.name != LOCK:
                shutil.rmtree(path, ignore_errors=True)
        if self._lock is not None:
            os.close(self._lock)
        self._lock = None
        shutil.rmtree(self.path, ignore_errors=True)


def remove_dead() -> None:
    """Remove the folders of this user's servers that have died."""
    for folder in Path(tempfile.gettempdir()).glob(PREFIX + "*"):
        if not _is_ours(folder):
            continue
        lock = take_over(folder / LOCK)
        if lock is not None:
            try:
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _is_ours(folder: Path) -> bool:
    """Whether it is a folder, not a link to one, that belongs to this user."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    return not hasattr(os, "getuid") or folder.lstat().st_uid == os.getuid()
