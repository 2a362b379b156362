"""Comparisons as values, and their Markdown, LaTeX and CSV."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from hidldl.metrics import MEASURES, Measure
from hidldl.statistics import average_ranks, count_wins, paired_t_test


@dataclass(frozen=True)
class Comparison:
    """One measure of several methods on several datasets: a row per dataset, a column per method.

    ``verdicts`` tell where ``ours`` is significantly "better" or "worse" than a method over the repetitions; ``paper``
    holds the paper's own means where there are any. ``stds`` are NaN where there is one repetition: one has no spread.
    """

    title: str
    measure: Measure
    ours: str
    means: pd.DataFrame
    stds: pd.DataFrame
    verdicts: pd.DataFrame
    paper: pd.DataFrame

    @property
    def ranks(self) -> "pd.Series[float]":
        """Average rank of each method over the datasets, 1 for the best."""
        return average_ranks(self.means, higher_is_better=self.measure.higher_is_better)

    def spread(self, dataset: Any, method: Any) -> str:
        """The deviation with its sign, as it stands after the mean; nothing where there is none."""
        std = self.stds.loc[dataset, method]
        return "" if pd.isna(std) else f"± {std:.4f}"

    def mean_and_spread(self, dataset: Any, method: Any) -> str:
        """A cell of a table in words."""
        mean = self.means.loc[dataset, method]
        return "failed" if pd.isna(mean) else f"{mean:.4f} {self.spread(dataset, method)}".rstrip()

    def places(self) -> pd.DataFrame:
        """The place of each method on each dataset: 1, 2, ..., ties sharing the better one."""
        return self.means.rank(axis=1, method="min", ascending=not self.measure.higher_is_better)


def comparison_of(
    results: pd.DataFrame,
    measure: str,
    *,
    title: str,
    ours: str,
    datasets: tuple[str, ...],
    methods: tuple[str, ...],
    paper: pd.DataFrame | None = None,
) -> Comparison:
    """The comparison in a store's results, which must be of one setting and rate.

    Evaluations that failed are gaps. ``paper`` has columns dataset, method and mean.
    """
    done = results[results["status"] == "done"]
    by_repetition = done.pivot_table(index=["dataset", "repetition"], columns="method", values=measure)
    present = [name for name in datasets if name in by_repetition.index.get_level_values("dataset")]
    shown = [name for name in methods if name in by_repetition.columns]
    by_repetition = by_repetition[shown]
    means = by_repetition.groupby("dataset").mean().reindex(present)
    # An infinite divergence has an infinite mean and no deviation.
    finite = by_repetition.where(np.isfinite(by_repetition)).groupby("dataset")
    stds = finite.std(ddof=0).where(finite.count() > 1).reindex(present)
    verdicts = pd.DataFrame("", index=means.index, columns=means.columns)
    for dataset in present:
        runs = by_repetition.loc[dataset]
        for method in shown:
            pair = runs[[ours, method]].dropna() if method != ours and ours in runs else runs.iloc[:0]
            if len(pair):
                better = MEASURES[measure].higher_is_better
                verdict = paired_t_test(pair[ours].to_numpy(), pair[method].to_numpy(), higher_is_better=better)
                verdicts.loc[dataset, method] = verdict
    beside = pd.DataFrame(index=means.index, columns=means.columns, dtype=float)
    if paper is not None:
        beside = paper.pivot_table(index="dataset", columns="method", values="mean").reindex_like(means)
    return Comparison(title, MEASURES[measure], ours, means, stds, verdicts, beside)


def to_markdown(comparison: Comparison) -> str:
    """The comparison in Markdown: mean ± std, the best bold, the paper's mean in brackets, dots for significance."""
    head = [f"{comparison.measure.name} {comparison.measure.arrow}", *comparison.means.columns]
    lines = [f"| {' | '.join(head)} |", "|" + " --- |" * len(head)]
    places = comparison.places()
    for dataset in comparison.means.index:
        cells = [str(dataset)]
        for method in comparison.means.columns:
            text = comparison.mean_and_spread(dataset, method)
            text = f"**{text}**" if places.loc[dataset, method] == 1 else text
            dot = {"better": " •", "worse": " ◦", "": ""}[comparison.verdicts.loc[dataset, method]]
            paper = comparison.paper.loc[dataset, method]
            cells.append(text + dot + (f" ({paper:.4f})" if pd.notna(paper) else ""))
        lines.append(f"| {' | '.join(cells)} |")
    ranks = [f"{rank:.2f}" for rank in comparison.ranks]
    lines.append(f"| average rank | {' | '.join(ranks)} |")
    return "\n".join([*lines, "", summary(comparison)])


