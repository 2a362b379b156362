"""The folders of servers: none is left of one that has died, and none is taken from one that lives."""

import os
import tempfile

import pytest

from hidldl.app import jobs
from hidldl.app.folders import ServerFolder


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The folder for temporary files."""
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(here))
    return here


def left_behind(folder):
    """As a killed server leaves it."""
    (folder / "table-1").mkdir(parents=True)
    (folder / "table-1" / "table.csv").write_text("a secret")
    (folder / "lock").touch()
    return folder


def test_the_folder_of_a_dead_server_is_removed_and_that_of_a_live_one_stays(here):
    dead = left_behind(here / "hidldl-app-dead")
    live = ServerFolder()
    assert not dead.exists()
    table = live.new() / "table.csv"
    table.touch()
    other = ServerFolder()
    assert table.exists()
    live.remove()
    live.remove()  # it ends in order, and then for good
    assert list(here.iterdir()) == [other.path]
    other.remove()
    assert list(here.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "symlink"), reason="links need POSIX")
def test_links_are_not_followed(here, tmp_path):
    elsewhere = left_behind(tmp_path / "elsewhere")
    (here / "hidldl-app-link").symlink_to(elsewhere)
    dead = left_behind(here / "hidldl-app-dead")
    (dead / "table-1" / "link").symlink_to(elsewhere)
    with_link = left_behind(here / "hidldl-app-with-a-link-for-a-lock")
    (with_link / "lock").unlink()
    (with_link / "lock").symlink_to(elsewhere / "lock")
    ServerFolder().remove()
    assert (elsewhere / "table-1" / "table.csv").read_text() == "a secret"
    assert not dead.exists()
    assert with_link.exists()


def test_a_folder_that_no_server_holds_yet_stays(here):
    new = here / "hidldl-app-new"
    new.mkdir()
    ServerFolder().remove()
    assert new.exists()


def test_folders_of_others_stay(here, monkeypatch):
    theirs = left_behind(here / "hidldl-app-theirs")
    monkeypatch.setattr(os, "getuid", lambda: theirs.stat().st_uid + 1, raising=False)
    ServerFolder().remove()
    assert theirs.exists()


def test_compiled_code_is_kept_among_the_tables_where_there_is_no_other_room(here, monkeypatch):
    for can_keep, names in ((True, set()), (False, {"NUMBA_CACHE_DIR"})):
        monkeypatch.setattr(jobs, "can_keep", lambda can=can_keep: can)
        server = jobs.Jobs(most_bytes=1000)
        server.begin()
        environment = server.new("a.csv").environment
        assert environment.keys() == names
        assert all(folder.startswith(str(here)) for folder in environment.values())
        assert server.end() is None
