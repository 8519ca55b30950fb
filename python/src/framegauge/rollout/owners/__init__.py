"""Who owns the MTU of an interface: who sets it, what will undo a change, and the lines that make one last.

All of it is read from the text of files, and nothing is written here. Each owner has a module with `claims`, what sets
the MTU, and `edit` or `edits`, the changed text of its files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from framegauge.rollout.owners import (
    cloud,
    cmdline,
    cni,
    dhcp,
    docker,
    elsewhere,
    ifcfg,
    ifupdown,
    ifupdown2,
    netplan,
    networkd,
    networkmanager,
    searched,
    sysctls,
)
from framegauge.rollout.owners.cni import Pods
from framegauge.rollout.owners.elsewhere import Mention
from framegauge.rollout.owners.model import Claim, Edit, Files, Kept, Nic, Trouble, Via

__all__ = ["Claim", "Edit", "Files", "Kept", "Mention", "Nic", "Ownership", "Pods", "Trouble", "Via", "ownership"]

_Found = TypeVar("_Found")
# What reads of its owner's files which routes through a gateway they give an MTU.
ROUTES: tuple[Callable[[Files, Nic], set[tuple[Via, int]]], ...] = (
    netplan.held, networkd.held, networkmanager.held, ifupdown.held,
)  # fmt: skip


@dataclass(frozen=True)
class Ownership:
    """Who sets the MTU of an interface. `edits` have its owners set the one that is asked for; in the order in which
    they are to be made. `troubles`: files that could not be understood, a line each. `loose`: routes that are to keep
    a smaller MTU, and to which none of these files gives it. `mentions`: lines of programs that may set it. `of_ipv6`:
    what gives IPv6 alone an MTU, which stays as it is. `shared`: files that mean other interfaces of the host as well,
    each with these, and are therefore not edited."""

    claims: tuple[Claim, ...] = ()
    edits: tuple[Edit, ...] = ()
    pods: Pods | None = None
    troubles: tuple[str, ...] = ()
    loose: tuple[Via, ...] = ()
    mentions: tuple[Mention, ...] = ()
    of_ipv6: tuple[Claim, ...] = ()
    shared: tuple[tuple[str, tuple[str, ...]], ...] = ()


def ownership(
    files: Files,
    nic: Nic,
    mtu: int,
    running: frozenset[str] = frozenset(),
    kept: Kept | None = None,
    others: Files | None = None,
    beside: Sequence[Nic] = (),
) -> Ownership:
    """Who sets the MTU of `nic` by these files, and how they come to set `mtu`. `running`: names of programs that run.
    `kept`: routes through a gateway that do not get it. `others`: files that are searched for its name and an MTU.
    `beside`: the other interfaces of the host, which are to stay as they are.

    Files that netplan generates for networkd and NetworkManager are left out, since it generates them again.
    """
    troubles: list[str] = []

    def tried(work: Callable[[], _Found], otherwise: _Found) -> _Found:
        try:
            return work()
        except Trouble as trouble:
            troubles.append(str(trouble))
            return otherwise

    written = {path: text for path, text in files.items() if not _is_generated(path)}
    claims: list[Claim] = tried(lambda: netplan.claims(files, nic), [])
    by_netplan = bool(claims)
    for source in (networkd.claims, networkmanager.claims, ifupdown.claims, ifcfg.claims):
        batch: list[Claim] = tried(lambda source=source: source(files if by_netplan else written, nic), [])  # type: ignore[misc]
        # Of what netplan has generated, only what a server told counts: the rest is netplan's.
        claims += [claim for claim in batch if not by_netplan or not claim.lasting or not _is_generated(claim.path)]
    tried(lambda: ifupdown2.check_limit(files, mtu) if _has(claims, "ifupdown") else None, None)
    claims += tried(lambda: dhcp.claims(files, nic, running), [])
    claims += elsewhere.claims(files, nic) + docker.claims(files, nic)
    claims += cmdline.claims(files, nic, mtu)
    unclear: list[Mention] = tried(lambda: ifupdown.unclear(files, nic, others or {}), [])
    claims = _left(claims, bool(unclear))
    none: tuple[Edit, ...] = ()
    shared: dict[str, tuple[str, ...]] = {}
    shared |= tried(lambda: netplan.shared(files, nic, beside) or networkd.shared(written, nic, beside), shared)
    edits = tried(lambda: _edits(files, written, nic, mtu, claims, running, kept, shared), none)
    loose = () if kept is None else tried(lambda: _loose({**files, **_after(edits)}, nic, kept), kept.routes)
    pods = tried(lambda: cni.pods(files), None)
    unclear += cmdline.unclear(files, nic, mtu)
    unclear += tried(lambda: networkd.unclear(files, nic), [])
    unclear += tried(lambda: networkmanager.unclear(written, nic), [])
    unclear += tried(lambda: ifcfg.unclear(files, nic), [])
    of_ipv6: list[Claim] = tried(lambda: netplan.of_ipv6(files, nic) + ifupdown.of_ipv6(files, nic, mtu), [])
    claims = [claim for claim in claims if claim not in of_ipv6]
    of_ipv6 += sysctls.of_ipv6(files, nic)
    for reader in (networkd.of_ipv6, networkmanager.of_ipv6, ifcfg.of_ipv6):  # what is generated would be told twice
        of_ipv6 += tried(lambda reader=reader: reader(written, nic), [])  # type: ignore[misc]
    known_paths = {claim.path for claim in (*claims, *of_ipv6)} | {mention.path for mention in unclear}
    mentions = (*unclear, *_mentions(files, others or {}, nic, known_paths))
    return Ownership(
        tuple(claims), edits, pods, tuple(dict.fromkeys(troubles)), loose, mentions, tuple(dict.fromkeys(of_ipv6)),
        tuple(shared.items()),
    )  # fmt: skip


def _has(claims: Iterable[Claim], owner: str) -> bool:
    return any(claim.owner == owner for claim in claims)


def _left(claims: list[Claim], by_hook: bool) -> list[Claim]:
    """Those that count. `by_hook`: a hook of ifupdown may set it, so that no stanza is said to set none, none gets a
    line that the hook would undo, and no default lasts."""
    if by_hook:
        claims = [
            claim
            for claim in claims
            if claim.owner != "ifupdown" or (claim.mtu is not None and ifupdown.is_mine(claim.path))
        ]
    # Who only manages the interface leaves its MTU to those that set it.
    if any(claim.mtu is not None and claim.lasting for claim in claims):
        claims = [claim for claim in claims if claim.mtu is not None or not claim.lasting]
    return claims


def _mentions(files: Files, others: Files, nic: Nic, known: set[str]) -> Iterable[Mention]:
    """Of each file those lines that name the interface itself, else those that a search of the whole file came to,
    unless something of the file is known already."""
    read, by_search = elsewhere.mentions(files, nic), searched.mentions(others, files, nic)
    named_paths = {mention.path for mention in read if mention.is_named} | known
    extra = [mention for mention in by_search if mention.path not in named_paths]
    return *(mention for mention in read if mention.path not in {other.path for other in extra}), *extra


def _after(edits: Iterable[Edit]) -> dict[str, str]:
    return {edit.path: edit.after for edit in edits if edit.after is not None}


def _loose(files: Files, nic: Nic, kept_routes: Kept) -> tuple[Via, ...]:
    """The routes to which no owner gives that MTU."""
    held = {pair for owner in ROUTES for pair in owner(files, nic)}
    names = {route: {Via(route.family, name, route.gateway) for name in route.networks} for route in kept_routes.routes}
    return tuple(route for route, vias in names.items() if not any((via, kept_routes.mtu) in held for via in vias))


def _edits(
    files: Files,
    written: Files,
    nic: Nic,
    mtu: int,
    claims: Iterable[Claim],
    running: frozenset[str],
    kept_routes: Kept | None,
    shared: Mapping[str, tuple[str, ...]],
) -> tuple[Edit, ...]:
    owners = {claim.owner for claim in claims}
    candidates: list[Edit | None] = []
    if "netplan" in owners:
        candidates += [] if shared else netplan.edits(files, nic, mtu, kept_routes)
    else:
        if owners & {"networkd", "udev", "DHCP"}:
            candidates += networkd.edits(written, nic, mtu, kept_routes, shared)
        if "NetworkManager" in owners:
            candidates.append(networkmanager.edit(written, nic, mtu, kept_routes))
    if "ifupdown" in owners:
        candidates += ifupdown.edits(files, nic, mtu, kept_routes)
    if "ifcfg" in owners:
        candidates += ifcfg.edits(files, nic, mtu)
    candidates += dhcp.edits(files, nic, mtu, running)
    candidates.append(cni.edit(files, nic, mtu))
    edits = [edit for edit in candidates if edit is not None and edit.before != edit.after]
    for edit in edits:
        _ = edit.diff  # Trouble, if it cannot be shown
    rewritten = [edit for edit in edits if edit.before is not None and cloud.has_written(edit.path, edit.before)]
    if rewritten and not cloud.is_disabled(files):
        edits.insert(0, cloud.disabling(files))
    return tuple(edits)


def _is_generated(path: str) -> bool:
    return networkd.of_netplan(path) or networkmanager.of_netplan(path)
