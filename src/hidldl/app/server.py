"""The requests of the page, and who may make them."""

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from hidldl.app.arriving import TooLargeError, TooSlowError, arriving
from hidldl.app.guard import Guard
from hidldl.app.jobs import IDLE_SECONDS, BusyError, Job, Jobs
from hidldl.app.options import options_of, prediction_options_of
from hidldl.app.sample import write_sample
from hidldl.app.words import WORDS
from hidldl.errors import ModelFileError, TableError
from hidldl.methods import all_methods
from hidldl.replacing import replacing
from hidldl.tables.reading import open_table
from hidldl.tables.sources import split_suffix
from hidldl.tables.writing import MOST_EXCEL_ROWS, open_writer

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]
LONGEST_NAME = 200
MOST_JSON_BYTES = 20 * 2**20
STILL_WORKING = "The table is still being worked on."
TOO_SLOW = "Nothing arrived for a while, or too little; look at the connection and hand it in again."
PIECE_BYTES = 2**20
REPORT_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; "
    "sandbox allow-scripts; frame-ancestors 'self'"
)


def make_app(host: str = "127.0.0.1", most_megabytes: int = 200, idle_seconds: float = IDLE_SECONDS) -> Starlette:
    """The page and its requests.

    Parameters
    ----------
    host : str
        The name or address that the server listens on; requests must be addressed to it or to this computer.
    most_megabytes : int
        The largest table or model that is taken.
    idle_seconds : float
        A page that is silent for so long is gone, and its table with it.
    """
    requests = _Requests(Jobs(most_megabytes * 10**6), most_megabytes)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        requests.jobs.begin()
        sweeper = asyncio.create_task(requests.jobs.forget_idle(idle_seconds))
        yield
        sweeper.cancel()
        with suppress(asyncio.CancelledError):
            await sweeper
        await requests.jobs.forget_all()

    app = Starlette(
        routes=requests.routes(),
        middleware=[Middleware(Guard, host=host)],
        exception_handlers={HTTPException: _error_response},
        lifespan=lifespan,
    )
    app.state.jobs = requests.jobs
    return app


async def _error_response(request: Request, error: Exception) -> Response:
    """Errors in the page's form."""
    assert isinstance(error, HTTPException)
    return _problem(error.status_code, "There is nothing here." if error.status_code == 404 else error.detail)


def _problem(status: int, message: str) -> JSONResponse:
    return JSONResponse({"problem": message}, status)


