"""The rounds of EM, and the means of the posterior, on a device: what grows with the rows is done there, in chunks.

What does not, the M step and the leaps between rounds, is that of ``fitting``.
"""

from collections.abc import Iterator
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import torch

from hidldl.arrays import BoolArray, FloatArray, Tensor
from hidldl.device import has_triton, on_device
from hidldl.parallel import Mapper
from hidldl.recovery import logisticnormal_torch
from hidldl.recovery.fitting import LARGEST_LEVERAGE, Fit, Rounds, Sums, fit_latent_model
from hidldl.recovery.kernelmean import KernelMap, Ridge
from hidldl.recovery.latent import LOOSE, MAX_NEWTON, RARE, SHARE_OF_OVERALL, TIGHT, Estimates, LatentModel, Parameters
from hidldl.recovery.posterior import Draws, complete
from hidldl.recovery.rows import Rows as HostRows

CHUNK = {"cuda": 2**27, "cpu": 2**17}
"""Numbers of an array of a chunk of rows."""


def kernel_features(kernel: KernelMap, X: FloatArray, dtype: torch.dtype, device: Any) -> tuple[Tensor, FloatArray]:
    """The centred features of a kernel on the device, and their means."""
    marks, width = kernel.landmarks, kernel.width * (kernel.landmarks.typical or 1.0)
    directions = np.empty((X.shape[1], 0)) if marks.directions is None else marks.directions
    parts = (marks.rows, directions, kernel.whitening)
    landmarks, directions, whitening = (on_device(part, device).to(dtype) for part in parts)
    landmarks = torch.hstack([landmarks, landmarks @ directions])
    center, scaling = on_device(marks.center, device), on_device(marks.scaling, device)
    squares, largest = (landmarks**2).sum(dim=1), torch.finfo(dtype).max ** 0.3
    features = torch.empty((len(X), kernel.n_columns), dtype=dtype, device=device)
    for part in _chunks(len(X), max(landmarks.shape), device):
        rows = ((on_device(X[part], device) - center) * scaling).clamp(-largest, largest).to(dtype)
        rows = torch.hstack([rows, rows @ directions])
        squared = torch.addmm((rows**2).sum(dim=1, keepdim=True), rows, landmarks.T, alpha=-2) + squares
        features[part] = torch.exp(-squared.clamp(min=0) / width) @ whitening
    means = features.mean(dim=0, dtype=torch.float64)
    features -= means.to(dtype)
    return features, means.cpu().numpy()


def ridge(features: Tensor, means: FloatArray, penalty: float) -> Ridge:
    """The regression on centred features."""
    gram = torch.zeros((features.shape[1],) * 2, dtype=torch.float64, device=features.device)
    for part in _chunks(len(features), max(features.shape[1], 1), features.device):
        gram += features[part].T @ features[part]
    return Ridge.from_gram(means, gram.cpu().numpy(), len(features), penalty)


def fit_on_device(
    kernel: KernelMap,
    X: FloatArray,
    shares: FloatArray,
    observed: BoolArray,
    parameters: Parameters,
    *,
    single: bool,
    device: Any,
    **how: Any,
) -> Fit:
    """As ``fit_latent_model`` on the features of a kernel."""
    features, means = kernel_features(kernel, X, _precision(single), device)
    regression = ridge(features, means, parameters.ridge)
    table = (features, shares, observed, parameters)
    return fit_latent_model(*table, regression=regression, rounds_on=DeviceRounds, **how)


def _precision(single: bool) -> torch.dtype:
    return torch.float32 if single else torch.float64


