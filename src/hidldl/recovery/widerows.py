"""Rows with tens of labels: what ``logisticnormal`` does, in loops that run along rows of matrices.

There, short loops over columns are quickest; from some tens of labels on they are most of the time. Here every inner
loop runs along consecutive numbers, which makes vector instructions of it, and fewer numbers are computed:

- B = I + R' K R has the eigenvalue 1 along r = sqrt(p), which no result depends on. In its place it gets a large one,
  ``lift``: B + (lift - 1) r r'. Its inverse C is then as exact as the condition of K allows, and
  A = nu diag(r) (C - r r' / lift) diag(r), of which only a triangle is computed.
- Its Cholesky factor is kept as U with U' U = B + (lift - 1) r r', a row at a time, four rows of U at once.
- Newton's method starts from the observed shares: its next point depends on the last one by z alone, and z = log(d) is
  the mode but for the prior. That saves most of the steps where annotations weigh much.
"""

import numpy as np

from hidldl.arrays import FloatArray, IntArray
from hidldl.compiling import compiled
from hidldl.recovery.logisticnormal import (
    _add,
    _project,
    _project_all,
    _scale,
    gather,
    loss_at,
    matrices,
    move,
    vectors,
)

WIDE_LABELS = 24
"""From so many labels on, this is quicker than ``logisticnormal``."""
SMALLEST_COUNT = 1e-6
"""Least pseudo-counts of a label where Newton's method starts."""
NEAR = 0.1
"""In relation to ``tol``: how near shares must be for the curvature to be taken as the same."""


