"""The topology of a study: how hosts, switches and routers are joined. Pure data, validated."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    StrictInt,
    StrictStr,
    WithJsonSchema,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from framegauge.files.types import HOST, FrameLimit, Model, Problem, Sparse, nearest, one_of
from framegauge.networks import topologies

__all__ = ["LEVELLED", "Custom", "Topology"]

RACK_HOSTS = 12
# A router's is that of a cgroup and a word on command lines, too.
NAMES: Mapping[str, tuple[re.Pattern[str], str]] = {
    "switch": (re.compile(r"[A-Za-z][A-Za-z0-9_-]*"), "letters, digits, - and _"),
    "router": (re.compile(r"[A-Za-z][A-Za-z0-9-]*"), "letters, digits and -"),
}
MOST_NICS = 2
ROUTER_LINKS = (2, 8)


class Shape(Model):
    """What every topology is asked."""

    def hosts(self, asked: int | None) -> int:
        """How many it has, of so many that are asked for; Problem if they do not fit."""
        return asked or RACK_HOSTS

    def nics_of_hosts(self) -> int:
        """The number of NICs that every host has at least."""
        return 1

    def as_json(self) -> dict[str, Any]:
        """Its numbers as the pipe has them, without what is as usual."""
        return self.model_dump()

    def said(self) -> list[str]:
        """Its numbers in words."""
        return [f"{name} {value}" for name, value in self if isinstance(value, int)]


class OneSwitch(Shape):
    """All hosts on one switch, each by as many NICs."""

    nics: Annotated[StrictInt, Field(ge=1, le=MOST_NICS)] = 1

    def nics_of_hosts(self) -> int:
        """All have as many."""
        return self.nics

    def as_json(self) -> dict[str, Any]:
        """Agents that know of one NIC only build everything else."""
        return {} if self.nics == 1 else {"nics": self.nics}


class Pair(OneSwitch):
    """Two hosts on one switch."""

    def hosts(self, asked: int | None) -> int:
        """Two, without being asked."""
        if asked is not None:
            raise Problem(("hosts",), asked, "no such key unless topology: rack, or another with more than two hosts")
        return 2


class Rack(OneSwitch):
    """Any number of hosts on one switch."""


class Dumbbell(Shape):
    """The first `left` hosts (default: half) on one switch, the others on another, and one link between the two."""

    left: Annotated[StrictInt, Field(ge=1)] | None = None

    def hosts(self, asked: int | None) -> int:
        """At least one a side."""
        found = super().hosts(asked)
        self.left = self.left or found // 2
        if self.left >= found:
            raise Problem(
                ("topology", "dumbbell", "left"), self.left, f"1 to {found - 1}: the others of {found} hosts are right"
            )
        return found


class LeafSpine(Shape):
    """Hosts evenly on leaves, in order; each leaf is joined to each spine."""

    leaves: Annotated[StrictInt, Field(ge=1, le=64)] = 2
    spines: Annotated[StrictInt, Field(ge=1, le=64)] = 2

    def hosts(self, asked: int | None) -> int:
        """As many on each leaf."""
        found = asked or max(1, RACK_HOSTS // self.leaves) * self.leaves
        if found % self.leaves:
            raise Problem(("hosts",), found, f"a multiple of {self.leaves}: as many hosts on each leaf")
        return found


class FatTree(Shape):
    """Of switches with k ports: k pods, k^3/4 hosts (Al-Fares, Loukissas, Vahdat 2008)."""

    k: StrictInt = 4

    @model_validator(mode="after")
    def _consistent(self) -> FatTree:
        if self.k % 2 or not 2 <= self.k <= 16:
            raise Problem(("k",), self.k, "an even number from 2 to 16")
        return self

    def hosts(self, asked: int | None) -> int:
        """All that it has room for."""
        found: int = self.k**3 // 4
        if asked is not None and asked != found:
            raise Problem(("hosts",), asked, f"{found}, or no such key: a fat-tree with k {self.k} has k^3/4 hosts")
        return found


class Router(Sparse):
    """Forwards packets between the segments that its links lead to; `mtu` unless given is `link.port_mtu`.

    `icmp: filtered`: nobody gets the ICMP errors that it sends, so that what is too large for it vanishes in silence.
    """

    name: StrictStr
    mtu: Annotated[FrameLimit, Field(ge=68, le=65535)] | None = None
    # YAML reads a bare `on` as true.
    icmp: Annotated[
        Literal["on", "filtered"],
        BeforeValidator(lambda value: "on" if value is True else value),
        WithJsonSchema({"enum": ["on", "filtered", True]}),
    ] = "on"

    def as_json(self) -> dict[str, Any]:
        """As the pipe has it, without what is as usual."""
        found = {"name": self.name, "mtu": self.mtu, "icmp": None if self.icmp == "on" else self.icmp}
        return {name: value for name, value in found.items() if value is not None}

    def said(self) -> str:
        """In words: "router r1 MTU 1500 ICMP filtered"."""
        mtu = "" if self.mtu is None else f" MTU {self.mtu}"
        return f"router {self.name}{mtu}" + ("" if self.icmp == "on" else f" ICMP {self.icmp}")


def _router(value: object) -> object:
    if isinstance(value, str):
        return {"name": value}
    if not isinstance(value, Mapping | Router):
        raise Problem((), value, "a router's name, or more, such as {name: r1, mtu: 1500, icmp: filtered}")
    return value


Routers = list[Annotated[Router, BeforeValidator(_router, json_schema_input_type=Router | StrictStr)]]


class Custom(Sparse, Shape):
    """Links by name, between `switches` on one side and switches, `routers` and hosts h1, h2, … on the other."""

    switches: Annotated[list[StrictStr], Field(min_length=1)]
    routers: Routers | None = None
    links: Annotated[list[Annotated[list[StrictStr], Field(min_length=2, max_length=2)]], Field(min_length=2)]

    @model_validator(mode="after")
    def _consistent(self) -> Custom:
        rules = (self._named, self._linked, self._counted, self._apart)
        for problem in (problem for rule in rules for problem in rule()):
            raise problem
        return self

    @property
    def router_names(self) -> list[str]:
        """In order."""
        return [each.name for each in self.routers or ()]

    @property
    def _pairs(self) -> list[tuple[str, str]]:
        return [(one, other) for one, other in self.links]

    @property
    def _count(self) -> Counter[str]:
        """How many links each node has."""
        return Counter(name for ends in self.links for name in ends)

    @property
    def _hosts(self) -> list[str]:
        """Those that links name, by number."""
        return sorted(filter(HOST.fullmatch, self._count), key=lambda name: (len(name), name))

    def _named(self) -> Iterator[Problem]:
        """Names that are none, or that two have."""
        for kind, names in (("switch", self.switches), ("router", self.router_names)):
            for index, name in enumerate(names):
                where = (f"{kind}es" if kind == "switch" else "routers", index)
                pattern, letters = NAMES[kind]
                if not pattern.fullmatch(name) or HOST.fullmatch(name):
                    yield Problem(where, name, f"a {kind}'s name: {letters}, and not that of a host")
                if name in names[:index]:
                    yield Problem(where, name, f"each {kind} once")
                if kind == "router" and name in self.switches:
                    yield Problem(where, name, "a name of its own: a switch has this one")

    def _linked(self) -> Iterator[Problem]:
        """Links that cannot be."""
        known = [*self.switches, *self.router_names]
        what = "a switch or router" if self.routers else "a switch"
        for index, (one, other) in enumerate(self.links):
            where = ("links", index)
            for name in (one, other):
                if name not in known and not HOST.fullmatch(name):
                    yield Problem(where, name, f"a host, or {what} that there is: {one_of(known)}")
            if one == other:
                yield Problem(where, f"{one} to {other}", "two ends: no node has a link with itself")
            if one not in self.switches and other not in self.switches:
                leaves = "hosts" if HOST.fullmatch(one) and HOST.fullmatch(other) else "hosts and routers"
                yield Problem(where, f"{one} to {other}", f"a switch at one end: {leaves} are not joined to each other")

    def _counted(self) -> Iterator[Problem]:
        """Hosts and routers with too few links, or too many."""
        count, hosts = self._count, self._hosts
        for number in range(1, max(2, len(hosts)) + 1):
            if f"h{number}" not in hosts:
                found = ", ".join(hosts) or "no host"
                yield Problem(("links",), found, f"two hosts or more, h1, h2 and so on: there is no h{number}")
        for host in hosts:
            if count[host] > MOST_NICS:
                yield Problem(("links",), f"{host} with {count[host]} links", f"at most {MOST_NICS} links of a host")
        least, most = ROUTER_LINKS
        for index, name in enumerate(self.router_names):
            if not least <= count[name] <= most:
                found = f"{name} with {count[name]} {'link' if count[name] == 1 else 'links'}"
                yield Problem(("routers", index), found, f"{least} to {most} links of a router")

    def _apart(self) -> Iterator[Problem]:
        """What packets do not reach: every host's first NIC must reach that of every other, and so the second ones."""
        routers = self.router_names
        links = topologies.numbered(self._pairs, {*self._hosts, *routers})
        parts = topologies.segments(links)
        for index, name in enumerate(routers):
            ends = topologies.ends_of(links, name)
            if any(len(part.intersection(ends)) > 1 for part in parts):
                yield Problem(("routers", index), name, "links that lead apart: switches join two of its own")
        if unlinked := [name for name in self.switches if not self._count[name]]:
            yield self._unreached(unlinked, "h1")
        ways = topologies.Ways(links, routers)
        nodes = {name: topologies.ends_of(links, name)[0] for name in (*self.switches, *routers)}
        far = set(nodes)
        for nic in range(MOST_NICS):
            ends = [found[nic] for host in self._hosts if len(found := topologies.ends_of(links, host)) > nic]
            if not ends:
                break
            apart = [end for end in ends if ways.routers(ends[0], end) is None]
            beyond = {name for name, end in nodes.items() if ways.routers(ends[0], end) is None}
            if apart:
                yield self._unreached([*apart, *beyond], ends[0])
            far &= beyond
        if far:
            yield self._unreached(list(far), "h1")

    def _unreached(self, found: Sequence[str], start: str) -> Problem:
        expected = f"a network that is connected: nothing leads there from {start}"
        return Problem(("links",), ", ".join(sorted(found)), expected)

    def hosts(self, asked: int | None) -> int:
        """Those that its links name."""
        found = len(self._hosts)
        if asked is not None and asked != found:
            raise Problem(("hosts",), asked, f"{found}, or no such key: its links name h1 to h{found}")
        return found

    def nics_of_hosts(self) -> int:
        """As many as the host with the fewest links has."""
        return min(self._count[host] for host in self._hosts)

    def as_json(self) -> dict[str, Any]:
        """Agents that know of no routers build everything else."""
        routers = {"routers": [each.as_json() for each in self.routers]} if self.routers else {}
        return {"switches": self.switches, **routers, "links": self.links}

    def said(self) -> list[str]:
        """How many there are, and every router."""
        counts = [f"{len(self.switches)} switches", f"{len(self.links)} links"]
        return [*counts, *(each.said() for each in self.routers or ())]


