"""A user's table, from any file to checked columns."""

import bz2
import csv
import gzip
import io
import lzma
import sys
import tempfile
import time
import tracemalloc
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import table_files
from hidldl.errors import TableError
from hidldl.tables import delimited, sources, workbook
from hidldl.tables.cells import READS_EVERY_DIGIT
from hidldl.tables.reading import open_table
from malformed import MALFORMED
from table_files import GOOD, opened


@pytest.mark.parametrize("name", MALFORMED)
def test_what_is_wrong_is_told_in_one_line(tmp_path, name):
    case = MALFORMED[name]
    path = case.write(tmp_path)
    if case.reads:
        table = open_table(path)
        assert len(table.scan()) == len(table.columns)
        assert len(table.read()) == table.n_rows
    else:
        with pytest.raises(TableError, match=case.says) as error:
            open_table(path).scan()
        assert "\n" not in str(error.value)
        assert "table." in str(error.value)
        assert len(str(error.value)) < 250


def test_the_catalogue_is_large_and_the_good_table_is_good(tmp_path):
    assert len(MALFORMED) >= 60
    for content, name in ((GOOD, "t.csv"), (table_files.workbook(), "t.xlsx"), (table_files.parquet(), "t.parquet")):
        table = opened(tmp_path, content, name)
        assert [column.kind for column in table.scan()] == ["number"] * 5
        assert table.read().to_numpy() == pytest.approx(table_files.frame().to_numpy())


WRITERS = {
    "t.csv": lambda frame, path: frame.to_csv(path, index=False),
    "t.tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "t.txt": lambda frame, path: frame.to_csv(path, index=False, sep="|"),
    "t.CSV.GZ": lambda frame, path: path.write_bytes(gzip.compress(frame.to_csv(index=False).encode())),
    "t.csv.bz2": lambda frame, path: path.write_bytes(bz2.compress(frame.to_csv(index=False).encode())),
    "t.csv.xz": lambda frame, path: path.write_bytes(lzma.compress(frame.to_csv(index=False).encode())),
    "t.csv.zst": lambda frame, path: path.write_bytes(table_files.zst(frame.to_csv(index=False).encode())),
    "t.parquet": lambda frame, path: frame.to_parquet(path, index=False),
    "t.xlsx": lambda frame, path: frame.to_excel(path, index=False),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_holds_the_same_table(tmp_path, name):
    frame = pd.DataFrame(
        {
            "id": ["007", "a;b", 'c "d"\ne', "é,ø", None],
            "share": [0.1, np.nan, 1 / 3, 0, 1],
            "count": [3, 1, 2, 3, 5],
            "seen": [True, False, True, True, False],
            "when": pd.to_datetime(["2020-01-01", "2020-01-02", None, "2020-01-04", "2020-01-05"]),
            "nothing": [np.nan] * 5,
        }
    )
    WRITERS[name](frame, tmp_path / name)
    with open_table(tmp_path / name) as table:
        columns = {column.name: column for column in table.scan()}
        read = table.read(as_text=["id"])
        chunks = list(table.chunks(rows=2, as_text=["id"]))
    assert table.columns == tuple(frame.columns)
    assert [column.kind for column in columns.values()] == ["text", "number", "number", "number", "text", "empty"]
    assert columns["share"].n_missing == 1
    assert columns["share"].n_zero == 1
    assert (columns["share"].minimum, columns["share"].maximum, columns["share"].whole) == (0, 1, False)
    assert columns["count"].whole
    assert columns["count"].n_distinct == 4
    assert list(read.index) == [1, 2, 3, 4, 5]
    assert read["id"].tolist()[:4] == frame["id"].tolist()[:4]
    assert pd.isna(read["id"].iloc[4])
    assert read[["share", "count", "seen"]].to_numpy() == pytest.approx(
        frame[["share", "count", "seen"]].to_numpy(float), nan_ok=True, rel=1e-15
    )
    assert read["when"].iloc[0].startswith("2020-01-01")
    assert [len(chunk) for chunk in chunks] == [2, 2, 1]
    pd.testing.assert_frame_equal(pd.concat(chunks), read)


def test_standard_input_is_recognised_and_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for content in (GOOD.encode(), gzip.compress(GOOD.encode()), table_files.parquet(), table_files.workbook()):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        with open_table("-") as table:
            assert table.name == "standard input"
            assert len(table.read()) == len(table.read()) == 6
        assert not list(tmp_path.iterdir())
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(GOOD.replace(",", "\t").encode())))
    assert open_table("-", kind="tsv").n_rows == 6
    for content in (b"", b"%PDF-1.7", GOOD.encode("utf-32")):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
        with pytest.raises(TableError, match="standard input"):
            open_table("-")
        assert not list(tmp_path.iterdir())


