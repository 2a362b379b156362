"""Draw the pictures of the README and the site: ``python docs/make_pictures.py``.

All of them show real rows: words of the VADER lexicon, rated by ten people each, with half of the labels hidden at
random.
"""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from hidldl import MEASURES, BayesHidLDL, HidLDL, hide_labels, load_dataset
from hidldl.reports.figures import (
    HANDED_IN_COLOR,
    MUTED_COLOR,
    RECOVERED_COLOR,
    TRUE_COLOR,
    mark_hidden,
    name_labels,
    new_figure,
    tidy,
)

WORD = "controversial"
FOLDER = Path(__file__).parent / "images"
LEVELS = np.linspace(0.05, 0.95, 19)


def main() -> None:
    data = load_dataset("VADER")
    D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=0)
    problem = (data.features.to_numpy(), data.distributions.to_numpy(), D_obs.to_numpy(), observed.to_numpy())
    FOLDER.mkdir(exist_ok=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = BayesHidLDL(n_jobs=-1, random_state=0).fit(problem[0], problem[2], problem[3])
        figures = {
            "problem.png": the_problem(data, problem, model),
            "problem_narrow.png": the_problem(data, problem, model, columns=2),
            "intervals.png": a_row_with_intervals(data, problem, model),
            "calibration.png": calibration(problem, model),
            "selection.png": what_the_game_sees(problem),
        }
    for name, figure in figures.items():
        figure.savefig(FOLDER / name, dpi=130)


def the_problem(data: Any, problem: tuple[Any, ...], model: BayesHidLDL, columns: int = 4) -> Any:
    """One row four times, in four columns or in two: true, as IncomLDL pretends, as handed in, and as recovered."""
    i = list(data.features.index).index(WORD)
    true, observed, recovered = problem[1][i], problem[3][i], model.distributions_[i]
    incomplete = np.where(observed, true, 0)
    handed_in = incomplete / incomplete.sum()
    panels = (
        ("The true row", true, TRUE_COLOR),
        ("IncomLDL pretends:\ngaps, the rest unchanged", incomplete, MUTED_COLOR),
        ("What annotators hand in:\nthe rest inflates to 1", handed_in, HANDED_IN_COLOR),
        ("What hidldl recovers", recovered, RECOVERED_COLOR),
    )
    rows = len(panels) // columns
    figure = new_figure(3 * columns, 0.4 + 2.8 * rows)
    axes = figure.subplots(rows, columns, sharey=True, squeeze=False)
    top = 1.22 * max(values.max() for _, values, _ in panels)
    for ax, (heading, values, color) in zip(axes.flat, panels, strict=True):
        draw_row(ax, values, data.label_names, color)
        if values is incomplete or values is handed_in:
            mark_hidden(ax, observed)
        if values is recovered:
            ax.step(np.arange(len(true)), true, where="mid", color=TRUE_COLOR, lw=1, ls=":", label="true row")
            ax.legend(loc="upper right", frameon=False, fontsize=8)
        ax.set_title(heading, fontsize=10)
        ax.text(0.03, 0.9, f"sum {values.sum():.2f}", transform=ax.transAxes, fontsize=9)
        ax.set_ylim(0, top)
    for ax in axes[:, 0]:
        ax.set_ylabel("share")
    figure.suptitle(f"How ten people rated the word “{WORD}”, from −4 to +4", fontsize=11)
    return figure


def a_row_with_intervals(data: Any, problem: tuple[Any, ...], model: BayesHidLDL) -> Any:
    """One row: as handed in, and as recovered with its intervals beside the truth."""
    i = list(data.features.index).index(WORD)
    true, handed_in, observed = (part[i] for part in problem[1:])
    low, high, *_ = model.intervals(0.9)
    estimate = model.distributions_[i]
    figure = new_figure(9, 3.4)
    left, right = figure.subplots(1, 2, sharey=True)
    draw_row(left, handed_in, data.label_names, HANDED_IN_COLOR)
    mark_hidden(left, observed)
    left.set(title="as handed in", ylabel="share")
    draw_row(right, estimate, data.label_names, RECOVERED_COLOR)
    positions = np.arange(len(true))
    whiskers = np.array([estimate - low[i], high[i] - estimate]).clip(0)
    right.errorbar(positions, estimate, whiskers, fmt="none", ecolor=MUTED_COLOR, capsize=3, label="90 % interval")
    right.plot(positions, true, ls="", marker="D", ms=5, color=TRUE_COLOR, label="true share")
    right.set_title("recovered")
    right.legend(frameon=False, fontsize=8)
    figure.suptitle(f"The word “{WORD}”", fontsize=11)
    return figure


def draw_row(ax: Any, values: Any, label_names: Any, color: str) -> None:
    ax.bar(np.arange(len(values)), values, color=color)
    name_labels(ax, label_names, values)
    tidy(ax)


def calibration(problem: tuple[Any, ...], model: BayesHidLDL) -> Any:
    """The part of the hidden shares that lies within intervals of each level, against the level."""
    _, D, _, observed = problem
    coverage = []
    for level in LEVELS:
        low, high, *_ = model.intervals(float(level), n_draws=200)
        coverage.append(((low <= D + 1e-12) & (high >= D - 1e-12))[~observed].mean())
    figure = new_figure(4.2, 3.6)
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], color=MUTED_COLOR, ls=":", label="promised")
    ax.plot(LEVELS, coverage, color=RECOVERED_COLOR, marker="o", ms=3, label="held")
    ax.set(xlabel="level of the interval", ylabel="part of the hidden shares inside")
    ax.legend(frameon=False)
    tidy(ax)
    return figure


def what_the_game_sees(problem: tuple[Any, ...]) -> Any:
    """The re-hiding game's loss by alpha, and the distance to the truth, which the game never sees."""
    X, D, D_obs, observed = problem
    tuned = HidLDL("auto", random_state=0).fit(X, D_obs, observed)
    table = tuned.selection_.path("alpha")
    path = HidLDL().alpha_path(table["alpha"], X, D_obs, observed)
    truth = [MEASURES["chebyshev"](D, model.distributions_) for model in path]
    figure = new_figure(8.5, 3.2)
    left, right = figure.subplots(1, 2)
    left.errorbar(table["alpha"], table["excess"], table["standard_error"], color=RECOVERED_COLOR, marker="o", ms=4)
    left.set(title="what the game sees", ylabel="loss, beyond that of the choice")
    right.plot(table["alpha"], truth, color=TRUE_COLOR, marker="o", ms=4)
    right.set(title="what it never sees", ylabel="Chebyshev distance to the truth")
    for ax in (left, right):
        ax.axvline(tuned.alpha_, color=MUTED_COLOR, ls=":")
        ax.set_xscale("log", base=2)
        ax.set_xlabel("alpha of HidLDL (dotted: the choice)")
        tidy(ax)
    return figure


if __name__ == "__main__":
    main()
