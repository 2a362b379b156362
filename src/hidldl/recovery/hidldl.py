"""HidLDL: the paper's method."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy import sparse
from sklearn.utils.sparsefuncs import min_max_axis
from sklearn.utils.validation import check_is_fitted

from hidldl.arrays import BoolArray, FloatArray, IntArray
from hidldl.base import Recoverer
from hidldl.device import has_triton, on_device, resolved_device
from hidldl.graph import (
    SEARCHES,
    Search,
    centred,
    graph_laplacian,
    locality_order,
    nearest_neighbors,
    reordered,
    resolved_search,
    typical_distance,
    warn_of_low_recall,
    warn_of_small_sigma,
    weighted_graph,
)
from hidldl.learner import Learner
from hidldl.learners.sabfgs import SABFGS
from hidldl.parallel import threads
from hidldl.progress import Verbose, shown
from hidldl.randomness import RandomState, random_generator
from hidldl.recovery import exact
from hidldl.recovery.algorithm1 import Solution, solve
from hidldl.recovery.following import FollowingLearner
from hidldl.selection import MEASURE, N_DRAWS, Candidate, Selection, choose, enough_rows, play
from hidldl.validation import AUTO, Auto, check_choice, check_flag, check_number, check_verbose, check_workers

DEFAULT_ALPHA = 16.0
ALPHAS = tuple(2.0**exponent for exponent in (-10, -6, -3, -1, 0, 1, 2, 3, 4, 5, 6))
"""The candidates of ``alpha="auto"``: below them the trace norm has no effect, above them Algorithm 1 diverges."""
COMPILED_FROM = 1_000_000
"""Entries of D_obs from which Algorithm 1 runs compiled; smaller tables take only seconds without a compiler."""
STOPS = {"algorithm1": (100, 1e-3), "exact": (10_000, 1e-5)}
"""Each solver's own ``max_iter`` and ``tol``."""


@dataclass
class _Graph:
    laplacian: Any
    """A sparse matrix: SciPy's, or a tensor on a device."""
    order: IntArray | slice
    """The order of its rows. Rows of large tables are reordered, so that neighbours lie close in memory."""
    sigma: float
    recall: float
    device: Any = None
    warm_start: tuple[FloatArray, exact.Iterate] | None = None
    """Rows and the last iterate of the exact solver for them, where the next alpha of a path starts."""


