"""Compiled code where there is no room to keep it: an installation that is read-only, a full disk."""

import errno
import logging
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location

import numba
import pytest
from numba.core.caching import CacheImpl, IndexDataCacheFile

from hidldl import compiling
from hidldl.recovery import logisticnormal, lookups


def twice(x):
    return 2 * x


def half(x):
    return x / 2


@pytest.fixture
def notes(monkeypatch, caplog):
    """What is said in a process that has said nothing so far."""
    monkeypatch.setattr(compiling, "_noted", set())
    return lambda: [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def test_compiled_code_is_kept_where_there_is_room(notes, monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    assert compiling.can_keep()
    assert compiling.compiled(twice)(2.0) == 4
    again = compiling.compiled(twice)
    assert again(2.0) == 4
    assert sum(again.stats.cache_hits.values()) == 1
    assert notes() == []


def test_without_a_folder_everything_is_compiled_and_said_once(notes, monkeypatch):
    monkeypatch.setattr(CacheImpl, "_locator_classes", [])
    assert not compiling.can_keep()
    for module in (logisticnormal, lookups):  # as they are imported for the first time
        spec = spec_from_file_location(module.__name__, module.__file__)
        spec.loader.exec_module(module_from_spec(spec))
    assert notes() == []
    assert (compiling.compiled(twice)(2.0), compiling.compiled(half)(2.0)) == (4, 1)
    (note,) = notes()
    assert "NUMBA_CACHE_DIR" in note
    assert "\n" not in note


def test_a_full_disk_under_compiled_code_is_no_error_of_the_result(notes, monkeypatch, tmp_path):
    @contextmanager
    def full(self, path):
        raise OSError(errno.ENOSPC, "No space left on device", path)
        yield

    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(IndexDataCacheFile, "_open_for_write", full)
    assert (compiling.compiled(twice)(2.0), compiling.compiled(half)(2.0)) == (4, 1)
    (note,) = notes()
    assert str(tmp_path) in note
    assert "No space left" in note


def test_compiled_code_that_cannot_be_read_is_compiled_again(notes, monkeypatch, tmp_path):
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    compiling.compiled(twice)(2.0)
    for index in tmp_path.rglob("*.nbi"):
        index.write_bytes(b"")
    assert compiling.compiled(twice)(2.0) == 4
