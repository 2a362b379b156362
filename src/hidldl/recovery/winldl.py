"""WInLDL: incomplete label distribution learning with weights instead of a regulariser."""

from typing import Any

import numpy as np

from hidldl.arrays import BoolArray, FloatArray, compact
from hidldl.recovery.linear import LeastSquares, LinearRecoverer, Residuals
from hidldl.simplex import project_onto_simplex
from hidldl.validation import check_number

RIDGE = 1e-5


class WInLDL(LinearRecoverer):
    """Weighted incomplete label distribution learning.

    Takes the observed shares as true, completes the hidden ones by the model's own prediction and weights each
    entry by how informative its share is::

        minimise    1/2 |Q * (X W - Y)|²
        subject to  rows of X W on the simplex

    with Y = D_obs on observed entries and X W on hidden ones. The weights are Q = 2^(1 - d) on observed entries and
    a^c_j on hidden ones, where a grows from 1 to 2 over the iterations and c_j is the mean of label j's positive
    observed shares. The ADMM splits X W = Z.

    Parameters
    ----------
    rho : float, default=2
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
    X. Li, S. Chen. No regularization is needed: efficient and effective incomplete label distribution learning.
    IJCAI 2024.

    Examples
    --------
    >>> from hidldl import WInLDL, hide_labels, make_distributions
    >>> data = make_distributions(n_rows=200, random_state=0)
    >>> D_obs, observed = hide_labels(data.distributions, rate=0.3, random_state=0)
    >>> model = WInLDL().fit(data.features, D_obs, observed=observed)
    >>> model.distributions_.sum(axis=1).round(9)[:2]
    array([1., 1.])
    """

    def __init__(self, *, rho: float = 2.0, max_iter: int = 100) -> None:
        self.rho = rho
        self.max_iter = max_iter

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        check_number(self.rho, "rho", above=0)
        check_number(self.max_iter, "max_iter", at_least=1, integer=True)

    def _recover(self, prepared: Any, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
        X = compact(prepared)
        least_squares = LeastSquares(X, ridge=RIDGE)
        squared_weight = np.exp2(1 - D_obs) ** 2
        exponent = D_obs.sum(axis=0) / np.maximum((D_obs > 0).sum(axis=0), 1)
        Z = V = np.ones_like(D_obs)
        residuals = Residuals()
        converged = False
        for iteration in range(1, self.max_iter + 1):
            W = least_squares.solve(Z - V / self.rho).astype(D_obs.dtype, copy=False)
            XW = np.asarray(X @ W)
            hidden_weight = (1 + iteration / self.max_iter) ** exponent
            squared_weight = np.where(observed, squared_weight, hidden_weight**2)
            Y = np.where(observed, D_obs, XW)
            pulled = (self.rho * XW + V + squared_weight * Y) / (squared_weight + self.rho)
            Z, Z_before = project_onto_simplex(pulled), Z
            V = V + self.rho * (XW - Z)
            if converged := residuals.small_enough(XW, Z, Z_before, V, self.rho):
                break
        self.coef_ = W
        self._record_convergence(residuals.history, converged, residuals.in_words())
        return XW
