"""What a recoverer is, and what it can do.

It is a scikit-learn estimator. The public methods here validate and give results their container; a method's
own file holds only its computation, in the hooks whose names start with an underscore. What one method can do and
another cannot is asked of the method (``keeps_proportions``, ``has_intervals``, ``tunes_itself``), never of its name.
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from hidldl.arrays import BoolArray, FloatArray, is_dask
from hidldl.errors import DivergenceError
from hidldl.estimator import DistributionEstimator
from hidldl.metrics import MEASURES
from hidldl.notebook import ResultDisplay
from hidldl.randomness import RandomState, random_generator
from hidldl.simplex import clip_and_close, project_onto_simplex, restore_proportions
from hidldl.validation import (
    AUTO,
    ObservedRows,
    check_features,
    check_number,
    check_observed_rows,
    check_one_per_row,
    check_same_labels,
    check_same_rows,
    check_table,
)

SHARED_PARAMETERS = ("n_jobs", "verbose", "device")
"""Parameters that do not change the result beyond rounding."""
BOUND_DRAWS = 400


class Intervals(NamedTuple):
    """Bounds of every share (n × m) and of the hidden mass of every row (n)."""

    low: Any
    high: Any
    hidden_mass_low: Any
    hidden_mass_high: Any

    def __repr__(self) -> str:
        n_rows, n_labels = np.shape(self.low)
        return f"<Intervals of {n_rows:,} rows and {n_labels} labels: {', '.join(self._fields)}>"


class NewRows(NamedTuple):
    """Rows that are new to a model: their features, and the labels that they have."""

    features: Any
    labels: ObservedRows
    votes: FloatArray | None = None


class Recoverer(ResultDisplay, DistributionEstimator, is_method=False):
    """Recovers complete distributions from features and the rows that annotators handed in."""

    # An array, or a DataFrame or Series where D_obs was a DataFrame.
    distributions_: Any
    raw_distributions_: Any
    hidden_mass_: Any
    observed_: Any
    n_labels_: int
    _votes: FloatArray | None = None
    _unknown: BoolArray | None = None
    _has_mask = False

    has_intervals: bool = False
    """Whether ``intervals`` and ``sample`` say how sure the recovered rows are."""

    uses_votes: bool = False
    """Whether ``votes`` says how exact a row is: shares of three votes are coarser than those of three hundred."""

    can_tell_zeros: bool = False
    """Whether zeros may be unknown: the method tells those that were overlooked from true ones."""

    is_inductive: bool = False
    """Whether ``predict`` recovers new rows with labels as well as ``fit`` would: a sample is then enough to fit."""

    @property
    def can_tell_new_zeros(self) -> bool:
        """Whether zeros of new rows may be unknown, after ``fit``."""
        return self.can_tell_zeros

    @property
    def keeps_proportions(self) -> bool:
        """Whether recovered rows are proportional to what was observed, or merely the nearest on the simplex."""
        return True

    @property
    def tunes_itself(self) -> bool:
        """Whether ``fit`` chooses parameters without ground truth; ``selection_`` then says how."""
        return False

    @property
    def method_name(self) -> str:
        """What reports call the method."""
        return type(self).__name__

    @property
    def parameters_(self) -> dict[str, Any]:
        """The parameters that decide the result, as given or as chosen."""
        parameters = self.get_params(deep=False).items()
        return {name: getattr(self, f"{name}_", value) for name, value in parameters if name not in SHARED_PARAMETERS}

    def findings(self, label_names: Sequence[str]) -> list[str]:
        """What ``fit`` found out about the table, in sentences for its readers."""
        return []

    def describe_kinds(self, label_names: Sequence[str]) -> list[str]:
        """What is special about each kind of rows that ``fit`` found; empty if all rows are of one kind."""
        return []

    def hidden_rates(self) -> tuple[FloatArray, FloatArray] | None:
        """How often each label is overlooked, and the standard errors; None unless ``fit`` inferred that from zeros."""
        return None

    def predict_kinds(self, X: Any, D_obs: Any = None, observed: Any = None, votes: Any = None) -> FloatArray:
        """How likely new rows, as for ``predict``, are of each kind: an array of shape (n, kinds)."""
        return self._kinds(self._new_rows(X, D_obs, observed, votes))

    def predict_hidden(self, X: Any, D_obs: Any = None, observed: Any = None, votes: Any = None) -> FloatArray:
        """How likely each share of new rows, as for ``predict``, was overlooked: an array of shape (n, m).

        0 where it is observed and 1 where it is hidden; in between where nobody knows, from methods that can tell.
        """
        return self._hidden(self._new_rows(X, D_obs, observed, votes))

    # Methods of the incomplete setting take observed shares as true ones, which need not sum to 1.
    _may_be_partial = False

    def fit(self, X: Any, D_obs: Any, observed: Any = None, votes: Any = None) -> Self:
        """Recover the hidden shares.

        Parameters
        ----------
        X : array, sparse matrix, DataFrame or Dask collection of shape (n, d)
            Features.
        D_obs : array, DataFrame or Dask collection of shape (n, m)
            Shares as handed in; each row sums to 1 over its observed labels, within 1e-3, or to less for methods of
            the incomplete setting (IncomLDL, IncomLDLProx, WInLDL, LDLLDM).
        observed : boolean array or DataFrame of shape (n, m), optional
            True where a share is observed, False where it is hidden. Without it NaN in ``D_obs`` is hidden; without
            NaN, zeros are, and a warning says so. For methods that can tell (``can_tell_zeros``) it may be NaN where
            nobody knows, and zeros of a table without mask and NaN are such.
        votes : array of shape (n,), optional
            How many votes each row's shares are made of, for methods that use them (``uses_votes``).
        """
        if is_dask(X, D_obs, observed, votes):
            return self._fit_on_cluster(X, D_obs, observed, votes)
        features, rows = self._check_table(X, D_obs, observed)
        self._check_parameters(*rows.shares.shape)
        self._votes = self._check_votes(votes, len(rows.shares), rows.frame)
        self._unknown, self._has_mask = rows.unknown, observed is not None
        return self._fit_prepared(self._prepare(features, rows.shares), features, rows)

    def predict(self, X: Any, D_obs: Any = None, observed: Any = None, votes: Any = None) -> Any:
        """Distributions for new rows, from their features and from the labels that they have, if they have any.

        What is observed keeps its proportions.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n, d)
            Features.
        D_obs, observed, votes : as for ``fit``, optional
            What is known of the new rows; a row may have no observed label at all.
        """
        if D_obs is None and observed is None and votes is None:
            return self._predict_from_features(X)
        return self._result(self._complete(self._new_rows(X, D_obs, observed, votes)), D_obs, X)

    def intervals(
        self,
        level: float = 0.9,
        n_draws: int = BOUND_DRAWS,
        *,
        X: Any = None,
        D_obs: Any = None,
        observed: Any = None,
        votes: Any = None,
    ) -> Intervals:
        """Intervals for every share and for the hidden mass of every row, from methods that have them.

        Parameters
        ----------
        level : float, default=0.9
            Share of true values that the intervals are to hold.
        n_draws : int, default=400
            Posterior draws behind the bounds.
        X, D_obs, observed, votes : as for ``predict``, optional
            New rows; the rows of ``fit`` by default.

        Returns
        -------
        Intervals
            Named tuple of ``low`` and ``high``, n × m, and ``hidden_mass_low`` and ``hidden_mass_high``, one per row.
        """
        check_number(level, "level", above=0, below=1)
        check_number(n_draws, "n_draws", at_least=2, integer=True)
        new = self._rows_of(X, D_obs, observed, votes)
        low, high, mass_low, mass_high = self._intervals(new, level, n_draws)
        frames = (self.distributions_,) if new is None else (D_obs, X)
        low, high = (self._result(side, *frames) for side in (low, high))
        index = low.index if isinstance(low, pd.DataFrame) else None
        masses = (side if index is None else pd.Series(side, index=index) for side in (mass_low, mass_high))
        return Intervals(low, high, *masses)

    def sample(
        self,
        n_samples: int = 10,
        random_state: RandomState = None,
        *,
        X: Any = None,
        D_obs: Any = None,
        observed: Any = None,
        votes: Any = None,
    ) -> FloatArray:
        """Complete tables drawn from the posterior, for multiple imputation, from methods that have intervals.

        Parameters
        ----------
        n_samples : int, default=10
            How many tables.
        random_state : int, Generator, RandomState or None
            Seed of the draws.
        X, D_obs, observed, votes : as for ``predict``, optional
            New rows; the rows of ``fit`` by default.

        Returns
        -------
        array of shape (n_samples, n, m)
            Each table's rows are on the simplex and proportional to what was observed.
        """
        check_number(n_samples, "n_samples", at_least=1, integer=True)
        seed = int(random_generator(random_state).integers(2**31))
        return self._sample(self._rows_of(X, D_obs, observed, votes), n_samples, seed)

    def alpha_path(self, alphas: Iterable[float], X: Any, D_obs: Any, observed: Any = None) -> Iterator[Self]:
        """Fitted copies of this recoverer, one for each value of ``alpha``, in turn.

        What does not depend on alpha, such as the graph, is computed once: a grid costs less than separate fits.
        """
        if "alpha" not in self.get_params():
            raise TypeError(f"{type(self).__name__} has no parameter alpha; use a method that has, such as HidLDL.")
        (features, rows), prepared = self._check_table(X, D_obs, observed), None
        for alpha in alphas:
            model = clone(self).set_params(alpha=alpha)
            check_features(model, X, reset=True, min_rows=self._min_rows)
            model._check_parameters(*rows.shares.shape)
            if prepared is None:
                prepared = self._prepare(features, rows.shares)
            yield model._fit_prepared(prepared, features, rows)

    def _check_table(self, X: Any, D_obs: Any, observed: Any) -> tuple[Any, ObservedRows]:
        return check_table(
            self,
            X,
            D_obs,
            observed,
            min_rows=self._min_rows,
            may_be_partial=self._may_be_partial,
            zeros=getattr(self, "zeros", AUTO),
            can_tell=self.can_tell_zeros,
        )

    def _fit_prepared(self, prepared: Any, features: Any, rows: ObservedRows) -> Self:
        self.__dict__.pop("label_names_", None)  # an interrupted fit must not look like the one before
        try:
            raw = self._recover(prepared, rows.shares, rows.observed)
        except np.linalg.LinAlgError:
            raw = np.full_like(rows.shares, np.nan)
        if not np.isfinite(raw).all():
            raise DivergenceError(f"{self} diverged to numbers that are not finite; choose less extreme parameters.")
        recovered = self._on_the_simplex(raw, rows.shares, rows.observed)
        self._after_recovery(features, recovered)
        mass = np.minimum(np.where(rows.observed, 0, recovered).sum(axis=1), 1)  # past 1 by rounding only
        # A copy, so that later changes of the caller's mask have no effect.
        results = rows.like_input(raw, recovered, mass, rows.observed.copy())
        self.raw_distributions_, self.distributions_, self.hidden_mass_, self.observed_ = results
        # Where proportions are kept, the observed shares can be computed from the recovered rows.
        self._observed_shares = None if self.keeps_proportions else rows.shares
        self.n_labels_, self.label_names_ = raw.shape[1], rows.label_names
        return self

    def _on_the_simplex(self, raw: FloatArray, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
        """The rows that users get for the method's own matrix."""
        return restore_proportions(raw, D_obs, observed) if self.keeps_proportions else project_onto_simplex(raw)

    @property
    def scaling_(self) -> Any:
        """Per row the mass of the observed labels: the coefficient k with which k times the observed shares are the
        recovered ones, for methods that keep proportions."""
        check_is_fitted(self)
        return 1 - self.hidden_mass_

    def _handed_in(self, position: int) -> FloatArray:
        """A row of ``fit`` as it was handed in, 0 where hidden."""
        if self._observed_shares is not None:
            return self._observed_shares[position]
        row = slice(position, position + 1)
        return clip_and_close(np.where(np.asarray(self.observed_)[row], np.asarray(self.distributions_)[row], 0))[0]

    def _rows_of(self, X: Any, D_obs: Any, observed: Any, votes: Any) -> NewRows | None:
        """New rows, or None for the rows of ``fit``; refused by methods without intervals."""
        check_is_fitted(self)
        if not self.has_intervals:
            raise TypeError(f"{self.method_name} has no intervals and no samples; use BayesHidLDL, which has both.")
        if X is not None:
            return self._new_rows(X, D_obs, observed, votes)
        if D_obs is not None or observed is not None or votes is not None:
            raise ValueError("D_obs, observed and votes belong to new rows; give their features X too.")
        if not hasattr(self, "distributions_"):
            raise ValueError("a model from a file does not have the rows that it was fitted to; give X.")
        return None

    def _new_rows(self, X: Any, D_obs: Any, observed: Any, votes: Any = None) -> NewRows:
        check_is_fitted(self)
        features = check_features(self, X, reset=False)
        if D_obs is None:
            for value, name in ((observed, "observed"), (votes, "votes")):
                if value is not None:
                    raise ValueError(f"{name} says something about D_obs, but D_obs is None; give D_obs too.")
            D_obs = np.full((features.shape[0], self.n_labels_), np.nan)
        check_same_labels(self.label_names_, self.n_labels_, D_obs)
        labels = check_observed_rows(
            D_obs,
            observed,
            every_label_seen=False,
            may_be_empty=True,
            zeros=getattr(self, "zeros", AUTO),
            can_tell=self.can_tell_new_zeros,
        )
        check_same_rows(X, features.shape[0], labels)
        return NewRows(features, labels, self._check_votes(votes, features.shape[0], labels.frame))

    def _check_votes(self, votes: Any, n_rows: int, frame: pd.DataFrame | None = None) -> FloatArray | None:
        if votes is None:
            return None
        if not self.uses_votes:
            raise TypeError(f"{self.method_name} does not use votes; leave them out, or use BayesHidLDL.")
        return check_one_per_row(votes, n_rows, "votes", "number", frame)

    def _complete(self, new: NewRows) -> FloatArray:
        """Complete new rows: predictions, with the observed proportions restored."""
        D = self._predict(new.features)
        has_labels = new.labels.observed.any(axis=1)
        shares = new.labels.shares[has_labels].astype(D.dtype, copy=False)
        D[has_labels] = restore_proportions(D[has_labels], shares, new.labels.observed[has_labels])
        return D

    def _kinds(self, new: NewRows) -> FloatArray:
        """How likely rows are of each kind, for methods that know kinds."""
        return np.ones((len(new.labels.shares), 1))

    def _hidden(self, new: NewRows) -> FloatArray:
        """How likely shares were overlooked."""
        return 1.0 - new.labels.observed

    def _intervals(self, new: NewRows | None, level: float, n_draws: int) -> tuple[FloatArray, ...]:
        """Bounds of shares and of hidden masses; a method with ``has_intervals`` defines it."""
        raise NotImplementedError(f"{self.method_name} has has_intervals set, but does not define _intervals.")

    def _sample(self, new: NewRows | None, n_samples: int, seed: int) -> FloatArray:
        """Tables drawn from the posterior; a method with ``has_intervals`` defines it."""
        raise NotImplementedError(f"{self.method_name} has has_intervals set, but does not define _sample.")

    def _interval(self, position: int, level: float) -> tuple[FloatArray, FloatArray] | None:
        """Bounds of the shares of one row of ``fit``; None from methods without intervals."""
        return None

    def score(self, X: Any, D_obs: Any, observed: Any = None) -> float:
        """Mean intersection of the predicted rows with ``D_obs``, both renormalised over the observed labels.

        It needs no ground truth: everything compared is data that the user has. Higher is better.
        """
        predicted = np.asarray(self.predict(X))
        check_same_labels(self.label_names_, predicted.shape[1], D_obs)
        rows = check_observed_rows(D_obs, observed, every_label_seen=False, may_be_partial=self._may_be_partial)
        check_same_rows(X, len(predicted), rows)
        predicted_shares = clip_and_close(np.where(rows.observed, predicted, 0))
        return MEASURES["intersection"](clip_and_close(rows.shares), predicted_shares)

    def _prepare(self, X: Any, D_obs: FloatArray) -> Any:
        """What can be computed from the features without alpha; the features themselves by default."""
        return X

    @abstractmethod
    def _recover(self, prepared: Any, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
        """The method's own matrix, which need not be on the simplex, from the result of ``_prepare``."""

    def _after_recovery(self, X: Any, distributions: FloatArray) -> None:
        """Keep what ``_predict`` needs."""
