"""What figures show beside evaluations: recovered rows and residuals, fitted again."""

import warnings

import numpy as np

from hidldl.arrays import FloatArray
from hidldl.datasets.loading import load_dataset
from hidldl.experiments.paper import PAPER_ALPHAS
from hidldl.experiments.protocol import Condition
from hidldl.hiding import hide_labels
from hidldl.learners.ldllrr import LDLLRR
from hidldl.metrics import MEASURES
from hidldl.recovery.hidldl import HidLDL
from hidldl.recovery.incomldl import IncomLDL

RATE = 0.5
"""Share of labels that are hidden in these figures; the mask is that of the first repetition."""


def typical_row(dataset: str) -> dict[str, FloatArray]:
    """A row of the dataset whose recovery by HidLDL is of median quality, as several methods recover it."""
    data = load_dataset(dataset)
    truth = np.asarray(data.distributions)
    seed = Condition("recovery", dataset, RATE, 0).seed
    D_obs, observed = hide_labels(truth, rate=RATE, random_state=seed)
    chebyshev = MEASURES["chebyshev"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        best = {
            kind: min(
                (m.raw_distributions_ for m in kind().alpha_path(PAPER_ALPHAS, data.features, D_obs, observed)),
                key=lambda D: chebyshev(truth, D),
            )
            for kind in (HidLDL, IncomLDL)
        }
        ranked = LDLLRR(random_state=seed).fit(data.features, D_obs).predict(data.features)
    errors = chebyshev.rows(truth, best[HidLDL])
    row = int(np.argsort(errors, kind="stable")[len(errors) // 2])
    matrices = {"ground truth": truth, "HidLDL": best[HidLDL], "IncomLDL": best[IncomLDL], "LDL-LRR": ranked}
    return {name: matrix[row] for name, matrix in matrices.items()}


def residuals(dataset: str) -> dict[str, FloatArray]:
    """Algorithm 1's residuals on the dataset with HidLDL's default parameters."""
    data = load_dataset(dataset)
    seed = Condition("recovery", dataset, RATE, 0).seed
    D_obs, observed = hide_labels(data.distributions, rate=RATE, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return HidLDL().fit(data.features, D_obs, observed).history_
