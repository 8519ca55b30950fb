"""Readings of hosts that do not fit the measurements: mostly no faults of the path, but worth knowing."""

from __future__ import annotations

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable

from framegauge.check.judgement import remedies, sealed
from framegauge.check.judgement.case import Case
from framegauge.check.judgement.document import Clamp, Interface, Pair
from framegauge.check.judgement.findings import Command, Finding
from framegauge.check.judgement.lengths import line_words

__all__ = [
    "caches",
    "clamped",
    "differing",
    "discovery",
    "mismatched_tunnels",
    "unavailable",
    "undecided",
]

# IP and TCP headers without options, which an announced MSS leaves out of the MTU (RFC 9293, RFC 8200).
MSS_HEADERS = {4: 52, 6: 72}  # IP, TCP and timestamps
MSS_SLACK = 40  # options, or a tunnel that the announcing host knows of
# TCP sends no segment above half of the largest window that it was offered: 65535 in a SYN, whatever the scale
# (tcp_bound_to_half_wnd of Linux). That is the kernel's own limit, and nobody's clamp.
HALF_WINDOW = 65_535 // 2
OF_PROGRAM = (
    "The program of the tunnel may do it, as OpenVPN does (mssfix), so that TCP fits one packet outside: leave it, "
    "unless the path outside carries more."
)
MOST_ODD = 4  # interfaces that differ whose commands are spelled out
_OF_TUNNELS = ("overlay_overhead", "outer_fragmented")
_OWN_INTERFACE = ("host_interface_too_small", "nic_maximum_too_small", "overlay_overhead")


def caches(case: Case) -> None:
    """`stale_path_mtu` where the kernel's cache has the size, `route_mtu_too_small` otherwise."""
    groups: dict[tuple[str, int, int, str | None], list[Pair]] = defaultdict(list)
    for pair in case.mesh.pairs:
        if pair.route_mtu is None or pair.path_mtu is None or pair.verdict in ("unreachable", "unknown"):
            continue
        if pair.route_mtu < pair.path_mtu:
            cached = (pair.destination_address, pair.route_mtu) in case.mesh.host(pair.source).path_mtu_cache
            own = _ipv6_mtu(case, pair) == pair.route_mtu and not cached
            # Its own tunnel has told the kernel: TCP does well to keep to it, since what is larger is cut outside.
            if not cached and pair.route_mtu in case.mesh.host(pair.source).leaves(case.mesh.sender(pair)):
                continue
            kind = "stale_path_mtu" if cached else "route_mtu_too_small"
            groups[kind, pair.route_mtu, pair.family, pair.interface if own else None].append(pair)
    for (kind, mtu, family, own_ipv6), pairs in sorted(
        groups.items(), key=lambda group: (*group[0][:3], str(group[0]))
    ):
        sources = {pair.source for pair in pairs}
        measured = sorted({pair.path_mtu for pair in pairs if pair.path_mtu is not None})
        sizes = f"{measured[0]}" if len(measured) == 1 else f"{measured[0]} to {measured[-1]}"
        flag, advice = ("" if family == 4 else "-6 "), ""
        summary = (
            f"The kernel of {remedies.host_names(sources)} uses a route MTU of {mtu} bytes, but the path carries "
            f"{sizes}. TCP sends no packets above the route MTU, so it does not benefit from the larger path."
        )
        if kind == "stale_path_mtu":
            cause = "The size is in the kernel's cache of path MTUs, from an ICMP error in the past."
            advice = "The entry expires by itself after 600 s unless net.ipv4.route.mtu_expires says otherwise."
            commands: tuple[Command, ...] = (Command(f"ip {flag}route flush cache", remedies.host_names(sources)),)
        elif own_ipv6 is not None:
            setting = f"net.ipv6.conf.{own_ipv6.replace('.', '/')}.mtu"
            cause = (
                f"It is the MTU of {own_ipv6} for IPv6 alone ({setting}), as a router announces it or somebody set it."
            )
            advice = f"Have the router announce {measured[0]}, or refuse its MTU (accept_ra_mtu=0)."
            commands = (Command(f"sysctl -w {setting}={measured[0]}", remedies.host_names(sources), "", 6),)
        else:
            cause = "The kernel's cache of path MTUs does not have it: a route sets it, or the interface changed since."
            commands = remedies.show_routes(pairs)
            advice = (
                f"Remove the mtu of that route, or set it to {measured[0]} with `ip {flag}route change`, in the table "
                "that the route is in."
            )
        evidence = (
            f"The kernel of {remedies.host_names(sources)} uses a route MTU of {mtu} bytes for "
            f"{remedies.count_of(len(pairs), 'pair')}; the measured path MTU is {sizes}. {cause}"
        )
        case.add(
            Finding.about(
                kind, f"routes of {remedies.host_names(sources)}", sources, [pair.key for pair in pairs], evidence,
                f"{summary} {cause}", advice=advice, commands=commands,
                facts=(("Route MTU (kernel)", f"{mtu} bytes"), ("Path MTU (measured)", f"{sizes} bytes")),
            )
        )  # fmt: skip


