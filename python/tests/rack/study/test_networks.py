"""Networks of other shapes and queues, with real TCP, against answers that are known. At 100 Mb/s, so that the machine
need not be quiet."""

from __future__ import annotations

import io
import shutil
import statistics
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.ipc
import pytest
from helpers.networks import RATE, TOKEN, network, port_of, table, transfer, valid
from helpers.real import UP, output, shell, spawn
from helpers.support import PATIENCE_SECONDS, SOAK, by_length

from framegauge.agents.pipe import Agent
from framegauge.agents.spools import read_spool
from framegauge.errors import AgentError
from framegauge.testbeds.base import Host, Json
from framegauge.workloads.rr import RequestResponse
from framegauge.workloads.stream import Stream

SECONDS = by_length(2, 3)  # of a transfer, of which the middle third is looked at
FAR = 12
CONTENDED: Mapping[str, Any] = {
    "kind": "custom",
    "switches": ["far", "near"],
    "links": [
        *([f"h{number}", "far"] for number in range(1, FAR + 1)),
        ["far", "near"], [f"h{FAR + 1}", "near"], [f"h{FAR + 2}", "near"],
    ],
}  # fmt: skip


def fifteen_to_one(rack_agent: Agent, mtu: int, paths: str) -> tuple[Json, float]:
    """What the fabric of a fat tree counted in a second, and the rate of its last link in bits per second."""
    routing = {"paths": paths, "choice": "flow"}
    with network(rack_agent, 16, mtu, topology={"kind": "fat-tree", "k": 4}, routing=routing) as (built, hosts):
        valid(built, "rack.up.result")
        assert built["network"]["hops"] == {"least": 2 if paths == "shortest" else 6, "most": 6}
        assert len(built["network"]["switches"]) == 20
        sink = hosts[-1]
        port = sink.agent.request("stream.serve", {"token": TOKEN, "address": sink.address, "sample_seconds": 0})[
            "port"
        ]
        asked = {
            "address": sink.address, "port": port, "token": TOKEN, "flows": 1, "size_bytes": None,
            "duration_seconds": SECONDS, "repeat_seconds": 0, "reverse": False, "sample_seconds": 0.0,
            "pacing_bits_per_second": None,
        }  # fmt: skip
        calls = [host.agent.begin("stream.run", asked) for host in hosts[:-1]]
        # The interval lies inside the transfers, so that neither start nor end is in it.
        for pause, method in ((SECONDS / 3, "measure.begin"), (SECONDS / 3, "measure.end")):
            spend = spawn(sink.agent, "sleep", str(pause))
            sink.agent.request("process.wait", {"process": spend, "timeout_seconds": PATIENCE_SECONDS})
            measured = rack_agent.request(method)
        for call in calls:
            call.result(PATIENCE_SECONDS)
        sink.agent.request("stream.close")
    valid(measured, "measure.end.result")
    last = next(each["port"] for each in measured["fabric"]["ports"] if each["port"].endswith(">h16"))
    found = port_of(measured, last)
    return measured, (found["sent_bytes"] + 20 * found["sent_frames"]) * 8 / measured["elapsed_seconds"]


@pytest.mark.soak(0.5)
@pytest.mark.parametrize("paths", ["shortest", "equal-length"])
@pytest.mark.parametrize("mtu", [1500, 9000])
def test_fifteen_to_one_on_a_fat_tree_take_the_paths_that_were_asked_for(
    rack_agent: Agent, mtu: int, paths: str
) -> None:
    """In `make soak`, they fill the last link; a fabric that is held up when the second begins catches up within it."""
    measured, wire = fifteen_to_one(rack_agent, mtu, paths)
    if SOAK:
        assert wire == pytest.approx(RATE, rel=0.005)
    for each in measured["fabric"]["ports"]:
        assert each["received_frames"] == each["sent_frames"] + each["dropped_frames"] + each["queued_frames"]
    # Everything passes a core where all ways are equally long. Where they are not, hosts of one pod reach each other below
    # the cores, and nothing leaves the last pod but answers of h16. How much its other hosts send is no measure of it:
    # few flows starve beside many.
    sent = {each["port"]: each["sent_frames"] for each in measured["fabric"]["ports"]}
    read = {each["host"]: each["read_frames"] for each in measured["fabric"]["hosts"]}
    left = sum(count for port, count in sent.items() if port.startswith("aggregation4-") and ">core" in port)
    if paths == "equal-length":
        crossed = sum(count for port, count in sent.items() if ">core" in port)
        assert crossed == pytest.approx(sum(read.values()), rel=0.02)
        assert left == pytest.approx(sum(read[f"h{number}"] for number in range(13, 17)), rel=0.02)
    else:
        assert 0 < left < 1.02 * read["h16"]


