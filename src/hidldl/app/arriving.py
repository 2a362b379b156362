"""What a request brings, as it arrives: not too much, and not too slowly."""

import asyncio
from collections.abc import AsyncIterator
from time import monotonic

STALL_SECONDS = 15.0
"""The longest pause between two pieces."""
SLOWEST = 20_000
"""Bytes per second, on average: a sender of a byte now and then must not keep a place for hours."""


class TooLargeError(Exception):
    """More bytes than are taken."""


class TooSlowError(Exception):
    """Nothing arrives any more, or next to nothing."""


async def arriving(pieces: AsyncIterator[bytes], most_bytes: int) -> AsyncIterator[bytes]:
    """The pieces, until they are too many or too slow."""
    began, n_bytes = monotonic(), 0
    while True:
        left = began + STALL_SECONDS + n_bytes / SLOWEST - monotonic()
        try:
            piece = await asyncio.wait_for(anext(pieces, None), min(STALL_SECONDS, left))
        except TimeoutError:
            raise TooSlowError from None
        if piece is None:
            return
        n_bytes += len(piece)
        if n_bytes > most_bytes:
            raise TooLargeError
        yield piece
