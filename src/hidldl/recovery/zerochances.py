"""How likely a share is 0, judged by the rest of its row. Compiled, as ``logisticnormal`` is.

Let u be the log-odds of a label against the other labels that are present. Its posterior is normal (by Laplace's
approximation), and the label's own share has a known part in it, since a row's likelihood is that of the label against
the rest, times that of the rest. Without this part u is still normal; its expectation is a sum over a few nodes.
"""

import numpy as np

from hidldl.arrays import FloatArray
from hidldl.compiling import compiled
from hidldl.recovery.latent import Estimates
from hidldl.recovery.logisticnormal import (
    factorise,
    gather,
    information,
    loss_at,
    matrices,
    multiply,
    vectors,
)
from hidldl.recovery.rows import Rows

N_NODES = 17
WIDEST_NODE = 4.0
"""Nodes of the normal distribution, equally far apart: for smooth functions this rule is exact to many digits."""


def chances_of_zero(estimates: Estimates, rows: Rows, exponent: FloatArray) -> tuple[FloatArray, FloatArray]:
    """E[(1 - q)^exponent] of every cell, with an exponent for each row, and the mass of the labels that are present.

    q is the label's part of it and the labels that are present. The expectation is over the row's posterior without the
    cell itself. It is 1 where the row has no other label.
    """
    nodes = np.linspace(-WIDEST_NODE, WIDEST_NODE, N_NODES)
    weights = np.exp(-(nodes**2) / 2)
    weights /= weights.sum()
    chances, mass = np.zeros_like(rows.mean), np.zeros(len(rows.mean))
    of_kind, mass_of_kind = np.empty_like(chances), np.empty_like(mass)
    for k, S in enumerate(estimates.covariances):
        mean = rows.mean + estimates.offsets[k]
        row = (S, mean, rows.scale, rows.shares, rows.presence, rows.nu, rows.weights[k])
        _chances(*row, exponent, nodes, weights, of_kind, mass_of_kind)
        chances += rows.kinds[:, k, None] * of_kind
        mass += rows.kinds[:, k] * mass_of_kind
    return chances, mass


@compiled
def _chances(
    S: FloatArray,
    mean: FloatArray,
    scale: FloatArray,
    shares: FloatArray,
    presence: FloatArray,
    nu: FloatArray,
    weights: FloatArray,
    exponent: FloatArray,
    nodes: FloatArray,
    node_weights: FloatArray,
    out: FloatArray,
    mass: FloatArray,
) -> None:
    n_labels = S.shape[0]
    labels, place = np.empty(n_labels, np.int64), np.empty(n_labels, np.int64)
    K, B, G = matrices(n_labels)
    d, center, a, f, p = vectors(n_labels)
    r, vector, contrast, pull, modes = vectors(n_labels)
    for i in range(len(mean)):
        out[i], mass[i] = 1.0, 1.0
        o = gather(S, scale[i], mean[i], shares[i], presence[i], weights[i], labels, K, center, d, a)
        if o == 0:
            continue
        multiply(K, a, f, o)
        loss_at(center, f, a, d, nu[i], p, o)
        factorise(K, p, nu[i], r, B, G, vector, o)
        information(B, r, nu[i], G, o)
        place[:] = -1
        for u in range(o):
            place[labels[u]] = u
        for j in range(n_labels):
            modes[j] = mean[i, j]
            for u in range(o):
                modes[j] += scale[i] * S[j, labels[u]] * a[u]
        log_present = _log_sum_exp(center, f, o)
        f[:] = 0.0
        mass[i] = min(np.exp(log_present - _log_sum_exp(modes, f, n_labels)), 1.0)
        for j in range(n_labels):
            own = place[j]
            share = p[own] if own >= 0 else 0.0
            rest = 1.0 - share
            if rest < 1e-12:
                continue
            for u in range(o):
                contrast[u] = -p[u] / rest if u != own else 0.0
            odds = modes[j] - log_present - np.log(rest)
            prior, spread = _variances(S, scale[i], labels, contrast, G, pull, j, o)
            precision = max(1.0 / spread - nu[i] * share * rest, 1.0 / prior)
            odds -= nu[i] * (shares[i, j] - share) / precision
            out[i, j] = _expected(odds, 1.0 / np.sqrt(precision), exponent[i], nodes, node_weights)


@compiled
def _log_sum_exp(x, y, n):  # type: ignore[no-untyped-def]
    """log of the sum of exp(x + y) over the first n."""
    top = x[0] + y[0]
    for u in range(1, n):
        top = max(top, x[u] + y[u])
    total = 0.0
    for u in range(n):
        total += np.exp(x[u] + y[u] - top)
    return top + np.log(total)


@compiled
def _variances(S, t, labels, contrast, G, pull, j, o):  # type: ignore[no-untyped-def]
    """Prior and posterior variance of z_j plus the contrast of the labels that are present."""
    prior = t * S[j, j]
    for u in range(o):
        pull[u] = S[labels[u], j]
        prior += t * contrast[u] * pull[u]
        for v in range(o):
            pull[u] += S[labels[u], labels[v]] * contrast[v]
        pull[u] *= t
        prior += contrast[u] * pull[u]
    known = 0.0
    for w in range(o):
        inner = 0.0
        for u in range(o):
            inner += G[u, w] * pull[u]
        known += inner * inner
    prior = max(prior, 1e-12)
    return prior, max(prior - known, 1e-9 * prior)


@compiled
def _expected(mean, deviation, exponent, nodes, node_weights):  # type: ignore[no-untyped-def]
    """E[(1 + exp(u))^-exponent] for a normal u."""
    total = 0.0
    for k in range(len(nodes)):
        u = mean + deviation * nodes[k]
        log_rest = np.log1p(np.exp(u)) if u < 30 else u
        total += node_weights[k] * np.exp(-exponent * log_rest)
    return total
