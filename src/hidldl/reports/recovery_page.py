"""The page about one recovery: how much was hidden, which labels, which rows, and how that is known."""

import csv
import io
import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

import numpy as np

from hidldl.arrays import FloatArray
from hidldl.reports.label_map import FLOOR, label_map
from hidldl.reports.page import load_template
from hidldl.reports.pairs import MOST_IN_HEAT_MAP, hidden_together
from hidldl.reports.reannotation import Reannotation
from hidldl.reports.summary import SampledRows, Summary
from hidldl.reports.svg import Scale, curve, histogram, label_scatter, lines
from hidldl.selection import Selection

MOST_IN_LIST = 200
"""Rows to annotate again on the page, and MOST_WITHOUT of those without any label; a file holds longer lists."""
MOST_WITHOUT = 40
MOST_QUESTIONS = 6
"""Labels to ask for in a row of the page."""
MOST_GROUPS = 50
MOST_NUMBERS = 120_000
"""Numbers behind the row picker: few enough to keep the page well below 1 MB."""
IN_TABLE_ORDER = 12
"""Up to that many labels keep their order, which may mean something; more are sorted by what they lost."""
MOST_CANDIDATES = 40
VISIBLE = {c: 0x2400 + c for c in range(32)} | {127: 0x2421} | dict.fromkeys(range(128, 160), 0xFFFD)
"""Visible characters in place of control characters, which HTML forbids."""


@dataclass(frozen=True)
class Facts:
    """How a table was recovered: what the page says beside the numbers.

    ``notes`` are the guesses and decisions; ``level`` is that of the intervals, if there are any; ``kinds`` says what
    is special about each kind of rows, if there is more than one; ``rates`` are how often each label is overlooked and
    the standard errors of that, where nobody knew which zeros are hidden.
    """

    source: str
    method: str
    parameters: Mapping[str, Any]
    seconds: float
    command: str
    notes: Sequence[str] = ()
    level: float | None = None
    kinds: Sequence[str] = ()
    rates: Sequence[tuple[float, float]] | None = None
    selection: Selection | None = None
    history: Mapping[str, FloatArray] | None = field(default=None)
    converged: bool | None = None


