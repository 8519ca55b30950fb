"""What is said of bonds: how the flows of hosts lay on their members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from framegauge.results.journal import Run

__all__ = ["spread"]

NAMED = 3  # hosts with a number of flows, and of each the ways in which these lay
LEAST_FLOWS = 2  # one flow lies on one member, whichever it is


def spread(runs: Sequence[Run]) -> Iterator[str]:
    """A line for each host and number of its flows: how many runs had them on the members in which numbers. Members are
    alike, so which of them had more is of no interest."""
    ways: dict[tuple[int, str, int], Counter[tuple[int, ...]]] = {}
    for run in runs:
        for host, bond in (run.readings.get("bonds") or {}).items():
            flows = bond.get("flows", ())
            if (total := sum(flows)) >= LEAST_FLOWS:
                way = tuple(sorted(flows, reverse=True))
                ways.setdefault((total, host, len(flows)), Counter())[way] += 1
    for total, host, members in list(ways)[:NAMED]:
        counts = ways[total, host, members].most_common()
        parts = [f"{_joined(way)} in {count} run{'' if count == 1 else 's'}" for way, count in counts[:NAMED]]
        rest = sum(count for _, count in counts[NAMED:])
        others = f", otherwise in {rest} more" if rest else ""
        yield (
            f"{total} flows of {host} lay on the {members} members of its bond as {', '.join(parts)}{others}: "
            "a hash decides, whatever the load, so more seeds or blocks show more of it"
        )
    if len(ways) > NAMED:
        yield f"flows of other hosts and numbers over bonds: {len(ways) - NAMED} more"


def _joined(way: Sequence[int]) -> str:
    return "+".join(map(str, way))
