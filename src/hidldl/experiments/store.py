"""Where results are kept: an SQLite file with one row per evaluation.

SQLite, because a row must be there whole or not at all, whatever kills the process, and because several processes, of
one run or of two, write to the same file: both are what its transactions are for. Parquet would need a file per row
for that, or a rewrite per row.
"""

import json
import platform
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from hidldl.errors import StoreError
from hidldl.experiments.protocol import Evaluation, Experiment
from hidldl.metrics import MEASURES
from hidldl.replacing import naming

_SCHEMA = """
CREATE TABLE IF NOT EXISTS evaluations (
    key TEXT PRIMARY KEY,
    setting TEXT NOT NULL, dataset TEXT NOT NULL, rate REAL NOT NULL, repetition INTEGER NOT NULL,
    method TEXT NOT NULL, description TEXT NOT NULL, seed INTEGER NOT NULL,
    status TEXT NOT NULL,
    {measures},
    alpha REAL, iterations INTEGER, converged INTEGER, seconds REAL, peak_memory_mb REAL,
    traceback TEXT, versions TEXT NOT NULL, machine TEXT NOT NULL, finished TEXT NOT NULL
) WITHOUT ROWID
""".format(measures=", ".join(f"{name} REAL" for name in MEASURES))
_LATER_COLUMNS = ("shares_held", "masses_held")
"""Numbers that files of older versions do not have."""
_OLD_NAMES = {"degrees_held": "shares_held"}
"""Columns that files of older versions have under other names."""
_NUMERIC = (*MEASURES, "alpha", "iterations", "seconds", "peak_memory_mb", *_LATER_COLUMNS)
_WORDS = ("key", "setting", "dataset", "method", "status")
_TYPES: dict[Any, Any] = {
    **dict.fromkeys(_NUMERIC, float),
    **dict.fromkeys(_WORDS, str),
    "rate": float,
    "repetition": int,
}
_FIRST_COLUMNS = {*_TYPES, "converged", "versions"} - set(_LATER_COLUMNS)
_PATIENCE_S = 120
_FOREIGN = "is not a store of hidldl's results; move it away, or name another folder"
_PROBLEMS = {
    sqlite3.SQLITE_BUSY: "is locked by another program; wait until that is done, or name another folder",
    sqlite3.SQLITE_LOCKED: "is locked by another program; wait until that is done, or name another folder",
    sqlite3.SQLITE_FULL: "cannot be written: the disk is full; free some space and run the same again",
    sqlite3.SQLITE_CORRUPT: "is damaged; move it away to begin again, or name another folder",
    sqlite3.SQLITE_NOTADB: _FOREIGN,
    sqlite3.SQLITE_ERROR: _FOREIGN,  # a table or a column is missing
}
"""What the user can do about SQLite's errors."""


@dataclass(frozen=True)
class Result:
    """What came out of an evaluation; ``failed`` with its traceback where the method raised.

    ``shares_held`` and ``masses_held``: how many of the hidden shares and of the hidden masses are in their intervals.
    """

    status: Literal["done", "failed"]
    scores: dict[str, float]
    alpha: float | None = None
    iterations: int | None = None
    converged: bool | None = None
    seconds: float | None = None
    peak_memory_mb: float | None = None
    shares_held: float | None = None
    masses_held: float | None = None
    traceback: str | None = None


