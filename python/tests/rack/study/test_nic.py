"""What a NIC does in a host's stead, one by one, on both testbeds: each run proves it, or is excluded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.real import faithful, proven, shown, study
from helpers.support import SOAK

from framegauge.agents.pipe import Agent
from framegauge.results.journal import Run
from framegauge.study.model import Study

ON = {"tso": True, "lro": True, "gro": True, "checksum": True}
OFF = dict.fromkeys(ON, False)
# At 200 Mb/s a full frame of 1500 takes 62 us: eight of them fit into the moderation.
FABRIC = {
    "all off": OFF,
    "checksum": OFF | {"checksum": True},
    "tso": OFF | {"checksum": True, "tso": True},
    "lro": OFF | {"checksum": True, "lro": True},
    "gro": OFF | {"gro": True},
    "all on": ON,
}
KERNEL = {"all off": OFF, "gro": OFF | {"gro": True}, "all on": ON}


def asked(nic: dict[str, bool], **rest: Any) -> Study:
    return study(
        stream={"size": "5 MB", "repeat": "0 s", "pattern": rest.pop("pattern", "one-to-one")},
        factors={"mtu": 1500, **nic, **rest.pop("factors", {})}, control=True, blocks=1, **rest,
    )  # fmt: skip


@pytest.mark.parametrize("what", FABRIC)
def test_each_offload_on_the_fabric_is_proven(rack_agent: Agent, tmp_path: Path, what: str) -> None:
    nic = FABRIC[what]
    for each in proven(rack_agent, asked(nic, factors={"moderation": "0.5 ms"}), tmp_path / "out"):
        merged, sent = each.readings["frames_per_aggregate"], each.readings["frames_per_read"]
        assert (merged > 2) if nic["lro"] else (merged > 1) if nic["gro"] else (merged == 1), each.readings
        assert (sent > 2) if nic["tso"] else (sent == 1), each.readings


if SOAK:

    @pytest.mark.soak(0.2)
    def test_what_one_poll_finds_is_merged(rack_agent: Agent, tmp_path: Path) -> None:
        """How much that is depends on how fast the poller's CPU wakes up, and on a busy machine polls take turns with
        programs."""
        for each in faithful(rack_agent, asked(FABRIC["gro"], factors={"moderation": "0.5 ms"}), tmp_path / "out"):
            share = each.readings["frames_per_aggregate"] / each.readings["frames_per_poll"]["h2"]
            assert 0.8 < share < 1.2, each.readings


def test_large_receive_offload_merges_within_the_moderation_only(rack_agent: Agent, tmp_path: Path) -> None:
    nic = OFF | {"checksum": True, "lro": True}
    found = {}
    for moderation in ("0 s", "0.2 ms", "0.8 ms"):
        runs = faithful(rack_agent, asked(nic, factors={"moderation": moderation}), tmp_path / moderation)
        found[moderation] = [each.readings["frames_per_aggregate"] for each in runs]
    assert set(found["0 s"]) == {1.0}
    # Three frames take 0.2 ms, thirteen 0.8 ms.
    assert max(found["0.2 ms"]) < min(found["0.8 ms"]) <= 14, found
    assert min(found["0.2 ms"]) > 1.3, found


@pytest.mark.parametrize("hosts", [2, 4])
@pytest.mark.parametrize("what", KERNEL)
def test_each_offload_on_the_kernels_own_links_is_proven(
    rack_agent: Agent, tmp_path: Path, what: str, hosts: int
) -> None:
    bed = {"kind": "veth", "link": {"rate": "200 Mb/s", "buffer": "128 KiB"}}
    if hosts > 2:
        bed |= {"topology": "rack", "hosts": hosts}
    told = asked(
        KERNEL[what], testbed=bed, factors={"rtt": "0 s"}, pattern="many-to-one" if hosts > 2 else "one-to-one"
    )  # fmt: skip
    assert proven(rack_agent, told, tmp_path / "out")


def test_the_kernels_own_moderation_is_in_force(rack_agent: Agent, tmp_path: Path) -> None:
    """After a poll that found something the next one is a moderation later: a ping-pong takes at least as long."""
    for moderation in ("0 s", "2 ms"):
        exchanging = study(
            testbed={"kind": "veth", "link": {"rate": "200 Mb/s"}}, control=True, blocks=1, margins={"latency_p50": "5 %"},
            factors={"mtu": 1500, "rtt": "0 s", "moderation": moderation, **OFF, "gro": True},
            workloads=[{"rr": {"duration": "0.5 s"}}],
        )  # fmt: skip
        # Nothing makes a round shorter than the moderation; without it, a machine that is busy makes it longer.
        at_once = moderation == "0 s"

        def is_in_force(runs: Sequence[Run], at_once: bool = at_once) -> bool:
            found = [each.metrics["latency_p50"] for each in runs]
            print(found)
            assert at_once or min(found) > 0.0015
            return not at_once or min(found) < 0.001

        shown(rack_agent, exchanging, tmp_path / moderation, is_in_force)