@compiled
def find_modes(
    S: FloatArray,
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
    n_labels = S.shape[0]
    labels = np.empty(n_labels, np.int64)
    K, U, C = matrices(n_labels)
    d, center, a, f, p = vectors(n_labels)
    r, new_a, new_f, vector, _ = vectors(n_labels)
    for i in range(len(mean)):
        if max_newton == 0 and importance[i] <= 0:
            continue
        o = gather(S, scale[i], mean[i], shares[i], presence[i], weights[i], labels, K, center, d, a)
        if o == 0:
            continue
        log_determinant, lift = 0.0, 1.0
        if max_newton > 0:
            from_shares(center, d, a, nu[i], f, p, o)
            log_determinant, lift = factorise(K, p, nu[i], r, U, vector, o)
            newton(K, U, f, p, r, d, nu[i], new_a, vector, o)
            a[:o] = new_a[:o]
        multiply(K, a, f, o)
        loss = loss_at(center, f, a, d, nu[i], p, o)
        # Where shares are far from what the prior expects, a step from there can be worse than a = 0.
        new_a[:o] = 0
        new_f[:o] = 0
        if not loss < loss_at(center, new_f, new_a, d, nu[i], vector, o):
            a[:o] = 0
            f[:o] = 0
            loss = loss_at(center, f, a, d, nu[i], p, o)
        if max_newton == 0:
            log_determinant, lift = factorise(K, p, nu[i], r, U, vector, o)
        # While r is where the curvature was computed, and p is next to it, a step needs no other curvature.
        is_near = max_newton > 0 and relative_change(p, r, o) < NEAR * tol
        for _ in range(max_newton):
            if not is_near:
                log_determinant, lift = factorise(K, p, nu[i], r, U, vector, o)
            newton(K, U, f, p, r, d, nu[i], new_a, vector, o)
            multiply(K, new_a, new_f, o)
            before = loss
            loss = move(center, a, f, new_a, new_f, d, nu[i], p, loss, o)
            # So small a step hardly changes the curvature, which is not computed once more.
            if before - loss < tol:
                break
            is_near = False
        evidence[i] = -loss - log_determinant
        for u in range(o):
            weights[i, labels[u]] = a[u]
        if importance[i] <= 0:
            continue
        invert(U, K, C, o)
        factor = importance[i] * scale[i]
        for u in range(o):
            for v in range(u + 1):
                A = nu[i] * r[u] * r[v] * (C[u, v] - r[u] * r[v] / lift)
                slope[labels[u], labels[v]] += factor * (a[u] * a[v] - A)
    for u in range(n_labels):
        for v in range(u):
            slope[v, u] = slope[u, v]


@compiled
def draw_log_shares(
    S: FloatArray,
    mean: FloatArray,
    scale: FloatArray,
    presence: FloatArray,
    nu: FloatArray,
    weights: FloatArray,
    prior_draws: FloatArray,
    noise: FloatArray,
    first: IntArray,
    last: IntArray,
    out: FloatArray,
) -> None:
    """As ``logisticnormal.draw_log_shares``."""
    n_labels, n_draws = S.shape[0], prior_draws.shape[2]
    labels = np.empty(n_labels, np.int64)
    K, U, _ = matrices(n_labels)
    d, center, a, f, p = vectors(n_labels)
    r, vector, _, _, _ = vectors(n_labels)
    all_pulls, all_columns = np.empty(n_labels * n_draws), np.empty(n_labels * n_labels)
    for i in range(len(mean)):
        begin, end = first[i], last[i]
        width = end - begin
        if width == 0:
            continue
        own = i if len(prior_draws) > 1 else 0
        o = gather(S, scale[i], mean[i], mean[i], presence[i], weights[i], labels, K, center, d, a)
        root_scale, root_nu = np.sqrt(scale[i]), np.sqrt(nu[i])
        pull = all_pulls[: o * width].reshape(o, width)
        columns = all_columns[: n_labels * o].reshape(n_labels, o)
        if o:
            multiply(K, a, f, o)
            loss_at(center, f, a, d, nu[i], p, o)
            factorise(K, p, nu[i], r, U, vector, o)
        for u in range(o):
            by_prior = r[u] * root_scale
            for k in range(width):
                pull[u, k] = by_prior * prior_draws[own, labels[u], begin + k]
        _project_all(pull, r, o)
        for u in range(o):
            for k in range(width):
                pull[u, k] = root_nu * pull[u, k] + noise[own, u, begin + k]
        _solve_all(U, pull, o)
        _project_all(pull, r, o)
        # The mode is mean + t S a, and draws are as far from it as t S R B⁻¹ (R' u + e) is from u.
        for u in range(o):
            for k in range(width):
                pull[u, k] = scale[i] * (a[u] - root_nu * r[u] * pull[u, k])
        for j in range(n_labels):
            for u in range(o):
                columns[j, u] = S[j, labels[u]]
        moved = np.dot(columns, pull)
        for j in range(n_labels):
            target, center_of_label = out[i, j, begin:end], mean[i, j]
            for k in range(width):
                target[k] = center_of_label + root_scale * prior_draws[own, j, begin + k] + moved[j, k]


@compiled
def multiply(K, x, out, o):  # type: ignore[no-untyped-def]
    """K x, for a symmetric K."""
    for u in range(o):
        out[u] = 0.0
    for u in range(o):
        factor = x[u]
        for v in range(o):
            out[v] += factor * K[u, v]


@compiled
def from_shares(center, d, a, nu, f, p, o):  # type: ignore[no-untyped-def]
    """Sets p to the shares at the mode that a belongs to, d - a / nu, and f to log(p) - center.

    Labels with a = 0 have no mode yet, and start from their observed share d.
    """
    total = 0.0
    for u in range(o):
        # Half a pseudo-count keeps zeros finite.
        p[u] = max(d[u] - a[u] / nu, SMALLEST_COUNT / nu) if a[u] != 0.0 else d[u] + 0.5 / nu
        total += p[u]
    for u in range(o):
        p[u] /= total
        f[u] = np.log(p[u]) - center[u]


@compiled
def relative_change(p, r, o):  # type: ignore[no-untyped-def]
    """The mean square, by shares, of how far p is from r² in relation to it."""
    total = 0.0
    for u in range(o):
        before = r[u] * r[u]
        total += (p[u] - before) ** 2 / before
    return total


@compiled
def factorise(K, p, nu, r, U, vector, o):  # type: ignore[no-untyped-def]
    """The Cholesky factor of B + (lift - 1) r r' in the upper triangle of U; returns half of log |B|, and lift."""
    multiply(K, p, vector, o)
    inner, trace = 0.0, 0.0
    for u in range(o):
        r[u] = np.sqrt(p[u])
        inner += p[u] * vector[u]
    for u in range(o):
        trace += p[u] * (K[u, u] - 2.0 * vector[u] + inner)
    lift = 1.0 + max(nu * trace / o, 0.0)
    half_log_determinant = -0.5 * np.log(lift)
    for u in range(o):
        row, by_row = U[u], nu * r[u]
        shift = inner - vector[u] + (lift - 1.0) / nu
        for v in range(u, o):
            row[v] = by_row * r[v] * (K[u, v] - vector[v] + shift)
        row[u] += 1.0
        subtract(row, U, u, o)
        # At least 1 but for rounding.
        pivot = np.sqrt(max(row[u], 1.0))
        half_log_determinant += np.log(pivot)
        row[u] = pivot
        by_pivot = 1.0 / pivot
        for v in range(u + 1, o):
            row[v] *= by_pivot
    return half_log_determinant, lift


@compiled
def subtract(row, U, u, o):  # type: ignore[no-untyped-def]
    """What the rows of U before u explain of row u, taken from it."""
    w = 0
    while w + 4 <= u:
        x0, x1, x2, x3 = U[w, u], U[w + 1, u], U[w + 2, u], U[w + 3, u]
        for v in range(u, o):
            row[v] -= x0 * U[w, v] + x1 * U[w + 1, v] + x2 * U[w + 2, v] + x3 * U[w + 3, v]
        w += 4
    while w < u:
        x0 = U[w, u]
        for v in range(u, o):
            row[v] -= x0 * U[w, v]
        w += 1


@compiled
def newton(K, U, f, p, r, d, nu, new_a, vector, o):  # type: ignore[no-untyped-def]
    """Newton's next a: b - R B⁻¹ R' K b with b = W f + nu (d - p), where R, B and W are those of r."""
    mean_f = 0.0
    for u in range(o):
        mean_f += r[u] * r[u] * f[u]
    for u in range(o):
        new_a[u] = nu * (r[u] * r[u] * (f[u] - mean_f) + d[u] - p[u])
    multiply(K, new_a, vector, o)
    for u in range(o):
        vector[u] *= r[u]
    _project(vector, r, o)
    solve(U, vector, o)
    _project(vector, r, o)
    for u in range(o):
        new_a[u] -= nu * r[u] * vector[u]


@compiled
def solve(U, x, o):  # type: ignore[no-untyped-def]
    """x becomes (U' U)⁻¹ x."""
    for u in range(o):
        x[u] /= U[u, u]
        for v in range(u + 1, o):
            x[v] -= x[u] * U[u, v]
    for u in range(o - 1, -1, -1):
        total = x[u]
        for v in range(u + 1, o):
            total -= U[u, v] * x[v]
        x[u] = total / U[u, u]


@compiled
def _solve_all(U, X, o):  # type: ignore[no-untyped-def]
    """``solve`` for every column of X at once."""
    for u in range(o):
        for w in range(u):
            _add(X[u], -U[w, u], X[w])
        _scale(X[u], 1 / U[u, u])
    for u in range(o - 1, -1, -1):
        for w in range(u + 1, o):
            _add(X[u], -U[u, w], X[w])
        _scale(X[u], 1 / U[u, u])


@compiled
def invert(U, V, C, o):  # type: ignore[no-untyped-def]
    """The lower triangle of C = (U' U)⁻¹; V, which is overwritten, gets the inverse of U'."""
    for u in range(o):
        row, by_pivot = V[u], 1.0 / U[u, u]
        for v in range(u):
            row[v] = 0.0
        w = 0
        while w + 4 <= u:
            x0, x1, x2, x3 = U[w, u], U[w + 1, u], U[w + 2, u], U[w + 3, u]
            for v in range(w + 4):
                row[v] -= x0 * V[w, v] + x1 * V[w + 1, v] + x2 * V[w + 2, v] + x3 * V[w + 3, v]
            w += 4
        while w < u:
            x0 = U[w, u]
            for v in range(w + 1):
                row[v] -= x0 * V[w, v]
            w += 1
        for v in range(u):
            row[v] *= by_pivot
        row[u] = by_pivot
        # Rows before the one of a column are 0 there.
        for v in range(u + 1, min(u + 4, o)):
            row[v] = 0.0
    for u in range(o):
        row = C[u]
        for v in range(u + 1):
            row[v] = 0.0
        w = u
        while w + 4 <= o:
            x0, x1, x2, x3 = V[w, u], V[w + 1, u], V[w + 2, u], V[w + 3, u]
            for v in range(u + 1):
                row[v] += x0 * V[w, v] + x1 * V[w + 1, v] + x2 * V[w + 2, v] + x3 * V[w + 3, v]
            w += 4
        while w < o:
            x0 = V[w, u]
            for v in range(u + 1):
                row[v] += x0 * V[w, v]
            w += 1
