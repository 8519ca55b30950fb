"""MPTCP as a factor: its levels in a study file, what they ask of agents, what proves them, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from helpers.schemas import conforms

from framegauge.errors import QuantityError, StudyError
from framegauge.evidence.multipath import multipath_failures
from framegauge.experiment.planning import conditions_of, stated_conditions, workload_of
from framegauge.networks import multipath
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.study.model import Study
from framegauge.summary import competitors, words
from framegauge.workloads.stream import Stream


def parse(
    levels: str = "[off, 1, 4 subflows]", workload: str = "stream: {size: 10 MB}", bed: str = "{kind: rack}",
    factors: str = "",
) -> Study:  # fmt: skip
    text = f"""
testbed: {bed}
factors:
  mtu: [1500, 9000]
  mptcp: {levels}{factors}
workloads: [{{{workload}}}]
margins: {{goodput: 2 %}}
"""
    return study_file.parse(text, "study.yaml")


def test_levels_are_the_same_as_words_and_as_numbers() -> None:
    assert [multipath.level(each) for each in (False, "off", 1, "1 subflow", 8)] == [
        "off", "off", "1 subflow", "1 subflow", "8 subflows",
    ]  # fmt: skip
    assert [multipath.subflows(each) for each in (None, "off", "1 subflow", "8 subflows")] == [None, None, 1, 8]


@pytest.mark.parametrize("value", [True, 0, 9, -1, 1.5, "2", "two subflows", "9 subflows", None])
def test_other_words_are_no_levels(value: object) -> None:
    with pytest.raises(QuantityError, match="expected off, or the number of subflows of each connection, 1 to 8"):
        multipath.level(value)


def test_a_level_reaches_the_workload_and_is_named() -> None:
    study = parse()
    found, said = {}, set()
    for slot in block_order(study, 0):
        work = workload_of(study, slot)
        assert isinstance(work, Stream)
        found[conditions_of(study, slot).mptcp] = work.subflows
        said.add(words.conditions(stated_conditions(study, slot)).rpartition(", ")[2])
    assert found == {"off": None, "1 subflow": 1, "4 subflows": 4}
    assert said == {"MPTCP off", "MPTCP 1 subflow", "MPTCP 4 subflows"}
    assert competitors.is_setting("mptcp")


def test_levels_survive_being_resolved_and_follow_the_schema() -> None:
    study = parse()
    text = study_file.dump(study)
    assert study_file.parse(text, "resolved") == study
    conforms(yaml.safe_load(text), study_file.json_schema())


REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "rr": ({"workload": "rr: {}"}, "no such factor with workload rr: its connections are TCP"),
    "simulator": ({"bed": "{kind: simulator}"}, "no such factor on testbed simulator (testbed rack has it)"),
    "ssh": (
        {"bed": "{kind: ssh, machines: [a, b]}"},
        "no such factor on your own hosts, whose path managers are left unchanged",
    ),
    "IPv6": (
        {"bed": "{kind: rack, family: 6}"},
        'at most 1 with family: 6 and TCP timestamps (sysctls: {net.ipv4.tcp_timestamps: "0"}): no room in 40 bytes',
    ),
    "rate": (
        {"workload": "stream: {duration: 1 s, rate: 1 Gb/s}"},
        "no such factor with a rate: the kernel paces no MPTCP socket",
    ),
    "pacing": ({"factors": "\n  pacing: [off, on]"}, "off with mptcp: the kernel paces no such socket"),
    "nics": (
        {"bed": "{kind: rack, topology: {pair: {nics: 2}}}", "workload": "stream: {size: 1 MB, nics: 2}"},
        "no such factor with several nics: MPTCP would use them by itself",
    ),
    "level": ({"levels": "9"}, "off, or the number of subflows of each connection, 1 to 8, such as 2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_one_line(name: str) -> None:
    change, expected = REFUSED[name]
    with pytest.raises(StudyError) as refused:
        parse(**change)
    (line,) = refused.value.problems
    assert line.startswith("study.yaml:")
    assert line.endswith(f"expected {expected}")


def failures(level: str, **workload: Any) -> list[str]:
    study = parse(level)
    return list(multipath_failures(conditions_of(study, block_order(study, 0)[0]), {"workload": workload}))


@pytest.mark.parametrize(("level", "read"), [("off", []), ("1", [1]), ("4", [4])])
def test_subflows_as_requested_are_no_failure(level: str, read: list[int]) -> None:
    assert failures(level, subflows={"h1": read, "h2": read}) == []


@pytest.mark.parametrize(
    ("level", "read", "said"),
    [
        ("off", [1], "requested none, found 1"),
        ("4", [3, 4], "requested 4, found 3, 4"),
        ("2", [], "requested 2, found none: its connections were TCP"),
    ],
)
def test_other_numbers_are_named(level: str, read: list[int], said: str) -> None:
    assert failures(level, subflows={"h1": read}) == [f"subflows of each connection from h1: {said}"]


def test_readings_are_expected() -> None:
    assert failures("2", subflows={}) == ["subflows of connections: not read, expected readings of all sending ends"]
