"""incast with real kernels: the collapse, what a shorter minimum RTO makes of it, and one server as a known answer.

Links are so slow that the network is the limit also where other programs keep this machine busy.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.ipc
import pytest
from helpers import outcomes
from helpers.real import run, study

from framegauge.agents.pipe import Agent
from framegauge.results.journal import Run
from framegauge.study import file as study_file
from framegauge.testbeds.base import Json

RATE = 50e6
CEILING = RATE * 1448 / 1538
UNIT, SERVERS, ROUNDS = 32_000, 8, 5
BLOCK = SERVERS * UNIT
RTO_MIN_SECONDS = 0.2
ATTEMPTS = 4
MTU = {"levels": [1500, 9000], "baseline": 1500}


def proven(runs: list[Run]) -> list[Run]:
    """The runs, none of which anything but fidelity may have excluded: a busy machine changes no count."""
    assert {line for each in runs for line in each.excluded if not line.startswith("fidelity: ")} == set()
    return runs


def record(folder: Path, number: int) -> Json:
    found: Json = json.loads((folder / f"runs/{number}/record.json").read_text())
    return found


def rounds(folder: Path, number: int) -> list[float]:
    """The seconds of each round."""
    with pyarrow.ipc.open_file(folder / f"runs/{number}/rounds.arrow") as file:
        table = file.read_all()
    begins, ends = (table.column(f"{name}_seconds").to_pylist() for name in ("start", "end"))
    # The barrier: no round begins before the one before has ended.
    assert all(end <= begin for end, begin in zip(ends, begins[1:], strict=False))
    return [end - begin for begin, end in zip(begins, ends, strict=True)]


def collapsing(kind: str = "rack", **rest: Any) -> Any:
    bed = {"kind": kind, "topology": "rack", "hosts": SERVERS + 1, "link": {"rate": "50 Mb/s", "buffer": "32 KiB"}}
    return study(
        testbed=bed, blocks=1, treatment="tuning", sysctls={"net.ipv4.tcp_sack": "0"}, retries=0,
        factors={
            "mtu": 1500, "congestion_control": "reno", "nagle": False,
            "tuning": {"levels": ["as-is", "short-rto"], "baseline": "as-is"},
        },
        tunings={"short-rto": {"sysctls": {"net.ipv4.tcp_rto_min_us": "10000"}}},
        workloads=[{"incast": {"unit": f"{UNIT} B", "servers": SERVERS, "rounds": ROUNDS}}], **rest,
    )  # fmt: skip


def test_past_the_collapse_rounds_wait_for_timeouts(rack_agent: Agent, tmp_path: Path) -> None:
    """Goodput is about block / (block / C + RTO_min); with a shorter minimum RTO it comes back.

    Servers that a busy machine starts one after the other do not meet at the switch: it is asked again.
    """
    for attempt in range(ATTEMPTS):
        folder = tmp_path / str(attempt)
        found = {each.level: each for each in proven(run(rack_agent, collapsing(), folder))}
        usual, short = found["as-is"], found["short-rto"]
        told = record(folder, usual.number)
        work, times = told["workload"], rounds(folder, usual.number)
        # Conservation, whatever was lost on the way.
        assert work["received_bytes"] == {"h9": ROUNDS * BLOCK}
        assert work["senders"] == [f"h{number}" for number in range(1, SERVERS + 1)]
        after, before = (
            sum(each["nstat"].get("TcpExtTCPTimeouts", 0) for each in told[f"counters_{when}"].values())
            for when in ("after", "before")
        )
        assert work["timeouts"] <= after - before
        # The kernel waits for the minimum RTO at least, so a round with a timeout is no shorter.
        assert max(times) >= RTO_MIN_SECONDS or work["timeouts"] == 0
        for each in (usual, short):
            assert each.metrics["goodput"] < CEILING
            assert 0 < each.metrics["fairness"] <= 1
        stalled = [seconds for seconds in times if seconds >= RTO_MIN_SECONDS]
        if len(stalled) > ROUNDS // 2 and short.metrics["completion_time"] < RTO_MIN_SECONDS:
            break
    assert work["timeouts"] >= len(stalled) > ROUNDS // 2, (work, times)
    # More than one timeout may be in a round, but none of the rounds is as short as the link would let it be.
    assert usual.metrics["completion_time"] >= RTO_MIN_SECONDS
    assert usual.metrics["goodput"] < CEILING / 2
    assert 8 * ROUNDS * BLOCK / usual.metrics["goodput"] >= len(stalled) * RTO_MIN_SECONDS
    assert short.metrics["completion_time"] < RTO_MIN_SECONDS, short.metrics


@pytest.mark.parametrize("kind", ["rack", "veth"])
def test_one_server_is_a_closed_loop_of_requests(rack_agent: Agent, tmp_path: Path, kind: str) -> None:
    """Known answer: a round with one server is a request and its response, which `rr` measures, too."""
    # So slow that the time is the wire's: without it, it is that in which a CPU wakes up.
    rate = "50 Mb/s"
    workloads = [
        {"incast": {"unit": "32 kB", "servers": 1, "rounds": 50}}, {"rr": {"request": "100 B", "response": "32 kB", "duration": "0.5 s"}},
    ]  # fmt: skip
    for attempt in range(ATTEMPTS):
        folder = tmp_path / str(attempt)
        asked = study(kind, rate, blocks=1, control=True, retries=0, workloads=workloads, factors={"mtu": 1500})
        runs = proven(run(rack_agent, asked, folder))
        took = {
            name: min(each.metrics[metric] for each in runs if each.workload == name)
            for name, metric in (("incast", "completion_time"), ("rr", "latency_p50"))
        }
        if took["incast"] == pytest.approx(took["rr"], rel=0.1):
            break
    assert took["incast"] == pytest.approx(took["rr"], rel=0.1)
    if kind == "rack":
        # On the line alone, at the ceiling, and an RTT; windows still grow in the first rounds.
        assert took["incast"] > 8 * 32_000 / CEILING
        assert took["incast"] == pytest.approx(8 * 32_000 / CEILING + 2e-4, rel=0.15)


def test_nagle_and_the_mtu_are_proved_and_all_servers_take_part(rack_agent: Agent, tmp_path: Path) -> None:
    bed = {"kind": "rack", "topology": "rack", "hosts": 5, "link": {"rate": "200 Mb/s"}}
    asked = study(
        testbed=bed, blocks=1, treatment="nagle", retries=0,
        factors={"mtu": MTU, "nagle": {"levels": [False, True], "baseline": False}},
        workloads=[{"incast": {"block": "3 MB", "servers": [2, 4], "rounds": 3}}],
    )  # fmt: skip
    for each in proven(run(rack_agent, asked, tmp_path / "out")):
        told, servers = record(tmp_path / "out", each.number), each.conditions["servers"]
        work = told["workload"]
        assert work["nodelay"] == {host: [not each.level] for host in [*work["senders"], "h5"]}
        assert len(work["senders"]) == servers
        assert work["received_bytes"] == {"h5": 9_000_000}
        payload = each.conditions["mtu"] - 52
        assert 0.9 * payload < work["mean_segment_payload_bytes"] <= payload


def test_the_same_file_runs_on_the_rack_and_in_a_simulation(rack_agent: Agent, tmp_path: Path) -> None:
    """Both have the metrics and the conditions by which `compare` matches them, and both collapse."""
    asked = collapsing()
    real = {each.level: each for each in proven(run(rack_agent, asked, tmp_path / "out"))}
    text = study_file.dump(collapsing("simulator")).replace("blocks: 1\n", "blocks: 2\n")
    made = {each.run.level: each.run for each in outcomes.run(text)}
    for level in ("as-is", "short-rto"):
        assert real[level].conditions == made[level].conditions
        assert set(made[level].metrics) <= set(real[level].metrics)
    assert made["as-is"].metrics["goodput"] < CEILING / 2
