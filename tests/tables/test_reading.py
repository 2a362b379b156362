"""A user's table, from any file to checked columns."""

import bz2
import csv
import gzip
import io
import lzma
import re
import sys
import tempfile
import time
import tracemalloc
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import malformed
from hidldl.errors import TableError
from hidldl.tables import delimited, sources, workbook
from hidldl.tables.reading import Table, open_table, table_of
from malformed import GOOD, MALFORMED


def opened(folder: Path, content: str | bytes, name: str = "table.csv") -> Table:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_table(path)


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
    for content, name in ((GOOD, "t.csv"), (malformed.workbook(), "t.xlsx"), (malformed.parquet(), "t.parquet")):
        table = opened(tmp_path, content, name)
        assert [column.kind for column in table.scan()] == ["number"] * 5
        assert table.read().to_numpy() == pytest.approx(malformed.frame().to_numpy())


WRITERS = {
    "t.csv": lambda frame, path: frame.to_csv(path, index=False),
    "t.tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "t.txt": lambda frame, path: frame.to_csv(path, index=False, sep="|"),
    "t.CSV.GZ": lambda frame, path: path.write_bytes(gzip.compress(frame.to_csv(index=False).encode())),
    "t.csv.bz2": lambda frame, path: path.write_bytes(bz2.compress(frame.to_csv(index=False).encode())),
    "t.csv.xz": lambda frame, path: path.write_bytes(lzma.compress(frame.to_csv(index=False).encode())),
    "t.csv.zst": lambda frame, path: path.write_bytes(malformed.zst(frame.to_csv(index=False).encode())),
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
    for content in (GOOD.encode(), gzip.compress(GOOD.encode()), malformed.parquet(), malformed.workbook()):
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
    column = opened(tmp_path, "x\n1\n2\n1e400\n-inf\n").scan()[0]
    assert (column.kind, column.odd_row, column.n_distinct) == ("text", 3, 4)
    assert opened(tmp_path, "x\n1\n2\n1e400\n").read()["x"].tolist() == ["1", "2", "1e400"]


def test_decimal_commas(tmp_path):
    table = opened(tmp_path, "id;x;y\n1,0;0,25;1.234,5\n2,0;1;7\n")
    assert table.read(as_text=["id"]).to_numpy().tolist() == [["1,0", 0.25, 1234.5], ["2,0", 1, 7]]
    mixed = opened(tmp_path, "x;y\n0,25;0.5\n1;0.5\n")
    assert mixed.read().to_numpy().tolist() == [[0.25, 0.5], [1, 0.5]]
    thousands = opened(tmp_path, "x;y\n1,234;2\n5,678;2\n").scan()[0]
    assert (thousands.kind, thousands.odd_value) == ("text", "1,234")


NOTATIONS = {
    "per cent": (["45%", "5.5 %", "0", "", "?"], [45, 5.5, 0, np.nan, np.nan]),
    "per cent and decimal commas": (["45,5%", "5 %"], [45.5, 5]),
    "decimal commas": (["0,45", "1", "1,234"], [0.45, 1, 1.234]),
    "commas between thousands": (["1,234", "12.5", "7"], [1234, 12.5, 7]),
    "commas between thousands twice": (["1,234", "1,234,567"], [1234, 1234567]),
    "spaces between thousands": (["1 234", "12\u00a0345", "1\u202f234,5", "-7"], [1234, 12345, 1234.5, -7]),
    "apostrophes between thousands": (["1'234.5", "1’234", "12"], [1234.5, 1234, 12]),
    "points between thousands": (["1.234,5", "1.234", "3"], [1234.5, 1234, 3]),
}


@pytest.mark.parametrize("name", NOTATIONS)
def test_numbers_that_can_be_read_in_one_way_only(tmp_path, name, monkeypatch):
    cells, numbers = NOTATIONS[name]
    monkeypatch.setattr(delimited, "CHUNK_BYTES", 1)  # a row to a piece: each is read as the whole column is
    frame = pd.DataFrame({"id": [f"r{i}" for i in range(len(cells))], "n": cells})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    for table in (open_table(tmp_path / "t.csv"), open_table(tmp_path / "t.parquet"), table_of(frame)):
        column = table.scan()[1]
        assert column.kind == "number"
        assert (column.minimum, column.maximum) == (np.nanmin(numbers), np.nanmax(numbers))
        assert table.read()["n"].tolist() == pytest.approx(numbers, nan_ok=True)
        assert table.first_rows["n"].tolist() == pytest.approx(numbers, nan_ok=True)
        assert table.read(as_text=["n"])["n"].fillna("").tolist() == cells
        note = table.notes[-1]
        assert re.fullmatch(r"(.*) in column 'n' is read as [\d.]+", note), note


@pytest.mark.parametrize(
    "cells", [["1,234", "5"], ["1,234", "1.234"], ["45%", "0.4"], ["0,5", "0.5"], ["1,23,4", "1"], ["1 23", "4"]]
)
def test_numbers_that_can_be_read_in_two_ways_or_none_are_text(tmp_path, cells):
    table = table_of(pd.DataFrame({"n": cells}))
    assert table.scan()[0].kind == "text"
    assert table.read()["n"].tolist() == cells
    assert not table.notes


def test_words_for_missing_numbers(tmp_path):
    words = ["?", "-", ".", "--", "..", "missing", "Unknown", "n.a."]
    table = opened(tmp_path, "x,genre,few\n" + "".join(f"{word},{word},?\n" for word in words) + "0.5,drama,?\n")
    number, text, few = table.scan()
    assert (number.kind, number.n_missing, number.n_distinct) == ("number", len(words), 1)
    assert number.words == tuple(sorted(words))
    assert (text.kind, text.n_missing, text.n_distinct) == ("text", 0, len(words) + 1)
    assert few.kind == "text"  # nothing says that it is about numbers
    assert table.read()["x"].notna().tolist() == [False] * len(words) + [True]
    assert table.read()["genre"].tolist() == [*words, "drama"]
    assert "'?' in column 'x' is read as missing" in table.notes


def test_words_that_the_user_gives(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("x,y,z\n1,0.5,gone\ngone,0.5,gone\n999,?,gone\n")
    assert [column.kind for column in open_table(path).scan()] == ["text", "number", "text"]
    frame = pd.read_csv(path, dtype=str)
    for table in (open_table(path, missing=["gone"]), table_of(frame, missing=["gone"]), open_table(path)):
        table.scan()
        table.read_as_missing(["gone"])
        assert [column.kind for column in table.scan()] == ["number", "number", "empty"]
        assert table.read()["x"].tolist() == pytest.approx([1, np.nan, 999], nan_ok=True)
        assert "'gone' in columns 'x', 'z' is read as missing" in table.notes


ENCODED = "größe,naïve,Preis in €\nÄußerung,crème brûlée,1\nstraße,déjà vu,2\n"


@pytest.mark.parametrize(
    ("codec", "text", "name"),
    [
        ("cp1252", ENCODED, "Windows-1252"),
        ("latin-1", ENCODED.replace("€", "£"), "Windows-1252"),  # the same where both have letters
        ("mac-roman", ENCODED, "Mac Roman"),
        ("utf-16-le", ENCODED, "UTF-16"),
        ("utf-16-be", ENCODED, "UTF-16"),
        ("shift-jis", "名前,幸福,恐怖\n太郎さん,0.5,0.5\n花子さん,1,0\n", "Shift JIS"),
    ],
)
@pytest.mark.parametrize("size", [64, 10**6])
def test_other_encodings_are_recognised_and_noted(tmp_path, monkeypatch, codec, text, name, size):
    monkeypatch.setattr(sources, "BLOCK_BYTES", size)
    monkeypatch.setattr(delimited, "SMALL_BYTES", 0)
    table = opened(tmp_path, text.encode(codec))
    expected = pd.read_csv(io.StringIO(text))
    assert table.columns == tuple(expected.columns)
    assert table.read().to_numpy().tolist() == expected.to_numpy().tolist()
    assert table.notes == [f"the text is not in UTF-8; {name} is assumed, so look at its special characters"]


def test_an_encoding_that_shows_late_is_recognised(tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "SMALL_BYTES", 0)
    monkeypatch.setattr(delimited, "SAMPLE_BYTES", 1000)
    monkeypatch.setattr(sources, "BLOCK_BYTES", 999)
    text = "x,word\n" + "1,plain\n" * 1000 + "2,größe\n"
    table = opened(tmp_path, text.encode("cp1252"))
    assert table.read()["word"].iloc[-1] == "größe"
    assert table.n_rows == 1001
    assert len(table.notes) == 1


def test_a_byte_order_mark_is_one_at_the_beginning_of_the_file_only(tmp_path):
    rows = [f"\ufeffa{i}" for i in range(5)]
    table = opened(tmp_path, "\ufeffword,x\n" + "".join(f"{word},1\n" for word in rows))
    assert table.columns == ("word", "x")
    for size in (1, 2, 5):
        chunks = table.chunks(rows=size)
        assert [word for chunk in chunks for word in chunk["word"]] == rows


TITLES = ["Shares of 2024\n", "Shares\nby hand\n\n", "# by hand\n", "sep=,\n", "Shares,,,,\n"]


@pytest.mark.parametrize("title", TITLES)
def test_titles_above_the_header_are_skipped_and_noted(tmp_path, title):
    table = opened(tmp_path, title + GOOD)
    assert table.read().to_numpy() == pytest.approx(malformed.frame().to_numpy())
    assert re.match(
        r"the first (row|2 rows) \('.*'\) (is a title|are titles) and skipped; .*header_row", table.notes[0]
    )


def test_a_title_in_a_sheet_is_skipped_and_noted(tmp_path):
    table = opened(tmp_path, malformed.workbook(malformed.with_title), "t.xlsx")
    assert table.read().to_numpy() == pytest.approx(malformed.frame().to_numpy())
    assert table.notes[0].startswith("the first row ('Shares') is a title")


def test_what_is_no_title(tmp_path):
    assert opened(tmp_path, ",x\na,1\nb,2\n").columns == ("", "x")
    assert opened(tmp_path, "word\nplain\n").columns == ("word",)
    with pytest.raises(TableError, match=r"row 2 of table\.csv has 2 fields, but the header 1 name"):
        opened(tmp_path, "remark\nfine\nfine, thanks\nfine\nfine\n").scan()


@pytest.mark.parametrize("name", ["t.csv", "t.xlsx"])
def test_the_row_of_the_header_may_be_named(tmp_path, name):
    rows = [["By hand", "2024", "", ""], ["", "Emotion", "", "Size"], ["id", "joy", "fear", ""], ["a", 0.5, 0.25, 7]]
    pd.DataFrame(rows).to_csv(tmp_path / "t.csv", header=False, index=False)
    pd.DataFrame(rows).replace("", None).to_excel(tmp_path / "t.xlsx", header=False, index=False)
    with pytest.raises(
        TableError, match=r"column 3 of .* has no name; .*header_row|row 2 .* but the header 2; .*header_row"
    ):
        open_table(tmp_path / name).scan()
    with open_table(tmp_path / name, header_row="2-3") as table:
        assert table.columns == ("id", "Emotion joy", "Emotion fear", "Size")
        assert table.read().to_numpy().tolist() == [["a", 0.5, 0.25, 7]]
        assert not table.notes
    with pytest.raises(TableError, match=r"row 9 of .*holds no column names"):
        open_table(tmp_path / name, header_row=9)
    for wrong in (0, -1, "2-1", "b", "1-99"):
        with pytest.raises(TableError, match="must be the number of a row"):
            open_table(tmp_path / name, header_row=wrong)


def test_named_header_rows_may_hold_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("Votes\n2019,2024\n5,6\n")
    assert open_table(tmp_path / "t.csv", header_row=2).columns == ("2019", "2024")
    malformed.frame().to_parquet(tmp_path / "t.parquet")
    with pytest.raises(TableError, match="leave out the row of the header"):
        open_table(tmp_path / "t.parquet", header_row=1)


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

    table = opened(tmp_path, malformed.workbook_with(malformed.SHEET, computed), "t.xlsx")
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
    (tmp_path / "table.csv").write_text(malformed.with_row("many,5,0.1,0.2,0.7\n"))
    with pytest.raises(TableError, match="has changed while it was read"):
        table.read()


@pytest.mark.parametrize("module, name", [("pyarrow", "t.parquet"), ("openpyxl", "t.xlsx"), ("zstandard", "t.csv.zst")])
def test_without_a_package_the_error_names_the_extra(tmp_path, monkeypatch, module, name):
    contents = {
        "pyarrow": malformed.parquet,
        "openpyxl": malformed.workbook,
        "zstandard": lambda: malformed.zst(b"x\n1\n"),
    }
    (tmp_path / name).write_bytes(contents[module]())
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=r"pip install 'hidldl\["):
        open_table(tmp_path / name)


def test_xml_is_searched_in_linear_time(tmp_path):
    pieces = (b"<c ", b"<c t=", b"<c r='A1'><f>", b"<c ><f></f>" + b" " * 9, b"<a:", b"<c r=" + b"A" * 99)
    for piece in pieces:
        comment = b"<!-- " + piece * (200_000 // len(piece)) + b" -->"
        content = malformed.workbook_with(malformed.SHEET, lambda xml, comment=comment: xml + comment)
        assert len(content) < 20_000
        started = time.perf_counter()
        assert opened(tmp_path, content, "t.xlsx").n_rows == 6
        assert time.perf_counter() - started < 2
    spaces = b"<c ><f></f>" + b" " * 200_000
    started = time.perf_counter()
    assert workbook._UNCOMPUTED.search(spaces) is None
    assert time.perf_counter() - started < 1


def test_empty_cells_are_not_written_out_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    content = malformed.sparse_workbook()
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
        opened(tmp_path, malformed.sheet_of(far), "t.xlsx")


def test_damage_to_any_byte_of_a_parquet_file_is_told(tmp_path):
    """Also where cells point beyond the dictionary of their texts, which pyarrow does not check."""
    content = malformed.parquet(malformed.arrow(word=["a", "b", "c", "b"] * 5), compression="none")
    messages = []
    for at in range(4, len(content)):
        try:
            table = opened(tmp_path, malformed.flipped(content, at), "t.parquet")
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
