"""Results of other tools, by what they begin with: they are not compared, and are told by their name with what is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

__all__ = ["MOST_HEAD", "named", "tool"]

MOST_HEAD = 4096  # bytes that tell what a file is
MOST_LOOKED_AT = 8
JSON = "run iperf3 with -J, one file per run"
FLENT = "flent runs it and keeps what it says: flent tcp_upload, flent tcp_rr and others, one file per run"
# Name, what its files begin with, and how to come to what is compared. In the order in which they are looked for.
TOOLS: tuple[tuple[str, re.Pattern[bytes], str], ...] = tuple(
    (name, re.compile(pattern, re.MULTILINE), advice)
    for name, pattern, advice in (
        ("netperf", rb"^(?:MIGRATED )?(?:OMNI|TCP|UDP|SCTP)[A-Za-z_/ -]{1,50} TEST (?:from|to) |^THROUGHPUT=", FLENT),
        ("qperf", rb"^(?:tcp|udp|sctp|sdp|rds|rc|uc|ud|xrc|ver_rc)_[a-z_]{2,30}:\s*$", JSON),
        ("iperf3 without -J", rb"^(?:iperf 3\.\d|Connecting to host \S+, port \d+|Server listening on \d+ \()", JSON),
        ("iperf 2", rb"^(?:Client connecting to \S+, (?:TCP|UDP) port|Server listening on (?:TCP|UDP) port)", JSON),
        ("sockperf", rb"^sockperf: ", JSON),
        ("nuttcp", rb"^\s*[\d.]+ MB / +[\d.]+ sec = +[\d.]+ Mbps", JSON),
        ("ntttcp", rb"^(?:NTTTCP for Linux|Copyright Version \d[\d.]+)|<ntttcp[sr]\b", JSON),
        ("uperf", rb"^(?:Starting \d+ (?:threads|processes) running profile:|Txn\d+\s)", JSON),
        ("ping", rb"^PING \S+ ?\(.{2,60}\).{0,60} (?:bytes|data bytes)", "a check measures sizes: framegauge check"),
        ("fio", rb'"fio version"\s*:', JSON),
        ("perftest", rb"^\s*(?:RDMA_Write|RDMA_Read|Send) (?:BW|Latency|Bidirectional BW) Test", JSON),
    )
)  # fmt: skip
CAPTURES = (b"\xd4\xc3\xb2\xa1", b"\xa1\xb2\xc3\xd4", b"\x4d\x3c\xb2\xa1", b"\xa1\xb2\x3c\x4d", b"\x0a\x0d\x0d\x0a")


def tool(head: bytes) -> tuple[str, str] | None:
    """Whose file begins so, and how to come to what is compared; None if it is not known."""
    if head.startswith(CAPTURES):
        return "a capture", "framegauge diagnose says what is wrong in it"
    return next(((name, advice) for name, pattern, advice in TOOLS if pattern.search(head)), None)


def named(path: Path, names: Iterable[str]) -> tuple[str, str, str] | None:
    """The first of these files that is of a known tool: its name, the tool, and the advice."""
    for name in list(names)[:MOST_LOOKED_AT]:
        if not (path / name).is_file():
            continue
        try:
            with (path / name).open("rb") as file:
                known = tool(file.read(MOST_HEAD))
        except OSError:
            continue
        if known is not None:
            return name, *known
    return None
