"""Steps of EM: how far one goes, and leaps over several."""

import numpy as np

from hidldl.arrays import FloatArray
from hidldl.recovery.covariances import centred, positive
from hidldl.recovery.latent import Estimates
from hidldl.recovery.lowrank import Factors


def relative_changes(before: Estimates, after: Estimates, resolution: float) -> FloatArray:
    """For each kind, the mean square over directions of the change of S in relation to S there.

    Labels that vary together leave directions in which rows hardly vary. They decide how exactly some labels tell the
    others, and no norm of S shows whether they have settled. Where S has factors, the rest stands for all directions.
    """
    changes = []
    pairs = zip(before.covariances, after.covariances, before.factors, after.factors, strict=True)
    for S, next_S, factors, next_factors in pairs:
        if factors is not None and next_factors is not None:
            changes.append(((next_factors.rest - factors.rest) / (factors.rest + resolution)) ** 2)
        else:
            relative = np.linalg.solve(S + resolution * np.eye(len(S)), next_S - S)
            changes.append((relative * relative.T).sum() / len(S))
    return np.array(changes)


def leap(first: Estimates, second: Estimates, third: Estimates, longest: float) -> Estimates:
    """Extrapolate three iterates; covariances stay positive on the space of centred vectors."""
    S = _extrapolate(first.covariances, second.covariances, third.covariances, longest)
    parts = [in_bounds(s, *last) for s, *last in zip(S, third.covariances, third.factors, strict=True)]
    means = [np.vstack([each.intercept, each.coef]) for each in (first, second, third)]
    mean = _extrapolate(means[0], means[1], means[2], longest)
    offsets = _extrapolate(first.offsets, second.offsets, third.offsets, longest)
    return Estimates.around(parts, offsets, mean[0], mean[1:], third.curve)


def in_bounds(S: FloatArray, last: FloatArray, factors: Factors | None) -> FloatArray | Factors:
    """A covariance whose eigenvalues are not far below those of the last one, or its factors if that has some."""
    if factors is not None:
        return Factors.nearest(centred(S), factors.rest / 10, factors.n_factors)
    return positive(S, np.linalg.eigvalsh(last)[1] / 10)


def _extrapolate(first: FloatArray, second: FloatArray, third: FloatArray, longest: float) -> FloatArray:
    step, bend = second - first, third - 2 * second + first
    size = np.linalg.norm(bend)
    stride = np.clip(np.linalg.norm(step) / size, 1, longest) if size > 0 else 1.0
    return np.asarray(first + 2 * stride * step + stride**2 * bend)
