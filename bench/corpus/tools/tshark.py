"""tshark's expert information, packet by packet: what `tshark -z expert` counts, with the connection and the time."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.corpus.answers import Answer, Pair, end

TITLE = "tshark (expert information)"
NEEDS = "tshark"
MAPPING = (
    "`fast retransmission`: `fast_retransmit`; `spurious retransmission`: `spurious_retransmit`; any other "
    "`retransmission`: `syn_loss` of a SYN, else `rto_stall`; `out-of-order`: `reordering`; `Zero Window segment`: "
    "`zero_window`; `window … completely full`: `receiver_limited`; `not captured`: `capture_loss`; `Connection "
    "reset`: `reset`, or `connection_refused` where no SYN-ACK came before"
)
FIELDS = (
    "frame.time_epoch", "ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport", "tcp.flags",
    "_ws.expert.message",
)  # fmt: skip
SYN = 0x002
# What is in a message, and the cause; the first that fits.
MESSAGES = (
    ("fast retransmission", "fast_retransmit"),
    ("spurious retransmission", "spurious_retransmit"),
    ("(suspected) retransmission", "rto_stall"),
    ("out-of-order segment", "reordering"),
    ("TCP Zero Window segment", "zero_window"),
    ("window specified by the receiver is now completely full", "receiver_limited"),
    ("segment(s) not captured", "capture_loss"),
    ("segment that wasn't captured", "capture_loss"),
    ("Connection reset (RST)", "reset"),
)


@dataclass
class _Seen:
    begin: float
    end: float


def output(capture: Path) -> str:
    """What the tool prints."""
    fields = [word for field in FIELDS for word in ("-e", field)]
    separators = ["-E", "separator=/t", "-E", "aggregator=|"]
    command = ["tshark", "-n", "-r", str(capture), "-Y", "tcp && _ws.expert", "-T", "fields", *fields, *separators]
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout


def answers(text: str, capture: str) -> Iterator[Answer]:
    """What it says of a capture."""
    spans: dict[tuple[Pair, str], _Seen] = {}
    accepted: set[Pair] = set()
    for line in text.splitlines():
        values = dict(zip(FIELDS, line.split("\t"), strict=False))
        if len(values) < len(FIELDS) or not values["tcp.srcport"].isdecimal():
            continue  # a packet in a tunnel has several
        source, destination = (
            end(values[f"ip.{name}"] or values[f"ipv6.{name}"], values[f"tcp.{name}port"]) for name in ("src", "dst")
        )
        connection, flags, at = frozenset((source, destination)), int(values["tcp.flags"], 16), values[FIELDS[0]]
        if "(SYN+ACK)" in values["_ws.expert.message"]:
            accepted.add(connection)
        for message in values["_ws.expert.message"].split("|"):
            cause = next((cause for part, cause in MESSAGES if part in message), None)
            if cause == "rto_stall" and flags & SYN:
                cause = "syn_loss"
            if cause == "reset" and connection not in accepted:
                cause = "connection_refused"
            if cause is not None:
                spans.setdefault((connection, cause), _Seen(float(at), float(at))).end = float(at)
    for (connection, cause), span in spans.items():
        yield Answer(capture, connection, cause, span.begin, span.end)
