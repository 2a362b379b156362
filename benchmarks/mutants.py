"""Small faults in the code, one at a time: how many of them do its tests notice?

    pip install cosmic-ray
    python benchmarks/mutants.py [--modules simplex,metrics] [--sample 40] [--seed 0] [--keep FILE] [--write FOLDER]

Cosmic Ray makes the faults (mutants): another operator, another number, a loop that does not run, a condition that is
negated. Those that any call would notice, since they end in a TypeError, and those in type hints are left out. Of each
module, so many are drawn at random. Each is tried with that module's tests alone, in a copy of the repository and in a
process of its own. It is killed if a test fails, if the process crashes, or if it takes many times as long as usual.
What survives is listed with the reason that ``mutants.toml`` has for it, if it has one. With ``--keep``, mutants that
were killed before are not tried again while their module's text is the same: tests are added, not taken away.
"""

import argparse
import ast
import compileall
import difflib
import importlib
import json
import os
import resource
import shutil
import signal
import sys
import time
import tomllib
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from provenance import ROOT, provenance, write_markdown

TESTS = {
    "simplex": ["tests/test_simplex.py"],
    "metrics": ["tests/test_metrics.py"],
    "hiding": ["tests/test_hiding.py"],
    "validation": ["tests/test_validation.py"],
    "recovery/algorithm1": ["tests/recovery/test_algorithm1.py"],
    "recovery/latent": ["tests/recovery/test_posterior.py", "tests/recovery/test_latent.py"],
    "recovery/logisticnormal": ["tests/recovery/test_logisticnormal.py"],
    "recovery/posterior": ["tests/recovery/test_posterior.py"],
}
"""Modules by their path in the package, and the tests that are to notice their faults."""
SAME_KIND = (
    {"Add", "Sub", "Mul", "Div"},
    {"Pow", "Mul", "Div"},
    {"FloorDiv", "Div", "Mul"},
    {"BitOr", "BitAnd", "BitXor"},
    {"Eq", "NotEq"},
    {"Lt", "LtE", "Gt", "GtE", "Eq"},
    {"Is", "IsNot"},
    {"USub", "UAdd"},
    {"Invert", "Delete"},
    {"USub", "Delete"},
    {"Not", "Delete"},
)
"""Operators of which one may stand for the other without a TypeError."""
LOADED = ("numpy", "scipy.optimize", "scipy.stats", "scipy.integrate", "sklearn.base", "sklearn.utils.estimator_checks",
          "pandas", "numba", "hypothesis", "hypothesis.extra.numpy", "pytest", "xdist")  # fmt: skip
"""Imported once, before the processes part."""
TIMES_AS_LONG, LEAST_PATIENCE_S, LONGEST_S = 5, 20.0, 600.0
"""How many times its usual CPU seconds a test may take, at least so many, and so many seconds of real time at most."""


@dataclass(frozen=True)
class Mutant:
    """A module's text with one fault: operator and occurrence, and the line that has it before and after."""

    name: str
    text: str
    before: str
    after: str


def main() -> None:
    """Try mutants of each module, print the table and the survivors."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", default=",".join(TESTS), help="By commas; all by default.")
    parser.add_argument("--sample", type=int, default=40, help="Mutants of each module, at most.")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="What was killed, for the next run (.json).")
    parser.add_argument("--write", type=Path, metavar="FOLDER")
    arguments = parser.parse_args()
    for name in LOADED:
        importlib.import_module(name)
    reasons = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    kept = json.loads(arguments.keep.read_text()) if arguments.keep and arguments.keep.exists() else {}
    table, survivors, measured = _table_head(), [], provenance()
    for module in arguments.modules.split(","):
        source = (ROOT / "src/hidldl" / f"{module}.py").read_text(encoding="utf-8")
        everything = places(source)
        order = np.random.default_rng([arguments.seed, zlib.crc32(module.encode())]).permutation(len(everything))
        chosen = [mutated(source, *everything[i]) for i in order[: arguments.sample]]
        alive = _alive(module, chosen, kept.setdefault(module, {}), str(zlib.crc32(source.encode())))
        if arguments.keep:
            arguments.keep.write_text(json.dumps(kept))
        explained = sum(_reason(reasons, module, mutant) != UNEXPLAINED for mutant in alive)
        table.append(_row(module, len(everything), len(chosen), len(alive), explained))
        print(table[-1], flush=True)
        survivors += [_survivor(module, mutant, _reason(reasons, module, mutant)) for mutant in alive]
    text = "\n".join([*table, "", f"Drawn with seed {arguments.seed}. What survived:", "", *survivors])
    print(text)
    if arguments.write:
        write_markdown(arguments.write / "mutants.md", text, measured)


def _alive(module: str, chosen: list[Mutant], kept: dict[str, list[str]], version: str) -> list[Mutant]:
    """The mutants that no test notices; ``kept`` has the names of others, by the version of the module's text."""
    before = kept.get(version, [])
    left = [mutant for mutant in chosen if mutant.name not in before]
    with TemporaryDirectory() as folder:
        alive = list(_survivors(module, left, Path(folder))) if left else []
    kept.clear()
    kept[version] = sorted({*before, *(mutant.name for mutant in chosen if mutant not in alive)})
    return alive


