"""SA-IIS: the maximum entropy model of label distributions, fitted by improved iterative scaling."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import xlogy

from hidldl.arrays import FloatArray, compact
from hidldl.learner import Learner
from hidldl.learners.maxent import predicted_rows, softmax_with_logarithm
from hidldl.randomness import RandomState, random_generator
from hidldl.validation import check_number

REACH_OF_NODES = {4: 3e-3, 6: 0.04, 8: 0.2, 12: 1.0, 16: 2.0}
"""By number of nodes: exp(t s) is interpolated to 1e-11 while |t| times half the range of s is at most this."""
NEWTON_STEPS = 50
BLOCK_ENTRIES = 2**22
"""Sums over rows are taken for this many entries at a time, so that memory stays bounded for many rows."""


class SAIIS(Learner):
    """Maximum entropy model fitted by improved iterative scaling (SA-IIS, also known as IIS-LLD).

    The predicted distribution is p = softmax(x W), and W minimises sum_i w_i KL(d_i || p_i), as in SA-BFGS. A round
    changes every weight by the t_kj that solves::

        sum_i w_i d_ij x_ik = sum_i w_i p_ij x_ik exp(t_kj sign(x_ik) s_i),    s_i = sum_k |x_ik|

    which never makes the objective worse. All d × m equations of a round are solved together: exp(t s) is replaced
    by its interpolation between a few values of s, so that the sums over rows are matrix products that do not
    depend on t.

    Parameters
    ----------
    max_iter : int, default=150
        Most rounds.
    tol : float, default=1e-6
        Stop when a round makes the objective fall by less than this.
    random_state : int, Generator, RandomState or None
        Seed of the start, which is uniform in [0, 1).

    Attributes
    ----------
    coef_ : array of shape (d, m)
        The weights W.
    history_ : dict
        ``"loss"``: the summed divergence after each round.
    n_iter_, converged_ : int, bool
        How many rounds ran, and whether ``tol`` was reached.

    References
    ----------
    X. Geng. Label distribution learning. IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.

    Examples
    --------
    >>> from hidldl import SAIIS, make_distributions
    >>> data = make_distributions(n_rows=200, random_state=0)
    >>> model = SAIIS(random_state=0).fit(data.features, data.distributions)
    >>> model.predict(data.features[:2]).sum(axis=1).round(9)
    array([1., 1.])
    """

    def __init__(self, max_iter: int = 150, tol: float = 1e-6, random_state: RandomState = None) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        check_number(self.max_iter, "max_iter", at_least=1, integer=True)
        check_number(self.tol, "tol", at_least=0)

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray) -> None:
        X = compact(X)
        weight, D = sample_weight[:, None], np.asfortranarray(D)
        equations = ScalingEquations(X, X.T @ (weight * D))
        entropy = float((weight * xlogy(D, D)).sum())
        W = random_generator(self.random_state).random((X.shape[1], D.shape[1]))
        P, log_P = softmax_with_logarithm(X, W)
        losses = [entropy - float((weight * D * log_P).sum())]
        converged = False
        while not converged and len(losses) <= self.max_iter:
            W = W + equations.solve(weight * P)
            P, log_P = softmax_with_logarithm(X, W)
            losses.append(entropy - float((weight * D * log_P).sum()))
            converged = losses[-2] - losses[-1] < self.tol
        self.coef_ = W.astype(D.dtype, copy=False)
        reason = f"the last round made the divergence fall by {losses[-2] - losses[-1]:.2g}"
        self._record_convergence({"loss": np.array(losses[1:])}, converged, reason)

    def _predict(self, X: Any) -> FloatArray:
        return predicted_rows(X, self.coef_)


class ScalingEquations:
    """The d × m equations of a round of improved iterative scaling, for fixed features and targets X'D."""

    def __init__(self, X: Any, targets: FloatArray) -> None:
        self._positive, self._negative = _signed_parts(X)
        self._targets = np.asarray(targets, dtype=np.float64)
        size = np.asarray(abs(X).sum(axis=1), dtype=np.float64).ravel()
        self._half_range = (size.max() - size.min()) / 2
        if self._half_range <= 1e-12 * size.max():  # rows that were normalised have one size, but for rounding
            self._half_range = 0.0
        # exp(30) is far beyond any useful factor; features that are all 0 have no steps at all.
        self._longest = 30 / size.max() if size.max() > 1e-300 else 0.0
        counts = REACH_OF_NODES if self._half_range > 0 else [1]
        self._interpolations = {count: _interpolation(size, count) for count in counts}
        self._reach = 0.0

    def solve(self, P: FloatArray) -> FloatArray:
        """The steps t for the current (weighted) predictions, cut to the range in which the interpolation is exact.

        A step that is cut is a shorter step towards the maximum of a concave bound: it still improves. Steps shrink
        from round to round, and short ones need few nodes, so the search begins with the nodes of the last round.
        """
        if self._half_range == 0:
            return self._solve(P, 1, self._longest)
        t: FloatArray = np.zeros_like(self._targets)
        for count, reach in REACH_OF_NODES.items():
            if reach < self._reach and reach < max(REACH_OF_NODES.values()):
                continue
            longest = min(reach / self._half_range, self._longest)
            t = self._solve(P, count, longest)
            if np.abs(t).max() < longest:
                break
        self._reach = float(np.abs(t).max()) * self._half_range
        return t

    def _solve(self, P: FloatArray, count: int, longest: float) -> FloatArray:
        nodes, basis = self._interpolations[count]
        growing = _moments(self._positive, basis, P)
        shrinking = None if self._negative is None else _moments(self._negative, basis, P)
        t = np.zeros_like(self._targets)
        for _ in range(NEWTON_STEPS):
            growth = np.exp(t[:, None, :] * nodes[:, None])
            pushed = growing * growth
            residual = pushed.sum(axis=1) - self._targets
            slope = np.einsum("kqj,q->kj", pushed, nodes)
            if shrinking is not None:
                pulled = shrinking / growth
                residual -= pulled.sum(axis=1)
                slope += np.einsum("kqj,q->kj", pulled, nodes)
            # A feature that is 0 everywhere has no slope, and no step.
            step = np.divide(residual, slope, out=np.zeros_like(residual), where=slope > 0)
            updated = np.clip(t - step, -longest, longest)
            change = np.abs(updated - t).max()
            t = updated
            if change <= 1e-11 * longest:
                break
        return t


