"""Generated data: Geng's artificial set, generalised."""

import numpy as np

from hidldl.arrays import FloatArray
from hidldl.datasets.dataset import Dataset
from hidldl.randomness import RandomState, random_generator
from hidldl.validation import check_number

_GENG_WEIGHTS = np.array([[4.0, 2.0, 1.0], [1.0, 2.0, 4.0], [1.0, 4.0, 2.0]])
_GENG_CHAIN = 0.01


def make_distributions(
    n_rows: int = 500,
    n_features: int = 3,
    n_labels: int = 3,
    *,
    correlation: float = 0.0,
    zeros: float = 0.0,
    random_state: RandomState = None,
) -> Dataset:
    """Artificial distributions that depend on their features in a known, smooth and non-linear way.

    Geng's construction: features are uniform in [-1, 1]; with t = x + 0.5 x² + 0.2 x³ + 1 (entry by entry) the
    labels hold psi_1 = (w_1't)² and psi_j = (w_j't + 0.01 psi_{j-1})², divided by their sum. Three features and
    three labels use Geng's weights w; any other size draws weights with the same sum, of which a few features
    hold most, and turns the sign of each feature for half of the labels, so that labels differ however many
    features there are.

    Parameters
    ----------
    n_rows, n_features, n_labels : int
        Size of the data; two labels at least.
    correlation : float in [0, 1), default=0
        Share of its weights that each label takes over from the one before it.
    zeros : float in [0, 1), default=0
        Fraction of all shares that become true zeros: the smallest ones, but never the largest of a row.
    random_state : int, Generator, RandomState or None
        Seed of the draw.

    References
    ----------
    X. Geng. Label distribution learning. IEEE Transactions on Knowledge and Data Engineering 28(7), 2016.

    Examples
    --------
    >>> from hidldl import make_distributions
    >>> data = make_distributions(n_rows=100, n_features=8, n_labels=6, zeros=0.25, random_state=0)
    >>> data
    Dataset('artificial': 100 rows, 8 features, 6 labels)
    >>> float((data.distributions == 0).mean())
    0.25
    """
    check_number(n_rows, "n_rows", at_least=1, integer=True)
    check_number(n_features, "n_features", at_least=1, integer=True)
    check_number(n_labels, "n_labels", at_least=2, integer=True)
    for name, value in (("correlation", correlation), ("zeros", zeros)):
        check_number(value, name, at_least=0, below=1)
    rng = random_generator(random_state)
    features = rng.uniform(-1, 1, (n_rows, n_features))
    masses = _label_masses(features, *_label_weights(n_labels, n_features, correlation, rng))
    distributions = _with_zeros(masses / masses.sum(axis=1, keepdims=True), zeros)
    return Dataset(
        name="artificial",
        features=features,
        distributions=distributions,
        feature_names=tuple(f"feature {j + 1}" for j in range(n_features)),
        label_names=tuple(f"label {j + 1}" for j in range(n_labels)),
    )


def _label_weights(
    n_labels: int, n_features: int, correlation: float, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """Weights of the even and of the odd part of t; they differ by the sign of each feature for each label."""
    if (n_labels, n_features) == _GENG_WEIGHTS.shape:
        even, signs = _GENG_WEIGHTS.copy(), np.ones(_GENG_WEIGHTS.shape)
    else:
        few_matter = np.full(n_features, 3 / n_features)
        even = _GENG_WEIGHTS[0].sum() * rng.dirichlet(few_matter, n_labels)
        signs = rng.choice([-1.0, 1.0], even.shape)
    odd = even * signs
    for weights in (even, odd):
        for j in range(1, n_labels):
            weights[j] = correlation * weights[j - 1] + (1 - correlation) * weights[j]
    return even, odd


def _label_masses(features: FloatArray, even: FloatArray, odd: FloatArray) -> FloatArray:
    masses = (1 + 0.5 * features**2) @ even.T + (features + 0.2 * features**3) @ odd.T
    masses[:, 0] **= 2
    for j in range(1, masses.shape[1]):
        masses[:, j] = (masses[:, j] + _GENG_CHAIN * masses[:, j - 1]) ** 2
    return masses


def _with_zeros(D: FloatArray, share: float) -> FloatArray:
    count = round(share * D.size)
    removable = D.copy()
    removable[np.arange(len(D)), D.argmax(axis=1)] = np.inf
    smallest = np.argsort(removable, axis=None, kind="stable")[: min(count, D.size - len(D))]
    D = D.copy()
    D.flat[smallest] = 0
    return np.asarray(D / D.sum(axis=1, keepdims=True))
