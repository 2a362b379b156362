"""One table each: its folder, the program that works on it, how far that is, and the removal of everything.

Work is done by a program of its own, `hidldl.app.work`: it can be cancelled, its memory goes with it, and it calls the
same function as the shell.
"""

import asyncio
import json
import logging
import os
import secrets
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Literal, TypeAlias

from hidldl.app.folders import ServerFolder
from hidldl.app.line import Line
from hidldl.compiling import can_keep
from hidldl.errors import ModelFileError, Remedy, TableError
from hidldl.tables.sources import split_suffix

logger = logging.getLogger(__name__)
State: TypeAlias = Literal["new", "reading", "choosing", "ready", "running", "done"]
Task: TypeAlias = Literal["recover", "predict"]
MOST_JOBS = 64
MOST_LARGE = 8
"""So many of the largest tables are taken at once; small ones leave room for more."""
N_READ, N_COMPUTED = 2, 1
"""Tables that are worked on at once. A computation uses every core; the others wait in line."""
CANCELLED = "Cancelled; nothing was kept but what you handed in."
IDLE_SECONDS = 900.0
"""An open page asks once a minute; one that is silent for so long is gone."""
GRACE_SECONDS = 3.0
LOOK_SECONDS = 600.0
"""A look at a table or a model ends after so long: 200 megabytes of text take a minute."""
LONGEST_LINE = 2**26
RESULTS = {
    "recover": {"csv": "recovered.csv", "xlsx": "recovered.xlsx", "report": "report.html", "model": "model.npz"},
    "predict": {"csv": "predicted.csv", "xlsx": "predicted.xlsx", "report": "report.html"},
}
"""The files that each task leaves; a workbook is written when it is asked for."""
MODEL_KINDS = (".npz", ".json")


class BusyError(Exception):
    """Not now; the message says what to wait for."""


