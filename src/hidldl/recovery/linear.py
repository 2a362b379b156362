"""What recoverers with a linear model X W share: prediction, least squares for many targets, the ADMM's stop."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh

from hidldl.arrays import FloatArray
from hidldl.base import Recoverer
from hidldl.simplex import project_onto_simplex

ABSOLUTE_TOLERANCE, RELATIVE_TOLERANCE = 1e-4, 1e-3


class LinearRecoverer(Recoverer):
    """A recoverer whose raw rows are X W. They need not be distributions; users get the nearest on the simplex."""

    _may_be_partial = True
    coef_: FloatArray

    @property
    def keeps_proportions(self) -> bool:
        return False

    def _predict(self, X: Any) -> FloatArray:
        return project_onto_simplex(np.asarray(X @ self.coef_))


class LeastSquares:
    """Solves min_W |X W - Y|² + ridge |W|² for many Y with one factorisation of X'X.

    Without a ridge, and where features depend on each other, X W is the projection of Y onto the span of X. Several W
    give it; which of them is returned depends on the scales of the features.
    """

    def __init__(self, X: Any, ridge: float = 0.0) -> None:
        self._X = X
        X_double = X.astype(np.float64, copy=False)
        gram = X_double.T @ X_double
        gram = gram.toarray() if sparse.issparse(gram) else gram
        self._factor = self._root = None
        if ridge > 0:
            try:
                self._factor = cho_factor(gram + ridge * np.eye(len(gram)))
            except LinAlgError:  # features so large or so alike that the ridge is lost in rounding
                eigenvalues, vectors = eigh(gram)
                noise = 10 * np.finfo(float).eps * max(X.shape) * eigenvalues[-1]
                self._root = vectors / np.sqrt(np.maximum(eigenvalues, noise) + ridge)
            return
        # Columns of unit length, so that what is negligible does not depend on the units of the features.
        length = np.sqrt(np.diag(gram))
        length[length == 0] = 1
        eigenvalues, vectors = eigh(gram / np.outer(length, length))
        large = eigenvalues > 10 * np.finfo(float).eps * max(X.shape) * max(eigenvalues[-1], 0)
        self._root = vectors[:, large] / np.sqrt(eigenvalues[large]) / length[:, None]

    def solve(self, Y: FloatArray) -> FloatArray:
        """The weights W for the targets Y."""
        right = np.asarray(self._X.T @ Y)
        if self._root is None:
            return np.asarray(cho_solve(self._factor, right))
        return self._root @ (self._root.T @ right)


class Residuals:
    """The primal and dual residuals of an ADMM with the split X W = Z, and the usual test whether they are small."""

    def __init__(self) -> None:
        self._primal: list[float] = []
        self._dual: list[float] = []

    def small_enough(self, XW: FloatArray, Z: FloatArray, Z_before: FloatArray, V: FloatArray, rho: float) -> bool:
        """Record the residuals of an iteration; True if both are within their tolerances."""
        n_rows, n_labels = Z.shape
        self._primal.append(float(np.linalg.norm(XW - Z)))
        self._dual.append(float(rho * np.linalg.norm(Z - Z_before)))
        size = max(np.linalg.norm(XW), np.linalg.norm(Z))
        primal_limit = np.sqrt(n_rows) * ABSOLUTE_TOLERANCE + RELATIVE_TOLERANCE * size
        dual_limit = np.sqrt(n_labels) * ABSOLUTE_TOLERANCE + RELATIVE_TOLERANCE * np.linalg.norm(V)
        return bool(self._primal[-1] <= primal_limit and self._dual[-1] <= dual_limit)

    @property
    def history(self) -> dict[str, FloatArray]:
        """The residuals of every iteration."""
        return {"primal": np.array(self._primal), "dual": np.array(self._dual)}

    def in_words(self) -> str:
        """The last residuals, for a warning."""
        return f"the primal residual is {self._primal[-1]:.2g}, the dual one {self._dual[-1]:.2g}"
