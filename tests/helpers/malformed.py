"""Tables that are wrong, each in another way, for every command that reads one.

`MALFORMED` maps a name to a file: how to build it, whether it can be read all the same (it is then wrong in what it
means, which only a later stage can know), and what the refusal must say. Labels are the columns ``y_*``.
"""

import bz2
import gzip
import json
import lzma
import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from table_files import (
    BOOK,
    GOOD,
    HEADER,
    LAUGHS,
    ROWS,
    SHEET,
    STYLES,
    archive,
    array,
    arrow,
    database,
    flipped,
    parquet,
    sheet_of,
    sparse_workbook,
    twins,
    with_formula,
    with_merged_header,
    with_one_text,
    with_row,
    with_second_sheet,
    with_title,
    workbook,
    workbook_with,
    zst,
)

LABELS = "y_*"


@dataclass(frozen=True)
class Malformed:
    """A wrong file: its name, its bytes (None for a folder), and what is to come of it."""

    filename: str
    build: Callable[[], bytes] | None
    says: str
    reads: bool

    def write(self, folder: Path) -> Path:
        path = folder / self.filename
        if self.build is None:
            path.mkdir()
        else:
            path.write_bytes(self.build())
        return path


MALFORMED: dict[str, Malformed] = {}


def refused(name: str, filename: str, content: bytes | str | Callable[[], bytes], says: str) -> None:
    """A table that no reader can make sense of; `says` is what the refusal must match."""
    _add(name, filename, content, says, reads=False)


def senseless(name: str, content: bytes | str | Callable[[], bytes], filename: str = "table.csv") -> None:
    """A table that can be read but not used."""
    _add(name, filename, content, "", reads=True)


def _add(name: str, filename: str, content: bytes | str | Callable[[], bytes], says: str, *, reads: bool) -> None:
    assert name not in MALFORMED, name
    if callable(content):
        build = content
    else:
        data = content.encode() if isinstance(content, str) else content
        build = lambda: data  # noqa: E731
    MALFORMED[name] = Malformed(filename, build, says, reads)


# Files that hold no table.
MALFORMED["folder"] = Malformed("table.csv", None, "not a file", False)
refused("empty", "table.csv", b"", "is empty")
refused("blank lines only", "table.csv", b"\n\r\n \n", "is empty")
refused("byte order mark only", "table.csv", b"\xef\xbb\xbf", "is empty")
refused("header only", "table.csv", HEADER, "has no rows")
refused("header without line end", "table.csv", HEADER.strip(), "has no rows")
refused("unknown suffix", "table.dat", GOOD, r"reads \.csv")
refused("compressed parquet", "table.parquet.gz", lambda: gzip.compress(parquet()), r"reads \.csv")

# Rows and fields.
refused("row too short", "table.csv", with_row("0.3,5,0.1,0.2\n"), "row 3 .* 4 fields, but the header 5 names")
refused("row too long", "table.csv", with_row("0.3,5,0.1,0.2,0.7,1\n"), "row 3 .* 6 fields")
refused("cut off in the last row", "table.csv", GOOD + "0.7,6,0.", "row 7 .* 3 fields")
refused("delimiter at the end of rows", "table.csv", HEADER + ROWS.replace("\n", ",\n"), "row 1 .* 6 fields")
refused("row names without a name", "table.csv", HEADER + "r1," + ROWS.replace("\n", "\nr,", 5), "name every column")
refused("decimal commas between commas", "table.csv", HEADER + "0,1,1,0,5,0,3,0,2\n", "row 1 .* 9 fields")
refused("another table below", "table.csv", GOOD + "\nlabel,mean\na,0.4\n", "row 7 .* 2 fields")
refused("rows with another delimiter", "table.csv", with_row("0.3;5;0.1;0.2;0.7\n"), "row 3 .* 1 field,")
refused("conflict of versions", "table.csv", with_row("<<<<<<< HEAD\n"), "row 3 .* 1 field,")
refused("comment within", "table.csv", with_row("# checked up to here\n"), "row 3 .* 1 field,")
refused(
    "title above numbers",
    "table.csv",
    "My table\n" + ROWS,
    "row 1 .* 5 fields, but the header 1 name; name every column, or",
)
refused("delimiter in an unquoted field", "table.csv", with_row("0.3,5,0.1,0.2,0.7, or so\n"), "row 3")
refused("unclosed quotation mark", "table.csv", with_row('0.3,5,0.1,0.2,"0.7\n'), "row 3 .* not closed")
refused("unclosed quotation mark in the header", "table.csv", '"' + GOOD, "header .* not closed")
refused("unclosed quotation mark below blank lines", "table.csv", '\n \n"' + GOOD, "header .* not closed")
refused("quotation mark within a field", "table.csv", with_row('0.3,5",0.1,0.2,0.7\n'), "row 3")
refused("text after a quotation mark", "table.csv", with_row('0.3,"5"x,0.1,0.2,0.7\n'), "row 3 .*quotation mark within")
refused(
    "quotation mark after a space", "table.csv", with_row('0.3, "5",0.1,0.2,0.7\n'), "row 3 .*quotation mark within"
)
refused(
    "quotation mark that swallows the file",
    "table.csv",
    lambda: (with_row('0.3,5,0.1,0.2,"0.7\n') + "0.1,1,0.5,0.3,0.2\n" * 600_000).encode(),
    r"row 3 .* longer than 10,000,000 characters; is a quotation mark not closed",
)

