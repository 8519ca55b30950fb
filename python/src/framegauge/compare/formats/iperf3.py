"""The output of `iperf3 -J` of either end: one file is one run.

Goodput is what the receiver took in (`end.sum_received`). Directions are those of the client: upload, or download with
`--reverse`; a file of `--bidir` has both. CPU costs are for the iperf3 process at each end, not for its whole host.
Conditions are the requested settings; congestion control, MSS and versions as found are facts. So is the size of the
datagrams of UDP, which follows the MTU unless it is asked for.

Of UDP (`-u`), the share of datagrams that were delivered and their jitter are metrics, too. Both are the receiver's: a
sender that did not hear of it reports that nothing was lost, and a jitter of exactly 0. Before 3.10 there is no
`end.sum_received`, and `end.sum` has the rate that was sent.

The format is that of iperf 3.1 to 3.19 (esnet/iperf, `iperf_api.c`), with `--json-stream` as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from framegauge.compare.formats.samples import (
    CutOff,
    MovedNothing,
    OtherRun,
    Sample,
    Unreadable,
    as_number,
    load_json,
    one_line,
)

__all__ = ["parse"]

PROTOCOLS = ("TCP", "UDP")
WHAT = "the output of iperf3 -J"
# Errors of a connection that was not made, or broke (esnet/iperf, `iperf_error.c`). A busy server or a wrong option is
# none of the network's.
UNREACHED = re.compile(
    r"unable to (?:connect|send|receive|read|write)|closed unexpectedly|time(?:d |-)?out", re.IGNORECASE
)
EVENT = re.compile(rb'\s*\{\s*"event"\s*:')
INTERVAL = re.compile(rb'\s*\{\s*"event"\s*:\s*"interval"')


def parse(name: str, data: bytes) -> list[Sample]:
    """The samples of one file, one per direction; Unreadable if there are none."""
    document = _streamed(data) or load_json(data, WHAT)
    if "error" in document:
        raise _error(document)
    start, end = _object(document, "start"), _object(document, "end")
    options = _object(start, "test_start", "start.")
    if options.get("protocol") not in PROTOCOLS:
        protocol = one_line(options.get("protocol"), 20)
        raise OtherRun(f"found protocol {protocol}, expected {' or '.join(PROTOCOLS)}: no other is compared")
    measure = _datagrams if options.get("protocol") == "UDP" else _direction
    is_bidir = "sum_received_bidir_reverse" in end
    conditions = _conditions(options, is_bidir)
    began, facts = _began(start), _facts(start, end)
    parts = [("download" if options.get("reverse") == 1 else "upload", "")]
    if is_bidir:
        parts = [("upload", ""), ("download", "_bidir_reverse")]
    costs = _costs(end, [suffix for _, suffix in parts])
    samples = []
    for direction, suffix in parts:
        run_conditions = {"direction": direction, **conditions}
        try:
            metrics = measure(end, suffix) | ({} if is_bidir else costs)
        except MovedNothing as error:
            lost = Sample(
                name, "iperf3", run_conditions, {}, excluded=[str(error)], moved_nothing=True, began=began, facts=facts
            )
            samples.append(lost)
            continue
        stalled = "" if is_bidir else _silent_streams(end)
        samples.append(Sample(name, "iperf3", run_conditions, metrics, stalled=stalled, began=began, facts=facts))
    if is_bidir and costs:
        both_conditions = {"direction": "both ways", **conditions}
        samples.append(Sample(name, "iperf3", both_conditions, costs, began=began, facts=facts))
    return samples


def _streamed(data: bytes) -> Mapping[str, Any] | None:
    """What `--json-stream` (from 3.17 on) writes, an event a line, as `-J` puts it together; None if it is none."""
    lines = data.split(b"\n") if EVENT.match(data) else []
    document: dict[str, Any] = {}
    for line in (line for line in lines if EVENT.match(line) and not INTERVAL.match(line)):
        event = load_json(line, WHAT)
        document[str(event.get("event"))] = event.get("data")
    if lines and not document.keys() & {"end", "error"}:
        raise CutOff("found no event of the end, expected one: was the run killed?")
    return document or None


def _error(document: Mapping[str, Any]) -> Unreadable:
    """Why a run that ended with an error has no figures. One that had begun, or could not reach the other end, and
    took in nothing has moved nothing."""
    text = one_line(document["error"])
    message = f"iperf3 ended with an error: {text}"
    options, end = _inner(document, "start", "test_start"), _inner(document, "end", "sum_received")
    moved = as_number(end.get("bytes"))
    if moved or not (options or UNREACHED.search(text)) or options.get("protocol", "TCP") not in PROTOCOLS:
        return Unreadable(message)
    is_bidir = bool(options.get("bidir"))
    way = "both ways" if is_bidir else "download" if options.get("reverse") == 1 else "upload"
    return MovedNothing(message, {"direction": way, **_conditions(options, is_bidir)} if options else {})


def _inner(document: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    for key in keys:
        inner = document.get(key)
        document = inner if isinstance(inner, dict) else {}
    return document


def _object(parent: Mapping[str, Any], key: str, where: str = "") -> Mapping[str, Any]:
    value = parent.get(key)
    if not isinstance(value, dict):
        raise Unreadable(f"found no object {where}{key}, expected {WHAT}")
    return value


def _conditions(options: Mapping[str, Any], is_bidir: bool) -> dict[str, Any]:
    """The requested settings by which runs are matched: flows, duration or amount, rate."""
    conditions: dict[str, Any] = {"flows": _whole(options.get("num_streams"), 1), "bidir": is_bidir}
    if options.get("protocol") == "UDP":
        conditions["protocol"] = "UDP"
    names = {
        "duration": "duration_seconds",
        "bytes": "size_bytes",
        "blocks": "blocks",
        "target_bitrate": "target_bits_per_second",
    }
    for key, name in names.items():
        if value := _whole(options.get(key), 0):
            conditions[name] = value
    return conditions


def _whole(value: object, otherwise: int) -> int:
    number = as_number(value)
    return otherwise if number is None else int(number)


def _began(start: Mapping[str, Any]) -> datetime | None:
    stamp = start.get("timestamp")
    seconds = as_number(stamp.get("timesecs")) if isinstance(stamp, dict) else None
    try:
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _facts(start: Mapping[str, Any], end: Mapping[str, Any]) -> dict[str, str]:
    """The environment as found, as text; facts that differ between two sides are shown."""
    options = _inner(start, "test_start")
    facts = {
        "bytes of a datagram": options.get("blksize") if options.get("protocol") == "UDP" else None,
        "iperf3": start.get("version"),
        "system": start.get("system_info"),
        "MSS before the test": start.get("tcp_mss", start.get("tcp_mss_default")),
        "congestion control of the sender": end.get("sender_tcp_congestion"),
        "congestion control of the receiver": end.get("receiver_tcp_congestion"),
    }
    return {name: one_line(value) for name, value in facts.items() if isinstance(value, str | int)}


def _direction(end: Mapping[str, Any], suffix: str) -> dict[str, float]:
    """Goodput and retransmits of one direction."""
    received, sent = _object(end, "sum_received" + suffix, "end."), end.get("sum_sent" + suffix)
    metrics, delivered = _goodput(received, suffix), as_number(received.get("bytes"))
    # Missing on platforms that cannot count retransmits, and at a receiver.
    retransmits = as_number(sent.get("retransmits")) if isinstance(sent, dict) else None
    if retransmits is not None and delivered:
        metrics["retransmits"] = retransmits / (delivered / 1e9)
    return metrics


def _datagrams(end: Mapping[str, Any], suffix: str) -> dict[str, float]:
    """What arrived of UDP: goodput, the share of the datagrams, and how unevenly they came."""
    received = end.get("sum_received" + suffix)
    metrics = {} if received is None else _goodput(_object(end, "sum_received" + suffix, "end."), suffix)
    totals = _inner(end, ("sum" if received is None else "sum_received") + suffix)
    jitter, lost, sent = (as_number(totals.get(key)) for key in ("jitter_ms", "lost_packets", "packets"))
    # Of a receiver that was heard the jitter is above 0 as soon as two datagrams have arrived.
    if sent and lost is not None and 0 <= lost < sent and (jitter or lost):
        metrics["delivered"] = 1 - lost / sent
        metrics |= {"jitter": jitter / 1e3} if jitter else {}
    elif received is None and sent and lost == sent:
        raise MovedNothing(f"end.sum{suffix}: found all of {sent:g} datagrams lost, expected some to arrive")
    if not metrics:
        raise OtherRun(f"end.sum{suffix}: found nothing of what the receiver has seen, expected its jitter and losses")
    return metrics


def _goodput(received: Mapping[str, Any], suffix: str) -> dict[str, float]:
    """What the receiver took in, in bits per second."""
    goodput = as_number(received.get("bits_per_second"))
    if not goodput:
        value = one_line(received.get("bits_per_second"), 40)
        raise (MovedNothing if goodput == 0 else Unreadable)(
            f"end.sum_received{suffix}.bits_per_second: found {value}, expected a rate above 0"
        )
    return {"goodput": goodput}


def _silent_streams(end: Mapping[str, Any]) -> str:
    """How many of several streams moved nothing beside others: such as all that one member of a bundle carries."""
    streams = end.get("streams")
    ends = (
        [_inner(stream, "receiver") for stream in streams if isinstance(stream, dict)]
        if isinstance(streams, list)
        else []
    )
    moved = [as_number(stream.get("bytes")) for stream in ends]
    silent = moved.count(0)
    return f"{silent} of {len(moved)} streams moved nothing" if 0 < silent < len(moved) else ""


def _costs(end: Mapping[str, Any], suffixes: list[str]) -> dict[str, float]:
    """CPU time of the iperf3 processes per gigabyte delivered: share of a core, times seconds, over gigabytes."""
    shares, seconds, delivered = end.get("cpu_utilization_percent"), 0.0, 0.0
    for suffix in suffixes:
        received = _inner(end, "sum_received" + suffix)
        seconds = max(seconds, as_number(received.get("seconds")) or 0.0)
        delivered += as_number(received.get("bytes")) or 0.0
    if not isinstance(shares, dict) or not seconds or not delivered:
        return {}
    return dict(_shares(shares, seconds / (delivered / 1e9)))


def _shares(shares: Mapping[str, Any], scale: float) -> Iterator[tuple[str, float]]:
    for end, key in (("local", "host_total"), ("remote", "remote_total")):
        # iperf3 reports 0 for an end whose share it does not know.
        if share := as_number(shares.get(key)):
            yield f"{end}_cpu_cost", share / 100 * scale
