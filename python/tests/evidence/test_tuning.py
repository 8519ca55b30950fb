"""Proof of initial windows: every route of every NIC, before and after the run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from framegauge.evidence.tuning import window_failures
from framegauge.experiment.planning import conditions_of
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order

STUDY = """
testbed: {kind: fake}
factors: {mtu: [1500, 9000], tuning: few}
tunings: {few: {initial_window: 3}}
workloads: [{stream: {size: 10 MB}}]
margins: {goodput: 2 %}
"""


@pytest.fixture
def conditions():
    study = study_file.parse(STUDY, "study.yaml")
    return conditions_of(study, block_order(study, 0)[0])


def route(send, receive=None, destination="10.77.0.0/24"):
    return {
        "destination": destination, "initial_window_segments": send, "initial_receive_window_segments": receive,
    }  # fmt: skip


def record(before, after=None):
    def reading(routes):
        nic = {"interface": "fg0", **({} if routes is None else {"route_windows": routes})}
        return {"h1": {**nic, "nics": [nic]}}

    rack = {"hosts": [{"name": "h1", "nics": [{"end": "h1"}]}]}
    return {"rack": rack, "before": reading(before), "after": reading(before if after is None else after)}


def test_windows_as_requested_are_no_failure(conditions):
    assert list(window_failures(conditions, record([route(3), route(3, destination="10.77.1.0/24")]))) == []


def test_a_route_that_lost_its_window_is_named(conditions):
    (line,) = window_failures(conditions, record([route(3)], [route(3), route(None, destination="10.77.1.0/24")]))
    assert line == ("initial window of h1 after the run, to 10.77.1.0/24: requested 3 segments, found the kernel's own")


def test_a_window_that_nobody_requested_is_named(conditions):
    found = set(window_failures(conditions, record([route(3, 4)])))
    assert found == {
        f"initial receive window of h1 {when} the run, to 10.77.0.0/24: requested the kernel's own, found 4 segments"
        for when in ("before", "after")
    }
    plain = replace(conditions, initial_window_segments=None)
    assert list(window_failures(plain, record([route(None)]))) == []
    assert len(list(window_failures(plain, record([route(10)])))) == 2


@pytest.mark.parametrize("routes", [None, []])
def test_readings_without_routes_prove_no_window(conditions, routes):
    lines = list(window_failures(conditions, record(routes)))
    assert lines[0] == "initial window of h1 before the run: requested 3, found no route that says it"
    assert len(lines) == 2
    assert list(window_failures(replace(conditions, initial_window_segments=None), record(routes))) == []
