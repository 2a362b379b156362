"""The methods on an NVIDIA card, each beside its goal and beside the limit that the card's memory sets.

Runs the library's own code with NumPy, SciPy and PyTorch alone: what it imports but never calls here may be missing.
"""

import argparse
import importlib
import sys
import traceback
import types
from collections.abc import Callable
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.util import find_spec, spec_from_loader
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple
from unittest.mock import MagicMock

import numpy as np
import torch
from provenance import ROOT, provenance, write_markdown

ROWS, LABELS, NEIGHBORS, FEATURES = 10_000_000, 10, 16, 16
LANDMARKS, ROUNDS = 500, 30
OPTIONS = {"alpha": 16.0, "rho": 2.0, "step": 0.01, "tol": 0.0, "constraint": True}
STAND_INS = {"joblib", "numba", "pandas", "sklearn", "threadpoolctl"}
"""What the library imports and nothing here calls; where one is missing, an object that has every name stands in."""
LOOKUPS = [(rows, at_once) for rows in (8, 16, 32, 64) for at_once in (1, 4, 8)]
TILES = [(16, 32, 1), (16, 64, 1), (32, 32, 1), (32, 32, 2), (32, 16, 2), (64, 32, 2), (64, 16, 4)]


class Timing(NamedTuple):
    """What was measured: seconds for all rows, the goal for ten million, and the bytes that must move at least."""

    what: str
    seconds: float
    goal: float | None = None
    gigabytes: float | None = None
    note: str = ""


class StandIns(MetaPathFinder, Loader):
    """Finds modules that nothing else finds."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        return spec_from_loader(name, self, is_package=True) if name.partition(".")[0] in STAND_INS else None

    def create_module(self, spec: Any) -> Any:
        return MagicMock()

    def exec_module(self, module: Any) -> None:
        pass


def library(name: str) -> Any:
    """A module of the library, without the package's own start, which needs more."""
    if "hidldl" not in sys.modules:
        package = types.ModuleType("hidldl")
        package.__path__ = [str(ROOT / "src" / "hidldl")]
        sys.modules["hidldl"] = package
        sys.meta_path.append(StandIns())
    return importlib.import_module(f"hidldl.{name}")


def seconds(work: Callable[[], Any], device: Any, turns: int = 1) -> float:
    """The least of some turns, until the device is done."""
    times = []
    for _ in range(turns):
        wait(device)
        started = perf_counter()
        work()
        wait(device)
        times.append(perf_counter() - started)
    return min(times)


def timed(work: Callable[[], Any], device: Any) -> tuple[float, Any]:
    """Seconds, and what came out."""
    results: list[Any] = []
    return seconds(lambda: results.append(work()), device), results[0]


def wait(device: Any) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def bandwidth(device: Any) -> float:
    """Bytes per second of a copy: read once, written once."""
    source = torch.ones(2**30 if device.type == "cuda" else 2**25, device=device)
    target = torch.empty_like(source)
    return 2 * source.nbytes / seconds(lambda: target.copy_(source), device, turns=10)


def shares_and_mask(n_rows: int, device: Any) -> tuple[Any, Any]:
    """Rows with half of their labels hidden, in single precision."""
    generator = torch.Generator(device).manual_seed(0)
    D = torch.softmax(torch.randn((n_rows, LABELS), generator=generator, device=device), dim=1)
    observed = torch.rand((n_rows, LABELS), generator=generator, device=device) < 0.5
    observed |= ~observed.any(dim=1, keepdim=True) & (torch.arange(LABELS, device=device) == 0)
    D *= observed
    return D / D.sum(dim=1, keepdim=True), observed


