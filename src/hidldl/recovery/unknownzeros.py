"""Fit the model where nobody knows which zeros are hidden.

A zero that was overlooked with probability w is present in its row with weight 1 - w: the fit alternates between rounds
of EM with these weights, and the weights given the model (``zerorates`` says how). That is deterministic, and a round
costs little more than with a known mask; masks drawn anew in every round would add noise and time. Results draw masks
(``posterior``), so that they have the uncertainty of the masks too.
"""

from dataclasses import replace

import numpy as np

from hidldl.arrays import BoolArray, FloatArray
from hidldl.parallel import Mapper, for_each
from hidldl.recovery.fitting import Fit, climb, fit_latent_model
from hidldl.recovery.kernelmean import Ridge
from hidldl.recovery.latent import LatentModel, Parameters, Rows, work_blocks
from hidldl.recovery.zerochances import chances_of_zero
from hidldl.recovery.zerorates import ZeroRates
from hidldl.selection import hide_again, renormalised

EM_ROUNDS = 3
"""Rounds of EM between two rounds of weights: two, and a leap."""
MOST_ROUNDS = 40
STANDSTILL = 5e-4
"""Mean change of the weights at which they stand still."""
SETTLING_ROUNDS = 5
LEAST_MASS = 0.05
"""A row weighs at least so much of its votes, however much is taken for hidden."""
LEAST_PRESENCE = 1e-6
"""What is less present than this is hidden."""


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
    mapper: Mapper = map,
) -> Fit:
    """As ``fit_latent_model``, and how present unknown zeros are, from ``presence`` on.

    EM makes ``first_rounds`` before the first round of weights: many where the first presence is likely the last.
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
    model.condition(rows, mapper)
    history = {"change": np.array(changes), "evidence": np.array(rounds.evidence) + rounds.entropy}
    return Fit(model, rows, history, converged, rounds)


def weigh_zeros(
    model: LatentModel, rows: Rows, votes: FloatArray, zeros: ZeroRates, unknown: BoolArray, mapper: Mapper = map
) -> FloatArray:
    """Set how present unknown zeros are, by the rest of their rows, and how much rows weigh that had so many votes.

    Returns the chances of zero of all cells.
    """
    chances = np.empty_like(rows.mean)

    def weigh(block: slice) -> None:
        part = rows.part(block)
        chances[block], mass = chances_of_zero(model.estimates, part, zeros.exponents(part.nu))
        present = 1 - zeros.hidden(chances[block])
        present[present < LEAST_PRESENCE] = 0
        rows.presence[block] = np.where(unknown[block], present, part.presence)
        if zeros.finest is None:
            rows.nu[block] = votes[block] * np.maximum(mass, LEAST_MASS)

    for_each(mapper, weigh, work_blocks(*rows.mean.shape))
    return chances


def settle(model: LatentModel, rows: Rows, unknown: BoolArray | None, mapper: Mapper = map) -> None:
    """The posterior of new rows and of their unknown zeros, if there are any."""
    zeros = model.estimates.zeros
    if zeros is not None:
        unknown = np.zeros_like(rows.observed) if unknown is None else unknown
        rows.presence = np.where(unknown, 1 - zeros.rates, rows.presence)
        votes, prior_kinds = rows.nu.copy(), rows.kinds
        for _ in range(SETTLING_ROUNDS):
            rows.kinds = prior_kinds.copy()
            model.condition(rows, mapper)
            weigh_zeros(model, rows, votes, zeros, unknown, mapper)
        rows.kinds = prior_kinds.copy()
    model.condition(rows, mapper)


def pattern_losses(model: LatentModel, prior: Rows, unknown: BoolArray, rng: np.random.Generator) -> FloatArray:
    """How badly a model foretells whether one cell of each of these new rows is 0, from the rest of the row.

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
    chances, _ = chances_of_zero(model.estimates, rows, zeros.exponents(rows.nu))
    return np.where(can_play, zeros.losses(chances[at, cell], cell, unknown[at, cell]), 0)
