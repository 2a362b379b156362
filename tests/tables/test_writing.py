"""Results in files: every digit, every name, or no file at all."""

import errno
import gzip
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from hidldl.errors import TableError
from hidldl.replacing import naming, replacing, replacing_all
from hidldl.tables import writing
from hidldl.tables.reading import open_table
from hidldl.tables.rows import Layout, RecoveredRows
from hidldl.tables.writing import Targets, open_writer

IDS = [
    "007", "1e5", "=1+1", "+1", "@SUM(A1)", "#N/A", "NA", "nan", "", " spaced ", "a,b;c\td|e", 'the "other"', "'",
    "two\nlines", "a\rb", "Übergrößenträger", "😀", "x" * 30_000, "-", "TRUE",
]  # fmt: skip
LABELS = ("joy, or so", 'the "other"', "=fear")
FORMATS = ["t.csv", "t.tsv", "t.csv.gz", "t.parquet", "t.xlsx", "t.TXT"]


def rows_of(ids=IDS, labels=LABELS, **more) -> RecoveredRows:
    D = np.random.default_rng(0).dirichlet(np.ones(len(labels)), len(ids))
    names = None if ids is None else np.array(ids, dtype=object)
    return RecoveredRows(np.arange(1, len(D) + 1), names, D, D > 0.2, D, **more)


def write(path: Path, rows: RecoveredRows, pieces: int = 3, labels=LABELS) -> None:
    frame = rows.frame(Layout(("id", *labels), labels, "id", digits=None))
    with replacing(path) as target, open_writer(path, target) as writer:
        for positions in np.array_split(np.arange(len(frame)), pieces):
            writer.write(frame.iloc[positions])


@pytest.mark.parametrize("name", FORMATS)
def test_every_digit_and_every_name_comes_back(tmp_path, name):
    rows = rows_of()
    write(tmp_path / name, rows)
    with open_table(tmp_path / name) as table:
        back = table.read(as_text=["id"])
    assert tuple(back.columns) == ("id", *LABELS, "hidden_mass")
    expected = [text.replace("\r", "\n") for text in IDS] if name == "t.xlsx" else IDS  # XML knows one line end
    assert back["id"].fillna("").tolist() == expected
    digits = 1e-15 if name == "t.xlsx" else 0  # a workbook holds 16 of them, all others 17
    assert back[list(LABELS)].to_numpy() == pytest.approx(rows.distributions, abs=0, rel=digits)
    assert back["hidden_mass"].to_numpy() == pytest.approx(rows.hidden_mass, abs=0, rel=digits)
    assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_a_compressed_result_is_one_that_everybody_reads(tmp_path):
    path = tmp_path / "t.csv.gz"
    write(path, rows_of())
    text = gzip.decompress(path.read_bytes())
    assert subprocess.run(["zcat", str(path)], capture_output=True, check=True).stdout == text
    assert len(pd.read_csv(path)) == len(IDS)
    before = path.read_bytes()
    write(path, rows_of())
    assert path.read_bytes() == before


def test_a_workbook_holds_texts_and_no_formulas(tmp_path):
    from openpyxl import load_workbook

    write(tmp_path / "t.xlsx", rows_of())
    cells = [cell for row in load_workbook(tmp_path / "t.xlsx").active.iter_rows() for cell in row]
    assert {cell.data_type for cell in cells if cell.value is not None} == {"s", "n"}


@pytest.mark.parametrize("text", ["x" * 40_000, "a\x07b"])
def test_what_excel_cannot_hold_is_refused(tmp_path, text):
    (tmp_path / "t.xlsx").write_text("as it was")
    with pytest.raises(TableError, match=r"Excel.*; write a \.csv"):
        write(tmp_path / "t.xlsx", rows_of(["fine", text]), pieces=1)
    assert (tmp_path / "t.xlsx").read_text() == "as it was"


def test_safe_csv_holds_no_formulas(tmp_path):
    formulas = ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", " =1", "\t=1", "＝1+1", "-x"]
    harmless = ["-5", "+1.5e-3", "-1,5", "-3 %", "-", "a=b", "'=1", "", "007", "x@y"]
    cells = formulas + harmless
    frame = pd.DataFrame({"id": cells, "=label": -1.5})
    for name, safe in (("safe.csv", True), ("safe.tsv", True), ("plain.csv", False)):
        with open_writer(tmp_path / name, tmp_path / name, safe=safe) as writer:
            writer.write(frame)
            writer.write(frame)
        separator = "\t" if name.endswith("tsv") else ","
        back = pd.read_csv(tmp_path / name, sep=separator, keep_default_na=False, dtype={"id": str})
        written = [f"'{cell}" for cell in formulas] + harmless if safe else cells
        assert back["id"].tolist() == written * 2
        assert list(back.columns) == ["id", "'=label" if safe else "=label"]
        assert (back.iloc[:, 1] == -1.5).all()


def test_a_sheet_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "MOST_EXCEL_ROWS", 10)
    with pytest.raises(TableError, match="holds 10 rows; write a"):
        write(tmp_path / "t.xlsx", rows_of())
    assert not list(tmp_path.iterdir())


