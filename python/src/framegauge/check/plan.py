"""Plans a path MTU check: reads the hosts' facts and routes, chooses addresses, pairs and pacing. Never prints."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from framegauge.check.addresses import Address, Ends, Route, candidates, choose
from framegauge.check.judgement import planner
from framegauge.check.tunnels import Encapsulated
from framegauge.errors import AgentFailure, InputError
from framegauge.printable import one_line
from framegauge.testbeds.base import Host, Json, Pending

__all__ = [
    "Asked", "Member", "Path", "Prepared", "Target", "ask_all", "host_rate", "in_order", "prepare", "read_facts",
    "read_routes",
]  # fmt: skip

LINK_SHARE = 0.01
UNKNOWN_LINK = 1e9  # bits per second of an interface that does not say


@dataclass(frozen=True)
class Asked:
    """What to find out. `families` None: those that both ends of a pair have. `bits_per_second`: what each host may
    send; None: LINK_SHARE of its link; inf: whatever it can. `tcp_port`: of targets without an agent, to look at TCP;
    None: not at all. `patience_seconds`: how long a host may take to answer, and longer than the search itself.
    `encapsulated`: the tunnel that the target is the inner MTU of."""

    target_mtu: int = 9000
    families: tuple[int, ...] | None = None
    flows: int = 32
    bits_per_second: float | None = None
    exact: bool = True
    blame: bool = True
    seed: int = 0
    tcp_port: int | None = None
    patience_seconds: float = 30.0
    encapsulated: Encapsulated | None = None


@dataclass(frozen=True)
class Member:
    """A host of the check; `interface` if only that of its is meant."""

    host: Host
    interface: str | None = None
    group: str | None = None

    @property
    def name(self) -> str:
        """As the user has named it."""
        return self.host.name


@dataclass(frozen=True)
class Target:
    """Where no agent takes part: as the user has named it, and its address by family."""

    name: str
    addresses: Mapping[int, str]


@dataclass(frozen=True)
class Path:
    """An ordered pair of hosts in one family; `ends` None: a host of it failed."""

    source: str
    destination: str
    family: int
    ends: Ends | None

    @property
    def key(self) -> tuple[str, str, int]:
        """Without the addresses."""
        return self.source, self.destination, self.family


@dataclass
class Prepared:
    """What is known before anything is probed."""

    members: Sequence[Member]
    facts: dict[str, Json]
    errors: dict[str, str]
    plan: planner.Plan
    paths: list[Path]
    rates: dict[str, float | None]  # bits per second that a host may send; None: whatever it can
    cost: planner.Cost
    targets: Sequence[Target] = ()

    @property
    def seconds(self) -> float | None:
        """How long it takes where nothing is wrong; None: as fast as it goes."""
        return self.cost.seconds


def ask_all(
    members: Iterable[Member],
    method: str,
    params: Callable[[Member], Mapping[str, object] | None],
    errors: dict[str, str],
    timeout_seconds: float,
    on_progress: Callable[[str, float], None] = lambda _name, _share: None,
) -> dict[str, Json]:
    """Ask several hosts at the same time; what one answers. A host that fails is noted, and the others go on."""
    begun: dict[str, Pending] = {}
    answers: dict[str, Json] = {}
    for member in members:
        request = params(member)
        if request is None or member.name in errors:
            continue
        name = member.name
        try:
            begun[name] = member.host.agent.begin(
                method,
                request,
                lambda share, _text, name=name: on_progress(name, share),  # type: ignore[misc]
            )
        except AgentFailure as error:
            errors[name] = one_line(error)
    try:
        for name, pending in begun.items():
            try:
                answers[name] = pending.result(timeout_seconds)
            except AgentFailure as error:
                errors[name] = one_line(error)
    except BaseException:
        for pending in begun.values():
            with suppress(AgentFailure):
                pending.cancel()
        raise
    return answers


_Asked = TypeVar("_Asked")


def in_order(
    name: str, method: str, asked: Sequence[_Asked], found: Sequence[Json], errors: dict[str, str]
) -> Iterator[tuple[_Asked, Json]]:
    """What a host was asked, each with its answer; none of them, and an error of that host, unless there are as
    many."""
    if len(asked) != len(found):
        errors[name] = f"{name}: {method}: found {len(found)} answers, expected {len(asked)}"
        return iter(())
    return zip(asked, found, strict=True)


def prepare(members: Sequence[Member], asked: Asked) -> Prepared:
    """Read the hosts' facts and routes, and plan; InputError if there is nothing to probe."""
    repeated = [name for name, count in Counter(member.name for member in members).items() if count > 1]
    if repeated:
        raise InputError(f"check: found host {repeated[0]} twice, expected each once")
    if len(members) < 2:
        raise InputError(f"check: found {len(members)} hosts, expected at least two (see `framegauge check --help`)")
    errors: dict[str, str] = {}
    facts = read_facts(members, errors)
    living = [member for member in members if member.name in facts]
    addresses = {
        (member.name, family): candidates(facts[member.name], family, member.interface)
        for member in living
        for family in asked.families or (4, 6)
    }
    versions = "/".join(f"IPv{family}" for family in asked.families or (4, 6))
    addressed = [name for name in facts if any(addresses[name, family] for family in asked.families or (4, 6))]
    if len(addressed) > 1:
        # No path of such a host is known, so that not all carry the packets.
        none = f"found no {versions} address, expected one of an interface that is up"
        errors |= {name: f"{name}: {none}" for name in facts if name not in addressed}
    plan = planner.plan(
        [
            planner.Member(
                member.name,
                tuple(
                    f"{address.address}/{address.prefix_length}"
                    for family in (4, 6)
                    for address in addresses.get((member.name, family), ())
                ),
                member.group,
            )
            for member in members
        ],
        seed=asked.seed,
    )
    routes = _routes(living, plan, addresses, errors)
    paths = _paths(plan, asked, addresses, routes, errors)
    if not paths:
        raise InputError(f"check: found no two hosts with {versions} addresses, expected at least one pair")
    rates = {member.name: host_rate(facts[member.name], asked, member.name, paths) for member in living}
    slowest = min((rate for rate in rates.values() if rate is not None), default=None)
    cost = planner.expected_cost(
        [(path.source, path.destination) for path in paths], asked.flows, asked.target_mtu, slowest
    )
    return Prepared(members, facts, errors, plan, paths, rates, cost)


