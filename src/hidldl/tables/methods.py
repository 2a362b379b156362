"""The methods by the names that users give them. Each is imported when it is made, so that a help page is quick."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hidldl.base import Recoverer
    from hidldl.tables.planning import Options

ALPHAS = [10.0**exponent for exponent in range(-5, 2)]
"""What the methods of the incomplete setting choose from."""


def _bayes() -> "Recoverer":
    from hidldl import BayesHidLDL

    return BayesHidLDL()


def _hidldl() -> "Recoverer":
    from hidldl import HidLDL

    return HidLDL(alpha="auto", sigma="auto")


def _meanfill() -> "Recoverer":
    from hidldl import MeanFill

    return MeanFill()


def _incomldl() -> "Recoverer":
    from hidldl import IncomLDL, SelfTuned

    return SelfTuned(IncomLDL(), {"alpha": ALPHAS})


def _incomldlprox() -> "Recoverer":
    from hidldl import IncomLDLProx, SelfTuned

    return SelfTuned(IncomLDLProx(), {"alpha": ALPHAS})


def _winldl() -> "Recoverer":
    from hidldl import WInLDL

    return WInLDL()


def _ldlldm() -> "Recoverer":
    from hidldl import LDLLDM

    return LDLLDM()


METHODS: dict[str, Callable[[], "Recoverer"]] = {
    "bayes": _bayes,
    "hidldl": _hidldl,
    "meanfill": _meanfill,
    "incomldl": _incomldl,
    "incomldlprox": _incomldlprox,
    "winldl": _winldl,
    "ldlldm": _ldlldm,
}
"""What can be chosen without ground truth is."""


def make_model(options: "Options") -> "Recoverer":
    """The recoverer that the options name, with the parameters that they give."""
    from hidldl import BayesHidLDL, SelfTuned
    from hidldl.errors import TableError
    from hidldl.tables.sources import quoted

    if options.method not in METHODS:
        raise TableError(f"there is no method {quoted(options.method)}; choose from {', '.join(METHODS)}.")
    model = METHODS[options.method]()
    inner = model._tuned if isinstance(model, SelfTuned) else model
    unknown = [name for name in options.parameters if name not in inner.get_params()]
    if unknown:
        known = ", ".join(inner.get_params())
        raise TableError(f"{options.method} has no parameter {quoted(unknown[0])}; its parameters are {known}.")
    inner.set_params(**options.parameters)
    if "alpha" in options.parameters:
        model = inner  # nothing is left to tune
    if options.level is not None and not isinstance(model, BayesHidLDL):
        raise TableError("intervals need the method bayes; leave out --intervals, or choose it.")
    common = {"random_state": options.random_state, "n_jobs": options.n_jobs}
    present = model.get_params(deep=False)
    return model.set_params(**{name: value for name, value in common.items() if name in present})
