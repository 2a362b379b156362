"""What the fitted model says about a table, in sentences."""

from collections.abc import Sequence

import numpy as np

from hidldl.arrays import FloatArray
from hidldl.recovery.latent import Estimates

CLEAR_OFFSET = 0.25
"""A kind has more of a label if its log-share is higher by this than on average: by a quarter."""
MOST_NAMED = 2


def describe(estimates: Estimates, label_names: Sequence[str]) -> list[str]:
    """How labels are overlooked, and which kinds of rows there are, where there is something to say."""
    sentences = []
    if estimates.curve is not None and estimates.curve.slope > 0:
        sentences.append(
            "small shares are overlooked more than large ones, and recovered as such: the odds that a label is handed "
            f"in grow {2**estimates.curve.slope:.1f}-fold where its share doubles"
        )
    if len(estimates.offsets) > 1:
        sentences.append(f"rows are of {len(estimates.offsets)} kinds: {_kinds(estimates, label_names)}")
    return sentences


def _kinds(estimates: Estimates, label_names: Sequence[str]) -> str:
    weights = estimates.shares_of_kinds
    centre = weights @ estimates.offsets
    order = np.argsort(-weights, kind="stable")
    return "; ".join(
        f"{weights[k]:.0%} {_differences(estimates.offsets[k] - centre, label_names)}" for k in order.tolist()
    )


def _differences(offset: FloatArray, label_names: Sequence[str]) -> str:
    """The labels that a kind has more of, and less of, than the average row with the same features."""
    order = np.argsort(offset, kind="stable")
    more = [label_names[j] for j in order[::-1][:MOST_NAMED] if offset[j] > CLEAR_OFFSET]
    less = [label_names[j] for j in order[:MOST_NAMED] if offset[j] < -CLEAR_OFFSET]
    words = [f"with {how} {' and '.join(names)}" for how, names in (("more", more), ("less", less)) if names]
    return ", ".join(words) or "near the average, which vary in another way"
