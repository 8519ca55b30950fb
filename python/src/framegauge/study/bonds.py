"""What hosts whose NICs are a bond cannot have: rules for studies, checked before anything is run.

A bond is one network, with one address per host. So there is no second network, and no NIC that a workload may choose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from framegauge.files.types import HOST, Problem
from framegauge.networks import topologies
from framegauge.study.changes import Change
from framegauge.study.mtus import storage_mtu
from framegauge.study.testbed import Testbed
from framegauge.study.workloads import Workload

__all__ = ["bond_problems"]


def bond_problems(
    bed: Testbed, mtus: Sequence[Any], workloads: Sequence[Workload], changes: Sequence[Change]
) -> Iterator[Problem]:
    """Problems of a study with a bond; none without."""
    bond = bed.topology.bond
    if bond is None:
        return
    whose = f"bond: {bond}, which makes the NICs of a host one, with one address"
    for index, level in enumerate(mtus):
        if (mtu := storage_mtu(level, bed.host_names)) is not None:
            yield Problem(("factors", "mtu", "levels", index, "storage"), mtu, f"no such key with {whose}")
    for index, workload in enumerate(workloads):
        if workload.stream is not None and workload.stream.nics != [1]:
            expected = f"no such key with {whose}: flows lie on its members by hash"
            yield Problem(("workloads", index, "stream", "nics"), workload.stream.nics, expected)
        if workload.ceph is not None and True in workload.ceph.storage_network:
            yield Problem(("workloads", index, "ceph", "storage_network"), True, f"false with {whose}")
    for index, change in enumerate(changes):
        if change.network is not None:
            yield Problem(("changes", index, "network"), change.network, f"no such key with {whose}")
        if change.up is not None and _is_of_member(bed, change):
            expected = f"no such key for a NIC with bond: {bond}: a member that is down is not left out of its bond"
            yield Problem(("changes", index, "up"), "true" if change.up else "false", expected)
    if not bed.capabilities.is_virtual:
        path = ("testbed", "topology", bed.topology.kind, "bond")
        yield Problem(path, bond, f"no such key with kind: {bed.kind}: only hosts of kind: simulator have bonds")


def _is_of_member(bed: Testbed, change: Change) -> bool:
    ports = topologies.directed(bed.topology.as_json(), bed.host_names)
    return any(
        topologies.fits(change.from_ or "", one) and topologies.fits(change.to or "", other)
        for one, other in ports
        if HOST.fullmatch(topologies.node_of(one)) or HOST.fullmatch(topologies.node_of(other))
    )
