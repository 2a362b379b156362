"""A map of the labels: those that keep their proportion from row to row lie close to each other."""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from hidldl.arrays import FloatArray

FLOOR = 0.1
"""Shares below this part of an even share count as that much; otherwise zeros would dominate the map."""


@dataclass(frozen=True)
class LabelMap:
    """Positions of the labels (m × 2) and the share of the variance that either axis shows."""

    positions: FloatArray
    explained: tuple[float, float]


def label_map(distributions: FloatArray) -> LabelMap | None:
    """Principal components of centred log-ratios; None where there are too few rows or labels, or nothing varies.

    The distance between two labels is, as far as two dimensions can show it, the standard deviation over rows of the
    logarithm of their ratio.

    Examples
    --------
    >>> import numpy as np
    >>> from hidldl.reports.label_map import label_map
    >>> D = np.random.default_rng(0).dirichlet([2, 2, 2, 2], size=50)
    >>> label_map(D).positions.shape
    (4, 2)
    >>> label_map(D[:1]) is None
    True
    """
    n, m = distributions.shape
    if n < 3 or m < 3:
        return None
    logs = np.log(np.maximum(distributions, FLOOR / m))
    ratios = logs - logs.mean(axis=1, keepdims=True)
    covariance = np.cov(ratios.T, ddof=0)
    total = np.trace(covariance)
    if total < 1e-12 * m:
        return None
    variances, axes = eigh(covariance, subset_by_index=[m - 2, m - 1])
    variances, axes = np.maximum(variances[::-1], 0), axes[:, ::-1]
    positions = axes * np.sqrt(variances)
    # Directions are unique up to signs only: the label furthest out lies on the positive side.
    furthest = positions[np.abs(positions).argmax(axis=0), [0, 1]]
    return LabelMap(
        positions * np.where(furthest < 0, -1, 1), (float(variances[0] / total), float(variances[1] / total))
    )
