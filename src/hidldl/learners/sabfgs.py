"""SA-BFGS: the maximum entropy model of label distributions, fitted by L-BFGS."""

import numpy as np

from hidldl.arrays import FloatArray
from hidldl.learners.maxent import Loss, MaximumEntropyLearner, divergence
from hidldl.randomness import RandomState


class SABFGS(MaximumEntropyLearner):
    """Maximum entropy model fitted by L-BFGS (SA-BFGS, also known as BFGS-LLD).

    The predicted distribution is p = softmax(x W), without an intercept. W minimises the summed divergence::

        sum_i  w_i KL(d_i || p_i)

    Parameters
    ----------
    max_iter : int, default=600
        Most L-BFGS iterations.
    tol : float, default=1e-6
        Stop when no entry of the gradient exceeds this, or when the objective falls by less than a share of 2.2e-9.
        The gradient grows with the features: scale them to about 1, or tiny ones count as converged at once.
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

    def _loss(self, D: FloatArray, sample_weight: FloatArray) -> Loss:
        return divergence(D, sample_weight)

    def _start(self, rng: np.random.Generator, n_features: int, n_labels: int) -> FloatArray:
        return rng.random((n_features, n_labels))
