"""A user's own table, from file to recovered rows."""

import sys

import numpy as np
import pandas as pd
import pytest

from hidldl import MeanFill, TableError, load_table


@pytest.fixture
def table():
    return pd.DataFrame(
        {
            "id": ["a", "b", "c"],
            "size": [1.0, 2.0, 3.0],
            "age": [3, 1, 2],
            "is_joy": [0.5, 0.7, 1.0],
            "is_fear": [0.5, 0.3, np.nan],
        }
    )


WRITERS = {
    "faces.csv": lambda table, path: table.to_csv(path, index=False),
    "faces.csv.gz": lambda table, path: table.to_csv(path, index=False),
    "faces.tsv": lambda table, path: table.to_csv(path, index=False, sep="\t"),
    "faces.parquet": lambda table, path: table.to_parquet(path, index=False),
    "faces.xlsx": lambda table, path: table.to_excel(path, index=False),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_reads_the_same(tmp_path, table, name):
    WRITERS[name](table, tmp_path / name)
    data = load_table(tmp_path / name, labels="is_*", index="id")
    assert data.name == "faces"
    assert data.feature_names == ("size", "age")
    assert data.label_names == ("is_joy", "is_fear")
    assert list(data.features.index) == list(data.distributions.index) == ["a", "b", "c"]
    assert np.isnan(data.distributions.loc["c", "is_fear"])
    recovered = MeanFill().fit(data.features, data.distributions).distributions_
    assert np.allclose(recovered.sum(axis=1), 1)


def test_columns_by_name(tmp_path, table):
    table.to_csv(tmp_path / "faces.csv", index=False)
    data = load_table(tmp_path / "faces.csv", labels=["is_fear", "is_joy"], features=["age"])
    assert data.feature_names == ("age",)
    assert list(data.distributions.columns) == ["is_fear", "is_joy"]
    for labels in ("is_joy, is_fear", "is_joy..is_fear", "4..5"):
        assert load_table(tmp_path / "faces.csv", labels=labels, index="id").label_names == ("is_joy", "is_fear")


def test_wrong_calls_name_file_column_and_remedy(tmp_path, table):
    path = tmp_path / "faces.csv"
    table.to_csv(path, index=False)
    for arguments, message in [
        ({"labels": "emotion_*"}, r"faces.csv has no column 'emotion_\*' \(labels\); its columns are 'id'"),
        ({"labels": ["joy"]}, r"faces.csv has no column 'joy' \(labels\)"),
        ({"labels": "is_*", "features": ["is_joy"]}, "'is_joy' of faces.csv is named in both"),
        ({"labels": "is_*", "index": "name"}, r"no column 'name' \(index\)"),
        ({"labels": []}, "labels is empty"),
        ({"labels": ["is_joy", "is_joy"]}, "labels names a column of faces.csv twice"),
        ({"labels": "is_*", "index": "is_joy"}, "'is_joy' of faces.csv is named in both index and labels"),
        ({"labels": "is_*"}, "column 'id' of faces.csv holds 'a' in row 1, which is not a number"),
        ({"labels": ["size", "age", "is_joy", "is_fear"], "index": "id"}, "no feature columns"),
    ]:
        with pytest.raises(TableError, match=message):
            load_table(path, **arguments)


def test_wrong_files_are_refused(tmp_path, table):
    with pytest.raises(TableError, match=r"no file .*absent\.csv"):
        load_table(tmp_path / "absent.csv", labels="y*")
    (tmp_path / "model.pkl").write_bytes(b"\x80\x04.")
    with pytest.raises(TableError, match=r"reads \.csv, \.tsv and \.parquet"):
        load_table(tmp_path / "model.pkl", labels="y*")
    table.iloc[:0].to_csv(tmp_path / "empty.csv", index=False)
    with pytest.raises(TableError, match=r"empty\.csv has no rows"):
        load_table(tmp_path / "empty.csv", labels="is_*")
    (tmp_path / "nothing.csv").write_text("")
    with pytest.raises(TableError, match=r"nothing\.csv is empty"):
        load_table(tmp_path / "nothing.csv", labels="is_*")


def test_a_folder_of_parquet_files_is_one_table(tmp_path, table):
    (tmp_path / "faces").mkdir()
    with pytest.raises(TableError, match=r"faces is not a file, but a folder without \.parquet files"):
        load_table(tmp_path / "faces", labels="is_*", index="id")
    for part in range(3):
        table.iloc[[part]].to_parquet(tmp_path / "faces" / f"part-{part}.parquet", index=False)
    assert list(load_table(tmp_path / "faces", labels="is_*", index="id").features.index) == ["a", "b", "c"]


def test_a_saved_index_is_no_feature(tmp_path, table):
    table.set_index("id").rename_axis(None).to_csv(tmp_path / "faces.csv")
    data = load_table(tmp_path / "faces.csv", labels="is_*")
    assert data.feature_names == ("size", "age")
    assert list(data.features.index) == ["a", "b", "c"]
    table.set_index("age").to_csv(tmp_path / "ages.csv")
    ages = load_table(tmp_path / "ages.csv", labels="is_*", features=["size"], index="age").features.index
    assert (ages.dtype, ages.name, list(ages)) == (int, "age", [3, 1, 2])
    table.set_index("id").to_parquet(tmp_path / "faces.parquet")
    assert list(load_table(tmp_path / "faces.parquet", labels="is_*", index="id").features.index) == ["a", "b", "c"]


def test_suffixes_in_any_case_and_names_with_dots(tmp_path, table):
    table.to_csv(tmp_path / "faces.v1.2.CSV", index=False)
    assert load_table(tmp_path / "faces.v1.2.CSV", labels="is_*", index="id").name == "faces.v1.2"


def test_a_field_too_many_does_not_shift_the_others(tmp_path):
    (tmp_path / "t.csv").write_text("x,l_a,l_b\n1,0.5,0.5,\n2,0.4,0.6,\n")
    with pytest.raises(TableError, match=r"row 1 of t\.csv has 4 fields, but the header 3 names"):
        load_table(tmp_path / "t.csv", labels="l_*")


def test_times_are_not_numbers(tmp_path, table):
    table["when"] = pd.Timestamp("2020-01-01")
    table.to_parquet(tmp_path / "t.parquet", index=False)
    with pytest.raises(TableError, match=r"column 'when' of t\.parquet holds '2020-01-01"):
        load_table(tmp_path / "t.parquet", labels="is_*", index="id")


def test_other_encodings_and_separators(tmp_path, table):
    (tmp_path / "latin.csv").write_bytes("größe,y1,y2\n1,0.5,0.5\n".encode("latin-1"))
    assert load_table(tmp_path / "latin.csv", labels="y*").feature_names == ("größe",)
    table.to_csv(tmp_path / "semicolons.csv", sep=";", index=False)
    assert load_table(tmp_path / "semicolons.csv", labels="is_*", index="id").feature_names == ("size", "age")
    table.to_csv(tmp_path / "semicolons.tsv", sep=";", index=False)
    with pytest.raises(TableError, match="Is the separator right"):
        load_table(tmp_path / "semicolons.tsv", labels=["is_joy", "is_fear"])
    (tmp_path / "bom.csv").write_bytes(b"\xef\xbb\xbfx,y1,y2\n1,0.5,0.5\n")
    assert load_table(tmp_path / "bom.csv", labels="y*").feature_names == ("x",)


def test_duplicate_column_names_are_refused(tmp_path):
    (tmp_path / "twice.csv").write_text("a,y,y\n1,0.5,0.5\n")
    with pytest.raises(TableError, match="two columns named 'y'"):
        load_table(tmp_path / "twice.csv", labels="y*")


def test_without_pyarrow_the_error_names_the_extra(tmp_path, monkeypatch):
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"pip install 'hidldl\[parquet\]'"):
        load_table(tmp_path / "t.parquet", labels="y*")


def test_header_rows_and_sheets_can_be_named(tmp_path, table):
    path = tmp_path / "titles.csv"
    path.write_text("Survey,,\nof,May,\n" + table.to_csv(index=False))
    wanted = [str(name) for name in table.columns][-2:]
    from_third = load_table(path, wanted, index="id", header_row=3)
    assert list(from_third.distributions.columns) == wanted
    assert len(from_third.distributions) == len(table)
    book = tmp_path / "book.xlsx"
    with pd.ExcelWriter(book) as writer:
        table.to_excel(writer, sheet_name="May", index=False)
        table.head(2).to_excel(writer, sheet_name="June", index=False)
    assert len(load_table(book, wanted, index="id", sheet="June").features) == 2
    with pytest.raises(TableError, match="sheet"):
        load_table(book, wanted)
