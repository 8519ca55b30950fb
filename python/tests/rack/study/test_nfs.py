"""The workload `nfs` on the real rack: every frame of a call, what a lost one costs, and a server that does not start."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from helpers.real import held_up, run, study
from helpers.wire import counted_exactly

from framegauge.agents.pipe import Agent
from framegauge.evidence.carried import datagrams
from framegauge.experiment.planning import searched
from framegauge.results.journal import Run
from framegauge.testbeds.base import Conditions, Json
from framegauge.testbeds.rack import RackTestbed
from framegauge.workloads import nfs as workload
from framegauge.workloads.nfs import NEEDS

BED = {"kind": "rack", "topology": "rack", "hosts": 2, "link": {"rate": "200 Mb/s"}}
MARGINS = {"operations": "5 %"}
# Of 8 KiB: 8320 bytes of answer with 28 of headers, RPC, status, attributes and lengths (RFC 1813), 8 of UDP, 20 of IP.
PUBLISHED = {1500: 6, 4352: 2, 9000: 1}

pytestmark = [pytest.mark.needs(each.name, remedy=each.remedy) for each in NEEDS if not each.is_there(searched())]


def records(
    agent: Agent, folder: Path, mtus: list[int], bed: RackTestbed | None = None, family: int = 4, **nfs: Any
) -> list[tuple[Run, Json]]:
    """A run at each MTU with its record. Only fidelity may have excluded one, since a busy machine makes answers late, and
    none wrong; and what `bed` does behind the study's back."""
    expected = (
        "fidelity: ",
        *([] if bed is None else ["proof: frames lost behind port switch>h1: requested 0 "]),
    )
    asked = study(
        blocks=1, retries=0, testbed={**BED, "family": family}, margins=MARGINS,
        workloads=[{"nfs": {"duration": "0.5 s", **nfs}}], factors={"mtu": {"levels": mtus, "baseline": mtus[0]}},
    )  # fmt: skip
    runs = run(agent, asked, folder, bed)
    assert {line for each in runs for line in each.excluded if not line.startswith(expected)} == set()
    return [(each, json.loads((folder / "runs" / str(each.number) / "record.json").read_text())) for each in runs]


def frames_of(record: Json, host: str) -> int:
    """The frames that the fabric read from a host."""
    (found,) = (each["read_frames"] for each in record["measure"]["fabric"]["hosts"] if each["host"] == host)
    return int(found)


def test_a_datagram_of_8_kib_takes_six_frames_two_or_one(rack_agent: Agent, tmp_path: Path) -> None:
    for operation, sender in (("read", "h2"), ("write", "h1")):
        found = records(
            rack_agent, tmp_path / operation, list(PUBLISHED), transport="udp", operation=operation, block="8 KiB",
            access="random", rate=100,
        )  # fmt: skip
        assert {each.level for each, _ in found} == set(PUBLISHED)
        for each, record in found:
            calls, of_datagrams = record["workload"]["calls"], each.readings["carried"]["datagrams"]
            assert calls == 50
            assert of_datagrams["sent"] - of_datagrams["answered"] == sum(
                of_datagrams[place] for place in ("lost_calls", "lost_in_server", "lost_replies")
            )
            if held_up(each):  # then some are lost, and sent again
                continue
            assert of_datagrams == {
                "sent": of_datagrams["answered"], "answered": of_datagrams["sent"],
                "lost_calls": 0, "lost_in_server": 0, "lost_replies": 0,
            }  # fmt: skip
            # MNT, LOOKUP, and COMMIT after writes, are a frame each.
            others = {"read": 2, "write": 3}[operation]
            assert frames_of(record, sender) == PUBLISHED[each.level] * calls + others
            assert frames_of(record, {"h1": "h2", "h2": "h1"}[sender]) == calls + others
            if operation == "read":
                assert record["workload"]["messages"]["clients"]["h1"]["received"]["8320"] == calls
            assert each.metrics["goodput"] == pytest.approx(8 * 8192 * each.metrics["operations"])
            assert each.metrics["latency_p50"] <= each.metrics["latency_p95"]


def test_over_ipv6_fragments_are_those_of_rfc_8200(rack_agent: Agent, tmp_path: Path) -> None:
    """1,448 bytes each at MTU 1500, besides 40 of header and 8 of the extension header: six, too."""
    found = records(rack_agent, tmp_path, [1500, 9000], family=6, transport="udp", block="8 KiB", rate=100)
    for each, record in found:
        work = record["workload"]
        assert work["calls"] == 50
        counts = each.readings["carried"]["datagrams"]
        assert counts["sent"] == counts["answered"] == 50 + 2 + work["nfs"]["clients"]["h1"]["sent_again"]
        assert frames_of(record, "h2") == PUBLISHED[each.level] * (counts["sent"] - 2) + 2


