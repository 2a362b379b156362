"""What kinds of rows, ordered labels and the curve of hiding did for BayesHidLDL, beside what it was before.

    HIDLDL_DATA=folder python benchmarks/accuracy.py before [--jobs 2] [--store FILE] [--masks 5] [--write docs/results]
    HIDLDL_DATA=folder python benchmarks/accuracy.py hiding | noise | ordered | absent | regret | acts [--masks 2]

An interrupted run goes on where it stopped: results are kept in benchmarks/.kept, or in the store of "before".
"before" divides by benchmarks/yardstick.csv, the numbers of commit 0dbbf58 on the same masks (VADER and the last mask
at 80 %: of a55d366, whose code gives the same). "hiding" hides labels by other mechanisms than chance, and divides by
a fit with one kind of rows that takes labels as hidden alike, the model of before. "noise" has nothing to learn: rows
are Dirichlet, features are noise, and the mean fill is the limit. "ordered" has 70 ordered labels. In "absent" rows
lack about half of their labels, beside a model in which they have all. "regret" generates tables from the model itself;
the limit is the posterior under the true parameters, and "least" is the regret of one who knows all of them but the
function, which is learned from the same rows: exact inference, so nobody can expect less. "acts" asks for the estimate
that is best in a measure instead of the mean.
"""

import argparse
import inspect
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Memory, Parallel, delayed
from joblib import hash as joblib_hash
from provenance import show
from quality import BAYES, DATASETS, ORACLE
from scipy.linalg import solve_triangular
from scipy.special import softmax
from sklearn.metrics.pairwise import euclidean_distances
from threadpoolctl import threadpool_limits

from hidldl import BayesHidLDL, HidLDL, MeanFill, hide_labels, load_dataset, score
from hidldl.arrays import BoolArray, FloatArray
from hidldl.datasets.vader import VADER_NAME
from hidldl.experiments.code_version import code_version
from hidldl.experiments.paper import PAPER_ALPHAS, contender
from hidldl.experiments.protocol import Experiment
from hidldl.experiments.runner import run
from hidldl.experiments.store import Store
from hidldl.parallel import row_blocks
from hidldl.progress import shown
from hidldl.recovery.acts import ACTS
from hidldl.recovery.posterior import complete

YARDSTICK = Path(__file__).parent / "yardstick.csv"
KEPT = Path(__file__).parent / ".kept"
MEASURES = ("chebyshev", "clark", "canberra", "cosine", "intersection")
MECHANISMS = (
    ("degree", 1.0),
    ("degree", 2.5),
    ("top-k", 0.0),
    ("uniform", 0.0),
    ("label", 1.0),
    ("row", 1.0),
    ("feature", 1.0),
)
EVERYTHING = (*DATASETS, VADER_NAME)
HIDING_DATASETS = ("Movie", "SBU3DFE", "Yeast-spo", "Emotion6")
SIMPLE: dict[str, Any] = {
    "n_components": 1,
    "hiding": "uniform",
    "n_landmarks": 500,
    "learn_distance": False,
    "absent_labels": False,
}
SHAPES = {"flat": np.ones(5), "peaked": np.full(8, 0.4), "uneven": np.array([4, 2, 1, 1, 0.5, 0.5])}
SEEDS = range(5)
FLOORS = (0.0, 2e-4)
EXPLAINED = (0.9, 0.5, 0.1)


def errors(table: pd.DataFrame) -> pd.DataFrame:
    """Measures in which less is better."""
    return table.assign(cosine=1 - table["cosine"], intersection=1 - table["intersection"])


def before(arguments: argparse.Namespace) -> dict[str, str]:
    method = contender("bayes", title=BAYES, interval_level=0.9)
    experiment = Experiment("accuracy", "recovery", EVERYTHING, (0.5, 0.8), (method,), arguments.masks)
    store = Store(arguments.store)
    with shown() as progress:
        for masks in range(1, arguments.masks + 1):
            part = Experiment("accuracy", "recovery", EVERYTHING, (0.5, 0.8), (method,), masks)
            run([part], store, n_jobs=arguments.jobs, progress=progress)
    keys = ["dataset", "rate", "repetition"]
    now = errors(store.results([experiment]))
    then = errors(pd.read_csv(YARDSTICK))
    oracle = then[then["method"] == ORACLE]
    then = then[then["method"] == BAYES]
    tables = {}
    for rate in (0.5, 0.8):
        both = (
            now[now["rate"] == rate]
            .merge(then, on=keys, suffixes=("", "_then"))
            .merge(oracle, on=keys, suffixes=("", "_oracle"))
        )
        tables[f"accuracy_before_{rate:.0%}.md".replace("%", "")] = beside(both)
    return tables


