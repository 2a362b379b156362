"""The requests of the page: what they give, and to whom they give nothing."""

import asyncio
import io
import re
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import requests

from fuzz_targets import status_of
from hidldl import predict_table, recover_table
from hidldl.app import arriving, jobs
from hidldl.app.options import options_of
from hidldl.app.server import _file, make_app
from hidldl.app.words import WORDS
from hidldl.cli import terminal
from hidldl.errors import PYTHON_WORDS
from malformed import MALFORMED
from serving import served
from table_files import GOOD
from warm import warm  # noqa: F401  fixture


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """The folders of the server's jobs."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return lambda: sorted(tmp_path.glob("hidldl-app-*/table-*"))


class Client:
    """What a browser on the server's computer can ask."""

    def __init__(self, address):
        self.address = address
        self.session = requests.Session()

    def get(self, path, **more):
        return self.session.get(self.address + path, timeout=30, **more)

    def post(self, path, content=None, **more):
        return self.session.post(self.address + path, data=content, timeout=30, **more)


@contextmanager
def client_of(app):
    with served(app) as address:
        client = Client(address)
        yield client
        client.session.close()


@pytest.fixture
def cold_client(folders):
    """With the program that users start."""
    with client_of(make_app(most_megabytes=1)) as client:
        yield client
    assert list(Path(tempfile.gettempdir()).glob("hidldl-app-*")) == []


@pytest.fixture
def client(warm, cold_client, monkeypatch):  # noqa: F811
    monkeypatch.setattr(jobs, "sys", warm)
    return cold_client


@pytest.fixture
def table(hidden):
    """60 rows with names that look like numbers, a feature with a comma in its name, and gaps."""
    names = pd.Index([f"{i:03d}" for i in range(60)], name="name")
    X = pd.DataFrame(hidden.X, index=names, columns=["size, in mm", "x..y", "x*", "x"])
    D = pd.DataFrame(hidden.D_obs, index=names, columns=list("abcde")).where(hidden.observed)
    return X.join(D)


def hand_in(client, content, name="faces.csv"):
    answer = client.post("/jobs", params={"name": name}, content=content)
    assert answer.status_code == 201, answer.text
    return answer.json()["id"]


def settled(client, job, leaving):
    """The job's state once it has left the one given."""
    for _ in range(600):
        state = client.get(f"/jobs/{job}?overview").json()
        if state["state"] != leaving:
            return state
        time.sleep(0.05)
    raise AssertionError(state)


def run(client, job, **wanted):
    overview = settled(client, job, "reading")["overview"]
    wanted = {"roles": [column["role"] for column in overview["columns"]], "method": "meanfill", **wanted}
    answer = client.post(f"/jobs/{job}/run", json=wanted)
    assert answer.status_code == 202, answer.text
    return settled(client, job, "running")


def downloaded(client, job, which):
    answer = client.get(f"/jobs/{job}/files/{which}")
    assert answer.status_code == 200, answer.text
    return answer


