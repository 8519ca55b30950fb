"""Ports of RDMA whose path MTU does not fit the interface, or would change with its MTU: worth knowing, no faults."""

from __future__ import annotations

from framegauge.check.judgement.case import Case
from framegauge.check.judgement.findings import Command, Finding

__all__ = ["path_mtus"]


def path_mtus(case: Case) -> None:
    """`rdma_path_mtu`: each port that has something to be known before the target is set."""
    for host in case.mesh.hosts.values():
        for port in host.rdma:
            problem = port.wrong(case.mesh.target)
            if problem is None:
                continue
            path, least = port.largest
            text = f"On host {host.name} {problem}."
            case.add(
                Finding.about(
                    "rdma_path_mtu", f"{port.name} ({port.interface}) of {host.name}", [host.name], [], text, text,
                    advice=f"Programs that set a path MTU of their own stay at it. All ends need the same MTU, {least} "
                    f"or more for {path}.",
                    commands=(Command("ibv_devinfo | grep -E 'hca_id|port:|_mtu'", f"host {host.name}", "read it"),),
                    facts=(
                        ("Path MTU of RDMA in use (reading)", f"{port.active or 'not known'}"),
                        ("MTU of the interface (reading)", f"{port.mtu}"),
                    ),
                )
            )  # fmt: skip
