"""Scripted exchanges are the same on real kernels' TCP and on the model's; bench/exchanges has many more."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.support import bench

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent

cases = bench("exchanges.cases")
comparing = bench("exchanges.comparing")
kernel = bench("exchanges.kernel")
model = bench("exchanges.model")

# What is sent in them, and by which mechanism, hangs on no program's speed; times, and when a reader acknowledges, do.
NAMES = ("nothing lost", "segment 20 of 30 lost", "last segment and its probe lost", "SYN lost twice", "FIN lost")
TRIES = 5
# Programs that were kept from a CPU for longer have played another case.
MOST_WAITED_MICROSECONDS = 2000


@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_and_the_model_send_the_same(rack_agent: Agent, name: str) -> None:
    """A machine that is so busy that the network or a program is late plays another case than was asked for: it is played
    again. What differs although all was in time is a difference."""
    case = next(each for each in cases.CASES if each.name == name)
    of_model = model.played(case, find_agent())
    found: list[str] = []
    for _ in range(TRIES):
        try:
            played = kernel.played(case, rack_agent)
        except RuntimeError as problem:
            found = [str(problem)]
            continue
        kinds = {each.kind: each.text for each in comparing.differences(case, played, of_model)}
        found = [kinds[kind] for kind in ("sent", "mechanism") if kind in kinds]
        if not found or played.counters["waited_microseconds"] <= MOST_WAITED_MICROSECONDS:
            break
    if found:
        pytest.fail("; ".join(found))


def test_what_differs_is_found(rack_agent: Agent) -> None:
    case = next(each for each in cases.CASES if each.name == "SYN lost twice")
    played = kernel.played(case, rack_agent)
    of_model = model.played(replace(case, data=()), find_agent())
    kinds = [each.kind for each in comparing.differences(case, played, of_model)]
    assert kinds[:3] == ["sent", "mechanism", "cwnd"]
