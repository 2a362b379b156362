"""Fit the model where nobody knows which zeros are hidden.

A zero that was overlooked with probability w is present in its row with weight 1 - w: the fit alternates between rounds
of EM with these weights, and the weights given the model (``zerorates`` says how). That is deterministic, and a round
costs little more than with a known mask; masks drawn anew in every round would add noise and time. Results draw masks
(``posterior``), so that they have the uncertainty of the masks too.
"""

from dataclasses import replace

import numpy as np

from hidldl.arrays import BoolArray, FloatArray, IntArray
from hidldl.parallel import Mapper, for_each
from hidldl.recovery.fitting import Fit, Rounds, climb, fit_latent_model
from hidldl.recovery.kernelmean import Ridge
from hidldl.recovery.latent import LatentModel, Parameters, work_blocks
from hidldl.recovery.lostvotes import VoteMeans, Votes
from hidldl.recovery.posterior import Draws, weigh_votes, weighted_shares
from hidldl.recovery.rows import Rows
from hidldl.recovery.zerochances import chances_of_zero
from hidldl.recovery.zerorates import ZeroRates, log_losses
from hidldl.selection import hide_again, renormalised

EM_ROUNDS = 3
"""Rounds of EM between two rounds of weights: two, and a leap."""
MOST_ROUNDS = 40
STANDSTILL = 5e-4
"""Mean change of the weights at which they stand still."""
SETTLING_ROUNDS = 5
VOTE_ROUNDS = 3
"""How often votes are counted anew and the fit goes on, and how often rows settle with the votes left to them."""
LEAST_MASS = 0.05
"""A row weighs at least so much of its votes, however much is taken for hidden."""
LEAST_PRESENCE = 1e-6
"""What is less present than this is hidden."""
PATTERN_SEED, PATTERN_DRAWS = 17, 128


def fit_unknown_zeros(
    features: FloatArray,
    shares: FloatArray,
    observed: BoolArray,
    unknown: BoolArray,
    parameters: Parameters,
    zeros: ZeroRates,
    *,
    presence: FloatArray,
    first_rounds: int,
    max_iter: int,
    tol: float,
    row_weights: FloatArray | float = 1.0,
    regression: Ridge | None = None,
    counted: Votes | None = None,
    mapper: Mapper = map,
) -> Fit:
    """As ``fit_latent_model``, and how present unknown zeros are, from ``presence`` on.

    EM makes ``first_rounds`` before the first round of weights: many where the first presence is likely the last.
    ``counted`` are the votes that every complete row seems to have.
    """
    presence = presence.copy()
    fit = fit_latent_model(
        features,
        shares,
        observed,
        parameters,
        max_iter=first_rounds,
        tol=tol,
        row_weights=row_weights,
        regression=regression,
        presence=presence,
        mapper=mapper,
    )
    rounds, current, model = fit.rounds, fit.model.estimates, fit.model
    votes = rounds.nu.copy()
    changes, converged = list(fit.history["change"]), False
    for k in range(MOST_ROUNDS):
        model = replace(model, estimates=current)
        rows, before = rounds.rows(current), presence.copy()
        model.condition(rows, mapper)
        chances = weigh_zeros(model, rows, votes, zeros, unknown, mapper)
        zeros = zeros.improved(chances, unknown, observed)
        stands_still = np.abs(presence - before)[unknown].mean() < STANDSTILL
        is_last = stands_still or k == MOST_ROUNDS - 1
        current, more, converged = climb(rounds, current, max_iter if is_last else EM_ROUNDS, tol)
        changes += more
        if is_last:
            break
    model = replace(model, estimates=replace(current, zeros=zeros))
    rows = rounds.rows(current)
    if counted is not None:
        voted = model.with_votes(counted)
        model, rows, more, has_settled = _fit_votes(voted, rows, rounds, votes, unknown, max_iter, tol, mapper)
        changes += more
        converged = has_settled if more else converged
    else:
        model.condition(rows, mapper)
    history = {"change": np.array(changes), "evidence": np.array(rounds.evidence) + rounds.entropy}
    return Fit(model, rows, history, converged, rounds)


def _fit_votes(
    model: LatentModel,
    rows: Rows,
    rounds: Rounds,
    votes: FloatArray,
    unknown: BoolArray,
    max_iter: int,
    tol: float,
    mapper: Mapper,
) -> tuple[LatentModel, Rows, list[float], bool]:
    """Go on with the votes that rows may have left, if the model predicts them; without a round if it does not.

    The rates stay: they are told by which zeros there are, and drift where the model is not exact.
    """
    changes: list[float] = []
    converged, zeros, counted = True, model.estimates.zeros, model.estimates.votes
    assert counted is not None
    model.condition(rows, mapper)
    means = weigh_votes(model, rows, mapper)
    if not counted.are_predicted(means.predicted, rows.shares):
        return model.with_votes(None), rows, changes, converged
    for _ in range(VOTE_ROUNDS):
        rounds.presence[unknown] = 1 - means.took_votes[unknown]
        rounds.nu[:] = votes * means.left / counted.number
        current, more, converged = climb(rounds, model.estimates, max_iter, tol)
        changes += more
        model = replace(model, estimates=replace(current, zeros=zeros, votes=counted))
        rows = rounds.rows(current)
        means = _settle_votes(model, rows, votes, means, unknown, mapper)
    return model, rows, changes, converged


