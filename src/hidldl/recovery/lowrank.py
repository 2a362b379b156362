"""Rows with many labels: what ``logisticnormal`` does, for a covariance of low rank but for a constant.

With S = U U' + c I, where U is m × r, a row costs |O| r² instead of |O|³. Along 1, S may be anything, since that
changes no share. With e = nu p / (1 + nu p t c), E = diag(e) and U over the observed labels:

- A = F - F 1 1' F / 1' F 1, with F = E - t E U M⁻¹ U' E and M = I + t U' E U, is the A of ``logisticnormal``: W is
  nu diag(p) with a flat prior along 1, and F is A without that;
- |I + W t S| = |M| * product of (1 + nu p t c) * (1' F 1) / nu.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from hidldl.arrays import FloatArray
from hidldl.compiling import compiled
from hidldl.recovery.covariances import bounded, centred, mean_by_distance
from hidldl.recovery.logisticnormal import loss_at, move, solve, solve_all, vectors
from hidldl.recovery.widerows import from_shares

FACTOR_LABELS = 128
"""From so many labels on, a covariance is of low rank but for a constant; with fewer, the whole one is affordable."""
BULK = 1.0
"""Eigenvalues are kept if they exceed the median by so many times the distance from the smallest one to it."""
MOST_FACTORS = 32
FIRST_FACTORS = 8
"""Most factors at the start of EM, whose eigenvalues are mostly noise; EM finds directions that are missing."""
SETTLING = 3
"""Rounds of EM in which the number of factors may fall."""
SMALLEST_REST = 1e-8
EQUAL = 1e-9
"""Eigenvalues that differ by less, relative to the largest, are the same."""
BLOCK_LABELS = 128
"""Labels whose products with all labels before them are computed at once."""


@dataclass(frozen=True)
class Factors:
    """S = U U' + c (I - 1 1' / m), whose parts are orthogonal to each other and to 1."""

    vectors: FloatArray
    eigenvalues: FloatArray
    rest: float

    @classmethod
    def of(cls, S: FloatArray) -> "Factors | None":
        """The factors of a covariance that has them: many labels, and a few large eigenvalues among equal ones."""
        n_labels = len(S)
        if n_labels < FACTOR_LABELS:
            return None
        eigenvalues, vectors = np.linalg.eigh(S)
        rest = float(eigenvalues[n_labels // 2])
        n_rest = int((eigenvalues[1:] <= rest + EQUAL * eigenvalues[-1]).sum())
        is_flat = rest > 0 and eigenvalues[1] >= rest - EQUAL * eigenvalues[-1]
        if not is_flat or n_labels - 1 - n_rest > most_factors(n_labels):
            return None
        return cls(np.ascontiguousarray(vectors[:, 1 + n_rest :]), eigenvalues[1 + n_rest :], rest)

    @classmethod
    def nearest(cls, S: FloatArray, smallest: float = 0.0, fewest: int = 0, most: int = MOST_FACTORS) -> "Factors":
        """The large eigenvalues of a centred covariance, and the mean of the others, which is at least ``smallest``.

        ``fewest`` factors are kept at least: with a number that goes up and down, EM would not come to rest.
        """
        n_labels = len(S)
        eigenvalues, vectors = np.linalg.eigh(S)
        total, middle = float(eigenvalues.sum()), float(np.median(eigenvalues))
        edge = middle + BULK * (middle - eigenvalues[1]) + EQUAL * eigenvalues[-1]
        n_large = int((eigenvalues > edge).sum())
        kept = slice(n_labels - min(max(n_large, fewest), most_factors(n_labels), most), None)
        # The direction of 1 has the eigenvalue 0, wherever that is among the others.
        rest = (total - eigenvalues[kept].sum()) / (kept.start - 1)
        rest = max(rest, smallest, SMALLEST_REST * total / n_labels, 1e-300)
        return cls(np.ascontiguousarray(vectors[:, kept]), np.maximum(eigenvalues[kept], rest), float(rest))

    @classmethod
    def shrunk(cls, S: FloatArray, n_rows: int, prior_rows: float, ordered: bool, fewest: int) -> "Factors":
        """As ``covariances.shrunk``."""
        S, typical = bounded(S)
        own = n_rows / (n_rows + prior_rows)
        if ordered:
            smallest = 1e-3 * (1 - own) * typical
            return cls.nearest(own * S + (1 - own) * centred(mean_by_distance(S)), smallest, fewest)
        # The prior would make small eigenvalues look alike, so it comes second.
        nearest = cls.nearest(S, fewest=fewest)
        eigenvalues, rest = own * nearest.eigenvalues, own * nearest.rest
        return cls(nearest.vectors, eigenvalues + (1 - own) * typical, rest + (1 - own) * typical)

    @cached_property
    def loadings(self) -> FloatArray:
        """U, m × r."""
        return np.asarray(self.vectors * np.sqrt(np.maximum(self.eigenvalues - self.rest, 0)))

    @property
    def n_factors(self) -> int:
        return int(self.vectors.shape[1])

    @property
    def covariance(self) -> FloatArray:
        n_labels = len(self.loadings)
        return np.asarray(self.loadings @ self.loadings.T + self.rest * (np.eye(n_labels) - 1 / n_labels))

    def times(self, rows: FloatArray) -> FloatArray:
        """S times each row; rows sum to 0."""
        return np.asarray((rows @ self.loadings) @ self.loadings.T + self.rest * rows)

    def around(self, slope: FloatArray) -> FloatArray:
        """S slope S, for a symmetric slope whose rows sum to 0."""
        return self.times(self.times(slope).T)

    def draws(self, normals: FloatArray) -> FloatArray:
        """Draws from N(0, S), (rows, m, draws), from standard normal ones."""
        small = np.sqrt(self.rest)
        larger = (self.vectors * (np.sqrt(self.eigenvalues) - small)) @ (self.vectors.T @ normals)
        return np.asarray(larger + small * (normals - normals.mean(axis=1, keepdims=True)))


def most_factors(n_labels: int) -> int:
    """More of them would take as long as the whole covariance, or follow noise."""
    return min(n_labels // 3, MOST_FACTORS)


def find_modes(
    factors: Factors,
    mean: FloatArray,
    scale: FloatArray,
    shares: FloatArray,
    presence: FloatArray,
    nu: FloatArray,
    max_newton: int,
    tol: float,
    importance: FloatArray,
    weights: FloatArray,
    slope: FloatArray,
    evidence: FloatArray,
) -> None:
    """As ``logisticnormal.find_modes``."""
    rows = (mean, scale, shares, presence, nu)
    _find_modes(factors.loadings, factors.rest, *rows, max_newton, tol, importance, weights, slope, evidence)


@compiled
def _find_modes(  # type: ignore[no-untyped-def]
    U, rest, mean, scale, shares, presence, nu, max_newton, tol, importance, weights, slope, evidence
):
    n_labels, n_factors = U.shape
    labels = np.empty(n_labels, np.int64)
    own, M, x, _ = _work(n_labels, n_factors)
    scaled, stacked = np.empty((n_labels, n_factors)), np.empty((n_factors + 2) * n_labels)
    d, center, a, f, p = vectors(n_labels)
    e, q, new_a, new_f, vector = vectors(n_labels)
    for i in range(len(mean)):
        if max_newton == 0 and importance[i] <= 0:
            continue
        o = _gather(U, mean[i], shares[i], presence[i], weights[i], labels, own, center, d, a)
        if o == 0:
            continue
        t = scale[i]
        # As in ``widerows``: a step from the shares, or a = 0 where that is better.
        if max_newton > 0:
            from_shares(center, d, a, nu[i], f, p, o)
            _, total = _curve(own, rest, t, nu[i], p, scaled, M, x, e, q, o)
            _newton(own, rest, t, nu[i], M, x, e, q, total, f, p, d, new_a, vector, o)
            a[:o] = new_a[:o]
        _shift(own, rest, t, a, x, f, o)
        loss = loss_at(center, f, a, d, nu[i], p, o)
        new_a[:o] = 0
        new_f[:o] = 0
        if not loss < loss_at(center, new_f, new_a, d, nu[i], vector, o):
            a[:o] = 0
            f[:o] = 0
            loss = loss_at(center, f, a, d, nu[i], p, o)
        log_determinant, total = 0.0, 1.0
        if max_newton == 0:
            log_determinant, total = _curve(own, rest, t, nu[i], p, scaled, M, x, e, q, o)
        for _ in range(max_newton):
            log_determinant, total = _curve(own, rest, t, nu[i], p, scaled, M, x, e, q, o)
            _newton(own, rest, t, nu[i], M, x, e, q, total, f, p, d, new_a, vector, o)
            _shift(own, rest, t, new_a, x, new_f, o)
            before = loss
            loss = move(center, a, f, new_a, new_f, d, nu[i], p, loss, o)
            # So small a step hardly changes the curvature, which is not computed once more.
            if before - loss < tol:
                break
        evidence[i] = -loss - log_determinant
        for u in range(o):
            weights[i, labels[u]] = a[u]
        if importance[i] > 0:
            rows = stacked[: (n_factors + 2) * o].reshape(n_factors + 2, o)
            _stack(own, M, t, importance[i] * t, a, e, q, total, rows, o)
            _add_products(rows, slope, labels)
            for u in range(o):
                slope[labels[u], labels[u]] -= importance[i] * t * e[u]
    for u in range(n_labels):
        for v in range(u):
            slope[v, u] = slope[u, v]


@compiled
def draw_log_shares(  # type: ignore[no-untyped-def]
    U, rest, mean, scale, presence, nu, weights, prior_draws, noise, first, last, out
):
    """As ``logisticnormal.draw_log_shares``: mode + u - t S A (u + w), with w from N(0, 1 / (nu p))."""
    (n_labels, n_factors), n_draws = U.shape, prior_draws.shape[2]
    labels = np.empty(n_labels, np.int64)
    own, M, x, shift = _work(n_labels, n_factors)
    scaled = np.empty((n_labels, n_factors))
    d, center, a, f, p = vectors(n_labels)
    e, q, mode, _, _ = vectors(n_labels)
    all_pulls = np.empty(n_labels * n_draws)
    for i in range(len(mean)):
        begin, end, t = first[i], last[i], scale[i]
        width = end - begin
        if width == 0:
            continue
        at = i if len(prior_draws) > 1 else 0
        o = _gather(U, mean[i], mean[i], presence[i], weights[i], labels, own, center, d, a)
        target, root = out[i, :, begin:end], np.sqrt(t)
        x[:] = 0.0
        if o:
            _shift(own, rest, t, a, x, f, o)
            shift[:] = x
            loss_at(center, f, a, d, nu[i], p, o)
            _, total = _curve(own, rest, t, nu[i], p, scaled, M, x, e, q, o)
            x[:] = shift
        pulls = all_pulls[: o * width].reshape(o, width)
        for u in range(o):
            j, counts = labels[u], nu[i] * p[u]
            by_prior, by_noise = root * e[u], np.sqrt(counts) / (1.0 + counts * t * rest)
            for k in range(width):
                pulls[u, k] = by_prior * prior_draws[at, j, begin + k] + by_noise * noise[at, j, begin + k]
        inner = np.dot(own[:o].T, pulls)
        if o:
            solve_all(M, inner, n_factors)
            _pull(own, t, e, q, total, inner, pulls, o)
            inner = np.dot(own[:o].T, pulls)
        moved = np.dot(U, inner)
        for j in range(n_labels):
            mode[j] = mean[i, j]
            for k in range(n_factors):
                mode[j] += t * U[j, k] * x[k]
            for k in range(width):
                target[j, k] = mode[j] + root * prior_draws[at, j, begin + k] - t * moved[j, k]
        for u in range(o):
            for k in range(width):
                target[labels[u], k] += t * rest * (a[u] - pulls[u, k])


@compiled
def _work(n_labels, n_factors):  # type: ignore[no-untyped-def]
    square = np.empty((n_factors, n_factors))
    return np.empty((n_labels, n_factors)), square, np.empty(n_factors), np.empty(n_factors)


@compiled
def _gather(U, mean, shares, presence, weights, labels, own, center, d, a):  # type: ignore[no-untyped-def]
    """The observed part of a row, packed to the front of the work arrays; returns how many labels it has."""
    o = 0
    for j in range(len(presence)):
        if presence[j] > 0:
            labels[o] = j
            center[o], d[o], a[o] = mean[j] + np.log(presence[j]), shares[j], weights[j]
            own[o] = U[j]
            o += 1
    return o


@compiled
def _shift(own, rest, t, a, x, out, o):  # type: ignore[no-untyped-def]
    """t S a over the observed labels; x becomes U' a."""
    _inner(own, a, x, o)
    for u in range(o):
        total = rest * a[u]
        for k in range(len(x)):
            total += own[u, k] * x[k]
        out[u] = t * total