class HidLDL(Recoverer):
    """Recovery by a neighbour graph, a trace norm and the observed proportions.

    Rows with similar features should have similar distributions, labels vary together, and the observed shares
    are right up to a factor per row::

        minimise    1/2 tr(D' G D) + alpha ||D||_*
        subject to  rows of D on the simplex, and k_i * d_obs_i = d_i on the observed labels of row i

    G is the Laplacian of the graph that connects rows if either is among the other's nearest neighbours, with
    weights exp(-distance² / (2 sigma²)). Solved by the paper's Algorithm 1 (ADMM), which stops early, or exactly.

    Parameters
    ----------
    alpha : float or "auto", default=16
        Weight of the trace norm. The paper finds 8 to 32 good; 0 is its ablation "w/o TN". From 64 on the
        algorithm tends to diverge. "auto" chooses without ground truth: observed labels are hidden again, and the
        alpha that recovers them best wins.
    n_neighbors : int or None
        Neighbours of each row; the number of labels by default.
    neighbor_search : "auto", "exact" or "approximate", default="auto"
        How neighbours are found. "approximate" takes much less time for many rows and needs
        ``pip install 'hidldl[ann]'``; "auto" is exact up to 100,000 rows.
    sigma : float or "auto", default=1
        Width of the Gaussian kernel, in the units of the features, which are used as they are. "auto" is the median
        distance between neighbours.
    constraint : bool, default=True
        Keep the observed proportions. False is the paper's ablation "w/o Cons": ``distributions_`` is then on
        the simplex only.
    solver : "algorithm1" or "exact", default="algorithm1"
        "exact" finds the problem's optimum, with a duality gap that certifies it; it needs the constraint.
    rho, step : float, default=2 and 0.01
        Penalty of the ADMM and length of its gradient step; for Algorithm 1 only.
    max_iter, tol : int and float, optional
        Algorithm 1 stops after ``max_iter`` iterations (100), or when the splits agree within ``tol`` (1e-3) in every
        entry. The exact solver stops after 10,000, or when the duality gap is at most ``tol`` (1e-5) of the objective.
    n_jobs : int or None
        Threads of Algorithm 1 for tables of a million entries and more; the result does not depend on their number.
    device : None, "auto", "cpu", "cuda" or "cuda:N", default=None
        Where the graph is made and Algorithm 1 runs: with NumPy and compiled code (None), or in PyTorch, which needs
        ``pip install 'hidldl[gpu]'``. "auto" is an NVIDIA card where there is one, else None. Fastest for float32.
    verbose : bool or callable, default=False
        Show the progress of ``alpha="auto"``, or call a function with the work done, the total and a text.
    random_state : int, Generator, RandomState or None
        Seed of the learner behind ``predict`` and of the labels that ``alpha="auto"`` hides again; with a given alpha
        the recovery is not random.

    Attributes
    ----------
    distributions_ : array or DataFrame of shape (n, m)
        Recovered rows: on the simplex, and proportional to what was observed.
    raw_distributions_ : array or DataFrame of shape (n, m)
        Algorithm 1's last iterate, whose proportions are slightly off: the matrix of the paper's tables.
    hidden_mass_ : array or Series of shape (n,)
        How much of each row the hidden labels hold.
    scaling_ : array or Series of shape (n,)
        The coefficients k_i, 1 - ``hidden_mass_``.
    observed_ : boolean array or DataFrame of shape (n, m)
        Which shares were observed.
    alpha_, sigma_, neighbor_search_ : float, float and str
        The parameters, as given or as chosen.
    neighbor_recall_ : float
        Share of the true neighbours that the search found, measured on a sample of rows; 1 if it was exact.
    selection_ : Selection or None
        The candidates of ``alpha="auto"``, their losses and how sure the choice is.
    learner_ : SABFGS
        The learner behind ``predict``, trained on ``distributions_`` when it is first needed. Until then the
        model holds a copy of X.
    duality_gap_ : float
        How far above the optimum the objective can be, relative to it; with ``solver="exact"`` only.
    history_ : dict
        Largest difference after each iteration between D and its low-rank split (``"low_rank"``) and its
        proportional split (``"proportions"``). For the exact solver, every ten iterations, the best ``"objective"`` and
        relative ``"gap"`` so far.
    n_iter_, converged_ : int, bool
        How many iterations ran, and whether ``tol`` was reached.

    References
    ----------
    J. Jiang, J. Tang, J. Jiang, H. Liu, J. Hou, Y. Jia. Towards Better IncomLDL: We Are Unaware of Hidden
    Labels in Advance. AAAI 2026.

    Examples
    --------
    >>> from hidldl import HidLDL, hide_labels, make_distributions, score
    >>> data = make_distributions(n_rows=300, n_labels=5, random_state=0)
    >>> D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=0)
    >>> model = HidLDL(alpha=4).fit(data.features, D_obs, observed=observed)
    >>> before, after = (score(data.distributions, D)["chebyshev"] for D in (D_obs, model.distributions_))
    >>> after < before / 2
    True
    """

    _min_rows = 2
    saved_attributes = ("_follower", "alpha_", "sigma_", "neighbor_search_")

    def __init__(
        self,
        alpha: float | Auto = DEFAULT_ALPHA,
        *,
        n_neighbors: int | None = None,
        neighbor_search: Search = "auto",
        sigma: float | Auto = 1.0,
        constraint: bool = True,
        solver: Literal["algorithm1", "exact"] = "algorithm1",
        rho: float = 2.0,
        step: float = 0.01,
        max_iter: int | None = None,
        tol: float | None = None,
        n_jobs: int | None = None,
        device: str | None = None,
        verbose: Verbose = False,
        random_state: RandomState = None,
    ) -> None:
        self.alpha = alpha
        self.n_neighbors = n_neighbors
        self.neighbor_search = neighbor_search
        self.sigma = sigma
        self.constraint = constraint
        self.solver = solver
        self.rho = rho
        self.step = step
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    @property
    def keeps_proportions(self) -> bool:
        return self.constraint

    @property
    def tunes_itself(self) -> bool:
        return isinstance(self.alpha, str)

    @property
    def learner_(self) -> Learner:
        check_is_fitted(self)
        return self._follower.trained()

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        check_number(self.alpha, "alpha", at_least=0, or_auto=True)
        check_number(self.sigma, "sigma", above=0, or_auto=True)
        check_choice(self.neighbor_search, "neighbor_search", SEARCHES)
        check_flag(self.constraint, "constraint")
        check_choice(self.solver, "solver", tuple(STOPS))
        if self.solver == "exact" and not self.constraint:
            raise ValueError(
                'solver="exact" needs constraint=True, since observed rows enter its problem by the constraint only; '
                'set that, or solver="algorithm1".'
            )
        if self.solver == "exact" and self._runs_on is not None:
            raise ValueError('solver="exact" runs without a device only; leave device out, or set solver="algorithm1".')
        check_workers(self.n_jobs)
        check_verbose(self.verbose)
        check_number(self._max_iter, "max_iter", at_least=1, integer=True)
        check_number(self._tol, "tol", at_least=0)
        for name in ("rho", "step"):
            check_number(getattr(self, name), name, above=0)
        if self.n_neighbors is not None:
            check_number(self.n_neighbors, "n_neighbors", at_least=1, integer=True)
            if self.n_neighbors >= n_rows:
                raise ValueError(
                    f"n_neighbors={self.n_neighbors} needs more than {self.n_neighbors} rows, X has {n_rows}; "
                    f"choose at most {n_rows - 1}."
                )

    def _prepare(self, X: Any, D_obs: FloatArray) -> Any:
        _refuse_identical_rows(X)
        n_rows, n_labels = D_obs.shape
        n_neighbors, device = self.n_neighbors or min(n_labels, n_rows - 1), self._runs_on
        if device is not None:
            return self._prepare_on(device, X, n_neighbors, D_obs.dtype)
        neighbors = nearest_neighbors(X, n_neighbors, self.neighbor_search)
        sigma = typical_distance(neighbors.distances) if isinstance(self.sigma, str) else self.sigma
        laplacian = graph_laplacian(weighted_graph(neighbors, sigma).astype(D_obs.dtype))
        if D_obs.size < COMPILED_FROM:
            return _Graph(laplacian, slice(None), sigma, neighbors.recall)
        order = locality_order(laplacian)
        return _Graph(reordered(laplacian, order), order, sigma, neighbors.recall)

    def _prepare_on(self, device: Any, X: Any, n_neighbors: int, dtype: Any) -> _Graph:
        """The graph in PyTorch."""
        if sparse.issparse(X):
            raise ValueError("device needs dense features, X is sparse; leave device out, or pass X.toarray().")
        import torch

        from hidldl.graph_torch import laplacian, neighbors_on_device

        approximate = resolved_search(self.neighbor_search, len(X)) == "approximate"
        neighbors = neighbors_on_device(centred(X), n_neighbors, approximate, device)
        warn_of_low_recall(neighbors.recall)
        sigma = typical_distance(neighbors.distances.cpu().numpy()) if isinstance(self.sigma, str) else self.sigma
        warn_of_small_sigma(sigma, float(neighbors.distances.median()))
        precision = torch.float32 if dtype == np.float32 else torch.float64
        graph = laplacian(neighbors, sigma, precision)
        return _Graph(graph, neighbors.order.cpu().numpy(), sigma, neighbors.recall, device)

    @property
    def _runs_on(self) -> Any:
        """The device, or None; "auto" is one only for what can run there."""
        return None if self.device == AUTO and self.solver == "exact" else resolved_device(self.device)

    def _recover(self, prepared: _Graph, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
        self.neighbor_search_ = resolved_search(self.neighbor_search, len(D_obs))
        self.sigma_, self.neighbor_recall_ = prepared.sigma, prepared.recall
        self.alpha_, self.selection_ = self._choose_alpha(prepared, D_obs, observed)
        solution = self._solve(prepared, D_obs, observed, self.alpha_)
        if self.solver == "exact":
            self.duality_gap_ = float(solution.history["gap"][-1])
            reason = f"the duality gap is {self.duality_gap_:.2g} of the objective, tol is {self._tol:g}"
        else:
            residual = max(gaps[-1] for gaps in solution.history.values())
            reason = f"the residual is {residual:.2g}, tol is {self._tol:g}"
        self._record_convergence(solution.history, solution.converged, reason, solution.n_iter)
        return solution.D.astype(D_obs.dtype, copy=False)

    @property
    def _max_iter(self) -> int:
        return STOPS[self.solver][0] if self.max_iter is None else self.max_iter

    @property
    def _tol(self) -> float:
        return STOPS[self.solver][1] if self.tol is None else self.tol

    def _solve(self, graph: _Graph, D_obs: FloatArray, observed: BoolArray, alpha: float) -> Solution:
        ordered = (D_obs[graph.order], observed[graph.order])
        if self.solver == "exact":
            # For the same rows only, or the result would depend on what was solved before.
            start = graph.warm_start[1] if graph.warm_start is not None and graph.warm_start[0] is D_obs else None
            solution, last = self._solve_exactly(graph.laplacian, *ordered, alpha, start)
            graph.warm_start = (D_obs, last)
        else:
            solution = self._run_algorithm1(graph, *ordered, alpha)
        D = np.empty_like(solution.D)
        D[graph.order] = solution.D
        return replace(solution, D=D)

    def _solve_exactly(
        self, laplacian: sparse.csr_array, D_obs: FloatArray, observed: BoolArray, alpha: float, start: Any
    ) -> tuple[Solution, exact.Iterate]:
        problem = exact.ConvexProblem(laplacian.astype(np.float64), D_obs.astype(np.float64), observed, alpha)
        return exact.solve(problem, max_iter=self._max_iter, tol=self._tol, start=start)

    def _run_algorithm1(self, graph: _Graph, D_obs: FloatArray, observed: BoolArray, alpha: float) -> Solution:
        options: dict[str, Any] = {
            "alpha": alpha,
            "rho": self.rho,
            "step": self.step,
            "max_iter": self._max_iter,
            "tol": self._tol,
            "constraint": self.constraint,
        }
        if graph.device is not None:
            there = (on_device(D_obs, graph.device), on_device(observed, graph.device))
            solution = _solver_on(graph.device, D_obs.dtype)(graph.laplacian, *there, **options)
            return replace(solution, D=solution.D.cpu().numpy())
        if D_obs.size < COMPILED_FROM:
            return solve(graph.laplacian, D_obs, observed, **options)
        from hidldl.recovery import algorithm1_compiled

        with threads(self.n_jobs) as mapper:
            return algorithm1_compiled.solve(graph.laplacian, D_obs, observed, **options, mapper=mapper)

    def _choose_alpha(self, graph: _Graph, D_obs: FloatArray, observed: BoolArray) -> tuple[float, Selection | None]:
        """alpha as given, or chosen by the re-hiding game; the default where too few rows can play."""
        if not isinstance(self.alpha, str):
            return self.alpha, None

        def recover(candidate: Candidate, shares: FloatArray, mask: BoolArray) -> FloatArray:
            return self._on_the_simplex(self._solve(graph, shares, mask, candidate["alpha"]).D, shares, mask)

        rng = random_generator(self.random_state)
        candidates = [{"alpha": alpha} for alpha in ALPHAS]
        with shown(self.verbose) as progress:
            losses = play(
                recover, candidates, D_obs, observed, measure=MEASURE, n_draws=N_DRAWS, rng=rng, progress=progress
            )
        if not enough_rows(losses):
            return DEFAULT_ALPHA, None
        chosen = choose(losses, safe=ALPHAS.index(DEFAULT_ALPHA))
        return ALPHAS[chosen], Selection.of(candidates, losses, chosen, MEASURE, rng)

    def _after_recovery(self, X: Any, distributions: FloatArray) -> None:
        # A seed drawn now, so that a copy made before the first prediction predicts the same.
        seed = self.random_state if self.random_state is not None else int(random_generator(None).integers(2**31))
        self._follower = FollowingLearner(SABFGS(random_state=seed), X, distributions)

    def _predict(self, X: Any) -> FloatArray:
        return np.asarray(self.learner_.predict(X))


def _solver_on(device: Any, dtype: Any) -> Any:
    """Algorithm 1 there: with kernels on a card, in single precision, which is what they are written for."""
    if device.type != "cuda" or dtype != np.float32 or not has_triton():
        return solve
    from hidldl.recovery import algorithm1_triton

    return algorithm1_triton.solve


def _refuse_identical_rows(X: Any) -> None:
    lowest, highest = min_max_axis(X, axis=0) if sparse.issparse(X) else (X.min(axis=0), X.max(axis=0))
    if np.array_equal(lowest, highest):
        raise ValueError(
            "every row of X is the same, and constant features say nothing about hidden labels; give features that "
            "vary, or use MeanFill, which does not need them."
        )
