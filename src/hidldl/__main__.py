"""``python -m hidldl`` is the ``hidldl`` command."""

from hidldl.cli import main

main(prog_name="hidldl")
