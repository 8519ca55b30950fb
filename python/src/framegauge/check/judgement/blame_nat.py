"""Hosts whose addresses are translated on the way: what they begin is answered, at an address of somebody else."""

from __future__ import annotations

from collections import defaultdict

from framegauge.check.judgement import remedies
from framegauge.check.judgement.case import Case
from framegauge.check.judgement.document import Pair
from framegauge.check.judgement.findings import Finding

__all__ = ["translated"]


def translated(case: Case) -> None:
    """`unreachable`: one finding a host and family, whichever others have no way to its own address."""
    behind: dict[tuple[str, int], list[Pair]] = defaultdict(list)
    for pair in case.unreachable.values():
        if _is_answered_elsewhere(case, pair):
            behind[pair.destination, pair.family].append(pair)
    for (name, family), pairs in sorted(behind.items()):
        _told(case, name, family, pairs)


def _is_answered_elsewhere(case: Case, pair: Pair) -> bool:
    """Whether a kernel has no way to an address, and yet answers TCP connections of that host: then these come from
    another address (network address translation, RFC 3022)."""
    back = case.mesh.by_key.get((pair.destination, pair.source, pair.family))
    has_no_way = pair.sent == 0 and pair.said is not None and not pair.is_one_ended
    return has_no_way and back is not None and bool((back.tcp or {}).get("connected"))


def _told(case: Case, name: str, family: int, pairs: list[Pair]) -> None:
    others = remedies.host_names(pair.source for pair in pairs)
    address = pairs[0].destination_address or name
    text = (
        f"TCP connections of host {name} to {others} are answered, but the kernel there has no way to {address} "
        f"({pairs[0].said}): host {name} is behind NAT or a proxy, which gives its packets another address. "
        "Only what it begins itself was measured."
    )
    keys = [pair.key for pair in pairs]
    case.add(
        Finding.about(
            "unreachable", f"host {name}, behind NAT or a proxy, from {others} (IPv{family})", [name], keys, text, text,
            advice=f"Nothing, if only host {name} begins connections. Else forward ports to it, or route {address}.",
            commands=remedies.show_routes(pairs),
        ),
        keys,
    )  # fmt: skip
