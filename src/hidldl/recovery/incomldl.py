"""IncomLDL-admm: incomplete label distribution learning by a trace norm, solved by ADMM."""

from typing import Any

import numpy as np

from hidldl.arrays import BoolArray, FloatArray, compact
from hidldl.recovery.algorithm1 import shrink_singular_values
from hidldl.recovery.linear import LeastSquares, LinearRecoverer, Residuals
from hidldl.simplex import project_onto_simplex
from hidldl.validation import check_number


class IncomLDL(LinearRecoverer):
    """Incomplete label distribution learning (IncomLDL-admm).

    Takes the observed shares as true and fills in the rest by a linear model of low rank::

        minimise    1/2 |M * (X W - D_obs)|²  +  alpha ||X W||_*
        subject to  rows of X W on the simplex

    with M = 1 where observed. The ADMM splits X W = Z. Its problem for each row, to minimise
    ``1/2 |m * (q - d)|² + <v, q> + rho/2 |q - z|²`` over the simplex, is a weighted projection onto it.

    Parameters
    ----------
    alpha : float, default=0.001
        Weight of the trace norm.
    rho : float, default=1
        Penalty of the ADMM.
    max_iter : int, default=100
        Most iterations; the usual test of primal and dual residuals (1e-4 absolute, 1e-3 relative) may stop it before.

    Attributes
    ----------
    coef_ : array of shape (d, m)
        The weights W.
    distributions_ : array or DataFrame of shape (n, m)
        The rows on the simplex that are nearest to X W. Observed proportions are not kept.
    raw_distributions_ : array or DataFrame of shape (n, m)
        X W itself, the matrix of the paper's tables.
    hidden_mass_, scaling_ : array or Series of shape (n,)
        How much of each row the hidden and the observed labels hold.
    observed_ : boolean array or DataFrame of shape (n, m)
        Which shares were observed.
    history_ : dict
        ``"primal"`` and ``"dual"`` residual of each iteration.
    n_iter_, converged_ : int, bool
        How many iterations ran, and whether the residuals passed the test.

    References
    ----------
    M. Xu, Z.-H. Zhou. Incomplete label distribution learning. IJCAI 2017.

    Examples
    --------
    >>> from hidldl import IncomLDL, hide_labels, make_distributions
    >>> data = make_distributions(n_rows=200, random_state=0)
    >>> D_obs, observed = hide_labels(data.distributions, rate=0.3, random_state=0)
    >>> model = IncomLDL(alpha=0.1).fit(data.features, D_obs, observed=observed)
    >>> model.distributions_.sum(axis=1).round(9)[:2]
    array([1., 1.])
    """

    def __init__(self, alpha: float = 1e-3, *, rho: float = 1.0, max_iter: int = 100) -> None:
        self.alpha = alpha
        self.rho = rho
        self.max_iter = max_iter

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        check_number(self.alpha, "alpha", at_least=0)
        check_number(self.rho, "rho", above=0)
        check_number(self.max_iter, "max_iter", at_least=1, integer=True)

    def _prepare(self, X: Any, D_obs: FloatArray) -> Any:
        X = compact(X)
        return X, LeastSquares(X)

    def _recover(self, prepared: Any, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
        X, least_squares = prepared
        curvature = observed.astype(D_obs.dtype) + D_obs.dtype.type(self.rho)
        Z = V = np.ones_like(D_obs)
        residuals = Residuals()
        converged = False
        for _ in range(self.max_iter):
            Q = project_onto_simplex((D_obs - V + self.rho * Z) / curvature, curvature)
            W = least_squares.solve(Q).astype(D_obs.dtype, copy=False)
            XW = np.asarray(X @ W)
            Z, Z_before = shrink_singular_values(XW + V / self.rho, self.alpha / self.rho), Z
            V = V + self.rho * (XW - Z)
            if converged := residuals.small_enough(XW, Z, Z_before, V, self.rho):
                break
        self.coef_ = W
        self._record_convergence(residuals.history, converged, residuals.in_words())
        return XW