def test_columns_get_names_of_their_own():
    labels = ("hidden_mass", "a", "a_low", "row")
    bounds = np.zeros((2, 4))
    rows = rows_of(["x", "y"], labels, low=bounds, high=bounds + 1, mass_low=bounds[:, 0], mass_high=bounds[:, 0])
    frame = rows.frame(Layout(("", *labels), labels, "", digits=None))
    assert frame.columns.is_unique
    assert frame.columns[:7].tolist() == ["row_", *labels, "hidden_mass_", "hidden_mass_low"]
    assert frame.shape == (2, 1 + 4 + 3 + 8)


def test_standard_output_gets_all_or_nothing(capfdbinary, monkeypatch):
    monkeypatch.setattr(sys, "stdout", sys.__stdout__)
    frame = rows_of(["é"]).frame(Layout(("id", *LABELS), LABELS, "id", digits=None))
    with open_writer(Path("-"), None) as writer:
        writer.write(frame)
        assert capfdbinary.readouterr().out == b""
    assert capfdbinary.readouterr().out.decode() == frame.to_csv(index=False, lineterminator="\n")
    with pytest.raises(ValueError, match="in between"), open_writer(Path("-"), None) as writer:
        writer.write(frame)
        raise ValueError("in between")
    assert capfdbinary.readouterr().out == b""


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("t.dat", r"hidldl writes \.csv"),
        ("t", r"hidldl writes \.csv"),
        ("t.parquet.gz", r"hidldl writes \.csv"),
        ("nowhere/t.csv", "there is no folder"),
        ("folder.csv", "is a folder"),
        ("pipe.csv", "no ordinary file"),
    ],
)
def test_targets_that_cannot_be(tmp_path, name, says):
    (tmp_path / "folder.csv").mkdir()
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises((TableError, OSError), match=says):
        Targets(tmp_path / name, None).check()


@pytest.mark.parametrize(("module", "name"), [("pyarrow", "t.parquet"), ("openpyxl", "t.xlsx")])
def test_without_a_package_the_error_names_the_extra(tmp_path, monkeypatch, module, name):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"pip install 'hidldl\["):
        Targets(tmp_path / name, None).check()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_nothing_changes_on_failure(tmp_path, error):
    (tmp_path / "a").write_text("as it was")
    with pytest.raises(error), replacing_all([tmp_path / "a", tmp_path / "b"]) as (a, b):
        a.write_text("new")
        b.write_text("new")
        raise error
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "as it was")]


def test_a_folder_that_is_read_only_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    (tmp_path / "a").write_text("as it was")
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)  # chmod does not bind an administrator
    for name in ("a", "b"):
        with pytest.raises(
            PermissionError, match=rf"{name} cannot be written: permission denied; name another place\.$"
        ):
            replacing(tmp_path / name).__enter__()
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "as it was")]


def test_a_disk_that_is_full_leaves_files_as_they_were(tmp_path):
    (tmp_path / "a").write_text("as it was")
    with (
        pytest.raises(OSError, match=r"a cannot be written: No space left on device; free some space and try again\.$"),
        naming(tmp_path / "a"),
        replacing_all([tmp_path / "b", tmp_path / "a"]) as (b, a),
    ):
        b.write_text("whole")
        a.write_text("half")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("a", "as it was")]


def test_a_link_and_the_mode_of_a_file_stay(tmp_path):
    (tmp_path / "file").write_text("as it was")
    (tmp_path / "file").chmod(0o600)
    (tmp_path / "link").symlink_to("file")
    with replacing(tmp_path / "link") as target:
        target.write_text("new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "new"
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o600


KILLED = """
import os, signal, sys
from pathlib import Path
from hidldl.replacing import replacing
with replacing(Path(sys.argv[1])) as target:
    target.write_text("half")
    with replacing(target) as inner:
        inner.write_text("half of a half")
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_what_a_killed_program_left_is_removed_by_the_next_one(tmp_path):
    path = tmp_path / "out.csv"
    subprocess.run([sys.executable, "-c", KILLED, str(path)])
    assert len(list(tmp_path.iterdir())) == 3  # two temporary files and the lock of both
    with replacing(tmp_path / "other.csv"):
        pass
    assert len(list(tmp_path.iterdir())) == 4  # what belongs to another file is not touched
    with replacing(path) as target:
        target.write_text("whole")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["other.csv", "out.csv"]
    assert path.read_text() == "whole"


def test_temporary_files_of_a_live_program_stay(tmp_path):
    path = tmp_path / "out.csv"
    with replacing(path) as first:
        first.write_text("first")
        with replacing(first) as inner:  # as a model that is saved to a temporary file
            inner.write_text("first, saved")
            with replacing(path) as second:
                second.write_text("second")
            assert path.read_text() == "second"
        assert first.read_text() == "first, saved"
    assert path.read_text() == "first, saved"
    assert list(tmp_path.iterdir()) == [path]
