"""What recoverers and learners share: a scikit-learn estimator whose predictions are distributions."""

from abc import ABCMeta, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from hidldl.arrays import FloatArray
from hidldl.errors import warn_user
from hidldl.parallel import on_one_blas_thread
from hidldl.validation import check_features

HOOKS = ("_fit", "_prepare", "_recover", "_after_recovery", "_predict", "_complete", "_kinds", "_hidden", "_intervals")
"""Where methods compute."""


class DistributionEstimator(BaseEstimator, metaclass=ABCMeta):
    """Parameters in the constructor, distributions out of ``predict``."""

    saved_attributes: ClassVar[tuple[str, ...]] = ("coef_",)
    """Attributes that a model file keeps, beside the parameters and the names of features and labels."""
    saved_parts: ClassVar[tuple[type, ...]] = ()
    """Dataclasses that those attributes are made of, beside numbers, words and arrays."""
    _min_rows = 1

    def __init_subclass__(cls, *, is_method: bool = True, **options: Any) -> None:
        super().__init_subclass__(**options)
        # Here, so that no method can forget it. What all methods inherit has nothing to compute.
        for name in HOOKS if is_method else ():
            if name in vars(cls):
                setattr(cls, name, on_one_blas_thread(vars(cls)[name]))

    def _predict_from_features(self, X: Any) -> Any:
        check_is_fitted(self)
        return self._result(self._predict(check_features(self, X, reset=False)), X)

    def _result(self, distributions: FloatArray, *frames: Any) -> Any:
        """The rows in the container of the first argument that is a DataFrame, or as an array."""
        if not np.isfinite(distributions).all():
            row = int((~np.isfinite(distributions)).any(axis=1).argmax())
            raise ValueError(f"row {row} of X is so large that the model's scores overflow; scale X as in fit.")
        frame = next((frame for frame in frames if isinstance(frame, pd.DataFrame)), None)
        return distributions if frame is None else pd.DataFrame(distributions, frame.index, self.label_names_)

    def _fit_on_cluster(self, *table: Any) -> Self:
        """Fit collections of Dask, for methods that need no more of a table than sums over its rows."""
        raise TypeError(
            f"{type(self).__name__} fits tables in the memory of one machine or card, not Dask collections; use "
            "BayesHidLDL or MeanFill, which fit them on the cluster, or call compute() on them if they fit into memory."
        )

    @abstractmethod
    def _predict(self, X: Any) -> FloatArray:
        """Rows on the simplex for checked features."""

    def _before_saving(self) -> None:
        """Compute everything that needs the training data, which a saved model does not have."""

    def _check_loaded(self) -> None:
        """Refuse the state of a model file that does not fit together."""

    def __sklearn_is_fitted__(self) -> bool:
        # Set last, so that a fit that failed half-way does not count.
        return hasattr(self, "label_names_")

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        """Refuse parameters that cannot be used with n rows and m labels."""

    def _record_convergence(
        self, history: dict[str, FloatArray], converged: bool, reason: str, n_iter: int | None = None
    ) -> None:
        """Set ``history_``, ``n_iter_`` and ``converged_``; warn if the method stopped before it was done."""
        self.history_ = history
        self.n_iter_ = len(next(iter(history.values()))) if n_iter is None else n_iter
        self.converged_ = converged
        if not converged:
            warn_user(
                f"{type(self).__name__} stopped after {self.n_iter_} iterations before it converged: {reason}. "
                "Raise max_iter to continue; the result is valid as it is.",
                ConvergenceWarning,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.input_tags.sparse = True
        return tags
