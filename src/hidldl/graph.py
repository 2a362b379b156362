"""The sparse graph of rows and their nearest neighbours, and its Laplacian."""

from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import laplacian, reverse_cuthill_mckee
from sklearn.neighbors import NearestNeighbors
from sklearn.random_projection import SparseRandomProjection

from hidldl.arrays import FloatArray, IntArray
from hidldl.errors import warn_user

VANISHING_WEIGHT = 1e-6
"""With a typical weight below this, the graph has no effect."""
EXACT_UP_TO = 100_000
"""Rows up to which "auto" searches exactly. An exact search takes time with the square of the rows."""
CANDIDATES = 2
"""An approximate search looks for this many times as many neighbours as are needed, and keeps the nearest."""
CELLS_PER_ROOT, ROWS_PER_CELL = 2, 64
"""An approximate search divides rows into this many times the root of their number; these rows of each suffice."""
SAMPLE_ROWS, FOUND = 500, 0.97
"""As many cells are visited as hold this share of the true neighbours of a sample of rows."""
PROJECTED_FEATURES, MORE_CANDIDATES = 256, 8
"""Sparse features beyond these are projected for the search, which then needs more candidates."""
RECALL_ROWS = 200
"""Rows whose neighbours are also searched exactly, to measure the recall of an approximate search."""
LOW_RECALL = 0.9

Search: TypeAlias = Literal["auto", "exact", "approximate"]
SEARCHES: tuple[Search, ...] = ("auto", "exact", "approximate")


class Neighbors(NamedTuple):
    """Distances to the nearest other rows and which rows those are, n × k each."""

    distances: FloatArray
    indices: IntArray
    recall: float
    """Share of the true neighbours that were found; measured on a sample of rows if the search was approximate."""


def weighted_graph(neighbors: Neighbors, sigma: float) -> sparse.csr_array:
    """Gaussian similarities between rows and their nearest neighbours (the paper's Eq. 4).

    Two rows are connected if either is among the other's neighbours; their weight is exp(-distance² / (2 sigma²)).
    """
    distances, indices, _ = neighbors
    weights = np.exp(-((distances / sigma) ** 2) / 2)
    warn_of_small_sigma(sigma, float(np.median(distances)))
    n_rows, n_neighbors = distances.shape
    starts = np.arange(0, n_rows * n_neighbors + 1, n_neighbors)
    nearest = sparse.csr_array((weights.ravel(), indices.ravel(), starts), shape=(n_rows, n_rows))
    # A weight depends on the pair only, so the larger of (i, j) and (j, i) is "either is a neighbour".
    return nearest.maximum(nearest.T).tocsr()


def warn_of_small_sigma(sigma: float, median: float) -> None:
    """Warn if the weight at the median distance between neighbours vanishes."""
    if np.exp(-((median / sigma) ** 2) / 2) < VANISHING_WEIGHT:
        warn_user(
            f"sigma={sigma:g} is small against the distances between neighbours (median {median:.3g}): "
            "the weights of the graph are almost 0, so the features hardly count. Choose sigma near that median, as "
            'sigma="auto" does, or scale X.'
        )


def nearest_neighbors(X: Any, n_neighbors: int, search: Search = "exact") -> Neighbors:
    """The nearest other rows of each row; "auto" searches exactly up to a hundred thousand rows."""
    approximate = resolved_search(search, X.shape[0]) == "approximate"
    if not sparse.issparse(X):
        X = centred(X)
    if approximate:
        return _approximate_neighbors(X, n_neighbors, explicit=search == "approximate")
    distances, indices = NearestNeighbors(n_neighbors=n_neighbors).fit(X).kneighbors()
    return Neighbors(distances if sparse.issparse(X) else _distances(X, indices), indices, 1.0)


def centred(X: FloatArray) -> FloatArray:
    """The features minus their means.

    A search may expand |x - y|², which loses digits where features have a large common offset. So centre first, and
    compute the distances of the neighbours from differences.
    """
    return np.asarray(X - X.mean(axis=0, dtype=np.float64))


def resolved_search(search: Search, n_rows: int) -> Search:
    """The search for this many rows: "exact" or "approximate"."""
    if search != "auto":
        return search
    return "approximate" if n_rows > EXACT_UP_TO else "exact"


def _distances(X: Any, indices: IntArray) -> FloatArray:
    norm = sparse.linalg.norm if sparse.issparse(X) else np.linalg.norm
    return np.stack([norm(X - X[indices[:, k]], axis=1) for k in range(indices.shape[1])], axis=1)


