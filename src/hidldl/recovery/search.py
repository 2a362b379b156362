"""The walk over candidates that tunes ``BayesHidLDL``; ``heldout`` has the game in which they play."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from hidldl.arrays import FloatArray
from hidldl.recovery.latent import Parameters
from hidldl.recovery.lostvotes import Votes
from hidldl.selection import THIN_EVIDENCE, clearly_better


@dataclass(frozen=True)
class Choice:
    """A point of the grid on which the search walks."""

    nu: float = 1024.0
    ridge: float = 10.0
    width: float = 1.0
    standardize: bool = True
    prior_rows: float = 1.0
    ordered: bool = False
    n_components: int = 1
    n_landmarks: int = 500
    learn_distance: bool = False
    absent_labels: bool = False

    def parameters(self, n_labels: int) -> Parameters:
        """The choice in the units of the model; ``prior_rows`` counts rows per label here."""
        prior_rows = self.prior_rows * n_labels
        return Parameters(self.nu, self.ridge, prior_rows, self.ordered, self.n_components, self.absent_labels)


ALONG_WITH_OTHERS = {"ordered", "n_landmarks", "learn_distance", "absent_labels"}
"""Parameters that are chosen only where others are: they refine a choice."""
AXES: dict[str, tuple[float, ...]] = {
    "nu": (1.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0),
    "ridge": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 10000.0),
    "width": (0.1, 0.3, 1.0, 3.0, 10.0),
    "prior_rows": (0.25, 1.0, 4.0),
}
NU_STEP = 4
"""The factor between values of nu."""
MANY_LABELS = 20
"""With so many labels, their covariance may have to follow the data closely, and neighbours may vary together."""
VERY_MANY_LABELS = 64
"""With so many labels, candidates take long, and a row tells much: fewer candidates and rows are enough."""
WEAK_PRIORS = (0.004, 0.016, 0.06, *AXES["prior_rows"])
STRONG_PRIORS = (1.0, 4.0, 16.0, 64.0)
WIDE_STEPS = {"ridge": (0.1, 1.0, 10.0, 100.0, 1000.0, 10000.0), "width": (0.1, 1.0, 10.0)}
"""With very many labels, rows tell more than features do, and values between these change little."""
MORE_LANDMARKS, WORTH_THE_TIME = 1000, 1.0
"""They take twice the time, so they must be better by so many standard errors."""
LARGEST_RIDGE_FOR_MORE = 3.0
"""With a stronger one, means are so smooth that they need few landmarks."""
LARGEST_RIDGE_TO_LEARN = 1.0
"""With a stronger one, the features tell too little to learn distances from."""
MOST_ROWS_FOR_MORE = 20_000
"""Beyond, the features of the kernel take too much memory and time."""

Axes: TypeAlias = dict[str, tuple[float, ...]]
KINDS = (2, 4, 8)
"""Numbers of kinds of rows to try beside one; each costs as much as so many candidates."""
WORTH_A_TRIAL, WORTH_MORE_TRIALS = 0.02, 0.1
"""With very many labels, candidates take long: the part by which the loss must fall for one to be chosen, and for more
kinds to be tried."""
ROWS_PER_KIND = 40
"""Fewest rows that play for each kind."""
WORTH_MORE_KINDS = 2.0
"""Standard errors by which more kinds must be better than one: the best of three looks better by chance alone."""
SEVERAL_LABELS = 12
"""From so many labels on, the largest number of kinds takes too long to try."""

Losses: TypeAlias = Callable[[Choice], FloatArray]
"""Each playing row's loss under a choice."""
UPHILL = 1.0
"""A step that is worse by so many standard errors ends a direction of the walk."""
FEW_ROWS, PROOF = 300, 1.2
"""Below so many rows, a model must be better than a simple one by so many standard errors."""
COARSE_SHARES = 16.0
"""Another start of nu. Exact shares and votes of a few people are two valleys with a hill between them."""
LEARNS_NOTHING = {"nu": 4.0, "ridge": 10000.0}
"""Parameters with which recovered rows hardly differ, whatever their labels and features are."""


