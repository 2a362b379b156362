"""The ``hidldl`` command. One file per command: parse, call, print. Commands import what they need when they run."""

import click

from hidldl import __version__
from hidldl.cli.app import app
from hidldl.cli.compare import compare
from hidldl.cli.datasets import datasets
from hidldl.cli.demo import demo
from hidldl.cli.predict import predict
from hidldl.cli.recover import recover
from hidldl.cli.reproduce import reproduce


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "--version", "-V", prog_name="hidldl", message="%(prog)s %(version)s")
def main() -> None:
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


for command in (demo, recover, app, predict, datasets, compare, reproduce):
    main.add_command(command)
