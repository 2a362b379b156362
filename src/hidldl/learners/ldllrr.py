"""LDL-LRR: the maximum entropy model that also keeps the order of the labels."""

import numpy as np

from hidldl.arrays import FloatArray
from hidldl.learners.maxent import Loss, MaximumEntropyLearner, divergence, slope_of_scores
from hidldl.randomness import RandomState
from hidldl.validation import check_number

FEW_LABELS = 32
"""Up to this many labels, each pair is taken once, by a matrix of pairs; with more, both orders, by broadcasting."""
SMALL_BLOCK, LARGE_BLOCK = 2**14, 2**20
"""Entries at a time: what fits the cache, and what bounds memory, however many rows there are."""


class LDLLRR(MaximumEntropyLearner):
    """Label distribution learning by exploiting the label ranking relation.

    The predicted distribution is p = softmax(x W). W minimises::

        1/n sum_i KL(d_i || p_i)  +  alpha / (2n) sum_i rank_i  +  beta / 2 |W|²

    where rank_i is the cross-entropy, over all pairs of labels (j, k) and weighted by (d_ij - d_ik)², between their
    order in d_i (1 if d_ij > d_ik, 1/2 for ties) and sigmoid(p_ij - p_ik).

    Parameters
    ----------
    alpha : float, default=0.01
        Weight of the ranking loss.
    beta : float, default=0.01
        Weight of the ridge.
    margin : float, default=0
        How much larger d_ij must be to count as ranked above d_ik. The code behind the paper's tables has 0.5.
    max_iter : int, default=100
        Most L-BFGS iterations.
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
    X. Jia, X. Shen, W. Li, Y. Lu, J. Zhu. Label distribution learning by maintaining label ranking relation. IEEE
    Transactions on Knowledge and Data Engineering 35, 2021.

    Examples
    --------
    >>> from hidldl import LDLLRR, make_distributions
    >>> data = make_distributions(n_rows=200, random_state=0)
    >>> model = LDLLRR(random_state=0).fit(data.features, data.distributions)
    >>> model.predict(data.features[:2]).sum(axis=1).round(9)
    array([1., 1.])
    """

    def __init__(
        self,
        alpha: float = 1e-2,
        beta: float = 1e-2,
        *,
        margin: float = 0.0,
        max_iter: int = 100,
        tol: float = 1e-6,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.beta = beta
        self.margin = margin
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        super()._check_parameters(n_rows, n_labels)
        for name in ("alpha", "beta", "margin"):
            check_number(getattr(self, name), name, at_least=0)

    def _ridge(self) -> float:
        return self.beta

    def _loss(self, D: FloatArray, sample_weight: FloatArray) -> Loss:
        total = sample_weight.sum()
        mean_divergence = divergence(D, sample_weight / total)
        ranking_weight = self.alpha / (2 * total) * sample_weight

        def loss(P: FloatArray, log_P: FloatArray) -> tuple[float, FloatArray]:
            value, slope = mean_divergence(P, log_P)
            if self.alpha > 0:
                ranking, slope_of_rows = ranking_loss(P, D, self.margin)
                value += float(ranking_weight @ ranking)
                slope = slope + slope_of_scores(P, ranking_weight[:, None] * slope_of_rows)
            return value, slope

        return loss


def ranking_loss(P: FloatArray, D: FloatArray, margin: float) -> tuple[FloatArray, FloatArray]:
    """Per row the weighted cross-entropy of the order of its labels, and its slope with respect to P.

    Both orders of a pair are taken together. With the gap g = p_j - p_k, its weight w = (d_j - d_k)² and c = 2 where j
    ranks above k, 0 where k ranks above j and 1 where neither does, their cross-entropies add up to
    w (2 log(1 + exp g) - c g).
    """
    n_labels = P.shape[1]
    few_labels = n_labels <= FEW_LABELS
    values, slopes = np.empty(len(P)), np.empty_like(P)
    rows_at_a_time = max(1, SMALL_BLOCK // n_labels**2 if few_labels else LARGE_BLOCK // n_labels**2)
    differences = _differences_of_pairs(n_labels) if few_labels else None
    for start in range(0, len(P), rows_at_a_time):
        block = slice(start, start + rows_at_a_time)
        if differences is not None:
            value, pull = _cross_entropy(differences @ D[block].T, differences @ P[block].T, margin)
            values[block], slopes[block] = value.sum(axis=0), (differences.T @ pull).T
        else:
            true_gap, gap = (A[block, :, None] - A[block, None, :] for A in (D, P))
            value, pull = _cross_entropy(true_gap, gap, margin)
            values[block], slopes[block] = value.sum(axis=(1, 2)) / 2, pull.sum(axis=2)
    return values, slopes


def _cross_entropy(true_gap: FloatArray, gap: FloatArray, margin: float) -> tuple[FloatArray, FloatArray]:
    """Weighted cross-entropies of pairs, both orders together, and their slopes with respect to the gaps."""
    rank = 1.0 + (true_gap > margin) - (true_gap < -margin)
    weight = np.square(true_gap, out=true_gap)
    exponential = np.exp(gap)  # a gap between shares is at most 1: nothing overflows
    return weight * (2 * np.log1p(exponential) - rank * gap), weight * (2 * exponential / (1 + exponential) - rank)


def _differences_of_pairs(n_labels: int) -> FloatArray:
    """The matrix of pairs × labels that turns shares into the differences of all pairs of them."""
    first, second = np.triu_indices(n_labels, k=1)
    pairs = np.arange(len(first))
    differences = np.zeros((len(first), n_labels))
    differences[pairs, first], differences[pairs, second] = 1, -1
    return differences
