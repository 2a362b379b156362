"""Where the names of the columns stand: below titles, in one row or in several."""

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pandas as pd

from hidldl.errors import Note, Remedy, TableError

MOST_TITLES = 20
MOST_HEADER_ROWS = 10
FOR_MISSING_NAMES = (Remedy("name columns"), Remedy("header row"))
"""What helps where columns have no names."""


class HeaderRows(NamedTuple):
    """The rows of a file that hold the names of columns; 1 is its first."""

    first: int
    last: int


def parse_header_rows(header_row: int | str) -> HeaderRows:
    """From what the user says: 3, "3" or "2-3"."""
    ends = re.fullmatch(r"\s*(\d{1,9})\s*(?:-\s*(\d{1,9})\s*)?", str(header_row), re.ASCII)
    if ends is not None:
        rows = HeaderRows(int(ends[1]), int(ends[2] or ends[1]))
        if 1 <= rows.first <= rows.last < rows.first + MOST_HEADER_ROWS:
            return rows
    wanted = "the number of a row, such as 3, or a range of rows, such as 2-3"
    raise TableError(f"header row {header_row!r} must be {wanted}.")


def count_titles(rows: Iterable[Sequence[str]]) -> int:
    """How many of the first rows are titles: they hold text in their first cell only, and names of columns follow."""
    for n_titles, row in enumerate(rows):
        filled = [cell.strip() for cell in row if cell.strip()]
        if len(filled) > 1:
            return n_titles if n_titles and _are_names(filled) else 0
        if not filled or not row[0].strip():
            return 0
    return 0


def _are_names(cells: list[str]) -> bool:
    numbers = pd.to_numeric(pd.Series(cells, dtype=object), errors="coerce")
    return len(set(cells)) == len(cells) and bool(numbers.isna().all())


def note_on_titles(n_titles: int, first: str) -> Note:
    """What to say of rows that are skipped."""
    rows = "the first row" if n_titles == 1 else f"the first {n_titles} rows"
    verb = "is a title" if n_titles == 1 else "are titles"
    return Note(f"{rows} ({first}) {verb} and skipped", Remedy("header row", "if that is wrong"))


def join_names(rows: Sequence[Sequence[str]]) -> list[str]:
    """One name for each column from headers of several rows: "Emotion" above "joy" and "fear" is "Emotion joy", ...

    What stands above several columns stands in the first of them only, with nothing in the others.
    """
    width = max(map(len, rows))
    names: list[list[str]] = [[] for _ in range(width)]
    for i, row in enumerate(rows):
        above = ""
        for j, cell in enumerate([*row, *[""] * (width - len(row))]):
            below = any(j < len(other) and other[j].strip() for other in rows[i + 1 :])
            if cell.strip():
                names[j].append(cell.strip())
                # A name with nothing below it is that of its own column, whatever stands beside it.
                above = cell.strip() if below else ""
            elif above and below:
                names[j].append(above)
    return [" ".join(parts) for parts in names]
