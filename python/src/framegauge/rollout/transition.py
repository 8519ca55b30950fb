"""What becomes of a host's MTUs, in which order, and how it goes back. Pure.

The order is that of OpenShift's MTU migration, without its reboots. First every route through the interface is held at
the smaller MTU (`hold`), so that nobody sends more, whatever the interfaces take in. Then the interfaces change
(`link`). At last the routes are released (`release`), wave by wave:

    raising          hold 1500 ── link 9000 ── prove 9000 ── release wave 1 ── prove ── release wave 2 ── prove
    lowering         hold 1500 (from here nobody sends 9000) ── link 1500 ── release (no route needs to be held)

In each state of each host nothing is sent that a host in the state before or after it could not take in; so whatever is
killed, nothing is lost for longer than it takes to go back. Each stage is kept for good only once it is on every host.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from framegauge.errors import BadAnswer, InputError
from framegauge.rollout.model import Asked, Json, Step
from framegauge.rollout.routes import FREE, Held, Route, Value, of_answer, parse, typed as typed_routes, value

__all__ = [
    "STAGES",
    "HostChange",
    "Link",
    "back_to",
    "changes",
    "following",
    "has_room",
    "links_of",
    "own_ipv6_mtu",
    "steps",
    "typed",
]

STAGES = ("hold", "link", "release")
STANDING_ON = ("vlan", "macvlan", "macvtap", "ipvlan")  # kinds whose MTU is at most that of what they stand on
# Kinds that take on the MTU of their ports, or of what they stand on, also when it rises (br_mtu_auto_adjust,
# ipvlan_adjust_mtu); a bridge does not if its own was ever set. So it is not set, which would be for good.
RISING = ("bridge", "ipvlan", "ipvtap")
LOWERED = (*STANDING_ON, *RISING, "macsec")
FAMILIES = (4, 6)


@dataclass(frozen=True)
class Link:
    """An interface of a host: its MTU in bytes, its routes, and what a lease would put back. `beside`: it is not the
    one that is meant, but carries it, stands on it, or follows one that does. `follows`: its MTU changes by itself.
    `along`: the interfaces that a change of its MTU may change as well."""

    interface: str
    mtu: int
    routes: tuple[Route, ...]
    settings: Mapping[str, str]
    beside: bool = False
    follows: bool = False
    along: tuple[str, ...] = ()

    @property
    def ipv6_mtu(self) -> int | None:
        """The MTU that IPv6 has there, if it is less than that of the interface: a change of that one forgets it."""
        return own_ipv6_mtu(self.settings, self.interface)


def own_ipv6_mtu(settings: Mapping[str, str], interface: str) -> int | None:
    """What settings have as the MTU of IPv6 on an interface, if it is less than that of the interface."""
    text = settings.get(f"mtu6:{interface}")
    return int(text) if text is not None and int(text) < int(settings[f"mtu:{interface}"]) else None


@dataclass(frozen=True)
class HostChange:
    """The settings of a host before, after, and by stage in between: each group is one request, in this order.
    `unset`: those that change by themselves while it is carried out."""

    host: str
    wave: int
    interface: str
    mtu: int
    hold: int
    before: Mapping[str, str]
    after: Mapping[str, str]
    stages: Mapping[str, tuple[Mapping[str, str], ...]]
    unset: frozenset[str] = frozenset()

    @property
    def held(self) -> dict[str, str]:
        """The settings before, without those that change by themselves."""
        return {name: text for name, text in self.before.items() if name not in self.unset}

    def count(self, *stages: str) -> int:
        """How many settings these stages change."""
        return sum(len(group) for stage in stages for group in self.stages[stage])

    def as_json(self) -> Json:
        """For the journal and for programs."""
        return {
            "wave": self.wave, "interface": self.interface, "mtu": self.mtu, "hold": self.hold,
            "before": dict(self.before), "after": dict(self.after),
            "stages": {name: [dict(group) for group in groups] for name, groups in self.stages.items()},
        }  # fmt: skip


def links_of(interface: str, answers: Mapping[str, Json], follow: Sequence[str] = ()) -> tuple[Link, ...]:
    """The interfaces in answers of `host.routes`, in their order: those that carry others first. `follow`: those that
    change by themselves."""
    links = []
    for name, answer in answers.items():
        for setting in (f"mtu:{name}", f"routes4:{name}", f"routes6:{name}"):
            if setting not in answer["settings"]:
                raise BadAnswer(f"host.routes: found no {setting}, expected the settings of {name}")
        for setting in (f"mtu:{name}", f"mtu6:{name}"):
            text = answer["settings"].get(setting, "0")
            if not text.isdecimal():
                raise BadAnswer(f"host.routes: {setting}: found {text[:60]!r}, expected a number of bytes")
        links.append(
            Link(
                name, int(answer["settings"][f"mtu:{name}"]), tuple(of_answer(answer["routes"])), answer["settings"],
                name != interface, name in follow, tuple(answer.get("along", ())),
            )
        )  # fmt: skip
    return tuple(links)


def beneath(
    interface: str, facts: Json, mtu: int, ports: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> list[str]:
    """The interfaces that carry one and whose MTU is too small for a new one, the lowest first. `ports`: of bridges."""
    entries = {carrier["name"]: carrier for carrier in facts["interfaces"]}
    carriers: list[str] = []

    def below(name: str, seen: frozenset[str]) -> None:
        entry = entries[name]
        lower = [entry["parent"]] if entry["kind"] in STANDING_ON else ports.get(name, ())
        for carrier in lower:
            if carrier in entries and carrier not in seen:
                below(carrier, seen | {carrier})
                if entries[carrier]["mtu"] < mtu and carrier not in carriers:
                    carriers.append(carrier)

    if interface in entries:
        below(interface, frozenset({interface}))
    return carriers


def above(interface: str, facts: Json, mtu: int) -> list[str]:
    """The interfaces that stand on one and whose MTU is too large for a new one, the lowest first: the kernel lowers
    them with it, and raises none of them again."""
    uppers = [interface]
    for base in uppers:  # which grows
        uppers += [
            entry["name"]
            for entry in facts["interfaces"]
            if entry["parent"] == base
            and entry["kind"] in STANDING_ON
            and entry["mtu"] > mtu
            and entry["name"] not in uppers
        ]
    return uppers[1:]


def following(changed: Sequence[str], answers: Mapping[str, Json], facts: Json, mtu: int) -> list[str]:
    """The interfaces that follow those that are changed to a new MTU, by themselves: in answers of `host.routes`, the
    lowest first. An older agent does not tell of any."""
    entries = {entry["name"]: entry for entry in facts["interfaces"]}
    followers: list[str] = []
    for base in changed:
        was = entries[base]["mtu"] if base in entries else mtu
        for name in answers.get(base, {}).get("along", ()):
            one = entries.get(name)
            if one is None or name in changed or name in followers:
                continue
            if (was > mtu < one["mtu"] and one["kind"] in LOWERED) or (
                was < mtu > one["mtu"] and one["kind"] in RISING
            ):
                followers.append(name)
    return followers


def changes(asked: Asked, links: Mapping[str, Sequence[Link]]) -> list[HostChange]:
    """What every host does for what is asked, in the order of the waves; `links`: by host."""
    olds = [link.mtu for name in asked.hosts for link in links[name] if not link.beside]
    hold = min([asked.target_mtu, *olds, *([] if asked.old_mtu is None else [asked.old_mtu])])
    host_changes = []
    for number, wave in enumerate(asked.waves):
        for name in wave:
            ends = {
                link.interface: _End(
                    asked.target_mtu, {family: _released(asked, link, family, hold) for family in FAMILIES},
                    _kept_ipv6_mtu(asked, link, hold), by_itself=link.follows,
                )
                for link in links[name]
            }  # fmt: skip
            host_changes.append(_change(name, number, asked.interfaces[name], hold, links[name], ends))
    return host_changes


def back_to(
    waves: Sequence[Sequence[str]],
    interfaces: Mapping[str, str],
    before: Mapping[str, Mapping[str, str]],
    links: Mapping[str, Sequence[Link]],
) -> list[HostChange]:
    """What every host does to have settings again that it had: `before`, by host; `links`: as it is now."""
    hosts = [name for wave in waves for name in wave]
    ends = {
        name: {
            link.interface: _End(
                int(before[name][f"mtu:{link.interface}"]),
                {family: parse(before[name][f"routes{family}:{link.interface}"]) for family in FAMILIES},
                own_ipv6_mtu(before[name], link.interface),
            )
            for link in links[name]
        }
        for name in hosts
    }
    mtus = [(link.mtu, ends[name][link.interface].mtu) for name in hosts for link in links[name] if not link.beside]
    hold = min(mtu for pair in mtus for mtu in pair)
    numbers = {name: number for number, wave in enumerate(waves) for name in wave}
    return [_change(name, numbers[name], interfaces[name], hold, links[name], ends[name]) for name in hosts]


class _End(NamedTuple):
    """What an interface ends with: its MTU, its routes by IP version, and what IPv6 has for an MTU if that is another.
    `by_itself`: its MTU is whatever follows, and not set."""

    mtu: int
    routes: Mapping[int, Value]
    ipv6_mtu: int | None
    by_itself: bool = False


def _change(
    host: str, wave: int, interface: str, hold: int, links: Sequence[Link], ends: Mapping[str, _End]
) -> HostChange:
    holds: dict[str, str] = {}
    again: dict[str, str] = {}
    released: dict[str, str] = {}
    set_mtus = [link for link in links if not ends[link.interface].by_itself]
    for link in links:
        end = ends[link.interface]
        rises = end.mtu > link.mtu
        for family in FAMILIES:
            name, least = f"routes{family}:{link.interface}", _least(link, family, hold)
            # Of IPv6 the kernel raises an MTU that is not locked with that of the interface.
            holds[name] = str(_held(link, family, Held(least, rises and family == 6)))
            if rises and family == 6:
                again[name] = str(_held(link, family, Held(least)))
            released[name] = str(end.routes[family])
        if end.ipv6_mtu is not None:
            released[f"mtu6:{link.interface}"] = str(end.ipv6_mtu)
    after = {f"mtu:{link.interface}": str(ends[link.interface].mtu) for link in set_mtus}
    mtus = [f"mtu:{link.interface}" for link in _in_order(set_mtus, ends)]
    raised = [{name: after[name]} for name in mtus]
    return HostChange(
        host=host,
        wave=wave,
        interface=interface,
        mtu=ends[interface].mtu,
        hold=hold,
        before={name: text for link in links for name, text in link.settings.items()},
        after=after | released,
        stages={"hold": (holds,), "link": (*raised, *([again] if again else [])), "release": (released,)},
        unset=frozenset(
            name for link in links for name in link.settings
            if name.startswith("mtu6:") or (name.startswith("mtu:") and link.follows)
        ),
    )  # fmt: skip


def _in_order(links: Sequence[Link], ends: Mapping[str, _End]) -> list[Link]:
    """Those whose MTU changes, in the order in which it can. Downwards what stands on others goes first; what follows
    others comes after them always, when mostly nothing is left to be set."""
    changed = [link for link in links if ends[link.interface].mtu != link.mtu]
    first, last = ([link for link in changed if link.follows == follows] for follows in (False, True))
    if any(ends[link.interface].mtu < link.mtu for link in first):
        first.reverse()
    return first + last


def _kept_ipv6_mtu(request: Asked, link: Link, hold: int) -> int | None:
    """What IPv6 has for an MTU after a change: what an administrator or a router asks for, and still can be, stays. On
    the interface that is meant nothing stays below a target that is larger."""
    if link.ipv6_mtu is None or (request.target_mtu > hold and not link.beside):
        return None
    return link.ipv6_mtu if link.ipv6_mtu < request.target_mtu else None


def _least(link: Link, family: int, hold: int) -> int:
    """At what routes are held: no more than IPv6 sends already, which an MTU of theirs would override."""
    return min(hold, link.ipv6_mtu or hold) if family == 6 else hold


def _held(link: Link, family: int, held: Held) -> Value:
    """All routes at an MTU, but those that ask for less by themselves."""
    return value(_of(link, family), held, lambda route: route.held if 0 < route.held.mtu < held.mtu else held)


def _released(request: Asked, link: Link, family: int, hold: int) -> Value:
    """What routes ask for at the end. What an administrator asks for, and still can be, stays."""
    target, hold = request.target_mtu, _least(link, family, hold)
    if target > hold:
        inside = Held(hold) if link.beside else FREE
        outside = inside if request.scope == "all" else Held(hold)

        def raised(route: Route) -> Held:
            mtu = route.held.mtu
            # A roll-out locks no route of IPv4, and none to a single host: an administrator keeps packets to it small.
            if mtu not in (0, hold) or (route.held.locked and route.is_to_one_host):
                return route.held
            return inside if route.connected else outside

        return value(_of(link, family), outside, raised)
    return value(_of(link, family), FREE, lambda route: route.held if 0 < route.held.mtu < target else FREE)


def _of(link: Link, family: int) -> Iterable[Route]:
    return (route for route in link.routes if route.family == family)


def steps(changes: Sequence[HostChange], lease_seconds: float) -> Iterator[Step]:
    """Every step with its command and its undo, in the order in which they are made."""
    for stage in STAGES:
        for change in changes:
            now = _until(change, stage)
            for group in change.stages[stage]:
                undo = {name: now[name] for name in group}
                now |= group
                request = {"method": "lease.begin" if stage == "hold" else "lease.set", "settings": dict(group)}
                yield Step(change.host, stage, _words(group, lease_seconds), _words(undo, lease_seconds), request, undo)


def _until(change: HostChange, stage: str) -> dict[str, str]:
    """The settings of a host when a stage begins."""
    now = dict(change.before)
    for earlier in STAGES[: STAGES.index(stage)]:
        for group in change.stages[earlier]:
            now |= group
    return now


def typed(settings: Mapping[str, str]) -> list[str]:
    """Settings as lines that every administrator knows: those of `ip`."""
    lines = []
    for name, text in settings.items():
        kind, _, interface = name.partition(":")
        if kind == "mtu":
            lines.append(shlex.join(["ip", "link", "set", "dev", interface, "mtu", text]))
        elif kind == "mtu6":
            lines.append(shlex.join(["sysctl", "-w", f"net/ipv6/conf/{interface}/mtu={text}"]))
        else:
            lines += typed_routes(interface, int(kind.removeprefix("routes")), parse(text))
    return lines


def _words(settings: Mapping[str, str], lease_seconds: float) -> tuple[str, ...]:
    """As an administrator would type it."""
    [name, *others] = settings
    if name.startswith("mtu:") and not others:
        return ("ip", "link", "set", "dev", name.removeprefix("mtu:"), "mtu", settings[name])
    words = (f"{setting}={text}" for setting, text in settings.items())
    return ("framegauge-agent", "change", f"{lease_seconds:g}", *words)


def has_room(changes: Sequence[HostChange]) -> bool:
    """Whether anything would change."""
    return any(change.before.get(name) != text for change in changes for name, text in change.after.items())


def demand_room(changes: Sequence[HostChange]) -> None:
    """InputError if nothing would change."""
    if not has_room(changes):
        raise InputError(f"found every host at an MTU of {changes[0].mtu} bytes already, expected one that is not")
