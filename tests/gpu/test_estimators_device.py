"""``HidLDL`` and ``BayesHidLDL`` with a device: the results of those without one, as arrays on the host."""

import numpy as np
import pytest
from scipy import sparse

from hidldl import BayesHidLDL, HidLDL

GIVEN = {"nu": 50.0, "ridge": 1.0, "width": 1.0, "standardize": True, "prior_rows": 5.0, "ordered": False}
GIVEN |= {"n_components": 1, "n_landmarks": 30, "hiding": "uniform", "max_iter": 10, "random_state": 0}
MODELS = [HidLDL(4.0), HidLDL(4.0, sigma="auto", constraint=False), BayesHidLDL(**GIVEN)]
MODELS += [BayesHidLDL(**GIVEN, learn_distance=True)]
PRECISIONS = [(np.float64, 1e-8), (np.float32, 1e-4)]


@pytest.mark.parametrize(("dtype", "near"), PRECISIONS)
@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_results_are_those_without_a_device(hidden, device, model, dtype, near):
    table = (hidden.X, hidden.D_obs.astype(dtype), hidden.observed)
    here = model.fit(*table)
    there = type(model)(**{**model.get_params(), "device": device.type}).fit(*table)
    results = [(each.distributions_, each.raw_distributions_, each.hidden_mass_) for each in (there, here)]
    for found, expected in zip(*results, strict=True):
        assert isinstance(found, np.ndarray)
        assert found.dtype == expected.dtype
        assert np.abs(found - expected).max() < near
    assert there.n_iter_ == here.n_iter_
    assert there.parameters_ == here.parameters_


def test_tensors_are_taken_as_arrays_are(hidden, device):
    import torch

    tensors = [torch.tensor(np.asarray(each), device=device) for each in (hidden.X, hidden.D_obs, hidden.observed)]
    tensors[0].requires_grad_()
    model, expected = (HidLDL(4.0, device=device.type, random_state=0) for _ in range(2))
    found = model.fit(*tensors).distributions_
    assert np.array_equal(found, expected.fit(hidden.X, hidden.D_obs, hidden.observed).distributions_)
    assert np.array_equal(model.predict(tensors[0]), expected.predict(hidden.X))


def test_an_approximate_graph_gives_rows_in_their_own_order(device):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 2))
    D = np.exp(X @ rng.normal(size=(2, 4)))
    D /= D.sum(axis=1, keepdims=True)
    observed = rng.random(D.shape) < 0.6
    observed[:, 0] = True
    D_obs = np.where(observed, D, 0) / np.where(observed, D, 0).sum(axis=1, keepdims=True)
    exact = HidLDL(4.0, device=device.type).fit(X, D_obs, observed)
    near = HidLDL(4.0, device=device.type, neighbor_search="approximate").fit(X, D_obs, observed)
    assert 0.9 < near.neighbor_recall_ <= exact.neighbor_recall_ == 1
    assert np.abs(near.distributions_ - exact.distributions_).mean() < 5e-3


@pytest.mark.parametrize(
    ("model", "X", "words"),
    [
        (HidLDL(solver="exact", device="cpu"), None, 'solver="exact" runs without'),
        (HidLDL(device="cpu"), sparse.csr_array, "dense features"),
        (BayesHidLDL(device="cpu"), None, 'needs hiding="uniform"'),
        (BayesHidLDL(device="cpu", hiding="uniform"), sparse.csr_array, "needs dense features"),
    ],
    ids=["solver", "sparse features", "hiding", "sparse features of Bayes"],
)
def test_what_cannot_run_there_is_refused(hidden, device, model, X, words):
    with pytest.raises(ValueError, match=words):
        model.fit(hidden.X if X is None else X(hidden.X), hidden.D_obs, hidden.observed)


def test_unknown_zeros_are_refused(hidden, device):
    with pytest.raises(ValueError, match="zeros that are known"):
        BayesHidLDL(**GIVEN, zeros="unknown", device="cpu").fit(hidden.X, hidden.D_obs)


@pytest.mark.parametrize(
    "model", [HidLDL(solver="exact", device="auto"), BayesHidLDL(**{**GIVEN, "hiding": "auto"}, device="auto")]
)
def test_auto_runs_here_what_cannot_run_there(hidden, device, model):
    assert model.fit(hidden.X, hidden.D_obs, hidden.observed).distributions_.shape == hidden.D.shape
