"""The workload `iscsi` on the real rack: every frame of a request, every byte that clients count, and what goes wrong."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.real import proven, record, run, shown, study
from helpers.wire import counted_exactly

from framegauge.agents.pipe import Agent
from framegauge.experiment.planning import searched
from framegauge.results.journal import Run
from framegauge.study.model import Study
from framegauge.testbeds.base import Json
from framegauge.workloads import iscsi as workload
from framegauge.workloads.iscsi import NEEDS, SESSION

BED = {"kind": "rack", "topology": "rack", "hosts": 3, "link": {"rate": "200 Mb/s"}}
MARGINS = {"operations": "5 %"}
# Of a response with its header of 48 bytes, in segments of 1448 and 8948 bytes.
FRAMES = {8192: {1500: 6, 9000: 1}, 65536: {1500: 46, 9000: 8}}

pytestmark = [pytest.mark.needs(each.name, remedy=each.remedy) for each in NEEDS if not each.is_there(searched())]


def disk(**iscsi: Any) -> Study:
    return study(
        blocks=1, retries=0, testbed=BED, margins=MARGINS,
        workloads=[{"iscsi": {"duration": "0.4 s", "size": "16 MiB", **iscsi}}],
    )  # fmt: skip


def records(agent: Agent, folder: Path, **iscsi: Any) -> list[tuple[Run, Json]]:
    """Runs with their records."""
    return [(each, record(folder, each)) for each in proven(agent, disk(**iscsi), folder)]


def hosts(told: Json) -> dict[str, Json]:
    return {each["host"]: each for each in told["measure"]["fabric"]["hosts"]}


def expected_frames(each: Run) -> dict[str, int]:
    """Of 20 reads by each of two initiators, if no response is sent in more pieces than its size asks for."""
    session = {way: len(sizes) for way, sizes in SESSION.items()}
    return {
        "h1": 20 + session["sent"], "h2": 20 + session["sent"],
        "h3": 40 * FRAMES[each.conditions["block_bytes"]][each.level] + 2 * session["received"],
    }  # fmt: skip


def test_a_block_that_does_not_fit_a_frame_takes_as_many_as_by_arithmetic(rack_agent: Agent, tmp_path: Path) -> None:
    """One request after another. Two responses may share a frame, and a full socket may part one, in a frame or two of a
    run; the next test counts the bytes of every run."""
    folder = tmp_path / "out"
    folder.mkdir()
    told: list[Any] = []

    def as_many(runs: Sequence[Run]) -> bool:
        right = set()
        for each in runs:
            saved = record(folder, each)
            clients = saved["workload"]["iscsi"]["clients"]
            # A busy machine may leave the last one unanswered in the run's time.
            is_whole = {name: one["answered"] for name, one in clients.items()} == {"h1": 20, "h2": 20}
            frames = {name: one["data_frames"] for name, one in hosts(saved).items()}
            told.append((each.conditions, each.level, frames, expected_frames(each)))
            if is_whole and all(abs(frames[name] - count) <= 2 for name, count in expected_frames(each).items()):
                right.add((each.conditions["block_bytes"], each.level))
        print(told)
        return right == {(size, mtu) for size, mtus in FRAMES.items() for mtu in mtus}

    shown(rack_agent, disk(block=["8 KiB", "64 KiB"], rate=50), folder, as_many)


@pytest.mark.parametrize("operation", ["read", "write"])
def test_the_wire_carries_every_byte_that_clients_count(rack_agent: Agent, tmp_path: Path, operation: str) -> None:
    """Exactly, where nothing was sent again; the check of every run allows 3 %."""
    for each, told in records(rack_agent, tmp_path, operation=operation, access="sequential", block="8 KiB"):
        work = told["workload"]
        clients = work["messages"]["clients"]
        counted = {name: sum(int(size) * count for size, count in one["sent"].items()) for name, one in clients.items()}
        counted["h3"] = sum(int(size) * count for one in clients.values() for size, count in one["received"].items())
        for name, one in hosts(told).items():
            assert counted_exactly(told, one, counted[name])
        assert work["bytes"] == sum(one["payload_bytes"] for one in work["iscsi"]["clients"].values()) > 0
        assert {row["mss_bytes"] for row in work["live"]} == {each.level - 52}
        assert each.metrics["goodput"] == pytest.approx(8 * 8192 * each.metrics["operations"])
        assert each.metrics["latency_p50"] <= each.metrics["latency_p95"]
        assert each.readings["shared_cpus"] or each.metrics["receiver_cpu_cost"] > 0


def test_over_ipv6_too_with_nagles_algorithm_on_or_off(rack_agent: Agent, tmp_path: Path) -> None:
    asked = study(
        blocks=1, retries=0, testbed={**BED, "family": 6}, margins=MARGINS, treatment="nagle",
        workloads=[{"iscsi": {"duration": "0.4 s", "size": "16 MiB"}}],
        factors={"mtu": [9000], "nagle": [False, True]},
    )  # fmt: skip
    made = proven(rack_agent, asked, tmp_path)
    assert {each.level for each in made} == {False, True}
    for each in made:
        work = record(tmp_path, each)["workload"]
        assert {row["mss_bytes"] for row in work["live"]} == {9000 - 72}
        assert set(map(tuple, work["nodelay"].values())) == {(not each.level,)}
        assert {where.partition(" ")[0] for where in work["nodelay"]} == {"h1", "h2", "h3"}


def failure(agent: Agent, folder: Path, **iscsi: Any) -> str:
    """Why a run of a single level failed."""
    asked = study(
        blocks=1, retries=0, testbed=BED, margins=MARGINS, workloads=[{"iscsi": {"duration": "0.4 s", **iscsi}}]
    )  # fmt: skip
    return str(run(agent, asked, folder)[0].excluded[0])


@pytest.mark.parametrize(
    ("text", "changed", "within", "line"),
    [
        ("tgtd -f ", "tgtd --nonsense ", 200.0, r"sh on h3 ended before it was ready \(exit code \d+\): .*nonsense"),
        ("--lun 1 ", "--lun 1 --bstype none ", 200.0, r"sh on h3 ended before it was ready \(exit code \d+\): .*"),
        ("echo ready", "sleep 600", 1.0, r"sh on h3 was not ready: found no output matching '\^ready\$' within 1 s: .*tgtd"),
        (
            "echo ready", "head -c 16777216 /dev/zero >{run}/disk; echo ready", 200.0,
            r"\S+ on h\d failed \(exit code 1\): iscsi: read of sector \d+: found page 0, expected \d+",
        ),
    ],
    ids=["no daemon", "no disk", "not ready", "wrong disk"],
)  # fmt: skip
def test_what_goes_wrong_is_said_in_its_own_words(
    rack_agent: Agent,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    changed: str,
    within: float,
    line: str,
) -> None:
    assert workload.START.count(text) == 1
    monkeypatch.setattr(workload, "START", workload.START.replace(text, changed))
    monkeypatch.setattr(workload, "READY_SECONDS", within)
    found = failure(rack_agent, tmp_path, size="16 MiB")
    assert re.match(f"error: {line}", found), found


def test_a_disk_for_which_there_is_no_memory_is_refused(rack_agent: Agent, tmp_path: Path) -> None:
    found = failure(rack_agent, tmp_path, size="60 GiB")
    assert re.match(
        r"error: .* on h3 failed \(exit code 1\): size: found room for \d+ bytes in memory, expected 6", found
    )
