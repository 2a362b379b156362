"""The neighbour graph over rows: who is near whom, how much, and its Laplacian. Always sparse."""

from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import laplacian
from sklearn.neighbors import NearestNeighbors

from hidldl.validation import FloatArray, warn_user

VANISHING_WEIGHT = 1e-6
"""A typical weight below this moves no row: the graph is as good as absent."""
LARGEST_FEATURE = 1e150


def similarity_graph(X: Any, n_neighbors: int, sigma: float) -> sparse.csr_array:
    """Gaussian similarities between each row and its neighbours (the paper's Eq. 4).

    Two rows are connected if either is among the other's ``n_neighbors`` nearest; their weight is
    exp(-distance² / (2 sigma²)).
    """
    return weighted_graph(*nearest_neighbors(X, n_neighbors), sigma)


def weighted_graph(distances: FloatArray, neighbors: Any, sigma: float) -> sparse.csr_array:
    """The graph of rows whose nearest neighbours and their distances, n × k each, are known."""
    weights = np.exp(-((distances / sigma) ** 2) / 2)
    if np.median(weights) < VANISHING_WEIGHT:
        warn_user(
            f"sigma={sigma:g} is small against the distances between neighbours (median {np.median(distances):.3g}): "
            "the graph all but vanishes and the features hardly count. Choose sigma near that median, as "
            'sigma="auto" does, or scale X.'
        )
    n_rows, n_neighbors = distances.shape
    starts = np.arange(0, n_rows * n_neighbors + 1, n_neighbors)
    nearest = sparse.csr_array((weights.ravel(), neighbors.ravel(), starts), shape=(n_rows, n_rows))
    # A weight depends on the pair only, so the larger of (i, j) and (j, i) is "either is a neighbour".
    return nearest.maximum(nearest.T).tocsr()


def nearest_neighbors(X: Any, n_neighbors: int) -> tuple[FloatArray, Any]:
    """Distances to the nearest other rows, and which rows those are."""
    if sparse.issparse(X):
        return NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors()
    # The search may expand |x - y|² and lose its digits to a common offset: centre first, and measure the distances of
    # the neighbours that it finds by their differences.
    X = X - X.mean(axis=0, dtype=np.float64)
    if np.abs(X).max() > LARGEST_FEATURE:
        raise ValueError(f"X has features beyond {LARGEST_FEATURE:g}, whose squares overflow; scale them.")
    neighbors = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors(return_distance=False)
    distances = [np.linalg.norm(X - X[neighbors[:, k]], axis=1) for k in range(n_neighbors)]
    return np.stack(distances, axis=1), neighbors


def typical_distance(distances: FloatArray) -> float:
    """The median distance between neighbours that are apart; 1 if none are."""
    apart = distances[distances > 0]
    return float(np.median(apart)) if apart.size else 1.0


def graph_laplacian(similarity: sparse.csr_array) -> sparse.csr_array:
    """Degrees on the diagonal minus the similarities."""
    return sparse.csr_array(laplacian(similarity))
