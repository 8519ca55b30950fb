"""SIGKILL in the middle of calls over NFS: no process, mount, file or socket stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from helpers.real import await_end, children, hosts_of, leaves_nothing
from helpers.support import PATIENCE_SECONDS, by_length

from framegauge.experiment.planning import searched
from framegauge.workloads.nfs import NEEDS

pytestmark = [
    pytest.mark.thorough,
    *(pytest.mark.needs(each.name, remedy=each.remedy) for each in NEEDS if not each.is_there(searched())),
]
PROGRAMS = (b"rpcbind\0-w\0-f", b"ganesha.nfsd\0-f", b"framegauge.apps.nfs.client")
STUDY = """\
question: Who is killed?
testbed: {kind: rack, topology: rack, hosts: 3, link: {rate: 200 Mb/s}}
factors:
  mtu: {levels: [1500, 9000], baseline: 1500}
workloads:
  - nfs: {transport: TRANSPORT, block: 8 KiB, rate: 50, duration: 60 s}
control: false
blocks: 2
"""


@pytest.mark.soak(0.5)
@pytest.mark.parametrize("transport", by_length(["udp"], ["tcp", "udp"]))
def test_killed_in_the_middle_of_a_run_nothing_stays(tmp_path: Path, transport: str) -> None:
    """SIGKILL of the controller while two clients make calls. What ganesha and rpcbind write is in mounts of their own."""
    family: list[int] = []
    others = programs()
    places = [
        Path(each) for each in ("/", "/run", "/dev/shm", "/var/lib/nfs", "/var/lib/nfs/ganesha") if Path(each).is_dir()
    ]
    here = [set(os.listdir(each)) for each in places], Path("/proc/self/mountinfo").read_text()
    path = tmp_path / "study.yaml"
    path.write_text(STUDY.replace("TRANSPORT", transport))
    with leaves_nothing(lambda: await_end(family)):
        command = [sys.executable, "-m", "framegauge", "study", str(path), "--out", str(tmp_path / "out")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as controller:
            try:
                await_calls(others, controller)
                root = children(controller.pid)[0]
                family += [root, *hosts_of(root), *(programs() - others)]
            finally:
                os.kill(controller.pid, signal.SIGKILL)
            controller.communicate(timeout=PATIENCE_SECONDS)
    # The agent, three hosts, rpcbind, ganesha, two clients.
    assert len(family) >= 8
    assert programs() <= others
    assert Path("/proc/self/mountinfo").read_text() == here[1]
    left = [set(os.listdir(each)) - before for each, before in zip(places, here[0], strict=True)]
    assert [name for names in left for name in names if "framegauge" in name or "ganesha" in name] == []


def await_calls(others: set[int], controller: subprocess.Popen[bytes]) -> None:
    """Until the server and both clients run, and a second of calls has passed."""
    until = time.monotonic() + PATIENCE_SECONDS
    while controller.poll() is None and time.monotonic() < until:
        if all(programs((word,)) - others for word in PROGRAMS) and len(programs(PROGRAMS[-1:]) - others) == 2:
            time.sleep(1.0)
            return
        time.sleep(0.1)
    raise AssertionError("found no calls under way, expected some")


def programs(words: tuple[bytes, ...] = PROGRAMS) -> set[int]:
    """The processes that have one of these among their words."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if any(word in place.read_bytes() for word in words):
                found.add(int(place.parent.name))
    return found
