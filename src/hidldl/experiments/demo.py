"""The demo: hide labels of a real dataset, recover them by several methods, compare."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import resample

from hidldl.arrays import FloatArray
from hidldl.datasets.dataset import Dataset
from hidldl.hiding import hide_labels
from hidldl.learners.sabfgs import SABFGS
from hidldl.metrics import MEASURES, score
from hidldl.recovery.bayeshidldl import BayesHidLDL
from hidldl.recovery.hidldl import HidLDL
from hidldl.recovery.meanfill import MeanFill


@dataclass(frozen=True)
class DemoMethod:
    """A method of the demo: its name, what it does in a few words, and how it completes rows."""

    name: str
    summary: str
    complete: Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class DemoResult:
    """One method's recovered rows, with their scores."""

    method: DemoMethod
    distributions: FloatArray
    scores: dict[str, float]


DEMO_METHODS = (
    DemoMethod("as handed in", "believe the annotators", lambda X, D_obs, observed: D_obs),
    DemoMethod(
        "SA-BFGS",
        "learn from the rows as handed in",
        lambda X, D_obs, observed: SABFGS(random_state=0).fit(X, D_obs).predict(X),
    ),
    DemoMethod(
        "MeanFill",
        "hidden labels get what the average row gives them",
        lambda X, D_obs, observed: MeanFill().fit(X, D_obs, observed).distributions_,
    ),
    DemoMethod(
        "HidLDL w/o Cons",
        "ablation: the observed proportions are not kept",
        lambda X, D_obs, observed: HidLDL(constraint=False).fit(X, D_obs, observed).distributions_,
    ),
    DemoMethod(
        "HidLDL w/o TN",
        "ablation: no trace norm (alpha = 0)",
        lambda X, D_obs, observed: HidLDL(alpha=0).fit(X, D_obs, observed).distributions_,
    ),
    DemoMethod(
        "HidLDL",
        "the paper's method with its default alpha",
        lambda X, D_obs, observed: HidLDL().fit(X, D_obs, observed).distributions_,
    ),
    DemoMethod(
        "BayesHidLDL",
        "a statistical model that tunes itself",
        lambda X, D_obs, observed: BayesHidLDL(n_jobs=-1, random_state=0).fit(X, D_obs, observed).distributions_,
    ),
)


@dataclass(frozen=True)
class Demo:
    """A dataset with hidden labels, ready for the methods."""

    data: Dataset
    D_obs: pd.DataFrame
    observed: pd.DataFrame

    @classmethod
    def prepare(cls, data: Dataset, rate: float, random_state: int, n_rows: int | None = None) -> "Demo":
        """Hide labels of ``data``, or of so many of its rows, drawn at random."""
        if n_rows is not None and n_rows < len(data.features):
            how: dict[str, Any] = {"replace": False, "n_samples": n_rows, "random_state": random_state}
            features, distributions = resample(data.features, data.distributions, **how)
            data = replace(data, features=features, distributions=distributions)
        truth = pd.DataFrame(data.distributions, columns=list(data.label_names))
        return cls(data, *hide_labels(truth, rate=rate, random_state=random_state))

    def run(self) -> Iterator[DemoResult]:
        """Every method in turn, on the same hidden rows."""
        for method in DEMO_METHODS:
            recovered = np.asarray(method.complete(np.asarray(self.data.features), self.D_obs, self.observed))
            yield DemoResult(method, recovered, score(self.data.distributions, recovered))

    def typical_rows(self, recovered: FloatArray) -> list[int]:
        """Three rows, with hidden labels if there are any, whose error is at the quartiles: good, median, bad."""
        errors = MEASURES["chebyshev"].rows(self.data.distributions, recovered)
        with_hidden = np.flatnonzero(~np.asarray(self.observed).all(axis=1))
        if len(with_hidden) == 0:
            with_hidden = np.arange(len(errors))
        by_error = with_hidden[np.argsort(errors[with_hidden], kind="stable")]
        return [int(by_error[int(quartile * (len(by_error) - 1))]) for quartile in (0.25, 0.5, 0.75)]
