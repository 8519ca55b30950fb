"""`tcptrace -n -l -r`: counts of each direction of a connection."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from bench.corpus.answers import Answer, end

TITLE = "tcptrace -n -l -r"
NEEDS = "tcptrace"
MAPPING = (
    "`rexmt data pkts`: `fast_retransmit` with triple duplicate ACKs, else `rto_stall`; `outoforder pkts` without "
    "these: `reordering`; `dsack pkts`: `spurious_retransmit`; `zero win adv`: `zero_window`; two SYNs: `syn_loss`; "
    "`resets sent`: `reset`, or `connection_refused` where nothing else came; unequal `mss requested`: `mss_mismatch`; "
    "`hardware dups`: `capture_duplicates`; `missed data`: `capture_loss`; one direction only: `half_capture`; "
    "`truncated packets`: `truncated`. It says no times"
)
HOST = re.compile(r"^\s+host \w+:\s+(?P<address>\S+):(?P<port>\d+)\s*$", re.MULTILINE)
PART = re.compile(r"(?P<name>[A-Za-z][A-Za-z0-9 #/-]*?):\s+(?P<value>\S+)(?: (?:pkts|bytes|times|secs|segs|ms|Bps))?")
BLOCK = re.compile(r"^TCP connection \d+:$", re.MULTILINE)


def output(capture: Path) -> str:
    """What the tool prints."""
    command = ["tcptrace", "-n", "-l", "-r", str(capture)]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout


def answers(text: str, capture: str) -> Iterator[Answer]:
    """What it says of a capture."""
    for block in BLOCK.split(text)[1:]:
        ends = [end(matched["address"], matched["port"]) for matched in HOST.finditer(block)]
        if len(ends) == 2:
            for cause in _causes(*_ways(block)):
                yield Answer(capture, frozenset(ends), cause)


def _ways(block: str) -> tuple[dict[str, str], dict[str, str]]:
    """The two columns."""
    ways: tuple[dict[str, str], dict[str, str]] = ({}, {})
    for line in block.splitlines():
        parts = list(PART.finditer(line))
        if len(parts) == 2:
            for way, part in zip(ways, parts, strict=True):
                way[part["name"].strip()] = part["value"]
    return ways


def _causes(first: Mapping[str, str], second: Mapping[str, str]) -> Iterator[str]:
    def count(way: Mapping[str, str], name: str) -> int:
        value = way.get(name, "0").split("/")[0]
        return int(value) if value.isdecimal() else 0

    ways = (first, second)
    # A SYN that is sent again counts as data there.
    if any(count(way, "rexmt data pkts") > max(0, count(way, "SYN/FIN pkts sent") - 1) for way in ways):
        yield "fast_retransmit" if any(count(way, "triple dupacks") for way in ways) else "rto_stall"
    elif any(count(way, "outoforder pkts") for way in ways):
        yield "reordering"
    for name, least, cause in (
        ("dsack pkts sent", 1, "spurious_retransmit"),
        ("zero win adv", 1, "zero_window"),
        ("SYN/FIN pkts sent", 2, "syn_loss"),
        ("hardware dups", 1, "capture_duplicates"),
        ("missed data", 1, "capture_loss"),
        ("truncated packets", 1, "truncated"),
    ):
        if any(count(way, name) >= least for way in ways):
            yield cause
    if any(count(way, "resets sent") for way in ways):
        packets = sum(count(way, "total packets") for way in ways)
        refused = packets == sum(count(way, "SYN/FIN pkts sent") + count(way, "resets sent") for way in ways)
        yield "connection_refused" if refused else "reset"
    sizes = {count(way, "mss requested") for way in ways} - {0}
    if len(sizes) == 2:
        yield "mss_mismatch"
    if min(count(way, "total packets") for way in ways) == 0:
        yield "half_capture"
