"""Label distribution learning with hidden labels.

Annotators overlook labels, and what they overlook inflates the rest: the row still sums to 1, so nothing
looks missing. This package recovers the complete distributions. Everything public can be imported from here;
names are loaded on first use, so that ``import hidldl`` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hidldl.base import Learner, Recoverer
    from hidldl.datasets.dataset import Dataset
    from hidldl.datasets.generated import make_distributions
    from hidldl.datasets.loading import list_datasets, load_dataset
    from hidldl.datasets.table import load_table
    from hidldl.experiments.protocol import register_dataset, register_method
    from hidldl.hiding import hide_labels
    from hidldl.learners.ldldpa import LDLDPA
    from hidldl.learners.ldllrr import LDLLRR
    from hidldl.learners.ptbayes import PTBayes
    from hidldl.learners.sabfgs import SABFGS
    from hidldl.learners.saiis import SAIIS
    from hidldl.metrics import MEASURES, Measure, score
    from hidldl.recovery.bayeshidldl import BayesHidLDL
    from hidldl.recovery.hidldl import HidLDL
    from hidldl.recovery.incomldl import IncomLDL
    from hidldl.recovery.incomldlprox import IncomLDLProx
    from hidldl.recovery.ldlldm import LDLLDM
    from hidldl.recovery.meanfill import MeanFill
    from hidldl.recovery.selftuned import SelfTuned
    from hidldl.recovery.winldl import WInLDL
    from hidldl.reports.plots import plot_hidden_mass, plot_path, plot_recovery
    from hidldl.reports.reproduction import reproduce
    from hidldl.saving import load_model, save_model
    from hidldl.selection import Selection
    from hidldl.theory import recovery_bound

_HOME_OF = {
    "BayesHidLDL": "recovery.bayeshidldl",
    "Dataset": "datasets.dataset",
    "HidLDL": "recovery.hidldl",
    "IncomLDL": "recovery.incomldl",
    "IncomLDLProx": "recovery.incomldlprox",
    "LDLDPA": "learners.ldldpa",
    "LDLLDM": "recovery.ldlldm",
    "LDLLRR": "learners.ldllrr",
    "Learner": "base",
    "MEASURES": "metrics",
    "MeanFill": "recovery.meanfill",
    "Measure": "metrics",
    "PTBayes": "learners.ptbayes",
    "Recoverer": "base",
    "SABFGS": "learners.sabfgs",
    "SAIIS": "learners.saiis",
    "Selection": "selection",
    "SelfTuned": "recovery.selftuned",
    "WInLDL": "recovery.winldl",
    "hide_labels": "hiding",
    "list_datasets": "datasets.loading",
    "load_dataset": "datasets.loading",
    "load_model": "saving",
    "load_table": "datasets.table",
    "make_distributions": "datasets.generated",
    "plot_hidden_mass": "reports.plots",
    "plot_path": "reports.plots",
    "plot_recovery": "reports.plots",
    "recovery_bound": "theory",
    "register_dataset": "experiments.protocol",
    "register_method": "experiments.protocol",
    "reproduce": "reports.reproduction",
    "save_model": "saving",
    "score": "metrics",
}

__all__ = [
    "LDLDPA",
    "LDLLDM",
    "LDLLRR",
    "MEASURES",
    "SABFGS",
    "SAIIS",
    "BayesHidLDL",
    "Dataset",
    "HidLDL",
    "IncomLDL",
    "IncomLDLProx",
    "Learner",
    "MeanFill",
    "Measure",
    "PTBayes",
    "Recoverer",
    "Selection",
    "SelfTuned",
    "WInLDL",
    "hide_labels",
    "list_datasets",
    "load_dataset",
    "load_model",
    "load_table",
    "make_distributions",
    "plot_hidden_mass",
    "plot_path",
    "plot_recovery",
    "recovery_bound",
    "register_dataset",
    "register_method",
    "reproduce",
    "save_model",
    "score",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME_OF[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
