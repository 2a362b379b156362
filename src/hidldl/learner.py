"""What a learner is: it predicts distributions from features, and learns that from complete ones."""

from abc import abstractmethod
from typing import Any, Self

import numpy as np

from hidldl.arrays import FloatArray, is_dask
from hidldl.estimator import DistributionEstimator
from hidldl.metrics import MEASURES
from hidldl.validation import (
    check_distributions,
    check_features,
    check_same_labels,
    check_same_rows,
    check_sample_weight,
)


class Learner(DistributionEstimator, is_method=False):
    """Learns to predict distributions from features and complete distributions."""

    def fit(self, X: Any, D: Any, sample_weight: Any = None) -> Self:
        """Learn from complete distributions.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n, d)
            Features.
        D : array or DataFrame of shape (n, m)
            Distributions; each row sums to 1 within 1e-3.
        sample_weight : array of shape (n,), optional
            Weight of each row; all alike by default.
        """
        if is_dask(X, D):
            return self._fit_on_cluster(X, D)
        rows = check_distributions(D)
        features = check_features(self, X, reset=True, min_rows=self._min_rows)
        check_same_rows(X, features.shape[0], rows, name="D")
        self._check_parameters(*rows.shares.shape)
        self._fit(features, rows.shares, check_sample_weight(sample_weight, len(rows.shares), rows.frame))
        self.n_labels_ = rows.shares.shape[1]
        self.label_names_ = rows.label_names
        return self

    def predict(self, X: Any) -> Any:
        """Distributions for the rows of X: a DataFrame for a DataFrame, else an array."""
        return self._predict_from_features(X)

    def score(self, X: Any, D: Any, sample_weight: Any = None) -> float:
        """Mean intersection of the predicted rows with ``D``; higher is better."""
        predicted = np.asarray(self.predict(X))
        check_same_labels(self.label_names_, predicted.shape[1], D, name="D")
        rows = check_distributions(D)
        check_same_rows(X, len(predicted), rows, name="D")
        values = MEASURES["intersection"].rows(rows.shares, predicted)
        return float(np.average(values, weights=check_sample_weight(sample_weight, len(values), rows.frame)))

    @abstractmethod
    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray) -> None:
        """Set what ``_predict`` needs."""
