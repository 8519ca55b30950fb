"""Why the kernel sent each segment again: its own trace points, which see every namespace.

`tcp:tcp_retransmit_skb` tells of each segment that is sent again, `tcp:tcp_cong_state_set` of each change of a socket's
congestion state. The state in which a socket sends again is why it does (net/ipv4/tcp_input.c, tcp_timer.c,
tcp_output.c): in Recovery it repairs what SACK, duplicate acknowledgements or RACK have revealed (*fast*), in Loss what
a timeout made it take for lost (*timeout*), and in any other state only `tcp_send_loss_probe` sends again (*probe*, RFC
8985). A SYN has no congestion state: only the timer sends it again. An ICMP error that tells of a smaller MTU makes the
kernel enter Loss as well (`tcp_simple_retransmit`), so *timeout* is that too.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

TRACING = Path("/sys/kernel/tracing")
INSTANCES = TRACING / "instances"
PREFIX = "framegauge-corpus-"
EVENTS = ("tcp/tcp_retransmit_skb", "tcp/tcp_cong_state_set")
BUFFER_KIBIBYTES = "1024"
CLONE_NEWNS, MS_REC, MS_PRIVATE = 0x00020000, 0x4000, 0x40000
RECOVERY, LOSS = 3, 4
SECOND = 1_000_000_000
LINE = re.compile(r"\s(?P<seconds>\d+)\.(?P<rest>\d+): (?P<event>tcp_\w+): (?P<fields>.*)$")


@dataclass(frozen=True)
class Again:
    """A segment that a kernel sent again, at nanoseconds since 1970, and why: "fast", "probe", "timeout" or "syn"."""

    at: int
    source: str
    port: int
    destination: str
    other: int
    why: str


@dataclass
class Trace:
    """What the kernel traced while it was open; `missing` says why there is nothing."""

    missing: str = ""
    text: str = ""
    # Of the realtime clock before the monotonic one, by which the trace stamps.
    offset: int = 0
    events: list[Again] = field(default_factory=list)


def enter() -> str:
    """Make the kernel's trace points visible to this process and its children alone; why it cannot be done, or ""."""
    if (TRACING / "events").is_dir():
        return ""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNS) != 0 or libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None) != 0:
        return f"no mount namespace of its own: {os.strerror(ctypes.get_errno())}"
    if libc.mount(b"tracefs", str(TRACING).encode(), b"tracefs", 0, None) != 0:
        return f"tracefs: {os.strerror(ctypes.get_errno())}"
    return ""


def lacking() -> str:
    """Which trace point this kernel lacks, or ""."""
    return next((f"this kernel has no {event}" for event in EVENTS if not (TRACING / "events" / event).is_dir()), "")


def sweep() -> None:
    """Remove what processes have left that were killed."""
    for place in INSTANCES.glob(f"{PREFIX}*") if INSTANCES.is_dir() else ():
        if not Path("/proc", place.name.removeprefix(PREFIX)).exists():
            with suppress(OSError):  # another process sweeps, too
                place.rmdir()


@contextmanager
def following() -> Iterator[Trace]:
    """Trace until the end of the block; then the trace has its events."""
    trace = Trace(missing=lacking())
    if trace.missing:
        yield trace
        return
    place = INSTANCES / f"{PREFIX}{os.getpid()}"
    place.mkdir(exist_ok=True)
    try:
        (place / "trace_clock").write_text("mono")
        (place / "buffer_size_kb").write_text(BUFFER_KIBIBYTES)
        for event in EVENTS:
            (place / "events" / event / "enable").write_text("1")
        trace.offset = time.time_ns() - time.monotonic_ns()
        yield trace
        (place / "tracing_on").write_text("0")
        with (place / "trace").open() as lines:
            shutil.copyfileobj(lines, _Text(trace))
    finally:
        place.rmdir()
    trace.events = classed(trace.text.splitlines(), trace.offset)


@dataclass
class _Text:
    trace: Trace

    def write(self, part: str) -> int:
        self.trace.text += part
        return len(part)


def classed(lines: Iterable[str], offset: int) -> list[Again]:
    """What was sent again by these lines of a trace, in the order of time."""
    state: dict[tuple[str, ...], int] = {}
    again = []
    for line in lines:
        if not (part := LINE.search(line)):
            continue
        fields = dict(word.split("=", 1) for word in part["fields"].split() if "=" in word)
        if part["event"] == "tcp_cong_state_set":
            state[_socket(fields)] = int(fields["cong_state"])
        # What the device did not take is tried again.
        if part["event"] != "tcp_retransmit_skb" or fields.get("err", "0") != "0":
            continue
        at = int(part["seconds"]) * SECOND + int(part["rest"].ljust(9, "0")[:9]) + offset
        is_six = fields["family"] == "AF_INET6"
        source, destination = (fields[name + ("v6" if is_six else "")] for name in ("saddr", "daddr"))
        again.append(Again(at, source, int(fields["sport"]), destination, int(fields["dport"]), _why(fields, state)))
    return sorted(again, key=lambda event: event.at)


def _socket(fields: dict[str, str]) -> tuple[str, ...]:
    return tuple(fields[name] for name in ("saddrv6", "sport", "daddrv6", "dport"))


def _why(fields: dict[str, str], state: dict[tuple[str, ...], int]) -> str:
    if fields["state"].removeprefix("TCP_") in ("SYN_SENT", "SYN_RECV", "NEW_SYN_RECV"):
        return "syn"
    return {RECOVERY: "fast", LOSS: "timeout"}.get(state.get(_socket(fields), 0), "probe")