def read_facts(members: Sequence[Member], errors: dict[str, str]) -> dict[str, Json]:
    """What hosts say of themselves; InputError if an interface that is meant is not there."""
    facts = ask_all(members, "check.facts", lambda _: {}, errors, 30.0)
    for member in members:
        known = {interface["name"] for interface in facts.get(member.name, {"interfaces": []})["interfaces"]}
        if member.interface is not None and member.name in facts and member.interface not in known:
            expected = ", ".join(sorted(known))
            raise InputError(f"{member.name}: found no interface {member.interface}, expected one of {expected}")
    return facts


_Addresses = Mapping[tuple[str, int], Sequence[Address]]
_Routes = Mapping[str, Mapping[str, Route]]


def _routes(
    living: Sequence[Member], plan: planner.Plan, addresses: _Addresses, errors: dict[str, str]
) -> dict[str, dict[str, Route]]:
    """By host and destination address, for all pairs of the plan, both ways."""
    destinations: dict[str, dict[str, None]] = defaultdict(dict)
    for source, destination in plan.pairs:
        for sender, receiver in ((source, destination), (destination, source)):
            for family in (4, 6):
                destinations[sender] |= dict.fromkeys(
                    address.address for address in addresses.get((receiver, family), ())
                )
    return read_routes(living, destinations, errors)


def read_routes(
    living: Sequence[Member], wanted: Mapping[str, Iterable[str]], errors: dict[str, str]
) -> dict[str, dict[str, Route]]:
    """How each of these hosts would send to the addresses that are wanted of it; by host and address."""
    destinations = {member.name: list(wanted[member.name]) for member in living}
    answers = ask_all(
        living,
        "check.routes",
        lambda member: {"destinations": destinations[member.name]} if destinations[member.name] else None,
        errors,
        30.0,
    )
    return {
        name: {
            route["destination"]: Route(route["source"], route["interface"], route["route_mtu_bytes"], route["error"])
            for route in answer["routes"]
        }
        for name, answer in answers.items()
    }


def _paths(
    plan: planner.Plan, spec: Asked, addresses: _Addresses, routes: _Routes, errors: Mapping[str, str]
) -> list[Path]:
    paths: list[Path] = []
    for source, destination in plan.pairs:
        pair_paths = []
        for family in spec.families or (4, 6):
            own, others = (addresses.get((name, family), ()) for name in (source, destination))
            ends = choose(own, others, routes.get(source, {}), routes.get(destination, {}))
            # Of a host that has not told its routes, that it has none is not known.
            if ends is not None and source not in errors:
                pair_paths.append(Path(source, destination, family, ends))
        if not pair_paths and (source in errors or destination in errors):
            pair_paths = [Path(source, destination, (spec.families or (4,))[0], None)]
        paths += pair_paths
    return paths


def host_rate(facts: Json, asked: Asked, name: str, paths: Sequence[Path]) -> float | None:
    """What a host may send: as asked, or a share of the slowest link that it uses."""
    if asked.bits_per_second is not None:
        return None if asked.bits_per_second == float("inf") else asked.bits_per_second
    used = {path.ends.interface for path in paths if path.source == name and path.ends is not None}
    speeds = [
        interface["bits_per_second"] or UNKNOWN_LINK for interface in facts["interfaces"] if interface["name"] in used
    ]
    return LINK_SHARE * min(speeds, default=UNKNOWN_LINK)
