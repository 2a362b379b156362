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
import tempfile
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Literal, TypeAlias

from hidldl.errors import TableError
from hidldl.tables.sources import split_suffix

logger = logging.getLogger(__name__)
State: TypeAlias = Literal["new", "reading", "choosing", "ready", "running", "done"]
MOST_JOBS = 8
IDLE_SECONDS = 900.0
"""An open page asks once a minute; one that is silent for so long is gone."""
GRACE_SECONDS = 3.0
LONGEST_LINE = 2**26
RESULTS = {"csv": "recovered.csv", "xlsx": "recovered.xlsx", "report": "report.html", "model": "model.npz"}


class BusyError(Exception):
    """Not now; the message says what to wait for."""


class TooLargeError(Exception):
    """More bytes than are taken."""


@dataclass
class Job:
    """A table that a page has handed in. ``problem`` is what the last step ended in, if it did not end well."""

    name: str
    folder: Path
    id: str = field(default_factory=lambda: secrets.token_urlsafe(24))
    table: Path | None = None
    sheet: str | None = None
    sheets: list[str] = field(default_factory=list)
    state: State = "new"
    what: str = ""
    share: float = 0.0
    problem: str = ""
    cancelled: bool = False
    overview: dict[str, Any] | None = None
    touched: float = field(default_factory=monotonic)
    _process: asyncio.subprocess.Process | None = None
    _task: asyncio.Task[None] | None = None

    async def take(self, pieces: AsyncIterator[bytes], most_bytes: int) -> None:
        """Write the table as it comes. Of the name that a user gave it, only the kind of file is used."""
        _, kind, compression = split_suffix(self.name)
        if not kind:
            raise TableError(f"{self.name}: hidldl reads .csv, .tsv, .txt, .parquet and .xlsx files, also .csv.gz.")
        self.table = self.folder / f"table{kind}{compression}"
        n_bytes = 0
        with self.table.open("wb") as file:
            async for piece in pieces:
                n_bytes += len(piece)
                self.touched = monotonic()
                if n_bytes > most_bytes:
                    raise TooLargeError
                file.write(piece)

    def read(self) -> None:
        """Begin to look at the table."""
        self._start("reading", self._read())

    def recover(self, options: Mapping[str, Any]) -> None:
        """Begin to recover it, with arguments of ``recover_table``."""
        self._start("running", self._recover(options))

    def _start(self, state: State, work: Awaitable[None]) -> None:
        self.state, self.what, self.share, self.problem, self.cancelled = state, "starting", 0.0, "", False
        self._task = asyncio.create_task(self._finish(work))

    async def _finish(self, work: Awaitable[None]) -> None:
        try:
            await work
        except Exception:
            logger.exception("a job failed")
            self.state = "ready" if self.overview else "new"
            self.problem = "The program behind this page failed; its log says how."

    async def _read(self) -> None:
        assert self.table is not None
        request = {"action": "overview", "path": self.table.name, "name": self.name, "sheet": self.sheet}
        answer, self.problem = await self._run(request)
        self.sheets = answer.get("sheets", [])
        self.overview = None if self.problem or self.sheets else answer
        self.state = "ready" if self.overview else "choosing" if self.sheets else "new"

    async def _recover(self, options: Mapping[str, Any]) -> None:
        assert self.table is not None
        self._remove_results()
        files = {"output": RESULTS["csv"], "report": RESULTS["report"], "model": RESULTS["model"]}
        request = {
            "action": "recover",
            "path": self.table.name,
            "options": {**options, "name": self.name, "sheet": self.sheet},
            "files": files,
            "command": "hidldl app",
        }
        _, problem = await self._run(request)
        if problem:
            self._remove_results()
        self.state, self.problem = ("ready" if problem else "done"), problem

    async def _run(self, request: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Have a request answered by a program of its own, in the job's folder; its answer, or the problem."""
        # -P: a table is never taken for a module. A relative name of a folder would mean another one there.
        command = (sys.executable, "-P", "-m", "hidldl.app.work")
        places = [str(Path(place).absolute()) for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
        kept = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(self.folder))}
        environment = {**kept, "PYTHONPATH": os.pathsep.join(places), "PYTHONIOENCODING": "utf-8"}
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
            process.stdin.write(json.dumps(request).encode())
            await process.stdin.drain()
        process.stdin.close()
        last, errors, _ = await asyncio.gather(self._follow(process), process.stderr.read(), process.wait())
        self._process = None
        if self.cancelled:
            return {}, "Cancelled; nothing was kept but the table."
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
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.terminate()
        done, _ = await asyncio.wait({self._task}, timeout=GRACE_SECONDS)
        if not done and self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
        await self._task

    def result(self, which: str) -> Path | None:
        """One of the files that a finished run left."""
        return self.folder / RESULTS[which] if self.state == "done" and which in RESULTS else None

    def _remove_results(self) -> None:
        for path in self.folder.iterdir():
            if path != self.table:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


class Jobs:
    """All jobs of a server; which page has which is known by its unguessable id only."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    def new(self, name: str) -> Job:
        """A job with a folder of its own."""
        if len(self._jobs) >= MOST_JOBS:
            raise BusyError(f"{MOST_JOBS} tables are open in other pages; close one of them first.")
        job = Job(name or "table", Path(tempfile.mkdtemp(prefix="hidldl-app-")))
        self._jobs[job.id] = job
        return job

    def get(self, id: str) -> Job | None:
        """The job of that id, if there is one; it counts as used."""
        job = self._jobs.get(id)
        if job is not None:
            job.touched = monotonic()
        return job

    def refuse_second_run(self) -> None:
        """One computation at a time: it uses every core."""
        if any(job.state == "running" for job in self._jobs.values()):
            raise BusyError("another table is being recovered just now; try again when it is done.")

    async def forget(self, job: Job) -> None:
        """End its work and remove its files."""
        self._jobs.pop(job.id, None)
        await job.cancel()
        shutil.rmtree(job.folder, ignore_errors=True)

    async def forget_all(self) -> None:
        await asyncio.gather(*(self.forget(job) for job in list(self._jobs.values())))

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