def recovery_page(summary: Summary, facts: Facts) -> str:
    """The page as HTML that needs nothing from elsewhere.

    Examples
    --------
    >>> from hidldl.reports.recovery_page import Facts, recovery_page
    >>> from hidldl.reports.summary import Summarizer
    >>> summarizer = Summarizer(["joy", "fear", "anger"])
    >>> summarizer.add(["face 1"], [[0.6, 0.4, 0]], [[True, True, False]], [[0.3, 0.2, 0.5]])
    >>> page = recovery_page(summarizer.finish(), Facts("faces.csv", "MeanFill", {}, 0.1, "hidldl recover faces.csv"))
    >>> "hold 50.0\\u00a0% of the row" in page
    True
    """
    labels = [printable(name) for name in summary.label_names]
    digits = 1 if len(labels) <= MOST_IN_HEAT_MAP else 2

    def percent(share: float, places: int = digits) -> str:
        return f"{100 * share:.{places}f}\u00a0%"

    n_rows = max(1, MOST_NUMBERS // (len(labels) * (2 if summary.rows.low is None else 4)))
    picker_rows = summary.rows.fewer(n_rows, 4 * n_rows // 5)
    again = _again(summary.reannotation, set(picker_rows.numbers.tolist()))
    return str(
        load_template("recovery.html.j2").render(
            percent=percent,
            digits=digits,
            source=printable(facts.source),
            method=printable(facts.method),
            level=facts.level if summary.rows.low is not None else None,
            n_rows=summary.n_rows,
            labels=labels,
            mass=float(summary.hidden_mass.sum()),
            overall=_overall(summary),
            label_rows=_label_rows(summary, labels, facts.rates),
            overlooked=None if facts.rates is None else float(np.mean([rate for rate, _ in facts.rates])),
            # Zeros that may be true say little about what is overlooked together.
            together=hidden_together(summary, labels) if facts.rates is None else None,
            again=again,
            groups=_groups(summary.reannotation),
            picker=_picker(picker_rows, labels, digits)
            | {"n_rows": summary.n_rows, "first": _first(picker_rows)}
            | {"kinds": [printable(kind) for kind in facts.kinds]},
            skewed=_skewed(summary.rows),
            map=_map(summary, labels),
            selection=None if facts.selection is None else _selection(facts.selection),
            convergence=_convergence(facts),
            run=_run(facts),
        )
    )


def printable(text: object) -> str:
    """The text with visible characters in place of those that HTML forbids."""
    return str(text).translate(VISIBLE).encode("utf-8", "replace").decode("utf-8")


def _overall(summary: Summary) -> dict[str, Any]:
    n, m = summary.n_rows, len(summary.label_names)
    mass = float(summary.hidden_mass.sum())
    n_half = int(summary.mass_histogram[len(summary.mass_histogram) // 2 :].sum())
    description = f"Histogram of the hidden mass of {n:,} rows: mean {mass:.0%}, {n_half:,} rows lost half or more."
    return {
        "hidden_entries": int(summary.hidden_counts.sum()) / (n * m),
        "n_seen": n * m - int(summary.hidden_counts.sum()),
        "n_complete": summary.n_complete,
        "n_half": n_half,
        "histogram": histogram(summary.mass_histogram, mass, description) if n > 1 and mass > 0 else None,
        "half_width": _typical_half_width(summary.rows),
    }


def _typical_half_width(rows: SampledRows) -> float | None:
    """Half the median width of the intervals of hidden labels, in the uniform sample of rows."""
    if rows.low is None or rows.high is None:
        return None
    widths = (rows.high - rows.low)[~rows.observed & rows.in_sample[:, None]]
    return float(np.median(widths)) / 2 if len(widths) else None


def _label_rows(
    summary: Summary, labels: Sequence[str], rates: Sequence[tuple[float, float]] | None
) -> list[dict[str, Any]]:
    """One row per label, none if nothing was hidden."""
    if not summary.hidden_counts.any():
        return []
    sorted_by_loss = np.argsort(-summary.hidden_mass, kind="stable")
    order = np.arange(len(labels)) if len(labels) <= IN_TABLE_ORDER else sorted_by_loss
    highest = max(summary.mean_handed_in.max(), summary.mean_recovered.max())
    return [
        {
            "name": labels[j],
            "hidden": summary.hidden_counts[j] / summary.n_rows,
            "rate": None if rates is None else rates[j],
            "mass": summary.hidden_mass[j],
            "mean_when_hidden": None if np.isnan(summary.mean_when_hidden[j]) else summary.mean_when_hidden[j],
            "handed_in": summary.mean_handed_in[j],
            "recovered": summary.mean_recovered[j],
            "handed_in_width": 100 * summary.mean_handed_in[j] / highest,
            "recovered_width": 100 * summary.mean_recovered[j] / highest,
        }
        for j in order
    ]


def _again(reannotation: Reannotation, in_picker: set[int]) -> dict[str, Any]:
    """The list of rows to annotate again: what is shown, and the same rows as lines of a CSV file."""
    ranked = reannotation.rows["labels_seen"] > 0
    at = [*np.flatnonzero(ranked)[:MOST_IN_LIST], *np.flatnonzero(~ranked)[:MOST_WITHOUT]]
    rows = [_row_again(row, reannotation, in_picker) for row in reannotation.rows.iloc[at].to_dict("records")]
    frame = reannotation.frame().iloc[at]
    return {
        "ranked": [row for row in rows if row["labels_seen"]],
        "without": [row for row in rows if not row["labels_seen"]],
        "n_candidates": reannotation.n_candidates,
        "n_without": reannotation.n_without_labels,
        "threshold": reannotation.options.threshold,
        "has_intervals": reannotation.has_intervals,
        "group_name": printable(reannotation.options.group_name) if reannotation.by_group is not None else None,
        "file": {"header": _csv_line(frame.columns), "lines": [_csv_line(row) for row in frame.to_numpy().tolist()]},
    }


def _row_again(row: Mapping[Any, Any], reannotation: Reannotation, in_picker: set[int]) -> dict[str, Any]:
    places = [k for k in reannotation.places if row[f"label_{k}"] != ""]
    return {
        "name": printable(row["name"]),
        "group": printable(row.get("group", "")),
        "questions": [
            {"name": printable(row[f"label_{k}"])} | {key: row[f"{key}_{k}"] for key in ("share", "low", "high")}
            for k in places[:MOST_QUESTIONS]
        ],
        "n_more": len(reannotation.label_names) - row["labels_seen"] - len(places[:MOST_QUESTIONS]),
        "in_picker": row["number"] in in_picker,
    } | {key: row[key] for key in ("number", "hidden_mass", "uncertainty", "labels_seen")}


def _csv_line(values: Iterable[Any]) -> str:
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_NONNUMERIC).writerow(values)
    return line.getvalue()


def _groups(reannotation: Reannotation) -> dict[str, Any] | None:
    if reannotation.by_group is None:
        return None
    rows = reannotation.by_group[:MOST_GROUPS].to_dict("records")
    return {
        "rows": [row | {"group": printable(row["group"])} for row in rows],
        "n": len(reannotation.by_group),
    }


def _first(rows: SampledRows) -> int:
    """The number of the row that the picker shows first."""
    return int(rows.numbers[rows.to_annotate(1)[0]])


def _picker(rows: SampledRows, labels: Sequence[str], digits: int) -> dict[str, Any]:
    """The rows for the script: percentages without their decimal point; null where a label was hidden."""

    def units(shares: FloatArray, digits: int = digits) -> list[Any]:
        return list(np.rint(np.clip(shares, 0, 1) * 10 ** (digits + 2)).astype(int).tolist())

    columns = [rows.numbers.tolist(), [printable(name) for name in rows.names], units(rows.hidden_mass, 1)]
    handed_in = np.where(rows.observed, rows.D_obs, 0)
    columns.append(
        [
            [value if seen else None for value, seen in zip(*row, strict=True)]
            for row in zip(units(handed_in), rows.observed.tolist(), strict=True)
        ]
    )
    columns.append(units(rows.distributions))
    columns.append([None] * len(rows) if rows.kinds is None else _likely_kinds(rows.kinds))
    columns.append([None] * len(rows) if rows.hidden is None else units(rows.hidden, 0))
    if rows.low is not None and rows.high is not None:
        columns += [units(rows.low), units(rows.high)]
    return {"labels": list(labels), "digits": digits, "rows": [list(row) for row in zip(*columns, strict=True)]}


def _likely_kinds(kinds: FloatArray) -> list[Any]:
    """Each row's most likely kind, counted from 1, and how likely it is in percent."""
    best = kinds.argmax(axis=1)
    percent = np.rint(100 * kinds[np.arange(len(kinds)), best]).astype(int)
    return [list(pair) for pair in zip((best + 1).tolist(), percent.tolist(), strict=True)]


def _skewed(rows: SampledRows) -> bool:
    """Whether some recovered share lies outside its interval, by more than the rounding on the page."""
    if rows.low is None or rows.high is None:
        return False
    beyond = np.maximum(rows.low - rows.distributions, rows.distributions - rows.high)
    return bool((beyond > 0.001).any())


def _map(summary: Summary, labels: Sequence[str]) -> dict[str, Any] | None:
    sample = summary.rows.distributions[summary.rows.in_sample]
    places = label_map(sample)
    if places is None:
        return None
    description = f"Map of {len(labels)} labels by the two main directions in which their proportions vary."
    return {
        "svg": label_scatter(places.positions, labels, description),
        "explained": sum(places.explained),
        "n_rows": len(sample),
        "floor": FLOOR / len(labels),
    }


def _selection(selection: Selection) -> dict[str, Any]:
    table = selection.candidates
    charts = [_parameter_chart(selection, name) for name in selection.parameters]
    # The choice is in the table even where it is not among the best.
    in_table = (np.arange(len(table)) < MOST_CANDIDATES) | selection.is_choice
    return {
        "confidence": selection.confidence,
        "n_rows": selection.n_rows,
        "measure": selection.measure,
        "n_candidates": len(table),
        "most_candidates": MOST_CANDIDATES,
        "n_diverged": int(selection.diverged.sum()),
        "chosen": [(printable(name), printable(_plain(value))) for name, value in selection.chosen.items()],
        "charts": [chart for chart in charts if chart is not None],
        "names": [printable(name) for name in selection.parameters],
        "candidates": [
            {
                "values": [printable(_plain(row[name])) for name in selection.parameters],
                "loss": "diverged" if row["diverged"] else f"{row['loss']:.5g}",
                "excess": "chosen" if row["chosen"] else "" if row["diverged"] else _with_error(row),
                "chosen": row["chosen"],
            }
            for row in table.assign(chosen=selection.is_choice, diverged=selection.diverged)[in_table].to_dict(
                "records"
            )
        ],
    }


def _with_error(row: Mapping[Any, Any]) -> str:
    return f"{row['excess']:+.2g} ± {row['standard_error']:.2g}".replace("-", "−")


def _parameter_chart(selection: Selection, name: str) -> dict[str, Any] | None:
    """The excess loss along one parameter; None where no other value can be compared with the chosen one."""
    path = selection.path(name)
    if len(path) < 2 or not path["chosen"].any():
        return None
    chosen = int(path["chosen"].argmax())
    ticks = [printable(_plain(value)) for value in path[name]]
    description = f"Excess loss for {len(path)} values of {printable(name)}; {ticks[chosen]} was chosen."
    positions = _spread(list(path[name]), selection.is_numeric(name))
    excess, error = path["excess"].to_numpy(), path["standard_error"].to_numpy()
    return {"name": printable(name), "svg": curve(positions, excess, error, ticks, chosen, description)}


def _spread(values: Sequence[Any], numeric: bool) -> list[float]:
    """Positions on the axis: by logarithm where values span decades, evenly where they are no numbers."""
    numbers = np.array(values if numeric else range(len(values)), float)
    log = bool(numeric and numbers.min() > 0 and numbers.max() >= 8 * numbers.min())
    scale = Scale.over(numbers, log=log, margin=0.08 if numeric else 0.5)
    return [scale.at(number) for number in numbers]


def _convergence(facts: Facts) -> dict[str, Any] | None:
    """Positive series share a chart with a logarithmic scale; any other has its own."""
    series = {printable(name): np.asarray(values, float) for name, values in (facts.history or {}).items()}
    series = {name: values for name, values in series.items() if len(values) > 1 and np.isfinite(values).all()}
    if not series:
        return None
    positive = {name: values for name, values in series.items() if values.min() > 0}
    groups = [positive] if positive else []
    groups += [{name: values} for name, values in series.items() if name not in positive]
    return {
        "charts": [
            {
                "names": list(group),
                "svg": lines(group, f"{' and '.join(group)} over iterations", log=group is positive),
                "ends": [f"{values[-1]:.3g}".replace("-", "−") for values in group.values()],
            }
            for group in groups
        ],
        "n_iter": max(len(values) for values in series.values()),
        "converged": facts.converged,
    }


def _run(facts: Facts) -> dict[str, Any]:
    return {
        "command": printable(facts.command),
        "parameters": [(printable(name), printable(_plain(value))) for name, value in facts.parameters.items()],
        "notes": [printable(note) for note in facts.notes],
        "seconds": f"{facts.seconds:.1f} seconds" if facts.seconds < 120 else f"{facts.seconds / 60:.0f} minutes",
        "versions": [("Python", platform.python_version())]
        + [(name, version(name)) for name in ("hidldl", "numpy", "scipy", "scikit-learn")],
    }


def _plain(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float | np.floating) else str(value)