def places(source: str) -> list[tuple[str, int]]:
    """Where a text can be mutated: operators, with the number of each of their occurrences outside of type hints."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator, operator_names

    nodes = list(ast_nodes(get_ast(source)))
    # A star between parameters is no operator.
    stars = [(node.start_pos, node.end_pos) for node in nodes if node.parent and node.parent.type == "parameters"]
    idle = _hints(source) + [at for at in stars if at[0][0] == at[1][0] and at[1][1] - at[0][1] == 1]
    spots = []
    for name in filter(_is_plausible, operator_names()):
        operator = get_operator(name)()
        starts = [start for node in nodes for start, _ in operator.mutation_positions(node)]
        spots += [(name, i) for i, at in enumerate(starts) if not any(begin <= at < end for begin, end in idle)]
    return spots


def mutated(source: str, operator: str, occurrence: int) -> Mutant:
    """The text with one mutation."""
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    text = mutate_code(source, get_operator(operator)(), occurrence)
    lines = list(difflib.unified_diff(source.splitlines(), text.splitlines(), lineterm="", n=0))[3:]
    before, after = (" ".join(line[1:].strip() for line in lines if line.startswith(sign)) for sign in "-+")
    return Mutant(f"{operator} {occurrence}", text, before, after)


def _is_plausible(operator: str) -> bool:
    kind, *replaced = operator.removeprefix("core/").split("_")
    return not kind.startswith("Variable") and (not replaced or any(set(replaced) <= kinds for kinds in SAME_KIND))


def _hints(source: str) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Where type hints begin and end, as lines and columns."""
    hints: list[ast.expr | None] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.arg | ast.AnnAssign):
            hints.append(node.annotation)
        if isinstance(node, ast.FunctionDef):
            hints.append(node.returns)
    return [((h.lineno, h.col_offset), (h.end_lineno or 0, h.end_col_offset or 0)) for h in hints if h]


def _survivors(module: str, chosen: list[Mutant], folder: Path) -> Iterator[Mutant]:
    """The mutants that no test notices, tried in a copy of the repository."""
    for part in ("src", "tests", "benchmarks", "pyproject.toml"):
        source, ignored = ROOT / part, shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, folder / part, ignore=ignored) if source.is_dir() else shutil.copy(source, folder)
    compileall.compile_dir(folder / "src", quiet=1)
    path = folder / "src/hidldl" / f"{module}.py"
    # Python may take an old compiled file for the new text's, if both are of the same second and size.
    for old in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        old.unlink()
    for _ in range(2):
        # Compiled code of the other modules is kept from the first time; that of this one is of another file now.
        path.touch()
        passed, seconds = _passes(TESTS[module], folder, LONGEST_S)
        if not passed:
            raise SystemExit(f"The tests of {module} fail without any mutant.")
    for mutant in chosen:
        path.write_text(mutant.text, encoding="utf-8")
        if _passes(TESTS[module], folder, max(LEAST_PATIENCE_S, TIMES_AS_LONG * seconds))[0]:
            print(f"survived in {module}: {mutant.before}  ->  {mutant.after}", file=sys.stderr, flush=True)
            yield mutant


def _passes(tests: list[str], folder: Path, patience: float) -> tuple[bool, float]:
    """Whether tests pass in a process of their own, which starts with all that is loaded here, and its CPU seconds."""
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (int(patience) + 1,) * 2)
        os._exit(_run_tests(tests, folder))
    end = time.monotonic() + LONGEST_S
    while time.monotonic() < end:
        finished, status, usage = os.wait4(child, os.WNOHANG)
        if finished:
            return status == 0, usage.ru_utime + usage.ru_stime
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False, LONGEST_S


def _run_tests(tests: list[str], folder: Path) -> int:
    import pytest
    from hypothesis import Phase, settings

    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    os.chdir(folder)
    sys.dont_write_bytecode = True
    sys.path[:] = [
        str(folder / "src"),
        *(p for p in sys.path if p not in (str(ROOT / "src"), str(ROOT / "benchmarks"))),
    ]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("hidldl", "provenance")]:
        del sys.modules[name]
    # The same examples as ever, but nobody needs the smallest that fails.
    settings.register_profile("mutants", derandomize=True, deadline=None, phases=(Phase.explicit, Phase.generate))
    options = ["-x", "-q", "-n0", "-pno:cacheprovider", "-Wignore::pytest.PytestAssertRewriteWarning"]
    return int(pytest.main([*options, "--hypothesis-profile=mutants", *tests]))


UNEXPLAINED = "not explained"


def _reason(reasons: dict[str, list[dict[str, str]]], module: str, mutant: Mutant) -> str:
    for entry in reasons.get(module, []):
        if entry["before"] == mutant.before and entry["after"] == mutant.after:
            return entry["reason"]
    return UNEXPLAINED


def _table_head() -> list[str]:
    return ["| module | mutants | tried | killed | survived | of these explained | killed, % |", "|" + " --- |" * 7]


def _row(module: str, n_all: int, n_tried: int, n_alive: int, n_explained: int) -> str:
    killed = n_tried - n_alive
    return f"| {module} | {n_all} | {n_tried} | {killed} | {n_alive} | {n_explained} | {100 * killed / n_tried:.0f} |"


def _survivor(module: str, mutant: Mutant, reason: str) -> str:
    return f"- {module}: `{mutant.before}` became `{mutant.after}`: {reason}"


if __name__ == "__main__":
    main()
