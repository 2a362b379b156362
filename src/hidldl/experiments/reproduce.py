"""The paper's tables and figures from a store, written as files and one page."""

import platform
from collections.abc import Sequence
from concurrent.futures import Executor
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from hidldl.experiments.figure_data import residuals, typical_row
from hidldl.experiments.paper import FIGURES, OURS, PAPER_TABLES, TABLES, PaperFigure, PaperTable, published_results
from hidldl.experiments.protocol import Experiment
from hidldl.experiments.runner import run
from hidldl.experiments.store import Store
from hidldl.progress import Progress, silent
from hidldl.replacing import naming, replacing, write_text
from hidldl.reports.comparison import Comparison, comparison_of, to_csv, to_latex, to_markdown
from hidldl.reports.page import Section, check_report_extra, render_page
from hidldl.reports.paper_plots import alpha_figure, rank_figure, rate_figure, residual_figure, rows_figure
from hidldl.statistics import wilcoxon_holm

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FITTED_FIGURES = {"2": "Recovered rows against the truth", "residuals": "Residuals against iterations"}
"""Figures that are fitted when they are drawn: the paper's Figure 2, and the convergence that it describes."""
ALL_FIGURES = ("2", *FIGURES, "residuals")
INTRODUCTION = (
    "Means and standard deviations over repetitions; the best is bold, the second underlined. A dot • (◦) means that "
    f"{OURS} is significantly better (worse) in a single-tailed paired t-test at 0.05. Below each number stands the "
    "paper's, with the difference: blue where ours is better, orange where it is worse. alpha is the oracle's."
)


def comparisons(
    table: PaperTable, store: Store, repetitions: int, datasets: tuple[str, ...] | None
) -> list[Comparison]:
    """The table's comparisons, one per setting and measure, with the paper's numbers beside ours."""
    paper = published_results()
    by_measure = []
    for experiment in table.experiments(repetitions, datasets):
        results = store.results([experiment])
        for measure in table.measures:
            published = paper.query("table == @table.number and setting == @experiment.setting and measure == @measure")
            more = f": {measure}, {experiment.setting}" if len(table.settings) * len(table.measures) > 1 else ""
            by_measure.append(
                comparison_of(
                    results,
                    measure,
                    title=f"Table {table.number}: {table.caption}{more}",
                    ours=OURS,
                    datasets=experiment.datasets,
                    methods=tuple(contender.title for contender in experiment.contenders),
                    paper=published,
                )
            )
    return by_measure


def draw(number: str, store: Store, repetitions: int, datasets: tuple[str, ...] | None) -> "Figure | None":
    """A figure by its number, None where none of its datasets is there."""
    if number == "2":
        shown = [name for name in ("Movie", "Yeast-spo") if _there(name, datasets)]
        return rows_figure({name: typical_row(name) for name in shown}) if shown else None
    if number == "residuals":
        shown = [name for name in TABLES["1"].datasets if name != "Movie" and _there(name, datasets)]
        return residual_figure({name: residuals(name) for name in shown}, tol=1e-3) if shown else None
    figure: PaperFigure = FIGURES[number]
    (experiment,) = figure.experiments(repetitions, datasets)
    results = store.results([experiment])
    of_ours = set(results.query("method == @OURS and status == 'done'")["dataset"])
    drawn = [name for name in experiment.datasets if name in of_ours]
    if not drawn:
        return None
    if number == "3":
        return alpha_figure(results, figure.measure, drawn, OURS, "IncomLDL")
    return rate_figure(results, figure.measure, drawn, [contender.title for contender in figure.contenders])


def reproduce(
    output: str | Path,
    *,
    tables: Sequence[str] = PAPER_TABLES,
    figures: Sequence[str] = ALL_FIGURES,
    datasets: Sequence[str] | None = None,
    repetitions: int = 5,
    n_jobs: int = 1,
    executor: Executor | None = None,
    retry_failed: bool = False,
    progress: Progress = silent,
    command: str = "hidldl.reproduce(...)",
) -> Path:
    """Run the paper's experiments, with what users registered, and write tables, figures and a page.

    Results are kept in ``results.sqlite`` in the folder as they are finished: an interrupted run goes on where it
    stopped, and nothing is run twice.

    Parameters
    ----------
    output : path
        The folder to write to.
    tables, figures : sequences of str
        Numbers of the paper's tables ("1", "2", "3", "A2" ... "A6") and figures ("2", "3", "A1", "A2", and
        "residuals"); all by default. Table "U" is ours: every method with the mask, with every zero taken for hidden,
        and with the mask inferred.
    datasets : sequence of str, optional
        Names of the datasets; all that are on this machine by default.
    repetitions : int, default=5
        Masks per dataset and rate.
    n_jobs : int, default=1
        Processes. The numbers do not depend on it.
    executor : concurrent.futures.Executor, optional
        Where to run instead: the machines of a cluster, such as Dask's ``client.get_executor()`` or mpi4py's
        ``MPIPoolExecutor``. They need this package, and the data where it is loaded by name.
    retry_failed : bool, default=False
        Run again what failed before.
    progress : callable, optional
        Called with how many evaluations are done, of how many, and the last one in words.
    command : str
        What the page names as the way it was made.

    Returns
    -------
    Path of the page.
    """
    check_report_extra()
    folder = Path(output)
    store = Store(folder / "results.sqlite")
    chosen = None if datasets is None else tuple(datasets)
    experiments = needed_experiments(tables, figures, repetitions, chosen)
    run(experiments, store, n_jobs=n_jobs, executor=executor, retry_failed=retry_failed, progress=progress)
    write(store, folder, tables=tables, figures=figures, repetitions=repetitions, datasets=chosen, command=command)
    return folder / "index.html"