def test_from_table_to_files(cold_client, table, hidden):
    client = cold_client
    job = hand_in(client, table.to_csv())
    state = settled(client, job, "reading")
    roles = {column["name"]: column["role"] for column in state["overview"]["columns"]}
    assert roles == {"name": "id"} | dict.fromkeys(table.columns[:4], "feature") | dict.fromkeys("abcde", "label")
    assert state["overview"]["first_rows"][0][0] == "000"
    # One awkward name is left out, so that the others must be passed on exactly.
    roles["x..y"] = "out"
    state = run(client, job, roles=list(roles.values()))
    assert (state["state"], state["problem"]) == ("done", "")
    answer = downloaded(client, job, "csv")
    assert answer.headers["content-disposition"].startswith("attachment; filename*=utf-8''faces%20recovered.csv")
    recovered = pd.read_csv(io.StringIO(answer.text), dtype={"name": str}).set_index("name")
    assert list(recovered.index) == list(table.index)
    D = recovered[list("abcde")].to_numpy()
    np.testing.assert_allclose(D.sum(axis=1), 1)
    mass = recovered["hidden_mass"].to_numpy()[:, None]
    np.testing.assert_allclose(np.where(hidden.observed, D, 0), hidden.D_obs * (1 - mass), atol=2e-6)  # six digits
    sheet = pd.read_excel(io.BytesIO(downloaded(client, job, "xlsx").content), dtype={"name": str})
    pd.testing.assert_frame_equal(sheet.set_index("name"), recovered)
    assert downloaded(client, job, "model").content.startswith(b"PK")
    report = client.get(f"/jobs/{job}/report")
    assert "What was hidden in faces.csv" in report.text
    assert "x..y" not in report.text
    assert "sandbox allow-scripts" in report.headers["content-security-policy"]
    # What one page has, another does not see.
    theirs = hand_in(client, table.to_csv())
    assert min(len(job), len(theirs)) >= 32
    for which in ("csv", "report", "../" + job, "table.csv", "%2e%2e%2f" + job):
        assert client.get(f"/jobs/{theirs}/files/{which}").status_code == 404, which
    client.post(f"/jobs/{theirs}/forget")
    assert downloaded(client, job, "csv").text == answer.text
    for body in (b"not json", b"[" * 100_000, b"\xff"):
        refused = client.post(f"/jobs/{job}/run", content=body)
        assert (refused.status_code, list(refused.json())) == (400, ["problem"])


@pytest.fixture
def model(table, tmp_path_factory):
    """The model of the table, as its bytes."""
    path = tmp_path_factory.mktemp("model") / "m.npz"
    recover_table(table, method="meanfill").save_model(path)
    return path.read_bytes()


def hand_in_model(client, job, content, name="my model.npz"):
    assert settled(client, job, "reading")["state"] == "ready"
    answer = client.post(f"/jobs/{job}/model", params={"name": name}, content=content)
    assert answer.status_code == 202, answer.text
    return settled(client, job, "reading")


def test_from_model_and_table_to_predictions(client, table, model, tmp_path):
    new = table[["x", "x*", "x..y", "size, in mm", "b"]].iloc[:20]
    job = hand_in(client, new.to_csv(), "new.csv")
    assert client.post(f"/jobs/{job}/predict", json={}).status_code == 409  # there is no model yet
    state = hand_in_model(client, job, model)
    assert (state["state"], state["problem"]) == ("ready", "")
    assert state["model"]["labels"] == list("abcde")
    assert sorted(state["model"]["features"]) == sorted(table.columns[:4])
    assert (state["model"]["method"], state["model"]["has_intervals"]) == ("MeanFill", False)
    assert "labels in 1 of 5 columns are used" in state["model"]["notes"][0]
    assert client.post(f"/jobs/{job}/predict", json={}).status_code == 202
    state = settled(client, job, "running")
    assert re.search(r"its labels sum to .*choose “amounts, to divide by their sums”", state["problem"])
    assert client.post(f"/jobs/{job}/predict", json={"amounts": True}).status_code == 202
    state = settled(client, job, "running")
    assert (state["state"], state["files"]) == ("done", ["csv", "xlsx", "report"])
    answer = downloaded(client, job, "csv")
    assert "filename*=utf-8''new%20predicted.csv" in answer.headers["content-disposition"]
    (tmp_path / "m.npz").write_bytes(model)
    (tmp_path / "new.csv").write_text(new.to_csv())
    predict_table(tmp_path / "new.csv", tmp_path / "m.npz", normalise=True).write(tmp_path / "out.csv")
    assert answer.content == (tmp_path / "out.csv").read_bytes()
    assert pd.read_excel(io.BytesIO(downloaded(client, job, "xlsx").content)).shape == (20, 11)
    assert "new.csv" in client.get(f"/jobs/{job}/report").text
    # It can be done again, with other settings, and what cannot be done is said.
    assert client.post(f"/jobs/{job}/predict", json={"intervals": True}).status_code == 202
    state = settled(client, job, "running")
    assert (state["state"], state["problem"]) == ("ready", "MeanFill has no intervals; leave out the intervals.")
    assert client.post(f"/jobs/{job}/predict", json=[]).status_code == 422


