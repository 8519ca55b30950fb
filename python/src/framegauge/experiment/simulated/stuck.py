"""Flows of a simulation whose data never gets through, because a port on their way drops frames of that size, or all.

Where nothing tells a sender of the path MTU, what was dropped for its size is sent again as large as it was. Such a
flow is seen by four things together: nothing of its last message came but what its first call wrote, no message like it
came before, it has sent something again, and ports have dropped frames that were too large for them.

Where a port let nothing through of what came to it, a flow of which nothing arrived was tried, if it has sent something
again. Where nothing of any flow arrived, it need not have: the first repeat of a SYN comes after 1 s (RFC 6298, 2.1).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from framegauge.evidence.unanswered import dropped, shut
from framegauge.quantities import print_bytes
from framegauge.testbeds.base import Json
from framegauge.workloads.work import CLIENT, Flow, Outcome, Work

__all__ = ["stuck"]


def stuck(work: Work, done: Outcome, record: Json, drops: pa.Table) -> Iterator[str]:
    """A line if there are such flows: the first, and how many more."""
    if ports := list(dropped(record, drops)):
        lines = [line for number, flow in enumerate(work.flows) for line in _nothing(flow, done, number)]
        if lines:
            yield _joined(lines, ports)
            return
    if ports := list(shut(record, drops)):
        silent = [number for number in range(len(work.flows)) if not done.of_flow(number)["bytes"].any()]
        tried = [number for number in silent if done.counts[number]["retransmits"]]
        unheard = silent if len(silent) == len(work.flows) else tried
        if unheard:
            yield _joined([_unheard(work.flows[number]) for number in unheard], ports)


def _joined(lines: list[str], ports: list[str]) -> str:
    count = len(lines) - 1
    more = f", and so for {count} more flow{'' if count == 1 else 's'}" if count else ""
    return "; ".join([f"{lines[0]}{more}", *ports])


def _unheard(flow: Flow) -> str:
    return f"{flow.client} to {flow.server}: no data arrived"


def _nothing(flow: Flow, outcome: Outcome, number: int) -> Iterator[str]:
    """That nothing of a flow's last message came though it was sent again."""
    rows = outcome.of_flow(number)
    if not outcome.counts[number]["retransmits"] or not len(rows["step"]):
        return
    is_whole = bool(rows["complete"][-1])
    # A request at a rate has no row for an answer of which nothing came.
    place = int(rows["step"][-1]) + is_whole
    came = 0 if is_whole else rows["bytes"][-1]
    if place == len(flow.steps) or np.any((rows["step"] == place) & (rows["complete"] > 0)):
        return
    if came > (step := flow.steps[place]).first_write_bytes:
        return
    if is_whole and step.think_seconds:  # it may not have been written yet
        return
    ends = (flow.client, flow.server) if step.side == CLIENT else (flow.server, flow.client)
    noun = "a transfer" if step.size_bytes is None else f"a message of {print_bytes(step.size_bytes)}"
    yield f"{ends[0]} to {ends[1]}: nothing of {noun} arrived"
