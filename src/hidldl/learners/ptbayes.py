"""PT-Bayes: label distributions as weighted examples for a Gaussian naive Bayes classifier."""

from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import softmax

from hidldl.base import Learner
from hidldl.validation import FloatArray, RandomState, check_number, compact, random_generator


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

    def __init__(self, var_smoothing: float = 0.1, random_state: RandomState = None) -> None:
        self.var_smoothing = var_smoothing
        self.random_state = random_state

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        check_number(self.var_smoothing, "var_smoothing", above=0)

    # No sample weights: two draws differ, whatever the weights, so nobody could rely on them.
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
        X = compact(X)
        probability = D.astype(np.float64).ravel()
        # How often each pair is drawn is all that the Gaussians need; the pairs themselves are never written out.
        drawn = random_generator(self.random_state).multinomial(D.size, probability / probability.sum())
        counts = drawn.reshape(D.shape).astype(np.float64)
        per_label = counts.sum(axis=0)
        # Features are centred before they are squared, or the variances drown in rounding.
        centre = _column_means(X, counts.sum(axis=1))
        first, second = _moments(X, centre, counts)
        seen = np.maximum(per_label, 1)[:, None]
        means = first / seen
        total_variance = second.sum(axis=0) / D.size - (first.sum(axis=0) / D.size) ** 2
        smoothing = self.var_smoothing * total_variance.max()
        variances = np.maximum(second / seen - means**2, 0) + (smoothing if smoothing > 0 else 1.0)
        dtype = D.dtype
        self.means_ = (means + centre).astype(dtype, copy=False)
        self.variances_ = variances.astype(dtype, copy=False)
        self.priors_ = (per_label / D.size).astype(dtype, copy=False)

    def _predict(self, X: Any) -> FloatArray:
        precision = 1 / self.variances_
        # sum_k (x_k - mean_jk)² / var_jk is multiplied out, so that no n × m × d array is needed; dense features are
        # centred first, which keeps the digits that large offsets would cost.
        centre = np.zeros_like(self.means_[0]) if sparse.issparse(X) else self.means_.mean(axis=0)
        residual = X if sparse.issparse(X) else X - centre
        means = self.means_ - centre
        squares = X.multiply(X) if sparse.issparse(X) else residual**2
        distance = squares @ precision.T - 2 * (residual @ (means * precision).T) + (means**2 * precision).sum(axis=1)
        with np.errstate(divide="ignore"):
            scores = np.log(self.priors_) - 0.5 * (np.log(self.variances_).sum(axis=1) + distance)
        return np.asarray(softmax(scores, axis=1)).astype(self.means_.dtype, copy=False)


def _column_means(X: Any, weight: FloatArray) -> FloatArray:
    return np.asarray(X.T @ weight).ravel() / weight.sum()


def _moments(X: Any, centre: FloatArray, counts: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sums over the drawn pairs of each label of x - centre and of its square."""
    per_label = counts.sum(axis=0)[:, None]
    sums = np.asarray((X.T @ counts).T)
    if sparse.issparse(X):
        squares = np.asarray((X.multiply(X).T @ counts).T)
        return sums - per_label * centre, squares - 2 * sums * centre + per_label * centre**2
    return sums - per_label * centre, counts.T @ (X - centre) ** 2
