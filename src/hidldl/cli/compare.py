"""``hidldl compare``: the paper's comparison on a complete table of one's own."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Literal

import click

from hidldl.cli.recover import header_row_option, sheet_option


@click.command()
@click.argument("table", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option(
    "--labels", required=True, help="The label columns: names, patterns (label_*) or ranges (joy..anger), by commas."
)
@click.option("--features", help="The feature columns, in the same way; all others by default.")
@click.option("--id", "--index", "index", help="The column that names the rows.")
@sheet_option
@header_row_option
@click.option("--rate", type=click.FloatRange(0, 1), default=0.5, show_default=True, help="Share of labels to hide.")
@click.option("--measure", default="chebyshev", show_default=True, help="What is printed; the page has them all.")
@click.option("--setting", type=click.Choice(["recovery", "predictive", "unaware"]), default="recovery",
              show_default=True, help="unaware: also without a mask, and with an inferred one.")  # fmt: skip
@click.option("--repetitions", type=click.IntRange(1), default=5, show_default=True)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Processes.")
@click.option(
    "--output",
    "-o",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("hidldl-comparison"),
    show_default=True,
    help="Folder for the comparison and the store of results.",
)
def compare(
    table: Path,
    labels: str,
    features: str | None,
    index: str | None,
    sheet: str | None,
    header_row: str | None,
    rate: float,
    measure: str,
    setting: Literal["recovery", "predictive", "unaware"],
    repetitions: int,
    jobs: int,
    output: Path,
) -> None:
    """Hide labels of your own complete TABLE and compare how well each method recovers them.

    The table (CSV, TSV, Parquet or Excel) must be complete: its rows are the ground truth. Every method sees the same
    masks.
    """
    from hidldl.cli.reproduce import resumable, tell_failures
    from hidldl.experiments.compare import compare as compare_methods
    from hidldl.metrics import MEASURES
    from hidldl.tables.loading import load_table

    if measure not in MEASURES:
        raise click.BadParameter(f"choose from {', '.join(MEASURES)}.", param_hint="--measure")
    with resumable() as progress:
        data = replace(
            load_table(table, labels, features, index=index, sheet=sheet, header_row=header_row), name=table.name
        )
        result = compare_methods(
            data,
            output,
            rate=rate,
            setting=setting,
            measure=measure,
            repetitions=repetitions,
            n_jobs=jobs,
            progress=progress,
            command=" ".join(["hidldl", *sys.argv[1:]]),
        )
    tell_failures(result.results)
    comparison = result.comparisons[measure]
    means = comparison.means.iloc[0]
    best_first = means.sort_values(ascending=not MEASURES[measure].higher_is_better)
    times = "1 repetition" if repetitions == 1 else f"{repetitions} repetitions"
    click.echo(f"{comparison.title} ({MEASURES[measure].arrow}, {times})")
    for method in map(str, best_first.index):
        click.echo(f"  {method:<11} {comparison.mean_and_spread(means.name, method)}")
    click.echo(f"Open {result.page} for every measure; comparison.md, .tex and .csv have this one.")
