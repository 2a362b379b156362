"""The registry of methods: shell, page, model files, experiments, tests and the API page look them up here.

A method of this package is one entry in ``HOUSE``. Other methods are added by ``register_method``, or by an entry point
of the group ``hidldl.methods`` in the package that brings them. Classes are imported when they are needed, so that
listing names is quick.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from hidldl.errors import warn_user

if TYPE_CHECKING:
    from hidldl.base import Recoverer
    from hidldl.learner import Learner

Role: TypeAlias = Literal["recoverer", "learner", "tuner"]
ENTRY_POINTS = "hidldl.methods"
DECADES = tuple(10.0**exponent for exponent in range(-5, 2))


@dataclass(frozen=True)
class Method:
    """A method as every part of the package knows it.

    Attributes
    ----------
    name : str
        What the shell calls it.
    title : str
        What tables and pages call it.
    home : str
        Where its class is: "module:class".
    summary : str
        What a reader should know, in one line.
    role : {"recoverer", "learner", "tuner"}
        A tuner is a recoverer that needs another one.
    parameters : dict
        Parameters with which it tunes itself, or which its author registered.
    grid : dict
        Values from which ``SelfTuned`` chooses, for a recoverer that does not tune itself.
    alphas : tuple of float
        A grid from which the oracle picks ``alpha`` in experiments.
    tells_zeros : bool
        Whether it tells hidden zeros from true ones (``can_tell_zeros``): tables ask before they load its class.
    """

    name: str
    title: str
    home: str
    summary: str
    role: Role = "recoverer"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    alphas: tuple[float, ...] = ()
    tells_zeros: bool = False

    @property
    def class_name(self) -> str:
        """The name of its class."""
        return self.home.partition(":")[2]

    @property
    def kind(self) -> Any:
        """Its class."""
        return _registered_classes.get(self.home) or _load(self.home)

    def make(self, parameters: Mapping[str, Any] | None = None) -> "Recoverer":
        """The recoverer with these parameters; the others are chosen without ground truth where that is possible."""
        settings = dict(parameters or {})
        model: Recoverer = self.kind(**self.parameters)
        unknown = [name for name in settings if name not in model.get_params(deep=False)]
        if unknown:
            names = ", ".join(model.get_params(deep=False))
            raise ValueError(f"{self.name} has no parameter {unknown[0]!r}; its parameters are {names}.")
        model.set_params(**settings)
        grid = {name: values for name, values in self.grid.items() if name not in settings}
        if not grid:
            return model
        from hidldl.recovery.selftuned import SelfTuned

        return SelfTuned(model, {name: list(values) for name, values in grid.items()})


HOUSE = (
    Method(
        "bayes",
        "BayesHidLDL",
        "hidldl.recovery.bayeshidldl:BayesHidLDL",
        "A statistical model that tunes itself and says how sure it is. Recommended.",
        tells_zeros=True,
    ),
    Method(
        "hidldl",
        "HidLDL",
        "hidldl.recovery.hidldl:HidLDL",
        "The paper's method. It chooses its parameters by trial, which takes longest.",
        parameters={"alpha": "auto", "sigma": "auto"},
    ),
    Method(
        "meanfill",
        "MeanFill",
        "hidldl.recovery.meanfill:MeanFill",
        "Hidden labels get what the average row gives them. It does not look at features.",
    ),
    Method(
        "incomldl",
        "IncomLDL",
        "hidldl.recovery.incomldl:IncomLDL",
        "A linear model of low rank that fills gaps. It takes the other shares as they are.",
        grid={"alpha": DECADES},
    ),
    Method(
        "incomldlprox",
        "IncomLDL-prox",
        "hidldl.recovery.incomldlprox:IncomLDLProx",
        "As IncomLDL, with weights of low rank.",
        grid={"alpha": DECADES},
    ),
    Method(
        "winldl",
        "WInLDL",
        "hidldl.recovery.winldl:WInLDL",
        "A linear model in which small shares count more. It takes the other shares as they are.",
    ),
    Method(
        "ldlldm",
        "LDL-LDM",
        "hidldl.recovery.ldlldm:LDLLDM",
        "A linear model that learns how labels go together. It takes the other shares as they are.",
    ),
    Method(
        "selftuned",
        "SelfTuned",
        "hidldl.recovery.selftuned:SelfTuned",
        "Any recoverer, with its parameters chosen without ground truth.",
        role="tuner",
    ),
    Method(
        "sabfgs",
        "SA-BFGS",
        "hidldl.learners.sabfgs:SABFGS",
        "Maximum entropy by L-BFGS: the usual learner of distributions.",
        role="learner",
    ),
    Method(
        "saiis",
        "SA-IIS",
        "hidldl.learners.saiis:SAIIS",
        "Maximum entropy by improved iterative scaling.",
        role="learner",
    ),
    Method(
        "ldllrr",
        "LDL-LRR",
        "hidldl.learners.ldllrr:LDLLRR",
        "Maximum entropy with a loss that keeps the order of labels.",
        role="learner",
    ),
    Method(
        "ldldpa",
        "LDL-DPA",
        "hidldl.learners.ldldpa:LDLDPA",
        "Maximum entropy with losses for the order of labels and their spread.",
        role="learner",
    ),
    Method(
        "ptbayes",
        "PT-Bayes",
        "hidldl.learners.ptbayes:PTBayes",
        "Naive Bayes on labels drawn from the distributions.",
        role="learner",
    ),
)
"""The methods of this package, in the order in which users see them."""

_registered: dict[str, Method] = {}
_registered_classes: dict[str, Any] = {}


def register_method(
    name: str,
    estimator: "Recoverer | Learner",
    alphas: tuple[float, ...] = (),
    *,
    title: str | None = None,
    summary: str | None = None,
) -> None:
    """Make a recoverer or learner of your own known to everything in this package.

    It appears in every comparison of ``reproduce`` and ``compare``; a recoverer can also be used by its name wherever a
    method can be chosen, and its fitted models can be saved and loaded. A package can do the same for its users with an
    entry point of the group ``hidldl.methods``.

    Parameters
    ----------
    name : str
        What to call it.
    estimator : Recoverer or Learner
        With its parameters; it is seeded where it has a ``random_state``.
    alphas : tuple of float, optional
        A grid from which the oracle picks ``alpha`` in experiments, as for HidLDL and IncomLDL in the paper.
    title : str, optional
        What tables and pages call it; the name by default.
    summary : str, optional
        What a reader should know, in one line; the first line of the class's docstring by default.

    Examples
    --------
    >>> from hidldl import HidLDL, register_method
    >>> register_method("HidLDL, alpha 16", HidLDL())
    """
    if not name or name in {method.name for method in HOUSE}:
        raise ValueError(f"name {name!r} is empty or one of this package's own methods; choose another.")
    _registered[name] = _describe(name, estimator, tuple(alphas), title, summary)


def registered_methods() -> tuple[Method, ...]:
    """The methods of other packages and of the user, in the order in which they were added."""
    own = {method.name for method in HOUSE}
    points = {point.name: point for point in _entry_points() if point.name not in own}
    from_packages = (_of_entry_point(point) for point in points.values() if point.name not in _registered)
    return (*filter(None, from_packages), *_registered.values())


def method_names() -> tuple[str, ...]:
    """The names of recoverers that can be chosen from, without importing any class."""
    ours, others = ([m.name for m in methods if m.role == "recoverer"] for methods in (HOUSE, _registered.values()))
    return tuple(dict.fromkeys([*ours, *(point.name for point in _entry_points()), *others]))


def find_method(name: str) -> Method:
    """The method of that name."""
    for method in HOUSE:
        if method.name == name:
            return method
    for method in registered_methods():
        if method.name == name:
            return method
    raise ValueError(f"there is no method {name!r}; choose from {', '.join(method_names())}.")


def make_recoverer(name: str, parameters: Mapping[str, Any] | None = None) -> "Recoverer":
    """The recoverer of that name with these parameters; see `Method.make`."""
    method = find_method(name)
    if method.role == "learner":
        raise ValueError(f"{name} is a learner, which recovers nothing; choose from {', '.join(method_names())}.")
    return method.make(parameters)


def all_methods(role: Role | None = None) -> tuple[Method, ...]:
    """Every method, of this package and of others, or those of one role."""
    return tuple(method for method in (*HOUSE, *registered_methods()) if role in (None, method.role))


def class_named(name: str) -> Any:
    """The class of that name, if a method has it; None otherwise. Model files refer to classes by these names."""
    # Those of this package first: they need no other package to be loaded.
    owner = next((method for method in (*HOUSE, *registered_methods()) if method.class_name == name), None)
    return None if owner is None else owner.kind


def _describe(
    name: str, estimator: Any, alphas: tuple[float, ...] = (), title: str | None = None, summary: str | None = None
) -> Method:
    """The entry for an estimator, with its parameters as they are now."""
    from hidldl.base import Recoverer
    from hidldl.learner import Learner

    if not isinstance(estimator, Recoverer | Learner):
        raise TypeError(
            f"the estimator of {name!r} must be a Recoverer or a Learner, such as MeanFill(), got {estimator!r}."
        )
    kind = type(estimator)
    home = f"{kind.__module__}:{kind.__qualname__}"
    same_name = next((m for m in HOUSE if m.class_name == kind.__qualname__ and m.home != home), None)
    if same_name is not None:
        raise ValueError(f"the class {kind.__qualname__} has the name of one of hidldl's own; give it another name.")
    _registered_classes[home] = kind
    first_line = (kind.__doc__ or "").strip().partition("\n")[0]
    return Method(
        name,
        title or name,
        home,
        summary or first_line,
        role="learner" if isinstance(estimator, Learner) else "recoverer",
        parameters=estimator.get_params(deep=False),
        alphas=alphas,
        tells_zeros=getattr(kind, "can_tell_zeros", False),
    )


@cache
def _entry_points() -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=ENTRY_POINTS))


@cache
def _of_entry_point(point: EntryPoint) -> Method | None:
    """The method of an entry point, which names a class, or an estimator with its parameters; None if it is broken."""
    try:
        target = point.load()
        estimator = target() if isinstance(target, type) else target
        return _describe(point.name, estimator, title=type(estimator).__name__)
    except Exception as error:  # a fault of another package must not stop everything else
        warn_user(f"the method {point.name!r} cannot be loaded ({error}); update or remove the package that brings it.")
        return None


def _load(home: str) -> Any:
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)
