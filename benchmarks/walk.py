"""The way of a table through ``hidldl recover``: which modules it visits, and how often it goes from one to another.

    python benchmarks/walk.py [--pairs] [--against FOLDER]

A table of 40 rows is recovered by MeanFill while every call is watched. A switch is a call from a function of one
module of the package to a function of another, whatever lies between them. What runs while modules are imported does
not count, nor does what nobody wrote: the constructors of dataclasses.
``--against`` also walks through the package in another folder, such as the ``src`` of an older checkout.
"""

import argparse
import dis
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

HERE = Path(__file__).parents[1] / "src"
N_ROWS = 40


class Walk:
    """Counts the switches between modules of the package while it watches."""

    def __init__(self) -> None:
        self.modules: set[str] = set()
        self.switches: Counter[tuple[str, str]] = Counter()
        self.functions: Counter[tuple[str, str]] = Counter()

    def __enter__(self) -> "Walk":
        sys.setprofile(self._watch)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)

    def _watch(self, frame: FrameType, event: str, argument: Any) -> None:
        if event != "call" or not (here := _module(frame)) or _goes_on(frame):
            return
        self.modules.add(here)
        before = _caller(frame)
        if before and before != here:
            self.switches[before, here] += 1
            self.functions[before, f"{here}.{frame.f_code.co_qualname}"] += 1


def _goes_on(frame: FrameType) -> bool:
    """Whether a generator goes on after a pause: only its beginning is a call."""
    code = frame.f_code.co_code
    return code[frame.f_lasti] == dis.opmap["RESUME"] and code[frame.f_lasti + 1] & 3 != 0


def _module(frame: FrameType) -> str:
    """The module of the package that a function was written in."""
    name = frame.f_globals.get("__name__", "")
    is_written = frame.f_code.co_name != "<module>" and not frame.f_code.co_qualname.startswith("__create_fn__")
    return name if name.startswith("hidldl") and is_written else ""


def _caller(frame: FrameType) -> str:
    """The module of the package that the call came from."""
    back = frame.f_back
    while back is not None and not _module(back):
        back = back.f_back
    return _module(back) if back is not None else ""


def write_table(path: Path) -> None:
    """A table of 40 rows with names, features and labels, some of them empty."""
    lines = ["face,age,light,joy,fear,anger"]
    for i in range(N_ROWS):
        joy, fear = 0.2 + 0.01 * (i % 30), 0.1 + 0.02 * (i % 7)
        shares = [f"{joy:.2f}", f"{fear:.2f}", f"{1 - joy - fear:.2f}"]
        if i % 3 == 0:
            shares = [f"{joy / (joy + fear):.6f}", f"{fear / (joy + fear):.6f}", ""]
        lines.append(",".join([f"face-{i:02d}", str(20 + i), ("day", "lamp")[i % 2], *shares]))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def walk() -> Walk:
    """Recover the table twice, the first time to import everything, and watch the second time."""
    from click.testing import CliRunner

    try:
        from hidldl.__main__ import main
    except SystemExit:  # an older package, whose module runs the command when it is imported
        from hidldl.cli import main  # type: ignore[attr-defined, no-redef]

    with TemporaryDirectory() as folder:
        write_table(Path(folder) / "table.csv")
        arguments = ["recover", f"{folder}/table.csv", "-o", f"{folder}/out.csv", "--method", "meanfill"]
        runner = CliRunner()
        runner.invoke(main, arguments, catch_exceptions=False)
        with Walk() as watched:
            result = runner.invoke(main, arguments, catch_exceptions=False)
        assert result.exit_code == 0, result.output
    return watched


def elsewhere(source: Path) -> dict[str, int]:
    """The counts of the package in another folder, by a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(source)}
    command = [sys.executable, __file__, "--json"]
    return dict(json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", action="store_true", help="list every switch: its module and function")
    parser.add_argument("--against", type=Path, help="the src folder of another checkout")
    parser.add_argument("--json", action="store_true", help="print the counts for a program")
    arguments = parser.parse_args()
    trace = walk()
    counts = {"modules": len(trace.modules), "switches": trace.switches.total()}
    if arguments.json:
        print(json.dumps(counts))
        sys.exit()
    print(f"{counts['modules']} modules, {counts['switches']} switches")
    if arguments.pairs:
        for (before, after), count in sorted(trace.functions.items()):
            print(f"  {count:4}  {before.removeprefix('hidldl.')} -> {after.removeprefix('hidldl.')}")
    if arguments.against is not None:
        other = elsewhere(arguments.against)
        ratio = counts["switches"] / other["switches"]
        print(f"{arguments.against}: {other['modules']} modules, {other['switches']} switches; ours are {ratio:.2f}")
