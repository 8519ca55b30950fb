"""A case on the emulated rack: real kernels' TCP, the same script on the same links."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.exchanges.cases import AGGREGATE_BYTES, SHAPER_FACTOR, Case
from bench.exchanges.exchange import CLIENT, SERVER, Exchange, Segment

from framegauge.testbeds.base import Conditions, Host
from framegauge.testbeds.rack import RackAgent, RackTestbed
from framegauge.workloads.programs import Running, running

ENDS = Path(__file__).with_name("ends.py")
PORTS = ("h1>switch", "h2>switch")
PATIENCE_SECONDS = 90.0
# A network that was later than that was another network.
MOST_LATE_SECONDS = 0.002
FIELDS = (
    "frame.interface_name", "frame.time_epoch", "tcp.seq", "tcp.len", "tcp.flags", "tcp.ack",
    "tcp.options.sack_le", "tcp.options.sack_re", "tcp.window_size",
)  # fmt: skip
KINDS = {
    "TCPTimeouts": "timeouts", "TCPLossProbes": "probes", "TCPSackRecovery": "recoveries",
    "TCPRenoRecovery": "recoveries", "TCPFullUndo": "undone", "TCPPartialUndo": "undone", "TCPDSACKUndo": "undone",
    "TCPLossUndo": "undone", "TCPLostRetransmit": "lost resends",
}  # fmt: skip


class Late(RuntimeError):
    """The network was too late to be the one that was asked for."""


def conditions(case: Case) -> Conditions:
    """Without offloads: every segment is a packet of its own at both ends, as in the model."""
    link = case.link()
    return Conditions(
        testbed="fabric", mtu={"h1": case.mtu, "h2": case.mtu}, rtt_seconds=link["rtt_seconds"],
        bits_per_second=link["bits_per_second"], buffer_bytes=link["buffer_bytes"], port_mtu=link["port_mtu"],
        tso=False, lro=False, gro=False, checksum=False, congestion_control=case.congestion,
        moderation_seconds=0.0, aggregate_bytes=AGGREGATE_BYTES, shaper_factor=SHAPER_FACTOR,
        shaper_burst_bytes=case.shaper_burst_bytes,
        family=4, network={"links": case.links()},
        sysctls={
            "net.ipv4.tcp_sack": str(int(case.sack)), "net.ipv4.tcp_ecn": str(int(case.ecn)),
            # An acknowledgement must not wait because a program reads just then: that is luck.
            "net.ipv4.tcp_backlog_ack_defer": "0",
            "net.ipv4.tcp_rmem": "4096 131072 33554432", "net.ipv4.tcp_wmem": "4096 16384 4194304",
        },
    )  # fmt: skip


def played(case: Case, agent: RackAgent) -> Exchange:
    """What the kernels sent. Their counters and windows are the programs' last words."""
    bed = RackTestbed(agent)
    bed.up(conditions(case))
    try:
        client, server = bed.hosts()
        with running(server, "server", _argv(case, SERVER, server)) as serving:
            serving.await_words("ready")
            agent.request("measure.begin", {"watch": list(PORTS), "capture": True})
            with running(client, "client", _argv(case, CLIENT, server)) as asking:
                ended = _ended(asking), _ended(serving)
        found = agent.request("measure.end")["fabric"]
        data = bed.fetch(found["capture"])
    finally:
        bed.down()
    counts = dict.fromkeys(KINDS.values(), 0)
    for name, kind in KINDS.items():
        counts[kind] += sum(end["counters"][name] for end in ended)
    late_seconds = found["lateness"]["max_seconds"]
    if late_seconds > MOST_LATE_SECONDS:
        raise Late(f"the network was {late_seconds * 1e3:.1f} ms late")
    waited_seconds = sum(end["waited_seconds"] for end in ended)
    machine = {"late_microseconds": round(1e6 * late_seconds), "waited_microseconds": round(1e6 * waited_seconds)}
    return Exchange(
        list(_segments(data)), counts, ended[0]["cwnd"], ended[0]["ssthresh"], {**ended[0]["counters"], **machine}
    )


def _argv(case: Case, role: str, server: Host) -> list[str]:
    asked = {
        "role": role, "address": server.address, "steps": [dict(step) for step in case.steps],
        "nodelay": case.nodelay, "linger_seconds": case.linger_seconds,
    }  # fmt: skip
    return [sys.executable, str(ENDS), json.dumps(asked)]


def _ended(program: Running) -> dict[str, Any]:
    ended = program.wait(PATIENCE_SECONDS)
    if ended is None or ended["exit_code"] != 0:
        raise RuntimeError(f"{program.name}: {program.last_words()}")
    told: dict[str, Any] = json.loads(program.output().splitlines()[-1])
    return told


def _segments(capture: bytes) -> Iterator[Segment]:
    """What both hosts handed to their NICs. Times are the fabric's."""
    with tempfile.NamedTemporaryFile(suffix=".pcapng") as file:
        file.write(capture)
        file.flush()
        names = [word for name in FIELDS for word in ("-e", name)]
        options = ["-o", "tcp.relative_sequence_numbers:TRUE", "-Y", "tcp", "-T", "fields"]
        argv = ["tshark", "-n", "-r", file.name, *options, *names]
        text = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    begun = None
    for line in text.splitlines():
        name, seconds, sequence, length, flags, acknowledged, left, right, window = line.split("\t")
        port, what = name.rsplit(" ", 1)
        if what != "in":
            continue
        begun = float(seconds) if begun is None else begun
        blocks = tuple(
            (int(begin), int(end)) for begin, end in zip(left.split(","), right.split(","), strict=True) if begin
        )
        yield Segment(
            float(seconds) - begun, CLIENT if port == PORTS[0] else SERVER, int(sequence), int(length),
            int(flags, 16) & 0xFF & ~8, int(acknowledged or 0), blocks, int(window),
        )  # fmt: skip
