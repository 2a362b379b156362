"""Where computation runs if not with NumPy: PyTorch, on the CPU or on an NVIDIA card. PyTorch is an extra, ``gpu``."""

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np

from hidldl.arrays import Tensor

INSTALL = "pip install 'hidldl[gpu]'"


def resolved_device(device: Any) -> Any:
    """The device of PyTorch by that name, or None: NumPy and compiled code. "auto" is a card, or None without one."""
    if device is None or (device == "auto" and find_spec("torch") is None):
        return None
    if not isinstance(device, str):
        raise ValueError(f'device must be None, "auto", "cpu", "cuda" or "cuda:N", got {device!r}.')
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            f'device="{device}" needs PyTorch: install it with {INSTALL}, or leave device out.'
        ) from error
    n_cards = torch.cuda.device_count()
    if device == "auto":
        return torch.device("cuda") if n_cards else None
    kind, _, number = device.partition(":")
    if kind not in ("cpu", "cuda") or (number and not number.isdecimal()) or (kind == "cpu" and number):
        raise ValueError(f'device must be None, "auto", "cpu", "cuda" or "cuda:N", got {device!r}.')
    if kind == "cuda" and int(number or 0) >= n_cards:
        raise ValueError(f'device="{device}", but PyTorch finds {n_cards} NVIDIA cards; choose another, or "auto".')
    return torch.device(device)


def device_without(obstacles: dict[str, bool], device: Any) -> Any:
    """As ``resolved_device``, for work that needs something; "auto" is None where that is missing."""
    missing = [need for need, is_missing in obstacles.items() if is_missing]
    found = None if device == "auto" and missing else resolved_device(device)
    if found is not None and missing:
        raise ValueError(f'device="{device}" needs {missing[0]}; give that, or leave device out.')
    return found


def on_device(array: Any, device: Any) -> Tensor:
    """A copy of the array there."""
    import torch

    return torch.tensor(np.ascontiguousarray(array), device=device)


def sparse_on_device(starts: Any, columns: Any, values: Any, device: Any) -> Tensor:
    """The square sparse matrix in CSR layout there, from its three arrays."""
    import torch

    n_rows = len(starts) - 1
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse ")
        return torch.sparse_csr_tensor(
            torch.as_tensor(starts, device=device),
            torch.as_tensor(columns, device=device),
            torch.as_tensor(values, device=device),
            size=(n_rows, n_rows),
            check_invariants=False,
        )


def has_triton() -> bool:
    """Whether kernels can be written in Triton; PyTorch has it on Linux only."""
    return find_spec("triton") is not None
