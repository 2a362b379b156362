"""Changes to files at random, for tests and for ``benchmarks/fuzz.py``: of bytes, and of what containers hold."""

import base64
import bz2
import gzip
import io
import json
import lzma
import zipfile
from collections.abc import Callable

import numpy as np

Random = np.random.Generator
MOST_BYTES = 2**20
"""Files stay small, so that time and memory beyond the bounds are a fault of the reader."""
LARGEST_PACKED = 5000
PIECES = [
    b"", b"\x00", b"\xff", b"\x7f", b"\x80", b'"', b"'", b",", b";", b"\t", b"\n", b"\r", b"\r\n", b"-", b"=", b"%",
    b"[", b"{", b"\xef\xbb\xbf", b"\xff\xfe", b"\xe2\x80\x8b", b"NA", b"nan", b"inf", b"1e400", b"-1", b"0",
    b"2147483648", b"9" * 20, b"<!--", b"-->", b"<c>", b"</row>", b"&amp;", b"&x;", b'r="XFD1048576"', b"\\u0000",
    b"PAR1", b"PK\x03\x04",
]  # fmt: skip
VALUES = [
    None, True, -1, 0, 1, 3.5, 10**9, 10**30, -(10**18), 1e308, "", "auto", "x" * 50, "\ud800", [], {}, {"list": [1]},
    {"array": 0}, {"array": -1}, {"names": ["a"]}, {"dict": {}}, {"dtype": "<f4"}, {"object": "MeanFill", "state": {}},
]  # fmt: skip


def mutated(content: bytes, rng: Random, others: list[bytes] | None = None) -> bytes:
    """The bytes after a few changes at random places."""
    for _ in range(int(rng.integers(1, 5))):
        content = BYTE_CHANGES[rng.integers(len(BYTE_CHANGES))](content, rng, others or [content])
    return content[:MOST_BYTES]


def _at(content: bytes, rng: Random) -> int:
    return int(rng.integers(len(content) + 1))


def _span(content: bytes, rng: Random) -> tuple[int, int]:
    start = _at(content, rng)
    return start, min(len(content), start + int(2 ** rng.uniform(0, 10)))


def _flip(content: bytes, rng: Random, others: list[bytes]) -> bytes:
    changed = bytearray(content or b"\x00")
    changed[rng.integers(len(changed))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _overwrite(content: bytes, rng: Random, others: list[bytes]) -> bytes:
    piece, at = PIECES[rng.integers(len(PIECES))], _at(content, rng)
    return content[:at] + piece + content[at + len(piece) :]


def _insert(content: bytes, rng: Random, others: list[bytes]) -> bytes:
    piece, at = PIECES[rng.integers(len(PIECES))], _at(content, rng)
    return content[:at] + piece * int(2 ** rng.uniform(0, 8)) + content[at:]


def _delete(content: bytes, rng: Random, others: list[bytes]) -> bytes:
    start, stop = _span(content, rng)
    return content[:start] + content[stop:]


def _repeat(content: bytes, rng: Random, others: list[bytes]) -> bytes:
    start, stop = _span(content, rng)
    return content[:stop] + content[start:stop] * int(2 ** rng.uniform(0, 6)) + content[stop:]


def _noise(content: bytes, rng: Random, others: list[bytes]) -> bytes:
    start, stop = _span(content, rng)
    return content[:start] + rng.bytes(stop - start) + content[stop:]


def _cut_off(content: bytes, rng: Random, others: list[bytes]) -> bytes:
    return content[: _at(content, rng)]


def _splice(content: bytes, rng: Random, others: list[bytes]) -> bytes:
    other = others[rng.integers(len(others))]
    return content[: _at(content, rng)] + other[_at(other, rng) :]


BYTE_CHANGES = (_flip, _flip, _overwrite, _overwrite, _insert, _delete, _repeat, _noise, _cut_off, _splice)


def mutated_within(pack: Callable[[bytes], bytes], unpack: Callable[[bytes], bytes]) -> Callable[..., bytes]:
    """A change of what a compressed file holds, or of the file."""

    def change(content: bytes, rng: Random, others: list[bytes] | None = None) -> bytes:
        if rng.random() < 0.3 or len(content) > LARGEST_PACKED:
            return mutated(content, rng, others)
        return pack(mutated(unpack(content), rng))

    return change


def mutated_archive(content: bytes, rng: Random, others: list[bytes] | None = None) -> bytes:
    """A change of one member of a zip archive, or of the archive; members are stored as they were."""
    if rng.random() < 0.3:
        return mutated(content, rng, others)
    buffer = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as archive, zipfile.ZipFile(buffer, "w") as target:
        members = archive.infolist()
        chosen = members[rng.integers(len(members))].filename
        for member in members:
            data = archive.read(member)
            change = mutated_json if data[:1] == b"{" and rng.random() < 0.7 else mutated
            data = change(data, rng) if member.filename == chosen else data
            target.writestr(member.filename, data, member.compress_type)
    return buffer.getvalue()


def mutated_json(content: bytes, rng: Random, others: list[bytes] | None = None) -> bytes:
    """Another value at some places of a JSON text; texts that are base64 are changed within."""
    if rng.random() < 0.2:
        return mutated(content, rng, others)
    tree = json.loads(content)
    for _ in range(int(rng.integers(1, 4))):
        places = list(_places(tree))
        if not places:
            return mutated(content, rng, others)
        parent, key = places[rng.integers(len(places))]
        parent[key] = _other_value(parent[key], rng)
    return json.dumps(tree).encode()


def _places(node):
    """Every place in a tree: what holds it, and its key there."""
    for key, item in list(node.items()) if isinstance(node, dict) else list(enumerate(node)):
        yield node, key
        if isinstance(item, dict | list):
            yield from _places(item)


def _other_value(value, rng: Random):
    if isinstance(value, str) and len(value) > 60 and rng.random() < 0.9:
        try:
            return base64.b64encode(mutated(base64.b64decode(value, validate=True), rng)).decode()
        except ValueError:
            pass
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.5:
        return value * [-1, 2, 10**6, 10**12][rng.integers(4)]
    return VALUES[rng.integers(len(VALUES))]


def _zst(content: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdCompressor().compress(content)


def _unzst(content: bytes) -> bytes:
    import zstandard

    return zstandard.ZstdDecompressor().decompress(content, MOST_BYTES)


COMPRESSED = {
    ".gz": (gzip.compress, gzip.decompress),
    ".bz2": (bz2.compress, bz2.decompress),
    ".xz": (lzma.compress, lzma.decompress),
    ".zst": (_zst, _unzst),
}
