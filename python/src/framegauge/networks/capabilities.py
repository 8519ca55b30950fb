"""What testbeds can do: rules and checks ask for that, and not for the name of a testbed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["BUILT", "CAPABILITIES", "Capabilities"]

# Our fabric is one thread, which copies every byte from one host's interface and to another's. No core copies 100 GB/s,
# so no machine carries more; what this one carries, the agent measures before the first run.
FABRIC_BITS_PER_SECOND = 400 * 10**9


@dataclass(frozen=True)
class Capabilities:
    """What one kind of testbed can do; what is not named here, none of them does, or all do."""

    has_fabric: bool = False  # our switches: topologies, disciplines, faults of links, and changes during a run
    delays: bool = False  # it makes the RTT that is asked for
    builds_hosts: bool = True  # else they are the user's own, on which only what a study asks for is changed
    is_private: bool = True  # no other traffic crosses the hosts' interfaces
    is_invented: bool = False  # neither packets nor programs are real
    is_virtual: bool = False  # packets are simulated in virtual time: no programs, no CPUs, nothing to be late for
    overlays: tuple[str, ...] = ()  # between the hosts, by their words in the factor
    names_hosts: bool = False  # each host has a name and folders of its own
    passes_aggregates: bool = False  # links carry whole aggregates of TSO from one stack to the other
    most_bits_per_second: int | None = None  # of a link of a host, on the fastest of machines


CAPABILITIES: Mapping[str, Capabilities] = {
    "rack": Capabilities(
        has_fabric=True,
        delays=True,
        overlays=("vxlan",),
        names_hosts=True,
        most_bits_per_second=FABRIC_BITS_PER_SECOND,
    ),
    "veth": Capabilities(overlays=("vxlan",), passes_aggregates=True),
    "fake": Capabilities(has_fabric=True, delays=True, is_invented=True),
    "simulator": Capabilities(has_fabric=True, delays=True, is_virtual=True, overlays=("vxlan", "geneve")),
    "ssh": Capabilities(builds_hosts=False, is_private=False),
}

# By the names that the agent and the conditions of a run have for them. An invented network answers as a rack would.
BUILT: Mapping[str, Capabilities] = {
    "fabric": CAPABILITIES["rack"],
    "kernel": CAPABILITIES["veth"],
    "hosts": CAPABILITIES["ssh"],
    "simulation": CAPABILITIES["simulator"],
}
