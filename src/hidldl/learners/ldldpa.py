"""LDL-DPA: the maximum entropy model that also matches the average rank and the variance of the shares."""

import numpy as np
from scipy.stats import rankdata

from hidldl.arrays import FloatArray
from hidldl.learners.maxent import Loss, MaximumEntropyLearner, divergence, slope_of_scores
from hidldl.randomness import RandomState
from hidldl.validation import check_number


class LDLDPA(MaximumEntropyLearner):
    """Label distribution learning with description-degree percentile average.

    The predicted distribution is p = softmax(x W). With R_i the average ranks of the labels in d_i (1 for the
    smallest share), W minimises::

        sum_i KL(d_i || p_i)  -  alpha sum_i mean_j(R_ij p_ij)  +  beta sum_i (var d_i - var p_i)²  +  gamma / 2 |W|²

    Parameters
    ----------
    alpha : float, default=0.01
        Weight of the average rank.
    beta : float, default=0.01
        Weight of the variance.
    gamma : float, default=1e-6
        Weight of the ridge.
    max_iter : int, default=100
        Most L-BFGS iterations. Stopping early regularises; the code behind the paper's tables stops after 50
        iterations of another L-BFGS.
    tol : float, default=1e-6
        Stop when no entry of the gradient exceeds this, or when the objective falls by less than a share of 2.2e-9.
        The gradient grows with the features: scale them to about 1, or tiny ones count as converged at once.
    random_state : int, Generator, RandomState or None
        Seed of the start.

    Attributes
    ----------
    coef_ : array of shape (d, m)
        The weights W.
    history_ : dict
        ``"loss"``: the objective after each iteration.
    n_iter_, converged_ : int, bool
        How many iterations ran, and whether a stop criterion was met.

    References
    ----------
    X. Jia, T. Qin, Y. Lu, W. Li. Adaptive weighted ranking-oriented label distribution learning. IEEE Transactions
    on Neural Networks and Learning Systems, 2023.

    Examples
    --------
    >>> from hidldl import LDLDPA, make_distributions
    >>> data = make_distributions(n_rows=200, random_state=0)
    >>> model = LDLDPA(random_state=0).fit(data.features, data.distributions)
    >>> model.predict(data.features[:2]).sum(axis=1).round(9)
    array([1., 1.])
    """

    def __init__(
        self,
        alpha: float = 1e-2,
        beta: float = 1e-2,
        gamma: float = 1e-6,
        *,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        super()._check_parameters(n_rows, n_labels)
        for name in ("alpha", "beta", "gamma"):
            check_number(getattr(self, name), name, at_least=0)

    def _ridge(self) -> float:
        return self.gamma

    def _loss(self, D: FloatArray, sample_weight: FloatArray) -> Loss:
        n_labels = D.shape[1]
        weight = sample_weight[:, None]
        summed_divergence = divergence(D, sample_weight)
        average_rank = np.asfortranarray(rankdata(D, axis=1) / n_labels)
        true_variance = D.var(axis=1, keepdims=True)

        def loss(P: FloatArray, log_P: FloatArray) -> tuple[float, FloatArray]:
            value, slope = summed_divergence(P, log_P)
            centred = P - P.mean(axis=1, keepdims=True)
            gap = true_variance - (centred**2).mean(axis=1, keepdims=True)
            value += float((weight * (self.beta * gap**2)).sum() - self.alpha * (weight * average_rank * P).sum())
            slope_of_rows = -self.alpha * average_rank - self.beta * 4 / n_labels * gap * centred
            return value, slope + slope_of_scores(P, weight * slope_of_rows)

        return loss
