"""The kernel alone: two namespaces joined by veth, shaped by tbf or not at all.

An oracle for the fabric (another implementation of the same link), and the regime in which the CPU is
the limit. It cannot delay, and has no switch.
"""

from __future__ import annotations

from framegauge.testbeds.rack import RackTestbed

__all__ = ["VethTestbed"]


class VethTestbed(RackTestbed):
    """`testbed: kernel` of a rack agent."""

    kind = "kernel"