_Rules = tuple[tuple[str, Clamp], ...]  # a host, and a rule that it has


def _ipv6_mtu(case: Case, pair: Pair) -> int | None:
    """The MTU that the sender's interface has for IPv6, where that is less than its own."""
    host = case.mesh.host(pair.source)
    interface = host.interface(pair.interface)
    if pair.family != 6 or interface is None:
        return None
    text = host.sysctls.get(f"net.ipv6.conf.{interface.name.replace('.', '/')}.mtu", "")
    return int(text) if text.isdigit() and int(text) < interface.mtu else None


def clamped(case: Case) -> None:
    """`mss_clamped`: TCP sends less than both what the far end has announced and what this end's route allow."""
    groups: dict[tuple[int, int, bool], list[tuple[Pair, _Rules]]] = defaultdict(list)
    for pair in case.mesh.pairs:
        tcp = pair.tcp or {}
        used, announced, route = (tcp.get(f"{name}_bytes") for name in ("mss", "peer_announced_mss", "route_mtu"))
        if not tcp.get("connected") or used is None or announced is None or route is None:
            continue
        if HALF_WINDOW - MSS_SLACK <= used <= HALF_WINDOW < announced:
            continue
        # All are after options; with other options than timestamps they differ by a few bytes.
        if used + MSS_SLACK < min(announced, route - MSS_HEADERS[pair.family]):
            rules = _rules(case, pair, used)
            groups[used, pair.family, any(rule.to == "size" for _, rule in rules)].append((pair, rules))
    for (mss, family, explained), clamped_pairs in sorted(groups.items(), key=lambda group: group[0]):
        _clamp(case, mss, family, explained, clamped_pairs)


def _clamp(case: Case, mss: int, family: int, explained: bool, clamped_pairs: list[tuple[Pair, _Rules]]) -> None:
    pairs = [pair for pair, _ in clamped_pairs]
    rules = tuple({rule for _, some in clamped_pairs for rule in some})
    mtu = mss + MSS_HEADERS[family]
    receivers = {pair.destination for pair in pairs}
    masked = [pair for pair in pairs if pair.is_fault and pair.path_mtu is not None and pair.path_mtu >= mtu]
    announced = sorted({(pair.tcp or {})["peer_announced_mss_bytes"] for pair in pairs})
    if masked:
        faults = "a fault" if len(masked) == 1 else "faults"
        effect = (
            f"This hides {faults} of the path: TCP stays below {min(pair.path_mtu or 0 for pair in masked)} bytes, "
            "but UDP and tunnels do not."
        )
    else:
        effect = "TCP therefore never uses the size that the path carries."
    evidence = (
        f"For {remedies.count_of(len(pairs), 'pair')} (IPv{family}) TCP uses an MSS of {mss}, which fits an MTU of "
        f"{mtu}; {remedies.host_names(receivers)} would announce more.{_rules_text(rules)} {effect}"
    )
    where, commands, ask = _where_clamped(rules if explained else (), receivers)
    advice = "First repair what the clamp hides, then remove it." if masked else ""
    by = "a router, a firewall or a rule on a host"
    if not rules and (tunnels := sealed.clamping(case.mesh.sender(pair) for pair in pairs)):
        where, commands, ask, advice = f"tunnel {tunnels} of {remedies.host_names(receivers)}", (), None, OF_PROGRAM
        by = f"{by}, or the program of the tunnel,"
    hosts = {pair.source for pair in pairs} | receivers
    case.add(
        Finding.about(
            "mss_clamped", where, hosts, [pair.key for pair in pairs], evidence,
            f"TCP to {remedies.host_names(receivers)} uses a smaller MSS than both ends allow: {by} reduces "
            f"it.{_rules_text(rules)} {effect}",
            advice=advice, commands=commands, ask=ask,
            facts=(
                ("MSS in use", f"{mss} bytes"), ("MTU that this MSS fits", f"{mtu} bytes"),
                ("MSS that the receiver announces", f"{remedies.listing(map(str, announced))} bytes"),
            ),
        )
    )  # fmt: skip


