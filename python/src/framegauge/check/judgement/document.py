"""A result document, read once into things that have names. Tolerates whatever the schema allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from framegauge.check.judgement.groups import subnet
from framegauge.check.judgement.rdma import Port, ports_of

__all__ = [
    "Clamp",
    "Filter",
    "Hop",
    "Host",
    "Interface",
    "LengthRule",
    "Mesh",
    "NeighbourTable",
    "Pair",
    "Told",
    "Trace",
]


@dataclass(frozen=True)
class Interface:
    """An interface as its host describes it: a reading."""

    name: str
    mtu: int
    maximum_mtu: int | None
    up: bool
    kind: str | None
    driver: str | None
    parent: str | None
    overhead: int | None
    addresses: tuple[tuple[str, int], ...]
    master: str | None = None  # the bridge, bond or VRF that it is a port of
    programs: tuple[str, ...] = ()  # xdp, tc_ingress and tc_egress, where it has such
    enabled: bool | None = None  # told to be up, carrier or not; None: not read


@dataclass(frozen=True)
class Clamp:
    """A rule of a host that sets the MSS of TCP: a reading."""

    family: str
    table: str
    chain: str
    to: str
    mss: int | None
    line: str | None = None  # as iptables-save prints it

    def is_for(self, family: int) -> bool:
        """Whether packets of this IP family meet it."""
        return {"ip": 4, "ip6": 6}.get(self.family, family) == family


@dataclass(frozen=True)
class Filter:
    """A rule of a host, or the policy of a chain (neither `handle` nor `line`), that keeps "packet too big" from it: a
    reading."""

    ip_version: int
    family: str
    table: str
    chain: str
    handle: int | None
    certain: bool  # of every such message; else of some, as may be
    line: str | None = None  # as iptables-save prints it
    by_iptables: bool = False


@dataclass(frozen=True)
class LengthRule:
    """A rule of a host, or the policy of a chain (neither `handle` nor `line`), that drops packets by their length: a
    reading."""

    ip_version: int
    family: str
    table: str
    chain: str
    hook: str
    device: str | None
    handle: int | None
    line: str | None  # as iptables-save prints it
    by_iptables: bool
    above: int
    to: int | None
    certain: bool  # of every datagram that it meets; else of some


@dataclass(frozen=True)
class NeighbourTable:
    """In which a host's kernel keeps the Ethernet addresses of neighbours, of all its network namespaces: a reading."""

    kernel: str  # the same text, the same kernel
    most: int
    permanent: int  # of its entries for this host: they need no room
    refused: int  # how often it had no room while the check ran


@dataclass(frozen=True)
class Host:
    """A host: what it says of itself, or why it says nothing."""

    name: str
    error: str | None
    known: bool  # whether there are facts
    interfaces: tuple[Interface, ...] = ()
    sysctls: Mapping[str, str] = field(default_factory=dict)
    path_mtu_cache: tuple[tuple[str, int], ...] = ()
    addresses: tuple[str, ...] = ()
    clamps: tuple[Clamp, ...] = ()
    filters: tuple[Filter, ...] = ()
    lengths: tuple[LengthRule, ...] = ()
    tells_ports: bool = False  # whether its interfaces say of what they are ports
    fragments: int | None = None  # that it made while the check ran; None: not read
    reassembled: int | None = None  # packets that it put together from fragments meanwhile, likewise
    rdma: tuple[Port, ...] = ()
    tables: Mapping[int, NeighbourTable] = field(default_factory=dict)  # by IP version, where they were read

    def interface(self, name: str | None) -> Interface | None:
        """By its name."""
        return next((interface for interface in self.interfaces if interface.name == name), None)

    def holding(self, address: str | None) -> Interface | None:
        """The interface that has this address."""
        held = (interface for interface in self.interfaces if any(address == own for own, _ in interface.addresses))
        return next(held, None)

    def ports(self, bridge: Interface) -> list[Interface]:
        """The interfaces that are known to be its ports."""
        return [interface for interface in self.interfaces if interface.master == bridge.name]

    def below(self, interface: Interface) -> list[Interface]:
        """The interfaces that it rests on, nearest first; each once, whatever the readings say."""
        chain: list[Interface] = []
        while (parent := self.interface(interface.parent)) is not None:
            if parent in chain or parent.name == interface.name:
                break
            chain.append(parent)
            interface = parent
        return chain

    def leaves(self, tunnel: Interface | None) -> set[int]:
        """What its underlay leaves inside of a tunnel; the tunnel tells its kernel so when something larger is sent."""
        if tunnel is None or tunnel.overhead is None:
            return set()
        return {parent.mtu - tunnel.overhead for parent in self.below(tunnel)}


