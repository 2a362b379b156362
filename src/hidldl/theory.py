"""The paper's recovery bound, evaluated where the ground truth is known."""

from typing import Any

import numpy as np
import pandas as pd

from hidldl.masks import check_mask
from hidldl.validation import check_matrix_pair


def recovery_bound(D_true: Any, D_recovered: Any, observed: Any) -> pd.DataFrame:
    """Theorem 1 of the paper, row by row.

    Let s be the true mass of a row's observed labels and r the recovered one. Hiding multiplies the observed
    shares by 1/s; the recovery gives 1/r. Theorem 1 bounds the difference of these coefficients,
    ``1/s - 1/r <= (1 - r)/s``, which holds exactly where r² <= s; Lemma 1 and Eq. 10 bound its square,
    ``(1/s - 1/r)² <= ((1 - r)/s)²``, which also needs s <= r (2 - r).

    The paper writes the recovered coefficient as k, which scales the observed row *down* to the recovered one
    (k = r, at most 1), and the true one as its reciprocal (at least 1). They compare only if one is inverted;
    taken literally, 1/s - r <= (1 - r)/s fails wherever a label with mass is hidden.

    Parameters
    ----------
    D_true : array or DataFrame of shape (n, m)
        Ground truth.
    D_recovered : array or DataFrame of shape (n, m)
        Recovered distributions, as in ``distributions_``.
    observed : boolean array or DataFrame of shape (n, m)
        True where the share is observed.

    Returns
    -------
    DataFrame with one row per row of the input and the columns
        ``true_coefficient`` (1/s), ``recovered_coefficient`` (1/r), ``error`` (their difference), ``bound``,
        ``holds`` (Theorem 1) and ``holds_squared`` (Lemma 1 with Eq. 10).

    Examples
    --------
    >>> from hidldl import recovery_bound
    >>> bound = recovery_bound([[0.5, 0.3, 0.2]], [[0.45, 0.27, 0.28]], [[True, True, False]])
    >>> bound[["error", "bound", "holds"]].round(3)
       error  bound  holds
    0 -0.139   0.35   True
    """
    true, recovered = check_matrix_pair(D_true, D_recovered, name="D_recovered")
    frame = D_true if isinstance(D_true, pd.DataFrame) else None
    mask = check_mask(observed, true.shape, frame, name="D_true")
    true_mass = np.where(mask, true, 0).sum(axis=1)
    recovered_mass = np.where(mask, recovered, 0).sum(axis=1)
    for mass, name in ((true_mass, "D_true"), (recovered_mass, "D_recovered")):
        if not (mass > 0).all():
            row = int((mass <= 0).argmax())
            raise ValueError(
                f"row {row} of {name} has no mass on its observed labels, so its coefficient is undefined; drop it."
            )
    error = 1 / true_mass - 1 / recovered_mass
    # With nothing hidden, error and bound are both 0 up to rounding.
    bound = np.maximum(1 - recovered_mass, 0) / true_mass
    slack = 8 * np.finfo(true.dtype).eps / true_mass
    return pd.DataFrame(
        {
            "true_coefficient": 1 / true_mass,
            "recovered_coefficient": 1 / recovered_mass,
            "error": error,
            "bound": bound,
            "holds": error <= bound + slack,
            "holds_squared": np.abs(error) <= bound + slack,
        },
        index=None if frame is None else frame.index,
    )
