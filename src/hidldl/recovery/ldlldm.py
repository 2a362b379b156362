"""LDL-LDM in its incomplete form: predictions that lie on the manifold on which labels explain each other."""

from typing import Any

import numpy as np
from scipy.special import xlogy
from sklearn.cluster import KMeans

from hidldl.arrays import BoolArray, FloatArray, compact
from hidldl.base import Recoverer
from hidldl.learners.maxent import Loss, minimise, objective_and_gradient, predicted_rows, slope_of_scores
from hidldl.randomness import RandomState, random_generator
from hidldl.validation import check_number

BARYCENTRE_RIDGE = 1e-3
FIT_ITERATIONS = 500


class LDLLDM(Recoverer):
    """Label distribution learning by exploiting the label distribution manifold, for incomplete rows.

    Takes the observed shares as true. The predicted distribution is p = softmax(x W), and each label's column
    of predictions should be a combination of the other labels' columns, in all rows and in groups of alike rows::

        minimise  sum over observed (i, j) of [d_ij log(d_ij / p_ij) - d_ij + p_ij]  +  l1 / 2 |W|²
                  + l2 |P - P Z|²  +  l3 sum over groups g of |P_g - P_g Z_g|²

    W (by L-BFGS) and the combinations Z (m × m, zero diagonal, columns that sum to 1, with a slight ridge, in closed
    form) are found in turns, the first W without any Z. Where all is observed the first term is the Kullback–Leibler
    divergence. The authors' code masks its gradient, J * (p - d), which is the gradient of no objective; and it forms
    its groups by the ground truth, ours by the rows as handed in.

    Parameters
    ----------
    l1, l2, l3 : float, default=1e-4, 1 and 1
        Weights of the ridge, of the manifold of all rows and of those of the groups.
    n_groups : int, default=10
        Groups of rows (k-means on the rows as handed in); fewer where there are fewer rows, 1 for no groups.
    max_iter : int, default=100
        Most turns.
    tol : float, default=1e-4
        Stop when no predicted share changes by more than this in a turn.
    random_state : int, Generator, RandomState or None
        Seed of the groups and of the start, which is uniform in [-0.1, 0.1).

    Attributes
    ----------
    coef_ : array of shape (d, m)
        The weights W.
    distributions_ : array or DataFrame of shape (n, m)
        Predictions for the rows of the fit. Observed proportions are not kept.
    raw_distributions_ : array or DataFrame of shape (n, m)
        The same: the model's rows are on the simplex.
    hidden_mass_, scaling_ : array or Series of shape (n,)
        How much of each row the hidden and the observed labels hold.
    observed_ : boolean array or DataFrame of shape (n, m)
        Which shares were observed.
    history_ : dict
        ``"loss"``: the objective after each turn's fit of W.
    n_iter_, converged_ : int, bool
        How many turns there were, and whether ``tol`` was reached.

    References
    ----------
    J. Wang, X. Geng. Label distribution learning by exploiting label distribution manifold. IEEE Transactions on
    Neural Networks and Learning Systems 34, 2021.

    Examples
    --------
    >>> from hidldl import LDLLDM, hide_labels, make_distributions
    >>> data = make_distributions(n_rows=200, n_labels=4, random_state=0)
    >>> D_obs, observed = hide_labels(data.distributions, rate=0.3, random_state=0)
    >>> model = LDLLDM(random_state=0).fit(data.features, D_obs, observed=observed)
    >>> model.distributions_.sum(axis=1).round(9)[:2]
    array([1., 1.])
    """

    def __init__(
        self,
        l1: float = 1e-4,
        l2: float = 1.0,
        l3: float = 1.0,
        *,
        n_groups: int = 10,
        max_iter: int = 100,
        tol: float = 1e-4,
        random_state: RandomState = None,
    ) -> None:
        self.l1 = l1
        self.l2 = l2
        self.l3 = l3
        self.n_groups = n_groups
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    _may_be_partial = True

    @property
    def keeps_proportions(self) -> bool:
        return False

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        for name in ("l1", "l2", "l3", "tol"):
            check_number(getattr(self, name), name, at_least=0)
        check_number(self.n_groups, "n_groups", at_least=1, integer=True)
        check_number(self.max_iter, "max_iter", at_least=1, integer=True)

    def _recover(self, prepared: Any, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
        X = compact(prepared)
        rng = random_generator(self.random_state)
        groups = self._groups(D_obs, rng)
        W: FloatArray = rng.uniform(-0.1, 0.1, (X.shape[1], D_obs.shape[1]))
        penalties: FloatArray = np.zeros((0, D_obs.shape[1], D_obs.shape[1]))
        P = predicted_rows(X, W)
        losses: list[float] = []
        converged = False
        while not converged and len(losses) < self.max_iter:
            loss = manifold_loss(D_obs, observed, groups, penalties)
            W = minimise(W, X, loss, self.l1, max_iter=FIT_ITERATIONS, tol=1e-6).W
            losses.append(objective_and_gradient(W, X, loss, self.l1)[0])
            P, P_before = predicted_rows(X, W), P
            penalties = self._penalties(P, groups)
            converged = len(losses) > 1 and bool(np.abs(P - P_before).max() <= self.tol)
        self.coef_ = W.astype(D_obs.dtype, copy=False)
        reason = f"the largest change of a share in the last turn is {np.abs(P - P_before).max():.2g}"
        self._record_convergence({"loss": np.array(losses)}, converged, reason)
        return P.astype(D_obs.dtype, copy=False)

    def _predict(self, X: Any) -> FloatArray:
        return predicted_rows(X, self.coef_)

    def _groups(self, D_obs: FloatArray, rng: np.random.Generator) -> FloatArray:
        n_groups = min(self.n_groups, len(np.unique(D_obs, axis=0)))
        if n_groups < 2:
            return np.zeros(len(D_obs), dtype=int)
        seed = int(rng.integers(2**31))
        return np.asarray(KMeans(n_groups, n_init=1, random_state=seed).fit_predict(D_obs))

    def _penalties(self, P: FloatArray, groups: FloatArray) -> FloatArray:
        """Per group the matrix L such that tr(P_g L P_g') is its part of the manifold terms."""
        overall = self.l2 * _deviation(P)
        n_groups = groups.max() + 1
        if n_groups == 1:
            return overall[None]
        return np.stack([overall + self.l3 * _deviation(P[groups == g]) for g in range(n_groups)])


def manifold_loss(D_obs: FloatArray, observed: BoolArray, groups: FloatArray, penalties: FloatArray) -> Loss:
    """The generalised divergence on observed entries plus each row's quadratic penalty for leaving the manifold."""
    constant = float((xlogy(D_obs, D_obs) - D_obs).sum())
    members = [groups == g for g in range(len(penalties))]

    def loss(P: FloatArray, log_P: FloatArray) -> tuple[float, FloatArray]:
        value = constant + float(np.where(observed, P - D_obs * log_P, 0).sum())
        # Slopes with respect to the scores; d_ij log p_ij needs no division by p_ij this way.
        slope = slope_of_scores(P, observed.astype(P.dtype)) - D_obs + P * D_obs.sum(axis=1, keepdims=True)
        for rows, penalty in zip(members, penalties, strict=True):
            pulled = P[rows] @ penalty
            value += float((pulled * P[rows]).sum())
            slope[rows] += slope_of_scores(P[rows], 2 * pulled)
        return value, slope

    return loss


def label_combinations(P: FloatArray) -> FloatArray:
    """Column j holds the weights, summing to 1, with which the other labels' columns of P explain label j's.

    The barycentric weights of locally linear embedding, with all other labels as neighbours.
    """
    n_labels = P.shape[1]
    gram = P.T @ P
    Z = np.zeros((n_labels, n_labels))
    for j in range(n_labels):
        others = np.arange(n_labels) != j
        # Gram matrix of the differences between the other columns and column j.
        local = gram[np.ix_(others, others)] - gram[others, j][:, None] - gram[others, j] + gram[j, j]
        trace = np.trace(local)
        local[np.diag_indices_from(local)] += BARYCENTRE_RIDGE * (trace if trace > 0 else 1.0)
        weights = np.linalg.solve(local, np.ones(n_labels - 1))
        Z[others, j] = weights / weights.sum()
    return Z


def _deviation(P: FloatArray) -> FloatArray:
    deviation = np.eye(P.shape[1]) - label_combinations(P)
    return deviation @ deviation.T
