"""The kernels of the re-hiding game, without the rows of each fold."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from hidldl.arrays import BoolArray, FloatArray
from hidldl.recovery.kernelmean import SMALLEST_EIGENVALUE, Landmarks, PrincipalRidge

NEGLIGIBLE = 0.01
"""Degrees of freedom of a regression that may be left out, in all."""


@dataclass(frozen=True)
class FoldKernels:
    """The principal components of a kernel's features, of all rows but those of a fold, for each fold that is judged.

    Components serve every ridge: one that is small against it hardly moves, and is left out.
    """

    parts: "list[_Components]"

    @classmethod
    def of(
        cls, distances: Iterable[tuple[Landmarks, FloatArray]], width: float, in_folds: Sequence[BoolArray]
    ) -> "FoldKernels":
        """From landmarks, squared distances of all rows to them, and masks of the rows in a fold, for each fold."""
        # Masks first: distances may go on without end.
        return cls(
            [_Components.without(in_fold, *own, width) for in_fold, own in zip(in_folds, distances, strict=False)]
        )

    def fitted(self, fold: int, penalty: float) -> FloatArray:
        """What is left out of the rows of the other folds, which is next to nothing, and their components."""
        part = self.parts[fold]
        return part.fitted[:, : 1 + part.n_kept(penalty)]

    def held_out(self, fold: int, penalty: float) -> FloatArray:
        """How far the rows of a fold are from all combinations of the other rows, and their components.

        Such a row is predicted with less certainty: its leverage counts what is left out.
        """
        part = self.parts[fold]
        n_kept = part.n_kept(penalty)
        components = part.held_out[:, : 1 + n_kept].copy()
        components[:, 0] = np.linalg.norm(part.held_out[:, 1 + n_kept :], axis=1)
        return components

    def regression(self, fold: int, penalty: float) -> PrincipalRidge:
        """For the rows of the other folds."""
        part = self.parts[fold]
        variances = np.append(0.0, part.variances[: part.n_kept(penalty)])
        return PrincipalRidge.of_variances(variances, len(part.fitted), penalty)

    def weights(self, fold: int, coef: FloatArray) -> FloatArray:
        """The weights of the landmarks, from the coefficients of the components of the rows of the other folds."""
        return self.parts[fold].axes[:, : len(coef) - 1] @ coef[1:]


class _Components(NamedTuple):
    """Principal components of the rows that are not in a fold, behind a column of zeros; in single precision."""

    fitted: FloatArray
    held_out: FloatArray
    variances: FloatArray
    axes: FloatArray

    @classmethod
    def without(cls, in_fold: BoolArray, landmarks: Landmarks, squared: FloatArray, width: float) -> "_Components":
        """Of rows at these squared distances from the landmarks.

        A kernel's features are closeness times a matrix, so their scatter is found without them. Which matrix does not
        matter to the components, and that of Cholesky takes less time than that of the eigenvectors.
        """
        closeness, between = np.exp(-squared / width), np.exp(-landmarks.distances_between / width)
        between[np.diag_indices_from(between)] += SMALLEST_EIGENVALUE * len(between)
        inverse = solve_triangular(np.linalg.cholesky(between), np.eye(len(between)), lower=True)
        some = closeness[~in_fold]
        center = some.mean(axis=0)
        scatter = some.T @ some - len(some) * np.outer(center, center)
        variances, vectors = np.linalg.eigh(inverse @ scatter @ inverse.T)
        axes = inverse.T @ vectors[:, ::-1]
        components = np.zeros((len(closeness), 1 + len(variances)), np.float32)
        components[:, 1:] = (closeness - center).astype(np.float32) @ axes.astype(np.float32)
        return cls(components[~in_fold], components[in_fold], np.maximum(variances[::-1], 0), axes)

    def n_kept(self, penalty: float) -> int:
        """How many components are not negligible beside the penalty."""
        without = np.append(self.variances[::-1].cumsum()[::-1], 0)
        return int((without > NEGLIGIBLE * penalty).sum())
