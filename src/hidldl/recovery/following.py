"""A learner that follows a recovery and is trained only when a prediction needs it."""

from typing import Any

from hidldl.arrays import FloatArray
from hidldl.learner import Learner


class FollowingLearner:
    """Trains ``learner`` on recovered rows at first use, once, and then drops the training data.

    A recoverer holds one of these instead of a fitted learner, so that ``fit`` does no training that may never be
    needed and ``predict`` leaves the recoverer's own attributes as they are.
    """

    def __init__(self, learner: Learner, X: Any, D: FloatArray) -> None:
        self._learner = learner
        # Copies, so that changes of the caller's arrays between fit and predict have no effect.
        self._training: tuple[Any, FloatArray] | None = (X.copy(), D.copy())

    @classmethod
    def already_trained(cls, learner: Learner) -> "FollowingLearner":
        """Wrap a learner that is already trained."""
        following = cls.__new__(cls)
        following._learner, following._training = learner, None
        return following

    def trained(self) -> Learner:
        """The learner, trained."""
        if self._training is not None:
            self._learner.fit(*self._training)
            self._training = None
        return self._learner
