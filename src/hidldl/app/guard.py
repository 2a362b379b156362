"""Who may ask, and what browsers are told: no other site can use the page, and the page asks nothing of other sites."""

import socket
from ipaddress import ip_address
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

THIS_COMPUTER = ("localhost", "127.0.0.1", "::1")
EVERYWHERE = ("0.0.0.0", "::", "")
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Guard:
    """Refuses requests to other names of this computer (DNS rebinding) and changes that other sites ask for."""

    def __init__(self, app: ASGIApp, host: str) -> None:
        self.app = app
        self.everywhere = host in EVERYWHERE
        self.hosts = {*THIS_COMPUTER, host.lower()} | ({socket.gethostname().lower()} if self.everywhere else set())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = headers.get(name, value) if name == "content-security-policy" else value
            await send(message)

        refusal = self._refusal(scope["method"], Headers(scope=scope))
        if not scope["query_string"].isascii():
            refusal = "The address holds bytes that no browser sends."  # and that a redirection cannot decode
        answer = JSONResponse({"problem": refusal}, 403) if refusal else self.app
        await answer(scope, receive, send_with_headers)

    def _refusal(self, method: str, headers: Headers) -> str:
        host = headers.get("host", "")
        if not self._is_ours(_without_port(host)):
            return "This page does not go by that name; use the address that hidldl app shows."
        if method in ("GET", "HEAD"):
            return ""
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        from_elsewhere = site not in (None, "same-origin") or origin not in (None, f"http://{host}", f"https://{host}")
        return "Another site asked for this; only the page itself may." if from_elsewhere else ""

    def _is_ours(self, name: str) -> bool:
        if name in self.hosts:
            return True
        # Who starts it with 0.0.0.0 wants it reached at any address. DNS rebinding needs a host name, not an address.
        return self.everywhere and _is_address(name)


def _without_port(host: str) -> str:
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
