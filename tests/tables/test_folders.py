"""Parquet datasets: a folder of files is one table, and a result may be one."""

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from hidldl import hide_labels, make_distributions, recover_table
from hidldl.cli import commands
from hidldl.errors import TableError
from hidldl.tables import writing

pytest.importorskip("pyarrow")
fsspec = pytest.importorskip("fsspec")
LABELS = ["joy", "fear", "anger"]
HOW = {"labels": LABELS, "method": "meanfill"}


@pytest.fixture
def faces():
    data = make_distributions(n_rows=90, n_labels=3, random_state=0)
    D_obs, observed = hide_labels(data.distributions, rate=0.3, random_state=0)
    shares = pd.DataFrame(np.where(observed, D_obs, np.nan), columns=LABELS)
    names = pd.Series([f"face {i}" for i in range(90)], name="face", dtype=object)
    return pd.concat([names, pd.DataFrame(data.features[:, :2], columns=["age", "light"]), shares], axis=1)


@pytest.fixture
def folder(faces, tmp_path):
    folder = tmp_path / "faces"
    (folder / "more").mkdir(parents=True)
    faces[:20].to_parquet(folder / "a.parquet")
    faces[20:21].to_parquet(folder / "b.parquet")
    faces[21:].to_parquet(folder / "more" / "c.parquet")
    (folder / "_SUCCESS").touch()
    faces.to_parquet(folder / ".a.parquet.tmp.parquet")
    return folder


def test_a_folder_of_files_is_one_table(faces, folder):
    expected = recover_table(faces, **HOW).frame
    pd.testing.assert_frame_equal(recover_table(folder, **HOW).frame.reset_index(drop=True), expected)


def test_files_are_read_in_the_order_of_their_numbers(faces, tmp_path):
    (tmp_path / "faces").mkdir()
    for i in range(12):
        faces[i * 8 : (i + 1) * 8].to_parquet(tmp_path / "faces" / f"part.{i}.parquet")
    assert list(recover_table(tmp_path / "faces", **HOW).frame["face"]) == list(faces["face"])


def test_a_result_is_written_part_by_part(faces, folder, tmp_path, monkeypatch):
    monkeypatch.setattr(writing, "PIECES_OF_PART", 2)
    monkeypatch.setattr("hidldl.tables.results.CHUNK_ROWS", 20)
    result = recover_table(folder, **HOW)
    (tmp_path / "out").mkdir()
    result.write(tmp_path / "out", full_precision=True)
    parts = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert parts == ["part-00000.parquet", "part-00001.parquet", "part-00002.parquet"]
    written = pd.read_parquet(tmp_path / "out")
    pd.testing.assert_frame_equal(written[LABELS], recover_table(faces, **HOW).frame[LABELS], atol=1e-12)
    assert list(written["face"]) == list(faces["face"])
    assert sorted(file.name for file in tmp_path.iterdir()) == ["faces", "out"]


def test_a_folder_appears_complete_or_not_at_all(folder, tmp_path, monkeypatch):
    result = recover_table(folder, **HOW)
    with monkeypatch.context() as patched, pytest.raises(RuntimeError):
        patched.setattr(writing.FolderWriter, "close", lambda self: (_ for _ in ()).throw(RuntimeError))
        result.write(tmp_path / "out", report=None)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["faces"]
    with pytest.raises(FileExistsError, match="faces is not an empty folder"):
        result.write(folder)


def test_urls_are_read_and_written(faces, folder):
    memory = fsspec.filesystem("memory")
    memory.put(str(folder), "/faces", recursive=True)
    try:
        result = recover_table("memory://faces", **HOW)
        expected = recover_table(faces, **HOW).frame
        pd.testing.assert_frame_equal(result.frame.reset_index(drop=True), expected)
        result.write("memory://out", full_precision=True)
        assert [file.rpartition("/")[2] for file in memory.find("/out")] == ["part-00000.parquet"]
        with memory.open("/out/part-00000.parquet") as file:
            pd.testing.assert_frame_equal(pd.read_parquet(file)[LABELS], expected[LABELS])
        assert not [file for file in memory.find("/") if ".hidldl" in file]
        with pytest.raises(TableError, match="memory://out is not empty"):
            result.write("memory://out")
        with pytest.raises(TableError, match=r"has no \.parquet files"):
            recover_table("memory://nothing", **HOW)
    finally:
        memory.rm("/", recursive=True)


def test_the_shell_takes_and_makes_folders(folder, tmp_path):
    options = ["--labels", "joy..anger", "--method", "meanfill", "-q"]
    for more in (["-o", str(tmp_path / "out")], []):
        done = CliRunner().invoke(commands, ["recover", str(folder), *options, *more])
        assert done.exit_code == 0, done.output
    for name in ("out", "faces_recovered"):
        assert len(pd.read_parquet(tmp_path / name)) == 90


def test_files_that_do_not_belong_together_are_refused(faces, folder, tmp_path):
    faces.drop(columns="light").to_parquet(folder / "d.parquet")
    with pytest.raises(TableError, match=r"d\.parquet in faces has other columns than the first file: 'light' differs"):
        recover_table(folder, **HOW)
    (tmp_path / "empty").mkdir()
    with pytest.raises(TableError, match=r"a folder without \.parquet files"):
        recover_table(tmp_path / "empty", **HOW)
    faces.to_parquet(tmp_path / "hive", partition_cols=["age"])
    with pytest.raises(TableError, match="keeps columns in the names of its folders"):
        recover_table(tmp_path / "hive", **HOW)


def test_rows_that_are_left_out_of_a_folder_are_listed_in_a_file(faces, folder):
    faces.loc[4, LABELS] = [0.9, 0.9, 0.9]
    faces[:20].to_parquet(folder / "a.parquet")
    out = str(folder.parent / "out.csv")
    options = ["--method", "meanfill", "--skip-bad-rows", "--labels", "joy..anger"]
    said = CliRunner().invoke(commands, ["recover", str(folder), "-o", out, *options])
    assert said.exit_code == 0, said.output
    assert pd.read_csv(folder.parent / "faces.bad_rows.csv")["row"].tolist() == [5]


@pytest.mark.parametrize(
    ("option", "place", "why"),
    [
        ("--report", "memory://elsewhere/file.html", "there is no folder"),
        ("--reannotate", "memory://elsewhere/file.csv", "there is no folder"),
        ("--reannotate", "-", "only the table can go to standard output"),
    ],
)
def test_only_the_table_may_go_elsewhere(faces, tmp_path, option, place, why):
    faces.to_csv(tmp_path / "faces.csv")
    said = CliRunner().invoke(commands, ["recover", str(tmp_path / "faces.csv"), option, place])
    assert said.exit_code == 2
    assert why in said.output
