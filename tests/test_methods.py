"""The registry of methods: a method that is entered once can be used everywhere."""

import os
import subprocess
import sys
import zipfile
from importlib.metadata import EntryPoint
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import hidldl
from hidldl import (
    MeanFill,
    Recoverer,
    hide_labels,
    load_model,
    make_distributions,
    methods,
    register_method,
    save_model,
)
from hidldl.methods import HOUSE, all_methods, find_method, method_names, registered_methods

TINY = '''
"""A method in one file."""

import numpy as np

from hidldl import Recoverer


class TinyFill(Recoverer):
    """Hidden labels share alike."""

    saved_attributes = ("weight_",)

    def __init__(self, weight=0.5):
        self.weight = weight

    def _recover(self, X, D_obs, observed):
        self.weight_ = float(self.weight)
        return np.where(observed, (1 - self.weight) * D_obs, self.weight / D_obs.shape[1]).astype(D_obs.dtype)

    def _predict(self, X):
        return np.full((X.shape[0], self.n_labels_), 1 / self.n_labels_, X.dtype)
'''
LINE = "[hidldl.methods]\ntinyfill = tiny_fill:TinyFill\n"
HERE = Path(__file__).parent


class EvenFill(Recoverer):
    """Hidden labels get an even share.

    The rest of the docstring is not for tables.
    """

    saved_attributes = ("n_rows_",)

    def __init__(self, scale=1.0):
        self.scale = scale

    def _recover(self, X, D_obs, observed):
        self.n_rows_ = len(X)
        return np.where(observed, D_obs, self.scale / D_obs.shape[1])

    def _predict(self, X):
        return np.full((X.shape[0], self.n_labels_), 1 / self.n_labels_)


@pytest.fixture
def even_fill(monkeypatch):
    monkeypatch.setattr(methods, "_registered", {})
    monkeypatch.setattr(methods, "_registered_classes", {})
    register_method("evenfill", EvenFill(scale=2.0))


def test_every_public_estimator_is_in_the_registry():
    public = [getattr(hidldl, name) for name in hidldl.__all__]
    estimators = {thing for thing in public if isinstance(thing, type) and hasattr(thing, "saved_attributes")}
    assert {method.kind for method in HOUSE} == estimators - {hidldl.Recoverer, hidldl.Learner}


def test_names_and_titles_are_unique():
    for part in ("name", "title", "home"):
        values = [getattr(method, part) for method in HOUSE]
        assert len(set(values)) == len(values)
    for method in HOUSE:
        assert method.summary.endswith(".")


