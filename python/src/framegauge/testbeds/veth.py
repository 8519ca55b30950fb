"""The kernel's own link: namespaces joined by veth, shaped by tbf or not at all.

It serves as an oracle for the fabric (another implementation of the same link), and for studies in which the CPU is the
limit. Two hosts are one veth pair; three or more are joined by the kernel's bridge, whose ports are shaped, too, and
drop frames that do not fit. It cannot delay frames, and passes on whole aggregates of TSO.
"""

from __future__ import annotations

from framegauge.testbeds.rack import RackTestbed

__all__ = ["VethTestbed"]


class VethTestbed(RackTestbed):
    """The testbed `kernel` of a rack agent."""

    kind = "kernel"