SHAPES: Mapping[str, type[Shape]] = {
    "pair": Pair, "rack": Rack, "dumbbell": Dumbbell, "leaf-spine": LeafSpine, "fat-tree": FatTree, "custom": Custom,
}  # fmt: skip
LEVELLED = ("fat-tree", "leaf-spine")  # with a highest level that every packet can be sent through


class Topology(Model):
    """How hosts, switches and routers are joined: a word, or one with its numbers (`{fat-tree: {k: 4}}`)."""

    pair: Pair | None = None
    rack: Rack | None = None
    dumbbell: Dumbbell | None = None
    leaf_spine: Annotated[LeafSpine | None, Field(alias="leaf-spine")] = None
    fat_tree: Annotated[FatTree | None, Field(alias="fat-tree")] = None
    custom: Custom | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        if isinstance(value, Mapping):
            return {key: {} if inner is None and key in SHAPES else inner for key, inner in value.items()}
        if isinstance(value, cls):
            return value
        if not isinstance(value, str):
            raise Problem((), value, f"a topology: {one_of(list(SHAPES))}")
        if value not in SHAPES:
            raise Problem((), value, nearest(value, SHAPES))
        return {value: {}}

    @model_validator(mode="after")
    def _consistent(self) -> Topology:
        if len(self.model_fields_set) != 1:
            raise Problem((), self.kind or "nothing", f"exactly one of {', '.join(SHAPES)}")
        return self

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> Any:
        given: dict[str, Any] = handler(self)[next(iter(self.model_fields_set))]
        usual = {name: field.default for name, field in type(self.shape).model_fields.items()}
        return self.kind if given == usual else {self.kind: given}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        # custom has nothing that it could be without.
        return {"anyOf": [handler(core), {"enum": [name for name in SHAPES if name != "custom"]}]}

    @property
    def kind(self) -> str:
        """Its word: "fat-tree"."""
        return ", ".join(sorted(name.replace("_", "-") for name in self.model_fields_set))

    @property
    def shape(self) -> Shape:
        """The one that is given."""
        found: Shape = getattr(self, next(iter(self.model_fields_set)))
        return found

    def as_json(self) -> dict[str, Any]:
        """As the pipe has it; a pair is a rack of two."""
        return {"kind": "rack" if self.kind == "pair" else self.kind, **self.shape.as_json()}

    def text(self) -> str | None:
        """What of it is no plain rack: "fat-tree (k 4)"."""
        if self.shape in (Pair(), Rack()):
            return None
        return f"{self.kind} ({', '.join(self.shape.said())})"
