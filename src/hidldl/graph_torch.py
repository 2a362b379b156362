"""The graph of rows and their nearest neighbours on a device, in PyTorch.

Rows are put into cells around centres (k-means). The rows of a cell are compared with those of the cells nearest to
it, in one product of matrices. How many cells that takes is measured: a sample of rows is searched exactly, and as many
cells are visited as hold the neighbours of the sample. An exact search is one cell with all rows.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch

from hidldl.arrays import FloatArray, Tensor
from hidldl.device import on_device, sparse_on_device

ROWS_PER_CELL = 0.5
"""Times the square root of the rows: with cells this small, comparing rows with centres is as cheap as with rows."""
KMEANS_ROWS, KMEANS_ROUNDS = 100, 6
"""Rows per cell from which the centres are computed, and in how many rounds."""
SAMPLE_ROWS = 500
"""Rows that are searched exactly: some to choose how many cells are visited, as many to measure the recall."""
TARGET = 0.97
"""Share of the sample's neighbours that the cells that are visited must hold."""
ENTRIES = {"cuda": 2**29, "cpu": 2**23}
"""Distances at a time."""
FINEST = 2.0**43
"""Steps in which sums resolve the largest value; a million of them still fit into a whole number."""
GROUP = 64
"""Distances of which first the smallest is taken: a pass over all of them, where sorting takes several."""


class DeviceNeighbors(NamedTuple):
    """Distances to the nearest other rows and which rows those are, n × k each, both in ``order``."""

    distances: Tensor
    indices: Tensor
    order: Tensor
    """The rows, cell by cell: neighbours lie close to each other in memory."""
    recall: float


@dataclass(frozen=True)
class _Cells:
    rows: Tensor
    """The features, cell by cell."""
    starts: Tensor
    """Where each cell starts, on the host, and where the last one ends."""
    nearest: Tensor
    """For each cell all cells, the nearest first, beginning with itself; on the host."""

    @property
    def sizes(self) -> Tensor:
        return self.starts.diff()


def neighbors_on_device(X: FloatArray, n_neighbors: int, approximate: bool, device: torch.device) -> DeviceNeighbors:
    """The nearest other rows of rows on the host, whose features are centred."""
    if not approximate:
        return nearest_neighbors(on_device(X, device), n_neighbors, False)
    # In single precision, whose range is small.
    scale = float(np.abs(X).max()) or 1.0
    neighbors = nearest_neighbors(on_device((X / scale).astype(np.float32), device), n_neighbors, True)
    return neighbors._replace(distances=neighbors.distances * scale)


def nearest_neighbors(X: Tensor, n_neighbors: int, approximate: bool) -> DeviceNeighbors:
    """The nearest other rows of each row."""
    # Products of matrices lose digits where features have a large common offset.
    X = X - X.mean(dim=0)
    n_rows = len(X)
    n_cells = max(int(n_rows / (ROWS_PER_CELL * n_rows**0.5)), 1) if approximate else 1
    if n_cells == 1:
        order = torch.arange(n_rows, device=X.device)
        cells = _Cells(X, torch.tensor([0, n_rows]), torch.zeros((1, 1), dtype=torch.int64))
        indices = _search(cells, n_neighbors, 1)
        return DeviceNeighbors(_distances(X, indices), indices, order, 1.0)
    order, cells = _in_cells(X, n_cells)
    sample = torch.as_tensor(np.random.default_rng(0).permutation(n_rows)[: 2 * SAMPLE_ROWS], device=X.device)
    true = _exact(cells.rows, sample, n_neighbors)
    half = len(sample) // 2
    indices = _search(cells, n_neighbors, _cells_to_visit(cells, sample[:half], true[:half], n_neighbors))
    hits = (indices[sample[half:]][:, :, None] == true[half:, None, :]).any(dim=2)
    return DeviceNeighbors(_distances(cells.rows, indices), indices, order, float(hits.double().mean()))


def laplacian(neighbors: DeviceNeighbors, sigma: float, dtype: torch.dtype) -> Tensor:
    """The graph's Laplacian, in CSR layout: rows are connected if either is among the other's neighbours."""
    distances, indices = neighbors.distances, neighbors.indices
    n_rows, n_neighbors = indices.shape
    own = torch.arange(n_rows, device=indices.device).repeat_interleave(n_neighbors)
    other = indices.reshape(-1)
    pairs, at = (torch.minimum(own, other) * n_rows + torch.maximum(own, other)).sort()
    del own, other
    first = torch.ones_like(pairs, dtype=torch.bool)
    first[1:] = pairs[1:] != pairs[:-1]
    pairs, distance = pairs[first], distances.reshape(-1)[at[first]]
    weights = torch.exp(-((distance / sigma) ** 2) / 2)
    low, high = pairs // n_rows, pairs % n_rows
    degrees = _sums(weights, low, n_rows) + _sums(weights, high, n_rows)
    diagonal = torch.arange(n_rows, device=indices.device) * (n_rows + 1)
    cells, at = torch.cat([pairs, high * n_rows + low, diagonal]).sort()
    values = torch.cat([-weights, -weights, degrees])[at].to(dtype)
    starts = torch.searchsorted(cells, torch.arange(n_rows + 1, device=cells.device) * n_rows)
    whole = torch.int32 if len(cells) < 2**31 else torch.int64
    return sparse_on_device(starts.to(whole), (cells % n_rows).to(whole), values, indices.device)


