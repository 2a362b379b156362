"""Files changed at random are read, or refused in one line; ``benchmarks/fuzz.py`` goes on for hours."""

import sys

import pytest

from fuzz_targets import TARGETS, case, outcome

N_CASES = {".xlsx": 40, ".to.csv": 40, ".csv.bz2": 25, ".csv.xz": 25, ".fit": 30, ".kill": 2}
"""Fewer where a case takes long: about two seconds per format."""


@pytest.mark.parametrize("name", TARGETS)
def test_no_file_breaks_its_reader(tmp_path, name):
    if name == ".kill" and sys.platform != "linux":
        pytest.skip("a process is copied, which is safe on Linux only")
    target = TARGETS[name]
    kinds = set()
    for number in range(len(target.seeds()), len(target.seeds()) + N_CASES.get(name, 80)):
        folder = tmp_path / str(number)
        folder.mkdir()
        result = outcome(target, case(target, 0, number), folder)
        assert result.kind != "failed", f"--formats {name} --seed 0 --case {number}: {result.reason}"
        kinds.add(result.kind)
    assert kinds
