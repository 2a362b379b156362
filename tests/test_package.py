"""The package as a whole: its public names and the weight of its import."""

import subprocess
import sys
from importlib.metadata import version

import hidldl


def test_every_public_name_can_be_imported():
    for name in hidldl.__all__:
        assert getattr(hidldl, name).__doc__, name
    assert set(hidldl.__all__) <= set(dir(hidldl))


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(hidldl, "HidLLD")


def test_the_version_is_the_installed_one():
    assert hidldl.__version__ == version("hidldl")


def test_import_loads_nothing_heavy():
    script = "import sys, hidldl, hidldl.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"scipy", "sklearn", "pandas", "numba", "matplotlib", "rich", "pooch", "requests", "joblib"}
    assert heavy.isdisjoint(loaded)
