"""Bytes of blocks that a client wrote to a Ceph cluster and read from it, against what switch ports sent to its hosts.

Every block that fio writes arrives at as many OSDs as it has copies, and every block that it reads at the client. What
a port sent, less all headers, is the payload that its host received; it has besides

- the messages around each block: a request for each, for each further copy the OSD's own message with its log entry
  and statistics, and the answers (`_OWN`, by major version of Ceph);
- heartbeats: each OSD asks each other one over both networks and is answered, with OSD_HEARTBEAT_MIN_SIZE bytes each;
- maps that the client gets when it opens the image;
- what was sent again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from framegauge.evidence.costs import accounts
from framegauge.evidence.nic import deltas, overlay_bytes
from framegauge.networks.topologies import node_of
from framegauge.testbeds.base import Conditions, Json

__all__ = ["block_failures", "block_readings", "payload_bytes", "unproved_blocks"]

SHARE = 0.03  # tolerated of what is expected
# Of a frame, FCS included: Ethernet, IPv4, and TCP with timestamps. A handshake has 8 bytes more, and SACKs have some.
HEADERS_BYTES = 18 + 20 + 32
HEARTBEAT_BYTES = 2080  # osd_heartbeat_min_size, and its message's header
HEARTBEAT_SECONDS = 3.2  # in the mean: 0.5 s, and 0 to 0.9 of osd_heartbeat_interval (6 s), drawn evenly by tenths
OPENING_BYTES = 10_000  # of maps and answers to the client, by which expectations of small runs may be wrong


@dataclass(frozen=True)
class _Own:
    """Bytes of messages besides blocks: a request for a block, what each further copy takes, and answers."""

    request: int
    copy: int
    answer_to_write: int
    answer_to_read: int


# Measured: docs/storage.md says how.
_OWN: Mapping[int, _Own] = {16: _Own(request=375, copy=2270, answer_to_write=315, answer_to_read=275)}


def unproved_blocks(record: Json) -> Iterator[str]:
    """That the bytes of a version of Ceph cannot be accounted for, whose messages are not known."""
    version = record["workload"].get("ceph_version")
    if version is not None and version not in _OWN:
        versions = ", ".join(map(str, _OWN))
        yield f"bytes of blocks on the wire: the messages of Ceph {version} are not known, only those of {versions}"


def block_failures(conditions: Conditions, record: Json) -> Iterator[str]:
    """One line for each side that received another number of bytes than fio's blocks account for."""
    ceph = record["workload"].get("ceph")
    sizes = None if ceph is None else _OWN.get(record["workload"]["ceph_version"])
    if ceph is None or sizes is None or record["measure"]["fabric"] is None:
        return
    blocks, copies = ceph["reads"] + ceph["writes"], ceph["replication"]
    round_bytes = 4 * len(ceph["osds"]) * (len(ceph["osds"]) - 1) * HEARTBEAT_BYTES
    resent_bytes = _again(conditions, record)
    expected = copies * ceph["written_bytes"] + blocks * sizes.request + ceph["writes"] * (copies - 1) * sizes.copy
    expected += round(round_bytes * record["workload"]["active_seconds"] / HEARTBEAT_SECONDS)
    yield from _differs("OSDs", payload_bytes(record, ceph["osds"]), expected, round_bytes + resent_bytes)
    if ceph["reads"]:
        expected = ceph["read_bytes"] + ceph["reads"] * sizes.answer_to_read + ceph["writes"] * sizes.answer_to_write
        expected += OPENING_BYTES
        received = payload_bytes(record, [ceph["client"]])
        yield from _differs(f"client {ceph['client']}", received, expected, OPENING_BYTES + resent_bytes)


def _differs(whose: str, received: int, expected: int, slack: int) -> Iterator[str]:
    if abs(received - expected) > SHARE * expected + slack:
        yield f"payload that ports sent to {whose}: {received} bytes are not those of blocks and messages: {expected}"


def _again(conditions: Conditions, record: Json) -> int:
    """The bytes that hosts sent again, at most: a segment may be as large as the largest MTU."""
    segments = sum(deltas(record, host, "nstat").get("TcpRetransSegs", 0) for host in conditions.hosts)
    mtus: list[int] = [change["set"]["mtu"] for change in conditions.changes if {"host", "mtu"} <= change["set"].keys()]
    return segments * max([*conditions.first_mtus, *mtus])


def payload_bytes(record: Json, hosts: Collection[str]) -> int:
    """The bytes that ports sent to these hosts, without the headers of Ethernet, IP and TCP."""
    total = 0
    for port in record["measure"]["fabric"]["ports"]:
        host = node_of(port["port"].rpartition(">")[2])
        if host in hosts:
            total += port["sent_bytes"] - port["sent_frames"] * (HEADERS_BYTES + overlay_bytes(record, host))
    return total


def block_readings(record: Json) -> dict[str, Any]:
    """`osds`: of each, the frames that it received and sent, their mean size with FCS, and its CPU time; and of its NIC
    on the storage network, if it has one, the same of frames."""
    ceph = record["workload"].get("ceph")
    if ceph is None or record["measure"]["fabric"] is None:
        return {}
    seconds = accounts(record)["hosts"] if "cpu" in record else {}
    osds = {name: _frames(record, name) | {"cpu_seconds": seconds.get(name)} for name in ceph["osds"]}
    for name, osd in osds.items() if ceph.get("storage_network") else ():
        osd["storage"] = _frames(record, f"{name}.2")
    return {"osds": osds}


def _frames(record: Json, whose: str) -> dict[str, Any]:
    """Of a host, or of one of its NICs."""
    counts: dict[str, Any] = {}
    for place, direction in ((2, "received"), (0, "sent")):
        ports = [(port, port["port"].rpartition(">")[place]) for port in record["measure"]["fabric"]["ports"]]
        own_ports = [port for port, end in ports if whose in (end, node_of(end))]
        frames, amount = (sum(port[f"sent_{unit}"] for port in own_ports) for unit in ("frames", "bytes"))
        counts |= {f"{direction}_frames": frames, f"{direction}_frame_bytes": amount / frames if frames else None}
    return counts
