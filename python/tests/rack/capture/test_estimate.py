"""Estimates of real hosts: what is foreseen at MTU 1500 beside what comes at 9000, and what is said of sockets."""

from __future__ import annotations

import json
import math
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from helpers.real import run, study
from helpers.schemas import conforms
from helpers.support import PATIENCE_SECONDS

from framegauge.agents.pipe import Agent
from framegauge.estimate.document import estimate
from framegauge.estimate.gains import FULL_CPU
from framegauge.estimate.schema import json_schema
from framegauge.evidence.blocks import payload_bytes
from framegauge.experiment.planning import searched
from framegauge.testbeds.base import Json
from framegauge.testbeds.rack import RackTestbed
from framegauge.workloads.iscsi import NEEDS

MAIN = [sys.executable, "-m", "framegauge", "estimate"]
RATE = 200_000_000
TARGETS = (4200, 9000)
MARGINS = {"rr": "transactions", "iscsi": "operations"}
ISCSI = [pytest.mark.needs(each.name, remedy=each.remedy) for each in NEEDS if not each.is_there(searched())]
# Writes of 4 KB, each answered by one byte: two full segments and an end at 1500, one segment at 9000.
SERVER = """
import socket
with socket.create_server(("10.9.0.2", 5001)) as server:
    print("ready", flush=True)
    one, _ = server.accept()
    with one:
        while one.recv(4000, socket.MSG_WAITALL):
            one.sendall(b"x")
"""
CLIENT = """
import socket, sys
one = socket.create_connection(("10.9.0.2", 5001))
one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(sys.argv[1]))
while True:
    one.sendall(b"x" * 4000)
    one.recv(1)
"""


class Read(RackTestbed):
    """A rack whose hosts are read for an estimate while a run is measured."""

    def __init__(self, agent: Agent) -> None:
        super().__init__(agent)
        self.readings: list[dict[str, Json]] = []

    def begin(self, watch: Sequence[str] = ()) -> float:
        for host in self.hosts():
            asked = {"interfaces": [], "target_mtus": list(TARGETS), "sudo": False}
            assert host.agent.request("estimate.begin", asked)["sample_error"] is None
        return super().begin(watch)

    def end(self) -> Json:
        found = super().end()
        self.readings.append({host.name: host.agent.request("estimate.end") for host in self.hosts()})
        return found


def carried(record: Json) -> tuple[int, int]:
    """Frames that came to hosts in a run, and their payload."""
    ports = [
        port for port in record["measure"]["fabric"]["ports"] if not port["port"].rpartition(">")[2].startswith("s")
    ]
    frames = sum(port["sent_frames"] for port in ports)
    return frames, payload_bytes(record, [port["port"].rpartition(">")[2] for port in ports])


