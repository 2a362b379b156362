"""Which zeros are hidden: ``infer_observed``."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from hidldl.randomness import RandomState
from hidldl.recovery.bayeshidldl import BayesHidLDL
from hidldl.validation import AUTO, Auto

LIKELY = 0.5


class InferredMask(NamedTuple):
    """A mask for any method, and how likely each share was overlooked; both n × m."""

    observed: Any
    probability: Any


def infer_observed(
    X: Any,
    D_obs: Any,
    observed: Any = None,
    *,
    hidden_rate: float | Sequence[float] | Auto = AUTO,
    n_jobs: int | None = None,
    random_state: RandomState = None,
) -> InferredMask:
    """Tell zeros that were overlooked from true ones, for methods that need a mask.

    ``BayesHidLDL`` does the same on its way and weighs both cases; a mask has to decide. Other methods decide by it.

    Parameters
    ----------
    X : array, sparse matrix or DataFrame of shape (n, d)
        Features.
    D_obs : array or DataFrame of shape (n, m)
        Shares as handed in.
    observed : array or DataFrame of shape (n, m), optional
        What is known: True, False, and NaN where nobody knows. Without it NaN in ``D_obs`` is hidden and zeros are
        unknown.
    hidden_rate : float, sequence of m floats or "auto"
        How often labels are overlooked, if that is known.
    n_jobs : int or None
        Threads.
    random_state : int, Generator, RandomState or None
        Seed.

    Returns
    -------
    observed : boolean array or DataFrame of shape (n, m)
        False where a share is hidden, or more likely than not.
    probability : array or DataFrame of shape (n, m)
        How likely it is that the share was overlooked.

    Examples
    --------
    >>> import numpy as np
    >>> from hidldl import HidLDL, hide_labels, infer_observed, make_distributions
    >>> data = make_distributions(n_rows=100, n_labels=5, zeros=0.3, random_state=0)
    >>> D_obs, _ = hide_labels(data.distributions, rate=0.4, random_state=0)
    >>> observed, probability = infer_observed(data.features, D_obs, random_state=0)
    >>> bool(observed[D_obs > 0].all()), bool((probability[D_obs > 0] == 0).all())
    (True, True)
    >>> model = HidLDL().fit(data.features, D_obs, observed=observed)
    """
    model = BayesHidLDL(zeros="unknown", hidden_rate=hidden_rate, n_jobs=n_jobs, random_state=random_state)
    probability = model.fit(X, D_obs, observed=observed).hidden_probability_
    mask = np.asarray(probability) < LIKELY
    if isinstance(probability, pd.DataFrame):
        return InferredMask(pd.DataFrame(mask, probability.index, probability.columns), probability)
    return InferredMask(mask, probability)
