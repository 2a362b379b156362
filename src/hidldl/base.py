"""What a recoverer and a learner are.

Both are scikit-learn estimators. The public methods here validate and give results their container; a method's
own file holds only its computation, in the hooks whose names start with an underscore.
"""

from abc import ABCMeta, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from hidldl.arrays import BoolArray, FloatArray
from hidldl.errors import DivergenceError, warn_user
from hidldl.metrics import MEASURES
from hidldl.notebook import result_html
from hidldl.simplex import clip_and_close, project_onto_simplex, restore_proportions
from hidldl.validation import (
    ObservedRows,
    check_distributions,
    check_features,
    check_observed_rows,
    check_same_labels,
    check_same_rows,
    check_sample_weight,
)


class _DistributionEstimator(BaseEstimator, metaclass=ABCMeta):
    """Parameters in the constructor, distributions out of ``predict``."""

    _min_rows = 1
    _needed_to_predict: tuple[str, ...] = ("coef_",)
    """Attributes that a saved model holds beside the names of features and labels."""

    def predict(self, X: Any) -> Any:
        """Distributions for the rows of X: a DataFrame for a DataFrame, else an array."""
        check_is_fitted(self)
        features = check_features(self, X, reset=False)
        distributions = self._predict(features)
        self._refuse_overflow(distributions)
        if not isinstance(X, pd.DataFrame):
            return distributions
        return pd.DataFrame(distributions, index=X.index, columns=self.label_names_)

    @staticmethod
    def _refuse_overflow(distributions: FloatArray) -> None:
        if not np.isfinite(distributions).all():
            raise ValueError("X has features so large that the model's scores overflow; scale them as in fit.")

    @abstractmethod
    def _predict(self, X: Any) -> FloatArray:
        """Rows on the simplex for checked features."""

    def _before_saving(self) -> None:
        """Compute what is left to compute from training data, which a saved model does not have."""

    def _check_loaded(self) -> None:
        """Refuse the state of a model file that does not fit together."""

    def __sklearn_is_fitted__(self) -> bool:
        # Set last, so that a fit that failed half-way does not count.
        return hasattr(self, "label_names_")

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        """Refuse parameters that cannot be used with n rows and m labels."""

    def _record_convergence(
        self, history: dict[str, FloatArray], converged: bool, what: str, n_iter: int | None = None
    ) -> None:
        """Set ``history_``, ``n_iter_`` and ``converged_``; warn if the method stopped before it was done."""
        self.history_ = history
        self.n_iter_ = len(next(iter(history.values()))) if n_iter is None else n_iter
        self.converged_ = converged
        if not converged:
            warn_user(
                f"{type(self).__name__} stopped after {self.n_iter_} iterations before it converged: {what}. "
                "Raise max_iter to go on; the result is valid as it is.",
                ConvergenceWarning,
            )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        tags.target_tags.single_output = False
        tags.input_tags.sparse = True
        return tags