# Names of columns.
refused("two columns of one name", "table.csv", GOOD.replace("y_b", "y_a"), "two columns named 'y_a'; rename one")
refused("column without a name", "table.csv", GOOD.replace("y_b", ""), "column 4 .* has no name")
refused("no names at all", "table.csv", ",,,,\n" + ROWS, "no column names")
refused("no header", "table.csv", ROWS, "numbers for column names")
refused("table in Markdown", "table.csv", "| x | y_a | y_b |\n|---|---|---|\n| 1 | 0.5 | 0.5 |\n", "has no name")

# Sizes.
refused(
    "huge cell", "table.csv", lambda: with_row(f"0.3,5,0.1,0.2,{'7' * 1_000_001}\n").encode(), "row 3 .* a cell of more"
)
refused("huge name", "table.csv", lambda: GOOD.replace("y_a", "y" * 10_001).encode(), "name of more than 10,000")
refused(
    "too many columns", "table.csv", lambda: b",".join(b"c%d" % i for i in range(10_001)), "more than 10,000 columns"
)
refused("huge row", "table.csv", lambda: (GOOD + "0.1," * 3_000_000).encode(), "row 7 .* longer than")

# Encodings.
refused(
    "two encodings",
    "table.csv",
    GOOD.encode().replace(b"0.1,1", "größe,1".encode()).replace(b"0.3,5", "größe,5".encode("latin-1")),
    "row 3 .* not text in UTF-8",
)
refused(
    "Windows-1252 with bytes that it does not have",
    "table.csv",
    with_row("größe,5,0.1,0.2,0.7\n").encode("latin-1") + b"0.1,1,0.5,0.3,0.2\n" * 10_000 + b"\x81,1,0.5,0.3,0.2\n",
    "row 10007 .* not text in Windows-1252",
)
refused("cut within a character", "table.csv", (GOOD + "0.7,6,0.1,0.2,é").encode()[:-1], "row 7 .* not text in UTF-8")
refused(
    "half of a surrogate pair",
    "table.csv",
    GOOD.replace("y_a", "y_ä").encode() + b"0.7,6,1,0,\xed\xa0\x80\n",
    "row 7 .* not text",
)
refused("UTF-16 cut within a character", "table.csv", GOOD.encode("utf-16")[:-1], "not text in UTF-16")
refused("UTF-32", "table.csv", GOOD.encode("utf-32"), "UTF-32")
refused("NUL in a cell", "table.csv", with_row("0.3,5,0.1,0.2,\x00\n"), "row 3 .* NUL byte")

