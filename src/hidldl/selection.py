"""Choose parameters without ground truth: hide some observed labels again, recover them, and compare.

Everything compared is data that the user has. All candidates get the same masks, losses are compared row by row, and
where the evidence is thin the safe choice stays.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from hidldl.arrays import BoolArray, FloatArray, IntArray
from hidldl.metrics import MEASURES
from hidldl.notebook import selection_html
from hidldl.progress import Progress, count, silent
from hidldl.simplex import clip_and_close

Candidate: TypeAlias = dict[str, Any]
"""Parameters by name."""
Recovery: TypeAlias = Callable[[Candidate, FloatArray, BoolArray], FloatArray]
"""Recovered rows for a candidate, from observed shares and their mask."""

MEASURE = "kl"
"""A proper score: the true distribution has the lowest expected loss."""
N_DRAWS = 4
SHARE_OF_ROWS = 0.5
"""Share of the rows that lose a label in a draw: the rest keeps the table as informative as it is."""
SMALLEST_SHARE = 1e-6
"""Recovered shares count at least this much, or a single 0 would decide the Kullback–Leibler divergence."""
LOST = 1e6
"""The loss of a row on which a candidate diverged: larger than the values of any measure."""
SURELY_LOST = 1e-3 * LOST
"""Mean losses beyond this have such rows in them."""
FEWEST_ROWS = 12
"""With fewer rows that can lose a label, losses are too uncertain, and the safe choice stays."""
N_BOOTSTRAP = 500
MOST_RESAMPLED = 5000
TRIALS = "choosing parameters, trials"
"""The text of progress during the rounds of the game."""
THIN_EVIDENCE = 0.5
"""An improvement counts if it exceeds this many of its standard errors; below, the safe choice stays."""


def play(
    recover: Recovery,
    candidates: Sequence[Candidate],
    shares: FloatArray,
    observed: BoolArray,
    *,
    measure: str,
    n_draws: int,
    rng: np.random.Generator,
    mapper: Callable[..., Iterable[Any]] = map,
    progress: Progress = silent,
) -> FloatArray:
    """The re-hiding game: each candidate's mean loss (first axis) in each row that lost a label in some draw."""
    masks = [_keep_every_label(hide_again(shares, observed, rng, SHARE_OF_ROWS), observed) for _ in range(n_draws)]
    rounds = [(candidate, mask) for candidate in candidates for mask in masks]

    def loss(candidate: Candidate, mask: BoolArray) -> FloatArray:
        recovered = recover(candidate, renormalised(shares, mask), mask)
        return judge(recovered, shares, observed, measure)

    judged = np.array([(mask != observed).any(axis=1) for mask in masks])
    times = judged.sum(axis=0)
    results = count(mapper(loss, *zip(*rounds, strict=True)), progress, len(rounds), TRIALS)
    losses = np.array(list(results)).reshape(len(candidates), n_draws, -1)
    in_play = times > 0
    return (losses * judged).sum(axis=1)[:, in_play] / times[in_play]


def judge(recovered: FloatArray, shares: FloatArray, observed: BoolArray, measure: str) -> FloatArray:
    """Each row's loss: what was recovered, over the labels that had been observed, against what was observed."""
    diverged = np.logical_not(np.isfinite(recovered).all(axis=1, keepdims=True))
    recovered_shares = renormalised(np.maximum(np.where(diverged, 0, recovered), SMALLEST_SHARE), observed)
    values = MEASURES[measure].compute(shares, recovered_shares).astype(np.float64)
    return np.where(diverged[:, 0], LOST, -values if MEASURES[measure].higher_is_better else values)


def enough_rows(losses: FloatArray) -> bool:
    """Whether enough rows played for a choice."""
    return losses.shape[1] >= FEWEST_ROWS


def choose(losses: FloatArray, safe: int | None = None) -> int:
    """The candidate with the lowest mean loss, or the safe one if nothing is clearly better."""
    best = int(losses.mean(axis=1).argmin())
    if safe is None or clearly_better(losses[best], losses[safe]):
        return best
    return safe


def hide_again(
    shares: FloatArray,
    observed: BoolArray,
    rng: np.random.Generator,
    share_of_rows: float = 1.0,
    odds: FloatArray | float = 1.0,
    n_lost: IntArray | int = 1,
) -> BoolArray:
    """The mask with ``n_lost`` more labels hidden, drawn at random, in rows that keep a positive share without them.

    One label by default: where much is hidden already, rows that lost half of the rest would hardly be informative. A
    label is drawn in proportion to its ``odds``.
    """
    # The largest of u^(1/w) is that of weight w with probability w / sum of all (Efraimidis and Spirakis 2006).
    lottery = np.where(observed, np.log(np.maximum(rng.random(shares.shape), 1e-300)) / odds, -np.inf)
    ranks = np.argsort(np.argsort(-lottery, axis=1, kind="stable"), axis=1)
    kept = observed & (ranks >= np.broadcast_to(n_lost, len(shares))[:, None])
    loses = np.where(kept, shares, 0).sum(axis=1) > np.finfo(shares.dtype).eps
    loses &= rng.random(len(shares)) < share_of_rows
    return np.where(loses[:, None], kept, observed)


def renormalised(D: FloatArray, mask: BoolArray) -> FloatArray:
    """Rows over the labels of the mask only, summing to 1 again: as an annotator who saw only these hands them in."""
    return clip_and_close(np.where(mask, D, 0))


