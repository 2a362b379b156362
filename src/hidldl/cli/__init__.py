"""The commands of ``hidldl``. One file per command: parse, call, print. Commands import what they need when they run.

The page's own command is in `hidldl.app.command`; `hidldl.__main__` puts all of them together.
"""

import os
import signal
from typing import Any

import click

from hidldl import __version__
from hidldl.cli.compare import compare
from hidldl.cli.datasets import datasets
from hidldl.cli.demo import demo
from hidldl.cli.predict import predict
from hidldl.cli.recover import recover
from hidldl.cli.reproduce import reproduce


class Commands(click.Group):
    """What all commands have in common: standard streams may be closed, and Ctrl-C is no error."""

    def main(self, *args: Any, **more: Any) -> Any:
        _occupy_closed_streams()
        return super().main(*args, **more)

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            raise click.exceptions.Exit(128 + signal.SIGINT) from None


def _occupy_closed_streams() -> None:
    """Where a standard stream is closed, the next file would get its number, and messages would end up in it."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", "-V", prog_name="hidldl", message="%(prog)s %(version)s")
def commands() -> None:
    """Recover label distributions whose hidden labels inflated the rest.

    \b
    Start here:
      hidldl demo        hide labels of real data, recover them, look at the result
      hidldl recover     a table with hidden labels, back complete, with a report
      hidldl app         the same in a web page
      hidldl predict     the same for new rows, with a saved model
      hidldl datasets    what data there is, and where
      hidldl compare     compare methods on a complete table of your own
      hidldl reproduce   the paper's tables and figures
    """


for command in (demo, recover, predict, datasets, compare, reproduce):
    commands.add_command(command)
