"""What the kernel's MPTCP cannot do on a testbed's hosts: rules for the factor `mptcp`, checked before a study runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from framegauge.files.types import Problem
from framegauge.networks import multipath
from framegauge.study.factors import Factors
from framegauge.study.testbed import Testbed

__all__ = ["multipath_problems"]

TIMESTAMPS = "net.ipv4.tcp_timestamps"  # for both IP families


def multipath_problems(factors: Factors, bed: Testbed, sysctls: Mapping[str, str]) -> Iterator[Problem]:
    """Problems with the user's own hosts, and with options that have no room.

    An ADD_ADDR of an IPv6 address with a port takes 30 bytes (RFC 8684 section 3.4.1), and timestamps 12, of the 40
    that a segment has for options: the kernel drops it.
    """
    if factors.mptcp is None:
        return
    if not bed.capabilities.builds_hosts:
        expected = "no such factor on your own hosts, whose path managers are left unchanged"
        yield Problem(("factors", "mptcp"), ", ".join(factors.mptcp.levels), expected)
    several = [level for level in factors.mptcp.levels if (multipath.subflows(level) or 0) > 1]
    if bed.family == 6 and several and sysctls.get(TIMESTAMPS) != "0":
        expected = f'at most 1 with family: 6 and TCP timestamps (sysctls: {{{TIMESTAMPS}: "0"}}): no room in 40 bytes'
        yield Problem(("factors", "mptcp"), several[0], expected)
