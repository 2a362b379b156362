"""The demo's numbers come from its data."""

import numpy as np
import pytest

from hidldl import MEASURES, make_distributions, score
from hidldl.experiments.demo import DEMO_METHODS, Demo


@pytest.fixture(scope="module")
def demo():
    return Demo.prepare(make_distributions(n_rows=120, n_labels=5, random_state=0), rate=0.5, random_state=0)


@pytest.fixture(scope="module")
def results(demo, short_search):
    return list(demo.run())


def test_every_method_runs_on_the_same_rows(demo, results):
    assert [result.method for result in results] == list(DEMO_METHODS)
    assert np.array_equal(results[0].distributions, demo.D_obs)
    for result in results:
        assert np.allclose(result.distributions.sum(axis=1), 1)
        assert result.scores == score(demo.data.distributions, result.distributions)


def test_typical_rows_are_at_the_quartiles(demo, results):
    recovered = results[-1].distributions
    errors = MEASURES["chebyshev"].rows(demo.data.distributions, recovered)
    with_hidden = errors[~demo.observed.to_numpy().all(axis=1)]
    for quartile, i in zip((0.25, 0.5, 0.75), demo.typical_rows(recovered), strict=True):
        assert errors[i] == pytest.approx(np.quantile(with_hidden, quartile, method="lower"))


def test_with_nothing_hidden_any_row_is_typical():
    complete = Demo.prepare(make_distributions(n_rows=20, random_state=0), rate=0, random_state=0)
    assert len(complete.typical_rows(complete.D_obs.to_numpy())) == 3


def test_some_rows_keep_features_and_labels_together():
    data = make_distributions(n_rows=50, random_state=0)
    some = Demo.prepare(data, rate=0.5, random_state=0, n_rows=20).data
    at = [int(np.flatnonzero((np.asarray(data.features) == row).all(axis=1))[0]) for row in np.asarray(some.features)]
    assert len(set(at)) == 20
    assert np.array_equal(some.distributions, np.asarray(data.distributions)[at])
    assert Demo.prepare(data, rate=0.5, random_state=0, n_rows=60).data is data
