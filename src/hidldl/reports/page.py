"""One self-contained HTML page with comparisons and figures."""

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hidldl.reports.comparison import Comparison, summary
from hidldl.reports.figures import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LARGEST_SHADE = 0.2
"""A difference from the paper of this share has the full colour."""


@dataclass(frozen=True)
class Section:
    """A section of the page: a heading, a comparison, figures with captions, or both."""

    title: str
    comparison: Comparison | None = None
    figures: Sequence[tuple["Figure", str]] = field(default=())


def render_page(title: str, introduction: str, sections: Sequence[Section], commands: str, provenance: str) -> str:
    """The page as HTML that needs nothing from elsewhere."""
    return load_template("results.html.j2").render(
        title=title,
        introduction=introduction,
        sections=[_section(section) for section in sections],
        commands=commands,
        provenance=provenance,
    )


def load_template(name: str) -> Any:
    """A template of this package, which escapes what is put into it; says which extra to install."""
    try:
        import jinja2  # noqa: F401
    except ImportError as error:
        raise ImportError("The page needs jinja2; install it with pip install 'hidldl[report]'.") from error
    return _environment().get_template(name)


@cache
def _environment() -> Any:
    """Made once, since it keeps what it compiles: a template takes longer to compile than to fill in."""
    from jinja2 import Environment, PackageLoader

    environment = Environment(
        loader=PackageLoader("hidldl.reports"), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return environment


def check_report_extra() -> None:
    """Raise the error that names the extra to install before long work, not after it."""
    render_page("", "", [], "", "")
    new_figure(1, 1)


def svg(figure: "Figure") -> str:
    """The figure as an SVG element."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg")
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def _section(section: Section) -> dict[str, Any]:
    drawn = [{"svg": svg(figure), "caption": caption} for figure, caption in section.figures]
    if section.comparison is None:
        return {"title": section.title, "figures": drawn}
    comparison = section.comparison
    return {
        "title": section.title,
        "comparison": comparison,
        "methods": list(comparison.means.columns),
        "rows": [
            {"dataset": dataset, "cells": [_cell(comparison, dataset, method) for method in comparison.means.columns]}
            for dataset in comparison.means.index
        ],
        "ranks": [f"{rank:.2f}" for rank in comparison.ranks],
        "summary": summary(comparison),
        "figures": drawn,
    }


def _cell(comparison: Comparison, dataset: Any, method: Any) -> dict[str, str]:
    mean, paper = comparison.means.loc[dataset, method], comparison.paper.loc[dataset, method]
    if pd.isna(mean):
        return {"mean": "failed", "std": "", "place": "", "dot": "", "paper": ""}
    place = {1: "best", 2: "second"}.get(int(comparison.places().loc[dataset, method]), "")
    dot = {"better": " •", "worse": " ◦", "": ""}[comparison.verdicts.loc[dataset, method]]
    cell = {"mean": f"{mean:.4f}", "std": comparison.spread(dataset, method), "place": place, "dot": dot}
    if pd.isna(paper):
        return {**cell, "paper": ""}
    ratio = mean / paper
    gain = (ratio - 1) * (1 if comparison.measure.higher_is_better else -1)
    return {
        **cell,
        "paper": f"{paper:.4f}",
        "ratio": f"{ratio - 1:+.1%}".replace("-0.0%", "+0.0%"),
        "color": _shade(gain),
    }


def _shade(gain: float) -> str:
    """Blue where ours is better than the paper's number, orange where it is worse, paler the nearer they are."""
    strength = float(np.clip(abs(gain) / LARGEST_SHADE, 0, 1))
    full = np.array([86, 180, 233]) if gain > 0 else np.array([230, 159, 0])
    red, green, blue = (255 + strength * (full - 255)).round().astype(int)
    return f"rgb({red}, {green}, {blue})"
