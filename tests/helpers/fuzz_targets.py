"""What reads bytes, with good and bad files of each format, and what may come of a file that was changed at random.

``.fit`` and ``.kill`` are files of a number only, from which a fit or a killed program follows. Else a case is one
changed file. It may be read, or refused by a public error in one line, within bounds on time and memory,
and nothing is left behind but the file.
"""

import asyncio
import io
import json
import sqlite3
import tempfile
import time
import traceback
import warnings
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

import fuzz_runs
import hidldl
from hidldl import DatasetUnavailableError, ModelFileError, StoreError, TableError
from malformed import MALFORMED
from mutations import COMPRESSED, mutated, mutated_archive, mutated_json, mutated_within
from table_files import GOOD, arrow, frame, parquet, workbook

PUBLIC = (TableError, ModelFileError, StoreError, DatasetUnavailableError)
MOST_SECONDS = 20.0
MOST_MEGABYTES = 1024
N_GOOD = 7
LARGEST_SEED = 200_000
"""Larger files are tests of their own: to change one takes longer than to read ten others."""
TEXTS = [
    GOOD,
    "\ufeffname;joy;fear\n\ufeffa;0,5;0,5\n\ufeffb;1;\n\ufeffc;0,2;0,8\n",
    "Title\n\nid\tx\ty_a\ty_b\n=1+1\t1\t20 %\t80 %\n@SUM(A1)\t2\t?\t100 %\n-1\t3\t50 %\t50 %\n",
    'é,x,y_a,y_b\n1,2,0.5,0.5\nä,3,0.1,0.9\n"a\nb",4,,1\n',
]


@dataclass(frozen=True)
class Target:
    """A format: the end of its files' names, good files, how they are changed, and what reads them."""

    name: str
    seeds: Callable[[], list[bytes]]
    change: Callable[..., bytes]
    read: Callable[[Path], object]


@dataclass(frozen=True)
class Outcome:
    """What came of a case: "read", the name of a public error, or "failed" with the reason."""

    kind: str
    reason: str = ""


def case(target: Target, seed: int, number: int) -> bytes:
    """The file of a case; the same numbers give the same file."""
    rng = np.random.default_rng([seed, zlib.crc32(target.name.encode()), number])
    seeds = target.seeds()
    if number < len(seeds):
        return seeds[number]
    # Good files come first: what is refused at once leads nowhere.
    content = seeds[rng.integers(N_GOOD if rng.random() < 0.7 and len(seeds) > N_GOOD else len(seeds))]
    with suppress(Exception):  # what is damaged already may not open
        return target.change(content, rng, seeds)
    return mutated(content, rng, seeds)


def outcome(target: Target, content: bytes, folder: Path) -> Outcome:
    """Read a case in an empty folder, and say what came of it."""
    path = folder / f"file{target.name}"
    path.write_bytes(content)
    before, started = _start_memory(), time.process_time()
    tempdir, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            target.read(path)
        result = Outcome("read")
    except PUBLIC as error:
        result = Outcome(type(error).__name__)
        if "\n" in str(error) or len(str(error)) > 1000:
            result = Outcome("failed", f"not one line: {error!r}"[:500])
    except Exception:
        result = Outcome("failed", traceback.format_exc(limit=-4))
    finally:
        tempfile.tempdir = tempdir
    return _within_bounds(result, folder, path, time.process_time() - started, _peak_memory() - before)


def _within_bounds(result: Outcome, folder: Path, path: Path, seconds: float, megabytes: float) -> Outcome:
    left = sorted(other.name for other in folder.iterdir() if other != path)
    path.unlink()
    if left:
        return Outcome("failed", f"left behind: {left}")
    if seconds > MOST_SECONDS or megabytes > MOST_MEGABYTES:
        return Outcome("failed", f"took {seconds:.0f} seconds and {megabytes:.0f} MB")
    return result


def _start_memory() -> float:
    """Forget the peak so far; where that cannot be done, memory is not bounded."""
    with suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")
    return _peak_memory()


def _peak_memory() -> float:
    with suppress(OSError, StopIteration, ValueError):
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024
    return 0.0


def _tables(ending: str) -> list[bytes]:
    """The catalogue of bad files, without those that take long to pack."""
    chosen = {name: bad.build for name, bad in MALFORMED.items() if bad.filename.endswith(ending)}
    if ending not in (".xlsx", ".parquet"):
        chosen = {name: build for name, build in chosen.items() if "bomb" not in name}
    contents = [build() for build in chosen.values() if build is not None]
    return [content for content in contents if 0 < len(content) < LARGEST_SEED]


def _texts() -> list[bytes]:
    encoded = [TEXTS[1].encode("utf-16"), TEXTS[3].encode("cp1252"), GOOD.replace("\n", "\r").encode()]
    return [text.encode() for text in TEXTS] + encoded


@cache
def text_seeds() -> list[bytes]:
    return [*_texts(), *_tables(".csv")]