def test_the_model_of_a_recovery_predicts(client, folders, table):
    job = hand_in(client, table.to_csv())
    run(client, job)
    content = downloaded(client, job, "model").content
    client.post(f"/jobs/{job}/forget")
    job = hand_in(client, table.iloc[:, :4].to_csv(), "new.csv")
    assert hand_in_model(client, job, content)["problem"] == ""
    assert sorted(path.name for path in folders()[0].iterdir()) == ["given.npz", "table.csv"]


def a_pickle():
    array = np.array([{"not": "numbers"}], dtype=object)
    file = io.BytesIO()
    np.savez(file, tree=array)
    return file.getvalue()


WRONG_MODELS = {
    "a pickle": ("m.npz", a_pickle(), r"^m\.npz is not a model that hidldl saved.*download its model\.$"),
    "text": ("m.json", b"{}", r"^m\.json is not a model that hidldl saved"),
    "nothing": ("m.npz", b"", r"^m\.npz is not a model that hidldl saved"),
    "in capitals": ("M.NPZ", b"PK", r"^M\.NPZ is not a model that hidldl saved"),
}


@pytest.mark.parametrize("name", WRONG_MODELS)
def test_what_is_no_model_ends_in_a_readable_message(client, name):
    called, content, says = WRONG_MODELS[name]
    job = hand_in(client, "x,a,b\n1,0.5,0.5\n")
    state = hand_in_model(client, job, content, called)
    assert (state["state"], state["model"]) == ("ready", None)
    assert re.search(says, state["problem"])
    assert not re.search("Traceback|--|save_model", state["problem"])
    assert client.post(f"/jobs/{job}/predict", json={}).status_code == 409


def test_models_that_are_not_taken(client, folders, table, model):
    job = hand_in(client, table.to_csv())
    early = client.post(f"/jobs/{job}/model?name=m.npz", content=model)
    assert early.status_code == 409 or settled(client, job, "reading")["model"] is not None
    settled(client, job, "reading")
    answer = client.post(f"/jobs/{job}/model?name=../m.pkl", content=b"cos\nsystem")
    assert answer.status_code == 422
    assert answer.json()["problem"] == "m.pkl is not a model; choose a file that was downloaded as “Model”."
    pieces = [b"0" * 100_000] * 11
    for content in (b"".join(pieces), iter(pieces)):
        answer = client.post(f"/jobs/{job}/model?name=m.npz", content=content)
        assert (answer.status_code, "model has more than 1 megabytes" in answer.json()["problem"]) == (413, True)
    state = hand_in_model(client, job, model, "m.npz")
    assert state["problem"] == ""
    other = hand_in(client, table.drop(columns="x..y").to_csv(), "other.csv")
    state = hand_in_model(client, other, model)
    assert "other.csv has no column 'x..y', which the model needs" in state["problem"]


def test_nothing_is_left_of_a_forgotten_table(client, folders, table):
    job = hand_in(client, table.to_csv())
    assert len(folders()) == 1
    assert client.post(f"/jobs/{job}/forget").status_code == 200  # while it is being read
    assert folders() == []
    assert client.get(f"/jobs/{job}").status_code == 404


def test_a_silent_page_is_forgotten(folders, table):
    with client_of(make_app(idle_seconds=0.2)) as client:
        hand_in(client, table.to_csv())
        deadline = time.monotonic() + 10
        while folders() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert folders() == []


