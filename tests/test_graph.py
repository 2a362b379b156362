"""The graph against its definition, written with dense matrices."""

import sys

import numpy as np
import pytest
from scipy import sparse

from graphs import similarity_graph
from hidldl.graph import (
    graph_laplacian,
    locality_order,
    nearest_neighbors,
    reordered,
    weighted_graph,
)


def dense_similarity(X, n_neighbors, sigma):
    n = len(X)
    A = np.zeros((n, n))
    distances = np.linalg.norm(X[:, None] - X[None], axis=2)
    nearest = [[j for j in np.argsort(distances[i]) if j != i][:n_neighbors] for i in range(n)]
    for i in range(n):
        for j in range(n):
            if j in nearest[i] or i in nearest[j]:
                A[i, j] = np.exp(-(distances[i, j] ** 2) / (2 * sigma**2))
    return A


@pytest.mark.parametrize("n_neighbors", [1, 4, 29])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_rows_are_connected_if_either_is_a_neighbour(n_neighbors, container):
    X = np.random.default_rng(0).normal(size=(30, 3))
    graph = similarity_graph(container(X), n_neighbors, sigma=1.5)
    assert sparse.issparse(graph)
    assert np.allclose(graph.toarray(), dense_similarity(X, n_neighbors, 1.5), atol=1e-12)


def test_duplicates_are_neighbours_with_weight_one():
    X = np.array([[0.0], [0.0], [5.0], [5.0]])
    assert np.allclose(similarity_graph(X, 1, 1.0).toarray(), np.kron(np.eye(2), [[0, 1], [1, 0]]))


def test_the_laplacian_is_the_quadratic_form_of_the_paper():
    rng = np.random.default_rng(1)
    graph = similarity_graph(rng.normal(size=(25, 2)), 3, 1.0)
    D, A = rng.random((25, 4)), graph.toarray()
    squares = ((D[:, None] - D[None]) ** 2).sum(axis=2)
    # The paper's sum over all pairs counts every edge twice.
    assert np.trace(D.T @ (graph_laplacian(graph) @ D)) == pytest.approx((A * squares).sum() / 2)


def test_a_vanishing_graph_warns_with_a_better_sigma():
    X = 100 * np.random.default_rng(0).normal(size=(30, 3))
    with pytest.warns(UserWarning, match=r"sigma=1 is small against the distances.*Choose sigma near"):
        similarity_graph(X, 4, 1.0)


@pytest.mark.parametrize("n_features", [4, 60])
def test_an_offset_of_the_features_changes_nothing(n_features):
    X = np.random.default_rng(0).normal(size=(60, n_features))
    offset = np.zeros(n_features)
    offset[0] = 1e8
    assert np.allclose(similarity_graph(X + offset, 5, 2.0).toarray(), similarity_graph(X, 5, 2.0).toarray(), atol=1e-6)


def test_a_graph_that_is_merely_thin_gives_no_warning():
    X = np.array([[0.0], [4.0], [8.0]])  # neighbours 4 apart: weights of exp(-8)
    assert similarity_graph(X, 1, 1.0).nnz == 4


class TestApproximateNeighbours:
    @pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
    @pytest.mark.parametrize("scale", [1.0, 1e60])
    def test_they_are_nearly_the_exact_ones_and_their_distances_are_exact(self, container, scale):
        X = scale * np.random.default_rng(0).normal(size=(600, 8))
        exact, approximate = (nearest_neighbors(container(X), 5, how) for how in ("exact", "approximate"))
        assert approximate.recall > 0.97
        same = [len(set(a) & set(b)) for a, b in zip(exact.indices, approximate.indices, strict=True)]
        assert np.mean(same) / 5 == pytest.approx(approximate.recall, abs=0.03)
        rows = np.arange(600)[:, None]
        assert (approximate.indices != rows).all()
        assert np.allclose(
            approximate.distances / scale, np.linalg.norm(X[rows] / scale - X[approximate.indices] / scale, axis=2)
        )
        assert (np.diff(approximate.distances, axis=1) >= 0).all()
        again = nearest_neighbors(container(X), 5, "approximate")
        assert np.array_equal(again.indices, approximate.indices)

    def test_among_many_equal_rows_nobody_is_its_own_neighbour(self):
        X = np.repeat(np.random.default_rng(0).normal(size=(4, 3)), 100, axis=0)
        graph = weighted_graph(nearest_neighbors(X, 5, "approximate"), 1.0)
        assert np.allclose(graph.diagonal(), 0)
        assert np.allclose(graph.data[graph.data > 0], 1)

    def test_many_rows_are_searched_approximately_unless_one_asks_otherwise(self, monkeypatch):
        monkeypatch.setattr("hidldl.graph.EXACT_UP_TO", 50)
        monkeypatch.setattr("hidldl.graph.FOUND", 0.3)
        X = np.random.default_rng(0).normal(size=(400, 30))
        with pytest.warns(UserWarning, match=r"found \d+% of the nearest neighbours"):
            assert nearest_neighbors(X, 2, "auto").recall < 0.9
        assert nearest_neighbors(X, 2, "exact").recall == 1
        monkeypatch.setattr("hidldl.graph.EXACT_UP_TO", 400)
        assert nearest_neighbors(X, 2, "auto").recall == 1

    def test_a_missing_package_is_named_with_the_other_way(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "faiss", None)
        with pytest.raises(ImportError, match=r"hidldl\[ann\].*neighbor_search=\"exact\""):
            nearest_neighbors(np.eye(5), 2, "approximate")

    def test_many_sparse_features_are_projected_and_distances_are_exact(self):
        rng = np.random.default_rng(0)
        topics = sparse.random_array((40, 3000), density=0.02, rng=rng, format="csr")
        words = sparse.random_array((300, 3000), density=0.001, rng=rng, format="csr")
        X = (sparse.csr_array(rng.dirichlet(np.full(40, 0.1), 300)) @ topics + 0.1 * words).tocsr()
        found = nearest_neighbors(X, 5, "approximate")
        assert found.recall > 0.9
        whole = X.toarray()
        assert np.allclose(found.distances, np.linalg.norm(whole[:, None] - whole[found.indices], axis=2))

    @pytest.mark.parametrize("n_rows", [2, 3, 7])
    def test_a_few_rows_are_enough(self, n_rows):
        X = np.arange(n_rows, dtype=float)[:, None]
        assert nearest_neighbors(X, 1, "approximate").recall == 1

    def test_threads_change_nothing(self):
        faiss = pytest.importorskip("faiss")
        X = np.random.default_rng(0).normal(size=(3000, 12))
        before = faiss.omp_get_max_threads()
        try:
            found = []
            for threads in (1, 2, 3):
                faiss.omp_set_num_threads(threads)
                found.append(nearest_neighbors(X, 5, "approximate").indices)
        finally:
            faiss.omp_set_num_threads(before)
        assert np.array_equal(found[0], found[1])
        assert np.array_equal(found[0], found[2])


def test_an_order_for_locality_moves_rows_and_columns_alike():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 2))
    G = graph_laplacian(similarity_graph(X, 4, 1.0))
    order = locality_order(G)
    result = reordered(G, order)
    assert np.array_equal(np.sort(order), np.arange(500))
    D = rng.random((500, 3))
    assert np.allclose(result @ D[order], (G @ D)[order])

    def reach(matrix):
        entries = matrix.tocoo()
        return np.abs(entries.coords[0] - entries.coords[1]).mean()

    assert reach(result) < reach(G) / 4
