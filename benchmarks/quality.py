"""How good the methods are: every table of quality in docs/results, and the paper's evaluation, from one store.

    HIDLDL_DATA=folder python benchmarks/quality.py [--jobs 2] [--store FILE] [--write docs/results] [DATASET ...]
    HIDLDL_DATA=folder python benchmarks/quality.py --tables bayes_oracle_50.md bayes_meanfill_50.md
    HIDLDL_DATA=folder python benchmarks/quality.py --figures A1 A2

Five masks for each dataset and rate, the same for every method, so a number that two tables show is the same in both.
"Oracle" is Algorithm 1 with the alpha, of 2^-10 ... 2^10, whose rows are nearest to the ground truth, as in the paper.
What is in the store, and was made by the code as it is now, is not run again: an interrupted run goes on where it
stopped. --render runs nothing. A table is written when all of its masks are there, and left as it is otherwise.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from provenance import provenance, write_markdown

from hidldl import MEASURES
from hidldl.experiments.paper import (
    FIGURES,
    METHODS,
    PAPER_ALPHAS,
    TABLES,
    contender,
    published_results,
)
from hidldl.experiments.protocol import Contender, Experiment, Setting
from hidldl.experiments.reproduce import ALL_FIGURES, comparisons, draw, needed_experiments, section
from hidldl.experiments.runner import run
from hidldl.experiments.store import Store
from hidldl.progress import shown

DATASETS = tuple(name for name in TABLES["1"].datasets if name != "RAF-ML")
OTHER_FEATURES = {"Emotion6": "the paper used 1000 features, the public file has 168"}
REPETITIONS = 5
FIVE = ("chebyshev", "clark", "canberra", "cosine", "intersection")
PAPER_TABLES = {"chebyshev": "A2", "canberra": "1"}
ORACLE, FILL, BAYES = "HidLDL", "MeanFill", "BayesHidLDL"
COMPARED = tuple(c.title for c in METHODS if c.title not in (ORACLE, FILL, BAYES))
IS_NOISY = "PT-Bayes"  # a matter of luck, to be judged by its standard error

RESTORED = contender("hidldl", alphas=PAPER_ALPHAS, title="HidLDL, restored", rows="public")
AUTO = contender("hidldl", alpha="auto", title="HidLDL, alpha auto", rows="public")
RELATIVE = contender("bayes", title="BayesHidLDL, relative", rows="relative")
OWN_PREDICTIONS = contender("bayes", title="BayesHidLDL, own predictions", predicts=True)
# What the paper leaves open, tried the other way; the site's page of results discusses it.
VARIANTS = (
    contender("saiis", title="SA-IIS, 150 rounds"),
    contender("ldllrr", title="LDL-LRR, margin 0.5", margin=0.5),
    contender("ldldpa", title="LDL-DPA, 50 iterations", max_iter=50),
    contender("ldldpa", title="LDL-DPA, 600 iterations", max_iter=600),
)
BY_ALPHA = tuple(contender("hidldl", alpha=alpha, title=f"2^{int(np.log2(alpha))}") for alpha in PAPER_ALPHAS)


def experiments(datasets: Sequence[str], repetitions: int = REPETITIONS) -> dict[str, Experiment]:
    """What the tables need beyond the paper's evaluation."""
    parts: dict[str, tuple[Setting, float, tuple[Contender, ...]]] = {
        "50": ("recovery", 0.5, (*METHODS, RESTORED, RELATIVE, AUTO, *VARIANTS)),
        "alpha": ("recovery", 0.5, BY_ALPHA),
        "80": ("recovery", 0.8, (*METHODS, RELATIVE, AUTO)),
        "predictive": ("predictive", 0.5, (*METHODS, OWN_PREDICTIONS)),
    }
    return {
        name: Experiment("quality", setting, tuple(datasets), (rate,), contenders, repetitions)
        for name, (setting, rate, contenders) in parts.items()
    }


