"""Datasets by name."""

from difflib import get_close_matches

import numpy as np

from hidldl.datasets.dataset import Dataset
from hidldl.datasets.files import fetch
from hidldl.datasets.registry import FILES, DatasetFile, find_entry, simplified
from hidldl.datasets.vader import VADER_NAME, load_vader


def list_datasets() -> list[str]:
    """Names that ``load_dataset`` knows: the paper's twelve, then those that come with a package."""
    return [*FILES, VADER_NAME]


def load_dataset(name: str) -> Dataset:
    """Load a dataset by the paper's name or a usual alias, whatever the case and punctuation.

    The paper's files are looked for in the folder that the environment variable ``HIDLDL_DATA`` names, then in
    the cache; what is in neither is downloaded from its public origin. Every file is verified before it is
    read. "VADER" needs no file: it ships inside the package vaderSentiment (``pip install 'hidldl[data]'``).

    Parameters
    ----------
    name : str
        One of ``list_datasets()``, or an alias such as "alpha", "SBU" or "Scene".

    Examples
    --------
    >>> from hidldl import load_dataset
    >>> load_dataset("VADER")
    Dataset('VADER': 7520 rows, 128 features, 9 labels)
    """
    if simplified(name) == simplified(VADER_NAME):
        return load_vader()
    entry = find_entry(name)
    if entry is None:
        close = get_close_matches(name, list_datasets(), n=1, cutoff=0.5)
        hint = f"Did you mean {close[0]!r}? " if close else ""
        raise ValueError(f"there is no dataset {name!r}. {hint}Known names: {', '.join(list_datasets())}.")
    return _read(entry)


def _read(entry: DatasetFile) -> Dataset:
    from scipy.io import loadmat

    content = loadmat(fetch(entry), variable_names=["features", entry.label_key])
    features = np.asarray(content["features"], dtype=np.float64)
    shares = np.asarray(content[entry.label_key], dtype=np.float64)
    return Dataset(
        name=entry.name,
        features=features,
        # Some files sum to 1 only within 1e-6.
        distributions=shares / shares.sum(axis=1, keepdims=True),
        feature_names=tuple(f"feature {j + 1}" for j in range(features.shape[1])),
        label_names=tuple(f"label {j + 1}" for j in range(shares.shape[1])),
    )
