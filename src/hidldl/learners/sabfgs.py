"""SA-BFGS: the maximum entropy model of label distributions, fitted by L-BFGS."""

from typing import Any

import numpy as np
from scipy.optimize import OptimizeResult, minimize
from scipy.special import log_softmax, softmax, xlogy

from hidldl.base import Learner
from hidldl.validation import FloatArray, RandomState, check_number, random_generator


class SABFGS(Learner):
    """Maximum entropy model fitted by L-BFGS (SA-BFGS, also known as BFGS-LLD).

    The predicted distribution is p = softmax(x W), without an intercept. W minimises the summed divergence::

        sum_i  w_i KL(d_i || p_i)

    Parameters
    ----------
    max_iter : int, default=600
        Most L-BFGS iterations.
    tol : float, default=1e-6
        Stop when no entry of the gradient exceeds this.
    random_state : int, Generator, RandomState or None
        Seed of the start, which is uniform in [0, 1). The problem is convex: the start decides only which of
        several equally good W is found.

    Attributes
    ----------
    coef_ : array of shape (d, m)
        The weights W.
    history_ : dict
        ``"loss"``: the summed divergence after each iteration.
    n_iter_, converged_ : int, bool
        How many iterations ran, and whether a stop criterion was met.

    References
    ----------
    X. Geng. Label distribution learning. IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.

    Examples
    --------
    >>> from hidldl import SABFGS, make_distributions
    >>> data = make_distributions(n_rows=200, random_state=0)
    >>> model = SABFGS(random_state=0).fit(data.features, data.distributions)
    >>> model.predict(data.features[:2]).sum(axis=1).round(9)
    array([1., 1.])
    """

    def __init__(self, max_iter: int = 600, tol: float = 1e-6, random_state: RandomState = None) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        check_number(self.max_iter, "max_iter", at_least=1, integer=True)
        check_number(self.tol, "tol", at_least=0)

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray) -> None:
        shape = (X.shape[1], D.shape[1])
        start = random_generator(self.random_state).random(shape).ravel()
        losses: list[float] = []

        def record(intermediate_result: OptimizeResult) -> None:
            losses.append(float(intermediate_result.fun))

        result = minimize(
            lambda flat: _divergence_and_gradient(flat.reshape(shape), X, D, sample_weight),
            start,
            jac=True,
            method="L-BFGS-B",
            callback=record,
            options={"maxiter": self.max_iter, "gtol": self.tol},
        )
        self.coef_ = result.x.reshape(shape).astype(D.dtype, copy=False)
        largest_slope = np.abs(result.jac).max()
        self._record_convergence(
            {"loss": np.array(losses)}, bool(result.success), f"the gradient's largest entry is {largest_slope:.2g}"
        )

    def _predict(self, X: Any) -> FloatArray:
        return np.asarray(softmax(X @ self.coef_, axis=1))


def _divergence_and_gradient(
    W: FloatArray, X: Any, D: FloatArray, sample_weight: FloatArray
) -> tuple[float, FloatArray]:
    log_p = log_softmax(X @ W, axis=1)
    divergence = (xlogy(D, D) - D * log_p).sum(axis=1)
    gradient = X.T @ (sample_weight[:, None] * (np.exp(log_p) - D))
    return float(sample_weight @ divergence), np.asarray(gradient, dtype=np.float64).ravel()
