"""Rows under the logistic-normal model of ``latent``: their labels, their prior, and their posterior."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from hidldl.arrays import BoolArray, FloatArray, IntArray
from hidldl.recovery.absence import Absences
from hidldl.simplex import clip_and_close


@dataclass
class Rows:
    """Prior and posterior of rows: mean and scale of the prior, and per kind its probability and the mode's weights.

    ``nu`` is each row's weight, ``kinds`` is (rows, kinds) and ``weights`` (kinds, rows, labels). ``presence`` is 1
    where a label is observed, 0 where it is hidden, and in between where a zero may be either. ``overlooked`` is how
    likely labels were overlooked, where votes say more about that than ``presence``.
    """

    shares: FloatArray
    observed: BoolArray
    nu: FloatArray
    mean: FloatArray
    scale: FloatArray
    kinds: FloatArray
    weights: FloatArray
    presence: FloatArray
    overlooked: FloatArray | None = None
    logits: FloatArray | None = None

    @property
    def hidden_probability(self) -> FloatArray:
        """How likely each label was overlooked."""
        return 1 - self.presence if self.overlooked is None else self.overlooked

    def part(self, block: slice) -> "Rows":
        """Views of some of the rows."""
        return Rows(
            self.shares[block],
            self.observed[block],
            self.nu[block],
            self.mean[block],
            self.scale[block],
            self.kinds[block],
            self.weights[:, block],
            self.presence[block],
            logits=None if self.logits is None else self.logits[block],
        )

    def chosen(self, at: IntArray, shares: FloatArray, observed: BoolArray) -> "Rows":
        """Some of the rows, with other labels."""
        mean, scale, kinds = self.mean[at], self.scale[at], self.kinds[at]
        presence = np.where(observed, 1, np.where(self.observed[at], 0, self.presence[at]))
        logits = None if self.logits is None else self.logits[at]
        return Rows(shares, observed, self.nu[at], mean, scale, kinds, self.weights[:, at], presence, logits=logits)

    def there(self, absences: Absences | None) -> "Rows":
        """The same rows as those of the labels that are surely there; their kinds and weights are the same arrays."""
        if absences is None:
            return self
        shares, there = absences.gap.there(self.shares, self.observed)
        return replace(self, shares=shares, observed=there, presence=there.astype(np.float64))

    def of_kinds(self, chosen: IntArray) -> "Rows":
        """The same rows with some of the kinds, in that order."""
        return replace(self, kinds=clip_and_close(self.kinds[:, chosen]), weights=self.weights[chosen])

    @property
    def seen(self) -> FloatArray:
        """How often each label is observed."""
        return np.asarray(self.observed.mean(axis=0))

    def __len__(self) -> int:
        return len(self.shares)

    @property
    def has_doubts(self) -> bool:
        """Whether some zeros may be hidden or true."""
        return bool((~self.observed & (self.presence > 0)).any())

    def drawn_masks(self, lots: FloatArray) -> Iterator[BoolArray]:
        """Masks in which zeros are true where their lots, (rows or 1, m, masks), are below their presence."""
        for k in range(lots.shape[2]):
            yield self.observed | (lots[:, :, k] < self.presence)

    def with_mask(self, observed: BoolArray) -> "Rows":
        """The same rows with a mask that is known; their modes are still to be found."""
        weights = np.where(observed, self.weights, 0)
        return replace(self, observed=observed, presence=observed.astype(np.float64), weights=weights)
