"""IncomLDL-prox: incomplete label distribution learning by a trace norm, solved by proximal gradients."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import svds

from hidldl.arrays import BoolArray, FloatArray, compact
from hidldl.recovery.algorithm1 import shrink_singular_values
from hidldl.recovery.linear import LinearRecoverer
from hidldl.validation import check_number


class IncomLDLProx(LinearRecoverer):
    """Incomplete label distribution learning by proximal gradients (IncomLDL-prox).

    Takes the observed shares as true and fills in the rest by a linear model with weights of low rank::

        minimise  1/2 |M * (X W - D_obs)|²  +  alpha ||W||_*

    with M = 1 where observed, by accelerated proximal gradients: a gradient step whose length is one over the square
    of X's largest singular value, then singular value thresholding of W. Rows are projected onto the simplex at the
    end. The trace norm is that of W, not of X W, since only that has a proximal step in closed form.

    Parameters
    ----------
    alpha : float, default=0.001
        Weight of the trace norm.
    max_iter : int, default=1000
        Most iterations.
    tol : float, default=1e-6
        Stop when W changes by less than this share of its norm.

    Attributes
    ----------
    coef_ : array of shape (d, m)
        The weights W.
    distributions_ : array or DataFrame of shape (n, m)
        The rows on the simplex that are nearest to X W. Observed proportions are not kept.
    raw_distributions_ : array or DataFrame of shape (n, m)
        X W itself.
    hidden_mass_, scaling_ : array or Series of shape (n,)
        How much of each row the hidden and the observed labels hold.
    observed_ : boolean array or DataFrame of shape (n, m)
        Which shares were observed.
    history_ : dict
        ``"loss"``: the objective after each iteration.
    n_iter_, converged_ : int, bool
        How many iterations ran, and whether ``tol`` was reached.

    References
    ----------
    M. Xu, Z.-H. Zhou. Incomplete label distribution learning. IJCAI 2017.

    Examples
    --------
    >>> from hidldl import IncomLDLProx, hide_labels, make_distributions
    >>> data = make_distributions(n_rows=200, random_state=0)
    >>> D_obs, observed = hide_labels(data.distributions, rate=0.3, random_state=0)
    >>> model = IncomLDLProx().fit(data.features, D_obs, observed=observed)
    >>> model.distributions_.sum(axis=1).round(9)[:2]
    array([1., 1.])
    """

    def __init__(self, alpha: float = 1e-3, *, max_iter: int = 1000, tol: float = 1e-6) -> None:
        self.alpha = alpha
        self.max_iter = max_iter
        self.tol = tol

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        check_number(self.alpha, "alpha", at_least=0)
        check_number(self.max_iter, "max_iter", at_least=1, integer=True)
        check_number(self.tol, "tol", at_least=0)

    def _recover(self, prepared: Any, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
        X = compact(prepared)
        curvature = _largest_singular_value(X) ** 2
        # Features whose squares vanish tell nothing.
        step = 1 / curvature if curvature > np.finfo(np.float64).tiny else 0.0
        W = ahead = np.zeros((X.shape[1], D_obs.shape[1]))
        momentum = 1.0
        losses: list[float] = []
        converged = False
        while not converged and len(losses) < self.max_iter:
            gradient = np.asarray(X.T @ np.where(observed, X @ ahead - D_obs, 0))
            updated = shrink_singular_values(ahead - step * gradient, step * self.alpha)
            momentum, before = (1 + np.sqrt(1 + 4 * momentum**2)) / 2, momentum
            ahead = updated + (before - 1) / momentum * (updated - W)
            converged = bool(np.linalg.norm(updated - W) <= self.tol * np.linalg.norm(updated))
            W = updated
            losses.append(self._objective(W, X, D_obs, observed))
        self.coef_ = W.astype(D_obs.dtype, copy=False)
        self._record_convergence({"loss": np.array(losses)}, converged, f"the objective is {losses[-1]:.4g}")
        return np.asarray(X @ self.coef_)

    def _objective(self, W: FloatArray, X: Any, D_obs: FloatArray, observed: BoolArray) -> float:
        misfit = np.where(observed, X @ W - D_obs, 0)
        return float((misfit**2).sum() / 2 + self.alpha * np.linalg.norm(W, ord="nuc"))


def _largest_singular_value(X: Any) -> float:
    if not sparse.issparse(X):
        return float(np.linalg.norm(X, ord=2))
    if X.count_nonzero() == 0:
        return 0.0
    if min(X.shape) == 1:
        return float(np.sqrt((X.data.astype(np.float64) ** 2).sum()))
    start = np.random.default_rng(0).normal(size=min(X.shape))
    return float(svds(X.astype(np.float64), k=1, v0=start, return_singular_vectors=False)[0])
