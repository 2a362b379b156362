"""Recovered rows, and how they are laid out in a table."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from hidldl.arrays import BoolArray, FloatArray

Keep: TypeAlias = Literal["all", "id", "none"]
Unit: TypeAlias = Literal["shares", "percent"]


@dataclass(frozen=True)
class Layout:
    """The columns of an output: those of the table in their order, with complete labels, and what was recovered."""

    columns: tuple[str, ...]
    labels: tuple[str, ...]
    row_names: str | None
    keep: Keep = "all"
    unit: Unit = "shares"
    digits: int | None = 6
    """Digits of a share; None for all of them."""
    flags: bool = False
    bounds: bool = True
    """Whether intervals are written, where there are any."""


@dataclass(frozen=True)
class RecoveredRows:
    """A piece of the result. ``names`` are None where the table has no column that names its rows."""

    numbers: Any
    names: Any
    D_obs: FloatArray
    observed: BoolArray
    distributions: FloatArray
    as_read: pd.DataFrame | None = None
    """The rows as they were read for the model, with the columns that are neither labels nor names."""
    kept: pd.DataFrame | None = None
    """The columns that the output keeps, as they came."""
    kinds: FloatArray | None = None
    """How likely the rows are of each kind, where there is more than one."""
    hidden: FloatArray | None = None
    """How likely each share was overlooked, where zeros may be hidden or true."""
    low: FloatArray | None = None
    high: FloatArray | None = None
    mass_low: FloatArray | None = None
    mass_high: FloatArray | None = None

    @property
    def hidden_mass(self) -> FloatArray:
        return np.where(self.observed, 0, self.distributions).sum(axis=1)

    def bounds(self, labels: tuple[str, ...], free: Callable[[str], str] = str) -> pd.DataFrame:
        """Columns of bounds: of the hidden mass, and of each label."""
        assert self.low is not None and self.high is not None
        columns: dict[str, Any] = {
            free("hidden_mass_low"): self.mass_low,
            free("hidden_mass_high"): self.mass_high,
        }
        for j, label in enumerate(labels):
            columns[free(f"{label}_low")] = self.low[:, j]
            columns[free(f"{label}_high")] = self.high[:, j]
        return pd.DataFrame(columns)

    def frame(self, layout: Layout) -> pd.DataFrame:
        """The columns of the output."""
        scale = 100.0 if layout.unit == "percent" else 1.0
        digits = None if layout.digits is None else layout.digits - (2 if layout.unit == "percent" else 0)
        taken = set(layout.labels)
        shares = self.distributions if digits is None else round_shares(self.distributions, layout.digits or 0)
        complete = dict(zip(layout.labels, (_scaled(column, scale, digits) for column in shares.T), strict=True))
        columns: dict[str, Any] = {}
        for name in (*layout.columns, *(label for label in layout.labels if label not in layout.columns)):
            if name in complete:
                columns[name] = complete[name]
            elif self.kept is not None and name in self.kept:
                columns[name or _free("row", taken)] = self.kept[name].reset_index(drop=True)
            elif name == layout.row_names and layout.keep != "none":
                columns[name or _free("row", taken)] = pd.Series(self.names, dtype=object)
        taken.update(columns)
        mass = _scaled(np.where(self.observed, 0, shares).sum(axis=1), scale, digits)
        columns[_free("hidden_mass", taken)] = mass
        if layout.flags:
            for j, label in enumerate(layout.labels):
                if self.hidden is None:
                    columns[_free(f"{label}_was_hidden", taken)] = ~self.observed[:, j]
                else:
                    columns[_free(f"{label}_hidden_probability", taken)] = self.hidden[:, j].round(3)
        parts = [pd.DataFrame(columns)]
        if self.low is not None and layout.bounds:
            bounds = self.bounds(layout.labels, lambda name: _free(name, taken))
            # Low and high by turns, of the mass and of each share, which may be rounded the other way.
            inside = np.repeat(np.column_stack([mass, *complete.values()]), 2, axis=1)
            rounded = _scaled(bounds.to_numpy(), scale, digits)
            rounded[:, ::2] = np.minimum(rounded, inside)[:, ::2]
            rounded[:, 1::2] = np.maximum(rounded, inside)[:, 1::2]
            parts.append(pd.DataFrame(rounded, columns=bounds.columns))
        return pd.concat(parts, axis=1)


def round_shares(D: FloatArray, digits: int) -> FloatArray:
    """Rows rounded to so many digits that still sum to exactly 1: the largest remainders are rounded up.

    Examples
    --------
    >>> import numpy as np
    >>> from hidldl.tables.rows import round_shares
    >>> round_shares(np.array([[1 / 3, 1 / 3, 1 / 3]]), 2)
    array([[0.34, 0.33, 0.33]])
    """
    unit = 10**digits
    parts = np.floor(D * unit)
    missing = np.rint(unit - parts.sum(axis=1)).astype(int)
    ranks = np.argsort(np.argsort(parts - D * unit, axis=1, kind="stable"), axis=1)
    return (parts + (ranks < missing[:, None])) / unit


def _scaled(values: FloatArray, scale: float, digits: int | None) -> FloatArray:
    return values * scale if digits is None else np.round(values * scale, digits)


def _free(name: str, taken: set[str]) -> str:
    """The name, or one that no column has yet."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name