class DeviceRounds(Rounds):
    """The rounds on the device of the features, which are centred, and in their precision."""

    features: Tensor
    shares: Tensor
    presence: Tensor
    nu: Tensor
    leverage: Tensor
    scale: Tensor
    weights: Tensor
    residuals: Tensor

    def __init__(
        self,
        features: Tensor,
        shares: FloatArray,
        observed: BoolArray,
        presence: FloatArray,
        nu: FloatArray,
        parameters: Parameters,
        regression: Ridge,
        mapper: Mapper,
    ) -> None:
        self._host = shares, observed, nu, presence
        self.features, self.parameters, self.regression, self.mapper = features, parameters, regression, mapper
        self.shares, self.presence, self.nu = (self._there(part) for part in (shares, presence, nu))
        self.observed = on_device(observed, features.device)
        n_rows, n_labels = shares.shape
        n_kinds = parameters.n_components
        factor = self._there(regression.factor)
        self.leverage = self.shares.new_full((n_rows,), 1 / n_rows)
        for part in self._chunks(max(features.shape[1], 1)):
            whitened = torch.linalg.solve_triangular(factor, features[part].T, upper=False)
            self.leverage[part] += (whitened**2).sum(dim=0)
        self.leverage.clamp_(max=LARGEST_LEVERAGE)
        self.scale = 1 / (1 - self.leverage)
        self.weights = self.shares.new_zeros((n_kinds, n_rows, n_labels))
        self.residuals = self.shares.new_zeros((n_rows, n_labels + n_kinds))
        self.evidence = []
        self.entropy = -float((self.nu * torch.xlogy(self.shares, self.shares).sum(dim=1)).double().mean())

    def _there(self, array: Any) -> Tensor:
        return on_device(array, self.features.device).to(self.features.dtype)

    def _chunks(self, width: int) -> Iterator[slice]:
        return _chunks(len(self.features), width, self.features.device)

    def _mean_and_kinds(self, estimates: Estimates, part: slice) -> tuple[Tensor, Tensor]:
        """As ``_prior``: each row without its own part."""
        n_labels = self.shares.shape[1]
        fitted = self._there(estimates.intercept) + self.features[part] @ self._there(estimates.coef)
        fitted -= self.leverage[part, None] * self.residuals[part]
        mean, kinds = fitted[:, :n_labels].contiguous(), fitted[:, n_labels:]
        if kinds.shape[1] == 1:
            return mean, torch.ones_like(kinds)
        kinds = kinds.clamp(min=1e-9)
        kinds /= kinds.sum(dim=1, keepdim=True)
        return mean, (1 - SHARE_OF_OVERALL) * kinds + SHARE_OF_OVERALL * self._there(estimates.shares_of_kinds)

    def _modes(
        self, estimates: Estimates, part: slice, mean: Tensor, kinds: Tensor, tol: float, slopes: Tensor
    ) -> tuple[Tensor, Tensor]:
        """As ``latent.modes``: the rows' evidence and the posterior probabilities of their kinds."""
        n_rows, n_kinds = kinds.shape
        logs, finder = torch.log(kinds), _finder_on(mean.device, mean.shape[1])
        covariances, offsets = self._there(estimates.covariances), self._there(estimates.offsets)

        def find(k: int, max_newton: int, importance: Tensor, evidence: Tensor) -> None:
            prior = (covariances[k], mean + offsets[k], self.scale[part], self.shares[part], self.presence[part])
            how = (self.nu[part], max_newton, tol, importance, self.weights[k, part], slopes[k])
            finder(*prior, *how, evidence)

        if n_kinds == 1:
            evidence = mean.new_zeros(n_rows)
            find(0, MAX_NEWTON, mean.new_ones(n_rows), evidence)
            return evidence, kinds
        evidences = mean.new_zeros((n_kinds, n_rows))
        for k in range(n_kinds):
            find(k, MAX_NEWTON, mean.new_zeros(n_rows), evidences[k])
        logs += evidences.T
        total = torch.logsumexp(logs, dim=1)
        kinds = torch.exp(logs - total[:, None])
        for k in range(n_kinds):
            find(k, 0, torch.where(kinds[:, k] > RARE, kinds[:, k], 0), torch.empty_like(total))
        return total, kinds

    def sums(self, estimates: Estimates) -> Sums:
        """The E step, which takes labels as hidden alike."""
        parts = (self._sums_of(estimates, part) for part in self._chunks(self.shares.shape[1] ** 2))
        return reduce(lambda sums, part: Sums(*map(add, sums, part)), parts)

    def _sums_of(self, estimates: Estimates, part: slice) -> Sums:
        mean, prior_kinds = self._mean_and_kinds(estimates, part)
        S = self._there(estimates.covariances)
        slopes = torch.zeros_like(S)
        evidence, kinds = self._modes(estimates, part, mean, prior_kinds, LOOSE, slopes)
        residuals = kinds.T[:, :, None] * self.scale[part, None] * (self.weights[:, part] @ S)
        target = torch.cat([mean + residuals.sum(dim=0), kinds], dim=1)
        self.residuals[part] = target - torch.cat([mean, prior_kinds], dim=1)
        scatter = kinds.sum(dim=0)[:, None, None] * S + S @ slopes @ S
        products = self.features[part].T @ target
        sums = (scatter, residuals.sum(dim=1), target.sum(dim=0, dtype=torch.float64), products)
        scatter, residuals, total, products = (each.double().cpu().numpy() for each in sums)
        return Sums(scatter, residuals, total, products, float(evidence.double().sum()), np.zeros((2, 5)))

    def posterior(self, model: LatentModel) -> tuple[HostRows, FloatArray]:
        """The rows under the model, and the evidence of each, both on the host."""
        parts, estimates = [], model.estimates
        nothing = torch.zeros_like(self._there(estimates.covariances))
        for part in self._chunks(self.shares.shape[1] ** 2):
            mean, kinds = self._mean_and_kinds(estimates, part)
            parts.append((mean, *self._modes(estimates, part, mean, kinds, TIGHT, nothing)))
        mean, evidence, kinds, scale, weights = (
            each.double().cpu().numpy()
            for each in (*map(torch.cat, zip(*parts, strict=True)), self.scale, self.weights)
        )
        shares, observed, nu, presence = self._host
        return HostRows(shares, observed, nu, mean, scale, kinds, weights, presence), evidence


