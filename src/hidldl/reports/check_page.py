"""The page about a check: how a table is understood, what is wrong with it, and whether a run would succeed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from hidldl.reports.page import load_template
from hidldl.reports.recovery_page import printable

MOST_BAD_ROWS = 20_000
"""Rows on the page: few enough for a browser."""


@dataclass(frozen=True)
class CheckFacts:
    """What a check found, in words.

    ``columns`` are the names of the columns by what they are for, ``left_out`` those that are for nothing with the
    reason for each; ``bad_rows`` has the columns ``row``, ``name`` and ``reason``.
    """

    source: str
    n_rows: int
    would_succeed: bool
    command: str
    problems: Sequence[str] = ()
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    left_out: Sequence[tuple[str, str]] = ()
    bad_rows: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=["row", "name", "reason"]))


def check_page(facts: CheckFacts) -> str:
    """The page as HTML that needs nothing from elsewhere.

    Examples
    --------
    >>> from hidldl.reports.check_page import CheckFacts, check_page
    >>> page = check_page(CheckFacts("faces.csv", 60, True, "hidldl recover faces.csv --check"))
    >>> "A run would succeed" in page
    True
    """
    shown = facts.bad_rows.head(MOST_BAD_ROWS)
    return str(
        load_template("check.html.j2").render(
            source=printable(facts.source),
            n_rows=facts.n_rows,
            would_succeed=facts.would_succeed,
            command=printable(facts.command),
            problems=[printable(problem) for problem in facts.problems],
            warnings=[printable(warning) for warning in facts.warnings],
            notes=[printable(note) for note in facts.notes],
            columns={title: [printable(name) for name in names] for title, names in facts.columns.items()},
            left_out=[(printable(name), printable(why)) for name, why in facts.left_out],
            n_bad=len(facts.bad_rows),
            has_names=bool((shown["row"].astype(str) != shown["name"].astype(str)).any()),
            bad_rows=[tuple(map(printable, row)) for row in shown[["row", "name", "reason"]].to_numpy().tolist()],
        )
    )
