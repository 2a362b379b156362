"""Random numbers from a seed; NumPy's global stream is never read or advanced."""

from typing import TypeAlias

import numpy as np

from hidldl.arrays import IntArray

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None
MOST_SHUFFLED = 2**27
"""Rows whose positions are shuffled to choose some. Tables on a cluster may have more: a gigabyte of positions."""


def random_generator(random_state: RandomState) -> np.random.Generator:
    """A generator of its own for a seed, a generator, or an old-style random state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        wanted = "random_state must be an integer of 0 or more, a Generator, a RandomState or None"
        raise type(error)(f"{wanted}, got {random_state!r}.") from None


def some_rows(rng: np.random.Generator, n_rows: int, n_wanted: int) -> IntArray:
    """Positions of random rows, in order: so many, or all if there are fewer."""
    if n_rows > MOST_SHUFFLED:
        return np.sort(rng.choice(n_rows, n_wanted, replace=False, shuffle=False))
    return np.sort(rng.permutation(n_rows)[:n_wanted])
