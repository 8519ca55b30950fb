"""Hadoop on a rack: what it counts itself, what its sockets carried, and what passed the fabric say the same.

Each run starts a cluster: one of four workers and 100 MB takes minutes of two CPUs, so every day has two and 10 MB.
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
import yaml
from helpers.real import await_end, children, hosts_of, leaves_nothing, run
from helpers.support import ROOT, SOAK, NotRun, by_length

from framegauge.agents.pipe import Agent
from framegauge.apps import store
from framegauge.errors import FramegaugeError
from framegauge.results.journal import Run
from framegauge.study import file as study_file
from framegauge.study.model import Study
from framegauge.testbeds.base import Json
from framegauge.testbeds.rack import SAMPLE_SECONDS, RackTestbed
from framegauge.workloads.hadoop import HDFS_PORT, SHUFFLE_PORT

pytestmark = pytest.mark.thorough
# What teragen's first so many rows sum up to, on any machine.
CHECKSUMS = {100_000: "c327a1c42c28", 1_000_000: "7a27e2d0d55de"}
ROW_BYTES = 104  # of the shuffle, with what Hadoop adds to each
START_SECONDS = 300.0
DAEMONS = 6  # of a master and two workers
EXAMPLE = ROOT / "examples/terasort-short.yaml"
SMALL = """\
treatment: nagle
question: Does a run leave something to the next?
testbed: {kind: rack, topology: rack, hosts: 3, link: {rate: 200 Mb/s}}
factors:
  mtu: 1500
  nagle: {levels: [off, on], baseline: off}
workloads:
  - mapreduce: {job: terasort, size: 10 MB}
control: false
blocks: 2
retries: 0
"""


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


def data_packets(capture: bytes) -> dict[str, list[int]]:
    """The IP length of every packet that left a port of the fabric with data of the shuffle, or of HDFS to or from a
    worker.

    The capture is a pcapng file: blocks of interfaces (1), whose names tell ports and sides, and of frames (6).
    """
    found: dict[str, list[int]] = {"shuffle": [], "hdfs": []}
    names, place = [], 0
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
            size, (source, target) = struct.unpack_from("!H", packet, 2)[0], struct.unpack_from("!HH", packet, header)
            payload = size - header - 4 * (packet[header + 12] >> 4)
            if packet[9] != socket.IPPROTO_TCP or payload <= 0:
                continue
            if source == SHUFFLE_PORT:
                found["shuffle"].append(size)
            elif HDFS_PORT in (source, target):
                found["hdfs"].append(size)
    return found


def of_the_middle_byte(packets: Sequence[int]) -> int:
    """The length of the packet that carries it: half of all bytes travel in packets that are as long or longer."""
    left = sum(packets) / 2
    for size in sorted(packets, reverse=True):
        left -= size
        if left <= 0:
            return size
    raise AssertionError("found no packets, expected some")


def name_of(interface: bytes) -> str:
    """The option if_name (2) of an interface's block."""
    place = 8
    while True:
        code, length = struct.unpack_from("<HH", interface, place)
        if code == 2:
            return interface[place + 4 : place + 4 + length].decode()
        place += 4 + (length + 3) // 4 * 4


def sort_of(size: str, workers: int) -> Study:
    """The example with these."""
    asked = yaml.safe_load(EXAMPLE.read_text())
    asked["testbed"]["hosts"] = 1 + workers
    asked["workloads"][0]["mapreduce"]["size"] = size
    return study_file.parse(yaml.safe_dump(asked), "study.yaml")


def alone(asked: Study, mtu: int, nagle: bool) -> Study:
    """One run at one MTU, with Nagle's algorithm on or off by the preloaded library."""
    words = {"mtu": {"levels": [mtu], "baseline": mtu}, "nagle": nagle}
    factors = {name: getattr(type(asked.factors).model_validate(words), name) for name in words}
    update = {"blocks": 1, "retries": 0, "factors": asked.factors.model_copy(update=factors)}
    return asked.model_copy(update=update)


def reasons(each: Run) -> list[str]:
    """Why a run is excluded, but for a machine that is not quiet enough: that is not the question here."""
    return [line for line in each.excluded if not line.startswith("fidelity: ")]


