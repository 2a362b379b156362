"""The bytes of a user's table: recognised by their beginning, unpacked within limits, decoded to UTF-8."""

import codecs
import re
import zipfile
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, Any

from hidldl.errors import TableError

TEXT_KINDS = (".csv", ".tsv", ".txt")
KINDS = (*TEXT_KINDS, ".parquet", ".xlsx")
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")

# Limits against files that are small on disk and huge in memory. Text that repeats itself shrinks 20 times, so 200
# times is a trap or a table without content; what unpacks to little is harmless whatever its ratio.
MOST_BYTES = 20 * 2**30
MOST_EXPANSION = 200
HARMLESS_BYTES = 64 * 2**20
BLOCK_BYTES = 4 * 2**20

_SIGNATURES = {
    b"PAR1": ".parquet",
    b"\x1f\x8b": ".gz",
    b"BZh": ".bz2",
    b"\xfd7zXZ\x00": ".xz",
    b"\x28\xb5\x2f\xfd": ".zst",
    b"PK\x03\x04": "a zip archive",
    b"PK\x05\x06": "an empty zip archive",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an old Excel file (.xls) or one with a password",
    b"\x89PNG": "a PNG picture",
    b"\xff\xd8\xff": "a JPEG picture",
    b"GIF8": "a GIF picture",
    b"%PDF": "a PDF",
    b"{\\rtf": "a text processor's file",
    b"\x7fELF": "a program",
    b"MZ\x90\x00": "a program",
    b"SQLite format 3\x00": "an SQLite database",
    b"\x89HDF": "an HDF5 file",
    b"\x93NUMPY": "a NumPy array",
    b"ARROW1": "an Arrow file",
    b"Rar!": "a RAR archive",
    b"7z\xbc\xaf": "a 7-Zip archive",
}
# Encodings of tables that are not in UTF-8, the most frequent first, since a short text fits many of them.
ENCODINGS = {
    "cp1252": "Windows-1252",
    "mac_roman": "Mac Roman",
    "cp932": "Shift JIS",
    "gb18030": "GB 18030",
    "cp1251": "Windows-1251",
    "cp1250": "Windows-1250",
    "big5": "Big5",
    "euc_kr": "EUC-KR",
    "latin_1": "Latin-1",
}
_UTF_16 = {"utf-16-le": "UTF-16", "utf-16-be": "UTF-16"}
_NOT_ASCII = re.compile(rb"[\x80-\xff]")
_TELLING_BYTES = 2**16
_BEFORE_BYTES = 200
_CELL_ENDS = re.compile(rb'[,;\t\r\n"]')  # not "|", which is a part of characters in Shift JIS
_PICKLE = re.compile(rb"\x80[\x02-\x05]")
_MARKUP = re.compile(rb"\s*<(!doctype|html|\?xml|table)", re.IGNORECASE)
_JSON = re.compile(rb'\s*(\{\s*("|\})|\[\s*[\[{\]])')


class UnreadableError(Exception):
    """Why the bytes end here; the code that counts rows makes it a `TableError` that names the row."""


def quoted(value: object, longest: int = 40) -> str:
    """A value for a message: on one line, without control characters, cut where it is long."""
    text = str(value)
    return repr(text if len(text) <= longest else text[: longest - 1] + "…")


def quoted_list(names: Sequence[str], most: int = 12) -> str:
    """Names for a message, by commas; of many only the first."""
    first = ", ".join(quoted(name) for name in names[:most])
    return first + (f" and {len(names) - most} more" if len(names) > most else "")


def split_suffix(name: str) -> tuple[str, str, str]:
    """The name without its suffixes, the suffix that says what the file is, and that of its compression."""
    stem, compression = name, ""
    if name.lower().endswith(COMPRESSIONS):
        stem, _, last = name.rpartition(".")
        compression = f".{last.lower()}"
    kind = next((kind for kind in KINDS if stem.lower().endswith(kind)), "")
    return stem[: len(stem) - len(kind)], kind, compression


def recognise(head: bytes, path: Path | None = None) -> str:
    """What a file that begins so is: a suffix of ours, a description of something else, or "" for what may be text."""
    content = next((what for signature, what in _SIGNATURES.items() if head.startswith(signature)), "")
    if content == "a zip archive" and path is not None and _is_workbook(path):
        return ".xlsx"
    if content:
        return content
    for pattern, what in ((_PICKLE, "a pickle"), (_MARKUP, "a web page or XML"), (_JSON, "JSON")):
        if pattern.match(head):
            return what
    return ""


