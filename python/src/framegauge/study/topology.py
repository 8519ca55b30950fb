"""The topology of a study: how hosts, switches and routers are joined."""

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
# Ports have numbers of 16 bits (crates/fabric/src/config.rs), and a link has two.
MOST_LINKS = 32_767
# The name of a router also names its cgroup, and is used on command lines.
NAMES: Mapping[str, tuple[re.Pattern[str], str]] = {
    "switch": (re.compile(r"[A-Za-z][A-Za-z0-9_-]*"), "letters, digits, - and _"),
    "router": (re.compile(r"[A-Za-z][A-Za-z0-9-]*"), "letters, digits and -"),
}
LEAST_MEMBERS = 2  # of a bond
MOST_NICS = 8  # as in crates/fabric/src/topology/shapes.rs
ROUTER_LINKS = (2, 8)


class Shape(Model):
    """The interface of a topology."""

    def hosts(self, asked: int | None) -> int:
        """The number of hosts, if `asked` are requested; Problem if they do not fit."""
        return asked or RACK_HOSTS

    def nics_of_hosts(self) -> int:
        """The number of NICs that every host has at least."""
        return 1

    def as_json(self) -> dict[str, Any]:
        """Its parameters as the pipe expects them."""
        return self.model_dump()

    def said(self) -> list[str]:
        """Its parameters in words."""
        return [f"{name} {value}" for name, value in self if isinstance(value, int)]


class OneSwitch(Sparse, Shape):
    """All hosts on one switch, each with the same number of NICs. With `bond` these are one bond with one address (IEEE
    802.1AX); its value is what members are chosen by, in the words of xmit_hash_policy of Linux' bonding."""

    nics: Annotated[StrictInt, Field(ge=1, le=MOST_NICS)] = 1
    bond: Literal["layer2", "layer2+3", "layer3+4"] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> OneSwitch:
        if self.bond is not None and self.nics < LEAST_MEMBERS:
            expected = f"no such key unless nics: {LEAST_MEMBERS} or more: they are the members of the bond"
            raise Problem(("bond",), self.bond, expected)
        return self

    def nics_of_hosts(self) -> int:
        """The number of NICs of every host; a bond is one."""
        return self.nics if self.bond is None else 1

    def as_json(self) -> dict[str, Any]:
        """Its parameters; without the default of one NIC, for older agents."""
        bond = {} if self.bond is None else {"bond": self.bond}
        return {} if self.nics == 1 else {"nics": self.nics, **bond}

    def said(self) -> list[str]:
        """Its parameters in words."""
        return [*super().said(), *([] if self.bond is None else [f"bond {self.bond}"])]


class Pair(OneSwitch):
    """Two hosts on one switch."""

    def hosts(self, asked: int | None) -> int:
        """Always two; Problem if a number is requested."""
        if asked is not None:
            raise Problem(("hosts",), asked, "no such key unless topology: rack, or another with more than two hosts")
        return 2


class Rack(OneSwitch):
    """Any number of hosts on one switch."""


class Dumbbell(Shape):
    """The first `left` hosts (default: half) on one switch, the others on another, and one link between the two."""

    left: Annotated[StrictInt, Field(ge=1)] | None = None

    def hosts(self, asked: int | None) -> int:
        """The number of hosts, at least one on each side."""
        count = super().hosts(asked)
        self.left = self.left or count // 2
        if self.left >= count:
            raise Problem(
                ("topology", "dumbbell", "left"), self.left, f"1 to {count - 1}: the others of {count} hosts are right"
            )
        return count