def test_cancelling_ends_the_run_and_keeps_the_table_and_the_next_in_line_moves_up(cold_client, folders, table):
    client = cold_client
    job = hand_in(client, pd.concat([table.reset_index(drop=True)] * 40).to_csv(index=False))
    second, third = hand_in(client, table.to_csv()), hand_in(client, table.to_csv())
    for one in (job, second, third):
        assert settled(client, one, "reading")["state"] == "ready"
    wanted = {"roles": [*["feature"] * 4, *["label"] * 5], "method": "hidldl"}
    assert client.post(f"/jobs/{job}/run", json=wanted).status_code == 202
    others = {"roles": ["id", *wanted["roles"]], "method": "meanfill"}
    for place, one in enumerate((second, third), start=1):
        assert client.post(f"/jobs/{one}/run", json=others).status_code == 202
        state = client.get(f"/jobs/{one}").json()
        assert (state["state"], state["place"]) == ("running", place)
        assert f"in line, place {place}" in state["what"]
    for one in (second, job):  # one that waits, and one that is being worked on
        began = time.monotonic()
        client.post(f"/jobs/{one}/cancel")
        assert time.monotonic() - began < 5
        state = client.get(f"/jobs/{one}").json()
        assert (state["state"], state["cancelled"]) == ("ready", True)
    assert client.get(f"/jobs/{third}").json()["place"] == 0
    assert settled(client, third, "running")["state"] == "done"
    client.post(f"/jobs/{third}/forget")
    assert sorted(path.name for folder in folders() for path in folder.iterdir()) == ["table.csv", "table.csv"]
    assert client.get(f"/jobs/{job}/files/csv").status_code == 404


@pytest.mark.parametrize("announced", [True, False])
def test_a_table_above_the_limit_is_not_taken(client, folders, announced):
    pieces = [b"0" * 100_000] * 11
    answer = client.post("/jobs?name=large.csv", content=b"".join(pieces) if announced else iter(pieces))
    assert answer.status_code == 413
    assert "more than 1 megabytes" in answer.json()["problem"]
    assert folders() == []


def test_names_are_shown_but_never_used(client, folders):
    called = {
        "../../etc/passwd.csv": "passwd.csv",
        "C:\\temp\\faces.csv": "faces.csv",
        "--report=x.csv": "--report=x.csv",
        "a\x00b\n<script>.csv": "ab<script>.csv",
        "größe 😀.csv": "größe 😀.csv",
    }
    jobs = {name: hand_in(client, "x,a,b\n1,0.5,0.5\n", name) for name in called}
    for folder in folders():
        assert [path.name for path in folder.iterdir()] == ["table.csv"]
    assert {name: client.get(f"/jobs/{job}").json()["name"] for name, job in jobs.items()} == called
    like_an_option = jobs.pop("--report=x.csv")
    for job in jobs.values():
        client.post(f"/jobs/{job}/forget")
    assert settled(client, like_an_option, "reading")["state"] == "ready"


