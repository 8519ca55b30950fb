"""Real kernel TCP against answers that are known. At 200 Mb/s, so that the machine need not be quiet."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from helpers.real import RATE, UP, Unsteady, alone, each_cell, judged, output, proven, record, run, shown, spawn, study
from helpers.support import PATIENCE_SECONDS, SOAK, by_length

from framegauge.agents.pipe import Agent
from framegauge.errors import Refused
from framegauge.results.journal import Run
from framegauge.testbeds.rack import RackTestbed, Relay

CEILING = {1500: 1448 / 1538, 9000: 8948 / 9038}
CEILING_IPV6 = {1500: 1428 / 1538, 9000: 8928 / 9038}
# A third of a second each, so that most runs miss what another program does once a second.
MANY = {"stream": {"size": "8 MB", "repeat": "0 s"}, "blocks": 3}


def reached(runs: Sequence[Run], ceiling: Mapping[int, float]) -> dict[int, float]:
    """The largest share of each level's ceiling: a machine that is busy makes a run slower. None that counts is above."""
    shares = {
        level: [each.metrics["goodput"] / (RATE * share) for each in runs if each.level == level]
        for level, share in ceiling.items()
    }
    print(shares)
    assert all(
        each.metrics["goodput"] <= 1.0005 * RATE * ceiling[each.level] for each in runs if not each.excluded
    )  # fmt: skip
    return {level: max(values) for level, values in shares.items()}


def test_goodput_reaches_the_ceiling(rack_agent: Agent, tmp_path: Path) -> None:
    def do_reach(runs: Sequence[Run]) -> bool:
        most = reached(runs, CEILING)
        ratio = most[9000] * CEILING[9000] / (most[1500] * CEILING[1500])
        return min(most.values()) >= 0.995 and ratio == pytest.approx(1.0516, rel=0.002)

    folder = tmp_path / "out"
    shown(rack_agent, study(**MANY), folder, do_reach, Unsteady(rack_agent))


def test_goodput_of_ipv6_has_its_own_ceiling(rack_agent: Agent, tmp_path: Path) -> None:
    def do_reach(runs: Sequence[Run]) -> bool:
        return min(reached(runs, CEILING_IPV6).values()) >= 0.995

    folder = tmp_path / "out"
    shown(rack_agent, study(family=6, **MANY), folder, do_reach, Unsteady(rack_agent))


def test_a_short_transfer_is_as_slow_start_predicts(rack_agent: Agent, tmp_path: Path) -> None:
    asked = study(stream={"size": "1 MB", "repeat": "0.5 s"}, factors={"rtt": "1.2 ms"}, blocks=2)
    predicted = {
        level: rack_agent.request(
            "frames.predict",
            {"size_bytes": 1_000_000, "mtu": level, "family": 4, "bits_per_second": RATE, "rtt_seconds": 0.0012},
        )["completion_seconds"]
        for level in CEILING
    }

    def are_as_slow(runs: Sequence[Run]) -> bool:
        """A machine that is busy makes them slower and none faster."""
        took = {
            level: min(each.metrics["completion_time"] for each in runs if each.level == level) for level in predicted
        }
        print(took, predicted)
        return all(took[level] == pytest.approx(seconds, rel=0.10) for level, seconds in predicted.items())

    folder = tmp_path / "out"
    shown(rack_agent, asked, folder, are_as_slow)


@pytest.mark.soak(0.1)
@pytest.mark.parametrize("mtu", [1500, 9000])
def test_two_senders_share_a_port_in_full_frames(rack_agent: Agent, mtu: int) -> None:
    """In `make soak`, they keep it busy and reach the ceiling."""
    hosts = [{"name": f"h{number}", "mtu": mtu} for number in (1, 2, 3)]
    built = rack_agent.request("rack.up", {**UP, "hosts": hosts})
    try:
        sink, token = Relay(rack_agent, "h3"), "5a" * 16
        address = built["hosts"][2]["address"]
        port = sink.request("stream.serve", {"token": token, "address": address, "sample_seconds": 0})["port"]
        asked = {
            "address": address, "port": port, "token": token, "flows": 1, "size_bytes": None,
            "duration_seconds": 2.0, "repeat_seconds": 0, "reverse": False, "sample_seconds": 0.0,
            "pacing_bits_per_second": None,
        }  # fmt: skip
        calls = [
            rack_agent.begin("relay", {"host": name, "method": "stream.run", "params": asked}) for name in ("h1", "h2")
        ]
        # The interval lies inside the transfer, so that neither start nor end is in it.
        spend = spawn(sink, "sleep", "0.5")
        sink.request("process.wait", {"process": spend, "timeout_seconds": PATIENCE_SECONDS})
        rack_agent.request("measure.begin")
        spend = spawn(sink, "sleep", "1.0")
        sink.request("process.wait", {"process": spend, "timeout_seconds": PATIENCE_SECONDS})
        measured = rack_agent.request("measure.end")
        for call in calls:
            call.result(PATIENCE_SECONDS)
        sink.request("stream.close")
    finally:
        rack_agent.request("rack.down")
    elapsed = measured["elapsed_seconds"]
    output = next(port for port in measured["fabric"]["ports"] if port["port"] == "switch>h3")
    if SOAK:
        assert output["occupied_seconds"] >= 0.95 * elapsed
        wire = (output["sent_bytes"] + 20 * output["sent_frames"]) * 8 / elapsed
        assert wire == pytest.approx(RATE, rel=0.005)
    # Full frames carry `segment_payload`; ACKs leave by other ports.
    assert output["sent_bytes"] / output["sent_frames"] >= 0.995 * (mtu + 18)


