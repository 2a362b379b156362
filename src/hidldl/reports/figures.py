"""Figures, built as matplotlib Figures that nobody has to show; legible in print and for the colour-blind."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hidldl.validation import BoolArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# From the palette of Okabe and Ito.
TRUE_COLOR, HANDED_IN_COLOR, RECOVERED_COLOR = "#000000", "#E69F00", "#0072B2"
HIDDEN_COLOR, MUTED_COLOR = "#D55E00", "#999999"


def new_figure(width: float, height: float) -> "Figure":
    """An empty figure of that size in inches; says which extra to install where matplotlib is absent."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Figures need matplotlib; install it with pip install 'hidldl[plot]'.") from error
    return Figure(figsize=(width, height), layout="constrained")


def problem_figure(
    true: FloatArray, observed: BoolArray, recovered: FloatArray, label_names: Sequence[str], title: str
) -> "Figure":
    """One row four times: true, as IncomLDL pretends, as handed in, and as recovered."""
    incomplete = np.where(observed, true, 0)
    handed_in = incomplete / incomplete.sum()
    panels = (
        ("The true row", true, TRUE_COLOR),
        ("IncomLDL pretends:\ngaps, the rest unchanged", incomplete, MUTED_COLOR),
        ("What annotators hand in:\nthe rest inflates to 1", handed_in, HANDED_IN_COLOR),
        ("What hidldl recovers", recovered, RECOVERED_COLOR),
    )
    figure = new_figure(12, 3.2)
    axes = figure.subplots(1, len(panels), sharey=True)
    top = 1.22 * max(values.max() for _, values, _ in panels)
    for ax, (heading, values, color) in zip(axes, panels, strict=True):
        shows_gaps = values is incomplete or values is handed_in
        _draw_row(ax, values, label_names, color)
        if shows_gaps:
            _mark_hidden(ax, observed)
        if values is recovered:
            ax.step(np.arange(len(true)), true, where="mid", color=TRUE_COLOR, lw=1, ls=":", label="true row")
            ax.legend(loc="upper right", frameon=False, fontsize=8)
        ax.set_title(heading, fontsize=10)
        ax.text(0.03, 0.9, f"sum {values.sum():.2f}", transform=ax.transAxes, fontsize=9)
        ax.set_ylim(0, top)
    axes[0].set_ylabel("degree")
    figure.suptitle(title, fontsize=11)
    return figure


def recovery_figure(
    rows: Mapping[str, tuple[FloatArray, FloatArray, BoolArray, FloatArray]],
    label_names: Sequence[str],
    errors: Mapping[str, float],
    title: str,
) -> "Figure":
    """Some rows (true, as handed in, observed, recovered) by name, and below them each method's error."""
    figure = new_figure(11, 6)
    grid = figure.add_gridspec(2, len(rows), height_ratios=(1.4, 1))
    for column, (name, row) in enumerate(rows.items()):
        _draw_comparison(figure.add_subplot(grid[0, column]), name, row, label_names, with_legend=column == 0)
    ax = figure.add_subplot(grid[1, :])
    colors = [RECOVERED_COLOR if name == list(errors)[-1] else MUTED_COLOR for name in errors]
    bars = ax.barh(list(errors), list(errors.values()), color=colors)
    ax.bar_label(bars, fmt="%.4f", padding=3)
    ax.invert_yaxis()
    ax.set_xlabel("mean Chebyshev distance to the true rows (lower is better)")
    _tidy(ax)
    figure.suptitle(title)
    return figure


def interval_figure(
    true: FloatArray,
    handed_in: FloatArray,
    observed: BoolArray,
    recovered: tuple[FloatArray, FloatArray, FloatArray],
    label_names: Sequence[str],
    title: str,
) -> "Figure":
    """One row: handed in, and recovered with its intervals (estimate, low, high), beside the truth."""
    estimate, low, high = recovered
    figure = new_figure(9, 3.4)
    axes = figure.subplots(1, 2, sharey=True)
    _draw_row(axes[0], handed_in, label_names, HANDED_IN_COLOR)
    _mark_hidden(axes[0], observed)
    axes[0].set(title="as handed in", ylabel="degree")
    _draw_row(axes[1], estimate, label_names, RECOVERED_COLOR)
    positions = np.arange(len(true))
    whiskers = np.array([estimate - low, high - estimate]).clip(0)
    axes[1].errorbar(positions, estimate, whiskers, fmt="none", ecolor=MUTED_COLOR, capsize=3, label="90 % interval")
    axes[1].plot(positions, true, ls="", marker="D", ms=5, color=TRUE_COLOR, label="true degree")
    axes[1].set_title("recovered")
    axes[1].legend(frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=11)
    return figure


def _draw_row(ax: "Axes", values: FloatArray, label_names: Sequence[str], color: str) -> Any:
    bars = ax.bar(np.arange(len(values)), values, color=color)
    ax.set_xticks(np.arange(len(values)), label_names)
    _tidy(ax)
    return bars


def _draw_comparison(
    ax: "Axes",
    name: str,
    row: tuple[FloatArray, FloatArray, BoolArray, FloatArray],
    label_names: Sequence[str],
    *,
    with_legend: bool,
) -> None:
    true, handed_in, observed, recovered = row
    positions = np.arange(len(true))
    series = (
        ("true", true, TRUE_COLOR),
        ("handed in", handed_in, HANDED_IN_COLOR),
        ("recovered", recovered, RECOVERED_COLOR),
    )
    for shift, (label, values, color) in zip((-0.27, 0, 0.27), series, strict=True):
        ax.bar(positions + shift, values, width=0.27, color=color, label=label)
    ax.set_xticks(positions, label_names, fontsize=9)
    _mark_hidden(ax, observed)
    ax.set_title(name, fontsize=10)
    if with_legend:
        ax.set_ylabel("degree")
        ax.plot([], [], ls="", marker="$?$", color=HIDDEN_COLOR, label="hidden label")
        ax.legend(frameon=False, fontsize=8)
    _tidy(ax)


def _mark_hidden(ax: "Axes", observed: BoolArray) -> None:
    for j in np.flatnonzero(~observed):
        ax.annotate("?", (j, 0), (0, 3), textcoords="offset points", ha="center", color=HIDDEN_COLOR, weight="bold")


def _tidy(ax: "Axes") -> None:
    ax.spines[["top", "right"]].set_visible(False)
