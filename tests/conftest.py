"""Fixtures that many tests share."""

import os
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import settings

from browser import browser, open_page  # noqa: F401  fixtures
from hidldl import hide_labels, make_distributions
from hidldl.recovery import calibration, heldout, search

# The same examples in every run, however long they take: a change makes a test fail, not the day or the machine.
settings.register_profile("seeded", derandomize=True, deadline=None)
settings.load_profile("seeded")

QUICK_CALIBRATION = {
    (heldout, "N_CALIBRATION_DRAWS"): 100,
    (heldout, "CALIBRATION_PLAYS"): 400,
    (calibration, "PRECISION"): 1.2,
}
FULL_CALIBRATION = {(module, name): getattr(module, name) for module, name in QUICK_CALIBRATION}


@pytest.fixture(scope="session")
def hidden_once():
    """What ``hidden`` is, for fixtures that outlive a test; nobody may change it."""
    data = make_distributions(n_rows=60, n_features=4, n_labels=5, random_state=3)
    D_obs, observed = hide_labels(data.distributions, rate=0.5, random_state=4)
    return SimpleNamespace(X=data.features, D=data.distributions, D_obs=D_obs, observed=observed)


@pytest.fixture
def hidden(hidden_once):
    """A small artificial problem: truth, and what is left of it after hiding half of the labels."""
    return SimpleNamespace(**{name: part.copy() for name, part in vars(hidden_once).items()})


@pytest.fixture(scope="module")
def short_search():
    """BayesHidLDL chooses among few candidates, for files that are not about what it chooses."""
    axes = {"nu": (4.0, 16.0, 1024.0, 65536.0), "ridge": (10.0, 10000.0), "width": (1.0,), "prior_rows": (1.0,)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "AXES", axes)
        yield


@pytest.fixture(scope="session", autouse=True)
def quick_calibration():
    """Fewer draws and rows behind the spread of intervals: it is the slowest part, and few tests are about it."""
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), value in QUICK_CALIBRATION.items():
            patch.setattr(module, name, value)
        yield


@pytest.fixture
def full_calibration(monkeypatch):
    """Intervals as users get them, for tests of what they hold."""
    for (module, name), value in FULL_CALIBRATION.items():
        monkeypatch.setattr(module, name, value)


@pytest.fixture(autouse=True)
def untouched_global_stream(request):
    """No test, and so nothing that it calls, may advance NumPy's global random stream."""
    if request.node.name.startswith("test_scikit_learns_own_checks"):
        yield  # one of scikit-learn's checks permutes rows with the global stream
        return
    before = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    yield
    after = np.random.get_state(legacy=False)["state"]  # noqa: NPY002
    assert before["pos"] == after["pos"]
    assert np.array_equal(before["key"], after["key"])


@pytest.fixture(scope="session")
def data_folder():
    """The folder with the paper's datasets, where there is one."""
    folder = os.environ.get("HIDLDL_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("HIDLDL_DATA does not name a folder with the paper's datasets")
    return Path(folder).resolve()
