"""Files that are changed at random, in every format that the package reads: no crash, no traceback, no excess.

    python benchmarks/fuzz.py [--minutes 60] [--seed N] [--formats .csv,.npz] [--case NUMBER]

Every format has the same part of the time, and a process of its own, which is ended if a case takes a minute. A failure
is printed with the options that repeat it. What counts as one is in ``tests/helpers/fuzz_targets.py``.
"""

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import click

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))
PATIENCE_S = 60.0
"""Seconds of real time for one case; on a busy machine that is more than the bound on its own time."""


def main() -> int:
    """Fuzz for some minutes, and print what came of it."""
    from fuzz_targets import TARGETS  # type: ignore[import-not-found]

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--formats", default=",".join(TARGETS), help="By commas; all by default.")
    parser.add_argument("--case", type=int, help="Only this case, of one format.")
    given = parser.parse_args()
    counts: dict[str, Counter[str]] = {name: Counter() for name in given.formats.split(",")}
    for name, found in counts.items():
        end = time.monotonic() + 60 * given.minutes / len(counts)
        _run(
            name,
            given.seed,
            range(sys.maxsize) if given.case is None else range(given.case, given.case + 1),
            found,
            end,
        )
    return _print(counts)


def _run(name: str, seed: int, numbers: range, counts: "Counter[str]", end: float) -> None:
    """Run cases until the time is over; the process that does is started again after a case that ended it."""
    while numbers and time.monotonic() < end:
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(target=_work, args=(there, name, seed, numbers))
        process.start()
        there.close()
        try:
            while numbers and time.monotonic() < end and here.poll(PATIENCE_S):
                kind, reason = here.recv()
                _count(name, seed, numbers[0], kind, reason, counts)
                numbers = numbers[1:]
            ended = f"no answer in {PATIENCE_S:.0f} seconds" if numbers and time.monotonic() < end else ""
        except EOFError:
            ended = "the process ended by itself"
        if ended:
            _count(name, seed, numbers[0], "failed", ended, counts)
            numbers = numbers[1:]
        process.kill()
        process.join()


def _work(there: Connection, name: str, seed: int, numbers: range) -> None:
    """In a process of its own: read cases one after the other."""
    from fuzz_targets import TARGETS, case, outcome

    target = TARGETS[name]
    for number in numbers:
        with TemporaryDirectory() as folder:
            result: Any = outcome(target, case(target, seed, number), Path(folder))
        there.send((result.kind, result.reason))


def _count(name: str, seed: int, number: int, kind: str, reason: str, counts: "Counter[str]") -> None:
    counts[kind] += 1
    if kind == "failed":
        click.echo(f"--formats {name} --seed {seed} --case {number}: {reason}")


def _print(counts: dict[str, "Counter[str]"]) -> int:
    for name, found in counts.items():
        click.echo(f"{name:>10} {found.total():7,} cases: " + ", ".join(f"{n:,} {kind}" for kind, n in found.items()))
    n_failed = sum(found["failed"] for found in counts.values())
    click.echo(f"{sum(found.total() for found in counts.values()):,} cases, {n_failed} failed")
    return 1 if n_failed else 0


if __name__ == "__main__":
    sys.exit(main())
