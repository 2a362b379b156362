"""BayesHidLDL: hidden labels as a missing-data problem, with uncertainty and without parameters to choose."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from hidldl.arrays import BoolArray, FloatArray
from hidldl.device import device_without, resolved_device
from hidldl.errors import warn_user
from hidldl.masks import MEANINGS_OF_ZERO, Zeros
from hidldl.parallel import Mapper, threads
from hidldl.progress import Verbose, shown
from hidldl.randomness import RandomState, random_generator, some_rows
from hidldl.recovery.acts import ACTS
from hidldl.recovery.choosing import Chosen, Knowledge, Table, choose
from hidldl.recovery.fitting import Fit
from hidldl.recovery.fittingabsence import fit_model
from hidldl.recovery.fittinghiding import fit_hiding
from hidldl.recovery.fittingvotes import fit_votes
from hidldl.recovery.kernelmean import Landmarks
from hidldl.recovery.lostvotes import Votes
from hidldl.recovery.posteriorrecoverer import PosteriorRecoverer
from hidldl.recovery.scatter import has_zeros
from hidldl.recovery.search import ALONG_WITH_OTHERS, Choice
from hidldl.recovery.zerorates import ZeroRates
from hidldl.validation import (
    AUTO,
    Auto,
    check_choice,
    check_flag,
    check_hidden_rate,
    check_learn_distance,
    check_number,
    check_verbose,
    check_workers,
)

BOUNDS = {"nu": (0.1, 1e12), "ridge": (1e-9, 1e12), "width": (1e-6, 1e6), "prior_rows": (1e-9, 1e9)}
"""Beyond these the model is degenerate, and its numbers leave the range of floating point."""
MOST_DRAWN_SHARES = 2**22
"""Draws of a row times labels: a few hundred megabytes."""


class BayesHidLDL(PosteriorRecoverer):
    """Recovery by a statistical model of the setting, with uncertainty; nothing has to be chosen.

    Hiding labels and renormalising is conditioning. A row is softmax(z), its log-shares z are normal around a smooth
    function of the features, and the observed shares give z on their labels, up to a constant::

        row i is of kind k with probability pi_k(x_i)
        z_i ~ Normal(mu(x_i) + offset_k, S_k)
        observed shares of row i, compared with softmax(z_i over the observed labels) by nu * KL

    mu and pi are kernel ridge regressions on the features, S is how labels vary together; all are fitted by
    expectation–maximisation. Hidden shares are posterior means; observed ones take the rest, in their own proportions.
    Where complete rows are shares of the same number of votes, those that are left tell what hidden labels hold.
    Parameters that are ``"auto"`` are chosen without ground truth, by hiding observed labels again in rows that the
    model has not seen.

    Parameters
    ----------
    nu : float or "auto"
        Weight of an annotation, in pseudo-counts. Large where shares are exact, small where they are coarse and
        often 0, as votes of a few people are.
    ridge : float or "auto"
        Penalty of the regression on the features; large where they explain little.
    width : float or "auto"
        Width of the Gaussian kernel, relative to the median squared distance between rows.
    standardize : bool or "auto"
        Divide features by their standard deviations, or use them as they are.
    prior_rows : float or "auto"
        Strength of the prior of S, in rows per label.
    ordered : bool or "auto"
        Whether labels have an order, as ages, ratings and times have: the prior of S is then that labels vary together
        by how far they are apart, and otherwise that all vary alike. "auto" tries both from 20 labels on.
    n_components : int or "auto"
        Kinds of rows, each with its own offset and S. "auto" tries 1, 2, 4 and 8 (up to 4 from 12 labels on).
    zeros : "auto", "unknown", "hidden" or "true"
        What a zero means in a table without a mask: a label that was overlooked ("hidden"), an annotated zero
        ("true"), or either, which the model then weighs ("unknown"). "auto" is "true" in a table with NaN, which are
        the hidden ones, and "unknown" in a table without.
    hidden_rate : float, sequence of m floats or "auto"
        How often labels are overlooked, if that is known; it is used where zeros are unknown.
    hiding : "auto", "uniform" or "degree"
        Whether small shares are overlooked more often: "uniform" takes all labels as hidden alike, "degree" fits a
        curve, and "auto" does so if the masks clearly refute a flat one. Where zeros are unknown there is a curve only
        if hardly any of them is a true zero, and neither rates nor masks are known: else nothing tells the two apart.
        "auto" is "uniform" for Dask collections.
    estimate : "mean", "relative", "chebyshev", "clark" or "canberra"
        "mean" is the posterior mean, good in every measure. A measure's name gives the rows with the smallest expected
        distance in that measure; it comes of random draws, so a row's estimate differs by chance with the rows beside
        it. "relative" is 0 where a true 0 is likely, which improves Clark and Canberra where the data have many zeros;
        without zeros it is the mean.
    n_landmarks : int or "auto"
        Rows that represent all others in the kernel. Its rank and the cost of a large table grow with them. "auto"
        is 500, or 1,000 if that is better, for 1,000 to 20,000 rows, up to 63 labels and a ridge of at most 3.
    learn_distance : bool or "auto"
        Let rows be further apart along those combinations of the features along which the labels change, which a first
        fit tells; up to 10,000 features. "auto" tries it where the features tell much, up to 63 labels.
    absent_labels : bool or "auto"
        Whether rows lack labels: these have a share of 0, or the same next to nothing in every row. Which labels a row
        has is then a model of its own, and the shares of these come after it. "auto" tries it for up to 10 labels
        where there is such a gap between shares, masks are known and shares do not decide what is hidden, and takes it
        if it is clearly better; not for Dask collections or on a device.
    n_draws : int, default=128
        Posterior draws behind each mean; draws times labels are at most four million.
    max_iter, tol : int and float, default=200 and 3e-3
        Stop EM after ``max_iter`` rounds, or when a round changes neither S nor the means by more than ``tol`` of the
        spread of the log-shares, nor S by much in any direction.
    n_jobs : int or None
        Threads; the result does not depend on their number. -1 uses every core.
    device : None, "auto", "cpu", "cuda" or "cuda:N", default=None
        Where the model is fitted once its parameters are chosen: with NumPy and compiled code (None), or in PyTorch,
        which needs ``pip install 'hidldl[gpu]'``, ``hiding="uniform"``, dense features and zeros that are known. "auto"
        is an NVIDIA card where there is one and the model can be fitted there, else None. Fastest for float32.
    verbose : bool or callable, default=False
        Show the progress of the search for parameters, or call a function with the work done, the total (None, since
        it is unknown) and a text.
    random_state : int, Generator, RandomState or None
        Seed of landmarks, folds and posterior draws.

    Attributes
    ----------
    distributions_, raw_distributions_ : array or DataFrame of shape (n, m)
        Recovered rows: on the simplex, and proportional to what was observed.
    hidden_mass_, scaling_ : array or Series of shape (n,)
        How much of each row the hidden and the observed labels hold.
    observed_ : boolean array or DataFrame of shape (n, m)
        Which shares were observed.
    hidden_probability_ : array or DataFrame of shape (n, m)
        How likely each share was overlooked: 0 where observed, 1 where hidden, in between where nobody knows.
    hidden_rate_, hidden_rate_error_ : array or Series of shape (m,)
        How often each label is overlooked, and the standard error of that, the rest of the model taken as known.
    parameters_ : dict
        The parameters, as given or as chosen.
    selection_ : Selection or None
        The candidates, their losses and how sure the choice is; None if every parameter was given.
    covariance_ : array of shape (m, m)
        How the log-shares of labels vary together beyond what the features explain, over all kinds.
    kinds_ : array of shape (n, kinds)
        How likely each row is of each kind, the most common first; kinds that hardly any row is of are left out.
    hiding_slope_, hiding_slope_error_ : float, and float or None
        b in P(label is handed in) = sigmoid(a + b log(share + 0.01)), and its standard error, the rest of the model
        taken as known. 0 and None if labels were taken as hidden alike.
    spread_ : float
        The factor on the posterior's standard deviations with which intervals reach their level on labels that were
        hidden again; calibrated when it is first needed.
    history_ : dict
        By round: ``"change"``, what ``tol`` is compared with, and ``"evidence"``, the mean over rows of the logarithm
        of the integral over z of prior times exp(-nu KL), by Laplace's approximation; it compares fits of the same nu.
    n_iter_, converged_ : int, bool
        How many rounds ran, and whether ``tol`` was reached.

    Examples
    --------
    >>> from hidldl import BayesHidLDL, hide_labels, make_distributions, score
    >>> data = make_distributions(n_rows=150, n_labels=5, random_state=0)
    >>> D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=0)
    >>> model = BayesHidLDL(random_state=0).fit(data.features, D_obs, observed=observed)
    >>> before, after = (score(data.distributions, D)["chebyshev"] for D in (D_obs, model.distributions_))
    >>> after < before / 5
    True
    >>> low, high, *_ = model.intervals(0.9)
    >>> inside = (low <= data.distributions) & (data.distributions <= high)
    >>> 0.8 < float(inside[~observed].mean()) < 1
    True

    Without a mask nobody knows which zeros are hidden; the model tells how likely each of them is:

    >>> model = BayesHidLDL(zeros="unknown", random_state=0).fit(data.features, D_obs)
    >>> model.hidden_probability_.shape, abs(float(model.hidden_rate_.mean()) - 0.5) < 0.1
    ((150, 5), True)
    """

    def __init__(
        self,
        nu: float | Auto = AUTO,
        ridge: float | Auto = AUTO,
        width: float | Auto = AUTO,
        standardize: bool | Auto = AUTO,
        prior_rows: float | Auto = AUTO,
        ordered: bool | Auto = AUTO,
        n_components: int | Auto = AUTO,
        *,
        zeros: Zeros = AUTO,
        hidden_rate: float | Sequence[float] | Auto = AUTO,
        hiding: Literal["auto", "uniform", "degree"] = AUTO,
        estimate: Literal["mean", "relative", "chebyshev", "clark", "canberra"] = "mean",
        n_landmarks: int | Auto = AUTO,
        learn_distance: bool | Auto = AUTO,
        absent_labels: bool | Auto = AUTO,
        n_draws: int = 128,
        max_iter: int = 200,
        tol: float = 3e-3,
        n_jobs: int | None = None,
        device: str | None = None,
        verbose: Verbose = False,
        random_state: RandomState = None,
    ) -> None:
        self.nu = nu
        self.ridge = ridge
        self.width = width
        self.standardize = standardize
        self.prior_rows = prior_rows
        self.ordered = ordered
        self.n_components = n_components
        self.zeros = zeros
        self.hidden_rate = hidden_rate
        self.hiding = hiding
        self.estimate = estimate
        self.n_landmarks = n_landmarks
        self.learn_distance = learn_distance
        self.absent_labels = absent_labels
        self.n_draws = n_draws
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    @property
    def tunes_itself(self) -> bool:
        return any(getattr(self, name) == AUTO for name in set(asdict(Choice())) - ALONG_WITH_OTHERS)

    @property
    def parameters_(self) -> dict[str, Any]:
        check_is_fitted(self)
        return dict(self._chosen)

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        for name in BOUNDS:
            lowest, highest = BOUNDS[name]
            check_number(getattr(self, name), name, at_least=lowest, at_most=highest, or_auto=True)
        most_kinds = max(n_rows // 2, 1)
        check_number(self.n_components, "n_components", at_least=1, at_most=most_kinds, integer=True, or_auto=True)
        check_flag(self.standardize, "standardize", or_auto=True)
        check_flag(self.ordered, "ordered", or_auto=True)
        check_flag(self.learn_distance, "learn_distance", or_auto=True)
        check_flag(self.absent_labels, "absent_labels", or_auto=True)
        if self.absent_labels is True and (self.hiding == "degree" or self.n_components not in (1, AUTO)):
            raise ValueError('absent_labels=True needs n_components=1 or "auto", and hiding="uniform" or "auto".')
        check_choice(self.zeros, "zeros", MEANINGS_OF_ZERO)
        check_hidden_rate(self.hidden_rate, n_labels)
        check_choice(self.hiding, "hiding", (AUTO, "uniform", "degree"))
        check_choice(self.estimate, "estimate", ("mean", "relative", *ACTS))
        for name, least in {"n_landmarks": 1, "max_iter": 1}.items():
            check_number(getattr(self, name), name, at_least=least, integer=True, or_auto=name == "n_landmarks")
        most_draws = max(1000, MOST_DRAWN_SHARES // max(n_labels, 1))
        check_number(self.n_draws, "n_draws", at_least=2, at_most=most_draws, integer=True)
        check_number(self.tol, "tol", at_least=0)
        check_workers(self.n_jobs)
        resolved_device(self.device)
        check_verbose(self.verbose)

    def _recover(self, prepared: Any, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
        self._dtype, device = D_obs.dtype, self._runs_on(prepared)
        # Copies in one layout: later changes of the caller's arrays have no effect, and code is compiled once.
        shares, observed = D_obs.astype(np.float64, order="C"), observed.copy(order="C")
        unknown = None if self._unknown is None else self._unknown.copy(order="C")
        self._mean_votes = 1.0 if self._votes is None else float(self._votes.mean())
        row_weights = self._row_weights(self._votes, len(shares))
        rng = random_generator(self.random_state)
        self._seed = int(rng.integers(2**31))
        with threads(self.n_jobs) as mapper:
            chosen = self._choose(Table(prepared, shares, observed, unknown, row_weights), rng, mapper, device is None)
            landmarks = Landmarks.choose(prepared, self._choice.n_landmarks, self._choice.standardize, rng)
            self._features = self._game.kernel_map(landmarks, self._choice, mapper)
            how: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "row_weights": row_weights}
            votes = Votes.of(shares) if self._votes is None else None
            if device is not None:
                return self._recover_on(device, prepared, shares, observed, votes, **how)
            table = (self._features(prepared), shares, observed)
            self._keep(self._fit_table(table, unknown, votes, chosen, mapper=mapper, **how), unknown)
            return self._estimate(self._rows, mapper)

    def _fit_table(
        self,
        table: tuple[FloatArray, FloatArray, BoolArray],
        unknown: BoolArray | None,
        votes: Votes | None,
        chosen: Chosen,
        **how: Any,
    ) -> Fit:
        """The model of the rows with the parameters that were chosen."""
        _, shares, observed = table
        parameters, gap = chosen.choice.parameters(shares.shape[1]), chosen.gap(shares, observed)
        if unknown is not None and chosen.zeros is not None:
            rates, hiding = chosen.known.rates, chosen.known.hiding_of_zeros(shares, unknown)
            if gap is not None:
                fit = fit_model(*table, parameters, gap, **how)
                return fit.with_rates(ZeroRates.of_hidden(unknown, observed, rates, chosen.zeros.finest))
            return chosen.zeros.fit(*table, unknown, rates, votes=votes, hiding=hiding, **how)
        fit = fit_model(*table, parameters, gap, **how)
        if gap is None and self.hiding != "uniform":
            fit = fit_hiding(fit, tol=self.tol, always=self.hiding == "degree")
        return fit_votes(fit, votes)

    def _fit_on_cluster(self, X: Any, D_obs: Any, observed: Any, votes: Any) -> Self:
        """As ``fit``; a sample of the rows chooses parameters, and rounds of EM add up small matrices over all."""
        from hidldl.recovery.fitting_dask import center_and_deviation, fit_on_cluster, keep_rows
        from hidldl.recovery.table_dask import ClusterTable

        if self.hiding == "degree" or self.device not in (None, AUTO) or self.absent_labels is True:
            needs = 'hiding="uniform" or "auto", device=None and absent_labels=False or "auto"'
            raise ValueError(f"a fit on Dask needs {needs}; or fit in memory.")
        self.__dict__.pop("label_names_", None)
        table = ClusterTable(self, X, D_obs, observed, votes, zeros=self.zeros)
        self._check_parameters(*table.shape)
        self._dtype, self._mean_votes = table.dtype, table.mean_votes
        rng = random_generator(self.random_state)
        self._seed = int(rng.integers(2**31))
        with threads(self.n_jobs) as mapper, shown(self.verbose) as progress:
            sample = Table(table.features, table.shares, table.observed, None, table.row_weights)
            self._choose(sample, rng, mapper, can_lack=False)
            rows = table.features[some_rows(rng, len(table), self._choice.n_landmarks)]
            landmarks = Landmarks.of(rows, *center_and_deviation(table), self._choice.standardize)
            self._features = self._game.kernel_map(landmarks, self._choice, mapper)
            parameters = self._choice.parameters(table.shape[1])
            how: dict[str, Any] = {"max_iter": self.max_iter, "tol": self.tol, "progress": progress}
            fit = fit_on_cluster(table, self._features, parameters, **how)
        self._model, self._true_zeros = fit.model.of_kinds(fit.chosen), bool(table.survey.has_zeros)
        self.covariance_ = self._model.estimates.covariance
        self._note_convergence(fit)
        self._rows = keep_rows(self, fit)
        return self

    def _runs_on(self, X: Any) -> Any:
        """The device, or None; "auto" is one only for what can run there."""
        obstacles = {
            'hiding="uniform"': self.hiding != "uniform",
            "dense features": sparse.issparse(X),
            "absent_labels=False": self.absent_labels is True,
            'zeros that are known (observed=, zeros="hidden" or zeros="true")': self._unknown is not None,
        }
        return device_without(obstacles, self.device)

    def _recover_on(
        self, device: Any, X: Any, shares: FloatArray, observed: BoolArray, votes: Votes | None, **how: Any
    ) -> FloatArray:
        """Fit in PyTorch, and the posterior means."""
        from hidldl.recovery.fitting_torch import fit_on_device, mean_rows

        where = {"single": self._dtype == np.float32, "device": device}
        parameters = self._choice.parameters(shares.shape[1])
        fit = fit_on_device(self._features, X, shares, observed, parameters, **where, **how)
        self._keep(fit_votes(fit, votes), None)
        if self.estimate != "mean" or self._model.estimates.votes is not None:
            return self._estimate(self._rows)
        draws = self._mean_draws(shares.shape[1])
        return mean_rows(self._model, self._rows, draws, **where).astype(self._dtype, copy=False)

    def _keep(self, fit: Fit, unknown: BoolArray | None) -> None:
        self._model, self._rows = fit.of_common_kinds()
        self.covariance_ = self._model.estimates.covariance
        self._true_zeros = has_zeros(self._rows.shares, self._rows.presence > 0.5)
        self._game.votes = self._model.estimates.votes
        if unknown is not None:
            players = self._game.players
            self._game.presence = self._rows.presence[players]
            self._game.row_weights = self._rows.nu[players] / self._choice.nu
        self._note_convergence(fit)
        if unknown is not None and self.zeros == AUTO and not self._has_mask:
            n_hidden = self._rows.hidden_probability[unknown].sum()
            warn_user(
                f"D_obs has zeros and neither NaN nor a mask, so they were weighed: about {n_hidden:,.0f} of "
                f"{unknown.sum():,} zeros are labels that were overlooked (hidden_probability_). If that is wrong, "
                'pass zeros="hidden" or zeros="true", or observed= to say which entries were annotated.'
            )

    def _note_convergence(self, fit: Any) -> None:
        change = fit.history["change"][-1]
        self._record_convergence(fit.history, fit.converged, f"a round still changes {change:.2g}, tol is {self.tol:g}")

    def _choose(self, table: Table, rng: np.random.Generator, mapper: Mapper, can_lack: bool = True) -> Chosen:
        """Set ``parameters_``, ``selection_`` and the game that calibrates intervals."""
        given = {name: getattr(self, name) for name in asdict(Choice()) if getattr(self, name) != AUTO}
        given |= {} if check_learn_distance(self.learn_distance, table.X) else {"learn_distance": False}
        settings = {name: type(getattr(Choice(), name))(value) for name, value in given.items()}
        can_lack = can_lack and self.hiding != "degree" and settings.get("n_components", 1) == 1
        rates = check_hidden_rate(self.hidden_rate, table.shares.shape[1])
        known = Knowledge(settings, rates, self.hiding, can_lack)
        how: dict[str, Any] = {"tunes": self.tunes_itself, "max_iter": self.max_iter, "tol": self.tol}
        with shown(self.verbose) as progress:
            chosen = choose(table, known, **how, seed=self._seed, rng=rng, mapper=mapper, progress=progress)
        self._game, self._choice, self.selection_ = chosen.game, chosen.choice, chosen.selection
        self._calibration, self._chosen = None, asdict(chosen.choice)
        return chosen
