"""Fit how shares decide what is handed in, on top of a fit for which all labels are hidden alike."""

from dataclasses import replace

import numpy as np

from hidldl.recovery.fitting import Fit, Rounds, climb
from hidldl.recovery.hidingcurve import HidingCurve, evidence_of_label_rates, evidence_of_slope, says_something
from hidldl.recovery.scatter import scatters_as_counts

MASK_ROUNDS = 25
CLEAR_SLOPE = 4.0
"""How many standard deviations a flat curve must be refuted by."""
SMALLEST_STEEPNESS = {False: 0.15, True: 0.45}
"""A flatter curve hides labels nearly uniformly, and no model is exact enough to tell, with exact zeros even less."""


def fit_hiding(fit: Fit, *, tol: float, always: bool = False) -> Fit:
    """The fit that also takes account of how shares decide what is handed in, if the masks say that they do."""
    model, rounds = fit.model, fit.rounds
    if not always and not says_something(rounds.observed):
        return fit
    zeros = scatters_as_counts(rounds.shares, rounds.observed, rounds.nu)
    start = replace(model.estimates, curve=HidingCurve.flat(rounds.observed, zeros))
    evidence = evidence_of_slope(rounds.sums(start).mask)
    if not always and evidence < CLEAR_SLOPE:
        return fit
    # Labels with rates of their own, whatever their shares are, may explain the masks as well.
    without, n_before = rounds.evidence[-1] + evidence_of_label_rates(rounds.observed), len(rounds.evidence)
    current, changes, _ = climb(rounds, start, MASK_ROUNDS, tol)
    is_flat = current.curve is None or current.curve.steepness < SMALLEST_STEEPNESS[zeros]
    if not always and (is_flat or rounds.evidence[-1] < without):
        return fit
    model = replace(model, estimates=current)
    rows, _ = rounds.posterior(model)
    change = np.concatenate([fit.history["change"], changes])
    evidences = np.array(rounds.evidence[n_before:]) + rounds.entropy
    history = {"change": change, "evidence": np.concatenate([fit.history["evidence"], evidences])}
    return Fit(model, rows, history, fit.converged, rounds)


def fit_hiding_of_zeros(fit: Fit, *, tol: float, always: bool = False) -> Fit:
    """As ``fit_hiding``, where nobody knows which zeros are hidden, but hardly any is a true one: then all are."""
    all_hidden = _with_hidden_zeros(fit)
    by_share = fit_hiding(all_hidden, tol=tol, always=always)
    if by_share is all_hidden:
        return fit
    estimates = replace(by_share.model.estimates, zeros=fit.model.estimates.zeros)
    return replace(by_share, model=replace(by_share.model, estimates=estimates))


def _with_hidden_zeros(fit: Fit) -> Fit:
    """The same model for rows whose zeros are all hidden."""
    old, parameters = fit.rounds, fit.rounds.parameters
    presence = old.observed.astype(np.float64)
    table = (old.features, old.shares, old.observed, presence, old.nu)
    rounds = Rounds(*table, parameters, old.regression, old.mapper)
    # Without the rows' residuals their prior would not leave them out, and the evidence for a flat curve be too high.
    rounds.residuals, rounds.weights = old.residuals.copy(), np.where(old.observed, old.weights, 0)
    rows, evidence = rounds.posterior(fit.model)
    rounds.evidence.append(float(evidence.mean()))
    return replace(fit, rows=rows, rounds=rounds)
