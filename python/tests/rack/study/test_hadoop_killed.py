"""SIGKILL in the middle of a job of Hadoop: no process, mount or file stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from helpers.hadoop import SMALL, hadoop as hadoop
from helpers.real import await_end, children, hosts_of, leaves_nothing
from helpers.support import PATIENCE_SECONDS

pytestmark = pytest.mark.thorough
DAEMONS = 6  # of a master and two workers


@pytest.mark.needs("java")
def test_killed_in_the_middle_of_a_run_nothing_stays(hadoop: Path, tmp_path: Path) -> None:
    """SIGKILL of the controller while tasks of a job run."""
    family: list[int] = []
    others = programs()
    here = set(os.listdir("/")), set(os.listdir("/tmp")), Path("/proc/self/mountinfo").read_text()
    path = tmp_path / "study.yaml"
    path.write_text(SMALL)
    with leaves_nothing(lambda: await_end(family)):
        command = [sys.executable, "-m", "framegauge", "study", str(path), "--out", str(tmp_path / "out")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as controller:
            try:
                await_task(others, controller)
                root = children(controller.pid)[0]
                family += [root, *hosts_of(root), *(programs() - others)]
            finally:
                os.kill(controller.pid, signal.SIGKILL)
            controller.communicate(timeout=PATIENCE_SECONDS)
    assert len(family) > DAEMONS
    assert programs() <= others
    assert set(os.listdir("/")) <= here[0]
    assert Path("/proc/self/mountinfo").read_text() == here[2]
    written = set(os.listdir("/tmp")) - here[1]
    assert [name for name in written if name.lower().startswith(("hadoop", "hsperf", "jetty", "yarn"))] == []


def await_task(others: set[int], controller: subprocess.Popen[bytes]) -> None:
    """Until a task of a job runs."""
    until = time.monotonic() + PATIENCE_SECONDS
    while controller.poll() is None and time.monotonic() < until:
        if programs(b"org.apache.hadoop.mapred.YarnChild") - others:
            return
        time.sleep(0.2)
    raise AssertionError("found no task of a job, expected one")


def programs(word: bytes = b"org.apache.hadoop.") -> set[int]:
    """The processes that have this among their words: daemons, clients and tasks of Hadoop."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if word in place.read_bytes():
                found.add(int(place.parent.name))
    return found
