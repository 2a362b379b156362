"""Plots of a fitted recoverer and of its choice of parameters, on axes of the caller's or on new ones."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from hidldl.arrays import FloatArray
from hidldl.base import Recoverer
from hidldl.notebook import rows_that_lost_most, short_text
from hidldl.reports.figures import (
    HIDDEN_COLOR,
    MUTED_COLOR,
    RECOVERED_COLOR,
    TRUE_COLOR,
    draw_side_by_side,
    legend_on_top,
    new_figure,
    plain,
    tidy,
)
from hidldl.selection import Selection

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROWS_NAMED = 3
LARGEST_LINEAR_RATIO = 30
"""Values of a parameter that span more than this are shown on a logarithmic axis."""


def plot_recovery(model: Recoverer, row: Any, *, ax: "Axes | None" = None, level: float | None = 0.9) -> "Axes":
    """One row as it was handed in and as it was recovered, label by label.

    What was recovered for a hidden label is hatched; a question mark stands where nothing was handed in.

    Parameters
    ----------
    model : Recoverer
        Fitted.
    row : label or int
        A row of ``fit``: by the index of ``D_obs`` where that was a DataFrame, else by position.
    ax : Axes, optional
        Where to draw; a new pyplot figure by default.
    level : float or None, default=0.9
        Level of the intervals, from models that have them (BayesHidLDL); None for none.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from hidldl import MeanFill, hide_labels, make_distributions, plot_recovery
    >>> data = make_distributions(n_rows=50, n_labels=4, random_state=0)
    >>> D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=0)
    >>> model = MeanFill().fit(data.features, D_obs, observed=observed)
    >>> ax = plot_recovery(model, 3, ax=Figure().subplots())
    >>> len(ax.patches)  # two bars per label
    8
    """
    _check_recoverer(model)
    position = _position(model, row)
    observed, recovered = (np.asarray(part)[position] for part in (model.observed_, model.distributions_))
    interval = None if level is None else model._interval(position, level)
    ax = _axes(ax, width=float(np.clip(2.5 + 0.2 * len(observed), 6, 14)))
    names = range(len(observed)) if model.label_names_ is None else list(model.label_names_)
    series = {"handed in": model._handed_in(position), "recovered": recovered}
    shifts = draw_side_by_side(ax, series, observed, names)
    if interval is not None and level is not None:
        middles = np.arange(len(observed)) + shifts["recovered"]
        ax.vlines(middles, *interval, color=TRUE_COLOR, lw=1.2, label=f"{100 * level:.4g}% interval")
    hidden = "nothing hidden" if observed.all() else f"hidden labels hold {recovered[~observed].sum():.0%}"
    ax.set_title(f"{_row_name(row)}: {hidden}")
    ax.set_ylabel("share")
    legend_on_top(ax)
    return ax


def plot_hidden_mass(model: Recoverer, *, ax: "Axes | None" = None) -> "Axes":
    """How much of each row the hidden labels hold: a histogram, its mean, and the rows that lost most by name.

    Parameters
    ----------
    model : Recoverer
        Fitted.
    ax : Axes, optional
        Where to draw; a new pyplot figure by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from hidldl import MeanFill, hide_labels, make_distributions, plot_hidden_mass
    >>> data = make_distributions(n_rows=50, n_labels=4, random_state=0)
    >>> D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=0)
    >>> model = MeanFill().fit(data.features, D_obs, observed=observed)
    >>> ax = plot_hidden_mass(model, ax=Figure().subplots())
    >>> int(sum(bar.get_height() for bar in ax.patches))  # every row is in some bar
    50
    """
    _check_recoverer(model)
    mass = np.asarray(model.hidden_mass_, dtype=np.float64)
    ax = _axes(ax)
    n_bins = int(np.clip(np.sqrt(len(mass)), 5, 40))
    counts, *_ = ax.hist(mass, n_bins, range=(0, max(mass.max(), 0.05)), color=RECOVERED_COLOR)
    ax.vlines(mass.mean(), 0, np.max(counts), color=TRUE_COLOR, ls="--", label=f"mean {mass.mean():.3f}")
    most = rows_that_lost_most(model.hidden_mass_, ROWS_NAMED)
    if len(most):
        names = "\n".join(f"{_row_name(name)} {value:.3f}" for name, value in most.items())
        marks = ax.plot(most, np.zeros(len(most)), "^", color=HIDDEN_COLOR, clip_on=False, zorder=3)
        marks[0].set_label(f"lost most: {names}")
    ax.set(xlabel="share of the row that its hidden labels hold", ylabel="rows")
    legend_on_top(ax)
    tidy(ax)
    return ax


def plot_path(selection: Selection, *, ax: "Axes | None" = None, parameter: str | None = None) -> "Axes":
    """The loss of each value of a parameter when labels are hidden again, beyond the loss of the choice.

    The line joins candidates that differ from the choice in this parameter only; dots are the others. Bars are standard
    errors of the difference over rows.

    Parameters
    ----------
    selection : Selection
        ``selection_`` of a BayesHidLDL, SelfTuned or ``HidLDL(alpha="auto")``.
    ax : Axes, optional
        Where to draw; a new pyplot figure by default.
    parameter : str, optional
        Name of the parameter; the first of which more than one value was tried by default.

    Returns
    -------
    Axes

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from hidldl import HidLDL, hide_labels, make_distributions, plot_path
    >>> data = make_distributions(n_rows=100, n_labels=4, random_state=0)
    >>> D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=0)
    >>> model = HidLDL(alpha="auto", random_state=0).fit(data.features, D_obs, observed=observed)
    >>> ax = plot_path(model.selection_, ax=Figure().subplots())
    >>> ax.get_xlabel(), ax.get_xscale()
    ('alpha', 'log')
    """
    parameter = _check_parameter(selection, parameter)
    ax = _axes(ax)
    place = _places(ax, selection, parameter)
    path, table = selection.path(parameter), selection.candidates
    differ = np.any([~selection.is_chosen(name) for name in selection.parameters if name != parameter], axis=0)
    elsewhere, diverged = table[differ & ~selection.diverged], table[selection.diverged]
    choice = path[path["chosen"]]
    ax.axhline(0, color=MUTED_COLOR, ls=":")
    x = place(path[parameter])
    ax.errorbar(x, path["excess"], path["standard_error"], color=RECOVERED_COLOR, marker="o", ms=4, capsize=2)
    if len(choice):
        label = f"chosen: {plain(short_text(selection.chosen[parameter]))}"
        ax.plot(place(choice[parameter]), choice["excess"], "D", color=HIDDEN_COLOR, ms=8, zorder=3, label=label)
    if len(elsewhere):
        label = "other parameters differ too"
        ax.plot(place(elsewhere[parameter]), elsewhere["excess"], ".", color=MUTED_COLOR, label=label)
    if len(diverged):
        x, top = place(diverged[parameter]), ax.get_xaxis_transform()
        ax.plot(x, np.ones(len(x)), "x", color=TRUE_COLOR, label="diverged", transform=top)
    ax.set(xlabel=plain(parameter), ylabel=f"mean {selection.measure} beyond that of the choice")
    ax.legend(frameon=False)
    tidy(ax)
    return ax


def _axes(ax: "Axes | None", width: float = 6) -> "Axes":
    # New axes belong to pyplot, so that notebooks show them; pyplot needs no display to draw.
    return new_figure(width, 4, shown=True).subplots() if ax is None else ax


def _check_recoverer(model: Any) -> None:
    if not isinstance(model, Recoverer):
        raise TypeError(f"model must be a fitted recoverer, such as HidLDL, got {model!r}.")
    check_is_fitted(model)


def _position(model: Recoverer, row: Any) -> int:
    """The position of a row of ``fit``."""
    index = model.distributions_.index if isinstance(model.distributions_, pd.DataFrame) else None
    n_rows = len(model.distributions_)
    try:
        position = range(n_rows)[row] if index is None else index.get_loc(row)
    except (KeyError, IndexError, TypeError, pd.errors.InvalidIndexError) as error:
        first = "" if index is None else repr(index[:1].tolist()[0])
        rows = f"a position from 0 to {n_rows - 1}" if index is None else f"a name from D_obs's index, such as {first}"
        raise ValueError(f"row {row!r} is none of the {n_rows} rows of fit; give {rows}.") from error
    if not isinstance(position, int | np.integer):
        raise ValueError(f"row {row!r} stands for several rows; fit with an index in which every row has its own name.")
    return int(position)


def _row_name(row: Any) -> str:
    return f"row {row}" if isinstance(row, int | np.integer) else f"“{plain(row)}”"


def _check_parameter(selection: Any, parameter: str | None) -> str:
    """The parameter along which to plot."""
    if not isinstance(selection, Selection):
        hint = "; it is None where every parameter was given" if selection is None else ""
        raise TypeError(f"selection must be a Selection, such as a model's selection_, got {selection!r}{hint}.")
    names = selection.parameters
    if parameter is None:
        return next((name for name in names if len(selection.values(name)) > 1), names[0])
    if parameter not in names:
        raise ValueError(f"parameter must be one of {', '.join(map(repr, names))}, got {parameter!r}.")
    return parameter


def _places(ax: "Axes", selection: Selection, parameter: str) -> Callable[[Iterable[Any]], FloatArray]:
    """Fit the horizontal axis to a parameter's values, and return the function that places values on it."""
    values = selection.values(parameter)
    if not selection.is_numeric(parameter):
        words = list(dict.fromkeys(plain(short_text(value)) for value in values))
        ax.set_xticks(range(len(words)), words)
        ax.set_xlim(-0.5, len(words) - 0.5)
        return lambda some: np.array([words.index(plain(short_text(value))) for value in some], dtype=np.float64)
    smallest, largest = values[0], values[-1]
    smallest_positive = next((value for value in values if value > 0), largest)
    if smallest >= 0 and largest > LARGEST_LINEAR_RATIO * smallest_positive:
        # Zero lies one step below the smallest positive value.
        ax.set_xscale("log") if smallest > 0 else ax.set_xscale("symlog", linthresh=smallest_positive)
    return lambda some: np.array(list(some), dtype=np.float64)
