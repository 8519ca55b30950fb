"""A lab as validated data: a network with faults, and the truth about it; `labs.file` reads it from YAML.

Nodes are namespaces with the real kernel: hosts, routers and switches. The kernel's own behaviour with unequal MTUs
needs no key; the other keys are faults that occur in networks of real devices.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    PlainValidator,
    StrictInt,
    StrictStr,
    StringConstraints,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from framegauge.errors import QuantityError
from framegauge.files.types import Model, Problem, Share

__all__ = [
    "FAMILIES",
    "LEAST_IPV6_MTU",
    "Block",
    "Check",
    "Lab",
    "Link",
    "Network",
    "Node",
    "Overlay",
    "Promise",
    "Truth",
    "families_of",
    "segments",
]

FAMILIES = (4, 6)
LEAST_MTU, LEAST_IPV6_MTU, LARGEST_MTU = 68, 1280, 65535
MOST_NODES, MOST_SEGMENTS = 250, 250
EVERYBODY = "any"

# Names become part of interface names (to-NAME-2), which the kernel limits to 15 characters.
Name = Annotated[str, StringConstraints(strict=True, pattern=r"^[a-z][a-z0-9]{0,9}$")]
Family = Literal[4, 6]


def _sizes(value: object) -> int | dict[str, int]:
    expected = "an MTU in bytes between 68 and 65535, such as 9000, or one per end, such as {a: 9000, r1: 1500}"
    values: Mapping[Any, Any] = value if isinstance(value, Mapping) else {"": value}
    for size in values.values():
        if isinstance(size, bool) or not isinstance(size, int) or not LEAST_MTU <= size <= LARGEST_MTU:
            raise QuantityError(dict(value) if isinstance(value, Mapping) else value, expected)
    if not values or not all(isinstance(key, str) for key in values):
        raise QuantityError(value, expected)
    return dict(value) if isinstance(value, Mapping) else int(values[""])


_MTU = {"type": "integer", "minimum": LEAST_MTU, "maximum": LARGEST_MTU}
# One for both ends, or one per end.
Sizes = Annotated[
    Any,
    PlainValidator(_sizes),
    WithJsonSchema({"anyOf": [_MTU, {"type": "object", "minProperties": 1, "additionalProperties": _MTU}]}),
]
MtuBytes = Annotated[StrictInt, Field(ge=LEAST_MTU, le=LARGEST_MTU)]


class Short(Model):
    """A model that may be written as one word, the value of `_word`."""

    _word: ClassVar[str]

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        return {cls._word: value} if isinstance(value, str) else value

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        reference = handler(core)
        return {"anyOf": [reference, handler.resolve_ref_schema(reference)["properties"][cls._word]]}


class Block(Short):
    """A kind of ICMP error that a router drops, including its own: `too_big`, or `expired` (time exceeded)."""

    _word = "icmp"

    icmp: Literal["too_big", "expired"]
    family: Family | None = None


class Promise(Model):
    """The path MTU to a host that a host's kernel assumes, whatever the path is really like."""

    to: Name
    mtu: MtuBytes
    family: Family | None = None


class Node(Short):
    """A host (the default), a router or a switch; its kind alone is the short form.

    `clamps_mss` is the MSS that a router writes into passing SYNs with a larger one. `routes` are a host's routes with
    their own MTU, `remembers` are path MTUs that its kernel has learned and still caches.
    """

    _word = "kind"

    kind: Literal["host", "router", "switch"] = "host"
    blocks: list[Block] = []
    clamps_mss: Annotated[StrictInt, Field(ge=88, le=LARGEST_MTU)] | None = None
    routes: list[Promise] = []
    remembers: list[Promise] = []

    @model_validator(mode="after")
    def _consistent(self) -> Node:
        for key, kind in (("blocks", "router"), ("clamps_mss", "router"), ("routes", "host"), ("remembers", "host")):
            if getattr(self, key) and self.kind != kind:
                raise Problem((key,), self.kind, f"no such key unless kind: {kind}")
        return self


class Link(Model):
    """A cable. `mtu` is that of the interfaces at its ends (default: the network's).

    `receives` is the largest packet that a router or switch accepts from it; larger ones are dropped silently. The
    default is the kernel's limit, the MTU plus 4 bytes. `loss` applies to packets in each direction. With `family`, it
    carries only that family.
    """

    ends: Annotated[list[Name], Field(min_length=2, max_length=2)]
    mtu: Sizes | None = None
    receives: Sizes | None = None
    loss: Share = 0.0
    family: Family | None = None

    def mtu_at(self, end: str, default: int) -> int:
        """The MTU of the interface at one end."""
        if isinstance(self.mtu, Mapping):
            return int(self.mtu.get(end, default))
        return default if self.mtu is None else int(self.mtu)

    def limit_at(self, end: str) -> int | None:
        """The largest packet that one end accepts; None for the kernel's own limit."""
        limit: int | None = self.receives.get(end) if isinstance(self.receives, Mapping) else self.receives
        return limit

    def names(self) -> Iterator[tuple[str, str]]:
        """Key and end of every setting that applies to one end."""
        for key in ("mtu", "receives"):
            value = getattr(self, key)
            yield from ((key, end) for end in (value if isinstance(value, Mapping) else ()))


