"""Progress as it is seen at a terminal."""

import os
import re
import struct
import subprocess
import sys

import pytest

pty = pytest.importorskip("pty", reason="there are no pseudo-terminals here")
BAR = """
from hidldl.progress import shown
with shown() as progress:
    progress(20, 100, "choosing parameters and fitting, " + "for a long time " * 5)
"""


def seen_at_a_terminal(program: str, columns: int) -> str:
    """What a program shows on standard error, without colours."""
    import fcntl
    import termios

    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    terminal = {**os.environ, "TERM": "xterm-256color"}
    for name in ("COLUMNS", "NO_COLOR"):
        terminal.pop(name, None)
    subprocess.run([sys.executable, "-c", program], stderr=follower, env=terminal, check=True)
    os.close(follower)
    shown = os.read(leader, 2**16).decode()
    os.close(leader)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown)


@pytest.mark.parametrize("columns", [50, 80, 200])
def test_figures_are_whole_however_narrow_the_terminal_is(columns):
    shown = seen_at_a_terminal(BAR, columns)
    last = re.split(r"[\r\n]+", shown.strip())[-1]
    assert re.fullmatch(r"choosing par.*… ━.* 20% \d:\d\d:\d\d -:--:-- left", last), last
    assert len(last) <= columns
