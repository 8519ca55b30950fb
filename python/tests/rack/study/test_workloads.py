"""The workloads on the real rack: who stalls, who waits, and whether theory agrees."""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.ipc
import pytest
from helpers import recorded
from helpers.real import run, study

from framegauge.agents.pipe import Agent
from framegauge.cli.main import main
from framegauge.files.recordings import to_csv
from framegauge.report.recorded import run as recording
from framegauge.results.journal import Run

STALL_SECONDS = 0.035  # Linux delays an acknowledgement by 40 ms at least


def proven(agent: Agent, folder: Path, blocks: int = 1, **rest: Any) -> list[Run]:
    """The runs of a study that are evidence. Only fidelity may have excluded one: late runs, which are tried again, say
    little about workloads, and are looked at only where a machine has no others to show."""
    runs = run(agent, study(retries=2, blocks=blocks, **rest), folder)
    assert {line for each in runs for line in each.excluded if not line.startswith("fidelity: ")} == set()
    found = [each for each in runs if not each.excluded]
    return found if {each.key[1:] for each in found} == {each.key[1:] for each in runs} else runs


def test_nagle_stalls_partial_segments_and_more_sizes_at_9000(rack_agent: Agent, tmp_path: Path) -> None:
    """A header and a body that does not fill a segment: the body waits for the header's acknowledgement."""
    runs = proven(
        rack_agent, tmp_path / "out", treatment="nagle", margins={"latency_p50": "10 %"},
        factors={"mtu": [1500, 9000], "nagle": {"levels": [False, True], "baseline": False}},
        workloads=[{"rr": {"request": "100 B", "response": ["1 kB", "2300 B"], "header": "200 B", "duration": "0.5 s"}}],
    )  # fmt: skip
    stalls = {
        (each.level, each.conditions["mtu"], each.conditions["response_bytes"]): each.metrics["latency_p50"]
        for each in runs
    }
    for (nagle, mtu, response), latency in stalls.items():
        exposed = nagle and (response == 1000 or mtu == 9000)
        assert (latency > STALL_SECONDS) == exposed, stalls


def test_an_open_loop_keeps_its_rate(rack_agent: Agent, tmp_path: Path) -> None:
    runs = proven(
        rack_agent, tmp_path / "out", control=True, margins={"transactions": "1 %"}, factors={"mtu": 1500},
        workloads=[{"rr": {"response": "1 kB", "rate": 500, "arrivals": ["uniform", "poisson"], "duration": "1 s"}}],
    )  # fmt: skip
    for each in runs:
        spread = 0.01 if each.conditions["arrivals"] == "uniform" else 0.2
        assert each.metrics["transactions"] == pytest.approx(500, rel=spread)


def test_requests_are_recorded_and_replayed(rack_agent: Agent, tmp_path: Path) -> None:
    (run, *_) = proven(
        rack_agent, tmp_path / "out", control=True, margins={"transactions": "50 %"}, factors={"mtu": 1500, "rtt": "10 ms"},
        workloads=[{"rr": {"response": "1 kB", "connections": 2, "duration": "0.5 s"}}],
    )  # fmt: skip
    flows = recording.recorded(tmp_path / "out", run.number)
    record = json.loads((tmp_path / f"out/runs/{run.number}/record.json").read_text())
    assert len(flows) == record["workload"]["clients"][0]["result"]["requests"] > 10
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


def latencies(folder: Path, number: int) -> list[float]:
    with pyarrow.ipc.open_file(folder / "runs" / str(number) / "transactions.arrow") as file:
        table = file.read_all()
    due, end = (table.column(f"{name}_seconds").to_pylist() for name in ("due", "end"))
    return sorted(last - first for first, last in zip(due, end, strict=True) if first > 0.6)


def test_a_request_waits_for_the_one_frame_ahead(rack_agent: Agent, tmp_path: Path) -> None:
    """Bulk that fills 30 % of a link at 10 Mb/s: the request that meets a frame waits for up to its time there, which is
    longer than a busy machine keeps programs waiting. What requests alone wait for is taken off.

    A busy machine makes waits longer and none shorter, so the least of all runs counts, and more are made while it does
    not show the frame.
    """
    bed = {"kind": "rack", "topology": "rack", "hosts": 3, "link": {"rate": "10 Mb/s"}}
    asking = {"connections": 8, "rate": 300, "arrivals": "poisson", "duration": "2 s"}
    frames = {mtu: 8 * (mtu + 38) / 10e6 for mtu in (1500, 9000)}
    waits: dict[tuple[str, int], list[float]] = defaultdict(list)
    for attempt in range(4):
        runs = proven(
            rack_agent, tmp_path / str(attempt), blocks=2, testbed=bed, margins={"latency_p99": "10 %"},
            workloads=[{"rr": asking}, {"mixed": {"rr": asking, "bulk": {"rate": "3 Mb/s"}}}],
        )  # fmt: skip
        for each in runs:
            found = latencies(tmp_path / str(attempt), each.number)
            # Seven of ten meet none; the last hundredths have waited for nearly a whole frame.
            waits[each.workload, each.level].append(found[int(0.98 * len(found))] - found[int(0.2 * len(found))])
        added = {mtu: min(waits["mixed", mtu]) - min(waits["rr", mtu]) for mtu in frames}
        if added[9000] > 2 * added[1500] and all(added[mtu] < 1.4 * frames[mtu] + 150e-6 for mtu in frames):
            break
    for mtu, frame in frames.items():
        assert 0.6 * frame < min(waits["mixed", mtu]), waits
        assert added[mtu] < 1.4 * frame + 150e-6, waits
    assert added[9000] > 2 * added[1500], waits


