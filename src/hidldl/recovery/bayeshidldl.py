"""BayesHidLDL: hidden labels as a missing-data problem, with uncertainty and without parameters to choose."""

from dataclasses import asdict
from itertools import count
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted
from tqdm import tqdm

from hidldl.arrays import BoolArray, FloatArray
from hidldl.base import Recoverer
from hidldl.parallel import Mapper, for_each, threads
from hidldl.randomness import RandomState, random_generator
from hidldl.recovery.heldout import AXES, Choice, HeldOutGame, search
from hidldl.recovery.kernelmean import Landmarks
from hidldl.recovery.latent import Rows, fit_latent_model
from hidldl.recovery.posterior import Draws, draw_blocks, draw_degrees, interval_bounds, mean_rows, relative_rows
from hidldl.validation import (
    AUTO,
    Auto,
    check_choice,
    check_features,
    check_flag,
    check_number,
    check_observed_rows,
    check_same_labels,
    check_same_rows,
    check_workers,
)

ESTIMATES = ("mean", "relative")
BOUND_DRAWS = 400
BOUNDS = {"nu": (0.1, 1e12), "ridge": (1e-9, 1e12), "width": (1e-6, 1e6), "prior_rows": (1e-9, 1e9)}
"""Beyond these the model is degenerate, and its numbers leave the range of floating point."""


class Intervals(NamedTuple):
    """Bounds of every degree (n × m) and of the hidden mass of every row (n)."""

    low: Any
    high: Any
    hidden_mass_low: Any
    hidden_mass_high: Any


