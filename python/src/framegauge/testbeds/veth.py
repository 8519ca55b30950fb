"""The kernel alone: namespaces joined by veth, shaped by tbf or not at all.

An oracle for the fabric (another implementation of the same link), and the regime in which the CPU is
the limit. Two hosts are one veth pair; three or more are joined by the kernel's bridge, whose ports are shaped too
and drop what does not fit. It cannot delay, and passes the aggregates of TSO on whole.
"""

from __future__ import annotations

from framegauge.testbeds.rack import RackTestbed

__all__ = ["VethTestbed"]


class VethTestbed(RackTestbed):
    """`testbed: kernel` of a rack agent."""

    kind = "kernel"