@cache
def parquet_seeds() -> list[bytes]:
    mixed = arrow(
        id=["a", "b", None, "b"], x=[1, 2, 3, 4], y_a=[0.5, None, 0.1, 1], y_b=[0.5, 1, 0.9, 0], flag=[True, False] * 2
    )
    dated = arrow(when=pd.to_datetime(["2020-01-01", "2021-01-01"]), y_a=[0.5, 0.5], y_b=pd.Categorical(["u", "v"]))
    good = [parquet(table, compression=how) for table in (None, mixed, dated) for how in ("none", "snappy")]
    return [*good, parquet(mixed, compression="none", data_page_version="2.0"), *_tables(".parquet")]


@cache
def workbook_seeds() -> list[bytes]:
    return [workbook(), workbook(lambda sheet: sheet.append(["t", None, 1, True, "=1"])), *_tables(".xlsx")]


def read_table(path: Path) -> None:
    """Whole, in pieces of two sizes, and as the page looks at it."""
    from hidldl.app.overview import overview
    from hidldl.tables.reading import open_table

    if "sheets" in overview(path, path.name):
        return
    with open_table(path) as table:
        whole = table.read(as_text=table.columns[:1])
        for rows in (1, 3):
            pieces = [piece for _, piece in zip(range(50), table.chunks(rows, as_text=table.columns[:1]), strict=False)]
            pd.testing.assert_frame_equal(pd.concat(pieces), whole.head(sum(map(len, pieces))))


def recover_to(path: Path) -> None:
    """From a table to all its results, of which none is there if one is not."""
    out = [path.with_name(name) for name in ("out.csv", "out.html", "out.json")]
    try:
        result = hidldl.recover_table(path, method="meanfill")
        result.write(out[0], report=out[1], model=out[2], safe_csv=True)
        hidldl.load_model(out[2])
        assert all(file.stat().st_size for file in out)
    except PUBLIC:
        raise
    except ValueError as error:
        # Tables of numbers that no method can use: the shell words these in one line too.
        raise TableError(" ".join(str(error).split())) from error
    for file in out:
        file.unlink()


@cache
def _models() -> dict[str, list[bytes]]:
    data = hidldl.make_distributions(n_rows=20, n_features=3, n_labels=3, random_state=0)
    D_obs, observed = hidldl.hide_labels(data.distributions, 0.3, random_state=0)
    given = {"nu": 100, "ridge": 1, "width": 1, "standardize": True, "prior_rows": 1, "n_components": 1}
    bayes = hidldl.BayesHidLDL(**given, random_state=0).fit(data.features, D_obs, observed)
    models: dict[str, list[bytes]] = {".npz": [], ".json": []}
    with tempfile.TemporaryDirectory() as folder:
        table = hidldl.recover_table(frame(), method="meanfill", labels="y_*", hidden="zero")
        for kind, contents in models.items():
            path = Path(folder) / f"model{kind}"
            for model in (bayes, hidldl.MeanFill().fit(data.features, D_obs, observed)):
                hidldl.save_model(path, model, {"words": "of one's own", "array": np.arange(3)})
                contents.append(path.read_bytes())
            table.save_model(path)
            contents.append(path.read_bytes())
    return models


def read_model(path: Path) -> None:
    """As a model, and as the model of a table that predicts another."""
    model, _ = hidldl.load_model(path)
    model.predict(np.zeros((2, model.n_features_in_)))
    _ = hidldl.predict_table(frame(), path).frame


def read_dataset(path: Path) -> None:
    """A published file that is not as published; nothing in it is read before that is known."""
    from hidldl.datasets import files
    from hidldl.datasets.registry import FILES

    entry = next(iter(FILES.values()))
    named = path.with_name(entry.file)
    named.write_bytes(path.read_bytes())
    folders, files.search_folders = files.search_folders, lambda: [path.parent]
    try:
        hidldl.load_dataset(entry.name)
    finally:
        files.search_folders = folders
        named.unlink()


@cache
def dataset_seeds() -> list[bytes]:
    from scipy.io import savemat

    buffer = io.BytesIO()
    savemat(buffer, {"features": np.eye(3), "labels": np.eye(3)})
    return [buffer.getvalue()]


@cache
def store_seeds() -> list[bytes]:
    from hidldl.experiments.store import Store

    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "results.sqlite")
        with closing(sqlite3.connect(store.path)) as connection, connection:
            names = [column[1] for column in connection.execute("PRAGMA table_info(evaluations)")]
            for i in range(40):
                row = [f"{name} {i}" if name in ("key", "method") else i / 7 for name in names]
                connection.execute(f"INSERT INTO evaluations VALUES ({', '.join('?' * len(row))})", row)
        with closing(sqlite3.connect(store.path)) as connection:
            connection.execute("PRAGMA journal_mode = DELETE")
        return [store.path.read_bytes()]


def read_store(path: Path) -> None:
    from hidldl.experiments.store import Store

    try:
        store = Store(path)
        store.results()
        store.finished_keys(retry_failed=True)
    finally:
        for ending in ("-wal", "-shm", "-journal"):
            path.with_name(path.name + ending).unlink(missing_ok=True)


