"""Hadoop on a rack: what it counts itself, what its sockets carried, and what passed the fabric say the same.

Each run starts a cluster of a master and four workers, which takes a minute and more of two CPUs.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from helpers.real import await_end, children, hosts_of, leaves_nothing, run
from helpers.support import ROOT, SOAK, NotRun

from framegauge.agents.pipe import Agent
from framegauge.apps import store
from framegauge.errors import FramegaugeError
from framegauge.study import file as study_file
from framegauge.testbeds.base import Json
from framegauge.testbeds.rack import SAMPLE_SECONDS, RackTestbed

pytestmark = [pytest.mark.thorough, pytest.mark.needs("java")]
ROWS_CHECKSUM = "7a27e2d0d55de"  # of a million rows of teragen, on any machine
SHUFFLE_PORT = 13562
START_SECONDS = 300.0
DAEMONS = 4  # of the ten that are started
EXAMPLE = ROOT / "examples/terasort-short.yaml"


@pytest.fixture(scope="module")
def hadoop() -> Path:
    """Its folder. CI fetches it; others have it or not."""
    app = store.named("hadoop")
    if not store.installed(app) and os.environ.get("CI") != "true":
        NotRun().stop(f"{app.full_name} is not there: framegauge apps fetch {app.name}")
    try:
        return store.fetch(app, lambda _: None)
    except FramegaugeError as error:
        NotRun().stop(str(error))


class Captured(RackTestbed):
    """A rack that captures what goes to the workers while the job runs."""

    captures: list[bytes]

    def begin(self, watch: Sequence[str] = ()) -> float:
        ports = [f"switch>{host.name}" for host in self.hosts()[1:]]
        begun = super().begin(watch)
        self._agent.request("measure.end")
        self._agent.request("measure.begin", {"sample_seconds": SAMPLE_SECONDS, "watch": ports, "capture": True})
        return begun

    def end(self) -> Json:
        found = super().end()
        assert found["fabric"]["capture_left_out"] == 0
        self.captures.append(self.fetch(found["fabric"]["capture"]))
        return found


def shuffle_packets(capture: bytes) -> list[int]:
    """The IP length of every packet that left a port of the fabric with data of the shuffle.

    The capture is a pcapng file: blocks of interfaces (1), whose names tell ports and sides, and of frames (6).
    """
    found, names, place = [], [], 0
    while place < len(capture):
        kind, length = struct.unpack_from("<II", capture, place)
        body = capture[place + 8 : place + length - 4]
        place += length
        if kind == 1:
            names.append(name_of(body))
        elif kind == 6 and names[struct.unpack_from("<I", body)[0]].endswith(" out"):
            kept = struct.unpack_from("<I", body, 12)[0]
            packet = body[20 : 20 + kept][14:]
            header = 4 * (packet[0] & 15)
            size, port = struct.unpack_from("!H", packet, 2)[0], struct.unpack_from("!H", packet, header)[0]
            payload = size - header - 4 * (packet[header + 12] >> 4)
            if packet[9] == socket.IPPROTO_TCP and port == SHUFFLE_PORT and payload > 0:
                found.append(size)
    return found


def name_of(interface: bytes) -> str:
    """The option if_name (2) of an interface's block."""
    place = 8
    while True:
        code, length = struct.unpack_from("<HH", interface, place)
        if code == 2:
            return interface[place + 4 : place + 4 + length].decode()
        place += 4 + (length + 3) // 4 * 4


# These fetch Hadoop by Maven, and take some minutes each.
if SOAK:

    def test_hadoop_sockets_and_fabric_agree_and_every_sort_is_right(
        rack_agent: Agent, hadoop: Path, tmp_path: Path
    ) -> None:
        """With Nagle off by the preloaded library, which also proves that tasks, started by YARN, have it."""
        asked = study_file.load(EXAMPLE)
        nagle = type(asked.factors).model_validate({"mtu": asked.factors.mtu, "nagle": False}).nagle
        factors = asked.factors.model_copy(update={"nagle": nagle})
        asked = asked.model_copy(update={"blocks": 1, "factors": factors, "retries": 0 if not SOAK else 1})
        bed = Captured(rack_agent)
        bed.captures = []
        runs = run(rack_agent, asked, tmp_path / "out", bed)
        assert sorted(each.level for each in runs) == [1500, 9000]
        for each, capture in zip(runs, bed.captures, strict=True):
            # Whether this machine is quiet enough for 1 Gb/s is not the question here.
            assert [line for line in each.excluded if not line.startswith("fidelity: ")] == []
            record = saved(tmp_path / "out", each.number)["workload"]
            assert record["checked"] == {"checksum": ROWS_CHECKSUM, "rows": 1_000_000}
            (job,) = record["jobs"]
            carried = record["traffic_by_purpose"]
            shuffled = sum(carried[where]["shuffle_bytes"] for where in ("between_hosts", "within_hosts"))
            assert shuffled == pytest.approx(job["shuffle_bytes"], rel=0.01)
            assert job["shuffle_bytes"] == pytest.approx(104_000_000, rel=0.01)
            assert job["task_cpu_seconds"] > 0
            assert 0 < each.metrics["shuffle_time"] < each.metrics["job_time"]
            assert record["nodelay"]
            assert {value for values in record["nodelay"].values() for value in values} == {True}
            packets = shuffle_packets(capture)
            # All of what went to other hosts, headers included, passed the fabric.
            assert sum(packets) == pytest.approx(carried["between_hosts"]["shuffle_bytes"], rel=0.05)
            mean = statistics.fmean(packets)
            assert mean > 8000 if each.level == 9000 else mean < 1500


def saved(folder: Path, number: int) -> Json:
    """The whole record of a run."""
    found: Json = json.loads((folder / f"runs/{number}/record.json").read_text())
    return found


if SOAK:

    def test_killed_in_the_middle_of_a_run_nothing_stays(hadoop: Path, tmp_path: Path) -> None:
        """SIGKILL of the controller while the daemons of a cluster run."""
        family: list[int] = []
        others = programs_of(hadoop)
        here = set(os.listdir("/")), set(os.listdir("/tmp"))
        with leaves_nothing(lambda: await_end(family)):
            command = [sys.executable, "-m", "framegauge", "study", str(EXAMPLE), "--out", str(tmp_path / "out")]
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as controller:
                try:
                    daemons = await_daemons(hadoop, others, controller)
                    root = children(controller.pid)[0]
                    family += [root, *hosts_of(root), *daemons]
                finally:
                    os.kill(controller.pid, signal.SIGKILL)
                controller.communicate(timeout=60)
        assert programs_of(hadoop) <= others
        assert set(os.listdir("/")) <= here[0]
        written = set(os.listdir("/tmp")) - here[1]
        assert [name for name in written if name.lower().startswith(("hadoop", "hsperf", "jetty", "yarn"))] == []

    def await_daemons(hadoop: Path, others: set[int], controller: subprocess.Popen[bytes]) -> set[int]:
        """Some of the daemons, once they run."""
        found, until = set[int](), time.monotonic() + START_SECONDS
        while controller.poll() is None and time.monotonic() < until:
            if len(found := programs_of(hadoop) - others) >= DAEMONS:
                return found
            time.sleep(0.2)
        raise AssertionError(f"found {len(found)} daemons, expected {DAEMONS}")

    def programs_of(hadoop: Path) -> set[int]:
        """The processes that have Hadoop's files among their words."""
        found = set()
        for place in Path("/proc").glob("[0-9]*/cmdline"):
            with suppress(OSError):
                if str(hadoop).encode() in place.read_bytes():
                    found.add(int(place.parent.name))
        return found
