"""The partitions of Dask collections, side by side, and how a task reads one.

A task that has its partition read by other tasks has to wait while the partition lies in a worker's memory, and so do
those of the tasks after it: small workers fill up, above all when they take over the work of one that was lost. So
a task reads its partition itself, where it can, and nothing of the table is in memory between tasks.
"""

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Any
from uuid import uuid4

import dask
import numpy as np
from dask import delayed
from dask.core import get, get_dependencies, istask

TOGETHER = 16
"""Partitions whose recipes are sent as one."""


class Recipe:
    """The tasks that make a partition, to be run inside the task that needs it."""

    def __init__(self, graph: dict[Any, Any], key: Any) -> None:
        self._graph, self._key = graph, key

    def __call__(self) -> Any:
        return get(self._graph, [self._key])[0]


class Partitions:
    """Arguments of a fit, partition by partition."""

    def __init__(self, inputs: dict[str, Any]) -> None:
        parts = _side_by_side(inputs)
        self._kept = [{name: side for name, side in part.items() if not isinstance(side, Recipe)} for part in parts]
        recipes = [{name: side for name, side in part.items() if isinstance(side, Recipe)} for part in parts]
        # Recipes have much in common. Tasks that bring their own would fill the scheduler, which remembers all rounds,
        # and all recipes at once would fill a worker that spills them and reads them again for each task.
        self._recipes = constants(recipes[i : i + TOGETHER] for i in range(0, len(recipes), TOGETHER))

    def __len__(self) -> int:
        return len(self._kept)

    def arguments(self, number: int) -> tuple[Any, int, dict[str, Any]]:
        """What ``read`` needs in a task: recipes of some partitions, a number, and what is made by other tasks."""
        return self._recipes[number // TOGETHER], number % TOGETHER, self._kept[number]

    def without(self, name: str) -> "Partitions":
        """The same without an argument, which then need not be read."""
        other = copy(self)
        other._kept = [{**kept, name: None} for kept in self._kept]
        return other


def read(partition: tuple[Sequence[dict[str, Recipe]], int, dict[str, Any]], name: str) -> Any:
    """An argument of a partition."""
    recipes, number, kept = partition
    return kept[name] if name in kept else recipes[number][name]()


def constant(value: Any) -> Any:
    """A value that is sent to the cluster once, whatever it is made of."""
    return constants([value])[0]


def constants(values: Iterable[Any]) -> Sequence[Any]:
    """The same for several at once."""
    tasks = [delayed(value, name=f"{type(value).__name__.lower()}-{uuid4().hex}", traverse=False) for value in values]
    return list(dask.persist(*tasks))


def _side_by_side(inputs: dict[str, Any]) -> list[dict[str, Any]]:
    chunks = inputs["D_obs"].chunks[0] if hasattr(inputs["D_obs"], "chunks") else None
    columns: dict[str, Any] = {}
    for name, value in inputs.items():
        if hasattr(value, "rechunk"):
            value = value.rechunk({1: -1}) if value.ndim == 2 else value
            if chunks is not None and not np.isnan([*chunks, *value.chunks[0]]).any() and value.shape[0] == sum(chunks):
                value = value.rechunk({0: chunks})
        columns[name] = None if value is None else _with_recipes(_in_tasks(value))
    n_parts = len(columns["D_obs"])
    for name, parts in columns.items():
        if parts is not None and len(parts) != n_parts:
            raise ValueError(
                f"{name} has {len(parts)} partitions but D_obs has {n_parts}; give the same rows in the same "
                "partitions, for example with repartition or rechunk."
            )
    return [{name: None if parts is None else parts[i] for name, parts in columns.items()} for i in range(n_parts)]


def _in_tasks(value: Any) -> list[Any]:
    """A collection's partitions as tasks."""
    if hasattr(value, "simplify"):
        # Dask would read few columns in fewer partitions, so that shares and features no longer match.
        return list(value.simplify().to_delayed(optimize_graph=False))
    return list(np.ravel(value.to_delayed()))


def _with_recipes(parts: list[Any]) -> list[Any]:
    """The partitions with recipes, unless they share tasks, which would run once for each, or are in memory already."""
    graph = dict(parts[0].dask)
    graphs = [_needed(graph, part.key) for part in parts]
    n_tasks = len(set().union(*graphs))
    if n_tasks < sum(map(len, graphs)) or not all(istask(task) for own in graphs for task in own.values()):
        return parts
    return [Recipe(own, part.key) if own else part for own, part in zip(graphs, parts, strict=True)]


def _needed(graph: Mapping[Any, Any], key: Any) -> dict[Any, Any]:
    """The tasks of a graph that a key needs."""
    tasks: dict[Any, Any] = {}
    missing = {key} & graph.keys()
    while missing:
        tasks.update({name: graph[name] for name in missing})
        missing = {other for name in missing for other in get_dependencies(graph, name)} - tasks.keys()
    return tasks
