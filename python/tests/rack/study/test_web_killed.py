"""A web site whose controller is killed in the middle of a run leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from helpers.real import await_end, children, hosts_of, leaves_nothing
from helpers.support import PATIENCE_SECONDS

STUDY = """\
question: Who is killed?
testbed: {kind: rack, topology: rack, hosts: 7, link: {rate: 200 Mb/s}}
factors:
  mtu: {levels: [1500, 9000], baseline: 1500}
workloads:
  - web: {users: 5, think: 0.5 s, ramp_up: 1 s, steady: 60 s}
control: false
blocks: 2
"""


def test_a_controller_that_is_killed_leaves_nothing_of_it(tmp_path: Path) -> None:
    """In the middle of a run, with all servers at work."""
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    mounts = Path("/proc/self/mountinfo").read_text()
    family: list[int] = []
    with leaves_nothing(lambda: await_end(family)):
        command = [sys.executable, "-m", "framegauge", "study", str(path), "--out", str(tmp_path / "out")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as controller:
            programs = until_at_work(controller)
            root = children(controller.pid)[0]
            family += [root, *programs, *hosts_of(root)]
            os.kill(controller.pid, signal.SIGKILL)
            controller.communicate(timeout=PATIENCE_SECONDS)
    assert Path("/proc/self/mountinfo").read_text() == mounts


def until_at_work(controller: subprocess.Popen[bytes]) -> list[int]:
    """The programs of the site, once its users have come."""
    until = time.monotonic() + PATIENCE_SECONDS
    while controller.poll() is None and time.monotonic() < until:
        found = dict(below(controller.pid))
        names = " ".join(found.values())
        if all(each in names for each in ("web.driver", "web.site", "nginx", "memcached", "postgres", "ganesha.nfsd")):
            return [process for process, words in found.items() if "framegauge-agent" not in words]
        time.sleep(0.05)
    controller.kill()
    raise AssertionError(controller.communicate()[1].decode())


def below(process: int) -> Iterator[tuple[int, str]]:
    """Everything that a process has started, with its words."""
    for each in children(process):
        try:
            yield each, Path(f"/proc/{each}/cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (FileNotFoundError, ProcessLookupError):
            continue
        yield from below(each)
