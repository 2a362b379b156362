"""Files that appear complete or not at all, several together or none of them."""

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file to write; it replaces ``path`` if no error occurs, and otherwise nothing changes."""
    with replacing_all([path]) as (target,):
        yield target


@contextmanager
def replacing_all(paths: Sequence[Path]) -> Iterator[list[Path]]:
    """Temporary files to write; they replace the paths when all are complete, and otherwise nothing changes.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from hidldl.replacing import replacing_all
    >>> with TemporaryDirectory() as folder:
    ...     with replacing_all([Path(folder, "a.txt"), Path(folder, "b.txt")]) as (a, b):
    ...         _ = a.write_text("first"), b.write_text("second")
    ...     sorted(path.name for path in Path(folder).iterdir())
    ['a.txt', 'b.txt']
    """
    refuse_unwritable(*paths)
    with ExitStack() as stack:
        targets = [stack.enter_context(_beside(path.resolve())) for path in paths]
        yield targets
        for target, path in zip(targets, paths, strict=True):
            target.replace(path.resolve())


def refuse_unwritable(*paths: Path) -> None:
    """Refuse paths that no file can be written to, in one line that says why."""
    for path in paths:
        _refuse_unwritable(path)


def _refuse_unwritable(path: Path) -> None:
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file.")
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is no ordinary file; name another.")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {str(path.parent)!r}; make it first.")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise PermissionError(f"{path} cannot be written: permission denied; name another place.")


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """An empty file in the same folder, which is removed at the end unless it was moved."""
    target = path.with_name(f".hidldl-{secrets.token_hex(8)}{path.suffix}")
    try:
        target.open("xb").close()
        if path.exists():
            shutil.copymode(path, target)
        yield target
    finally:
        target.unlink(missing_ok=True)