def summary(comparison: Comparison) -> str:
    """In words: how often ours is better, counted as the paper counts, and apart against what it does not compare."""
    compared = comparison.paper.notna().any() | (comparison.paper.columns == comparison.ours)
    inside = [name for name in comparison.means.columns if compared[name]]
    others = [[name] for name in comparison.means.columns if not compared[name]]
    counts = []
    for label, names in (("methods of the paper", inside), *((names[0], names) for names in others)):
        means = comparison.means[list(dict.fromkeys([comparison.ours, *names]))]
        won, of = count_wins(means, comparison.ours, higher_is_better=comparison.measure.higher_is_better)
        if of:
            counts.append(f"in {won} of {of} comparisons with {label}")
    return f"{comparison.ours} has the better mean {_listed(counts)}." if counts else ""


def to_latex(comparison: Comparison) -> str:
    """The comparison as a LaTeX table (package booktabs): best bold, second underlined, dots as in the paper."""
    columns = [_escaped(name) for name in comparison.means.columns]
    lines = [
        r"\begin{table*}[ht]",
        r"\centering\small\setlength{\tabcolsep}{0.8mm}",
        rf"\begin{{tabular}}{{l{'c' * len(columns)}}}",
        r"\toprule",
        f"Dataset & {' & '.join(columns)} \\\\",
        r"\midrule",
    ]
    places = comparison.places()
    for dataset in comparison.means.index:
        cells = [_escaped(str(dataset))]
        for method in comparison.means.columns:
            value = comparison.mean_and_spread(dataset, method).replace("±", r"\pm")
            style = {1: r"\mathbf", 2: r"\underline"}.get(places.loc[dataset, method], "")
            value = f"{style}{{{value}}}" if style else value
            dot = {"better": r"^{\bullet}", "worse": r"^{\circ}", "": ""}[comparison.verdicts.loc[dataset, method]]
            cells.append(f"${value}{dot}$")
        lines.append(f"{' & '.join(cells)} \\\\")
    ranks = " & ".join(f"{rank:.2f}" for rank in comparison.ranks)
    direction = "Higher" if comparison.measure.higher_is_better else "Lower"
    caption = (
        rf"{_escaped(comparison.title)}. {direction} is better; $\bullet$ ($\circ$): {_escaped(comparison.ours)} is "
        r"significantly better (worse), single-tailed paired t-test at 0.05."
    )
    closing = [r"\midrule", f"Average rank & {ranks} \\\\", r"\bottomrule", r"\end{tabular}"]
    return "\n".join([*lines, *closing, rf"\caption{{{caption}}}", r"\end{table*}"])


def to_csv(comparison: Comparison) -> str:
    """The comparison as CSV: one line per dataset and method, with the paper's mean beside ours."""
    parts = {
        "mean": comparison.means,
        "std": comparison.stds,
        "ours_is_significantly": comparison.verdicts,
        "paper": comparison.paper,
    }
    long = [
        part.rename_axis("dataset").reset_index().melt("dataset", var_name="method", value_name=name)
        for name, part in parts.items()
    ]
    return pd.concat([frame.set_index(["dataset", "method"]) for frame in long], axis=1).to_csv(lineterminator="\n")


def _listed(parts: list[str]) -> str:
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)


def _escaped(text: str) -> str:
    return "".join(f"\\{character}" if character in "%&_#$" else character for character in text)
