"""The workload `iscsi` in a study file: what it may say."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from framegauge.errors import FramegaugeError
from framegauge.experiment.planning import workload_of
from framegauge.files.placeholders import placeholders
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.study.model import Study
from framegauge.workloads.iscsi import Iscsi


def study(iscsi: dict[str, Any] | None = None, **bed: Any) -> Study:
    asked = {
        "testbed": {"kind": "rack", "topology": "rack", "hosts": 3, **bed},
        "factors": {"mtu": {"levels": [1500, 9000], "baseline": 1500}},
        "workloads": [{"iscsi": iscsi or {}}],
    }
    return study_file.parse(yaml.safe_dump(asked, sort_keys=False), "study.yaml")


def test_lists_are_conditions() -> None:
    given = {"operation": ["read", "write"], "block": ["4 KiB", "64 KiB"], "depth": [1, 32]}
    found = study(given).workloads[0].parameters.conditions()
    assert len(found) == 8
    assert {(each["operation"], each["block_bytes"], each["depth"]) for each in found} == {
        (operation, block, depth) for operation in ("read", "write") for block in (4096, 65536) for depth in (1, 32)
    }
    assert study({"rate": [100, 200]}).workloads[0].parameters.conditions()[0].keys().isdisjoint({"depth"})


def test_without_margins_its_metrics_are_judged() -> None:
    assert set(study().margin()) == {
        "goodput", "latency_p50", "latency_p95", "latency_p99", "operations", "receiver_cpu_cost",
    }  # fmt: skip


def test_the_last_host_is_the_target_and_all_others_are_clients() -> None:
    asked = study()
    found = workload_of(asked, block_order(asked, 0)[0])
    assert isinstance(found, Iscsi)
    assert found.roles == {"target": ("h3",), "clients": ("h1", "h2")}
    assert [each.hosts for each in found.clients] == [("h1",), ("h2",)]
    known = {"run", "address", "target", "clients", "host", *asked.testbed.host_names}
    for task in (*found.prepare, *found.servers, *found.clients):
        for text in (*task.argv, *task.templates.values()):
            assert set(placeholders(text)) <= known


@pytest.mark.parametrize(
    ("family", "portal", "listens"),
    [(4, "{target}:3260", "{address}:3260"), (6, "[{target}]:3260", "[{address}]:3260")],
)
def test_a_portal_of_ipv6_is_in_brackets(family: int, portal: str, listens: str) -> None:
    asked = study(family=family)
    found = workload_of(asked, block_order(asked, 0)[0])
    assert isinstance(found, Iscsi)
    words = found.clients[0].argv
    assert words[words.index("--portal") + 1] == portal
    assert f"--iscsi portal={listens} &" in found.servers[0].templates["target"]
    assert (found.nagle, found.preload) == (None, None)


@pytest.mark.parametrize(
    ("iscsi", "bed", "line"),
    [
        ({"block": "6 kB"}, {}, "iscsi.block: found 6000, expected a multiple of 4096 bytes, at most 256 KiB"),
        ({"block": "512 KiB"}, {}, "iscsi.block: found 524288, expected a multiple of 4096 bytes, at most 256 KiB"),
        ({"size": "4 KiB"}, {}, "iscsi.size: found 4096, expected a multiple of 4096 bytes, from a block (8192) to 64 GiB"),
        ({"rate": 100, "depth": 4}, {}, "iscsi.depth: found [4], expected no such key with a rate"),
        ({"depth": 129}, {}, "iscsi.depth"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(iscsi: dict[str, Any], bed: dict[str, Any], line: str) -> None:
    with pytest.raises(FramegaugeError) as failed:
        study(iscsi, **bed)
    assert line in str(failed.value)