def _rules(case: Case, pair: Pair, used: int) -> _Rules:
    """The rules of either end that set this MSS; if there is none, those whose size is not known.

    One that clamps to the route's MTU is not among them: TCP itself neither announces nor sends more than that.
    """
    ends = [(name, rule) for name in (pair.source, pair.destination) for rule in case.mesh.host(name).clamps]
    ends = [(name, rule) for name, rule in ends if rule.is_for(pair.family)]
    fitting = [
        (name, rule) for name, rule in ends
        if rule.to == "size" and rule.mss is not None and used <= rule.mss <= used + MSS_SLACK
    ]  # fmt: skip
    return tuple(fitting or ((name, rule) for name, rule in ends if rule.to == "unknown"))


def _rules_text(rules: _Rules) -> str:
    texts = [
        f"chain {rule.chain} of table {rule.family} {rule.table} on host {name} "
        + (f"sets {rule.mss}" if rule.to == "size" else "may do it: nft does not show the size that it sets")
        for name, rule in rules
    ]
    return f" {remedies.sentence(remedies.listing(texts))}." if texts else ""


def _where_clamped(rules: _Rules, receivers: set[str]) -> tuple[str, tuple[Command, ...], str | None]:
    """Where the clamp is, how to go on, and what to ask; without a rule that explains it, it may be anywhere."""
    if not rules:
        on = "the hosts, and routers that run Linux"
        look = (
            "nft list ruleset | grep -i maxseg",
            "iptables -t mangle -S | grep -i TCPMSS",
            "ip route show table all | grep advmss",
        )
        return (
            f"on the path to {remedies.host_names(receivers)}, or at that end",
            tuple(Command(run, on, "look for the rule") for run in look),
            "Which router or firewall clamps the MSS of TCP, and may that rule go once the path is repaired?",
        )
    _, rule = min(rules, key=lambda entry: (entry[0], entry[1].family, entry[1].table, entry[1].chain))
    having = remedies.host_names(name for name, entry in rules if entry == rule)
    if rule.line is not None:
        by_line = sorted({(entry.line or "", name): entry for name, entry in rules if entry.line}.items())
        commands = [command for (_, name), entry in by_line for command in _of_iptables(entry, f"host {name}")]
        return remedies.host_names(name for name, _ in rules), tuple(commands[:MOST_ODD]), None
    words = shlex.join((rule.family, rule.table, rule.chain))
    return (
        remedies.host_names(name for name, _ in rules),
        (
            Command(f"nft --handle list chain {words}", having, "find the handle N of the rule, then delete it"),
            Command(f"nft delete rule {words} handle N", having, "find the handle N of the rule, then delete it"),
        ),
        None,
    )


def _of_iptables(rule: Clamp, on: str) -> tuple[Command, ...]:
    table = f"{'ip6tables' if rule.family == 'ip6' else 'iptables'} -t {shlex.quote(rule.table)}"
    words, look = line_words(rule.line), "see the rule"
    deleted = () if words is None else (Command(f"{table} -D {words}", on, "delete it"),)
    return (Command(f"{table} -S {shlex.quote(rule.chain)}", on, look), *deleted)


