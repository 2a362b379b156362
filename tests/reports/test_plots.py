"""Plots show the data: every bar, mark and line is where the numbers are."""

import sys
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib import rcParams
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError

from estimators import RECOVERERS, seeded
from hidldl import (
    SABFGS,
    BayesHidLDL,
    HidLDL,
    IncomLDL,
    MeanFill,
    Selection,
    SelfTuned,
    hide_labels,
    make_distributions,
    plot_hidden_mass,
    plot_path,
    plot_recovery,
)
from hidldl.recovery import posteriorrecoverer
from hidldl.selection import LOST

GIVEN = {"nu": 256.0, "ridge": 1.0, "width": 1.0, "standardize": True, "prior_rows": 1.0, "n_components": 1}
every_recoverer = pytest.mark.parametrize("kind", RECOVERERS, ids=lambda kind: kind.__name__)


@pytest.fixture
def ax():
    return Figure(layout="constrained").subplots()


@pytest.fixture(scope="module")
def bayes():
    data = make_distributions(n_rows=700, n_features=4, n_labels=5, random_state=3)
    D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=4)
    return BayesHidLDL(**GIVEN, random_state=0).fit(data.features, D_obs, observed=observed)


def bars_of(ax):
    """Heights of the bars by label and series, and the hatched ones' labels."""
    heights = {"handed in": {}, "recovered": {}}
    for bars in ax.containers:
        series = "recovered" if bars.get_label().startswith("recovered") else bars.get_label()
        heights[series] |= {round(bar.get_x() + bar.get_width() / 2): bar.get_height() for bar in bars}
    hatched = {round(bar.get_x() + bar.get_width() / 2) for bar in ax.patches if bar.get_hatch()}
    series = (np.array([values[j] for j in sorted(values)]) for values in heights.values())
    return SimpleNamespace(**dict(zip(("handed_in", "recovered"), series, strict=True)), hatched=hatched)


