"""What is run: experiments as frozen, hashable values.

An experiment is the product of its datasets, rates, repetitions and methods. Each combination is one evaluation, with
a key that depends on everything that decides its result; seeds depend on dataset, rate and repetition only, so that
adding a method changes no other result.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from hidldl.datasets.dataset import Dataset
from hidldl.datasets.loading import load_dataset

Setting = Literal["recovery", "predictive"]

_registered_datasets: dict[str, Callable[[], Dataset]] = {}
_registered_methods: "dict[str, Method]" = {}


@dataclass(frozen=True)
class Method:
    """A recoverer or learner under the name that tables give it.

    ``alphas`` is a grid from which the oracle picks the alpha whose recovered rows are nearest to the ground truth.
    """

    name: str
    kind: type
    parameters: tuple[tuple[str, Any], ...] = ()
    alphas: tuple[float, ...] = ()

    @classmethod
    def of(cls, name: str, estimator: Any, alphas: tuple[float, ...] = ()) -> "Method":
        """The method that ``estimator`` is, with its parameters as they are now."""
        return cls(name, type(estimator), tuple(sorted(estimator.get_params(deep=False).items())), alphas)

    def make(self, seed: int) -> Any:
        """The estimator, seeded where it draws random numbers."""
        estimator = self.kind(**dict(self.parameters))
        return estimator.set_params(random_state=seed) if "random_state" in estimator.get_params() else estimator

    def description(self) -> dict[str, Any]:
        """Everything that decides the method's results."""
        return {
            "kind": f"{self.kind.__module__}.{self.kind.__qualname__}",
            "parameters": [[name, repr(value)] for name, value in self.parameters],
            "alphas": list(self.alphas),
        }


@dataclass(frozen=True)
class Condition:
    """What all methods of a comparison share: the dataset and the mask, which the seed decides."""

    setting: Setting
    dataset: str
    rate: float
    repetition: int

    @property
    def seed(self) -> int:
        """A seed that depends on dataset, rate and repetition only."""
        name = json.dumps([self.dataset, round(self.rate, 6), self.repetition])
        return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") % 2**31


@dataclass(frozen=True)
class Evaluation:
    """One method under one condition: one row of the store."""

    condition: Condition
    method: Method

    @property
    def key(self) -> str:
        """A name for the result: equal for evaluations whose results must be equal."""
        condition = self.condition
        parts = [condition.setting, condition.dataset, round(condition.rate, 6), condition.repetition]
        return hashlib.sha256(json.dumps([parts, self.method.description()]).encode()).hexdigest()


@dataclass(frozen=True)
class Experiment:
    """Methods compared under the same conditions."""

    name: str
    setting: Setting
    datasets: tuple[str, ...]
    rates: tuple[float, ...]
    methods: tuple[Method, ...]
    repetitions: int = 5

    def conditions(self) -> Iterator[Condition]:
        """Every dataset, rate and repetition."""
        for dataset, rate, repetition in product(self.datasets, self.rates, range(self.repetitions)):
            yield Condition(self.setting, dataset, rate, repetition)

    def evaluations(self) -> Iterator[Evaluation]:
        """Every method under every condition."""
        for condition, method in product(self.conditions(), self.methods):
            yield Evaluation(condition, method)


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


def register_method(name: str, estimator: Any, alphas: tuple[float, ...] = ()) -> None:
    """Make a recoverer or learner of one's own known: it appears in every comparison of ``reproduce``.

    Parameters
    ----------
    name : str
        The name under which tables show it.
    estimator : Recoverer or Learner
        With its parameters; it is seeded where it has a ``random_state``.
    alphas : tuple of float, optional
        A grid from which the oracle picks ``alpha``, as for HidLDL and IncomLDL in the paper.

    Examples
    --------
    >>> from hidldl import HidLDL, register_method
    >>> register_method("HidLDL, alpha 16", HidLDL())
    """
    _registered_methods[name] = Method.of(name, estimator, alphas)


def registered_methods() -> tuple[Method, ...]:
    """Methods that users registered, in that order."""
    return tuple(_registered_methods.values())


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
