"""Covariances of log-shares: a first estimate from pairs of labels, and what keeps estimates in bounds."""

import numpy as np

from hidldl.arrays import BoolArray, FloatArray, namespace

LARGEST_VARIANCE = 1e4
"""Of log-shares. With exact zeros S would grow without end; a share e¹⁰⁰ times smaller than another is 0 in effect."""


def moments_of_log_ratios(over_pairs: FloatArray, nu: float) -> tuple[FloatArray, FloatArray]:
    """Mean and covariance of the log-shares from ``sums_over_pairs`` of labels that are observed together.

    Log-ratios of two observed labels are free of what was hidden. Their means give the mean log-shares by least
    squares, and their variances the variation matrix, of which -1/2 in centred coordinates is the covariance.
    Half a pseudo-count keeps zeros finite. Half of the result is isotropic: EM shrinks a direction quickly, but is
    slow to find one that is missing at the start.
    """
    pairs, sums, squares, products = over_pairs
    n_labels = len(pairs)
    differences = sums - sums.T
    connections = np.diag(pairs.sum(axis=1)) - pairs
    mean = np.linalg.lstsq(connections, differences.sum(axis=1), rcond=None)[0]
    mean -= mean.mean()
    gaps = mean[:, None] - mean
    squared = squares + squares.T - 2 * products - 2 * differences * gaps + pairs * gaps**2
    overall = squared.sum() / max(pairs.sum() - np.trace(pairs), 1)
    variation = (squared + 2 * overall) / (pairs + 2)
    np.fill_diagonal(variation, 0)
    eigenvalues, vectors = np.linalg.eigh(centred(-variation / 2))
    S = (vectors * np.maximum(eigenvalues, 0)) @ vectors.T
    typical = max(np.trace(S) / (n_labels - 1), 1 / nu)
    return mean, (S + typical * (np.eye(n_labels) - 1 / n_labels)) / 2


def sums_over_pairs(shares: FloatArray, observed: BoolArray, nu: float) -> FloatArray:
    """For each pair of labels, over the rows that have both: how many, and sums of logs, their squares and products."""
    xp = namespace(shares)
    mask = xp.where(observed, xp.ones_like(shares), 0)
    logs = mask * xp.log(shares + 0.5 / nu)
    sums = xp.stack([mask.T @ mask, logs.T @ mask, (logs**2).T @ mask, logs.T @ logs])
    return sums if xp is np else np.asarray(sums.tolist())


def shrunk(S: FloatArray, n_rows: int, prior_rows: float, ordered: bool) -> FloatArray:
    """A covariance under its prior: its mean over all orders of the labels, or over shifts of ordered labels."""
    n_labels = len(S)
    S, typical = bounded(S)
    prior = shifted(S) if ordered else typical * (np.eye(n_labels) - 1 / n_labels)
    return np.asarray((n_rows * S + prior_rows * prior) / (n_rows + prior_rows))


def bounded(S: FloatArray) -> tuple[FloatArray, float]:
    """A covariance whose eigenvalues are not too large on average, and their average."""
    typical = float(np.trace(S) / (len(S) - 1))
    if typical <= LARGEST_VARIANCE:
        return S, typical
    return S * (LARGEST_VARIANCE / typical), LARGEST_VARIANCE


def shifted(S: FloatArray) -> FloatArray:
    """The covariance that depends on how far two labels are apart only, with positive eigenvalues."""
    return positive(mean_by_distance(S), 1e-3 * np.trace(S) / len(S))


def mean_by_distance(S: FloatArray) -> FloatArray:
    """The mean of S over each diagonal."""
    lags = np.abs(np.subtract.outer(np.arange(len(S)), np.arange(len(S))))
    means = np.bincount(lags.ravel(), S.ravel()) / np.bincount(lags.ravel())
    return np.asarray(means[lags])


def centred(S: FloatArray) -> FloatArray:
    """A symmetric matrix in the space in which rows and columns sum to 0."""
    S = S - S.mean(axis=0)
    S = S - S.mean(axis=1, keepdims=True)
    return (S + S.T) / 2


def positive(S: FloatArray, smallest: float) -> FloatArray:
    """The covariance with eigenvalues of at least this size, on the space of centred vectors."""
    eigenvalues, vectors = np.linalg.eigh(centred(S))
    return centred((vectors * np.maximum(eigenvalues, max(smallest, 0))) @ vectors.T)