def beside(both: pd.DataFrame) -> str:
    """Errors divided by those of before and by the oracle's, means over masks first.

    The first geometric mean is over the paper's datasets, of which VADER is none.
    """
    means = both.groupby("dataset").mean(numeric_only=True)
    means = means.loc[[name for name in EVERYTHING if name in means.index]]
    table = pd.DataFrame({measure: means[measure] / means[f"{measure}_then"] for measure in MEASURES})
    table["chebyshev / oracle"] = means["chebyshev"] / means["chebyshev_oracle"]
    table["clark / oracle"] = means["clark"] / means["clark_oracle"]
    logs = table.transform(np.log)
    table["90 % hold"] = means["shares_held"]
    table.loc["*geometric mean*"] = np.exp(logs.drop(index=VADER_NAME, errors="ignore").mean())
    if VADER_NAME in logs.index:
        table.loc["*with VADER*"] = np.exp(logs.mean())
    masks = both.groupby("dataset").size()
    return as_markdown(table) + f"\n\nMasks per dataset: {masks.min()} to {masks.max()}."


def as_markdown(table: pd.DataFrame, index: str = "dataset") -> str:
    lines = [f"| {index} | {' | '.join(map(str, table.columns))} |", "| --- |" + " --- |" * len(table.columns)]
    for name, row in table.iterrows():
        cells = ["" if pd.isna(value) else f"{value:.3f}" if isinstance(value, float) else str(value) for value in row]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def hiding(arguments: argparse.Namespace) -> dict[str, str]:
    tasks = [
        (name, mechanism, slope, seed)
        for mechanism, slope in MECHANISMS
        for name in HIDING_DATASETS
        for seed in range(arguments.masks)
    ]
    rows = pd.DataFrame(in_parallel(hide_and_recover, tasks, arguments.jobs))
    means = rows.groupby(["mechanism", "dataset"], sort=False).mean(numeric_only=True)
    table = pd.DataFrame(
        {
            "chebyshev": means["now"] / means["then"],
            "chebyshev / oracle": means["now"] / means["oracle"],
            "bias": means["bias"],
            "bias then": means["bias_then"],
            "90 % hold": means["held"],
            "slope": means["slope"],
        }
    )
    table.index = [f"{mechanism}, {name}" for mechanism, name in table.index]
    return {"accuracy_hiding.md": as_markdown(table, "mechanism, dataset")}


def hide_and_recover(name: str, mechanism: str, slope: float, seed: int) -> dict[str, Any]:
    data = load_dataset(name)
    X, D = np.asarray(data.features), np.asarray(data.distributions)
    more: dict[str, Any] = {"mechanism": mechanism} | ({"features": X} if mechanism == "feature" else {})
    D_obs, observed = hide_labels(D, 0.5, seed, slope=slope, **more)
    now = BayesHidLDL(random_state=seed).fit(X, D_obs, observed=observed)
    then = BayesHidLDL(random_state=seed, **SIMPLE).fit(X, D_obs, observed=observed)
    path = HidLDL().alpha_path(PAPER_ALPHAS, X, D_obs, observed=observed)
    true_mass = np.where(observed, 0, D).sum(axis=1)
    low, high, *_ = now.intervals(0.9)
    return {
        "dataset": name,
        "mechanism": f"{mechanism} {slope:g}" if mechanism == "degree" else mechanism,
        "now": score(D, now.distributions_)["chebyshev"],
        "then": score(D, then.distributions_)["chebyshev"],
        "oracle": min(score(D, model.distributions_)["chebyshev"] for model in path),
        "bias": float((now.hidden_mass_ - true_mass).mean()),
        "bias_then": float((then.hidden_mass_ - true_mass).mean()),
        "held": float(((low <= D + 1e-9) & (high >= D - 1e-9))[~observed].mean()),
        "slope": now.hiding_slope_,
    }


