"""Faults that routers report by ICMP errors, reports that packets disprove, and errors that do not reach a sender."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence

from framegauge.check.judgement import remedies
from framegauge.check.judgement.case import SPARE_BYTES, Case
from framegauge.check.judgement.document import Filter, Interface, Pair, Told, Trace
from framegauge.check.judgement.findings import Command, Finding, Key
from framegauge.check.judgement.hops import Node, last_arrival, told_by_trace
from framegauge.check.judgement.lengths import rule_text

__all__ = ["bridged_tunnel", "explains", "false_reports", "own_filters", "reports", "routers"]


MOST_WAYS = 4  # next hops of a router whose commands are spelled out
ADAPTS = "TCP adapts to the smaller size. "
GUESS = "The error names no MTU, as RFC 1191 asks for: the sender has to guess one, which may be far smaller."


def reports(pair: Pair, target: int) -> list[Told]:
    """What was said about this pair, during the search or the traces, each once."""
    messages = list(pair.told)
    for trace in pair.traces:
        message = told_by_trace(trace)
        if message is not None and message[0] is not None and all(message[0] != report.address for report in messages):
            messages.append(Told(message[0], message[1], 1))
    # Who names the target or more, and refuses less, has refused it all the same.
    return [
        report for report in messages
        if (report.mtu is None or report.mtu < target or _excess([pair], report.mtu)) and not pair.is_disproved(report)
    ]  # fmt: skip


def explains(pair: Pair, mtu: int | None) -> bool:
    """Whether what was said is why: nothing smaller was measured, or what is smaller was refused as well."""
    return mtu is None or pair.path_mtu is None or pair.path_mtu >= mtu or _excess([pair], mtu) > 0


def _excess(pairs: Iterable[Pair], mtu: int | None) -> int:
    """By how much a report is too large: what is larger than passes was refused, though the MTU named would let it."""
    sizes = [
        mtu - pair.path_mtu for pair in pairs
        if mtu is not None and pair.path_mtu is not None and pair.verdict == "too_small" and not pair.fragmented
        and all(report.mtu is None or report.mtu >= mtu for report in pair.told)
    ]  # fmt: skip
    return max(sizes, default=0)


def bridged_tunnel(case: Case, pair: Pair, told: Told) -> Interface | None:
    """The tunnel of the sender that said so, in the name of the far end, as Linux's do behind a bridge
    (`skb_tunnel_check_pmtu`): what it runs over leaves just that size. None for any other error."""
    if told.address != pair.destination_address or told.mtu is None:
        return None
    host = case.mesh.host(pair.source)
    for tunnel in host.interfaces:
        parent = host.interface(tunnel.parent)
        if tunnel.overhead is None or not tunnel.up or parent is None:
            continue
        if parent.mtu - tunnel.overhead == told.mtu:
            return tunnel
    return None


def routers(case: Case) -> None:
    """`router_too_small`: one finding a router and size; `icmp_filtered` where only other senders get its errors."""
    groups: dict[tuple[str, int | None], dict[Key, Pair]] = defaultdict(dict)
    for pair in case.faults.values():
        for report in reports(pair, case.mesh.target):
            if report.address is not None and bridged_tunnel(case, pair, report) is None:
                groups[report.address, report.mtu][pair.key] = pair
    for (address, mtu), members in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or -1)):
        pairs = [pair for key, pair in members.items() if (address, mtu, key) not in case.led]
        owner = case.mesh.owners.get(address)
        if _is_of_network(case, owner, mtu, pairs):
            continue
        flows = [
            report.flows for pair in pairs for report in pair.told if (report.address, report.mtu) == (address, mtu)
        ]
        size = "that packets are too big, and no size," if mtu is None else f"a link MTU of {mtu} bytes"
        heard = f", for {sum(flows)} of {sum(pair.probed for pair in pairs)} flows" if flows else ""
        evidence = [
            f"Router {address} reports {size} in ICMP errors, for {remedies.count_of(len(pairs), 'pair')}{heard}."
        ]
        evidence += case.remarks(pairs, mtu)
        wrong = _wrong(pairs, mtu)
        evidence += [wrong] if wrong else []
        back = _reverse(case, pairs, mtu)
        unheard = _unheard(case, back, mtu)
        evidence += [unheard] if unheard else []
        limit = min((pair.path_mtu for pair in pairs if pair.path_mtu is not None and explains(pair, mtu)), default=mtu)
        has_room = remedies.has_room(case.mesh, address, case.mesh.target)
        why = "the MTU of a route there is smaller than its interfaces'" if has_room else "its next link is smaller"
        too_big = "large packets" if limit is None else f"packets above {limit if wrong or mtu is None else mtu} bytes"
        case.add(
            Finding.about(
                "router_too_small", f"router {address}" + ("" if owner is None else f" (host {owner})"),
                [] if owner is None else [owner], [pair.key for pair in [*pairs, *back]], " ".join(evidence),
                f"Router {address} drops {too_big} and returns an ICMP error, because {why}. "
                f"{'' if wrong else _of_tcp(pairs, address, mtu)}Applications and tunnels that send large UDP packets "
                "with DF set fail."
                + "".join(f" {text}" for text in (wrong, unheard, _some(pairs), GUESS if mtu is None else "") if text),
                commands=(
                    *_raise(case, address, pairs, mtu),
                    *_other_ends(case, address, back, mtu),
                ),
                ask=f"What is the MTU of router {address} on its link towards the destination, and should it be "
                f"{case.mesh.target}?",
                place=address, spot=Node(False, address), limit=limit,
            ),
            [pair.key for pair in [*pairs, *back] if explains(pair, mtu)],
        )  # fmt: skip
        _filtered(case, address, mtu)


def _is_of_network(case: Case, owner: str | None, mtu: int | None, pairs: Iterable[Pair]) -> bool:
    """Whether the router is a host of the destinations' own network, which is small as a whole: that is known."""
    return all(
        any(case.ways(pair)[1] in subnets and owner in hosts and mtu == size for subnets, size, hosts in case.networks)
        for pair in pairs
    )