def scattered_laplacian(n_rows: int, device: Any) -> Any:
    """A graph in which every row has the same number of neighbours, anywhere in the table: the worst case."""
    generator = torch.Generator(device).manual_seed(1)
    order = torch.randperm(n_rows, generator=generator, device=device)
    place = torch.empty_like(order).scatter_(0, order, torch.arange(n_rows, device=device))
    steps = torch.arange(1, NEIGHBORS // 2 + 1, device=device) * max(n_rows // 97, 1)
    columns = torch.cat([place[:, None], (place[:, None] + torch.cat([steps, -steps])) % n_rows], dim=1)
    columns = order.to(torch.int32)[columns]
    values = torch.full(columns.shape, -0.5, device=device)
    values[:, 0] = NEIGHBORS / 2
    starts = torch.arange(0, columns.numel() + 1, NEIGHBORS + 1, device=device, dtype=torch.int32)
    return library("device").sparse_on_device(starts, columns.reshape(-1), values.reshape(-1), device)


def of_algorithm1(n_rows: int, device: Any) -> list[Timing]:
    """100 iterations of Algorithm 1, and their parts."""
    D_obs, observed = shares_and_mask(n_rows, device)
    G = scattered_laplacian(n_rows, device)
    table, graph = D_obs.nbytes / 1e9, (8 * G.values().numel() + 4 * n_rows) / 1e9
    lookups = (NEIGHBORS + 1) * table
    sweep = 7 * table + observed.nbytes / 1e9 + graph
    plain = library("recovery.algorithm1").solve
    few = {**OPTIONS, "max_iter": 5}
    out = torch.empty_like(D_obs)
    measured = seconds(lambda: plain(G, D_obs, observed, **few), device, turns=2) / 5
    timings = [Timing("an iteration, PyTorch alone", measured, None, sweep)]
    measured = seconds(lambda: G @ D_obs, device, turns=3)
    timings.append(Timing("graph times D, PyTorch alone", measured, None, graph + 2 * table))
    if device.type != "cuda":
        return timings
    kernels = library("recovery.algorithm1_triton")

    D = kernels.aligned(D_obs)

    def look_up() -> float:
        kernels.multiply(G, D, out)
        return seconds(lambda: kernels.multiply(G, D, out), device, turns=5)

    moved = graph + table + lookups
    timings.append(Timing("graph times D, kernel", look_up(), 1.8e-3, moved))
    best, note = best_configuration(kernels, ("LOOKUP_ROWS", "LOOKUPS_AT_ONCE"), LOOKUPS, look_up)
    timings.append(Timing("the same, best configuration", best, None, moved, note))
    expected = plain(G, D_obs, observed, **few).D
    off = float((kernels.solve(G, D_obs, observed, **few).D - expected).abs().max())
    del expected
    measured = seconds(lambda: kernels.solve(G, D_obs, observed, **OPTIONS, max_iter=100), device, turns=2)
    note = f"at most {off:.1e} from PyTorch alone after 5 iterations"
    timings.append(Timing("HidLDL, 100 iterations, if each value moves once", measured, 0.6, 101 * sweep, note))
    timings.append(Timing("the same, with the row of every neighbour", measured, 0.6, 101 * (sweep + lookups)))

    def iterate() -> float:
        kernels.solve(G, D_obs, observed, **few)
        return seconds(lambda: kernels.solve(G, D_obs, observed, **OPTIONS, max_iter=19), device, turns=2)

    best, note = best_configuration(kernels, ("TILE_ROWS", "TILES", "TILE_WARPS"), TILES, iterate)
    timings.append(Timing("20 sweeps, best configuration", best, None, 20 * (sweep + lookups), note))
    return timings


def best_configuration(
    kernels: Any, names: tuple[str, ...], candidates: Any, run: Callable[[], float]
) -> tuple[float, str]:
    """The least time over constants of the kernels, and which these are; the library's own are put back."""
    own = tuple(getattr(kernels, name) for name in names)
    times = {}
    for candidate in candidates:
        for name, value in zip(names, candidate, strict=True):
            setattr(kernels, name, value)
        try:
            times[candidate] = run()
        except RuntimeError:  # more than the card has
            times[candidate] = np.inf
    for name, value in zip(names, own, strict=True):
        setattr(kernels, name, value)
    best = min(times, key=lambda candidate: times[candidate])
    return times[best], f"{', '.join(names)} = {best}; the library has {own}"


def features(n_rows: int, n_directions: int, device: Any) -> Any:
    """Features that vary in so many directions: uniform ones if in all of them, the worst case of any search."""
    generator = torch.Generator(device).manual_seed(2)
    if n_directions == FEATURES:
        return torch.rand((n_rows, FEATURES), generator=generator, device=device)
    sources = torch.randn((n_rows, n_directions), generator=generator, device=device)
    return sources @ torch.randn((n_directions, FEATURES), generator=generator, device=device)


def of_the_graph(n_rows: int, device: Any) -> list[Timing]:
    return of_a_graph(n_rows, 6, device) + of_a_graph(n_rows, FEATURES, device)


def of_a_graph(n_rows: int, n_directions: int, device: Any) -> list[Timing]:
    """The search for neighbours, the graph, and Algorithm 1 on it."""
    graph_torch = library("graph_torch")
    X = features(n_rows, n_directions, device)
    name = "uniform" if n_directions == FEATURES else f"in {n_directions} directions"
    measured, neighbors = timed(lambda: graph_torch.nearest_neighbors(X, NEIGHBORS, True), device)
    gigabytes = (X.nbytes + neighbors.indices.nbytes + neighbors.distances.nbytes) / 1e9
    note = f"recall {neighbors.recall:.3f}"
    timings = [Timing(f"neighbours, {FEATURES} features, {name}", measured, 60, gigabytes, note)]
    sigma = float(neighbors.distances.median())
    measured, G = timed(lambda: graph_torch.laplacian(neighbors, sigma, X.dtype), device)
    note = f"{len(G.values()) / n_rows:.1f} entries per row"
    timings.append(Timing(f"their graph, {name}", measured, note=note))
    if device.type == "cuda":
        D_obs, observed = shares_and_mask(n_rows, device)
        solve, options = library("recovery.algorithm1_triton").solve, {**OPTIONS, "max_iter": 100}
        measured = seconds(lambda: solve(G, D_obs, observed, **options), device, turns=2)
        timings.append(Timing(f"HidLDL, 100 iterations on it, {name}", measured))
    return timings


def of_modes(n_rows: int, device: Any) -> list[Timing]:
    """Newton's method for each row, from nothing, for at most a million rows."""
    n_rows = min(n_rows, 1_000_000)
    shares, observed = shares_and_mask(n_rows, device)
    presence, ones = observed.float(), torch.ones(n_rows, device=device)
    S = torch.eye(LABELS, device=device) - 1 / LABELS

    def run(find: Callable[..., None]) -> None:
        weights, slope, evidence = torch.zeros_like(shares), torch.zeros_like(S), torch.zeros_like(ones)
        find(S, torch.zeros_like(shares), ones, shares, presence, 100 * ones, 20, 1e-3, ones, weights, slope, evidence)

    timings, moved = [], 4 * n_rows * (5 * LABELS + 4) / 1e9
    for name in ("torch", "triton")[: 2 if device.type == "cuda" else 1]:
        find = library(f"recovery.logisticnormal_{name}").find_modes
        run(find)
        measured, _ = timed(partial(run, find), device)
        timings.append(Timing(f"modes of {n_rows:,} rows, {name}", measured, None, moved))
    return timings


def kernel_of(X: Any) -> Any:
    """The library's kernel map, with distances of NumPy where scikit-learn is missing."""
    kernelmean = library("recovery.kernelmean")
    if isinstance(kernelmean.euclidean_distances, MagicMock):

        def squared_distances(A: Any, B: Any = None, squared: bool = True) -> Any:
            return ((A[:, None] - (A if B is None else B)) ** 2).sum(axis=2)

        kernelmean.euclidean_distances = squared_distances
    return kernelmean.Landmarks.choose(X, LANDMARKS, True, np.random.default_rng(0)).with_width(1.0)


def of_bayes(n_rows: int, device: Any) -> list[Timing]:
    """BayesHidLDL with given parameters, part by part, in single precision; arrays come from the host and go there."""
    fitting, on_it = library("recovery.fitting"), library("recovery.fitting_torch")
    posterior, latent = library("recovery.posterior"), library("recovery.latent")
    X = features(n_rows, 6, device).cpu().numpy()
    D_obs, observed = (part.cpu().numpy() for part in shares_and_mask(n_rows, device))
    kernel, parameters = kernel_of(X), latent.Parameters(nu=100.0, ridge=1.0, prior_rows=10.0)
    first, (F, means) = timed(lambda: on_it.kernel_features(kernel, X, torch.float32, device), device)
    second, regression = timed(lambda: on_it.ridge(F, means, parameters.ridge), device)
    how = {"max_iter": ROUNDS, "tol": 0.0, "regression": regression, "rounds_on": on_it.DeviceRounds}
    third, fit = timed(lambda: fitting.fit_latent_model(F, D_obs, observed, parameters, **how), device)
    draws = posterior.Draws.shared(np.random.default_rng(0), 128, LABELS)
    fourth, _ = timed(lambda: on_it.mean_rows(fit.model, fit.rows, draws, single=True, device=device), device)
    state = 4 * n_rows * (6 * LABELS + 2 * (LABELS + 1)) / 1e9
    in_rounds = ROUNDS * (F.nbytes / 1e9 + state)
    return [
        Timing(f"features of {LANDMARKS} landmarks", first, None, F.nbytes / 1e9),
        Timing("their scatter", second, None, F.nbytes / 1e9),
        Timing(f"{ROUNDS} rounds of EM, and the posterior", third, None, in_rounds),
        Timing("means of 128 draws", fourth),
        Timing("BayesHidLDL, all of these", first + second + third + fourth, 20),
    ]


PARTS = {"hidldl": of_algorithm1, "modes": of_modes, "bayes": of_bayes, "graph": of_the_graph}


def markdown(timings: list[Timing], speed: float, n_rows: int) -> str:
    heads = ("what", "seconds", "goal", "at least, GB", "share of the bandwidth", "note")
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    for timing in timings:
        share = "" if timing.gigabytes is None else f"{timing.gigabytes * 1e9 / speed / timing.seconds:.2f}"
        moved = "" if timing.gigabytes is None else f"{timing.gigabytes:.2f}"
        goal = "" if timing.goal is None or n_rows != ROWS else f"{timing.goal:g}"
        lines.append(f"| {timing.what} | {timing.seconds:.4g} | {goal} | {moved} | {share} | {timing.note} |")
    lines += ["", f"{n_rows:,} rows, {LABELS} labels; a copy moves {speed / 1e12:.3f} TB/s."]
    return "\n".join(lines)


def main(n_rows: int, device: Any, parts: list[str], path: Path | None) -> None:
    speed = bandwidth(device)
    timings = []
    for part in parts:
        started = perf_counter()
        try:
            timings += PARTS[part](n_rows, device)
        except Exception:
            # The other parts are worth their minutes.
            traceback.print_exc()
        print(f"{part}: {perf_counter() - started:.0f} s in all", file=sys.stderr, flush=True)
        # What is measured is seen even if a later part fails.
        print(markdown(timings, speed, n_rows), file=sys.stderr, flush=True)
        if device.type == "cuda":
            torch.cuda.empty_cache()
    packages = ["numpy", "torch", *(["triton"] if find_spec("triton") else [])]
    card = f", {torch.cuda.get_device_name(device)}" if device.type == "cuda" else ""
    source, text = provenance(packages, card), markdown(timings, speed, n_rows)
    print(f"{text}\n\n{source}")
    if path:
        write_markdown(path, text, source)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--no-kernel-for-modes", action="store_true", help="Newton's method in PyTorch alone")
    parser.add_argument("--write", type=Path, help="also write the table into this file")
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.set_grad_enabled(False)
    np.seterr(all="ignore")
    if arguments.no_kernel_for_modes:
        library("recovery.fitting_torch")._finder_on = lambda *_: library("recovery.logisticnormal_torch").find_modes
    main(arguments.rows, torch.device(arguments.device), arguments.parts, arguments.write)
