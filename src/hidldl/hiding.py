"""The two settings, labels hidden (the rest inflates) or merely missing, and the ways in which they get lost."""

from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from hidldl.arrays import BoolArray, FloatArray
from hidldl.randomness import RandomState, random_generator
from hidldl.validation import (
    ObservedRows,
    check_choice,
    check_distributions,
    check_features_of_rows,
    check_number,
)

HidingSetting: TypeAlias = Literal["hidden", "incomplete"]
Mechanism: TypeAlias = Literal["uniform", "label", "row", "feature", "degree", "top-k"]

SMALLEST_SHARE = 0.01
"""Added to a share before its logarithm: below it, shares are overlooked alike."""


def hide_labels(
    D: Any,
    rate: float = 0.5,
    random_state: RandomState = None,
    *,
    setting: HidingSetting = "hidden",
    mechanism: Mechanism = "uniform",
    slope: float = 1.0,
    features: Any = None,
) -> tuple[Any, Any]:
    """Hide labels of complete distributions at random, as the paper's experiments do, or as people overlook them.

    By default each entry is hidden with probability ``rate``, independently of the others. The other mechanisms hide
    as many, but not all alike. A row that is left without a positive observed entry gets one of its positive labels
    back, drawn at random. Zeros can stay observed: an annotator may have looked and found nothing.

    Parameters
    ----------
    D : array or DataFrame of shape (n, m)
        Complete distributions.
    rate : float in [0, 1]
        Share of entries that are hidden on average, before bare rows get a label back.
    random_state : int, Generator, RandomState or None
        Seed of the draw.
    setting : "hidden" or "incomplete"
        "hidden" divides what is left of a row by its sum, which is what annotators hand in (the paper's Eq. 3).
        "incomplete" leaves the observed shares as they were, as IncomLDL assumes (Eq. 2).
    mechanism : str, default="uniform"
        What decides whether an entry is hidden.

        - "uniform": nothing, all are hidden with the same probability, as in the paper.
        - "label": some labels are overlooked more than others.
        - "row": some annotators overlook more than others.
        - "feature": rows are annotated with more or less care according to a linear function of ``features``.
        - "degree": small shares are overlooked more than large ones.
        - "top-k": each row has its k largest labels. k varies from row to row around m (1 - rate) and is at least 1;
          labels that hold as much as each other are taken in random order.

        From "label" to "degree", an entry is observed with probability sigmoid(a + slope · s), where a is such that
        ``rate`` of the entries are hidden on average, and s has mean 0 and standard deviation 1: random numbers for
        the labels or the rows, a linear function of the features with random coefficients, or log(share + 0.01).
    slope : float, default=1.0
        How unlike the probabilities are, 0 for all alike. For "degree", 1 is usual and 2.5 is steep.
    features : array, sparse matrix or DataFrame of shape (n, d), optional
        Features of the rows, for "feature".

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

    Annotators who name the largest labels only:

    >>> D = np.array([[0.5, 0.3, 0.15, 0.05], [0.1, 0.2, 0.3, 0.4]])
    >>> hide_labels(D, rate=0.5, random_state=1, mechanism="top-k")[0].round(3)
    array([[0.625, 0.375, 0.   , 0.   ],
           [0.   , 0.222, 0.333, 0.444]])
    """
    check_number(rate, "rate", at_least=0, at_most=1)
    check_number(slope, "slope", at_least=0, at_most=100)
    check_choice(setting, "setting", get_args(HidingSetting))
    check_choice(mechanism, "mechanism", get_args(Mechanism))
    rows = check_distributions(D)
    rng = random_generator(random_state)
    if mechanism == "top-k":
        observed = _largest_labels(rows.shares, rate, rng)
    else:
        observed = _draw_mask(rows.shares, _hiding_rates(rows, rate, rng, mechanism, slope, features), rng)
    D_obs = np.where(observed, rows.shares, 0).astype(rows.shares.dtype, copy=False)
    if setting == "hidden":
        D_obs = D_obs / D_obs.sum(axis=1, keepdims=True)
    D_obs, observed = rows.like_input(D_obs, observed)
    return D_obs, observed


def _hiding_rates(
    rows: ObservedRows, rate: float, rng: np.random.Generator, mechanism: Mechanism, slope: float, features: Any
) -> FloatArray | float:
    """The probability that an entry is hidden, in a shape that fits all entries."""
    n_rows, n_labels = rows.shares.shape
    scores: FloatArray
    if mechanism == "label":
        scores = rng.standard_normal((1, n_labels))
    elif mechanism == "row":
        scores = rng.standard_normal((n_rows, 1))
    elif mechanism == "feature":
        scores = _linear_function(_check_given(features, rows), rng)
    elif mechanism == "degree":
        scores = np.log(rows.shares.astype(float) + SMALLEST_SHARE)
    else:
        return rate
    return _rates_by_score(slope * _standardised(scores), rate)


def _check_given(features: Any, rows: ObservedRows) -> Any:
    if features is None:
        raise ValueError('mechanism="feature" needs the features of the rows; pass features=X.')
    return check_features_of_rows(features, rows, name="features", rows_name="D")


def _linear_function(X: Any, rng: np.random.Generator) -> FloatArray:
    """A linear function with random coefficients, of features that all weigh alike; one value per row."""
    from sklearn.preprocessing import StandardScaler

    scaled = StandardScaler(with_mean=False).fit_transform(X)
    return np.asarray(scaled @ rng.standard_normal((X.shape[1], 1)))


def _standardised(scores: FloatArray) -> FloatArray:
    centred = scores - scores.mean()
    spread = centred.std()
    # Scores that differ by rounding only say nothing.
    return centred / spread if spread > 1e-10 * np.abs(scores).max() else np.zeros_like(scores)


def _rates_by_score(scores: FloatArray, rate: float) -> FloatArray | float:
    """Hidden with probability 1 - sigmoid(a + score), with a such that the mean of the probabilities is ``rate``."""
    from scipy.optimize import brentq
    from scipy.special import expit, logit

    if rate < np.finfo(float).tiny or rate == 1:  # subnormal rates have too few digits to be met
        return rate
    # The mean lies between the probabilities of the smallest and the largest score, which bounds a.
    low, high = -logit(rate) - scores.max() - 1, -logit(rate) - scores.min() + 1
    a = brentq(lambda a: expit(-a - scores).mean() - rate, low, high)
    return np.asarray(expit(-a - scores))


def _largest_labels(D: FloatArray, rate: float, rng: np.random.Generator) -> BoolArray:
    """The k largest labels of each row, k = 1 + a binomial number, with mean m (1 - rate) where that is above 1."""
    n_rows, n_labels = D.shape
    chance = max((1 - rate) * n_labels - 1, 0) / (n_labels - 1)
    counts = 1 + rng.binomial(n_labels - 1, chance, size=n_rows)
    order = np.lexsort((rng.random(D.shape), -D), axis=1)
    ranks = np.argsort(order, axis=1)
    observed: BoolArray = ranks < counts[:, None]
    return observed


def _draw_mask(D: FloatArray, rates: FloatArray | float, rng: np.random.Generator) -> BoolArray:
    observed: BoolArray = rng.random(D.shape) >= rates
    bare = np.flatnonzero(~((D > 0) & observed).any(axis=1))
    lottery = np.where(D[bare] > 0, rng.random((len(bare), D.shape[1])), -1)
    observed[bare, lottery.argmax(axis=1)] = True
    return observed
