"""A learner that follows a recovery and is trained only if somebody asks for a prediction."""

from typing import Any

from hidldl.arrays import FloatArray
from hidldl.base import Learner


class FollowingLearner:
    """Trains ``learner`` on recovered rows at first use, once, and then lets go of the training data.

    A recoverer holds one of these instead of a fitted learner, so that ``fit`` costs no training that nobody
    needs and ``predict`` leaves the recoverer's own attributes as they are.
    """

    def __init__(self, learner: Learner, X: Any, D: FloatArray) -> None:
        self._learner = learner
        # Copies: what becomes of the caller's arrays between fit and predict must not matter.
        self._training: tuple[Any, FloatArray] | None = (X.copy(), D.copy())

    @classmethod
    def already_trained(cls, learner: Learner) -> "FollowingLearner":
        """With a learner that needs no training any more."""
        following = cls.__new__(cls)
        following._learner, following._training = learner, None
        return following

    def trained(self) -> Learner:
        """The learner, trained."""
        if self._training is not None:
            self._learner.fit(*self._training)
            self._training = None
        return self._learner
