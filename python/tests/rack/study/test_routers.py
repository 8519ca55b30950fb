"""Hosts with two NICs, and routers between hosts, with real TCP, against answers that are known. At 100 Mb/s, so that the
machine need not be quiet."""

from __future__ import annotations

from typing import Any

import pytest
from helpers.networks import RATE, TOKEN, network, port_of, table, valid
from helpers.real import UP, output, spawn
from helpers.support import PATIENCE_SECONDS, SOAK

from framegauge.agents.pipe import Agent
from framegauge.errors import AgentError, AgentFailure
from framegauge.testbeds.base import Host, Json
from framegauge.workloads.stream import Stream

BLACK_HOLE_SECONDS = "1.5"


def routed(mtu: int, icmp: str = "on", *, two: bool = False) -> Json:
    """h1 and h2 with one router between them, or two in a row, the last of which has that MTU."""
    routers = [{"name": "r1"}] if two else []
    last = f"r{len(routers) + 1}"
    middle = [["near", "r1"], ["r1", "middle"], ["middle", "r2"]] if two else [["near", "r1"]]
    return {
        "kind": "custom",
        "switches": ["near", "middle", "far"] if two else ["near", "far"],
        "routers": [*routers, {"name": last, "mtu": mtu, "icmp": icmp}],
        "links": [["h1", "near"], *middle, [last, "far"], ["far", "h2"]],
    }


def sent(measured: Json, name: str) -> int:
    """Frames that a port sent."""
    found: int = port_of(measured, name)["sent_frames"]
    return found


def conserved(measured: Json) -> None:
    """What came to a port left it, was dropped or waits."""
    for each in measured["fabric"]["ports"]:
        assert each["received_frames"] == each["sent_frames"] + each["dropped_frames"] + each["queued_frames"]


FEW = 50  # frames, which a NIC sends without a flow: it asks for addresses, and tells routers of itself
INITIAL_WINDOW = 10  # segments (RFC 6928)


def one_way(agent: Agent, hosts: list[Host], seconds: float = 1.0, **stream: Any) -> tuple[Json, Json]:
    """The first host sends to the second; the stream's record, and what the fabric measured."""
    agent.request("measure.begin")
    done = Stream(duration_seconds=seconds, **stream).run(hosts, TOKEN, None)
    return done.record, agent.request("measure.end")


def charged(host: Host) -> int:
    """The bytes that the shaper of a host has let pass, as it counts them."""
    shown = spawn(host.agent, "tc", "-s", "qdisc", "show", "dev", "fg1", "root")
    host.agent.request("process.wait", {"process": shown, "timeout_seconds": PATIENCE_SECONDS})
    return int(output(host.agent, shown).split(" Sent ")[1].split()[0])


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("two", [False, True])
def test_a_router_tells_senders_what_its_link_takes(rack_agent: Agent, family: int, two: bool) -> None:
    """RFC 1191, RFC 8201: the first large packets die at the router, which says why, and all that come after fit."""
    payload = 1500 - (40 if family == 4 else 60) - 12
    with network(rack_agent, 2, 9000, topology=routed(1500, two=two), family=family) as (built, hosts):
        ahead = charged(hosts[0])
        valid(built, "rack.up.result")
        assert [each["name"] for each in built["routers"]] == (["r1", "r2"] if two else ["r1"])
        legs = 3 if two else 2
        assert built["network"]["hops"] == {"least": 2 * legs, "most": 2 * legs}
        assert built["network"]["rtt_seconds"]["most"] == pytest.approx(0.0002, abs=1e-9)
        record, measured = one_way(rack_agent, hosts)
        paid = charged(hosts[0]) - ahead
    conserved(measured)
    result = record["runs"][0]["result"]
    assert result["path_mtu"][-1] == 1500
    # The first window may have the size of the host's own MTU, which counts the more, the less the machine carried.
    segments, larger = record["bytes"] / record["mean_segment_payload_bytes"], 9000 - 1500
    least, most = 0.99 * payload, payload + INITIAL_WINDOW * larger / segments
    assert least <= record["mean_segment_payload_bytes"] <= most
    # Every frame passes each router; what a router answered itself comes back besides.
    last = f"r{len(built['routers'])}"
    assert sent(measured, "far>h2") == sent(measured, f"{last}.2>far") >= record["bytes"] / payload
    assert sent(measured, "near>h1") >= sent(measured, "far>" + f"{last}.2")
    # No more than the line carries.
    wire = 8 * (port_of(measured, "far>h2")["sent_bytes"] + 20 * sent(measured, "far>h2"))
    assert wire / measured["elapsed_seconds"] < 1.001 * RATE
    # The host is not ahead of its link: aggregates are charged for frames of 1500, though its MTU is 9000.
    port = port_of(measured, "h1>near")
    assert paid == pytest.approx(port["sent_bytes"] + 20 * port["sent_frames"], rel=0.002)


