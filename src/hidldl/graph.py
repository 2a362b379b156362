"""The neighbour graph over rows: who is near whom, how much, and its Laplacian. Always sparse."""

import warnings
from typing import Any

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import laplacian
from sklearn.neighbors import NearestNeighbors

VANISHING_WEIGHT = 1e-6
"""A typical weight below this moves no row: the graph is as good as absent."""


def similarity_graph(X: Any, n_neighbors: int, sigma: float) -> sparse.csr_array:
    """Gaussian similarities between each row and its neighbours (the paper's Eq. 4).

    Two rows are connected if either is among the other's ``n_neighbors`` nearest; their weight is
    exp(-distance² / (2 sigma²)).
    """
    distances, neighbors = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors()
    weights = np.exp(-(distances**2) / (2 * sigma**2))
    if np.median(weights) < VANISHING_WEIGHT:
        warnings.warn(
            f"sigma={sigma:g} is small against the distances between neighbours (median {np.median(distances):.3g}): "
            "the graph all but vanishes and the features hardly count. Choose sigma near that median, or scale X.",
            UserWarning,
            stacklevel=2,
        )
    n_rows = len(distances)
    starts = np.arange(0, n_rows * n_neighbors + 1, n_neighbors)
    nearest = sparse.csr_array((weights.ravel(), neighbors.ravel(), starts), shape=(n_rows, n_rows))
    # A weight depends on the pair only, so the larger of (i, j) and (j, i) is "either is a neighbour".
    return nearest.maximum(nearest.T).tocsr()


def graph_laplacian(similarity: sparse.csr_array) -> sparse.csr_array:
    """Degrees on the diagonal minus the similarities."""
    return sparse.csr_array(laplacian(similarity))