def _raise(case: Case, address: str, pairs: Sequence[Pair], mtu: int | None) -> tuple[Command, ...]:
    """What raises the link that the router refused packets for: of several equal paths to one destination, the one by
    which they would have gone on."""
    traces = [trace for pair in pairs for trace in pair.traces]
    hops = {_next(trace, address) for trace in traces} - {None, address}
    ways: list[str | None] = sorted(hops, key=str)[:MOST_WAYS]
    if not ways or remedies.has_room(case.mesh, address, case.mesh.target):
        ways = [pairs[0].destination_address]
    target = case.mesh.target
    commands = [command for way in ways for command in remedies.raise_router(case.mesh, address, target, way, mtu)]
    return tuple(dict.fromkeys(commands))


def _next(trace: Trace, address: str) -> str | None:
    """The hop behind the link that the router refused the trace's packets for, if it answered a small one."""
    refused = next((index for index, hop in enumerate(trace.hops) if hop.large == "too_big"), 0)
    # Where the hop before took the large packet in, the first that is refused would have been the very next.
    if not refused or trace.hops[refused - 1].large != "expired" or trace.hops[refused].large_address != address:
        return None
    hop, before = trace.hops[refused], {earlier_hop.address for earlier_hop in trace.hops[:refused]}
    return hop.small_address if hop.small == "expired" and hop.small_address not in before else None


def _some(pairs: Iterable[Pair]) -> str:
    """That other flows take another path; empty if all of them meet the router's small link."""
    partial_pairs = [pair for pair in pairs if pair.is_partial]
    bad, probed = sum(pair.bad for pair in partial_pairs), sum(pair.probed - pair.unknown for pair in partial_pairs)
    between = f"from {remedies.pairs_text(partial_pairs)}"
    share = remedies.share_text(bad, probed)
    return f"Only some flows {between} take that link, {share}: the others take another path." if partial_pairs else ""


def _of_tcp(pairs: Iterable[Pair], address: str, mtu: int | None) -> str:
    """What TCP makes of the errors: where few flows get one, it may wait for one in vain."""
    silent = [pair for pair in pairs if pair.verdict == "black_hole" and explains(pair, mtu)]
    bad = sum(pair.bad for pair in silent)
    heard = sum(
        report.flows for pair in silent for report in pair.told if (report.address, report.mtu) == (address, mtu)
    )
    if heard >= bad:
        return ADAPTS
    return (
        f"Its errors are rare: they reached {heard} of {bad} flows whose packets were lost. TCP adapts where an error "
        "reaches it, and may stall until then. "
    )


def _wrong(pairs: Iterable[Pair], mtu: int | None) -> str:
    """That the router names more than it lets pass; empty if it does not."""
    excess = _excess(pairs, mtu)
    if not excess or mtu is None:
        return ""
    return (
        f"The report is wrong by {excess}: packets above {mtu - excess} bytes are refused as well, with the same "
        f"{mtu}. TCP falls to {mtu} and stalls there."
    )


def _reverse(case: Case, pairs: Sequence[Pair], mtu: int | None) -> list[Pair]:
    """The other directions of these pairs that lose the same size silently, on the same link as far as traces tell."""
    ways = []
    for pair in pairs:
        back = case.open.get((pair.destination, pair.source, pair.family))
        if back is None or back.told or back.is_partial or back.is_one_ended or mtu is None or back.path_mtu is None:
            continue
        if mtu <= back.path_mtu <= mtu + SPARE_BYTES and not case.filters(back) and _crosses(pair, back):
            ways.append(back)
    return ways


