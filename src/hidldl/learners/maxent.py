"""The maximum entropy model, p = softmax(x W), and its fit by L-BFGS: what several learners share.

The learners differ in the loss that W minimises. A loss is a function of the predicted rows P and their logarithm
that returns its value and its slope with respect to the scores X W.
"""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from scipy import sparse
from scipy.optimize import OptimizeResult, minimize
from scipy.special import softmax, xlogy

from hidldl.arrays import FloatArray, compact
from hidldl.learner import Learner
from hidldl.randomness import RandomState, random_generator
from hidldl.validation import check_number

STANDSTILL = 2.2e-9
"""L-BFGS also stops when an iteration makes the objective fall by less than this share of it (SciPy's default)."""

Loss: TypeAlias = Callable[[FloatArray, FloatArray], tuple[float, FloatArray]]


class MaximumEntropyLearner(Learner):
    """A learner with the model p = softmax(x W), without an intercept. Subclasses choose the loss and the start."""

    max_iter: int
    tol: float
    random_state: RandomState

    @abstractmethod
    def _loss(self, D: FloatArray, sample_weight: FloatArray) -> Loss:
        """The loss for these rows."""

    def _ridge(self) -> float:
        """Weight of |W|² / 2."""
        return 0.0

    def _start(self, rng: np.random.Generator, n_features: int, n_labels: int) -> FloatArray:
        """Small weights around 0 (Glorot's uniform start)."""
        limit = np.sqrt(6 / (n_features + n_labels))
        return rng.uniform(-limit, limit, (n_features, n_labels))

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        check_number(self.max_iter, "max_iter", at_least=1, integer=True)
        check_number(self.tol, "tol", at_least=0)

    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray) -> None:
        start = self._start(random_generator(self.random_state), X.shape[1], D.shape[1])
        loss = self._loss(D, sample_weight)
        minimum = minimise(start, compact(X), loss, self._ridge(), max_iter=self.max_iter, tol=self.tol)
        self.coef_ = minimum.W.astype(D.dtype, copy=False)
        reason = f"the gradient's largest entry is {minimum.largest_slope:.2g}"
        self._record_convergence({"loss": minimum.losses}, minimum.converged, reason)

    def _predict(self, X: Any) -> FloatArray:
        return predicted_rows(X, self.coef_)


def predicted_rows(X: Any, W: FloatArray) -> FloatArray:
    """softmax(X W), row by row."""
    return np.asarray(softmax(X @ W, axis=1))


@dataclass(frozen=True)
class Minimum:
    """The result of L-BFGS: weights, and the objective after each iteration."""

    W: FloatArray
    losses: FloatArray
    largest_slope: float
    converged: bool


def minimise(start: FloatArray, X: Any, loss: Loss, ridge: float, *, max_iter: int, tol: float) -> Minimum:
    """Minimise the loss of softmax(X W) plus ridge |W|² / 2 by L-BFGS, from ``start``."""
    losses: list[float] = []

    def objective(flat: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = objective_and_gradient(flat.reshape(start.shape), X, loss, ridge)
        return value, gradient.ravel()

    def record(intermediate_result: OptimizeResult) -> None:
        losses.append(float(intermediate_result.fun))

    options = {"maxiter": max_iter, "gtol": tol, "ftol": STANDSTILL}
    result = minimize(objective, start.ravel(), jac=True, method="L-BFGS-B", callback=record, options=options)
    W = result.x.reshape(start.shape)
    # Where the start meets the criterion there is no iteration; its objective is still worth knowing.
    return Minimum(W, np.array(losses or [float(result.fun)]), float(np.abs(result.jac).max()), bool(result.success))


def objective_and_gradient(W: FloatArray, X: Any, loss: Loss, ridge: float) -> tuple[float, FloatArray]:
    """The loss of softmax(X W) plus ridge |W|² / 2, and its gradient."""
    value, slope = loss(*softmax_with_logarithm(X, W))
    gradient = np.asarray(X.T @ slope, dtype=np.float64) + ridge * W
    return value + ridge * float((W**2).sum()) / 2, gradient


def softmax_with_logarithm(X: Any, W: FloatArray) -> tuple[FloatArray, FloatArray]:
    """softmax(X W) and its logarithm, label by label in memory: rows are short, and sums over them then run along
    columns, several times faster."""
    scores = np.asfortranarray(X @ W) if sparse.issparse(X) else (W.T @ X.T).T
    scores = scores - scores.max(axis=1, keepdims=True)
    exponentials = np.exp(scores)
    sums = exponentials.sum(axis=1, keepdims=True)
    return exponentials / sums, scores - np.log(sums)


def divergence(D: FloatArray, sample_weight: FloatArray) -> Loss:
    """The weighted sum over rows of KL(d || p)."""
    weight = sample_weight[:, None]
    D = np.asfortranarray(D)
    entropy = float((weight * xlogy(D, D)).sum())

    def loss(P: FloatArray, log_P: FloatArray) -> tuple[float, FloatArray]:
        return entropy - float((weight * D * log_P).sum()), weight * (P - D)

    return loss


def slope_of_scores(P: FloatArray, slope_of_rows: FloatArray) -> FloatArray:
    """From the slope with respect to the rows P to that with respect to the scores behind the softmax."""
    return P * (slope_of_rows - (P * slope_of_rows).sum(axis=1, keepdims=True))
