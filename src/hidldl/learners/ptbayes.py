"""PT-Bayes: label distributions as weighted examples for a Gaussian naive Bayes classifier."""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import softmax

from hidldl.arrays import FloatArray
from hidldl.learner import Learner
from hidldl.randomness import RandomState, random_generator
from hidldl.validation import check_number

BLOCK_ENTRIES = 2**22
"""Features are made dense and centred for this many entries at a time."""


class PTBayes(Learner):
    """Problem transformation with Gaussian naive Bayes.

    n × m pairs (row, label) are drawn with replacement, each with probability d_ij / n, and a naive Bayes classifier
    with one Gaussian per label and feature is fitted to them. Its class probabilities are the predicted distribution.

    Parameters
    ----------
    var_smoothing : float, default=0.1
        Share of the largest variance of a feature that is added to every variance.
    random_state : int, Generator, RandomState or None
        Seed of the draw.

    Attributes
    ----------
    means_, variances_ : array of shape (m, d)
        Mean and variance of each feature under each label.
    priors_ : array of shape (m,)
        Share of each label among the pairs. A label that was never drawn has prior 0.

    References
    ----------
    X. Geng. Label distribution learning. IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.

    Examples
    --------
    >>> from hidldl import PTBayes, make_distributions
    >>> data = make_distributions(n_rows=200, random_state=0)
    >>> model = PTBayes(random_state=0).fit(data.features, data.distributions)
    >>> model.predict(data.features[:2]).sum(axis=1).round(9)
    array([1., 1.])
    """

    saved_attributes = ("means_", "variances_", "priors_")

    def __init__(self, var_smoothing: float = 0.1, random_state: RandomState = None) -> None:
        self.var_smoothing = var_smoothing
        self.random_state = random_state

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        check_number(self.var_smoothing, "var_smoothing", above=0)

    # No sample weights: a weight of 2 would draw other pairs than the same row twice, and users expect the same result.
    def fit(self, X: Any, D: Any) -> Self:  # type: ignore[override]
        """Learn from complete distributions.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n, d)
            Features.
        D : array or DataFrame of shape (n, m)
            Distributions; each row sums to 1 within 1e-3.
        """
        return super().fit(X, D)

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray) -> None:
        probability = D.astype(np.float64).ravel()
        # How often each pair is drawn is all that the Gaussians need; the pairs themselves are never written out.
        pairs = random_generator(self.random_state).multinomial(D.size, probability / probability.sum())
        counts = pairs.reshape(D.shape).astype(np.float64)
        centre = np.asarray(X.T @ counts.sum(axis=1)).ravel() / D.size
        first, second = _moments_around(X, centre, counts)
        label_counts = np.maximum(counts.sum(axis=0), 1)[:, None]
        means = first / label_counts
        total_variance = second.sum(axis=0) / D.size - (first.sum(axis=0) / D.size) ** 2
        smoothing = self.var_smoothing * total_variance.max()
        variances = np.maximum(second / label_counts - means**2, 0) + (smoothing if smoothing > 0 else 1.0)
        self.means_ = (means + centre).astype(D.dtype, copy=False)
        self.variances_ = variances.astype(D.dtype, copy=False)
        self.priors_ = (counts.sum(axis=0) / D.size).astype(D.dtype, copy=False)

    def _predict(self, X: Any) -> FloatArray:
        centre = self.means_.mean(axis=0)
        means, precision = self.means_ - centre, 1 / self.variances_
        with np.errstate(divide="ignore"):
            constant = np.log(self.priors_) - 0.5 * np.log(self.variances_).sum(axis=1)
        constant = constant - 0.5 * (means**2 * precision).sum(axis=1)
        scores = np.empty((X.shape[0], len(means)), dtype=self.means_.dtype)
        # sum_k (x_k - mean_jk)² / var_jk is multiplied out, so that no n × m × d array is needed.
        for rows, block in _dense_blocks(X):
            residual = block - centre
            scores[rows] = constant - 0.5 * (residual**2 @ precision.T) + residual @ (means * precision).T
        return np.asarray(softmax(scores, axis=1))


def _moments_around(X: Any, centre: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sums over the pairs of each label of x - centre and of its square; centred, so that offsets cost no digits."""
    first = np.zeros((counts.shape[1], X.shape[1]))
    second = np.zeros_like(first)
    for rows, block in _dense_blocks(X):
        residual = block - centre
        first += counts[rows].T @ residual
        second += counts[rows].T @ residual**2
    return first, second


def _dense_blocks(X: Any) -> Iterator[tuple[slice, FloatArray]]:
    """The rows of X in dense blocks of bounded size."""
    rows_at_a_time = max(1, BLOCK_ENTRIES // X.shape[1])
    for start in range(0, X.shape[0], rows_at_a_time):
        rows = slice(start, start + rows_at_a_time)
        yield rows, X[rows].toarray() if sparse.issparse(X) else X[rows]
