"""Who owns the MTU of the interface, as findings: what will undo the change, and what has it last. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from framegauge.rollout.model import Finding
from framegauge.rollout.owners import Claim, Edit, Kept, Ownership, Pods, Via, dhcp, docker, ownership, sysctls
from framegauge.rollout.owners.cni import DIRECT
from framegauge.rollout.preflight.case import LARGE, Case
from framegauge.rollout.preflight.containers import DOCKER
from framegauge.rollout.preflight.devices import carriers, overhead, overlays
from framegauge.rollout.preflight.links import Link

__all__ = ["below", "edits", "found", "of", "shared_text"]


MOST_MENTIONS, MOST_NAMED = 4, 8
OF_PODS = ("cni0", "cbr0", "kube-bridge")  # bridges of which the finding about pods tells
MAKERS = ("boot", "static")  # of routes: those that files name, and not what a router or a daemon tells


def of(case: Case, hold: int | None = None) -> Ownership:
    """Who sets its MTU by the files that could be read. `hold`: the MTU that routes through a gateway keep; None: that
    of the interface before."""
    kept_routes = _kept(case, case.before if hold is None else hold)
    udhcpc = dhcp.udhcpc_takes_it(case.facts.get("udhcpc", ()), case.interface)
    programs = case.programs | ({"udhcpc"} if udhcpc else set())
    return ownership(
        case.files, case.nic(), case.target, programs, kept_routes, case.facts.get("others"), case.beside()
    )


def _kept(case: Case, hold: int) -> Kept | None:
    """The routes through a gateway that do not get the new MTU; None where all do."""
    if case.asked.scope == "all" or case.target <= hold:
        return None
    gateways = []
    for family, routes in ((4, case.facts["routes"]), (6, case.facts["routes6"])):
        for row in routes or []:
            if row.get("dev") != case.interface or "gateway" not in row or row.get("protocol", "boot") not in MAKERS:
                continue
            if (row.get("metrics") or [{}])[0].get("mtu", hold) != hold:
                continue  # an administrator's, which stays
            onlink = "onlink" in row.get("flags", [])
            gateways.append(Via(family, row["dst"], row["gateway"], row.get("metric"), onlink))
    return Kept(hold, tuple(gateways))


def found(case: Case, mine: Ownership) -> Iterator[Finding]:
    """A finding for each that sets another MTU, and one for who manages the interface and says nothing of it."""
    how = {edit.owner: edit.path for edit in mine.edits}
    shared = dict(mine.shared)
    for claim in mine.claims:
        if claim.mtu is None and not claim.lasting:
            text = f"{claim.owner}, which takes what a server tells ({claim.key})"
            yield case.finding("dhcp", "warning", text, str(case.target), dhcp.server_lines(case.target))
        elif claim.mtu is None:
            text = f"{claim.owner} ({claim.place}), which sets no MTU" + (f": {claim.but}" if claim.but else "")
            yield case.finding("owner", "note", text, f"{case.target} there", _remedy(claim, how, shared))
        elif claim.mtu != case.target:
            verb = "sets" if claim.lasting else "is told"
            text = f"{claim.owner}, which {verb} {claim.mtu} ({claim.key} in {claim.place})"
            remedy = _remedy(claim, how, shared)
            if not claim.lasting:
                remedy += f", or {dhcp.server_lines(case.target)}"
            what = "owner" if claim.lasting else "dhcp"
            yield case.finding(what, "warning", text, str(case.target), remedy)
    for claim in mine.of_ipv6:
        if claim.mtu is not None and claim.mtu < case.target:
            text = f"{claim.owner}, which gives IPv6 alone {claim.mtu} ({claim.key} in {claim.place})"
            # A raise of the interface raises that of IPv6, until the file is applied again.
            after = (
                "has {} again when it is next applied"
                if claim.owner == sysctls.OWNER
                else "stays at {} after the raise"
            )
            remedy = f"take it out, or set {case.target} there: else IPv6 {after.format(claim.mtu)}"
            yield case.finding("owner", "warning", text, f"{case.target} or none", remedy)
    for trouble in mine.troubles:
        where, _, rest = trouble.partition(": found ")
        what, _, expected = rest.rpartition(", expected ")
        remedy = "mend it first: its owner may refuse it at the next reload"
        yield case.finding("file", "warning", f"{what} in {where}", expected or "a file of its owner", remedy)
    unread = case.facts["unreadable"]
    if unread:
        text = f"no permission to read {', '.join(unread[:4])}" + (", …" if len(unread) > 4 else "")
        remedy = "log in as root, or look there for an mtu: who owns it is not known"
        yield case.finding("unread", "note", text, "the files of who sets MTUs", remedy)
    elif not mine.claims and not mine.troubles and not mine.mentions:
        searched = "" if case.facts.get("searched", True) else " that could be searched in time"
        mine_only = "" if case.facts.get("as_root", True) else " that this user may read"
        text = f"no config file{searched or mine_only} sets this MTU"
        yield case.finding("owner", "note", text, "", "it is lost at reboot, and when the interface is made anew")
    yield from _mentions(case, mine)
    if mine.pods is not None:
        yield from _pods(case, mine.pods)
    yield from _docker(case)


def _mentions(case: Case, owners: Ownership) -> Iterator[Finding]:
    """Lines of programs that may set it: those that have its name first, and of others a few."""
    mentions = sorted(owners.mentions, key=lambda entry: not entry.is_named)
    named_mentions = [mention for mention in mentions if mention.is_named]
    for entry in named_mentions[:MOST_NAMED] or mentions[:MOST_MENTIONS]:
        text = f"{entry.owner} that is not understood and may set it: {entry.text} ({entry.place})"
        remedy = f"look there: it may set another MTU than {case.target} at the next start"
        expected = f"none, or one that sets {case.target}"
        yield case.finding("program", "warning" if entry.is_named else "note", text, expected, remedy)
    if rest := named_mentions[MOST_NAMED:]:
        places = ", ".join(entry.place for entry in rest[:MOST_NAMED])
        text = f"{len(rest)} more lines that are not understood and may set it: {places}"
        yield case.finding("program", "warning", text, "none", "look there, too")


def below(case: Case) -> Iterator[Finding]:
    """Who keeps less for what the interface stands on: after the next start the kernel takes no more, or a bridge has
    no more. That nobody does is told only where the interface itself has an owner: else nothing of it lasts."""
    lasts = case.target > LARGE and bool(of(case).claims)
    for name, owners in _lower(case):
        least = min((claim for claim in owners.claims if claim.mtu is not None), key=_mtu, default=None)
        after = f"after the next start {case.interface} stays at {LARGE if least is None else least.mtu} else"
        if least is not None:
            text = f"{least.owner}, which sets {least.mtu} for {name} below it ({least.place})"
            path = owners.edits[0].path if owners.edits else least.path
            yield case.finding("owner", "warning", text, f"{case.target} or more", f"change {path}, too: {after}")
        elif lasts and not owners.edits:
            text, remedy = f"nobody who sets an MTU for {name} below it", f"set it where {name} is made: {after}"
            yield case.finding("owner", "warning", text, f"{case.target} or more", remedy)


def edits(case: Case, hold: int | None = None) -> list[Edit]:
    """The changes that have all owners keep it: first for what the interface stands on, the lowest first. A file that
    several of them are in is changed once. `hold`: as for `of`."""
    by_path: dict[str, Edit] = {}
    files = dict(case.files)

    def taken(new_edits: Iterable[Edit]) -> None:
        for edit in new_edits:
            first = by_path.get(edit.path, edit)
            reload = tuple(dict.fromkeys((*first.reload, *edit.reload)))
            by_path[edit.path] = edit if first is edit else replace(first, after=edit.after, reload=reload)
            if edit.after is not None and edit.whole:
                files[edit.path] = edit.after

    if case.target > LARGE:
        for name in [name for name, _ in reversed(list(_lower(case)))]:
            taken(_alone(case, files, name, case.target).edits)
    taken(_alone(case, files, case.interface, hold).edits)
    return list(by_path.values())


def _lower(case: Case) -> Iterator[tuple[str, Ownership]]:
    """What the interface stands on and to which no owner gives as much, the nearest first."""
    for link in carriers(case, case.link):
        owners = _alone(case, case.files, link.name, case.target)
        mtus = [claim.mtu for claim in owners.claims if claim.mtu is not None]
        if not mtus or min(mtus) < case.target:
            yield link.name, owners


def _alone(case: Case, files: Mapping[str, str], interface: str, hold: int | None) -> Ownership:
    """As `of`, of another interface of the host, with other texts of its files."""
    return of(replace(case, interface=interface, facts={**case.facts, "files": files}), hold)


def _mtu(claim: Claim) -> int:
    return claim.mtu or 0


def _pods(case: Case, pods: Pods) -> Iterator[Finding]:
    fits = pods.beneath(case.before, case.target)
    overlay_bytes = max((overhead(case, overlay) or 0 for overlay in overlays(case)), default=0)
    if overlay_bytes and pods.plugin not in DIRECT and (fits is None or pods.mtu is None):
        fits = case.target - overlay_bytes
    most = case.target if fits is None else fits
    if pods.mtu is not None and pods.mtu > most:
        text = f"pods of {pods.plugin} with {pods.mtu} ({pods.path})"
        condition = (
            f"by what an overlay takes below {case.target}: "
            if fits in (None, case.target) and pods.plugin not in DIRECT
            else ""
        )
        remedy = f"lower them first, {condition}{pods.advice(most)}"
        yield case.finding("pods", "refused", text, f"{most} or less", remedy)
        return
    has = "an MTU that it finds by itself" if pods.mtu is None else str(pods.mtu)
    text = f"pods of {pods.plugin} with {has} ({pods.path})"
    if fits is None:
        remedy = f"once all hosts have {case.target}: set that in {pods.plugin}, less what its overlay takes"
        condition = " less what an overlay takes, which their MTU does not tell"
    else:
        remedy = f"once all hosts are {'raised' if case.is_raised else 'changed'}: {pods.advice(fits)}"
        condition = f" less the {case.target - fits} that an overlay takes" if fits < case.target else ""
    yield case.finding("pods", "note", text, f"{case.target}{condition}", remedy)


def _docker(case: Case) -> Iterator[Finding]:
    """Containers that have, or that the daemon makes with, more than the host is to have: each large datagram of theirs
    is cut or refused by the host itself."""
    target, make = case.target, "and make the containers anew"
    mtu, line = docker.largest(case.files) or (0, 0)
    if mtu > target:
        text = f"containers of Docker with {mtu} ({docker.DAEMON}:{line})"
        remedy = f"lower them first: {target} there, then restart dockerd, {make}"
        yield case.finding("containers", "warning", text, f"{target} or less", remedy)
    for link in _larger_bridges(case):
        text, how = f"Docker's network {link.name} with {link.mtu}", f"-o com.docker.network.driver.mtu={target}"
        remedy = f"lower it first: make it with {how}, {make}"
        if link.name == docker.BRIDGE:
            remedy = f'lower it first: "mtu": {target} in {docker.DAEMON}, then restart dockerd, {make}'
            if mtu > target:
                continue  # told by its file
        elif not DOCKER.fullmatch(link.name):
            text = f"guests behind the bridge {link.name} with {link.mtu}"
            remedy = "lower them and it first: the host refuses their large datagrams, which TCP alone takes for a size"
        yield case.finding("containers", "warning", text, f"{target} or less", remedy)


def _larger_bridges(case: Case) -> Iterator[Link]:
    """Docker's, and where the host forwards, others with guests alone: those with more than it is to have."""
    forwards = case.sysctl("net.ipv4.ip_forward") == "1"
    for link in (case.links.get(name) for name in case.links.names()):
        if link is None or link.mtu <= case.target or link.name in (case.interface, *OF_PODS):
            continue
        has_guests = link.kind == "bridge" and bool(case.links.ports(link.name)) and not case.links.outward(link.name)
        if DOCKER.fullmatch(link.name) or (forwards and has_guests):
            yield link


def shared_text(path: str, names: Sequence[str]) -> str:
    """What to do about a file that means other interfaces as well."""
    others = ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
    return f"{path} means {others} as well, and is not changed: give this interface one of its own, that comes first"


def _remedy(claim: Claim, how: dict[str, str], shared: Mapping[str, Sequence[str]]) -> str:
    owner = {"DHCP": "networkd"}.get(claim.owner, claim.owner)
    path = how.get("netplan") or how.get(owner)
    if path is None and claim.path in shared:
        return shared_text(claim.path, shared[claim.path])
    if path is None:
        return f"set the MTU in {claim.path}"
    return f"change {path}; the lines are below (changes)"
