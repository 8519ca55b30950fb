"""Aggregates of packets inside a host: what every stack and device takes, above which they are BIG TCP."""

from __future__ import annotations

__all__ = ["HARDWARE_GRO", "USUAL_BYTES"]

USUAL_BYTES = 65_536  # an IP header names no more than one byte less
HARDWARE_GRO = "rx-gro-hw"  # the kernel's name for GRO in the hardware of a NIC (ethtool -k)
