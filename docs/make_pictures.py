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
from hidldl.reports.figures import MUTED_COLOR, RECOVERED_COLOR, TRUE_COLOR, interval_figure, new_figure, problem_figure

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
    i = list(data.features.index).index(WORD)
    title = f"How ten people rated the word “{WORD}”, from −4 to +4"
    return problem_figure(problem[1][i], problem[3][i], model.distributions_[i], data.label_names, title, columns)


def a_row_with_intervals(data: Any, problem: tuple[Any, ...], model: BayesHidLDL) -> Any:
    _, D, D_obs, observed = problem
    i = list(data.features.index).index(WORD)
    low, high, *_ = model.intervals(0.9)
    recovered = (model.distributions_[i], low[i], high[i])
    return interval_figure(D[i], D_obs[i], observed[i], recovered, data.label_names, f"The word “{WORD}”")


def calibration(problem: tuple[Any, ...], model: BayesHidLDL) -> Any:
    """Promised against held: the share of hidden degrees within intervals of each level."""
    _, D, _, observed = problem
    held = []
    for level in LEVELS:
        low, high, *_ = model.intervals(float(level), n_draws=200)
        held.append(((low <= D + 1e-12) & (high >= D - 1e-12))[~observed].mean())
    figure = new_figure(4.2, 3.6)
    ax = figure.subplots()
    ax.plot([0, 1], [0, 1], color=MUTED_COLOR, ls=":", label="promised")
    ax.plot(LEVELS, held, color=RECOVERED_COLOR, marker="o", ms=3, label="held")
    ax.set(xlabel="level of the interval", ylabel="share of hidden degrees inside")
    ax.legend(frameon=False)
    ax.spines[["top", "right"]].set_visible(False)
    return figure


def what_the_game_sees(problem: tuple[Any, ...]) -> Any:
    """The re-hiding game's loss by alpha, and the distance to the truth, which the game never sees."""
    X, D, D_obs, observed = problem
    tuned = HidLDL("auto", random_state=0).fit(X, D_obs, observed)
    table = tuned.selection_.candidates.sort_values("alpha")
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
        ax.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    main()
