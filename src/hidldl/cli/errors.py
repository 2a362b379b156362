"""How a command on a table ends if it does not end well: one line, an exit status, and nothing half done."""

import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click


class WrongInput(click.ClickException):
    """Something that the user can put right; one line."""

    exit_code = 2


class Stopped(BaseException):
    """Another program asked this one to end."""


@contextmanager
def one_line_errors() -> Iterator[None]:
    """What is wrong with a file or an option, as one line; who interrupts the command finds every file as it was.

    What the library warns programmers of is ignored: notes and the report tell users in other words.
    """
    try:
        with _ending_in_order(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except BrokenPipeError:
        raise  # whoever read standard output has seen enough; click ends quietly
    except OSError as error:
        why = f"the result cannot be written: {error.strerror}." if error.errno else str(error)
        raise WrongInput(why) from error
    except (ValueError, TypeError, ImportError, MemoryError) as error:
        raise WrongInput(" ".join(str(error).split()) or "there is not enough memory for this table.") from error
    except (KeyboardInterrupt, Stopped) as stop:
        click.echo("Interrupted; nothing was written.", err=True)
        number = signal.SIGINT if isinstance(stop, KeyboardInterrupt) else stop.args[0]
        raise click.exceptions.Exit(128 + number) from None


@contextmanager
def _ending_in_order() -> Iterator[None]:
    """A request to end, or a terminal that is closed, cleans up as Ctrl-C does."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may say what signals do
        return

    def stop(number: int, frame: Any) -> None:
        raise Stopped(number)

    asked = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, stop) for number in asked}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
