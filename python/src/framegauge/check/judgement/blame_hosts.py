"""Faults that the mesh itself explains: whole rows and columns, whole subnets; and what stays unexplained."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from framegauge.check.judgement import blame_down, blame_ports, remedies
from framegauge.check.judgement.case import SPARE_BYTES, Case
from framegauge.check.judgement.document import Interface, Pair
from framegauge.check.judgement.findings import Command, Finding, Key
from framegauge.check.judgement.hops import Node
from framegauge.check.judgement.suspects import Cell, Suspect, suspects

__all__ = ["hosts", "leftovers", "members", "subnets", "unreachable"]

_Suspects = dict[str, list[tuple[int, Suspect[str]]]]


def _cells(case: Case, family: int, partial: bool) -> list[Cell[str]]:
    """What each pair of a family is known to carry at best; for parallel paths, whether all of them do."""
    cells = []
    for pair in case.mesh.pairs:
        if pair.family != family or not (pair.is_fault or pair.verdict == "carries_target"):
            continue
        if partial:
            if pair.is_partial or not pair.is_fault:
                cells.append(Cell(pair.source, pair.destination, 0 if pair.is_partial else 1, pair.key))
            continue
        # Flows of a partial fault did get through: that its ends are able is known.
        value = case.mesh.target if pair.is_partial or not pair.is_fault else pair.carried
        cells.append(Cell(pair.source, pair.destination, min(value, case.mesh.target), pair.key))
    return cells


def hosts(case: Case, with_neighbour: bool) -> None:
    """`switch_or_nic_too_small`: one finding a host, directions and families together.

    With a neighbour of its own subnet among those that testify, it cannot be a router. Without, it is the host or
    whatever only its paths cross.
    """
    by_host: _Suspects = defaultdict(list)
    for family in (4, 6):
        opened = {key for key, pair in case.open.items() if not pair.is_partial and pair.family == family}

        def near(cell: Cell[str]) -> bool:
            ways = case.ways(case.faults[cell.key])
            return ways[0] == ways[1]

        cells = _cells(case, family, False)
        for suspect in suspects(cells, opened, case.mesh.target, 2, near if with_neighbour else None, SPARE_BYTES):
            by_host[suspect.name].append((family, suspect))
    for name, rows in sorted(by_host.items()):
        _host(case, name, rows, with_neighbour)


def _host(case: Case, name: str, entries: list[tuple[int, Suspect[str]]], with_neighbour: bool) -> None:
    directions = " and ".join(sorted({entry.direction for _, entry in entries}, reverse=True))
    pairs = [case.faults[cell.key] for _, entry in entries for cell in entry.cells]
    limits = sorted({entry.limit for _, entry in entries})
    evidence = []
    rows: dict[tuple[str, int, tuple[str, ...]], list[int]] = defaultdict(list)
    for family, entry in entries:
        peers = {cell.destination if entry.direction == "sending" else cell.source for cell in entry.cells}
        rows[entry.direction, entry.limit, tuple(sorted(peers))].append(family)
    for (direction, limit, ends), families in rows.items():
        evidence.append(
            f"{' and '.join(f'IPv{family}' for family in families)}, {direction}: {remedies.sizes_text(limit)} "
            f"{'to' if direction == 'sending' else 'from'} {remedies.host_names(ends)} "
            f"({remedies.count_of(len(ends), 'peer')}), which carry larger packets with other hosts."
        )
    where = f"host {name}, {directions}"
    role = " and ".join({"sending": "sends", "receiving": "receives"}[entry] for entry in directions.split(" and "))
    summary = [
        f"{remedies.sentence(remedies.sizes_text(limits[-1]))} when host {name} {role} them; its peers carry larger "
        "packets with other hosts. No error is returned."
    ]
    if with_neighbour:
        # Of one host alone on its switch, the link to the other switches is taken by just the same paths.
        summary.append(
            f"The NIC, the cable or the switch port of host {name} drops them, or a rule of its own firewall, or a "
            "link between switches that only its paths use."
        )
    else:
        where += ", or a link that only its paths use"
        doubt = (
            "No other host of its subnet was available for comparison, so the cause may also be a link that only the "
            f"paths of host {name} use."
        )
        summary.append(f"The NIC, the cable, the switch port or the firewall of host {name} may drop them. {doubt}")
        evidence.append(doubt)
    summary.append(remedies.STALLS)
    interface = None
    for pair in pairs:
        interface = interface or (case.mesh.receiver(pair) if pair.destination == name else case.mesh.sender(pair))
    if interface is not None and interface.mtu > limits[-1] >= 0:
        evidence.append(
            f"{interface.name} has an MTU of {interface.mtu}, but packets above {limits[-1]} bytes are lost."
        )
    elif interface is not None:
        evidence.append(f"{remedies.interface_text(interface)}.")
    evidence += case.remarks(pairs, limits[-1])
    commands, advice = _own_commands(case, name, interface, pairs)
    leading = blame_ports.leading_to(case, name, interface, limits[-1])
    commands = (*leading.commands, *commands)
    summary += [leading.text] if leading.text else []
    keys = [pair.key for pair in pairs]
    case.add(
        Finding.about(
            "switch_or_nic_too_small", where, [name], keys, " ".join(evidence), " ".join(summary), advice=advice,
            commands=commands, ask=remedies.ask_port(f"host {name}", case.mesh.target, interface),
            spot=Node(True, name),
        ),
        keys,
    )  # fmt: skip


def _own_commands(
    case: Case, name: str, interface: Interface | None, pairs: list[Pair]
) -> tuple[tuple[Command, ...], str]:
    peer = pairs[0].source_address if pairs[0].destination == name else pairs[0].destination_address
    return remedies.raise_or_look(case.mesh.host(name), interface, case.mesh.target, peer)


def members(case: Case) -> None:
    """`member_too_small` at a host: some flows of its whole row or column, and of no other host's."""
    for family in (4, 6):
        opened = {key for key, pair in case.open.items() if pair.is_partial and pair.family == family}
        for end in suspects(_cells(case, family, True), opened, 1, 3):
            pairs = [case.faults[cell.key] for cell in end.cells]
            bad, probed = sum(pair.bad for pair in pairs), sum(pair.probed - pair.unknown for pair in pairs)
            own = [
                case.mesh.receiver(pair) if end.direction == "receiving" else case.mesh.sender(pair) for pair in pairs
            ]
            interface = next((candidate for candidate in own if candidate is not None), None)
            commands, advice = remedies.raise_members(case.mesh.host(end.name), interface, case.mesh.target)
            lost = remedies.sizes_text(
                max({pair.path_mtu for pair in pairs if pair.path_mtu is not None}, default=None)
            )
            keys = [pair.key for pair in pairs]
            case.add(
                Finding.about(
                    "member_too_small", f"one link of the bundle at host {end.name}, {end.direction}",
                    [end.name], keys,
                    f"Some flows of all {len(pairs)} pairs {end.direction} at host {end.name} are affected, "
                    f"{remedies.share_text(bad, probed)}: {lost} there. The same peers have no such loss with other "
                    "hosts.",
                    f"{remedies.sentence(lost)} on some flows of every pair {end.direction} at host {end.name}. One "
                    "link of a bundle (LAG) there is too small: some TCP connections of the host stall while others "
                    "work, depending on their port numbers.",
                    commands=commands, advice=advice,
                    ask=remedies.ask_port(f"each member of the bundle of host {end.name}", case.mesh.target),
                    spot=Node(True, end.name),
                ),
                keys,
            )  # fmt: skip


