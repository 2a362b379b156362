"""Recovery without ground truth beside the oracle: BayesHidLDL and HidLDL(alpha="auto") on the paper's datasets.

    HIDLDL_DATA=folder python benchmarks/without_truth.py [--jobs 2] [--records FILE] [--write FOLDER] [DATASET ...]

Every method sees the same masks, 5 for each dataset at 50 % and 80 % of the labels hidden. "Oracle" is Algorithm 1 with
the alpha, of 2^-10 ... 2^10, whose rows are nearest to the ground truth; nothing else here sees that. Tables show
quotients: below 1 is better than what is divided by (for cosine and intersection, 1 minus the measure is divided).
What is in the records is not run again, so an interrupted run goes on where it stopped.
"""

import argparse
import json
import sys
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from tqdm import tqdm

from hidldl import MEASURES, SABFGS, BayesHidLDL, HidLDL, MeanFill, hide_labels, load_dataset, score
from hidldl.arrays import BoolArray, FloatArray
from hidldl.experiments.paper import ALPHAS, published_results
from hidldl.experiments.protocol import Condition
from hidldl.experiments.runner import TEST_SHARE

DATASETS = [name for name in published_results()["dataset"].unique() if name != "RAF-ML"]
RATES, REPETITIONS = (0.5, 0.8), 5
FIVE = ("chebyshev", "clark", "canberra", "cosine", "intersection")
LEVEL = 0.9


def oracle(X: Any, D_obs: FloatArray, observed: BoolArray, truth: FloatArray) -> HidLDL:
    """HidLDL with the alpha that is nearest to the ground truth."""
    path = HidLDL().alpha_path(ALPHAS, X, D_obs, observed)
    return min(path, key=lambda model: MEASURES["chebyshev"](truth, model.raw_distributions_))


def recover(name: str, rate: float, repetition: int) -> dict[str, Any]:
    data = load_dataset(name)
    X, D = data.features, data.distributions
    seed = Condition("recovery", name, rate, repetition).seed
    D_obs, observed = hide_labels(D, rate=rate, random_state=seed)
    record: dict[str, Any] = {"kind": "recovery", "dataset": name, "rate": rate, "repetition": repetition}
    record["oracle"] = score(D, oracle(X, D_obs, observed, D).raw_distributions_)
    record["mean fill"] = score(D, MeanFill().fit(X, D_obs, observed).distributions_)
    record["alpha auto"] = score(D, HidLDL("auto", random_state=seed).fit(X, D_obs, observed).distributions_)
    model = BayesHidLDL(random_state=seed).fit(X, D_obs, observed)
    record["bayes"] = score(D, model.distributions_)
    record["parameters"] = model.parameters_
    record.update(coverage(model, D, observed))
    relative = BayesHidLDL(**model.parameters_, estimate="relative", random_state=seed).fit(X, D_obs, observed)
    record["bayes, relative"] = score(D, relative.distributions_)
    return record


def coverage(model: BayesHidLDL, D: FloatArray, observed: BoolArray) -> dict[str, float]:
    """Share of hidden degrees, and of hidden masses, that lie in their intervals."""
    intervals, rounding = model.intervals(LEVEL), 1e-12
    hidden = ~observed
    degrees = (intervals.low <= D + rounding) & (intervals.high >= D - rounding)
    mass = np.where(hidden, D, 0).sum(axis=1)
    masses = (intervals.hidden_mass_low <= mass + rounding) & (intervals.hidden_mass_high >= mass - rounding)
    return {"degrees held": degrees[hidden].mean(), "masses held": masses[hidden.any(axis=1)].mean()}


def predict(name: str, rate: float, repetition: int) -> dict[str, Any]:
    """As the paper's predictive experiment: hide, split, recover the training rows, predict the test rows."""
    data = load_dataset(name)
    seed = Condition("predictive", name, rate, repetition).seed
    D_obs, observed = hide_labels(data.distributions, rate=rate, random_state=seed)
    order = np.random.default_rng(seed).permutation(len(D_obs))
    test, train = np.split(order, [round(TEST_SHARE * len(order))])
    X, D = data.features[train], data.distributions[train]
    recovered = oracle(X, D_obs[train], observed[train], D).distributions_
    followed = SABFGS(random_state=seed).fit(X, recovered).predict(data.features[test])
    model = BayesHidLDL(random_state=seed).fit(X, D_obs[train], observed[train])
    record: dict[str, Any] = {"kind": "predictive", "dataset": name, "rate": rate, "repetition": repetition}
    truth = data.distributions[test]
    record["oracle"] = score(truth, followed)
    record["bayes"] = score(truth, model.predict(data.features[test]))
    return record


def time(name: str, rate: float, repetition: int) -> dict[str, Any]:
    """Seconds of a fit that tunes itself and of one with given parameters, in one process and one thread."""
    data = load_dataset(name)
    D_obs, observed = hide_labels(data.distributions, rate=rate, random_state=repetition)
    record: dict[str, Any] = {"kind": "timing", "dataset": name, "rate": rate, "repetition": repetition}
    started = perf_counter()
    model = BayesHidLDL(random_state=0).fit(data.features, D_obs, observed)
    tuned = perf_counter()
    BayesHidLDL(**model.parameters_, random_state=0).fit(data.features, D_obs, observed)
    record["self-tuned"], record["given"] = tuned - started, perf_counter() - tuned
    return record


KINDS = {"recovery": recover, "predictive": predict, "timing": time}


