"""DataFrames, read piece by piece as files are."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from hidldl.tables.cells import is_number


class InMemory:
    """A DataFrame, read like a file."""

    decimal = "."

    def __init__(self, frame: pd.DataFrame) -> None:
        self._frame = frame
        self.notes: list[str] = []
        self.columns = tuple(str(name) for name in frame.columns)

    def frames(self, rows: int, text: Collection[int] = ()) -> Iterator[pd.DataFrame]:
        """Pieces of at most so many rows; columns of numbers as they are, others as text."""
        for start in range(0, len(self._frame), rows):
            piece = self._frame.iloc[start : start + rows]
            columns = {j: _plain_column(piece.iloc[:, j], as_text=j in text) for j in range(piece.shape[1])}
            yield pd.DataFrame(columns, index=pd.RangeIndex(start + 1, start + len(piece) + 1))

    def originals(self, rows: int, columns: Sequence[int]) -> Iterator[pd.DataFrame]:
        """Pieces of some columns as they are."""
        for start in range(0, len(self._frame), rows):
            piece = self._frame.iloc[start : start + rows, list(columns)].set_axis(list(columns), axis=1)
            yield piece.set_axis(pd.RangeIndex(start + 1, start + len(piece) + 1))


def _plain_column(column: "pd.Series[Any]", *, as_text: bool) -> Any:
    if is_number(column.dtype) and not as_text:
        return column.to_numpy()
    if not as_text and isinstance(column.dtype, pd.api.extensions.ExtensionDtype) and column.dtype.kind in "biuf":
        return column.to_numpy(float, na_value=np.nan)
    texts = column.astype(object)
    return texts.where(texts.isna(), texts.map(str)).to_numpy(object)
