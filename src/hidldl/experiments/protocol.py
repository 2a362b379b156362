"""What is run: experiments as frozen, hashable values.

An experiment is the product of its datasets, rates, repetitions and contenders. Each combination is one evaluation,
with a key that depends on everything that decides its result, the code included; seeds depend on dataset, rate and
repetition only, so that adding a contender changes no other result.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, Literal

from hidldl.base import Recoverer
from hidldl.datasets.dataset import Dataset
from hidldl.datasets.loading import load_dataset
from hidldl.experiments.code_version import code_version
from hidldl.methods import Method, registered_methods

Setting = Literal["recovery", "predictive", "unaware"]
"""Recovered rows, predictions for new rows, and recovered rows of tables without a mask."""
Mask = Literal["known", "hidden", "inferred"]
ScoredRows = Literal["raw", "public", "relative"]

_registered_datasets: dict[str, Callable[[], Dataset]] = {}


@dataclass(frozen=True)
class Contender:
    """A method with its parameters, as it takes part in a comparison.

    Attributes
    ----------
    title : str
        What tables call it.
    kind : type
        The class of a recoverer or learner.
    parameters : tuple of pairs
        Its parameters by name.
    alphas : tuple of float
        A grid from which the oracle picks the alpha whose recovered rows are nearest to the ground truth.
    rows : {"raw", "public", "relative"}
        Which recovered rows are scored: the method's own matrix, as the paper does, the rows that users get, or those
        that they get with ``estimate="relative"`` and the parameters that were chosen.
    interval_level : float or None
        Also record how many hidden shares and hidden masses lie in their intervals of this level.
    predicts : bool
        In the predictive setting, predict with the model itself, not with a learner of its recovered rows.
    mask : {"known", "hidden", "inferred"}
        Which mask it gets: the true one, one in which every zero is hidden, or what can be inferred without any.
    """

    title: str
    kind: type
    parameters: tuple[tuple[str, Any], ...] = ()
    alphas: tuple[float, ...] = ()
    rows: ScoredRows = "raw"
    interval_level: float | None = None
    predicts: bool = False
    mask: Mask = "known"

    @classmethod
    def of(cls, title: str, estimator: Any, alphas: tuple[float, ...] = (), **options: Any) -> "Contender":
        """The contender that ``estimator`` is, with its parameters as they are now."""
        parameters = tuple(sorted(estimator.get_params(deep=False).items()))
        return cls(title, type(estimator), parameters, alphas, **options)

    @classmethod
    def of_method(cls, method: Method) -> "Contender":
        """A method of the registry, as its author registered it."""
        return cls.of(method.title, method.kind(**method.parameters), method.alphas)

    def for_setting(self, setting: Setting) -> "tuple[Contender, ...]":
        """The contender as it takes part in a setting: once, or with each mask where nobody knows the true one."""
        if setting != "unaware" or not issubclass(self.kind, Recoverer):
            return (self,)
        all_hidden = replace(self, title=f"{self.title}, zeros hidden", mask="hidden")
        return self, all_hidden, replace(self, title=f"{self.title}, mask inferred", mask="inferred")

    def make(self, seed: int) -> Any:
        """The estimator, seeded where it draws random numbers."""
        estimator = self.kind(**dict(self.parameters))
        return estimator.set_params(random_state=seed) if "random_state" in estimator.get_params() else estimator

    @property
    def fit_name(self) -> str:
        """A name for the fitted model: contenders that differ in what is read from it only have the same."""
        return json.dumps(
            {
                "kind": f"{self.kind.__module__}.{self.kind.__qualname__}",
                "parameters": [[name, repr(value)] for name, value in self.parameters],
                "alphas": list(self.alphas),
                "mask": self.mask,
            }
        )

    def description(self) -> dict[str, Any]:
        """Everything but the code that decides the contender's results."""
        read = {"rows": self.rows, "interval_level": self.interval_level, "predicts": self.predicts}
        return {**json.loads(self.fit_name), **read}

    def code(self) -> str:
        """The version of the code of its class, and of the estimators among its parameters."""
        inner = {type(value) for _, value in self.parameters if hasattr(value, "get_params")}
        kinds = [self.kind, *sorted(inner, key=lambda kind: f"{kind.__module__}.{kind.__qualname__}")]
        return " ".join(map(code_version, kinds))


@dataclass(frozen=True)
class Condition:
    """What all contenders of a comparison share: the dataset and the mask, which the seed decides."""

    setting: Setting
    dataset: str
    rate: float
    repetition: int

    @property
    def seed(self) -> int:
        """A seed that depends on dataset, rate and repetition only."""
        name = json.dumps([self.dataset, round(self.rate, 6), self.repetition])
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") % 2**31

    def __str__(self) -> str:
        return f"{self.setting} {self.dataset} {100 * self.rate:.0f} % #{self.repetition + 1}"


@dataclass(frozen=True)
class Evaluation:
    """One contender under one condition: one row of the store."""

    condition: Condition
    contender: Contender

    @property
    def key(self) -> str:
        """A name for the result: equal for evaluations whose results must be equal."""
        condition = self.condition
        parts = [condition.setting, condition.dataset, round(condition.rate, 6), condition.repetition]
        # How labels are hidden and how rows are scored decides results too, and so does the learner that follows.
        shared = ["hidldl.hiding", "hidldl.metrics"]
        if condition.setting == "predictive" and not self.contender.predicts:
            shared.append("hidldl.learners.sabfgs")
        if self.contender.mask == "inferred":
            shared.append("hidldl.recovery.inferring")
        code = [self.contender.code(), *map(code_version, shared)]
        return hashlib.sha256(json.dumps([parts, self.contender.description(), code]).encode()).hexdigest()


@dataclass(frozen=True)
class Experiment:
    """Contenders compared under the same conditions."""

    name: str
    setting: Setting
    datasets: tuple[str, ...]
    rates: tuple[float, ...]
    contenders: tuple[Contender, ...]
    repetitions: int = 5

    def conditions(self) -> Iterator[Condition]:
        """Every dataset, rate and repetition; what is interrupted has something of every dataset."""
        for repetition, dataset, rate in product(range(self.repetitions), self.datasets, self.rates):
            yield Condition(self.setting, dataset, rate, repetition)

    def evaluations(self) -> Iterator[Evaluation]:
        """Every contender under every condition."""
        for condition, contender in product(self.conditions(), self.contenders):
            yield Evaluation(condition, contender)


def register_dataset(name: str, loader: Callable[[], Dataset]) -> None:
    """Make a dataset of one's own known: it appears in every table of ``reproduce``.

    Parameters
    ----------
    name : str
        The name under which tables show it.
    loader : callable
        Returns the ``Dataset``; its distributions must be complete.

    Examples
    --------
    >>> from hidldl import make_distributions, register_dataset
    >>> register_dataset("Mine", lambda: make_distributions(n_rows=100, random_state=0))
    """
    _registered_datasets[name] = loader


def registered_contenders() -> tuple[Contender, ...]:
    """The methods that users and other packages registered, in that order."""
    return tuple(map(Contender.of_method, registered_methods()))


def registered_datasets() -> tuple[str, ...]:
    """Names of datasets that users registered, in that order."""
    return tuple(_registered_datasets)


def dataset_loader(name: str) -> Callable[[], Dataset]:
    """The function that loads the dataset of that name, registered or published."""
    return _registered_datasets.get(name) or _PublishedLoader(name)


@dataclass(frozen=True)
class _PublishedLoader:
    name: str

    def __call__(self) -> Dataset:
        return load_dataset(self.name)
