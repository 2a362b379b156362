"""The game of the pattern of zeros: it tunes ``BayesHidLDL`` where nobody knows which zeros are hidden.

The game of shares cannot decide that: a model that takes every zero for hidden always wins it. But which cells are 0 is
data too. Models that are fitted to some rows predict whether a cell of another row is 0, from its features and its
other cells.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hidldl.arrays import BoolArray, FloatArray
from hidldl.parallel import Mapper
from hidldl.progress import Progress
from hidldl.recovery.fitting import Fit
from hidldl.recovery.fittinghiding import fit_hiding_of_zeros
from hidldl.recovery.heldout import HeldOutGame
from hidldl.recovery.kernelmean import Ridge
from hidldl.recovery.lostvotes import MOST_ROWS, MOST_VOTES, Votes, are_votes
from hidldl.recovery.search import Choice
from hidldl.recovery.unknownzeros import EM_ROUNDS, fit_unknown_zeros, pattern_losses
from hidldl.recovery.zerorates import ZeroRates
from hidldl.selection import clearly_better

JUDGED_FOLDS = 2
"""Folds that are judged, each by a model of all others: enough to choose, in less time."""
N_CELLS = 4
"""Cells of each row that are predicted, one at a time."""
SINGLE_VOTES = 0.05
"""Such a part of the positive shares is the smallest, a single vote of the row, or rounding."""
WEIGHTS_OF_A_VOTE = (0.55, 0.65)
"""A vote weighs less than an independent one would, since the model is not exact. The pattern of zeros chooses between
these; over a wider range it is nearly flat, and its lowest value was not the best one in trials with known masks."""
FIRST_PRESENCE = 0.95
PROOF = 2.0
"""By how many standard errors true zeros must predict the pattern better than none, where nothing else shows them."""
FINEST = 1e6


@dataclass(frozen=True)
class ZeroChoice:
    """A choice for a table with unknown zeros, and how fine its shares are."""

    choice: Choice
    finest: float | None = None
    """1 / the smallest share, or None for votes, of which small shares come out as 0."""
    by_share: bool = False
    """Whether the shares are known to decide what is hidden."""

    @classmethod
    def all_hidden(cls, choice: Choice, shares: FloatArray) -> "ZeroChoice":
        """Shares are as fine as the smallest of them, so that a zero is told from it; all zeros start as hidden."""
        finest = 1 / max(shares[shares > 0].min(), 1 / FINEST)
        return cls(choice, max(choice.nu, finest))

    @property
    def hides_all(self) -> bool:
        """Whether zeros are labels that were overlooked, whatever their shares are, but for tiny ones."""
        return self.finest is not None and not self.by_share

    def with_others(self, choice: Choice, shares: FloatArray) -> "ZeroChoice":
        """The same kind of zeros with other parameters."""
        if self.finest is None or self.finest >= FINEST:
            return replace(self, choice=choice)
        return replace(self.all_hidden(choice, shares), by_share=self.by_share)

    def fit(
        self,
        features: FloatArray,
        shares: FloatArray,
        observed: BoolArray,
        unknown: BoolArray,
        known_rates: FloatArray | None,
        *,
        max_iter: int,
        tol: float,
        row_weights: FloatArray,
        regression: Ridge | None = None,
        votes: Votes | None = None,
        hiding: str = "uniform",
        mapper: Mapper = map,
    ) -> Fit:
        """The model of this choice; several kinds of rows with votes start from the zeros of a fit with one.

        ``votes`` are those that every complete row seems to have. ``hiding`` is as for ``BayesHidLDL``.
        """
        table = (features, shares, observed, unknown)
        more: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "row_weights": row_weights, "mapper": mapper}
        presence, first_rounds = np.where(unknown, 0.0, observed), max_iter
        if self.finest is None and self.choice.n_components > 1:
            simple = replace(self, choice=replace(self.choice, n_components=1))
            presence = simple.fit(*table, known_rates, regression=regression, **more).rows.presence
        elif self.finest is None:
            presence, first_rounds = np.where(unknown, FIRST_PRESENCE, observed), EM_ROUNDS
        n_labels = shares.shape[1]
        zeros, parameters = ZeroRates.first(n_labels, known_rates, self.finest), self.choice.parameters(n_labels)
        more |= {"presence": presence, "first_rounds": first_rounds, "regression": regression}
        more |= {"counted": votes if self.finest is None else None}
        fit = fit_unknown_zeros(*table, parameters, zeros, **more)
        if self.finest is None or (hiding == "uniform" and not self.by_share):
            return fit
        return fit_hiding_of_zeros(fit, tol=tol, always=self.by_share or hiding == "degree")


class ZeroGame:
    """The folds and kernels of the game of shares, and some cells of each row, drawn once."""

    def __init__(
        self,
        game: HeldOutGame,
        unknown: BoolArray,
        known_rates: FloatArray | None,
        seed: int,
        mapper: Mapper,
        progress: Progress,
    ) -> None:
        self.game, self.unknown, self.known_rates = game, unknown[game.players], known_rates
        self.seed, self.mapper = seed, mapper
        self.progress = progress
        self._losses: dict[ZeroChoice, FloatArray] = {}

    def losses(self, candidate: ZeroChoice) -> FloatArray:
        """Each row's loss."""
        if candidate not in self._losses:
            folds = self.mapper(lambda fold: self._play(candidate, fold), range(JUDGED_FOLDS))
            self._losses[candidate] = np.concatenate(list(folds))
            self.progress(len(self._losses), None, f"telling hidden zeros from true ones, trials: {len(self._losses)}")
        return self._losses[candidate]

    def _play(self, candidate: ZeroChoice, fold: int) -> FloatArray:
        # Directions are learned from labels, and here nobody knows yet which are hidden.
        game, kernel = self.game, self.game.kernel(replace(candidate.choice, learn_distance=False))
        others, here = game.folds != fold, np.flatnonzero(game.folds == fold)
        fit = candidate.fit(
            kernel.fitted(fold, candidate.choice.ridge),
            game.shares[others],
            game.observed[others],
            self.unknown[others],
            self.known_rates,
            max_iter=game.max_iter,
            tol=game.tol,
            row_weights=game.row_weights[others],
            regression=kernel.regression(fold, candidate.choice.ridge),
        )
        features = kernel.held_out(fold, candidate.choice.ridge)
        prior = fit.model.prior(features, game.shares[here], game.observed[here], game.row_weights[here])
        rng = np.random.default_rng([self.seed, fold])
        return np.mean([pattern_losses(fit.model, prior, self.unknown[here], rng) for _ in range(N_CELLS)], axis=0)

    def choose(self, choice: Choice, settings: Collection[str], hiding: str) -> ZeroChoice:
        """True zeros if they predict the pattern clearly better, or not clearly worse where shares are visibly votes.

        Small shares that are overlooked more often make the same pattern. So that is tried too, unless shares are
        visibly those of votes, of which some come out as 0 in any case. If they visibly are not, a model with few votes
        is refused: it would take exact shares for rough ones.

        Visible votes may be independent, which a model of lighter ones cannot show: one of full votes speaks for it.
        """
        hidden = self._hidden(choice)
        votes = ZeroChoice(choice) if "nu" in settings else self._votes(choice)
        if are_votes(self.game.shares):
            if self._hide_nothing():
                return votes
            witness = votes if "nu" in settings else min(votes, self._votes_of(choice, 1.0), key=self._mean_loss)
            return hidden if clearly_better(self.losses(hidden), self.losses(witness), PROOF) else votes
        if not clearly_better(self.losses(votes), self.losses(hidden), PROOF):
            return hidden
        rival = votes if "nu" in settings or self._smallest < 1 / MOST_VOTES else hidden
        if hiding == "uniform":
            return rival
        return min(rival, replace(hidden, by_share=True), key=self._mean_loss)

    def apply(self, chosen: ZeroChoice) -> None:
        """Let the game of shares take zeros as this choice does."""
        game, (_, features) = self.game, self.game.plain_features(chosen.choice)
        table = (features, game.shares, game.observed, self.unknown, self.known_rates)
        fit = chosen.fit(*table, max_iter=game.max_iter, tol=game.tol, row_weights=game.row_weights, mapper=self.mapper)
        game.presence, game.row_weights = fit.rows.presence, fit.rows.nu / chosen.choice.nu

    def _hidden(self, choice: Choice) -> ZeroChoice:
        """All zeros start as hidden; small shares can come out as 0, or none can, if that predicts zeros better."""
        hidden = ZeroChoice.all_hidden(choice, self.game.shares)
        return min(hidden, replace(hidden, finest=FINEST), key=self._mean_loss)

    @property
    def _smallest(self) -> float:
        """The smallest shares: single votes, or rounding."""
        shares = self.game.shares
        return float(np.quantile(shares[shares > 0], SINGLE_VOTES))

    def _votes(self, choice: Choice) -> ZeroChoice:
        """Shares of so many votes that the smallest is a single one, with the weight that predicts zeros best."""
        return min((self._votes_of(choice, weight) for weight in WEIGHTS_OF_A_VOTE), key=self._mean_loss)

    def _votes_of(self, choice: Choice, weight: float) -> ZeroChoice:
        return ZeroChoice(replace(choice, nu=weight * min(1 / self._smallest, FINEST)))

    def _hide_nothing(self) -> bool:
        """Whether most rows with zeros need all of the votes that every row has: they lost none with their zeros."""
        votes, shares = Votes.of(self.game.shares), self.game.shares[self.unknown.any(axis=1)]
        return votes is not None and bool(votes.are_all_needed(shares).mean() > MOST_ROWS)

    def _mean_loss(self, candidate: ZeroChoice) -> float:
        return float(self.losses(candidate).mean())
