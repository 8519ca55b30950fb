"""Faults that the mesh itself explains: whole rows and columns, whole subnets; and what stays unexplained."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from framegauge.check.judgement import remedies
from framegauge.check.judgement.case import Case
from framegauge.check.judgement.document import Pair
from framegauge.check.judgement.findings import Finding, Key
from framegauge.check.judgement.suspects import Cell, Suspect, suspects

__all__ = ["hosts", "leftovers", "members", "subnets", "unreachable"]

_Suspects = dict[str, list[tuple[int, Suspect[str]]]]


def _cells(case: Case, family: int, partial: bool) -> list[Cell[str]]:
    """What each pair of a family is known to carry at best; for parallel paths, whether all of them do."""
    found = []
    for pair in case.mesh.pairs:
        if pair.family != family or not (pair.is_fault or pair.verdict == "carries_target"):
            continue
        if partial:
            if pair.is_partial or not pair.is_fault:
                found.append(Cell(pair.source, pair.destination, 0 if pair.is_partial else 1, pair.key))
            continue
        # Flows of a partial fault did get through: that its ends are able is known.
        value = case.mesh.target if pair.is_partial or not pair.is_fault else pair.carried
        found.append(Cell(pair.source, pair.destination, min(value, case.mesh.target), pair.key))
    return found


def hosts(case: Case, with_neighbour: bool) -> None:
    """`switch_or_nic_too_small`: one finding a host, directions and families together.

    With a neighbour of its own subnet among those that testify, it cannot be a router. Without, it is the host or
    whatever only its paths cross.
    """
    found: _Suspects = defaultdict(list)
    for family in (4, 6):
        opened = {key for key, pair in case.open.items() if not pair.is_partial and pair.family == family}

        def near(cell: Cell[str]) -> bool:
            ways = case.ways(case.faults[cell.key])
            return ways[0] == ways[1]

        cells = _cells(case, family, False)
        for each in suspects(cells, opened, case.mesh.target, 2, near if with_neighbour else None):
            found[each.name].append((family, each))
    for name, rows in sorted(found.items()):
        _host(case, name, rows, with_neighbour)


def _host(case: Case, name: str, found: list[tuple[int, Suspect[str]]], with_neighbour: bool) -> None:
    directions = " and ".join(sorted({each.direction for _, each in found}, reverse=True))
    pairs = [case.faults[cell.key] for _, each in found for cell in each.cells]
    limits = sorted({each.limit for _, each in found})
    evidence = []
    rows: dict[tuple[str, int, tuple[str, ...]], list[int]] = defaultdict(list)
    for family, each in found:
        peers = {cell.destination if each.direction == "sending" else cell.source for cell in each.cells}
        rows[each.direction, each.limit, tuple(sorted(peers))].append(family)
    for (direction, limit, ends), families in rows.items():
        evidence.append(
            f"{' and '.join(f'IPv{family}' for family in families)}, {direction}: {remedies.sizes_text(limit)} with "
            f"{remedies.host_names(ends)}, {len(ends)} in all, and these do better with others."
        )
    where = f"host {name}, {directions}"
    if not with_neighbour:
        where += ", or what only its paths cross"
        evidence.append("No other host of its subnet testifies, so its way into the network may as well be the cause.")
    interface = None
    for pair in pairs:
        interface = interface or (case.mesh.receiver(pair) if pair.destination == name else case.mesh.sender(pair))
    if interface is not None:
        if interface.mtu > limits[-1] >= 0:
            evidence.append(
                f"{interface.name} says {interface.mtu}, and packets above {limits[-1]} bytes do not arrive."
            )
        else:
            evidence.append(f"{remedies.interface_text(interface)}.")
    evidence += case.remarks(pairs, limits[-1])
    if interface is not None and interface.mtu >= case.mesh.target:
        fix = (
            f"ethtool -S {interface.name} | grep -Ei 'long|over|jabber|giant'; ip -d link show {interface.name}"
            f"  # on {name}: its MTU is right; if it counts oversize frames its driver is not, else it is the port"
        )
    else:
        fix = remedies.raise_mtu(case.mesh.host(name), interface, case.mesh.target)
    keys = [pair.key for pair in pairs]
    ask = remedies.ask_port(f"host {name}", case.mesh.target)
    case.add(Finding.about("switch_or_nic_too_small", where, [name], keys, " ".join(evidence), fix, ask), keys)


def members(case: Case) -> None:
    """`member_too_small` at a host: some flows of its whole row or column, and of nobody else's."""
    for family in (4, 6):
        opened = {key for key, pair in case.open.items() if pair.is_partial and pair.family == family}
        for each in suspects(_cells(case, family, True), opened, 1, 3):
            pairs = [case.faults[cell.key] for cell in each.cells]
            bad, probed = sum(pair.bad for pair in pairs), sum(pair.probed - pair.unknown for pair in pairs)
            own = [
                case.mesh.receiver(pair) if each.direction == "receiving" else case.mesh.sender(pair) for pair in pairs
            ]
            interface = next((found for found in own if found is not None), None)
            name = "BOND" if interface is None else interface.name
            sizes = {pair.path_mtu for pair in pairs if pair.path_mtu is not None}
            evidence = (
                f"Of all {len(pairs)} pairs {each.direction} at host {each.name} a part of the flows is hit, {bad} of "
                f"{probed} ({bad / max(probed, 1):.0%}); {remedies.sizes_text(max(sizes, default=None))} there. The "
                "same peers have no such loss with others."
            )
            keys = [pair.key for pair in pairs]
            case.add(
                Finding.about(
                    "member_too_small", f"one link of the bundle at host {each.name}, {each.direction}",
                    [each.name], keys, evidence,
                    f"cat /proc/net/bonding/{name}; ip link set dev {name} mtu {case.mesh.target}  # on {each.name}: "
                    "sets all of its members",
                    remedies.ask_port(f"each member of the bundle of host {each.name}", case.mesh.target),
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
        evidence = [
            f"All {len(pairs)} pairs from {source} to {destination} are hit, from {len(ends[0])} hosts to "
            f'{len(ends[1])}: {remedies.sizes_text(limit)}. No trace says at which hop, and nobody said "too big".'
        ]
        evidence += case.remarks(pairs, limit)
        keys = [pair.key for pair in pairs]
        ask = remedies.ask_link(f"between {source} and {destination}", case.mesh.target)
        case.add(
            Finding.about(
                "router_drops_silently", where, [], keys, " ".join(evidence), remedies.work_around(limit), ask
            ),
            keys,
        )


def leftovers(case: Case) -> None:
    """`black_hole` and its two narrower forms: where is unknown, known is this."""
    groups: dict[tuple[str, int | None, int], list[Pair]] = defaultdict(list)
    for pair in case.open.values():
        groups[_form(case, pair), pair.path_mtu, pair.family].append(pair)
    for (kind, limit, family), pairs in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or -1)):
        names = {pair.source for pair in pairs} | {pair.destination for pair in pairs}
        what = "IPv4" if family == 4 else "IPv6"
        few = remedies.listing(f"{pair.source} to {pair.destination}" for pair in pairs)
        where = f"unknown; known is {few} ({what})"
        evidence = [
            f"{remedies.sentence(remedies.sizes_text(limit))} for {remedies.count_of(len(pairs), 'pair')} ({what})."
        ]
        evidence.append(_known(case, pairs))
        evidence += case.remarks(pairs, limit)
        keys = [pair.key for pair in pairs]
        case.add(
            Finding.about(
                kind, where, names, keys, " ".join(evidence), remedies.work_around(limit),
                f"Which MTU has each link between {remedies.host_names(names)}? All must carry IP packets of "
                f"{case.mesh.target} bytes.",
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
    """How far large packets are known to have come, and what the ends say."""
    found = list(pairs)
    lines = []
    reached = {
        (hop.address or "an unknown hop") for pair in found for trace in pair.traces for hop in trace.hops
        if hop.large == "expired"
    }  # fmt: skip
    if reached:
        lines.append(f"Large packets were seen as far as {remedies.listing(reached)}.")
    elif any(pair.traces for pair in found):
        lines.append("No hop on the way answered a large packet.")
    else:
        lines.append("There is no trace of them.")
    readings = set()
    for pair in found:
        for name, each in ((pair.source, case.mesh.sender(pair)), (pair.destination, case.mesh.receiver(pair))):
            if each is not None:
                readings.add(f"{each.name} of {name} says {each.mtu}")
    if readings:
        lines.append(f"{remedies.listing(readings)}.")
    lines.append("Both ends and everything between them remain possible.")
    return " ".join(lines)


def unreachable(case: Case) -> None:
    """`unreachable`: one finding a host if all that concerns it fails, one a family for the rest."""
    for family in (4, 6):
        known = (pair for pair in case.mesh.pairs if pair.verdict != "unknown" and not pair.is_one_ended)
        pairs = {pair.key: pair for pair in known if pair.family == family}
        gone = {key for key, pair in pairs.items() if pair.verdict == "unreachable"}
        cells = [
            Cell(pair.source, pair.destination, 0 if key in gone else 1, key) for key, pair in pairs.items()
        ]  # fmt: skip
        named: dict[str, set[Key]] = defaultdict(set)
        for each in suspects(cells, gone, 1):
            named[each.name] |= {cell.key for cell in each.cells}
        rest = gone - set().union(*named.values()) if named else gone
        for name, keys in sorted(named.items()):
            _gone(case, family, f"host {name}", [name], [pairs[key] for key in sorted(keys)])
        if rest:
            found = [pairs[key] for key in sorted(rest)]
            few = remedies.listing(f"{pair.source} to {pair.destination}" for pair in found)
            _gone(case, family, few, [end for pair in found for end in (pair.source, pair.destination)], found)


def _gone(case: Case, family: int, where: str, names: list[str], pairs: list[Pair]) -> None:
    evidence = [f"Not one packet of any size arrived for {remedies.count_of(len(pairs), 'pair')} (IPv{family})."]
    fix = f"ip -{family} route get ADDRESS  # on the sender; and see that no firewall drops UDP between them"
    for name in sorted(set(names)):
        down = [each for each in case.mesh.host(name).interfaces if not each.up]
        if down:
            evidence.append(f"On host {name} {remedies.listing(each.name for each in down)} is down.")
            fix = f"ip link set dev {down[0].name} up  # on {name}"
    if any((other := case.mesh.by_key.get((pair.source, pair.destination, 10 - family))) is not None
           and other.verdict not in ("unreachable", "unknown") for pair in pairs):  # fmt: skip
        evidence.append(f"IPv{10 - family} between them works.")
    case.add(
        Finding.about(
            "unreachable", f"{where} (IPv{family})", names, [pair.key for pair in pairs], " ".join(evidence), fix,
            "Is there a route both ways, and does a filter drop UDP?",
        )
    )  # fmt: skip