def differing(case: Case) -> None:
    """`mtu_differs`: interfaces in one subnet whose MTUs are not the same, unless a fault already names the host."""
    named = {host for finding in case.findings if finding.kind in _OWN_INTERFACE for host in finding.hosts}
    by_subnet: dict[str, dict[tuple[str, str], Interface]] = defaultdict(dict)
    for pair in case.mesh.pairs:
        for name, address in ((pair.source, pair.source_address), (pair.destination, pair.destination_address)):
            interface = case.mesh.host(name).holding(address)
            if interface is not None:
                by_subnet[case.mesh.group(name, address)][name, interface.name] = interface
    reported: set[tuple[str, str]] = set()
    for subnet, held in sorted(by_subnet.items()):
        counts = Counter(interface.mtu for interface in held.values())
        usual, most = counts.most_common(1)[0]
        clear = 2 * most > len(held)
        odd = {key: interface for key, interface in held.items() if interface.mtu != usual or not clear}
        odd = {key: interface for key, interface in odd.items() if key[0] not in named and key not in reported}
        # Where a fault names all that would have to change, there is nothing else to say: nor of those that have the
        # target already, where most have less and are named.
        small = {name for (name, _), interface in held.items() if interface.mtu < case.mesh.target}
        if small and small <= named:
            odd = {key: interface for key, interface in odd.items() if interface.mtu != case.mesh.target}
        if len(counts) < 2 or {interface.mtu for interface in odd.values()} <= {usual if clear else max(counts)}:
            continue
        reported |= set(odd)
        names = {name for name, _ in odd}
        read = remedies.listing(
            f"{interface.name} of {name} has an MTU of {interface.mtu}" for (name, _), interface in odd.items()
        )
        rest = f"; {most} of {len(held)} interfaces there have {usual}" if clear else ""
        expected_mtu = usual if clear else max(counts)
        commands = [
            command for (name, _), interface in sorted(odd.items()) if interface.mtu != expected_mtu
            for command in remedies.raise_mtu(case.mesh.host(name), interface, expected_mtu)
        ]  # fmt: skip
        case.add(
            Finding.about(
                "mtu_differs", f"{remedies.host_names(names)} in {subnet}", names, [], f"{read}{rest}.",
                f"The interfaces in subnet {subnet} do not have the same MTU: {read}{rest}. A host with a larger MTU "
                "sends packets that its neighbours may drop.",
                commands=tuple(commands[:MOST_ODD]),
                advice=f"Set the same MTU on all hosts and switch ports of {subnet}.",
                ask=f"Which MTU is subnet {subnet} meant to have? All hosts need the same.",
            )
        )  # fmt: skip


def mismatched_tunnels(case: Case) -> None:
    """`tunnel_mtu_mismatch`: by readings alone, a tunnel is larger than what it runs over, or fits another device."""
    named = {host for entry in case.findings if entry.kind in _OF_TUNNELS for host in entry.hosts}
    groups: dict[str, list[tuple[str, Interface, int]]] = defaultdict(list)
    for host in case.mesh.hosts.values():
        for tunnel in host.interfaces:
            parent = host.interface(tunnel.parent)
            if tunnel.overhead is None or parent is None or not tunnel.up or parent.name == tunnel.name:
                continue
            fits = parent.mtu - tunnel.overhead
            others = [entry for entry in host.interfaces if entry.name not in (tunnel.name, parent.name)]
            other = next((entry for entry in others if entry.mtu - tunnel.overhead == tunnel.mtu), None)
            if (tunnel.mtu > fits or (tunnel.mtu < fits and other is not None)) and host.name not in named:
                why = f"{tunnel.name} has an MTU of {tunnel.mtu}, but its parent {parent.name} has {parent.mtu}: with "
                why += f"{tunnel.overhead} bytes of overhead, {fits} bytes fit."
                if other is not None:
                    why += f" It fits {other.name} ({other.mtu}): the tunnel was probably sized for the wrong device."
                groups[why].append((host.name, tunnel, fits))
    for why, group in sorted(groups.items()):
        names = {name for name, _, _ in group}
        _, tunnel, fits = group[0]
        text = f"On {remedies.host_names(names)} {why}"
        run = f"ip link set dev {shlex.quote(tunnel.name)} mtu {max(fits, 68)}"
        case.add(
            Finding.about(
                "tunnel_mtu_mismatch", f"tunnel {tunnel.name} of {remedies.host_names(names)}", names, [], text, text,
                advice="Or raise the interface below it. If overlay software sets the MTU, change it there.",
                commands=(Command(run, remedies.host_names(names)),),
            )
        )  # fmt: skip