def contended(agent: Agent, queue: Json, seconds: float) -> float:
    """What the flow from nearby gets, beside twelve that come together from afar, as a share of what each of them does."""
    rest = {"topology": CONTENDED, "queue": queue, "congestion_control": "reno"}
    with network(agent, FAR + 2, link={"buffer_bytes": 65_536}, **rest) as (_, hosts):
        measured, rates = transfer(agent, hosts, seconds)
    for each in measured["fabric"]["ports"]:
        assert each["received_frames"] == each["sent_frames"] + each["dropped_frames"] + each["queued_frames"]
    assert port_of(measured, f"near>h{FAR + 2}")["dropped_frames"] > 0
    assert len(rates) == FAR + 1
    return rates[f"h{FAR + 1}"] / statistics.fmean(rates[f"h{number}"] for number in range(1, FAR + 1))


FAIR = {"kind": "fq_codel", "target_seconds": 0.005}


@pytest.mark.parametrize("queue", [{"kind": "taildrop"}, FAIR], ids=["taildrop", "fq_codel"])
def test_every_frame_of_thirteen_flows_at_one_port_is_accounted_for(rack_agent: Agent, queue: Json) -> None:
    """What the few of them get is in bench/outcast, and in `make soak`."""
    assert contended(rack_agent, queue, 0.5) >= 0


if SOAK:

    @pytest.mark.soak(0.5)
    def test_few_flows_starve_beside_many_until_the_queue_is_fair(rack_agent: Agent) -> None:
        """TCP Outcast: facts of the literature and of a prototype say a tenth and less with taildrop, which one interval
        of a second and a half shows and another does not: 15 were 0.07 to 1.22, their median 0.30."""
        shares = {
            queue["kind"]: [contended(rack_agent, queue, 1.5) for _ in range(count)]
            for queue, count in (({"kind": "taildrop"}, 9), (FAIR, 3))
        }
        assert statistics.median(shares["taildrop"]) < 0.6, shares
        assert 0.7 < statistics.median(shares["fq_codel"]) < 1.4, shares


@pytest.mark.soak(0.2)
def test_a_round_of_requests_takes_no_less_than_the_moderation(rack_agent: Agent) -> None:
    """Over a wire without delay each end is told of all eight connections at once, every 500 us: a request is answered, and
    the answer is there, when the next interrupt comes. In `make soak` it takes no more, of several intervals: a fabric that
    listened less often took three rounds. Whatever else the machine does makes rounds longer and none shorter."""
    nic = {**UP["nic"], "moderation_seconds": 0.0005}
    link = {"bits_per_second": 1_000_000_000, "rtt_seconds": 0.0}
    with network(rack_agent, 2, link=link, nic=nic) as (_, hosts):
        found = [median_latency(rack_agent, hosts) for _ in range(by_length(1, 10))]
    latency, late = min(found)
    assert latency > 0.00049, found
    if SOAK:
        assert latency < 0.00075, found
        assert late < 100e-6, found


def median_latency(agent: Agent, hosts: list[Host]) -> tuple[float, float]:
    """Of eight connections that ask at the same time for half a second; and how late the fabric was. Seconds."""
    asking = RequestResponse(request_bytes=100, response_bytes=100, connections=8, duration_seconds=0.5)
    agent.request("measure.begin")
    done = asking.run(hosts, TOKEN, None)
    late = agent.request("measure.end")["fabric"]["lateness"]["p50_seconds"]
    agents = {host.name: host.agent for host in hosts}
    spools = {
        each.name: pyarrow.ipc.open_file(io.BytesIO(read_spool(agents[each.host], each.number))).read_all()
        for each in done.spools
    }
    latency = asking.metrics(done.record | asking.evidence(done.record, spools), spools)["latency_p50"]
    return float(latency), float(late)


def test_every_mark_of_a_queue_reaches_the_receiver(rack_agent: Agent) -> None:
    """What the kernel counts as CE is what the fabric marked, frame by frame."""
    queue = {"kind": "red", "ecn": True, "minimum_bytes": 10_000, "maximum_bytes": 40_000}
    ecn = {"net.ipv4.tcp_ecn": "1"}
    with network(rack_agent, 4, queue=queue, sysctls=ecn) as (_, hosts):
        before = hosts[-1].agent.request("host.counters")["nstat"]
        measured, _ = transfer(rack_agent, hosts, 1.0)
        after = hosts[-1].agent.request("host.counters")["nstat"]
        drops = table(rack_agent, measured["fabric"]["drops"])
    found = port_of(measured, "switch>h4")
    assert found["marked_frames"] > 10
    assert after["IpExtInCEPkts"] - before["IpExtInCEPkts"] == found["marked_frames"]
    told = Counter((row["action"], row["reason"]) for row in drops if row["port"] == "switch>h4")
    assert told["marked", "early"] == found["marked_frames"]
    assert sum(count for (action, _), count in told.items() if action == "dropped") == found["dropped_frames"]


