"""Every estimator in the registry of methods, and its disguise for scikit-learn's own checks.

scikit-learn's checks hand class labels or numbers as ``y``. The disguise turns them into distributions over three
labels and calls the second argument ``y``; it changes nothing else, so that each check runs on the estimator's own
code.
"""

import inspect
from typing import Any

import numpy as np
import numpy.typing as npt

from hidldl import BayesHidLDL, SelfTuned
from hidldl.methods import all_methods

RECOVERERS = [method.kind for method in all_methods() if method.role != "learner"]
LEARNERS = [method.kind for method in all_methods("learner")]
ESTIMATORS = RECOVERERS + LEARNERS

# A search along one axis is a search; all axes take seconds for each test.
MOSTLY_GIVEN: dict[type, dict[str, Any]] = {
    BayesHidLDL: {"ridge": 1.0, "width": 1.0, "standardize": True, "prior_rows": 1.0},
    SelfTuned: {"grid": {"alpha": [0.1, 10.0]}, "n_draws": 2},
}


def seeded(kind: Any, **parameters: Any) -> Any:
    """A quick estimator with a seed, and with those of the parameters that it has."""
    accepted = kind().get_params()
    given = MOSTLY_GIVEN.get(kind, {}) | {name: value for name, value in parameters.items() if name in accepted}
    return kind(**given, **({"random_state": 0} if "random_state" in accepted else {}))


def distributions_of(y: Any) -> Any:
    """Class labels as distributions; anything else, and what is invalid, as it is."""
    values = np.asarray(y)
    if y is None or values.ndim == 0 or (values.ndim == 2 and values.shape[1] > 1):
        return y
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        return y
    codes = np.unique(values.ravel().astype(str), return_inverse=True)[1]
    return _SMOOTH[codes % 3]


_SMOOTH: npt.NDArray[np.float64] = 0.6 * np.eye(3) + 0.4 / 3


def _disguise(estimator_class: Any) -> Any:
    class Disguised(estimator_class):  # type: ignore[misc]
        def fit(self, X: Any, y: Any) -> Any:
            return super().fit(X, distributions_of(y))

        def score(self, X: Any, y: Any) -> float:
            return float(super().score(X, distributions_of(y)))

    class DisguisedWithWeights(Disguised):
        # scikit-learn checks weights wherever fit has a parameter of this name.
        def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
            return estimator_class.fit(self, X, distributions_of(y), sample_weight)

    takes_weights = "sample_weight" in inspect.signature(estimator_class.fit).parameters
    chosen = DisguisedWithWeights if takes_weights else Disguised
    chosen.__name__ = chosen.__qualname__ = f"{estimator_class.__name__}OnLabels"
    # Where pickle looks for it.
    globals()[chosen.__name__] = chosen
    return chosen


DISGUISED = [_disguise(kind)(**MOSTLY_GIVEN.get(kind, {})) for kind in ESTIMATORS]
