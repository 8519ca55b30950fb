"""The network of the invented rack: its description by `rack.up`, and the counts of ports and background loads."""

from __future__ import annotations

from collections.abc import Callable

from framegauge.networks import disciplines, topologies
from framegauge.testbeds.base import Json
from framegauge.testbeds.fake.model import BuiltRack, FakeError

__all__ = [
    "answer", "background", "changed", "common_switches", "nics", "own_rate", "port_counts", "refuse", "routers",
]  # fmt: skip

ON_FABRIC = ("topology", "queue", "shared_buffer", "links", "routing", "background")
MARKED_ONE_IN = 50  # frames, at a port whose queue marks

Told = Callable[[str], bool]


def refuse(params: Json) -> None:
    """FakeError for network settings that the testbed cannot have, such as a queue of the kernel's switch."""
    settings = [name for name in ON_FABRIC if params.get(name)]
    if params["testbed"] == "kernel" and settings:
        data = {"what": settings[0], "asked": params[settings[0]], "limit": None}
        raise FakeError(-32003, "the kernel's switch has none", data)
    if (params.get("shared_buffer") or {}).get("lossless"):
        # As the real one: the fabric cannot pause the kernels of its hosts.
        data = {
            "what": "shared_buffer of the rack",
            "asked": "a lossless one",
            "limit": "a lossy one: hosts' kernels cannot be paused",
        }
        raise FakeError(-32003, "a rack has no lossless buffer", data)
    names = [host["name"] for host in params["hosts"]]
    for link in params.get("links", ()):
        ports = topologies.directed(_topology(params), names)
        if not any(topologies.setting([link], source, target) for source, target in ports):
            text = f"rack.up: links: found {link['from']} to {link['to']}, expected a link that there is"
            raise FakeError(-32602, text, {"method": "rack.up"})


def answer(rack: BuiltRack, fault: Told) -> Json | None:
    """`network` of the result."""
    up = rack.up
    if up["testbed"] == "kernel":
        return None
    ports = [_port(rack, source, target, fault) for source, target in topologies.directed(rack.topology, rack.names)]
    rtt = up["link"]["rtt_seconds"] * (2 if fault("network_rtt") else 1)
    hops_by_kind = {"rack": 2, "dumbbell": 3, "leaf-spine": 4, "fat-tree": 6}
    hops = hops_by_kind.get(rack.topology["kind"], len(rack.links))
    return {
        "switches": topologies.switches(rack.links, {*rack.names, *rack.routers}),
        "ports": ports[:-1] if fault("link_missing") else ports,
        "rtt_seconds": {"least": rtt * 2 / hops, "most": rtt},
        "hops": {"least": 2, "most": hops},
        "shared_buffer": None if fault("own_buffers") else up.get("shared_buffer"),
    }


def nics(rack: BuiltRack, node: str) -> list[Json]:
    """`nics` of a host or a router; the indices of interfaces are unique among all."""
    all_ends = [end for name in (*rack.names, *rack.routers) for end in rack.ends(name)]
    return [
        {
            "interface": f"fg{all_ends.index(end) + 1}", "address": rack.address(node, index), "mac": "02:00",
            "end": end,
        }
        for index, end in enumerate(rack.ends(node))
    ]  # fmt: skip


def routers(rack: BuiltRack, fault: Told) -> list[Json]:
    """`routers` of the result."""
    settings = {router["name"]: router for router in rack.topology.get("routers", ())}
    entries = [
        {
            "name": name, "pid": 500 + index, "thread": 501 + index,
            "mtu": _router_mtu(rack, name) - (1 if fault("router_mtu") else 0),
            "icmp": "on" if fault("router_icmp") else settings[name].get("icmp", "on"), "nics": nics(rack, name),
        }
        for index, name in enumerate(rack.routers)
    ]  # fmt: skip
    return entries[:-1] if fault("router_missing") else entries


def _router_mtu(rack: BuiltRack, name: str) -> int:
    settings = next(router for router in rack.topology["routers"] if router["name"] == name)
    mtu: int = settings.get("mtu", rack.up["link"]["port_mtu"])
    return mtu


def changed(rack: BuiltRack, asked: Json) -> list[str]:
    """The names of the hosts or links that `rack.set` changes."""
    if "host" in asked:
        return [asked["host"]]
    ports = topologies.directed(rack.topology, rack.names)
    return [f"{source}>{target}" for source, target in ports if topologies.setting([asked], source, target)]


def _topology(up: Json) -> Json:
    return up.get("topology") or {"kind": "rack"}


def _queue(up: Json, setting: Json) -> Json:
    queue: Json = setting.get("queue") or up.get("queue") or {"kind": "taildrop"}
    return queue