def _approximate_neighbors(X: Any, n_neighbors: int, explicit: bool) -> Neighbors:
    """The nearest rows in the nearest cells; cells are those of k-means. Threads do not change what is found."""
    faiss = _load_faiss(explicit)
    n_rows = X.shape[0]
    points, is_projected = _points(X)
    cells = faiss.IndexIVFFlat(faiss.IndexFlatL2(points.shape[1]), points.shape[1], _n_cells(n_rows))
    cells.cp.niter, cells.cp.min_points_per_centroid, cells.cp.max_points_per_centroid = 10, 1, ROWS_PER_CELL
    cells.train(points)
    cells.add(points)
    n_candidates = min((MORE_CANDIDATES if is_projected else CANDIDATES) * n_neighbors + 1, n_rows)
    cells.nprobe = _n_visited(faiss, cells, points, n_candidates)
    indices = cells.search(points, n_candidates)[1]
    own = np.arange(n_rows)[:, None]
    indices = np.where(indices < 0, own, indices)  # none was found: an edge to itself, without weight
    distances = _distances(X, indices)
    distances[indices == own] = np.inf
    nearest = np.argsort(distances, axis=1, kind="stable")[:, :n_neighbors]
    distances, indices = (np.take_along_axis(table, nearest, axis=1) for table in (distances, indices))
    recall = _recall(X, distances)
    warn_of_low_recall(recall)
    return Neighbors(distances, indices, recall)


def _load_faiss(explicit: bool) -> Any:
    try:
        import faiss
    except ImportError as error:
        size = "" if explicit else f", the default for X with more than {EXACT_UP_TO:,} rows,"
        raise ImportError(
            f"The approximate search for neighbours{size} needs faiss: install it with "
            "pip install 'hidldl[ann]', or choose neighbor_search=\"exact\", which takes longer."
        ) from error
    return faiss


def _n_cells(n_rows: int) -> int:
    return max(min(int(CELLS_PER_ROOT * np.sqrt(n_rows)), n_rows), 1)


def _points(X: Any) -> tuple[FloatArray, bool]:
    """The rows in single precision, whose range is small, and whether they are a projection."""
    scale = float(np.abs(X).max()) or 1.0
    if not sparse.issparse(X):
        return np.ascontiguousarray(X / scale, dtype=np.float32), False
    if X.shape[1] <= PROJECTED_FEATURES:
        return (X / scale).astype(np.float32).toarray(), False
    projection = SparseRandomProjection(PROJECTED_FEATURES, dense_output=True, random_state=0)
    return np.ascontiguousarray(projection.fit_transform(X / scale), dtype=np.float32), True


def _n_visited(faiss: Any, cells: Any, points: FloatArray, n_neighbors: int) -> int:
    """How many cells to visit, from rows that are compared with all others."""
    sample = np.random.default_rng(1).choice(len(points), min(SAMPLE_ROWS, len(points)), replace=False)
    nearest = faiss.knn(points[sample], points, n_neighbors)[1]
    cell_of = cells.quantizer.search(points, 1)[1][:, 0]
    visits = cells.quantizer.search(points[sample], cells.nlist)[1]
    turn_of_cell = np.argsort(visits, axis=1)
    turns = np.take_along_axis(turn_of_cell, cell_of[nearest], axis=1)
    return int(np.quantile(turns, FOUND)) + 1


def warn_of_low_recall(recall: float) -> None:
    """Warn if an approximate search missed many neighbours."""
    if recall < LOW_RECALL:
        warn_user(
            f"the approximate search found {recall:.0%} of the nearest neighbours. Scale or reduce the features, or "
            'choose neighbor_search="exact", which takes longer.'
        )


def _recall(X: Any, distances: FloatArray) -> float:
    """Share of the neighbours that are as near as the true ones, over a sample of rows."""
    n_rows, n_neighbors = distances.shape
    sample = np.random.default_rng(0).choice(n_rows, min(RECALL_ROWS, n_rows), replace=False)
    true_distances = NearestNeighbors(n_neighbors=n_neighbors + 1, algorithm="brute").fit(X).kneighbors(X[sample])[0]
    farthest = true_distances[:, -1:] * (1 + 1e-6) + 1e-12
    return float((distances[sample] <= farthest).mean())


def typical_distance(distances: FloatArray) -> float:
    """The median of the positive distances between neighbours; 1 if there are none."""
    apart = distances[(distances > 0) & (distances < np.inf)]
    return float(np.median(apart)) if apart.size else 1.0


def graph_laplacian(similarity: sparse.csr_array) -> sparse.csr_array:
    """The sums of the rows on the diagonal, minus the similarities."""
    return sparse.csr_array(laplacian(similarity))


def locality_order(graph: sparse.csr_array) -> IntArray:
    """The rows in an order in which those that are connected lie close to each other in memory."""
    return reverse_cuthill_mckee(graph, symmetric_mode=True)


def reordered(matrix: sparse.csr_array, order: IntArray) -> sparse.csr_array:
    """The square matrix with its rows and columns in that order."""
    result = matrix[order][:, order].tocsr()
    result.sort_indices()
    return result
