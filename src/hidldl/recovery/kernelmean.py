"""A Gaussian kernel on the features in low rank: the basis of smooth functions of the features.

With q landmark rows and the kernel k, the features of row x are k(x, landmarks) K^(-1/2), K the kernel between the
landmarks (Nyström's approximation): inner products of these features approximate k between any two rows. Ridge
regression on them is kernel ridge regression, at a cost that is linear in the number of rows.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_solve, solve_triangular
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.utils.sparsefuncs import mean_variance_axis

from hidldl.arrays import FloatArray
from hidldl.parallel import row_blocks
from hidldl.randomness import some_rows

SMALLEST_EIGENVALUE = 1e-8
LARGEST_SCALED_FEATURE = 1e100
SMALLEST_FEATURE = 1e-290
"""Columns that stay below this are constant: their squares, and 1 over them, leave the range of numbers."""
LARGE = 2**25
"""Features with more entries than this are kept in single precision."""


@dataclass(frozen=True)
class Landmarks:
    """Rows that represent all others, in scaled features, and the typical squared distance between them."""

    center: FloatArray
    scaling: FloatArray
    rows: Any
    typical: float
    directions: FloatArray | None = None
    """Combinations of scaled features, in columns, whose distances are added to those of the features."""

    @classmethod
    def choose(cls, X: Any, n_landmarks: int, standardize: bool, rng: np.random.Generator) -> "Landmarks":
        """Random rows; features are divided by their standard deviations if they are to be standardised."""
        return cls.of(X[some_rows(rng, X.shape[0], n_landmarks)], *_center_and_deviation(X), standardize)

    @classmethod
    def of(cls, rows: Any, center: FloatArray, deviation: FloatArray, standardize: bool) -> "Landmarks":
        """These rows, with the means and standard deviations of all rows."""
        varies = deviation > SMALLEST_FEATURE
        scaling = np.where(varies, 1 / np.where(varies, deviation, 1), 0) if standardize else _common(deviation)
        return cls(center, scaling, _scaled(rows, center, scaling), 1.0)._in_typical_units()

    def along(self, directions: FloatArray) -> "Landmarks":
        """The same landmarks, where differences along these directions, if there are any, count too."""
        return self if not directions.size else replace(self, directions=directions, typical=1.0)._in_typical_units()

    def _in_typical_units(self) -> "Landmarks":
        between = self.distances_between
        others = between[np.triu_indices(len(between), 1)]
        positive = others[others > 0]
        return replace(self, typical=float(np.median(positive)) if len(positive) else 0.0)

    def scaled(self, X: Any) -> Any:
        """Rows in the scale of the landmarks."""
        return _scaled(X, self.center, self.scaling)

    def squared_distances(self, X: Any) -> FloatArray:
        """Squared distances between rows and landmarks, in units of the typical one."""
        return self.squared_distances_of(self.scaled(X))

    def squared_distances_of(self, rows: Any) -> FloatArray:
        """The same for rows that are scaled."""
        squared = np.asarray(euclidean_distances(rows, self.rows, squared=True))
        return self.with_those_along(squared, rows)

    def with_those_along(self, squared: FloatArray, rows: Any) -> FloatArray:
        """Squared distances of scaled rows with those along the directions, in units of the typical one."""
        if self.directions is not None:
            along = euclidean_distances(rows @ self.directions, self.rows @ self.directions, squared=True)
            squared = squared + along
        return squared / (self.typical or 1.0)

    @property
    def distances_between(self) -> FloatArray:
        """Squared distances between landmarks, in the same units."""
        squared = self.squared_distances_of(self.rows)
        np.fill_diagonal(squared, 0)
        return squared

    def with_width(self, width: float) -> "KernelMap":
        """The features of the Gaussian kernel exp(-distance² / (width * typical))."""
        if not self.typical:
            return KernelMap(self, width, np.empty((self.rows.shape[0], 0)))
        eigenvalues, vectors = np.linalg.eigh(np.exp(-self.distances_between / width))
        large = eigenvalues > SMALLEST_EIGENVALUE * eigenvalues[-1]
        return KernelMap(self, width, vectors[:, large] / np.sqrt(eigenvalues[large]))


@dataclass(frozen=True)
class KernelMap:
    """From rows to the features of a kernel."""

    landmarks: Landmarks
    width: float
    whitening: FloatArray

    @property
    def n_columns(self) -> int:
        return int(self.whitening.shape[1])

    def check(self, n_features: int) -> None:
        """Refuse parts that do not fit together, as a damaged file may have."""
        landmarks = self.landmarks
        directions = np.empty((n_features, 0)) if landmarks.directions is None else landmarks.directions
        shapes = (landmarks.rows.shape[1:], landmarks.center.shape, landmarks.scaling.shape, directions.shape[:-1])
        if shapes != ((n_features,),) * 4 or self.whitening.shape[0] != landmarks.rows.shape[0] or self.width <= 0:
            raise ValueError("the parts of the kernel do not fit together.")

    def __call__(self, X: Any) -> FloatArray:
        """The features, n × (at most the number of landmarks), computed in blocks of rows."""
        n_rows, n_columns = X.shape[0], self.whitening.shape[1]
        features = np.empty((n_rows, n_columns), np.float32 if n_rows * n_columns > LARGE else np.float64)
        if n_columns:
            for block in row_blocks(n_rows):
                features[block] = self.from_distances(self.landmarks.squared_distances(X[block]))
        return features

    def from_distances(self, squared: FloatArray) -> FloatArray:
        """The features of rows at these squared distances from the landmarks."""
        return np.exp(-squared / self.width) @ self.whitening


@dataclass(frozen=True)
class Ridge:
    """Ridge regression on centred features: the parts that do not depend on the targets."""

    center: FloatArray
    gram: FloatArray
    factor: FloatArray
    n_rows: int

    @classmethod
    def of(cls, features: FloatArray, penalty: float) -> "Ridge":
        """The regression for these rows."""
        center = features.mean(axis=0, dtype=np.float64)
        gram = np.zeros((features.shape[1], features.shape[1]))
        for block in row_blocks(len(features)):
            centred = features[block] - center
            gram += centred.T @ centred
        return cls.from_gram(center, gram, len(features), penalty)

    @classmethod
    def from_gram(cls, center: FloatArray, gram: FloatArray, n_rows: int, penalty: float) -> "Ridge":
        """The regression for rows of which only the mean and the scatter are known."""
        return cls(center, gram, np.linalg.cholesky(gram + penalty * np.eye(len(gram))), n_rows)

    def centred(self, features: FloatArray) -> FloatArray:
        """The features minus their means."""
        return features - self.center

    def fitted(self, features: FloatArray, coef: FloatArray) -> FloatArray:
        """What these coefficients add to the rows."""
        return self.centred(features) @ coef

    def products(self, features: FloatArray, targets: FloatArray) -> FloatArray:
        """The products of the centred features and the targets, summed over the rows."""
        return self.centred(features).T @ targets

    def squared_size(self, coef: FloatArray) -> float:
        """The sum of squares of what these coefficients add to the rows."""
        return float(np.sum(coef * (self.gram @ coef)))

    def coefficients(self, products: FloatArray) -> FloatArray:
        """The coefficients, from the products of the centred features and the targets."""
        return np.asarray(cho_solve((self.factor, True), products)) if products.size else products

    def leverage(self, features: FloatArray) -> FloatArray:
        """How much a row's prediction would move with its own target: the hat matrix's diagonal for known rows."""
        out = np.full(len(features), 1 / self.n_rows)
        for block in row_blocks(len(features) if features.size else 0):
            whitened = solve_triangular(self.factor, self.centred(features[block]).T, lower=True)
            out[block] += (whitened**2).sum(axis=0)
        return out


class PrincipalRidge(Ridge):
    """The same on principal components, which are centred and uncorrelated, so that nothing has to be solved.

    Products are computed in the precision of the components; a round of EM is mostly the time to read them.
    """

    @classmethod
    def of_variances(cls, variances: FloatArray, n_rows: int, penalty: float) -> "PrincipalRidge":
        """From the sums of squares of the components."""
        roots = np.sqrt(variances + penalty)
        return cls(np.zeros(len(variances)), np.diag(variances), np.diag(roots), n_rows)

    def centred(self, features: FloatArray) -> FloatArray:
        return features

    def fitted(self, features: FloatArray, coef: FloatArray) -> FloatArray:
        return features @ coef.astype(features.dtype)

    def products(self, features: FloatArray, targets: FloatArray) -> FloatArray:
        return (features.T @ targets.astype(features.dtype)).astype(np.float64)

    def squared_size(self, coef: FloatArray) -> float:
        return float(self.gram.diagonal() @ (coef**2).sum(axis=1))

    def coefficients(self, products: FloatArray) -> FloatArray:
        return products / self.factor.diagonal()[:, None] ** 2

    def leverage(self, features: FloatArray) -> FloatArray:
        weights = (1 / self.factor.diagonal() ** 2).astype(features.dtype)
        return 1 / self.n_rows + (np.square(features) @ weights).astype(np.float64)


def _center_and_deviation(X: Any) -> tuple[FloatArray, FloatArray]:
    """Means (0 for sparse features, whose distances need no centre) and standard deviations, without overflow."""
    if sparse.issparse(X):
        peak = np.maximum(np.asarray(abs(X).max(axis=0).todense()).ravel().astype(np.float64), SMALLEST_FEATURE)
        _, variance = mean_variance_axis(sparse.csr_matrix(X.multiply(1 / peak)), axis=0)
        return np.zeros(X.shape[1]), without_rounding(np.sqrt(np.maximum(variance, 0))) * peak
    peak = np.maximum(np.abs(X).max(axis=0).astype(np.float64), SMALLEST_FEATURE)
    scaled = X / peak
    return scaled.mean(axis=0) * peak, without_rounding(scaled.std(axis=0)) * peak


def without_rounding(deviation: FloatArray) -> FloatArray:
    """Deviations with those of constant columns, which are rounding, set to 0; columns are scaled to at most 1."""
    return np.where(deviation < 1e-12, 0, deviation)


def _common(deviation: FloatArray) -> FloatArray:
    """One scaling for all features, which are then used as they are, up to a factor that keeps squares finite."""
    return np.full(len(deviation), 1 / max(deviation.max(initial=0), SMALLEST_FEATURE))


def _scaled(X: Any, center: FloatArray, scaling: FloatArray) -> Any:
    if sparse.issparse(X):
        return X.multiply(scaling).tocsr()
    with np.errstate(over="ignore"):
        return np.clip((X - center) * scaling, -LARGEST_SCALED_FEATURE, LARGEST_SCALED_FEATURE)