class LeafSpine(Shape):
    """Hosts evenly on leaves, in order; each leaf is joined to each spine."""

    leaves: Annotated[StrictInt, Field(ge=1)] = 2
    spines: Annotated[StrictInt, Field(ge=1)] = 2

    def hosts(self, asked: int | None) -> int:
        """The number of hosts, the same on each leaf."""
        count = asked or max(1, RACK_HOSTS // self.leaves) * self.leaves
        if count % self.leaves:
            raise Problem(("hosts",), count, f"a multiple of {self.leaves}: each leaf has the same number of hosts")
        if (links := count + self.leaves * self.spines) > MOST_LINKS:
            path = ("topology", "leaf-spine", "spines")
            raise Problem(
                path, self.spines, f"fewer: {links} links, of at most {MOST_LINKS}, with {self.leaves} leaves"
            )
        return count


class FatTree(Shape):
    """A fat-tree of switches with k ports: k pods, k^3/4 hosts (Al-Fares, Loukissas, Vahdat 2008)."""

    k: StrictInt = 4

    @model_validator(mode="after")
    def _consistent(self) -> FatTree:
        if self.k % 2 or self.k < 2:
            raise Problem(("k",), self.k, "an even number from 2 on")
        return self

    def hosts(self, asked: int | None) -> int:
        """The number of hosts, which k determines."""
        count: int = self.k**3 // 4
        if asked is not None and asked != count:
            raise Problem(("hosts",), asked, f"{count}, or no such key: a fat-tree with k {self.k} has k^3/4 hosts")
        return count


class Router(Sparse):
    """A router, which forwards packets between the segments of its links; `mtu` defaults to `link.port_mtu`.

    `icmp: filtered`: its ICMP errors are dropped, so that packets above its MTU disappear without an error.
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
        """Its parameters as the pipe expects them, without defaults."""
        settings = {"name": self.name, "mtu": self.mtu, "icmp": None if self.icmp == "on" else self.icmp}
        return {name: value for name, value in settings.items() if value is not None}

    def said(self) -> str:
        """The router in words: "router r1 MTU 1500 ICMP filtered"."""
        mtu = "" if self.mtu is None else f" MTU {self.mtu}"
        return f"router {self.name}{mtu}" + ("" if self.icmp == "on" else f" ICMP {self.icmp}")


def _router(value: object) -> object:
    if isinstance(value, str):
        return {"name": value}
    if not isinstance(value, Mapping | Router):
        raise Problem((), value, "a router's name, or a mapping such as {name: r1, mtu: 1500, icmp: filtered}")
    return value


Routers = list[Annotated[Router, BeforeValidator(_router, json_schema_input_type=Router | StrictStr)]]


class Custom(Sparse, Shape):
    """Links by name, between `switches` on one side and switches, `routers` and hosts h1, h2, … on the other."""

    switches: Annotated[list[StrictStr], Field(min_length=1)]
    routers: Routers | None = None
    links: Annotated[
        list[Annotated[list[StrictStr], Field(min_length=2, max_length=2)]], Field(min_length=2, max_length=MOST_LINKS)
    ]

    @model_validator(mode="after")
    def _consistent(self) -> Custom:
        rules = (self._named, self._linked, self._counted, self._apart)
        for problem in (problem for rule in rules for problem in rule()):
            raise problem
        return self

    @property
    def router_names(self) -> list[str]:
        """The names of the routers, in order."""
        return [router.name for router in self.routers or ()]

    @property
    def _pairs(self) -> list[tuple[str, str]]:
        return [(one, other) for one, other in self.links]

    @property
    def _count(self) -> Counter[str]:
        """The number of links of each node."""
        return Counter(name for ends in self.links for name in ends)

    @property
    def _hosts(self) -> list[str]:
        """The hosts that links name, by number."""
        return sorted(filter(HOST.fullmatch, self._count), key=lambda name: (len(name), name))

    def _named(self) -> Iterator[Problem]:
        """Problems with names that are invalid, or used twice."""
        for kind, names in (("switch", self.switches), ("router", self.router_names)):
            for index, name in enumerate(names):
                path = (f"{kind}es" if kind == "switch" else "routers", index)
                pattern, letters = NAMES[kind]
                if not pattern.fullmatch(name) or HOST.fullmatch(name):
                    yield Problem(path, name, f"a {kind}'s name: {letters}, and not that of a host")
                if name in names[:index]:
                    yield Problem(path, name, f"each {kind} once")
                if kind == "router" and name in self.switches:
                    yield Problem(path, name, "a name that no switch has")

    def _linked(self) -> Iterator[Problem]:
        """Problems with the ends of links."""
        names = [*self.switches, *self.router_names]
        noun = "a switch or router" if self.routers else "a switch"
        for index, (one, other) in enumerate(self.links):
            path = ("links", index)
            for name in (one, other):
                if name not in names and not HOST.fullmatch(name):
                    yield Problem(path, name, f"a host, or {noun}: {one_of(names)}")
            if one == other:
                yield Problem(path, f"{one} to {other}", "two different ends")
            if one not in self.switches and other not in self.switches:
                leaves = "hosts" if HOST.fullmatch(one) and HOST.fullmatch(other) else "hosts and routers"
                yield Problem(path, f"{one} to {other}", f"a switch at one end: {leaves} are not joined to each other")

    def _counted(self) -> Iterator[Problem]:
        """Problems with hosts and routers that have too few links, or too many."""
        count, hosts = self._count, self._hosts
        for number in range(1, max(2, len(hosts)) + 1):
            if f"h{number}" not in hosts:
                text = ", ".join(hosts) or "no host"
                yield Problem(("links",), text, f"two hosts or more, h1, h2 and so on: there is no h{number}")
        for host in hosts:
            if count[host] > MOST_NICS:
                yield Problem(("links",), f"{host} with {count[host]} links", f"at most {MOST_NICS} links per host")
        least, most = ROUTER_LINKS
        for index, name in enumerate(self.router_names):
            if not least <= count[name] <= most:
                text = f"{name} with {count[name]} {'link' if count[name] == 1 else 'links'}"
                yield Problem(("routers", index), text, f"{least} to {most} links per router")

    def _apart(self) -> Iterator[Problem]:
        """Problems with nodes that packets cannot reach: the first NICs of all hosts must reach one another, and so
        must the second ones."""
        routers = self.router_names
        links = topologies.numbered(self._pairs, {*self._hosts, *routers})
        parts = topologies.segments(links)
        for index, name in enumerate(routers):
            ends = topologies.ends_of(links, name)
            if any(len(part.intersection(ends)) > 1 for part in parts):
                yield Problem(("routers", index), name, "links to different segments: switches join two of them")
        if unlinked := [name for name in self.switches if not self._count[name]]:
            yield self._unreached(unlinked, "h1")
        ways = topologies.Ways(links, routers)
        nodes = {name: topologies.ends_of(links, name)[0] for name in (*self.switches, *routers)}
        far = set(nodes)
        for nic in range(MOST_NICS):
            ends = [host_ends[nic] for host in self._hosts if len(host_ends := topologies.ends_of(links, host)) > nic]
            if not ends:
                break
            apart = [end for end in ends if ways.routers(ends[0], end) is None]
            beyond = {name for name, end in nodes.items() if ways.routers(ends[0], end) is None}
            if apart:
                yield self._unreached([*apart, *beyond], ends[0])
            far &= beyond
        if far:
            yield self._unreached(list(far), "h1")

    def _unreached(self, names: Sequence[str], start: str) -> Problem:
        expected = f"a connected network: these cannot be reached from {start}"
        return Problem(("links",), ", ".join(sorted(names)), expected)

    def hosts(self, asked: int | None) -> int:
        """The number of hosts that the links name."""
        count = len(self._hosts)
        if asked is not None and asked != count:
            raise Problem(("hosts",), asked, f"{count}, or no such key: its links name h1 to h{count}")
        return count

    def nics_of_hosts(self) -> int:
        """The number of links of the host with the fewest."""
        return min(self._count[host] for host in self._hosts)

    def as_json(self) -> dict[str, Any]:
        """Its parameters; without an empty list of routers, for older agents."""
        routers = {"routers": [router.as_json() for router in self.routers]} if self.routers else {}
        return {"switches": self.switches, **routers, "links": self.links}

    def said(self) -> list[str]:
        """The numbers of switches and links, and every router."""
        counts = [f"{len(self.switches)} switches", f"{len(self.links)} links"]
        return [*counts, *(router.said() for router in self.routers or ())]


SHAPES: Mapping[str, type[Shape]] = {
    "pair": Pair, "rack": Rack, "dumbbell": Dumbbell, "leaf-spine": LeafSpine, "fat-tree": FatTree, "custom": Custom,
}  # fmt: skip
LEVELLED = ("fat-tree", "leaf-spine")  # with a highest level that every packet can be sent through


class Topology(Model):
    """How hosts, switches and routers are joined: a word, or a word with parameters (`{fat-tree: {k: 4}}`)."""

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
        settings: dict[str, Any] = handler(self)[next(iter(self.model_fields_set))]
        usual = {name: field.default for name, field in type(self.shape).model_fields.items()}
        return self.kind if all(usual[name] == value for name, value in settings.items()) else {self.kind: settings}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        # `custom` has no defaults, so the word alone is not enough.
        return {"anyOf": [handler(core), {"enum": [name for name in SHAPES if name != "custom"]}]}

    @property
    def kind(self) -> str:
        """The word for it: "fat-tree"."""
        return ", ".join(sorted(name.replace("_", "-") for name in self.model_fields_set))

    @property
    def bond(self) -> str | None:
        """The word of what the members of bonds are chosen by; None without bonds."""
        return self.shape.bond if isinstance(self.shape, OneSwitch) else None

    @property
    def shape(self) -> Shape:
        """The topology that is given."""
        shape: Shape = getattr(self, next(iter(self.model_fields_set)))
        return shape

    def as_json(self) -> dict[str, Any]:
        """The topology as the pipe expects it; a pair is a rack of two."""
        return {"kind": "rack" if self.kind == "pair" else self.kind, **self.shape.as_json()}

    def text(self) -> str | None:
        """The topology in words: "fat-tree (k 4)"; None for a plain pair or rack."""
        if self.shape in (Pair(), Rack()):
            return None
        return f"{self.kind} ({', '.join(self.shape.said())})"
