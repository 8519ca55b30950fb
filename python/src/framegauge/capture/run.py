"""Captures on several hosts side by side: begins everywhere, waits, ends everywhere, fetches what was kept."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from framegauge.agents.pipe import Json, Pending
from framegauge.capture import files
from framegauge.capture.open import REFUSALS, Member, refusal
from framegauge.errors import SPOILT, AgentFailure, FramegaugeError, InputError
from framegauge.printable import one_line

__all__ = ["Asked", "Captured", "capture"]

MOST_LEFT_OUT = 32
LOOK_SECONDS = 1.0
SAY_SECONDS = 2.0
BEGIN_SECONDS = 60.0  # sudo may be slow
END_SECONDS = 120.0  # a thousand megabytes may have to be copied on a slow disk

Say = Callable[[str], None]


@dataclass(frozen=True)
class Asked:
    """What to capture. `seconds`: how long at most; None: until Ctrl-C. `signs`: those of trouble that end it, each
    with how much must be counted within a second; none: it goes on whatever happens. Times in seconds."""

    seconds: float | None
    signs: Mapping[str, int] = field(default_factory=dict)
    before_seconds: float = 10.0
    after_seconds: float = 2.0
    interfaces: Sequence[str] = ()
    ports: Sequence[int] = ()
    snap_bytes: int = 192
    most_bytes: int = 256_000_000
    with_ssh: bool = False


@dataclass
class Captured:
    """What a capture came to: the document of each host, by its name; why others have none; the host on which trouble
    came first; whether it was interrupted."""

    folder: Path
    hosts: dict[str, Json] = field(default_factory=dict)
    lost: dict[str, str] = field(default_factory=dict)
    trouble: str | None = None
    interrupted: bool = False


def capture(
    members: Sequence[Member],
    asked: Asked,
    folder: Path,
    say: Say,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Captured:
    """Captures on all of them, and writes a capture and a document for each into the folder, which is made. A host that
    is lost, refuses to begin, or answers what cannot be, is told in the result; InputError if none begins."""
    captured = Captured(folder)
    active = {member.host.name: member for member in _begin(members, asked, captured, say)}
    folder.mkdir(parents=True, exist_ok=True)
    trouble_time: float | None = None
    try:
        trouble_time = _wait(active, asked, captured, say, clock, pause)
    except KeyboardInterrupt:
        # No second one comes (cli/interrupts.py): what was captured is kept.
        captured.interrupted = True
        say("interrupted: keeping what was captured")
    last_seconds = None if trouble_time is None else clock() - trouble_time + asked.before_seconds
    names = files.names(list(active))
    answers = _side_by_side(active, "capture.end", {"last_seconds": last_seconds}, captured, END_SECONDS)
    for name, answer in answers.items():
        try:
            captured.hosts[name] = files.fetch(active[name].host, answer, folder, names[name], asked.snap_bytes, say)
        except KeyboardInterrupt:
            captured.interrupted = True
            captured.hosts[name] = files.fetch(active[name].host, answer, folder, names[name], asked.snap_bytes, say)
        except AgentFailure as error:
            captured.lost[name] = one_line(error)
    return captured


def _begin(members: Sequence[Member], plan: Asked, captured: Captured, say: Say) -> list[Member]:
    """Begins everywhere; the hosts that have begun. InputError if none has."""
    results = _results(members, [("capture.about", {})] * len(members), captured, say)
    members, descriptions = [member for member, _ in results], {member.host.name: answer for member, answer in results}
    ends = {
        name: (description["ssh"]["client"], description["ssh"]["server"])
        for name, description in descriptions.items()
        if description["ssh"]
    }
    requests = []
    for member in members:
        # A host reached by ssh has its own connection; the others may see those that lead to all of them.
        own_pair = ends.get(member.host.name)
        pairs = list(dict.fromkeys(ends.values())) if own_pair is None else [own_pair]
        interfaces = [*member.interfaces, *plan.interfaces]
        params = {
            "host": member.host.name, "interfaces": interfaces, "ports": list(plan.ports),
            "left_out": [] if plan.with_ssh else [list(pair) for pair in pairs[:MOST_LEFT_OUT]],
            "snap_bytes": plan.snap_bytes, "most_bytes": plan.most_bytes, "signs": dict(plan.signs), "sudo": True,
        }  # fmt: skip
        requests.append(("capture.begin", params))
    started = _results(members, requests, captured, say)
    for member, answer in started:
        say(f"{member.host.name}: capturing on {', '.join(map(one_line, answer['interfaces']))}")
    return [member for member, _ in started]


def _results(
    members: Sequence[Member], requests: Sequence[tuple[str, Mapping[str, Any]]], captured: Captured, say: Say
) -> list[tuple[Member, Json]]:
    """The answer of each host to its request; why others have none is said, and goes to `captured`. InputError if no
    host has any."""
    pending: list[tuple[Member, Pending]] = []
    lost: dict[str, str] = {}
    for member, (method, params) in zip(members, requests, strict=True):
        try:
            pending.append((member, member.host.agent.begin(method, params)))
        except SPOILT as error:
            lost[member.host.name] = one_line(error)
    results: list[tuple[Member, Json]] = []
    for member, call in pending:
        try:
            results.append((member, call.result(BEGIN_SECONDS)))
        except REFUSALS as error:
            lost[member.host.name] = refusal(member.host.name, error)
    captured.lost |= lost
    if not results:
        raise InputError("\n".join(captured.lost.values()))
    for reason in lost.values():
        say(f"{reason}; the others go on")
    return results


def _side_by_side(
    active: dict[str, Member], method: str, params: Mapping[str, Any], captured: Captured, seconds: float
) -> dict[str, Json]:
    """The answers of the hosts that are left; one that does not answer is left no more."""
    calls: dict[str, Pending] = {}
    answers: dict[str, Json] = {}
    for name, member in active.items():
        try:
            calls[name] = member.host.agent.begin(method, params)
        except AgentFailure as error:
            captured.lost[name] = one_line(error)
    for name, call in calls.items():
        try:
            answers[name] = call.result(seconds)
        except FramegaugeError as error:
            captured.lost[name] = one_line(error)
    for name in captured.lost:
        active.pop(name, None)
    return answers


def _wait(
    active: dict[str, Member],
    plan: Asked,
    captured: Captured,
    say: Say,
    clock: Callable[[], float],
    pause: Callable[[float], None],
) -> float | None:
    """Waits until the time is over, or some time after trouble; when trouble came, by `clock`."""
    begin = last_report = clock()
    end = float("inf") if plan.seconds is None else begin + plan.seconds
    trouble_time: float | None = None
    while active and (now := clock()) < end:
        pause(max(0.0, min(LOOK_SECONDS, end - now)))
        states = _side_by_side(active, "capture.state", {}, captured, END_SECONDS)
        now = clock()
        if trouble_time is None and plan.signs:
            trouble_states = {name: state["trouble"] for name, state in states.items() if state["trouble"] is not None}
            if trouble_states:
                captured.trouble = max(trouble_states, key=lambda name: trouble_states[name]["ago_seconds"])
                trouble_time = now - trouble_states[captured.trouble]["ago_seconds"]
                end = min(end, trouble_time + plan.after_seconds)
                say(f"{captured.trouble}: {files.trouble_line(trouble_states[captured.trouble])}")
        if now - last_report >= SAY_SECONDS:
            last_report = now
            say(f"{now - begin:.0f} s: " + "; ".join(_progress(name, state) for name, state in states.items()))
    return trouble_time


def _progress(name: str, state: Json) -> str:
    dropped = f", {state['dropped_packets']:,} dropped" if state["dropped_packets"] else ""
    return f"{name} {state['packets']:,} packets, {state['kept_bytes'] / 1e6:.1f} MB kept{dropped}"
