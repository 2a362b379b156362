"""MeanFill: the proportional mean fill, the baseline that everything must beat."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from hidldl.arrays import BoolArray, FloatArray
from hidldl.base import Recoverer
from hidldl.validation import AUTO, check_number


class MeanFill(Recoverer):
    """Proportional mean fill: hidden labels get what the average row gives them.

    With mu the mean of the completed rows, a row's hidden labels receive their entries of mu and its observed
    labels take the rest, in their own proportions; mu is recomputed until it no longer changes. It uses no features
    and has nothing to tune, yet it is hard to beat where rows are alike.

    Parameters
    ----------
    max_iter : int, default=1000
        Most rounds.
    tol : float, default=1e-8
        Stop when no entry of the mean changes by more than this.

    Attributes
    ----------
    mean_ : array of shape (m,)
        The mean distribution, which is also what ``predict`` returns for every row.
    distributions_, raw_distributions_ : array or DataFrame of shape (n, m)
        Recovered rows: on the simplex, and proportional to what was observed.
    hidden_mass_, scaling_ : array or Series of shape (n,)
        How much of each row the hidden and the observed labels hold.
    observed_ : boolean array or DataFrame of shape (n, m)
        Which shares were observed.
    history_ : dict
        ``"change"``: largest change of the mean in each round.
    n_iter_, converged_ : int, bool
        How many rounds ran, and whether ``tol`` was reached.

    Examples
    --------
    >>> import numpy as np
    >>> from hidldl import MeanFill
    >>> D_obs = np.array([[0.5, 0.3, 0.2], [0.625, 0.375, np.nan]])
    >>> model = MeanFill().fit(np.zeros((2, 1)), D_obs)
    >>> model.distributions_.round(6)
    array([[0.5, 0.3, 0.2],
           [0.5, 0.3, 0.2]])
    """

    saved_attributes = ("mean_",)

    def __init__(self, max_iter: int = 1000, tol: float = 1e-8) -> None:
        self.max_iter = max_iter
        self.tol = tol

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        check_number(self.max_iter, "max_iter", at_least=1, integer=True)
        check_number(self.tol, "tol", at_least=0)

    def _recover(self, prepared: Any, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
        # The mean of the completed rows needs only the mask and D_obs, so the rounds build no n × m matrix.
        hidden = (~observed).astype(D_obs.dtype)
        self._find_mean(hidden.mean(axis=0), D_obs.mean(axis=0), lambda mean: rest(hidden, mean) @ D_obs / len(D_obs))
        return filled(D_obs, hidden, self.mean_)

    def _find_mean(
        self, hidden_rate: FloatArray, mean: FloatArray, observed_mean: Callable[[FloatArray], FloatArray]
    ) -> None:
        """Set the mean of rows that are completed with it; ``observed_mean`` is what observed labels have of it."""
        changes: list[float] = []
        converged = False
        while not converged and len(changes) < self.max_iter:
            updated = hidden_rate * mean + observed_mean(mean)
            updated /= updated.sum()
            changes.append(float(np.abs(updated - mean).max()))
            converged = bool(changes[-1] <= max(self.tol, float(np.finfo(mean.dtype).eps)))
            mean = updated
        self.mean_ = mean
        self._record_convergence(
            {"change": np.array(changes)}, converged, f"the mean still changes by {changes[-1]:.2g}"
        )

    def _fit_on_cluster(self, X: Any, D_obs: Any, observed: Any, votes: Any) -> Self:
        """As ``fit``; each round adds up the partitions' parts of the mean."""
        from hidldl.recovery.table_dask import ClusterTable, keep_results, part_of_mean, part_of_recovery

        self.__dict__.pop("label_names_", None)
        table = ClusterTable(self, X, D_obs, observed, votes, zeros=AUTO)
        self._check_parameters(*table.shape)
        labels, (seen, shares) = table.without_features(), (side / len(table) for side in table.survey[:2])
        self._find_mean(
            (1 - seen).astype(table.dtype),
            shares.astype(table.dtype),
            lambda mean: labels.total(part_of_mean, mean, combine=sum) / len(table),
        )
        keep_results(self, table, labels.map(part_of_recovery, self.mean_, clone(self)))
        return self

    def _predict(self, X: Any) -> FloatArray:
        return np.tile(self.mean_, (X.shape[0], 1))


def filled(D_obs: FloatArray, hidden: FloatArray, mean: FloatArray) -> FloatArray:
    """Rows completed with the mean; ``hidden`` is 1 where it is needed."""
    return np.where(hidden, mean, rest(hidden, mean)[:, None] * D_obs)


def rest(hidden: FloatArray, mean: FloatArray) -> FloatArray:
    """What hidden labels leave to the observed ones; never less than 0, as rounding has it."""
    return np.asarray(np.maximum(1 - hidden @ mean, 0))
