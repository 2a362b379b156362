from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from graphs import similarity_graph
from hidldl import HidLDL
from hidldl.graph import graph_laplacian
from hidldl.recovery import algorithm1, algorithm1_compiled
from literal_algorithm1 import algorithm1 as literal


def in_small_tiles(monkeypatch):
    """So that a small table has several tiles and blocks, and the last ones are not full."""
    monkeypatch.setattr(algorithm1_compiled, "TILE_ROWS", 7)
    monkeypatch.setattr(algorithm1_compiled, "FEWEST_TILES", 2)


OPTIONS = {"rho": 2.0, "step": 0.01, "tol": 1e-3}


@pytest.mark.parametrize("iterations", [1, 2, 3, 100])
@pytest.mark.parametrize("alpha", [0, 1, 16, 2**7])
@pytest.mark.parametrize("constraint", [True, False])
def test_iterates_and_residuals_equal_the_plain_ones(hidden, alpha, iterations, constraint, monkeypatch):
    in_small_tiles(monkeypatch)
    G = graph_laplacian(similarity_graph(hidden.X, 5, 1.0))
    options = {**OPTIONS, "alpha": alpha, "max_iter": iterations, "constraint": constraint}
    plain = algorithm1.solve(G, hidden.D_obs, hidden.observed, **options)
    swept = algorithm1_compiled.solve(G, hidden.D_obs, hidden.observed, **options)
    expected, n_iter = literal(
        G.toarray(), hidden.D_obs, hidden.observed, alpha, max_iter=iterations, constraint=constraint
    )
    assert np.abs(swept.D - expected).max() < 1e-10
    assert swept.n_iter == plain.n_iter == n_iter
    assert swept.converged == plain.converged
    assert swept.history.keys() == plain.history.keys()
    for name, gaps in plain.history.items():
        assert np.allclose(swept.history[name], gaps, atol=1e-10)


def test_it_stops_where_the_plain_one_stops(hidden):
    G = graph_laplacian(similarity_graph(hidden.X, 5, 1.0))
    options = {**OPTIONS, "alpha": 0.5, "step": 0.05, "rho": 1.0, "max_iter": 3000, "constraint": True}
    plain = algorithm1.solve(G, hidden.D_obs, hidden.observed, **options)
    swept = algorithm1_compiled.solve(G, hidden.D_obs, hidden.observed, **options)
    assert swept.converged
    assert swept.n_iter == plain.n_iter < 3000
    assert np.abs(swept.D - plain.D).max() < 1e-10


def test_threads_change_nothing_and_single_precision_stays(hidden, monkeypatch):
    in_small_tiles(monkeypatch)
    single = hidden.D_obs.astype(np.float32)
    G = graph_laplacian(similarity_graph(hidden.X, 5, 1.0)).astype(np.float32)
    options = {**OPTIONS, "alpha": 4.0, "max_iter": 50, "constraint": True}
    alone = algorithm1_compiled.solve(G, single, hidden.observed, **options)
    with ThreadPoolExecutor(3) as pool:
        together = algorithm1_compiled.solve(G, single, hidden.observed, **options, mapper=pool.map)
    assert alone.D.dtype == np.float32
    assert np.array_equal(alone.D, together.D)
    plain = algorithm1.solve(G, single, hidden.observed, **options)
    assert np.abs(alone.D - plain.D).max() < 1e-4


def test_large_tables_run_compiled(hidden, monkeypatch):
    plain = HidLDL(4.0).fit(hidden.X, hidden.D_obs, hidden.observed)
    monkeypatch.setattr("hidldl.recovery.hidldl.COMPILED_FROM", 1)
    swept = HidLDL(4.0, n_jobs=2).fit(hidden.X, hidden.D_obs, hidden.observed)
    assert not np.array_equal(swept.raw_distributions_, plain.raw_distributions_)
    assert np.abs(swept.raw_distributions_ - plain.raw_distributions_).max() < 1e-10
