"""Sums of shares that do not depend on where a table is cut: integers have no rounding to accumulate."""

import numpy as np

from hidldl.arrays import FloatArray, IntArray

ONE = 2**32
"""Shares are summed in units of 1 / ONE: far finer than any figure in a report, and two billion rows fit."""


def exact(shares: FloatArray) -> IntArray:
    """The shares in units of 1 / ONE."""
    return np.rint(shares * ONE).astype(np.int64)
