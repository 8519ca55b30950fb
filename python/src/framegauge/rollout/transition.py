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

from framegauge.errors import BadAnswer, InputError
from framegauge.rollout.model import Asked, Json, Step
from framegauge.rollout.routes import FREE, Held, Route, Value, of_answer, parse, typed as typed_routes, value

__all__ = ["STAGES", "HostChange", "Link", "back_to", "changes", "has_room", "links_of", "steps", "typed"]

STAGES = ("hold", "link", "release")
STANDING_ON = ("vlan", "macvlan", "macvtap", "ipvlan")  # kinds whose MTU is at most that of what they stand on
FAMILIES = (4, 6)


@dataclass(frozen=True)
class Link:
    """An interface of a host: its MTU in bytes, its routes, and what a lease would put back. `beside`: it is not the
    one that is meant, but carries it, or stands on it."""

    interface: str
    mtu: int
    routes: tuple[Route, ...]
    settings: Mapping[str, str]
    beside: bool = False


@dataclass(frozen=True)
class HostChange:
    """The settings of a host before, after, and by stage in between: each group is one request, in this order."""

    host: str
    wave: int
    interface: str
    mtu: int
    hold: int
    before: Mapping[str, str]
    after: Mapping[str, str]
    stages: Mapping[str, tuple[Mapping[str, str], ...]]

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


def links_of(interface: str, answers: Mapping[str, Json]) -> tuple[Link, ...]:
    """The interfaces in answers of `host.routes`, in their order: those that carry others first."""
    found = []
    for name, answer in answers.items():
        for setting in (f"mtu:{name}", f"routes4:{name}", f"routes6:{name}"):
            if setting not in answer["settings"]:
                raise BadAnswer(f"host.routes: found no {setting}, expected the settings of {name}")
        said = answer["settings"][f"mtu:{name}"]
        if not said.isdecimal():
            raise BadAnswer(f"host.routes: mtu:{name}: found {said[:60]!r}, expected a number of bytes")
        mtu = int(said)
        found.append(Link(name, mtu, tuple(of_answer(answer["routes"])), answer["settings"], beside=name != interface))
    return tuple(found)


def beneath(
    interface: str, facts: Json, mtu: int, ports: Mapping[str, Sequence[str]] = MappingProxyType({})
) -> list[str]:
    """The interfaces that carry one and whose MTU is too small for a new one, the lowest first. `ports`: of bridges."""
    known = {each["name"]: each for each in facts["interfaces"]}
    found: list[str] = []

    def below(name: str, seen: frozenset[str]) -> None:
        one = known[name]
        lower = [one["parent"]] if one["kind"] in STANDING_ON else ports.get(name, ())
        for each in lower:
            if each in known and each not in seen:
                below(each, seen | {each})
                if known[each]["mtu"] < mtu and each not in found:
                    found.append(each)

    if interface in known:
        below(interface, frozenset({interface}))
    return found


def above(interface: str, facts: Json, mtu: int) -> list[str]:
    """The interfaces that stand on one and whose MTU is too large for a new one, the lowest first: the kernel lowers
    them with it, and raises none of them again."""
    found = [interface]
    for base in found:  # which grows
        found += [
            each["name"]
            for each in facts["interfaces"]
            if each["parent"] == base
            and each["kind"] in STANDING_ON
            and each["mtu"] > mtu
            and each["name"] not in found
        ]
    return found[1:]


def changes(asked: Asked, links: Mapping[str, Sequence[Link]]) -> list[HostChange]:
    """What every host does for what is asked, in the order of the waves; `links`: by host."""
    olds = [link.mtu for name in asked.hosts for link in links[name] if not link.beside]
    hold = min([asked.target_mtu, *olds, *([] if asked.old_mtu is None else [asked.old_mtu])])
    found = []
    for number, wave in enumerate(asked.waves):
        for name in wave:
            ends = {
                link.interface: (
                    asked.target_mtu,
                    {family: _released(asked, link, family, hold) for family in FAMILIES},
                )
                for link in links[name]
            }
            found.append(_change(name, number, asked.interfaces[name], hold, links[name], ends))
    return found


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
            link.interface: (
                int(before[name][f"mtu:{link.interface}"]),
                {family: parse(before[name][f"routes{family}:{link.interface}"]) for family in FAMILIES},
            )
            for link in links[name]
        }
        for name in hosts
    }
    named = [(link.mtu, ends[name][link.interface][0]) for name in hosts for link in links[name] if not link.beside]
    hold = min(mtu for pair in named for mtu in pair)
    numbers = {name: number for number, wave in enumerate(waves) for name in wave}
    return [_change(name, numbers[name], interfaces[name], hold, links[name], ends[name]) for name in hosts]


_End = tuple[int, Mapping[int, Value]]  # the MTU of an interface, and of its routes by IP version


def _change(
    host: str, wave: int, interface: str, hold: int, links: Sequence[Link], ends: Mapping[str, _End]
) -> HostChange:
    holds: dict[str, str] = {}
    again: dict[str, str] = {}
    released: dict[str, str] = {}
    raised: list[dict[str, str]] = []
    for link in links:
        new, routes = ends[link.interface]
        rises = new > link.mtu
        for family in FAMILIES:
            name = f"routes{family}:{link.interface}"
            # Of IPv6 the kernel raises an MTU that is not locked with that of the interface.
            holds[name] = str(_held(link, family, Held(hold, rises and family == 6)))
            if rises and family == 6:
                again[name] = str(_held(link, family, Held(hold)))
            released[name] = str(routes[family])
        if new != link.mtu:
            raised.append({f"mtu:{link.interface}": str(new)})
    # Downwards what stands on others goes first.
    if any(ends[link.interface][0] < link.mtu for link in links):
        raised.reverse()
    after = {f"mtu:{link.interface}": str(ends[link.interface][0]) for link in links}
    return HostChange(
        host=host,
        wave=wave,
        interface=interface,
        mtu=ends[interface][0],
        hold=hold,
        before={name: text for link in links for name, text in link.settings.items()},
        after=after | released,
        stages={"hold": (holds,), "link": (*raised, *([again] if again else [])), "release": (released,)},
    )


def _held(link: Link, family: int, held: Held) -> Value:
    """All routes at an MTU, but those that ask for less by themselves."""
    return value(_of(link, family), held, lambda route: route.held if 0 < route.held.mtu < held.mtu else held)


def _released(asked: Asked, link: Link, family: int, hold: int) -> Value:
    """What routes ask for at the end. What an administrator asks for, and still can be, stays."""
    target = asked.target_mtu
    if target > hold:
        inside = Held(hold) if link.beside else FREE
        outside = inside if asked.scope == "all" else Held(hold)

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
    return any(change.before != change.after for change in changes)


def demand_room(changes: Sequence[HostChange]) -> None:
    """InputError if nothing would change."""
    if not has_room(changes):
        raise InputError(f"found every host at an MTU of {changes[0].mtu} bytes already, expected one that is not")
