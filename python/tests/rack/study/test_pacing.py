"""Pacing by the kernel's own TCP on a rack: how far apart segments come to the switch, and what a flow carries."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from helpers.networks import TOKEN, network, table
from helpers.real import RATE, record, shown, study
from helpers.support import PATIENCE_SECONDS, SOAK

from framegauge.agents.pipe import Agent
from framegauge.results.journal import Run
from framegauge.testbeds.base import Host, Json
from framegauge.workloads.stream import request, serve

PORT = "switch>h2"
SEGMENT = 1448  # payload at MTU 1500, with timestamps
FRAME = 1518


def paced(agent: Agent, hosts: list[Host], rate: int, **sizes: Any) -> tuple[list[Json], list[Json]]:
    """The full frames that came to the last port while a flow sent for a second, and the samples of its socket."""
    client, server = hosts
    closed: dict[str, Json] = {}
    with ExitStack() as stack:
        port = serve(stack, server, TOKEN, 0.0, closed, **sizes)
        agent.request("measure.begin", {"watch": [PORT], "sample_seconds": 0.01})
        asked = request(server, port, TOKEN, duration_seconds=1.0, pacing_bits_per_second=rate, **sizes)
        done = client.agent.request("stream.run", asked, timeout_seconds=PATIENCE_SECONDS)
        measured = agent.request("measure.end")
    assert done["max_pacing_bits_per_second"] == [rate]
    events = table(agent, measured["fabric"]["events"])
    frames = [each for each in events if each["kind"] == "arrived" and each["frame_bytes"] == FRAME]
    return frames, table(client.agent, done["samples"])


def bursts(frames: list[Json]) -> list[tuple[float, int]]:
    """When bursts began, and their bytes of payload: frames of one follow each other at the rate of the host's link."""
    found: list[tuple[float, int]] = []
    last = -1.0
    for each in frames:
        now = each["time_seconds"]
        if now - last < 2 * 8 * 1538 / RATE:
            found[-1] = (found[-1][0], found[-1][1] + SEGMENT)
        else:
            found.append((now, SEGMENT))
        last = now
    return found


def distances(frames: list[Json]) -> list[float]:
    """The seconds from each burst to the next, over its bytes: how long a byte took."""
    each = bursts(frames)
    return [(after[0] - one[0]) / one[1] for one, after in itertools.pairwise(each)]


LINK: Mapping[str, Any] = {"bits_per_second": RATE, "rtt_seconds": 0.02, "buffer_bytes": 524_288}


@pytest.mark.soak(0.1)
def test_bursts_are_no_closer_than_their_rate(rack_agent: Agent) -> None:
    """8 Mb/s are a microsecond per byte. A late timer is made up for by half of the distance to the next at most, so that
    none is shorter than that. In `make soak` most are no longer either."""
    with network(rack_agent, 2, link=LINK) as (_, hosts):
        frames, _ = paced(rack_agent, hosts, 8_000_000)
    found = distances(frames[20:])
    assert statistics.mean(found) >= 0.95e-6
    if SOAK:
        assert statistics.median(found) == pytest.approx(1e-6, rel=0.05)


@pytest.mark.soak(0.1)
def test_a_window_leaves_at_twice_or_a_fifth_more_than_its_rate(rack_agent: Agent) -> None:
    """The kernel's rate, as TCP_INFO tells it, is cwnd / srtt times 2 or 1.2. In `make soak`, bursts of a window that the
    socket's buffers limit are that far apart, or half of it behind one that came late because it waited for an
    acknowledgement, as in crates/simulator/tests/all/pacing.rs: half of all and more."""
    with network(rack_agent, 2, link=LINK) as (_, hosts):
        frames, samples = paced(rack_agent, hosts, 10_000_000_000_000, socket_buffer_bytes=16_384)
    last = samples[len(samples) // 2 :]
    assert last
    for each in last:
        share = each["pacing_bits_per_second"] * each["srtt_seconds"] / (8 * SEGMENT * each["cwnd_segments"])
        assert share == pytest.approx(2.0, rel=0.02) or share == pytest.approx(1.2, rel=0.02), each
    if SOAK:
        rates = {each["pacing_bits_per_second"] / 8 for each in last}
        late = [each for each in frames if each["time_seconds"] > frames[len(frames) // 2]["time_seconds"]]
        found = [each * statistics.median(rates) for each in distances(late)]
        near = [sum(0.9 * known < each < 1.1 * known for each in found) / len(found) for known in (0.5, 1.0)]
        assert near[1] > 0.15, near
        assert sum(near) > 0.35, near


@pytest.mark.parametrize("reverse", [False, True])
def test_levels_are_proved_and_a_paced_flow_fills_the_link(rack_agent: Agent, tmp_path: Path, reverse: bool) -> None:
    asked = study(
        treatment="pacing", blocks=1, stream={"duration": "1 s", "reverse": reverse},
        factors={"mtu": 1500, "pacing": {"levels": ["off", "on", "75 Mb/s"], "baseline": "off"}},
    )  # fmt: skip
    folder = tmp_path / "out"

    def are_carried(runs: Sequence[Run]) -> bool:
        """A machine that is busy makes flows slower and none faster."""
        rates: dict[str, list[float]] = {"off": [], "on": [], "75 Mb/s": []}
        for each in runs:
            work = record(folder, each)["workload"]
            rates[each.level].append(8 * sum(work["received_bytes"].values()) / work["active_seconds"])
        print(rates)
        # What the first ten segments and an aggregate are ahead, within a second.
        assert max(rates["75 Mb/s"]) <= 75e6 + 8 * (10 * 1500 + 65_536)
        full = 0.9 * 0.9415 * RATE
        return max(rates["75 Mb/s"]) > 0.9 * 75e6 and min(max(rates["off"]), max(rates["on"])) > full

    shown(rack_agent, asked, folder, are_carried)
