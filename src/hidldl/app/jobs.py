"""One table each: its folder, the program that works on it, how far that is, and the removal of everything.

Work is done by ``hidldl recover`` itself, as a program of its own: it can be cancelled, its memory goes with it, and
what it refuses is what the shell refuses.
"""

import asyncio
import json
import logging
import os
import secrets
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Literal, TypeAlias

from hidldl.app.words import in_words
from hidldl.errors import TableError
from hidldl.tables.sources import split_suffix

logger = logging.getLogger(__name__)
State: TypeAlias = Literal["new", "reading", "choosing", "ready", "running", "done"]
MOST_JOBS = 8
IDLE_SECONDS = 900.0
"""An open page asks once a minute; one that is silent for so long is gone."""
GRACE_SECONDS = 3.0
LONGEST_LINE = 2**20
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
    named: bool = False
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

    def recover(self, options: Sequence[str], *, named: bool) -> None:
        """Begin to recover it, with options of ``hidldl recover``; ``named`` if a column names the rows."""
        self.named = named
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
        said, self.problem = await self._run("hidldl.app.overview", *self._of_sheet(), "--", self.table.name, self.name)
        found = {} if self.problem else json.loads(said)
        self.sheets = found.get("sheets", [])
        self.overview = None if self.problem or self.sheets else found
        self.state = "ready" if self.overview else "choosing" if self.sheets else "new"

    async def _recover(self, options: Sequence[str]) -> None:
        assert self.table is not None
        self._remove_results()
        files = ("-o", RESULTS["csv"], "--report", RESULTS["report"], "--model", RESULTS["model"])
        called = ("--name", self.name, "--progress", "json", "--quiet")
        _, problem = await self._run("hidldl", "recover", self.table.name, *self._of_sheet(), *options, *files, *called)
        if problem:
            self._remove_results()
        self.state, self.problem = ("ready" if problem else "done"), problem

    def _of_sheet(self) -> tuple[str, ...]:
        return () if self.sheet is None else ("--sheet", self.sheet)

    async def _run(self, module: str, *arguments: str) -> tuple[bytes, str]:
        """Run a module in the job's folder; what it printed, and in what it ended if not well."""
        # -P: a table is never taken for a module. A relative name of a folder would mean another one there.
        command = (sys.executable, "-P", "-m", module, *arguments)
        places = [str(Path(place).absolute()) for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place]
        kept = {**os.environ, **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(self.folder))}
        environment = {**kept, "PYTHONPATH": os.pathsep.join(places), "PYTHONIOENCODING": "utf-8"}
        pipe = asyncio.subprocess.PIPE
        try:
            self._process = process = await asyncio.create_subprocess_exec(
                *command, cwd=self.folder, env=environment, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe,
                limit=LONGEST_LINE,
            )  # fmt: skip
        except (OSError, ValueError) as error:
            return b"", f"The computation cannot be started: {error}."
        if self.cancelled:
            process.kill()
        assert process.stdout is not None
        said, last_line, _ = await asyncio.gather(process.stdout.read(), self._follow(process), process.wait())
        self._process = None
        if self.cancelled:
            return b"", "Cancelled; nothing was kept but the table."
        return said, _what_went_wrong(process.returncode, last_line)

    async def _follow(self, process: asyncio.subprocess.Process) -> str:
        """Take note of how far it is; its last words."""
        assert process.stderr is not None
        last = ""
        async for line in process.stderr:
            text = line.decode("utf-8", "replace").strip()
            try:
                step = json.loads(text)
                self.what, self.share = str(step["words"]), float(step["done"]) / float(step["total"])
            except (ValueError, TypeError, KeyError):
                last = text or last
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


def _what_went_wrong(status: int | None, last_line: str) -> str:
    if status == 0:
        return ""
    if status in (1, 2) and last_line.startswith("Error: "):
        return in_words(last_line.removeprefix("Error: "))
    if last_line:
        return f"hidldl failed, which it should not: {last_line[:300]}"
    return "The computation was ended from outside, perhaps because it needed more memory than there is."
