"""Row by row: what the observed labels say about a row's log-shares. Compiled, since every row has its own labels.

A row's log-shares z have the prior N(mean, t S), with S shared by all rows. Its observed labels O, whose shares are d,
add nu * KL(d || softmax(z over O)) to the negative logarithm of the prior. With K = t S over O and
W = nu (diag p - p p') the curvature of the second term at p = softmax(z over O):

- the mode is z = mean + t S a, where a is 0 off O: only observed labels carry information, so that a row costs |O|³,
  not m³, and S may be singular;
- W = R R' with R = sqrt(nu) diag(r) (I - r r'), r = sqrt(p), and B = I + R' K R is as well conditioned as it can be,
  however large nu is;
- the posterior covariance (of Laplace's approximation) is t S - t S A t S with A = R B⁻¹ R'.

A label may be observed in part: ``presence`` is 1 where it is, 0 where it is hidden, and in between where a zero may be
either. There it enters the softmax with that weight, which is to add log(presence) to its z.
"""

import numpy as np

from hidldl.arrays import FloatArray, IntArray
from hidldl.compiling import compiled

SMALLEST_STEP = 1e-8
"""The least part of a step: far from the mode, where softmax is flat, Newton steps are a million times too long."""


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
    """Each row's mode, by Newton's method from ``weights`` (the a above), which it overwrites.

    Adds the sum over rows of importance * t (a a' - A) to ``slope``, of which it reads the lower triangle, and sets
    ``evidence`` to Laplace's approximation of each row's log-likelihood, up to a constant that depends on nu and the
    shares only.
    """
    n_labels = S.shape[0]
    labels = np.empty(n_labels, np.int64)
    K, B, G = matrices(n_labels)
    d, center, a, f, p = vectors(n_labels)
    r, new_a, new_f, vector, _ = vectors(n_labels)
    for i in range(len(mean)):
        if max_newton == 0 and importance[i] <= 0:
            continue
        o = gather(S, scale[i], mean[i], shares[i], presence[i], weights[i], labels, K, center, d, a)
        if o == 0:
            continue
        multiply(K, a, f, o)
        loss = loss_at(center, f, a, d, nu[i], p, o)
        # The last round's a, under this round's S, can be worse than a = 0.
        new_a[:o] = 0
        new_f[:o] = 0
        if loss_at(center, new_f, new_a, d, nu[i], vector, o) <= loss:
            a[:o] = 0
            f[:o] = 0
            loss = loss_at(center, f, a, d, nu[i], p, o)
        log_determinant = factorise(K, p, nu[i], r, B, G, vector, o)
        for _ in range(max_newton):
            _newton(K, B, f, p, r, d, nu[i], new_a, vector, o)
            multiply(K, new_a, new_f, o)
            before = loss
            loss = move(center, a, f, new_a, new_f, d, nu[i], p, loss, o)
            log_determinant = factorise(K, p, nu[i], r, B, G, vector, o)
            if before - loss < tol:
                break
        evidence[i] = -loss - log_determinant
        for u in range(o):
            weights[i, labels[u]] = a[u]
        if importance[i] <= 0:
            continue
        information(B, r, nu[i], G, o)
        factor = importance[i] * scale[i]
        for u in range(o):
            for v in range(u + 1):
                A = 0.0
                for w in range(o):
                    A += G[u, w] * G[v, w]
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
    """Draws of each row's log-shares from its posterior, (rows, m, draws), from number ``first`` to before ``last``.

    A draw u from N(0, S) and noise e from N(0, I) become a draw from the posterior: mode + u - t S R B⁻¹ (R' u + e),
    with u times sqrt(t). ``prior_draws`` and ``noise`` have shape (rows, m, draws), or one row for all. Draws are the
    last axis, along which every loop runs, so that loops become vector instructions.
    """
    n_labels, n_draws = S.shape[0], prior_draws.shape[2]
    labels = np.empty(n_labels, np.int64)
    K, B, G = matrices(n_labels)
    d, center, a, f, p = vectors(n_labels)
    r, vector, _, _, _ = vectors(n_labels)
    all_pulls = np.empty((n_labels, n_draws))
    for i in range(len(mean)):
        begin, end = first[i], last[i]
        if begin == end:
            continue
        own = i if len(prior_draws) > 1 else 0
        o = gather(S, scale[i], mean[i], mean[i], presence[i], weights[i], labels, K, center, d, a)
        root_scale, root_nu = np.sqrt(scale[i]), np.sqrt(nu[i])
        pull = all_pulls[:, begin:end]
        if o:
            multiply(K, a, f, o)
            loss_at(center, f, a, d, nu[i], p, o)
            factorise(K, p, nu[i], r, B, G, vector, o)
        for u in range(o):
            for k in range(end - begin):
                pull[u, k] = r[u] * root_scale * prior_draws[own, labels[u], begin + k]
        _project_all(pull, r, o)
        for u in range(o):
            for k in range(end - begin):
                pull[u, k] = root_nu * pull[u, k] + noise[own, u, begin + k]
        solve_all(B, pull, o)
        _project_all(pull, r, o)
        for j in range(n_labels):
            mode = mean[i, j]
            for u in range(o):
                mode += scale[i] * S[j, labels[u]] * a[u]
            target = out[i, j, begin:end]
            for k in range(end - begin):
                target[k] = mode + root_scale * prior_draws[own, j, begin + k]
            for u in range(o):
                _add(target, -scale[i] * S[j, labels[u]] * root_nu * r[u], pull[u])


