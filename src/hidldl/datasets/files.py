"""Find the published files, or download them. No file is read before its checksum is verified."""

import logging
import os
import tempfile
from pathlib import Path

from hidldl.datasets.registry import DatasetFile
from hidldl.errors import DatasetUnavailableError
from hidldl.progress import Progress, silent

logger = logging.getLogger(__name__)

DATA_VARIABLE = "HIDLDL_DATA"
"""Environment variable that names a folder with dataset files."""


def cache_folder() -> Path:
    """Where downloaded files are kept."""
    import pooch

    return Path(pooch.os_cache("hidldl"))


def search_folders() -> list[Path]:
    """The folders in which files are looked for, first match wins."""
    folder = os.environ.get(DATA_VARIABLE)
    return [*([Path(folder).expanduser()] if folder else []), cache_folder()]


def locate(entry: DatasetFile) -> Path | None:
    """The file's path if it is on this machine, verified or not."""
    paths = (folder / entry.file for folder in search_folders())
    return next((path for path in paths if path.is_file()), None)


def fetch(entry: DatasetFile, *, progress: Progress = silent) -> Path:
    """The verified file's path; downloads it into the cache if it is not here."""
    path = locate(entry)
    if path is None:
        path = _download(entry, progress=progress)
    elif not entry.matches(path.read_bytes()):
        raise DatasetUnavailableError(
            f"{path} is not the published file of {entry.name} (expected {entry.checksum}). Remove it, or replace "
            f"it with the file from {entry.url}."
        )
    return path


def _download(entry: DatasetFile, *, progress: Progress) -> Path:
    import pooch

    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # Next to its destination, so that the verified file takes its place in one step.
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            download = Path(scratch) / entry.file
            bar = _Download(f"downloading {entry.name}", progress)
            pooch.HTTPDownloader(progressbar=bar)(entry.url, str(download), None)
            if not entry.matches(download.read_bytes()):
                raise DatasetUnavailableError(
                    f"the download from {entry.url} is not the published file (expected {entry.checksum})"
                )
            return download.replace(folder / entry.file)
    except OSError as error:  # requests' exceptions are OSErrors too
        # What the system says has a reason worth knowing, such as a full disk; what the network says fills pages.
        why = error.strerror if isinstance(error.errno, int) and error.strerror else type(error).__name__
        reason = error if isinstance(error, DatasetUnavailableError) else f"downloading failed with {why}"
        raise DatasetUnavailableError(
            f"{entry.name} is not on this machine (looked in {', '.join(map(str, search_folders()))}), and {reason}. "
            f"Get {entry.file} from {entry.url} ({entry.checksum}) and put it into {folder}, or set the environment "
            f"variable {DATA_VARIABLE} to the folder that holds it."
        ) from None


class _Download:
    """A progress bar as pooch expects it."""

    total: float | None = None

    def __init__(self, words: str, progress: Progress) -> None:
        self.words, self.progress, self.done = words, progress, 0

    def update(self, n_bytes: int) -> None:
        self.done += n_bytes
        self.progress(self.done, self.total, self.words)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        """There is nothing to close."""
