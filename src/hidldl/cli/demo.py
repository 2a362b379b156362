"""``hidldl demo``: the main job on real data, in about a minute."""

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hidldl.progress import at_terminal, count, shown

if TYPE_CHECKING:
    from rich.table import Table

    from hidldl.experiments.demo import Demo, DemoResult


@click.command()
@click.option("--dataset", default="VADER", show_default=True, help="A name that 'hidldl datasets' lists.")
@click.option("--rows", type=click.IntRange(1), default=2000, show_default=True, help="Take so many rows, at random.")
@click.option("--rate", type=click.FloatRange(0, 1), default=0.5, show_default=True, help="Share of labels to hide.")
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of the draw.")
@click.option(
    "--picture",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default=Path("hidldl-demo.png"),
    show_default=True,
    help="Where to write the picture (.png, .svg or .pdf).",
)
def demo(dataset: str, rows: int, rate: float, seed: int, picture: Path) -> None:
    """Hide labels of a real dataset and recover them by several methods.

    Ends with a table of scores and a picture. The default data, words rated by ten people each, come with the
    package vaderSentiment; nothing is downloaded.
    """
    from rich.console import Console

    from hidldl.datasets.loading import load_dataset
    from hidldl.experiments.demo import DEMO_METHODS, Demo
    from hidldl.reports.figures import new_figure

    if picture.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise click.BadParameter("the picture must be a .png, .svg or .pdf file.", param_hint="--picture")
    if not picture.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {picture.parent}.", param_hint="--picture")
    console = Console()
    try:
        new_figure(1, 1)  # so that a missing matplotlib is an error before the work, not after it
        with shown(at_terminal(sys.stderr)) as progress:
            progress(0, None, f"loading {dataset}")
            data = load_dataset(dataset)
        hidden = Demo.prepare(data, rate, seed, rows)
    except (ImportError, ValueError, OSError) as error:
        raise click.ClickException(str(error)) from error
    share_hidden = 1 - hidden.observed.to_numpy().mean()
    console.print(
        f"{data.name}: {len(hidden.D_obs):,} rows, {data.features.shape[1]} features, {len(data.label_names)} labels. "
        f"{share_hidden:.0%} of the labels are now hidden and the rest inflated to sum to 1.",
        highlight=False,
    )
    with warnings.catch_warnings(), shown(at_terminal(sys.stderr)) as progress:
        warnings.simplefilter("ignore")  # Algorithm 1 stops by iterations here, as in the paper
        results = list(count(hidden.run(), progress, len(DEMO_METHODS), "recovering, methods"))
    console.print(_table(results))
    console.print(_legend(results), highlight=False)
    _save_picture(hidden, results, picture)
    console.print(f"\nPicture: {picture}", highlight=False, soft_wrap=True)


def _table(results: "list[DemoResult]") -> "Table":
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from hidldl.metrics import MEASURES

    # KL is infinite as soon as one hidden label is taken for absent, which says nothing about the rest.
    shown = [measure for measure in MEASURES.values() if measure.name != "kl"]
    caption = "↓ lower is better, ↑ higher is better; the best is bold"
    table = Table(title="Distance to the true rows", caption=caption, box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("method", no_wrap=True)
    for measure in shown:
        table.add_column(f"{measure.name}\n{measure.arrow}", justify="right", no_wrap=True, min_width=6)
    best = {
        measure.name: (max if measure.higher_is_better else min)(result.scores[measure.name] for result in results)
        for measure in shown
    }
    for result in results:
        values = {measure.name: result.scores[measure.name] for measure in shown}
        cells = [f"[bold]{x:.4f}[/bold]" if x == best[name] else f"{x:.4f}" for name, x in values.items()]
        table.add_row(result.method.name, *cells)
    return table


def _legend(results: "list[DemoResult]") -> str:
    lines = [f"  [bold]{result.method.name:<16}[/bold] {result.method.summary}" for result in results]
    handed_in, recovered = results[0].scores, results[-1].scores
    if handed_in["clark"] < recovered["clark"]:
        lines.append(
            "\nClark and Canberra are relative: 0.001 in place of a true zero counts as a full miss."
            "\nWhere many true shares are 0, rows as handed in, zeros and all, look good."
            '\nBayesHidLDL(estimate="relative") answers 0 where a true 0 is likely.'
        )
    return "\n".join(lines)


def _save_picture(hidden: "Demo", results: "list[DemoResult]", picture: Path) -> None:
    import numpy as np

    from hidldl.reports.figures import recovery_figure

    recovered = results[-1].distributions
    true, D_obs, observed = (np.asarray(part) for part in (hidden.data.distributions, hidden.D_obs, hidden.observed))
    names = getattr(hidden.data.features, "index", range(len(true)))
    kinds = ("good (1st quartile)", "median", "bad (3rd quartile)")
    rows = {
        f"“{names[i]}”: a {kind} recovery": (true[i], D_obs[i], observed[i], recovered[i])
        for kind, i in zip(kinds, hidden.typical_rows(recovered), strict=True)
    }
    errors = {result.method.name: result.scores["chebyshev"] for result in results}
    figure = recovery_figure(rows, hidden.data.label_names, errors, f"{hidden.data.name}: hidden labels, recovered")
    figure.savefig(picture, dpi=150)