@compiled
def matrices(n):  # type: ignore[no-untyped-def]
    return np.empty((n, n)), np.empty((n, n)), np.empty((n, n))


@compiled
def vectors(n):  # type: ignore[no-untyped-def]
    return np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)


@compiled
def gather(S, t, mean, shares, presence, weights, labels, K, center, d, a):  # type: ignore[no-untyped-def]
    """The observed part of a row, packed to the front of the work arrays; returns how many labels it has."""
    o = 0
    for j in range(len(presence)):
        if presence[j] > 0:
            labels[o] = j
            center[o], d[o], a[o] = mean[j] + np.log(presence[j]), shares[j], weights[j]
            o += 1
    for u in range(o):
        for v in range(o):
            K[u, v] = t * S[labels[u], labels[v]]
    return o


@compiled
def multiply(K, x, out, o):  # type: ignore[no-untyped-def]
    for u in range(o):
        total = 0.0
        for v in range(o):
            total += K[u, v] * x[v]
        out[u] = total


@compiled
def loss_at(center, f, a, d, nu, p, o):  # type: ignore[no-untyped-def]
    """1/2 a' K a + nu KL(d || p), up to the entropy of d, at z = center + f; sets p."""
    top = center[0] + f[0]
    for u in range(1, o):
        top = max(top, center[u] + f[u])
    total, quadratic, linear = 0.0, 0.0, 0.0
    for u in range(o):
        z = center[u] + f[u]
        p[u] = np.exp(z - top)
        total += p[u]
        quadratic += a[u] * f[u]
        linear += d[u] * z
    for u in range(o):
        p[u] /= total
    return 0.5 * quadratic + nu * (top + np.log(total) - linear)


@compiled
def factorise(K, p, nu, r, B, G, vector, o):  # type: ignore[no-untyped-def]
    """The Cholesky factor of I + R' K R in the lower triangle of B; returns half the log-determinant."""
    for u in range(o):
        r[u] = np.sqrt(p[u])
    inner = 0.0
    for u in range(o):
        total = 0.0
        for v in range(o):
            G[u, v] = r[u] * K[u, v] * r[v]
            total += G[u, v] * r[v]
        vector[u] = total
        inner += total * r[u]
    half_log_determinant = 0.0
    for u in range(o):
        for v in range(u + 1):
            B[u, v] = nu * (G[u, v] - vector[u] * r[v] - r[u] * vector[v] + inner * r[u] * r[v])
        B[u, u] += 1.0
        for v in range(u):
            total = B[u, v]
            for w in range(v):
                total -= B[u, w] * B[v, w]
            B[u, v] = total / B[v, v]
        total = B[u, u]
        for w in range(u):
            total -= B[u, w] * B[u, w]
        # At least 1 but for rounding.
        B[u, u] = np.sqrt(max(total, 1.0))
        half_log_determinant += np.log(B[u, u])
    return half_log_determinant


