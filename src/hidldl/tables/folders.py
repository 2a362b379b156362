"""Parquet datasets: tables in several files, in a folder here or elsewhere by a URL that fsspec knows."""

import re
import secrets
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from hidldl.errors import TableError
from hidldl.replacing import PREFIX
from hidldl.tables.parquet import Parquet
from hidldl.tables.sources import quoted

# A drive of Windows has one letter. A path has lost one of the two slashes of a URL.
_URL = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]+):/{1,2}(?!/)(.*)", re.DOTALL)


def url_of(path: Path | str) -> str | None:
    """The URL that a path stands for, or None.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hidldl.tables.folders import url_of
    >>> url_of(Path("s3://bucket/table")), url_of("faces.csv"), url_of("C:/faces.csv")
    ('s3://bucket/table', None, None)
    """
    match = _URL.fullmatch(str(path))
    return f"{match[1]}://{match[2]}" if match else None


def is_dataset(path: Path) -> bool:
    """Whether a path names a folder, or something elsewhere."""
    return url_of(path) is not None or path.is_dir()


class ParquetFolder:
    """The files of a folder as one table, in the order of their names and numbers, or one file elsewhere."""

    decimal = "."

    def __init__(self, path: Path, name: str) -> None:
        self.notes: list[str] = []
        url = url_of(path)
        files, places = (None, _parts(path)) if url is None else _parts_elsewhere(url, name)
        if not places:
            what = "is not a file, but a folder without" if url is None else "has no"
            raise TableError(f"{name} {what} .parquet files; name the files that hold the table.")
        folders = "/".join(str(place).replace("\\", "/").rpartition("/")[0] for place in places)
        if "=" in folders[len(str(path)) :] and url is None:
            raise TableError(f"{name} keeps columns in the names of its folders; write them into its files.")
        self._parts = [Parquet(place, f"{Path(place).name} in {name}", files) for place in places]
        self.columns, self.nullable = self._parts[0].columns, self._parts[0].nullable
        for part in self._parts:
            if part.columns != self.columns:
                odd = [*{*part.columns} ^ {*self.columns}, "the order of columns"][0]
                raise TableError(
                    f"{part.name} has other columns than the first file: {quoted(odd)} differs; write all files alike."
                )

    def frames(self, rows: int, text: Collection[int] = ()) -> Iterator[pd.DataFrame]:
        """Pieces of at most so many rows, numbered through all files."""
        return _numbered(chain.from_iterable(part.frames(rows, text) for part in self._parts))

    def originals(self, rows: int, columns: Sequence[int]) -> Iterator[pd.DataFrame]:
        """Pieces of some columns with the types that the files have."""
        return _numbered(chain.from_iterable(part.originals(rows, columns) for part in self._parts))


def _numbered(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    first = 1
    for frame in frames:
        frame.index = pd.RangeIndex(first, first + len(frame))
        first += len(frame)
        yield frame


def _parts(folder: Path) -> list[Path]:
    """Files in a folder; what writers leave beside them begins with a dot or an underscore."""
    files = (file.relative_to(folder) for file in folder.rglob("*.parquet") if file.is_file())
    shown = [file for file in files if not any(part.startswith((".", "_")) for part in file.parts)]
    return [folder / file for file in sorted(shown, key=_order)]


def _order(file: Path | str) -> list[tuple[int, str]]:
    """Part 10 comes after part 2, as writers count them."""
    return [(int(text), "") if text.isdigit() else (-1, text) for text in re.split(r"(\d+)", str(file))]


def _parts_elsewhere(url: str, name: str) -> tuple[Any, list[str]]:
    files, place = _file_system(url)
    try:
        paths = [place] if files.isfile(place) else files.find(place)
    except (OSError, ValueError) as error:
        raise TableError(f"{name} cannot be read: {quoted(error, 80)}.") from None
    parts = sorted((file for file in paths if file.endswith(".parquet")), key=_order)
    return files, [file for file in parts if not file.rpartition("/")[2].startswith((".", "_"))]


def _file_system(url: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise ImportError("URLs need fsspec; install it with pip install 'hidldl[parquet]'.") from error
    try:
        system_and_place: tuple[Any, str] = url_to_fs(url)
    except (ValueError, ImportError) as error:
        raise TableError(f"{url} cannot be opened: {quoted(error, 80)}.") from None
    return system_and_place


def refuse_taken(url: str) -> None:
    """Refuse a URL at which there is something already."""
    files, place = _file_system(url)
    if files.exists(place) and files.find(place):
        raise TableError(f"{url} is not empty; name another place, or empty it first.")


@contextmanager
def uploaded(url: str) -> Iterator[Path]:
    """A folder to write; its files appear at the URL when all went well.

    They are first put beside it. How much at once they then move is up to the store.
    """
    refuse_taken(url)
    files, place = _file_system(url)
    with tempfile.TemporaryDirectory(prefix="hidldl-") as folder:
        yield Path(folder)
        before, _, last = place.rstrip("/").rpartition("/")
        beside = f"{before}/{PREFIX}{last}-{secrets.token_hex(4)}"
        try:
            files.makedirs(beside, exist_ok=True)
            for file in sorted(Path(folder).iterdir()):
                files.put_file(str(file), f"{beside}/{file.name}")
            files.mv(beside, place, recursive=True)
        except BaseException:
            if files.exists(beside):
                files.rm(beside, recursive=True)
            raise
