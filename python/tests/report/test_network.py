"""The page's pictures of flows and ports, of simulations whose answers are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from altair.utils import schemapi
from helpers import pages

from framegauge.cli.main import main
from framegauge.plots import draw, heat, rows, timeline
from framegauge.report.page import html
from framegauge.report.pictures import flow_times, heat as maps, material, ports
from framegauge.results import spools
from framegauge.results.journal import Run, read
from framegauge.summary import document as summary

FILE = """\
testbed: {kind: simulator, topology: {fat-tree: {k: 4}}, link: {rate: 100 Mb/s, buffer: 32 KiB}}
factors: {mtu: [1500, 9000], congestion_control: [reno, cubic]}
workloads: [{shuffle: {size: 20 kB, at_once: [1, 4]}}]
blocks: 2
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> material.Material:
    folder = tmp_path_factory.mktemp("network")
    (folder / "s.yaml").write_text(FILE)
    assert main(["simulate", str(folder / "s.yaml"), "--out", str(folder / "out")]) in (0, 3)
    saved = read(folder / "out")
    with schemapi.debug_mode(True):  # every part of a chart is checked against the schema of Vega-Lite
        return material.gather(saved, summary.summarise(saved))


@pytest.mark.agent
def test_a_shuffle_has_times_distances_ports_and_maps(found: material.Material) -> None:
    page = pages.check(html.page(found))
    assert {"maps", "completions", "ports"} <= {each.attributes["id"] for each in page.all("h2")}
    # Every host fetches from 15 others, in 2 runs of each arm.
    (times,) = [each for each in found.pictures if each.name == "completions"]
    assert times.text.count(f"n = {2 * 16 * 15}") == 8
    # Of 15 others, one is at the same switch and two in the same pod.
    (first, *_) = [each for each in found.pictures if each.name.startswith("hops")]
    for hops, others in ((2, 1), (4, 2), (6, 12)):
        assert f"{hops} hops, MTU 1500: " in first.text
        assert f"{2 * 16 * others} flows" in first.text


@pytest.mark.agent
def test_what_is_said_of_the_busiest_port_is_what_it_counted(found: material.Material) -> None:
    said = [each for each in found.pictures if each.name.startswith("port-")]
    assert 1 <= len(said) <= ports.MOST_CELLS
    folder, port = found.saved.folder, said[0].title.split(" ")[2]
    cell = int(said[0].name.removeprefix("port-")) - 1
    for run in found.saved.runs:
        if run.cell == cell:
            each = ports._seen(folder, run, port, found.looks[run.arm])
            counted = spools.record(folder, run)["measure"]["fabric"]["ports"]
            (mine,) = [one for one in counted if one["port"] == port]
            assert each is not None
            assert len(each.dropped) == mine["dropped_frames"]
            assert each.peak.max() == mine["peak_queue_bytes"]


@pytest.mark.agent
def test_transfers_of_hosts_give_the_same_times_as_the_tables_of_a_simulation(tmp_path: Path) -> None:
    text = FILE.replace("{shuffle: {size: 20 kB, at_once: [1, 4]}}", "{stream: {size: 50 kB, pattern: many-to-one}}")
    (tmp_path / "s.yaml").write_text(text)
    assert main(["simulate", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "out")]) in (0, 3)
    run: Run = read(tmp_path / "out").runs[0]
    place = tmp_path / "out/runs" / str(run.number)
    simulated = flow_times._times(tmp_path / "out", [run]), flow_times._by_distance(tmp_path / "out", run)
    for name in ("flows", "completions"):
        (place / f"{name}.parquet").unlink()
    on_hosts = flow_times._times(tmp_path / "out", [run]), flow_times._by_distance(tmp_path / "out", run)
    assert np.allclose(simulated[0], on_hosts[0])
    assert {hops: len(flows) for hops, flows in simulated[1].items()} == {2: 1, 4: 2, 6: 12}
    for hops, flows in on_hosts[1].items():
        # With 56 bytes of greeting and confirmation in one of them, and not in the other.
        assert np.allclose(sorted(flows), np.array(sorted(simulated[1][hops])) * 50_000 / 50_056)


def test_the_worst_burst_is_the_one_of_most_drops() -> None:
    times = np.array([0.9, 0.1, 0.1001, 0.1003, 0.2, 0.2001])
    assert ports._worst(times) == (0.1, 0.1003)
    assert ports._worst(np.array([3.0])) == (3.0, 3.0)


def test_a_timeline_has_its_scale_and_every_arm() -> None:
    row = rows.Row("", "MTU 1500", "3 dropped", "baseline")
    panel = timeline.Panel(row, [(0.0, 1.0, 20.0), (1.0, 2.0, 10.0)], [], [(1.0, 2.0, 3.0)])
    with schemapi.debug_mode(True):
        drawn = draw.svg(timeline.timeline([panel], (0.0, 2.0), "kB", "time (ms)"))
    for words in ("MTU 1500", "3 dropped", "time (ms)", "top of the areas: 20 kB"):
        assert f">{words}<" in drawn
    # Half of the queue is half as high.
    assert drawn.count(draw.ROLES["worse"]) >= 1


def verdict(rtt: float, buffer: int, ratio: float | None, word: str = "better") -> dict[str, object]:
    return {
        "metric": "goodput", "workload": "stream", "conditions": {"rtt_seconds": rtt, "buffer_bytes": buffer},
        "baseline": {"mtu": 1500, "estimate": 1e8 * rtt}, "treatment": {"mtu": 9000, "estimate": 1.0}, "ratio": ratio,
        "ci95": None, "verdict": word, "warnings": [],
    }  # fmt: skip


def test_a_map_has_the_number_of_every_cell() -> None:
    told = [
        verdict(1.0, 65536, 2.0), verdict(2.0, 65536, 0.5, "worse"), verdict(1.0, 131072, None, "undecided"),
        verdict(2.0, 131072, 1.001, "no practical difference"),
    ]  # fmt: skip
    change, values = maps.pictures({"verdicts": told})
    assert change.text == (
        "Columns: buffer. RTT 1 s: 64 KiB +100 % better, 128 KiB -; "
        "RTT 2 s: 64 KiB \u221250 % worse, 128 KiB +0.10 % same."
    )
    assert values.title == "Goodput with MTU 1500 (Mb/s), stream"
    assert ">200<" in values.drawn
    for words in ("+100 %", "worse", "same", "no change", "+100 % (better)"):
        assert f">{words}<" in change.drawn


def test_without_two_factors_there_is_no_map() -> None:
    assert not list(maps.pictures({"verdicts": [verdict(1.0, 65536, 2.0), verdict(2.0, 65536, 1.5)]}))
    # Nor if both change together.
    assert not list(maps.pictures({"verdicts": [verdict(1.0, 65536, 2.0)]}))


def test_a_long_label_is_cut_at_its_spaces() -> None:
    assert heat._lines("queue step above 64 KiB", 60.0) == ["queue", "step", "above 64", "KiB"]
