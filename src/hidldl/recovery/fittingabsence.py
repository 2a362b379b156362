"""Fit which labels rows have, and then the shares of these labels."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from hidldl.arrays import BoolArray, FloatArray
from hidldl.recovery.absence import Absences, Gap, is_alone, log_alone, log_chances, sets_of
from hidldl.recovery.fitting import Fit, every_so_many, fit_latent_model
from hidldl.recovery.kernelmean import Ridge
from hidldl.recovery.latent import LatentModel, Parameters
from hidldl.recovery.posterior import Draws, drawn_sets
from hidldl.recovery.rows import Rows

MOST_ROWS = 4000
"""Rows that say which labels come together: so many tell enough, and each takes a look at all sets."""
CURVATURE = 0.25
"""A label that is there or not tells at most so much of what a number with a variance of 1 tells."""
PAIR_PENALTY = 1.0
MEAN_PENALTY = 400.0
"""Of what all pairs have in common, which says how rows differ in the number of their labels. Rows of which hardly more
than one label was handed in say next to nothing about that."""
MOST_ROUNDS, SMALLEST_GAIN = 100, 1e-5
FLOOR_SEED, FLOOR_DRAWS, FLOOR_ROUNDS = 17, 64, 20
LEAST_SPREAD = 0.01


def fit_model(
    features: FloatArray,
    shares: FloatArray,
    observed: BoolArray,
    parameters: Parameters,
    gap: Gap | None = None,
    *,
    regression: Ridge | None = None,
    presence: FloatArray | None = None,
    simple: Fit | None = None,
    **how: Any,
) -> Fit:
    """As ``fit_latent_model``, for rows that may lack labels where there is a ``gap``; masks are then known."""
    if gap is None:
        how |= {"regression": regression, "presence": presence, "simple": simple}
        return fit_latent_model(features, shares, observed, parameters, **how)
    regression = Ridge.of(features, parameters.ridge) if regression is None else regression
    absences = fit_absences(features, shares, observed, gap, regression, parameters.ridge)
    fit = fit_latent_model(features, *gap.there(shares, observed), parameters, regression=regression, **how)
    model = replace(fit.model, estimates=replace(fit.model.estimates, absences=absences))
    logits = absences.intercept + regression.fitted(features, absences.coef)
    rows = replace(fit.rows, shares=shares, observed=observed, presence=observed.astype(np.float64), logits=logits)
    return replace(fit, model=_with_floor(model, rows), rows=rows)


def fit_absences(
    features: FloatArray, shares: FloatArray, observed: BoolArray, gap: Gap, regression: Ridge, ridge: float
) -> Absences:
    """Which labels rows have, by penalised maximum likelihood, from as many rows as are enough."""
    at = slice(None, None, -(-len(shares) // MOST_ROWS))
    n_rows, m = shares[at].shape
    penalty = ridge * n_rows / len(shares) * CURVATURE
    # In units in which the loss has a curvature of about 1 in every direction.
    scales = solve_triangular(regression.factor, np.eye(len(regression.factor)), lower=True)
    scales /= np.sqrt(n_rows / len(shares) * CURVATURE)
    columns = regression.centred(features[at]) @ scales.T
    of_intercept, of_pairs = 1 / np.sqrt(n_rows * CURVATURE), 1 / (np.sqrt(n_rows) * CURVATURE)
    chances = log_chances(gap, shares[at], observed[at])
    alone = is_alone(gap, shares[at], observed[at])
    n_hidden, n_cells = _cells(observed[at]) if gap.zero else (0, 0)
    of_odds = 1 / np.sqrt(max(n_cells, 1) * CURVATURE)
    center = _frequencies(chances)
    sets, (first, second) = sets_of(m) - center, np.triu_indices(m, 1)
    both = sets[:, first] * sets[:, second]
    n_columns = columns.shape[1]

    def parts(unknowns: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        coef, rest = unknowns[: n_columns * m].reshape(n_columns, m), unknowns[n_columns * m :]
        return coef, of_intercept * rest[:m], of_pairs * rest[m:-1], float(of_odds * rest[-1])

    def loss(unknowns: FloatArray) -> tuple[float, FloatArray]:
        coef, intercept, pairs, log_odds = parts(unknowns)
        logs = (columns @ coef + intercept) @ sets.T + both @ pairs
        more = log_alone(log_odds, m)
        seen = logs + chances + alone[:, None] * more
        before, after = (logsumexp(some, axis=1, keepdims=True) for some in (logs, seen))
        weights = scales.T @ coef
        value = (before - after).sum() + penalty / 2 * (weights**2).sum() + PAIR_PENALTY / 2 * (pairs**2).sum()
        value += MEAN_PENALTY / 2 * pairs.mean() ** 2
        value += n_cells * np.logaddexp(0, log_odds) - n_hidden * log_odds
        likely = np.exp(seen - after)
        excess = np.exp(logs - before) - likely
        by_label = excess @ sets
        by_coef = columns.T @ by_label + penalty * scales @ weights
        by_pairs = excess.sum(axis=0) @ both + PAIR_PENALTY * pairs + MEAN_PENALTY * pairs.mean() / len(pairs)
        by_odds = n_cells * expit(log_odds) - n_hidden - (alone @ likely) @ -np.expm1(-more)
        gradient = by_coef.ravel(), of_intercept * by_label.sum(axis=0), of_pairs * by_pairs, [of_odds * by_odds]
        return float(value), np.concatenate(gradient)

    options = {"maxiter": MOST_ROUNDS, "ftol": SMALLEST_GAIN}
    start = np.zeros((n_columns + 1) * m + len(first) + 1)
    coef, intercept, upper, log_odds = parts(minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x)
    pairs = np.zeros((m, m))
    pairs[first, second] = pairs[second, first] = upper
    return Absences(gap, np.asarray(scales.T @ coef), intercept - pairs @ center, pairs, log_odds)


def _cells(observed: BoolArray) -> tuple[int, int]:
    """How many cells are hidden, and how many there are, in rows of which something was handed in."""
    some = observed[observed.any(axis=1)]
    return some.size - int(some.sum()), some.size


def _frequencies(chances: FloatArray) -> FloatArray:
    """How often labels are there, if all sets that rows can have are as likely."""
    likely = np.exp(chances - logsumexp(chances, axis=1, keepdims=True))
    return np.asarray(likely.mean(axis=0) @ sets_of(int(np.log2(chances.shape[1] + 1))))


def _with_floor(model: LatentModel, rows: Rows) -> LatentModel:
    """The model with what absent labels have, from rows in which some are seen."""
    absences = model.estimates.absences
    assert absences is not None
    at = np.flatnonzero(absences.gap.absent(rows.shares, rows.observed).any(axis=1))
    at = at[every_so_many(len(at))][:: -(-len(at) // MOST_ROWS) or 1]
    if absences.gap.zero or not len(at):
        return model
    some = rows.chosen(at, rows.shares[at], rows.observed[at])
    draws = Draws.shared(np.random.default_rng(FLOOR_SEED), FLOOR_DRAWS, rows.shares.shape[1])
    D, _ = model.draw(some, draws.normals, draws.noise)
    chosen, _ = drawn_sets(absences, some, draws, np.random.default_rng(FLOOR_SEED))
    there, held = absences.held(D, chosen)
    n_absent = np.count_nonzero(~there, axis=1)
    for _ in range(FLOOR_ROUNDS):
        logs, chances = absences.log_floors(held, n_absent, some.shares, some.observed)
        floor = float((chances * logs).sum(axis=1).mean())
        spread = float(np.sqrt((chances * (logs - floor) ** 2).sum(axis=1).mean()))
        absences = replace(absences, floor=floor, floor_spread=max(spread, LEAST_SPREAD))
    return replace(model, estimates=replace(model.estimates, absences=absences))
