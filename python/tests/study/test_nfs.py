"""The workload `nfs` in a study file: what it may say, and what is named before anything is built."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from framegauge.errors import FramegaugeError
from framegauge.experiment.planning import missing_programs, stated_conditions, workload_of
from framegauge.metrics import METRICS
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.study.model import Study
from framegauge.workloads.nfs import Nfs

BED = {"kind": "rack", "topology": "rack", "hosts": 3}


def study(nfs: dict[str, Any] | None = None, **rest: Any) -> Study:
    asked = {
        "testbed": BED, "factors": {"mtu": {"levels": [1500, 9000], "baseline": 1500}},
        "workloads": [{"nfs": nfs or {}}], **rest,
    }  # fmt: skip
    return study_file.parse(yaml.safe_dump(asked, sort_keys=False), "study.yaml")


def test_without_margins_goodput_latency_operations_and_cpu_are_judged() -> None:
    names = {"goodput", "latency_p50", "latency_p95", "latency_p99", "operations", "receiver_cpu_cost"}
    assert set(study().margin()) == names
    assert METRICS["operations"].higher_is_better
    assert not METRICS["latency_p95"].higher_is_better


def test_lists_are_conditions_and_a_rate_has_no_depth() -> None:
    asked = study(
        {"transport": ["tcp", "udp"], "operation": ["read", "write"], "block": ["4 KiB", "8 KiB"], "depth": [1, 8]}
    )
    found = asked.workloads[0].parameters.conditions()
    assert len(found) == len({str(each) for each in found}) == 16
    (one,) = study({"rate": 100, "access": "random"}).workloads[0].parameters.conditions()
    assert "depth" not in one
    assert (one["rate_per_second"], one["version"], one["block_bytes"]) == (100, 3, 65536)
    mixed = study({"rate": [None, 100, 200], "depth": [1, 8]}).workloads[0].parameters.conditions()
    assert [(each["rate_per_second"], each.get("depth")) for each in mixed] == [
        (None, 1),
        (None, 8),
        (100, None),
        (200, None),
    ]
    for each in (asked, study({"rate": 100}), study({"rate": [None, 100]}), study()):
        assert study_file.parse(study_file.dump(each), "again.yaml") == each


def test_conditions_are_stated_without_what_is_the_same_for_all() -> None:
    asked = study({"block": "8 KiB", "transport": "udp"})
    stated = stated_conditions(asked, block_order(asked, 0)[0])
    assert {name: stated[name] for name in ("version", "transport", "operation", "access", "block_bytes", "depth")} == {
        "version": 3, "transport": "udp", "operation": "read", "access": "sequential", "block_bytes": 8192, "depth": 4,
    }  # fmt: skip


def test_arms_of_a_block_use_the_same_blocks_of_a_file() -> None:
    asked = study({"access": "random"})
    made = [[workload_of(asked, slot) for slot in block_order(asked, block)] for block in (0, 1)]
    assert all(isinstance(each, Nfs) for block in made for each in block)
    seeds = [{each.load.seed for each in block if isinstance(each, Nfs)} for block in made]
    assert [len(each) for each in seeds] == [1, 1]
    assert seeds[0] != seeds[1]


def test_it_obeys_nagle_on_all_hosts_and_runs_over_ipv6() -> None:
    asked = study(testbed={**BED, "family": 6}, factors={"mtu": [1500], "nagle": [True, False]}, treatment="nagle")
    made = [workload_of(asked, slot) for slot in block_order(asked, 0)]
    assert {each.nagle for each in made if isinstance(each, Nfs)} == {True, False}
    assert {tuple(each.nagle_on) for each in made if isinstance(each, Nfs)} == {("h1", "h2", "h3")}
    plain = workload_of(study(), block_order(study(), 0)[0])
    assert isinstance(plain, Nfs)
    assert (plain.nagle, plain.preload) == (None, None)


@pytest.mark.parametrize(
    ("nfs", "rest", "line"),
    [
        ({"block": "1000 B"}, {}, "nfs.block: found 1000, expected a multiple of 4096 bytes, at most 1 MiB"),
        ({"block": "2 MiB"}, {}, "nfs.block: found 2097152, expected a multiple of 4096 bytes, at most 1 MiB"),
        ({"block": "64 KiB", "transport": "udp"}, {}, "nfs.block: found 65536, expected at most 32 KiB over UDP"),
        (
            {"version": 4, "transport": "udp", "block": "8 KiB"},
            {},
            "nfs.version: found 4, expected 3 with transport: udp",
        ),
        ({"version": 2}, {}, "nfs.version"),
        ({"size": "8 KiB"}, {}, "nfs.size: found 8192, expected a multiple of 4096 bytes, at least a block (65536)"),
        ({"rate": 100, "depth": 2}, {}, "nfs.depth: found [2], expected no such key with a rate"),
        ({"retransmit": "1 ms"}, {}, 'nfs.retransmit: found "0.001 s", expected 0.01 s to 60 s'),
        ({"depth": 0}, {}, "nfs.depth"),
        ({}, {"testbed": {"kind": "veth"}}, "expected rack for nfs"),
        ({}, {"testbed": {"kind": "fake"}}, "expected rack for nfs"),
        (
            {"transport": ["tcp", "udp"], "block": "8 KiB"},
            {"factors": {"mtu": [1500, 9000], "nagle": [True, False]}, "treatment": "mtu"},
            "no such factor with transport: udp, which has no Nagle setting",
        ),
    ],
)
def test_what_cannot_be_is_named(nfs: dict[str, Any], rest: dict[str, Any], line: str) -> None:
    with pytest.raises(FramegaugeError) as refused:
        study(nfs, **rest)
    assert line in str(refused.value)


def test_every_package_that_is_missing_is_named_before_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("framegauge.workloads.base.glob.glob", lambda _: [])
    found = {each["name"]: (each["needed_for"], each["remedy"]) for each in missing_programs(study(), "/nowhere")}
    assert found["ganesha.nfsd"] == ("workload nfs", "apt-get install nfs-ganesha")
    assert found["libfsalvfs.so"] == ("workload nfs", "apt-get install nfs-ganesha-vfs")
    assert found["rpcbind"] == ("workload nfs", "apt-get install rpcbind")