class BayesHidLDL(Recoverer):
    """Recovery by a statistical model of the setting, with uncertainty; nothing has to be chosen.

    Hiding labels and renormalising is conditioning. A row is softmax(z), its log-degrees z are normal around a smooth
    function of the features, and the observed labels tell z up to a constant::

        z_i ~ Normal(mu(x_i), S)
        observed shares of row i, compared with softmax(z_i over the observed labels) by nu * KL

    mu is kernel ridge regression on the features, S says how labels vary together; both are fitted by
    expectation–maximisation. Hidden degrees are posterior means, observed ones share the rest in their own proportions.
    Parameters that are ``"auto"`` are chosen without ground truth, by hiding observed labels again in rows that the
    model has not seen.

    Parameters
    ----------
    nu : float or "auto"
        Weight of an annotation, in pseudo-counts. Large where degrees are exact, small where they are coarse and
        often 0, as votes of a few people are.
    ridge : float or "auto"
        Penalty of the regression on the features; large where they tell little.
    width : float or "auto"
        Width of the Gaussian kernel, relative to the median squared distance between rows.
    standardize : bool or "auto"
        Divide features by their standard deviations, or use them as they are.
    prior_rows : float or "auto"
        S is drawn towards an isotropic one as if that many rows per label had been seen to be so.
    estimate : "mean" or "relative"
        "mean" is the posterior mean, good in every measure. "relative" is 0 where a true 0 is likely, which pays in
        Clark and Canberra where the data have many zeros; without any it is the mean.
    n_landmarks : int, default=500
        Rows that stand for all in the kernel: its rank, and the cost of a large table.
    n_draws : int, default=128
        Posterior draws behind each mean.
    max_iter, tol : int and float, default=100 and 3e-3
        Stop EM after ``max_iter`` rounds, or when a round changes neither S nor the means by more than ``tol`` of the
        spread of the log-degrees.
    n_jobs : int or None
        Threads; the result does not depend on their number. -1 uses every core.
    verbose : bool, default=False
        Show the progress of the search for parameters.
    random_state : int, Generator, RandomState or None
        Seed of landmarks, folds and posterior draws.

    Attributes
    ----------
    distributions_, raw_distributions_ : array or DataFrame of shape (n, m)
        Recovered rows: on the simplex, and proportional to what was observed.
    hidden_mass_, scaling_ : array or Series of shape (n,)
        How much of each row the hidden and the observed labels hold.
    observed_ : boolean array or DataFrame of shape (n, m)
        Which degrees were observed.
    parameters_ : dict
        The parameters, chosen or given.
    selection_ : Selection or None
        What was tried, what it lost and how sure the choice is; None if every parameter was given.
    covariance_ : array of shape (m, m)
        S: how the log-degrees of labels vary together beyond what the features tell.
    spread_ : float
        The factor on the posterior's standard deviations that made intervals hold what they promise on labels hidden
        again; calibrated when it is first needed.
    history_ : dict
        By round: ``"change"``, what ``tol`` is compared with, and ``"evidence"``, the mean over rows of the logarithm
        of the integral over z of prior times exp(-nu KL), by Laplace's approximation; it compares fits of the same nu.
    n_iter_, converged_ : int, bool
        How many rounds ran, and whether ``tol`` was reached.

    Examples
    --------
    >>> from hidldl import BayesHidLDL, hide_labels, make_distributions, score
    >>> data = make_distributions(n_rows=300, n_labels=5, random_state=0)
    >>> D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=0)
    >>> model = BayesHidLDL(random_state=0).fit(data.features, D_obs, observed=observed)
    >>> before, after = (score(data.distributions, D)["chebyshev"] for D in (D_obs, model.distributions_))
    >>> after < before / 5
    True
    >>> low, high, *_ = model.intervals(0.9)
    >>> inside = (low <= data.distributions) & (data.distributions <= high)
    >>> 0.8 < float(inside[~observed].mean()) < 1
    True
    """

    _needed_to_predict = ("parameters_", "covariance_", "_model", "_features", "_seed", "_zeros", "_dtype", "_spread")
    _choice: Choice
    _game: HeldOutGame
    _spread: float | None

    def __init__(
        self,
        nu: float | Auto = AUTO,
        ridge: float | Auto = AUTO,
        width: float | Auto = AUTO,
        standardize: bool | Auto = AUTO,
        prior_rows: float | Auto = AUTO,
        *,
        estimate: Literal["mean", "relative"] = "mean",
        n_landmarks: int = 500,
        n_draws: int = 128,
        max_iter: int = 100,
        tol: float = 3e-3,
        n_jobs: int | None = None,
        verbose: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.nu = nu
        self.ridge = ridge
        self.width = width
        self.standardize = standardize
        self.prior_rows = prior_rows
        self.estimate = estimate
        self.n_landmarks = n_landmarks
        self.n_draws = n_draws
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    def predict(self, X: Any, D_obs: Any = None, observed: Any = None) -> Any:
        """Distributions for new rows, from their features and from the labels that they have, if they have any.

        They are the point estimate that ``estimate`` names.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n, d)
            Features.
        D_obs, observed : as for ``fit``, optional
            What is known of the new rows; a row may have no observed label at all.
        """
        if D_obs is None and observed is None:
            return super().predict(X)
        rows, frame = self._new_rows(X, D_obs, observed)
        with threads(self.n_jobs) as mapper:
            distributions = self._estimate(rows, mapper)
        self._refuse_overflow(distributions)
        return _like(frame, distributions)

    def intervals(
        self, level: float = 0.9, n_draws: int = BOUND_DRAWS, *, X: Any = None, D_obs: Any = None, observed: Any = None
    ) -> Intervals:
        """Central posterior intervals for every degree and for the hidden mass of every row.

        Parameters
        ----------
        level : float, default=0.9
            Share of true degrees that the intervals are to hold.
        n_draws : int, default=400
            Posterior draws behind the bounds.
        X, D_obs, observed : as for ``predict``, optional
            New rows; the rows of ``fit`` by default.

        Returns
        -------
        Intervals
            Named tuple of ``low`` and ``high``, n × m, and ``hidden_mass_low`` and ``hidden_mass_high``, one per row.
        """
        check_is_fitted(self)
        check_number(level, "level", above=0, below=1)
        check_number(n_draws, "n_draws", at_least=2, integer=True)
        rows, frame = self._rows_of(X, D_obs, observed)
        draws = self._interval_draws(n_draws)
        bounds = np.empty((2, *rows.shares.shape), self._dtype)
        mass = np.empty((2, len(rows.shares)), self._dtype)

        def bound(block: slice) -> None:
            bounds[:, block], mass[:, block] = self._bounds(rows, block, draws, level)

        with threads(self.n_jobs) as mapper:
            for_each(mapper, bound, draw_blocks(len(rows.shares), *draws.shape))
        low, high = (_like(frame, side) for side in bounds)
        return Intervals(low, high, *(side if frame is None else pd.Series(side, index=frame.index) for side in mass))

    def _interval(self, position: int, level: float) -> tuple[FloatArray, FloatArray]:
        check_number(level, "level", above=0, below=1)
        draws = self._interval_draws(BOUND_DRAWS)
        blocks = draw_blocks(len(self._rows.shares), *draws.shape)
        # The block that holds the row shares its random numbers: so its bounds are those of ``intervals``.
        block = next(block for block in blocks if position < block.stop)
        with threads(1):
            (low, high), _ = self._bounds(self._rows, block, draws, level)
        return low[position - block.start], high[position - block.start]

    def _interval_draws(self, n_draws: int) -> Draws:
        return Draws.shared(random_generator(self._seed), n_draws, len(self.covariance_), self.spread_)

    def _bounds(self, rows: Rows, block: slice, draws: Draws, level: float) -> tuple[FloatArray, FloatArray]:
        rng = np.random.default_rng([self._seed, block.start])
        return interval_bounds(self._model, rows, block, draws, self._zeros, rng, level)

    def sample(
        self,
        n_samples: int = 10,
        random_state: RandomState = None,
        *,
        X: Any = None,
        D_obs: Any = None,
        observed: Any = None,
    ) -> FloatArray:
        """Complete tables drawn from the posterior, for multiple imputation.

        Parameters
        ----------
        n_samples : int, default=10
            How many tables.
        random_state : int, Generator, RandomState or None
            Seed of the draws.
        X, D_obs, observed : as for ``predict``, optional
            New rows; the rows of ``fit`` by default.

        Returns
        -------
        array of shape (n_samples, n, m)
            Each table's rows are on the simplex and proportional to what was observed.
        """
        check_is_fitted(self)
        check_number(n_samples, "n_samples", at_least=1, integer=True)
        rows, _ = self._rows_of(X, D_obs, observed)
        n_rows, n_labels = rows.shares.shape
        seed = int(random_generator(random_state).integers(2**31))
        out = np.empty((n_samples, n_rows, n_labels), self._dtype)
        spread = self.spread_

        def draw(block: slice) -> None:
            rng = np.random.default_rng([seed, block.start])
            draws = Draws.independent(rng, len(rows.shares[block]), n_samples, n_labels, spread)
            D = draw_degrees(self._model, rows, block, draws, self._zeros, rng)
            out[:, block] = D.transpose(2, 0, 1)

        with threads(self.n_jobs) as mapper:
            for_each(mapper, draw, draw_blocks(n_rows, n_labels, n_samples))
        return out

    @property
    def spread_(self) -> float:
        check_is_fitted(self)
        if self._spread is None:
            with threads(self.n_jobs) as mapper:
                self._spread = self._game.calibrate(self._choice, self._seed, mapper)
            self._game.forget()
        return self._spread

    def _before_saving(self) -> None:
        _ = self.spread_

    def _check_loaded(self) -> None:
        # Compiled code does not look whether its arrays are as long as they should be.
        self._model.check()
        self._features.check(self.n_features_in_)
        check_number(self._spread, "spread", above=0)
        if self.covariance_.shape != self._model.estimates.S.shape or self._features.n_columns != len(
            self._model.estimates.coef
        ):
            raise ValueError("the parts of the model do not fit together.")

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        for name in BOUNDS:
            lowest, highest = BOUNDS[name]
            check_number(getattr(self, name), name, at_least=lowest, at_most=highest, or_auto=True)
        check_flag(self.standardize, "standardize", or_auto=True)
        check_choice(self.estimate, "estimate", ESTIMATES)
        check_number(self.n_landmarks, "n_landmarks", at_least=1, integer=True)
        check_number(self.n_draws, "n_draws", at_least=2, integer=True)
        check_number(self.max_iter, "max_iter", at_least=1, integer=True)
        check_number(self.tol, "tol", at_least=0)
        check_workers(self.n_jobs)
        check_flag(self.verbose, "verbose")

    def _recover(self, prepared: Any, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
        self._dtype = D_obs.dtype
        # Copies in one layout: what becomes of the caller's arrays must not matter, and code is compiled once.
        shares, observed = D_obs.astype(np.float64, order="C"), observed.copy(order="C")
        self._zeros = bool((shares[observed] == 0).any())
        rng = random_generator(self.random_state)
        self._seed = int(rng.integers(2**31))
        with threads(self.n_jobs) as mapper:
            self._choose(prepared, shares, observed, rng, mapper)
            landmarks = Landmarks.choose(prepared, self.n_landmarks, self._choice.standardize, rng)
            self._features = landmarks.with_width(self._choice.width)
            fit = fit_latent_model(
                self._features(prepared),
                shares,
                observed,
                self._choice.parameters(shares.shape[1]),
                max_iter=self.max_iter,
                tol=self.tol,
                mapper=mapper,
            )
            self._model, self._rows = fit.model, fit.rows
            self.covariance_ = fit.model.estimates.S
            change = fit.history["change"][-1]
            self._record_convergence(
                fit.history, fit.converged, f"a round still changes {change:.2g}, tol is {self.tol:g}"
            )
            return self._estimate(fit.rows, mapper)

    def _choose(
        self, X: Any, shares: FloatArray, observed: BoolArray, rng: np.random.Generator, mapper: Mapper
    ) -> None:
        """Set ``parameters_``, ``selection_`` and the game that calibrates intervals."""
        self._spread = None
        self._game = HeldOutGame(
            X, shares, observed, n_landmarks=self.n_landmarks, max_iter=self.max_iter, tol=self.tol, rng=rng
        )
        given = {name: getattr(self, name) for name in asdict(Choice()) if getattr(self, name) != AUTO}
        given = {name: value if name == "standardize" else float(value) for name, value in given.items()}
        axes = {name: values for name, values in AXES.items() if name not in given}
        kernels = (given["standardize"],) if "standardize" in given else (True, False)
        start = Choice(**given)
        self._choice, self.selection_ = start, None
        if (axes or len(kernels) > 1) and self._game.says_something:
            with tqdm(desc="candidates tried", disable=not self.verbose) as progress:
                trials = count(1)

                def tell() -> None:
                    progress.update()
                    if self._on_trial is not None:
                        self._on_trial(next(trials))

                self._game.on_played = tell
                self._choice = search(lambda choice: self._game.losses(choice, mapper), axes, start, kernels)
            self.selection_ = self._game.selection(self._choice, rng)
        self.parameters_ = asdict(self._choice)
        self._game.forget()

    def _estimate(self, rows: Rows, mapper: Mapper = map) -> FloatArray:
        draws = Draws.shared(random_generator(self._seed), self.n_draws, rows.shares.shape[1])
        if self.estimate == "relative" and self._zeros:
            D = relative_rows(self._model, rows, draws, self._seed, mapper)
        else:
            D = mean_rows(self._model, rows, draws, mapper)
        return D.astype(self._dtype, copy=False)

    def _predict(self, X: Any) -> FloatArray:
        nothing = np.zeros((X.shape[0], len(self.covariance_)))
        with threads(self.n_jobs) as mapper:
            mean, scale = self._model.prior(self._features(X))
            return self._estimate(Rows(nothing, nothing.astype(bool), mean, scale, nothing), mapper)

    def _rows_of(self, X: Any, D_obs: Any, observed: Any) -> tuple[Rows, pd.DataFrame | None]:
        """The posterior of the rows of ``fit``, or of new ones, and the DataFrame that they came in, if any."""
        if X is not None:
            return self._new_rows(X, D_obs, observed)
        if D_obs is not None or observed is not None:
            raise ValueError("D_obs and observed belong to new rows; give their features X too.")
        frame = self.distributions_ if isinstance(self.distributions_, pd.DataFrame) else None
        return self._rows, frame

    def _new_rows(self, X: Any, D_obs: Any, observed: Any) -> tuple[Rows, pd.DataFrame | None]:
        """The posterior of new rows, and a DataFrame with their index and labels where they came in one."""
        check_is_fitted(self)
        features = check_features(self, X, reset=False)
        n_labels = len(self.covariance_)
        if D_obs is None:
            if observed is not None:
                raise ValueError("observed says which degrees are given, but D_obs is None; give D_obs too.")
            D_obs = np.full((features.shape[0], n_labels), np.nan)
        given = check_observed_rows(D_obs, observed, every_label_seen=False, may_be_empty=True)
        check_same_rows(X, features.shape[0], given)
        check_same_labels(self.label_names_, n_labels, given)
        shares, mask = given.degrees.astype(np.float64, order="C"), given.observed.copy(order="C")
        with threads(self.n_jobs) as mapper:
            rows = self._model.condition(self._features(features), shares, mask, mapper)
        if given.frame is None and isinstance(X, pd.DataFrame):
            return rows, pd.DataFrame(shares, index=X.index, columns=self.label_names_)
        return rows, given.frame


def _like(frame: pd.DataFrame | None, values: FloatArray) -> Any:
    return values if frame is None else pd.DataFrame(values, index=frame.index, columns=frame.columns)