def test_the_kind_may_be_named(tmp_path):
    path = tmp_path / "table.data"
    path.write_bytes(gzip.compress(GOOD.encode()))
    assert open_table(path, kind="csv.gz").n_rows == 6
    with pytest.raises(TableError, match=r"no file .*absent"):
        open_table(tmp_path / "absent.csv")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_encodings_and_line_ends(tmp_path, encoding, line_end, monkeypatch):
    monkeypatch.setattr(sources, "BLOCK_BYTES", 7)  # so that characters and line ends are cut in two
    text = "naïve,y_a\n0.5,é\n\n  \n1.5,ø\n\n".replace("\n", line_end)
    content = ("\ufeff" * (encoding == "utf-16-be") + text).encode(encoding)
    table = opened(tmp_path, content)
    assert table.columns == ("naïve", "y_a")
    assert table.read().to_numpy().tolist() == [[0.5, "é"], [1.5, "ø"]]


def test_an_error_names_its_row_wherever_the_blocks_end(tmp_path, monkeypatch):
    text = GOOD + "0.3,5,0.1\n" + GOOD
    for size in (1, 5, 50, 5000):
        monkeypatch.setattr(sources, "BLOCK_BYTES", size)
        monkeypatch.setattr(delimited, "CHUNK_BYTES", 40)
        with pytest.raises(TableError, match=r"row 7 of table\.csv has 3 fields, but the header 5 names"):
            opened(tmp_path, text).scan()
        with pytest.raises(TableError, match=r"row 7 of table\.csv is not text in UTF-8; save it as UTF-8"):
            opened(tmp_path, GOOD.encode() + "é".encode() + b"0.3,\xff" + GOOD.encode()).scan()


def test_missing_cells(tmp_path):
    words = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "#N/A", " ", "\t", " NA "]
    table = opened(tmp_path, "x,word\n" + "".join(f"{word},{word}\n" for word in words) + "1,-\n")
    number, text = table.scan()
    assert (number.kind, number.n_missing) == ("number", len(words))
    assert (text.kind, text.n_missing, text.n_distinct) == ("text", len(words), 1)
    assert table.read().notna().sum().tolist() == [1, 1]


def test_the_cell_that_is_no_number_is_found(tmp_path):
    rows = "".join(f"{i},{i},{i}%,a{i},{i % 2}\n" for i in range(9))
    table = opened(tmp_path, f"whole,hidden,percent,text,truth\n{rows}1,many,9,b,true\n2,inf,9%,c,FALSE\n")
    whole, hidden, percent, text, truth = table.scan()
    assert (whole.kind, whole.odd_row) == ("number", None)
    assert (hidden.kind, hidden.odd_row, hidden.odd_value) == ("text", 10, "many")
    assert (percent.kind, percent.odd_row, percent.odd_value) == ("text", 1, "0%")
    assert (text.kind, text.odd_row, text.n_distinct) == ("text", None, 11)
    assert (truth.kind, truth.n_distinct, truth.n_zero, truth.maximum) == ("number", 2, 6, 1)


def test_infinite_numbers_are_none(tmp_path):
    infinite = "1e400" if READS_EVERY_DIGIT else "inf"  # older releases of pandas know only infinity by name
    column = opened(tmp_path, f"x\n1\n2\n{infinite}\n-inf\n").scan()[0]
    assert (column.kind, column.odd_row, column.n_distinct) == ("text", 3, 4)
    assert opened(tmp_path, "x\n1\n2\n1e400\n").read()["x"].tolist() == ["1", "2", "1e400"]


def test_a_column_that_turns_to_text_late_is_text_from_the_beginning(tmp_path):
    lines = [f"{i:03d},{i}\n" for i in range(60_000)]
    table = opened(tmp_path, "code,x\n" + "".join(lines) + "n/k,1\n")
    assert [column.kind for column in table.scan()] == ["text", "number"]
    assert next(table.chunks())["code"].iloc[7] == "007"
    assert table.scan()[0].odd_row == 60_001


