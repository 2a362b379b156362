"""The program behind the page, with everything imported: its start takes milliseconds instead of seconds.

One process imports what the work needs and waits. What the server starts is a small program that hands its standard
streams to a fork of that process, passes signals on and ends as the fork does.
"""

import json
import os
import socket
import stat
import subprocess
import sys
import tempfile
import traceback
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

STARTER = """#!{python} -IS
import json, os, signal, socket, sys
line = socket.socket(socket.AF_UNIX)
line.connect({address!r})
socket.send_fds(line, [json.dumps([os.getcwd(), dict(os.environ)]).encode()], [0, 1, 2])
pid = int(line.recv(10))
signal.signal(signal.SIGTERM, lambda number, frame: os.kill(pid, number))
sys.exit(int(line.recv(10) or 1))
"""


@pytest.fixture(scope="module")
def warm():
    """Stands in for ``sys`` in ``hidldl.app.jobs``; where a process cannot be warm, jobs start what users start."""
    if sys.platform != "linux":
        yield sys
        return
    with tempfile.TemporaryDirectory() as folder:
        address, starter = str(Path(folder, "line")), Path(folder, "start")
        starter.write_text(STARTER.format(python=sys.executable, address=address))
        starter.chmod(stat.S_IRWXU)
        command = [sys.executable, "-P", __file__, address]
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
        waiting = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        try:
            assert waiting.stdout.readline() == b"ready\n"
            yield SimpleNamespace(executable=str(starter))
        finally:
            waiting.terminate()
            waiting.wait()
            waiting.stdout.close()


def wait_for_requests(address):
    """Import everything by doing everything once, then fork for each request."""
    from hidldl.app import work
    from hidldl.app.sample import write_sample
    from hidldl.tables.recovery import recover_table

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table, _ = write_sample(folder)
        work.overview(table, "sample.csv")
        results = {"output": folder / "out.csv", "report": folder / "report.html", "model": folder / "model.npz"}
        recover_table(table, method="meanfill").write(**results)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(64)
    print("ready", flush=True)
    while True:
        line = listener.accept()[0]
        request, streams, *_ = socket.recv_fds(line, 2**20, 3)
        if os.fork() == 0:
            answer(work.main, line, request, streams)
        for descriptor in (*streams, line.detach()):
            os.close(descriptor)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass


def answer(main, line, request, streams):
    """Be the program: its folder, its environment and its streams, until its end."""
    try:
        folder, environment = json.loads(request)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        tempfile.tempdir = None
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
            os.close(descriptor)
        line.send(b"%10d" % os.getpid())
        main()
        line.send(b"0")
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


if __name__ == "__main__":
    wait_for_requests(sys.argv[1])
