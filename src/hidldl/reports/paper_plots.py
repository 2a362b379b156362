"""The figures of the paper, and those that its tables deserve: each takes values and returns a Figure."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from hidldl.arrays import FloatArray
from hidldl.metrics import MEASURES
from hidldl.reports.figures import MUTED_COLOR, TRUE_COLOR, new_figure
from hidldl.statistics import critical_difference

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# From the palette of Okabe and Ito, and a brown; markers and dashes tell methods apart where colours do not.
_STYLES = (
    ("#D55E00", "o", "-"),
    ("#0072B2", "s", "--"),
    ("#009E73", "^", "-."),
    ("#CC79A7", "v", ":"),
    ("#E69F00", "D", "--"),
    ("#56B4E9", "P", "-."),
    ("#999999", "X", ":"),
    ("#000000", "*", "-"),
    ("#8B5A2B", "h", "--"),
)


def rate_figure(results: pd.DataFrame, measure: str, datasets: Sequence[str], methods: Sequence[str]) -> "Figure":
    """A measure against the share of hidden labels, a panel per dataset: mean and deviation over repetitions."""
    figure = new_figure(11, 3.2)
    axes = np.atleast_1d(figure.subplots(1, len(datasets)))
    for ax, dataset in zip(axes, datasets, strict=True):
        of_dataset = results[(results["dataset"] == dataset) & (results["status"] == "done")]
        for method, (color, marker, dash) in zip(methods, cycle(_STYLES), strict=False):
            runs = of_dataset[of_dataset["method"] == method].groupby("rate")[measure]
            mean, std = runs.mean(), runs.std(ddof=0)
            line = {"color": color, "marker": marker, "ls": dash, "ms": 4, "lw": 1.3, "label": method}
            ax.errorbar(100 * mean.index, mean, yerr=std, capsize=2, **line)
        ax.set_yscale("log")  # one method far off must not press the others together
        ax.yaxis.set_major_formatter("{x:.3g}")
        ax.yaxis.set_minor_formatter("{x:.2g}")
        ax.tick_params(axis="y", which="minor", labelsize=6)
        ax.set_title(dataset, fontsize=10)
        ax.set_xlabel("hidden labels, %")
        _tidy(ax)
    axes[0].set_ylabel(f"{measure} {MEASURES[measure].arrow}")
    figure.legend(
        *axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(methods), fontsize=8, frameon=False
    )
    return figure


def alpha_figure(results: pd.DataFrame, measure: str, datasets: Sequence[str], ours: str, other: str) -> "Figure":
    """A measure of ours against alpha, a panel per dataset, with the other method's best as a line."""
    figure = new_figure(11, 3)
    axes = np.atleast_1d(figure.subplots(1, len(datasets)))
    for ax, dataset in zip(axes, datasets, strict=True):
        runs = results[(results["dataset"] == dataset) & (results["status"] == "done")]
        means = runs.groupby(["method", "alpha"])[measure].mean()
        color, marker, dash = _STYLES[0]
        # Beyond 2^6 the algorithm diverges, and its fall would flatten all that can be seen.
        curve = means[ours].loc[2.0**-6 : 2.0**6]
        ax.plot(np.log2(curve.index), curve, color=color, marker=marker, ms=4, ls=dash, label=ours)
        best = means[other].max() if MEASURES[measure].higher_is_better else means[other].min()
        ax.axhline(best, color=_STYLES[1][0], ls="--", label=f"{other}, best alpha")
        ax.set_title(dataset, fontsize=10)
        ax.set_xlabel("log₂ alpha")
        _tidy(ax)
    axes[0].set_ylabel(f"{measure} {MEASURES[measure].arrow}")
    axes[0].legend(frameon=False, fontsize=8)
    return figure


def rows_figure(panels: Mapping[str, Mapping[str, FloatArray]]) -> "Figure":
    """Rows as lines over their labels, a panel per dataset: the truth ("ground truth") and what methods recover."""
    figure = new_figure(4.5 * len(panels), 3.2)
    axes = np.atleast_1d(figure.subplots(1, len(panels)))
    for ax, (title, rows) in zip(axes, panels.items(), strict=True):
        for (name, row), (color, marker, dash) in zip(rows.items(), (("#000000", "*", "-"), *_STYLES), strict=False):
            width = 2 if name == "ground truth" else 1.3
            ax.plot(np.arange(1, len(row) + 1), row, color=color, marker=marker, ls=dash, lw=width, ms=5, label=name)
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("label")
        ax.set_xticks(np.arange(1, len(row) + 1))
        _tidy(ax)
    axes[0].set_ylabel("share")
    axes[0].legend(frameon=False, fontsize=8)
    return figure


def residual_figure(histories: Mapping[str, Mapping[str, FloatArray]], tol: float) -> "Figure":
    """Algorithm 1's residuals against its iterations, a line per dataset and split."""
    figure = new_figure(9, 3.4)
    axes = figure.subplots(1, 2, sharey=True)
    for ax, split, title in zip(
        axes, ("low_rank", "proportions"), ("|D − A|, largest", "|D − B|, largest"), strict=True
    ):
        for position, (name, history) in enumerate(histories.items()):
            color, _, dash = _STYLES[position % len(_STYLES)]
            width = 1.2 if position < len(_STYLES) else 2.6
            ax.semilogy(
                np.arange(1, len(history[split]) + 1), history[split], color=color, ls=dash, lw=width, label=name
            )
        ax.axhline(tol, color=MUTED_COLOR, lw=1)
        ax.set_title(title, fontsize=10)
        ax.set_xlabel("iteration")
        _tidy(ax)
    axes[0].set_ylabel("residual")
    axes[1].legend(frameon=False, fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def rank_figure(ranks: "pd.Series[float]", n_datasets: int) -> "Figure":
    """Critical-difference diagram: average ranks on a line; methods under one bar do not differ significantly."""
    ordered = ranks.sort_values()
    difference = critical_difference(len(ordered), n_datasets)
    figure = new_figure(8, 0.9 + 0.32 * len(ordered))
    ax = figure.subplots()
    for position, (name, rank) in enumerate(ordered.items()):
        ax.plot([rank, rank, len(ordered) + 0.6], [0, -position - 1, -position - 1], color=TRUE_COLOR, lw=0.8)
        ax.text(len(ordered) + 0.7, -position - 1, f"{name} ({rank:.2f})", va="center", fontsize=9)
    for level, (start, end) in enumerate(_cliques(ordered.to_numpy(), difference)):
        ax.plot([start - 0.05, end + 0.05], [-0.25 - 0.22 * level] * 2, color="#D55E00", lw=3, solid_capstyle="butt")
    ax.plot([1, 1 + difference], [0.8, 0.8], color="#0072B2", lw=2)
    ax.text(1 + difference / 2, 0.9, f"critical difference {difference:.2f}", ha="center", va="bottom", fontsize=8)
    ax.axhline(0, color=TRUE_COLOR, lw=1, xmax=0.72)
    ax.set_xticks(np.arange(1, len(ordered) + 1))
    ax.xaxis.tick_top()
    ax.set(xlim=(0.8, len(ordered) + 3.4), ylim=(-len(ordered) - 0.8, 1.7), yticks=[])
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
    return figure


def _cliques(ranks: FloatArray, difference: float) -> list[tuple[float, float]]:
    """Longest runs of sorted ranks that lie within the critical difference."""
    runs: list[tuple[float, float]] = []
    for start in ranks:
        end = ranks[ranks <= start + difference].max()
        if end > start and not any(before <= start and end <= after for before, after in runs):
            runs.append((float(start), float(end)))
    return runs


def _tidy(ax: "Axes") -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)