def run_all(store: Store, datasets: tuple[str, ...], jobs: int) -> None:
    """Half hidden first, since most tables show it; then mask by mask all tables, then mask by mask all figures."""
    half = [experiments(datasets)["50"], experiments(datasets)["alpha"]]
    phases = [half]
    for figures in ((), tuple(FIGURES)):
        for repetitions in range(1, REPETITIONS + 1):
            more = needed_experiments(tuple(TABLES), figures, repetitions, datasets)
            phases.append([*experiments(datasets, repetitions).values(), *more])
    with shown() as progress:
        for phase in phases:
            run(phase, store, n_jobs=jobs, progress=progress)


def by_repetition(results: pd.DataFrame, measure: str, methods: Sequence[str]) -> pd.DataFrame:
    """A measure by dataset and mask, a column per method, of the masks that all of them have."""
    done = results[(results["status"] == "done") & results["method"].isin(methods)]
    table = done.pivot_table(index=["dataset", "repetition"], columns="method", values=measure)
    return table.reindex(columns=list(methods)).dropna()


def in_order(table: pd.DataFrame) -> pd.DataFrame:
    return table.loc[[name for name in DATASETS if name in table.index]]


def beside_the_paper(results: pd.DataFrame) -> str:
    columns = (ORACLE, RESTORED.title, FILL)
    table = by_repetition(results, "chebyshev", columns).groupby("dataset")
    means, stds = in_order(table.mean()), in_order(table.std(ddof=0))
    lines = [
        "| dataset | paper | ours, raw | ours / paper | ours, restored | MeanFill |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for (name, row), (_, spread) in zip(means.iterrows(), stds.iterrows(), strict=True):
        raw, restored, filled = (f"{row[c]:.4f} ± {spread[c]:.4f}" for c in columns)
        mark = "\\*" if name in OTHER_FEATURES else ""
        paper, _ = paper_result("chebyshev", str(name), ORACLE)
        ratio = row[ORACLE] / paper
        lines.append(f"| {name}{mark} | {paper:.4f} | {raw} | {ratio:.3f} | {restored} | {filled} |")
    notes = [f"\\* {name}: {note}." for name, note in OTHER_FEATURES.items() if name in means.index]
    return "\n".join([*lines, "", *notes]).rstrip()


def by_alpha(results: pd.DataFrame) -> str:
    titles = [c.title for c in BY_ALPHA]
    table = by_repetition(results, "chebyshev", titles).groupby("dataset")
    means, columns = in_order(table.mean()), titles[8:18]
    lines = [f"| dataset | {' | '.join(columns)} |", "| --- |" + " --- |" * len(columns)]
    for name, row in means.iterrows():
        cells = [f"**{row[c]:.4f}**" if row[c] == row.min() else f"{row[c]:.4f}" for c in columns]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def paper_result(measure: str, dataset: str, method: str) -> tuple[float, float]:
    """The paper's mean and standard deviation for recovery with half of the labels hidden."""
    published = published_results().query("table == @PAPER_TABLES[@measure] and dataset == @dataset")
    chosen = published[published["method"] == method].iloc[0]
    return float(chosen["mean"]), float(chosen["std"])


def method_tables(results: pd.DataFrame) -> str:
    methods = (*COMPARED, *(c.title for c in VARIANTS))
    return "\n\n".join(method_table(method, results) for method in methods)


def method_table(method: str, results: pd.DataFrame) -> str:
    """A compared method beside the paper, in both measures that the paper has in full."""
    lines = [
        "| dataset | Chebyshev: paper | ours | ours / paper | Canberra: paper | ours | ours / paper |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    runs = {m: by_repetition(results, m, [method])[method] for m in PAPER_TABLES}
    present = [name for name in DATASETS if name in runs["chebyshev"].index.get_level_values("dataset")]
    comparable = [name for name in present if name not in OTHER_FEATURES]
    within, within_errors = dict.fromkeys(PAPER_TABLES, 0), dict.fromkeys(PAPER_TABLES, 0)
    for name in present:
        cells = [name + ("\\*" if name in OTHER_FEATURES else "")]
        for measure in PAPER_TABLES:
            ours = runs[measure].loc[name].to_numpy()
            paper, spread = paper_result(measure, name, method.partition(",")[0])
            ratio = ours.mean() / paper
            error = np.hypot(spread, ours.std(ddof=1)) / np.sqrt(len(ours)) if len(ours) > 1 else np.nan
            within[measure] += name in comparable and abs(ratio - 1) <= 0.05
            within_errors[measure] += name in comparable and bool(abs(ours.mean() - paper) <= 2 * error)
            cells += [f"{paper:.4f}", f"{ours.mean():.4f} ± {ours.std():.4f}", f"{ratio:.3f}"]
        lines.append(f"| {' | '.join(cells)} |")
    closing = [f"Within 5 % of the paper: {_counts(within, len(comparable))}."]
    if set(present) & set(OTHER_FEATURES):
        closing.append("\\* Not counted: the paper states other features.")
    if method == IS_NOISY:
        closing.append(f"Within two standard errors of the difference: {_counts(within_errors, len(comparable))}.")
    return "\n".join([f"### {method}", "", *lines, "", "\n\n".join(closing)])


def _counts(counts: dict[str, int], total: int) -> str:
    return " and ".join(f"{count} of {total} in {measure.capitalize()}" for measure, count in counts.items())


def quotient_table(results: pd.DataFrame, *, ours: str, theirs: str) -> str:
    """Errors of one method over those of another; for measures where higher is better, 1 minus the measure."""
    quotients = {}
    for measure in FIVE:
        table = by_repetition(results, measure, [ours, theirs]).groupby("dataset")
        means = 1 - table.mean() if MEASURES[measure].higher_is_better else table.mean()
        quotients[measure] = means[ours] / means[theirs]
    shown_rows = in_order(pd.DataFrame(quotients))
    summary = {
        "geometric mean": [f"{value:.4f}" for value in np.exp(np.log(shown_rows).mean())],
        "better on": [f"{count} of {len(shown_rows)}" for count in (shown_rows < 1).sum()],
        "largest": [f"{value:.4f}" for value in shown_rows.max()],
    }
    lines = [f"| dataset | {' | '.join(FIVE)} |", "| --- |" + " --- |" * len(FIVE)]
    lines += [f"| {name} | {' | '.join(f'{value:.3f}' for value in row)} |" for name, row in shown_rows.iterrows()]
    lines += [f"| *{name}* | {' | '.join(values)} |" for name, values in summary.items()]
    return "\n".join(lines)


def interval_table(results: pd.DataFrame) -> str:
    held = results[(results["status"] == "done") & (results["method"] == BAYES)].groupby("dataset")
    table = held[["shares_held", "masses_held"]].mean()
    errors = by_repetition(results, "chebyshev", [AUTO.title, ORACLE]).groupby("dataset").mean()
    table["alpha auto / oracle"] = errors[AUTO.title] / errors[ORACLE]
    lines = ["| dataset | shares held | masses held | alpha auto / oracle |", "| --- | --- | --- | --- |"]
    lines += [f"| {name} | {' | '.join(f'{v:.3f}' for v in row)} |" for name, row in in_order(table).iterrows()]
    return "\n".join(lines)


class Table(NamedTuple):
    """A table: the experiment and the methods that it needs, and how it is made of their results."""

    part: str
    methods: tuple[str, ...]
    make: Callable[[pd.DataFrame], str]

    def experiment(self, datasets: Sequence[str]) -> Experiment:
        whole = experiments(datasets)[self.part]
        return replace(whole, contenders=tuple(c for c in whole.contenders if c.title in self.methods))


def all_tables() -> dict[str, Table]:
    """Every table, by the name of its file."""
    beside = {"oracle": (BAYES, ORACLE), "meanfill": (BAYES, FILL), "relative": (RELATIVE.title, FILL)}
    variants = tuple(c.title for c in VARIANTS)
    own = (OWN_PREDICTIONS.title, ORACLE)
    return {
        "paper_chebyshev.md": Table("50", (ORACLE, RESTORED.title, FILL), beside_the_paper),
        "alpha.md": Table("alpha", tuple(c.title for c in BY_ALPHA), by_alpha),
        "paper_methods.md": Table("50", (*COMPARED, *variants), method_tables),
        **{
            f"bayes_intervals_{percent}.md": Table(percent, (BAYES, AUTO.title, ORACLE), interval_table)
            for percent in ("50", "80")
        },
        **{
            f"bayes_{name}_{percent}.md": Table(percent, pair, partial(quotient_table, ours=pair[0], theirs=pair[1]))
            for name, pair in beside.items()
            for percent in ("50", "80")
        },
        "bayes_predictive.md": Table("predictive", own, partial(quotient_table, ours=own[0], theirs=own[1])),
    }


def tables(store: Store, datasets: Sequence[str], names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The tables of these names whose results are all there."""
    for name in names:
        table = all_tables()[name]
        part = table.experiment(datasets)
        if _is_whole(part, store):
            yield name, table.make(store.results([part]))
        else:
            print(f"{name} lacks masks and is not written.", file=sys.stderr)


def write_paper(store: Store, folder: Path, datasets: tuple[str, ...]) -> None:
    """What the site shows of ``hidldl reproduce --all``; tables and figures that lack masks stay as they are."""
    folder.mkdir(parents=True, exist_ok=True)
    for number, table in TABLES.items():
        if all(_is_whole(part, store) for part in table.experiments(REPETITIONS, datasets)):
            parts = comparisons(table, store, REPETITIONS, datasets)
            write_markdown(folder / f"table-{number}.md", "\n\n".join(map(section, parts)))
        else:
            print(f"Table {number} lacks masks and is not written.", file=sys.stderr)
    write_figures(ALL_FIGURES, store, folder, datasets)


def write_figures(numbers: Sequence[str], store: Store, folder: Path, datasets: tuple[str, ...]) -> None:
    """The paper's figures of these numbers, if they lack no masks."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in numbers:
        needed = FIGURES[number].experiments(REPETITIONS, datasets) if number in FIGURES else ()
        if all(_is_whole(part, store) for part in needed):
            figure = draw(number, store, REPETITIONS, datasets)
            if figure is not None:
                figure.savefig(folder / f"figure-{number}.svg")
                write_markdown(folder / f"figure-{number}.md", f"Figure {number}.")
        else:
            print(f"Figure {number} lacks masks and is not written.", file=sys.stderr)


def _is_whole(part: Experiment, store: Store) -> bool:
    """Whether every mask has results of every contender."""
    return len(store.results([part])) == len({evaluation.key for evaluation in part.evaluations()})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=list(DATASETS), help="names; all eleven by default")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--store", type=Path, default=Path("quality.sqlite"), help="where results are kept")
    parser.add_argument("--render", action="store_true", help="run nothing, write the tables that are whole")
    parser.add_argument("--write", type=Path, help="also write the tables into this folder")
    parser.add_argument("--tables", nargs="+", default=[], choices=list(all_tables()), help="run and write only these")
    parser.add_argument("--figures", nargs="+", default=[], choices=list(FIGURES), help="run and write only these")
    arguments = parser.parse_args()
    store, datasets = Store(arguments.store), tuple(arguments.datasets)
    is_part = bool(arguments.tables or arguments.figures)
    if is_part and not arguments.render:
        with shown() as progress:
            parts = [all_tables()[name].experiment(datasets) for name in arguments.tables]
            parts += needed_experiments((), arguments.figures, REPETITIONS, datasets)
            run(parts, store, n_jobs=arguments.jobs, progress=progress)
    elif not arguments.render:
        run_all(store, datasets, arguments.jobs)
    for name, text in tables(store, datasets, arguments.tables if is_part else list(all_tables())):
        print(f"{name}\n\n{text}\n")
        if arguments.write:
            write_markdown(arguments.write / name, text)
    if arguments.write and is_part:
        write_figures(arguments.figures, store, arguments.write / "paper", datasets)
    elif arguments.write:
        write_paper(store, arguments.write / "paper", datasets)
    print(provenance(), file=sys.stderr)


if __name__ == "__main__":
    main()