def _in_cells(X: Tensor, n_cells: int) -> tuple[Tensor, _Cells]:
    """The order of the rows cell by cell, and the cells."""
    rng = np.random.default_rng(0)
    sample = X[torch.as_tensor(rng.permutation(len(X))[: KMEANS_ROWS * n_cells], device=X.device)]
    centers = sample[:n_cells].clone()
    for _ in range(KMEANS_ROUNDS):
        cell = _nearest_center(sample, centers)
        counts = torch.bincount(cell, minlength=n_cells)[:, None]
        sums = _sums(sample, cell, n_cells)
        # A centre that no row is near stays where it is.
        centers = torch.where(counts > 0, sums / counts.clamp(min=1), centers)
    cell = _nearest_center(X, centers)
    order = cell.argsort(stable=True)
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(cell, minlength=n_cells).cumsum(0).cpu()])
    apart = torch.cdist(centers, centers).fill_diagonal_(-1)
    return order, _Cells(X[order], starts, apart.argsort(dim=1).cpu())


def _sums(values: Tensor, group: Tensor, n_groups: int) -> Tensor:
    """Sums of values by group. As whole numbers, so that the order in which a card adds them does not matter."""
    unit = FINEST / float(values.abs().max().clamp(min=torch.finfo(values.dtype).tiny))
    whole = torch.zeros((n_groups, *values.shape[1:]), dtype=torch.int64, device=values.device)
    whole.index_add_(0, group, (values.double() * unit).round().long())
    return (whole.double() / unit).to(values.dtype)


def _nearest_center(X: Tensor, centers: Tensor) -> Tensor:
    squares = (centers**2).sum(dim=1)
    size = max(ENTRIES[X.device.type] // len(centers), 1)
    return torch.cat([torch.addmm(squares, part, centers.T, alpha=-2).argmin(dim=1) for part in X.split(size)])


def _exact(rows: Tensor, sample: Tensor, n_neighbors: int) -> Tensor:
    """The true neighbours of a sample of rows."""
    squares, nearest = (rows**2).sum(dim=1), []
    for part in sample.split(max(ENTRIES[rows.device.type] // len(rows), 1)):
        squared = torch.addmm(squares, rows[part], rows.T, alpha=-2)
        squared[torch.arange(len(part), device=part.device), part] = torch.inf
        nearest.append(squared.topk(n_neighbors, dim=1, largest=False).indices)
    return torch.cat(nearest)


def _cells_to_visit(cells: _Cells, sample: Tensor, true: Tensor, n_neighbors: int) -> int:
    """How many cells near a row's own hold enough of the sample's neighbours, and enough rows."""
    place = torch.empty_like(cells.nearest).scatter_(
        1, cells.nearest, torch.arange(len(cells.nearest)).expand_as(cells.nearest)
    )
    own, other = (torch.searchsorted(cells.starts, part.cpu(), right=True) - 1 for part in (sample, true))
    # Cells may be empty, and then several start at one place: the last of them holds the row.
    needed = place[own[:, None], other].double().quantile(TARGET)
    rows_visited = cells.sizes[cells.nearest].cumsum(dim=1).min(dim=0).values
    return int(max(needed.ceil(), (rows_visited <= n_neighbors).sum())) + 1


def _search(cells: _Cells, n_neighbors: int, n_visited: int) -> Tensor:
    """The nearest rows among those of the nearest cells, for all rows, cell by cell."""
    rows, sizes = cells.rows, cells.sizes
    out = torch.empty((len(rows), n_neighbors), dtype=torch.int64, device=rows.device)
    squares = (rows**2).sum(dim=1)
    visited = cells.nearest[:, :n_visited]
    n_candidates = sizes[visited].sum(dim=1).tolist()
    starts, counts = (part[visited].to(rows.device) for part in (cells.starts, sizes))
    for cell, (start, size) in enumerate(zip(cells.starts.tolist(), sizes.tolist(), strict=False)):
        if not size:
            continue
        candidates = _members(starts[cell], counts[cell], n_candidates[cell])
        # Whole groups; what fills the last one is infinitely far.
        filling = -len(candidates) % GROUP
        features = torch.nn.functional.pad(rows[candidates].T, (0, filling))
        own_squares = torch.nn.functional.pad(squares[candidates], (0, filling), value=torch.inf)
        n_at_once = max(ENTRIES[rows.device.type] // len(own_squares), 1)
        for begin in range(0, size, n_at_once):
            part = rows[start + begin : start + min(begin + n_at_once, size)]
            squared = torch.addmm(own_squares, part, features, alpha=-2)
            # The row itself: its own cell is the first of those that are visited.
            squared.diagonal(begin).fill_(torch.inf)
            out[start + begin : start + begin + len(part)] = candidates[_smallest(squared, n_neighbors)]
    return out


def _smallest(values: Tensor, k: int) -> Tensor:
    """The columns of the k smallest values of each row. They lie in the k groups with the smallest minima."""
    n_groups = values.shape[1] // GROUP
    if n_groups <= 2 * k:
        return values.topk(k, dim=1, largest=False).indices
    # Columns of a group lie apart, so that threads side by side read values side by side.
    groups = values.view(len(values), GROUP, n_groups).amin(dim=1).topk(k, dim=1, largest=False).indices
    columns = (groups[:, :, None] + n_groups * torch.arange(GROUP, device=values.device)).flatten(1)
    return columns.gather(1, values.gather(1, columns).topk(k, dim=1, largest=False).indices)


def _members(starts: Tensor, sizes: Tensor, total: int) -> Tensor:
    """The rows of some cells, one cell after the other."""
    before = sizes.cumsum(0) - sizes
    shifts = (starts - before).repeat_interleave(sizes, output_size=total)
    return torch.arange(total, device=starts.device) + shifts


def _distances(X: Tensor, indices: Tensor) -> Tensor:
    return torch.stack([torch.linalg.vector_norm(X - X[column], dim=1) for column in indices.unbind(1)], dim=1)