def search(
    losses: Losses,
    distances: Losses,
    start: Choice,
    settings: Collection[str],
    n_rows: int,
    n_labels: int,
    *,
    votes: Votes | None = None,
    can_lack: Callable[[Choice], bool] = lambda best: False,
    fair_losses: Losses | None = None,
    lacks: Callable[[Choice, Choice, Votes | None], bool] = lambda lacking, best, votes: False,
) -> Choice:
    """The best choice that differs from ``start`` in parameters that are not settings of the user.

    Numbers of kinds differ by little, so they are chosen by ``distances``, the part of the losses with less chance.
    Shares of ``votes`` are no more exact than their number, whatever the losses say: rows that play lose a label or
    two, and where they had lost many before, that hardly tells coarse shares from exact ones. ``can_lack`` says whether
    rows may lack labels, given the best choice for rows that have all. Choices in which they do are compared by
    ``fair_losses``, and ``lacks`` says whether the best of them is better.
    """
    axes = {name: values for name, values in AXES.items() if name not in settings}
    if votes is not None and "nu" in axes:
        axes["nu"] = tuple(nu for nu in axes["nu"] if nu < NU_STEP * votes.number)
        start = replace(start, nu=min(COARSE_SHARES, axes["nu"][-1]))
    if n_labels >= VERY_MANY_LABELS:
        return search_many(losses, axes, start, settings)
    if n_labels >= MANY_LABELS and "prior_rows" in axes:
        axes["prior_rows"] = WEAK_PRIORS
    best = _search_one_kind(losses, axes, start, settings, n_rows, n_labels, has_votes=votes is not None)
    if "absent_labels" not in settings and can_lack(best):
        lacking = choose_absent(fair_losses or losses, axes, best)
        best = lacking if lacks(lacking, best, votes) else best
    if "n_components" in settings or best.absent_labels:
        return best
    n_playing = len(losses(best))
    most = min(n_playing // ROWS_PER_KIND, KINDS[-1 if n_labels < SEVERAL_LABELS else -2])
    return choose_kinds(distances, best, [number for number in KINDS if number <= most])


def _search_one_kind(
    losses: Losses,
    axes: Axes,
    start: Choice,
    settings: Collection[str],
    n_rows: int,
    n_labels: int,
    *,
    has_votes: bool,
) -> Choice:
    """The best choice for rows of one kind, from ``start`` or, where shares may be coarse, from coarse ones."""
    kernels = (start.standardize,) if "standardize" in settings else (True, False)
    if "nu" in axes and not has_votes:
        coarse = replace(start, nu=COARSE_SHARES)
        start = coarse if clearly_better(losses(coarse), losses(start)) else start
    best = search_shape(losses, axes, start, kernels)
    if n_labels >= MANY_LABELS and "ordered" not in settings:
        best = choose_order(losses, axes, best)
    if "learn_distance" not in settings and best.ridge <= LARGEST_RIDGE_TO_LEARN:
        best = choose_distance(losses, axes, best)
    can_need_more = MORE_LANDMARKS <= n_rows <= MOST_ROWS_FOR_MORE and best.ridge <= LARGEST_RIDGE_FOR_MORE
    if "n_landmarks" not in settings and can_need_more:
        more = replace(best, n_landmarks=MORE_LANDMARKS)
        best = more if clearly_better(losses(more), losses(best), WORTH_THE_TIME) else best
    return best


def search_many(losses: Losses, axes: Axes, start: Choice, settings: Collection[str]) -> Choice:
    """As ``search``, with fewer candidates, since each takes longer, and a row with many labels tells more.

    Whether labels have an order comes first, since that decides which priors are worth a trial. Steps are wider, and
    features as they are and more kinds must be better by more than a proof.
    """
    axes = {name: WIDE_STEPS.get(name, values) for name, values in axes.items()}
    best = start
    if "ordered" not in settings:
        other = replace(start, ordered=True)
        best = other if _is_proven(losses, other, start) else start
    if "prior_rows" in axes:
        axes = axes | {"prior_rows": STRONG_PRIORS if best.ordered else WEAK_PRIORS}
    best = search_shape(losses, axes, best, (start.standardize,))
    if "standardize" not in settings:
        other = replace(best, standardize=not best.standardize)
        if _gain(losses, other, best) > WORTH_A_TRIAL:
            shape = {name: values for name, values in axes.items() if name in ("ridge", "width")}
            best = _walk(losses, shape, other)
    most = 0 if "n_components" in settings else min(len(losses(best)) // ROWS_PER_KIND, KINDS[-2])
    for number in (number for number in KINDS if number <= most):
        other = replace(best, n_components=number)
        gain = _gain(losses, other, best)
        best = other if gain > WORTH_A_TRIAL else best
        if gain <= WORTH_MORE_TRIALS:
            break
    return best


def _gain(losses: Losses, choice: Choice, other: Choice) -> float:
    """The part by which the loss falls from the other choice to this one."""
    return float(1 - losses(choice).mean() / losses(other).mean())


def search_shape(losses: Losses, axes: Axes, start: Choice, kernels: tuple[bool, ...]) -> Choice:
    """Walk from ``start`` along one axis after the other for as long as that is clearly better.

    Starting at a safe choice and moving only on evidence avoids extreme choices where data are few. If a model that
    learns nothing, in effect the mean fill, is better than the end of the walk, a second walk starts there. Features
    that are not standardised need another ridge and width, so they get a walk of their own.
    """
    best = _walk(losses, axes, replace(start, standardize=kernels[0]))
    baseline = best
    for name, value in LEARNS_NOTHING.items():
        baseline = _moved(baseline, name, value) if name in axes else baseline
    if losses(baseline).mean() < losses(best).mean():
        best = min(best, _walk(losses, axes, baseline), key=lambda choice: losses(choice).mean())
    for standardize in kernels[1:]:
        shape = {name: values for name, values in axes.items() if name in ("ridge", "width")}
        other = _walk(losses, shape, replace(best, standardize=standardize))
        if clearly_better(losses(other), losses(best)):
            best = other
    return best if _is_proven(losses, best, baseline) else baseline


def choose_order(losses: Losses, axes: Axes, best: Choice) -> Choice:
    """Whether labels that are side by side vary together, if that is clearly better; it needs a stronger prior."""
    prior: Axes = {"prior_rows": STRONG_PRIORS} if "prior_rows" in axes else {}
    start = replace(best, ordered=True, prior_rows=STRONG_PRIORS[0] if prior else best.prior_rows)
    other = _walk(losses, prior, start)
    return other if _is_proven(losses, other, best) else best


def choose_distance(losses: Losses, axes: Axes, best: Choice) -> Choice:
    """Learned distances, unless they are clearly worse.

    No proof is asked for: in the game they are learned from fewer rows, which makes them worse than they will be. They
    need a stronger ridge, since they bring rows together that are alike.
    """
    shape = {name: values for name, values in axes.items() if name == "ridge"}
    learned = replace(best, learn_distance=True)
    ridges = [ridge for ridge in shape.get("ridge", ()) if ridge > best.ridge][:1]
    trials = [learned, *(replace(learned, ridge=ridge) for ridge in ridges)]
    learned = _walk(losses, shape, min(trials, key=lambda choice: float(losses(choice).mean())))
    return best if clearly_better(losses(best), losses(learned), UPHILL) else learned


def choose_absent(losses: Losses, axes: Axes, best: Choice) -> Choice:
    """The best choice for rows that may lack labels. Which labels they have hangs on the features mostly."""
    shape = {name: values for name, values in axes.items() if name == "ridge"}
    return _walk(losses, shape, replace(best, absent_labels=True, nu=axes["nu"][-1] if "nu" in axes else best.nu))


def choose_kinds(losses: Losses, best: Choice, numbers: Sequence[int]) -> Choice:
    """The number of kinds of rows with the lowest loss, which is here the distance alone; one, without good evidence.

    The largest takes longest, so it is tried only if the number before it is not clearly worse than the best so far.
    """
    chosen = best
    for number in numbers:
        before = replace(best, n_components=KINDS[-2])
        if number == KINDS[-1] and clearly_better(losses(chosen), losses(before), UPHILL):
            break
        chosen = min(chosen, replace(best, n_components=number), key=lambda choice: float(losses(choice).mean()))
    return chosen if clearly_better(losses(chosen), losses(best), WORTH_MORE_KINDS) else best


def _is_proven(losses: Losses, choice: Choice, simple: Choice) -> bool:
    """Whether a choice is better than a simple one; where few rows play, chance alone makes one look better."""
    few = len(losses(choice)) < FEW_ROWS
    return choice == simple or clearly_better(losses(choice), losses(simple), PROOF if few else THIN_EVIDENCE)


def _walk(losses: Losses, axes: Axes, start: Choice) -> Choice:
    best, moved = start, True
    while moved:
        moved = False
        for name, values in axes.items():
            for direction in (-1, 1):
                while (further := _further(losses, best, name, values, direction)) is not None:
                    best, moved = further, True
    return best


def _further(losses: Losses, best: Choice, name: str, values: tuple[float, ...], direction: int) -> Choice | None:
    """The first of the next two values that is clearly better: a gentle slope may take two steps to show."""
    position = values.index(getattr(best, name))
    for stride in (1, 2):
        if 0 <= position + stride * direction < len(values):
            candidate = _moved(best, name, values[position + stride * direction])
            if clearly_better(losses(candidate), losses(best)):
                return candidate
            if clearly_better(losses(best), losses(candidate), UPHILL):
                return None
    return None


def _moved(choice: Choice, name: str, value: Any) -> Choice:
    return replace(choice, **{name: value})