class _Requests:
    """What each request does."""

    def __init__(self, jobs: Jobs, most_megabytes: int) -> None:
        self.jobs, self.most_megabytes, self.most_bytes = jobs, most_megabytes, most_megabytes * 10**6
        here, reports = files("hidldl.app"), files("hidldl.reports")
        styles = [reports / "templates/base.css", here / "page.css"]
        page = (here / "page.html").read_text(encoding="utf-8").replace("{{ most_megabytes }}", str(most_megabytes))
        page = page.replace("{{ methods }}", method_options())
        self.static = {
            "/": (page, "text/html"),
            "/page.css": ("".join(style.read_text(encoding="utf-8") for style in styles), "text/css"),
            "/page.js": ((here / "page.js").read_text(encoding="utf-8"), "text/javascript"),
        }

    def routes(self) -> list[Route]:
        return [
            *(Route(path, self.show) for path in self.static),
            Route("/jobs", self.upload, methods=["POST"]),
            Route("/sample", self.sample, methods=["POST"]),
            Route("/jobs/{id}", self.with_job(self.state)),
            Route("/jobs/{id}/sheet", self.with_job(self.choose_sheet), methods=["POST"]),
            Route("/jobs/{id}/model", self.with_job(self.take_model), methods=["POST"]),
            Route("/jobs/{id}/predict", self.with_job(self.predict), methods=["POST"]),
            Route("/jobs/{id}/run", self.with_job(self.run), methods=["POST"]),
            Route("/jobs/{id}/cancel", self.with_job(self.cancel), methods=["POST"]),
            Route("/jobs/{id}/forget", self.with_job(self.forget), methods=["POST"]),
            Route("/jobs/{id}/report", self.with_job(self.report)),
            Route("/jobs/{id}/files/{which}", self.with_job(self.download)),
        ]

    def with_job(self, handle: Callable[[Request, Job], Awaitable[Response]]) -> Handler:
        async def handler(request: Request) -> Response:
            job = self.jobs.get(request.path_params["id"])
            if job is None:
                return _problem(404, "This table is not here any more; hand it in again.")
            return await handle(request, job)

        return handler

    async def show(self, request: Request) -> Response:
        content, kind = self.static[request.url.path]
        return Response(content, media_type=kind)

    async def upload(self, request: Request) -> Response:
        """A table, as the body of the request: nothing has to be taken apart, so nothing is held in memory."""
        if self._is_too_large(request):
            return self._too_large("table", "hidldl recover")
        try:
            job = self.jobs.new(_plain(request.query_params.get("name", "")))
        except BusyError as error:
            return _problem(503, str(error))
        try:
            await job.take(arriving(request.stream(), self.most_bytes))
        except (TooLargeError, TooSlowError, TableError, ClientDisconnect, OSError) as error:
            await self.jobs.forget(job)
            if isinstance(error, TooLargeError):
                return self._too_large("table", "hidldl recover")
            if isinstance(error, TooSlowError):
                return _problem(408, TOO_SLOW)
            return _problem(422, str(error) or "The table did not arrive.")
        job.read()
        return JSONResponse({"id": job.id}, 201)

    async def take_model(self, request: Request, job: Job) -> Response:
        """The file of a model, in the same way, for a table that has been read."""
        if not _is_free(job):
            return _problem(409, STILL_WORKING)
        if self._is_too_large(request):
            return self._too_large("model", "hidldl predict")
        name = _plain(request.query_params.get("name", "")) or "model"
        try:
            await job.take_model(name, arriving(request.stream(), self.most_bytes))
        except TooLargeError:
            return self._too_large("model", "hidldl predict")
        except TooSlowError:
            return _problem(408, TOO_SLOW)
        except ModelFileError as error:
            return _problem(422, error.worded(WORDS))
        except (ClientDisconnect, OSError) as error:
            return _problem(422, str(error) or "The model did not arrive.")
        job.look_at_model()
        return JSONResponse({}, 202)

    def _is_too_large(self, request: Request) -> bool:
        announced = request.headers.get("content-length", "")
        return announced.isdigit() and int(announced) > self.most_bytes

    def _too_large(self, what: str, command: str) -> Response:
        limit = f"{self.most_megabytes} megabytes, the limit of this page"
        return _problem(413, f"The {what} has more than {limit}; use {command}.")

    async def sample(self, request: Request) -> Response:
        try:
            job = self.jobs.new("sample")
        except BusyError as error:
            return _problem(503, str(error))
        job.table, job.name = await run_in_threadpool(write_sample, job.folder)
        job.read()
        return JSONResponse({"id": job.id}, 201)

    async def state(self, request: Request, job: Job) -> Response:
        shown = ("name", "state", "what", "place", "share", "problem", "cancelled", "sheets")
        state = {name: getattr(job, name) for name in shown}
        if "overview" in request.query_params:
            state |= {"overview": job.overview, "model": job.model_overview}
        if job.state == "done":
            state["files"] = [which for which in job.results if which != "xlsx" or self._can_write_excel(job)]
        return JSONResponse(state)

    async def choose_sheet(self, request: Request, job: Job) -> Response:
        sheet = request.query_params.get("name")
        if job.state != "choosing" or sheet not in job.sheets:
            return _problem(422, "There is no such sheet to choose.")
        job.sheet = sheet
        job.read()
        return JSONResponse({}, 202)

    async def run(self, request: Request, job: Job) -> Response:
        overview = job.overview
        if overview is None:
            return _problem(409, STILL_WORKING)
        return await self._start(request, job, job.recover, lambda wanted: options_of(wanted, overview))

    async def predict(self, request: Request, job: Job) -> Response:
        if job.model_overview is None:
            return _problem(409, "Hand in a model first.")
        return await self._start(request, job, job.predict, prediction_options_of)

    async def _start(
        self,
        request: Request,
        job: Job,
        begin: Callable[[dict[str, Any]], None],
        read: Callable[[Any], dict[str, Any]],
    ) -> Response:
        """Begin work with the options that the request asks for; others that were asked for before come first."""
        wanted = await _json(request)
        try:
            options = read(wanted)
        except ValueError as error:
            return _problem(422, str(error))
        if not _is_free(job):
            return _problem(409, STILL_WORKING)
        begin(options)
        return JSONResponse({}, 202)

    async def cancel(self, request: Request, job: Job) -> Response:
        await job.cancel()
        return JSONResponse({})

    async def forget(self, request: Request, job: Job) -> Response:
        await self.jobs.forget(job)
        return JSONResponse({})

    async def report(self, request: Request, job: Job) -> Response:
        path = job.result("report")
        if path is None:
            raise HTTPException(404)
        return _file(path, "text/html", {"content-security-policy": REPORT_POLICY})

    async def download(self, request: Request, job: Job) -> Response:
        which = request.path_params["which"]
        path = job.result(which)
        if path is None:
            raise HTTPException(404)
        if which == "xlsx" and not path.exists():
            try:
                await run_in_threadpool(_write_excel, path.with_name(job.results["csv"]), path)
            except (TableError, ImportError, OSError) as error:
                return _problem(422, str(error)) if job.result(which) == path else _problem(409, STILL_WORKING)
        called = quote(f"{split_suffix(job.name)[0]} {path.name}")
        return _file(
            path, "application/octet-stream", {"content-disposition": f"attachment; filename*=utf-8''{called}"}
        )

    @staticmethod
    def _can_write_excel(job: Job) -> bool:
        few = job.overview is not None and job.overview["n_rows"] <= MOST_EXCEL_ROWS
        return few and all(find_spec(module) for module in ("openpyxl", "defusedxml"))


