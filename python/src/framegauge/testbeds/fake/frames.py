"""The answers of a fake agent to `frames.wire`: only VXLAN, enough for the golden transcripts."""

from __future__ import annotations

from framegauge.testbeds.base import Json
from framegauge.testbeds.fake.testbed import FakeError

__all__ = ["wire"]

_IP = {
    4: {"name": "IPv4 header", "bytes": 20, "source": "RFC 791 section 3.1"},
    6: {"name": "IPv6 header", "bytes": 40, "source": "RFC 8200 section 3"},
}
_VXLAN = [
    {"name": "UDP header", "bytes": 8, "source": "RFC 768"},
    {"name": "VXLAN header", "bytes": 8, "source": "RFC 7348 section 5"},
    {"name": "inner Ethernet header", "bytes": 14, "source": "IEEE 802.3 clause 3.2"},
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
    taken = sum(int(str(part["bytes"])) for part in parts)
    inner = mtu - taken
    layer = {
        "name": "vxlan", "underlay": underlay, "within_mtu": True, "overhead_bytes": taken, "inner_mtu": inner,
        "parts": parts,
    }  # fmt: skip
    families = [
        {
            "family": family, "mss_bytes": inner - headers, "segment_payload_bytes": inner - headers - 12,
            "goodput_bits_per_second": None, "packets_per_second": None,
        }
        for family, headers in ((4, 40), (6, 60))
    ]  # fmt: skip
    return {
        "mtu": mtu, "inner_mtu": inner, "overhead_bytes": taken, "frame_overhead_bytes": 0, "frame_bytes": mtu + 18,
        "wire_bytes": mtu + 38, "bits_per_second": None, "layers": [layer] if parts else [], "families": families,
    }  # fmt: skip
