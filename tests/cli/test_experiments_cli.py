"""reproduce and compare, as a researcher runs them."""

import pandas as pd
import pooch
import pytest
from click.testing import CliRunner

from hidldl import make_distributions
from hidldl.__main__ import main
from hidldl.cli.terminal import Stopped
from hidldl.experiments import compare as module


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def table(tmp_path):
    data = make_distributions(n_rows=80, n_features=3, n_labels=4, random_state=0)
    frame = pd.DataFrame(data.features, columns=["a", "b", "c"])
    frame[["mood_joy", "mood_fear", "mood_rage", "mood_calm"]] = data.distributions
    frame.to_csv(tmp_path / "mine.csv", index=False)
    return tmp_path / "mine.csv"


def test_compare_on_a_table_of_ones_own(run, table, tmp_path):
    arguments = ("compare", table, "--labels", "mood_*", "--repetitions", 2, "--output", "out")
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    lines = [line.split() for line in result.stdout.splitlines() if line.startswith("  ")]
    assert {line[0] for line in lines} >= {"HidLDL", "MeanFill", "SA-IIS", "LDL-DPA"}
    means = [float(line[1]) for line in lines]
    assert means == sorted(means)
    for name in ("comparison.md", "comparison.tex", "comparison.csv", "index.html", "results.sqlite"):
        assert (tmp_path / "out" / name).stat().st_size > 0
    assert run(*arguments).stdout == result.stdout
    assert run(*arguments, "--measure", "kl").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--labels", "feeling_*"), "mine.csv has no column 'feeling_*' (labels)"),
        (("--labels", "a,b"), "mine.csv is negative in row"),
        (("--labels", "mood_*", "--measure", "accuracy"), "choose from chebyshev"),
    ],
)
def test_compare_refuses_in_one_line(run, table, arguments, message):
    result = run("compare", table, *arguments)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output


def test_compare_wants_a_complete_table(run, table):
    frame = pd.read_csv(table)
    frame.loc[3, "mood_joy"] = None
    frame.to_csv(table, index=False)
    assert "mine.csv is not a finite number in row 3" in run("compare", table, "--labels", "mood_*").output


def test_reproduce_writes_tables_figures_and_a_page(run, data_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HIDLDL_DATA", str(data_folder))
    arguments = ("reproduce", "--table", "1", "--table", "2", "--figure", "3", "--figure", "residuals", "--quick")
    arguments = (*arguments, "--dataset", "cold", "--repetitions", 1)
    result = run(*arguments)
    assert result.exit_code == 0, result.output
    folder = tmp_path / "hidldl-results"
    for name in ("table-1.md", "table-1.tex", "table-1.csv", "table-2-2.md", "figure-3.pdf", "figure-residuals.png"):
        assert (folder / name).stat().st_size > 0
    page = (folder / "index.html").read_text(encoding="utf-8")
    assert "Table 1: Canberra, recovery, 50 % hidden" in page
    assert "paper 0.1746" in page
    before = (folder / "results.sqlite").stat().st_mtime_ns
    assert run(*arguments).exit_code == 0
    assert (folder / "results.sqlite").stat().st_mtime_ns == before


def test_reproduce_without_data_says_how_to_get_it(run, tmp_path, monkeypatch):
    monkeypatch.delenv("HIDLDL_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda name: tmp_path / "cache")
    without_data, unknown = run("reproduce", "--table", "1"), run("reproduce", "--dataset", "nope")
    assert "hidldl datasets fetch --all" in without_data.output
    assert "there is no dataset 'nope'" in unknown.output
    assert without_data.exit_code == unknown.exit_code == 2


@pytest.mark.parametrize("stop", [KeyboardInterrupt, Stopped(15)])
def test_who_interrupts_learns_how_to_go_on(run, table, monkeypatch, stop):
    def interrupted(*arguments, **options):
        raise stop

    monkeypatch.setattr(module, "run", interrupted)
    result = run("compare", table, "--labels", "mood_*")
    assert result.exit_code == (130 if stop is KeyboardInterrupt else 143)
    assert "run the same command again to go on where it stopped" in result.output