def _crosses(pair: Pair, back: Pair) -> bool:
    """Whether what `back` loses may be lost on the link of which a router has told `pair`, from its other end."""
    link = _link(pair, back)
    return link is not None and all(
        (trace.hops[last].ttl if (last := last_arrival(trace)) >= 0 else 0) < link
        and not any(hop.ttl < link and hop.small == "expired" and hop.large == "silent" for hop in trace.hops)
        for trace in back.traces
    )


def _link(pair: Pair, back: Pair) -> int | None:
    """The TTL with which packets of `back` come out of the link that a router told `pair` of; None if nobody knows.

    A packet that a router refuses had a TTL for the hop behind the link."""
    refused = [hop.ttl for trace in pair.traces for hop in trace.hops if hop.large == "too_big"]
    tellers = {report.address for report in pair.told} - {None}
    refused += [hop.ttl + 1 for trace in pair.traces for hop in trace.hops if hop.address in tellers]
    ends = [hop.ttl for trace in (*pair.traces, *back.traces) for hop in trace.hops if hop.small == "delivered"]
    return min(ends) - min(refused) + 1 if refused and ends else None


def _unheard(case: Case, back: Sequence[Pair], mtu: int | None) -> str:
    """What it means that the other direction hears nothing; empty if it does, or was not measured."""
    if not back:
        return ""
    senders = remedies.host_names(pair.source for pair in back)
    addresses = remedies.listing(pair.source_address or pair.source for pair in back)
    lost = (
        f"The same link loses what is above {mtu} bytes in the other direction, too ({remedies.pairs_text(back)}), and "
        f"no ICMP error reaches {senders}: "
    )
    if all(_link(case.mesh.by_key[pair.destination, pair.source, pair.family], pair) == 1 for pair in back):
        return (
            f"{lost}the far end of the link does not take such frames in, and nobody is told of that. TCP in that "
            "direction stalls."
        )
    return (
        f"{lost}the smaller end drops what comes in, of which nobody is told; or the error is filtered, or goes to "
        f"another machine that has the address {addresses} (anycast, ECMP or a load balancer, RFC 7690). TCP in that "
        "direction stalls."
    )


def _other_ends(case: Case, address: str, back: Sequence[Pair], mtu: int | None) -> tuple[Command, ...]:
    """For routers that send into the link from its other end, and pass no more than the one that reports it: what comes
    to that one with spare bytes has left a larger MTU. Raised at one end alone, the link would lose in silence what it
    refuses with an error now. One that tells this sender nothing is known by what the reporting end's traces met."""
    ends, far = set(), set()
    for pair in (pair for pair in back if pair.path_mtu == mtu):
        forward = case.mesh.by_key[pair.destination, pair.source, pair.family]
        link = _link(forward, pair)
        heard = {
            (hop.address or "", pair.destination_address)
            for trace in pair.traces
            for hop in trace.hops
            if link is not None and hop.ttl == link - 1 and hop.large == "expired"
        }
        ends |= heard
        far |= set() if heard else {_next(trace, address) for trace in forward.traces} - {None, address}
    return tuple(
        command for end, towards in sorted(ends, key=str)
        for command in remedies.raise_router(case.mesh, end, case.mesh.target, towards, mtu)
    ) + tuple(
        command for hop in sorted(far, key=str)
        for command in remedies.raise_far(case.mesh, Node(False, str(hop)), case.mesh.target)
    )  # fmt: skip


def false_reports(case: Case) -> None:
    """`false_too_big`: somebody names an MTU, and larger packets arrive."""
    groups: dict[tuple[str, int], list[Pair]] = defaultdict(list)
    for pair in case.mesh.pairs:
        for report in pair.told:
            if report.address is not None and report.mtu is not None and pair.is_disproved(report):
                groups[report.address, report.mtu].append(pair)
    for (address, mtu), pairs in sorted(groups.items()):
        arrived = min(pair.path_mtu or 0 for pair in pairs)
        senders = remedies.host_names(pair.source for pair in pairs)
        evidence = (
            f"{address} reports for {remedies.count_of(len(pairs), 'pair')} that packets above {mtu} are too big, "
            f"and packets of {arrived} bytes arrive all the same: the report is false. TCP believes it: the kernel of "
            f"{senders} lowers its path MTU to {mtu}, or to its own least, until the entry expires."
        )
        flags = dict.fromkeys("" if pair.family == 4 else "-6 " for pair in pairs)
        case.add(
            Finding.about(
                "false_too_big", f"router {address}", [], [pair.key for pair in pairs], evidence, evidence,
                commands=tuple(
                    Command(f"ip {flag}route flush cache", senders, "forget it; it returns with the next report")
                    for flag in flags
                ),
                advice="Mend the device that reports it: it forwards what it says it cannot.",
                ask=f"Why does {address} report an MTU of {mtu} for packets that it, or a device beside it, forwards?",
                facts=(("MTU that is reported", f"{mtu} bytes"), ("Largest packet that arrives", f"{arrived} bytes")),
            )
        )  # fmt: skip


