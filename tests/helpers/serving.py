"""The server of the web page, in a thread beside the tests."""

import socket
import threading
import time
from contextlib import contextmanager


@contextmanager
def served(app):
    """Its address, while it is served; afterwards the server has ended."""
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as listener:
        config = uvicorn.Config(app, log_level="warning", ws="none", timeout_graceful_shutdown=3)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            while not server.started and thread.is_alive():
                time.sleep(0.01)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(15)
            assert not thread.is_alive()