@pytest.mark.needs("java")
@pytest.mark.soak(4)
@pytest.mark.parametrize(("mtu", "nagle"), by_length([(9000, False)], [(1500, True), (9000, False)]))
def test_hadoop_sockets_and_fabric_agree_and_the_sort_is_right(
    rack_agent: Agent, hadoop: Path, tmp_path: Path, mtu: int, nagle: bool
) -> None:
    size, rows, workers = by_length(("10 MB", 100_000, 2), ("100 MB", 1_000_000, 4))
    bed = Captured(rack_agent)
    bed.captures = []
    (found,) = run(rack_agent, alone(sort_of(size, workers), mtu, nagle), tmp_path / "out", bed)
    assert reasons(found) == []
    record = saved(tmp_path / "out", found.number)["workload"]
    assert record["checked"] == {"checksum": CHECKSUMS[rows], "rows": rows}
    (job,) = record["jobs"]
    carried = record["traffic_by_purpose"]
    shuffled = sum(carried[where]["shuffle_bytes"] for where in ("between_hosts", "within_hosts"))
    assert shuffled == pytest.approx(job["shuffle_bytes"], rel=0.01)
    assert job["shuffle_bytes"] == pytest.approx(ROW_BYTES * rows, rel=0.01)
    assert 0 < job["task_cpu_seconds"] == found.metrics["task_cpu_time"]
    assert found.metrics["task_cpu_cost"] * record["bytes"] / 1e9 == pytest.approx(job["task_cpu_seconds"])
    assert 0 < found.metrics["shuffle_time"] < found.metrics["job_time"]
    # Tasks, which YARN starts, have the library, too: the shuffle's clients are such.
    assert set(record["nodelay"]) == {f"h{number} (java)" for number in range(1, 2 + workers)}
    assert {value for values in record["nodelay"].values() for value in values} == {not nagle}
    (capture,) = bed.captures
    packets = data_packets(capture)
    # All of what went to other hosts, headers included, passed the fabric.
    assert sum(packets["shuffle"]) == pytest.approx(carried["between_hosts"]["shuffle_bytes"], rel=0.05)
    carrying = packets["shuffle"] + packets["hdfs"]
    assert of_the_middle_byte(carrying) > 8000 if mtu == 9000 else max(carrying) <= 1500
    if SOAK:  # so much data that the few small packets of each transfer do not matter
        mean = statistics.fmean(carrying)
        assert mean > 8000 if mtu == 9000 else mean < 1500


if SOAK:

    @pytest.mark.needs("java")
    @pytest.mark.soak(4)
    def test_one_run_leaves_the_next_no_port_lock_or_data(rack_agent: Agent, hadoop: Path, tmp_path: Path) -> None:
        """Two runs in one study, of which Nagle's algorithm is the treatment."""
        asked = study_file.parse(SMALL, "study.yaml").model_copy(update={"blocks": 1})
        runs = run(rack_agent, asked, tmp_path / "out")
        assert sorted(each.level for each in runs) == [False, True]
        for each in runs:
            assert reasons(each) == []
            record = saved(tmp_path / "out", each.number)["workload"]
            assert record["checked"]["rows"] == 100_000
            assert {value for values in record["nodelay"].values() for value in values} == {not each.level}

    @pytest.mark.needs("java")
    @pytest.mark.soak(3)
    def test_a_search_finds_every_row_and_shuffles_almost_nothing(
        rack_agent: Agent, hadoop: Path, tmp_path: Path
    ) -> None:
        asked = study_file.parse(SMALL.replace("terasort", "grep"), "study.yaml")
        (found,) = run(rack_agent, alone(asked, 1500, False), tmp_path / "out")
        assert reasons(found) == []
        record = saved(tmp_path / "out", found.number)["workload"]
        assert record["checked"] == {"rows": 100_000}
        assert [job["name"] for job in record["jobs"]] == ["grep-search", "grep-sort"]
        assert 0 < record["jobs"][0]["shuffle_bytes"] < 1_000_000
        assert found.metrics["job_time"] >= sum(job["seconds"] for job in record["jobs"])


def saved(folder: Path, number: int) -> Json:
    """The whole record of a run."""
    found: Json = json.loads((folder / f"runs/{number}/record.json").read_text())
    return found


if SOAK:

    @pytest.mark.needs("java")
    @pytest.mark.soak(1)
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
                controller.communicate(timeout=60)
        assert len(family) > DAEMONS
        assert programs() <= others
        assert set(os.listdir("/")) <= here[0]
        assert Path("/proc/self/mountinfo").read_text() == here[2]
        written = set(os.listdir("/tmp")) - here[1]
        assert [name for name in written if name.lower().startswith(("hadoop", "hsperf", "jetty", "yarn"))] == []

    def await_task(others: set[int], controller: subprocess.Popen[bytes]) -> None:
        """Until a task of a job runs."""
        until = time.monotonic() + START_SECONDS
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
