"""The re-hiding game that tunes ``BayesHidLDL``: no ground truth, and no model judged on rows that it was fitted to.

Rows are divided into folds. A model fitted to the other folds recovers each row of a fold from its features and all but
one of its observed labels; the recovered row, over the labels that had been observed, is compared with what was
observed. So models are fitted to rows that are as informative as the user's, and judged on rows that are new to them.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from hidldl.arrays import BoolArray, FloatArray, IntArray
from hidldl.parallel import Mapper
from hidldl.recovery.fitting import Fit, fit_hiding, fit_latent_model
from hidldl.recovery.kernelmean import KernelMap, Landmarks, Ridge
from hidldl.recovery.latent import LatentModel, Parameters, Rows
from hidldl.recovery.posterior import Draws, draw_lost_share, mean_rows, quantiles
from hidldl.recovery.scatter import has_zeros
from hidldl.selection import FEWEST_ROWS, THIN_EVIDENCE, Selection, clearly_better, hide_again, judge, renormalised

MEASURES_OF_GAME = ("kl", "chebyshev")
N_FOLDS = 4
MASKS = (3, 12)
"""Fewest and most masks; in between as many as give ``PLAYS`` losses in all."""
PLAYS = 3000
MASK_WORK = 5 * 10**9
"""Most rows * labels³ over all masks: with hundreds of labels a row is expensive, and more informative."""
N_DRAWS = 64
ROWS = (1000, 4000)
"""Least and most rows that play; in between as many as keep rows * labels² below ``WORK``."""
WORK = 1_000_000
PLAY_WEIGHTS = (0.5, 2.0)
"""Least and most that a row counts by its number of labels."""
LEVEL = 0.9
SPREADS = (0.05, 20.0)
SPREAD_PRECISION = 1.05
LEAST_SPREAD_BY_SHARES = 1.05
"""Where shares decide what is hidden, labels that can be hidden again are those that were easy to see."""
N_CALIBRATION_DRAWS = 400
CALIBRATION_PLAYS = 1500
"""Labels to hide again: enough to estimate a coverage to within a percent."""


@dataclass(frozen=True)
class Choice:
    """A point of the grid on which the search walks."""

    nu: float = 1024.0
    ridge: float = 10.0
    width: float = 1.0
    standardize: bool = True
    prior_rows: float = 1.0
    ordered: bool = False
    n_components: int = 1
    n_landmarks: int = 500

    def parameters(self, n_labels: int) -> Parameters:
        """The choice in the units of the model; ``prior_rows`` counts rows per label here."""
        return Parameters(self.nu, self.ridge, self.prior_rows * n_labels, self.ordered, self.n_components)


AXES: dict[str, tuple[float, ...]] = {
    "nu": (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0),
    "ridge": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 10000.0),
    "width": (0.1, 0.3, 1.0, 3.0, 10.0),
    "prior_rows": (0.25, 1.0, 4.0),
}
MANY_LABELS = 20
"""With so many labels, their covariance may have to follow the data closely, and neighbours may vary together."""
WEAK_PRIORS = (0.004, 0.016, 0.06, *AXES["prior_rows"])
STRONG_PRIORS = (1.0, 4.0, 16.0, 64.0)
MORE_LANDMARKS, WORTH_THE_TIME = 1000, 2.0
"""They take twice the time, so they must be better by so many standard errors."""
MOST_ROWS_FOR_MORE = 20_000
"""Beyond, the features of the kernel take too much memory and time."""

Axes: TypeAlias = dict[str, tuple[float, ...]]
KINDS = (2, 4, 8)
"""Numbers of kinds of rows to try beside one; each costs as much as so many candidates."""
ROWS_PER_KIND = 40
"""Fewest rows that play for each kind."""
SEVERAL_LABELS = 12
"""From so many labels on, the largest number of kinds takes too long to try."""

Losses: TypeAlias = Callable[[Choice], FloatArray]
"""Each playing row's loss under a choice."""
UPHILL = 1.0
"""A step that is worse by so many standard errors ends a direction of the walk."""
FEW_ROWS, PROOF = 300, 1.2
"""Below so many rows, a model must be better than a simple one by so many standard errors."""
LEARNS_NOTHING = {"nu": 4.0, "ridge": 10000.0}
"""Parameters with which recovered rows hardly differ, whatever their labels and features are."""


