"""The answers of a fake agent to `frames.wire` (only VXLAN), `frames.datagram` (only Ethernet) and `frames.rdma`."""

from __future__ import annotations

from framegauge.testbeds.base import Json
from framegauge.testbeds.fake.testbed import FakeError

__all__ = ["datagram", "rdma", "wire"]

_IP = {
    4: {"name": "IPv4 header", "bytes": 20, "source": "RFC 791 section 3.1"},
    6: {"name": "IPv6 header", "bytes": 40, "source": "RFC 8200 section 3"},
}
_VXLAN = [
    {"name": "UDP header", "bytes": 8, "source": "RFC 768"},
    {"name": "VXLAN header", "bytes": 8, "source": "RFC 7348 section 5"},
    {"name": "inner Ethernet header", "bytes": 14, "source": "IEEE 802.3 clause 3.2"},
]
_READ = [
    {"name": "RPC reply", "bytes": 24, "source": "RFC 5531 section 9, AUTH_NONE verifier"},
    {"name": "NFS status", "bytes": 4, "source": "RFC 1813 section 3.3.6"},
    {"name": "file attributes", "bytes": 88, "source": "RFC 1813 sections 2.5 and 3.3.6"},
    {"name": "count, end of file, data length", "bytes": 12, "source": "RFC 1813 section 3.3.6"},
]
_ETHERNET = [
    {"name": "Ethernet header", "bytes": 14, "source": "IEEE 802.3 clause 3.2"},
    {"name": "FCS", "bytes": 4, "source": "IEEE 802.3 clause 3.2.9"},
    {"name": "preamble, SFD and gap", "bytes": 20, "source": "IEEE 802.3"},
]
_RDMA = [
    {"name": "base transport header", "bytes": 12, "source": "IBTA specification volume 1 chapter 9"},
    {"name": "RDMA header of the first packet", "bytes": 16, "source": "IBTA specification volume 1 chapter 9"},
    {"name": "invariant CRC", "bytes": 4, "source": "IBTA annex A17"},
]
_KNOWN = {(): None, ("vxlan",): 4, ("vxlan", "ipv4"): 4, ("vxlan", "ipv6"): 6}


def wire(params: Json) -> Json:
    """The answer; FakeError for any other encapsulation."""
    words, mtu = tuple(params["encapsulations"]), params["mtu"]
    if words not in _KNOWN:
        text = f'frames.wire: encapsulations: found "{words[0]}", expected vxlan: this agent is a fake'
        raise FakeError(-32602, text, {"method": "frames.wire"})
    underlay = _KNOWN[words]
    parts = [] if underlay is None else [_IP[underlay], *_VXLAN]
    overhead = sum(int(str(part["bytes"])) for part in parts)
    inner = mtu - overhead
    layer = {
        "name": "vxlan", "underlay": underlay, "within_mtu": True, "overhead_bytes": overhead, "inner_mtu": inner,
        "parts": parts, "range": None,
    }  # fmt: skip
    families = [
        {
            "family": family, "mss_bytes": inner - headers, "segment_payload_bytes": inner - headers - 12,
            "goodput_bits_per_second": None, "packets_per_second": None,
        }
        for family, headers in ((4, 40), (6, 60))
    ]  # fmt: skip
    return {
        "mtu": mtu, "inner_mtu": inner, "overhead_bytes": overhead, "frame_overhead_bytes": 0, "frame_bytes": mtu + 18,
        "wire_bytes": mtu + 38, "bits_per_second": None, "layers": [layer] if parts else [], "families": families,
    }  # fmt: skip


def datagram(params: Json) -> Json:
    """The answer for data in units of four bytes over IPv4; FakeError for any other link."""
    prefix = _READ if params["nfs_read"] else []
    payload = params["bytes"] + sum(int(str(part["bytes"])) for part in prefix)
    links = []
    for link in params["links"]:
        if link["medium"] != "ethernet":
            text = f'frames.datagram: medium: found "{link["medium"]}", expected ethernet: this agent is a fake'
            raise FakeError(-32602, text, {"method": "frames.datagram"})
        mtu = 1500 if link["mtu"] is None else link["mtu"]
        room, rest_bytes, packets = (mtu - 20) // 8 * 8, payload + 8, []
        while rest_bytes + 20 > mtu:
            packets.append(20 + room)
            rest_bytes -= room
        packets.append(20 + rest_bytes)
        links.append(
            {
                "medium": "ethernet", "mtu": mtu, "mtu_source": "RFC 894" if mtu == 1500 else None, "cells": None,
                "packets_bytes": packets, "wire_bytes": sum(max(packet, 46) + 38 for packet in packets),
                "parts": _ETHERNET,
            }
        )  # fmt: skip
    return {
        "bytes": params["bytes"], "nfs_read": params["nfs_read"], "family": 4, "payload_bytes": payload,
        "packet_bytes": payload + 28, "headers": [*prefix, _VXLAN[0], _IP[4]], "links": links,
    }  # fmt: skip


def rdma(params: Json) -> Json:
    """Which path MTUs of RDMA an interface carries; FakeError for an MTU that IPv4 does not have."""
    mtu, family = params["mtu"], params["family"]
    if not 68 <= mtu <= 65_535:
        text = f"frames.rdma: mtu: found {mtu}, expected 68 to 65535 bytes"
        raise FakeError(-32602, text, {"method": "frames.rdma"})
    udp = {"name": "UDP header", "bytes": 8, "source": "IBTA annex A17"}
    parts = [_IP[family], udp, *_RDMA]
    headers = sum(int(str(part["bytes"])) for part in parts)
    levels = [
        {
            "path_mtu": size, "packet_bytes": size + headers, "linux_mtu": size + 96, "wire_bytes": size + headers + 22,
            "payload_share": size / (size + headers + 22),
        }
        for size in (256, 512, 1024, 2048, 4096)
    ]  # fmt: skip
    fitting = [level["path_mtu"] for level in levels if level["packet_bytes"] <= mtu]
    offered = [level["path_mtu"] for level in levels if level["linux_mtu"] <= mtu]
    return {
        "mtu": mtu, "family": family, "path_mtu": fitting[-1] if fitting else None,
        "linux_path_mtu": offered[-1] if offered else None, "parts": parts, "levels": levels,
    }  # fmt: skip
