"""Takes the readings of hosts for an estimate: side by side, without any change to them."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from framegauge.capture.open import REFUSALS, Member, refusal
from framegauge.errors import SPOILT, AgentFailure, FramegaugeError, InputError
from framegauge.printable import one_line
from framegauge.testbeds.base import Pending

__all__ = ["Taken", "take"]

SAY_SECONDS = 10.0
LOOK_SECONDS = 0.5
BEGIN_SECONDS = 15.0  # for sudo as well
END_SECONDS = 60.0  # processes of a large host are looked through

Json = dict[str, Any]


@dataclass
class Taken:
    """The readings of each host by its name; why others have none; whether it was interrupted."""

    hosts: dict[str, Json] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False


def take(
    members: Sequence[Member],
    seconds: float,
    target_mtus: Sequence[int],
    interfaces: Sequence[str],
    say: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Taken:
    """Reads on all of them for so long, or until Ctrl-C: what was read until then is of use. A host that is lost,
    refuses to begin, or answers what cannot be, is left to `lost`; InputError if none begins."""
    taken = Taken(lost=_begin(members, target_mtus, interfaces, say))
    members = [member for member in members if member.host.name not in taken.lost]
    start = last_report = clock()
    try:
        while (now := clock()) < start + seconds:
            if now - last_report >= SAY_SECONDS:
                last_report = now
                say(f"{now - start:.0f} of {seconds:.0f} s")
            pause(min(LOOK_SECONDS, start + seconds - now))
    except KeyboardInterrupt:
        # No second one comes (cli/interrupts.py).
        taken.interrupted = True
        say("interrupted: estimating from what was read")
    calls: dict[str, Pending] = {}
    for member in members:
        name = member.host.name
        try:
            calls[name] = member.host.agent.begin("estimate.end", {})
        except AgentFailure as error:
            taken.lost[name] = one_line(error)
    for name, call in calls.items():
        try:
            taken.hosts[name] = call.result(END_SECONDS)
        except FramegaugeError as error:
            taken.lost[name] = one_line(error)
    return taken


def _begin(
    members: Sequence[Member], target_mtus: Sequence[int], interfaces: Sequence[str], say: Callable[[str], None]
) -> dict[str, str]:
    """Begins everywhere; why some hosts did not, which is said as well. InputError if none did."""
    pending: dict[str, Pending] = {}
    lost: dict[str, str] = {}
    for member in members:
        params = {"interfaces": [*member.interfaces, *interfaces], "target_mtus": list(target_mtus), "sudo": True}
        try:
            pending[member.host.name] = member.host.agent.begin("estimate.begin", params)
        except SPOILT as error:
            lost[member.host.name] = one_line(error)
    for name, call in pending.items():
        try:
            answer = call.result(BEGIN_SECONDS)
        except REFUSALS as error:
            lost[name] = refusal(name, error)
            continue
        say(f"{name}: reading {', '.join(map(one_line, answer['interfaces']))}")
        if answer["sample_error"] is not None:
            say(f"{name}: without a sample of headers: {one_line(answer['sample_error'])}")
    if len(lost) == len(members):
        raise InputError("\n".join(lost.values()))
    for reason in lost.values():
        say(f"{reason}; the others go on")
    return lost