def subnets(case: Case) -> None:
    """`router_drops_silently`, unplaced: everything from one subnet to another is lost.

    Of both, hosts are known that do better with others: else the fault may as well be within.
    """
    good = [pair for pair in case.mesh.pairs if pair.verdict == "carries_target"]
    able = {(pair.source, "sending") for pair in good} | {(pair.destination, "receiving") for pair in good}
    groups: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    known: dict[tuple[str, str], int] = defaultdict(int)
    for pair in case.mesh.pairs:
        ways = case.ways(pair)
        if ways[0] == ways[1] or not (pair.is_fault or pair.verdict == "carries_target"):
            continue
        known[ways] += 1
        if pair.key in case.open and not pair.is_partial:
            groups[ways].append(pair)
    for (source, destination), pairs in sorted(groups.items()):
        ends = {pair.source for pair in pairs}, {pair.destination for pair in pairs}
        witnesses = ([name for name in ends[0] if (name, "sending") in able],
                     [name for name in ends[1] if (name, "receiving") in able])  # fmt: skip
        if len(pairs) < known[source, destination] or min(map(len, witnesses)) < 2:
            continue
        if len({pair.path_mtu for pair in pairs}) > 1:
            continue
        where = f"somewhere between {source} and {destination}, towards {destination}"
        limit = pairs[0].path_mtu
        lost = remedies.sizes_text(limit)
        evidence = [
            f"All {len(pairs)} pairs from {source} to {destination} are affected, from {len(ends[0])} hosts to "
            f"{len(ends[1])}: {lost}. No trace locates the hop, and no ICMP error was received."
        ]
        evidence += case.remarks(pairs, limit)
        keys = [pair.key for pair in pairs]
        place = f"from {source} to {destination}"
        case.add(
            Finding.about(
                "router_drops_silently", where, [], keys, " ".join(evidence),
                f"{remedies.sentence(lost)} {place}, for all hosts: a link that they share is too small. No trace "
                f"locates it, and no ICMP error was received. {remedies.STALLS}",
                commands=remedies.work_around(pairs, limit),
                ask=remedies.ask_link(f"between {source} and {destination}", case.mesh.target), place=place,
            ),
            keys,
        )  # fmt: skip


