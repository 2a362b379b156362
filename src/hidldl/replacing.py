"""Files that appear complete or not at all, several together or none of them.

What is not complete yet is in temporary files beside them. A program that is killed leaves its own behind; the next one
that writes the same file removes them, since nobody holds their lock any more.
"""

import errno
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

from hidldl.holding import create_held, take_over

PREFIX = ".hidldl-"
_REMEDIES = {errno.ENOSPC: "free some space and try again", errno.EDQUOT: "free some space and try again"}


def write_text(path: Path, text: str) -> None:
    """Write a file of text, complete or not at all; errors name it."""
    with naming(path), replacing(path) as target:
        target.write_text(text, encoding="utf-8")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Errors of the system in one line that names the file and says what helps; the system's own often do neither."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise  # its message is not the system's
        remedy = _REMEDIES.get(error.errno, "name another place")
        raise type(error)(f"{path} cannot be written: {error.strerror}; {remedy}.") from error


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file to write; it replaces ``path`` if no error occurs, and otherwise nothing changes."""
    with replacing_all([path]) as (target,):
        yield target


@contextmanager
def replacing_all(paths: Sequence[Path], folders: Collection[Path] = ()) -> Iterator[list[Path]]:
    """Temporary files to write; they replace the paths when all are complete, and otherwise nothing changes.

    Paths among ``folders`` are folders to write files in. They are new: a folder with files is never replaced.

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
    refuse_unwritable(*paths, folders=folders)
    with ExitStack() as stack:
        targets = [stack.enter_context(_beside(path.resolve(), is_folder=path in folders)) for path in paths]
        yield targets
        for target, path in zip(targets, paths, strict=True):
            if path in folders and path.is_dir():
                path.rmdir()  # it is empty; not every system replaces a folder
            target.replace(path.resolve())


def refuse_unwritable(*paths: Path, folders: Collection[Path] = ()) -> None:
    """Refuse paths that no file, or folder, can be written to, in one line that says why."""
    for path in paths:
        _refuse_unwritable(path, is_folder=path in folders)


def _refuse_unwritable(path: Path, *, is_folder: bool) -> None:
    if path.is_dir() and not is_folder:
        raise IsADirectoryError(f"{path} is a folder; name a file.")
    if is_folder and path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise FileExistsError(f"{path} is not an empty folder; name another, or empty it first.")
    if path.exists() and not (path.is_file() or is_folder):
        raise OSError(f"{path} is no ordinary file; name another.")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(f"{path} cannot be written: there is no folder {str(path.parent)!r}; make it first.")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise PermissionError(f"{path} cannot be written: permission denied; name another place.")


@contextmanager
def _beside(path: Path, *, is_folder: bool) -> Iterator[Path]:
    """An empty file, or folder, in the same folder, which is removed at the end unless it was moved."""
    # What replaces a temporary file belongs to it, and goes with it.
    held = nullcontext(path.stem) if path.name.startswith(PREFIX) else _held_name(path)
    with held as name:
        target = path.with_name(f"{name}-{secrets.token_hex(4)}{path.suffix}")
        try:
            if is_folder:
                target.mkdir()
            else:
                target.open("xb").close()
            if path.exists():
                shutil.copymode(path, target)
            yield target
        finally:
            _remove(target)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def _held_name(path: Path) -> Iterator[str]:
    """The beginning of the names of temporary files for a path, which is ours as long as we live."""
    mark = PREFIX + hashlib.sha256(path.name.encode("utf-8", "surrogateescape")).hexdigest()[:12]
    _remove_left_behind(path.parent, mark)
    lock = None
    while lock is None:
        name = f"{mark}-{secrets.token_hex(8)}"
        file = path.with_name(f"{name}-held")
        lock = create_held(file)
    try:
        yield name
    finally:
        os.close(lock)
        file.unlink(missing_ok=True)


def _remove_left_behind(folder: Path, mark: str) -> None:
    """Remove temporary files whose program is dead."""
    try:
        files = [file for file in folder.iterdir() if file.name.startswith(mark)]
    except OSError:
        return  # a folder may be written to and yet keep its files secret
    for file in files:
        name = re.fullmatch(rf"({re.escape(mark)}-[0-9a-f]{{16}})-held", file.name)
        lock = take_over(file) if name else None
        if name is None or lock is None:
            continue
        with suppress(OSError):
            for one in files:
                if one.name.startswith(name[1]) and one != file:
                    _remove(one)
        os.close(lock)
        with suppress(OSError):
            file.unlink()
