"""The graph on a device: the neighbours and the Laplacian of the CPU, and a search that finds what it promises."""

import numpy as np
import pytest

from hidldl.device import on_device
from hidldl.graph import graph_laplacian, nearest_neighbors, weighted_graph


@pytest.fixture
def graph_torch(device):
    import hidldl.graph_torch

    return hidldl.graph_torch


def test_an_exact_search_gives_the_same_graph(device, graph_torch, monkeypatch):
    monkeypatch.setitem(graph_torch.ENTRIES, device.type, 2**15)  # several parts, the last one smaller
    X = 1e6 + np.random.default_rng(0).normal(size=(2500, 3))
    here, there = nearest_neighbors(X, 5), graph_torch.nearest_neighbors(on_device(X, device), 5, False)
    assert np.array_equal(there.indices.cpu().numpy(), here.indices)
    assert np.allclose(there.distances.cpu().numpy(), here.distances, rtol=1e-12)
    G = graph_laplacian(weighted_graph(here, 0.3))
    L = graph_torch.laplacian(there, 0.3, there.distances.dtype)
    parts = (L.crow_indices(), L.col_indices(), L.values())
    G.sort_indices()
    for part, expected in zip(parts, (G.indptr, G.indices, G.data), strict=True):
        assert np.allclose(part.cpu().numpy(), expected, rtol=1e-12, atol=1e-11)


def test_an_approximate_search_finds_what_it_says(device, graph_torch):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 4)) @ rng.normal(size=(4, 6))
    here, there = nearest_neighbors(X, 8), graph_torch.nearest_neighbors(on_device(X, device), 8, True)
    order = there.order.cpu().numpy()
    assert np.array_equal(np.sort(order), np.arange(4000))
    found = order[there.indices.cpu().numpy()]
    recall = np.mean([len(np.intersect1d(a, b)) / 8 for a, b in zip(found, here.indices[order], strict=True)])
    assert recall > 0.95
    assert abs(there.recall - recall) < 0.02
    assert not (found == order[:, None]).any()
    assert np.allclose(there.distances.cpu().numpy(), np.linalg.norm(X[order][:, None] - X[found], axis=2))


def test_rows_that_are_all_the_same_are_each_others_neighbours(device, graph_torch):
    there = graph_torch.nearest_neighbors(on_device(np.ones((3000, 2)), device), 4, True)
    assert float(there.distances.max()) == 0
    assert all(len(set(row)) == 4 for row in there.indices.tolist())
