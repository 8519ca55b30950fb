"""Hadoop on a rack: what it counts itself, what its sockets carried, and what passed the fabric say the same.

Each run starts a cluster: one of four workers and 100 MB takes minutes of two CPUs, so the short form is smaller.
"""

from __future__ import annotations

import json
import socket
import statistics
import struct
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers.captures import packets_out
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
WORKERS, ROWS = by_length((2, 200_000), (4, 1_000_000))
# Of teragen's first rows, on any machine: the sum of CRC-32 over rows of gensort's generator.
CHECKSUM = {200_000: "186474c982b29", 1_000_000: "7a27e2d0d55de"}[ROWS]
ROW_BYTES = 104  # of the shuffle, with what Hadoop adds to each
EXAMPLE = ROOT / "examples/terasort.yaml"


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
    worker."""
    found: dict[str, list[int]] = {"shuffle": [], "hdfs": []}
    for packet in packets_out(capture):
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
    text = EXAMPLE.read_text().replace("hosts: 5", f"hosts: {1 + WORKERS}")
    text = text.replace("size: 100 MB", f"size: {100 * ROWS} B")
    bed = Captured(rack_agent)
    bed.captures = []
    (found,) = run(rack_agent, alone(study_file.parse(text, EXAMPLE.name), mtu, nagle), tmp_path / "out", bed)
    assert reasons(found) == []
    record = saved(tmp_path / "out", found.number)["workload"]
    assert record["checked"] == {"checksum": CHECKSUM, "rows": ROWS}
    (job,) = record["jobs"]
    carried = record["traffic_by_purpose"]
    shuffled = sum(carried[where]["shuffle_bytes"] for where in ("between_hosts", "within_hosts"))
    assert shuffled == pytest.approx(job["shuffle_bytes"], rel=0.01)
    assert job["shuffle_bytes"] == pytest.approx(ROW_BYTES * ROWS, rel=0.01)
    # Every reducer says the same in its log, host by host.
    fetches = record["fetches"]
    names = {f"h{number}" for number in range(2, 2 + WORKERS)}
    assert {each["to"] for each in fetches} | {each["from"] for each in fetches} <= names
    assert all(0 <= each["begin_seconds"] < each["end_seconds"] for each in fetches)
    assert sum(each["bytes"] for each in fetches) == pytest.approx(ROW_BYTES * ROWS, rel=0.01)
    crossed = sum(each["bytes"] for each in fetches if each["to"] != each["from"])
    assert crossed == pytest.approx(carried["between_hosts"]["shuffle_bytes"], rel=0.01)
    assert 0 < job["task_cpu_seconds"] == found.metrics["task_cpu_time"]
    assert found.metrics["task_cpu_cost"] * record["bytes"] / 1e9 == pytest.approx(job["task_cpu_seconds"])
    assert 0 < found.metrics["shuffle_time"] < found.metrics["job_time"]
    # Tasks, which YARN starts, have the library, too: the shuffle's clients are such.
    assert set(record["nodelay"]) == {f"h{number} (java)" for number in range(1, 2 + WORKERS)}
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
    @pytest.mark.soak(4)
    def test_hdfs_on_the_master_and_fetches_by_distance(rack_agent: Agent, hadoop: Path, tmp_path: Path) -> None:
        """Two switches: h1, the master, and h2 at one, h3 to h5 at the other. The reducer is at either."""
        ends = [("h1", "one"), ("h2", "one"), ("h3", "two"), ("h4", "two"), ("h5", "two"), ("one", "two")]
        links = ", ".join(f"[{one}, {other}]" for one, other in ends)
        text = SMALL.replace(
            "topology: rack, hosts: 3", f"topology: {{custom: {{switches: [one, two], links: [{links}]}}}}"
        ).replace("size: 10 MB", "size: 20 MB, reduces: 1, hdfs: master, at_once: 2, slots: 2, block: 1 MiB")
        (found,) = run(rack_agent, alone(study_file.parse(text, "study.yaml"), 1500, False), tmp_path / "out")
        assert reasons(found) == []
        record = saved(tmp_path / "out", found.number)["workload"]
        assert record["checked"]["rows"] == 200_000
        (reducer,) = record["fetchers"]
        assert sum(each["bytes"] for each in record["fetches"]) == pytest.approx(ROW_BYTES * 200_000, rel=0.01)
        away = [each for each in record["fetches"] if each["from"] != reducer]
        distances = {each["links"]: each["fetches"] for each in record["fetches_by_links"]}
        near = sum((each["from"] == "h2") == (reducer == "h2") for each in away)
        assert distances == {links: count for links, count in ((2, near), (3, len(away) - near)) if count}

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