REQUESTS = [
    {"method": "POST", "path": "/jobs", "query": "name=faces.csv", "headers": {"content-length": "3"}, "body": "a,b"},
    {"method": "POST", "path": "/jobs/ID/run", "query": "", "headers": {}, "body": json.dumps(
        {"roles": ["feature", "label", "label"], "method": "bayes", "hidden": "auto", "intervals": True})},
    {"method": "POST", "path": "/jobs/ID/model", "query": "name=m.npz", "headers": {}, "body": "PK"},
    {"method": "POST", "path": "/jobs/ID/predict", "query": "", "headers": {}, "body": '{"amounts": true}'},
    {"method": "POST", "path": "/jobs/ID/sheet", "query": "name=Sheet1", "headers": {}, "body": ""},
    {"method": "GET", "path": "/jobs/ID", "query": "overview", "headers": {"host": "localhost"}, "body": ""},
    {"method": "GET", "path": "/jobs/ID/files/csv", "query": "", "headers": {"range": "bytes=0-9"}, "body": ""},
    {"method": "POST", "path": "/jobs/ID/cancel", "query": "", "headers": {"origin": "http://x"}, "body": ""},
]  # fmt: skip
COLUMNS = [{"name": name, "role": role, "why": ""} for name, role in [("x", "feature"), ("a", "label"), ("b", "label")]]


def answer_request(path: Path) -> None:
    """A request to the page's server, whose work is done by nobody; an answer below 500 is expected."""
    try:
        request = json.loads(path.read_bytes())
        headers = {**{"host": "127.0.0.1"}, **request["headers"]}
        pairs = [(str(k).lower().encode("latin-1"), str(v).encode("latin-1")) for k, v in headers.items()]
        texts = [str(request[key]) for key in ("method", "path", "query", "body")]
        method, place, query, body = (text.encode("utf-8", "surrogatepass") for text in texts)
        method.decode("ascii")
    except (ValueError, KeyError, TypeError, AttributeError):
        return  # no server would pass it on
    status = asyncio.run(status_of(method.decode(), place.decode("utf-8", "replace"), query, pairs, body))
    if status >= 500 and status != 503:
        raise AssertionError(f"the server answers {status}")


async def status_of(method: str, place: str, query: bytes, headers: list, body: bytes) -> int:
    """The status of the server's answer; ID in the place is that of a table that has been read."""
    from hidldl.app import server
    from hidldl.app.jobs import Job, Jobs

    async def run(job, action, more, seconds=None):
        return ({}, "Nobody works here.")

    answers: list[int] = []
    pieces = [body[: len(body) // 2], body[len(body) // 2 :]]

    async def receive():
        if not pieces:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": pieces.pop(0), "more_body": bool(pieces)}

    async def send(message):
        if message["type"] == "http.response.start":
            answers.append(message["status"])

    jobs, old = Jobs(most_bytes=10**6), Job._run
    Job._run = run
    try:
        jobs.begin()
        job = jobs.new("faces.csv")
        job.overview, job.state, job.table = (
            {"columns": COLUMNS, "problem": None, "n_rows": 3},
            "ready",
            job.folder / "t.csv",
        )
        requests = server._Requests(jobs, 1)
        app = server.Starlette(
            routes=requests.routes(),
            middleware=[server.Middleware(server.Guard, host="127.0.0.1")],
            exception_handlers={server.HTTPException: server._error_response},
        )
        scope = {"type": "http", "http_version": "1.1", "method": method, "path": place.replace("ID", job.id)}
        scope |= {"raw_path": place.encode(), "query_string": query, "headers": headers, "scheme": "http"}
        scope |= {"server": ("127.0.0.1", 80), "client": ("127.0.0.1", 9), "root_path": ""}
        await app(scope, receive, send)
        return answers[0]
    finally:
        await jobs.forget_all()
        Job._run = old


def _compressed(ending: str) -> Target:
    pack, unpack = COMPRESSED[ending]
    seeds = cache(lambda: [*map(pack, _texts()), *_tables(f".csv{ending}")])
    return Target(f".csv{ending}", seeds, mutated_within(pack, unpack), read_table)


TARGETS = {
    target.name: target
    for target in (
        Target(".csv", text_seeds, mutated, read_table),
        Target(".tsv", lambda: [text.replace(b",", b"\t") for text in text_seeds()], mutated, read_table),
        *map(_compressed, COMPRESSED),
        Target(".xlsx", workbook_seeds, mutated_archive, read_table),
        Target(".parquet", parquet_seeds, mutated, read_table),
        Target(".to.csv", text_seeds, mutated, recover_to),
        Target(".npz", lambda: _models()[".npz"], mutated_archive, read_model),
        Target(".json", lambda: _models()[".json"], mutated_json, read_model),
        Target(".mat", dataset_seeds, mutated, read_dataset),
        Target(".sqlite", store_seeds, mutated, read_store),
        Target(".request", lambda: [json.dumps(each).encode() for each in REQUESTS], mutated_json, answer_request),
        Target(".fit", lambda: fuzz_runs.SEEDS, fuzz_runs.drawn_seed, fuzz_runs.fit_once),
        Target(".kill", lambda: fuzz_runs.SEEDS, fuzz_runs.drawn_seed, fuzz_runs.kill_once),
    )
}
