"""Tunings on the real rack: packets and kernels show that each was in force, and a run that lost its own is excluded."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from helpers.real import UP, output, run, shell, spawn, study

from framegauge.agents.pipe import Agent
from framegauge.errors import FramegaugeError
from framegauge.experiment.planning import conditions_of
from framegauge.study.blocks import block_order
from framegauge.study.model import Study
from framegauge.testbeds.base import Conditions, Json
from framegauge.testbeds.rack import RackTestbed

RMEM, WMEM = "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"
BUFFERS = {RMEM: "4096 87380 4194304", WMEM: "4096 16384 4194304"}
TUNINGS = {
    "windows-of-2010": {"initial_window": 3, "initial_receive_window": 4},
    "buffers-of-2011": {"sysctls": BUFFERS},
}  # fmt: skip
LEVELS = ["as-is", *TUNINGS]
PORT = 7000
HEADERS_BYTES = {4: 40, 6: 60}
TIMESTAMP_BYTES = 12
VXLAN_BYTES = 50
RTT_SECONDS = 0.04
SO_TIMESTAMPNS = 35
# Tells the window of the SYN, and the bytes that come within half an RTT of the first data: the first flight. When
# packets came is the kernel's account, for on a busy machine they may be read late.
RECEIVER = f"""
import socket, struct, sys, time
family, port, rtt = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
tap = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons({{4: 0x0800, 6: 0x86DD}}[family]))
tap.setsockopt(socket.SOL_SOCKET, {SO_TIMESTAMPNS}, 1)
server = socket.create_server(("::" if family == 6 else "", port), family=socket.AF_INET6 if family == 6 else socket.AF_INET)
print("ready", flush=True)
window = begun = None
flight = 0
tap.settimeout(5)
while True:
    try:
        packet, [(_, _, stamp)], _, (_, _, kind, *_) = tap.recvmsg(65536, 64)
    except TimeoutError:
        break
    head, total = (20, int.from_bytes(packet[2:4])) if family == 4 else (40, 40 + int.from_bytes(packet[4:6]))
    if kind == socket.PACKET_OUTGOING or packet[9 if family == 4 else 6] != 6:
        continue
    there, offset, flags, offered = struct.unpack("!2xH8xBBH", packet[head:head + 16])
    if there != port:
        continue
    if flags & 2:
        window = offered
    if data := total - head - (offset >> 4) * 4:
        seconds, nanoseconds = struct.unpack("ll", stamp)
        came = seconds + nanoseconds * 1e-9
        begun = came if begun is None else begun
        if came >= begun + rtt / 2:
            break
        flight += data
