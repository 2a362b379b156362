"""Columns as users name them, whatever they are called."""

import json

import pytest
from click.testing import CliRunner

from hidldl.__main__ import main
from hidldl.errors import TableError
from hidldl.tables.column_names import select_columns
from hidldl.tables.planning import Options, Plan
from hidldl.tables.reading import open_table

AWKWARD = ["a,b", "c..d", "*", '["a"]', " spaced ", "--hidden"]


@pytest.fixture
def path(tmp_path):
    """Six label columns with names that mean something else in a text, and two columns that could name the rows."""
    header = ",".join(['"' + name.replace('"', '""') + '"' for name in AWKWARD])
    rows = [
        f"r{i},s{i},{i % 3},{0.1 * (i % 4):.1f}," + ",".join("1" if j == i % 6 else "0" for j in range(6))
        for i in range(24)
    ]
    path = tmp_path / "awkward.csv"
    path.write_text("\n".join([f"name,key,x,y,{header}", *rows]) + "\n", encoding="utf-8")
    return path


def roles(path, **told):
    with open_table(path) as table:
        return Plan.of(table, Options(**told)).roles


def test_a_list_names_columns_exactly(path):
    assert roles(path, labels=AWKWARD[:3]).labels == ("a,b", "c..d", "*")
    with pytest.raises(TableError, match=r"no column 'x\*' \(features\)"):
        roles(path, labels=AWKWARD, features=["x*"])


def test_a_text_is_still_names_patterns_and_ranges(path):
    assert roles(path, labels="5..10", features="[xy]").numbers == ("x", "y")
    assert roles(path, labels="5..10", features="x,y").numbers == ("x", "y")


def test_the_shell_takes_a_json_list(path):
    run = CliRunner().invoke(main, ["recover", str(path), "--check", "--labels", json.dumps(AWKWARD), "--name", "mine"])
    assert run.exit_code == 0, run.output
    assert f"labels (6): {', '.join(AWKWARD)}" in run.output
    assert run.output.startswith("mine: 24 rows")


@pytest.mark.parametrize("wrong", ['["a,b"', '["a,b", 3]', '["a,b"] and more'])
def test_a_list_that_is_none_is_one_line(path, wrong):
    run = CliRunner().invoke(main, ["recover", str(path), "--check", "--labels", wrong])
    assert run.exit_code == 2
    assert "not a list of names" in run.output.splitlines()[-1]


def test_no_column_names_the_rows_if_that_is_said(path):
    assert roles(path, labels=AWKWARD).row_names == "name"
    assert roles(path, labels=AWKWARD, row_names=False).row_names is None
    run = CliRunner().invoke(main, ["recover", str(path), "--check", "--labels", json.dumps(AWKWARD), "--no-id"])
    assert "rows are named" not in run.output


def test_a_column_that_is_asked_for_as_a_feature_does_not_name_the_rows(tmp_path):
    path = tmp_path / "numbered.csv"
    path.write_text("id,a,b\n" + "".join(f"{i},{i % 2},{1 - i % 2}\n" for i in range(9)))
    assert roles(path, labels="a,b", features="id").numbers == ("id",)


def test_columns_of_a_frame_may_be_numbers():
    assert select_columns([2, 0], "t", ["0", "1", "2"], "labels") == ("2", "0")