@pytest.mark.needs("tshark")
def test_a_watched_port_tells_of_every_frame(rack_agent: Agent, tmp_path: Path) -> None:
    """The counters, the events and Wireshark's reading of the capture are three counts of the same frames."""
    port = "switch>h4"
    with network(rack_agent, 4, link={"buffer_bytes": 30_000}) as (_, hosts):
        measured, _ = transfer(rack_agent, hosts, 0.5, watch=[port], capture=True, sample_seconds=0.01)
        valid(measured, "measure.end.result")
        fabric = measured["fabric"]
        events = table(rack_agent, fabric["events"])
        queues = [row for row in table(rack_agent, fabric["series"]) if row["port"] == port]
        (tmp_path / "port.pcapng").write_bytes(read_spool(rack_agent, fabric["capture"]))
    found = port_of(measured, port)
    assert found["dropped_frames"] > 0
    kinds = Counter(row["kind"] for row in events)
    assert kinds["arrived"] == found["received_frames"]
    assert (kinds["departed"], kinds["dropped"]) == (found["sent_frames"], found["dropped_frames"])
    assert [row["time_seconds"] for row in events] == sorted(row["time_seconds"] for row in events)
    assert max(row["queue_bytes"] for row in events) == found["peak_queue_bytes"] <= 30_000
    # What the last sample was before the end came is not in the series.
    assert found["sent_bytes"] >= sum(row["sent_bytes"] for row in queues) >= 0.9 * found["sent_bytes"]
    assert max(row["peak_queue_bytes"] for row in queues) == found["peak_queue_bytes"]
    program = shutil.which("tshark")
    assert program is not None
    fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "frame.comment"]
    read = subprocess.run(
        [program, "-r", str(tmp_path / "port.pcapng"), *fields], capture_output=True, text=True, check=True
    )
    sides = Counter(line.split("\t")[0].removeprefix(f"{port} ") for line in read.stdout.splitlines())
    assert sides == {"in": kinds["arrived"], "out": kinds["departed"], "dropped": kinds["dropped"]}
    assert sum("\tdropped (taildrop)" in line for line in read.stdout.splitlines()) == kinds["dropped"]


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("testbed", ["fabric", "kernel"])
def test_what_fits_into_an_overlay_is_what_arithmetic_says(rack_agent: Agent, testbed: str, family: int) -> None:
    kernel = {"nic": {**UP["nic"], "moderation_seconds": 0}, "link": {"rtt_seconds": 0}} if testbed == "kernel" else {}
    rest = {"testbed": testbed, "family": family, "overlay": "vxlan", **kernel}
    with network(rack_agent, 2, 1500, **rest) as (built, hosts):
        inner = 1500 - (50 if family == 4 else 70)  # RFC 7348: outer IP, UDP 8, VXLAN 8, inner Ethernet 14
        ceiling = built["ceilings"]["h1"]
        assert (ceiling["inner_mtu"], ceiling["frame_bytes"]) == (inner, 1518)
        assert hosts[0].agent.request("host.read")["overlay_mtu"] == inner
        rack_agent.request("measure.begin")
        done = Stream(size_bytes=1_000_000, repeat_seconds=0).run(hosts, TOKEN, None).record
        measured = rack_agent.request("measure.end")
        result = done["runs"][0]["result"]
        # Inner IP and TCP headers, and timestamps.
        assert (result["path_mtu"], result["sender_mss_bytes"]) == ([inner], [inner - (52 if family == 4 else 72)])
        if testbed == "fabric":
            # Full frames outside, and not a byte more: the arithmetic is exact.
            assert measured["fabric"]["hosts"][0]["largest_frame_bytes"] == 1518
            assert port_of(measured, "switch>h2")["giant_frames"] == 0
            # Aggregates pass the shaper whole, and are charged with the headers of all their frames.
            shell(hosts[0].agent, "ethtool -k fgx1 | grep -q '^generic-segmentation-offload: on'")
            sent = port_of(measured, "h1>switch")
            wire = sent["sent_bytes"] + 20 * sent["sent_frames"]
            shown = spawn(hosts[0].agent, "tc", "-s", "qdisc", "show", "dev", "fg1", "root")
            hosts[0].agent.request("process.wait", {"process": shown, "timeout_seconds": PATIENCE_SECONDS})
            charged = int(output(hosts[0].agent, shown).split(" Sent ")[1].split()[0])
            assert charged == pytest.approx(wire, rel=0.002)


def test_what_cannot_be_a_network_is_refused_before_anything_is_built(rack_agent: Agent) -> None:
    asked: list[tuple[Json, str]] = [
        ({"topology": {"kind": "fat-tree", "k": 3}}, "k of a fat-tree: found 3, expected an even number"),
        ({"queue": {"kind": "pie"}}, "unknown variant `pie`"),
        ({"links": [{"from": "h1", "to": "h2"}]}, 'links: found none from "h1" to "h2"'),
        ({"link": {**UP["link"], "buffer_bytes": 1517}}, "found a buffer of 1517 bytes, expected room for a frame"),
        ({"overlay": "vxlan", "nic": {**UP["nic"], "tso": True, "checksum": True}}, "overlay needs nic.tso"),
        ({"routing": {"paths": "equal-length"}}, "equal-length routing: found topology rack"),
    ]
    for change, words in asked:
        with pytest.raises(AgentError) as refused:
            rack_agent.request("rack.up", {**UP, **change})
        assert words in str(refused.value)
        assert "\n" not in str(refused.value)
