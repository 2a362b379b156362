"""SelfTuned: any recoverer, with its parameters chosen without ground truth."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from hidldl.arrays import BoolArray, FloatArray
from hidldl.base import NewRows, Recoverer
from hidldl.errors import DivergenceError
from hidldl.metrics import MEASURES
from hidldl.progress import Verbose, shown
from hidldl.randomness import RandomState, random_generator
from hidldl.recovery.hidldl import ALPHAS, HidLDL
from hidldl.selection import MEASURE, N_DRAWS, Candidate, Selection, choose, enough_rows, play
from hidldl.validation import ObservedRows, check_choice, check_number, check_verbose, check_workers


class SelfTuned(Recoverer):
    """A recoverer whose parameters are chosen by hiding observed labels again.

    In each draw one more label is hidden in half of the rows that have another one left; every candidate recovers the
    table, and its rows, over the labels that were observed, are compared with the observed shares. Everything compared
    is data that the user has. The recoverer keeps its own parameters where no candidate is clearly better. Rows must
    sum to 1 over their observed labels, for recoverers of the incomplete setting too.

    Parameters
    ----------
    recoverer : Recoverer, optional
        The recoverer to tune; ``HidLDL()`` by default.
    grid : dict or list of dict, optional
        Values to try by parameter, as for scikit-learn's ``ParameterGrid``; alpha from 2^-10 to 2^6 by default.
    measure : str, default="kl"
        One of ``MEASURES``.
    n_draws : int, default=4
        How many times labels are hidden again.
    n_jobs : int or None
        Processes; the result does not depend on their number.
    verbose : bool or callable, default=False
        Show progress, or call a function with the work done, the total and a text.
    random_state : int, Generator, RandomState or None
        Seed of the labels that are hidden again.

    Attributes
    ----------
    recoverer_ : Recoverer
        Fitted with the chosen parameters.
    selection_ : Selection or None
        The candidates, their losses and how sure the choice is; None if too few rows could lose a label.
    distributions_, raw_distributions_, hidden_mass_, scaling_, observed_
        As in the recoverer.

    Examples
    --------
    >>> from hidldl import HidLDL, SelfTuned, hide_labels, make_distributions
    >>> data = make_distributions(n_rows=200, random_state=0)
    >>> D_obs, observed = hide_labels(data.distributions, rate=0.4, random_state=0)
    >>> grid = {"alpha": [0.1, 1, 10], "sigma": [0.1, 1.0]}
    >>> model = SelfTuned(HidLDL(), grid, random_state=0).fit(data.features, D_obs, observed)
    >>> model.selection_.chosen
    {'alpha': 1, 'sigma': 1.0}
    """

    saved_attributes = ("recoverer_",)

    def __init__(
        self,
        recoverer: Recoverer | None = None,
        grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] | None = None,
        *,
        measure: str = MEASURE,
        n_draws: int = N_DRAWS,
        n_jobs: int | None = None,
        verbose: Verbose = False,
        random_state: RandomState = None,
    ) -> None:
        self.recoverer = recoverer
        self.grid = grid
        self.measure = measure
        self.n_draws = n_draws
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @property
    def _template(self) -> Recoverer:
        if self.recoverer is None:
            return HidLDL()
        if not isinstance(self.recoverer, Recoverer):
            raise TypeError(f"recoverer must be a Recoverer, such as HidLDL(), got {self.recoverer!r}.")
        return self.recoverer

    @property
    def _active(self) -> Recoverer:
        """The recoverer that does the work: with the chosen parameters once there are some."""
        return getattr(self, "recoverer_", None) or self._template

    @property
    def keeps_proportions(self) -> bool:
        return self._active.keeps_proportions

    @property
    def has_intervals(self) -> bool:  # type: ignore[override]
        return self._active.has_intervals

    @property
    def tunes_itself(self) -> bool:
        return True

    @property
    def method_name(self) -> str:
        return self._active.method_name

    @property
    def parameters_(self) -> dict[str, Any]:
        return self._active.parameters_

    @property
    def _min_rows(self) -> int:  # type: ignore[override]
        return self._template._min_rows

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        check_choice(self.measure, "measure", tuple(MEASURES))
        check_workers(self.n_jobs)
        check_number(self.n_draws, "n_draws", at_least=1, integer=True)
        check_verbose(self.verbose)
        for candidate in self._candidates():
            clone(self._template).set_params(**candidate)._check_parameters(n_rows, n_labels)

    def _candidates(self) -> list[Candidate]:
        """The recoverer as it is, which is the safe choice, and then the grid."""
        grid = list(ParameterGrid({"alpha": ALPHAS} if self.grid is None else self.grid))
        parameters, kind = self._template.get_params(), type(self._template).__name__
        names = {name for candidate in grid for name in candidate}
        for name in sorted(names - parameters.keys()):
            remedy = "give a grid" if self.grid is None else "take it out of the grid"
            raise ValueError(f"{kind} has no parameter {name!r}; {remedy}.")
        current = {name: parameters[name] for name in sorted(names)}
        others = [{**current, **candidate} for candidate in grid]
        return [current, *(candidate for candidate in others if candidate != current)]

    def _recover(self, prepared: Any, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
        rng = random_generator(self.random_state)
        candidates = self._candidates()
        seed = int(rng.integers(2**31))
        trial = _Trial(self._template, prepared, seed)
        with shown(self.verbose) as progress:
            losses = play(
                trial,
                candidates,
                D_obs,
                observed,
                measure=self.measure,
                n_draws=self.n_draws,
                rng=rng,
                mapper=self._in_processes,
                progress=progress,
            )
        chosen, self.selection_ = 0, None
        if enough_rows(losses):
            chosen = choose(losses, safe=0)
            self.selection_ = Selection.of(candidates, losses, chosen, self.measure, rng)
        model = _seeded(clone(self._template).set_params(**candidates[chosen]), seed)
        self.recoverer_ = model.fit(prepared, D_obs, observed=observed)
        for name in ("history_", "n_iter_", "converged_"):
            if hasattr(model, name):
                setattr(self, name, getattr(model, name))
        return np.asarray(model.raw_distributions_)

    def _in_processes(self, function: Callable[..., Any], *arguments: Iterable[Any]) -> Iterable[Any]:
        jobs = (delayed(function)(*each) for each in zip(*arguments, strict=True))
        results: Iterable[Any] = Parallel(n_jobs=self.n_jobs, return_as="generator")(jobs)
        return results

    def _complete(self, new: NewRows) -> FloatArray:
        return self.recoverer_._complete(new)

    def findings(self, label_names: Sequence[str]) -> list[str]:
        return self.recoverer_.findings(label_names)

    def describe_kinds(self, label_names: Sequence[str]) -> list[str]:
        return self.recoverer_.describe_kinds(label_names)

    def _kinds(self, new: NewRows) -> FloatArray:
        return self.recoverer_._kinds(new)

    def _intervals(self, new: NewRows | None, level: float, n_draws: int) -> tuple[FloatArray, ...]:
        return self.recoverer_._intervals(new, level, n_draws)

    def _sample(self, new: NewRows | None, n_samples: int, seed: int) -> FloatArray:
        return self.recoverer_._sample(new, n_samples, seed)

    def _interval(self, position: int, level: float) -> tuple[FloatArray, FloatArray] | None:
        return self.recoverer_._interval(position, level)

    def _before_saving(self) -> None:
        self.recoverer_._before_saving()

    def _predict(self, X: Any) -> FloatArray:
        return np.asarray(self.recoverer_.predict(X))


class _Trial:
    """Fits a candidate; what does not depend on alpha, such as the graph, is made once by each process."""

    def __init__(self, recoverer: Recoverer, X: Any, seed: int) -> None:
        self.recoverer, self.X, self.seed = recoverer, X, seed
        self._prepared: dict[str, Any] = {}

    def __call__(self, candidate: Candidate, shares: FloatArray, mask: BoolArray) -> FloatArray:
        model = _seeded(clone(self.recoverer).set_params(**candidate), self.seed)
        key = repr(sorted((name, repr(value)) for name, value in candidate.items() if name != "alpha"))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if key not in self._prepared:
                self._prepared[key] = model._prepare(self.X, shares)
            try:
                model._fit_prepared(self._prepared[key], self.X, ObservedRows(shares, mask, None))
            except DivergenceError:
                return np.full_like(shares, np.nan)
        return np.asarray(model.distributions_)


def _seeded(model: Recoverer, seed: int) -> Recoverer:
    unseeded = "random_state" in model.get_params() and model.get_params()["random_state"] is None
    return model.set_params(random_state=seed) if unseeded else model