def test_listing_names_imports_no_method():
    script = (
        "import sys, hidldl.methods as m; m.method_names(); print('sklearn' in sys.modules, 'numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_an_unknown_method_or_parameter_is_named():
    with pytest.raises(ValueError, match="no method 'magic'; choose from bayes, hidldl"):
        find_method("magic")
    with pytest.raises(ValueError, match="meanfill has no parameter 'alpha'; its parameters are max_iter, tol"):
        find_method("meanfill").make({"alpha": 1})


def test_a_learner_recovers_nothing():
    with pytest.raises(ValueError, match="sabfgs is a learner, which recovers nothing; choose from bayes"):
        methods.make_recoverer("sabfgs")


def test_a_package_that_cannot_be_loaded_is_passed_over(monkeypatch):
    broken = EntryPoint("broken", "no_such_package:Thing", methods.ENTRY_POINTS)
    monkeypatch.setattr(methods, "_entry_points", lambda: (broken,))
    with pytest.warns(UserWarning, match="the method 'broken' cannot be loaded"):
        assert "broken" not in [method.name for method in registered_methods()]


def test_a_registered_method_is_known_everywhere(even_fill, tmp_path):
    (method,) = registered_methods()
    assert (method.name, method.title, method.role) == ("evenfill", "evenfill", "recoverer")
    assert method.summary == "Hidden labels get an even share."
    assert method.make().scale == 2
    assert "evenfill" in method_names()
    data = make_distributions(n_rows=30, random_state=0)
    model = method.make().fit(data.features, *hide_labels(data.distributions, 0.3, random_state=0))
    save_model(tmp_path / "m.json", model)
    again, _ = load_model(tmp_path / "m.json")
    assert isinstance(again, EvenFill)
    assert (again.n_rows_, again.scale) == (30, 2.0)


def test_a_method_that_is_not_registered_is_neither_saved_nor_loaded(even_fill, tmp_path, monkeypatch):
    data = make_distributions(n_rows=30, random_state=0)
    model = EvenFill().fit(data.features, *hide_labels(data.distributions, 0.3, random_state=0))
    save_model(tmp_path / "m.json", model)
    monkeypatch.setattr(methods, "_registered", {})
    with pytest.raises(TypeError, match="EvenFill is not a known method; call register_method"):
        save_model(tmp_path / "m.npz", model)
    with pytest.raises(hidldl.ModelFileError, match=r"m\.json is of the method 'EvenFill', which is not known here"):
        load_model(tmp_path / "m.json")


def test_what_is_no_method_is_not_registered():
    with pytest.raises(TypeError, match="must be a Recoverer or a Learner"):
        register_method("text", "MeanFill")
    impostor = type("MeanFill", (MeanFill,), {"__module__": "elsewhere", "__qualname__": "MeanFill"})
    with pytest.raises(ValueError, match="has the name of one of hidldl's own"):
        register_method("mine", impostor())
    for name in ("", "meanfill"):
        with pytest.raises(ValueError, match="choose another"):
            register_method(name, MeanFill())


@pytest.fixture(scope="module")
def with_tiny_fill(tmp_path_factory):
    """The environment of a user who installed a package with a method: one file, and one line that declares it."""
    folder = tmp_path_factory.mktemp("tiny")
    wheel = folder / "tiny_fill-0.1-py3-none-any.whl"
    facts = "tiny_fill-0.1.dist-info"
    files = {
        "tiny_fill.py": TINY,
        f"{facts}/METADATA": "Metadata-Version: 2.1\nName: tiny-fill\nVersion: 0.1\n",
        f"{facts}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{facts}/entry_points.txt": LINE,
    }
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
        archive.writestr(f"{facts}/RECORD", "".join(f"{name},,\n" for name in files))
    installed = folder / "site"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", str(installed)]
    subprocess.run([*command, str(wheel)], check=True, env={**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
    paths = [str(installed), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def shell(environment, folder, *arguments):
    command = [sys.executable, "-m", "hidldl", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=folder)


def test_a_method_of_a_package_is_used_from_the_shell(with_tiny_fill, tmp_path):
    data = make_distributions(n_rows=40, n_features=2, n_labels=3, random_state=0)
    D_obs, observed = hide_labels(data.distributions, 0.3, random_state=0)
    table = pd.DataFrame(data.features, columns=["x", "y"]).join(pd.DataFrame(np.where(observed, D_obs, np.nan)))
    table.columns = ["x", "y", "joy", "fear", "anger"]
    table.to_csv(tmp_path / "t.csv", index=False)
    assert "tinyfill" in shell(with_tiny_fill, tmp_path, "recover", "--help").stdout
    arguments = ("-o", "out.csv", "--method", "tinyfill", "--set", "weight=0.2", "--report", "r.html")
    done = shell(with_tiny_fill, tmp_path, "recover", "t.csv", *arguments, "--model", "m.npz")
    assert done.returncode == 0, done.stderr
    assert pd.read_csv(tmp_path / "out.csv")[["joy", "fear", "anger"]].sum(axis=1).to_numpy() == pytest.approx(1)
    assert "TinyFill" in (tmp_path / "r.html").read_text(encoding="utf-8")
    done = shell(with_tiny_fill, tmp_path, "predict", "t.csv", "--model", "m.npz", "-o", "new.csv")
    assert done.returncode == 0, done.stderr
    # Where the package is not installed, its models are refused in one line.
    done = shell(os.environ, tmp_path, "predict", "t.csv", "--model", "m.npz", "-o", "other.csv")
    assert done.returncode == 2
    assert "is of the method 'TinyFill', which is not known here" in done.stderr


def test_a_method_of_a_package_is_in_the_page(with_tiny_fill):
    script = "from hidldl.app.server import method_options; print(method_options())"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=with_tiny_fill)
    assert '<option value="tinyfill" data-summary="Hidden labels share alike.">TinyFill</option>' in done.stdout


def test_a_method_of_a_package_is_compared(with_tiny_fill, tmp_path):
    data = make_distributions(n_rows=30, n_features=2, n_labels=3, random_state=0)
    complete = pd.DataFrame(np.hstack([data.features, data.distributions]), columns=["x", "y", "joy", "fear", "anger"])
    complete.to_csv(tmp_path / "complete.csv", index=False)
    arguments = ("--labels", "joy,fear,anger", "--repetitions", "1", "--output", "results")
    done = shell(with_tiny_fill, tmp_path, "compare", "complete.csv", *arguments)
    assert done.returncode == 0, done.stderr
    assert "TinyFill" in done.stdout
    assert "TinyFill" in (tmp_path / "results/comparison.md").read_text(encoding="utf-8")


def test_a_method_of_a_package_is_tested_by_existing(with_tiny_fill):
    command = [sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", str(HERE / "test_conformance.py")]
    done = subprocess.run(
        [*command, "-k", "TinyFill"], capture_output=True, text=True, env=with_tiny_fill, cwd=HERE.parent
    )
    assert done.returncode == 0, done.stdout[-3000:]
    n_passed = int(done.stdout.split(" passed")[0].split()[-1])
    assert n_passed > 50


def test_all_methods_have_a_role():
    assert {method.role for method in all_methods()} == {"recoverer", "learner", "tuner"}
    assert [method.name for method in all_methods("recoverer")][:3] == ["bayes", "hidldl", "meanfill"]


def test_the_registry_knows_which_methods_tell_zeros():
    for method in all_methods("recoverer"):
        assert method.tells_zeros == method.kind.can_tell_zeros, method.name
