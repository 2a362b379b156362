"""``hidldl app``: the same in a web page."""

import signal
import socket
import threading
import webbrowser
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from hidldl.stopping import when_asked_to_end

if TYPE_CHECKING:
    from uvicorn import Config

    from hidldl.app.jobs import Jobs

USUAL_PORT = 8765


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), help=f"{USUAL_PORT} by default, or any that is free.")
@click.option("--open/--no-open", "open_browser", default=True, show_default=True, help="Open the page in a browser.")
@click.option("--max-megabytes", type=click.IntRange(1), default=200, show_default=True, help="The largest file.")
def app(host: str, port: int | None, open_browser: bool, max_megabytes: int) -> None:
    """Recover tables in a web page: drop one, check its columns, look, download.

    Tables stay on this computer, and are removed when their page is closed. Ctrl-C ends it.
    """
    missing = [module for module in ("starlette", "uvicorn", "jinja2") if find_spec(module) is None]
    if missing:
        raise click.ClickException(f"The page needs {', '.join(missing)}; install it with pip install 'hidldl[app]'.")
    import uvicorn

    from hidldl.app.guard import THIS_COMPUTER
    from hidldl.app.server import make_app

    with _listening(host, port) as listener:
        address = f"http://{f'[{host}]' if ':' in host else host}:{listener.getsockname()[1]}"
        click.echo(f"hidldl app: {address} (Ctrl-C ends it)")
        if host not in THIS_COMPUTER:
            click.echo(
                "Warning: others on the network can use this page and its computer; nothing is encrypted.", err=True
            )
        page = make_app(host, max_megabytes)
        config = uvicorn.Config(
            page,
            log_config=None,  # its own fails where standard error is closed
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            ws="none",
            timeout_graceful_shutdown=3,
        )
        if open_browser:
            # A browser in the terminal blocks until the user leaves it, and needs the page before that.
            threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
        _serve(config, listener, page.state.jobs)


def _serve(config: "Config", listener: socket.socket, jobs: "Jobs") -> None:
    """Serve until a signal ends it, and leave nothing behind, also after several signals."""
    import uvicorn

    signals: list[int] = []

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: Any) -> None:
            # uvicorn's own handler exits at once on a second Ctrl-C and cleans nothing up.
            signals.append(sig)
            self.should_exit = True

    server = Server(config)

    with when_asked_to_end(server.handle_exit, "SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
        try:
            server.run(sockets=[listener])
        finally:
            left = jobs.end()
    if signal.SIGINT in signals:
        click.echo(f"ended; {left} could not be removed." if left else "ended; nothing was kept.")
    elif signals:
        raise click.exceptions.Exit(128 + signals[0])


def _listening(host: str, port: int | None) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in (USUAL_PORT, 0) if port is None else (port,):
        try:
            return socket.create_server((host, candidate), family=family)
        except OSError as error:
            problem = error
    where = f"port {port} of {host}" if port is not None else host
    raise click.ClickException(
        f"{where} cannot be used: {problem.strerror}. Choose another --port or --host."
    ) from None