@pytest.mark.parametrize("family", [4, 6])
def test_a_router_whose_errors_are_filtered_is_a_black_hole(rack_agent: Agent, family: int) -> None:
    """Handshake and small packets pass, large ones never arrive, and every error that would have said so is a drop with
    its reason."""
    with network(rack_agent, 2, 9000, topology=routed(1500, "filtered"), family=family) as (_, hosts):
        near, far = hosts
        rack_agent.request("measure.begin")
        serving = {"token": TOKEN, "address": far.address, "sample_seconds": 0.0}
        asked = {
            "address": far.address, "port": far.agent.request("stream.serve", serving)["port"], "token": TOKEN,
            "flows": 1, "size_bytes": None, "duration_seconds": 30.0, "repeat_seconds": 0.0, "reverse": False,
            "sample_seconds": 0.0, "pacing_bits_per_second": None,
        }  # fmt: skip
        call = near.agent.begin("stream.run", asked)
        sleeping = spawn(far.agent, "sleep", BLACK_HOLE_SECONDS)
        far.agent.request("process.wait", {"process": sleeping, "timeout_seconds": PATIENCE_SECONDS})
        received = far.agent.request("host.counters")["interface"]["rx_bytes"]
        measured = rack_agent.request("measure.end")
        drops = table(rack_agent, measured["fabric"]["drops"])
        call.cancel()
    conserved(measured)
    port = port_of(measured, "r1.1>near")
    assert port["filtered_frames"] == port["dropped_frames"] >= 3
    assert {(row["port"], row["reason"]) for row in drops} == {("r1.1>near", "filtered")}
    assert received < 9000


def test_filtering_leaves_everything_else_alone(rack_agent: Agent) -> None:
    with network(rack_agent, 2, 1500, topology=routed(1500, "filtered")) as (_, hosts):
        record, measured = one_way(rack_agent, hosts, 0.5)
    assert record["bytes"] > 1_000_000
    assert sum(each["filtered_frames"] for each in measured["fabric"]["ports"]) == 0


@pytest.mark.soak(0.1)
@pytest.mark.parametrize(("family", "count"), [(4, 2), (6, 2), (4, 8)])
def test_all_nics_carry_their_flows_and_the_host_counts_them(rack_agent: Agent, family: int, count: int) -> None:
    """In `make soak`, so many times what one does, which a busy machine may change."""
    goodput: dict[int, float] = {}
    with network(rack_agent, 2, 1500, topology={"kind": "rack", "nics": count}, family=family) as (built, named):
        valid(built, "rack.up.result")
        told = built["hosts"]
        hosts = [
            Host(host.name, host.address, host.agent, tuple(nic["address"] for nic in each["nics"]))
            for host, each in zip(named, told, strict=True)
        ]
        reading = hosts[0].agent.request("host.read")
        valid(reading, "host.read.result")
        assert [nic["interface"] for nic in reading["nics"]] == [nic["interface"] for nic in told[0]["nics"]]
        numbers = range(1, count + 1)
        for nics in (1, count):
            record, measured = one_way(rack_agent, hosts, nics=nics)
            conserved(measured)
            goodput[nics] = 8 * record["bytes"]
            assert goodput[nics] < nics * measured["elapsed_seconds"] * RATE
            used = [sent(measured, f"h1.{nic}>switch") > FEW for nic in numbers]
            assert used == [nic <= nics for nic in numbers]
            # A host's own counters are of all its NICs.
            (counted,) = (each for each in measured["fabric"]["hosts"] if each["host"] == "h1")
            # IPv6 tells multicast routers of itself.
            routed_frames = counted["read_frames"] - counted["unroutable_packets"]
            assert routed_frames == sum(sent(measured, f"h1.{nic}>switch") for nic in numbers)
    if SOAK and count == 2:  # two cores do not carry eight
        assert goodput[2] == pytest.approx(2 * goodput[1], rel=0.05)