def discovery(case: Case) -> None:
    """`tcp_probing_off` at hosts that send into a black hole; `path_mtu_discovery_off` anywhere."""
    holes = [pair for pair in case.mesh.pairs if pair.verdict == "black_hole"]
    senders = {
        pair.source for pair in holes
        if case.mesh.host(pair.source).sysctls.get("net.ipv4.tcp_mtu_probing") == "0"
    }  # fmt: skip
    if senders:
        names = remedies.host_names(senders)
        sends = "sends" if len(senders) == 1 else "send"
        # What one end alone measured are echoes, which a filter may drop.
        proved = any(pair.source in senders and not pair.is_one_ended for pair in holes)
        may = "" if proved else "may "
        text = (
            f"{remedies.sentence(names)} {may}{'send' if may else sends} into a black hole, and "
            f"net.ipv4.tcp_mtu_probing is 0: TCP connections that send full-size segments {may}stall until they "
            "time out."
        )
        case.add(
            Finding.about(
                "tcp_probing_off", names, senders, [pair.key for pair in holes if pair.source in senders], text, text,
                advice="With probing TCP finds a working size after some timeouts. The path stays broken.",
                commands=(Command("sysctl -w net.ipv4.tcp_mtu_probing=1", names, remedies.UNTIL),),
            )
        )  # fmt: skip
    values = {name: host.sysctls.get("net.ipv4.ip_no_pmtu_disc") for name, host in case.mesh.hosts.items()}
    off = {name for name, value in values.items() if value in ("1", "2")}
    if off:
        settings, names = remedies.listing({str(values[name]) for name in off}), remedies.host_names(off)
        text = (
            f"On {names} net.ipv4.ip_no_pmtu_disc is {settings}: packets leave without DF, and routers fragment them."
        )
        case.add(
            Finding.about(
                "path_mtu_discovery_off", names, off, [], text, text,
                commands=(Command("sysctl -w net.ipv4.ip_no_pmtu_disc=0", names),),
            )
        )  # fmt: skip


def unavailable(case: Case) -> None:
    """`host_unavailable`: hosts that could not take part, those with the same reason together."""
    groups: dict[str, list[str]] = defaultdict(list)
    for host in case.mesh.hosts.values():
        if host.error:
            groups[host.error].append(host.name)
    for error, names in sorted(groups.items()):
        text = f"{error}. The paths of {remedies.host_names(names)} were not measured."
        case.add(
            Finding.about(
                "host_unavailable", remedies.host_names(names), names, [], text, text,
                advice="Remove the cause named above, or leave out what cannot take part, and repeat the check.",
            )
        )  # fmt: skip


def undecided(case: Case) -> None:
    """`could_not_tell`: pairs without a verdict, and what is known of them. Never a fault, never a pass."""
    gone = {host.name for host in case.mesh.hosts.values() if host.error}
    pairs = [
        pair for pair in case.mesh.pairs
        if pair.verdict == "unknown" and not pair.is_one_ended and not {pair.source, pair.destination} & gone
    ]  # fmt: skip
    if not pairs:
        return
    lost, sent = sum(pair.lost for pair in pairs), sum(pair.sent for pair in pairs)
    best = sorted({pair.carried for pair in pairs if pair.carried > 0})
    has = "has" if len(pairs) == 1 else "have"
    evidence = f"{remedies.count_of(len(pairs), 'pair')} of {len(case.mesh.pairs)} {has} no verdict."
    if sent:
        evidence += f" {lost} of {sent} of their small packets ({lost / sent:.1%}) were lost."
    sizes = f"{best[0]}" if len(best) == 1 else f"{best[0]} to {best[-1]}" if best else ""
    evidence += f" The largest size known to pass is {sizes} bytes." if best else " No size is known to pass."
    advice = "Repeat the check when the loss is repaired, or with more time."
    if any(pair.slowly is not None for pair in pairs):
        evidence += " Their losses do not depend on size: what was lost of one size was lost of one byte less as well."
        advice = (
            "Find what limits the rate or drops packets on the way, and repeat the check when that is idle, or with a "
            "lower rate (`--rate`) and fewer flows (`--flows 4`)."
        )
    case.add(
        Finding.about(
            "could_not_tell", remedies.pairs_text(pairs), _ends(pairs), [pair.key for pair in pairs], evidence,
            evidence, advice=advice,
        )
    )  # fmt: skip


def _ends(pairs: Iterable[Pair]) -> set[str]:
    return {name for pair in pairs for name in (pair.source, pair.destination)}