@dataclass
class Job:
    """A table that a page has handed in. ``problem`` is what the last step ended in, if it did not end well."""

    name: str
    folder: Path
    lines: Mapping[State, Line]
    environment: Mapping[str, str] = field(default_factory=dict)
    id: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    table: Path | None = None
    sheet: str | None = None
    sheets: list[str] = field(default_factory=list)
    state: State = "new"
    what: str = ""
    place: int = 0
    share: float = 0.0
    problem: str = ""
    cancelled: bool = False
    overview: dict[str, Any] | None = None
    model: Path | None = None
    model_name: str = ""
    model_overview: dict[str, Any] | None = None
    task: Task = "recover"
    n_bytes: int = 0
    n_runs: int = 0
    touched: float = field(default_factory=monotonic)
    _called: asyncio.Event = field(default_factory=asyncio.Event)
    _process: asyncio.subprocess.Process | None = None
    _task: asyncio.Task[None] | None = None

    async def take(self, pieces: AsyncIterator[bytes]) -> None:
        """Write the table as it comes. Of the name that a user gave it, only the kind of file is used."""
        _, kind, compression = split_suffix(self.name)
        if not kind:
            raise TableError(f"{self.name}: hidldl reads .csv, .tsv, .txt, .parquet and .xlsx files, also .csv.gz.")
        self.table = self.folder / f"table{kind}{compression}"
        await self._write(self.table, pieces)

    async def take_model(self, name: str, pieces: AsyncIterator[bytes]) -> None:
        """Write a model's file as it comes; it is checked when it is looked at."""
        kind = Path(name).suffix.lower()
        if kind not in MODEL_KINDS:
            raise ModelFileError(name, "is not a model", Remedy("save table"))
        self.model, self.model_name, self.model_overview = self.folder / f"given{kind}", name, None
        await self._write(self.model, pieces)

    async def _write(self, path: Path, pieces: AsyncIterator[bytes]) -> None:
        with path.open("wb") as file:
            async for piece in pieces:
                self.n_bytes += len(piece)
                self.touched = monotonic()
                file.write(piece)

    def read(self) -> None:
        """Begin to look at the table."""
        self._start("reading", self._read())

    def look_at_model(self) -> None:
        """Begin to check the model, and whether the table has what it needs."""
        self._start("reading", self._look_at_model())

    def recover(self, options: Mapping[str, Any]) -> None:
        """Begin to recover the table, with arguments of ``recover_table``."""
        self.task = "recover"
        self._start("running", self._compute(options))

    def predict(self, options: Mapping[str, Any]) -> None:
        """Begin to predict its rows with the model, with arguments of ``predict_table``."""
        self.task = "predict"
        self._start("running", self._compute(options))

    def _start(self, state: State, work: Awaitable[None]) -> None:
        self.state, self.what, self.share, self.problem, self.cancelled = state, "starting", 0.0, "", False
        self._called = asyncio.Event()
        self._task = asyncio.create_task(self._finish(work))

    async def _finish(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception:
            logger.exception("a job failed")
            self.state = "ready" if self.overview else "new"
            self.problem = "The program behind this page failed; its log says how."

    async def _read(self) -> None:
        answer, self.problem = await self._run("overview", {}, LOOK_SECONDS)
        self.sheets = answer.get("sheets", [])
        self.overview = None if self.problem or self.sheets else answer
        self.state = "ready" if self.overview else "choosing" if self.sheets else "new"

    async def _look_at_model(self) -> None:
        answer, self.problem = await self._run("model", {}, LOOK_SECONDS)
        self.model_overview = None if self.problem else answer
        self.state = "ready"

    async def _compute(self, options: Mapping[str, Any]) -> None:
        self._remove_results()
        # A folder for each run: a workbook that is still being written for the last one never ends up among these.
        self.n_runs += 1
        self._results_folder.mkdir()
        names = {"csv": "output", "report": "report", "model": "model"}
        written = {names[which]: file for which, file in self.results.items() if which in names}
        files = {name: f"{self._results_folder.name}/{file}" for name, file in written.items()}
        _, problem = await self._run(self.task, {"options": options, "files": files, "command": "hidldl app"})
        if problem:
            self._remove_results()
        self.state, self.problem = ("ready" if problem else "done"), problem

    async def _run(
        self, action: str, more: Mapping[str, Any], seconds: float | None = None
    ) -> tuple[dict[str, Any], str]:
        """Have a request answered when it is the job's turn; its answer, or the problem."""
        async with self.lines[self.state].turn(self._called, self._wait):
            return ({}, CANCELLED) if self.cancelled else await self._answer(action, more, seconds)

    def _wait(self, place: int) -> None:
        if (place, self.place) != (0, 0):
            self.what = f"in line, place {place}: other tables are worked on first" if place else "starting"
        self.place = place

    async def _answer(self, action: str, more: Mapping[str, Any], seconds: float | None) -> tuple[dict[str, Any], str]:
        """Have a request answered by a program of its own, in the job's folder, within so many seconds."""
        assert self.table is not None
        request = {"action": action, "path": self.table.name, "name": self.name, "sheet": self.sheet, **more}
        if self.model is not None:
            request |= {"given_model": self.model.name, "model_name": self.model_name}
        # -P: a table is never taken for a module. A relative name of a folder would mean another one there.
        command = (sys.executable, "-P", "-m", "hidldl.app.work")
        places = [str(Path(place).absolute()) for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
        kept = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(self.folder))}
        python = {"PYTHONPATH": os.pathsep.join(places), "PYTHONIOENCODING": "utf-8"}
        environment = {**kept, **python, **self.environment}
        pipe = asyncio.subprocess.PIPE
        try:
            self._process = process = await asyncio.create_subprocess_exec(
                *command, cwd=self.folder, env=environment, stdin=pipe, stdout=pipe, stderr=pipe, limit=LONGEST_LINE
            )
        except (OSError, ValueError) as error:
            return {}, f"The computation cannot be started: {error}."
        if self.cancelled:
            process.kill()
        assert process.stdin is not None and process.stderr is not None
        with suppress(BrokenPipeError, ConnectionResetError):
            process.stdin.write(json.dumps(request).encode() + b"\n")
            await process.stdin.drain()
        try:
            async with asyncio.timeout(seconds):
                last, errors = await asyncio.gather(self._follow(process), process.stderr.read())
        except TimeoutError:
            process.kill()
            return {}, f"This file takes longer than {seconds:g} seconds to read; use the command hidldl recover."
        finally:
            process.stdin.close()  # not earlier: the program would take it that the server is gone
            await process.wait()
            self._process = None
        if self.cancelled:
            return {}, CANCELLED
        if "problem" in last:
            return {}, str(last["problem"])
        if "answer" in last and process.returncode == 0:
            return dict(last["answer"]), ""
        return {}, _what_went_wrong(errors.decode("utf-8", "replace"))

    async def _follow(self, process: asyncio.subprocess.Process) -> dict[str, Any]:
        """Take note of how far it is; its last line."""
        assert process.stdout is not None
        last: dict[str, Any] = {}
        async for line in process.stdout:
            try:
                last = json.loads(line)
            except ValueError:
                continue
            if "words" in last:
                self.what, self.share = str(last["words"]), float(last["done"]) / float(last["total"])
        return last

    async def cancel(self) -> None:
        """End the program at once, and wait until it is gone."""
        if self._task is None or self._task.done():
            return
        self.cancelled = True
        self._called.set()
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.terminate()
        done, _ = await asyncio.wait({self._task}, timeout=GRACE_SECONDS)
        if not done and self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
        await self._task

    def kill(self) -> None:
        """End the program at once, where nobody can wait any more."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()

    @property
    def results(self) -> dict[str, str]:
        """The files that its task leaves."""
        return RESULTS[self.task]

    def result(self, which: str) -> Path | None:
        """One of the files that a finished run left."""
        return self._results_folder / self.results[which] if self.state == "done" and which in self.results else None

    @property
    def _results_folder(self) -> Path:
        return self.folder / f"results-{self.n_runs}"

    def _remove_results(self) -> None:
        for path in self.folder.iterdir():
            if path not in (self.table, self.model):
                shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)


class Jobs:
    """All jobs of a server; which page has which is known by its unguessable id only."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._jobs: dict[str, Job] = {}
        self._lines: dict[State, Line] = {"reading": Line(N_READ), "running": Line(N_COMPUTED)}
        self._folder: ServerFolder | None = None
        self._environment: dict[str, str] = {}

    def begin(self) -> None:
        """Make the folder of all tables."""
        self._folder = ServerFolder()
        if not can_keep():
            # Only the first table waits for the compiler.
            self._environment = {"NUMBA_CACHE_DIR": str(self._folder.path / "compiled")}

    def new(self, name: str) -> Job:
        """A job with a folder of its own."""
        assert self._folder is not None
        if len(self._jobs) >= MOST_JOBS:
            raise BusyError(f"{MOST_JOBS} tables are open in other pages; close one of them first.")
        if sum(job.n_bytes for job in self._jobs.values()) >= MOST_LARGE * self._most_bytes:
            raise BusyError("The tables that are open in other pages take all the room; close one of them first.")
        job = Job(name or "table", self._folder.new(), self._lines, self._environment)
        self._jobs[job.id] = job
        return job

    def get(self, id: str) -> Job | None:
        """The job of that id, if there is one; it counts as used."""
        job = self._jobs.get(id)
        if job is not None:
            job.touched = monotonic()
        return job

    async def forget(self, job: Job) -> None:
        """End its work and remove its files."""
        self._jobs.pop(job.id, None)
        await job.cancel()
        shutil.rmtree(job.folder, ignore_errors=True)

    async def forget_all(self) -> None:
        """End all work, and remove every file."""
        await asyncio.gather(*(self.forget(job) for job in list(self._jobs.values())))
        self.end()

    def end(self) -> Path | None:
        """End all work at once and remove every file; the folder, if it could not be removed."""
        for job in self._jobs.values():
            job.kill()
        if self._folder is not None:
            self._folder.remove()
        return self._folder.path if self._folder is not None and self._folder.path.exists() else None

    async def forget_idle(self, idle_seconds: float = IDLE_SECONDS) -> None:
        """For ever: forget jobs whose page is gone."""
        while True:
            await asyncio.sleep(idle_seconds / 10)
            silent = [job for job in self._jobs.values() if monotonic() - job.touched > idle_seconds]
            await asyncio.gather(*(self.forget(job) for job in silent))


def _what_went_wrong(errors: str) -> str:
    lines = [line for line in errors.splitlines() if line.strip()]
    if lines:
        return f"hidldl failed, which it should not: {lines[-1][:300]}"
    return "The computation was ended from outside, perhaps because it needed more memory than there is."
