"""Whether the wire carried what programs count. Record in, disagreements out.

A workload that knows every message of its application, headers included, states them by host: `messages` (Record). Over
TCP the frames of the fabric, less their headers, must be these bytes and what was sent again; those of requests that
were given up may be among them or not. Over UDP every datagram is either answered or lost, at a place that the kernels'
counters name, and the number of its fragments follows from the MTU (RFC 791 section 2.3): the fabric must have read
exactly so many frames; if the MTU changes in the run, a number between those of the MTUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from framegauge.evidence.nic import deltas, fabric_hosts, overlay_bytes
from framegauge.networks.fragments import IP_BYTES, fragments
from framegauge.testbeds.base import Conditions, Json

__all__ = ["carried_failures", "datagrams", "readings"]

SHARE = 0.03  # of the bytes of a host, by which its frames may differ from them
FRAME_BYTES = 18  # Ethernet header and FCS
FCS_BYTES = 4
TCP_BYTES = 32  # with timestamps (RFC 7323), which Linux sends with every segment
NOTHING = {"sent": 0, "received": 0}


def carried_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """One line for each host whose frames do not carry its messages; nothing of a workload that states none."""
    if "messages" not in record["workload"] or record["measure"]["fabric"] is None:
        return
    if record["workload"]["transport"] == "udp":
        yield from _answered(record)
        yield from _fragments(conditions, record)
    else:
        yield from _bytes(conditions, record)


def readings(record: Json) -> Json:
    """What calls took on the wire, for the line of a run: the frames both ways for each that was answered, the mean
    bytes of a frame, and what became of datagrams."""
    work = record["workload"]
    if "messages" not in work or record["measure"]["fabric"] is None:
        return {}
    hosts = {work["messages"]["server"], *work["messages"]["clients"]}
    mine = [each for each in fabric_hosts(record) if each["host"] in hosts]
    frames = sum(each["read_frames"] for each in mine)
    amount = sum(each["read_bytes"] for each in mine) + FCS_BYTES * frames
    return {
        "carried": {
            "frames": frames,
            "frames_per_call": frames / work["calls"] if work["calls"] else None,
            "bytes_per_frame": amount / frames if frames else None,
            "datagrams": datagrams(record) if work["transport"] == "udp" else None,
        }
    }


def datagrams(record: Json) -> Json:
    """What became of the datagrams of a run: by the clients' own count, and where the kernels lost the others."""
    work = record["workload"]
    server, clients = work["messages"]["server"], work["messages"]["clients"]
    sent, answered = (sum(_count(each[way]) for each in clients.values()) for way in ("sent", "received"))
    out, back = (sum(_of_udp(record, host, way) for host in clients) for way in ("Out", "In"))
    taken, replies = (_of_udp(record, server, way) for way in ("In", "Out"))
    return {
        "sent": sent,
        "answered": answered,
        "lost_calls": out - taken,
        "lost_in_server": taken - replies,
        "lost_replies": replies - back,
    }


def _of_udp(record: Json, host: str, way: str) -> int:
    """The datagrams that a host sent or took in, of both versions of IP, which the kernel counts apart."""
    nstat = deltas(record, host, "nstat")
    return int(nstat[f"Udp{way}Datagrams"]) + int(nstat.get(f"Udp6{way}Datagrams", 0))


def _count(sizes: Mapping[str, int]) -> int:
    return sum(sizes.values())


def _total(sizes: Mapping[str, int]) -> int:
    return sum(int(size) * count for size, count in sizes.items())


def _answered(record: Json) -> Iterator[str]:
    found = datagrams(record)
    lost = {name: count for name, count in found.items() if name.startswith("lost_")}
    for name, count in lost.items():
        if count < 0:
            yield f"datagrams {name.replace('_', ' ')}: found {count}, expected 0 or more"
    if found["sent"] != found["answered"] + sum(lost.values()):
        where = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in lost.items())
        yield f"datagrams that clients sent: {found['sent']} is not answered + lost: {found['answered']} + {where}"


def _fragments(conditions: Conditions, record: Json) -> Iterator[str]:
    """Clients know what they sent, and of the server's replies those that arrived: of the others, only their number is
    known, and their frames are between those of the smallest and of the largest. ICMP messages are a frame each."""
    messages = record["workload"]["messages"]
    frames = {
        each["host"]: each["read_frames"]
        - sum(deltas(record, each["host"], "nstat").get(f"{name}OutMsgs", 0) for name in ("Icmp", "Icmp6"))
        for each in fabric_hosts(record)
    }
    replies: dict[str, int] = {}
    for host, each in messages["clients"].items():
        yield from _outside(host, frames[host], *_frames(conditions, record, host, each["sent"]))
        for size, count in each["received"].items():
            replies[size] = replies.get(size, 0) + count
    server = messages["server"]
    least, most = _frames(conditions, record, server, replies)
    if (lost := datagrams(record)["lost_replies"]) > 0 and replies:
        sizes = [_frames(conditions, record, server, {size: 1}) for size in replies]
        least += lost * min(fewest for fewest, _ in sizes)
        most += lost * max(largest for _, largest in sizes)
    yield from _outside(server, frames[server], least, most)


def _outside(host: str, found: int, least: int, most: int) -> Iterator[str]:
    if not least <= found <= most:
        known = str(least) if least == most else f"{least} to {most}"
        yield f"frames of the datagrams of {host}: {found} is not the number by arithmetic: {known}"


def _frames(conditions: Conditions, record: Json, host: str, sizes: Mapping[str, int]) -> tuple[int, int]:
    """The frames of these datagrams with the largest MTU that the host sends by in the run, and with the smallest."""
    mtus = [mtu - overlay_bytes(record, host) for mtu in conditions.sent_mtus(host)]
    least, most = (
        sum(count * fragments(int(size), mtu, conditions.family) for size, count in sizes.items())
        for mtu in (max(mtus), min(mtus))
    )
    return least, most


def _bytes(conditions: Conditions, record: Json) -> Iterator[str]:
    messages = record["workload"]["messages"]
    counted = {host: _total(each["sent"]) for host, each in messages["clients"].items()}
    counted[messages["server"]] = sum(_total(each["received"]) for each in messages["clients"].values())
    given_up = {host: each.get("given_up", NOTHING) for host, each in messages["clients"].items()}
    loose = {host: each["sent"] for host, each in given_up.items()}
    loose[messages["server"]] = sum(each["received"] for each in given_up.values())
    headers = FRAME_BYTES + IP_BYTES[conditions.family] + TCP_BYTES
    for each in fabric_hosts(record):
        if (host := each["host"]) not in counted:
            continue
        around = headers + overlay_bytes(record, host)
        found = each["data_frame_bytes"] - around * each["data_frames"]
        again = deltas(record, host, "nstat").get("TcpRetransSegs", 0) * max(conditions.mtus(host))
        expected, slack = counted[host], SHARE * counted[host] + loose[host]
        if not expected - slack <= found <= expected + slack + again:
            yield f"bytes in the segments of {host}: {found} is not what its programs sent: {expected}"
