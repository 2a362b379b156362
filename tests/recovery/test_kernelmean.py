import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from hidldl.recovery.kernelmean import Landmarks, Ridge


@pytest.fixture(name="X")
def features_of_three_scales():
    return np.random.default_rng(0).normal(size=(40, 3)) * [1, 10, 0.1] + [0, 100, 0]


def features_of(X, width=1.0, n_landmarks=100, standardize=True):
    return Landmarks.choose(X, n_landmarks, standardize, np.random.default_rng(0)).with_width(width)(X)


@pytest.mark.parametrize("standardize", [True, False])
def test_with_every_row_a_landmark_the_kernel_is_exact(X, standardize):
    landmarks = Landmarks.choose(X, 40, standardize, np.random.default_rng(0))
    features = landmarks.with_width(2.0)(X)
    Z = X / X.std(axis=0) if standardize else X / X.std(axis=0).max()
    assert np.allclose(features @ features.T, rbf_kernel(Z, gamma=1 / (2 * landmarks.typical)), atol=1e-6)


@pytest.mark.parametrize("factor", [1e-8, 1e8])
def test_units_do_not_matter(X, factor):
    gram = features_of(X) @ features_of(X).T
    assert np.allclose(features_of(factor * X) @ features_of(factor * X).T, gram, atol=1e-6)
    each_its_own = X * [1, factor, 1 / factor]
    assert np.allclose(features_of(each_its_own) @ features_of(each_its_own).T, gram, atol=1e-6)


def test_constant_and_sparse_features_and_an_offset_change_nothing(X):
    gram = features_of(X) @ features_of(X).T
    with_constant = features_of(np.column_stack([X, np.full(40, 7.0)]))
    assert np.allclose(with_constant @ with_constant.T, gram)
    moved, thin = features_of(X + 1e3), features_of(sparse.csr_array(X))
    assert np.allclose(moved @ moved.T, gram, atol=1e-6)
    assert np.allclose(thin @ thin.T, gram, atol=1e-6)


def test_sparse_features_of_any_scale_count_as_dense_ones_do(X):
    small = X * [1, 1e-13, 1e10]
    dense, thin = features_of(small), features_of(sparse.csr_array(small))
    assert np.allclose(dense @ dense.T, thin @ thin.T, atol=1e-6)
    assert np.isfinite(features_of(1e-310 * X)).all()
    assert np.isfinite(features_of(sparse.csr_array(1e-310 * X))).all()


@pytest.mark.parametrize("X", [np.ones((5, 2)), np.zeros((1, 3)), sparse.csr_array(np.zeros((4, 2)))])
def test_rows_that_are_all_the_same_have_no_features(X):
    assert features_of(X).shape == (X.shape[0], 0)


def test_enormous_features_stay_finite(X):
    assert np.isfinite(features_of(1e300 * X)).all()


def test_ridge_is_ridge_regression_with_an_intercept(X):
    features, y = features_of(X), np.random.default_rng(1).normal(size=(40, 2))
    ridge = Ridge.of(features, 0.5)
    centred = features - features.mean(axis=0)
    hat = centred @ np.linalg.solve(centred.T @ centred + 0.5 * np.eye(centred.shape[1]), centred.T) + 1 / 40
    fitted = y.mean(axis=0) + centred @ ridge.coefficients(centred.T @ y)
    assert np.allclose(fitted, hat @ y)
    assert np.allclose(ridge.leverage(features), np.diag(hat))


def test_distances_along_directions_are_added(X):
    landmarks = Landmarks.choose(X, 40, True, np.random.default_rng(0))
    directions = np.random.default_rng(1).normal(size=(3, 2))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    metric = np.eye(3) + directions @ directions.T
    gaps = Z[:, None] - landmarks.rows
    expected = np.einsum("nqi,ij,nqj->nq", gaps, metric, gaps)
    along = landmarks.along(directions)
    assert np.allclose(along.squared_distances(X) * along.typical, expected)
    assert np.allclose(np.median(along.distances_between[np.triu_indices(40, 1)]), 1)
    assert np.allclose(landmarks.along(np.empty((3, 0))).squared_distances(X), landmarks.squared_distances(X))
