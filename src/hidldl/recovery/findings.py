"""What the fitted model says about a table, in sentences."""

from collections.abc import Sequence

import numpy as np

from hidldl.arrays import FloatArray
from hidldl.recovery.latent import Estimates
from hidldl.recovery.zerorates import ZeroRates

CLEAR_OFFSET = 0.25
"""A kind has more of a label if its log-share is higher by this than on average: by a quarter."""
MOST_NAMED = 2
MOST_RATES = 10


def describe(estimates: Estimates, label_names: Sequence[str]) -> list[str]:
    """How labels are overlooked, and which kinds of rows there are, where there is something to say."""
    sentences = []
    if estimates.curve is not None and estimates.curve.slope > 0:
        sentences.append(
            "small shares are overlooked more than large ones, and the recovery allows for that: when a share doubles, "
            f"the odds that it is handed in grow {2**estimates.curve.slope:.1f}-fold"
        )
    if estimates.zeros is not None:
        sentences.append(_overlooked(estimates.zeros, label_names))
    if estimates.votes is not None:
        sentences.append(
            f"complete rows are shares of {estimates.votes.number} votes; rows with fewer lost them on labels that "
            "were overlooked"
        )
    if estimates.absences is not None:
        typical = estimates.absences.typical_number
        sentences.append(
            f"rows lack labels, which then have 0 or next to nothing: a row has about {typical:.1f} of "
            f"{len(label_names)}, and which ones was told before their shares"
        )
    kinds = describe_kinds(estimates, label_names)
    if kinds:
        shares = estimates.shares_of_kinds
        listed = (f"kind {k} ({100 * share:.0f} %) {kinds[k - 1]}" for k, share in enumerate(shares, start=1))
        sentences.append(f"rows are of {len(kinds)} kinds: {'; '.join(listed)}")
    return sentences


def _overlooked(zeros: ZeroRates, label_names: Sequence[str]) -> str:
    """How often labels are overlooked, those first that are most."""
    order = np.argsort(-zeros.rates, kind="stable")[:MOST_RATES]
    rates = [f"{label_names[j]} {100 * zeros.rates[j]:.0f} ± {200 * zeros.errors[j]:.0f} %" for j in order]
    rates += ["..."] if len(label_names) > MOST_RATES else []
    kind = "some zeros are true" if zeros.finest is None else "hardly any zero is a true one"
    inferred = f"nobody said which zeros are hidden, so that was inferred: {kind}"
    return f"{inferred}; estimated part of the rows in which each label is overlooked: {', '.join(rates)}"


def describe_kinds(estimates: Estimates, label_names: Sequence[str]) -> list[str]:
    """What each kind has more and less of than the average row; empty if there is only one."""
    if len(estimates.offsets) == 1:
        return []
    centre = estimates.shares_of_kinds @ estimates.offsets
    return [_differences(offset - centre, label_names) for offset in estimates.offsets]


def _differences(offset: FloatArray, label_names: Sequence[str]) -> str:
    """The labels that a kind has more of, and less of, than the average row with the same features."""
    order = np.argsort(offset, kind="stable")
    more = [label_names[j] for j in order[::-1][:MOST_NAMED] if offset[j] > CLEAR_OFFSET]
    less = [label_names[j] for j in order[:MOST_NAMED] if offset[j] < -CLEAR_OFFSET]
    words = [f"{how} {' and '.join(names)}" for how, names in (("more", more), ("less", less)) if names]
    return f"with {', '.join(words)}" if words else "near the average, but varies in another way"
