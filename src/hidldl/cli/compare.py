"""``hidldl compare``: the paper's comparison on a complete table of one's own."""

import hashlib
import sys
from pathlib import Path

import click


@click.command()
@click.argument("table", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--labels", required=True, help='The label columns: names separated by commas, or a pattern like "label_*".'
)
@click.option("--index", help="The column that names the rows.")
@click.option("--rate", type=click.FloatRange(0, 1), default=0.5, show_default=True, help="Share of labels to hide.")
@click.option("--measure", default="chebyshev", show_default=True, help="What is printed; the page has them all.")
@click.option("--setting", type=click.Choice(["recovery", "predictive"]), default="recovery", show_default=True)
@click.option("--repetitions", type=click.IntRange(1), default=5, show_default=True)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("hidldl-comparison"),
    show_default=True,
    help="Folder for the comparison and the store of results.",
)
def compare(
    table: Path,
    labels: str,
    index: str | None,
    rate: float,
    measure: str,
    setting: str,
    repetitions: int,
    jobs: int,
    output: Path,
) -> None:
    """Hide labels of your own complete TABLE and compare how well each method recovers them.

    The table (CSV, TSV or Parquet) must be complete: its rows are the ground truth. Every method sees the same masks.
    """
    import numpy as np

    from hidldl.cli.reproduce import progress_bar, tell_failures
    from hidldl.experiments.paper import METHODS, OURS
    from hidldl.experiments.protocol import Experiment, Method, register_dataset
    from hidldl.experiments.reproduction import comparison_page
    from hidldl.experiments.runner import run
    from hidldl.experiments.store import Store
    from hidldl.metrics import MEASURES
    from hidldl.recovery.bayeshidldl import BayesHidLDL
    from hidldl.reports import comparison as comparing
    from hidldl.reports.page import check_report_extra
    from hidldl.tables.loading import load_table
    from hidldl.validation import check_distributions

    if measure not in MEASURES:
        raise click.BadParameter(f"choose from {', '.join(MEASURES)}.", param_hint="--measure")
    try:
        check_report_extra()
        wanted = labels.split(",") if "," in labels else labels
        data = load_table(table, wanted, index=index)
        check_distributions(data.distributions, name=table.name)
        if not np.isfinite(data.features.to_numpy()).all():
            raise ValueError(f"{table.name} has empty cells in its feature columns; fill them first.")
    except (ValueError, ImportError) as error:
        raise click.ClickException(str(error)) from error
    # Results belong to the content: a table that changed is another dataset.
    name = f"{data.name} {hashlib.sha256(table.read_bytes()).hexdigest()[:8]}"
    register_dataset(name, lambda: data)
    methods = (*METHODS, Method.of("BayesHidLDL", BayesHidLDL()))
    experiment = Experiment("compare", setting, (name,), (rate,), methods, repetitions)  # type: ignore[arg-type]
    store = Store(output / "results.sqlite")
    with progress_bar() as show:
        run([experiment], store, n_jobs=jobs, report=show)
    tell_failures(store)
    results = store.results([experiment])
    comparisons = {
        shown: comparing.compare(
            results,
            shown,
            title=f"{data.name}: {shown}, {setting}, {rate:.0%} hidden",
            ours=OURS,
            datasets=(name,),
            methods=tuple(method.name for method in methods),
        )
        # The divergence is infinite as soon as a method rules out a label that is there.
        for shown in MEASURES
        if shown == measure or np.isfinite(results[shown].dropna()).all()
    }
    comparison = comparisons[measure]
    for ending, write in (("md", comparing.to_markdown), ("tex", comparing.to_latex), ("csv", comparing.to_csv)):
        (output / f"comparison.{ending}").write_text(write(comparison) + "\n", encoding="utf-8")
    page = comparison_page(data.name, list(comparisons.values()), results, " ".join(["hidldl", *sys.argv[1:]]))
    (output / "index.html").write_text(page, encoding="utf-8")
    means, stds = comparison.means.iloc[0], comparison.stds.iloc[0]
    best_first = means.sort_values(ascending=not MEASURES[measure].higher_is_better)
    click.echo(f"{comparison.title} ({MEASURES[measure].arrow}, {repetitions} repetitions)")
    for method in map(str, best_first.index):
        click.echo(f"  {method:<11} {means[method]:.4f} ± {stds[method]:.4f}")
    click.echo(f"Open {output / 'index.html'} for every measure; comparison.md, .tex and .csv have this one.")
