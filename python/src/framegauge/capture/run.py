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
    found = Captured(folder)
    left = {member.host.name: member for member in _begin(members, asked, found, say)}
    folder.mkdir(parents=True, exist_ok=True)
    since: float | None = None
    try:
        since = _wait(left, asked, found, say, clock, pause)
    except KeyboardInterrupt:
        # No second one comes (cli/interrupts.py): what was captured is kept.
        found.interrupted = True
        say("interrupted: keeping what was captured")
    last = None if since is None else clock() - since + asked.before_seconds
    names = files.names(list(left))
    ended = _side_by_side(left, "capture.end", {"last_seconds": last}, found, END_SECONDS)
    for name, answer in ended.items():
        try:
            found.hosts[name] = files.fetch(left[name].host, answer, folder, names[name], asked.snap_bytes, say)
        except KeyboardInterrupt:
            found.interrupted = True
            found.hosts[name] = files.fetch(left[name].host, answer, folder, names[name], asked.snap_bytes, say)
        except AgentFailure as error:
            found.lost[name] = one_line(error)
    return found


def _begin(members: Sequence[Member], asked: Asked, found: Captured, say: Say) -> list[Member]:
    """Begins everywhere; the hosts that have begun. InputError if none has."""
    told = _results(members, [("capture.about", {})] * len(members), found, say)
    members, about = [member for member, _ in told], {member.host.name: answer for member, answer in told}
    ends = {name: (each["ssh"]["client"], each["ssh"]["server"]) for name, each in about.items() if each["ssh"]}
    requests = []
    for member in members:
        # A host reached by ssh has its own connection; the others may see those that lead to all of them.
        own = ends.get(member.host.name)
        pairs = list(dict.fromkeys(ends.values())) if own is None else [own]
        named = [*member.interfaces, *asked.interfaces]
        params = {
            "host": member.host.name, "interfaces": named, "ports": list(asked.ports),
            "left_out": [] if asked.with_ssh else [list(pair) for pair in pairs[:MOST_LEFT_OUT]],
            "snap_bytes": asked.snap_bytes, "most_bytes": asked.most_bytes, "signs": dict(asked.signs), "sudo": True,
        }  # fmt: skip
        requests.append(("capture.begin", params))
    begun = _results(members, requests, found, say)
    for member, answer in begun:
        say(f"{member.host.name}: capturing on {', '.join(map(one_line, answer['interfaces']))}")
    return [member for member, _ in begun]


def _results(
    members: Sequence[Member], requests: Sequence[tuple[str, Mapping[str, Any]]], found: Captured, say: Say
) -> list[tuple[Member, Json]]:
    """The answer of each host to its request; why others have none is said, and goes to `found`. InputError if no host
    has any."""
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
    found.lost |= lost
    if not results:
        raise InputError("\n".join(found.lost.values()))
    for why in lost.values():
        say(f"{why}; the others go on")
    return results


def _side_by_side(
    left: dict[str, Member], method: str, params: Mapping[str, Any], found: Captured, seconds: float
) -> dict[str, Json]:
    """The answers of the hosts that are left; one that does not answer is left no more."""
    calls: dict[str, Pending] = {}
    answers: dict[str, Json] = {}
    for name, member in left.items():
        try:
            calls[name] = member.host.agent.begin(method, params)
        except AgentFailure as error:
            found.lost[name] = one_line(error)
    for name, call in calls.items():
        try:
            answers[name] = call.result(seconds)
        except FramegaugeError as error:
            found.lost[name] = one_line(error)
    for name in found.lost:
        left.pop(name, None)
    return answers


def _wait(
    left: dict[str, Member],
    asked: Asked,
    found: Captured,
    say: Say,
    clock: Callable[[], float],
    pause: Callable[[float], None],
) -> float | None:
    """Waits until the time is over, or some time after trouble; when trouble came, by `clock`."""
    began = said = clock()
    until = float("inf") if asked.seconds is None else began + asked.seconds
    since: float | None = None
    while left and (now := clock()) < until:
        pause(max(0.0, min(LOOK_SECONDS, until - now)))
        states = _side_by_side(left, "capture.state", {}, found, END_SECONDS)
        now = clock()
        if since is None and asked.signs:
            troubled = {name: state["trouble"] for name, state in states.items() if state["trouble"] is not None}
            if troubled:
                found.trouble = max(troubled, key=lambda name: troubled[name]["ago_seconds"])
                since = now - troubled[found.trouble]["ago_seconds"]
                until = min(until, since + asked.after_seconds)
                say(f"{found.trouble}: {files.trouble_line(troubled[found.trouble])}")
        if now - said >= SAY_SECONDS:
            said = now
            say(f"{now - began:.0f} s: " + "; ".join(_progress(name, state) for name, state in states.items()))
    return since


def _progress(name: str, state: Json) -> str:
    dropped = f", {state['dropped_packets']:,} dropped" if state["dropped_packets"] else ""
    return f"{name} {state['packets']:,} packets, {state['kept_bytes'] / 1e6:.1f} MB kept{dropped}"
