"""The requests of `rr`, `mixed`, `users` and `incast`: each with its response, over the connection that carried it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from framegauge.errors import CorruptResults
from framegauge.files.recordings import Recorded
from framegauge.report.recorded import transfers
from framegauge.report.recorded.rows import Chains, Columns, Found, begins
from framegauge.report.recorded.shapes import Mixed, Reads, Requests
from framegauge.report.recorded.simulated import whole_rounds
from framegauge.report.recorded.transfers import Sent

__all__ = ["incast", "mixed", "requests", "users"]

COLUMNS = ("connection", "due_seconds", "end_seconds")
ROUNDS = "completions.parquet"
SPANS = ("flow", "round", "start_seconds", "end_seconds")


@dataclass(frozen=True)
class Asked:
    """Transactions of one client by column, whose times count from `begun_seconds`."""

    client: str
    server: str
    begun_seconds: float
    columns: Columns


def requests(found: Found) -> list[Recorded]:
    """Those of `rr`: at their own times with a rate, and else each after the response to the one before."""
    chains = Chains()
    if found.has(ROUNDS):
        _simulated(found, chains, None)
        return chains.in_order()
    work = found.told(Requests)
    names = [client.client for client in work.clients]
    server = next(name for name in [*work.received_bytes, ""] if name not in names)
    tables = [
        found.columns("transactions.arrow" if len(names) == 1 else f"transactions-{name}.arrow", COLUMNS)
        for name in names
    ]
    longest = max(float(columns["end_seconds"].max(initial=0.0)) for columns in tables)
    started = begins([client.result.started_seconds for client in work.clients], longest)
    for name, begun, columns in zip(names, started, tables, strict=True):
        _measured(found, chains, Asked(name, server, begun, columns))
    return chains.in_order()


def mixed(found: Found) -> list[Recorded]:
    """Its requests, and its bulk."""
    work = found.told(Mixed)
    transactions = found.columns("transactions.arrow", COLUMNS)
    bulk = [found.columns(f"bulk-{sender.host}.arrow", transfers.COLUMNS) for sender in work.sent]
    longest = max(float(columns["end_seconds"].max(initial=0.0)) for columns in (transactions, *bulk))
    started = begins([work.asked.started_seconds, *(sender.result.started_seconds for sender in work.sent)], longest)
    chains, server = Chains(), work.receivers[0]
    if found.has(ROUNDS):
        # A simulation has one clock, and the connections of requests are its first flows.
        started = [0.0] * len(started)
        _simulated(found, chains, found.condition("connections"))
    else:
        _measured(found, chains, Asked(work.client, server, started[0], transactions))
    transfers.add(
        chains,
        [
            Sent(sender.host, server, begun, columns)
            for sender, begun, columns in zip(work.sent, started[1:], bulk, strict=True)
        ],
    )
    return chains.in_order()


def users(found: Found) -> list[Recorded]:
    """Each user's requests over one connection; how long the user thought is in their times."""
    columns = found.columns("transactions.arrow", (*COLUMNS, "bytes"))
    ends, size, chains = found.ends(columns["connection"]), found.condition("request_bytes"), Chains()
    for place in np.lexsort((columns["due_seconds"], columns["connection"])).tolist():
        user, due, end, back = (columns[name][place].item() for name in (*COLUMNS, "bytes"))
        client, server = ends[place]
        chains.add(Recorded(client, server, due, size, back, end, (), f"u{user}"), user)
    return chains.in_order()


def incast(found: Found) -> list[Recorded]:
    """Each server's connection has all rounds, and each round begins when all of the one before have ended."""
    size, chains = found.condition("request_bytes"), Chains()
    rounds: Columns
    if found.has(ROUNDS):
        rounds = whole_rounds(found)
        ends, answers = found.ends(rounds["flow"]), rounds["bytes"] - size
    else:
        rounds = found.columns("responses.arrow", (*SPANS, "bytes"))
        ends, answers = _read_from(found, rounds["flow"]), rounds["bytes"]
    last: int | None = None
    before: tuple[int, ...] = ()
    members: list[int] = []
    for place, row in enumerate(np.lexsort((rounds["flow"], rounds["round"])).tolist()):
        flow, number, start, end = (
            rounds[name][row].item() for name in ("flow", "round", "start_seconds", "end_seconds")
        )
        if number != last:
            before, members, last = tuple(members), [], number
        members.append(place)
        client, server = ends[row]
        chains.add(Recorded(client, server, start, size, answers[row].item(), end, before, f"s{flow}"))
    return chains.in_order()


def _read_from(entry: Found, flows: np.ndarray) -> list[tuple[str, str]]:
    """Client and server of these flows of `incast` on hosts, where servers have their places as numbers."""
    work = entry.told(Reads)
    if len(flows) and (most := int(flows.max())) >= len(work.senders):
        raise CorruptResults(f"{entry.name}: responses.arrow: found flow {most}, expected one of the senders'")
    return [(work.receivers[0], work.senders[int(flow)]) for flow in flows.tolist()]


def _is_closed(entry: Found) -> bool:
    """Whether the next request waited for the last response."""
    return entry.run.conditions.get("rate_per_second") is None


def _sizes(entry: Found) -> tuple[int, int]:
    return entry.condition("request_bytes"), entry.condition("response_bytes")


def _measured(entry: Found, chains: Chains, transactions: Asked) -> None:
    """Transactions on hosts: their connections were open before the first was due."""
    begun, sizes, is_closed = transactions.begun_seconds, _sizes(entry), _is_closed(entry)
    for connection, due, end in sorted(zip(*(transactions.columns[name].tolist() for name in COLUMNS), strict=True)):
        name = f"{transactions.client}-{connection}"
        flow = Recorded(transactions.client, transactions.server, begun + due, *sizes, begun + end, (), name)
        chains.add(flow, name if is_closed else None)


def _simulated(entry: Found, chains: Chains, flows: int | None) -> None:
    """Transactions of the first flows of a simulation, or of all; a closed loop begins with opening the connection."""
    columns = entry.columns(ROUNDS, (*SPANS, "complete"))
    ends, sizes, is_closed = entry.ends(columns["flow"]), _sizes(entry), _is_closed(entry)
    is_counted = (columns["complete"] == 1) & (columns["flow"] < (np.inf if flows is None else flows))
    for place in np.flatnonzero(is_counted).tolist():
        flow, _, start, end = (columns[name][place].item() for name in SPANS)
        client, server = ends[place]
        chains.add(Recorded(client, server, start, *sizes, end, (), f"c{flow}"), flow if is_closed else None)