def needed_experiments(
    tables: Sequence[str], figures: Sequence[str], repetitions: int, datasets: tuple[str, ...] | None
) -> list[Experiment]:
    """What has to be run for these tables and figures."""
    shown: list[PaperTable | PaperFigure] = [TABLES[number] for number in tables]
    shown += [FIGURES[number] for number in figures if number in FIGURES]
    return [experiment for item in shown for experiment in item.experiments(repetitions, datasets)]


def write(
    store: Store,
    folder: Path,
    *,
    tables: Sequence[str],
    figures: Sequence[str],
    repetitions: int,
    datasets: tuple[str, ...] | None,
    command: str,
) -> None:
    """Write tables (Markdown, LaTeX, CSV), figures (SVG, PDF, PNG), results.md with all tables, and the page."""
    folder.mkdir(parents=True, exist_ok=True)
    sections, markdown = [], []
    for number in tables:
        for position, comparison in enumerate(comparisons(TABLES[number], store, repetitions, datasets)):
            if not comparison.means.empty:
                name = f"table-{number}" + (f"-{position + 1}" if position else "")
                _write_table(folder, name, comparison)
                markdown.append(section(comparison))
                sections.append(_table_section(comparison))
    for number in figures:
        figure = draw(number, store, repetitions, datasets)
        if figure is not None:
            for ending in ("svg", "pdf", "png"):
                path = folder / f"figure-{number}.{ending}"
                with naming(path), replacing(path) as target:
                    figure.savefig(target, dpi=150)
            caption = FITTED_FIGURES.get(number) or FIGURES[number].caption
            title = f"Figure {number}" if number in ("2", *FIGURES) else "Convergence"
            sections.append(Section(f"{title}: {caption}", figures=[(figure, caption)]))
    write_text(folder / "results.md", "\n\n".join(markdown) + "\n")
    page = render_page(
        "The paper's evaluation, reproduced by hidldl",
        INTRODUCTION,
        sections,
        command,
        provenance(store.results(needed_experiments(tables, figures, repetitions, datasets))),
    )
    write_text(folder / "index.html", page + "\n")


def section(comparison: Comparison) -> str:
    """A comparison in Markdown under its title, with the test over datasets."""
    return f"## {comparison.title}\n\n{to_markdown(comparison)}\n\n{_over_datasets(comparison)}"


def _write_table(folder: Path, name: str, comparison: Comparison) -> None:
    for ending, text_of in (("md", to_markdown), ("tex", to_latex), ("csv", to_csv)):
        write_text(folder / f"{name}.{ending}", text_of(comparison) + "\n")


def _table_section(comparison: Comparison) -> Section:
    if len(comparison.means.columns) <= 3 or len(comparison.means) == 1:
        return Section(comparison.title, comparison)
    caption = "Average ranks; methods under one bar do not differ significantly (Nemenyi, 0.05)."
    return Section(comparison.title, comparison, [(rank_figure(comparison.ranks, len(comparison.means)), caption)])


def _over_datasets(comparison: Comparison) -> str:
    tests = wilcoxon_holm(comparison.means, OURS, higher_is_better=comparison.measure.higher_is_better)
    listed = ", ".join(f"{name} {row.p_holm:.3g}" for name, row in tests.iterrows())
    return f"Wilcoxon's signed-rank test over datasets, p after Holm's correction: {listed}."


def provenance(results: pd.DataFrame) -> str:
    """How much was computed for results, and with what."""
    failed = int((results["status"] == "failed").sum())
    packages = ", ".join(f"{name} {version(name)}" for name in ("hidldl", "numpy", "scipy", "scikit-learn"))
    return (
        f"{len(results):,} evaluations, {failed} of them failed, {results['seconds'].sum() / 60:.0f} minutes of "
        f"computing. Python {platform.python_version()}, {packages}."
    )


def _there(name: str, datasets: tuple[str, ...] | None) -> bool:
    return any(name in experiment.datasets for experiment in TABLES["1"].experiments(1, datasets))
