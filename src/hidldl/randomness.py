"""Random numbers from a seed; NumPy's global stream is never read or advanced."""

from typing import TypeAlias

import numpy as np

RandomState: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def random_generator(random_state: RandomState) -> np.random.Generator:
    """A generator of its own for a seed, a generator, or an old-style random state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    return np.random.default_rng(random_state)