class Overlay(Model):
    """A VXLAN between hosts, over the network of their underlay addresses; `mtu` is the inner one."""

    kind: Literal["vxlan"] = "vxlan"
    ends: Annotated[list[Name], Field(min_length=2)]
    mtu: MtuBytes
    underlay: Family = 4


class Network(Model):
    """Nodes, the links between them, and overlays. Addresses and routes follow from it (`labs.plan`)."""

    mtu: Annotated[StrictInt, Field(ge=LEAST_IPV6_MTU, le=LARGEST_MTU)] = 1500
    nodes: Annotated[dict[Name, Node], Field(min_length=2, max_length=MOST_NODES)]
    links: Annotated[list[Link], Field(min_length=1)]
    overlays: list[Overlay] = []

    @model_validator(mode="after")
    def _consistent(self) -> Network:
        # In this order, because each rule relies on those before it.
        rules = (_name_problems, _link_problems, _segment_problems, _overlay_problems, _promise_problems)
        for problem in chain.from_iterable(rule(self) for rule in rules):
            raise problem
        return self

    def hosts(self) -> list[str]:
        """The names of the hosts, in the file's order."""
        return [name for name, node in self.nodes.items() if node.kind == "host"]


class Truth(Model):
    """The truth about paths from `source` to `destination`: names, lists of names, or any. Later lines replace earlier
    ones.

    `path_mtu_bytes` was measured by capture, for the bad flows if some are bad; `configured_mtu` is the configured
    value if it differs. `bad_share` is the share of bad flows. Without `family`, a line is about both.
    """

    source: Name | list[Name]
    destination: Name | list[Name]
    family: Family | None = None
    verdict: Literal["carries_target", "too_small", "black_hole", "unreachable"]
    path_mtu_bytes: StrictInt | None = None
    configured_mtu: StrictInt | None = None
    bad_share: Annotated[float, Field(gt=0, le=1)] | None = None


class Check(Model):
    """The target MTU of a check of the lab, and the number of flows per pair (default: that of the check)."""

    target_mtu: MtuBytes
    flows: Annotated[StrictInt, Field(ge=1)] | None = None


class Lab(Model):
    """A network, and the truth about it."""

    about: StrictStr
    network: Network
    truth: list[Truth] = []
    check: Check

    @model_validator(mode="after")
    def _consistent(self) -> Lab:
        hosts, target = self.network.hosts(), self.check.target_mtu
        for index, line in enumerate(self.truth):
            for key in ("source", "destination"):
                host_names = getattr(line, key)
                unknown = [
                    name for name in ([host_names] if isinstance(host_names, str) else host_names) if name not in hosts
                ]
                if unknown and host_names != EVERYBODY:
                    raise Problem(("truth", index, key), unknown[0], f"any, or one of the hosts {', '.join(hosts)}")
            path_mtu, verdict = line.path_mtu_bytes, line.verdict
            expected = {
                "carries_target": path_mtu == target and line.bad_share is None,
                "unreachable": path_mtu is None,
            }.get(verdict, path_mtu is not None and path_mtu < target)
            if not expected:
                expectations = {"carries_target": f"check.target_mtu {target}", "unreachable": "nothing"}
                raise Problem(
                    ("truth", index, "path_mtu_bytes"),
                    path_mtu,
                    f"{expectations.get(verdict, f'less than {target}')}: {verdict}",
                )
        return self


def families_of(family: int | None) -> tuple[int, ...]:
    """The family, or both if none is named."""
    return FAMILIES if family is None else (family,)


def segments(network: Network) -> list[list[int]]:
    """The links of each segment by number: links that switches join. Each segment has its own addresses."""
    groups: list[list[int]] = []
    joined: list[set[str]] = []
    for number, link in enumerate(network.links):
        switches = {end for end in link.ends if network.nodes[end].kind == "switch"}
        touched = [index for index, switch_names in enumerate(joined) if switches & switch_names]
        members, names = [number], set(switches)
        for index in reversed(touched):
            members = groups.pop(index) + members
            names |= joined.pop(index)
        index = touched[0] if touched else len(groups)
        groups.insert(index, sorted(members))
        joined.insert(index, names)
    return groups


