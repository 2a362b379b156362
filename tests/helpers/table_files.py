"""Small tables as files of every format, for tests."""

import io
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

from hidldl.tables.reading import Table, open_table

HEADER = "x_1,x_2,y_a,y_b,y_c\n"
ROWS = "0.1,1,0.5,0.3,0.2\n0.2,2,0.4,0.4,0.2\n0.3,5,0.1,0.2,0.7\n0.4,3,0.2,0.2,0.6\n0.5,4,0.3,0.3,0.4\n0.6,9,1,0,0\n"
GOOD = HEADER + ROWS


def opened(folder: Path, content: str | bytes, name: str = "table.csv") -> Table:
    """A table of this content, in a file of this name."""
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return open_table(path)


def with_row(row: str, at: int = 3) -> str:
    """The good table with another third row."""
    lines = GOOD.splitlines(keepends=True)
    lines[at] = row
    return "".join(lines)


def zst(data: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(data)


def flipped(data: bytes, at: int) -> bytes:
    """The data with one byte changed."""
    changed = bytearray(data)
    changed[at] ^= 0xFF
    return bytes(changed)


def frame() -> pd.DataFrame:
    return pd.read_csv(io.StringIO(GOOD))


def parquet(table: object = None, pieces: int = 1, **options: object) -> bytes:
    """A Parquet file of a table, or of many copies of it in row groups of their own."""
    import pyarrow as pa
    from pyarrow import parquet as pq

    table = pa.Table.from_pandas(frame()) if table is None else table
    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, table.schema, **options) as writer:
        for _ in range(pieces):
            writer.write_table(table)
    return buffer.getvalue()


def arrow(**columns: object) -> object:
    import pyarrow as pa

    return pa.table(columns)


def twins() -> object:
    import pyarrow as pa

    return pa.Table.from_arrays([pa.array([0.5]), pa.array([0.5])], names=["y_a", "y_a"])


def database() -> bytes:
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE shares (y_a REAL)")
        content = connection.serialize()
    connection.close()
    return content


def array() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.eye(3))
    return buffer.getvalue()


def archive(members: dict[str, str | bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return buffer.getvalue()


def workbook(change: Callable[[object], object] = lambda sheet: None) -> bytes:
    """The good table as a workbook, after a change to its sheet."""
    from openpyxl import Workbook

    book = Workbook()
    for row in [frame().columns.tolist(), *frame().to_numpy().tolist()]:
        book.active.append(row)
    change(book.active)
    buffer = io.BytesIO()
    book.save(buffer)
    return buffer.getvalue()


def workbook_with(member: str, change: Callable[[bytes], bytes]) -> bytes:
    """The good workbook after a change to the bytes of one of its members."""
    with zipfile.ZipFile(io.BytesIO(workbook())) as file:
        members = {name: file.read(name) for name in file.namelist()}
    members[member] = change(members[member])
    return archive(members)


SHEET, BOOK = "xl/worksheets/sheet1.xml", "xl/workbook.xml"
STYLES, TYPES = "xl/styles.xml", "[Content_Types].xml"
LAUGHS = b'<!DOCTYPE l [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>'


def with_formula(sheet) -> None:
    sheet["C4"] = "=1-D4-E4"


def with_second_sheet(sheet) -> None:
    sheet.parent.create_sheet("Second").append(["x", "y_a"])


def with_title(sheet) -> None:
    sheet.insert_rows(1)
    sheet["A1"] = "Shares"
    sheet.merge_cells("A1:E1")


def with_merged_header(sheet) -> None:
    sheet.merge_cells("C1:D1")


def sheet_of(rows: str) -> bytes:
    """A workbook with these rows as XML."""

    def change(xml: bytes) -> bytes:
        return xml[: xml.index(b"<sheetData>")] + f"<sheetData>{rows}</sheetData></worksheet>".encode()

    return workbook_with(SHEET, change)


def with_one_text(text: str, n_rows: int) -> bytes:
    """A workbook in which many cells show one text, which is stored once."""
    cells = "".join(
        f'<row r="{i}"><c r="A{i}" t="s"><v>0</v></c><c r="B{i}"><v>1</v></c></row>' for i in range(2, n_rows)
    )
    names = '<row r="1"><c r="A1" t="str"><v>a</v></c><c r="B1" t="str"><v>b</v></c></row>'
    with zipfile.ZipFile(io.BytesIO(sheet_of(names + cells))) as file:
        members = {name: file.read(name) for name in file.namelist()}
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    listed = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}.sharedStrings+xml"/></Types>'.encode()
    if "xl/sharedStrings.xml" not in members:  # some releases of openpyxl write texts into their cells
        members[TYPES] = members[TYPES].replace(b"</Types>", listed)
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    members["xl/sharedStrings.xml"] = f'<sst xmlns="{space}"><si><t>{text}</t></si></sst>'
    return archive(members)


def sparse_workbook() -> bytes:
    """A sheet of ten thousand names and one number in the last row: 50 kB that would be gigabytes of commas."""
    from openpyxl.utils import get_column_letter

    names = "".join(f'<c r="{get_column_letter(i)}1" t="inlineStr"><is><t>n{i}</t></is></c>' for i in range(1, 10_001))
    return sheet_of(f'<row r="1">{names}</row><row r="1048576"><c r="A1048576"><v>1</v></c></row>')