def test_only_the_page_itself_is_served(client):
    for host in ("evil.example", "evil.example:8765", "127.0.0.1.evil.example", "[::1", ""):
        assert client.get("/", headers={"host": host}).status_code == 403, host
    for host in ("localhost:8765", "[::1]:8765", "127.0.0.1"):
        assert client.get("/", headers={"host": host}).status_code == 200, host
    foreign = ({"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"},
               {"sec-fetch-site": "same-site"}, {"origin": "http://127.0.0.1:9999"})  # fmt: skip
    for headers in foreign:
        assert client.post("/sample", headers=headers).status_code == 403, headers
    page = client.get("/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert page.headers["cache-control"] == "no-store"
    assert not re.findall(r"(?:src|href)=[\"']?https?:", page.text)


def test_a_server_for_the_network_goes_by_its_addresses(folders):
    with client_of(make_app("0.0.0.0")) as client:
        assert client.get("/", headers={"host": "192.168.1.5:8765"}).status_code == 200
        assert client.get("/", headers={"host": "evil.example"}).status_code == 403


@pytest.mark.parametrize("path", ["/jobs/abc", "/jobs/abc/files/csv", "/jobs/abc/report", "/jobs/..%2f..%2fetc", "/x"])
def test_unknown_ids_are_not_found(client, path):
    answer = client.get(path)
    assert answer.status_code == 404
    assert answer.json()["problem"]


def test_bytes_that_are_no_address_are_refused():
    """Which requests cannot send; a slash at the end makes the framework decode them."""
    place, headers = "/jobs/ID/run/", [(b"host", b"127.0.0.1")]
    assert asyncio.run(status_of("GET", place, b"\xed\xa0\x80", headers, b"")) == 403
    assert asyncio.run(status_of("GET", place, b"a=%ed%a0%80", headers, b"")) < 500


def test_there_is_room_for_twenty_tables_and_a_limit(cold_client, monkeypatch):
    client = cold_client
    handed_in = [hand_in(client, "x,a,b\n") for _ in range(20)]
    state = client.get(f"/jobs/{handed_in[-1]}").json()
    assert (state["state"], "in line, place" in state["what"]) == ("reading", True)
    for limit, value in (("MOST_JOBS", 20), ("MOST_LARGE", 0)):
        with monkeypatch.context() as patch:
            patch.setattr(jobs, limit, value)
            answer = client.post("/jobs?name=faces.csv", content="x,a,b\n")
        assert (answer.status_code, "close one" in answer.json()["problem"]) == (503, True)


def test_stalled_requests_are_dropped_and_block_nobody(client, folders, monkeypatch):
    monkeypatch.setattr(arriving, "STALL_SECONDS", 0.5)
    host, port = client.address.removeprefix("http://").split(":")
    head = f"POST /jobs?name=a.csv HTTP/1.1\r\nhost: {host}:{port}\r\ncontent-length: 1000\r\n\r\nx,a,b\n"
    stalled = [socket.create_connection((host, port), timeout=10) for _ in range(10)]
    for connection in stalled:
        connection.sendall(head.encode())
    job = hand_in(client, "x,a,b\n")
    for connection in stalled:
        with connection, connection.makefile("rb") as answer:
            assert answer.readline().split()[1] == b"408"
            assert b"hand it in again" in answer.read()
    client.post(f"/jobs/{job}/forget")
    assert folders() == []


def test_who_sends_a_byte_now_and_then_is_too_slow(monkeypatch):
    monkeypatch.setattr(arriving, "STALL_SECONDS", 0.1)

    async def pieces(wait):
        for _ in range(8):
            await asyncio.sleep(wait)
            yield b"0"

    async def taken(wait, most_bytes=10):
        return b"".join([piece async for piece in arriving.arriving(pieces(wait), most_bytes)])

    assert asyncio.run(taken(0)) == b"0" * 8
    with pytest.raises(arriving.TooSlowError):
        asyncio.run(taken(0.05))
    with pytest.raises(arriving.TooLargeError):
        asyncio.run(taken(0, most_bytes=7))


def test_a_download_goes_on_while_its_file_is_replaced(tmp_path):
    path = tmp_path / "recovered.csv"
    path.write_bytes(b"before")
    answer = _file(path, "text/csv", {})
    path.unlink()
    path.write_bytes(b"after that")

    async def body():
        return b"".join([piece async for piece in answer.body_iterator])

    assert (asyncio.run(body()), answer.headers["content-length"]) == (b"before", "6")


SOME_MALFORMED = [
    "empty", "row too short", "two encodings", "PDF", "web page", "no header",
    "workbook with a title above numbers",
    "workbook with entities", "no labels",
]  # fmt: skip


def test_malformed_tables_end_in_a_readable_message(client, tmp_path):
    for some in (SOME_MALFORMED[:5], SOME_MALFORMED[5:]):
        handed_in = {}
        for name in some:
            path = MALFORMED[name].write(tmp_path)
            handed_in[name] = hand_in(client, path.read_bytes(), path.name)
        for name, job in handed_in.items():
            state = settled(client, job, "reading")
            said = state["problem"] or state["overview"]["problem"]
            assert re.search(MALFORMED[name].says, said), (name, said)
            assert "table." in said, said
            assert not re.search("Traceback|--|should not", said), said
            client.post(f"/jobs/{job}/forget")


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_a_computation_that_is_killed_is_said(folders, tmp_path, monkeypatch):
    killed = tmp_path / "killed"
    killed.write_text("#!/bin/sh\nkill -9 $$\n")
    killed.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(killed))

    async def ask():
        own = jobs.Jobs(most_bytes=10**6)
        own.begin()
        try:
            job = own.new("faces.csv")
            job.table = job.folder / "table.csv"
            return await job._answer("look", {}, None)
        finally:
            await own.forget_all()

    why = "The computation was ended from outside, perhaps because it needed more memory than there is."
    assert asyncio.run(ask()) == ({}, why)


