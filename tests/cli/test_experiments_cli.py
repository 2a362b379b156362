"""reproduce and compare, as a researcher runs them."""

import errno
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pooch
import pytest
from click.testing import CliRunner

from hidldl import load_dataset, make_distributions
from hidldl.__main__ import main
from hidldl.cli.terminal import Stopped
from hidldl.experiments import compare as module
from hidldl.experiments import figure_data, protocol
from hidldl.experiments import store as store_module
from hidldl.experiments.store import Store

pytestmark = pytest.mark.usefixtures("short_search")


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(main, [str(argument) for argument in arguments])


@pytest.fixture
def table(tmp_path):
    data = make_distributions(n_rows=40, n_features=3, n_labels=4, random_state=0)
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
    assert "2 repetitions" in result.stdout
    assert "±" in result.stdout
    once = run(*arguments, "--repetitions", 1).stdout
    assert "1 repetition)" in once
    assert "±" not in once


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--labels", "feeling_*"), "mine.csv has no column 'feeling_*' (labels)"),
        (("--labels", "a,b"), "mine.csv is negative in row"),
        (("--labels", "mood_*", "--measure", "accuracy"), "choose from chebyshev"),
        (("--labels", "mood_*", "--header-row", "top"), "header row 'top' must be"),
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
    assert (
        "mine.csv has empty cells in its label columns, first in row 4, column 'mood_joy'; fill them first"
        in run("compare", table, "--labels", "mood_*").output
    )


def test_compare_takes_the_features_that_are_named(run, table):
    frame = pd.read_csv(table).assign(rater="ann")
    frame.to_csv(table, index=False)
    arguments = ("compare", table, "--labels", "mood_*", "--rate", 1)
    assert "column 'rater' of mine.csv holds 'ann' in row 1" in run(*arguments).output
    assert "'ann'" not in run(*arguments, "--features", "a..c").output


def first_rows(name):
    data = load_dataset(name)
    return replace(data, features=data.features[:120], distributions=data.distributions[:120])


def test_reproduce_writes_tables_figures_and_a_page(run, data_folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HIDLDL_DATA", str(data_folder))
    for reader in (protocol, figure_data):  # the paper's figures stand beside these, whatever the rows
        monkeypatch.setattr(reader, "load_dataset", first_rows)
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


def with_a_table(path, columns):
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"CREATE TABLE {columns}")


def with_damage(path):
    Store(path)
    path.write_bytes(path.read_bytes()[:100] + b"\xff" * 4000)


def with_a_lock(path):
    connection = sqlite3.connect(path)
    connection.execute("BEGIN EXCLUSIVE")
    return connection


UNUSABLE = {
    "text": (lambda path: path.write_text("no database " * 99), "is not a store of hidldl's results; move it away"),
    "another's": (lambda path: with_a_table(path, "songs (title TEXT)"), "is not a store of hidldl's results"),
    "its namesake": (lambda path: with_a_table(path, "evaluations (mark REAL)"), "is not a store of hidldl's results"),
    "damaged": (with_damage, "is damaged; move it away to begin again, or name another folder"),
    "locked": (with_a_lock, "is locked by another program; wait until that is done"),
    "a folder": (lambda path: path.mkdir(), "cannot be used: unable to open database file; name another folder"),
}


@pytest.mark.parametrize("command", ["compare", "reproduce"])
@pytest.mark.parametrize(("spoil", "message"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_store_that_cannot_be_used_is_one_line(run, table, tmp_path, monkeypatch, command, spoil, message):
    monkeypatch.setattr(store_module, "_PATIENCE_S", 0.05)
    (tmp_path / "out").mkdir()
    holder = spoil(tmp_path / "out" / "results.sqlite")
    arguments = (table, "--labels", "mood_*") if command == "compare" else ("--dataset", "cold")
    result = run(command, *arguments, "--output", "out")
    if isinstance(holder, sqlite3.Connection):
        holder.close()
    assert result.exit_code == 2
    assert result.output == f"Error: {Path('out', 'results.sqlite')} {result.output.split(' ', 2)[2]}"
    assert message in result.output
    assert result.output.count("\n") == 1


def test_a_folder_that_cannot_be_made_is_one_line(run, table, tmp_path):
    result = run("compare", table, "--labels", "mood_*", "--output", table / "out")
    assert result.output == f"Error: {table / 'out'} cannot be written: Not a directory; name another place.\n"


@pytest.mark.parametrize("where", ["store", "file"])
def test_a_full_disk_is_one_line(run, table, tmp_path, monkeypatch, where):
    class SmallDisk(sqlite3.Connection):
        def execute(self, sql, *arguments):
            super().execute("PRAGMA max_page_count = 1")
            return super().execute(sql, *arguments)

    def full(self, *arguments, **options):
        raise OSError(errno.ENOSPC, "No space left on device")

    if where == "store":
        open_store = sqlite3.connect
        monkeypatch.setattr(sqlite3, "connect", lambda *a, **options: open_store(*a, **options, factory=SmallDisk))
        message = "results.sqlite cannot be written: the disk is full; free some space and run the same again."
    else:
        monkeypatch.setattr(module, "run", lambda *arguments, **options: 0)
        monkeypatch.setattr(module, "comparison_of", lambda *arguments, **options: None)
        monkeypatch.setattr(module, "to_markdown", lambda comparison: "")
        monkeypatch.setattr(Path, "write_text", full)
        message = "comparison.md cannot be written: No space left on device; free some space and try again."
    result = run("compare", table, "--labels", "mood_*", "--output", "out")
    assert result.output == f"Error: {Path('out', message)}\n"
