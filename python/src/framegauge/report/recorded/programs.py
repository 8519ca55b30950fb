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
    work, chains = found.told(Iperf3), Chains()
    for client in work.clients:
        for rate in client.flow_bits_per_second:
            size, start = round(rate * client.seconds / 8.0), client.started_seconds
            sent, back = (0, size) if client.server in work.senders else (size, 0)
            if size:
                chains.add(Recorded(client.client, client.server, start, sent, back, start + client.seconds))
    return chains.in_order()


def ftp(found: Found) -> list[Recorded]:
    """The data connection of each file that counts, after that of the one before from the same server."""
    work, chains = found.told(Fetches), Chains()
    for fetched in work.fetched:
        for transfer in (transfer for call in fetched.calls for transfer in call.transfers[1:]):
            start = transfer.ended_seconds - (transfer.total_seconds - transfer.connected_seconds)
            flow = Recorded(work.receivers[0], fetched.server, start, 0, transfer.bytes, transfer.ended_seconds)
            chains.add(flow, fetched.server)
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