@compiled
def _inner(own, a, x, o):  # type: ignore[no-untyped-def]
    x[:] = 0.0
    for u in range(o):
        for k in range(len(x)):
            x[k] += own[u, k] * a[u]


@compiled
def _curve(own, rest, t, nu, p, scaled, M, x, e, q, o):  # type: ignore[no-untyped-def]
    """Sets e, the Cholesky factor in M, and q = F 1; returns half the log-determinant, and 1' q."""
    half_log_determinant = 0.0
    for u in range(o):
        growth = 1.0 + nu * p[u] * t * rest
        half_log_determinant += 0.5 * np.log(growth)
        e[u] = nu * p[u] / growth
        root = np.sqrt(t * e[u])
        for k in range(len(x)):
            scaled[u, k] = root * own[u, k]
    np.dot(scaled[:o].T, scaled[:o], M)
    for k in range(len(x)):
        M[k, k] += 1.0
        for j in range(k + 1):
            total = M[k, j]
            for i in range(j):
                total -= M[k, i] * M[j, i]
            # At least 1 but for rounding.
            M[k, j] = total / M[j, j] if j < k else np.sqrt(max(total, 1.0))
        half_log_determinant += np.log(M[k, k])
    q[:o] = e[:o]
    _reduce(own, t, M, x, e, q, o)
    total = 0.0
    for u in range(o):
        total += q[u]
    # At least a little, so that what is divided by it stays finite.
    total = max(total, 1e-300)
    return half_log_determinant + 0.5 * np.log(total / nu), total