def leftovers(case: Case) -> None:
    """`black_hole` and its two narrower forms: faults whose link is unknown, with what is known of them."""
    groups: dict[tuple[str, int | None, int], list[Pair]] = defaultdict(list)
    for pair in case.open.values():
        groups[_form(case, pair), pair.path_mtu, pair.family].append(pair)
    for (kind, limit, family), pairs in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or -1)):
        names = {pair.source for pair in pairs} | {pair.destination for pair in pairs}
        what = "IPv4" if family == 4 else "IPv6"
        few, lost = remedies.pairs_text(pairs), remedies.sentence(remedies.sizes_text(limit))
        evidence = [f"{lost} for {remedies.count_of(len(pairs), 'pair')} ({what}).", _known(case, pairs)]
        evidence += case.remarks(pairs, limit)
        keys = [pair.key for pair in pairs]
        only = {
            "one_direction_only": " The other direction carries them.",
            "one_family_only": f" IPv{10 - family} between the same hosts carries them.",
        }.get(kind, "")
        case.add(
            Finding.about(
                kind, f"unknown link: {few} ({what})", names, keys, " ".join(evidence),
                f"{lost} from {few}.{only} The measurements do not locate the link: both hosts (rules of their "
                f"firewalls as well) and every link between them are possible causes. {remedies.STALLS}",
                commands=(*remedies.work_around(pairs, limit), remedies.look_at_rules(remedies.host_names(names))),
                ask=f"What is the MTU of each link between {remedies.host_names(names)}? Each must carry IP packets "
                f"of {case.mesh.target} bytes.",
            ),
            keys,
        )  # fmt: skip


def _form(case: Case, pair: Pair) -> str:
    by_key = case.mesh.by_key
    other = by_key.get((pair.source, pair.destination, 10 - pair.family))
    back = by_key.get((pair.destination, pair.source, pair.family))
    if other is not None and other.verdict == "carries_target":
        return "one_family_only"
    return "one_direction_only" if back is not None and back.verdict == "carries_target" else "black_hole"


def _known(case: Case, pairs: Iterable[Pair]) -> str:
    """How far large packets are known to have come, and the readings at both ends."""
    all_pairs = list(pairs)
    lines = []
    reached = {
        (hop.address or "an unknown hop") for pair in all_pairs for trace in pair.traces for hop in trace.hops
        if hop.large == "expired"
    }  # fmt: skip
    if reached:
        lines.append(f"Large packets reached {remedies.listing(reached)}.")
    elif any(pair.traces for pair in all_pairs):
        lines.append("No hop on the path answered a large packet.")
    else:
        lines.append("There is no trace of them.")
    readings = set()
    for pair in all_pairs:
        for name, interface in ((pair.source, case.mesh.sender(pair)), (pair.destination, case.mesh.receiver(pair))):
            if interface is not None:
                readings.add(f"{interface.name} of {name} has an MTU of {interface.mtu}")
    if readings:
        lines.append(f"{remedies.listing(readings)}.")
    lines.append("Both hosts and every link between them are possible causes.")
    return " ".join(lines)


def unreachable(case: Case) -> None:
    """`unreachable`: one finding per host if everything that concerns it fails, one per IP version for the rest."""
    for family in (4, 6):
        known = (pair for pair in case.mesh.pairs if pair.verdict != "unknown" and not pair.is_one_ended)
        # What another finding explains is evidence neither for nor against a host.
        relevant = (pair for pair in known if pair.verdict != "unreachable" or pair.key in case.unreachable)
        pairs = {pair.key: pair for pair in relevant if pair.family == family}
        gone = {key for key, pair in pairs.items() if pair.verdict == "unreachable"} - _unrouted(case, pairs)
        cells = [
            Cell(pair.source, pair.destination, 0 if key in gone else 1, key) for key, pair in pairs.items()
        ]  # fmt: skip
        named: dict[str, set[Key]] = defaultdict(set)
        for suspect in suspects(cells, gone, 1):
            named[suspect.name] |= {cell.key for cell in suspect.cells}
        rest = gone - set().union(*named.values()) if named else gone
        for name, keys in sorted(named.items()):
            _gone(case, family, f"host {name}", [name], [pairs[key] for key in sorted(keys)])
        if rest:
            rest_pairs = [pairs[key] for key in sorted(rest)]
            ends = [end for pair in rest_pairs for end in (pair.source, pair.destination)]
            _gone(case, family, remedies.pairs_text(rest_pairs), ends, rest_pairs)


