"""The network of the invented rack: what `rack.up` tells of it, and what its ports and background loads counted."""

from __future__ import annotations

from collections.abc import Callable

from framegauge import disciplines, topologies
from framegauge.testbeds.base import Json
from framegauge.testbeds.fake_model import BuiltRack, FakeError

__all__ = ["answer", "background", "changed", "common_switches", "port_counts", "refuse"]

ON_FABRIC = ("topology", "queue", "shared_buffer", "links", "routing", "background")
MARKED_ONE_IN = 50  # frames, at a port whose queue marks

Told = Callable[[str], bool]


def refuse(params: Json) -> None:
    """FakeError for a network that no testbed can be: the kernel's switch is not ours."""
    asked = [name for name in ON_FABRIC if params.get(name)]
    if params["testbed"] == "kernel" and asked:
        data = {"what": asked[0], "asked": params[asked[0]], "limit": None}
        raise FakeError(-32003, "the kernel's switch has none", data)
    names = [host["name"] for host in params["hosts"]]
    for each in params.get("links", ()):
        ports = topologies.directed(_topology(params), names)
        if not any(topologies.setting([each], one, other) for one, other in ports):
            text = f"rack.up: links: found {each['from']} to {each['to']}, expected a link that there is"
            raise FakeError(-32602, text, {"method": "rack.up"})


def answer(up: Json, fault: Told) -> Json | None:
    """`network` of the result."""
    if up["testbed"] == "kernel":
        return None
    hosts = [host["name"] for host in up["hosts"]]
    drawn = topologies.drawn_links(_topology(up), hosts)
    ports = [_port(up, one, other, fault) for one, other in topologies.directed(_topology(up), hosts)]
    rtt = up["link"]["rtt_seconds"] * (2 if fault("network_rtt") else 1)
    hops = {"rack": 2, "dumbbell": 3, "leaf-spine": 4, "fat-tree": 6}.get(_topology(up)["kind"], len(drawn))
    return {
        "switches": topologies.switches(drawn, hosts),
        "ports": ports[:-1] if fault("link_missing") else ports,
        "rtt_seconds": {"least": rtt * 2 / hops, "most": rtt},
        "hops": {"least": 2, "most": hops},
        "shared_buffer": None if fault("own_buffers") else up.get("shared_buffer"),
    }


def changed(rack: BuiltRack, asked: Json) -> list[str]:
    """The names of what `rack.set` means."""
    if "host" in asked:
        return [asked["host"]]
    ports = topologies.directed(_topology(rack.up), rack.names)
    return [f"{one}>{other}" for one, other in ports if topologies.setting([asked], one, other)]


def _topology(up: Json) -> Json:
    return up.get("topology") or {"kind": "rack"}


def _queue(up: Json, setting: Json) -> Json:
    found: Json = setting.get("queue") or up.get("queue") or {"kind": "taildrop"}
    return found


def _port(up: Json, one: str, other: str, fault: Told) -> Json:
    setting = topologies.setting(up.get("links", ()), one, other)
    rate = setting.get("bits_per_second", up["link"]["bits_per_second"])
    host = one in [each["name"] for each in up["hosts"]]
    queue = {"kind": "taildrop"} if fault("queue") else _queue(up, setting)
    if "limit_frames" not in queue:
        buffer = setting.get("buffer_bytes", up["link"]["buffer_bytes"])
        queue = {**queue, "limit_bytes": buffer // (2 if fault("buffer") else 1)}
    return {
        "port": f"{one}>{other}", "from": one, "to": other,
        "bits_per_second": topologies.skewed(rate, 0 if fault("skew") else setting.get("skew_ppm", 0)),
        "delay_seconds": setting.get("delay_seconds", 0.0) + setting.get("phase_seconds", 0.0),
        "jitter_seconds": setting.get("jitter_seconds", 0.0), "loss": setting.get("loss", 0.0),
        "tagged": setting.get("tagged", False) and not fault("untagged"),
        "mtu": setting.get("mtu", up["link"]["port_mtu"]), "queue": None if host else queue,
    }  # fmt: skip


def port_counts(rack: BuiltRack, fault: Told) -> list[Json]:
    """The ports of `measure.end`, of hosts' NICs and of the switches before them; what passes between switches is not
    counted here."""
    up = rack.up
    return [
        _counted(rack, one, other, fault)
        for one, other in topologies.directed(_topology(up), rack.names)
        if one in rack.names or other in rack.names
    ]


def _counted(rack: BuiltRack, one: str, other: str, fault: Told) -> Json:
    setting = topologies.setting(rack.up.get("links", ()), one, other)
    sent = rack.sent[one] if one in rack.names else rack.received[other]
    lost = 0 if fault("loss") else round(sent * setting.get("loss", 0.0))
    queue = _queue(rack.up, setting)
    capable = rack.up["sysctls"].get("net.ipv4.tcp_ecn") == "1"
    marked = sent // MARKED_ONE_IN if capable and disciplines.marks(queue) and one not in rack.names else 0
    zero = {f"{what}_{unit}": 0 for what in ("dropped", "queued") for unit in ("frames", "bytes")}
    wrong = 1 if fault("conservation") else 0
    return {
        "port": f"{one}>{other}", **zero, "giant_frames": 0, "peak_queue_bytes": 0,
        "busy_seconds": 0.0, "occupied_seconds": 0.0,
        "received_frames": sent, "received_bytes": sent * 100,
        "sent_frames": sent - wrong, "sent_bytes": sent * 100 - wrong,
        "marked_frames": marked, "lost_frames": lost, "lost_bytes": lost * 100,
    }  # fmt: skip


def _line_rate(rack: BuiltRack, host: str) -> int:
    """Bits a second of a host's own link, the first if it has two."""
    ways = topologies.directed(_topology(rack.up), rack.names)
    setting = topologies.setting(rack.up.get("links", ()), *next(way for way in ways if way[0] == host))
    rate: int = setting.get("bits_per_second", rack.up["link"]["bits_per_second"])
    return topologies.skewed(rate, setting.get("skew_ppm", 0))


def common_switches(rack: BuiltRack, one: str, other: str) -> list[str]:
    """The switches that two hosts are both on: one, or none."""
    drawn = topologies.drawn_links(_topology(rack.up), rack.names)
    ends = [{switch for host, switch in drawn if host == name} for name in (one, other)]
    return sorted(ends[0] & ends[1])


def background(rack: BuiltRack, elapsed_seconds: float, fault: Told) -> list[Json]:
    """What every background load has sent in so many seconds, all of it delivered."""
    found = []
    for load in rack.up.get("background", ()):
        rate = load["bits_per_second"] or load["share"] * _line_rate(rack, load["from"])
        duty = 0.5 if load["process"] == "on-off" else 1.0
        frames = 0 if fault("background") else round(duty * rate * elapsed_seconds / 8 / (load["frame_bytes"] + 20))
        counts = {"sent_frames": frames, "delivered_frames": frames}
        amounts = {name.replace("frames", "bytes"): frames * load["frame_bytes"] for name in counts}
        found.append({**counts, **amounts})
    return found
