"""Columns as users name them: by names, patterns and ranges in one text, or by a list of exact names."""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from itertools import chain
from typing import TypeAlias

from hidldl.errors import TableError
from hidldl.tables.sources import quoted, quoted_list

ColumnNames: TypeAlias = str | Sequence[str] | None
"""Columns as a user names them: a text with commas, patterns and ranges, or a list of exact names."""


def select_columns(wanted: str | Sequence[str], table: str, names: list[str], option: str) -> tuple[str, ...]:
    """Columns by a text with names, patterns and ranges, or by a list of exact names."""
    known = set(names)
    if isinstance(wanted, str) and wanted not in known:
        matches = {part: _columns_named(part, names) for part in re.split(r"\s*,\s*", wanted.strip(" ,"))}
    else:
        exact = [wanted] if isinstance(wanted, str) else map(str, wanted)  # a DataFrame may number its columns
        matches = {name: [name] if name in known else [] for name in exact}
    for part, columns in matches.items():
        if not columns:
            raise TableError(f"{table} has no column {quoted(part)} ({option}); its columns are {quoted_list(names)}.")
    return tuple(dict.fromkeys(chain.from_iterable(matches.values())))


def _columns_named(part: str, names: list[str]) -> list[str]:
    if part in names:
        return [part]
    ends = part.split("..")
    if len(ends) == 2:
        first, last = (_position(end, names) for end in ends)
        if first is None or last is None or first > last:
            return []
        return names[first : last + 1]
    return [name for name in names if fnmatchcase(name, part)]


def _position(end: str, names: list[str]) -> int | None:
    if end in names:
        return names.index(end)
    return int(end) - 1 if end.isdigit() and 1 <= int(end) <= len(names) else None


def shortest_choice(labels: tuple[str, ...], table: str, names: list[str]) -> str | list[str]:
    """The shortest value for labels that chooses exactly these columns."""
    places = [names.index(label) for label in labels]
    texts = [f"{labels[0]}..{labels[-1]}", f"{places[0] + 1}..{places[-1] + 1}", ",".join(labels)]
    for text in texts:
        try:
            if select_columns(text, table, names, "labels") == labels:
                return text
        except TableError:
            continue
    return list(labels)
