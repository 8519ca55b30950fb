"""Programs under a limit of a cgroup of their own, of whichever version this machine has."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from helpers.rollouts import until
from helpers.support import PATIENCE_SECONDS, NotRun

ROOT = Path("/sys/fs/cgroup")
# Of the older cgroups, which have a folder for each controller, and of version 2.
LIMITS = {"pids": ("pids.max", "pids.max"), "memory": ("memory.limit_in_bytes", "memory.max")}


@contextmanager
def limited(controller: str, limit: int) -> Iterator[Path]:
    """A cgroup whose processes, or bytes of memory, are at most so many."""
    is_old = (ROOT / controller / "cgroup.procs").exists()
    group = (ROOT / controller if is_old else ROOT) / f"framegauge-test-{secrets.token_hex(4)}"
    name = group / LIMITS[controller][0 if is_old else 1]
    group.mkdir()
    try:
        if not name.exists():
            NotRun().stop(f"no cgroup here limits {controller}")
        name.write_text(str(limit))
        yield group
    finally:
        assert until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def framegauge(group: Path, *words: object, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """A command in a cgroup: its exit code, and what it said on standard error."""
    return within(group, sys.executable, "-m", "framegauge", *words, environment=environment)


def within(group: Path, *words: object, environment: Mapping[str, str] | None = None) -> tuple[int, str]:
    """Any program in a cgroup, likewise."""
    inside = 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"'
    command = ["sh", "-c", inside, "sh", str(group), *map(str, words)]
    done = subprocess.run(
        command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE_SECONDS, check=False,
        env=environment,
    )  # fmt: skip
    return done.returncode, done.stderr