@dataclass(frozen=True)
class Told:
    """Somebody said that packets are too big; address None is the sender itself."""

    address: str | None
    mtu: int | None
    flows: int


@dataclass(frozen=True)
class Hop:
    """What came back for a small and a large packet with this TTL, and from whom."""

    ttl: int
    small: str
    small_address: str | None
    large: str
    large_address: str | None
    told_mtu: int | None

    @property
    def address(self) -> str | None:
        """Who is there, if anybody answered."""
        return self.small_address or self.large_address


@dataclass(frozen=True)
class Trace:
    """The hops of one flow, by TTL."""

    source_port: int
    bad: bool
    hops: tuple[Hop, ...]


@dataclass(frozen=True)
class Pair:
    """One direction between two hosts, in one family."""

    source: str
    destination: str
    source_address: str | None
    destination_address: str | None
    family: int
    verdict: str
    path_mtu: int | None
    route_mtu: int | None
    probed: int
    bad: int
    unknown: int
    fragmented: int  # flows whose packets arrived in pieces
    sizes: tuple[tuple[int, int], ...]  # path MTU, flows; the largest first
    told: tuple[Told, ...]
    sent: int
    lost: int
    tcp: Mapping[str, Any] | None
    traces: tuple[Trace, ...]
    interface: str | None
    is_one_ended: bool = False
    direction: str | None = None  # of a one-ended fault: out, back or unknown
    said: str | None = None
    reply_fragment: int | None = None  # the pieces that echoes came back in
    largest_in_pieces: int | None = None  # of these echoes
    slowly: tuple[int, int | None] | None = None  # flows that carry it only when asked slowly, and at how many bytes/s

    @property
    def key(self) -> tuple[str, str, int]:
        """What findings call it."""
        return self.source, self.destination, self.family

    @property
    def is_fault(self) -> bool:
        """Whether its path MTU is below the target."""
        return self.verdict in ("too_small", "black_hole")

    def is_disproved(self, told: Told) -> bool:
        """Whether larger packets passed than what was said to be the most."""
        return told.mtu is not None and self.path_mtu is not None and told.mtu < self.path_mtu

    @property
    def is_partial(self) -> bool:
        """Whether only some of its flows are bad: then the others are known to be good."""
        return self.is_fault and 0 < self.bad < self.probed - self.unknown

    @property
    def carried(self) -> int:
        """The most that any of its flows is known to carry; -1 if not known."""
        best = self.sizes[0][0] if self.sizes else -1
        return max(best, -1 if self.path_mtu is None else self.path_mtu)


@dataclass(frozen=True)
class Mesh:
    """The whole document."""

    target: int
    flows: int
    hosts: Mapping[str, Host]
    pairs: tuple[Pair, ...]

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Mesh:
        """Of a document that fulfils the schema; its verdict and findings are not looked at."""
        hosts = {host["name"]: _host(host) for host in document["hosts"]}
        pairs = [_pair(pair) for pair in document["pairs"]]
        return cls(document["target_mtu"], document["flows"], hosts, tuple(pairs))

    def host(self, name: str) -> Host:
        """The host; one of which nothing is known if the document does not list it."""
        return self.hosts.get(name) or Host(name, None, False)

    def sender(self, pair: Pair) -> Interface | None:
        """The interface that the pair's packets leave by, if its host has described it."""
        host = self.host(pair.source)
        return host.interface(pair.interface) or host.holding(pair.source_address)

    def receiver(self, pair: Pair) -> Interface | None:
        """The interface that has the pair's destination address."""
        return self.host(pair.destination).holding(pair.destination_address)

    def group(self, name: str, address: str | None) -> str:
        """The subnet of a host's address, by the prefix that the host states."""
        if address is None:
            return f"host {name}"
        return self._groups.get((name, address)) or subnet(address)

    @cached_property
    def _groups(self) -> dict[tuple[str, str], str]:
        return {
            (host.name, address): subnet(address, length)
            for host in self.hosts.values() for interface in host.interfaces for address, length in interface.addresses
        }  # fmt: skip

    @cached_property
    def owners(self) -> dict[str, str]:
        """Address to the name of the host that has it."""
        return dict(self._addresses())

    def _addresses(self) -> Iterator[tuple[str, str]]:
        for host in self.hosts.values():
            yield from ((address, host.name) for interface in host.interfaces for address, _ in interface.addresses)
            yield from ((address.partition("/")[0], host.name) for address in host.addresses)

    @cached_property
    def by_key(self) -> dict[tuple[str, str, int], Pair]:
        """The pairs by what findings call them."""
        return {pair.key: pair for pair in self.pairs}