def test_a_look_ends_in_time(cold_client, monkeypatch):
    monkeypatch.setattr(jobs, "LOOK_SECONDS", 0.01)
    state = settled(cold_client, hand_in(cold_client, GOOD.encode()), "reading")
    assert state["problem"] == "This file takes longer than 0.01 seconds to read; use the command hidldl recover."


@pytest.mark.skipif(sys.platform != "linux", reason="limits on memory need Linux")
def test_a_look_is_limited_in_memory_and_files(tmp_path):
    """In a process of its own, since limits stay."""
    program = (
        "from hidldl.app import work\n"
        "work.MOST_MEMORY, work.MOST_FILE_BYTES = 2**30, 10**6\n"
        "work._limit_resources()\n"
        "try: bytearray(2**31)\n"
        "except MemoryError: print('memory')\n"
        "try: open('big', 'wb').write(bytes(2 * 10**6))\n"
        "except OSError: print('files')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["memory", "files"]


def test_a_table_without_features_is_recovered_from_its_labels(client, table):
    job = hand_in(client, table.to_csv())
    columns = settled(client, job, "reading")["overview"]["columns"]
    state = run(client, job, roles=[{"feature": "out"}.get(column["role"], column["role"]) for column in columns])
    assert (state["state"], state["problem"]) == ("done", "")
    assert "no features: rows are recovered from their labels alone" in downloaded(client, job, "report").text
    recovered = pd.read_csv(io.StringIO(downloaded(client, job, "csv").text))
    np.testing.assert_allclose(recovered[list("abcde")].sum(axis=1), 1)


OVERVIEW = {"problem": None, "columns": [{"name": n, "role": r, "why": w} for n, r, w in [
    ("a,b", "feature", ""), ("c", "label", ""), ("d", "label", ""), ("e", "out", "it is empty")]]}  # fmt: skip


@pytest.mark.parametrize(
    ("roles", "columns"),
    [
        (["feature", "label", "label", "out"], {}),  # as guessed, so it may be guessed again
        (["label", "label", "feature", "out"], {"labels": ["a,b", "c"], "id": False}),
        (["id", "label", "label", "feature"], {"labels": ["c", "d"], "features": ["e"], "id": "a,b"}),
        (["out", "label", "label", "out"], {"labels": ["c", "d"], "features": [], "id": False}),
        (["id", "label", "label", "out"], {"labels": ["c", "d"], "id": "a,b"}),
    ],
)
def test_roles_become_arguments_of_the_door(roles, columns):
    others = {"hidden": "auto", "normalise": False, "method": "bayes", "intervals": None}
    assert options_of({"roles": roles}, OVERVIEW) == {**columns, **others}


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ([], "what each column is"),
        ({"roles": ["label"]}, "what each column is"),
        ({"roles": ["feature", "label", "feature", "evil"]}, "what each column is"),
        ({"roles": ["feature", "label", "feature", "out"]}, "two or more"),
        ({"roles": ["id", "label", "label", "id"]}, "Only one column"),
        ({"roles": ["feature", "label", "label", "out"], "method": "rm -rf"}, "no such method"),
        ({"roles": ["feature", "label", "label", "out"], "hidden": [[]]}, "what marks a hidden label"),
    ],
)
def test_a_wrong_request_is_refused(wanted, says):
    with pytest.raises(ValueError, match=says):
        options_of(wanted, OVERVIEW)


def test_the_sample_has_hidden_labels_and_can_be_recovered(client):
    answer = client.post("/sample")
    job = answer.json()["id"]
    overview = settled(client, job, "reading")["overview"]
    assert overview["problem"] is None
    assert overview["n_rows"] > 200
    labels = [column for column in overview["columns"] if column["role"] == "label"]
    assert len(labels) == 5
    assert all("empty" in column["holds"] for column in labels)


def test_every_front_end_has_words_for_every_remedy():
    assert PYTHON_WORDS.keys() == WORDS.keys() == terminal.WORDS.keys()
    assert not any("--" in words for words in WORDS.values())