@dataclass(frozen=True)
class Selection:
    """The candidates, the chosen parameters and how sure the choice is.

    Attributes
    ----------
    measure : str
        Name of the measure of which the loss is the mean.
    candidates : DataFrame
        One row per candidate, best first: its parameters, its mean ``loss``, how much worse than the chosen one that
        is (``excess``, negative for one that is better by too little to count) and the standard error of that
        difference over rows (``standard_error``). All three are infinite for a candidate that diverged.
    chosen : dict
        The chosen parameters.
    confidence : float
        Share of bootstrap resamples of the rows in which no candidate beats the chosen one.
    n_rows : int
        Rows in which an observed label was hidden again; losses are means over them.
    """

    measure: str
    candidates: pd.DataFrame
    chosen: dict[str, Any]
    confidence: float
    n_rows: int

    @classmethod
    def of(
        cls,
        candidates: Sequence[dict[str, Any]],
        losses: FloatArray,
        chosen: int,
        measure: str,
        rng: np.random.Generator,
    ) -> "Selection":
        """From the losses of each candidate (first axis) in each row."""
        n_rows = losses.shape[1]
        excess, error = paired_difference(losses, losses[chosen])
        diverged = (losses > SURELY_LOST).any(axis=1)
        figures = {"loss": losses.mean(axis=1), "excess": excess, "standard_error": error}
        table = cls._table(candidates).assign(**{name: np.where(diverged, np.inf, figures[name]) for name in figures})
        resamples = _bootstrap_means(losses, rng)
        rounding = 1e-12 * np.abs(resamples).max(initial=0)
        wins = resamples[:, chosen] <= resamples.min(axis=1) + rounding
        ranked = table.sort_values("loss", kind="stable").reset_index(drop=True)
        return cls(measure, ranked, dict(candidates[chosen]), float(wins.mean()), n_rows)

    @property
    def parameters(self) -> list[str]:
        """Names of the parameters."""
        return list(self.chosen)

    @property
    def diverged(self) -> "pd.Series[bool]":
        """Which candidates ended, at least once, with numbers that are not finite."""
        return self.candidates["loss"] == np.inf

    @property
    def is_choice(self) -> "pd.Series[bool]":
        """Which candidate is the choice."""
        return pd.concat([self.is_chosen(name) for name in self.parameters], axis=1).all(axis=1)

    def is_chosen(self, parameter: str) -> "pd.Series[bool]":
        """Which candidates have the chosen value of a parameter."""
        return self.candidates[parameter].map(self._rank) == self._rank(self.chosen[parameter])

    def values(self, parameter: str) -> list[Any]:
        """The values of a parameter that were tried, each once: numbers, booleans, anything else by its text, None."""
        values = {self._rank(value): value for value in self.candidates[parameter]}
        return [values[rank] for rank in sorted(values)]

    def is_numeric(self, parameter: str) -> bool:
        """Whether all values of a parameter that were tried are finite numbers, which have their place on a scale."""
        ranks = (self._rank(value) for value in self.candidates[parameter])
        return all(kind == 0 and np.isfinite(number) for kind, number, _ in ranks)

    def path(self, parameter: str) -> pd.DataFrame:
        """The candidates that differ from the choice in this parameter only, in the order of ``values``.

        Candidates that diverged are left out. The column ``chosen`` marks the choice.
        """
        others = [self.is_chosen(name) for name in self.parameters if name != parameter]
        on_path = np.logical_and.reduce([~self.diverged, *others])
        path = self.candidates.assign(chosen=self.is_chosen(parameter))[on_path]
        rank = path[parameter].map(self._rank).drop_duplicates().sort_values()
        return path.loc[rank.index].reset_index(drop=True)

    @staticmethod
    def _rank(value: Any) -> tuple[int, float, str]:
        """Equal for values that are the same, and their order otherwise; True is not 1."""
        if value is None or (isinstance(value, float) and np.isnan(value)):  # a table of numbers has NaN for None
            return 3, 0, ""
        if isinstance(value, bool | np.bool_):
            return 1, float(value), ""
        if isinstance(value, int | float | np.number):
            return 0, float(value), ""
        return 2, 0, str(value)

    @staticmethod
    def _table(candidates: Sequence[dict[str, Any]]) -> pd.DataFrame:
        """One column per parameter, in which None stays None: a column of numbers or words would turn it into NaN."""
        columns = pd.DataFrame(candidates, dtype=object)
        return pd.DataFrame(
            {name: column if column.isna().any() else column.infer_objects() for name, column in columns.items()}
        )

    def _repr_html_(self) -> str:
        return selection_html(self)


def _bootstrap_means(losses: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Means of the losses over resamples of the rows; many rows are resampled in groups."""
    if losses.shape[1] > MOST_RESAMPLED:
        starts = np.linspace(0, losses.shape[1], MOST_RESAMPLED, endpoint=False).astype(int)
        losses = np.add.reduceat(losses, starts, axis=1) / np.diff([*starts, losses.shape[1]])
    n = losses.shape[1]
    return np.array([losses @ rng.multinomial(n, np.full(n, 1 / n)) / n for _ in range(N_BOOTSTRAP)])


def _keep_every_label(mask: BoolArray, observed: BoolArray) -> BoolArray:
    """Give back a label that is hidden in every row: it could not be estimated."""
    return np.where(mask.any(axis=0), mask, observed)


def paired_difference(losses: FloatArray, reference: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean over rows of ``losses - reference``, and its standard error."""
    difference = losses - reference
    n_rows = difference.shape[-1]
    error = difference.std(axis=-1, ddof=1) / np.sqrt(n_rows) if n_rows > 1 else np.full(difference.shape[:-1], np.inf)
    return difference.mean(axis=-1), error


def clearly_better(losses: FloatArray, reference: FloatArray, evidence: float = THIN_EVIDENCE) -> bool:
    """Whether one candidate's losses are lower than another's by more than so many standard errors."""
    difference, error = paired_difference(losses, reference)
    return bool(difference < -evidence * error)