@pytest.mark.parametrize(
    "workload",
    [
        {"stream": {"duration": "1 s"}},
        {"rr": {"request": "100 B", "response": "30 kB", "duration": "1 s"}},
        {"rr": {"request": "100 B", "response": "600 B", "duration": "0.5 s"}},
        pytest.param({"iscsi": {"duration": "1 s", "size": "16 MiB", "block": "64 KiB", "rate": 60}}, marks=ISCSI),
        pytest.param({"iscsi": {"duration": "1 s", "size": "16 MiB", "block": "8 KiB", "rate": 60}}, marks=ISCSI),
    ],
    ids=["stream", "rr", "small", "iscsi", "blocks of one segment"],
)
def test_what_is_foreseen_at_1500_comes_at_9000(rack_agent: Agent, tmp_path: Path, workload: Json) -> None:
    name = next(iter(workload))
    more = {"topology": "rack", "hosts": 3} if name == "iscsi" else {}
    asked = study(
        blocks=1, retries=0, testbed={"kind": "rack", "link": {"rate": "200 Mb/s"}, **more}, workloads=[workload],
        **({"margins": {MARGINS[name]: "5 %"}} if name in MARGINS else {}),
    )  # fmt: skip
    bed = Read(rack_agent)
    done = run(rack_agent, asked, tmp_path, bed)
    came: dict[int, tuple[int, int]] = {}
    read: dict[int, dict[str, Json]] = {}
    for each, readings in zip(done, bed.readings, strict=True):
        record = json.loads((tmp_path / "runs" / str(each.number) / "record.json").read_text())
        came[each.level], read[each.level] = carried(record), readings
    (frames, payload), (frames_then, payload_then) = came[1500], came[9000]
    document = estimate(read[1500], TARGETS, RATE)
    conforms(document, json_schema())
    told, found = document["hosts"], document["total"][1]
    assert {each["source"] for each in told} == {"sample"}
    ratio = found["packets"]["ratio"]["estimate"]
    # Nine packets of a block of one segment become two: on a busy host late answers weigh more in so few.
    near = 0.15 if workload.get("iscsi", {}).get("block") == "8 KiB" else 0.1
    assert ratio == pytest.approx(frames / payload * payload_then / frames_then, rel=near)
    at_most = found["goodput"]["at_most"]
    bound = math.inf if at_most is None else at_most
    # A closed loop on a machine that was busy in the first run only has a gain of its own.
    if name != "rr" or (ratio > 2 and not any(each.excluded for each in done)):
        assert payload_then / payload - 1 <= bound + 0.01
    quiet = all(each["cpu"]["busiest_share"] < FULL_CPU and not each["limits"]["resent_bytes"] for each in told)
    if name == "stream" and quiet:
        assert bound < 0.5
    if workload.get("rr", {}).get("response") == "600 B":
        assert ratio == pytest.approx(1, abs=0.02)
        assert found["goodput"]["frames_at_most"] < 0.01
    # At 9000 there is nothing left to gain.
    after = estimate(read[9000], TARGETS, RATE)
    assert {each["answer"] for each in after["total"]} == {"already"}


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def pair() -> Iterator[tuple[str, str]]:
    """Two network namespaces on one link, 10.9.0.1 and 10.9.0.2."""
    tag = secrets.token_hex(3)
    one, two = names = (f"fge{tag}a", f"fge{tag}b")
    for name in names:
        ip("netns", "add", name)
    try:
        ip("-n", one, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", two)
        for place, name in enumerate(names, start=1):
            ip("-n", name, "addr", "add", f"10.9.0.{place}/24", "dev", "eth0")
            ip("-n", name, "link", "set", "lo", "up")
            ip("-n", name, "link", "set", "eth0", "up")
        yield one, two
    finally:
        for name in names:
            ip("netns", "del", name)


@contextmanager
def talking(pair: tuple[str, str], nodelay: int) -> Iterator[subprocess.Popen[str]]:
    """A client that writes 4 KB again and again, and its server."""
    enter = [["ip", "netns", "exec", name, sys.executable, "-c"] for name in pair]
    server = subprocess.Popen([*enter[1], SERVER], stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    assert server.stdout.readline() == "ready\n"
    client = subprocess.Popen([*enter[0], CLIENT, str(nodelay)], text=True)
    try:
        yield client
    finally:
        for each in (client, server):
            each.kill()
            each.wait()


def estimated(*words: object, code: int = 0) -> Json:
    done = subprocess.run([*MAIN, *map(str, words), "--json"], capture_output=True, text=True, timeout=PATIENCE_SECONDS)
    assert done.returncode == code, done.stderr
    document: Json = json.loads(done.stdout)
    conforms(document, json_schema())
    return document


@pytest.mark.parametrize("nodelay", [0, 1])
def test_a_socket_with_nagles_algorithm_is_named_with_its_process(pair: tuple[str, str], nodelay: int) -> None:
    with talking(pair, nodelay) as client:
        document = estimated(*(f"netns:{name}" for name in pair), "--for", "1s", "--mtu", "9000")
    here, there = document["hosts"]
    found = here["nagle"][0]["sockets"]
    if nodelay:
        assert found == []
    else:
        assert [(each["process"], each["remote"]) for each in found] == [(client.pid, "10.9.0.2:5001")]
        assert found[0]["program"].startswith("python")
        assert found[0]["messages"] == pytest.approx(found[0]["of_messages"], rel=0.05)
    assert there["nagle"][0]["sockets"] == []
    for host in (here, there):
        (interface,) = host["interfaces"]
        assert (interface["interface"], interface["driver"], interface["nic_histogram"]) == ("eth0", "veth", False)
        assert "eth0: the driver has no histogram of frame sizes (RMON)" in host["notes"]
        assert host["sample"]["packets"] > 100
    # Of three segments, an acknowledgement and an answer a segment and an answer are left; fewer came of aggregates.
    assert 1.2 < document["total"][0]["packets"]["ratio"]["estimate"] < 2.6


def test_without_the_right_to_read_headers_the_counts_of_connections_are_used(pair: tuple[str, str]) -> None:
    without = ["setpriv", "--bounding-set=-net_raw", "--inh-caps=-net_raw"]
    with talking(pair, 1):
        done = subprocess.run(
            [*without, *MAIN, f"netns:{pair[0]}", "--for", "1s", "--json"],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "CAP_NET_RAW" in line]
    assert len(lines) == 1
    (host,) = json.loads(done.stdout)["hosts"]
    assert (host["source"], host["sample"], host["nagle"][0]["is_known"]) == ("connections", None, False)
    ratio = host["targets"][1]["packets"]["ratio"]
    # Three segments of each message may be one, and its acknowledgement stays.
    assert ratio["least"] == 1 < ratio["estimate"] <= ratio["most"]


def test_ctrl_c_estimates_from_what_was_read(pair: tuple[str, str]) -> None:
    with talking(pair, 1):
        process = subprocess.Popen(
            [*MAIN, f"netns:{pair[0]}", "--for", "60s", "--json"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        while ": reading eth0" not in (line := process.stderr.readline()):
            assert line
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == 130
    document: dict[str, Any] = json.loads(out)
    conforms(document, json_schema())
    assert document["interrupted"]
    assert 0.3 < document["hosts"][0]["seconds"] < 30