def weigh_zeros(
    model: LatentModel, rows: Rows, votes: FloatArray, zeros: ZeroRates, unknown: BoolArray, mapper: Mapper = map
) -> FloatArray:
    """Set how present unknown zeros are, by the rest of their rows, and how much rows weigh that had so many votes.

    Returns the chances of zero of all cells.
    """
    chances = np.empty_like(rows.mean)

    def weigh(block: slice) -> None:
        part = rows.part(block)
        chances[block], mass = chances_of_zero(model.estimates, part, model.exponents(zeros, part.nu))
        present = 1 - zeros.hidden(chances[block])
        present[present < LEAST_PRESENCE] = 0
        rows.presence[block] = np.where(unknown[block], present, part.presence)
        if zeros.finest is None:
            rows.nu[block] = votes[block] * np.maximum(mass, LEAST_MASS)

    for_each(mapper, weigh, work_blocks(*rows.mean.shape))
    return chances


def settle(model: LatentModel, rows: Rows, unknown: BoolArray | None, mapper: Mapper = map) -> None:
    """The posterior of new rows and of their unknown zeros, if there are any."""
    zeros, estimates = model.estimates.zeros, model.estimates
    if zeros is None or estimates.curve is not None or estimates.absences is not None:
        model.condition(rows, mapper)
        return
    unknown = np.zeros_like(rows.observed) if unknown is None else unknown
    rows.presence = np.where(unknown, 1 - zeros.rates, rows.presence)
    votes, prior_kinds = rows.nu.copy(), rows.kinds.copy()
    _settle(model, rows, votes, unknown, SETTLING_ROUNDS, mapper)
    if model.estimates.votes is not None:
        means = weigh_votes(model, rows, mapper)
        rows.kinds = prior_kinds
        _settle_votes(model, rows, votes, means, unknown, mapper)


def _settle(
    model: LatentModel,
    rows: Rows,
    votes: FloatArray,
    unknown: BoolArray,
    n_rounds: int,
    mapper: Mapper,
    left: FloatArray | None = None,
) -> None:
    """Turn rows from their prior to their posterior, in turns with their zeros; ``left`` is what is left of votes."""
    zeros, prior_kinds = model.estimates.zeros, rows.kinds
    assert zeros is not None
    for _ in range(n_rounds):
        rows.kinds = prior_kinds.copy()
        model.condition(rows, mapper)
        weigh_zeros(model, rows, votes, zeros, unknown, mapper)
        if left is not None:
            rows.nu[:] = votes * left
    rows.kinds = prior_kinds.copy()
    model.condition(rows, mapper)


def _settle_votes(
    model: LatentModel, rows: Rows, votes: FloatArray, means: VoteMeans, unknown: BoolArray, mapper: Mapper
) -> VoteMeans:
    """The posterior of rows that have so many votes left, and what it then says about votes."""
    _settle(model, rows, votes, unknown, VOTE_ROUNDS, mapper, means.left / means.predicted.shape[1])
    means = weigh_votes(model, rows, mapper)
    rows.overlooked = np.where(unknown, means.overlooked, 1 - rows.presence)
    return means


def pattern_losses(model: LatentModel, prior: Rows, unknown: BoolArray, rng: np.random.Generator) -> FloatArray:
    """How badly a model predicts whether one cell of each of these new rows is 0, from the rest of the row.

    0 where the row would have nothing left without that cell.
    """
    zeros, at = model.estimates.zeros, np.arange(len(unknown))
    assert zeros is not None
    positive = prior.shares > 0
    left = hide_again(prior.shares, positive | unknown, rng)
    is_out = left != (positive | unknown)
    can_play, cell = is_out.any(axis=1), is_out.argmax(axis=1)
    rows = prior.chosen(at, renormalised(prior.shares, left), prior.observed & left)
    settle(model, rows, unknown & left)
    if model.estimates.curve is None:
        chances, _ = chances_of_zero(model.estimates, rows, model.exponents(zeros, rows.nu))
        predicted = zeros.predicted(chances[at, cell], cell)
    else:
        predicted = _predicted_by_curve(model, rows, cell)
    return np.where(can_play, log_losses(predicted, unknown[at, cell]), 0)


def _predicted_by_curve(model: LatentModel, rows: Rows, cell: IntArray) -> FloatArray:
    """How likely one cell of each row is hidden by its share. Draws that are weighed as if it were tell that too."""
    curve = model.estimates.curve
    assert curve is not None
    rng = np.random.default_rng(PATTERN_SEED)
    draws = Draws.shared(rng, PATTERN_DRAWS, rows.shares.shape[1])
    D, weights = weighted_shares(model, rows, slice(None), draws, None, rng)
    return 1 / (weights / curve.hidden(D[np.arange(len(cell)), cell])).sum(axis=1)