def _host(host: Mapping[str, Any]) -> Host:
    facts = host.get("facts")
    addresses = tuple(host["addresses"])
    if facts is None:
        return Host(host["name"], host.get("error"), False, addresses=addresses)
    cache = tuple((entry["destination"], entry["mtu"]) for entry in facts.get("path_mtu_cache") or ())
    interfaces = tuple(_interface(entry) for entry in facts["interfaces"])
    clamps = tuple(_clamp(entry) for entry in (facts.get("mss_clamps") or {}).get("rules") or ())
    sysctls = facts.get("sysctls") or {}
    filters = tuple(_filter(entry) for entry in (facts.get("error_filters") or {}).get("rules") or ())
    lengths = tuple(_length(entry) for entry in (facts.get("length_filters") or {}).get("rules") or ())
    tells_ports = any("master" in entry for entry in facts["interfaces"])
    made, whole = host.get("fragments_created"), host.get("packets_reassembled")
    return Host(
        host["name"], host.get("error"), True, interfaces, sysctls, cache, addresses, clamps, filters, lengths,
        tells_ports, _of_both(made), _of_both(whole), tuple(ports_of(facts)), _tables(host),
    )  # fmt: skip


def _of_both(counts: Mapping[str, int] | None) -> int | None:
    return None if counts is None else counts["ipv4"] + counts["ipv6"]


def _tables(host: Mapping[str, Any]) -> dict[int, NeighbourTable]:
    read, refused = host["facts"].get("neighbour_tables") or {}, host.get("neighbours_refused") or {}
    return {
        family: NeighbourTable(read["boot_id"], table["most"], table["permanent"], count)
        for family in (4, 6)
        if read.get("boot_id") and (table := read.get(f"ipv{family}")) and (count := refused.get(f"ipv{family}"))
    }


def _filter(rule: Mapping[str, Any]) -> Filter:
    return Filter(
        rule["ip_version"], rule["family"], rule["table"], rule["chain"], rule.get("handle"), rule["certain"],
        rule.get("line"), rule.get("program") == "iptables",
    )  # fmt: skip


def _length(rule: Mapping[str, Any]) -> LengthRule:
    return LengthRule(
        rule["ip_version"], rule["family"], rule["table"], rule["chain"], rule["hook"], rule.get("device"),
        rule.get("handle"), rule.get("line"), rule.get("program") == "iptables", rule["above_bytes"],
        rule.get("to_bytes"), rule["certain"],
    )  # fmt: skip


def _clamp(rule: Mapping[str, Any]) -> Clamp:
    return Clamp(rule["family"], rule["table"], rule["chain"], rule["to"], rule.get("mss_bytes"), rule.get("line"))


def _interface(link: Mapping[str, Any]) -> Interface:
    return Interface(
        link["name"], link["mtu"], link.get("maximum_mtu"), link.get("up", True), link.get("kind"), link.get("driver"),
        link.get("parent"), link.get("overhead_bytes"),
        tuple((own["address"], own["prefix_length"]) for own in link.get("addresses") or ()),
        link.get("master"), tuple(link.get("programs") or ()), link.get("enabled"),
    )  # fmt: skip


def _pair(pair: Mapping[str, Any]) -> Pair:
    flows, controls = pair["flows"], pair["controls"]
    sizes = sorted(((int(size), count) for size, count in flows["path_mtus_bytes"].items() if count), reverse=True)
    reports = tuple(Told(entry["address"], entry["mtu_bytes"], entry["flows"]) for entry in pair["told_by"])
    slow = pair.get("slowly")
    traces = tuple(Trace(entry["source_port"], entry["bad"], _hops(entry["hops"])) for entry in pair["traces"])
    return Pair(
        pair["source"], pair["destination"], pair["source_address"], pair["destination_address"], pair["family"],
        pair["verdict"], pair["path_mtu_bytes"], pair["route_mtu_bytes"], flows["probed"], flows["bad"],
        flows["unknown"], flows.get("fragmented", 0), tuple(sizes), reports, controls["sent"], controls["lost"],
        pair["tcp"], traces, pair["interface"],
        pair.get("method") == "one_ended", pair.get("direction"), pair.get("said"),
        pair.get("reply_fragment_bytes"), pair.get("fragmented_bytes"),
        None if slow is None else (slow["flows"], slow["bytes_per_second"]),
    )  # fmt: skip


def _hops(hops: Sequence[Mapping[str, Any]]) -> tuple[Hop, ...]:
    parsed_hops = [
        Hop(
            hop["ttl"], hop["small"]["outcome"], hop["small"].get("address"),
            hop["large"]["outcome"], hop["large"].get("address"), hop["large"].get("mtu_bytes"),
        )
        for hop in hops
    ]  # fmt: skip
    return tuple(sorted(parsed_hops, key=lambda hop: hop.ttl))
