"""The ``hidldl`` command, and ``python -m hidldl``."""

from hidldl.app.command import app
from hidldl.cli import commands

main = commands
main.add_command(app)

if __name__ == "__main__":
    main(prog_name="hidldl")
