"""incast with real kernels: what is conserved past the collapse and proved of every server. How far goodput falls, and
what a shorter minimum RTO brings, is in bench/incast.

Links are so slow that the network is the limit also where other programs keep this machine busy.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.ipc
import pytest
from helpers import outcomes
from helpers.real import faithful, proven, record, study
from helpers.support import SOAK

from framegauge.agents.pipe import Agent
from framegauge.results.journal import Run
from framegauge.study import file as study_file
from framegauge.study.model import Study

RATE = 50e6
CEILING = RATE * 1448 / 1538
UNIT, SERVERS, ROUNDS = 32_000, 8, 5
BLOCK = SERVERS * UNIT
RTO_MIN_SECONDS = 0.2
MTU = {"levels": [1500, 9000], "baseline": 1500}


def rounds(folder: Path, number: int) -> list[float]:
    """The seconds of each round."""
    with pyarrow.ipc.open_file(folder / f"runs/{number}/rounds.arrow") as file:
        table = file.read_all()
    begins, ends = (table.column(f"{name}_seconds").to_pylist() for name in ("start", "end"))
    # The barrier: no round begins before the one before has ended.
    assert all(end <= begin for end, begin in zip(ends, begins[1:], strict=False))
    return [end - begin for begin, end in zip(begins, ends, strict=True)]


def collapsing(kind: str = "rack", **rest: Any) -> Study:
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


@pytest.fixture(scope="module")
def collapsed(rack_agent: Agent, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[Any, Run]]:
    """The results folder of the study, and its run at each level."""
    folder = tmp_path_factory.mktemp("collapsing")
    return folder, {each.level: each for each in proven(rack_agent, collapsing(), folder)}


def test_past_the_collapse_all_bytes_arrive_and_every_timeout_is_counted(
    collapsed: tuple[Path, dict[Any, Run]],
) -> None:
    folder, runs = collapsed
    assert set(runs) == {"as-is", "short-rto"}
    for level, each in runs.items():
        told = record(folder, each)
        work, times = told["workload"], rounds(folder, each.number)
        # Conservation, whatever was lost on the way.
        assert work["received_bytes"] == {"h9": ROUNDS * BLOCK}
        assert work["senders"] == [f"h{number}" for number in range(1, SERVERS + 1)]
        after, before = (
            sum(host["nstat"].get("TcpExtTCPTimeouts", 0) for host in told[f"counters_{when}"].values())
            for when in ("after", "before")
        )
        assert work["timeouts"] <= after - before
        # The kernel waits for the minimum RTO at least, so a round with a timeout is no shorter.
        if level == "as-is":
            assert max(times) >= RTO_MIN_SECONDS or work["timeouts"] == 0
            assert 8 * ROUNDS * BLOCK / each.metrics["goodput"] >= sum(
                seconds for seconds in times if seconds >= RTO_MIN_SECONDS
            )
        assert each.metrics["goodput"] < CEILING
        assert 0 < each.metrics["fairness"] <= 1


@pytest.mark.parametrize("kind", ["rack", "veth"])
def test_one_server_is_a_closed_loop_of_requests(rack_agent: Agent, tmp_path: Path, kind: str) -> None:
    """Known answer: a round with one server is a request and its response, which `rr` measures, too; neither is faster
    than the line. In `make soak` both take as long, which a busy machine may change."""
    # So slow that the time is the wire's: without it, it is that in which a CPU wakes up.
    workloads = [
        {"incast": {"unit": "32 kB", "servers": 1, "rounds": 50}}, {"rr": {"request": "100 B", "response": "32 kB", "duration": "0.5 s"}},
    ]  # fmt: skip
    asked = study(kind, "50 Mb/s", blocks=1, control=True, workloads=workloads, factors={"mtu": 1500})
    runs = (faithful if SOAK else proven)(rack_agent, asked, tmp_path / "out")
    took: dict[str, list[float]] = {"incast": [], "rr": []}
    for each in runs:
        took[each.workload].append(each.metrics["completion_time" if each.workload == "incast" else "latency_p50"])
        if each.workload == "incast":
            assert record(tmp_path / "out", each)["workload"]["received_bytes"] == {"h2": 50 * 32_000}
    assert all(took.values())
    if kind == "rack":
        # On the line alone, at the ceiling.
        assert min(*took["incast"], *took["rr"]) > 8 * 32_000 / CEILING
    if SOAK:
        assert min(took["incast"]) == pytest.approx(min(took["rr"]), rel=0.1)
        if kind == "rack":
            # And an RTT; windows still grow in the first rounds.
            assert min(took["incast"]) == pytest.approx(8 * 32_000 / CEILING + 2e-4, rel=0.15)


def test_nagle_and_the_mtu_are_proved_and_all_servers_take_part(rack_agent: Agent, tmp_path: Path) -> None:
    bed = {"kind": "rack", "topology": "rack", "hosts": 5, "link": {"rate": "200 Mb/s"}}
    asked = study(
        testbed=bed, blocks=1, treatment="nagle", retries=0,
        factors={"mtu": MTU, "nagle": {"levels": [False, True], "baseline": False}},
        workloads=[{"incast": {"block": "3 MB", "servers": [2, 4], "rounds": 3}}],
    )  # fmt: skip
    for each in proven(rack_agent, asked, tmp_path / "out"):
        told, servers = record(tmp_path / "out", each), each.conditions["servers"]
        work = told["workload"]
        assert work["nodelay"] == {host: [not each.level] for host in [*work["senders"], "h5"]}
        assert len(work["senders"]) == servers
        assert work["received_bytes"] == {"h5": 9_000_000}
        payload = each.conditions["mtu"] - 52
        assert 0.9 * payload < work["mean_segment_payload_bytes"] <= payload


def test_the_same_file_runs_on_the_rack_and_in_a_simulation(collapsed: tuple[Path, dict[Any, Run]]) -> None:
    """Both have the metrics and the conditions by which `compare` matches them; the simulated one, which no machine
    changes, collapses, and comes back with a shorter minimum RTO."""
    _, real = collapsed
    text = study_file.dump(collapsing("simulator")).replace("blocks: 1\n", "blocks: 2\n")
    made = {each.run.level: each.run for each in outcomes.run(text)}
    for level in ("as-is", "short-rto"):
        assert real[level].conditions == made[level].conditions
        assert set(made[level].metrics) <= set(real[level].metrics)
    assert made["as-is"].metrics["goodput"] < CEILING / 2
    assert made["as-is"].metrics["completion_time"] >= RTO_MIN_SECONDS > made["short-rto"].metrics["completion_time"]