def legend_of(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def selection_of(candidates, losses, chosen=0):
    rows = (
        np.asarray(losses, dtype=float)[:, None] + np.linspace(-0.1, 0.1, 20) * np.arange(1, len(losses) + 1)[:, None]
    )
    return Selection.of(candidates, rows, chosen, "kl", np.random.default_rng(0))


@every_recoverer
def test_a_row_as_handed_in_and_as_recovered(kind, hidden, ax):
    model = seeded(kind).fit(hidden.X, hidden.D_obs, observed=hidden.observed)
    hidden_before = hidden.observed.copy()
    hidden.observed[:] = True  # what becomes of the caller's arrays must not matter
    for row in (0, 7, 59):
        fresh = Figure().subplots()
        assert plot_recovery(model, row, ax=fresh, level=None) is fresh
        bars = bars_of(fresh)
        assert np.allclose(bars.handed_in, np.where(hidden_before[row], hidden.D_obs[row], 0), atol=1e-9)
        assert np.allclose(bars.recovered, model.distributions_[row])
        assert bars.hatched == set(np.flatnonzero(~hidden_before[row]))
        fresh.figure.canvas.draw()


def test_partial_rows_are_shown_as_they_came(hidden, ax):
    partial = np.where(hidden.observed, hidden.D, 0)
    model = IncomLDL().fit(hidden.X, partial, observed=hidden.observed)
    plot_recovery(model, 5, ax=ax)
    assert np.array_equal(bars_of(ax).handed_in, partial[5])


def test_intervals_of_one_row_are_those_of_the_table(bayes):
    low, high, *_ = bayes.intervals(0.8)
    for row in (0, 699):
        ax = Figure().subplots()
        plot_recovery(bayes, row, ax=ax, level=0.8)
        whiskers = np.array(ax.collections[0].get_segments())
        assert np.array_equal(whiskers[:, :, 1], np.stack([low[row], high[row]], axis=1))
        assert "80% interval" in legend_of(ax)


def test_intervals_of_one_row_take_one_block(bayes, ax, monkeypatch):
    blocks, original = [], posteriorrecoverer.interval_bounds
    monkeypatch.setattr(
        posteriorrecoverer, "interval_bounds", lambda *args: (blocks.append(args[2]), original(*args))[1]
    )
    plot_recovery(bayes, 650, ax=ax)
    assert [650 in range(700)[block] for block in blocks] == [True]
    assert len(range(700)[blocks[0]]) < 700


def test_a_tuned_model_shows_its_models_intervals(hidden, ax):
    recoverer = BayesHidLDL(**GIVEN, random_state=0)
    tuned = SelfTuned(recoverer, {"nu": [64.0]}, n_draws=1, random_state=0)
    plot_recovery(tuned.fit(hidden.X, hidden.D_obs, observed=hidden.observed), 3, ax=ax)
    assert "90% interval" in legend_of(ax)


def test_rows_go_by_the_index_of_the_table(hidden, ax):
    index = pd.Index(np.arange(60)[::-1], name="item")
    frame = pd.DataFrame(hidden.D_obs, index=index, columns=list("vwxyz"))
    model = MeanFill().fit(hidden.X, frame, observed=hidden.observed)
    plot_recovery(model, 2, ax=ax)
    assert np.allclose(bars_of(ax).recovered, model.distributions_.loc[2])
    names = dict(zip(ax.get_xticks(), (tick.get_text() for tick in ax.get_xticklabels()), strict=True))
    assert names == dict(enumerate("vwxyz"))
    for row in ("x", [2]):
        with pytest.raises(ValueError, match="none of the 60 rows of fit; give a name from D_obs's index, such as 59"):
            plot_recovery(model, row, ax=ax)
    twice = MeanFill().fit(hidden.X, frame.set_axis([0, 0, *range(1, 59)]), observed=hidden.observed)
    with pytest.raises(ValueError, match="row 0 stands for several rows"):
        plot_recovery(twice, 0, ax=ax)


def test_positions_where_there_is_no_index(hidden, ax):
    model = MeanFill().fit(hidden.X, hidden.D_obs, observed=hidden.observed)
    assert np.allclose(bars_of(plot_recovery(model, -1, ax=ax)).recovered, model.distributions_[-1])
    for row in (60, "x"):
        with pytest.raises(
            ValueError, match=f"row {row!r} is none of the 60 rows of fit; give a position from 0 to 59"
        ):
            plot_recovery(model, row, ax=ax)


@pytest.mark.parametrize("n_labels", [2, 7, 50, 200])
def test_names_do_not_overlap(n_labels):
    data = make_distributions(n_rows=40, n_labels=n_labels, random_state=0)
    names = [f"label ${j}_ with a name <b>that is rather long" for j in range(n_labels)]
    model = MeanFill().fit(data.features, pd.DataFrame(data.distributions, columns=names))
    ax = Figure(figsize=(8, 4), layout="constrained").subplots()
    plot_recovery(model, 1, ax=ax)
    ax.figure.canvas.draw()
    boxes = sorted((tick.get_window_extent() for tick in ax.get_xticklabels()), key=lambda box: box.x0)
    assert all(left.x1 <= right.x0 for left, right in pairwise(boxes))
    assert len(boxes) == n_labels if n_labels <= 50 else len(boxes) >= 20
    tallest = int(np.argmax(data.distributions[1]))
    assert tallest in ax.get_xticks()


def test_hidden_mass(hidden, ax):
    frame = pd.DataFrame(hidden.D_obs, index=[f"item $_{i}" for i in range(60)])
    model = MeanFill().fit(hidden.X, frame, observed=hidden.observed)
    assert plot_hidden_mass(model, ax=ax) is ax
    counts = [bar.get_height() for bar in ax.patches]
    edges = np.round([*(bar.get_x() for bar in ax.patches), model.hidden_mass_.max() + 1e-9], 12)
    assert np.array_equal(counts, np.histogram(model.hidden_mass_, edges)[0])
    assert sum(counts) == 60
    assert ax.collections[0].get_segments()[0][0, 0] == pytest.approx(model.hidden_mass_.mean())
    most = model.hidden_mass_.nlargest(3)
    assert ax.lines[0].get_xdata() == pytest.approx(most.to_numpy())
    text = "".join(legend_of(ax)).replace("\\", "")
    assert all(name in text for name in most.index)
    ax.figure.canvas.draw()


def test_nothing_hidden(ax):
    model = MeanFill().fit(np.zeros((3, 1)), np.full((3, 2), 0.5))
    plot_hidden_mass(model, ax=ax)
    assert sum(bar.get_height() for bar in ax.patches) == 3
    assert legend_of(ax) == ["mean 0.000"]
    assert "nothing hidden" in plot_recovery(model, 0, ax=Figure().subplots()).get_title()


def test_a_path_with_its_errors_and_its_choice(hidden, ax):
    selection = HidLDL(alpha="auto", random_state=0).fit(hidden.X, hidden.D_obs, observed=hidden.observed).selection_
    assert plot_path(selection, ax=ax) is ax
    table = selection.candidates.sort_values("alpha")
    line, _, (bars,) = ax.containers[0]
    assert np.array_equal(line.get_xdata(), table["alpha"])
    assert np.array_equal(line.get_ydata(), table["excess"])
    lengths = np.diff([segment[:, 1] for segment in bars.get_segments()], axis=1)[:, 0]
    assert np.allclose(lengths, 2 * table["standard_error"])
    (mark,) = [line for line in ax.lines if str(line.get_label()).startswith("chosen")]
    assert (mark.get_xdata().item(), mark.get_ydata().item()) == (selection.chosen["alpha"], 0)
    assert (ax.get_xlabel(), ax.get_xscale()) == ("alpha", "log")


def test_a_path_keeps_the_other_parameters_as_chosen(ax):
    candidates = [{"nu": nu, "k": k} for nu in (1.0, 2.0, 3.0) for k in (None, 5)]
    selection = selection_of(candidates, [1, 0, 3, 2, 5, 4], chosen=1)
    plot_path(selection, ax=ax)
    line = ax.containers[0][0]
    assert (line.get_xdata().tolist(), ax.get_xscale()) == ([1, 2, 3], "linear")
    assert line.get_ydata() == pytest.approx([0, 2, 4])
    (others,) = [line for line in ax.lines if line.get_label() == "other parameters differ too"]
    assert sorted(others.get_ydata()) == pytest.approx([1, 3, 5])
    words = plot_path(selection_of(candidates, [0, 1, 3, 2, 5, 4]), ax=Figure().subplots(), parameter="k")
    assert words.containers[0][0].get_xdata().tolist() == [0, 1]
    assert [tick.get_text() for tick in words.get_xticklabels()] == ["5", "None"]
    assert "chosen: None" in legend_of(words)


@pytest.mark.parametrize("values", [[5, 10, None], [False, True], [2.0, 10, True, "auto", None]], ids=repr)
def test_values_that_are_no_numbers_have_their_places_in_order(ax, values):
    selection = selection_of([{"k": value} for value in values[::-1]], range(len(values)), chosen=1)
    plot_path(selection, ax=ax)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == [f"{value}".removesuffix(".0") for value in values]
    line = ax.containers[0][0]
    assert line.get_xdata().tolist() == list(range(len(values)))
    assert line.get_ydata() == pytest.approx(np.arange(len(values))[::-1] - 1)
    (mark,) = [line for line in ax.lines if str(line.get_label()).startswith("chosen")]
    assert mark.get_xdata().tolist() == [len(values) - 2]


def test_where_all_diverged_there_are_crosses_only(ax):
    plot_path(selection_of([{"alpha": 1.0}, {"alpha": 2.0}], [LOST, LOST]), ax=ax)
    (crosses,) = [line for line in ax.lines if line.get_label() == "diverged"]
    assert sorted(crosses.get_xdata()) == [1, 2]
    ax.figure.canvas.draw()


def test_a_zero_before_decades_has_its_place(ax):
    selection = selection_of([{"alpha": alpha} for alpha in (0.0, 0.01, 1.0, 100.0)], [3, 2, 0, 1], chosen=2)
    plot_path(selection, ax=ax)
    ax.figure.canvas.draw()
    places = ax.transData.transform([(alpha, 0) for alpha in (0.0, 0.01, 1.0, 100.0)])[:, 0]
    assert (np.diff(places) > 20).all()


def test_a_candidate_that_diverged_does_not_set_the_scale(ax):
    selection = selection_of([{"alpha": alpha} for alpha in (1.0, 2.0, 64.0)], [0, 1, LOST])
    plot_path(selection, ax=ax)
    assert ax.get_ylim()[1] < 2
    (mark,) = [line for line in ax.lines if line.get_label() == "diverged"]
    assert mark.get_xdata().tolist() == [64]


def test_wrong_arguments(hidden, ax):
    selection = selection_of([{"alpha": 1.0}, {"alpha": 2.0}], [0, 1])
    with pytest.raises(ValueError, match="parameter must be one of 'alpha', got 'beta'"):
        plot_path(selection, ax=ax, parameter="beta")
    with pytest.raises(TypeError, match="None where every parameter was given"):
        plot_path(None, ax=ax)
    with pytest.raises(TypeError, match="model must be a fitted recoverer"):
        plot_hidden_mass(SABFGS(), ax=ax)
    with pytest.raises(NotFittedError):
        plot_recovery(MeanFill(), 0, ax=ax)


def test_a_level_must_be_one(bayes, ax):
    with pytest.raises(ValueError, match="level must be below 1"):
        plot_recovery(bayes, 0, ax=ax, level=1.0)


def test_given_axes_leave_matplotlibs_state_alone(hidden):
    plt = pytest.importorskip("matplotlib.pyplot")
    model = HidLDL(alpha="auto", random_state=0).fit(hidden.X, hidden.D_obs, observed=hidden.observed)
    settings, figures = dict(rcParams), plt.get_fignums()
    axes = Figure().subplots(3)
    plot_recovery(model, 0, ax=axes[0])
    plot_hidden_mass(model, ax=axes[1])
    plot_path(model.selection_, ax=axes[2])
    assert dict(rcParams) == settings
    assert plt.get_fignums() == figures


def test_new_axes_are_pyplots_so_that_a_notebook_shows_them(hidden):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("Agg")
    model = HidLDL(alpha="auto", random_state=0).fit(hidden.X, hidden.D_obs, observed=hidden.observed)
    settings, figures = dict(rcParams), set(plt.get_fignums())
    axes = [plot_recovery(model, 0), plot_hidden_mass(model), plot_path(model.selection_)]
    try:
        assert len(set(plt.get_fignums()) - figures) == 3
        assert plt.gca() is axes[-1]
        assert dict(rcParams) == settings
    finally:
        for ax in axes:
            plt.close(ax.figure)


def test_without_matplotlib_the_error_names_the_extra(hidden, monkeypatch):
    model = MeanFill().fit(hidden.X, hidden.D_obs, observed=hidden.observed)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install 'hidldl\[plot\]'"):
        plot_hidden_mass(model)
