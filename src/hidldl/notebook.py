"""How results show in a notebook: a few facts and a small table, as HTML that takes its colours from the page."""

from collections.abc import Iterable, Iterator
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from hidldl.arrays import is_dask

if TYPE_CHECKING:
    from hidldl.base import Recoverer
    from hidldl.selection import Selection

ROWS_NAMED = 5
CANDIDATES_SHOWN = 10


def result_html(model: "Recoverer") -> str:
    """A fitted recoverer: the size of its table, its convergence, and the rows that lost most."""
    masses = rows_that_lost_most(model.hidden_mass_, ROWS_NAMED)
    rows = pd.DataFrame({"row that lost most": list(map(str, masses.index)), "hidden mass": masses.to_numpy()})
    return _block(_facts(_facts_about(model)) + (_table(rows) if len(rows) else ""))


def selection_html(selection: "Selection") -> str:
    """The candidates, best first, and which of them is the choice."""
    cells = selection.candidates.astype(object)
    cells.loc[selection.diverged, ["loss", "excess", "standard_error"]] = ["diverged", "", ""]
    cells = cells.rename(columns={"standard_error": "standard error"}).assign(choice="")
    cells.loc[selection.is_choice, "choice"] = "chosen"
    # The choice is shown even where it is not among the best.
    cells = cells[(np.arange(len(cells)) < CANDIDATES_SHOWN) | selection.is_choice]
    facts = [
        ("chosen", chosen_with_confidence(selection)),
        ("loss", f"mean {selection.measure} over {selection.n_rows:,} rows with a label hidden again"),
    ]
    n_more = len(selection.candidates) - len(cells)
    more = f"<div>… and {n_more} more in <code>candidates</code></div>" if n_more else ""
    return _block(_facts(facts) + _table(cells) + more)


def chosen_with_confidence(selection: "Selection") -> str:
    """The chosen parameters in words, and how sure they are."""
    chosen = ", ".join(f"{name} = {short_text(value)}" for name, value in selection.chosen.items())
    return f"{chosen}; unbeaten in {selection.confidence:.0%} of resamples"


def rows_that_lost_most(hidden_mass: Any, n_rows: int) -> "pd.Series[float]":
    """The largest hidden masses above 0, by row."""
    mass = pd.Series(hidden_mass)
    return mass[mass > 0].nlargest(n_rows)


def _facts_about(model: Any) -> Iterator[tuple[str, str]]:
    observed = np.asarray(model.observed_)
    yield "rows × labels", f"{observed.shape[0]:,} × {observed.shape[1]:,}"
    yield "hidden", f"{1 - observed.mean():.1%} of all shares"
    yield "hidden mass", f"{np.mean(model.hidden_mass_):.3f} of a row on average"
    if hasattr(model, "converged_"):
        rounds = f"{model.n_iter_:,} iteration{'s' if model.n_iter_ != 1 else ''}"
        yield "converged", f"yes, in {rounds}" if model.converged_ else f"no, stopped after {rounds}"
    if getattr(model, "selection_", None) is not None:
        yield "chosen", chosen_with_confidence(model.selection_)


def _block(content: str) -> str:
    return f'<div style="font-size: small; margin: 0.5em 0">{content}</div>'


def _facts(facts: Iterable[tuple[str, str]]) -> str:
    lines = (f"<div><b>{escape(name)}</b>: {escape(value)}</div>" for name, value in facts)
    return "".join(lines)


def _table(cells: pd.DataFrame) -> str:
    html = cells.map(short_text).to_html(index=False, border=0, col_space="6em")
    return f'<div style="text-align: right; width: fit-content">{html}</div>'


def short_text(value: Any) -> str:
    """A value of a cell, numbers to four digits."""
    return f"{value:.4g}" if isinstance(value, float | np.floating) else str(value)


class ResultDisplay:
    """Shows what a fitted recoverer recovered, below scikit-learn's diagram of it."""

    # scikit-learn makes its diagram in one of two ways. Where it is set to show text, there is no HTML to add to.
    def _repr_html_inner(self) -> str:
        return str(super()._repr_html_inner()) + self._result_html()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._result_html()
        return bundle

    def _result_html(self) -> str:
        model: Any = self
        is_here = model.__sklearn_is_fitted__() and not is_dask(getattr(model, "distributions_", None))
        return result_html(model) if is_here else ""

    def _get_fitted_attr_html(self, doc_link: str = "") -> dict[str, Any]:
        # scikit-learn's own list reads every property, and so would train learner_ and calibrate spread_.
        return {}
