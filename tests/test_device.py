"""The parameter ``device``: what it may be, and what it says where PyTorch or a card is missing."""

import sys
from types import SimpleNamespace

import pytest

from hidldl import BayesHidLDL, HidLDL
from hidldl.device import resolved_device


def with_cards(monkeypatch, n_cards):
    torch = SimpleNamespace(cuda=SimpleNamespace(device_count=lambda: n_cards), device=lambda name: name)
    torch.__spec__ = SimpleNamespace(name="torch")
    monkeypatch.setitem(sys.modules, "torch", torch)


@pytest.mark.parametrize("method", [HidLDL, BayesHidLDL])
def test_without_pytorch_the_error_names_the_extra(hidden, monkeypatch, method):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ImportError, match=r"pip install 'hidldl\[gpu\]'"):
        method(device="cuda").fit(hidden.X, hidden.D_obs, hidden.observed)


def test_auto_is_none_without_pytorch(monkeypatch):
    monkeypatch.setattr("hidldl.device.find_spec", lambda name: None)
    assert resolved_device("auto") is None
    assert resolved_device(None) is None


def test_auto_is_a_card_where_there_is_one(monkeypatch):
    with_cards(monkeypatch, 1)
    assert resolved_device("auto") == resolved_device("cuda") == "cuda"
    with_cards(monkeypatch, 0)
    assert resolved_device("auto") is None


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "cpu:1", "", 0, True])
def test_other_names_are_refused(monkeypatch, name):
    with_cards(monkeypatch, 1)
    with pytest.raises(ValueError, match="device must be"):
        resolved_device(name)


def test_a_card_that_is_not_there_is_refused(monkeypatch):
    with_cards(monkeypatch, 1)
    assert resolved_device("cuda:0") == "cuda:0"
    with pytest.raises(ValueError, match="finds 1 NVIDIA"):
        resolved_device("cuda:1")
