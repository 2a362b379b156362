"""What can be asked of a fitted posterior: estimates, intervals, samples, kinds of rows, and what was overlooked."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from hidldl.arrays import FloatArray, is_dask
from hidldl.base import BOUND_DRAWS, NewRows, Recoverer
from hidldl.parallel import Mapper, threads
from hidldl.randomness import random_generator
from hidldl.recovery.absence import Absences, Gap
from hidldl.recovery.acts import ACTS
from hidldl.recovery.calibration import Calibration
from hidldl.recovery.findings import describe, describe_kinds
from hidldl.recovery.heldout import HeldOutGame
from hidldl.recovery.hidingcurve import HidingCurve
from hidldl.recovery.kernelmean import KernelMap, Landmarks, Ridge
from hidldl.recovery.latent import Estimates, LatentModel, Parameters
from hidldl.recovery.lostvotes import Votes
from hidldl.recovery.posterior import (
    Draws,
    acted_rows,
    bounds_of_rows,
    draw_blocks,
    interval_bounds,
    mean_rows,
    relative_rows,
    sampled_tables,
)
from hidldl.recovery.rows import Rows
from hidldl.recovery.rowweights import weights_of_rows
from hidldl.recovery.search import Choice
from hidldl.recovery.unknownzeros import settle
from hidldl.recovery.zerorates import ZeroRates
from hidldl.validation import check_flag, check_number


class PosteriorRecoverer(Recoverer):
    """A recoverer with a posterior of the rows that it was fitted to, and of new ones; ``BayesHidLDL`` fits it."""

    has_intervals = True
    uses_votes = True
    is_inductive = True
    can_tell_zeros = True
    saved_attributes = (
        "covariance_",
        "_chosen",
        "_model",
        "_features",
        "_seed",
        "_true_zeros",
        "_dtype",
        "_calibration",
        "_mean_votes",
    )
    saved_parts = (
        Absences,
        Calibration,
        Estimates,
        Gap,
        HidingCurve,
        KernelMap,
        Landmarks,
        LatentModel,
        Parameters,
        Ridge,
        Votes,
        ZeroRates,
    )
    n_draws: int
    n_jobs: int | None
    estimate: str
    covariance_: FloatArray
    _choice: Choice
    _features: KernelMap
    _game: HeldOutGame
    _mean_votes: float
    _model: LatentModel
    _rows: Rows
    _seed: int
    _calibration: Calibration | None
    _true_zeros: bool
    """Whether a hidden share may be exactly 0."""
    _dtype: Any

    def _complete(self, new: NewRows) -> FloatArray:
        with threads(self.n_jobs) as mapper:
            return self._estimate(self._posterior(new, mapper), mapper)

    def _intervals(self, new: NewRows | None, level: float, n_draws: int) -> tuple[FloatArray, ...]:
        draws, levels = self._interval_draws(n_draws), self._calibrated().levels(level)
        with threads(self.n_jobs) as mapper:
            rows = self._posterior(new, mapper)
            bounds, mass = bounds_of_rows(self._model, rows, draws, self._true_zeros, self._seed, levels, mapper)
        return tuple(side.astype(self._dtype, copy=False) for side in (*bounds, *mass))

    def _interval(self, position: int, level: float) -> tuple[FloatArray, FloatArray]:
        check_number(level, "level", above=0, below=1)
        draws, levels = self._interval_draws(BOUND_DRAWS), self._calibrated().levels(level)
        blocks = draw_blocks(len(self._rows.shares), *draws.shape)
        # Rows of a block share random numbers, so draw for the whole block: the bounds are then those of ``intervals``.
        block = next(block for block in blocks if position < block.stop)
        with threads(1):
            how = (block, draws, self._true_zeros, self._seed, levels)
            (low, high), _ = interval_bounds(self._model, self._rows, *how)
        return low[position - block.start], high[position - block.start]

    def _interval_draws(self, n_draws: int) -> Draws:
        return Draws.shared(random_generator(self._seed), n_draws, len(self.covariance_), self.spread_)

    def _sample(self, new: NewRows | None, n_samples: int, seed: int) -> FloatArray:
        spread = self.spread_
        with threads(self.n_jobs) as mapper:
            rows = self._posterior(new, mapper)
            tables = sampled_tables(self._model, rows, n_samples, spread, self._true_zeros, seed, mapper)
        return tables.astype(self._dtype, copy=False)

    @property
    def spread_(self) -> float:
        check_is_fitted(self)
        return self._calibrated().spread

    def _calibrated(self) -> Calibration:
        """The calibration of intervals, made when it is first needed."""
        if self._calibration is None:
            with threads(self.n_jobs) as mapper:
                curve = self._curve
                odds = None if curve is None else curve.odds_of_hiding(np.asarray(self.distributions_, float))
                found = self._game.calibrate(self._choice, self._seed, mapper, odds)
            self._calibration = found if curve is None else replace(found, spread=max(found.spread, curve.least_spread))
            self._game.forget()
        return self._calibration

    @property
    def _curve(self) -> HidingCurve | None:
        check_is_fitted(self)
        return self._model.estimates.curve

    @property
    def hiding_slope_(self) -> float:
        return 0.0 if self._curve is None else self._curve.slope

    @property
    def hiding_slope_error_(self) -> float | None:
        return None if self._curve is None else self._curve.slope_error

    @property
    def hidden_probability_(self) -> Any:
        """How likely each share was overlooked: 0 where observed, 1 where hidden, in between where nobody knows."""
        check_is_fitted(self)
        if is_dask(self.distributions_):
            return 1.0 - self.observed_
        return self._result(self._rows.hidden_probability, self.distributions_)

    @property
    def hidden_rate_(self) -> Any:
        """How often each label was overlooked."""
        return self._of_labels(self._rates[0])

    @property
    def hidden_rate_error_(self) -> Any:
        """Standard errors of ``hidden_rate_``, the rest of the model taken as known; 0 where the rate was given."""
        return self._of_labels(self._rates[1])

    @property
    def _rates(self) -> tuple[FloatArray, FloatArray]:
        check_is_fitted(self)
        zeros = self._model.estimates.zeros
        if zeros is not None:
            return zeros.rates, zeros.errors
        rates = 1 - self._rows.seen
        return rates, np.sqrt(rates * (1 - rates) / len(self._rows))

    def _of_labels(self, values: FloatArray) -> Any:
        return values if self.label_names_ is None else pd.Series(values, self.label_names_)

    def hidden_rates(self) -> tuple[FloatArray, FloatArray] | None:
        return self._rates if self.can_tell_new_zeros else None

    def findings(self, label_names: Sequence[str]) -> list[str]:
        return describe(self._model.estimates, label_names)

    def describe_kinds(self, label_names: Sequence[str]) -> list[str]:
        return describe_kinds(self._model.estimates, label_names)

    def _kinds(self, new: NewRows) -> FloatArray:
        with threads(self.n_jobs) as mapper:
            return self._posterior(new, mapper).kinds

    def _hidden(self, new: NewRows) -> FloatArray:
        with threads(self.n_jobs) as mapper:
            return self._posterior(new, mapper).hidden_probability

    @property
    def kinds_(self) -> FloatArray:
        check_is_fitted(self)
        return self._rows.kinds

    @property
    def can_tell_new_zeros(self) -> bool:
        check_is_fitted(self)
        return self._model.estimates.zeros is not None

    def _before_saving(self) -> None:
        self._calibrated()

    def _check_loaded(self) -> None:
        # Compiled code does not check the lengths of its arrays.
        self._model.check()
        self._features.check(self.n_features_in_)
        calibration = self._calibrated()
        check_number(calibration.spread, "spread", above=0)
        check_number(calibration.tails, "tails", above=0)
        check_number(self._mean_votes, "mean votes", above=0)
        check_flag(self._true_zeros, "true zeros")
        shapes = self._model.estimates.covariances.shape[1:], (len(self._model.estimates.coef),)
        if (self.covariance_.shape, (self._features.n_columns,)) != shapes or len(self.covariance_) != self.n_labels_:
            raise ValueError("the parts of the model do not fit together.")

    def _row_weights(self, votes: FloatArray | None, n_rows: int) -> FloatArray:
        """How much each row's annotation weighs, relative to the average one of ``fit``."""
        return weights_of_rows(votes, self._mean_votes, n_rows)

    def _estimate(self, rows: Rows, mapper: Mapper = map) -> FloatArray:
        draws = self._mean_draws(rows.shares.shape[1])
        if self.estimate == "relative" and self._true_zeros:
            D = relative_rows(self._model, rows, draws, self._seed, mapper)
        elif self.estimate in ACTS:
            D = acted_rows(self._model, rows, draws, self._true_zeros, self.estimate, self._seed, mapper)
        else:
            D = mean_rows(self._model, rows, draws, mapper)
        return D.astype(self._dtype, copy=False)

    def _mean_draws(self, n_labels: int) -> Draws:
        return Draws.shared(random_generator(self._seed), self.n_draws, n_labels)

    def _predict(self, X: Any) -> FloatArray:
        zeros = np.zeros((X.shape[0], len(self.covariance_)))
        with threads(self.n_jobs) as mapper:
            return self._estimate(self._model.prior(self._features(X), zeros, zeros.astype(bool)), mapper)

    def _posterior(self, new: NewRows | None, mapper: Mapper) -> Rows:
        """The posterior of new rows, or of the rows of ``fit``."""
        if new is None:
            if is_dask(self.distributions_):
                raise ValueError("the rows of fit are on the cluster; give X, D_obs and observed of rows in memory.")
            return self._rows
        shares, mask = new.labels.shares.astype(np.float64, order="C"), new.labels.observed.copy(order="C")
        row_weights = self._row_weights(new.votes, len(shares))
        rows = self._model.prior(self._features(new.features), shares, mask, row_weights)
        settle(self._model, rows, new.labels.unknown, mapper)
        return rows
