"""EM on a device: the estimates, posteriors and means of the CPU."""

import numpy as np
import pytest

from hidldl import hide_labels, make_distributions
from hidldl.device import on_device
from hidldl.recovery import logisticnormal
from hidldl.recovery.fitting import fit_latent_model
from hidldl.recovery.kernelmean import Landmarks
from hidldl.recovery.latent import Parameters
from hidldl.recovery.posterior import Draws, mean_rows


@pytest.fixture
def fitting_torch(device, monkeypatch):
    import hidldl.recovery.fitting_torch as module

    monkeypatch.setitem(module.CHUNK, device.type, 3000)  # several chunks, the last one smaller
    return module


@pytest.fixture(scope="module")
def table():
    data = make_distributions(n_rows=400, n_features=4, n_labels=5, random_state=0)
    D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=0)
    kernel = Landmarks.choose(data.features, 40, True, np.random.default_rng(0)).with_width(1.0)
    return kernel, data.features, D_obs, observed


@pytest.mark.parametrize("n_components", [1, 2])
@pytest.mark.parametrize(("precision", "near"), [("float64", 1e-8), ("float32", 1e-4)])
def test_a_fit_is_that_of_the_cpu(table, device, fitting_torch, n_components, precision, near):
    kernel, X, D_obs, observed = table
    parameters = Parameters(nu=50.0, ridge=1.0, prior_rows=5.0, n_components=n_components)
    how = {"max_iter": 8, "tol": 0.0}
    here = fit_latent_model(kernel(X), D_obs, observed, parameters, **how)
    dtype = getattr(pytest.importorskip("torch"), precision)
    features, means = fitting_torch.kernel_features(kernel, X, dtype, device)
    regression = fitting_torch.ridge(features, means, parameters.ridge)
    there = fit_latent_model(
        features, D_obs, observed, parameters, **how, regression=regression, rounds_on=fitting_torch.DeviceRounds
    )
    assert np.allclose(there.history["change"], here.history["change"], atol=10 * near)
    assert np.allclose(there.history["evidence"], here.history["evidence"], atol=10 * near)
    draws = Draws.shared(np.random.default_rng(1), 64, D_obs.shape[1])
    expected = mean_rows(here.model, here.rows, draws)
    found = fitting_torch.mean_rows(there.model, there.rows, draws, single=precision == "float32", device=device)
    assert np.abs(found - expected).max() < near


@pytest.mark.parametrize("max_newton", [0, 20])
@pytest.mark.parametrize("module", ["logisticnormal_torch", "logisticnormal_triton"])
def test_modes_are_those_of_compiled_code(device, module, max_newton, monkeypatch):
    on_a_device = pytest.importorskip(f"hidldl.recovery.{module}", reason="needs PyTorch, and Triton for kernels")
    monkeypatch.setattr(on_a_device, "TILES", 2, raising=False)  # several programs, the last one with rows to spare
    rng = np.random.default_rng(0)
    n, m = 120, 6
    root = rng.normal(size=(m, m))
    observed = rng.random((n, m)) < 0.5
    observed[:5] = False
    # Some zeros may be hidden or true.
    presence = np.where(observed, 1, np.where(rng.random((n, m)) < 0.2, rng.random((n, m)), 0))
    shares = np.where(observed, rng.dirichlet(np.ones(m), n), 0)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-9)
    importance = np.where(rng.random(n) < 0.2, 0, rng.random(n))
    given = (root @ root.T, rng.normal(size=(n, m)), 1 + rng.random(n), shares, presence, 50 * (1 + rng.random(n)))
    weights = np.where(presence > 0, rng.normal(size=(n, m)), 0)
    here = (weights.copy(), np.zeros((m, m)), np.zeros(n))
    there = tuple(on_device(part, device) for part in here)
    logisticnormal.find_modes(*given, max_newton, 1e-3, importance, *here)
    on_it = (on_device(part, device) for part in given)
    on_a_device.find_modes(*on_it, max_newton, 1e-3, on_device(importance, device), *there)
    for part, expected in zip(there, here, strict=True):
        assert np.allclose(part.cpu().numpy(), expected, rtol=1e-9, atol=1e-9)
