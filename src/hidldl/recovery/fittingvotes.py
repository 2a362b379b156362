"""Count the votes that rows lost with their hidden labels, on top of a fit whose masks are known."""

from dataclasses import replace

import numpy as np

from hidldl.recovery.fitting import Fit, every_so_many
from hidldl.recovery.lostvotes import Votes
from hidldl.recovery.posterior import predicted_votes


def fit_votes(fit: Fit, votes: Votes | None) -> Fit:
    """The fit in which every complete row has these votes, if it predicts in which rows many of them are left."""
    if votes is None:
        return fit
    at = np.arange(len(fit.rows))[every_so_many(len(fit.rows))]
    rows = fit.rows.chosen(at, fit.rows.shares[at], fit.rows.observed[at])
    if not votes.are_predicted(predicted_votes(fit.model, rows, votes.number), rows.shares):
        return fit
    return replace(fit, model=fit.model.with_votes(votes))
