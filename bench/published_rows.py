"""The published study's figures of transfers, requests and the web site, and what may explain where ours differ.

Each row names the study in bench/published/ that measures it. An arm is a candidate cause: a verdict of the same or of
another study that differs from the row's in that alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["MORE", "PUBLISHED", "STUDIES", "Arm", "Published"]

# In the order in which they run. The names of their folders of results begin with "published-".
STUDIES = (
    "short", "short-window", "short-ftp", "short-moderation", "short-tuning", "short-disk", "short-cores", "one-ms",
    "one-ms-loss", "one-ms-tuning", "ten-ms", "ten-ms-hystart", "ten-ms-loss", "ten-ms-queue", "long", "long-queue",
    "many", "many-cpu", "half", "nagle", "nagle-fast", "web", "web-nagle", "web-parts",
)  # fmt: skip
MORE = math.inf


@dataclass(frozen=True)
class Arm:
    """A candidate cause. `conditions` are those in which it differs from the row; `metric` where it has another."""

    study: str
    said: str
    conditions: Mapping[str, Any] = field(default_factory=dict)
    metric: str | None = None


@dataclass(frozen=True)
class Published:
    """A figure of "Jumbo Frames or Not: That is the Question!" (Purdue TR 13-006, 2013), as a range of ratios."""

    study: str
    said: str
    low: float
    high: float
    conditions: Mapping[str, Any]
    levels: Sequence[Any] = (9000,)
    metric: str = "goodput"
    remark: str = ""
    treatment: str = "mtu"
    arms: Sequence[Arm] = ()
    optional: bool = False  # without a study of it, it is left out
    free: Sequence[str] = ()  # conditions that the figure does not tell: a row for each level


def _stream(size: float, pattern: str = "one-to-one", rtt: float = 200e-6) -> dict[str, Any]:
    return {"pattern": pattern, "size_bytes": int(size), "rtt_seconds": rtt}


def _frames(count: int) -> dict[str, Any]:
    return {"queue": {"kind": "taildrop", "limit_frames": count}}


def _buffers(study: str, *sizes: int) -> tuple[Arm, ...]:
    return tuple(Arm(study, f"{size} KiB of buffer at a port", {"buffer_bytes": size << 10}) for size in sizes)


SLOWED = "links of 100 Mb/s"
_TUNED = (
    ("windows-of-2010", "an initial window of 3 segments"),
    ("small-receive-window", "an initial receive window of 4 segments"),
    ("buffers-of-2011", "buffer limits of Linux 3.0"),
)
SHORT = (
    Arm("short-window", "an open connection with a grown window", {"response_bytes": 100_000}, "transactions"),
    Arm("short-ftp", "real FTP (vsftpd, curl)"),
    Arm("short-moderation", "no interrupt moderation", {"moderation_seconds": 0.0}),
    *(Arm("short-tuning", said, {"tuning": name}) for name, said in _TUNED),
    Arm("short-disk", "a receiver that waits for its disk after each file", {"ends": "disk", "size": 100_000}, "rate"),
    Arm("short-disk", "the same programs without a disk", {"ends": "memory", "size": 100_000}, "rate"),
    Arm("short-cores", "a core for each host and its interrupts", {"cores": "own", "size": 100_000}, "rate"),
    Arm("short-cores", "the same programs where hosts share cores", {"cores": "shared", "size": 100_000}, "rate"),
)
ONE_MS = (
    *(
        Arm("one-ms", f"socket buffers of {size} KiB", {"sizes": {"socket_buffer_bytes": size << 10}})
        for size in (128, 32)
    ),
    Arm("one-ms-loss", "one frame in 200 lost"),
    *(Arm("one-ms-tuning", said, {"tuning": name}) for name, said in _TUNED),
)
TEN_MS = (
    Arm("ten-ms", "Reno, whose slow start has no HyStart", {"congestion_control": "reno"}),
    Arm("ten-ms-hystart", "CUBIC without HyStart"),
    Arm("ten-ms-queue", "a slower port, of 950 Mb/s", {"queue": "taildrop"}),
    Arm("ten-ms-queue", "the same with a queue of 180 packets", _frames(180)),
    Arm("ten-ms-loss", "one frame in 10,000 lost"),
)
LONG = (
    Arm("long-queue", "a slower port, of 950 Mb/s", {"queue": "taildrop"}),
    Arm("long-queue", "the same with a queue of 180 packets", _frames(180)),
)
CPU = tuple(
    Arm("many-cpu", said, {"moderation_seconds": seconds, "size_bytes": 20_000_000})
    for said, seconds in (
        ("20 MB per transfer", 50e-6), ("no interrupt moderation", 0.0), ("interrupt moderation of 500 us", 500e-6),
    )
)  # fmt: skip
FAST = (Arm("nagle-fast", "links of 10 Gb/s"),)


def _transfers() -> Iterator[Published]:
    short, many, half = _stream, "many-to-one", "half-to-half"
    yield Published("short", "675 → 700 Mb/s, +4 %", 1.03, 1.045, short(1e5), (8000, 9000), arms=SHORT)
    yield Published("short", "about +10 %", 1.08, 1.12, short(1e6), (8000, 9000))
    yield Published("short", "934 → 985 Mb/s, +5.5 %", 1.0535, 1.0557, short(1e8))
    yield Published("one-ms", "under 200 → about 400 Mb/s", 1.8, MORE, _stream(1e6, rtt=1.2e-3), arms=ONE_MS)
    yield Published("ten-ms", "under 250 → over 800 Mb/s", 3.2, MORE, _stream(1e8, rtt=10.2e-3), arms=TEN_MS)
    yield Published("long", "875 → 950 Mb/s, +8.6 %", 1.08, 1.092, _stream(1e9, rtt=10.2e-3), arms=LONG)
    for size, said, low, high in ((1e5, "+11 %", 1.105, 1.115), (1e6, "+11 %", 1.105, 1.115)):
        yield Published("many", said, low, high, _stream(size, many), arms=_buffers("many", 128))
    yield Published("many", "+5.5 %", 1.0545, 1.0555, _stream(1e8, many), arms=_buffers("many", 128))
    buffers = _buffers("half", 96, 48)
    yield Published("half", "small files +7 %", 1.065, 1.075, _stream(1e5, half), remark=SLOWED, arms=buffers)
    yield Published(
        "half", "830 → 860 Mb/s per receiver, +3.6 %", 1.03, 1.042, _stream(5e6, half), remark=SLOWED, arms=buffers
    )
    cycles = {"metric": "receiver_cpu_cost"}
    yield Published("short", "receiver's cycles −13 %", 0.865, 0.875, _stream(1e8), **cycles)
    yield Published("many", "receiver's cycles −17 %", 0.825, 0.835, _stream(1e8, many), **cycles, arms=CPU)


def _requests() -> Iterator[Published]:
    for nagle, said, low, high in ((False, "web: times equal", 0.98, 1.02), (True, "web: jumbo slower", 1.02, MORE)):
        arms = (Arm("nagle", "a response of 3 kB", {"response_bytes": 3000}),) if nagle else FAST
        yield Published(
            "nagle", said, low, high, {"nagle": nagle}, metric="latency_p50", arms=arms, free=("response_bytes",)
        )


def _site() -> Iterator[Published]:
    parts = (Arm("web-parts", "thumbnails of 12 kB", {"thumbnail_bytes": 12_000}),)
    equal = {"conditions": {"nagle": False}, "optional": True}
    for metric in ("operations", "response_mean"):
        yield Published("web", "the same for all frame sizes", 0.98, 1.02, metric=metric, **equal)
    yield Published("web", "jumbo slower", 1.02, MORE, {"nagle": True}, metric="response_mean", optional=True)
    for mtu in (1500, 9000):
        yield Published(
            "web-nagle", "about 270 → 500 ms (250 users)", 1.75, 1.95, {"mtu": mtu}, (True,), "response_mean",
            treatment="nagle", optional=True, arms=parts,
        )  # fmt: skip


PUBLISHED = (*_transfers(), *_requests(), *_site())