def test_over_ipv6_nagles_algorithm_is_on_or_off_in_the_sockets_of_both_ends(rack_agent: Agent, tmp_path: Path) -> None:
    asked = study(
        blocks=1, retries=0, testbed={**BED, "family": 6}, margins=MARGINS, treatment="nagle",
        workloads=[{"nfs": {"duration": "0.5 s", "block": "8 KiB", "depth": 1}}],
        factors={"mtu": [9000], "nagle": [False, True]},
    )  # fmt: skip
    runs_ = run(rack_agent, asked, tmp_path)
    for each in runs_:
        assert [line for line in each.excluded if not line.startswith("fidelity: ")] == []
        work = json.loads((tmp_path / f"runs/{each.number}/record.json").read_text())["workload"]
        assert {row["mss_bytes"] for row in work["live"]} == {9000 - 72}
        assert set(map(tuple, work["nodelay"].values())) == {(not each.level,)}
        assert {where.partition(" ")[0] for where in work["nodelay"]} == {"h1", "h2"}
    assert {each.level for each in runs_} == {False, True}


@pytest.mark.parametrize(
    ("version", "operation", "block"), [(3, "read", "1 MiB"), (3, "write", "64 KiB"), (4, "read", "8 KiB")]
)
def test_over_tcp_the_wire_carries_every_byte_that_clients_count(
    rack_agent: Agent, tmp_path: Path, version: int, operation: str, block: str
) -> None:
    """Exactly, where nothing was sent again; the check of every run allows 3 %."""
    found = records(
        rack_agent, tmp_path, [1500, 9000], version=version, operation=operation, block=block, access="random"
    )  # fmt: skip
    for each, record in found:
        work = record["workload"]
        (client,) = work["messages"]["clients"].values()
        counted = {
            host: sum(int(size) * count for size, count in client[way].items())
            for host, way in (("h1", "sent"), ("h2", "received"))
        }
        for host in record["measure"]["fabric"]["hosts"]:
            assert counted_exactly(record, host, counted[host["host"]])
        assert work["bytes"] == record["workload"]["received_bytes"][{"read": "h1", "write": "h2"}[operation]] > 0
        assert {row["mss_bytes"] for row in work["live"]} == {each.level - 52}
        assert each.readings["shared_cpus"] or each.metrics["receiver_cpu_cost"] > 0
        assert each.metrics["goodput"] < 200e6


class Losing(RackTestbed):
    """A rack that loses one of the large frames to h1: the second fragment of an answer."""

    def up(self, conditions: Conditions) -> Json:
        rule: Mapping[str, Any] = {"frames": [62], "at_least_bytes": 700, "act": "lose"}
        links = [*conditions.network.get("links", ()), {"from": "switch", "to": "h1", "script": [rule]}]
        return super().up(replace(conditions, network={**conditions.network, "links": links}))


def test_one_lost_fragment_costs_its_whole_datagram(rack_agent: Agent, tmp_path: Path) -> None:
    """One frame of six is lost, and six are sent again, after the time that was stated. At 9000 the datagram is one frame:
    it is sent again for itself."""
    found = records(
        rack_agent, tmp_path, [1500, 9000], Losing(rack_agent), transport="udp", block="8 KiB", rate=200,
        retransmit="300 ms",
    )  # fmt: skip
    for each, record in found:
        work, frames = record["workload"], PUBLISHED[each.level]
        (port,) = (one for one in record["measure"]["fabric"]["ports"] if one["port"] == "switch>h1")
        assert port["lost_frames"] == 1
        (client,) = work["nfs"]["clients"].values()
        counts = datagrams(record)
        assert counts["lost_replies"] == 1
        # A machine that is busy for longer than the timer adds others, which the server answers, too.
        again = client["sent_again"]
        assert again >= 1
        assert counts["sent"] == work["calls"] + 2 + again == counts["answered"] + 1
        assert client["duplicates"] == again - 1
        assert frames_of(record, "h2") == frames * (work["calls"] + again) + 2
        assert client["unanswered"] == 0
        slowest = record["workload"]["nfs"]["slowest_seconds"]
        assert slowest >= 0.3


@pytest.mark.parametrize(
    ("text", "changed", "within", "line"),
    [
        (
            "rpcbind -w -f &",
            "{ echo no rpcbind >&2; exit 3; } &",
            20.0,
            r"unshare on h2 ended before it was ready \(exit code 3\): .*no rpcbind",
        ),
        ("exec ", "sleep 60; ", 1.0, r"unshare on h2 was not ready: found no output matching .* within 1 s: waiting"),
    ],
)
def test_a_server_that_does_not_start_shows_its_last_words(
    rack_agent: Agent,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    changed: str,
    within: float,
    line: str,
) -> None:
    monkeypatch.setattr(workload, "START", "echo waiting >&2\n" + workload.START.replace(text, changed))
    monkeypatch.setattr(workload, "READY_SECONDS", within)
    asked = study(blocks=1, retries=0, testbed=BED, margins=MARGINS, workloads=[{"nfs": {}}])
    found = run(rack_agent, asked, tmp_path)[0]
    assert re.match(f"error: {line}", found.excluded[0]), found.excluded
