"""What a dataset is."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Dataset:
    """Features and label distributions that belong together.

    ``features`` is n × d, ``distributions`` is n × m. Both are arrays, or DataFrames with a common index where
    the rows have names of their own.
    """

    name: str
    features: Any
    distributions: Any
    feature_names: tuple[str, ...]
    label_names: tuple[str, ...]

    def __repr__(self) -> str:
        n_rows, n_features = self.features.shape
        return f"Dataset({self.name!r}: {n_rows} rows, {n_features} features, {len(self.label_names)} labels)"
