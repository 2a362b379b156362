"""Files of results that are damaged, or somebody else's."""

import sqlite3
from contextlib import closing

import pytest

from hidldl.errors import StoreError
from hidldl.experiments.store import Store

FOREVER = "CREATE VIEW evaluations AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n"
OTHERS = {
    "another table": ["CREATE TABLE evaluations (a REAL)"],
    "a view without end": [FOREVER],
    "a trigger": ["CREATE TRIGGER t AFTER INSERT ON evaluations BEGIN DELETE FROM evaluations; END"],
}


@pytest.mark.parametrize(
    "content", [b"text, not a database", b"SQLite format 3\x00" + bytes(200)], ids=["text", "head"]
)
def test_what_is_no_database_is_refused_in_one_line(tmp_path, content):
    path = tmp_path / "results.sqlite"
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"^.*results\.sqlite is .*; move it away.*, or name another folder\.$"):
        Store(path)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("other", OTHERS)
def test_a_database_of_something_else_is_refused(tmp_path, other):
    path = tmp_path / "results.sqlite"
    if other == "a trigger":
        Store(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in OTHERS[other]:
            connection.execute(statement)
    with pytest.raises(StoreError, match="is not a store of hidldl's results"):
        Store(path).results()


def test_words_in_the_place_of_numbers_are_refused(tmp_path):
    store = Store(tmp_path / "results.sqlite")
    with closing(sqlite3.connect(store.path)) as connection, connection:
        names = [column[1] for column in connection.execute("PRAGMA table_info(evaluations)")]
        connection.execute(f"INSERT INTO evaluations VALUES ({', '.join(repr(name) for name in names)})")
    with pytest.raises(StoreError, match="is damaged; move it away"):
        store.results()
