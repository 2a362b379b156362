"""The re-hiding game that tunes ``BayesHidLDL``: no ground truth, and no model judged on rows that it was fitted to.

Rows are divided into folds. A model fitted to the other folds recovers each row of a fold from its features and most of
its observed labels. The recovered row, over the labels that had been observed, is compared with what was observed. So
models are fitted to rows that are as informative as the user's, and judged on rows that are new to them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import cached_property, partial
from itertools import repeat
from typing import Any

import numpy as np

from hidldl.arrays import BoolArray, FloatArray, IntArray
from hidldl.parallel import Mapper
from hidldl.progress import Progress, silent
from hidldl.randomness import some_rows
from hidldl.recovery.absence import Gap
from hidldl.recovery.calibration import LEVEL, Calibration, calibrated
from hidldl.recovery.directions import telling_directions
from hidldl.recovery.fitting import Fit
from hidldl.recovery.fittingabsence import fit_model
from hidldl.recovery.fittinghiding import SMALLEST_STEEPNESS, fit_hiding
from hidldl.recovery.fittingvotes import fit_votes
from hidldl.recovery.foldkernels import FoldKernels
from hidldl.recovery.kernelmean import KernelMap, Landmarks
from hidldl.recovery.latent import LatentModel
from hidldl.recovery.lostvotes import TOLERANCE, Votes
from hidldl.recovery.posterior import Draws, draw_lost_share, mean_rows, quantiles
from hidldl.recovery.rows import Rows
from hidldl.recovery.scatter import has_zeros
from hidldl.recovery.search import FEW_ROWS, VERY_MANY_LABELS, Choice
from hidldl.selection import (
    FEWEST_ROWS,
    THIN_EVIDENCE,
    TRIALS,
    Selection,
    clearly_better,
    hide_again,
    judge,
    renormalised,
)

MEASURES_OF_GAME = ("kl", "chebyshev")
FOLDS, FOLDS_OF_MANY_ROWS, FOLDS_OF_MANY_LABELS = (4, 4), (3, 2), (2, 2)
"""How many folds there are, and how many of them are judged: of many rows, those of two folds tell enough."""
MANY_ROWS = 1000
FEW_IN_PLAY = 500
"""Where fewer rows of many can lose a label, as with most labels hidden, those of all folds are judged."""
GAME_TOL = 1e-2
"""Candidates need not be fitted as closely as the one that is chosen: what is left is much alike in all of them.
That is so where it is known what is hidden; else rows are rough, EM is slow, and strong priors would seem better. With
very many labels, a few rounds differ much between candidates."""
MASKS, MASKS_OF_MANY_LABELS = (2, 12), (1, 2)
"""Fewest and most masks; in between as many as give ``PLAYS`` losses in all. Very many labels tell much at once."""
PLAYS = 3000
MASK_WORK = 5 * 10**9
"""Most rows * labels³ over all masks: with hundreds of labels a row is expensive, and more informative."""
N_DRAWS = 64
ROWS = (1000, 4000)
"""Least and most rows that play; in between as many as keep rows * labels² below ``WORK``."""
WORK = 1_000_000
ROWS_OF_MANY, CELLS = (500, 1000), 200_000
"""The same with very many labels, of which each tells something: as many rows as have about so many cells. Models of
fewer rows know the labels' covariance too badly, and would prefer to trust the shares less."""
DRAWS_OF_MANY, ROUNDS_OF_MANY = 32, 40
FITS_OF_MANY = 4
"""Choices of one kind whose fits are kept, those with the lowest losses: more kinds start from one of them."""
MOST_KERNELS = 4
"""Kernels whose components are kept, those that were used last: a search returns to few."""
LABELS_PER_LOST = 3
"""A row loses one label of so many, and at least one: with more of them, its loss tells more."""
PLAY_WEIGHTS = (0.5, 2.0)
"""Least and most that a row counts by its number of labels."""
LEAST_SPREAD_OF_VOTES = 0.5
"""Intervals of a few votes hold more than their level in any case; no spread of what is expected changes that, but
tails do. So it is with labels that are absent or not."""
WORTH_NOT_COUNTING = 2.0
"""Standard errors by which rows that may lack labels must be better, where votes tell how much is hidden anyhow."""
N_CALIBRATION_DRAWS = 400
CALIBRATION_PLAYS = 1500
"""Labels to hide again: enough to estimate a coverage to within a percent."""


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
        self.is_many = is_many = n_labels >= VERY_MANY_LABELS
        most = int(np.clip(CELLS // n_labels, *ROWS_OF_MANY) if is_many else np.clip(WORK // n_labels**2, *ROWS))
        self.players = players = some_rows(rng, n_rows, most)
        self.row_weights = row_weights[players]
        self.X, self.shares, self.observed = X[players], shares[players], observed[players]
        self.presence: FloatArray = self.observed.astype(np.float64)
        many_rows = len(players) >= MANY_ROWS
        n_folds, self.n_judged = FOLDS_OF_MANY_LABELS if is_many else FOLDS_OF_MANY_ROWS if many_rows else FOLDS
        self.folds = rng.permutation(len(players)) % n_folds
        can_play = (self._hidden_again(rng) != self.observed).any(axis=1).sum()
        if not is_many and can_play < FEW_IN_PLAY:
            can_play, self.n_judged = can_play * n_folds // self.n_judged, n_folds
        affordable = MASK_WORK // (len(players) * n_labels**3)
        bounds = MASKS_OF_MANY_LABELS if is_many else MASKS
        n_masks = int(np.clip(min(PLAYS // max(can_play, 1), affordable), *bounds))
        self.n_lost = np.maximum(self.observed.sum(axis=1) // LABELS_PER_LOST, 1)
        self.masks = [self._hidden_again(rng, n_lost=self.n_lost) for _ in range(n_masks)]
        self.judged = [(mask != self.observed).any(axis=1) for mask in self.masks]
        self.landmark_seed = int(rng.integers(2**31))
        self.draws = Draws.shared(rng, DRAWS_OF_MANY if is_many else N_DRAWS, n_labels)
        self.zeros = has_zeros(self.shares, self.observed)
        self.max_iter, self.tol = min(max_iter, ROUNDS_OF_MANY) if is_many else max_iter, tol
        self.gap = Gap.of(self.shares, self.observed)
        self._distance_weight: float | None = None
        self._fair_weights: FloatArray | None = None
        self.votes: Votes | None = None
        self.forget()

    def _hidden_again(
        self, rng: np.random.Generator, odds: FloatArray | float = 1.0, n_lost: IntArray | int = 1
    ) -> BoolArray:
        """A mask with which the rows of the folds that are judged play."""
        mask = hide_again(self.shares, self.observed, rng, odds=odds, n_lost=n_lost)
        return np.where((self.folds < self.n_judged)[:, None], mask, self.observed)

    def forget(self) -> None:
        """Drop all caches."""
        self._kernels: dict[Choice, FoldKernels] = {}
        self._played: dict[Choice, FloatArray] = {}
        self._landmarks: dict[tuple[bool, int], tuple[Landmarks, FloatArray]] = {}
        self._simple: dict[Choice, list[Fit]] = {}

    @cached_property
    def in_play(self) -> BoolArray:
        """Rows that lose a label under some mask."""
        return np.any(self.judged, axis=0)

    @cached_property
    def play_weights(self) -> FloatArray:
        """How much rows count, by their number of labels: a row that lost some stands for rows that never had them.

        So the rows of the game are more like the user's in how many labels they have. Few rows would become even fewer.
        """
        if self.in_play.sum() < FEW_ROWS:
            return np.ones(len(self.shares))
        n_observed = self.observed.sum(axis=1)
        count = np.bincount(n_observed, minlength=self.observed.shape[1] + 1).astype(float)
        weights = np.clip(count[n_observed - self.n_lost] / count[n_observed], *PLAY_WEIGHTS)
        return weights / weights[self.in_play].mean()

    @property
    def has_enough_rows(self) -> bool:
        """Whether enough rows play for a choice."""
        return int(self.in_play.sum()) >= FEWEST_ROWS

    def losses(self, choice: Choice, mapper: Mapper = map, progress: Progress = silent) -> FloatArray:
        """Each playing row's mean loss over the masks; ``progress`` is called for a choice that is new.

        Divergence and distance count alike: the ratio of their sizes is that of the first choice. The divergence alone
        is a matter of a few rows in which a large share came as a surprise.
        """
        return self._summed(*self._play(choice, mapper, progress))

    def _summed(self, divergence: FloatArray, distance: FloatArray) -> FloatArray:
        if self._distance_weight is None:
            self._distance_weight = float(divergence.mean() / max(distance.mean(), 1e-300))
        return divergence + self._distance_weight * distance

    def distances(self, choice: Choice, mapper: Mapper = map, progress: Progress = silent) -> FloatArray:
        """As ``losses``, by the distance alone: less a matter of chance where choices differ by little."""
        return self._play(choice, mapper, progress)[1]

    def _play(self, choice: Choice, mapper: Mapper, progress: Progress) -> FloatArray:
        """Each playing row's loss in both measures (first axis), the mean over the masks."""
        if choice not in self._played:
            self._played[choice] = self._mean_losses(choice, None, mapper)
            played = [kept for kept in self._simple if kept in self._played]
            lowest = sorted(played, key=lambda kept: self.losses(kept).mean())[:FITS_OF_MANY]
            self._simple = {kept: self._simple[kept] for kept in lowest}
            progress(len(self._played), None, f"{TRIALS}: {len(self._played)}")
        return self._played[choice]

    def _mean_losses(self, choice: Choice, votes: Votes | None, mapper: Mapper) -> FloatArray:
        """As ``_play``, played anew, by models that know how many votes complete rows have."""
        total, times = np.zeros((2, len(self.shares))), np.sum(self.judged, axis=0)
        in_doubt = ((self.presence > 0) & (self.presence < 1)).any()
        tol = self.tol if in_doubt or self.is_many else max(self.tol, GAME_TOL)

        def recover(fitted: tuple[LatentModel, int]) -> list[tuple[FloatArray, IntArray, BoolArray]]:
            model, fold = fitted
            parts = self._rehidden(model, fold, choice, self.masks)
            mean = partial(mean_rows, model.with_votes(votes), draws=self.draws)
            if self.gap is None:
                return [(mean(rows), at, seen) for rows, seen, at in parts]
            return [(mean(rows, among=seen), at, seen) for rows, seen, at in parts]

        for recovered in mapper(recover, self._models(choice, mapper, tol)):
            for D, at, observed in recovered:
                total[:, at] += [judge(D, self.shares[at], observed, measure) for measure in MEASURES_OF_GAME]
        return (self.play_weights * total / np.maximum(times, 1))[:, self.in_play]

    def can_lack(self, best: Choice) -> bool:
        """Whether rows may lack labels: there is a gap between shares, and shares do not decide which are hidden.

        A flat curve is no sign of that: a model in which all rows have all labels is not exact here.
        """
        if self.gap is None:
            return False
        curve = fit_hiding(self._fit_of_all(best), tol=GAME_TOL).model.estimates.curve
        return curve is None or curve.steepness < SMALLEST_STEEPNESS[True]

    def fair_losses(self, choice: Choice, mapper: Mapper = map, progress: Progress = silent) -> FloatArray:
        """As ``losses``, of choices in which rows may lack labels."""
        return self._fairness(choice) * self.losses(choice, mapper, progress)

    def lacks(self, lacking: Choice, best: Choice, votes: Votes | None, mapper: Mapper = map) -> bool:
        """Whether it is clearly better that rows may lack labels. Either model may use ``votes`` that it predicts."""

        def played(choice: Choice) -> tuple[FloatArray, bool]:
            losses = self.losses(choice, mapper)
            counted = None if votes is None else fit_votes(self._fit_of_all(choice), votes).model.estimates.votes
            if counted is not None:
                losses = self._summed(*self._mean_losses(choice, counted, mapper))
            return self._fairness(lacking) * losses, counted is not None

        (own, _), (other, counts) = played(lacking), played(best)
        return clearly_better(own, other, WORTH_NOT_COUNTING if counts else THIN_EVIDENCE)

    def _fairness(self, lacking: Choice) -> FloatArray:
        """How much rows count where some may lack labels: those that show absent ones are too common in the game.

        For a label that is alone is not hidden again, and many of these rows would not show it but for being alone.
        """
        if self._fair_weights is None:
            absences = self._fit_of_all(lacking).model.estimates.absences
            assert absences is not None
            weights = np.mean(self.judged, axis=0) * absences.chance_of_seen(self.shares, self.observed)
            self._fair_weights = weights[self.in_play] / weights[self.in_play].mean()
        return self._fair_weights

    def _fit_of_all(self, choice: Choice, mapper: Mapper = map) -> Fit:
        """A fit to all rows that play."""
        how: dict[str, Any] = {"row_weights": self.row_weights, "presence": self.presence, "mapper": mapper}
        how |= {"max_iter": self.max_iter, "tol": max(self.tol, GAME_TOL)}
        table = (self.plain_features(choice)[1], self.shares, self.observed, choice.parameters(self.shares.shape[1]))
        return fit_model(*table, self.gap if choice.absent_labels else None, **how)

    def calibrate(self, choice: Choice, seed: int, mapper: Mapper = map, odds: FloatArray | None = None) -> Calibration:
        """The calibration with which 90 % intervals hold 90 % of the shares that were hidden again.

        With ``odds``, labels are hidden again in proportion to these, and models take account of that.
        """
        if not self.has_enough_rows:
            return Calibration()
        rng = np.random.default_rng(seed)
        draws = Draws.shared(rng, N_CALIBRATION_DRAWS, self.shares.shape[1])
        n_masks = min(len(self.masks), int(np.ceil(CALIBRATION_PLAYS / max(self.judged[0].sum(), 1))))
        masks = [self._hidden_again(rng, 1.0 if odds is None else odds[self.players]) for _ in range(n_masks)]
        posteriors = [
            (model.with_votes(self.votes), rows, observed & ~rows.observed, self.shares[at])
            for model, fold in self._models(choice, mapper, self.tol, hiding=odds is not None)
            for rows, observed, at in self._rehidden(model, fold, choice, masks)
        ]
        rounding = TOLERANCE if self.votes is not None else 0.0

        def coverage(calibration: Calibration) -> float:
            def inside(k: int) -> FloatArray:
                model, rows, lost, shares = posteriors[k]
                own, rng = draws.times(calibration.spread), np.random.default_rng([seed, k])
                samples, weights = draw_lost_share(model, rows, own, self.zeros, lost, rng)
                low, high = quantiles(samples[:, None], weights, calibration.levels(LEVEL))[:, :, 0]
                return (low - rounding <= shares[lost]) & (shares[lost] <= high + rounding)

            return float(np.concatenate(list(mapper(inside, range(len(posteriors))))).mean())

        if choice.absent_labels and self.gap is not None and not self.gap.zero:
            # Beside labels with next to nothing, those that are hidden again are easier to tell than others.
            return Calibration(max(calibrated(coverage).spread, 1.0))
        least = 1.0 if choice.absent_labels else LEAST_SPREAD_OF_VOTES if self.votes is not None else None
        return calibrated(coverage, least)

    def selection(self, chosen: Choice, rng: np.random.Generator) -> Selection:
        """All choices that were played, as a report."""
        choices = list(self._played)
        losses = np.array([self.losses(choice) for choice in choices])
        return Selection.of(
            [asdict(choice) for choice in choices], losses, choices.index(chosen), " + ".join(MEASURES_OF_GAME), rng
        )

    def _models(
        self, choice: Choice, mapper: Mapper, tol: float, hiding: bool = False
    ) -> Iterator[tuple[LatentModel, int]]:
        """A model of all rows but those of a fold, for each fold that is judged."""
        one_kind = replace(choice, n_components=1)
        simple = self._simple.get(one_kind, [None] * self.n_judged)
        kernel = self.kernel(choice, mapper)

        def fit(fold: int) -> Fit:
            others = self.folds != fold
            fitted = fit_model(
                kernel.fitted(fold, choice.ridge),
                self.shares[others],
                self.observed[others],
                choice.parameters(self.shares.shape[1]),
                self.gap if choice.absent_labels else None,
                max_iter=self.max_iter,
                tol=tol,
                row_weights=self.row_weights[others],
                regression=kernel.regression(fold, choice.ridge),
                simple=simple[fold],
                presence=self.presence[others],
            )
            return fit_hiding(fitted, tol=tol, always=True) if hiding else fitted

        fits = list(mapper(fit, range(self.n_judged)))
        if choice == one_kind:
            self._simple = self._simple | {choice: fits} if self.is_many else {choice: fits}
        for fold, fitted in enumerate(fits):
            yield fitted.model, fold

    def _rehidden(
        self, model: LatentModel, fold: int, choice: Choice, masks: Sequence[BoolArray]
    ) -> Iterator[tuple[Rows, BoolArray, IntArray]]:
        """The fold's rows under each mask: their posterior, their mask before, and their positions."""
        held_out = np.flatnonzero(self.folds == fold)
        features = self.kernel(choice).held_out(fold, choice.ridge)
        prior = model.prior(features, self.shares[held_out], self.observed[held_out], self.row_weights[held_out])
        prior.presence = self.presence[held_out]
        for mask in masks:
            here = np.flatnonzero((mask != self.observed)[held_out].any(axis=1))
            if len(here):
                at = held_out[here]
                rows = prior.chosen(here, renormalised(self.shares[at], mask[at]), mask[at])
                model.condition(rows)
                yield rows, self.observed[at], at

    def kernel(self, choice: Choice, mapper: Mapper = map) -> FoldKernels:
        """The kernel of a choice, for each fold that is judged."""
        parts = {name: getattr(choice, name) for name in ("width", "standardize", "n_landmarks")}
        key = replace(choice, n_components=1) if choice.learn_distance else Choice(**parts)
        if key in self._kernels:
            self._kernels[key] = self._kernels.pop(key)  # the last one to be dropped
        else:
            in_folds = [self.folds == fold for fold in range(self.n_judged)]
            landmarks, squared = self._plain_landmarks(key)
            distances = self._learned(key, mapper) if key.learn_distance else repeat((landmarks, squared))
            kernel = FoldKernels.of(distances, key.width, in_folds)
            while len(self._kernels) >= MOST_KERNELS:
                del self._kernels[next(iter(self._kernels))]
            self._kernels[key] = kernel
        return self._kernels[key]

    def kernel_map(self, landmarks: Landmarks, choice: Choice, mapper: Mapper = map) -> KernelMap:
        """The kernel around these landmarks; distances that are learned are learned from all rows that play."""
        if choice.learn_distance:
            plain, _ = self.plain_features(choice)
            estimates = self._fit_of_all(replace(choice, n_components=1), mapper).model.estimates
            weights = plain.whitening @ estimates.coef_of_labels
            landmarks = landmarks.along(telling_directions(plain.landmarks, choice.width, weights, self.X))
        self.forget()
        return landmarks.with_width(choice.width)

    def plain_features(self, choice: Choice) -> tuple[KernelMap, FloatArray]:
        """The kernel of plain distances, and its features of all rows that play."""
        landmarks, squared = self._plain_landmarks(choice)
        kernel_map = landmarks.with_width(choice.width)
        return kernel_map, kernel_map.from_distances(squared)

    def _learned(self, choice: Choice, mapper: Mapper) -> Iterator[tuple[Landmarks, FloatArray]]:
        """For each fold, landmarks whose distances are learned from the rows outside of it, and those to all rows."""
        plain = replace(choice, learn_distance=False)
        kernel, (landmarks, squared) = self.kernel(plain), self._plain_landmarks(plain)
        rows = landmarks.scaled(self.X)
        for model, fold in self._models(plain, mapper, max(self.tol, GAME_TOL)):
            weights = kernel.weights(fold, model.estimates.coef_of_labels)
            directions = telling_directions(landmarks, choice.width, weights, self.X[self.folds != fold])
            learned = landmarks.along(directions)
            yield learned, learned.with_those_along(squared * landmarks.typical, rows)

    def _plain_landmarks(self, choice: Choice) -> tuple[Landmarks, FloatArray]:
        """Landmarks among the rows that play, and the squared distances of these rows to them."""
        key = (choice.standardize, choice.n_landmarks)
        if key not in self._landmarks:
            rng = np.random.default_rng(self.landmark_seed)
            landmarks = Landmarks.choose(self.X, choice.n_landmarks, choice.standardize, rng)
            self._landmarks[key] = (landmarks, landmarks.squared_distances(self.X))
        return self._landmarks[key]
