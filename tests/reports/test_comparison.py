"""Comparisons from results: means, dots, places, and what is written of them."""

import builtins
import io
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from hidldl import reproduce
from hidldl.reports.comparison import comparison_of, summary, to_csv, to_latex, to_markdown
from hidldl.reports.page import Section, render_page
from hidldl.reports.paper_plots import rank_figure, rate_figure

RUNS = {
    ("first", "ours"): [0.10, 0.11, 0.12],
    ("first", "a"): [0.20, 0.21, 0.23],
    ("first", "b_1"): [0.09, 0.10, 0.105],
    ("second", "ours"): [0.30, 0.32, 0.31],
    ("second", "a"): [0.29, 0.33, 0.31],
    ("second", "b_1"): [0.50, 0.51, 0.53],
}


@pytest.fixture
def results():
    rows = [
        {"dataset": dataset, "method": method, "repetition": i, "rate": 0.5, "status": "done", "chebyshev": value}
        for (dataset, method), values in RUNS.items()
        for i, value in enumerate(values)
    ]
    return pd.DataFrame(rows)


@pytest.fixture
def comparison(results):
    paper = pd.DataFrame({"dataset": ["first", "first"], "method": ["ours", "a"], "mean": [0.1, 0.25]})
    return comparison_of(
        results,
        "chebyshev",
        title="Chebyshev, 50 % hidden",
        ours="ours",
        datasets=("second", "first", "absent"),
        methods=("ours", "a", "b_1", "missing"),
        paper=paper,
    )


def test_means_deviations_and_order(comparison):
    assert list(comparison.means.index) == ["second", "first"]
    assert list(comparison.means.columns) == ["ours", "a", "b_1"]
    assert comparison.means.loc["first", "ours"] == pytest.approx(0.11)
    assert comparison.stds.loc["first", "a"] == pytest.approx(np.std(RUNS["first", "a"]))
    assert comparison.paper.loc["first", "a"] == 0.25


def test_verdicts_and_places(comparison):
    assert comparison.verdicts.loc["first"].to_dict() == {"ours": "", "a": "better", "b_1": "worse"}
    assert comparison.verdicts.loc["second"].to_dict() == {"ours": "", "a": "", "b_1": "better"}
    assert comparison.places().loc["first"].to_dict() == {"ours": 2, "a": 3, "b_1": 1}
    assert comparison.ranks.to_dict() == pytest.approx({"ours": 1.75, "a": 2.25, "b_1": 2.0})


def test_wins_are_counted_apart_for_methods_that_the_paper_lacks(comparison):
    assert summary(comparison) == (
        "ours has the better mean in 1 of 2 comparisons with methods of the paper and in 1 of 2 comparisons with b_1."
    )


def test_markdown(comparison):
    text = to_markdown(comparison)
    assert "| chebyshev ↓ | ours | a | b_1 |" in text
    assert "| first | 0.1100 ± 0.0082 (0.1000) | 0.2133 ± 0.0125 • (0.2500) | **0.0983 ± 0.0062** ◦ |" in text
    assert "| average rank | 1.75 | 2.25 | 2.00 |" in text


def test_latex_has_the_papers_marks(comparison):
    text = to_latex(comparison)
    assert r"\toprule" in text
    assert r"$\underline{0.1100 \pm 0.0082}$" in text
    assert r"$\mathbf{0.0983 \pm 0.0062}^{\circ}$" in text
    assert r"$0.2133 \pm 0.0125^{\bullet}$" in text
    assert r"b\_1" in text
    assert r"50 \% hidden" in text


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_latex_compiles(comparison, tmp_path):
    document = [r"\documentclass{article}", r"\usepackage{booktabs}", r"\begin{document}", to_latex(comparison)]
    (tmp_path / "table.tex").write_text("\n".join([*document, r"\end{document}"]))
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "table.tex"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "table.pdf").read_bytes().startswith(b"%PDF")


def test_csv_has_a_line_for_each_dataset_and_method(comparison):
    frame = pd.read_csv(io.StringIO(to_csv(comparison))).set_index(["dataset", "method"])
    assert len(frame) == 6
    assert frame.loc[("first", "a"), "mean"] == pytest.approx(0.64 / 3)
    assert frame.loc[("first", "a"), "paper"] == 0.25
    assert frame.loc[("first", "a"), "ours_is_significantly"] == "better"


def test_one_repetition_has_no_spread(results):
    once = results[results["repetition"].eq(0) | results["dataset"].eq("second")]
    made = comparison_of(
        once, "chebyshev", title="t", ours="ours", datasets=("first", "second"), methods=("ours", "a", "b_1")
    )
    assert made.stds.notna().all(axis=1).to_dict() == {"first": False, "second": True}
    assert "| first | 0.1000 | 0.2000 | **0.0900** |" in to_markdown(made)
    assert r"first & $\underline{0.1000}$ & $0.2000$ & $\mathbf{0.0900}$" in to_latex(made)
    page = render_page("t", "", [Section("p", made)], "c", "v")
    assert page.count("±") == 3
    assert "nan" not in to_csv(made) + page


def test_a_failure_is_a_gap_not_a_number(results):
    broken = results["method"].eq("a") & results["dataset"].eq("first")
    results.loc[broken, "status"] = "failed"
    results.loc[broken, "chebyshev"] = np.nan
    made = comparison_of(
        results, "chebyshev", title="t", ours="ours", datasets=("first", "second"), methods=("ours", "a", "b_1")
    )
    assert np.isnan(made.means.loc["first", "a"])
    assert "| failed |" in to_markdown(made)
    assert "failed" in render_page("t", "", [Section("p", made)], "c", "v")


def test_the_page_is_whole_and_safe(comparison, results):
    figure = rate_figure(results, "chebyshev", ["first", "second"], ["ours", "a", "b_1"])
    page = render_page(
        "<Title>", "intro", [Section("Section", comparison, [(figure, "caption")])], "hidldl reproduce", "v"
    )
    assert "<Title>" not in page
    assert "&lt;Title&gt;" in page
    for part in ("0.1100", "+10.0%", "-14.7%", "<svg", "caption", "hidldl reproduce"):
        assert part in page
    for elsewhere in ("<script", "<link", 'src="http'):
        assert elsewhere not in page


def test_the_rank_figure_bars_what_does_not_differ():
    figure = rank_figure(pd.Series({"a": 1.0, "b": 1.2, "c": 4.0, "d": 3.8}), n_datasets=30)
    bars = [line for line in figure.axes[0].lines if line.get_linewidth() == 3]
    assert [tuple(np.round(bar.get_xdata(), 2)) for bar in bars] == [(0.95, 1.25), (3.75, 4.05)]


def test_a_missing_extra_is_told_before_the_work(monkeypatch, tmp_path):
    real_import = builtins.__import__

    def without_jinja2(name, *args, **kwargs):
        if name == "jinja2":
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_jinja2)
    with pytest.raises(ImportError, match=r"pip install 'hidldl\[report\]'"):
        reproduce(tmp_path / "results", tables=["1"], figures=[])
    assert not (tmp_path / "results").exists()
