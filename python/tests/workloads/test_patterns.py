"""How many connections a pattern has, before any of them is made."""

from __future__ import annotations

from typing import get_args

import pytest

from framegauge.errors import StudyError
from framegauge.experiment.simulated.pool import nobody
from framegauge.study import file as study_file
from framegauge.study.parameters import MOST_CONNECTIONS, connections
from framegauge.study.workloads import Pattern
from framegauge.testbeds.base import Host
from framegauge.workloads.base import pairs


@pytest.mark.parametrize("pattern", get_args(Pattern))
@pytest.mark.parametrize("count", [2, 3, 4, 7, 16])
def test_the_number_is_that_of_the_pairs(pattern: str, count: int) -> None:
    hosts = [Host(f"h{number}", f"h{number}", nobody()) for number in range(count)]
    assert connections(pattern, count) == len(pairs(pattern, hosts))


def test_more_connections_than_any_machine_holds_are_refused_with_their_number() -> None:
    text = (
        "testbed: {kind: simulator, topology: {fat-tree: {k: 34}}}\nfactors: {mtu: [1500, 9000]}\n"
        "workloads: [{stream: {duration: 1 ms, pattern: [one-to-one, half-to-half]}}]\n"
    )
    with pytest.raises(StudyError) as error:
        study_file.parse(text, "x.yaml")
    assert str(error.value) == (
        'x.yaml:3: workloads.0.stream.pattern: found "half-to-half of 9826 hosts, 24,137,569 connections", expected at '
        f"most {MOST_CONNECTIONS:,}: fewer hosts, or another pattern"
    )
    study_file.parse(text.replace("half-to-half", "many-to-one"), "x.yaml")
