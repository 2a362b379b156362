"""Workbooks that are small on disk and take hours or all memory to read: refused before any of their XML is parsed."""

import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from hidldl.errors import TableError
from hidldl.tables.sources import MOST_EXPANSION

# A full sheet of 26 columns is about 1 GB of XML; all its different texts are kept in memory, so these have less.
MOST_XML_BYTES = 4 * 2**30
MOST_TEXT_BYTES = 256 * 2**20
HARMLESS_XML_BYTES = 16 * 2**20
# Cells of one repeated value leave less than three tags per byte of the file. Styles and lists of sheets become objects
# of many bytes each; Excel allows 65,490 styles.
MOST_TAGS_PER_BYTE = 8
HARMLESS_TAGS = 2**19
MOST_OTHER_TAGS = 2**18
# XML is parsed in pieces of 16 kB, and a tag or comment that goes on is looked at again from its beginning each time.
LONGEST_TAG = 2**20
LONGEST_COMMENT = 2**16
BLOCK_BYTES = 2**20
_COMMENTS = ((b"<!--", b"-->"), (b"<?", b"?>"))


def refuse_traps(path: Path, name: str) -> None:
    """Refuse what unpacks to too much, or would take too long to parse; only a block at a time is unpacked."""
    size = path.stat().st_size
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        unpacked = sum(member.file_size for member in members)
        texts = max((member.file_size for member in members if "sharedStrings" in member.filename), default=0)
        if unpacked > min(MOST_XML_BYTES, max(HARMLESS_XML_BYTES, MOST_EXPANSION * size)) or texts > MOST_TEXT_BYTES:
            raise TableError(f"{name} unpacks to {unpacked:,} bytes, as a trap would; save the table as .csv.")
        n_tags = n_other_tags = 0
        for member in members:
            is_content = member.filename.lower().startswith(("xl/worksheets/", "xl/sharedstrings"))
            for n_more in _tags(archive, member, name):
                n_tags, n_other_tags = n_tags + n_more, n_other_tags + (0 if is_content else n_more)
                if n_tags > max(HARMLESS_TAGS, MOST_TAGS_PER_BYTE * size) or n_other_tags > MOST_OTHER_TAGS:
                    raise TableError(f"{name} has more than {n_tags:,} tags, as a trap would; save the table as .csv.")


def _tags(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> Iterator[int]:
    """How many tags begin in each block of a member, none of which is too long."""
    seen = last = 0
    tail = b""
    with archive.open(member) as xml:
        while block := xml.read(BLOCK_BYTES):
            if not seen and not _is_xml(block, name):
                return  # a picture, or something that no XML parser accepts
            begins = seen + np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("<"))
            seen += len(block)
            longest = int(np.diff(begins, prepend=last, append=seen).max())
            last = int(begins[-1]) if len(begins) else last
            if longest > LONGEST_TAG or any(_is_long(tail + block, *ends) for ends in _COMMENTS):
                raise TableError(f"{name} has a tag or comment without end, as a trap would; save the table as .csv.")
            tail = (tail + block)[-LONGEST_COMMENT - 4 :]
            yield len(begins)


def _is_xml(head: bytes, name: str) -> bool:
    """Whether a member begins as XML does, whatever its name is."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff", b"<\x00", b"\x00<")):
        raise TableError(f"{name} holds XML in UTF-16, which no spreadsheet program writes; save it again.")
    return head.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"<", b"")


def _is_long(xml: bytes, opening: bytes, closing: bytes) -> bool:
    """Whether a comment goes on for too long."""
    at = xml.find(opening)
    while at >= 0:
        end = xml.find(closing, at, at + LONGEST_COMMENT)
        if end < 0:
            return len(xml) - at > LONGEST_COMMENT
        at = xml.find(opening, end)
    return False