class HeldOutGame:
    """Folds, masks and kernels, drawn once, so that all candidates play the same game."""

    def __init__(
        self,
        X: Any,
        shares: FloatArray,
        observed: BoolArray,
        *,
        row_weights: FloatArray,
        max_iter: int,
        tol: float,
        rng: np.random.Generator,
    ) -> None:
        n_rows, n_labels = shares.shape
        most = int(np.clip(WORK // n_labels**2, *ROWS))
        self.players = players = np.sort(rng.permutation(n_rows)[:most])
        self.row_weights = row_weights[players]
        self.X, self.shares, self.observed = X[players], shares[players], observed[players]
        self.presence: FloatArray = self.observed.astype(np.float64)
        self.folds = rng.permutation(len(players)) % N_FOLDS
        can_play = (hide_again(self.shares, self.observed, rng) != self.observed).any(axis=1).sum()
        affordable = MASK_WORK // (len(players) * n_labels**3)
        n_masks = int(np.clip(min(PLAYS // max(can_play, 1), affordable), *MASKS))
        self.masks = [hide_again(self.shares, self.observed, rng) for _ in range(n_masks)]
        self.judged = [(mask != self.observed).any(axis=1) for mask in self.masks]
        self.landmark_seed = int(rng.integers(2**31))
        self.draws = Draws.shared(rng, N_DRAWS, n_labels)
        self.zeros = has_zeros(self.shares, self.observed)
        self.max_iter, self.tol = max_iter, tol
        self._distance_weight: float | None = None
        self.forget()

    def forget(self) -> None:
        """Drop all caches and the progress function."""
        self.on_played: Callable[[int], None] = _no_progress
        self._kernels: dict[tuple[bool, int, float], _Kernel] = {}
        self._losses: dict[Choice, FloatArray] = {}
        self._landmarks: dict[tuple[bool, int], tuple[Landmarks, FloatArray]] = {}
        self._simple: dict[Choice, list[Fit]] = {}

    @cached_property
    def in_play(self) -> BoolArray:
        """Rows that lose a label under some mask."""
        return np.any(self.judged, axis=0)

    @cached_property
    def play_weights(self) -> FloatArray:
        """How much rows count, by their number of labels: a row that lost one stands for rows that never had it.

        So the rows of the game have, in effect, as many labels as the user's. Few rows would become even fewer.
        """
        if self.in_play.sum() < FEW_ROWS:
            return np.ones(len(self.shares))
        n_observed = self.observed.sum(axis=1)
        count = np.bincount(n_observed, minlength=self.observed.shape[1] + 1).astype(float)
        weights = np.clip(count[n_observed - 1] / count[n_observed], *PLAY_WEIGHTS)
        return weights / weights[self.in_play].mean()

    @property
    def has_enough_rows(self) -> bool:
        """Whether enough rows play for a choice."""
        return int(self.in_play.sum()) >= FEWEST_ROWS

    def losses(self, choice: Choice, mapper: Mapper = map) -> FloatArray:
        """Each playing row's mean loss over the masks."""
        if choice not in self._losses:
            total, times = np.zeros(len(self.shares)), np.sum(self.judged, axis=0)
            for model, fold in self._models(choice, mapper):
                for rows, observed, at in self._rehidden(model, fold, choice, self.masks):
                    total[at] += self._judge(mean_rows(model, rows, self.draws), at, observed)
            self._losses[choice] = (self.play_weights * total / np.maximum(times, 1))[self.in_play]
            self.on_played(len(self._losses))
        return self._losses[choice]

    def _judge(self, D: FloatArray, at: IntArray, observed: BoolArray) -> FloatArray:
        """Each row's loss in both measures, which count alike: the ratio of their sizes is that of the first choice.

        The divergence alone is a matter of a few rows in which a large share came as a surprise.
        """
        divergence, distance = (judge(D, self.shares[at], observed, measure) for measure in MEASURES_OF_GAME)
        if self._distance_weight is None:
            self._distance_weight = float(divergence.mean() / max(distance.mean(), 1e-300))
        return divergence + self._distance_weight * distance

    def calibrate(self, choice: Choice, seed: int, mapper: Mapper = map, odds: FloatArray | None = None) -> float:
        """How far draws must spread for the central 90 % of them to hold 90 % of the shares that were hidden again.

        With ``odds``, labels are hidden again in proportion to these, and models take account of that.
        """
        if not self.has_enough_rows:
            return 1.0
        rng = np.random.default_rng(seed)
        draws = Draws.shared(rng, N_CALIBRATION_DRAWS, self.shares.shape[1])
        masks = self.masks[: int(np.ceil(CALIBRATION_PLAYS / max(self.judged[0].sum(), 1)))]
        if odds is not None:
            masks = [hide_again(self.shares, self.observed, rng, odds=odds[self.players]) for _ in masks]
        posteriors = [
            (model, rows, observed & ~rows.observed, self.shares[at])
            for model, fold in self._models(choice, mapper, hiding=odds is not None)
            for rows, observed, at in self._rehidden(model, fold, choice, masks)
        ]

        def coverage(spread: float) -> float:
            def inside(k: int) -> FloatArray:
                model, rows, lost, shares = posteriors[k]
                rng = np.random.default_rng([seed, k])
                samples, weights = draw_lost_share(model, rows, draws.times(spread), self.zeros, lost, rng)
                low, high = quantiles(samples[:, None], weights, ((1 - LEVEL) / 2, (1 + LEVEL) / 2))[:, :, 0]
                return (low <= shares[lost]) & (shares[lost] <= high)

            return float(np.concatenate(list(mapper(inside, range(len(posteriors))))).mean())

        low, high = SPREADS
        while high / low > SPREAD_PRECISION:
            middle = np.sqrt(low * high)
            low, high = (low, middle) if coverage(middle) >= LEVEL else (middle, high)
        return float(np.sqrt(low * high)) if odds is None else max(float(np.sqrt(low * high)), LEAST_SPREAD_BY_SHARES)

    def selection(self, chosen: Choice, rng: np.random.Generator) -> Selection:
        """All choices that were played, as a report."""
        choices = list(self._losses)
        losses = np.array([self._losses[choice] for choice in choices])
        return Selection.of(
            [asdict(choice) for choice in choices], losses, choices.index(chosen), " + ".join(MEASURES_OF_GAME), rng
        )

    def _models(self, choice: Choice, mapper: Mapper, hiding: bool = False) -> Iterator[tuple[LatentModel, int]]:
        kernel = self.kernel(choice)
        one_kind = replace(choice, n_components=1)
        simple = self._simple.get(one_kind, [None] * N_FOLDS)

        def fit(fold: int) -> Fit:
            others = self.folds != fold
            fitted = fit_latent_model(
                kernel.features[others],
                self.shares[others],
                self.observed[others],
                choice.parameters(self.shares.shape[1]),
                max_iter=self.max_iter,
                tol=self.tol,
                row_weights=self.row_weights[others],
                regression=kernel.regression(fold, choice.ridge),
                simple=simple[fold],
                presence=self.presence[others],
            )
            return fit_hiding(fitted, tol=self.tol, always=True) if hiding else fitted

        fits = list(mapper(fit, range(N_FOLDS)))
        if choice == one_kind:
            self._simple = {choice: fits}
        for fold, fitted in enumerate(fits):
            yield fitted.model, fold

    def _rehidden(
        self, model: LatentModel, fold: int, choice: Choice, masks: Sequence[BoolArray]
    ) -> Iterator[tuple[Rows, BoolArray, IntArray]]:
        """The fold's rows under each mask: their posterior, their mask before, and their positions."""
        held_out = np.flatnonzero(self.folds == fold)
        features = self.kernel(choice).features[held_out]
        prior = model.prior(features, self.shares[held_out], self.observed[held_out], self.row_weights[held_out])
        prior.presence = self.presence[held_out]
        for mask in masks:
            here = np.flatnonzero((mask != self.observed)[held_out].any(axis=1))
            if len(here):
                at = held_out[here]
                rows = prior.chosen(here, renormalised(self.shares[at], mask[at]), mask[at])
                model.condition(rows)
                yield rows, self.observed[at], at

    def kernel(self, choice: Choice) -> "_Kernel":
        of_landmarks = (choice.standardize, choice.n_landmarks)
        key = (*of_landmarks, choice.width)
        if key not in self._kernels:
            if of_landmarks not in self._landmarks:
                rng = np.random.default_rng(self.landmark_seed)
                landmarks = Landmarks.choose(self.X, choice.n_landmarks, choice.standardize, rng)
                self._landmarks[of_landmarks] = (landmarks, landmarks.squared_distances(self.X))
            landmarks, squared = self._landmarks[of_landmarks]
            self._kernels[key] = _Kernel(landmarks.with_width(choice.width), squared, self.folds)
        return self._kernels[key]


class _Kernel:
    """The features of one kernel for all rows that play, and their scatter without each fold."""

    def __init__(self, kernel_map: KernelMap, squared: FloatArray, folds: IntArray) -> None:
        self.features = kernel_map.from_distances(squared)
        self._scatter = []
        for fold in range(N_FOLDS):
            others = self.features[folds != fold]
            center = others.mean(axis=0)
            self._scatter.append((center, (others - center).T @ (others - center), len(others)))

    def regression(self, fold: int, penalty: float) -> Ridge:
        center, gram, n_rows = self._scatter[fold]
        return Ridge.from_gram(center, gram, n_rows, penalty)


def search(losses: Losses, start: Choice, settings: Collection[str], n_rows: int, n_labels: int) -> Choice:
    """The best choice that differs from ``start`` in parameters that are not settings of the user."""
    axes = {name: values for name, values in AXES.items() if name not in settings}
    if n_labels >= MANY_LABELS and "prior_rows" in axes:
        axes["prior_rows"] = WEAK_PRIORS
    kernels = (start.standardize,) if "standardize" in settings else (True, False)
    best = search_shape(losses, axes, start, kernels)
    if n_labels >= MANY_LABELS and "ordered" not in settings:
        best = choose_order(losses, axes, best)
    if "n_landmarks" not in settings and MORE_LANDMARKS <= n_rows <= MOST_ROWS_FOR_MORE:
        more = replace(best, n_landmarks=MORE_LANDMARKS)
        best = more if clearly_better(losses(more), losses(best), WORTH_THE_TIME) else best
    if "n_components" in settings:
        return best
    most = min(len(losses(best)) // ROWS_PER_KIND, KINDS[-1 if n_labels < SEVERAL_LABELS else -2])
    return choose_kinds(losses, best, [number for number in KINDS if number <= most])


def search_shape(losses: Losses, axes: Axes, start: Choice, kernels: tuple[bool, ...]) -> Choice:
    """Walk from ``start`` along one axis after the other for as long as that is clearly better.

    Starting at a safe choice and moving only on evidence avoids extreme choices where data are few. If a model that
    learns nothing, in effect the mean fill, is better than the end of the walk, a second walk starts there. Features
    that are not standardised need another ridge and width, so they get a walk of their own.
    """
    best = _walk(losses, axes, replace(start, standardize=kernels[0]))
    baseline = best
    for name, value in LEARNS_NOTHING.items():
        baseline = _moved(baseline, name, value) if name in axes else baseline
    if losses(baseline).mean() < losses(best).mean():
        best = min(best, _walk(losses, axes, baseline), key=lambda choice: losses(choice).mean())
    for standardize in kernels[1:]:
        shape = {name: values for name, values in axes.items() if name in ("ridge", "width")}
        other = _walk(losses, shape, replace(best, standardize=standardize))
        if clearly_better(losses(other), losses(best)):
            best = other
    return best if _is_proven(losses, best, baseline) else baseline


def choose_order(losses: Losses, axes: Axes, best: Choice) -> Choice:
    """Whether labels that are side by side vary together, if that is clearly better; it needs a stronger prior."""
    prior: Axes = {"prior_rows": STRONG_PRIORS} if "prior_rows" in axes else {}
    start = replace(best, ordered=True, prior_rows=STRONG_PRIORS[0] if prior else best.prior_rows)
    other = _walk(losses, prior, start)
    return other if _is_proven(losses, other, best) else best


def choose_kinds(losses: Losses, best: Choice, numbers: Sequence[int]) -> Choice:
    """The number of kinds of rows with the lowest loss."""
    others = [replace(best, n_components=number) for number in numbers]
    return min([best, *others], key=lambda choice: losses(choice).mean())


def _is_proven(losses: Losses, choice: Choice, simple: Choice) -> bool:
    """Whether a choice is better than a simple one; where few rows play, chance alone makes one look better."""
    few = len(losses(choice)) < FEW_ROWS
    return choice == simple or clearly_better(losses(choice), losses(simple), PROOF if few else THIN_EVIDENCE)


def _walk(losses: Losses, axes: Axes, start: Choice) -> Choice:
    best, moved = start, True
    while moved:
        moved = False
        for name, values in axes.items():
            for direction in (-1, 1):
                while (further := _further(losses, best, name, values, direction)) is not None:
                    best, moved = further, True
    return best


def _further(losses: Losses, best: Choice, name: str, values: tuple[float, ...], direction: int) -> Choice | None:
    """The first of the next two values that is clearly better: a gentle slope may take two steps to show."""
    position = values.index(getattr(best, name))
    for stride in (1, 2):
        if 0 <= position + stride * direction < len(values):
            candidate = _moved(best, name, values[position + stride * direction])
            if clearly_better(losses(candidate), losses(best)):
                return candidate
            if clearly_better(losses(best), losses(candidate), UPHILL):
                return None
    return None


def _moved(choice: Choice, name: str, value: Any) -> Choice:
    return replace(choice, **{name: value})


def _no_progress(n_played: int) -> None:
    """Called after each candidate where no progress is to be shown."""
