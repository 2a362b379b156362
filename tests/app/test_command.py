"""``hidldl app`` at the shell: it says where the page is, and ends without a trace."""

import os
import queue
import signal
import socket
import subprocess
import sys

import pytest
import requests
import uvicorn
from click.testing import CliRunner

from hidldl.__main__ import main
from hidldl.app import command


def test_the_page_is_there_until_the_program_ends(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-m", "hidldl", "app", "--no-open", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as server:
        address = server.stdout.readline().split()[2]
        assert address.startswith("http://127.0.0.1:")
        assert "Recover hidden labels" in requests.get(address, timeout=10).text
        requests.post(f"{address}/jobs?name=a.csv", data="x,a,b\n1,0.5,0.5\n", timeout=10)
        assert len(list(tmp_path.iterdir())) == 1
        server.send_signal(signal.SIGINT)
        assert server.wait(10) == 0
        assert "nothing was kept" in server.stdout.read()
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
