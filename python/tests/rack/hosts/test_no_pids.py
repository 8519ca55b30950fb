"""A controller that gets no process or thread more (pids.max of its cgroup) says so, and leaves everything as it was."""

from __future__ import annotations

import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.rollouts import PATIENCE_SECONDS, entries, file_of, until
from helpers.support import NotRun
from helpers.switched import Lab, lab

# Of the older cgroups, and of version 2.
PLACES = (Path("/sys/fs/cgroup/pids"), Path("/sys/fs/cgroup"))
FEW = 3


@pytest.fixture
def few() -> Iterator[Path]:
    """A cgroup for few processes."""
    parent = next((each for each in PLACES if (each / "cgroup.procs").exists()), PLACES[-1])
    group = parent / f"framegauge-test-{secrets.token_hex(4)}"
    group.mkdir()
    try:
        if not (group / "pids.max").exists():
            NotRun().stop("no cgroup here counts processes")
        (group / "pids.max").write_text(str(FEW))
        yield group
    finally:
        assert until(lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


@pytest.fixture(scope="module")
def hosts() -> Iterator[Lab]:
    with lab(["a", "b"]) as found:
        yield found


def _run(group: Path, *words: str) -> tuple[int, str]:
    inside = 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"'
    command = ["sh", "-c", inside, "sh", str(group), sys.executable, "-m", "framegauge", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    return done.returncode, done.stderr


def _is_told(said: str) -> bool:
    """By this program, or by an agent; as an error, and not as a program that breaks."""
    told = "pids.max" in said or "Resource temporarily unavailable" in said
    return told and "Traceback" not in said and "panicked" not in said


def test_a_check_says_so_and_finds_no_fault(few: Path, hosts: Lab) -> None:
    code, said = _run(few, "check", *(f"netns:{name}" for name in hosts.hosts.values()))
    assert (code, _is_told(said)) == (2, True), said


def test_a_roll_out_says_so_and_changes_nothing(few: Path, hosts: Lab, tmp_path: Path) -> None:
    path = file_of(hosts, tmp_path)
    code, said = _run(few, "rollout", "apply", str(path))
    assert (code in (1, 2), _is_told(said)) == (True, True), said
    assert hosts.is_old()
    assert entries(path) == []
