"""The workloads on the real rack: who stalls, who waits, and whether theory agrees."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.ipc
import pytest
from helpers import recorded
from helpers.real import alone, faithful, proven, record, shown, study

from framegauge.agents.pipe import Agent
from framegauge.cli.main import main
from framegauge.files.recordings import to_csv
from framegauge.report.recorded import run as recording
from framegauge.results.journal import Run

STALL_SECONDS = 0.035  # Linux delays an acknowledgement by 40 ms at least


def test_nagle_stalls_partial_segments_and_more_sizes_at_9000(rack_agent: Agent, tmp_path: Path) -> None:
    """A header and a body that does not fill a segment: the body waits for the header's acknowledgement. A machine that
    holds hosts up makes others as late, and none of these earlier."""
    asked = study(
        treatment="nagle", margins={"latency_p50": "10 %"}, blocks=1,
        factors={"mtu": [1500, 9000], "nagle": {"levels": [False, True], "baseline": False}},
        workloads=[{"rr": {"request": "100 B", "response": ["1 kB", "2300 B"], "header": "200 B", "duration": "0.5 s"}}],
    )  # fmt: skip

    def as_expected(runs: Sequence[Run]) -> bool:
        print([(each.level, each.conditions, each.metrics["latency_p50"]) for each in runs])
        stalled = [
            bool(each.level) and (each.conditions["response_bytes"] == 1000 or each.conditions["mtu"] == 9000)
            for each in runs
        ]
        latencies = [each.metrics["latency_p50"] for each in runs]
        assert all(latency > STALL_SECONDS for latency, stalls in zip(latencies, stalled, strict=True) if stalls)
        right = {
            each.key[1:] for each, stalls in zip(runs, stalled, strict=True)
            if (each.metrics["latency_p50"] > STALL_SECONDS) == stalls
        }  # fmt: skip
        return right == {each.key[1:] for each in runs}

    shown(rack_agent, asked, tmp_path / "out", as_expected)


def test_an_open_loop_asks_at_its_rate(rack_agent: Agent, tmp_path: Path) -> None:
    """Each request has its time, which no answer and no machine puts off: by even distances exactly so many of them."""
    asked = study(
        control=True, margins={"transactions": "1 %"}, factors={"mtu": 1500}, blocks=1,
        workloads=[{"rr": {"response": "1 kB", "rate": 500, "arrivals": ["uniform", "poisson"], "duration": "1 s"}}],
    )  # fmt: skip

    def keeps_it(runs: Sequence[Run]) -> bool:
        """A machine that is busy answers fewer within the time, and never more."""
        done: dict[str, list[float]] = defaultdict(list)
        for each in runs:
            done[each.conditions["arrivals"]].append(each.metrics["transactions"])
        print(done)
        return max(done["uniform"]) == pytest.approx(500, rel=0.01) and max(done["poisson"]) == pytest.approx(
            500, rel=0.2
        )

    shown(rack_agent, asked, tmp_path / "out", keeps_it)


def test_requests_are_recorded_and_replayed(rack_agent: Agent, tmp_path: Path) -> None:
    asked = study(
        margins={"transactions": "50 %"}, factors={"mtu": [1500, 9000], "rtt": "10 ms"},
        workloads=[{"rr": {"response": "1 kB", "connections": 2, "duration": "0.5 s"}}],
    )  # fmt: skip
    (each,) = proven(rack_agent, alone(asked, mtu=1500), tmp_path / "out")
    flows = recording.recorded(tmp_path / "out", each.number)
    told = record(tmp_path / "out", each)
    assert len(flows) == told["workload"]["clients"][0]["result"]["requests"] > 10
    assert {(flow.client, flow.server, flow.bytes, flow.reverse_bytes) for flow in flows} == {("h1", "h2", 100, 1000)}
    # In a closed loop each connection has one request at a time.
    for name in {flow.connection for flow in flows}:
        mine = [place for place, flow in enumerate(flows) if flow.connection == name]
        assert [flows[place].after for place in mine] == [(), *((place,) for place in mine[:-1])]
    (tmp_path / "flows.csv").write_text(to_csv(flows))
    (tmp_path / "s.yaml").write_text(
        "testbed: {kind: simulator}\nfactors: {mtu: [1500, 9000], rtt: 10 ms}\n"
        "workloads: [{replay: {flows: flows.csv}}]\nblocks: 2\nstop: blocks\n"
    )
    assert main(["simulate", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "again")]) in (0, 3)
    with pyarrow.ipc.open_file(tmp_path / "again/runs/1/replayed.arrow") as file:
        times = file.read_all()
    took = [
        end - start
        for start, end in zip(*(times[f"{name}_seconds"].to_pylist() for name in ("start", "end")), strict=True)
    ]
    opened = sum(1 for each in took if each == pytest.approx(20e-3, abs=1e-3))
    # On an idle network a request takes a round trip, and the first of a connection two; real hosts are never faster.
    assert opened == 2
    assert sum(1 for each in took if each == pytest.approx(10e-3, abs=1e-3)) == len(flows) - 2
    assert min((flow.end_seconds or 0) - flow.start_seconds for flow in flows) > 9.9e-3


def test_the_switch_tells_how_long_requests_waited(rack_agent: Agent, tmp_path: Path) -> None:
    """Bulk that fills 30 % of a link: a request that meets a frame waits for a part of it, and most meet none. How long
    is in bench/truth/latency.py, in the switch and end to end, beside theory."""
    bed = {"kind": "rack", "topology": "rack", "hosts": 3, "link": {"rate": "200 Mb/s"}}
    asking = {"connections": 8, "rate": 1000, "arrivals": "poisson", "duration": "1 s"}
    asked = study(
        blocks=1, testbed=bed, margins={"latency_p99": "10 %"},
        workloads=[{"mixed": {"rr": asking, "bulk": {"rate": "60 Mb/s"}}}],
    )  # fmt: skip
    runs = faithful(rack_agent, asked, tmp_path / "out")
    for each in runs:
        waits = {name: each.readings[f"queue_wait_{name}_seconds"] for name in ("mean", "p50", "p99")}
        frame = 8 * (each.level + 38) / 200e6
        assert waits["p50"] == 0 < waits["mean"] < waits["p99"]
        # The rarest have waited for the better part of a frame, and longer where bulk comes in clumps.
        assert waits["p99"] > 0.8 * frame, waits


# How many links are full at once. In reverse the one's own link is the limit.
FULL_LINKS = {
    ("one-to-one", ""): 1,
    ("one-to-one", "reverse"): 1,
    ("one-to-one", "bidir"): 2,
    ("many-to-one", ""): 1,
    ("many-to-one", "reverse"): 1,
    ("many-to-one", "bidir"): 2,
    ("many-to-many", ""): 4,
    ("many-to-many", "reverse"): 4,
}


@pytest.mark.parametrize(("pattern", "way"), FULL_LINKS)
def test_a_stream_in_every_pattern_and_direction(rack_agent: Agent, tmp_path: Path, pattern: str, way: str) -> None:
    bed = {"kind": "rack", "topology": "rack", "hosts": 4, "link": {"rate": "50 Mb/s"}}
    links = FULL_LINKS[pattern, way]
    # Of several flows to a host some wait for a timer, which is a large part of a second.
    seconds = "1 s" if pattern == "one-to-one" else "3 s"
    asked = study(
        testbed=bed, workloads=[{"stream": {"duration": seconds, "pattern": pattern, **({way: True} if way else {})}}]
    )  # fmt: skip
    ceiling = 50e6 * 1448 / 1538
    # Where data goes both ways it shares each link with acknowledgements, and waits for those in the queue.
    least = 0.9 if links == 1 else 0.8

    def fills_links(runs: Sequence[Run]) -> bool:
        """A machine that is busy makes a run slower, and one that is late at the beginning faster after that."""
        goodputs = [each.metrics["goodput"] for each in runs]
        print(goodputs)
        assert all(each.metrics["goodput"] <= 1.002 * links * ceiling for each in runs if not each.excluded)
        for each in runs:
            if pattern != "one-to-one":
                assert 0 < each.metrics["fairness"] <= 1
        return least * links * ceiling < max(goodputs)

    shown(rack_agent, alone(asked, mtu=1500), tmp_path / "out", fills_links)


def as_recorded(folder: Path, runs: Sequence[Run], name: str) -> None:
    """Fails if the records of runs have other keys or types than the recording that tests without a rack replay."""
    known = recorded.load(name).runs[0].record
    for each in runs:
        assert recorded.differences(record(folder, each), known) == [], f"{recorded.MAKE} makes the recording anew"


@pytest.mark.needs("iperf3")
def test_iperf3_reaches_the_ceiling(rack_agent: Agent, tmp_path: Path) -> None:
    asked = study(blocks=1, workloads=[{"iperf3": {"duration": "1 s"}}])
    folder = tmp_path / "out"

    def reach_it(runs: Sequence[Run]) -> bool:
        """A machine that is busy makes a run slower and none faster, so one of each level is enough."""
        as_recorded(folder, runs, "iperf3-one-to-one")
        shares: dict[Any, list[float]] = defaultdict(list)
        for each in runs:
            shares[each.level].append(each.metrics["goodput"] / each.readings["ceiling_bits_per_second"])
        print(shares)
        assert max(map(max, shares.values())) < 1.002
        return set(shares) == {1500, 9000} and min(map(max, shares.values())) > 0.97

    shown(rack_agent, asked, folder, reach_it)


@pytest.mark.needs("vsftpd", "curl")
@pytest.mark.parametrize("pattern", ["one-to-one", "many-to-one"])
def test_ftp_end_to_end(rack_agent: Agent, tmp_path: Path, pattern: str) -> None:
    bed = {"kind": "rack", "topology": "rack", "hosts": 3, "link": {"rate": "200 Mb/s"}}
    asked = study(
        blocks=1, testbed=bed, margins={"goodput": "1 %", "completion_time": "2 %"},
        workloads=[{"ftp": {"size": ["100 kB", "2 MB"], "pattern": pattern, "repeat": "0.2 s"}}],
    )  # fmt: skip
    runs = proven(rack_agent, asked, tmp_path / "out")
    as_recorded(tmp_path / "out", runs, f"ftp-{pattern}")
    assert {each.conditions["size_bytes"] for each in runs} == {100_000, 2_000_000}
    for each in runs:
        assert 0 < each.metrics["goodput"] < 1.002 * each.readings["ceiling_bits_per_second"]


def test_socket_buffers_bound_what_is_under_way_and_the_window_scale(rack_agent: Agent, tmp_path: Path) -> None:
    """Buffers of 57344, kept as 114688: a round trip of 10 ms carries no more payload, 8 * 114688 / 0.01 = 91.8 Mb/s of
    200. Such a window fits into 16 bits, so the SYNs announce no scale; the kernel's own, of megabytes, needs one."""
    asked = study(
        control=True, factors={"mtu": 1500, "rtt": "10 ms"}, blocks=1,
        workloads=[{"stream": {
            "duration": "1 s", "reverse": [False, True], "sizes": [None, {"socket_buffer": 57344, "message": 16384}],
        }}],
    )  # fmt: skip
    folder = tmp_path / "out"

    def are_bounded(runs: Sequence[Run]) -> bool:
        own: dict[bool, list[float]] = {False: [], True: []}
        for each in runs:
            scales = {syn["window_scale"] for host in record(folder, each)["wire"].values() for syn in host["syns"]}
            if each.conditions["sizes"] is None:
                assert min(scales) > 0
                own[each.conditions["reverse"]].append(each.metrics["goodput"])
            else:
                assert scales == {0}
                assert each.metrics["goodput"] <= 91.8e6
        print(own)
        # The kernel's own buffers carry more, unless the machine is busy.
        return min(map(max, own.values())) > 91.8e6

    shown(rack_agent, asked, folder, are_bounded)
