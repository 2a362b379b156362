"""The paper's Theorem 1 on real data: for which rows the bound holds, and how tight it is.

    HIDLDL_DATA=folder python benchmarks/theorem1.py [--write FOLDER]

HidLDL with its default parameters, one mask per dataset and rate. Only rows that lost mass to hidden labels count:
where nothing is hidden, error and bound are both 0.
"""

import argparse
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from convergence import DATASETS
from provenance import write_markdown

from hidldl import HidLDL, hide_labels, load_dataset, recovery_bound
from hidldl.progress import count, shown
from hidldl.reports.figures import MUTED_COLOR, RECOVERED_COLOR, TRUE_COLOR, new_figure

RATES = (0.5, 0.8)
PICTURED = ("Yeast-spo", "SBU3DFE", "Movie", "Emotion6")


def evaluate(name: str, rate: float) -> pd.DataFrame:
    """The bound in every row that lost mass."""
    data = load_dataset(name)
    D_obs, observed = hide_labels(data.distributions, rate=rate, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = HidLDL().fit(data.features, D_obs, observed=observed)
    bound = recovery_bound(data.distributions, model.distributions_, observed)
    return bound[bound["true_coefficient"] > 1 + 1e-9]


def table(results: dict[tuple[str, float], pd.DataFrame]) -> str:
    lines = [
        "| dataset | hidden | rows | holds | holds squared | median error | median bound | tightness |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (name, rate), bound in results.items():
        tightness = (bound["error"].abs() / bound["bound"])[bound["holds_squared"]].median()
        lines.append(
            f"| {name} | {rate:.0%} | {len(bound):,} "
            f"| {bound['holds'].mean():.1%} | {bound['holds_squared'].mean():.1%} "
            f"| {bound['error'].median():+.3f} | {bound['bound'].median():.3f} | {tightness:.2f} |"
        )
    return "\n".join(lines)


def picture(results: dict[tuple[str, float], pd.DataFrame]) -> "object":
    figure = new_figure(11, 3.4)
    axes = figure.subplots(1, len(PICTURED), sharex=True, sharey=True)
    r = np.linspace(0, 1, 200)
    for ax, name in zip(axes, PICTURED, strict=True):
        bound = results[name, 0.5]
        s, recovered = 1 / bound["true_coefficient"], 1 / bound["recovered_coefficient"]
        ax.scatter(s, recovered, s=3, alpha=0.35, color=RECOVERED_COLOR, rasterized=True)
        ax.plot(r**2, r, color=TRUE_COLOR, lw=1.5, label="r² = s")
        ax.plot([0, 1], [0, 1], color=MUTED_COLOR, lw=1, ls="--", label="r = s: exact")
        ax.set_title(f"{name}: holds in {bound['holds'].mean():.1%}", fontsize=10)
        ax.set_xlabel("true observed mass s")
        ax.set(xlim=(0, 1), ylim=(0, 1))
    axes[0].set_ylabel("recovered observed mass r")
    axes[0].legend(frameon=False, fontsize=8, loc="lower right")
    figure.suptitle("Theorem 1 holds below the curve (50 % hidden; every dot is a row)")
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--write", type=Path, help="also write theorem1.md and theorem1.png into this folder")
    arguments = parser.parse_args()
    runs = [(name, rate) for rate in RATES for name in DATASETS]
    with shown(sys.stderr.isatty()) as progress:
        measured = {run: evaluate(*run) for run in count(runs, progress, len(runs), "datasets and rates")}
    print(table(measured))
    if arguments.write:
        write_markdown(arguments.write / "theorem1.md", table(measured))
        picture(measured).savefig(arguments.write / "theorem1.png", dpi=130)  # type: ignore[attr-defined]
