"""The share of the few in a run, against what follows from its figures by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from helpers.support import STUDY

from framegauge.evidence import few
from framegauge.experiment import planning
from framegauge.study import file as study_file
from framegauge.testbeds.base import Conditions
from framegauge.workloads.stream import Stream

SECONDS = 2.0
HALF_SEGMENT = 730.0  # of an MTU of 1500: (1500 - 40) / 2


def conditions() -> Conditions:
    found = planning.baseline(study_file.parse(STUDY, "study.yaml"))
    return replace(found, mtu={f"h{number}": 1500 for number in range(1, 5)})


def record(flows: Mapping[str, int], named: list[str], network: bool = True, reverse: bool = False) -> dict[str, Any]:
    ways = [way for number in range(1, 5) for way in ((f"h{number}", "switch"), ("switch", f"h{number}"))]
    ports = [{"port": f"{one}>{other}", "from": one, "to": other} for one, other in ways]
    runs = [
        {"client": name, "server": "h4", "reverse": reverse, "flows": count, "transfers": name,
         "result": {"started_seconds": 0.0}}
        for name, count in flows.items()
    ]  # fmt: skip
    workload = {"runs": runs, "few": named, "received_bytes": {"h4": 1}, "active_seconds": SECONDS}
    return {"workload": workload, "rack": {"network": {"ports": ports}} if network else {}}


def share(found: dict[str, Any], carried: Mapping[str, list[int]]) -> dict[str, float]:
    """The metrics of a run whose flows carried so many bytes in two seconds."""
    tables = {
        name: pa.table({
            "flow": list(range(len(sizes))), "counted_bytes": sizes,
            **{f"{when}_seconds": [at] * len(sizes) for when, at in
               (("start", 0.0), ("connected", 0.1), ("end", SECONDS), ("counted", SECONDS))},
        })
        for name, sizes in carried.items()
    }  # fmt: skip
    stream = Stream(duration_seconds=SECONDS)
    done = found["workload"]
    done |= few.sharing(conditions(), found)
    done |= stream.evidence(done, tables)
    return stream.metrics(done, tables)


def test_over_bonds_nobody_knows_by_which_input_port_flows_came() -> None:
    bonded = replace(conditions(), network={"topology": {"kind": "rack", "nics": 2, "bond": "layer3+4"}})
    done = few.sharing(bonded, record({"h1": 1, "h2": 2, "h3": 4}, []))
    assert done == {"not_measured": {"share_of_few": "hosts send by several NICs: name the few (few: [h1])"}}
    named = few.sharing(bonded, record({"h1": 1, "h2": 2, "h3": 4}, ["h1"]))
    assert [group["flows"] for group in named["sharing"]["groups"]] == [1, 6]


def test_it_is_the_mean_per_flow_of_the_few_over_that_of_the_many() -> None:
    found = record({"h1": 1, "h2": 2, "h3": 4}, [])
    metrics = share(found, {"h1": [300], "h2": [10, 10], "h3": [1000, 2000, 3000, 0]})
    assert metrics["share_of_few"] == pytest.approx(HALF_SEGMENT / 1500)  # 300 bytes are less than can be observed
    assert few.readings(found) == {"few": {"senders": ["h1"], "flows": 1, "many": 4, "floored": True}}
    found = record({"h1": 1, "h2": 2, "h3": 4}, [])
    metrics = share(found, {"h1": [3000], "h2": [10, 10], "h3": [1000, 2000, 3000, 0]})
    assert metrics["share_of_few"] == pytest.approx(2.0)
    assert few.readings(found)["few"]["floored"] is False
    groups = found["workload"]["sharing"]["groups"]
    assert [(each["name"], each["flows"]) for each in groups] == [("few", 1), ("mid", 2), ("many", 4)]
    assert [each["goodput_bits_per_second"] for each in groups] == pytest.approx([12_000, 8 * 730 / 2 / 2, 6_000])


def test_few_that_get_nothing_count_as_half_a_segment() -> None:
    metrics = share(record({"h1": 2, "h3": 3}, []), {"h1": [0, 0], "h3": [730_000] * 3})
    assert metrics["share_of_few"] == pytest.approx(HALF_SEGMENT / 2 / 730_000)
    assert metrics["smallest_goodput"] == 0
    lost = share(record({"h1": 2, "h3": 3}, []), {"h3": [730_000] * 3})  # not even a row of the table
    assert lost["share_of_few"] == metrics["share_of_few"]
    assert "share_of_few" not in share(record({"h1": 2, "h3": 3}, []), {"h1": [0, 0], "h3": [0, 0, 0]})


def test_who_is_named_is_compared_with_all_others() -> None:
    found = record({"h1": 1, "h2": 1, "h3": 1}, ["h2"], network=False)
    assert share(found, {"h1": [1000], "h2": [1000], "h3": [3000]})["share_of_few"] == pytest.approx(0.5)
    assert few.readings(found)["few"] == {"senders": ["h2"], "flows": 1, "many": 2, "floored": False}


def test_why_there_is_none() -> None:
    def why(found: dict[str, Any]) -> str:
        told: str = few.sharing(conditions(), found)["not_measured"]["share_of_few"]
        return told

    assert why(record({"h1": 1, "h2": 1}, [])) == (
        "all flows come by one input port, or by input ports with equally many flows"
    )
    assert why(record({"h1": 1, "h2": 2}, [], network=False)) == (
        "the input ports of the last switch are not known: name the few (few: [h1])"
    )
    assert few.sharing(conditions(), record({"h1": 5}, [])) == {}  # one host alone: nobody asks
    assert few.sharing(conditions(), record({"h1": 1, "h2": 2}, [], reverse=True)) == {}
    assert few.sharing(conditions(), {"workload": {"runs": []}, "rack": {}}) == {}  # another workload
