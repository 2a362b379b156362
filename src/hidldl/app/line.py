"""Who is next: what uses every core is done one after another, in the order in which it was asked for."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager


class Line:
    """A line in which the first few are served at once.

    Parameters
    ----------
    n_served : int
        How many are served at the same time.
    """

    def __init__(self, n_served: int) -> None:
        self._n_served = n_served
        self._line: list[tuple[asyncio.Event, Callable[[int], None]]] = []

    @asynccontextmanager
    async def turn(self, called: asyncio.Event, tell: Callable[[int], None]) -> AsyncIterator[None]:
        """Wait until it is one's turn, which lasts as long as the block.

        Parameters
        ----------
        called : asyncio.Event
            Set when it is one's turn; set it earlier to stop waiting.
        tell : callable
            Gets the place in the line whenever it changes: 0 is one's turn, 1 is next.
        """
        mine = (called, tell)
        self._line.append(mine)
        self._move()
        try:
            await called.wait()
            yield
        finally:
            self._line.remove(mine)
            self._move()

    def _move(self) -> None:
        for place, (called, tell) in enumerate(self._line):
            if place < self._n_served:
                called.set()
            tell(max(0, place - self._n_served + 1))
