"""Flows to one host, and frames dropped in a row: what is read, what it comes to, and what the page says of it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from helpers import contended, pages
from helpers.contended import CLOSE, FAR, PORT
from helpers.sealing import seal
from hypothesis import given, strategies as st

from framegauge.report import markdown
from framegauge.report.page import html
from framegauge.report.pictures import material
from framegauge.results.journal import Journal, Saved, read
from framegauge.statistics.mean import jain, mean
from framegauge.summary import blackout, contention, document as summary, drop_runs, flows, input_ports as came_by
from framegauge.summary.schema import summary_schema
from framegauge.workloads import base

FATES = st.lists(st.tuples(st.sampled_from([FAR, CLOSE]), st.booleans()), max_size=60)
RATES = st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=20)
# h13 gets 0.1, 0.2 and 0.3 Mb/s; jumbo frames make that 0.7.
CLOSE_RATES = {"baseline": [1e5, 2e5, 3e5], "control": [1e5, 2e5, 3e5], "9000": [7e5, 7e5, 7e5]}


def gathered(saved: Saved) -> material.Material:
    return material.gather(saved, summary.summarise(saved))


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    return contended.twelve_and_one(tmp_path_factory.mktemp("contended") / "out", CLOSE_RATES)


@pytest.fixture(scope="module")
def found(saved: Saved) -> material.Material:
    return gathered(saved)


def numbered(fates: Sequence[tuple[str, bool]]) -> list[tuple[float, str, str, int]]:
    """What a port writes down of frames that are dropped or taken in: it counts drops in a row by input port."""
    counts = {FAR: 0, CLOSE: 0}
    rows = []
    for time, (name, dropped) in enumerate(fates):
        counts[name] = counts[name] + 1 if dropped else 0
        if dropped:
            rows.append((float(time), PORT, name, counts[name]))
    return rows


@given(FATES)
def test_the_lengths_of_all_runs_of_drops_are_all_drops(fates: list[tuple[str, bool]]) -> None:
    rows = numbered(fates)
    for name in (FAR, CLOSE):
        numbers = [number for _, _, its, number in rows if its == name]
        found = drop_runs.lengths(numbers)
        assert sum(found) == len(numbers)
        # As many runs as there are drops that follow none of their input port.
        assert len(found) == numbers.count(1)
        assert max(found, default=0) == max(numbers, default=0)


def test_the_spool_is_read_by_port_and_input_port(tmp_path: Path) -> None:
    fates = [(FAR, True), (CLOSE, True), (FAR, True), (FAR, False), (CLOSE, True), (FAR, True)]
    rows = [*numbered(fates), (9.0, FAR, "h1>s1", 1)]
    path = tmp_path / "drops.arrow"
    path.write_bytes(contended.drops(rows))
    found = drop_runs.read(path, contended.record([], rows))
    # 90 frames of each went on: of 93 three were dropped.
    assert [(each.port, each.input_port, list(each.lengths), each.dropped_frames, each.frames) for each in found] == [
        (FAR, "h1>s1", [1], 1, 91), (PORT, CLOSE, [2], 2, 92), (PORT, FAR, [2, 1], 3, 93),
    ]  # fmt: skip


def test_marks_and_losses_of_the_link_are_no_drops_of_the_port(tmp_path: Path) -> None:
    rows = [(1.0, PORT, FAR, 1), (1.1, PORT, FAR, 1), (1.2, PORT, FAR, 1), (1.3, PORT, FAR, 2)]
    path = tmp_path / "drops.arrow"
    path.write_bytes(
        contended.drops(
            rows,
            action=["dropped", "marked", "dropped", "dropped"],
            reason=["taildrop", "step", "loss", "taildrop"],
        )
    )
    (found,) = drop_runs.read(path, {})
    assert (list(found.lengths), found.dropped_frames, found.frames) == ([2], 2, None)


def test_a_share_is_not_told_where_the_spool_does_not_have_every_drop(tmp_path: Path) -> None:
    path = tmp_path / "drops.arrow"
    path.write_bytes(contended.drops(contended.DROPPED[:1]))
    (found,) = drop_runs.read(path, contended.record([], contended.DROPPED))
    assert found.frames is None


def test_every_length_has_its_bin() -> None:
    found = [drop_runs.shares([length]) for length in (1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 10**6)]
    names = [name for shares in found for name, share in shares.items() if share == 1]
    assert names == ["1", "2", "3-4", "3-4", "5-8", "5-8", "9-16", "9-16", "17-32", "17-32", "33+", "33+"]


@given(st.lists(st.integers(1, 100), min_size=1))
def test_every_dropped_frame_is_in_one_bin(lengths: list[int]) -> None:
    shares = drop_runs.shares(lengths)
    assert sum(shares.values()) == pytest.approx(1)
    assert shares["2"] == 2 * lengths.count(2) / sum(lengths)


@given(RATES)
def test_jain_s_index_is_that_of_the_metric(values: list[float]) -> None:
    found = jain(values)
    assert found is not None
    assert 1 / len(values) - 1e-9 <= found <= 1 + 1e-9
    assert found == pytest.approx(base.jain(values))
    assert jain([0.0, *values]) == pytest.approx(found * len(values) / (len(values) + 1))
    assert jain([0.0, 0.0]) is None


def test_a_mean_has_student_s_interval_from_three_runs_on() -> None:
    # t for two degrees of freedom is 4.3027; the standard deviation of 1, 2, 3 is 1.
    half = 4.30265 / math.sqrt(3)
    assert mean([1, 2, 3]).interval == pytest.approx((2 - half, 2 + half), rel=1e-4)
    assert mean([1, 2, 3], least=0.0).interval == pytest.approx((0, 2 + half), rel=1e-4)
    assert mean([0.9, 0.95, 1], most=1.0).interval[1] == 1  # type: ignore[index]
    assert (mean([1, 3]).mean, mean([1, 3]).interval) == (2, None)


def test_each_flow_is_read_with_what_it_met(saved: Saved) -> None:
    first = flows.read(saved)[0]
    assert (first.receiver, first.ports, len(first.flows)) == ("h14", [PORT], 13)
    by_sender = {flow.sender: flow for flow in first.flows}
    assert by_sender["h13"] == flows.Flow("h13", 1, 1e5, 5, 2, CLOSE)
    assert by_sender["h1"] == flows.Flow("h1", 1, 5e5, 5, 2, FAR)
    assert first.host_timeouts == dict.fromkeys(contended.SENDERS, 2)


def test_twelve_far_and_one_close_are_two_rows(found: material.Material) -> None:
    (entry,) = found.summary["flows"]
    assert (entry["receiver"], entry["flows"], entry["grouped"], len(entry["arms"])) == ("h14", 13, True, 3)
    baseline, control, jumbo = entry["arms"]
    assert [arm["role"] for arm in (baseline, control, jumbo)] == ["baseline", "control", "treatment"]
    far, close = baseline["rows"]
    assert (contention.row_name(far, True), contention.row_name(close, True)) == ("12 flows by s1>s2", "h13 by h13>s2")
    # Ten at 0.7 Mb/s, one at 0.5 and one at 0.9: 0.7 in the mean, and no run differs.
    assert far["goodput_bits_per_second"] == pytest.approx(7e5)
    assert far["interval_bits_per_second"] == pytest.approx([7e5, 7e5])
    assert (far["lowest_bits_per_second"], far["highest_bits_per_second"]) == (5e5, 9e5)
    half = 4.30265 * 1e5 / math.sqrt(3)
    assert close["goodput_bits_per_second"] == pytest.approx(2e5)
    assert close["interval_bits_per_second"] == pytest.approx([0, 2e5 + half], rel=1e-4)
    assert close["by_run_bits_per_second"] == [1e5, 2e5, 3e5]
    # All flows together get 12 x 0.7 + 0.2 = 8.6 Mb/s: a thirteenth is the fair share.
    assert close["share"] == pytest.approx(0.2 / (8.6 / 13))
    assert (close["retransmits"], close["timeouts"]) == (5, 2)
    # Jain of ten 7, a 5, a 9 and one 7: 91^2 / (13 x 645).
    assert jumbo["fairness"] == pytest.approx(91**2 / (13 * 645))
    # In any run of it the slowest is h1.
    assert (jumbo["slowest_bits_per_second"], jumbo["fastest_bits_per_second"]) == (5e5, 9e5)


def test_drops_are_told_by_input_port_and_of_other_ports_as_a_whole(found: material.Material) -> None:
    drops = found.summary["flows"][0]["arms"][0]["drops"]
    assert [(each["port"], each["input_ports"]) for each in drops] == [
        (PORT, [CLOSE]), (PORT, [FAR]), (FAR, ["h1>s1"]),
    ]  # fmt: skip
    close = drops[0]
    # Over three runs: each has a run of four and one of one, and 90 frames that went on.
    assert (close["dropped_frames"], close["frames"], close["longest"]) == (15, 285, 4)
    assert close["share_by_length"] == {"1": 0.2, "2": 0, "3-4": 0.8, "5-8": 0, "9-16": 0, "17-32": 0, "33+": 0}
    for each in drops:
        assert math.fsum(each["share_by_length"].values()) == pytest.approx(1)


def test_the_summary_with_flows_fulfils_its_schema(found: material.Material) -> None:
    document = json.loads(summary.text(found.summary))
    assert document["flows"]
    jsonschema.Draft202012Validator(summary_schema()).validate(document)


def test_the_terminal_says_it_in_a_line_an_arm(found: material.Material) -> None:
    # 0.2 + 4.30265 x 0.1 / sqrt(3) = 0.448
    baseline, jumbo = contention.lines(found.summary)
    assert baseline.startswith(
        "MTU 1500: 12 flows by s1>s2 700 kb/s per flow (700 to 700), h13 by h13>s2 200 kb/s (0 to 448); Jain 0.9"
    )
    assert jumbo == (
        "MTU 9000: 12 flows by s1>s2 700 kb/s per flow (700 to 700), h13 by h13>s2 700 kb/s (700 to 700); Jain 0.99"
    )


def test_the_page_has_both_sections_and_its_tables_say_what_its_charts_say(found: material.Material) -> None:
    page = pages.check(html.page(found))
    ids = [each.attributes["id"] for each in page.all("h2")]
    assert ids.index("runs") < ids.index("flows") < ids.index("drops")
    rows = {
        each.attributes["aria-label"]: [[cell.text for cell in row.children] for row in inside_of(each)]
        for each in page.elements
        if each.attributes.get("class") == "scroll cards"
    }
    goodput = next(body for name, body in rows.items() if str(name).startswith("Goodput by flow"))
    chart = next(each for each in found.pictures if each.name == "flows-1")
    said = {f"{name}, {arm}: {value}" for name, arm, value, *_ in goodput[1:]}
    assert set(chart.text.removesuffix(".").split("; ")) == said
    assert len(said) == 6
    assert "h13 by h13>s2, MTU 1500: 200 kb/s (0 to 448)" in said
    lengths = next(body for name, body in rows.items() if str(name).startswith("Dropped frames"))
    histogram = next(each for each in found.pictures if each.name == "drops-1")
    for port, arm, dropped, _, *shares in lengths[1:]:
        if port.startswith(f"{PORT} "):
            told = ", ".join(
                f"{share} in runs of {name}"
                for share, (name, _, _) in zip(shares, drop_runs.BINS, strict=True)
                if share != "0 %"
            )
            assert f"{port.removeprefix(f'{PORT} ')}, {arm}: {dropped}; {told}" in histogram.text
    assert "To show a cause, compare with an arm that removes it" in html.page(found)
    assert "Longest run of drops" in markdown.markdown(found, "charts")


def inside_of(element: pages.Element) -> list[pages.Element]:
    """The rows of the table in a region."""
    head, body = element.children[0].children[1:]
    return [*head.children, *body.children]


def test_nothing_is_said_of_a_cause_and_not_that_it_is_open_where_arms_differ(found: material.Material) -> None:
    verdict = {
        **found.summary["verdicts"][0],
        "metric": "fairness",
        "verdict": "better",
        "treatment": {"mtu": 9000, "estimate": None},
    }
    differs = replace(found, summary={**found.summary, "verdicts": [verdict]})
    text = html.page(differs)
    assert "an arm that removes it" not in text
    assert "the verdicts state how the arms differ" in text


def test_a_few_flows_are_shown_one_by_one_and_two_not_at_all(tmp_path: Path) -> None:
    plan = {"question": "?", "scope": "emulated", "treatment": "mtu", "margins": {"goodput": 0.01}}
    with Journal.create(tmp_path / "few", "seed: 1\n", plan) as journal:
        # h1 sends two flows, and takes one in: its timeouts are nobody's alone.
        runs = [contended.asked("h1"), contended.asked("h13"), contended.asked("h1", "h2", reverse=True)]
        spools = {
            "transfers-h1-h14": contended.transfers([1e6, 2e6], [1, 2]),
            "transfers-h13-h14": contended.transfers([3e6]),
            "transfers-h1-h2": contended.transfers([4e6]),
        }
        journal.add(contended.run(1, "baseline", "baseline", 1500, 1e7), contended.record(runs, []), spools)
    few = gathered(read(tmp_path / "few"))
    (entry,) = few.summary["flows"]
    assert not entry["grouped"]
    (arm,) = entry["arms"]
    assert [contention.row_name(row, False) for row in arm["rows"]] == ["h1 flow 1", "h1 flow 2", "h13"]
    assert [row["goodput_bits_per_second"] for row in arm["rows"]] == [1e6, 2e6, 3e6]
    assert [row["timeouts"] for row in arm["rows"]] == [None, None, 2]
    assert [row["retransmits"] for row in arm["rows"]] == [1, 2, None]
    # One run has no interval: (1 + 2 + 3)^2 / (3 x 14).
    assert (arm["fairness"], arm["fairness_interval"]) == (pytest.approx(36 / 42), None)
    assert list(contention.lines(few.summary)) == [
        "MTU 1500: of 3 flows per run the slowest 1 Mb/s, the fastest 3 Mb/s; Jain 0.86"
    ]
    page = pages.check(html.page(few))
    assert any("2 for all flows of h1" in each.text for each in page.all("td"))
    assert "drops" not in [each.attributes["id"] for each in page.all("h2")]
    (tmp_path / "few/runs/1/transfers-h13-h14.arrow").unlink()
    two = gathered(read(seal(tmp_path / "few")))
    assert two.summary["flows"] == []
    assert "flows" not in [each.attributes["id"] for each in pages.check(html.page(two)).all("h2")]


@pytest.mark.parametrize("torn", ["counters_before", "counters_after", "measure", "rack", "conditions"])
def test_an_older_record_loses_what_it_has_not_and_no_more(torn: str, tmp_path: Path) -> None:
    old = contended.twelve_and_one(tmp_path / "old", CLOSE_RATES)
    for path in (tmp_path / "old/runs").glob("*/record.json"):
        left = json.loads(path.read_text())
        del left[torn]
        path.write_text(json.dumps(left))
    found = gathered(read(seal(old.folder)))
    pages.check(html.page(found))
    (entry,) = found.summary["flows"]
    arm = entry["arms"][0]
    assert sum(row["flows"] for row in arm["rows"]) == 13
    assert arm["fairness"] is not None
    assert {row["timeouts"] for row in arm["rows"]} == {None if torn == "counters_after" else 3 if torn == "counters_before" else 2}  # fmt: skip
    jsonschema.Draft202012Validator(summary_schema()).validate(found.summary)


def test_without_a_network_on_record_what_passed_tells_the_input_ports(tmp_path: Path) -> None:
    old = contended.twelve_and_one(tmp_path / "old", CLOSE_RATES, told=False)
    by_sender = {flow.sender: flow.input_port for flow in flows.read(old)[0].flows}
    assert by_sender == {**dict.fromkeys(contended.SENDERS, FAR), "h13": CLOSE}


def test_paths_of_equal_length_are_told_together_and_what_was_seen_goes_before() -> None:
    ways = [("h1", "l1"), ("l1", "a"), ("l1", "b"), ("a", "l2"), ("b", "l2"), ("l2", "h2"), ("h3", "l2"), ("l2", "a")]
    links = [{"port": f"{one}>{other}", "from": one, "to": other} for one, other in ways]
    record: dict[str, Any] = {"rack": {"network": {"ports": links}}}
    assert came_by.ports_to(record, "h2") == ["l2>h2"]
    assert came_by.inputs(record, "h2", ["h1", "h3"], []) == {"h1": "a>l2 or b>l2", "h3": "h3>l2"}
    # All of them went through one spine, also those of h3, to which its own leaf was nearer.
    record["measure"] = {"fabric": {"waits": [{"port": "l2>h2", "input_port": "a>l2", "frames": 1}]}}
    assert came_by.inputs(record, "h2", ["h1", "h3"], []) == {"h1": "a>l2", "h3": "a>l2"}


def test_the_longest_run_of_drops_is_found_with_what_surrounds_it(saved: Saved) -> None:
    seen = blackout.find(saved.folder, saved.runs[0], "h14")
    assert seen is not None
    assert (seen.port, seen.input_port, seen.length, seen.whole) == (PORT, CLOSE, 4, False)
    assert (seen.begin_seconds, seen.end_seconds) == (1.0, 1.004)
    assert seen.around_seconds == pytest.approx(0.01)  # ten frames of 1250 bytes at 10 Mb/s
    assert seen.dropped[CLOSE] == pytest.approx([0, 0.002, 0.003, 0.004])
    assert (seen.taken, seen.lost) == (None, {FAR: 1})


def events() -> dict[str, list[Any]]:
    """Around the four drops of h13: six frames of the others arrive, five between the first drop and the last, of
    which one is dropped; and what is of another port or time."""
    rows = [
        (0.980, PORT, "arrived", FAR, 1000), (0.995, PORT, "arrived", FAR, 9000), (1.000, PORT, "dropped", CLOSE, 10000),
        (1.0005, PORT, "arrived", FAR, 10000), (1.001, PORT, "arrived", FAR, 10000), (1.001, PORT, "dropped", FAR, 10000),
        (1.0015, PORT, "departed", FAR, 8750), (1.002, PORT, "dropped", CLOSE, 10000), (1.0022, PORT, "arrived", FAR, 10000),
        (1.003, PORT, "dropped", CLOSE, 10000), (1.0035, PORT, "arrived", FAR, 10000), (1.0036, FAR, "arrived", "h1>s1", 1),
        (1.004, PORT, "dropped", CLOSE, 10000), (1.004, PORT, "arrived", FAR, 10000), (1.020, PORT, "arrived", CLOSE, 100),
    ]  # fmt: skip
    names = ("time_seconds", "port", "kind", "input_port", "queue_bytes")
    columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
    return {**columns, "flow": [1] * len(rows), "frame_bytes": [1250] * len(rows)}


def test_with_events_it_is_told_what_the_others_got_through_meanwhile(tmp_path: Path) -> None:
    whole = contended.twelve_and_one(tmp_path / "whole", CLOSE_RATES, events=events())
    seen = blackout.find(whole.folder, whole.runs[0], "h14")
    assert seen is not None
    assert (seen.whole, seen.taken, seen.lost) == (True, {FAR: 4}, {FAR: 1})
    assert seen.arrived[FAR] == pytest.approx([-0.005, 0.0005, 0.001, 0.0022, 0.0035, 0.004])
    assert seen.dropped == {CLOSE: pytest.approx([0, 0.002, 0.003, 0.004]), FAR: pytest.approx([0.001])}
    assert [amount for _, amount in seen.held].count(8750) == 1
    found = gathered(whole)
    (drawn, *_) = [each for each in found.pictures if each.name.startswith("blackout")]
    # Of the baseline's three runs the second has the median goodput.
    assert drawn.text == (
        "MTU 1500, run 4, 1.000000 s after its start, at s2>h14: 4 frames that came by h13>s2 were dropped in a row, within "
        "4,000 us. Meanwhile, of those by s1>s2, 4 were taken in and 1 dropped."
    )
    assert "by h13&gt;s2" in drawn.drawn
    pages.check(html.page(found))


def test_a_port_that_was_not_watched_is_told_by_its_drops(tmp_path: Path) -> None:
    found = events()
    found["port"] = [FAR] * len(found["port"])
    part = contended.twelve_and_one(tmp_path / "part", CLOSE_RATES, events=found)
    seen = blackout.find(part.folder, part.runs[0], "h14")
    assert seen is not None
    assert not seen.whole


def test_one_drop_is_no_run(saved: Saved, tmp_path: Path) -> None:
    with Journal.create(tmp_path / "one", "seed: 1\n", dict(saved.plan)) as journal:
        rows = [(1.0, PORT, CLOSE, 1), (1.1, PORT, FAR, 1)]
        made = contended.run(1, "baseline", "baseline", 1500, 1e7)
        journal.add(made, contended.record([], rows), {"drops": contended.drops(rows)})
    assert blackout.find(tmp_path / "one", made, "h14") is None
