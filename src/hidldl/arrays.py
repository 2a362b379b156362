"""Types of arrays, whose library an array is of, and its compact form."""

import sys
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import sparse

FloatArray: TypeAlias = npt.NDArray[np.floating[Any]]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntArray: TypeAlias = npt.NDArray[np.integer[Any]]

Tensor: TypeAlias = Any
"""A tensor of PyTorch, which is imported only where a device is asked for."""

COMPACT_DENSITY = 0.05
"""Share of non-zero features below which a dense matrix is worth converting."""


def namespace(array: Any) -> Any:
    """NumPy or PyTorch, whichever the array is of: code that takes its functions from here runs on either."""
    return np if isinstance(array, np.ndarray) else sys.modules["torch"]


def is_dask(*values: Any) -> bool:
    """Whether any of these is a collection of Dask, on a cluster; Dask, an extra, need not be there to tell."""
    return any(type(value).__module__.partition(".")[0] in ("dask", "dask_expr") for value in values)


def in_memory(values: Any) -> Any:
    """Tensors of PyTorch and arrays of CuPy, also those on a card, as NumPy arrays; everything else as it is."""
    if hasattr(values, "detach") and hasattr(values, "cpu"):
        return values.detach().cpu().numpy()
    if hasattr(values, "__cuda_array_interface__") and hasattr(values, "get"):
        return values.get()
    return values


def compact(X: Any) -> Any:
    """Checked features as a CSR matrix if nearly all of them are 0: their products are then many times cheaper."""
    if sparse.issparse(X) or np.count_nonzero(X) > COMPACT_DENSITY * X.size:
        return X
    return sparse.csr_array(X)