def _port(rack: BuiltRack, source: str, target: str, fault: Told) -> Json:
    up, node = rack.up, topologies.node_of(source)
    setting = topologies.setting(up.get("links", ()), source, target)
    rate = setting.get("bits_per_second", up["link"]["bits_per_second"])
    queue = {"kind": "taildrop"} if fault("queue") else _queue(up, setting)
    if "limit_frames" not in queue:
        buffer = setting.get("buffer_bytes", up["link"]["buffer_bytes"])
        queue = {**queue, "limit_bytes": buffer // (2 if fault("buffer") else 1)}
    by_name = {router["name"]: router for router in rack.topology.get("routers", ())}
    mtu = _router_mtu(rack, node) if node in by_name else setting.get("mtu", up["link"]["port_mtu"])
    return {
        "port": f"{source}>{target}", "from": source, "to": target,
        "bits_per_second": topologies.skewed(rate, 0 if fault("skew") else setting.get("skew_ppm", 0)),
        "delay_seconds": setting.get("delay_seconds", 0.0) + setting.get("phase_seconds", 0.0),
        "jitter_seconds": setting.get("jitter_seconds", 0.0), "loss": setting.get("loss", 0.0),
        "tagged": setting.get("tagged", False) and not fault("untagged"),
        "filters_icmp_errors": by_name.get(node, {}).get("icmp") == "filtered" and not fault("router_icmp"),
        "mtu": mtu, "queue": None if node in rack.names else queue,
    }  # fmt: skip


def port_counts(rack: BuiltRack, fault: Told) -> list[Json]:
    """The ports of `measure.end`: hosts' NICs and the switch ports to them; traffic between switches and of routers is
    not counted."""
    return [
        _counted(rack, source, target, fault)
        for source, target in topologies.directed(rack.topology, rack.names)
        if topologies.node_of(source) in rack.names or topologies.node_of(target) in rack.names
    ]


def _counted(rack: BuiltRack, source: str, target: str, fault: Told) -> Json:
    setting = topologies.setting(rack.up.get("links", ()), source, target)
    of_host = topologies.node_of(source) in rack.names
    sent = rack.sent_by[source] if of_host else rack.received_by[target]
    lost = 0 if fault("loss") else round(sent * setting.get("loss", 0.0))
    queue = _queue(rack.up, setting)
    capable = rack.up["sysctls"].get("net.ipv4.tcp_ecn") == "1"
    marked = sent // MARKED_ONE_IN if capable and disciplines.marks(queue) and not of_host else 0
    zero = {f"{event}_{unit}": 0 for event in ("dropped", "queued") for unit in ("frames", "bytes")}
    wrong = 1 if fault("conservation") else 0
    return {
        "port": f"{source}>{target}", **zero, "giant_frames": 0, "filtered_frames": 0, "peak_queue_bytes": 0,
        "busy_seconds": 0.0, "occupied_seconds": 0.0,
        "received_frames": sent, "received_bytes": sent * 100,
        "sent_frames": sent - wrong, "sent_bytes": sent * 100 - wrong,
        "marked_frames": marked, "lost_frames": lost, "lost_bytes": lost * 100,
    }  # fmt: skip


def _own_link(rack: BuiltRack, end: str) -> Json:
    """The settings of a host's own link, the first if it has two."""
    ports = topologies.directed(rack.topology, rack.names)
    own_port = next(port for port in ports if end in (port[0], topologies.node_of(port[0])))
    changes = [change for _, change in rack.changes if "from" in change]
    return topologies.setting([*rack.up.get("links", ()), *changes], *own_port)


def own_rate(rack: BuiltRack, end: str) -> int | None:
    """The bits per second of that link, without skew, after all changes so far; None: unshaped."""
    rate: int | None = _own_link(rack, end).get("bits_per_second", rack.up["link"]["bits_per_second"])
    return rate


def common_switches(rack: BuiltRack, one: str, other: str) -> list[tuple[str, str, str]]:
    """The switches that two hosts' NICs of the same number share, each between the two ends."""
    triples = []
    for ends in zip(rack.ends(one), rack.ends(other), strict=False):
        switch_sets = [{switch for end, switch in rack.links if end == nic_end} for nic_end in ends]
        triples += [(ends[0], switch, ends[1]) for switch in sorted(switch_sets[0] & switch_sets[1])]
    return triples


def background(rack: BuiltRack, elapsed_seconds: float, fault: Told) -> list[Json]:
    """The counts of every background load after this many seconds, with everything delivered."""
    loads = []
    for load in rack.up.get("background", ()):
        rate = load["bits_per_second"] or load["share"] * topologies.skewed(
            own_rate(rack, load["from"]) or 0, _own_link(rack, load["from"]).get("skew_ppm", 0)
        )
        duty = 0.5 if load["process"] == "on-off" else 1.0
        frames = 0 if fault("background") else round(duty * rate * elapsed_seconds / 8 / (load["frame_bytes"] + 20))
        counts = {"sent_frames": frames, "delivered_frames": frames}
        byte_counts = {name.replace("frames", "bytes"): frames * load["frame_bytes"] for name in counts}
        loads.append({**counts, **byte_counts})
    return loads
