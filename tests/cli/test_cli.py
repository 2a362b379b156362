"""The shell as a user meets it."""

import subprocess
import sys

import pooch
import pytest
from click.testing import CliRunner

from hidldl import __version__
from hidldl.__main__ import main
from hidldl.datasets.registry import FILES


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.delenv("HIDLDL_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache")
    return lambda *arguments: CliRunner().invoke(main, arguments)


def test_version_and_help(run):
    assert run("--version").output == f"hidldl {__version__}\n"
    output = run("-h").output
    assert "hidldl demo" in output
    assert "hidldl datasets" in output


def test_the_module_is_the_command():
    command = [sys.executable, "-m", "hidldl", "--version"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == f"hidldl {__version__}\n"


def test_demo_ends_with_a_table_and_a_picture(run, tmp_path):
    result = run("demo", "--rows", "150")
    assert result.exit_code == 0, result.output
    assert "VADER: 150 rows, 128 features, 9 labels. 48% of the labels are now hidden" in result.output.replace(
        "\n", " "
    ).replace("  ", " ")
    for name in ("as handed in", "MeanFill", "SA-BFGS", "HidLDL w/o Cons", "HidLDL w/o TN", "intersection"):
        assert name in result.output
    assert (tmp_path / "hidldl-demo.png").read_bytes().startswith(b"\x89PNG")


def test_demo_on_an_unknown_dataset_is_one_line(run):
    result = run("demo", "--dataset", "nope")
    assert result.exit_code == 1
    assert result.output.startswith("Error: there is no dataset 'nope'.")


@pytest.mark.parametrize(
    ("picture", "message"), [("x.xyz", "must be a .png, .svg or .pdf"), ("no/such/x.png", "there is no folder no/such")]
)
def test_a_picture_that_cannot_be_written_is_told_before_the_work(run, picture, message):
    result = run("demo", "--picture", picture)
    assert result.exit_code == 2
    assert message in result.output.replace("\n", " ")


def test_vader_has_no_file(run):
    assert "ships inside the package vaderSentiment" in run("datasets", "path", "VADER").output


def test_the_list_shows_where_everything_is(run, tmp_path, monkeypatch):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "SJAFFE.mat").write_bytes(b"x" * 200_000)
    monkeypatch.setenv("HIDLDL_DATA", str(folder))
    lines = run("datasets").output.splitlines()
    row = {line.split("│")[1].strip(): line for line in lines if line.startswith("│")}
    assert set(row) == {*FILES, "VADER"}
    assert "0.2 MB" in row["SJAFFE"]
    assert "HIDLDL_DATA" in row["SJAFFE"]
    assert "not here" in row["Movie"]
    assert "1,869" in row["Movie"]
    assert "vaderSentiment" in row["VADER"]
    assert f"  HIDLDL_DATA: {folder}" in lines


def test_path_and_fetch_of_what_is_here(run, data_folder, monkeypatch):
    monkeypatch.setenv("HIDLDL_DATA", str(data_folder))
    assert run("datasets", "path", "alpha").output == f"{data_folder / 'Yeast_alpha.mat'}\n"
    assert run("datasets", "fetch", "alpha").output == f"Yeast-alpha: {data_folder / 'Yeast_alpha.mat'}\n"


def test_what_cannot_be_had_is_said(run, monkeypatch):
    def offline(self, *args, **kwargs):
        raise ConnectionError("offline")

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", offline)
    result = run("datasets", "fetch", "alpha", "cold")
    assert result.exit_code == 1
    assert "Yeast_alpha.mat" in result.output
    assert "Yeast_cold.mat" in result.output
    assert "hidldl datasets fetch Movie" in run("datasets", "path", "movie").output
    assert "Known names" in run("datasets", "path", "nope").output
    assert run("datasets", "fetch").exit_code == 2
