"""Errors that users may catch, and warnings that point at their code.

What a user can do about an error is data, a `Remedy`. Python, the shell and the page each have their own words for it.
"""

import sys
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

PYTHON_WORDS = {
    "sheet": "name the one to read by sheet=",
    "name columns": "name every column",
    "header row": "name the row or rows of the column names by header_row=",
    "labels": "name the label columns by labels=",
    "drop label": "leave it out of labels=",
    "id": "name the column by id=",
    "hidden=none": 'pass hidden="none"',
    "hidden=zero": 'pass hidden="zero"',
    "hidden=empty,zero": 'pass hidden="empty,zero"',
    "normalise": "pass normalise=True",
    "no intervals": "leave out intervals=",
    "bayes": 'pass method="bayes"',
    "output": "name a file to write",
    "skip": "pass skip_bad_rows=True",
    "save": "save it again with save_model",
    "save table": "save one with RecoveredTable.save_model",
    "register": "call register_method first",
}
"""What each remedy is called in Python; the shell and the page have the same keys."""


class Remedy(NamedTuple):
    """Something that a user can do: a key of ``PYTHON_WORDS``, and when it helps."""

    what: str
    when: str = ""


def with_remedies(message: str, remedies: Sequence[Remedy], words: Mapping[str, str] = PYTHON_WORDS) -> str:
    """A message with what can be done, in the words of a front end.

    Examples
    --------
    >>> from hidldl.errors import Remedy, with_remedies
    >>> with_remedies("no label is hidden", [Remedy("hidden=zero", "if zeros are hidden labels")])
    'no label is hidden; pass hidden="zero" if zeros are hidden labels'
    """
    phrases = [f"{words[remedy.what]} {remedy.when}".rstrip() for remedy in remedies]
    return "; ".join([message, ", or ".join(phrases)]) if phrases else message


def _sentence(problem: str, remedies: Sequence[Remedy], words: Mapping[str, str]) -> str:
    """A problem with its remedies and a full stop; one without remedies has its own."""
    return with_remedies(problem, remedies, words) + ("." if remedies else "")


class Note(str):
    """A sentence on what was guessed or decided, with what a user can do if it is wrong.

    It reads as text in Python's words; ``text`` is the sentence alone.

    Examples
    --------
    >>> from hidldl.errors import Note, Remedy
    >>> Note("zeros are taken as hidden labels", Remedy("hidden=none", "if they are true zeros"))
    'zeros are taken as hidden labels; pass hidden="none" if they are true zeros'
    """

    text: str
    remedies: tuple[Remedy, ...]

    def __new__(cls, text: str, *remedies: Remedy) -> "Note":
        note = super().__new__(cls, with_remedies(text, remedies))
        note.text, note.remedies = text, remedies
        return note

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.text, *self.remedies


def notes_in(words: Mapping[str, str], notes: Iterable[str]) -> list[str]:
    """Notes in the words of a front end."""
    return [with_remedies(note.text, note.remedies, words) if isinstance(note, Note) else note for note in notes]


class DivergenceError(ValueError):
    """A method ended with numbers that are not finite."""


class TableError(ValueError):
    """A table that cannot be used. The message is one line: the file, the row, the column and the remedy.

    Attributes
    ----------
    problem : str
        What is wrong, without what can be done.
    remedies : tuple of Remedy
        What can be done, for front ends with words of their own.
    notes : tuple of str
        How the table was understood before the error.
    """

    def __init__(self, problem: str, *remedies: Remedy) -> None:
        self.problem, self.remedies = problem, remedies
        self.notes: tuple[str, ...] = ()
        super().__init__(self.worded(PYTHON_WORDS))

    def worded(self, words: Mapping[str, str]) -> str:
        """The message in the words of a front end."""
        return _sentence(self.problem, self.remedies, words)


class ModelFileError(ValueError):
    """A file that is not a model, or not one that can be read.

    Attributes
    ----------
    file : str
        The name of the file.
    problem : str
        What is wrong with it, without what can be done.
    remedies : tuple of Remedy
        What can be done, for front ends with words of their own.
    """

    def __init__(self, file: str, problem: str, *remedies: Remedy) -> None:
        self.file, self.problem, self.remedies = file, problem, remedies
        super().__init__(self.worded(PYTHON_WORDS))

    def worded(self, words: Mapping[str, str], file: str = "") -> str:
        """The message in the words of a front end, which may know the file by another name."""
        return _sentence(f"{file or self.file} {self.problem}", self.remedies, words)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.file, self.problem, *self.remedies)


class StoreError(OSError):
    """A store of results that cannot be used. The message is one line: the file, what is wrong and the remedy."""


class DatasetUnavailableError(OSError):
    """A dataset that is not on this machine and cannot be downloaded."""


def warn_user(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the first caller outside this package, however deep the warning arose."""
    depth, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("hidldl."):
        depth, frame = depth + 1, frame.f_back
    warnings.warn(message, category, stacklevel=depth)
