"""BayesHidLDL beside what a strong modeller would write instead, on the datasets or on a table of one's own.

    HIDLDL_DATA=folder python benchmarks/rivals.py [--rates 0.5 0.8] [--masks 5] [--jobs 2] [--store FILE]
        [--write docs/results] [DATASET ...]
    python benchmarks/rivals.py --table mine.csv --labels 'joy..anger' [--features ...] [--index ...]

The rivals are in rival_methods.py. All see the same masks, which are those of quality.py; with the same store, what
it has of BayesHidLDL and MeanFill is not run again, and an interrupted run goes on where it stopped. A table of one's
own must be complete: its labels are hidden here. --render runs nothing.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
from provenance import provenance, write_markdown
from quality import BAYES, DATASETS, FILL, REPETITIONS, by_repetition
from rival_methods import Imputed, Neighbours, Network, SoftImpute

from hidldl import Dataset, SelfTuned, load_table
from hidldl.datasets.vader import VADER_NAME
from hidldl.experiments.paper import METHODS
from hidldl.experiments.protocol import Contender, Experiment
from hidldl.experiments.runner import run
from hidldl.experiments.store import Store
from hidldl.progress import shown
from hidldl.validation import check_distributions

MEASURES = {"chebyshev": "Chebyshev", "clark": "Clark", "kl": "Kullback–Leibler"}
NEIGHBOURS = SelfTuned(Neighbours(), {"k": (5, 10, 20, 40, 80, 160)})
SOFT_IMPUTE = SelfTuned(SoftImpute(), {"shrinkage": (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)})
RIVALS = (
    *(contender for contender in METHODS if contender.title == FILL),
    Contender.of("imputer, ridge", Imputed("ridge"), rows="public"),
    Contender.of("imputer, trees", Imputed("trees"), rows="public"),
    Contender.of("neighbours", NEIGHBOURS, rows="public"),
    Contender.of("softImpute", SOFT_IMPUTE, rows="public"),
    Contender.of("network, features", Network(sees_labels=False), rows="public"),
    Contender.of("network, labels too", Network(sees_labels=True), rows="public"),
)
CONTENDERS = (*(contender for contender in METHODS if contender.title == BAYES), *RIVALS)


def quotients(results: pd.DataFrame, measure: str, datasets: Sequence[str]) -> pd.DataFrame:
    """Each rival's error over that of BayesHidLDL, means over the masks that both have, by dataset."""
    columns = {}
    for rival in RIVALS:
        means = by_repetition(results, measure, [BAYES, rival.title]).groupby("dataset").mean()
        columns[rival.title] = means[rival.title] / means[BAYES]
    table = pd.DataFrame(columns)
    return table.loc[[name for name in datasets if name in table.index]]


def quotient_table(results: pd.DataFrame, measure: str, datasets: Sequence[str]) -> str:
    table = quotients(results, measure, datasets)
    lines = [f"| {MEASURES[measure]} | {' | '.join(map(str, table))} |", "| --- |" + " --- |" * table.shape[1]]
    lines += [f"| {name} | {' | '.join(map('{:.3f}'.format, row))} |" for name, row in table.iterrows()]
    means = map("{:.3f}".format, np.exp(np.log(table).mean()))
    better = (f"{count} of {total}" for count, total in zip((table > 1).sum(), table.count(), strict=True))
    lines += [f"| *geometric mean* | {' | '.join(means)} |", f"| *{BAYES} better on* | {' | '.join(better)} |"]
    return "\n".join(lines)


def report_gaps(results: pd.DataFrame, experiment: Experiment) -> bool:
    """Say what is missing or failed; whether nothing is."""
    for _, failed in results[results["status"] == "failed"].iterrows():
        reason = failed["traceback"].strip().splitlines()[-1]
        print(f"{failed['method']} failed on {failed['dataset']}: {reason}", file=sys.stderr)
    missing = len({evaluation.key for evaluation in experiment.evaluations()}) - (results["status"] == "done").sum()
    if missing:
        print(f"{missing} results at {experiment.rates[0]:.0%} hidden are not there.", file=sys.stderr)
    return not missing


def own_table(arguments: argparse.Namespace) -> Dataset:
    """The user's table, under a name that belongs to its content: a table that changed is another one."""
    if arguments.labels is None:
        raise SystemExit("--table needs --labels, the label columns, such as 'joy..anger' or 'label_*'.")
    data = load_table(arguments.table, arguments.labels, arguments.features, index=arguments.index)
    check_distributions(data.distributions, name=data.name)
    digest = joblib.hash((data.features.to_numpy(), data.distributions.to_numpy()))[:8]
    return Dataset(f"{data.name} {digest}", data.features, data.distributions, data.feature_names, data.label_names)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    everything = [*DATASETS, VADER_NAME]
    parser.add_argument("datasets", nargs="*", help="names; the eleven of quality.py and VADER by default")
    parser.add_argument("--table", type=Path, help="a complete table of your own, in place of the datasets")
    parser.add_argument("--labels", help="its label columns: names, patterns, ranges")
    parser.add_argument("--features", help="its feature columns; all others by default")
    parser.add_argument("--index", help="its column that names the rows")
    parser.add_argument("--rates", type=float, nargs="+", default=[0.5, 0.8], help="shares of labels to hide")
    parser.add_argument("--masks", type=int, default=REPETITIONS, help="masks for each dataset and rate")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--store", type=Path, default=Path("quality.sqlite"), help="where results are kept")
    parser.add_argument("--render", action="store_true", help="run nothing, show what is there")
    parser.add_argument("--write", type=Path, help="also write the tables that are whole into this folder")
    arguments = parser.parse_args()
    if arguments.table and arguments.datasets:
        parser.error("give either names of datasets or --table.")
    arguments.datasets = arguments.datasets or everything
    return arguments


def main() -> None:
    arguments = parse()
    data = own_table(arguments) if arguments.table else None
    datasets = (data.name,) if data else tuple(arguments.datasets)
    store = Store(arguments.store)
    experiment = Experiment("rivals", "recovery", datasets, tuple(arguments.rates), CONTENDERS, arguments.masks)
    if not arguments.render:
        with shown() as progress:
            run([experiment], store, n_jobs=arguments.jobs, retry_failed=True, data=data, progress=progress)
    for rate in arguments.rates:
        part = Experiment("rivals", "recovery", datasets, (rate,), CONTENDERS, arguments.masks)
        results = store.results([part])
        is_whole = report_gaps(results, part)
        text = "\n\n".join(quotient_table(results, measure, datasets) for measure in MEASURES)
        print(f"{rate:.0%} hidden\n\n{text}\n")
        if arguments.write and is_whole:
            write_markdown(arguments.write / f"rivals_{100 * rate:.0f}.md", text)
    print(provenance(), file=sys.stderr)


if __name__ == "__main__":
    main()
