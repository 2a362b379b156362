"""The two settings: labels that are hidden (the rest inflates) and labels that are merely missing."""

from typing import Any, Literal

import numpy as np

from hidldl.arrays import BoolArray, FloatArray
from hidldl.randomness import RandomState, random_generator
from hidldl.validation import check_choice, check_distributions, check_number


def hide_labels(
    D: Any,
    rate: float = 0.5,
    random_state: RandomState = None,
    *,
    setting: Literal["hidden", "incomplete"] = "hidden",
) -> tuple[Any, Any]:
    """Hide labels of complete distributions at random, as the paper's experiments do.

    Each entry is hidden with probability ``rate``, independently of the others. A row that is left without a
    positive observed entry gets one of its positive labels back, drawn at random. Zeros can stay observed: an
    annotator may have looked and found nothing.

    Parameters
    ----------
    D : array or DataFrame of shape (n, m)
        Complete distributions.
    rate : float in [0, 1]
        Probability that an entry is hidden.
    random_state : int, Generator, RandomState or None
        Seed of the draw.
    setting : "hidden" or "incomplete"
        "hidden" divides what is left of a row by its sum, which is what annotators hand in (the paper's Eq. 3).
        "incomplete" leaves the observed shares as they were, as IncomLDL assumes (Eq. 2).

    Returns
    -------
    D_obs : array or DataFrame of shape (n, m)
        Observed shares, 0 where hidden.
    observed : boolean array or DataFrame of shape (n, m)
        True where the share is observed.

    Examples
    --------
    >>> import numpy as np
    >>> from hidldl import hide_labels
    >>> D_obs, observed = hide_labels(np.array([[0.5, 0.25, 0.25]]), rate=0.5, random_state=1)
    >>> observed
    array([[ True,  True, False]])
    >>> D_obs.round(3)
    array([[0.667, 0.333, 0.   ]])
    """
    check_number(rate, "rate", at_least=0, at_most=1)
    check_choice(setting, "setting", ("hidden", "incomplete"))
    rows = check_distributions(D)
    observed = _draw_mask(rows.shares, rate, random_generator(random_state))
    D_obs = np.where(observed, rows.shares, 0).astype(rows.shares.dtype, copy=False)
    if setting == "hidden":
        D_obs = D_obs / D_obs.sum(axis=1, keepdims=True)
    D_obs, observed = rows.like_input(D_obs, observed)
    return D_obs, observed


def _draw_mask(D: FloatArray, rate: float, rng: np.random.Generator) -> BoolArray:
    observed: BoolArray = rng.random(D.shape) >= rate
    bare = np.flatnonzero(~((D > 0) & observed).any(axis=1))
    lottery = np.where(D[bare] > 0, rng.random((len(bare), D.shape[1])), -1)
    observed[bare, lottery.argmax(axis=1)] = True
    return observed
