"""Tests of what runs in PyTorch: on a card where there is one, else on the CPU, with Triton's interpreter."""

import os

import pytest


def has_card():
    try:
        import torch
    except ImportError:
        return False
    return torch.cuda.is_available()


if not has_card():
    # Before a kernel is imported, which is when it asks for its compiler.
    os.environ["TRITON_INTERPRET"] = "1"


@pytest.fixture
def device():
    torch = pytest.importorskip("torch", reason="needs PyTorch: pip install 'hidldl[gpu]'")
    return torch.device("cuda" if has_card() else "cpu")
