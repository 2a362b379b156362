"""How often labels are overlooked, told from zeros of which nobody knows whether they are true.

A label j is overlooked with probability rate_j. One that is not, and holds the part q of it and the other labels of its
row, comes out as 0 with probability (1 - q)^exponent, as it would among so many votes. So a zero where much is expected
was overlooked, and a zero where little is expected may be either.

Where shares are those of nu votes, the exponent is how many of them the row still has: labels that were overlooked took
theirs away, so the row weighs less. Where shares are finer than votes, it is 1 / the smallest of them.
"""

from dataclasses import dataclass, replace

import numpy as np

from hidldl.arrays import BoolArray, FloatArray, IntArray

FIRST_RATE = 0.05
RATES = (1e-3, 0.999)
LEAST_KNOWN_RATE = 1e-12
"""What a user knows is taken at its word, but a zero that no share can explain must be overlooked."""
TIE = 0.3
"""How strongly the rate of a label leans on that of all, in tables: a label that is nearly always 0 says little."""


@dataclass(frozen=True)
class ZeroRates:
    """The rates, and their standard errors, which are 0 where the user gave the rates.

    ``finest`` is 1 / the smallest share, or None for shares of votes.
    """

    rates: FloatArray
    errors: FloatArray
    finest: float | None = None

    @classmethod
    def first(cls, n_labels: int, known: FloatArray | None, finest: float | None) -> "ZeroRates":
        """The rates that the user knows, or a first guess."""
        guess = np.full(n_labels, FIRST_RATE) if known is None else np.clip(known, LEAST_KNOWN_RATE, RATES[1])
        return cls(guess, np.full(n_labels, float(known is None)), finest)

    @classmethod
    def of_hidden(
        cls, unknown: BoolArray, observed: BoolArray, known: FloatArray | None, finest: float | None
    ) -> "ZeroRates":
        """The rates if every unknown zero is hidden."""
        return cls.first(unknown.shape[1], known, finest).improved(np.zeros(unknown.shape), unknown, observed)

    def fits(self, n_labels: int) -> bool:
        """Whether these can be rates of so many labels; those of a damaged file may not."""
        parts = (self.rates, self.errors, np.full(n_labels, self.finest or 1.0))
        in_range = (self.rates > 0) & (self.rates < 1)
        return all(part.shape == (n_labels,) and (part >= 0).all() for part in parts) and bool(in_range.all())

    @property
    def are_known(self) -> bool:
        """Whether the user gave the rates."""
        return not self.errors.any()

    def exponents(self, nu: FloatArray) -> FloatArray:
        """The exponent of each row, with these votes."""
        return nu if self.finest is None else np.full(len(nu), self.finest)

    def hidden(self, chances: FloatArray) -> FloatArray:
        """How likely zeros are hidden, given the chances that labels come out as 0 without being overlooked."""
        return np.asarray(self.rates / (self.rates + (1 - self.rates) * chances))

    def improved(self, chances: FloatArray, unknown: BoolArray, observed: BoolArray) -> "ZeroRates":
        """The rates again, from the zeros that they explain; their errors take the rest of the model as known.

        A row without unknown zeros tells all that was overlooked in it; in other rows, what is known to be hidden was
        hidden in another way.
        """
        if self.are_known:
            return self
        is_told = ~unknown.any(axis=1, keepdims=True)
        counts = unknown | observed | is_told
        hidden = np.where(unknown, self.hidden(chances), counts & ~observed)
        cells, n_hidden = counts.sum(axis=0), hidden.sum(axis=0)
        tie = TIE * cells.mean()
        rates = np.clip((n_hidden + tie * n_hidden.sum() / max(cells.sum(), 1)) / (cells + tie), *RATES)
        slope = np.where(
            unknown, (1 - chances) / (rates + (1 - rates) * chances), np.where(observed, 1 / (1 - rates), 0)
        )
        information = (slope**2).sum(axis=0) + (counts & ~observed & ~unknown).sum(axis=0) / rates**2
        return replace(self, rates=rates, errors=1 / np.sqrt(np.maximum(information, 1)))

    def predicted(self, chances: FloatArray, labels: IntArray) -> FloatArray:
        """How likely cells of these labels are 0."""
        rates = self.rates[labels]
        return np.asarray(rates + (1 - rates) * chances)


def log_losses(predicted: FloatArray, is_zero: BoolArray) -> FloatArray:
    """How badly it was predicted that cells are 0 or not; a proper score."""
    p = np.clip(predicted, 1e-12, 1 - 1e-12)
    return np.where(is_zero, -np.log(p), -np.log1p(-p))
