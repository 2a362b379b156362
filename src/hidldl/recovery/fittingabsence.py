"""Fit which labels rows have, and then the shares of these labels."""

from dataclasses import replace
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import minimize
from scipy.special import logsumexp

from hidldl.arrays import BoolArray, FloatArray
from hidldl.recovery.absence import Absences, Gap, log_chances, sets_of
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
    center = _frequencies(chances)
    sets, (first, second) = sets_of(m) - center, np.triu_indices(m, 1)
    both = sets[:, first] * sets[:, second]
    n_columns = columns.shape[1]

    def parts(unknowns: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        coef, rest = unknowns[: n_columns * m].reshape(n_columns, m), unknowns[n_columns * m :]
        return coef, of_intercept * rest[:m], of_pairs * rest[m:]

    def loss(unknowns: FloatArray) -> tuple[float, FloatArray]:
        coef, intercept, pairs = parts(unknowns)
        logs = (columns @ coef + intercept) @ sets.T + both @ pairs
        before, after = (logsumexp(some, axis=1, keepdims=True) for some in (logs, logs + chances))
        weights = scales.T @ coef
        value = (before - after).sum() + penalty / 2 * (weights**2).sum() + PAIR_PENALTY / 2 * (pairs**2).sum()
        excess = np.exp(logs - before) - np.exp(logs + chances - after)
        by_label = excess @ sets
        by_coef = columns.T @ by_label + penalty * scales @ weights
        by_pairs = of_pairs * (excess.sum(axis=0) @ both + PAIR_PENALTY * pairs)
        return float(value), np.concatenate([by_coef.ravel(), of_intercept * by_label.sum(axis=0), by_pairs])

    options = {"maxiter": MOST_ROUNDS, "ftol": SMALLEST_GAIN}
    start = np.zeros((n_columns + 1) * m + len(first))
    coef, intercept, upper = parts(minimize(loss, start, jac=True, method="L-BFGS-B", options=options).x)
    pairs = np.zeros((m, m))
    pairs[first, second] = pairs[second, first] = upper
    return Absences(gap, np.asarray(scales.T @ coef), intercept - pairs @ center, pairs)


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
