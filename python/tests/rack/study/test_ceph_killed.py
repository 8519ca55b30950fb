"""SIGKILL in the middle of a run of a Ceph cluster: no process, mount, file in memory or socket stays."""

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
from framegauge.workloads.ceph import NEEDS

pytestmark = [pytest.mark.needs(each.name, remedy=each.remedy) for each in NEEDS if not each.is_there(searched())]
DAEMONS = {"ceph-mon": 1, "ceph-osd": 2, "fio": 1}
SYSTEM = [Path(each) for each in ("/etc/ceph", "/var/lib/ceph", "/var/log/ceph", "/run/ceph")]
STUDY = """\
question: Who is killed?
testbed: {kind: rack, topology: rack, hosts: 4, link: {rate: 200 Mb/s}}
factors:
  mtu: {levels: [1500, 9000], baseline: 1500}
workloads:
  - ceph: {replication: 2, image: 16 MiB, rate: 20, duration: 60 s}
control: false
blocks: 2
"""


def segments() -> dict[int, int]:
    """The System V segments of memory, each with the process that made it."""
    rows = [line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]
    return {int(row[1]): int(row[4]) for row in rows}


def test_killed_in_the_middle_of_a_run_nothing_stays(tmp_path: Path) -> None:
    """SIGKILL of the controller while fio writes. Daemons are stopped (SIGSTOP) at other times, and must not survive
    that either."""
    family: list[int] = []
    mounts, sockets, files = Path("/proc/self/mountinfo").read_text(), unix_sockets(), of_the_system()
    memory = segments()
    path = tmp_path / "study.yaml"
    path.write_text(STUDY)
    with leaves_nothing(lambda: await_end(family)):
        command = [sys.executable, "-m", "framegauge", "study", str(path), "--out", str(tmp_path / "out")]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as controller:
            try:
                await_load(controller)
                root = children(controller.pid)[0]
                family += [root, *hosts_of(root), *programs()]
            finally:
                os.kill(controller.pid, signal.SIGKILL)
            controller.communicate(timeout=PATIENCE_SECONDS)
    assert len(family) > sum(DAEMONS.values())
    assert programs() == {}
    assert Path("/proc/self/mountinfo").read_text() == mounts
    assert unix_sockets() <= sockets
    assert of_the_system() <= files
    # Of segments of memory, by the process that made them; an old one may be of a process of the same number.
    assert {maker for name, maker in segments().items() if name not in memory} & set(family) == set()


def await_load(controller: subprocess.Popen[bytes]) -> None:
    """Until all daemons run, and fio writes what is measured."""
    until = time.monotonic() + PATIENCE_SECONDS
    while controller.poll() is None and time.monotonic() < until:
        mine = list(programs().values())
        counts = {name: sum(words[0].endswith(name) for words in mine) for name in DAEMONS}
        loads = [words for words in mine if words[0] == "fio" and words[-1] == "load.fio"]
        if loads and all(counts[name] >= least for name, least in DAEMONS.items()):
            return
        time.sleep(0.1)
    raise AssertionError("found no fio that writes, expected one")


def programs() -> dict[int, list[str]]:
    """The words of the daemons and clients of Ceph that these tests have started, by process."""
    found = {}
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = place.read_bytes().decode(errors="replace").rstrip("\0").split("\0")
            if words[0].rpartition("/")[2] in (*DAEMONS, "ceph", "rbd") and is_ours(place.parent.name):
                found[int(place.parent.name)] = words
    return found


def unix_sockets() -> set[str]:
    """The sockets with a name that belongs to Ceph."""
    lines = Path("/proc/net/unix").read_text().splitlines()
    return {words[7] for words in (line.split() for line in lines) if len(words) > 7 and "ceph" in words[7]}


def of_the_system() -> set[str]:
    """The files of Ceph's own folders, and those in memory that have its name."""
    in_memory = [each for each in Path("/dev/shm").glob("*") if "ceph" in each.name or "fio" in each.name]
    return {str(file) for place in (*SYSTEM, *in_memory) for file in (place, *place.rglob("*"))}
