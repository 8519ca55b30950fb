"""The verdict of a pair and of a whole check, and its exit code.

Only packets that arrived make a verdict of carries_target. What is not known stays unknown, however much else is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["BAD", "EXIT_CODES", "VERDICTS", "exit_code", "of_check", "of_pair", "route_mtu_disagreement"]

VERDICTS = ("carries_target", "too_small", "black_hole", "unreachable", "unknown")
# The worst first: a pair is called by the worst of its flows.
BAD = ("unreachable", "black_hole", "too_small")
EXIT_CODES = {"carries_target": 0, "fault": 1, "could_not_tell": 2}


def of_pair(flows: Sequence[Mapping[str, Any]], target_mtu: int) -> dict[str, Any]:
    """The fields `verdict`, `path_mtu_bytes` and `flows` of a pair, from its flows as check.run gives them."""
    counts = Counter(flow["verdict"] for flow in flows)
    sizes: Counter[int] = Counter()
    for flow in flows:
        size = target_mtu if flow["verdict"] == "carries_target" else flow.get("path_mtu_bytes")
        if size is not None:
            sizes[min(size, target_mtu)] += 1
    bad = sum(counts[name] for name in BAD)
    if counts["black_hole"] or counts["too_small"]:
        verdict = "black_hole" if counts["black_hole"] else "too_small"
    elif counts["unreachable"]:
        verdict = "unreachable"
    else:
        verdict = "carries_target" if flows and counts["carries_target"] == len(flows) else "unknown"
    # A bad flow whose size is not known may be the smallest: then the pair's size is not known either.
    known = verdict != "unknown" and sum(sizes.values()) >= len(flows) - counts["unknown"]
    return {
        "verdict": verdict,
        "path_mtu_bytes": min(sizes) if sizes and known else None,
        "flows": {
            "probed": len(flows),
            "bad": bad,
            "unknown": len(flows) - bad - counts["carries_target"],
            "fragmented": sum(bool(flow.get("fragmented")) for flow in flows),
            "path_mtus_bytes": {str(size): sizes[size] for size in sorted(sizes, reverse=True)},
        },
    }


def of_check(pairs: Sequence[Mapping[str, Any]], hosts: Sequence[Mapping[str, Any]] = ()) -> str:
    """The verdict of the check: a fault beats what could not be told, and that beats all that went well."""
    verdicts = {pair["verdict"] for pair in pairs}
    if verdicts & set(BAD):
        return "fault"
    if verdicts != {"carries_target"} or any(host.get("error") for host in hosts):
        return "could_not_tell"
    return "carries_target"


def exit_code(verdict: str) -> int:
    """0 all pairs carry the target, 1 a fault, 2 could not tell."""
    return EXIT_CODES[verdict]


def route_mtu_disagreement(pair: Mapping[str, Any]) -> str | None:
    """`below` if the kernel believes less than was measured, `above` if it believes more; None if they agree."""
    route, path = pair.get("route_mtu_bytes"), pair.get("path_mtu_bytes")
    if route is None or path is None or route == path:
        return None
    if route > path:
        # A route MTU above a target that was carried is no disagreement: nothing larger was asked.
        return None if pair["verdict"] == "carries_target" else "above"
    return "below"