def noise(arguments: argparse.Namespace) -> dict[str, str]:
    tasks = [(n_rows, shape, seed) for n_rows in (30, 60, 100, 300) for shape in SHAPES for seed in SEEDS]
    rows = pd.DataFrame(in_parallel(recover_noise, tasks, arguments.jobs))
    quotient = rows.groupby(["rows", "shape"], sort=False)["quotient"]
    table = pd.DataFrame(
        {
            "geometric mean": np.exp(
                np.log(rows["quotient"]).groupby([rows["rows"], rows["shape"]], sort=False).mean()
            ),
            "worst": quotient.max(),
        }
    )
    table.index = [f"{n_rows}, {shape}" for n_rows, shape in table.index]
    table.loc["*all*"] = [np.exp(np.log(rows["quotient"]).mean()), rows["quotient"].max()]
    return {"accuracy_noise.md": as_markdown(table, "rows, shape")}


def recover_noise(n_rows: int, shape: str, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng([n_rows, seed])
    D = np.maximum(rng.dirichlet(SHAPES[shape], n_rows), 1e-6)
    D /= D.sum(axis=1, keepdims=True)
    X = rng.standard_normal((n_rows, 6))
    D_obs, observed = hide_labels(D, 0.5, seed)
    model, fill = (
        method.fit(X, D_obs, observed=observed).distributions_ for method in (BayesHidLDL(random_state=0), MeanFill())
    )
    return {"rows": n_rows, "shape": shape, "quotient": score(D, model)["chebyshev"] / score(D, fill)["chebyshev"]}


def regret(arguments: argparse.Namespace) -> dict[str, str]:
    tasks = [(explained, seed) for explained in EXPLAINED for seed in range(arguments.masks)]
    rows = pd.DataFrame(in_parallel(recover_generated, tasks, arguments.jobs))
    means = rows.groupby("explained").mean(numeric_only=True)
    table = means[["now", "then", "least"]] - 1
    table["now / then"], table["least / then"] = table["now"] / table["then"], table["least"] / table["then"]
    return {"accuracy_regret.md": as_markdown(table, "explained")}


def recover_generated(explained: float, seed: int, n_rows: int = 2000, n_labels: int = 10) -> dict[str, Any]:
    """Log-shares that are normal around a smooth function of the features, which explains so much of their variance."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 8))
    waves = np.cos(0.5 * X @ rng.standard_normal((8, 60)) + rng.uniform(0, 2 * np.pi, 60))
    mixing = rng.standard_normal((60, n_labels)) @ rng.standard_normal((n_labels, n_labels))
    mean = (waves - waves.mean(axis=0)) @ mixing
    factor = np.sqrt(explained) / mean.std()
    mean *= factor
    half = rng.standard_normal((n_labels, n_labels))
    S = (1 - explained) * n_labels * half @ half.T / np.trace(half @ half.T)
    D = softmax(mean + rng.multivariate_normal(np.zeros(n_labels), S, n_rows), axis=1)
    D_obs, observed = hide_labels(D, 0.5, seed)
    limit = score(D, true_posterior_means(D_obs, observed, mean, S, rng))["chebyshev"]
    kernel = np.exp(-euclidean_distances(0.5 * X, squared=True) / 2)
    learned = learned_posterior_means(D_obs, observed, kernel, factor**2 * mixing.T @ mixing / 2, S, rng)
    now, then = (
        score(D, BayesHidLDL(random_state=seed, **options).fit(X, D_obs, observed=observed).distributions_)["chebyshev"]
        for options in ({}, SIMPLE)
    )
    least = score(D, learned)["chebyshev"]
    return {"explained": explained, "now": now / limit, "then": then / limit, "least": least / limit}


def true_posterior_means(
    D_obs: FloatArray, observed: BoolArray, mean: FloatArray, S: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Rows under the true mean and covariance: log-ratios of observed labels are known, the rest is normal."""
    n_labels = len(S)
    recovered = D_obs.copy()
    for i in np.flatnonzero(~observed.all(axis=1)):
        known = np.flatnonzero(observed[i])
        contrasts = np.eye(n_labels)[known[1:]] - np.eye(n_labels)[known[0]]
        gain = S @ contrasts.T @ np.linalg.inv(contrasts @ S @ contrasts.T)
        log_ratios = np.log(D_obs[i, known[1:]] / D_obs[i, known[0]])
        center = mean[i] + gain @ (log_ratios - contrasts @ mean[i])
        spread = S - gain @ contrasts @ S
        D = softmax(rng.multivariate_normal(center, spread, 400, check_valid="ignore"), axis=1).mean(axis=0)
        recovered[i] = np.where(observed[i], D[known].sum() * D_obs[i], D)
    return recovered


def learned_posterior_means(
    D_obs: FloatArray, observed: BoolArray, kernel: FloatArray, C: FloatArray, S: FloatArray, rng: np.random.Generator
) -> FloatArray:
    """Rows under the posterior of a Gaussian process: the mean has covariance kernel ⊗ C, and rows S around it."""
    n_rows, n_labels = D_obs.shape
    pairs = [(i, first, j) for i, (first, *others) in enumerate(map(np.flatnonzero, observed)) for j in others]
    rows, first, second = np.array(pairs).T
    contrasts = np.eye(n_labels)[second] - np.eye(n_labels)[first]
    log_ratios = np.log(D_obs[rows, second] / D_obs[rows, first])
    by_row = (rows[:, None] == rows) * (contrasts @ S @ contrasts.T)
    factor = np.linalg.cholesky(kernel[np.ix_(rows, rows)] * (contrasts @ C @ contrasts.T) + by_row)
    known = solve_triangular(factor, log_ratios, lower=True)
    expected = np.empty_like(D_obs)
    # Many rows at a time, or most of the time goes into reading the factor.
    for block in row_blocks(n_rows, 50):
        at = np.arange(n_rows)[block]
        cross = kernel[at, :][:, rows, None] * (contrasts @ C) + (at[:, None] == rows)[:, :, None] * (contrasts @ S)
        gains = solve_triangular(factor, np.hstack(list(cross)), lower=True, check_finite=False)
        for i, gain in zip(at, np.hsplit(gains, len(at)), strict=True):
            spread = C + S - gain.T @ gain
            draws = rng.multivariate_normal(gain.T @ known, spread, 400, check_valid="ignore")
            expected[i] = softmax(draws, axis=1).mean(axis=0)
    return complete(np.where(observed, 0, expected), D_obs)


def acts(arguments: argparse.Namespace) -> dict[str, str]:
    tasks = [(name, rate, seed) for rate in (0.5, 0.8) for name in DATASETS for seed in range(arguments.masks)]
    rows = pd.DataFrame(in_parallel(act_and_mean, tasks, arguments.jobs))
    means = rows.groupby(["hidden", "dataset"], sort=False).mean(numeric_only=True)
    table = pd.DataFrame({measure: means[measure] / means[f"{measure} of the mean"] for measure in ACTS})
    table.index = [f"{name}, {hidden}" for hidden, name in table.index]
    return {"accuracy_acts.md": as_markdown(table, "dataset, hidden")}


def act_and_mean(name: str, rate: float, seed: int) -> dict[str, Any]:
    data = load_dataset(name)
    X, D = np.asarray(data.features), np.asarray(data.distributions)
    D_obs, observed = hide_labels(D, rate, seed)
    chosen = BayesHidLDL(random_state=seed).fit(X, D_obs, observed=observed).parameters_
    scores = {}
    for estimate in ("mean", *ACTS):
        model = BayesHidLDL(**chosen, random_state=seed).set_params(estimate=estimate)
        scores[estimate] = score(D, model.fit(X, D_obs, observed=observed).distributions_)
    errors = {measure: scores[measure][measure] for measure in ACTS}
    errors |= {f"{measure} of the mean": scores["mean"][measure] for measure in ACTS}
    return {"dataset": name, "hidden": f"{rate:.0%}", **errors}


def ordered(arguments: argparse.Namespace) -> dict[str, str]:
    tasks = [(rate, seed) for rate in (0.5, 0.8) for seed in range(arguments.masks)]
    rows = pd.DataFrame(in_parallel(recover_ordered, tasks, arguments.jobs)).groupby("hidden").mean(numeric_only=True)
    return {"accuracy_ordered.md": as_markdown(rows.assign(quotient=rows["now"] / rows["then"]), "hidden")}


def recover_ordered(rate: float, seed: int, n_rows: int = 1000, n_labels: int = 70) -> dict[str, Any]:
    """Bumps on a line of labels: their centres follow the features, their widths vary."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 10))
    center = n_labels / 2 + 12 * (X @ rng.standard_normal(10)) / np.sqrt(10) + 6 * rng.standard_normal(n_rows)
    width = 6 * np.exp(0.3 * rng.standard_normal(n_rows))
    D = np.exp(-0.5 * ((np.arange(n_labels) - center[:, None]) / width[:, None]) ** 2) + 1e-3
    D *= np.exp(0.05 * rng.standard_normal(D.shape))
    D /= D.sum(axis=1, keepdims=True)
    D_obs, observed = hide_labels(D, rate, seed)
    # Before, the prior of S was never weaker than a quarter of a row per label.
    then = BayesHidLDL(random_state=0, prior_rows=0.25, ordered=False, **SIMPLE).fit(X, D_obs, observed=observed)
    now = BayesHidLDL(random_state=0).fit(X, D_obs, observed=observed)
    return {
        "hidden": f"{rate:.0%}",
        "now": score(D, now.distributions_)["chebyshev"],
        "then": score(D, then.distributions_)["chebyshev"],
    }


def absent(arguments: argparse.Namespace) -> dict[str, str]:
    tasks = [(floor, rate, seed) for floor in FLOORS for rate in (0.5, 0.8) for seed in range(arguments.masks)]
    rows = pd.DataFrame(in_parallel(recover_absent, tasks, arguments.jobs))
    means = rows.groupby(["absent labels have", "hidden"], sort=False).mean(numeric_only=True)
    table = pd.DataFrame({name: means[name] / means[f"{name} then"] for name in ("chebyshev", "clark", "kl")})
    table["90 % hold"] = means["held"]
    table.index = [f"{floor}, {hidden}" for floor, hidden in table.index]
    return {"accuracy_absent.md": as_markdown(table, "absent labels have, hidden")}


def recover_absent(floor: float, rate: float, seed: int, n_rows: int = 1000, n_labels: int = 6) -> dict[str, Any]:
    """Rows that lack labels by a linear function of their features, with 0 or about the same floor for these."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, 4))
    pull = 1.2 * X @ rng.standard_normal((4, n_labels)) + 0.7 * rng.standard_normal((n_rows, 1)) - 0.3
    pull += 0.5 * rng.standard_normal(pull.shape)
    there = (pull > 0) | (pull == pull.max(axis=1, keepdims=True))
    z = 0.3 * X @ rng.standard_normal((4, n_labels)) + 0.5 * rng.standard_normal((n_rows, n_labels))
    D = np.where(there, np.exp(z), 0)
    own = floor * np.exp(0.1 * rng.standard_normal((n_rows, 1)))
    D = np.where(there, D / D.sum(axis=1, keepdims=True), own)
    D /= D.sum(axis=1, keepdims=True)
    D_obs, observed = hide_labels(D, rate, seed)
    now = BayesHidLDL(random_state=seed).fit(X, D_obs, observed=observed)
    then = BayesHidLDL(random_state=seed, absent_labels=False).fit(X, D_obs, observed=observed)
    errors, before = score(D, now.distributions_), score(D, then.distributions_)
    low, high, *_ = now.intervals(0.9)
    return {
        "absent labels have": f"{floor:g}" if floor else "0",
        "hidden": f"{rate:.0%}",
        "held": float(((low <= D + 1e-9) & (high >= D - 1e-9))[~observed].mean()),
        **{name: errors[name] for name in ("chebyshev", "clark", "kl")},
        **{f"{name} then": before[name] for name in ("chebyshev", "clark", "kl")},
    }


def in_parallel(
    task: Callable[..., dict[str, Any]], tasks: Sequence[tuple[Any, ...]], jobs: int
) -> list[dict[str, Any]]:
    alone = Memory(KEPT, verbose=0).cache(_alone, ignore=["task"])
    script = joblib_hash(inspect.getsource(sys.modules[task.__module__]))
    code = f"{task.__name__} of {code_version(BayesHidLDL)} by {script}"
    results = []
    with shown() as progress:
        for result in Parallel(n_jobs=jobs, return_as="generator")(delayed(alone)(code, task, *each) for each in tasks):
            results.append(result)
            progress(len(results), len(tasks), ", ".join(map(str, tasks[len(results) - 1])))
    return results


def _alone(code: str, task: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    """The result of a task by one thread; ``code`` is there so that a result of other code is not taken for it."""
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return task(*arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = {"before": before, "hiding": hiding, "noise": noise, "ordered": ordered}
    parts |= {"absent": absent, "regret": regret, "acts": acts}
    parser.add_argument("part", choices=list(parts))
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--masks", type=int, default=5, help="masks per dataset")
    parser.add_argument(
        "--store", type=Path, default=Path("accuracy.sqlite"), help="where results of 'before' are kept"
    )
    parser.add_argument("--write", type=Path, help="also write the tables into this folder")
    arguments = parser.parse_args()
    show(parts[arguments.part](arguments), arguments.write)


if __name__ == "__main__":
    main()
