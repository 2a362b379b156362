"""Parts of matplotlib figures; legible in print and for the colour-blind."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hidldl.arrays import BoolArray, FloatArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# From the palette of Okabe and Ito.
TRUE_COLOR, HANDED_IN_COLOR, RECOVERED_COLOR = "#000000", "#E69F00", "#0072B2"
HIDDEN_COLOR, MUTED_COLOR = "#D55E00", "#999999"
COLORS = {"true": TRUE_COLOR, "handed in": HANDED_IN_COLOR, "recovered": RECOVERED_COLOR}
HATCHED: dict[str, Any] = {"facecolor": "#A8D5F0", "edgecolor": RECOVERED_COLOR, "hatch": "//////", "linewidth": 0.5}
"""RECOVERED_COLOR on a paler shade of it."""
NAME_POINTS, SMALLEST_NAME_POINTS = 9, 6
LINE_HEIGHT = 1.2
LONGEST_NAME = 24
SMALLEST_MARK = 4
"""Points; hidden labels closer together than this are hatched only."""


def new_figure(width: float, height: float, *, shown: bool = False) -> "Figure":
    """An empty figure of that size in inches; the error says which extra to install where matplotlib is absent.

    With ``shown`` it belongs to pyplot, so that notebooks and ``plt.show()`` find it.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("Figures need matplotlib; install it with pip install 'hidldl[plot]'.") from error
    if not shown:
        return Figure(figsize=(width, height), layout="constrained")
    import matplotlib.pyplot as plt

    return plt.figure(figsize=(width, height), layout="constrained")


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
        true, handed_in, observed, recovered = row
        ax = figure.add_subplot(grid[0, column])
        series = {"true": true, "handed in": handed_in, "recovered": recovered}
        draw_side_by_side(ax, series, observed, label_names)
        ax.set_title(name, fontsize=10)
        if column == 0:
            ax.set_ylabel("share")
    # Below everything, where it covers no bar.
    legend = figure.axes[0].get_legend_handles_labels()
    figure.legend(*legend, loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    ax = figure.add_subplot(grid[1, :])
    colors = [RECOVERED_COLOR if name == list(errors)[-1] else MUTED_COLOR for name in errors]
    bars = ax.barh(list(errors), list(errors.values()), color=colors)
    ax.bar_label(bars, fmt="%.4f", padding=3)
    ax.invert_yaxis()
    ax.set_xlabel("mean Chebyshev distance to the true rows (lower is better)")
    tidy(ax)
    figure.suptitle(title)
    return figure


def draw_side_by_side(
    ax: "Axes", series: Mapping[str, FloatArray], observed: BoolArray, label_names: Sequence[Any]
) -> dict[str, float]:
    """One row in several versions, named as in ``COLORS``, side by side per label; returns the shift of each.

    A hidden label has a question mark in place of what was handed in, and what was recovered for it is hatched.
    """
    width = 0.8 / len(series)
    shifts = {name: (k - (len(series) - 1) / 2) * width for k, name in enumerate(series)}
    for name, values in series.items():
        at = np.arange(len(observed)) + shifts[name]
        plain_bars = observed if name == "recovered" else np.ones_like(observed)
        ax.bar(at[plain_bars], values[plain_bars], width=width, color=COLORS[name], label=name)
        if not plain_bars.all():
            ax.bar(at[~observed], values[~observed], width=width, label="recovered, was hidden", **HATCHED)
    mark_hidden(ax, observed, shifts["handed in"])
    name_labels(ax, label_names, np.max(list(series.values()), axis=0))
    tidy(ax)
    return shifts


def mark_hidden(ax: "Axes", observed: BoolArray, shift: float = 0) -> None:
    """A question mark at each hidden label, where there is room for it."""
    from matplotlib.transforms import offset_copy

    hidden = np.flatnonzero(~observed) + shift
    size = min(7.0, 0.4 * _points_per_label(ax, len(observed)))
    if len(hidden) and size >= SMALLEST_MARK:
        figure: Any = ax.figure
        marks = ax.plot(hidden, np.zeros(len(hidden)), ls="", marker="$?$", ms=size, color=HIDDEN_COLOR, label="hidden")
        marks[0].set_transform(offset_copy(ax.transData, fig=figure, y=0.8 * size, units="points"))


def name_labels(ax: "Axes", label_names: Sequence[Any], importance: FloatArray) -> None:
    """Name the labels on the horizontal axis, turned if they are long; only the largest where not all names fit."""
    names = [plain(name) for name in label_names]
    room = _points_per_label(ax, len(names))
    turned = max(map(len, names)) * 0.65 * NAME_POINTS > room
    fits = room / LINE_HEIGHT
    points = min(fits, NAME_POINTS) if turned and fits >= SMALLEST_NAME_POINTS else NAME_POINTS
    apart = int(np.ceil(points / fits)) if turned else 1
    ticks: list[int] = []
    for j in np.argsort(-importance, kind="stable").tolist():
        if all(abs(j - other) >= apart for other in ticks):
            ticks.append(j)
    ax.set_xticks(ticks, [names[j] for j in ticks], rotation=90 if turned else 0, fontsize=points)
    ax.set_xlim(-0.6, len(names) - 0.4)
    if len(ticks) < len(names):
        ax.set_xlabel(f"{len(names)} labels; the largest are named")


def plain(name: Any) -> str:
    """A name as text for matplotlib: on one line, not too long, and a dollar sign starts no formula."""
    text = " ".join(str(name).split())
    if len(text) > LONGEST_NAME:
        half = LONGEST_NAME // 2
        text = f"{text[:half]}…{text[1 - half :]}"
    return text.replace("$", r"\$")


def legend_on_top(ax: "Axes") -> None:
    """A legend above the bars, on an axis that is extended to make room for it."""
    ax.set_ylim(0, 1.35 * ax.get_ylim()[1])
    ax.legend(loc="upper left", ncols=2, frameon=False, fontsize=NAME_POINTS)


def tidy(ax: "Axes") -> None:
    """Remove the frame at the top and at the right."""
    ax.spines[["top", "right"]].set_visible(False)


def _points_per_label(ax: "Axes", n_labels: int) -> float:
    return float(ax.get_window_extent().width * 72 / ax.figure.dpi / n_labels)
