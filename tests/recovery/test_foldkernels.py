import numpy as np
import pytest

from hidldl.recovery.foldkernels import FoldKernels
from hidldl.recovery.kernelmean import Landmarks, Ridge


@pytest.fixture(name="parts")
def kernel_of_rows_with_one_fold():
    rng = np.random.default_rng(0)
    X, in_fold = rng.normal(size=(60, 3)), np.arange(60) >= 40
    landmarks = Landmarks.choose(X, 15, True, rng)
    kernels = FoldKernels.of([(landmarks, landmarks.squared_distances(X))], 1.0, [in_fold])
    return X, in_fold, landmarks, landmarks.with_width(1.0)(X), kernels


@pytest.mark.parametrize("penalty", [1e-3, 0.7])
def test_a_regression_on_components_is_that_on_the_features(parts, penalty):
    _, in_fold, _, features, kernels = parts
    targets = np.random.default_rng(1).normal(size=(40, 2))
    targets -= targets.mean(axis=0)
    plain, principal = Ridge.of(features[~in_fold], penalty), kernels.regression(0, penalty)
    fitted, held_out = kernels.fitted(0, penalty), kernels.held_out(0, penalty)
    assert np.allclose(principal.leverage(fitted), plain.leverage(features[~in_fold]), atol=0.02)
    coef = plain.coefficients(plain.centred(features[~in_fold]).T @ targets)
    by_components = principal.coefficients(principal.products(fitted, targets))
    assert np.allclose(plain.fitted(features[in_fold], coef), principal.fitted(held_out, by_components), atol=0.02)


def test_weights_of_landmarks_give_what_the_components_give(parts):
    X, in_fold, landmarks, _, kernels = parts
    fitted = kernels.fitted(0, 1e-3)
    coef = np.random.default_rng(2).normal(size=(fitted.shape[1], 2))
    sums = np.exp(-landmarks.squared_distances(X)) @ kernels.weights(0, coef)
    by_components = fitted @ coef
    expected = sums[~in_fold] - sums[~in_fold].mean(axis=0)
    assert np.allclose(by_components - by_components.mean(axis=0), expected, atol=1e-3)