@compiled
def _reduce(own, t, M, x, e, vector, o):  # type: ignore[no-untyped-def]
    """From E v to F v."""
    _inner(own, vector, x, o)
    solve(M, x, len(x))
    for u in range(o):
        total = 0.0
        for k in range(len(x)):
            total += own[u, k] * x[k]
        vector[u] -= t * e[u] * total


@compiled
def _newton(own, rest, t, nu, M, x, e, q, total, f, p, d, new_a, vector, o):  # type: ignore[no-untyped-def]
    """Newton's next a: b - A t S b with b = W f + nu (d - p)."""
    mean_f = 0.0
    for u in range(o):
        mean_f += p[u] * f[u]
    for u in range(o):
        new_a[u] = nu * (p[u] * (f[u] - mean_f) + d[u] - p[u])
    _shift(own, rest, t, new_a, x, vector, o)
    for u in range(o):
        vector[u] *= e[u]
    _reduce(own, t, M, x, e, vector, o)
    along = 0.0
    for u in range(o):
        along += vector[u]
    for u in range(o):
        new_a[u] -= vector[u] - q[u] * (along / total)


@compiled
def _pull(own, t, e, q, total, inner, pulls, o):  # type: ignore[no-untyped-def]
    """A (u + w) of all draws, from E (u + w) and from M⁻¹ U' of that."""
    moved = np.dot(own[:o], inner)
    along = np.zeros(pulls.shape[1])
    for u in range(o):
        for k in range(len(along)):
            pulls[u, k] -= t * e[u] * moved[u, k]
            along[k] += pulls[u, k]
    for u in range(o):
        for k in range(len(along)):
            pulls[u, k] -= q[u] / total * along[k]