def _is_workbook(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return any(name.startswith("xl/") for name in archive.namelist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return False


def _promise(file_name: str, name: str) -> tuple[str, str]:
    """The format and the compression that a file's name, or the kind asked for, promises."""
    _, kind, compression = split_suffix("." + file_name.lstrip("."))
    if not kind or (compression and kind not in TEXT_KINDS):
        raise TableError(f"{name}: hidldl reads .csv, .tsv and .parquet files, compressed text (.csv.gz) and .xlsx.")
    return kind, compression


def identify(path: Path, name: str, promise: str | None) -> tuple[str, str]:
    """What a file is and how it is compressed, by its first bytes.

    It is refused if its name, or the kind that the user gave, promises something else.
    """
    promised = None if promise is None else _promise(promise, name)
    with path.open("rb") as file:
        head = file.read(512)
    if not head:
        raise TableError(f"{name} is empty.")
    content = recognise(head, path)
    kind, compression = promised or _kind_and_compression(content)
    if compression and not content:
        raise TableError(f"{name} is not compressed; remove {compression} from its name.")
    refuse_unless(compression or kind, content, name)
    return kind, compression


def _kind_and_compression(content: str) -> tuple[str, str]:
    """What a stream without a name is, by its first bytes; text unless they say something else."""
    return (content, "") if content in KINDS else (".csv", content if content in COMPRESSIONS else "")


def refuse_unless(expected: str, content: str, name: str) -> None:
    """Refuse content that is not what the suffix promises."""
    if content == expected or (not content and expected in TEXT_KINDS):
        return
    if content in COMPRESSIONS:
        raise TableError(f"{name} is compressed; add {content} to its name.")
    if content in KINDS:
        raise TableError(f"{name} is a {content} file; rename it so.")
    if content:
        raise TableError(f"{name} is {content}, not a table; save the table as .csv or .xlsx.")
    raise TableError(f"{name} is not a {expected} file; save it again, or rename it if it is text.")


@dataclass
class Source:
    """A file of text, which may be compressed and in any usual encoding.

    ``notes`` say which encoding is assumed, once it is known that the text is not in UTF-8.
    """

    path: Path
    name: str
    compression: str = ""
    notes: list[str] = field(default_factory=list)
    _assumed: str | None = None

    def blocks(self) -> Generator[bytes]:
        """The text in UTF-8, split anywhere, without a byte order mark; `UnreadableError` after the last good byte."""
        with closing(self._unpacked()) as unpacked:
            first = next(unpacked, b"")
            refuse_unless(".csv", recognise(first[:512]), self.name)
            codec, mark = self._assumed or "", 0
            if not codec:
                codec, mark = _encoding(first)
            if not codec:
                codec = self._assume(_utf_16_without_mark(first)) or "utf-8"
            # While all is ASCII, the text is the same in every encoding that may turn out to be the right one.
            decoder = _Decoder(codec, is_sure=bool(mark) or codec != "utf-8")
            for block in chain([first[mark:]], unpacked):
                data = block
                if decoder.doubts(data):
                    data += _more(unpacked, _TELLING_BYTES)
                    decoder.settle(self._assume(_recognise_encoding(decoder.before + decoder.rest + data)))
                yield from _without_nul(decoder.decode(data))
                if len(decoder.rest) > 3:  # more than a character that goes on in the next block can leave
                    break
            if decoder.rest:
                raise UnreadableError(f"is not text in {_called(decoder.codec)}; save it as UTF-8")

    def _assume(self, codec: str | None) -> str | None:
        if codec and not self._assumed:
            self._assumed = codec
            self.notes.append(
                f"the text is not in UTF-8; {_called(codec)} is assumed, so look at its special characters"
            )
        return codec

    def _unpacked(self) -> Generator[bytes]:
        most = min(MOST_BYTES, max(HARMLESS_BYTES, MOST_EXPANSION * self.path.stat().st_size))
        seen = 0
        with self._open() as stream:
            while block := self._next(stream):
                seen += len(block)
                if self.compression and seen > most:
                    raise UnreadableError(f"unpacks to more than {most:,} bytes, as a trap would; unpack it yourself")
                yield block

    def _open(self) -> Any:
        if self.compression == ".gz":
            import gzip

            return gzip.open(self.path)
        if self.compression == ".bz2":
            import bz2

            return bz2.open(self.path)
        if self.compression == ".xz":
            import lzma

            return lzma.open(self.path)
        return _open_zst(self.path) if self.compression == ".zst" else self.path.open("rb")

    def _next(self, stream: IO[bytes]) -> bytes:
        try:
            return stream.read(BLOCK_BYTES)
        except Exception as error:
            # Each of the four libraries has its own errors for damaged content; text has only the disk's.
            if not self.compression:
                raise UnreadableError(f"cannot be read further ({error})") from None
            raise UnreadableError(f"is cut off, or is not a {self.compression} file; copy it again") from None


def _open_zst(path: Path) -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise ImportError("Files in .zst need zstandard; install it with pip install 'hidldl[zst]'.") from error
    unpacker = zstandard.ZstdDecompressor(max_window_size=2**27)
    return unpacker.stream_reader(path.open("rb"), read_across_frames=True, closefd=True)


def _encoding(head: bytes) -> tuple[str, int]:
    """The codec and the length of the byte order mark; "" and 0 without one."""
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise UnreadableError("is text in UTF-32; save it as UTF-8")
    marks = {codecs.BOM_UTF8: "utf-8", codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
    return next(((codec, len(mark)) for mark, codec in marks.items() if head.startswith(mark)), ("", 0))


def _utf_16_without_mark(head: bytes) -> str | None:
    """UTF-16 where every second byte of delimiters, digits and line ends is 0, and none of the others."""
    even, odd = head[:4096:2], head[1:4096:2]
    for codec, zeros, others in (("utf-16-le", odd, even), ("utf-16-be", even, odd)):
        if zeros.count(0) > 0.3 * len(zeros) and not others.count(0):
            return codec
    return None


def _recognise_encoding(data: bytes) -> str | None:
    """The encoding of text that is not UTF-8, by the cells that are not ASCII; None if it is no text."""
    if b"\x00" in data:
        return None
    from charset_normalizer import from_bytes

    order = list(ENCODINGS)
    stop = next(_NOT_ASCII.finditer(data)).start() + _TELLING_BYTES
    foreign = b"\n".join(cell for cell in _CELL_ENDS.split(data[:stop]) if not cell.isascii())
    # How many doubtful characters each leaves; by the order where several leave as many.
    ranks = [
        (round(match.chaos, 2), min(order.index(codec) for codec in match.could_be_from_charset if codec in order))
        for match in from_bytes(foreign, cp_isolation=order)
    ]
    return order[min(ranks)[1]] if ranks else None


def _more(blocks: Iterator[bytes], size: int) -> bytes:
    parts: list[bytes] = []
    while sum(map(len, parts)) < size and (block := next(blocks, b"")):
        parts.append(block)
    return b"".join(parts)


def _called(codec: str) -> str:
    return {**ENCODINGS, **_UTF_16}.get(codec, codec.upper())


class _Decoder:
    """Turns bytes into UTF-8, block by block; ``rest`` are the bytes from the first that cannot be decoded."""

    def __init__(self, codec: str, *, is_sure: bool) -> None:
        self.codec = codec
        self.is_sure = is_sure
        self.before = b""
        self.rest = b""

    def doubts(self, block: bytes) -> bool:
        """Whether the first bytes that are not ASCII show that this is not UTF-8."""
        data = self.rest + block
        if self.is_sure or data.isascii():
            return False
        try:
            data.decode()
        except UnicodeDecodeError as error:
            goes_on = error.reason == "unexpected end of data" and len(data) - error.start <= 3
            return data[: error.start].isascii() and not goes_on
        return False

    def settle(self, codec: str | None) -> None:
        """Take this codec from now on."""
        self.codec, self.is_sure = codec or self.codec, True

    def decode(self, block: bytes) -> bytes:
        """What can be decoded of the rest and the block."""
        data = self.rest + block
        if self.codec == "utf-8" and data.isascii():
            self.rest, self.before = b"", (self.before + data)[-_BEFORE_BYTES:]
            return data
        try:
            text, stop = data.decode(self.codec), len(data)
        except UnicodeDecodeError as error:
            text, stop = data[: error.start].decode(self.codec), error.start
        self.rest = data[stop:]
        self.is_sure = self.is_sure or not text.isascii()
        return data[:stop] if self.codec == "utf-8" else text.encode()


def _without_nul(text: bytes) -> Iterator[bytes]:
    nul = text.find(b"\x00")
    if text:
        yield text if nul < 0 else text[:nul]
    if nul >= 0:
        raise UnreadableError("holds a NUL byte, so it is not text; save it as UTF-8")