def test_the_second_nics_have_an_mtu_of_their_own_which_changes_alone(rack_agent: Agent) -> None:
    """Every MSS follows, and the frames on the wire; the shapers know aggregates by the packets of their own NIC."""
    with network(rack_agent, 2, 1500, topology={"kind": "rack", "nics": 2}, second_mtu=9000) as (built, named):
        addresses = [tuple(nic["address"] for nic in each["nics"]) for each in built["hosts"]]
        hosts = [Host(one.name, one.address, one.agent, own) for one, own in zip(named, addresses, strict=True)]

        def seen() -> tuple[list[list[int]], list[int]]:
            """The MTUs of both hosts' NICs, as read, and the largest frames that h1 sent by each NIC."""
            _, measured = one_way(rack_agent, hosts, 0.2, nics=2)
            conserved(measured)
            counted = next(each for each in measured["fabric"]["hosts"] if each["host"] == "h1")
            mtus = [[nic["mtu"] for nic in host.agent.request("host.read")["nics"]] for host in hosts]
            return mtus, [nic["largest_frame_bytes"] for nic in counted["nics"]]

        assert seen() == ([[1500, 9000]] * 2, [1518, 9018])
        for host in ("h1.2", "h2.2"):
            assert rack_agent.request("rack.set", {"host": host, "mtu": 4000})["changed"] == [host]
        assert seen() == ([[1500, 4000]] * 2, [1518, 4018])
        rack_agent.request("rack.set", {"host": "h2.1", "route_mtu": 1400})
        assert seen() == ([[1500, 4000]] * 2, [1418, 4018])
        rack_agent.request("rack.set", {"host": "h1", "mtu": 9000})
        rack_agent.request("rack.set", {"host": "h2.1", "route_mtu": 0})
        assert seen() == ([[9000, 9000], [1500, 4000]], [1518, 4018])
        for host, message in (("h1.3", "find NIC 3"), ("h1.x", "h1.x")):
            with pytest.raises(AgentFailure, match=message):
                rack_agent.request("rack.set", {"host": host, "mtu": 9000})


def test_an_mtu_of_a_nic_that_is_not_there_is_refused(rack_agent: Agent) -> None:
    with pytest.raises(AgentError, match="found second_mtu of h1, expected none: it has one NIC"):
        rack_agent.request("rack.up", {**UP, "hosts": [{**each, "second_mtu": 9000} for each in UP["hosts"]]})


def test_each_nic_is_shaped_at_the_rate_of_its_own_link(rack_agent: Agent) -> None:
    links = [{"from": "h1.2", "to": "*", "bits_per_second": 20_000_000}]
    with network(rack_agent, 2, topology={"kind": "rack", "nics": 2}, links=links) as (_, hosts):
        rates = [nic["qdisc"]["bits_per_second"] for nic in hosts[0].agent.request("host.read")["nics"]]
        # tbf keeps whole bytes per second.
        assert rates == [pytest.approx(0.999 * each, abs=8) for each in (RATE, 20_000_000)]
        change = {"from": "h1", "to": "*", "bits_per_second": 10_000_000}
        assert rack_agent.request("rack.set", change)["changed"] == ["h1.1>switch", "h1.2>switch"]
        rates = [nic["qdisc"]["bits_per_second"] for nic in hosts[0].agent.request("host.read")["nics"]]
        assert rates == [pytest.approx(9_990_000, abs=8)] * 2