def _moments(part: Any, basis: FloatArray, P: FloatArray) -> FloatArray:
    """Sums over rows of x_ik p_ij times each node's weight in row i: an array of features × nodes × labels."""
    n_rows, n_labels = P.shape
    n_nodes = basis.shape[1]
    rows_at_a_time = max(1, BLOCK_ENTRIES // (n_nodes * n_labels))
    sums = np.zeros((part.shape[1], n_nodes * n_labels))
    for start in range(0, n_rows, rows_at_a_time):
        block = slice(start, start + rows_at_a_time)
        spread = (basis.T[:, None, block] * P.T[None, :, block]).reshape(n_nodes * n_labels, -1)
        sums += (spread @ part[block]).T
    return sums.reshape(-1, n_nodes, n_labels)


def _signed_parts(X: Any) -> tuple[Any, Any]:
    """X as the difference of two non-negative matrices; the second is None if there are no negative features."""
    if X.min() >= 0:
        return X, None
    if sparse.issparse(X):
        return X.maximum(0), (-X).maximum(0)
    return np.maximum(X, 0), np.maximum(-X, 0)


def _interpolation(size: FloatArray, count: int) -> tuple[FloatArray, FloatArray]:
    """Chebyshev nodes in the range of ``size``, and the weight of each node in the interpolation at each size."""
    low, high = size.min(), size.max()
    if count == 1:
        return np.array([high]), np.ones((len(size), 1))
    angles = (2 * np.arange(count) + 1) * np.pi / (2 * count)
    nodes = (low + high) / 2 + (high - low) / 2 * np.cos(angles)
    barycentric = (-1.0) ** np.arange(count) * np.sin(angles)
    distance = size[:, None] - nodes
    on_node = distance == 0
    with np.errstate(divide="ignore", invalid="ignore"):
        basis = barycentric / distance
        basis /= basis.sum(axis=1, keepdims=True)
    basis[on_node.any(axis=1)] = 0
    basis[on_node] = 1
    return nodes, basis