def _finder_on(device: Any, n_labels: int) -> Any:
    """``find_modes`` there: as a kernel on a card, for tables with few enough labels."""
    if device.type == "cuda" and has_triton():
        from hidldl.recovery import logisticnormal_triton

        if n_labels <= logisticnormal_triton.MOST_LABELS:
            return logisticnormal_triton.find_modes
    return logisticnormal_torch.find_modes


def mean_rows(model: LatentModel, rows: HostRows, draws: Draws, *, single: bool, device: Any) -> FloatArray:
    """As ``posterior.mean_rows``, where the mask says nothing about the shares and no zero is in doubt."""
    out, dtype = np.empty_like(rows.mean), _precision(single)
    estimates, (n_labels, n_draws) = model.estimates, draws.shape

    def there(array: Any) -> Tensor:
        return on_device(array, device).to(dtype)

    noise, roots = there(draws.noise[0]), []
    for S in estimates.covariances:
        eigenvalues, vectors = np.linalg.eigh(S)
        roots.append(there((vectors * np.sqrt(np.maximum(eigenvalues, 0))) @ draws.normals[0]))
    for part in _chunks(len(out), n_labels * n_draws, device):
        of, kinds = rows.part(part), there(rows.kinds[part])
        weights, mean = _weights_of_draws(kinds, n_draws), torch.zeros_like(there(of.mean))
        for k, (S, offset) in enumerate(zip(estimates.covariances, estimates.offsets, strict=True)):
            prior = (there(S), there(of.mean + offset), there(of.scale), there(of.presence), there(of.nu))
            z = logisticnormal_torch.draw_log_shares(*prior, there(of.weights[k]), roots[k], noise)
            mean += (torch.softmax(z, dim=1) @ weights[:, k, :, None])[:, :, 0]
        hidden = torch.where(on_device(of.observed, device), 0, mean)
        completed: Tensor = complete(hidden, there(of.shares))
        out[part] = completed.cpu().numpy()
    return out


def _weights_of_draws(kinds: Tensor, n_draws: int) -> Tensor:
    """How much each draw counts as one of each kind, (rows, kinds, draws), as in ``latent.draw_rows``.

    As many draws are of a kind as it is likely, in pairs; what rounding takes from it, the weights give back.
    """
    ends = (2 * torch.round(kinds.cumsum(dim=1) * (n_draws / 2))).clamp(max=n_draws)
    ends[:, -1] = n_draws
    counts = torch.diff(ends, dim=1, prepend=torch.zeros_like(ends[:, :1]))
    number = torch.arange(n_draws, device=kinds.device)
    own = (number < ends[:, :, None]) & (number >= (ends - counts)[:, :, None])
    weights = own * (kinds / counts.clamp(min=1))[:, :, None]
    return weights / weights.sum(dim=(1, 2), keepdim=True)


def _chunks(n_rows: int, width: int, device: Any) -> Iterator[slice]:
    """Chunks of rows whose arrays, of so many numbers per row, fit into memory together."""
    size = max(CHUNK[device.type] // width, 1)
    return (slice(begin, min(begin + size, n_rows)) for begin in range(0, n_rows, size))
