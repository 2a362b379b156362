"""Errors that users may catch, and warnings that point at their code."""

import sys
import warnings


class DivergenceError(ValueError):
    """A method ended with numbers that are not finite."""


class TableError(ValueError):
    """A table that cannot be used. The message is one line: the file, the row, the column and the remedy."""


class ModelFileError(ValueError):
    """A file that is not a model, or not one that can be read."""


class DatasetUnavailableError(OSError):
    """A dataset that is not on this machine and cannot be downloaded."""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the first caller outside this package, however deep the warning arose."""
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("hidldl."):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=depth)
