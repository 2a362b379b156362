"""The experiments of the paper, and its own results."""

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd

from hidldl.datasets.files import locate
from hidldl.datasets.registry import FILES
from hidldl.experiments.protocol import Contender, Experiment, Setting, registered_contenders, registered_datasets
from hidldl.methods import find_method

PAPER_ALPHAS = tuple(float(2.0**exponent) for exponent in np.arange(-10, 11))
INTERVAL_LEVEL = 0.9


def contender(name: str, *, alphas: tuple[float, ...] = (), title: str | None = None, **settings: Any) -> Contender:
    """A method of the registry with the parameters that its class has by default, or with those given.

    Where there are ``alphas`` the oracle chooses, as in the paper. ``rows``, ``interval_level`` and ``predicts`` are
    those of a ``Contender``.
    """
    method = find_method(name)
    options = {key: settings.pop(key) for key in ("rows", "interval_level", "predicts") if key in settings}
    return Contender.of(title or method.title, method.kind(**settings), alphas, **options)


METHODS = (
    contender("hidldl", alphas=PAPER_ALPHAS),
    contender("incomldl", alphas=PAPER_ALPHAS),
    contender("winldl"),
    # The published code stops after 150 rounds; the tables were made with more.
    contender("saiis", max_iter=600),
    contender("ldllrr"),
    contender("ptbayes"),
    contender("ldldpa"),
    # Not in the paper, but in every comparison: a method that does not beat MeanFill learns nothing, and BayesHidLDL
    # is the one that we recommend.
    contender("meanfill"),
    contender("bayes", interval_level=INTERVAL_LEVEL),
)
OURS = METHODS[0].title
ABLATIONS = (
    METHODS[0],
    contender("hidldl", alphas=PAPER_ALPHAS, title="without-constraint", constraint=False),
    contender("hidldl", title="without-trace-norm", alpha=0),
)


@dataclass(frozen=True)
class PaperTable:
    """A table of the paper: which measures, of which contenders, in which settings and at which rate."""

    number: str
    caption: str
    settings: tuple[Setting, ...]
    measures: tuple[str, ...]
    rate: float
    contenders: tuple[Contender, ...]
    datasets: tuple[str, ...] = tuple(FILES)

    def experiments(self, repetitions: int = 5, datasets: tuple[str, ...] | None = None) -> tuple[Experiment, ...]:
        """What has to be run for the table, on those of its datasets that are named, or that are on this machine.

        Comparisons of methods also have the methods and datasets that users registered.
        """
        is_comparison = self.contenders is METHODS
        chosen = _available(self.datasets, datasets, with_registered=is_comparison)
        contenders = (*self.contenders, *registered_contenders()) if is_comparison else self.contenders
        return tuple(
            Experiment(
                f"Table {self.number}",
                setting,
                chosen,
                (self.rate,),
                tuple(chain.from_iterable(each.for_setting(setting) for each in contenders)),
                repetitions,
            )
            for setting in self.settings
        )


_ABLATED_50 = ("Yeast-cold", "Yeast-dtt", "Yeast-spo", "SBU3DFE", "Emotion6", "RAF-ML")
_ABLATED_80 = ("Yeast-dtt", "Yeast-elu", "Yeast-spo", "Emotion6")
_BOTH = ("clark", "cosine")

TABLES: dict[str, PaperTable] = {
    table.number: table
    for table in (
        PaperTable("1", "Canberra, recovery, 50 % hidden", ("recovery",), ("canberra",), 0.5, METHODS),
        PaperTable("2", "Ablations, 50 % hidden", ("recovery",), _BOTH, 0.5, ABLATIONS, _ABLATED_50),
        PaperTable("3", "Canberra, prediction, 50 % hidden", ("predictive",), ("canberra",), 0.5, METHODS),
        PaperTable("A2", "Chebyshev, recovery, 50 % hidden", ("recovery",), ("chebyshev",), 0.5, METHODS),
        PaperTable("A3", "Clark, recovery, 80 % hidden", ("recovery",), ("clark",), 0.8, METHODS),
        PaperTable("A4", "Chebyshev, prediction, 50 % hidden", ("predictive",), ("chebyshev",), 0.5, METHODS),
        PaperTable("A5", "Clark, prediction, 80 % hidden", ("predictive",), ("clark",), 0.8, METHODS),
        PaperTable("A6", "Ablations, 80 % hidden", ("recovery", "predictive"), _BOTH, 0.8, ABLATIONS, _ABLATED_80),
        PaperTable("U", "Chebyshev, mask known or not, 50 % hidden", ("unaware",), ("chebyshev",), 0.5, METHODS),
    )
}
"""The paper's result tables by number, and one that it does not have: "U", for tables without a mask."""
PAPER_TABLES = tuple(number for number in TABLES if number != "U")

RATES = (0.4, 0.5, 0.6, 0.7, 0.8)


@dataclass(frozen=True)
class PaperFigure:
    """A figure of the paper that is drawn from evaluations."""

    number: str
    caption: str
    setting: Setting
    measure: str
    rates: tuple[float, ...]
    contenders: tuple[Contender, ...]
    datasets: tuple[str, ...]

    def experiments(self, repetitions: int = 5, datasets: tuple[str, ...] | None = None) -> tuple[Experiment, ...]:
        """What has to be run for the figure."""
        chosen = _available(self.datasets, datasets)
        return (Experiment(f"Figure {self.number}", self.setting, chosen, self.rates, self.contenders, repetitions),)


SENSITIVITY = tuple(contender(name, alpha=alpha) for name in ("hidldl", "incomldl") for alpha in PAPER_ALPHAS)

FIGURES: dict[str, PaperFigure] = {
    figure.number: figure
    for figure in (
        PaperFigure(
            "3",
            "Cosine against alpha, recovery, 50 % hidden",
            "recovery",
            "cosine",
            (0.5,),
            SENSITIVITY,
            ("Emotion6", "Yeast-dtt", "Yeast-cold", "RAF-ML"),
        ),
        PaperFigure(
            "A1",
            "Chebyshev against the missing rate, recovery",
            "recovery",
            "chebyshev",
            RATES,
            METHODS,
            ("Emotion6", "SBU3DFE", "Natural-Scene", "Yeast-spo"),
        ),
        PaperFigure(
            "A2",
            "Chebyshev against the missing rate, prediction",
            "predictive",
            "chebyshev",
            RATES,
            METHODS,
            ("Movie", "Yeast-elu", "Yeast-cold", "Yeast-dtt"),
        ),
    )
}
"""The paper's figures that are drawn from evaluations, by number."""


def _available(
    datasets: tuple[str, ...], named: tuple[str, ...] | None, *, with_registered: bool = False
) -> tuple[str, ...]:
    """Those of a table's datasets, and of the registered ones, that are named, or that are on this machine."""
    known = (*datasets, *registered_datasets()) if with_registered else datasets
    if named is not None:
        return tuple(name for name in known if name in named)
    return tuple(name for name in known if name not in FILES or locate(FILES[name]) is not None)


@cache
def published_results() -> pd.DataFrame:
    """Every number of the paper's result tables: table, setting, measure, rate, dataset, method, mean, std.

    Jiang, Tang, Jiang, Liu, Hou and Jia: Towards Better IncomLDL: We Are Unaware of Hidden Labels in Advance. AAAI
    2026. The ablations carry no standard deviations there.
    """
    with (files("hidldl.experiments") / "published_results.csv").open(encoding="utf-8") as file:
        return pd.read_csv(file, dtype={"table": str})
