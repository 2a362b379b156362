"""``hidldl app`` at the shell: it says where the page is, and ends without a trace."""

import os
import queue
import signal
import socket
import sys
import tempfile
import threading
import time

import pytest
import requests
import uvicorn
from click.testing import CliRunner

from hidldl.__main__ import main
from hidldl.app import command, work

STOPS = [name for name in ("SIGTERM", "SIGHUP", "SIGQUIT") if hasattr(signal, name)]
ENDINGS = {name: (128 + getattr(signal, name), [name]) for name in STOPS}
ENDINGS |= {"Ctrl-C": (0, ["SIGINT"]), "Ctrl-C again and again": (0, ["SIGINT"] * 3)}


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_page_is_there_until_the_program_ends_and_nothing_is_left(tmp_path, monkeypatch, ending):
    code, signals = ENDINGS[ending]
    if any(signal.getsignal(getattr(signal, name)) == signal.SIG_IGN for name in signals):
        pytest.skip("this signal is ignored here, as below nohup")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    addresses, pages, names = queue.Queue(), [], []
    monkeypatch.setattr("webbrowser.open", addresses.put)

    def use_and_end():
        try:
            address = addresses.get(timeout=60)
            pages.append(requests.get(address, timeout=60).text)
            requests.post(f"{address}/jobs?name=a.csv", data="x,a,b\n1,0.5,0.5\n", timeout=60)
            names.extend(path.name for path in tmp_path.glob("*/*/*"))
        finally:  # or the server would wait for ever
            for name in signals:
                os.kill(os.getpid(), getattr(signal, name))
                time.sleep(0.05)

    user = threading.Thread(target=use_and_end)
    user.start()
    run = CliRunner().invoke(main, ["app", "--port", "0"])
    user.join(10)
    assert "Recover hidden labels" in pages[0]
    assert names == ["table.csv"]
    assert run.exit_code == code
    assert ("ended; nothing was kept." in run.output) == (code == 0)
    assert "Traceback" not in run.output
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def unserved(monkeypatch):
    """The command without its server; the application that would have been served."""
    configs = []
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: configs.append(self.config))
    return configs


def test_the_page_is_opened_in_a_browser(unserved, monkeypatch):
    opened = queue.Queue()
    monkeypatch.setattr("webbrowser.open", opened.put)
    run = CliRunner().invoke(main, ["app", "--port", "0"])
    assert opened.get(timeout=5) == run.output.split()[2]


def test_to_listen_to_the_network_is_warned_of(unserved):
    inside = CliRunner().invoke(main, ["app", "--no-open", "--port", "0"])
    assert (inside.exit_code, "Warning" in inside.output) == (0, False)
    outside = CliRunner().invoke(main, ["app", "--no-open", "--port", "0", "--host", "0.0.0.0"])
    assert "others on the network can use this page" in outside.output
    assert len(unserved) == 2


def test_a_port_that_is_taken_is_one_line(unserved):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        run = CliRunner().invoke(main, ["app", "--no-open", "--port", str(port)])
    assert run.exit_code == 1
    assert run.output.startswith(f"Error: port {port} of 127.0.0.1 cannot be used: ")
    assert len(run.output.splitlines()) == 1
    assert unserved == []


def test_a_missing_extra_is_named(monkeypatch):
    monkeypatch.setattr(command, "find_spec", lambda module: None if module == "uvicorn" else module)
    run = CliRunner().invoke(main, ["app"])
    assert run.output == "Error: The page needs uvicorn; install it with pip install 'hidldl[app]'.\n"


def test_a_computation_ends_with_its_server(monkeypatch):
    reading, writing = os.pipe()
    with os.fdopen(reading) as standard_input:
        monkeypatch.setattr(sys, "stdin", standard_input)
        monkeypatch.setattr(os, "_exit", sys.exit)
        os.close(writing)  # as when the server is killed
        with pytest.raises(SystemExit):
            work._end_with_server()