print(window, flight, flush=True)
time.sleep(60)
"""
SENDER = """
import socket, sys, time
socket.create_connection((sys.argv[1], int(sys.argv[2]))).sendall(bytes(100_000))
time.sleep(60)
"""


class Spoilt(RackTestbed):
    """A rack on whose first host somebody runs a command between set-up and run."""

    def __init__(self, agent: Agent, command: str) -> None:
        super().__init__(agent)
        self._command = command

    def up(self, conditions: Conditions) -> Json:
        built = super().up(conditions)
        shell(self.hosts()[0].agent, self._command)
        return built


@pytest.fixture
def bed(rack_agent: Agent) -> Iterator[RackTestbed]:
    found = RackTestbed(rack_agent)
    yield found
    found.down()


def asked(
    levels: list[str], family: int = 4, rtt: str = "0.2 ms", kind: str = "rack", overlay: str = "none", **rest: object
) -> Study:
    return study(
        kind, family=family, stream={"size": "1 MB", "repeat": "0 s"}, blocks=1, treatment="tuning",
        factors={"mtu": 1500, "rtt": rtt if kind == "rack" else 0, "overlay": overlay, "tuning": {"levels": levels, "baseline": levels[0]}},
        tunings={name: TUNINGS[name] for name in levels if name in TUNINGS}, **rest,
    )  # fmt: skip


def at(level: str, family: int = 4, overlay: str = "none") -> Conditions:
    """The conditions at a level, with an RTT that sets the flights of a connection apart."""
    levels = list(dict.fromkeys([level, "as-is"]))
    plan = asked(levels, family, f"{1000 * RTT_SECONDS:g} ms", overlay=overlay, control=True)
    return conditions_of(plan, next(slot for slot in block_order(plan, 0) if slot.arm.level == level))


def flight(bed: RackTestbed, family: int) -> tuple[int, int]:
    """The window in the SYN of a new connection, and the bytes of its first flight."""
    client, server = (host.agent for host in bed.hosts())
    receiving = spawn(server, "python3", "-c", RECEIVER, str(family), str(PORT), str(RTT_SECONDS))
    while not output(server, receiving):
        assert not server.request("process.wait", {"process": receiving, "timeout_seconds": 0.01})["ended"]
    spawn(client, "python3", "-c", SENDER, bed.hosts()[1].address, str(PORT))
    while (said := output(server, receiving)).count("\n") < 2:  # a line may come in parts
        assert not server.request("process.wait", {"process": receiving, "timeout_seconds": 0.02})["ended"]
    window, sent = map(int, said.splitlines()[1].split())
    return window, sent


@pytest.mark.parametrize(("family", "overlay"), [(4, "none"), (6, "none"), (4, "vxlan")])
def test_the_first_flight_of_a_connection_shows_its_window(bed: RackTestbed, family: int, overlay: str) -> None:
    mss = 1500 - HEADERS_BYTES[family] - (VXLAN_BYTES if overlay == "vxlan" else 0)
    found = {}
    for level in ("as-is", "windows-of-2010"):
        bed.up(at(level, family, overlay))
        found[level] = flight(bed, family)
        bed.down()
    assert found["windows-of-2010"] == (4 * mss, 3 * (mss - TIMESTAMP_BYTES)), found
    assert found["as-is"][0] > 20 * mss, found
    assert found["as-is"][1] == 10 * (mss - TIMESTAMP_BYTES), found


@pytest.mark.parametrize("family", [4, 6])
def test_windows_outlive_a_change_of_the_mtu(rack_agent: Agent, bed: RackTestbed, family: int) -> None:
    bed.up(at("windows-of-2010", family))
    for mtu in (9000, 1500):
        for host in bed.hosts():
            rack_agent.request("rack.set", {"host": host.name, "mtu": mtu})
            reading = host.agent.request("host.read")
            (route,) = reading["route_windows"]
            assert (reading["mtu"], route["initial_window_segments"]) == (mtu, 3), reading
            assert (reading["congestion_control_route"], route["initial_receive_window_segments"]) == ("cubic", 4)
    assert flight(bed, family)[1] == 3 * (1500 - HEADERS_BYTES[family] - TIMESTAMP_BYTES)


def test_windows_that_no_study_asks_for_are_refused(rack_agent: Agent) -> None:
    for name in ("initial_window_segments", "initial_receive_window_segments"):
        for segments in (0, 1001):
            with pytest.raises(FramegaugeError, match=r"initial_receive_window_segments are 1 to 1000"):
                rack_agent.request("rack.up", {**UP, name: segments})


@pytest.mark.parametrize("kind", ["rack", "veth"])
def test_every_run_of_a_study_had_the_settings_of_its_level(rack_agent: Agent, tmp_path: Path, kind: str) -> None:
    runs = run(rack_agent, asked(LEVELS, kind=kind), tmp_path / "out")
    assert {each.level for each in runs} == set(LEVELS)
    for each in runs:
        assert [line for line in each.excluded if not line.startswith("fidelity: ")] == []
        record = json.loads((tmp_path / f"out/runs/{each.number}/record.json").read_text())
        windows = (3, 4) if each.level == "windows-of-2010" else (None, None)
        for reading in (*record["before"].values(), *record["after"].values()):
            (route,) = reading["route_windows"]
            assert (route["initial_window_segments"], route["initial_receive_window_segments"]) == windows
            found = {name: " ".join(reading["sysctls"].get(name, "").split()) for name in BUFFERS}
            assert (found == BUFFERS) == (each.level == "buffers-of-2011"), (each.level, found)


ROUTED = {
    "custom": {
        "switches": ["near", "far"], "routers": [{"name": "r1", "mtu": 9000}],
        "links": [["h1", "near"], ["near", "r1"], ["r1", "far"], ["far", "h2"]],
    }
}  # fmt: skip


@pytest.mark.parametrize("family", [4, 6])
def test_routes_through_a_router_have_the_windows_too(rack_agent: Agent, tmp_path: Path, family: int) -> None:
    bed = {"kind": "rack", "family": family, "link": {"rate": "200 Mb/s"}, "topology": ROUTED}
    for each in run(rack_agent, asked(["windows-of-2010"], control=True, testbed=bed), tmp_path / "out"):
        assert [line for line in each.excluded if not line.startswith("fidelity: ")] == []
        record = json.loads((tmp_path / f"out/runs/{each.number}/record.json").read_text())
        for reading in record["after"].values():
            assert [route["initial_window_segments"] for route in reading["route_windows"]] == [3, 3], reading


LOST = {
    "windows-of-2010": (
        "ip route replace 10.77.0.0/24 dev fg1 proto static scope link congctl cubic",
        "proof: initial window of h1 before the run, to 10.77.0.0/24: requested 3 segments, found the kernel's own",
    ),
    "buffers-of-2011": (
        "echo 4096 131072 6291456 > /proc/sys/net/ipv4/tcp_rmem", f"proof: {RMEM} of h1 before the run: requested 4096 87380",
    ),
    "as-is": (
        "ip route replace 10.77.0.0/24 dev fg1 proto static scope link congctl cubic initcwnd 20",
        "proof: initial window of h1 before the run, to 10.77.0.0/24: requested the kernel's own, found 20 segments",
    ),
}  # fmt: skip


@pytest.mark.parametrize("level", LOST)
def test_a_run_that_lost_its_settings_is_excluded(rack_agent: Agent, tmp_path: Path, level: str) -> None:
    command, reason = LOST[level]
    plan = asked([level], control=True, retries=0)
    runs = run(rack_agent, plan, tmp_path / "out", Spoilt(rack_agent, command))
    assert runs
    for each in runs:
        assert any(line.startswith(reason) for line in each.excluded), each.excluded
