"""How well BayesHidLDL recovers tables without a mask: nobody says which zeros are hidden.

    HIDLDL_DATA=folder python benchmarks/unaware.py recovery [--masks 3] [--jobs 2] [--write docs/results]
    HIDLDL_DATA=folder python benchmarks/unaware.py mechanisms [--rows 400] [--masks 1] [--write docs/results]
    HIDLDL_DATA=folder python benchmarks/unaware.py audit | generated [--masks 2] [--write docs/results]

"recovery" hides labels by chance, forgets the mask, and compares with the same method that is given it, and with the
one that takes every zero for hidden. "mechanisms" hides in other ways than by chance. "audit" tells the mask of some
rows. "generated" has tables of votes for which nothing was tuned. An interrupted run goes on where it stopped.
"""

import argparse
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from accuracy import MECHANISMS, as_markdown, in_parallel
from provenance import show
from quality import DATASETS
from scipy.special import softmax
from sklearn.metrics import roc_auc_score

from hidldl import BayesHidLDL, hide_labels, load_dataset, score
from hidldl.arrays import BoolArray, FloatArray

NAMES = ("Emotion6", "VADER", *(name for name in DATASETS if name != "Emotion6"))
RATES = {"Emotion6": (0.5, 0.3), "VADER": (0.5, 0.3), "Natural-Scene": (0.5, 0.3)}
MOST_ROWS = 2000
"""Larger tables are cut: the question is not one of size."""
BINS = np.linspace(0, 1, 11)
GAPS = tuple(f"gap of bin {k}" for k in range(10))
FEWEST_IN_BIN = 50
AUDITED = (0, 20, 100)
TABLES = {
    "few votes": (5, 6, 1.0),
    "many votes": (30, 6, 1.0),
    "weak features": (10, 8, 0.2),
    "many labels": (10, 20, 1.0),
}
"""Votes per row, labels, and how much features tell."""


def recovery(arguments: argparse.Namespace) -> dict[str, str]:
    names = arguments.datasets or NAMES
    tasks = [
        (name, rate, seed) for name in names for rate in RATES.get(name, (0.5,)) for seed in range(arguments.masks)
    ]
    return {"unaware_recovery.md": averaged(in_parallel(recover_table, tasks, arguments.jobs), ["dataset", "hidden"])}


def recover_table(name: str, rate: float, seed: int) -> dict[str, Any]:
    X, D = table_of(name)
    D_obs, observed = hide_labels(D, rate, seed)
    return {"dataset": name, "hidden": f"{rate:.0%}", **compared(X, D, D_obs, observed, seed)}


def table_of(name: str, most_rows: int = MOST_ROWS) -> tuple[FloatArray, FloatArray]:
    """Features and complete distributions of some rows."""
    data = load_dataset(name)
    at = np.random.default_rng(0).permutation(len(data.features))[:most_rows]
    return np.asarray(data.features)[at], np.asarray(data.distributions, dtype=float)[at]


def mechanisms(arguments: argparse.Namespace) -> dict[str, str]:
    names = arguments.datasets or ("Emotion6", "SBU3DFE")
    tasks = [
        (*how, name, arguments.rows, seed) for how in MECHANISMS for name in names for seed in range(arguments.masks)
    ]
    return {"unaware_mechanisms.md": averaged(in_parallel(hide_by, tasks, arguments.jobs), ["mechanism", "dataset"])}


def hide_by(mechanism: str, slope: float, name: str, most_rows: int, seed: int) -> dict[str, Any]:
    X, D = table_of(name, most_rows)
    more: dict[str, Any] = {"features": X} if mechanism == "feature" else {}
    more |= {"mechanism": mechanism, "slope": slope}
    D_obs, observed = hide_labels(D, 0.5, seed, **more)
    how = f"{mechanism} {slope:g}" if mechanism == "degree" else mechanism
    return {"mechanism": how, "dataset": name, **compared(X, D, D_obs, observed, seed)}


def generated(arguments: argparse.Namespace) -> dict[str, str]:
    tasks = [(table, rate, seed) for table in TABLES for rate in (0.3, 0.5) for seed in range(arguments.masks)]
    return {"unaware_generated.md": averaged(in_parallel(recover_votes, tasks, arguments.jobs), ["table", "hidden"])}


def recover_votes(table: str, rate: float, seed: int) -> dict[str, Any]:
    X, D = votes(table, seed)
    D_obs, observed = hide_labels(D, rate, seed)
    return {"table": table, "hidden": f"{rate:.0%}", **compared(X, D, D_obs, observed, seed)}


def votes(table: str, seed: int, n_rows: int = 1500) -> tuple[FloatArray, FloatArray]:
    """Features, and shares of a few votes: small expectations come out as 0."""
    n_votes, n_labels, signal = TABLES[table]
    rng = np.random.default_rng([seed, n_votes, n_labels])
    X = rng.standard_normal((n_rows, 5))
    z = signal * X @ rng.standard_normal((5, n_labels)) + rng.standard_normal(n_labels)
    z += rng.multivariate_normal(np.zeros(n_labels), np.cov(rng.standard_normal((n_labels, 2 * n_labels))), n_rows)
    return X, np.array([rng.multinomial(n_votes, p) for p in softmax(z, axis=1)]) / n_votes