@compiled
def _stack(own, M, t, weight, a, e, q, total, rows, o):  # type: ignore[no-untyped-def]
    """Vectors whose products sum to weight * (a a' - A) but for its diagonal part, weight * E."""
    n_factors, root = own.shape[1], np.sqrt(weight)
    # L⁻¹ (sqrt(t) E U)', a factor at a time for all labels, so that loops become vector instructions.
    for k in range(n_factors):
        for u in range(o):
            rows[k, u] = root * np.sqrt(t) * e[u] * own[u, k]
        for j in range(k):
            for u in range(o):
                rows[k, u] -= M[k, j] * rows[j, u]
        for u in range(o):
            rows[k, u] /= M[k, k]
    for u in range(o):
        rows[n_factors, u] = root * a[u]
        rows[n_factors + 1, u] = root * q[u] / np.sqrt(total)


@compiled
def _add_products(rows, slope, labels):  # type: ignore[no-untyped-def]
    """Adds the products of rows, of observed labels only, to the lower triangle of the slope."""
    o = rows.shape[1]
    for start in range(0, o, BLOCK_LABELS):
        end = min(start + BLOCK_LABELS, o)
        # The rest of the triangle's square is computed for nothing, so blocks are narrow.
        products = np.dot(rows[:, start:end].T.copy(), rows[:, :end].copy())
        for u in range(start, end):
            target, source = slope[labels[u]], products[u - start]
            for v in range(u + 1):
                target[labels[v]] += source[v]