def _name_problems(network: Network) -> Iterator[Problem]:
    names = ", ".join(network.nodes)
    if EVERYBODY in network.nodes:
        yield Problem(("nodes", EVERYBODY), EVERYBODY, "another name: in truth, it stands for every host")
    for key in ("links", "overlays"):
        for index, connection in enumerate(getattr(network, key)):
            for position, end in enumerate(connection.ends):
                if end not in network.nodes:
                    yield Problem((key, index, "ends", position), end, f"one of the nodes {names}")
                if end in connection.ends[:position]:
                    yield Problem((key, index, "ends", position), end, "each end once")
    if not network.hosts():
        yield Problem(("nodes",), names, "at least one host")
    linked = {end for link in network.links for end in link.ends}
    for name in network.nodes:
        if name not in linked:
            yield Problem(("nodes", name), name, "a link that ends at this node")


def _link_problems(network: Network) -> Iterator[Problem]:
    for index, link in enumerate(network.links):
        where = ("links", index)
        for key, end in link.names():
            if end not in link.ends:
                yield Problem((*where, key), end, f"one of its ends {', '.join(link.ends)}")
        takers = [end for end in link.ends if network.nodes[end].kind != "host"]
        receivers = link.receives if isinstance(link.receives, Mapping) else link.ends if link.receives else ()
        if any(end not in takers for end in receivers):
            expected = "this key only for a router or a switch: a host accepts packets up to its MTU"
            yield Problem((*where, "receives"), link.receives, expected)
        smallest = min(link.mtu_at(end, network.mtu) for end in link.ends)
        if smallest < LEAST_IPV6_MTU and link.family != 4:
            expected = f"at least {LEAST_IPV6_MTU} (RFC 8200), or family: 4"
            yield Problem((*where, "mtu"), smallest, expected)


def _segment_problems(network: Network) -> Iterator[Problem]:
    groups = segments(network)
    if len(groups) > MOST_SEGMENTS:
        yield Problem(("links",), f"{len(groups)} segments", f"at most {MOST_SEGMENTS}: links with no switch in common")
    for members in groups:
        trees: list[set[str]] = []  # connected nodes so far; frames must not loop
        for number in members:
            link = network.links[number]
            touched = [names for names in trees if names & set(link.ends)]
            if any(names >= set(link.ends) for names in touched):
                expected = "ends that are not on one segment already: frames would loop"
                yield Problem(("links", number, "ends"), ", ".join(link.ends), expected)
            trees = [names for names in trees if names not in touched] + [set(link.ends).union(*touched)]
            if link.family != network.links[members[0]].family:
                yield Problem(("links", number), link.family, "the same family on all links that a switch joins")


def _overlay_problems(network: Network) -> Iterator[Problem]:
    members: set[str] = set()
    for index, overlay in enumerate(network.overlays):
        for position, end in enumerate(overlay.ends):
            where = ("overlays", index, "ends", position)
            if network.nodes[end].kind != "host":
                yield Problem(where, end, f"a host: one of {', '.join(network.hosts())}")
            if end in members:
                yield Problem(where, end, "a host of no other overlay")
            members.add(end)
        if overlay.mtu < LEAST_IPV6_MTU:
            yield Problem(("overlays", index, "mtu"), overlay.mtu, f"at least {LEAST_IPV6_MTU} (RFC 8200)")


def _promise_problems(network: Network) -> Iterator[Problem]:
    hosts, neighbours = network.hosts(), _neighbours(network)
    for name in hosts:
        for promise in network.nodes[name].remembers:
            if promise.to in neighbours[name]:
                where = ("nodes", name, "remembers")
                yield Problem(where, promise.to, "a host beyond a router, which must have reported the MTU")
        for key in ("routes", "remembers"):
            for index, promise in enumerate(getattr(network.nodes[name], key)):
                if promise.to not in hosts or promise.to == name:
                    other_hosts = ", ".join(host for host in hosts if host != name)
                    yield Problem(("nodes", name, key, index, "to"), promise.to, f"one of the hosts {other_hosts}")


def _neighbours(network: Network) -> dict[str, set[str]]:
    """The nodes that share a segment or an overlay with each node."""
    neighbours: dict[str, set[str]] = {name: set() for name in network.nodes}
    groups = [{end for number in members for end in network.links[number].ends} for members in segments(network)]
    for group in (*groups, *(set(overlay.ends) for overlay in network.overlays)):
        for name in group:
            neighbours[name] |= group
    return neighbours
