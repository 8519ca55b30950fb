"""The connections of programs, as far as the folder of a run has them."""

from __future__ import annotations

from framegauge.errors import InputError
from framegauge.files.recordings import Recorded
from framegauge.report.recorded.rows import Chains, Found
from framegauge.report.recorded.shapes import Fetches, Iperf3

__all__ = ["CONNECTIONS", "captured", "ftp", "iperf3"]

CONNECTIONS = "connections.arrow"
NUMBERS = ("begin_seconds", "end_seconds", "bytes", "reverse_bytes")


def iperf3(found: Found) -> list[Recorded]:
    """Each stream of each client for its whole time: it has its rate as iperf3 printed it."""
    told, chains = found.told(Iperf3), Chains()
    for each in told.clients:
        for rate in each.flow_bits_per_second:
            size, start = round(rate * each.seconds / 8.0), each.started_seconds
            sent, back = (0, size) if each.server in told.senders else (size, 0)
            if size:
                chains.add(Recorded(each.client, each.server, start, sent, back, start + each.seconds))
    return chains.in_order()


def ftp(found: Found) -> list[Recorded]:
    """The data connection of each file that counts, after that of the one before from the same server."""
    told, chains = found.told(Fetches), Chains()
    for one in told.fetched:
        for each in (each for call in one.calls for each in call.transfers[1:]):
            start = each.ended_seconds - (each.total_seconds - each.connected_seconds)
            flow = Recorded(told.receivers[0], one.server, start, 0, each.bytes, each.ended_seconds)
            chains.add(flow, one.server)
    return chains.in_order()


def captured(found: Found) -> list[Recorded]:
    """The connections that the captures of its hosts had, where the run was diagnosed; InputError where it was not."""
    if not found.has(CONNECTIONS):
        raise InputError(
            f"{found.name}: found no times of the connections of {found.run.workload}, expected a run of a study with "
            "`meters: {diagnose: on}`, or captures: framegauge diagnose CAPTURE --flows FILE"
        )
    columns, chains = found.columns(CONNECTIONS, NUMBERS, ("client", "server")), Chains()
    for place in range(len(columns["bytes"])):
        start, end, sent, back = (columns[name][place].item() for name in NUMBERS)
        client, server = (str(columns[side][place]) for side in ("client", "server"))
        if sent + back and client != server:
            chains.add(Recorded(client, server, start, sent, back, end))
    return chains.in_order()