@pytest.mark.needs("iperf3")
@pytest.mark.soak(0.5)
@pytest.mark.parametrize("mtu", [1500, 9000])
def test_our_generator_and_iperf3_stay_below_the_ceiling_of_the_kernels_own_link(
    rack_agent: Agent, mtu: int, tmp_path: Path
) -> None:
    """At half of the rate, where the shaper makes good a CPU that was held for 5 ms. In `make soak` they agree and reach
    the ceiling, by the fastest of several: whatever else the machine does makes a transfer slower and none faster, and
    iperf3 excludes none."""
    rate, ours, theirs = RATE // 2, list[float](), list[float]()
    asked = alone(study("veth", f"{rate} b/s", stream={"duration": "2 s"}), mtu=mtu)
    for attempt in range(by_length(1, 4)):
        ours += [each.metrics["goodput"] for each in proven(rack_agent, asked, tmp_path / f"out{attempt}")]
        theirs.append(_iperf3(rack_agent, mtu, rate))
    # Its burst adds less than 0.5 % to two seconds.
    assert 0 < max(*ours, *theirs) / (rate * CEILING[mtu]) <= 1.005
    if SOAK:
        assert max(ours) == pytest.approx(max(theirs), rel=0.005), (ours, theirs)
        assert max(ours) / (rate * CEILING[mtu]) >= 0.99


def _iperf3(agent: Agent, mtu: int, rate: int) -> float:
    """Goodput by iperf3 between the same hosts, b/s; its own first second is left out."""
    hosts = [{"name": name, "mtu": mtu} for name in ("h1", "h2")]
    kernel = {
        "testbed": "kernel",
        "hosts": hosts,
        "link": {**UP["link"], "bits_per_second": rate, "rtt_seconds": 0},
        "nic": {**UP["nic"], "moderation_seconds": 0},
    }
    built = agent.request("rack.up", {**UP, **kernel})
    try:
        client, server = Relay(agent, "h1"), Relay(agent, "h2")
        listening = spawn(server, "iperf3", "-s", "-1", "--forceflush")
        while "listening" not in output(server, listening):
            pass
        process = spawn(client, "iperf3", "-c", built["hosts"][1]["address"], "-O", "1", "-t", "2", "-J")
        client.request(
            "process.wait", {"process": process, "timeout_seconds": PATIENCE_SECONDS}, timeout_seconds=PATIENCE_SECONDS
        )
        return float(json.loads(output(client, process))["end"]["sum_received"]["bits_per_second"])
    finally:
        agent.request("rack.down")


# At 1 Gb/s 2.5 and 6 ms; what a queue holds in bytes takes five times as long at 200 Mb/s.
SRTT_SECONDS = {1: 5 * 2.5e-3, 8: 5 * 6e-3}


@pytest.mark.soak(0.5)
def test_the_senders_queue_is_bounded(rack_agent: Agent, tmp_path: Path) -> None:
    asked = study(
        stream={"size": "5 MB", "flows": [1, 8], "repeat": "0.5 s"}, factors={"offloads": [False, True]},
        blocks=by_length(1, 2),
    )  # fmt: skip
    folder = tmp_path / "out"

    def without_ring_drops(runs: Sequence[Run]) -> bool:
        # They exclude a run; here they would also be a fault of ours.
        assert not any("ring drops" in reason for each in runs for reason in each.excluded)
        return each_cell(runs)

    for each in judged(lambda: run(rack_agent, asked, folder), folder, without_ring_drops):
        work = record(folder, each)["workload"]
        assert each.excluded or work["srtt_median_seconds"] <= SRTT_SECONDS[each.conditions["flows"]]


def test_the_kernel_testbed_refuses_what_it_cannot_do(rack_agent: Agent) -> None:
    with pytest.raises(Refused, match="no delay"):
        rack_agent.request("rack.up", {**UP, "testbed": "kernel"})
    assert RackTestbed(rack_agent).requirements(RATE)["missing"] == []
