"""Where and when the numbers in docs/results were measured, in one line."""

import os
import platform
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGES = ("numpy", "scipy", "scikit-learn", "numba")


def provenance(packages: Sequence[str] = PACKAGES, machine: str = "") -> str:
    """Commit, date, versions and machine of this run. In a copy without history, HIDLDL_COMMIT names the commit."""
    named = os.environ.get("HIDLDL_COMMIT")
    commit = named or _git("rev-parse", "--short", "HEAD") or "unknown"
    # Numbers of code that nobody can check out again must not pass for those of a commit.
    is_changed = not named and _git("status", "--porcelain", "--untracked-files=no", "--", "src", "benchmarks")
    changed = " with changes" if is_changed else ""
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    return (
        f"Measured at commit {commit}{changed} on {datetime.now(UTC):%Y-%m-%d}: Python {platform.python_version()}, "
        f"{versions}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores{machine}."
    )


def write_markdown(path: Path, text: str, source: str | None = None) -> None:
    """Write a table with its provenance as the last line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text.rstrip()}\n\n*{source or provenance()}*\n", encoding="utf-8")


def show(tables: dict[str, str], folder: Path | None) -> None:
    """Print tables by their file names, and write them where a folder is named."""
    for name, text in tables.items():
        print(f"{name}\n\n{text}\n")
        if folder:
            write_markdown(folder / name, text)


def _git(*arguments: str) -> str:
    result = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False)
    return result.stdout.strip()
