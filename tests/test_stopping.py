"""Requests to end, and standard streams that are closed: in order, and without a traceback."""

import signal
import subprocess
import sys
import threading

import pytest
from click.testing import CliRunner

from hidldl.__main__ import main
from hidldl.cli import terminal
from hidldl.stopping import when_asked_to_end

SCRIPT = """
import os, signal, sys
class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupting())
signal.signal(signal.SIGINT, signal.default_int_handler)
from hidldl.__main__ import main
"""


@pytest.fixture(autouse=True)
def as_in_a_terminal():
    """Ctrl-C works; a shell starts programs in the background with that ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX's")
def test_ctrl_c_while_the_commands_are_loaded_ends_without_a_word():
    script = SCRIPT.format(module="hidldl.cli.recover")
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (run.returncode, run.stdout, run.stderr) == (130, "", "")


def test_ctrl_c_in_any_command_is_status_130(monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("hidldl.datasets.files.cache_folder", interrupted)
    run = CliRunner().invoke(main, ["datasets"])
    assert (run.exit_code, run.output) == (130, "Interrupted.\n")


def test_an_interrupted_library_may_call_it_by_another_name(capsys):
    with pytest.raises(terminal.click.exceptions.Exit) as stop, terminal.one_line_errors():
        try:
            signal.raise_signal(signal.SIGINT)
        except BaseException as error:
            raise ImportError("numpy cannot be imported") from error
    assert stop.value.exit_code == 130
    assert capsys.readouterr().err == "Interrupted; nothing was written.\n"


def test_a_signal_that_is_ignored_stays_ignored_and_all_are_as_before():
    seen = []
    before = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with when_asked_to_end(lambda number, frame: seen.append(number), "SIGTERM", "SIGINT", "SIGNONE"):
            for name in ("SIGTERM", "SIGINT"):
                signal.raise_signal(getattr(signal, name))
        assert seen == [signal.SIGINT]
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTERM, before)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_other_threads_leave_signals_alone():
    ran = []

    def work():
        with when_asked_to_end(print, "SIGINT"):
            ran.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert ran == [True]


@pytest.fixture
def faces(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{i},{i % 3},0.5,0.5,," if i % 2 else f"{i},{i % 3},0.2,0.3,0.4,0.1" for i in range(20)]
    (tmp_path / "faces.csv").write_text("\n".join(["x,y,a,b,c,d", *rows]))
    return ["recover", "faces.csv", "--method", "meanfill"]


@pytest.mark.parametrize("closed", [["stdin"], ["stderr"], ["stdout", "stderr"], ["stdin", "stdout", "stderr"]])
def test_closed_streams_are_no_error(faces, tmp_path, monkeypatch, closed):
    for name in closed:
        monkeypatch.setattr(sys, name, None)
    main([*faces, "-o", "out.csv"], standalone_mode=False)
    monkeypatch.undo()
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 21


def test_a_closed_stream_that_is_asked_for_is_named(faces, monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(terminal.WrongInput, match="standard output is closed; name an output file"):
        main([*faces, "-o", "-"], standalone_mode=False)
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(terminal.WrongInput, match="standard input is closed"):
        main(["recover", "-", "-o", "out.csv"], standalone_mode=False)


@pytest.mark.skipif(sys.platform == "win32", reason="streams are closed by the shell")
def test_no_file_gets_the_number_of_a_closed_stream():
    script = "import os; from hidldl.cli import _occupy_closed_streams as occupy; occupy(); print(os.open('.', 0))"
    run = subprocess.run(f'"{sys.executable}" -c "{script}" 2>&- <&-', shell=True, capture_output=True, text=True)
    assert int(run.stdout) > 2
