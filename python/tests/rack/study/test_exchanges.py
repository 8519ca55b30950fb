"""Scripted exchanges are the same on real kernels' TCP and on the model's; bench/exchanges has many more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from helpers.real import because_held_up, judged
from helpers.support import bench

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent

cases = bench("exchanges.cases")
comparing = bench("exchanges.comparing")
kernel = bench("exchanges.kernel")
model = bench("exchanges.model")

# What is sent in them, and by which mechanism, hangs on no program's speed; times, and when a reader acknowledges, do.
NAMES = ("nothing lost", "segment 20 of 30 lost", "last segment and its probe lost", "SYN lost twice", "FIN lost")
# Programs that were kept from a CPU for longer have played another case.
MOST_WAITED_MICROSECONDS = 2000


@dataclass(frozen=True)
class Played:
    """A case as kernels played it: what differs, and why it may have been another case than was asked for."""

    differences: list[str]
    excluded: list[str]


def played(case: Any, of_model: Any, agent: Agent) -> Played:
    try:
        found = kernel.played(case, agent)
    except kernel.Late as problem:
        return Played([str(problem)], [because_held_up(str(problem))])
    kinds = {each.kind: each.text for each in comparing.differences(case, found, of_model)}
    waited = found.details["waited_microseconds"]
    late = [because_held_up(f"a program waited {waited} us for a CPU")] if waited > MOST_WAITED_MICROSECONDS else []
    return Played([kinds[kind] for kind in ("sent", "mechanism") if kind in kinds], late)


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_and_the_model_send_the_same(rack_agent: Agent, tmp_path: Path, name: str) -> None:
    """What differs although all was in time is a difference."""
    case = next(each for each in cases.CASES if each.name == name)
    of_model = model.played(case, find_agent())

    def are_alike(attempts: Sequence[Played]) -> bool:
        (one,) = attempts
        print(one)
        return not one.differences

    judged(lambda: [played(case, of_model, rack_agent)], tmp_path, are_alike)


def test_what_differs_is_found(rack_agent: Agent) -> None:
    case = next(each for each in cases.CASES if each.name == "SYN lost twice")
    played = kernel.played(case, rack_agent)
    of_model = model.played(replace(case, data=()), find_agent())
    kinds = [each.kind for each in comparing.differences(case, played, of_model)]
    assert kinds[:3] == ["sent", "mechanism", "cwnd"]