def test_the_switch_tells_how_long_requests_waited(rack_agent: Agent, tmp_path: Path) -> None:
    """Bulk that fills 30 % of a link at 1 Gb/s, where the hosts' own CPU hides 72 us: the fabric's time does not."""
    share, wait_longer = 0.3, 0.01
    bed = {"kind": "rack", "topology": "rack", "hosts": 3}
    # So few that they hardly ever wait for each other, which is not in the formula.
    asking = {"connections": 8, "rate": 1000, "arrivals": "poisson", "duration": "2 s"}
    runs = proven(
        rack_agent, tmp_path / "out", blocks=4, testbed=bed, margins={"latency_p99": "10 %"},
        workloads=[{"mixed": {"rr": asking, "bulk": {"rate": "300 Mb/s"}}}],
    )  # fmt: skip
    for level in (1500, 9000):
        # A host that is held up for a moment sends its bulk in a clump, which is more than one frame: its median shows
        # nothing of that, but each mean does, more or less, and so does the other quantile on a busy machine.
        readings = [each.readings for each in runs if each.level == level]
        waits = {
            name: middle(each[f"queue_wait_{name}_seconds"] for each in readings)
            for name, middle in (("mean", min), ("p50", statistics.median), ("p99", min))
        }
        frame = 8 * (level + 38) / 1e9
        # A request meets a frame with the share of the link that bulk has, and waits for an even part of it.
        busy = share * (level + 38) / (level - 52)
        assert waits["p50"] == 0
        assert waits["p99"] == pytest.approx(frame * (1 - wait_longer / busy), rel=0.1), waits
        assert waits["mean"] == pytest.approx(busy * frame / 2, rel=0.25), waits


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
    runs = proven(
        rack_agent, tmp_path / "out", control=True, testbed=bed, factors={"mtu": 1500},
        workloads=[{"stream": {"duration": "1 s", "pattern": pattern, **({way: True} if way else {})}}],
    )  # fmt: skip
    links = FULL_LINKS[pattern, way]
    ceiling = 50e6 * 1448 / 1538
    # Where data goes both ways it shares each link with acknowledgements, and waits for those in the queue.
    least = 0.9 if links == 1 else 0.8
    # A busy machine makes a run slower and none faster, so the fastest counts.
    goodputs = [each.metrics["goodput"] for each in runs]
    assert least * links * ceiling < max(goodputs) <= 1.002 * links * ceiling, goodputs
    for each in runs:
        if pattern != "one-to-one":
            assert 0.5 < each.metrics["fairness"] <= 1


def as_recorded(folder: Path, runs: list[Run], name: str) -> None:
    """Fails if the records of runs have other keys or types than the recording that tests without a rack replay."""
    known = recorded.load(name).runs[0].record
    for each in runs:
        fresh = json.loads((folder / "runs" / str(each.number) / "record.json").read_text())
        assert recorded.differences(fresh, known) == [], f"{recorded.MAKE} makes the recording anew"


@pytest.mark.needs("iperf3")
def test_iperf3_reaches_the_ceiling(rack_agent: Agent, tmp_path: Path) -> None:
    runs = proven(rack_agent, tmp_path / "out", workloads=[{"iperf3": {"duration": "1 s"}}])
    as_recorded(tmp_path / "out", runs, "iperf3-one-to-one")
    for each in runs:
        assert each.metrics["goodput"] > 0.97 * each.readings["ceiling_bits_per_second"], (each.level, each.metrics)


@pytest.mark.needs("vsftpd", "curl")
@pytest.mark.parametrize("pattern", ["one-to-one", "many-to-one"])
def test_ftp_end_to_end(rack_agent: Agent, tmp_path: Path, pattern: str) -> None:
    bed = {"kind": "rack", "topology": "rack", "hosts": 3, "link": {"rate": "200 Mb/s"}}
    runs = proven(
        rack_agent, tmp_path / "out", testbed=bed, margins={"goodput": "1 %", "completion_time": "2 %"},
        workloads=[{"ftp": {"size": ["100 kB", "2 MB"], "pattern": pattern, "repeat": "0.2 s"}}],
    )  # fmt: skip
    as_recorded(tmp_path / "out", runs, f"ftp-{pattern}")
    for each in runs:
        ceiling = each.readings["ceiling_bits_per_second"]
        least = 0.8 if each.conditions["size_bytes"] == 2_000_000 else 0.2
        assert least * ceiling < each.metrics["goodput"] < 1.002 * ceiling, (each.conditions, each.metrics)


def test_socket_buffers_bound_what_is_under_way_and_the_window_scale(rack_agent: Agent, tmp_path: Path) -> None:
    """Buffers of 57344, kept as 114688: a round trip of 10 ms carries no more payload, 8 * 114688 / 0.01 = 91.8 Mb/s of
    200. Such a window fits into 16 bits, so the SYNs announce no scale; the kernel's own, of megabytes, needs one."""
    runs = proven(
        rack_agent, tmp_path / "out", control=True, factors={"mtu": 1500, "rtt": "10 ms"},
        workloads=[{"stream": {
            "duration": "1 s", "reverse": [False, True], "sizes": [None, {"socket_buffer": 57344, "message": 16384}],
        }}],
    )  # fmt: skip
    for each in runs:
        record = json.loads((tmp_path / "out" / "runs" / str(each.number) / "record.json").read_text())
        scales = {syn["window_scale"] for wire in record["wire"].values() for syn in wire["syns"]}
        if each.conditions["sizes"] is None:
            assert min(scales) > 0
            assert each.metrics["goodput"] > 91.8e6
        else:
            assert scales == {0}
            assert each.metrics["goodput"] <= 91.8e6