class Recoverer(_DistributionEstimator):
    """Recovers complete distributions from features and the rows that annotators handed in."""

    # An array, or a DataFrame or Series where D_obs was a DataFrame.
    distributions_: Any
    raw_distributions_: Any
    hidden_mass_: Any
    observed_: Any

    @property
    def _keeps_proportions(self) -> bool:
        """Whether recovered rows are proportional to the observed ones, or merely the nearest on the simplex."""
        return True

    _on_trial: Callable[[int], None] | None = None
    """Told how many trials the choice of parameters has made; for programs that show progress of their own."""

    # Methods of the incomplete setting take observed degrees for true shares, which need not sum to 1.
    _may_be_partial = False

    def fit(self, X: Any, D_obs: Any, observed: Any = None) -> Self:
        """Recover the hidden degrees.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n, d)
            Features.
        D_obs : array or DataFrame of shape (n, m)
            Degrees as handed in; each row sums to 1 over its observed labels, within 1e-3, or to less for methods of
            the incomplete setting (IncomLDL, IncomLDLProx, WInLDL, LDLLDM).
        observed : boolean array or DataFrame of shape (n, m), optional
            True where a degree is observed. Without it NaN in ``D_obs`` is hidden; without NaN, zeros are,
            and a warning says so.
        """
        features, rows = self._checked(X, D_obs, observed)
        self._check_parameters(*rows.degrees.shape)
        return self._fit_prepared(self._prepare(features, rows.degrees), features, rows)

    def alpha_path(self, alphas: Iterable[float], X: Any, D_obs: Any, observed: Any = None) -> Iterator[Self]:
        """Fitted copies of this recoverer, one for each value of ``alpha``, in turn.

        What does not depend on alpha, such as the graph, is made once, so that a grid costs less than its fits.
        """
        if "alpha" not in self.get_params():
            raise TypeError(f"{type(self).__name__} has no parameter alpha.")
        features, rows = self._checked(X, D_obs, observed)
        prepared = None
        for alpha in alphas:
            model = clone(self).set_params(alpha=alpha)
            check_features(model, X, reset=True, min_rows=self._min_rows)
            model._check_parameters(*rows.degrees.shape)
            if prepared is None:
                prepared = self._prepare(features, rows.degrees)
            yield model._fit_prepared(prepared, features, rows)

    def _checked(self, X: Any, D_obs: Any, observed: Any) -> tuple[Any, ObservedRows]:
        rows = check_observed_rows(D_obs, observed, may_be_partial=self._may_be_partial)
        features = check_features(self, X, reset=True, min_rows=self._min_rows)
        check_same_rows(X, features.shape[0], rows)
        return features, rows

    def _fit_prepared(self, prepared: Any, features: Any, rows: ObservedRows) -> Self:
        self.__dict__.pop("label_names_", None)  # an interrupted fit must not pass for the one before
        try:
            raw = self._recover(prepared, rows.degrees, rows.observed)
        except np.linalg.LinAlgError:
            raw = np.full_like(rows.degrees, np.nan)
        if not np.isfinite(raw).all():
            raise DivergenceError(f"{self} diverged to numbers that are not finite; choose less extreme parameters.")
        recovered = self._on_the_simplex(raw, rows.degrees, rows.observed)
        self._after_recovery(features, recovered)
        self.raw_distributions_ = rows.like_input(raw)
        self.distributions_ = rows.like_input(recovered)
        self.hidden_mass_ = rows.series_like_input(np.where(rows.observed, 0, recovered).sum(axis=1))
        # A copy: what becomes of the caller's mask must not matter.
        self.observed_ = rows.like_input(rows.observed.copy())
        # Recovered rows that keep proportions tell what was handed in; others do not.
        self._degrees = None if self._keeps_proportions else rows.degrees
        self.label_names_ = rows.label_names
        return self

    def _on_the_simplex(self, raw: FloatArray, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
        """The rows that users get for the method's own matrix."""
        return restore_proportions(raw, D_obs, observed) if self._keeps_proportions else project_onto_simplex(raw)

    @property
    def scaling_(self) -> Any:
        """Per row the mass of the observed labels: the coefficient k with which k times the observed degrees are the
        recovered ones, for methods that keep proportions."""
        check_is_fitted(self)
        return 1 - self.hidden_mass_

    def _handed_in(self, position: int) -> FloatArray:
        """A row of ``fit`` as it was handed in, 0 where hidden."""
        if self._degrees is not None:
            return self._degrees[position]
        row = slice(position, position + 1)
        return clip_and_close(np.where(np.asarray(self.observed_)[row], np.asarray(self.distributions_)[row], 0))[0]

    def _interval(self, position: int, level: float) -> tuple[FloatArray, FloatArray] | None:
        """Bounds of the degrees of a row of ``fit``, from methods that know them."""
        return None

    def score(self, X: Any, D_obs: Any, observed: Any = None) -> float:
        """Mean intersection of the predicted rows with ``D_obs``, both renormalised over the observed labels.

        It needs no ground truth: everything compared is data that the user has. Higher is better.
        """
        predicted = np.asarray(self.predict(X))
        rows = check_observed_rows(D_obs, observed, every_label_seen=False, may_be_partial=self._may_be_partial)
        check_same_rows(X, len(predicted), rows)
        check_same_labels(self.label_names_, predicted.shape[1], rows)
        seen = clip_and_close(np.where(rows.observed, predicted, 0))
        return MEASURES["intersection"](clip_and_close(rows.degrees), seen)

    def _prepare(self, X: Any, D_obs: FloatArray) -> Any:
        """What the method needs of the features and what does not depend on alpha; the features by default."""
        return X

    @abstractmethod
    def _recover(self, prepared: Any, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
        """The method's own matrix, which need not be on the simplex, from what ``_prepare`` made."""

    def _after_recovery(self, X: Any, distributions: FloatArray) -> None:
        """Keep what ``_predict`` needs."""

    # scikit-learn shows a diagram, by either of two ways; what was found follows it. Where it is set to show text,
    # there is no HTML to add to.
    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + self._result_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle = super()._repr_mimebundle_(**kwargs)
        if "text/html" in bundle:
            bundle["text/html"] += self._result_html()
        return bundle

    def _result_html(self) -> str:
        return result_html(self) if self.__sklearn_is_fitted__() else ""

    def _get_fitted_attr_html(self, doc_link: str = "") -> dict[str, Any]:
        # scikit-learn's own list reads every property, and so would train learner_ and calibrate spread_.
        return {}


class Learner(_DistributionEstimator):
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
        rows = check_distributions(D)
        features = check_features(self, X, reset=True, min_rows=self._min_rows)
        check_same_rows(X, features.shape[0], rows, name="D")
        self._check_parameters(*rows.degrees.shape)
        self._fit(features, rows.degrees, check_sample_weight(sample_weight, len(rows.degrees)))
        self.label_names_ = rows.label_names
        return self

    def score(self, X: Any, D: Any, sample_weight: Any = None) -> float:
        """Mean intersection of the predicted rows with ``D``; higher is better."""
        predicted = np.asarray(self.predict(X))
        rows = check_distributions(D)
        check_same_rows(X, len(predicted), rows, name="D")
        check_same_labels(self.label_names_, predicted.shape[1], rows, name="D")
        shared = MEASURES["intersection"].rows(rows.degrees, predicted)
        return float(np.average(shared, weights=check_sample_weight(sample_weight, len(shared))))

    @abstractmethod
    def _fit(self, X: Any, D: FloatArray, sample_weight: FloatArray) -> None:
        """Set what ``_predict`` needs."""
