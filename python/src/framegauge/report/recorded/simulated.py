"""The flows of workloads that are only simulated, from the tables that simulated runs have."""

from __future__ import annotations

import numpy as np

from framegauge.errors import CorruptResults
from framegauge.files.recordings import Recorded
from framegauge.report.recorded.rows import Chains, Found

__all__ = ["arrivals", "replay", "shuffle", "whole_rounds"]

NAMES = ("flow", "round", "start_seconds", "end_seconds", "bytes")


def shuffle(found: Found) -> list[Recorded]:
    """A fetch each, which waits for the one whose place it takes among those of its host."""
    rounds, size, chains = whole_rounds(found), found.condition("request_bytes"), Chains()
    ends, at_once = found.ends(rounds["flow"]), max(1, found.condition("at_once"))
    turns: dict[str, int] = {}
    for row in np.argsort(rounds["flow"], kind="stable").tolist():
        _, _, start, end, amount = (rounds[name][row].item() for name in NAMES)
        client, server = ends[row]
        turn = turns[client] = turns.get(client, -1) + 1
        chains.add(Recorded(client, server, start, size, amount - size, end), (client, turn % at_once))
    return chains.in_order()


def arrivals(found: Found) -> list[Recorded]:
    """Each from when it arrived; of one that had not ended, the end is not known."""
    rounds, chains = whole_rounds(found), Chains()
    drawn = found.columns("arrivals.arrow", ("start_seconds", "bytes"))
    ends = found.ends(np.arange(len(drawn["bytes"])))
    ended = dict(zip(rounds["flow"].tolist(), rounds["end_seconds"].tolist(), strict=True))
    for flow, (client, server) in enumerate(ends):
        start, size = (drawn[name][flow].item() for name in ("start_seconds", "bytes"))
        chains.add(Recorded(client, server, start, size, 0, ended.get(flow)))
    return chains.in_order()


def replay(found: Found) -> list[Recorded]:
    """As it was simulated, in all copies."""
    numbers = ("copy", "flow", "start_seconds", "end_seconds", "bytes", "reverse_bytes")
    table, columns = "replayed.arrow", found.columns("replayed.arrow", numbers, ("client", "server"))
    arrow_table, rows = found.table(table), len(columns["flow"])
    waits = arrow_table["after"].to_pylist() if "after" in arrow_table.column_names else [()] * rows
    # Older folders have none of these.
    names = arrow_table["connection"].to_pylist() if "connection" in arrow_table.column_names else [""] * rows
    chains, count = Chains(), int(columns["flow"].max()) + 1 if rows else 0
    for place in range(rows):
        copy, flow, start, end, sent, back = (columns[name][place].item() for name in numbers)
        client, server = (str(columns[side][place]) for side in ("client", "server"))
        after = waits[place] or ()
        if not all(isinstance(wait, int) and 0 <= wait < flow for wait in after) or copy * count + flow != place:
            raise CorruptResults(
                f"{found.name}: {table}: found no order in row {place + 1}, expected that of the flows"
            )
        name = f"{copy}-{names[place]}" if names[place] else ""
        chains.add(Recorded(client, server, start, sent, back, end, tuple(copy * count + wait for wait in after), name))
    return chains.in_order()


def whole_rounds(found: Found) -> dict[str, np.ndarray]:
    """The rounds that came whole."""
    columns = found.columns("completions.parquet", (*NAMES, "complete"))
    return {name: columns[name][columns["complete"] == 1] for name in NAMES}