def _file(path: Path, kind: str, headers: dict[str, str]) -> Response:
    """A file as it is now: it is opened at once, so that another run neither cuts it short nor changes it midway."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        raise HTTPException(404) from None
    size = str(os.fstat(file.fileno()).st_size)
    return StreamingResponse(_pieces(file), media_type=kind, headers={**headers, "content-length": size})


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def _is_free(job: Job) -> bool:
    """Whether the table has been read and nothing is being done with it."""
    return job.overview is not None and job.state in ("ready", "done")


def method_options() -> str:
    """The methods to choose from, with what a reader should know of each."""
    return "".join(
        f'<option value="{escape(method.name)}" data-summary="{escape(method.summary)}"{_can(method.make())}>'
        f"{escape(method.title)}</option>"
        for method in all_methods("recoverer")
    )


def _can(method: Any) -> str:
    """What the page asks of a method, as attributes."""
    return " data-has-intervals" * method.has_intervals + " data-tells-zeros" * method.can_tell_zeros


def _write_excel(recovered: Path, path: Path) -> None:
    """The recovered table as a workbook; text and names of rows stay as they are written."""
    with open_table(recovered) as table, replacing(path) as target, open_writer(path, target) as writer:
        for rows in table.originals(table.columns, texts=table.columns[:1]):
            writer.write(rows)


def _plain(name: str) -> str:
    """A file's name for people to read: without folders and control characters, and not too long."""
    last = re.split(r"[/\\]", name)[-1]
    return "".join(letter for letter in last if letter.isprintable())[-LONGEST_NAME:].strip()


async def _json(request: Request) -> Any:
    try:
        return json.loads(b"".join([piece async for piece in arriving(request.stream(), MOST_JSON_BYTES)]))
    except TooLargeError:
        raise HTTPException(413, "The request is too long.") from None
    except (TooSlowError, ClientDisconnect):
        raise HTTPException(408, TOO_SLOW) from None
    except (ValueError, RecursionError):
        raise HTTPException(400, "The request is not JSON, or not of the kind that this page sends.") from None
