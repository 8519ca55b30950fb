"""Figures of frame arithmetic, by the agent's own sums, which are those of `framegauge wire`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from framegauge.errors import InputError
from framegauge.reproduce.documents import Figure, Wire

__all__ = ["Sums", "number"]

Ask = Callable[[int, Sequence[str], int | None], dict[str, Any]]
# A rate at which the agent says packets per second; what is taken of it does not depend on the rate.
RATE = 10**10


@dataclass(frozen=True)
class Sums:
    """How the agent is asked: for a frame (MTU, encapsulations, rate), and for a datagram (bytes, NFS, MTU)."""

    frame: Ask
    datagram: Callable[[int, bool, int | None], dict[str, Any]]


def number(figure: Figure, sums: Sums) -> float:
    """The figure of a document, by arithmetic."""
    assert figure.wire is not None
    amount = _one(figure.wire, sums)
    return amount if figure.wire.over is None else amount / _one(figure.wire.over, sums)


def _one(wire: Wire, sums: Sums) -> float:
    if wire.value == "packets":
        if wire.datagram is None:
            raise InputError("wire: found no datagram, expected its bytes for the value packets")
        links = sums.datagram(wire.datagram, False, wire.mtu if wire.medium == "ethernet" else None)["links"]
        return float(len(next(item for item in links if item["medium"] == wire.medium)["packets_bytes"]))
    frame = sums.frame(wire.mtu, wire.encapsulations, RATE)
    if wire.value == "inner_mtu":
        return float(frame["inner_mtu"])
    tcp = next(item for item in frame["families"] if item["family"] == 4)
    goodput = wire.goodput_bits_per_second or tcp["goodput_bits_per_second"]
    return float(tcp["packets_per_second"]) * goodput / float(tcp["goodput_bits_per_second"])
