"""incast, and the workloads that are only simulated: their parameters, the conditions of lists, and one line per fault."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from framegauge.errors import AgentFailure, StudyError
from framegauge.experiment.planning import runnable_of, stated_conditions, workload_of
from framegauge.study import file as study_file, incast as parameters
from framegauge.study.blocks import block_order
from framegauge.study.model import Study
from framegauge.study.sweep import Source, axes, points, simulated
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
    found = conditions("users: {count: [10, 20], think: [50 ms, 100 ms], response: [100 kB, web-search]}")
    assert [(each["users"], each["mean_think_seconds"], each["response_sizes"]) for each in found] == [
        (users, think, sizes) for users in (10, 20) for think in (0.05, 0.1) for sizes in ("100 kB", "web-search")
    ]
    found = conditions("arrivals: {sizes: [data-mining, 1000], load: [0.5, 80 %], pattern: [any-to-any, half-to-half]}")
    assert [(each["flow_sizes"], each["load"], each["pattern"]) for each in found] == [
        (sizes, load, pattern)
        for sizes in ("data-mining", "1 kB") for load in (0.5, 0.8) for pattern in ("any-to-any", "half-to-half")
    ]  # fmt: skip


def test_the_testbed_and_the_block_have_a_part_in_them() -> None:
    study = parse("arrivals: {sizes: web-search, load: 0.5}", rest="seed: 7\nblocks: 3\n")
    found = [[workload_of(study, slot) for slot in block_order(study, block)] for block in range(3)]
    assert [len({each.seed for each in arms}) for arms in found] == [1, 1, 1]
    assert len({each.seed for arms in found for each in arms}) == 3
    one = found[0][0]
    assert (one.bits_per_second, one.rtt_seconds, one.topology) == (10**9, 0.0002, {"kind": "rack"})
    asked = "users: {count: 5, response: 1 kB}"
    assert {each.nagle for each in made(asked)} == {None}
    nagle = study_file.parse(
        f"testbed: {{{BED}}}\nfactors: {{mtu: [1500, 9000], nagle: on}}\nworkloads: [{{{asked}}}]\n", "s.yaml"
    )
    assert workload_of(nagle, block_order(nagle, 0)[0]).nagle is True


def test_a_file_beside_the_study_is_read_once_and_kept(tmp_path: Path) -> None:
    (tmp_path / "sizes.csv").write_text("bytes,probability\n1000,0.5\n2000,1\n")
    text = f"testbed: {{{BED}}}\nfactors: {{mtu: [1500, 9000]}}\nworkloads: [{{arrivals: {{sizes: [sizes.csv, 1 kB], load: 0.5}}}}]\n"
    (tmp_path / "s.yaml").write_text(text)
    study = study_file.load(tmp_path / "s.yaml")
    assert [each.name for each in study.workloads[0].parameters.sizes] == ["sizes.csv", "1 kB"]
    assert {each["flow_sizes"] for each in study.workloads[0].parameters.conditions()} == {"sizes.csv", "1 kB"}
    source = Source(text, str(tmp_path / "s.yaml"))
    assert points(source, axes(["testbed.link.buffer=64KiB,128KiB"]))[1].study.workloads == study.workloads
    # The resolved study needs the file no more, nor does what has read it.
    (tmp_path / "sizes.csv").unlink()
    assert study_file.parse(study_file.dump(study), "elsewhere/again") == study
    assert simulated(source)[0].workloads == study.workloads
    with pytest.raises(StudyError) as refused:
        study_file.load(tmp_path / "s.yaml")
    assert 'arrivals.sizes.0: found "sizes.csv", expected a file that can be read, beside the study file' in str(
        refused.value
    )


WORKLOADS = [
    "incast: {unit: 64 kB, servers: 1}", "shuffle: {size: 1 MB}", "users: {count: 5, response: web-search}",
    "arrivals: {sizes: [data-mining, 100 kB], load: 0.5}",
]  # fmt: skip


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_resolved_study_is_the_same(workload: str) -> None:
    study = parse(workload)
    assert study_file.parse(study_file.dump(study), "again") == study


def test_what_is_judged_unless_a_study_says() -> None:
    assert set(parse("incast: {unit: 64 kB, servers: 8}").margin()) == {"completion_time", "goodput"}
    assert set(parse("shuffle: {size: 1 MB}").margin()) == {"completion_time"}
    assert set(parse("users: {count: 5, response: 1 kB}").margin()) == {"latency_p50", "latency_p99"}
    assert set(parse("arrivals: {sizes: 1 kB, load: 0.5}").margin()) == {"slowdown_p50", "slowdown_p99"}


def test_what_results_state() -> None:
    study = parse("incast: {unit: 64 kB, servers: 8}")
    stated = stated_conditions(study, block_order(study, 0)[0])
    assert (stated["unit_bytes"], stated["servers"], stated["rounds"]) == (64_000, 8, 20)
    study = parse("users: {count: 5, response: web-search}")
    stated = stated_conditions(study, block_order(study, 0)[0])
    assert (stated["users"], stated["mean_think_seconds"], stated["response_sizes"]) == (5, 0.1, "web-search")


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
        ("users: {response: 1 kB}", "workloads.0.users.count: found nothing, expected this key"),
        ("users: {count: 0, response: 1 kB}", "users.count: found 0, expected at least 1"),
        ("users: {count: 1, response: 0}", "users.response: found 0, expected 1 B to"),
        ("users: {count: 1, response: big}", 'users.response: found "big", expected bytes such as 100 kB, web-search'),
        ("users: {count: 1, response: 1 kB, think: 0 s}", "users.think: found 0, expected more than 0"),
        ("users: {count: 1, response: 1 kB, request: 0}", "users.request: found 0, expected more than 0"),
        ("users: {count: 1, response: 1 kB, think: 1 ns}", "at most 1000000: fewer users, or a longer time"),
        ("arrivals: {load: 0.5}", "arrivals.sizes: found nothing, expected this key"),
        ("arrivals: {sizes: 1 kB, load: 0}", "arrivals.load: found 0, expected a load such as 0.5 or 50 %"),
        ("arrivals: {sizes: 1 kB, load: 2.1}", "arrivals.load: found 2.1, expected a load such as 0.5 or 50 %"),
        ("arrivals: {sizes: 1 kB, load: half}", 'arrivals.load: found "half", expected a load such as 0.5 or 50 %'),
        ("arrivals: {sizes: web, load: 0.5}", 'arrivals.sizes: found "web", expected bytes such as 100 kB, web-search'),
        ("arrivals: {sizes: none.csv, load: 0.5}", 'found "none.csv", expected a file that can be read, beside the'),
        ("arrivals: {sizes: {file: a.csv}, load: 0.5}", "or its whole table: file, bytes, probability"),
        ("arrivals: {sizes: 1 kB, load: 0.5, pattern: all}", "expected 'any-to-any', 'many-to-one' or 'half-to-half'"),
        ("arrivals: {sizes: 1 kB, load: 0.5, duration: 10 s}", "expected at most 1000000: a shorter duration"),
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
@pytest.mark.parametrize("workload", WORKLOADS[1:])
def test_hosts_do_not_run_them(kind: str, workload: str) -> None:
    bed = f"kind: {kind}" + (", machines: [{name: a}, {name: b}]" if kind == "ssh" else "")
    with pytest.raises(StudyError) as refused:
        parse(workload, bed)
    name = workload.partition(":")[0]
    assert refused.value.problems == [
        f's.yaml:1: testbed.kind: found "{kind}", expected simulator for {name}, which is only simulated '
        "(framegauge simulate)"
    ]


@pytest.mark.parametrize("kind", ["rack", "veth", "fake", "ssh"])
def test_hosts_run_incast_within_the_limits_of_agents(kind: str) -> None:
    bed = f"kind: {kind}" + (
        ", machines: [{name: a}, {name: b}, {name: c}]" if kind == "ssh" else ", topology: rack, hosts: 3"
    )
    study = parse("incast: {unit: 16 MiB, servers: 2, rounds: 5}", bed)
    assert runnable_of(study, block_order(study, 0)[0]) == Incast(2, unit_bytes=1 << 24, rounds=5)
    assert parse("incast: {block: 32 MiB, servers: 2}", bed)
    for workload, said in (
        ("incast: {unit: 17 MiB, servers: 2}", 'incast.unit: found "17.83 MB", expected at most 16 MiB from each'),
        (
            "incast: {block: 33 MiB, servers: [1, 2]}",
            'incast.block: found "34.6 MB", expected at most 16 MiB from each',
        ),
        ("incast: {unit: 1, servers: 2, request: 17 MiB}", "incast.request: found"),
    ):
        assert parse(workload)
        with pytest.raises(StudyError) as refused:
            parse(workload, bed)
        assert len(refused.value.problems) == 1
        assert said in str(refused.value)
    # Over ssh there may be more hosts than a rack has.
    for given, where, found in (({"servers": 513}, "servers", 513), ({"rounds": 40_001}, "rounds", "20000500 answers")):
        (problem,) = parameters.Incast.model_validate({"unit": 1, "servers": 500, **given}).misfits()
        assert problem.path == (where,)
        assert f"found {found!r}".replace("'", '"') in str(problem)


@pytest.mark.parametrize("bed", [BED, "kind: rack, topology: rack, hosts: 9"])
def test_nagle_is_a_factor_of_incast(bed: str) -> None:
    study = study_file.parse(
        f"testbed: {{{bed}}}\nfactors: {{mtu: [1500, 9000], nagle: [off, on]}}\nworkloads: [incast: {{unit: 1 kB, servers: 8}}]\n",
        "s",
    )
    assert {workload_of(study, slot).nodelay for slot in block_order(study, 0)} == {True, False}  # type: ignore[attr-defined]


def test_nothing_tries_to_run_them_on_hosts() -> None:
    study = parse("shuffle: {size: 1 MB}")
    with pytest.raises(AgentFailure, match="shuffle: found a workload that is only simulated"):
        runnable_of(study, block_order(study, 0)[0])
