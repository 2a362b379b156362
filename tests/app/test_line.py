"""The line before the computation: in order, a few at a time, and who leaves it holds up nobody."""

import asyncio

from hidldl.app.line import Line


def test_turns_come_in_order_and_everyone_knows_their_place():
    async def stand_in_line():
        line, places, served = Line(2), {}, []

        async def come(name, done):
            async with line.turn(asyncio.Event(), lambda place: places.__setitem__(name, place)):
                served.append(name)
                await done.wait()

        done = {name: asyncio.Event() for name in "abcde"}
        tasks = {name: asyncio.create_task(come(name, done[name])) for name in "abcde"}
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert (served, places) == (["a", "b"], {"a": 0, "b": 0, "c": 1, "d": 2, "e": 3})
        done["b"].set()
        await tasks["b"]
        tasks["d"].cancel()
        await asyncio.wait([tasks["d"]])
        await asyncio.sleep(0)
        assert (served, places["c"], places["e"]) == (["a", "b", "c"], 0, 1)
        for event in done.values():
            event.set()
        await asyncio.gather(*(tasks[name] for name in "ace"))
        assert served == ["a", "b", "c", "e"]

    asyncio.run(stand_in_line())
