"""What a strong modeller would write instead of BayesHidLDL: recoverers from the usual tools, for benchmarks/rivals.py.

They are all in one file, the networks included, since the store looks at the file of a method to see which code made a
result. None of them sees the truth: what there is to choose is chosen by hiding observed labels again. All of them
keep the proportions of what was observed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.decomposition import PCA
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from sklearn.linear_model import BayesianRidge
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import StandardScaler

from hidldl import MeanFill, Recoverer
from hidldl.arrays import BoolArray, FloatArray, IntArray
from hidldl.randomness import RandomState, random_generator
from hidldl.selection import judge
from hidldl.simplex import clip_and_close
from hidldl.validation import check_choice, check_number

SMALLEST = 0.1
"""Shares count at least this much of the average one, 1 / m, before their logarithm is taken."""


N_TREES = 50


class Rival(Recoverer):
    """A recoverer of the rows that it is fitted to, and of no others."""

    def _predict(self, X: Any) -> FloatArray:
        raise NotImplementedError(f"{self.method_name} predicts no new rows; fit it to them.")


def completed(D: FloatArray, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
    """The hidden labels as in ``D``; the observed ones hold the rest, in their own proportions."""
    hidden = np.where(observed, 0, D)
    return hidden + (1 - hidden.sum(axis=1, keepdims=True)) * D_obs


def scaled(X: Any, most: int) -> FloatArray:
    """Features that weigh alike; where there are more than ``most``, that many principal components."""
    dense = X.toarray() if hasattr(X, "toarray") else X
    features: FloatArray = StandardScaler().fit_transform(dense)
    if features.shape[1] > most:
        components = PCA(min(most, len(features)), random_state=0).fit_transform(features)
        features = components / max(components.std(), 1e-12)
    return features


@dataclass(frozen=True)
class LogShares:
    """log share = level of the row + mean of the label + z.

    A row that is handed in is known up to a factor, which is its level. With the labels' means taken off first, levels
    do not depend on which labels are observed, so that z can be compared from row to row.
    """

    logs: FloatArray
    means: FloatArray

    @classmethod
    def of_means(cls, D_obs: FloatArray, means: FloatArray) -> "LogShares":
        """Where the means of the labels are known."""
        return cls(np.log(np.maximum(D_obs, SMALLEST / D_obs.shape[1])), means)

    @classmethod
    def of(cls, D_obs: FloatArray, observed: BoolArray) -> "LogShares":
        """Fit levels and means by least squares, in turns."""
        self = cls.of_means(D_obs, np.zeros(D_obs.shape[1]))
        for _ in range(20):
            means = np.where(observed, self.logs - self.levels(observed), 0).sum(axis=0) / observed.sum(axis=0)
            self = cls(self.logs, means - means.mean())
        return self

    def levels(self, observed: BoolArray) -> FloatArray:
        """The rows' levels, from the labels that are observed."""
        total = np.where(observed, self.logs - self.means, 0).sum(axis=1, keepdims=True)
        return total / observed.sum(axis=1, keepdims=True)

    def z(self, observed: BoolArray, hidden: float = 0.0) -> FloatArray:
        """The z of what is observed, and ``hidden`` elsewhere."""
        return np.where(observed, self.logs - self.means - self.levels(observed), hidden)

    def rows(self, z: FloatArray, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
        """Rows whose hidden labels have this z, within the bounds of the observed ones."""
        known = self.z(observed)[observed]
        shares = np.exp(np.clip(z, known.min(), known.max()) + self.means + self.levels(observed))
        return clip_and_close(np.where(observed, D_obs, shares))


class Imputed(Rival):
    """scikit-learn's IterativeImputer on log-ratios: each label is regressed on the others and on the features."""

    def __init__(self, regressor: Literal["ridge", "trees"] = "ridge", random_state: RandomState = None) -> None:
        self.regressor = regressor
        self.random_state = random_state

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        check_choice(self.regressor, "regressor", ("ridge", "trees"))

    def _recover(self, prepared: Any, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
        logs, features = LogShares.of(D_obs, observed), scaled(prepared, 50)
        seed = int(random_generator(self.random_state).integers(2**31))
        if self.regressor == "ridge":
            imputer = IterativeImputer(BayesianRidge(), max_iter=10, random_state=seed, skip_complete=True)
        else:
            trees = ExtraTreesRegressor(N_TREES, min_samples_leaf=3, max_features=0.5, random_state=seed)
            imputer = IterativeImputer(trees, max_iter=5, random_state=seed, skip_complete=True)
        filled = imputer.fit_transform(np.hstack([logs.z(observed, hidden=np.nan), features]))
        return logs.rows(filled[:, : D_obs.shape[1]], D_obs, observed)


class Neighbours(Rival):
    """Hidden labels get what the k rows with the nearest features give them, and the average row as one more."""

    def __init__(self, k: int = 20) -> None:
        self.k = k

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        check_number(self.k, "k", at_least=1, integer=True)

    def _prepare(self, X: Any, D_obs: FloatArray) -> Any:
        features = scaled(X, 50)
        return kneighbors_graph(features, min(self.k, len(features) - 1), include_self=False)

    def _recover(self, prepared: Any, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
        average = MeanFill().fit(np.zeros((len(D_obs), 1)), D_obs, observed)
        D, k = average.distributions_, min(self.k, len(D_obs) - 1)
        for _ in range(10):  # neighbours have hidden labels too, which get better from round to round
            D = completed((prepared @ D + average.mean_) / (k + 1), D_obs, observed)
        return D


class SoftImpute(Rival):
    """Mazumder, Hastie and Tibshirani's softImpute: the log-ratios as a matrix of low rank, without the features."""

    def __init__(self, shrinkage: float = 0.1, max_iter: int = 100) -> None:
        self.shrinkage = shrinkage
        self.max_iter = max_iter

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        check_number(self.shrinkage, "shrinkage", at_least=0, at_most=1)
        check_number(self.max_iter, "max_iter", at_least=1, integer=True)

    def _recover(self, prepared: Any, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
        logs = LogShares.of(D_obs, observed)
        known = logs.z(observed)
        threshold = self.shrinkage * np.linalg.norm(known, 2)
        low_rank, shift = np.zeros_like(known), np.zeros((len(known), 1))
        for _ in range(self.max_iter):
            U, singular, Vt = np.linalg.svd(np.where(observed, known - shift, low_rank), full_matrices=False)
            low_rank = (U * np.maximum(singular - threshold, 0)) @ Vt
            # The level of a row is known better when its hidden labels are.
            shift = np.where(observed, known - low_rank, 0).sum(axis=1, keepdims=True)
            shift /= observed.sum(axis=1, keepdims=True)
        return logs.rows(low_rank + shift, D_obs, observed)


class Network(Rival):
    """Neural networks, averaged: with ``sees_labels`` they see features, observed labels and mask, else features only.

    They are trained with the Kullback-Leibler divergence over the labels that are observed. Networks that see labels
    get their rows with some of them hidden again, others in every batch, and have to give them back.
    """

    def __init__(self, sees_labels: bool = True, n_networks: int = 5, random_state: RandomState = None) -> None:
        self.sees_labels = sees_labels
        self.n_networks = n_networks
        self.random_state = random_state

    def _check_parameters(self, n_rows: int, n_labels: int) -> None:
        check_number(self.n_networks, "n_networks", at_least=1, integer=True)

    def _recover(self, prepared: Any, D_obs: FloatArray, observed: BoolArray) -> FloatArray:
        means = LogShares.of(D_obs, observed).means
        items = _Items(scaled(prepared, 300), D_obs, observed, means, self.sees_labels)
        seeds = random_generator(self.random_state).integers(2**31, size=self.n_networks)
        candidates = [_train(replace(items, dropout=rate), seeds[0]) for rate in FEATURE_DROPOUTS]
        best = min(candidates, key=lambda network: network.loss)
        others = [_train(replace(items, dropout=best.dropout), seed) for seed in seeds[1:]]
        D = np.mean([items.rows(network.weights, observed) for network in (best, *others)], axis=0)
        return completed(D, D_obs, observed)


HIDDEN_LAYERS = (128, 128, 128, 128)
STEP, DECAY, DROPOUT = 2e-3, 0.1, 0.2
FEATURE_DROPOUTS = (0.0, 0.15, 0.4)
"""The rate at which features are dropped is chosen, with the first network: tables differ in how much it helps."""
BATCH, EPOCHS, PATIENCE = 128, 400, 30
HELD_OUT, REPEATS = 0.15, 3
"""Which part of the rows says when to stop, and how many times each of them loses labels for that."""
MOST_LOST = 0.6
"""Rows lose up to this part of their observed labels again."""
MEMORY = 0.99
"""Networks are judged and used with weights that are averaged over about 1 / (1 - MEMORY) steps."""

Weights: TypeAlias = list[npt.NDArray[np.float32]]
"""Matrix and constants of each layer, in turn."""


@dataclass(frozen=True)
class _Items:
    """Rows of a table, as networks are fed with them."""

    features: FloatArray
    shares: FloatArray
    observed: BoolArray
    means: FloatArray
    sees_labels: bool
    dropout: float = 0.0

    def take(self, at: IntArray) -> "_Items":
        return replace(self, features=self.features[at], shares=self.shares[at], observed=self.observed[at])

    def handed_in(self, kept: BoolArray) -> FloatArray:
        """Rows of the labels in ``kept`` only. They sum to 1 again: their size must not tell what was lost."""
        return clip_and_close(np.where(kept, self.shares, 0))

    def inputs(self, kept: BoolArray, rng: np.random.Generator | None = None) -> npt.NDArray[np.float32]:
        """Features, and the labels in ``kept``; some features are dropped where there is ``rng``."""
        features = self.features if rng is None else self.features * _dropout(self.features.shape, self.dropout, rng)
        labels = [LogShares.of_means(self.handed_in(kept), self.means).z(kept), kept] if self.sees_labels else []
        return np.hstack([features, *labels]).astype(np.float32)

    def lose_labels(self, rng: np.random.Generator) -> BoolArray:
        """The mask after labels were hidden again: one at least, all but a positive one at most."""
        lottery = rng.random(self.observed.shape)
        lost = lottery < rng.uniform(0, MOST_LOST, size=(len(lottery), 1))
        lost |= lottery == np.where(self.observed, lottery, 2).min(axis=1, keepdims=True)
        kept = self.observed & ~lost
        positive = np.where(self.observed & (self.shares > 0), lottery, -1)
        bare = ~(kept & (self.shares > 0)).any(axis=1, keepdims=True)
        return kept | (bare & (positive == positive.max(axis=1, keepdims=True)))

    def rows(self, weights: Weights, kept: BoolArray) -> FloatArray:
        """The network's rows, given the labels in ``kept``."""
        return _softmax(_forward(weights, self.inputs(kept))[0])

    def loss(self, weights: Weights, kept: BoolArray) -> float:
        """How far the completed rows are from what had been observed."""
        D = completed(self.rows(weights, kept), self.handed_in(kept), kept)
        return float(judge(D, self.shares, self.observed, "kl").mean())


class _Trained(NamedTuple):
    weights: Weights
    loss: float
    dropout: float


def _train(items: _Items, seed: int) -> _Trained:
    """The weights of the epoch after which held-out rows got their lost labels back best."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(items.shares))
    held_out, training = np.split(order, [max(round(HELD_OUT * len(order)), 1)])
    judges = items.take(np.tile(held_out, REPEATS))
    kept = judges.lose_labels(rng)
    weights = _random_weights(judges.inputs(kept).shape[1], items.means, rng)
    best, lowest, since = weights, np.inf, 0
    for average in _epochs(weights, items.take(training), rng):
        loss = judges.loss(average, kept)
        since += 1
        if loss < lowest - 1e-5:
            best, lowest, since = average, loss, 0
        if since >= PATIENCE:
            break
    return _Trained(best, lowest, items.dropout)


def _epochs(weights: Weights, items: _Items, rng: np.random.Generator) -> Iterator[Weights]:
    """The averaged weights after each epoch of Adam with decoupled weight decay."""
    weights = [part.copy() for part in weights]
    average = [part.copy() for part in weights]
    first, second = ([np.zeros_like(part) for part in weights] for _ in range(2))
    steps = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(items.shares))
        for start in range(0, len(order), BATCH):
            steps += 1
            gradients = _gradients(weights, items.take(order[start : start + BATCH]), rng)
            for part, mean, slope, square, gradient in zip(weights, average, first, second, gradients, strict=True):
                slope += 0.1 * (gradient - slope)
                square += 0.01 * (gradient**2 - square)
                change = slope / (1 - 0.9**steps) / (np.sqrt(square / (1 - 0.99**steps)) + 1e-8)
                part -= np.float32(STEP) * (change + DECAY * part if part.ndim == 2 else change)
                mean += np.float32(1 - MEMORY) * (part - mean)
        yield [part.copy() for part in average]


def _gradients(weights: Weights, batch: _Items, rng: np.random.Generator) -> Weights:
    """Of the divergence between what was observed and the network's rows over the same labels, by back-propagation."""
    kept = batch.lose_labels(rng) if batch.sees_labels else batch.observed
    logits, inputs, gates = _forward(weights, batch.inputs(kept, rng), rng)
    predicted = clip_and_close(np.where(batch.observed, _softmax(logits), 0))
    flow = ((predicted - batch.shares) / len(logits)).astype(np.float32)
    gradients: Weights = []
    for layer in reversed(range(len(inputs))):
        gradients = [inputs[layer].T @ flow, flow.sum(axis=0), *gradients]
        if layer:
            flow = (flow @ weights[2 * layer].T) * gates[layer - 1]
    return gradients


def _forward(
    weights: Weights, x: npt.NDArray[np.float32], rng: np.random.Generator | None = None
) -> tuple[npt.NDArray[np.float32], Weights, Weights]:
    """The logits, with each layer's inputs and the gates of its units; with ``rng``, units are dropped."""
    inputs, gates = [x], []
    *hidden, (last, constants) = zip(weights[::2], weights[1::2], strict=True)
    for matrix, constant in hidden:
        x = x @ matrix + constant
        gate = (x > 0).astype(np.float32)
        if rng is not None:
            gate *= _dropout(gate.shape, DROPOUT, rng)
        x = x * gate
        inputs.append(x)
        gates.append(gate)
    return x @ last + constants, inputs, gates


def _random_weights(n_inputs: int, means: FloatArray, rng: np.random.Generator) -> Weights:
    """He's start; the first predictions are nearly the labels' means."""
    sizes = [n_inputs, *HIDDEN_LAYERS, len(means)]
    weights: Weights = []
    for rows, columns in pairwise(sizes):
        matrix = rng.standard_normal((rows, columns)) * np.sqrt(2 / rows)
        weights += [matrix.astype(np.float32), np.zeros(columns, dtype=np.float32)]
    weights[-2] *= np.float32(0.1)
    weights[-1] += means.astype(np.float32)
    return weights


def _dropout(shape: tuple[int, ...], rate: float, rng: np.random.Generator) -> npt.NDArray[np.float32]:
    return (rng.random(shape, dtype=np.float32) >= rate).astype(np.float32) / np.float32(1 - rate)


def _softmax(logits: npt.NDArray[np.float32]) -> FloatArray:
    exponentials = np.exp(logits.astype(float) - logits.max(axis=1, keepdims=True))
    return exponentials / exponentials.sum(axis=1, keepdims=True)