@pytest.mark.parametrize("header", ["0,1,2", "1,2,3", ",0,1", "2019,b,c"])
def test_columns_may_be_numbered(tmp_path, header):
    assert opened(tmp_path, f"{header}\n4,5,6\n").columns == tuple(header.split(","))


def test_saved_row_names_come_first_and_have_no_name(tmp_path):
    frame = pd.DataFrame({"x": [1.0, 2.0]}, index=["a", "b"])
    frame.to_csv(tmp_path / "t.csv")
    frame.to_excel(tmp_path / "t.xlsx")
    frame.to_parquet(tmp_path / "t.parquet")
    for name in ("t.csv", "t.xlsx", "t.parquet"):
        table = open_table(tmp_path / name)
        assert table.columns == ("", "x")
        assert table.read()[""].tolist() == ["a", "b"]


def test_a_sheet_is_chosen_by_name(tmp_path):
    with pd.ExcelWriter(tmp_path / "t.xlsx") as writer:
        pd.DataFrame({"a": [1]}).to_excel(writer, sheet_name="first", index=False)
        pd.DataFrame({"b": [2], "c": [None], "d": [4]}).to_excel(writer, sheet_name="second", index=False)
    assert open_table(tmp_path / "t.xlsx", sheet="second").columns == ("b", "c", "d")
    with pytest.raises(TableError, match="no sheet 'third'; its sheets are 'first', 'second'"):
        open_table(tmp_path / "t.xlsx", sheet="third")
    (tmp_path / "t.csv").write_text(GOOD)
    with pytest.raises(TableError, match="no sheets"):
        open_table(tmp_path / "t.csv", sheet="first")


def test_the_stored_value_of_a_formula_is_read(tmp_path):
    def computed(xml: bytes) -> bytes:
        return xml.replace(b"<v>0.7</v>", b"<f>1-C4-D4</f><v>0.7</v>")

    table = opened(tmp_path, table_files.workbook_with(table_files.SHEET, computed), "t.xlsx")
    assert table.read()["y_c"].iloc[2] == 0.7


def test_a_small_table_is_read_once(tmp_path, monkeypatch):
    calls = []
    blocks = sources.Source.blocks
    monkeypatch.setattr(sources.Source, "blocks", lambda self: calls.append(1) or blocks(self))
    table = opened(tmp_path, GOOD)
    table.scan()
    (tmp_path / "table.csv").unlink()
    assert len(table.read()) == len(table.read()) == 6
    assert calls == [1]


def test_a_table_that_changes_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "SAMPLE_BYTES", 10)
    monkeypatch.setattr(delimited, "SMALL_BYTES", 0)
    table = opened(tmp_path, GOOD)
    table.scan()
    (tmp_path / "table.csv").write_text(table_files.with_row("many,5,0.1,0.2,0.7\n"))
    with pytest.raises(TableError, match="has changed while it was read"):
        table.read()


@pytest.mark.parametrize("module, name", [("pyarrow", "t.parquet"), ("openpyxl", "t.xlsx"), ("zstandard", "t.csv.zst")])
def test_without_a_package_the_error_names_the_extra(tmp_path, monkeypatch, module, name):
    contents = {
        "pyarrow": table_files.parquet,
        "openpyxl": table_files.workbook,
        "zstandard": lambda: table_files.zst(b"x\n1\n"),
    }
    (tmp_path / name).write_bytes(contents[module]())
    for loaded in {module, *(each for each in sys.modules if each.startswith(f"{module}."))}:
        monkeypatch.setitem(sys.modules, loaded, None)
    with pytest.raises(ImportError, match=r"pip install 'hidldl\["):
        open_table(tmp_path / name)


