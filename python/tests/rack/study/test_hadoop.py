"""Hadoop on a rack: what it counts itself, what its sockets carried, and what passed the fabric say the same.

Each run starts a cluster: one of four workers and 100 MB takes minutes of two CPUs, so every day has one such run.
"""

from __future__ import annotations

import json
import socket
import statistics
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers.hadoop import SMALL, hadoop as hadoop
from helpers.real import run
from helpers.support import ROOT, SOAK, by_length

from framegauge.agents.pipe import Agent
from framegauge.results.journal import Run
from framegauge.study import file as study_file
from framegauge.study.model import Study
from framegauge.testbeds.base import Json
from framegauge.testbeds.rack import SAMPLE_SECONDS, RackTestbed
from framegauge.workloads.hadoop import HDFS_PORT, SHUFFLE_PORT

pytestmark = pytest.mark.thorough
CHECKSUM = "7a27e2d0d55de"  # of teragen's first million rows, on any machine
ROW_BYTES = 104  # of the shuffle, with what Hadoop adds to each
EXAMPLE = ROOT / "examples/terasort-short.yaml"


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


def name_of(interface: bytes) -> str:
    """The option if_name (2) of an interface's block."""
    place = 8
    while True:
        code, length = struct.unpack_from("<HH", interface, place)
        if code == 2:
            return interface[place + 4 : place + 4 + length].decode()
        place += 4 + (length + 3) // 4 * 4


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
    rows, workers = 1_000_000, 4
    bed = Captured(rack_agent)
    bed.captures = []
    (found,) = run(rack_agent, alone(study_file.load(str(EXAMPLE)), mtu, nagle), tmp_path / "out", bed)
    assert reasons(found) == []
    record = saved(tmp_path / "out", found.number)["workload"]
    assert record["checked"] == {"checksum": CHECKSUM, "rows": rows}
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