@compiled
def _newton(K, B, f, p, r, d, nu, new_a, vector, o):  # type: ignore[no-untyped-def]
    """Newton's next a: b - R B⁻¹ R' K b with b = W f + nu (d - p)."""
    mean_f = 0.0
    for u in range(o):
        mean_f += p[u] * f[u]
    for u in range(o):
        new_a[u] = nu * (p[u] * (f[u] - mean_f) + d[u] - p[u])
    for u in range(o):
        total = 0.0
        for v in range(o):
            total += K[u, v] * new_a[v]
        vector[u] = r[u] * total
    _project(vector, r, o)
    solve(B, vector, o)
    _project(vector, r, o)
    for u in range(o):
        new_a[u] -= nu * r[u] * vector[u]


@compiled
def move(center, a, f, new_a, new_f, d, nu, p, loss, o):  # type: ignore[no-untyped-def]
    """Move a and f towards the new ones, half as far as long as the loss rises; returns the loss there."""
    step = 1.0
    for u in range(o):
        new_a[u] -= a[u]
        new_f[u] -= f[u]
    for u in range(o):
        a[u] += new_a[u]
        f[u] += new_f[u]
    new_loss = loss_at(center, f, a, d, nu, p, o)
    while not new_loss <= loss and step > SMALLEST_STEP:
        step *= 0.5
        for u in range(o):
            a[u] -= step * new_a[u]
            f[u] -= step * new_f[u]
        new_loss = loss_at(center, f, a, d, nu, p, o)
    return new_loss


@compiled
def information(B, r, nu, G, o):  # type: ignore[no-untyped-def]
    """Sets G, o × o, such that A = G G': G = R L⁻ᵀ, column by column, with L the Cholesky factor in B."""
    root_nu = np.sqrt(nu)
    for w in range(o):
        # Row w of L⁻¹, kept in G[:, w].
        for v in range(o):
            G[v, w] = 0.0
        G[w, w] = 1.0 / B[w, w]
        for v in range(w - 1, -1, -1):
            total = 0.0
            for x in range(v + 1, w + 1):
                total += G[x, w] * B[x, v]
            G[v, w] = -total / B[v, v]
        inner = 0.0
        for v in range(w + 1):
            inner += G[v, w] * r[v]
        for v in range(o):
            G[v, w] = root_nu * r[v] * (G[v, w] - inner * r[v])


@compiled
def _project(x, r, o):  # type: ignore[no-untyped-def]
    """x minus its part along the unit vector r."""
    inner = 0.0
    for u in range(o):
        inner += r[u] * x[u]
    for u in range(o):
        x[u] -= inner * r[u]


@compiled
def solve(B, x, o):  # type: ignore[no-untyped-def]
    """x becomes (L L')⁻¹ x, with L in the lower triangle of B."""
    for u in range(o):
        total = x[u]
        for w in range(u):
            total -= B[u, w] * x[w]
        x[u] = total / B[u, u]
    for u in range(o - 1, -1, -1):
        total = x[u]
        for w in range(u + 1, o):
            total -= B[w, u] * x[w]
        x[u] = total / B[u, u]


@compiled
def _add(x, factor, y):  # type: ignore[no-untyped-def]
    """x += factor * y, without a temporary array."""
    for k in range(len(x)):
        x[k] += factor * y[k]


@compiled
def _project_all(X, r, o):  # type: ignore[no-untyped-def]
    """``_project`` for every column of X at once."""
    inner = np.zeros(X.shape[1])
    for u in range(o):
        _add(inner, r[u], X[u])
    for u in range(o):
        _add(X[u], -r[u], inner)


@compiled
def solve_all(B, X, o):  # type: ignore[no-untyped-def]
    """``solve`` for every column of X at once."""
    for u in range(o):
        for w in range(u):
            _add(X[u], -B[u, w], X[w])
        _scale(X[u], 1 / B[u, u])
    for u in range(o - 1, -1, -1):
        for w in range(u + 1, o):
            _add(X[u], -B[w, u], X[w])
        _scale(X[u], 1 / B[u, u])


@compiled
def _scale(x, factor):  # type: ignore[no-untyped-def]
    for k in range(len(x)):
        x[k] *= factor
