"""How much each row's annotation weighs, by its votes."""

import numpy as np

from hidldl.arrays import FloatArray

ROW_WEIGHTS = (1e-3, 1e3)
"""However few or many its votes are, a row weighs no less and no more than this, relative to the average one."""


def weights_of_rows(votes: FloatArray | None, mean_votes: float, n_rows: int) -> FloatArray:
    """Weights relative to a row of so many votes; all alike without votes."""
    return np.ones(n_rows) if votes is None else np.clip(votes / mean_votes, *ROW_WEIGHTS)