def own_filters(case: Case) -> None:
    """`icmp_filtered` at the sender: a rule of its own keeps from it what routers say. Whether they do is not known."""
    groups: dict[tuple[str, int, int | None], list[Pair]] = defaultdict(list)
    for pair in case.open.values():
        ways = case.ways(pair)
        # Within a subnet there is no router that could say anything.
        if ways[0] != ways[1] and pair.verdict == "black_hole" and not pair.is_one_ended and case.filters(pair):
            groups[pair.source, pair.family, pair.path_mtu].append(pair)
    for (name, family, limit), pairs in sorted(groups.items(), key=str):
        rules = case.filters(pairs[0])
        rule, on = rules[0], f"host {name}"
        what = remedies.listing(rule_text(entry) for entry in rules)
        lost = remedies.sizes_text(limit)
        places = sorted({entry for pair in pairs for entry in case.segments[pair.key]})
        at = f" Traces place the loss {places[0].text(case.mesh)}." if len(places) == 1 else ""
        text = (
            f"Host {name} drops ICMP errors by a rule of its own ({what}), so that it cannot hear a router whose link "
            f"is too small: {lost} from {remedies.pairs_text(pairs)} (IPv{family}), and whether a router reports it is "
            "not known."
        )
        case.add(
            Finding.about(
                "icmp_filtered", f"the firewall of host {name}", [name], [pair.key for pair in pairs],
                f"{text}{at} The rule set was read from the host.", f"{text}{at} {remedies.STALLS}",
                commands=_let_in(rule, family, on),
                advice="Then check again: a router that reports its small link is named, one that is silent as well.",
                spot=places[0] if len(places) == 1 else None,
                facts=(("Rule that drops ICMP errors", what),),
            ),
            [pair.key for pair in pairs],
        )  # fmt: skip


def _let_in(rule: Filter, family: int, on: str) -> tuple[Command, ...]:
    """What lets a router's errors in, before the rule that drops them, and shows that."""
    look = "look at the rule that drops them"
    if rule.by_iptables:
        program = "iptables" if rule.ip_version == 4 else "ip6tables"
        table, chain = f"{program} -t {shlex.quote(rule.table)}", shlex.quote(rule.chain)
        error = "icmp --icmp-type fragmentation-needed" if family == 4 else "icmpv6 --icmpv6-type packet-too-big"
        return (
            Command(f"{table} -I {chain} -p {error} -j ACCEPT", on, "let them in", family),
            Command(f"{table} -S {chain}", on, look, family),
        )
    words = shlex.join((rule.family, rule.table, rule.chain))
    return (
        Command(f"nft insert rule {words} {remedies.too_big(family)} accept", on, "let them in", family),
        Command(f"nft --handle list chain {words}", on, look, family),
    )


def _filtered(case: Case, address: str, mtu: int | None) -> None:
    """Silence behind a router that sent errors to others: those for these senders are lost on the way."""
    silent = [
        pair for key, pair in case.open.items()
        if pair.path_mtu == mtu and mtu is not None
        and any(not segment.after.is_host and segment.after.name == address for segment in case.segments[key])
    ]  # fmt: skip
    if not silent:
        return
    silent += case.alike(silent)
    senders = remedies.host_names(pair.source for pair in silent)
    evidence = (
        f"Router {address} reports a link MTU of {mtu} bytes to other senders. {remedies.sentence(senders)} received "
        f"no ICMP error, although packets above {mtu} bytes are lost behind the same router for "
        f"{remedies.count_of(len(silent), 'pair')}."
    )
    case.add(
        Finding.about(
            "icmp_filtered", f"between router {address} and {senders}", [pair.source for pair in silent],
            [pair.key for pair in silent], evidence,
            f"Router {address} has a link of {mtu} bytes and reports this to other senders, but its ICMP errors do "
            f"not reach {senders}. {remedies.STALLS}",
            commands=remedies.allow_too_big(silent[0].family),
            ask=f"What filters ICMP (type 3 code 4, ICMPv6 type 2) from router {address} to {senders}?",
            place=address, spot=Node(False, address),
        ),
        [pair.key for pair in silent],
    )  # fmt: skip