def run(task: tuple[str, str, float, int]) -> dict[str, Any]:
    kind, name, rate, repetition = task
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Algorithm 1 stops by iterations, and sigma = 1 makes Emotion6's graph vanish
        return KINDS[kind](name, rate, repetition)


def means(records: list[dict[str, Any]], method: str) -> pd.DataFrame:
    """Mean of each measure by dataset, turned so that lower is better."""
    rows = pd.DataFrame([{"dataset": record["dataset"], **record[method]} for record in records])
    table = rows.groupby("dataset").mean()
    for name in table:
        if MEASURES[str(name)].higher_is_better:
            table[name] = 1 - table[name]
    return table.loc[[name for name in DATASETS if name in table.index]]


def quotient_table(records: list[dict[str, Any]], ours: str, theirs: str, measures: tuple[str, ...]) -> str:
    quotients = (means(records, ours) / means(records, theirs))[list(measures)]
    summary = {
        "geometric mean": [f"{value:.4f}" for value in np.exp(np.log(quotients).mean())],
        "better on": [f"{count} of {len(quotients)}" for count in (quotients < 1).sum()],
        "largest": [f"{value:.4f}" for value in quotients.max()],
    }
    lines = [f"| dataset | {' | '.join(measures)} |", "| --- |" + " --- |" * len(measures)]
    lines += [f"| {name} | {' | '.join(f'{value:.3f}' for value in row)} |" for name, row in quotients.iterrows()]
    lines += [f"| *{name}* | {' | '.join(values)} |" for name, values in summary.items()]
    return "\n".join(lines)


def held_and_auto(records: list[dict[str, Any]]) -> str:
    shown = pd.DataFrame(records).groupby("dataset")[["degrees held", "masses held"]].mean()
    shown["alpha auto / oracle"] = means(records, "alpha auto")["chebyshev"] / means(records, "oracle")["chebyshev"]
    return plain_table(shown, "{:.3f}")


def timing_table(records: list[dict[str, Any]]) -> str:
    rows = pd.DataFrame(records).set_index("dataset")
    columns = {
        f"{what}, {rate:.0%} hidden": rows[rows["rate"] == rate][what]
        for what in ("given", "self-tuned")
        for rate in RATES
    }
    return plain_table(pd.DataFrame(columns), "{:.2f} s")


def plain_table(table: pd.DataFrame, form: str) -> str:
    table = table.loc[[name for name in DATASETS if name in table.index]]
    lines = [f"| dataset | {' | '.join(map(str, table))} |", "| --- |" + " --- |" * table.shape[1]]
    lines += [f"| {name} | {' | '.join(map(form.format, row))} |" for name, row in table.iterrows()]
    return "\n".join(lines)


def tables(records: list[dict[str, Any]]) -> dict[str, str]:
    made = {}
    for rate in RATES:
        recovery = [r for r in records if r["kind"] == "recovery" and r["rate"] == rate]
        if recovery:
            percent = f"{rate:.0%}".replace("%", "")
            made[f"bayes_oracle_{percent}.md"] = quotient_table(recovery, "bayes", "oracle", FIVE)
            made[f"bayes_meanfill_{percent}.md"] = quotient_table(recovery, "bayes", "mean fill", FIVE)
            made[f"bayes_relative_{percent}.md"] = quotient_table(recovery, "bayes, relative", "mean fill", FIVE)
            made[f"bayes_intervals_{percent}.md"] = held_and_auto(recovery)
    predictive = [r for r in records if r["kind"] == "predictive"]
    if predictive:
        made["bayes_predictive.md"] = quotient_table(predictive, "bayes", "oracle", FIVE)
    timing = [r for r in records if r["kind"] == "timing"]
    if timing:
        made["bayes_seconds.md"] = timing_table(timing)
    return made


def run_all(tasks: list[tuple[str, str, float, int]], jobs: int, records: list[dict[str, Any]], path: Path) -> None:
    """Run what is not on record yet, and record it."""
    done = {(r["kind"], r["dataset"], r["rate"], r["repetition"]) for r in records}
    tasks = [task for task in tasks if task not in done]
    results = Parallel(jobs, return_as="generator_unordered")(delayed(run)(task) for task in tasks)
    with path.open("a", encoding="utf-8") as file:
        for record in tqdm(results, total=len(tasks), disable=not sys.stderr.isatty()):
            records.append(record)
            file.write(json.dumps(record) + "\n")
            file.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=DATASETS, help="names; all eleven by default")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--records", type=Path, default=Path("without_truth.jsonl"), help="results, one per line")
    parser.add_argument("--write", type=Path, help="also write the tables into this folder")
    arguments = parser.parse_args()
    known = arguments.records.read_text(encoding="utf-8").splitlines() if arguments.records.exists() else []
    records = [json.loads(line) for line in known]
    tasks = [("recovery", n, rate, k) for k in range(REPETITIONS) for n in arguments.datasets for rate in RATES]
    tasks += [("predictive", n, 0.5, k) for k in range(REPETITIONS) for n in arguments.datasets]
    run_all(tasks, arguments.jobs, records, arguments.records)
    # Alone, after a fit that compiles or loads what is compiled.
    BayesHidLDL(random_state=0).fit(np.eye(30), np.full((30, 3), 1 / 3))
    run_all([("timing", n, rate, 0) for n in arguments.datasets for rate in RATES], 1, records, arguments.records)
    for name, table in tables(records).items():
        print(f"{name}\n\n{table}\n")
        if arguments.write:
            (arguments.write / name).write_text(table + "\n", encoding="utf-8")