class Store:
    """Results in a file, safe against interruption and against other writers."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        with naming(self.path.parent):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._transaction() as connection:
            connection.execute("BEGIN IMMEDIATE")  # another process may be opening the same file
            tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if tables and "evaluations" not in tables:
                raise StoreError(f"{self.path} {_FOREIGN}.")
            connection.execute(_SCHEMA)
            present = {column[1] for column in connection.execute("PRAGMA table_info(evaluations)")}
            others = connection.execute("SELECT 1 FROM sqlite_master WHERE type IN ('view', 'trigger')").fetchall()
            # A view can run any query for any time.
            if others or not present.issuperset(_FIRST_COLUMNS):
                raise StoreError(f"{self.path} {_FOREIGN}.")
            _add_later_columns(connection, present)

    def record(self, evaluation: Evaluation, result: Result, key: str | None = None) -> None:
        """Write the row of an evaluation, all of it or nothing.

        Another process may not see the code that decides the key; ``key`` is the one from where the work was planned.
        """
        condition = evaluation.condition
        row: dict[str, Any] = {
            "key": key or evaluation.key,
            "setting": condition.setting,
            "dataset": condition.dataset,
            "rate": condition.rate,
            "repetition": condition.repetition,
            "method": evaluation.contender.title,
            "description": json.dumps(evaluation.contender.description()),
            "seed": condition.seed,
            "status": result.status,
            **{name: result.scores.get(name) for name in MEASURES},
            "alpha": result.alpha,
            "iterations": result.iterations,
            "converged": result.converged,
            "seconds": result.seconds,
            "peak_memory_mb": result.peak_memory_mb,
            "shares_held": result.shares_held,
            "masses_held": result.masses_held,
            "traceback": result.traceback,
            "versions": json.dumps(_versions()),
            "machine": f"{platform.system()} {platform.machine()}",
            "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        names, marks = ", ".join(row), ", ".join(f":{name}" for name in row)
        with self._transaction() as connection:
            connection.execute(f"INSERT OR REPLACE INTO evaluations ({names}) VALUES ({marks})", row)

    def finished_keys(self, *, retry_failed: bool = False) -> set[str]:
        """Keys of the evaluations that need not be run again."""
        condition = "WHERE status = 'done'" if retry_failed else ""
        with self._transaction() as connection:
            return {key for (key,) in connection.execute(f"SELECT key FROM evaluations {condition}")}

    def results(self, experiments: Iterable[Experiment] | None = None) -> pd.DataFrame:
        """One row per finished evaluation, of these experiments with the code as it is now, or all there are.

        The column ``method`` has the titles that these experiments give to their contenders.
        """
        with self._transaction() as connection:
            rows = connection.execute("SELECT * FROM evaluations")
            names = [column[0] for column in rows.description]
            frame = pd.DataFrame.from_records(rows.fetchall(), columns=names, coerce_float=True)
            # A column that is empty so far has no type of its own, and in a damaged file one may have any.
            frame = frame.astype(_TYPES)
        if experiments is not None:
            titles = {e.key: e.contender.title for experiment in experiments for e in experiment.evaluations()}
            frame = frame[frame["key"].isin(titles)]
            frame = frame.assign(method=frame["key"].map(titles))
        return frame.sort_values(["setting", "dataset", "rate", "repetition", "method"], ignore_index=True)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(sqlite3.connect(self.path, timeout=_PATIENCE_S)) as connection, connection:
                # Readers and a writer do not block each other, and a row survives a crash of the process.
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("PRAGMA trusted_schema = OFF")
                yield connection
        except sqlite3.Error as error:
            problem = _PROBLEMS.get(getattr(error, "sqlite_errorcode", -1) & 0xFF)
            raise StoreError(f"{self.path} {problem or f'cannot be used: {error}; name another folder'}.") from error
        except (ValueError, TypeError, OverflowError) as error:
            raise StoreError(f"{self.path} {_PROBLEMS[sqlite3.SQLITE_CORRUPT]}.") from error


def _add_later_columns(connection: sqlite3.Connection, present: set[str]) -> None:
    """Bring the table of an older version up to date."""
    for old, new in _OLD_NAMES.items():
        if old in present and new not in present:
            connection.execute(f"ALTER TABLE evaluations RENAME COLUMN {old} TO {new}")
            present = present - {old} | {new}
    for name in _LATER_COLUMNS:
        if name not in present:
            connection.execute(f"ALTER TABLE evaluations ADD COLUMN {name} REAL")


def _versions() -> dict[str, str]:
    packages = ("hidldl", "numpy", "scipy", "scikit-learn", "pandas")
    return {"python": platform.python_version(), **{package: version(package) for package in packages}}
