# The public names, each listed once: `hidldl/__init__.py` loads them from here on first use, and type checkers read it.

from .base import Recoverer as Recoverer
from .datasets.dataset import Dataset as Dataset
from .datasets.generated import make_distributions as make_distributions
from .datasets.loading import list_datasets as list_datasets
from .datasets.loading import load_dataset as load_dataset
from .errors import DatasetUnavailableError as DatasetUnavailableError
from .errors import DivergenceError as DivergenceError
from .errors import ModelFileError as ModelFileError
from .errors import TableError as TableError
from .experiments.compare import compare as compare
from .experiments.protocol import register_dataset as register_dataset
from .experiments.reproduce import reproduce as reproduce
from .hiding import hide_labels as hide_labels
from .learner import Learner as Learner
from .learners.ldldpa import LDLDPA as LDLDPA
from .learners.ldllrr import LDLLRR as LDLLRR
from .learners.ptbayes import PTBayes as PTBayes
from .learners.sabfgs import SABFGS as SABFGS
from .learners.saiis import SAIIS as SAIIS
from .methods import register_method as register_method
from .metrics import MEASURES as MEASURES
from .metrics import Measure as Measure
from .metrics import score as score
from .recovery.bayeshidldl import BayesHidLDL as BayesHidLDL
from .recovery.hidldl import HidLDL as HidLDL
from .recovery.incomldl import IncomLDL as IncomLDL
from .recovery.incomldlprox import IncomLDLProx as IncomLDLProx
from .recovery.inferring import InferredMask as InferredMask
from .recovery.inferring import infer_observed as infer_observed
from .recovery.ldlldm import LDLLDM as LDLLDM
from .recovery.meanfill import MeanFill as MeanFill
from .recovery.selftuned import SelfTuned as SelfTuned
from .recovery.winldl import WInLDL as WInLDL
from .reports.plots import plot_hidden_mass as plot_hidden_mass
from .reports.plots import plot_path as plot_path
from .reports.plots import plot_recovery as plot_recovery
from .saving import load_model as load_model
from .saving import save_model as save_model
from .selection import Selection as Selection
from .tables.loading import load_table as load_table
from .tables.prediction import predict_table as predict_table
from .tables.recovery import recover_table as recover_table
from .tables.results import RecoveredTable as RecoveredTable
from .theory import recovery_bound as recovery_bound

__version__: str
