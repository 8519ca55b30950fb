"""The packets of a host's interfaces, as its readings tell them: by groups of connections with full segments of one
size.

Three sources tell sizes, and the first that an interface has is used:

- `sample`: the headers of some windows of time. Their order tells the messages too, so that the estimate needs no
  assumption about them. The bounds of data are those of the counts alone, since later messages may be cut otherwise;
  those of acknowledgements are what a receiver that is quick, or is not, sends.
- `nic`: the NIC's own histogram of frames (RMON, RFC 2819). Frames in the range of the MTU are taken for full.
- `connections`: the segments and bytes of each TCP connection (TCP_INFO). How many of them are full lies between two
  bounds, from both of which the number of packets is computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from framegauge.estimate.opaque import ETHERNET, Opaque, of_sample, unread
from framegauge.estimate.packets import PER_SEGMENT, Way, predict
from framegauge.estimate.windows import Senders, again_share, both_ways, narrow

__all__ = [
    "HEADERS",
    "Group",
    "Left",
    "Load",
    "after",
    "counted_bounds",
    "headers_of",
    "larger_segment",
    "loads",
]

Json = Mapping[str, Any]
SAMPLE, NIC, CONNECTIONS = "sample", "nic", "connections"
HEADERS = 52  # of IPv4 and TCP with timestamps (RFC 791, 9293, 7323), where nothing tells them
FCS = 4
WAYS = ("sent", "received")
OPTIONS = 12  # bytes of TCP options that packets have in the mean beyond those of full segments, or these beyond others
SMALLEST = 127  # bytes of the frames that are taken for acknowledgements: the second range of RFC 2819


@dataclass(frozen=True)
class Left:
    """Packets before a change, and those that are left: the estimate, and its bounds."""

    before: float
    after: float
    least: float
    most: float


@dataclass(frozen=True)
class Group:
    """Both directions, sent and received, of connections with full segments of `full_bytes` payload on a link of this
    MTU. `likely`: with their messages, or with the likeliest number of full segments; `possible`: all that counts
    allow. `headers`: bytes of a full segment before its payload; None: it fills the MTU."""

    mtu: int
    full_bytes: int
    likely: tuple[Way, Way]
    possible: Sequence[tuple[Way, Way]]
    headers: int | None = None

    def larger(self, target: int) -> int:
        """The payload of full segments at another MTU: headers stay as they are. Unchanged for a smaller one."""
        return larger_segment(self.mtu, self.full_bytes, target, self.headers)

    def left(self, target: int) -> Left:
        """Packets at another MTU."""
        sizes = self.full_bytes, self.larger(target)
        bounds = [predict(*ways, *sizes) for ways in self.possible]
        least, most = min(bound.least for bound in bounds), max(bound.most for bound in bounds)
        likely = predict(*self.likely, *sizes)
        return Left(likely.before, min(max(likely.after, least), most), least, most)


@dataclass(frozen=True)
class Load:
    """What an interface carried in an interval. Packets are those on the wire; `unchanged` are those that a larger MTU
    leaves as they are, and not in `groups`; `opaque` are those of which that is not known. `times`: how often the whole
    load is what was sampled. `payload` is that of TCP, `bytes` are from the IP header on, both sent and received.
    `aggregates`: as the host saw them, sampled as well; None where that is not known. `off`: by what share the whole
    load differs from the packets that were counted, since a sample is not like the rest to the last packet. `again`:
    the share of the payload that was sent again. `unseen`: acknowledgements of what passed elsewhere."""

    interface: str
    source: str
    mtu: int
    groups: Sequence[Group]
    unchanged: int
    times: float
    header_bytes: float
    payload: tuple[int, int]
    bytes: tuple[int, int]
    packets: tuple[int, int]
    aggregates: tuple[int, int] | None = None
    full_share: float = 0.0
    opaque: Sequence[Opaque] = ()
    off: float = 0.0
    again: float = 0.0
    unseen: int = 0

    @property
    def unseen_share(self) -> float:
        """The share of its packets that acknowledge what passed elsewhere."""
        return self.unseen / max(1, sum(self.packets))

    @property
    def opaque_share(self) -> float:
        """The share of its bytes that are opaque."""
        return sum(traffic.bytes for traffic in self.opaque) / max(1, sum(self.bytes))


def larger_segment(mtu: int, full_bytes: int, target: int, headers: int | None) -> int:
    """The payload of full segments at another MTU; `headers` as in `Group`."""
    return full_bytes if target <= mtu else max(full_bytes, target - (mtu - full_bytes if headers is None else headers))


def headers_of(sample: Json, mtu: int) -> int | None:
    """The headers of full segments that do not fill the MTU, as of a path with a smaller MSS; None: they fill it, or
    there are several sizes, and nothing tells which headers are whose."""
    sizes = [way["full_bytes"] for way in sample["ways"]]
    packets, octets = (sum(sample[name][key] for name in WAYS) for key in ("tcp_packets", "tcp_header_bytes"))
    if len(sizes) != 1 or not sizes[0] or not packets:
        return None
    headers = round(octets / packets)
    return headers if headers + sizes[0] + OPTIONS < mtu else None


def loads(readings: Json, target_mtus: Sequence[int], known: Senders = MappingProxyType({})) -> list[Load]:
    """The load of each interface that carried something. `target_mtus`: those for which the host was read; `known`:
    what the senders of all hosts know."""
    sampled = {entry["interface"]: entry for entry in (readings["sample"] or {"interfaces": []})["interfaces"]}
    all_loads = []
    for interface in readings["interfaces"]:
        if not interface["received"]["packets"] + interface["sent"]["packets"]:
            continue
        sample, nic = sampled.get(interface["interface"]), interface["nic"]
        if sample is not None and sample["received"]["packets"] + sample["sent"]["packets"]:
            all_loads.append(_of_sample(interface, sample, target_mtus))
        elif nic is not None and nic["received"] and nic["sent"]:
            all_loads.append(_of_nic(interface, unread(readings, _carried(readings), interface["mtu"])))
    if not all_loads:
        all_loads += _of_connections(readings)
    again = again_share(readings, known)
    return [
        replace(load, groups=[_held(group, readings, known, target_mtus) for group in load.groups], again=again)
        for load in all_loads
    ]


def _held(group: Group, readings: Json, known: Senders, targets: Sequence[int]) -> Group:
    """The group, with what its windows are too small for."""
    sizes = [group.larger(target) for target in targets]
    sent, received = (
        {size: small for size in sizes if (small := narrow(readings, known, name, group.full_bytes, size))}
        for name in WAYS
    )

    def held(ways: tuple[Way, Way]) -> tuple[Way, Way]:
        return replace(ways[0], narrow=sent), replace(ways[1], narrow=received)

    return replace(group, likely=held(group.likely), possible=[held(ways) for ways in group.possible])


def after(load: Load, target: int) -> Left:
    """The packets of a load at another MTU, per interval. That a sample is not like the rest to the last packet saves
    none where none can be saved, and a larger MTU makes none more."""
    before, likely, least, most = (value * load.times for value in _sampled_after(load, target))
    off = load.off if least < before * (1 - 1e-9) else 0.0
    # What was sent again may not have to be, and had an acknowledgement of its own (RFC 2018).
    least *= (1 - off) * max(0.0, 1 - 2 * load.again)
    return Left(before, likely, least, max(likely, min(before, most * (1 + off))))


def _sampled_after(load: Load, target: int) -> list[float]:
    """Packets of a sample before, the estimate of those after, the least, and the most."""
    opaque = sum(traffic.packets for traffic in load.opaque)
    fewest = sum(traffic.least(max(target, load.mtu)) for traffic in load.opaque)
    total = [load.unchanged + float(packets) for packets in (opaque, opaque, fewest, opaque)]
    # One for each segment may become one for every second (RFC 5681 section 4.2), of which there are fewer.
    total[2] -= load.unseen * (1 - PER_SEGMENT * load.mtu / max(target, load.mtu)) if target > load.mtu else 0
    for part in (group.left(target) for group in load.groups):
        for place, value in enumerate((part.before, part.after, part.least, part.most)):
            total[place] += value
    return total


def _of_sample(interface: Json, sample: Json, targets: Sequence[int]) -> Load:
    opaque = of_sample(sample)
    groups = []
    unchanged = sum(sample[name]["others"] for name in WAYS) - sum(entry.packets for entry in opaque)
    unseen = 0
    for way in sample["ways"]:
        if not way["full_bytes"]:
            unseen += _unseen(sample, way)
            unchanged += sum(way[name][key] for name in ("sent", "received") for key in ("small", "acknowledgements"))
            continue
        mutual = both_ways(sample["connections"], way["full_bytes"])
        groups.append(_group(interface["mtu"], way, targets, mutual, headers_of(sample, interface["mtu"])))
    totals = sample["sent"], sample["received"]
    aggregate_bytes = sum(entry["aggregate_bytes"] + ETHERNET * entry["aggregates"] for entry in totals)
    counted = interface["sent"]["bytes"] + interface["received"]["bytes"]
    packets, full = (sum(entry["packets"] for entry in totals), sum(_full(group) for group in groups))
    tcp = sum(entry["tcp_packets"] for entry in totals)
    # What was counted before the first window and after the last one is in it as well.
    times = max(1.0, counted / aggregate_bytes)
    return Load(
        interface["interface"], SAMPLE, interface["mtu"], groups, unchanged, times,
        sum(entry["tcp_header_bytes"] for entry in totals) / tcp if tcp else HEADERS,
        (_payload(sample, "sent"), _payload(sample, "received")), (totals[0]["bytes"], totals[1]["bytes"]),
        (totals[0]["packets"], totals[1]["packets"]),
        (totals[0]["aggregates"], totals[1]["aggregates"]), full / packets, opaque, _off(interface, totals, times),
        unseen=unseen,
    )  # fmt: skip


def _unseen(sample: Json, way: Json) -> int:
    """How many acknowledgements answer nothing in the sample: each answers a packet (data, a SYN, a FIN), and so the
    rest of them what came another way."""
    unseen = 0
    for name, other in (WAYS, WAYS[::-1]):
        strange = sum(kind[other]["packets"] for kind in sample["foreign"])
        answered = way[other]["small"] + way[other]["acknowledgements"] + sample[other]["others"] - strange
        unseen += max(0, way[name]["acknowledgements"] - answered)
    return unseen


def _off(interface: Json, totals: Sequence[Json], times: float) -> float:
    """How far the whole load is off what the interface counted: packets, or aggregates as some drivers count."""
    counted = interface["sent"]["packets"] + interface["received"]["packets"]
    ratios = (sum(total[name] for total in totals) * times / counted - 1 for name in ("packets", "aggregates"))
    return float(min(1.0, *map(abs, ratios)))


def _payload(sample: Json, name: str) -> int:
    return sum(way[name]["full"] * way["full_bytes"] + way[name]["small_bytes"] for way in sample["ways"])


def _group(mtu: int, way: Json, targets: Sequence[int], mutual: float, headers: int | None) -> Group:
    size = way["full_bytes"]
    sizes = [larger_segment(mtu, size, target, headers) for target in targets]
    counts, likely = [], []
    for direction in (way["sent"], way["received"]):
        small, small_bytes = direction["small"], direction["small_bytes"]
        payload = direction["full"] * size + min(max(small_bytes, small), small * (size - 1))
        packets = direction["full"] + small + direction["acknowledgements"]
        counted = Way.counted(packets, payload, direction["full"], size, direction["acknowledgements"])
        merged = zip(sizes, direction.get("answers_merged", ()), strict=False)
        known = replace(
            counted, left=_acknowledged(direction, sizes),
            merged={larger: (answers["likely"], answers["most"]) for larger, answers in merged}, mutual=mutual,
        )  # fmt: skip
        counts.append(known)
        messages = {(message["full"], message["end_bytes"]): message["count"] for message in direction["messages"]}
        likely.append(replace(known, runs=None if direction["more_messages"] else messages))
    return Group(mtu, size, (likely[0], likely[1]), [(counts[0], counts[1])], headers)


def _acknowledged(way: Json, sizes: Sequence[int]) -> dict[int, tuple[float, float, float]] | None:
    """The shares of acknowledgements that are left with full segments of these sizes, of those that are known."""
    known = way.get("acknowledgements_known", 0)
    if not known:
        return None
    pairs = zip(sizes, way["acknowledgements_left"], strict=True)
    return {size: (left["likely"] / known, left["least"] / known, left["most"] / known) for size, left in pairs}


def _full(group: Group) -> int:
    return sum(way.payloads.get(group.full_bytes, 0) for way in group.likely)


def _of_nic(interface: Json, strange: Sequence[Opaque]) -> Load:
    """From frames by ranges of size: those in the range of the MTU are full, the smallest acknowledge. Where some are
    `strange`, of no connection of the host, frames do not tell which, and none is taken for TCP."""
    mtu, nic = interface["mtu"], interface["nic"]
    size, frame = mtu - HEADERS, mtu + ETHERNET + FCS
    ways, packets, payloads, bytes_ = [], [], [], []
    for name in WAYS:
        ranges = nic[name]
        frames = sum(bucket["frames"] for bucket in ranges)
        full = sum(
            bucket["frames"] for bucket in ranges if bucket["most_bytes"] >= frame or bucket["least_bytes"] > frame // 2
        )
        empty = sum(bucket["frames"] for bucket in ranges if bucket["most_bytes"] <= SMALLEST)
        carried = max(0, interface[name]["bytes"] - frames * ETHERNET)
        payload = max(0, carried - frames * HEADERS)
        others = frames - full - empty
        # Frames of the upper range that are not full make up what their bytes lack.
        full = min(full, payload // size)
        others = frames - full - empty
        left = min(max(payload - full * size, others), others * (size - 1))
        ways.append(Way.counted(frames, full * size + left, full, size, empty))
        packets.append(frames)
        payloads.append(payload)
        bytes_.append(carried)
    group = Group(mtu, size, (ways[0], ways[1]), [(ways[0], ways[1])])
    opaque = [Opaque(strange[0].kind, *carried) for carried in zip(packets, bytes_, strict=True)] if strange else ()
    return Load(
        interface["interface"], NIC, mtu, [] if strange else [group], 0, 1.0, HEADERS, (payloads[0], payloads[1]),
        (bytes_[0], bytes_[1]), (packets[0], packets[1]), None, _full(group) / max(1, sum(packets)), opaque,
    )  # fmt: skip


def counted_bounds(packets: int, payload: int, size: int) -> tuple[int, int]:
    """How many of so many packets with so much payload are full, at least and at most."""
    if not packets:
        return 0, 0
    most = min(packets, max(0, payload - packets) // max(1, size - 1))
    least = max(0, payload - packets * (size - 1))
    return min(least, most), most


def _carried(readings: Json) -> dict[str, tuple[int, int]]:
    """Packets of the connections of a host, and their bytes with headers, by direction."""
    return {
        way: (
            sum(entry[f"segments_{way}"] for entry in readings["connections"]),
            sum(entry[f"{way}_bytes"] + entry[f"segments_{way}"] * HEADERS for entry in readings["connections"]),
        )
        for way in WAYS
    }


def _of_connections(readings: Json) -> Iterator[Load]:
    """All connections as one load, of the interface that carried most: nothing tells which went where."""
    interfaces = [entry for entry in readings["interfaces"] if entry["sent"]["packets"] + entry["received"]["packets"]]
    if not interfaces:
        return
    interface = max(interfaces, key=lambda entry: entry["sent"]["bytes"] + entry["received"]["bytes"])
    groups, payloads, bytes_, packets, full_packets = [], [0, 0], [0, 0], [0, 0], 0
    for entry in readings["connections"]:
        size = entry["mss_bytes"]
        counts = [(entry[f"data_segments_{way}"], entry[f"segments_{way}"], entry[f"{way}_bytes"]) for way in WAYS]
        if size < 2 or any(data > whole for data, whole, _ in counts):
            continue
        lows, highs = [], []
        for place, (data, whole, payload) in enumerate(counts):
            # A FIN counts as a byte, and what came twice as no byte at all.
            carried = min(max(payload, data), data * size)
            low, high = counted_bounds(data, carried, size)
            empty = whole - data
            lows.append(Way.counted(whole, carried, low, size, empty))
            highs.append(Way.counted(whole, carried, high, size, empty))
            payloads[place] += carried
            bytes_[place] += carried + whole * HEADERS
            packets[place] += whole
            full_packets += high
        if not sum(way.packets for way in highs):
            continue
        # Segments are as full as their bytes allow, mostly: TCP fills them up.
        likely = highs[0], highs[1]
        groups.append(Group(interface["mtu"], size, likely, [(lows[0], lows[1]), likely]))
    opaque = unread(readings, _carried(readings), interface["mtu"])
    for place, traffic in enumerate(opaque):
        packets[place], bytes_[place] = packets[place] + traffic.packets, bytes_[place] + traffic.bytes
    if groups or opaque:
        yield Load(
            interface["interface"], CONNECTIONS, interface["mtu"], groups, 0, 1.0, HEADERS, (payloads[0], payloads[1]),
            (bytes_[0], bytes_[1]), (packets[0], packets[1]), None, full_packets / max(1, sum(packets)), opaque,
        )  # fmt: skip
