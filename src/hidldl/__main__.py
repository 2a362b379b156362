"""The ``hidldl`` command, and ``python -m hidldl``."""

from hidldl.stopping import end_at_once, when_asked_to_end

# Before a command runs there is nothing to put in order, and a traceback of imports helps nobody.
with when_asked_to_end(end_at_once, "SIGINT"):
    from hidldl.app.command import app
    from hidldl.cli import commands

main = commands
main.add_command(app)

if __name__ == "__main__":
    main(prog_name="hidldl")
