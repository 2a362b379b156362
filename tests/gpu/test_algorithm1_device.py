"""Algorithm 1 on a device: the same iterates as on the CPU, with PyTorch alone and with the kernels."""

import numpy as np
import pytest

from graphs import similarity_graph
from hidldl.device import on_device, sparse_on_device
from hidldl.graph import graph_laplacian
from hidldl.recovery import algorithm1

OPTIONS = {"rho": 2.0, "step": 0.01, "tol": 1e-3}


def on_the(device, G, D_obs, observed, dtype):
    G = G.astype(dtype)
    laplacian = sparse_on_device(G.indptr, G.indices, G.data, device)
    return laplacian, on_device(D_obs.astype(dtype), device), on_device(observed, device)


@pytest.mark.parametrize("alpha", [0, 16])
@pytest.mark.parametrize("constraint", [True, False])
@pytest.mark.parametrize(("dtype", "near"), [(np.float64, 1e-10), (np.float32, 1e-4)])
def test_tensors_give_the_iterates_of_arrays(hidden, device, alpha, constraint, dtype, near):
    G = graph_laplacian(similarity_graph(hidden.X, 5, 1.0))
    options = {**OPTIONS, "alpha": alpha, "max_iter": 50, "constraint": constraint}
    plain = algorithm1.solve(G, hidden.D_obs, hidden.observed, **options)
    there = algorithm1.solve(*on_the(device, G, hidden.D_obs, hidden.observed, dtype), **options)
    assert_same(there, plain, near)
    assert there.D.cpu().numpy().dtype == dtype


@pytest.mark.parametrize(
    ("alpha", "iterations", "constraint"), [(16, 1, True), (16, 4, True), (16, 4, False), (0, 3, True)]
)
def test_kernels_give_the_iterates_of_arrays(hidden, device, alpha, iterations, constraint):
    algorithm1_triton = pytest.importorskip("hidldl.recovery.algorithm1_triton", reason="needs Triton")
    G = graph_laplacian(similarity_graph(hidden.X, 5, 1.0))
    options = {**OPTIONS, "alpha": alpha, "max_iter": iterations, "constraint": constraint}
    plain = algorithm1.solve(G, hidden.D_obs, hidden.observed, **options)
    there = algorithm1_triton.solve(*on_the(device, G, hidden.D_obs, hidden.observed, np.float32), **options)
    assert_same(there, plain, 1e-4)


def assert_same(there, plain, near):
    assert np.abs(there.D.cpu().numpy() - plain.D).max() < near
    assert (there.n_iter, there.converged) == (plain.n_iter, plain.converged)
    assert there.history.keys() == plain.history.keys()
    for name, gaps in plain.history.items():
        assert np.allclose(there.history[name], gaps, atol=near)