# Other files under the name of a table.
refused("picture", "table.csv", b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR", "a PNG picture, not a table")
refused("photograph", "table.csv", b"\xff\xd8\xff\xe0\x00\x10JFIF", "a JPEG picture, not a table")
refused("PDF", "table.csv", b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n", "a PDF, not a table")
refused("program", "table.csv", b"\x7fELF\x02\x01\x01\x00", "a program, not a table")
refused("pickle", "table.csv", lambda: pickle.dumps({"y_a": [0.5]}), "a pickle, not a table")
refused("web page", "table.csv", "<!DOCTYPE html>\n<html><body>Sign in</body></html>", "a web page or XML, not a table")
refused("JSON", "table.csv", json.dumps([{"x": 1, "y_a": 1}]), "JSON, not a table")
refused("random bytes", "table.csv", lambda: np.random.default_rng(0).bytes(5000), "table.csv")
refused("old Excel file", "table.xlsx", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "old Excel file .* password")
refused("Parquet named CSV", "table.csv", lambda: parquet(), r"a \.parquet file; rename it")
refused("workbook named CSV", "table.csv", lambda: workbook(), r"an? \.xlsx file; rename it")
refused("CSV named workbook", "table.xlsx", GOOD, r"not a \.xlsx file")
refused("CSV named Parquet", "table.parquet", GOOD, r"not a \.parquet file")
refused("gzip named CSV", "table.csv", lambda: gzip.compress(GOOD.encode()), r"compressed; add \.gz")
refused("zip named CSV", "table.csv", lambda: archive({"table.csv": GOOD}), "a zip archive, not a table")


refused("database", "table.csv", database, "an SQLite database, not a table")
refused("array", "table.csv", array, "a NumPy array, not a table")

# Compressed text. A bomb is many copies of a small compressed piece: 100 MB in less than 500 kB.
PIECE = (b",".join([b"0.5" + b"0" * 197] * 5) + b"\n") * 1_000


refused("CSV named gzip", "table.csv.gz", GOOD, r"not compressed; remove \.gz")
refused("gzip named xz", "table.csv.xz", lambda: gzip.compress(GOOD.encode()), r"compressed; add \.gz")
refused(
    "gzip cut off", "table.csv.gz", lambda: gzip.compress(GOOD.encode())[:-20], r"is cut off, or is not a \.gz file"
)
refused("gzip with a wrong checksum", "table.csv.gz", lambda: flipped(gzip.compress(GOOD.encode()), -6), "is cut off")
refused("xz damaged", "table.csv.xz", lambda: flipped(lzma.compress(GOOD.encode()), 40), "is cut off")
refused("bzip2 damaged", "table.csv.bz2", lambda: flipped(bz2.compress(GOOD.encode()), 60), "is cut off")
refused("zstandard cut off", "table.csv.zst", lambda: flipped(zst(GOOD.encode() * 99), 10), "table.csv.zst")
refused("gzip of nothing", "table.csv.gz", lambda: gzip.compress(b""), "is empty")
refused("gzip of a picture", "table.csv.gz", lambda: gzip.compress(b"\x89PNG\r\n\x1a\n"), "a PNG picture")
refused(
    "gzip bomb", "table.csv.gz", lambda: gzip.compress(HEADER.encode()) + gzip.compress(PIECE) * 100, "as a trap would"
)
refused(
    "bzip2 bomb", "table.csv.bz2", lambda: bz2.compress(HEADER.encode()) + bz2.compress(PIECE) * 100, "as a trap would"
)
refused(
    "xz bomb", "table.csv.xz", lambda: lzma.compress(HEADER.encode()) + lzma.compress(PIECE) * 100, "as a trap would"
)
refused("zstandard bomb", "table.csv.zst", lambda: zst(HEADER.encode()) + zst(PIECE) * 100, "as a trap would")


# Parquet.
refused("Parquet cut off", "table.parquet", lambda: parquet()[:-100], "is cut off or damaged")
refused("Parquet with a damaged footer", "table.parquet", lambda: flipped(parquet(), -300), "table.parquet")
refused(
    "Parquet with damaged pages", "table.parquet", lambda: parquet()[:4] + b"\xff" * 99 + parquet()[103:], "damaged"
)
refused("Parquet that is only a frame", "table.parquet", b"PAR1" + bytes(20) + b"PAR1", "is cut off or damaged")
refused("Parquet without rows", "table.parquet", lambda: parquet(arrow(x=[0.1], y_a=[1.0])[:0]), "has no rows")
refused("Parquet without columns", "table.parquet", lambda: parquet(arrow()), "no column names")
refused(
    "Parquet of lists", "table.parquet", lambda: parquet(arrow(x=[1.0], y=[[0.5, 0.5]])), "column 'y' .* holds 'list"
)
refused("Parquet of bytes", "table.parquet", lambda: parquet(arrow(x=[b"\x00"], y_a=[1.0])), "column 'x' .* 'binary'")
refused("Parquet with twin columns", "table.parquet", lambda: parquet(twins()), "two columns named 'y_a'")
refused(
    "Parquet with a huge cell", "table.parquet", lambda: parquet(arrow(x=["a" * 1_000_001], y_a=[1.0])), "'x' .* a cell"
)
refused(
    "Parquet bomb of cells",
    "table.parquet",
    lambda: parquet(arrow(y_a=np.zeros(10**6, dtype=int)), 70),
    "as a trap would",
)
refused(
    "Parquet bomb of text",
    "table.parquet",
    lambda: parquet(arrow(y_a=["a" * 10**6] * 10), 10, compression="zstd", use_dictionary=False),
    "as a trap would",
)


# Excel.
refused("workbook cut off", "table.xlsx", lambda: workbook()[:-400], "table.xlsx")
refused("workbook with damaged XML", "table.xlsx", lambda: workbook_with(SHEET, lambda xml: xml[:-60]), "is damaged")
refused("workbook without a list of sheets", "table.xlsx", lambda: workbook_with(BOOK, lambda xml: b""), "is damaged")
refused(
    "workbook without sheets",
    "table.xlsx",
    lambda: workbook_with(BOOK, lambda xml: xml[: xml.index(b"<sheet ")] + xml[xml.index(b"</sheets>") :]),
    "table.xlsx",
)
refused(
    "workbook with an empty sheet", "table.xlsx", lambda: workbook(lambda sheet: sheet.delete_rows(1, 9)), "is empty"
)
refused(
    "workbook with a header only", "table.xlsx", lambda: workbook(lambda sheet: sheet.delete_rows(2, 9)), "has no rows"
)
refused("workbook with several sheets", "table.xlsx", lambda: workbook(with_second_sheet), "several sheets .*'Second'")
refused("workbook with a merged header", "table.xlsx", lambda: workbook(with_merged_header), "column 4 .* has no name")
refused(
    "workbook with a title above numbers",
    "table.xlsx",
    lambda: workbook(lambda sheet: (sheet.delete_rows(1), with_title(sheet))),
    "row 2 .* 5 cells, but the header 1; name every column, or",
)
refused(
    "workbook with a formula never computed",
    "table.xlsx",
    lambda: workbook(with_formula),
    "C4 .* formula without a value",
)
refused("archive that is no workbook", "table.xlsx", lambda: archive({"table.csv": GOOD}), "a zip archive, not a table")
refused(
    "workbook with entities",
    "table.xlsx",
    lambda: workbook_with(SHEET, lambda xml: LAUGHS + xml.replace(b"<v>0</v>", b"<v>&c;</v>")),
    "is damaged",
)
refused(
    "workbook with rows beyond any sheet",
    "table.xlsx",
    lambda: workbook_with(SHEET, lambda xml: xml.replace(b'<row r="7"', b'<row r="999999999"')),
    "more than 1,048,576 rows",
)
refused(
    "workbook of empty cells",
    "table.xlsx",
    sparse_workbook,
    "spreads 10,001 values over 10,485,750,000 cells, as a trap would",
)
refused(
    "workbook with a comment without end",
    "table.xlsx",
    lambda: workbook_with(SHEET, lambda xml: xml + b"<!--" + b"<c " * 4_000_000 + b"-->"),
    "a tag or comment without end, as a trap would",
)
refused(
    "workbook with a tag without end",
    "table.xlsx",
    lambda: workbook_with(
        SHEET, lambda xml: xml.replace(b"<sheetData", b"<a b='" + b"c" * 2_000_000 + b"'/><sheetData")
    ),
    "a tag or comment without end, as a trap would",
)
refused(
    "workbook bomb of styles",
    "table.xlsx",
    lambda: workbook_with(STYLES, lambda xml: xml.replace(b"</cellXfs>", b"<xf/>" * 10**6 + b"</cellXfs>")),
    "tags, as a trap would",
)
refused(
    "workbook bomb of cells",
    "table.xlsx",
    lambda: sheet_of("<row>" + "<c/>" * 10**6 + "</row>"),
    "tags, as a trap would",
)
refused(
    "workbook that lists a sheet again",
    "table.xlsx",
    lambda: workbook_with(BOOK, lambda xml: re.sub(rb"<sheet [^>]*>", lambda found: found.group() * 9, xml)),
    "lists a sheet twice, as a trap would",
)
refused("workbook bomb of one text", "table.xlsx", lambda: with_one_text("a" * 900_000, 100), "unpacks to more than")
refused(
    "workbook in UTF-16",
    "table.xlsx",
    lambda: workbook_with(SHEET, lambda xml: b"\xff\xfe" + xml.decode().encode("utf-16-le")),
    "XML in UTF-16",
)
refused("workbook bomb", "table.xlsx", lambda: workbook_with(SHEET, lambda xml: xml + b" " * 10**8), "as a trap would")

# Tables that can be read but mean nothing.
senseless("negative share", with_row("0.3,5,-0.1,0.4,0.7\n"))
senseless("shares above one", HEADER + ROWS.replace("0.5", "50"))
senseless("row whose labels are all empty", with_row("0.3,5,,,\n"))
senseless("row whose labels are all zero", with_row("0.3,5,0,0,0\n"))
senseless("label that is empty in every row", HEADER + "0.1,1,1,0,\n0.2,2,0.5,0.5,\n0.4,1,0.1,0.9,\n")
senseless("constant features", HEADER + "1,1,0.5,0.3,0.2\n1,1,0.4,0.4,0.2\n1,1,0.1,0.2,0.7\n")
senseless("feature that is empty in every row", HEADER + ",1,0.5,0.3,0.2\n,2,0.4,0.4,0.2\n,3,0.1,0.2,0.7\n")
senseless("one row", HEADER + "0.1,1,0.5,0.3,0.2\n")
senseless("one column", "y_a\n0.1\n0.2\n")
senseless("no features", "y_a,y_b\n0.5,0.5\n0.4,0.6\n")
senseless("one label", "x,y_a\n1,1\n2,1\n3,1\n")
senseless("no labels", "x_1,x_2\n1,1\n2,1\n3,1\n")
senseless("text among shares", with_row("0.3,5,0.1,many,0.7\n"))
senseless("shares in words", GOOD.replace("0.5", "half").replace("0.2", "few"))
senseless("infinite share", with_row("0.3,5,inf,0.2,0.7\n"))
senseless("share beyond all numbers", with_row("0.3,5,1e400,0.2,0.7\n"))
senseless("percentages beside shares", HEADER + "0.1,1,50%,30%,20%\n0.2,2,0.4,0.4,0.2\n0.3,5,10%,20%,70%\n")
senseless("thousands", HEADER + '0.1,1,"1,000","2,000",0\n0.2,2,"3,000","4,000",0\n')
senseless("decimal commas beside points", HEADER + '0.1,1,"0,5",0.5,0\n0.2,2,0.4,"0,6",0\n')
senseless("units", HEADER + "0.1 mm,1,0.5,0.3,0.2\n0.2 mm,2,0.4,0.4,0.2\n")
senseless("spaces between columns", GOOD.replace(",", " "), "table.txt")
senseless("error of a spreadsheet", lambda: workbook(lambda sheet: sheet.cell(4, 3, "#DIV/0!")), "table.xlsx")
senseless(
    "dates for shares",
    lambda: parquet(arrow(x=[1.0, 2.0], y_a=pd.to_datetime(["2020-01-01", "2020-01-02"]))),
    "table.parquet",
)