def test_xml_is_searched_in_linear_time(tmp_path):
    pieces = (b"<c ", b"<c t=", b"<c r='A1'><f>", b"<c ><f></f>" + b" " * 9, b"<a:", b"<c r=" + b"A" * 99)
    for piece in pieces:
        comment = (b"<!-- " + piece * (60_000 // len(piece)) + b" -->") * 3
        content = table_files.workbook_with(table_files.SHEET, lambda xml, comment=comment: xml + comment)
        assert len(content) < 20_000
        started = time.process_time()
        assert opened(tmp_path, content, "t.xlsx").n_rows == 6
        assert time.process_time() - started < 2
    spaces = b"<c ><f></f>" + b" " * 200_000
    started = time.process_time()
    assert workbook._UNCOMPUTED.search(spaces) is None
    assert time.process_time() - started < 1


def test_empty_cells_are_not_written_out_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    content = table_files.sparse_workbook()
    assert len(content) < 100_000
    written = []
    writer = csv.writer

    def counted(file):
        return SimpleNamespace(writerows=lambda rows: writer(file).writerows(written.append(1) or row for row in rows))

    monkeypatch.setattr(workbook.csv, "writer", counted)
    with pytest.raises(TableError, match="as a trap would"):
        opened(tmp_path, content, "t.xlsx")
    assert len(written) == 1  # the header
    monkeypatch.setattr(workbook, "HARMLESS_BYTES", 10**5)
    far = "".join(f'<row r="{i}"><c r="XFD{i}"><v>1</v></c></row>' for i in range(1, 100))
    with pytest.raises(TableError, match="spreads 7 values over 114,688 cells"):
        opened(tmp_path, table_files.sheet_of(far), "t.xlsx")


def test_damage_to_any_byte_of_a_parquet_file_is_told(tmp_path):
    """Also where cells point beyond the dictionary of their texts, which pyarrow does not check."""
    content = table_files.parquet(table_files.arrow(word=["a", "b", "c", "b"] * 5), compression="none")
    messages = []
    for at in range(4, len(content)):
        try:
            table = opened(tmp_path, table_files.flipped(content, at), "t.parquet")
            assert len(table.read()) == table.n_rows
        except TableError as error:
            messages.append(str(error))
    assert any("out of bounds" in message for message in messages)


@pytest.mark.parametrize("name", [name for name in MALFORMED if "bomb" in name or "swallows" in name])
def test_traps_take_little_memory(tmp_path, name):
    path = MALFORMED[name].write(tmp_path)
    assert path.stat().st_size < 500_000 or "swallows" in name
    tracemalloc.start()
    try:
        with pytest.raises(TableError):
            open_table(path).scan()
        assert tracemalloc.get_traced_memory()[1] < 128 * 2**20
    finally:
        tracemalloc.stop()


CELLS = st.one_of(
    st.none(),
    st.integers(-(2**40), 2**40),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8", exclude_characters="\x00", exclude_categories=["Cs"]), max_size=8),
)


@settings(deadline=None, max_examples=200)
@given(
    data=st.data(),
    separator=st.sampled_from([",", ";", "\t", "|"]),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    everything_quoted=st.booleans(),
)
def test_what_pandas_writes_comes_back(tmp_path_factory, data, separator, line_end, encoding, everything_quoted):
    width = data.draw(st.integers(1, 4))
    rows = data.draw(st.lists(st.lists(CELLS, min_size=width, max_size=width), min_size=1, max_size=12))
    names = [f"n{i}" + data.draw(st.text('ab é"', max_size=4)) for i in range(width)]
    frame = pd.DataFrame(rows, columns=names, dtype=object)
    path = tmp_path_factory.mktemp("random") / "t.csv"
    # Only the csv module's writer with "\r\n" and whatever is quoted throughout mark every line end within a cell.
    quoting = 1 if everything_quoted or width == 1 or line_end != "\r\n" else 0
    frame.to_csv(path, index=False, sep=separator, lineterminator=line_end, encoding=encoding, quoting=quoting)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sources, "BLOCK_BYTES", data.draw(st.sampled_from([3, 40, 10**6])))
        table = open_table(path, kind="tsv" if separator == "\t" else "csv")
        assert table.columns == tuple(names)
        kinds = [column.kind for column in table.scan()]
        back = pd.concat(list(table.chunks(rows=data.draw(st.integers(1, 20)), as_text=names)))
        numbers = table.read()
    for j, name in enumerate(names):
        assert back[name].fillna("").tolist() == ["" if cell is None else str(cell) for cell in frame[name]]
        if all(isinstance(cell, (int, float)) for cell in frame[name]):
            assert kinds[j] == "number"
            assert numbers[name].to_numpy() == pytest.approx(frame[name].to_numpy(float), rel=1e-15)
