"""SIGKILL in the middle of a run of `iscsi`: no process, mount, socket or file stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from helpers.real import await_end, children, hosts_of, is_ours, leaves_nothing
from helpers.support import PATIENCE_SECONDS

from framegauge.experiment.planning import searched
from framegauge.workloads.iscsi import NEEDS

STUDY = """\
question: Who is killed?
testbed: {kind: rack, topology: rack, hosts: 3, link: {rate: 200 Mb/s}}
factors: {mtu: {levels: [1500, 9000], baseline: 1500}}
workloads: [{iscsi: {duration: 60 s}}]
control: false
blocks: 2
"""

pytestmark = [pytest.mark.needs(each.name, remedy=each.remedy) for each in NEEDS if not each.is_there(searched())]


def test_killed_in_the_middle_of_a_run_nothing_stays(tmp_path: Path) -> None:
    family: list[int] = []
    before = programs()
    mounts, sockets = Path("/proc/self/mountinfo").read_text(), set(Path("/run").glob("tgtd*"))
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    with leaves_nothing(lambda: await_end(family)):
        command = [sys.executable, "-m", "framegauge", "study", str(path), "--out", str(tmp_path / "out")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as controller:
            try:
                await_work(controller)
                root = children(controller.pid)[0]
                family += [root, *hosts_of(root), *(programs() - before)]
            finally:
                os.kill(controller.pid, signal.SIGKILL)
            controller.communicate(timeout=PATIENCE_SECONDS)
    assert len(family) >= 1 + 3 + 3  # with the target and two clients
    assert programs() <= before
    assert Path("/proc/self/mountinfo").read_text() == mounts
    assert set(Path("/run").glob("tgtd*")) == sockets


def await_work(controller: subprocess.Popen[bytes]) -> None:
    """Until the target and both clients are there, and the clients have had time to log in."""
    until = time.monotonic() + PATIENCE_SECONDS
    while controller.poll() is None and time.monotonic() < until:
        if len(programs(b"framegauge.apps.iscsi.client")) == 2 and programs(b"tgtd\0"):
            time.sleep(0.5)
            return
        time.sleep(0.05)
    raise AssertionError("found no target with two clients, expected them")


def programs(*words: bytes) -> set[int]:
    """The processes of these tests that have one of these among their words: target and clients."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            text = place.read_bytes()
            named = any(each in text for each in words or (b"tgtd\0", b"framegauge.apps.iscsi."))
            if named and is_ours(place.parent.name):
                found.add(int(place.parent.name))
    return found