def _unrouted(case: Case, pairs: Mapping[Key, Pair]) -> set[Key]:
    """`unreachable` where a kernel itself has no route: one finding a host and family.

    The pairs that it explains: those of that host, and those to it, which cannot be answered."""
    lacking: dict[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in pairs.values():
        if pair.verdict == "unreachable" and pair.sent == 0 and pair.said:
            lacking[pair.source, pair.said].append(pair)
    explained: set[Key] = set()
    for (name, reason), group in sorted(lacking.items()):
        back = [pairs.get((pair.destination, pair.source, pair.family)) for pair in group]
        mute = [pair for pair in back if pair is not None and pair.verdict == "unreachable" and pair.sent]
        both = [*group, *mute]
        explained |= {pair.key for pair in both}
        others = remedies.host_names(pair.destination for pair in group)
        text = f"The kernel of host {name} has no way to {others} ({reason}): no packet was sent."
        if mute:
            text += f" What {others} sent cannot be answered either."
        # With an interface that is put down its routes go as well; those through a gateway do not come back by it.
        idle = blame_down.down(case, [name], both)
        text = " ".join((text, *idle.texts))
        family, where = group[0].family, group[0].destination_address
        flag = "-6 " if family == 6 else ""
        at = " to " + remedies.listing(pair.destination_address or pair.destination for pair in group)
        case.add(
            Finding.about(
                "unreachable", f"routes of host {name} (IPv{family})", [name], [pair.key for pair in both], text, text,
                advice=" ".join(filter(None, (idle.advice, f"Give host {name} a route{at}."))),
                commands=(
                    *idle.commands,
                    *remedies.show_routes(group),
                    Command(f"ip {flag}route show table all", f"host {name}", "look at all tables", family),
                    Command("ip rule show", f"host {name}", "look at the rules that choose a table", family),
                ),
                facts=(("What the kernel says of the route", f"{reason} ({where})"),),
            )
        )  # fmt: skip
    return explained


def _macvlan(case: Case, pairs: Iterable[Pair]) -> list[str]:
    """That a macvlan or ipvlan and the host that it stands on are kept apart, where one end of all pairs is one."""
    texts = []
    for pair in pairs:
        ends = case.mesh.sender(pair), case.mesh.receiver(pair)
        kinds = [end.kind for end in ends if end is not None and end.kind in ("macvlan", "ipvlan")]
        ways = case.ways(pair)
        if len(kinds) != 1 or ways[0] != ways[1]:
            return []
        index = 0 if ends[0] is not None and ends[0].kind == kinds[0] else 1
        names = (pair.source, pair.destination) if index == 0 else (pair.destination, pair.source)
        interface = ends[index]
        assert interface is not None
        texts.append(
            f"{interface.name} of host {names[0]} is a {kinds[0]}: if it stands on an interface of host {names[1]}, "
            "the kernel keeps the two apart by design, and only others reach it."
        )
    return list(dict.fromkeys(texts))


def _gone(case: Case, family: int, where: str, names: list[str], pairs: list[Pair]) -> None:
    evidence = [f"No probe of any size arrived for {remedies.count_of(len(pairs), 'pair')} (IPv{family})."]
    summary = [f"No probe of any size arrives: {where}."]
    look = "look for a rule or a policy that drops them"
    commands = (
        *remedies.show_routes(pairs),
        Command("nft list ruleset | grep -nE 'drop|reject'", remedies.host_names(names), look),
    )
    for text in _macvlan(case, pairs):
        evidence.append(text)
        summary.append(text)
    idle = blame_down.down(case, names, pairs)
    evidence += idle.texts
    summary += idle.texts
    commands = idle.commands or commands
    if not idle.texts:
        summary.append(
            "Probes are UDP and TCP to ports of their own: a firewall that lets in others alone looks the same."
        )
    if any((other := case.mesh.by_key.get((pair.source, pair.destination, 10 - family))) is not None
           and other.verdict not in ("unreachable", "unknown") for pair in pairs):  # fmt: skip
        evidence.append(f"IPv{10 - family} between them works.")
        summary.append(f"IPv{10 - family} between them works.")
    case.add(
        Finding.about(
            "unreachable", f"{where} (IPv{family})", names, [pair.key for pair in pairs], " ".join(evidence),
            " ".join(summary), commands=commands,
            advice=idle.advice or "Make sure that no firewall drops UDP, at either end or between them.",
            ask="Is there a route in both directions, and does a filter drop UDP?",
        )
    )  # fmt: skip
