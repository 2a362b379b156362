"""What a fit begins with: its parameters, chosen without ground truth where the user gave none, and what zeros are."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hidldl.arrays import BoolArray, FloatArray
from hidldl.parallel import Mapper
from hidldl.progress import Progress
from hidldl.recovery.absence import Gap
from hidldl.recovery.heldout import HeldOutGame
from hidldl.recovery.lostvotes import Votes, are_votes
from hidldl.recovery.search import Choice, search
from hidldl.recovery.zerogame import ZeroChoice, ZeroGame
from hidldl.selection import Selection


@dataclass(frozen=True)
class Table:
    """Features and rows, which zeros may be hidden or true, and how much rows weigh."""

    X: Any
    shares: FloatArray
    observed: BoolArray
    unknown: BoolArray | None
    row_weights: FloatArray


@dataclass(frozen=True)
class Knowledge:
    """What the user says: parameters, how often labels are overlooked, and whether their shares may decide that.

    ``can_lack`` is False where labels must not be absent, whatever the table looks like.
    """

    settings: Mapping[str, Any]
    rates: FloatArray | None
    hiding: str
    can_lack: bool

    def hiding_of_zeros(self, shares: FloatArray, unknown: BoolArray) -> str:
        """Whether shares may decide which labels are hidden. Rates or masks that are known tell that otherwise.

        Where shares are visibly votes, small ones come out as 0 in any case.
        """
        has_mask = not np.array_equal(unknown, shares == 0)
        return "uniform" if self.rates is not None or has_mask or are_votes(shares) else self.hiding


@dataclass(frozen=True)
class Chosen:
    """The game, the parameters, the candidates if there were any, and what zeros are if nobody knows."""

    known: Knowledge
    game: HeldOutGame
    choice: Choice
    selection: Selection | None
    zeros: ZeroChoice | None

    def gap(self, shares: FloatArray, observed: BoolArray) -> Gap | None:
        """The gap between shares, if rows may lack labels."""
        return Gap.of(shares, observed) if self.choice.absent_labels else None


def _check_absent_labels(table: Table, zeros: ZeroChoice | None) -> None:
    """Refuse to look for labels that rows lack where nothing shows them."""
    if zeros is not None and not zeros.hides_all:
        remedy = 'pass observed=, zeros="hidden" or zeros="true"'
        raise ValueError(f"absent_labels=True needs to know which zeros of D_obs are hidden; {remedy}.")
    if Gap.of(table.shares, table.observed) is None:
        raise ValueError(
            "absent_labels=True needs 2 to 10 labels, of which many have 0 or next to nothing and hardly any has a "
            'share between that and the others; D_obs has no such gap, so leave it at "auto".'
        )


def choose(
    table: Table,
    known: Knowledge,
    *,
    tunes: bool,
    max_iter: int,
    tol: float,
    seed: int,
    rng: np.random.Generator,
    mapper: Mapper,
    progress: Progress,
) -> Chosen:
    """Choose what is not known; ``tunes`` if any parameter is to be chosen."""
    shares, unknown, settings = table.shares, table.unknown, dict(known.settings)
    rows = (table.X, shares, table.observed)
    game = HeldOutGame(*rows, row_weights=table.row_weights, max_iter=max_iter, tol=tol, rng=rng)
    choice, selection = Choice(**settings), None
    zeros = None if unknown is None else ZeroChoice.all_hidden(choice, shares)
    if unknown is not None and game.has_enough_rows:
        zero_game = ZeroGame(game, unknown, known.rates, seed, mapper, progress)
        zeros = zero_game.choose(choice, settings, known.hiding_of_zeros(shares, unknown))
        if zeros.finest is None:
            choice = zeros.choice
            settings |= {"nu": choice.nu}
            zero_game.apply(zeros)
    if choice.absent_labels:
        _check_absent_labels(table, zeros)
    if tunes and game.has_enough_rows:
        alike = bool((game.row_weights == 1).all())
        votes = Votes.of(game.shares) if alike and unknown is None else None
        may_lack = known.can_lack and alike and (zeros is None or zeros.hides_all)
        settings |= {} if may_lack else {"absent_labels": choice.absent_labels}
        plays = (game.losses, game.distances, game.fair_losses)
        losses, distances, fair = (partial(play, mapper=mapper, progress=progress) for play in plays)
        how: dict[str, Any] = {"votes": votes, "can_lack": game.can_lack, "lacks": partial(game.lacks, mapper=mapper)}
        how |= {"fair_losses": fair}
        choice = search(losses, distances, choice, settings, *shares.shape, **how)
        selection = game.selection(choice, rng)
    return Chosen(known, game, choice, selection, zeros and zeros.with_others(choice, shares))
