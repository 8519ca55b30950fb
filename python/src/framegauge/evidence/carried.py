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
    ends = [end for end in fabric_hosts(record) if end["host"] in hosts]
    frames = sum(end["read_frames"] for end in ends)
    amount = sum(end["read_bytes"] for end in ends) + FCS_BYTES * frames
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
    sent, answered = (sum(_count(client[way]) for client in clients.values()) for way in ("sent", "received"))
    out, back = (sum(_of_udp(record, host, way) for host in clients) for way in ("Out", "In"))
    arrived, replies = (_of_udp(record, server, way) for way in ("In", "Out"))
    return {
        "sent": sent,
        "answered": answered,
        "lost_calls": out - arrived,
        "lost_in_server": arrived - replies,
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
    counts = datagrams(record)
    lost = {name: count for name, count in counts.items() if name.startswith("lost_")}
    for name, count in lost.items():
        if count < 0:
            yield f"datagrams {name.replace('_', ' ')}: found {count}, expected 0 or more"
    if counts["sent"] != counts["answered"] + sum(lost.values()):
        losses = ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in lost.items())
        yield f"datagrams that clients sent: {counts['sent']} is not answered + lost: {counts['answered']} + {losses}"


def _fragments(conditions: Conditions, record: Json) -> Iterator[str]:
    """Clients know what they sent, and of the server's replies those that arrived: of the others, only their number is
    known, and their frames are between those of the smallest and of the largest. ICMP messages are a frame each."""
    messages = record["workload"]["messages"]
    frames = {
        end["host"]: end["read_frames"]
        - sum(deltas(record, end["host"], "nstat").get(f"{name}OutMsgs", 0) for name in ("Icmp", "Icmp6"))
        for end in fabric_hosts(record)
    }
    replies: dict[str, int] = {}
    for host, end in messages["clients"].items():
        yield from _outside(host, frames[host], *_frames(conditions, record, host, end["sent"]))
        for size, count in end["received"].items():
            replies[size] = replies.get(size, 0) + count
    server = messages["server"]
    least, most = _frames(conditions, record, server, replies)
    if (lost := datagrams(record)["lost_replies"]) > 0 and replies:
        sizes = [_frames(conditions, record, server, {size: 1}) for size in replies]
        least += lost * min(fewest for fewest, _ in sizes)
        most += lost * max(largest for _, largest in sizes)
    yield from _outside(server, frames[server], least, most)


def _outside(host: str, frames: int, least: int, most: int) -> Iterator[str]:
    if not least <= frames <= most:
        bounds = str(least) if least == most else f"{least} to {most}"
        yield f"frames of the datagrams of {host}: {frames} is not the number by arithmetic: {bounds}"


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
    sent_bytes = {host: _total(end["sent"]) for host, end in messages["clients"].items()}
    sent_bytes[messages["server"]] = sum(_total(end["received"]) for end in messages["clients"].values())
    given_up = {host: end.get("given_up", NOTHING) for host, end in messages["clients"].items()}
    loose = {host: end["sent"] for host, end in given_up.items()}
    loose[messages["server"]] = sum(end["received"] for end in given_up.values())
    headers = FRAME_BYTES + IP_BYTES[conditions.family] + TCP_BYTES
    for end in fabric_hosts(record):
        if (host := end["host"]) not in sent_bytes:
            continue
        around = headers + overlay_bytes(record, host)
        payload = end["data_frame_bytes"] - around * end["data_frames"]
        resent = deltas(record, host, "nstat").get("TcpRetransSegs", 0) * max(conditions.mtus(host))
        expected, slack = sent_bytes[host], SHARE * sent_bytes[host] + loose[host]
        if not expected - slack <= payload <= expected + slack + resent:
            yield f"bytes in the segments of {host}: {payload} is not what its programs sent: {expected}"
