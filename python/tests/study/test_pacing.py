"""Pacing as a factor: its levels in a study file, what they ask of workloads and simulations, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from helpers.outcomes import hosts
from helpers.schemas import conforms
from hypothesis import given, strategies as st

from framegauge.errors import QuantityError, StudyError
from framegauge.experiment.planning import conditions_of, stated_conditions, workload_of
from framegauge.networks import pacing
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.study.model import Study
from framegauge.summary import competitors, words
from framegauge.workloads.mixed import Mixed
from framegauge.workloads.stream import Stream

UNLIMITED = 10_000_000_000_000


def parse(
    levels: str = "[off, on, 75 Mb/s]", workload: str = "stream: {size: 10 MB}", factors: str = "", rest: str = ""
) -> Study:
    text = f"""
testbed: {{kind: rack}}
factors:
  mtu: [1500, 9000]
  pacing: {levels}{factors}
workloads: [{{{workload}}}]
margins: {{goodput: 2 %}}
{rest}"""
    return study_file.parse(text, "study.yaml")


@given(st.integers(8_000, UNLIMITED))
def test_a_rate_is_the_same_as_text_and_as_a_number(rate: int) -> None:
    assert pacing.bits_per_second(pacing.level(f"{rate} b/s")) == rate


def test_off_is_no_rate_and_on_is_above_any_link() -> None:
    assert [pacing.bits_per_second(pacing.level(each)) for each in (False, "off", True, "on")] == [
        None, None, UNLIMITED, UNLIMITED,
    ]  # fmt: skip
    assert pacing.bits_per_second(None) is None


@pytest.mark.parametrize("value", ["yes", 75, "7999 b/s", "11 Tb/s", 1.5, None, "75"])
def test_other_words_are_no_levels(value: object) -> None:
    with pytest.raises(QuantityError, match="expected off, on, or a rate per flow from 8 kb/s to 10 Tb/s"):
        pacing.level(value)


@pytest.mark.parametrize("workload", ["stream: {duration: 1 s, flows: 4}", "mixed: {bulk: {flows: 4}}"])
def test_a_level_is_the_rate_of_each_flow(workload: str) -> None:
    study = parse(workload=workload)
    found: dict[Any, Any] = {}
    for slot in block_order(study, 0):
        work = workload_of(study, slot)
        assert isinstance(work, Stream | Mixed)
        rates = {flow.pacing_bits_per_second for flow in work.work(hosts(2)).flows if flow.steps[0].size_bytes is None}
        found[conditions_of(study, slot).pacing] = rates
    assert found == {"off": {None}, "on": {UNLIMITED}, "75 Mb/s": {75_000_000}}


def test_levels_survive_being_resolved_and_follow_the_schema() -> None:
    study = parse()
    text = study_file.dump(study)
    assert study_file.parse(text, "resolved") == study
    for each in (text, "{testbed: {kind: rack}, factors: {mtu: 1500, pacing: [off, 1 Gb/s]}, workloads: [rr: {}]}"):
        conforms(yaml.safe_load(each), study_file.json_schema())


def test_a_level_is_named_in_conditions_and_words() -> None:
    study = parse()
    stated = [stated_conditions(study, slot) for slot in block_order(study, 0)]
    assert {each["pacing"] for each in stated} == {"off", "on", "75 Mb/s"}
    assert {words.conditions(each).rpartition(", ")[2] for each in stated} == {
        "pacing off", "pacing on", "pacing 75 Mb/s",
    }  # fmt: skip
    assert competitors.is_setting("pacing")


def test_it_can_be_the_treatment() -> None:
    study = parse(rest="treatment: pacing")
    assert {slot.arm.name for slot in block_order(study, 0)} == {"baseline", "control", "on", "75 Mb/s"}


def test_without_the_factor_nothing_is_asked_for_or_said() -> None:
    text = "testbed: {kind: rack}\nfactors: {mtu: [1500, 9000]}\nworkloads: [stream: {size: 1 MB}]\n"
    study = study_file.parse(text, "s.yaml")
    slot = block_order(study, 0)[0]
    assert "pacing" not in conditions_of(study, slot).as_json()
    assert "pacing" not in stated_conditions(study, slot)


REFUSED = {
    "workload: rr": ({"workload": "rr: {}"}, "no such factor with workload rr: it does not say how its sockets are paced"),
    "workload: iperf3": ({"workload": "iperf3: {}"}, "no such factor with workload iperf3"),
    "rate": ({"workload": "stream: {duration: 1 s, rate: 1 Gb/s}"}, "no such factor with a rate, which paces the same sockets"),
    "bulk": ({"workload": "mixed: {bulk: {rate: 1 Gb/s}}"}, "no such factor with a bulk.rate, which paces the same sockets"),
    "bbr": ({"factors": "\n  congestion_control: [cubic, bbr]"}, "on, or a rate, with congestion_control bbr, which always paces"),
    "level": ({"levels": "fast"}, "off, on, or a rate per flow from 8 kb/s to 10 Tb/s, such as 75 Mb/s"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_paced_is_one_line(name: str) -> None:
    change, expected = REFUSED[name]
    with pytest.raises(StudyError) as refused:
        parse(**change)
    (line,) = refused.value.problems
    assert line.startswith("study.yaml:5: factors.pacing")
    assert f"expected {expected}" in line


def test_bbr_can_have_a_rate() -> None:
    assert parse("[on, 75 Mb/s]", factors="\n  congestion_control: bbr").factors.levels("pacing") == ["on", "75 Mb/s"]
