"""Intervals that hold as many of the shares that were hidden again as they should."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

LEVEL = 0.9
SPREADS = (0.05, 20.0)
PRECISION = 1.05
LARGEST_TAILS = 4.0

Coverage: TypeAlias = "Callable[[Calibration], float]"
"""The part of the hidden shares that intervals of ``LEVEL`` hold."""


@dataclass(frozen=True)
class Calibration:
    """How posterior draws become intervals.

    ``spread`` is the factor on the posterior's standard deviations. ``tails`` is the factor on the odds of draws
    outside of an interval: more than 1 where few values are possible, and an interval of some of them holds too much.
    """

    spread: float = 1.0
    tails: float = 1.0

    def levels(self, level: float) -> tuple[float, float]:
        """The quantiles of draws between which a share lies with this probability."""
        outside = self.tails * (1 - level) / (level + self.tails * (1 - level))
        return outside / 2, 1 - outside / 2


def calibrated(coverage: Coverage, least_spread: float | None = None) -> Calibration:
    """The calibration with which intervals hold ``LEVEL``; with few possible values, a spread has a least."""
    spread = _lowest(SPREADS, lambda spread: coverage(Calibration(spread)))
    if least_spread is None or spread > least_spread:
        return Calibration(spread)
    narrow = _lowest((1 / LARGEST_TAILS, 1.0), lambda part: coverage(Calibration(least_spread, 1 / part)))
    return Calibration(least_spread, 1 / narrow)


def _lowest(bounds: tuple[float, float], coverage: Callable[[float], float]) -> float:
    """The smallest factor with which intervals hold ``LEVEL``, or where they hold most.

    Where draws have weights, few of them count if they spread far, and wider intervals hold less again.
    """
    (low, high), held = bounds, 0.0
    while high / low > PRECISION:
        middle = float(np.sqrt(low * high))
        if held <= (holds := coverage(middle)) < LEVEL:
            low, held = middle, holds
        else:
            high = middle
    return float(np.sqrt(low * high))
