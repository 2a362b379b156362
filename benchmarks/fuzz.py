"""What we promise, tried at random: no crash, no traceback, no wrong number, no excess, no part of a file.

    python benchmarks/fuzz.py [--minutes 60] [--seed N] [--parts tables,models] [--formats .csv,.npz] [--case NUMBER]
    python benchmarks/fuzz.py --parts fits,kills --cases 20000 --write docs/results

Files that are changed at random, in every format that the package reads; fits of random problems by all methods with
random settings; ``hidldl recover``, killed at random times. Every format has the same part of the time, or of the
cases, and a process of its own, which is ended if a case takes a minute. A failure is printed with the options that
repeat it. What counts as one is in ``tests/helpers/fuzz_targets.py``. ``--write`` makes one file for each part that is
run as a whole, so that parts can be run one by one.
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
from provenance import provenance, write_markdown

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))
PATIENCE_S = 60.0
"""Seconds of real time for one case; on a busy machine that is more than the bound on its own time."""


PARTS = {
    "tables": (".csv", ".tsv", ".csv.gz", ".csv.bz2", ".csv.xz", ".csv.zst", ".xlsx", ".parquet", ".to.csv"),
    "models": (".npz", ".json"),
    "others": (".mat", ".sqlite", ".request"),
    "fits": (".fit",),
    "kills": (".kill",),
}
"""What is tried, and its formats."""
DEFAULT_MINUTES = 60.0


def main() -> int:
    """Fuzz for some minutes, or for so many cases, and print what came of it."""
    import fuzz_targets  # type: ignore[import-not-found]  # noqa: F401  loaded once, before the processes part

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, help="For all together; 60, unless --cases is given.")
    parser.add_argument("--cases", type=int, help="For each part.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--parts", default=",".join(PARTS), help="By commas; all by default.")
    parser.add_argument("--formats", help="By commas; those of the parts by default.")
    parser.add_argument("--case", type=int, help="Only this case, of one format.")
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    parts = {name: PARTS[name] for name in arguments.parts.split(",")}
    if arguments.formats:
        parts = {"": arguments.formats.split(",")}
    minutes = arguments.minutes or (DEFAULT_MINUTES if arguments.cases is None else float("inf"))
    n_formats, n_failed = sum(map(len, parts.values())), 0
    source = provenance()  # of the code that is loaded, whatever is committed until the end
    for part, names in parts.items():
        counts: dict[str, Counter[str]] = {name: Counter() for name in names}
        n_cases = sys.maxsize if arguments.cases is None else -(-arguments.cases // len(names))
        numbers = range(n_cases) if arguments.case is None else range(arguments.case, arguments.case + 1)
        for name, outcomes in counts.items():
            _run(name, arguments.seed, numbers, outcomes, time.monotonic() + 60 * minutes / n_formats)
        table = _table(counts)
        click.echo(table)
        n_failed += sum(outcomes["failed"] for outcomes in counts.values())
        if arguments.write and part:
            write_markdown(arguments.write / f"promises_{part}.md", table, source)
    click.echo(f"{n_failed} failed")
    return 1 if n_failed else 0


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


def _table(counts: dict[str, "Counter[str]"]) -> str:
    lines = ["| | cases | as they should | refused in one line | failed |", "|" + " --- |" * 5]
    total: Counter[str] = Counter()
    for name, outcomes in [*counts.items(), ("all", total)]:
        if name != "all":
            total += outcomes
        refused = outcomes.total() - outcomes["read"] - outcomes["failed"]
        lines.append(f"| {name} | {outcomes.total():,} | {outcomes['read']:,} | {refused:,} | {outcomes['failed']:,} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