def audit(arguments: argparse.Namespace) -> dict[str, str]:
    tasks = [(n_rows, rate, seed) for rate in (0.5,) for n_rows in AUDITED for seed in range(arguments.masks)]
    tables = in_parallel(recover_audited, tasks, arguments.jobs)
    return {"unaware_audit.md": averaged(tables, ["audited rows", "hidden"])}


def recover_audited(n_rows: int, rate: float, seed: int) -> dict[str, Any]:
    """Of the audited rows the mask is known; rows that were not audited are judged."""
    X, D = table_of("Emotion6")
    D_obs, observed = hide_labels(D, rate, seed)
    mask = np.where(D_obs > 0, 1.0, np.nan)
    mask[:n_rows] = observed[:n_rows]
    model = BayesHidLDL(random_state=seed).fit(X, D_obs, observed=mask)
    judged = slice(AUDITED[-1], None)
    return {
        "audited rows": n_rows,
        "hidden": f"{rate:.0%}",
        "chebyshev": score(D[judged], model.distributions_[judged])["chebyshev"],
        "rate found": float(np.mean(model.hidden_rate_)),
    }


def compared(X: FloatArray, D: FloatArray, D_obs: FloatArray, observed: BoolArray, seed: int) -> dict[str, Any]:
    """One table, with the mask, with every zero taken for hidden, and without a mask."""
    known, seconds_known = timed(X, D_obs, seed, observed=observed)
    all_hidden, _ = timed(X, D_obs, seed, zeros="hidden")
    model, seconds = timed(X, D_obs, seed, zeros="unknown")
    unknown = D_obs == 0
    errors = {
        "mask known": score(D, known.distributions_)["chebyshev"],
        "all zeros hidden": score(D, all_hidden.distributions_)["chebyshev"],
        "mask unknown": score(D, model.distributions_)["chebyshev"],
    }
    return errors | {
        "unknown / known": errors["mask unknown"] / errors["mask known"],
        "slope if known": known.hiding_slope_,
        "slope if unknown": model.hiding_slope_,
        "rate": 1 - observed.mean(),
        "rate found": float(np.mean(model.hidden_rate_)),
        "AUC": area(D[unknown] > 0, model.hidden_probability_[unknown]),
        "time / known": seconds / seconds_known,
        **gaps_of_bins(~observed[unknown], model.hidden_probability_[unknown]),
    }


def timed(X: FloatArray, D_obs: FloatArray, seed: int, observed: Any = None, zeros: Any = "auto") -> tuple[Any, float]:
    start = perf_counter()
    model = BayesHidLDL(zeros=zeros, random_state=seed).fit(X, D_obs, observed=observed)
    return model, perf_counter() - start


def area(is_positive: BoolArray, probability: FloatArray) -> float:
    """How well the probability tells zeros that hide a positive share from the rest; NaN if there is no such rest."""
    return float(roc_auc_score(is_positive, probability)) if is_positive.any() and not is_positive.all() else np.nan


def gaps_of_bins(hidden: BoolArray, probability: FloatArray) -> dict[str, float]:
    """The mean probability minus how many zeros were hidden, in each of ten bins; NaN where a bin has few zeros."""
    bins = np.clip(np.digitize(probability, BINS) - 1, 0, 9)
    is_in = [bins == k for k in range(10)]
    gaps = [float((probability - hidden)[i].mean()) if i.sum() >= FEWEST_IN_BIN else np.nan for i in is_in]
    return dict(zip(GAPS, gaps, strict=True))


def averaged(tables: list[dict[str, Any]], by: list[str]) -> str:
    """Means over the masks; calibration is that of the worst of ten bins."""
    means = pd.DataFrame(tables).groupby(by, sort=False).mean(numeric_only=True)
    if set(GAPS) <= set(means):
        means = means.drop(columns=list(GAPS)).assign(calibration=means[list(GAPS)].abs().max(axis=1))
    return as_markdown(means.set_axis([", ".join(map(str, names)) for names in means.index]), ", ".join(by))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = {"recovery": recovery, "mechanisms": mechanisms, "audit": audit, "generated": generated}
    parser.add_argument("part", choices=list(parts))
    parser.add_argument("--datasets", nargs="*", help="only these")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--rows", type=int, default=MOST_ROWS, help="rows of each table, for mechanisms")
    parser.add_argument("--masks", type=int, default=3, help="masks per table")
    parser.add_argument("--write", type=Path, help="also write the tables into this folder")
    arguments = parser.parse_args()
    show(parts[arguments.part](arguments), arguments.write)


if __name__ == "__main__":
    main()
