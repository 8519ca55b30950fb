"""Sweeps: every combination of values, and what is no sweep, in one line."""

from __future__ import annotations

import pytest
from helpers.support import ROOT

from framegauge.errors import InputError, StudyError
from framegauge.study.sweep import Axis, Source, axes, points, simulated

TEXT = """\
testbed: {kind: rack, topology: rack, hosts: 4, link: {buffer: 128 KiB}}
factors: {mtu: [1500, 9000]}
workloads: [{stream: {size: 1 MB}}]
margins: {goodput: 1 %, receiver_cpu_cost: 5 %}
sysctls: {net.ipv4.tcp_sack: '1'}
"""
SOURCE = Source(TEXT, "s.yaml")


def test_every_combination_the_last_axis_fastest() -> None:
    found = points(SOURCE, axes(["testbed.link.buffer=64KiB,1 MiB", "workloads.0.stream.size=10kB,1MB"]))
    assert [point.at for point in found] == [
        {"testbed.link.buffer": buffer, "workloads.0.stream.size": size}
        for buffer in ("64KiB", "1 MiB")
        for size in ("10kB", "1MB")
    ]
    sizes = [each.study.workloads[0].parameters.conditions()[0]["size_bytes"] for each in found]
    assert sizes == [10_000, 1_000_000] * 2
    assert [each.study.testbed.link.buffer for each in found] == [65536] * 2 + [1048576] * 2


def test_without_axes_it_is_the_file() -> None:
    (one,) = points(SOURCE, [])
    assert one.at == {}
    assert one.study == simulated(SOURCE)[0]


def test_what_a_file_does_not_have_can_be_swept_too() -> None:
    found = points(SOURCE, axes(["factors.queue=taildrop,sfq", "testbed.shared_buffer.bytes=1MiB"]))
    assert [each.study.factors.levels("queue") for each in found] == [["taildrop"], ["sfq"]]
    (sack,) = points(SOURCE, axes(["sysctls.net.ipv4.tcp_sack=0"]))
    assert sack.study.sysctls == {"net.ipv4.tcp_sack": "0"}


def test_a_file_for_the_rack_is_simulated_as_it_is() -> None:
    study, notes = simulated(SOURCE)
    assert study.testbed.kind == "simulator"
    assert notes == ["margins.receiver_cpu_cost"]
    assert set(study.margin()) == {"goodput"}
    for path in ("pair", "fat-tree", "queues", "blackout"):
        text = (ROOT / f"examples/{path}.yaml").read_text()
        assert simulated(Source(text, path))[0].testbed.kind == "simulator"


def test_meters_that_nothing_can_read_are_left_out() -> None:
    text = (ROOT / "examples/port-contention.yaml").read_text()
    study, notes = simulated(Source(text, "port-contention.yaml"))
    assert (study.meters.watch, notes) == ([], ["meters.watch"])


def test_seeds_are_all_run() -> None:
    study, _ = simulated(Source(TEXT, "s.yaml", 20))
    assert (study.blocks, study.stop) == (20, "blocks")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x", '--sweep: found "x", expected KEY=VALUE'),
        ("=1", '--sweep: found "=1", expected KEY=VALUE'),
        ("testbed.hosts=", "expected KEY=VALUE"),
        ("testbed.hosts=2,,3", "expected KEY=VALUE"),
        ("testbed=1", "expected a key below testbed, factors"),
        ("testbed.kind=veth", "expected a key below testbed"),
        ("seed=1,2", "expected --seed for the first, --seeds for their number"),
        ("blocks=4", "expected --seeds for their number"),
        ("margins.goodput=1 %", "expected a key below testbed"),
        ("factors.rtt=1ms,1ms", 'found "1ms" twice'),
    ],
)
def test_what_is_no_sweep_is_one_line(text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        axes([text])
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_key_that_comes_twice() -> None:
    with pytest.raises(InputError, match=r'found "factors.rtt" twice'):
        axes(["factors.rtt=1ms", "factors.rtt=2ms"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("testbed.link.bufer=1", '--sweep testbed.link.bufer=1: testbed.link: found an unknown key, expected "buffer"'),
        (
            "testbed.link.buffer=64KiB,big",
            '--sweep testbed.link.buffer=big: testbed.link.buffer: found "big", expected',
        ),
        ("workloads.3.stream.size=1MB", 'found "3", expected a number from 0 to 0'),
        ("testbed.topology.rack.nics=2", "testbed.topology: found 'rack', expected a mapping that has rack"),
        ("factors.mtu=1500,9000", "the treatment, whose levels are compared anyway"),
        ("factors.mtu.levels=1500,9000", "the treatment"),
        ("factors.congestion_control=vegas", "expected reno, cubic, dctcp or bbr"),
        ("testbed.link={", 'found "{", expected a value as in a study file'),
    ],
)
def test_what_cannot_be_swept_is_one_line(text: str, said: str) -> None:
    with pytest.raises(InputError) as refused:
        points(SOURCE, axes([text]))
    assert said in str(refused.value)
    assert "\n" not in str(refused.value)


def test_too_many_combinations() -> None:
    many = [Axis(f"testbed.links.{number}.rate", tuple(map(str, range(1, 101)))) for number in range(3)]
    with pytest.raises(InputError, match="found 1000000 combinations, expected at most 10000"):
        points(SOURCE, many)


def test_a_workload_that_starts_programs_is_refused_for_what_the_file_says() -> None:
    """The file has testbed rack: that a simulation is none is no mistake of the file."""
    with pytest.raises(StudyError, match=r"workloads\.0\.iscsi: .* that can be simulated: iscsi starts programs"):
        simulated(Source((ROOT / "examples/iscsi.yaml").read_text(), "iscsi.yaml"))


@pytest.mark.parametrize("kind", ["ssh", "veth"])
def test_networks_that_are_not_described_cannot_be_simulated(kind: str) -> None:
    with pytest.raises(InputError, match=f"found {kind}, expected rack or simulator"):
        simulated(Source(TEXT.replace("kind: rack", f"kind: {kind}"), "s.yaml"))
