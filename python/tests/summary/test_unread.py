"""A metric that cannot be read is left out with its reason, and the rest of the study is judged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from helpers.sealing import seal

from framegauge.decide import judge as decide
from framegauge.decide.judge import Brings
from framegauge.report import evidence
from framegauge.report.decision.content import decide as on_one_page
from framegauge.results.journal import read
from framegauge.study import file as study_file
from framegauge.summary import losses, unread
from framegauge.summary.document import summarise
from framegauge.summary.schema import summary_schema
from framegauge.summary.sentence import Kind, answer

WHY = "the use was too small to be distinguished from an idle host's"
COST = "receiver_cpu_cost"
# As `framegauge decide` makes it for idle hosts.
TEXT = """\
question: Should these hosts run jumbo frames?
testbed: {kind: fake}
factors: {mtu: [1500, 4200, 9000]}
workloads: [{stream: {duration: 1 s}}, {rr: {duration: 0.5 s}}]
blocks: 8
stop: blocks
margins: {goodput: 2 %, latency_p50: 10 %, receiver_cpu_cost: 10 %}
"""
Unread = Callable[[dict[str, Any]], bool]


@pytest.fixture
def judged(execute: Any, tmp_path: Path) -> Callable[[Unread], dict[str, Any]]:
    """The summary of such a study, in whose runs the CPU cost of receivers could not be read where that says so."""

    def made(is_unread: Unread) -> dict[str, Any]:
        name = f"out-{len(list(tmp_path.iterdir()))}"
        execute(study_file.parse(TEXT, "study.yaml"), name=name)
        path = tmp_path / name / "runs.jsonl"
        runs = [json.loads(line) for line in path.read_text().splitlines()]
        for run in runs:
            if is_unread(run):
                del run["metrics"][COST]
                run["readings"]["not_measured"] = {COST: WHY}
        path.write_text("".join(json.dumps(run) + "\n" for run in runs))
        return summarise(read(seal(tmp_path / name)))

    return made


def compared(summary: dict[str, Any], metric: str) -> list[dict[str, Any]]:
    return [each for each in summary["verdicts"] if each["metric"] == metric]


def test_hosts_too_idle_for_a_cpu_cost_are_judged_by_all_else(judged: Callable[[Unread], dict[str, Any]]) -> None:
    whole = judged(lambda run: False)
    summary = judged(lambda run: run["block"] > 1)
    jsonschema.Draft202012Validator(summary_schema()).validate(summary)
    assert summary["faithful"]
    assert compared(summary, COST) == []
    assert [each["verdict"] for each in compared(summary, "goodput")] == [
        each["verdict"] for each in compared(whole, "goodput")
    ]
    assert summary["not_measured"] == [{"metric": COST, "why": f"6 of 8 blocks lack this figure on a side: {WHY}"}]
    assert answer(summary).kind is Kind.YES
    assert decide.benefit_of(summary).brings is Brings.HELPS
    # What is not judged takes no part of the 5 % either, and needs no smallest level.
    assert summary["family"]["treatments"] < whole["family"]["treatments"]
    assert {each["metric"] for each in summary["smallest_levels"]} == {"goodput", "latency_p50"}
    assert decide.sufficient(summary) is not None


def test_a_cell_or_a_level_without_the_figure_is_named(judged: Callable[[Unread], dict[str, Any]]) -> None:
    summary = judged(
        lambda run: run["workload"] == "rr" or (run["workload"] == "stream" and run["level"] == 9000)
    )  # fmt: skip
    assert summary["faithful"]
    assert list(unread.lines(summary)) == [
        f"receiver CPU cost (stream, MTU 9000) was not measured: 8 of 8 blocks lack this figure on a side: {WHY}",
        f"receiver CPU cost (rr) was not measured: 8 of 8 blocks lack this figure on a side: {WHY}",
    ]
    jsonschema.Draft202012Validator(summary_schema()).validate(summary)
    [cost] = [each for each in compared(summary, COST) if each["treatment"]["mtu"] == 4200]
    assert cost["workload"] == "stream"


def test_a_study_of_nothing_that_could_be_read_has_no_answer(judged: Callable[[Unread], dict[str, Any]]) -> None:
    summary = judged(lambda run: True)
    assert summary["not_measured"] == [{"metric": COST, "why": WHY}]
    only = {**summary, "verdicts": [], "faithful": False}
    assert answer(only).text == f"No answer: nothing was compared, because receiver CPU cost was not measured: {WHY}."
    assert evidence.to_change(only) == (
        "Make its runs long enough to measure what was asked, or ask less: receiver CPU cost was not measured: " + WHY
    )


def test_lost_runs_still_cost_the_study_and_all_counts_agree(execute: Any, tmp_path: Path) -> None:
    execute(study_file.parse(TEXT, "study.yaml"))
    path = tmp_path / "out" / "runs.jsonl"
    runs = [json.loads(line) for line in path.read_text().splitlines()]
    for run in runs:
        if run["workload"] == "rr" and run["block"] > 2:
            run["excluded"] = ["fidelity: the fabric was late"]
    path.write_text("".join(json.dumps(run) + "\n" for run in runs))
    summary = summarise(read(seal(tmp_path / "out")))
    assert not summary["faithful"]
    said = losses.counted(summary["verdicts"])
    assert f"{said} could not be judged" in answer(summary).text
    lost = sum(each["treatment"]["mtu"] != 1500 and each["verdict"] == "not judged" for each in summary["verdicts"])
    page = on_one_page(summary, tmp_path / "out")
    [verdicts] = page.parts[0].lines
    assert said.startswith(f"{lost} of ")
    assert f"{lost} not judged" in str(verdicts)
    assert "Remove why 20 of its runs were excluded, the first because of fidelity: the fabric was late" in (
        page.parts[-1].lines
    )


def test_counts_tell_comparisons_from_controls() -> None:
    def verdict(kind: str, mtu: int) -> dict[str, Any]:
        return {"verdict": kind, "baseline": {"mtu": 1500, "estimate": 1}, "treatment": {"mtu": mtu, "estimate": 1}}

    some = [verdict("not judged", 9000), verdict("better", 9000), verdict("not judged", 1500)]
    assert losses.counted(some) == "1 of 2 comparisons and 1 of 1 A/A control"
    assert losses.counted(some[1:2]) == ""
