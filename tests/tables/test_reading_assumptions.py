"""What reading assumes about a table, and what it says of it: notations, words for gaps, encodings, titles."""

import io
import re

import numpy as np
import pandas as pd
import pytest

import table_files
from hidldl.app.words import WORDS as PAGE_WORDS
from hidldl.cli.terminal import WORDS as SHELL_WORDS
from hidldl.errors import TableError, notes_in
from hidldl.tables import delimited, sources
from hidldl.tables.columns import why_not_a_number
from hidldl.tables.reading import open_table, table_of
from malformed import MALFORMED
from table_files import GOOD, opened


def test_decimal_commas(tmp_path):
    table = opened(tmp_path, "id;x;y\n1,0;0,25;1.234,5\n2,0;1;7\n")
    assert table.read(as_text=["id"]).to_numpy().tolist() == [["1,0", 0.25, 1234.5], ["2,0", 1, 7]]
    mixed = opened(tmp_path, "x;y\n0,25;0.5\n1;0.5\n")
    assert mixed.read().to_numpy().tolist() == [[0.25, 0.5], [1, 0.5]]
    thousands = opened(tmp_path, "x;y\n1,234;2\n5,678;2\n").scan()[0]
    assert (thousands.kind, thousands.odd_value) == ("text", "1,234")


@pytest.mark.parametrize("sign", ["%", " %", "\u00a0%", "\u202f%"])
def test_decimal_commas_before_percent_signs(tmp_path, sign):
    assert opened(tmp_path, f"x;y\n61,2{sign};38,8{sign}\n50{sign};50{sign}\n").decimal == ","
    assert opened(tmp_path, f"x;y\n1,234{sign};2\n5,678{sign};2\n").decimal == "."


def test_the_cell_that_is_no_number_is_named(tmp_path):
    cells = "".join(f"{n} %,{100 - n} %\n" for n in range(10, 30))
    column = opened(tmp_path, f"a,b\n{cells}<1 %,99 %\n").scan()[0]
    assert (column.kind, column.odd_row, column.odd_value) == ("text", 21, "<1 %")
    assert why_not_a_number("<1 %") == "which is not a number; correct it"
    assert why_not_a_number("61,200 %").startswith("which can be read in two ways")
    assert why_not_a_number("61.2 %").startswith("which is a percentage beside other numbers")


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


def test_rows_to_look_at_and_whole_numbers_need_no_scan_before():
    frame = pd.DataFrame({"n": ["1", "gone", "3"], "x": [0.5, 1, 2]})
    assert table_of(frame).first_rows["x"].tolist() == [0.5, 1, 2]
    table = table_of(frame)
    assert table.whole_numbers == frozenset()
    table.read_as_missing(["gone"])
    assert table.whole_numbers == {"n"}
    assert table.first_rows["n"].tolist() == pytest.approx([1, np.nan, 3], nan_ok=True)


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
    assert table.read().to_numpy() == pytest.approx(table_files.frame().to_numpy())
    assert re.match(
        r"the first (row|2 rows) \('.*'\) (is a title|are titles) and skipped; .*header_row", table.notes[0]
    )


def test_a_title_in_a_sheet_is_skipped_and_noted(tmp_path):
    table = opened(tmp_path, table_files.workbook(table_files.with_title), "t.xlsx")
    assert table.read().to_numpy() == pytest.approx(table_files.frame().to_numpy())
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


@pytest.mark.parametrize(
    "name", ["title above numbers", "workbook with a merged header", "workbook with several sheets"]
)
def test_each_front_end_says_in_its_own_words_where_to_name_the_header_or_the_sheet(tmp_path, name):
    with pytest.raises(TableError) as caught, open_table(MALFORMED[name].write(tmp_path)) as table:
        table.scan()
    assert re.search("(header_row|sheet)=", str(caught.value))
    assert re.search("with --(header-row|sheet)", caught.value.worded(SHELL_WORDS))
    assert re.search(r"(write the column names in the first row|choose one)\.$", caught.value.worded(PAGE_WORDS))


def test_each_front_end_says_in_its_own_words_where_to_name_the_header_if_a_title_is_none(tmp_path):
    notes = opened(tmp_path, TITLES[0] + GOOD).notes
    assert "with --header-row if that is wrong" in notes_in(SHELL_WORDS, notes)[0]
    assert "in the first row if that is wrong" in notes_in(PAGE_WORDS, notes)[0]


def test_named_header_rows_may_hold_numbers(tmp_path):
    (tmp_path / "t.csv").write_text("Votes\n2019,2024\n5,6\n")
    assert open_table(tmp_path / "t.csv", header_row=2).columns == ("2019", "2024")
    table_files.frame().to_parquet(tmp_path / "t.parquet")
    with pytest.raises(TableError, match="leave out the row of the header"):
        open_table(tmp_path / "t.parquet", header_row=1)
