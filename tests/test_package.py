"""The package as a whole: its public names and the weight of its import."""

import re
import subprocess
import sys
import tomllib
from importlib.metadata import version
from io import StringIO
from pathlib import Path

import pandas as pd
import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import hidldl
from hidldl.methods import HOUSE

ROOT = Path(__file__).parents[1]


def test_every_public_name_can_be_imported():
    for name in hidldl.__all__:
        assert getattr(hidldl, name).__doc__, name
    assert set(hidldl.__all__) <= set(dir(hidldl))


def test_every_public_name_is_on_a_page_of_the_api():
    page = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")
    listed = set(re.findall(r"^   (\w+)$", page, flags=re.MULTILINE)) | set(
        re.findall(r"^``(\w+)``", page, flags=re.MULTILINE)
    )
    methods = {method.class_name for method in HOUSE}  # docs/conf.py writes their page from the registry
    assert set(hidldl.__all__) - {"__version__"} <= listed | methods


def test_an_unknown_name_is_an_attribute_error():
    assert not hasattr(hidldl, "HidLLD")


def test_the_version_is_the_installed_one():
    assert hidldl.__version__ == version("hidldl")


def test_import_loads_nothing_heavy():
    script = "import sys, hidldl, hidldl.__main__; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"scipy", "sklearn", "pandas", "numba", "matplotlib", "rich", "pooch", "requests", "joblib", "torch"}
    assert heavy.isdisjoint(loaded)


def test_the_example_of_the_readme_is_what_comes_out(tmp_path, monkeypatch):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table, complete = re.findall(r"```csv\n(.*?)```", text, flags=re.DOTALL)
    monkeypatch.chdir(tmp_path)
    Path("faces.csv").write_text(table, encoding="utf-8")
    hidldl.recover_table("faces.csv").write("faces.recovered.csv")
    # Other releases of NumPy may round the last digit otherwise.
    found, shown = (pd.read_csv(source) for source in ("faces.recovered.csv", StringIO(complete)))
    pd.testing.assert_frame_equal(found, shown, rtol=0, atol=2e-6)


def test_the_lowest_versions_that_are_tested_are_those_that_are_promised():
    tested = ROOT / ".ci" / "lowest.txt"
    if not tested.exists():
        pytest.skip("this copy has no .ci")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    stated = [
        Requirement(line) for line in project["dependencies"] + [line for lines in extras.values() for line in lines]
    ]
    lowest = {each.name: Version(spec.version) for each in stated for spec in each.specifier if spec.operator == ">="}
    pinned = [Requirement(line) for line in tested.read_text().splitlines() if not line.startswith("#")]
    assert {each.name: Version(next(iter(each.specifier)).version) for each in pinned}.items() <= lowest.items()
    needed = {Requirement(line).name for name in extras if name not in ("dev", "docs") for line in extras[name]}
    needed |= {Requirement(line).name for line in project["dependencies"]}
    assert needed - {"hidldl"} <= {each.name for each in pinned}
