"""The workloads that are only simulated: their parameters, the conditions of lists, and one line per fault."""

from __future__ import annotations

from typing import Any

import pytest

from framegauge.errors import AgentFailure, StudyError
from framegauge.experiment.planning import runnable_of, stated_conditions, workload_of
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.study.model import Study
from framegauge.workloads.incast import Incast
from framegauge.workloads.shuffle import Shuffle

BED = "kind: simulator, topology: rack, hosts: 9"


def parse(workload: str, bed: str = BED, rest: str = "") -> Study:
    return study_file.parse(
        f"testbed: {{{bed}}}\nfactors: {{mtu: [1500, 9000]}}\nworkloads: [{{{workload}}}]\n{rest}", "s.yaml"
    )


def conditions(workload: str) -> list[dict[str, Any]]:
    return parse(workload).workloads[0].parameters.conditions()


def made(workload: str) -> list[Any]:
    """The workloads that run, of all cells, in the order of cells."""
    study = parse(workload)
    slots = {slot.cell.index: slot for slot in block_order(study, 0)}
    return [workload_of(study, slots[index]) for index in sorted(slots)]


def test_lists_are_conditions() -> None:
    found = conditions("incast: {unit: [64 kB, 256 kB], servers: [4, 8], rounds: 5}")
    assert [(each["unit_bytes"], each["servers"]) for each in found] == [
        (64_000, 4), (64_000, 8), (256_000, 4), (256_000, 8),
    ]  # fmt: skip
    assert made("incast: {block: 1 MB, servers: 8}") == [Incast(servers=8, block_bytes=1_000_000)]
    assert made("shuffle: {size: [1 MB, 2 MB], at_once: 3}") == [Shuffle(1_000_000, 3), Shuffle(2_000_000, 3)]


@pytest.mark.parametrize("workload", ["incast: {unit: 64 kB, servers: 8}", "shuffle: {size: 1 MB}"])
def test_a_resolved_study_is_the_same(workload: str) -> None:
    study = parse(workload)
    assert study_file.parse(study_file.dump(study), "again") == study


def test_what_is_judged_unless_a_study_says() -> None:
    assert set(parse("incast: {unit: 64 kB, servers: 8}").margin()) == {"goodput"}
    assert set(parse("shuffle: {size: 1 MB}").margin()) == {"completion_time"}


def test_what_results_state() -> None:
    study = parse("incast: {unit: 64 kB, servers: 8}")
    stated = stated_conditions(study, block_order(study, 0)[0])
    assert (stated["unit_bytes"], stated["servers"], stated["rounds"]) == (64_000, 8, 20)


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ("incast: {servers: 8}", 'workloads.0.incast: found "neither", expected exactly one of unit and block'),
        ("incast: {servers: 8, unit: 1 kB, block: 1 kB}", 'found "both", expected exactly one of unit and block'),
        ("incast: {unit: 1 kB}", "workloads.0.incast.servers: found nothing, expected this key"),
        ("incast: {unit: 0, servers: 8}", "incast.unit: found 0, expected more than 0"),
        ("incast: {unit: 1 kB, servers: 0}", "incast.servers: found 0, expected at least 1"),
        ("incast: {unit: 1 kB, servers: []}", "incast.servers: found [], expected at least 1 of them"),
        (
            "incast: {unit: 1 kB, servers: 9}",
            'servers: found "9 hosts", expected topology: rack with at least 10 hosts',
        ),
        ("incast: {block: 5, servers: 8}", "incast.block: found 5, expected at least 8: a byte from each"),
        ("incast: {unit: 1 kB, servers: 8, rounds: 0}", "incast.rounds: found 0, expected at least 1"),
        ("incast: {unit: 1 kB, servers: 8, request: 0}", "incast.request: found 0, expected more than 0"),
        ("shuffle: {size: 0}", "shuffle.size: found 0, expected more than 0"),
        ("shuffle: {size: 1 kB, at_once: 0}", "shuffle.at_once: found 0, expected at least 1"),
        ("shuffle: {size: 1 kB, request: 0}", "shuffle.request: found 0, expected more than 0"),
        ("shuffle: {size: 1 kB, atonce: 1}", 'found an unknown key, expected "at_once"'),
    ],
)
def test_what_makes_no_sense_is_one_line(workload: str, said: str) -> None:
    with pytest.raises(StudyError) as refused:
        parse(workload)
    assert len(refused.value.problems) == 1
    assert said in str(refused.value)


def test_there_is_an_end_to_the_flows_of_a_run() -> None:
    with pytest.raises(StudyError, match='shuffle: found "1001 hosts", expected at most 1000000 fetches'):
        parse("shuffle: {size: 1 kB}", "kind: simulator, topology: rack, hosts: 1001")


@pytest.mark.parametrize("kind", ["rack", "veth", "fake", "ssh"])
@pytest.mark.parametrize("workload", ["incast: {unit: 64 kB, servers: 1}", "shuffle: {size: 1 MB}"])
def test_hosts_do_not_run_them(kind: str, workload: str) -> None:
    bed = f"kind: {kind}" + (", machines: [{name: a}, {name: b}]" if kind == "ssh" else "")
    with pytest.raises(StudyError) as refused:
        parse(workload, bed)
    name = workload.partition(":")[0]
    assert refused.value.problems == [
        f's.yaml:1: testbed.kind: found "{kind}", expected simulator for {name}, which is only simulated '
        "(framegauge simulate)"
    ]


def test_nothing_tries_to_run_them_on_hosts() -> None:
    study = parse("shuffle: {size: 1 MB}")
    with pytest.raises(AgentFailure, match="shuffle: found a workload that is only simulated"):
        runnable_of(study, block_order(study, 0)[0])
