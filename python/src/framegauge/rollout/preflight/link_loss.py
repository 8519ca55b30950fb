"""Drivers that stop and start a NIC to give it another MTU, so that its link is down for seconds. Pure.

What a driver does is read in its source (the function that `ndo_change_mtu` names). How long the link is away depends
on the NIC, the switch and their protocols (autonegotiation, LACP, spanning tree), and no such NIC was at hand: the
seconds here are what a roll-out waits, no measurement. Who knows better says so in the file (`link_loss: 5 s`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from framegauge.rollout.model import Asked, Finding, Json
from framegauge.rollout.preflight import devices
from framegauge.rollout.preflight.case import Case

__all__ = ["SECONDS", "SHARE", "found", "predicted", "seconds"]

SECONDS = 3.0
SHARE = 0.25  # of a lease that a link may be away, so that there is time left to prove what passes
# By driver, what it calls when the MTU of an interface that is up changes.
RESTARTS = {
    "e1000": "e1000_down() and e1000_up()", "e1000e": "e1000e_down() and e1000e_up()",
    "igb": "igb_down() and igb_up()", "igc": "igc_down() and igc_up()", "ixgbe": "ixgbe_reinit_locked()",
    "i40e": "i40e_vsi_reinit_locked()", "ice": "ice_down() and ice_up()", "tg3": "tg3_halt() and tg3_restart_hw()",
    "bnx2": "bnx2_change_ring_size()", "bnx2x": "bnx2x_reload_if_running()",
    "mlx4_en": "mlx4_en_stop_port() and mlx4_en_start_port()",
    "qede": "qede_reload()", "hns3": "hns3_nic_net_stop() and hns3_nic_net_open()",
}  # fmt: skip


def predicted(facts: Mapping[str, Json], asked: Asked) -> dict[str, float]:
    """How long the link of each host may be away, in seconds; hosts of which nothing says so are left out."""
    cases = [Case(name, asked.interfaces[name], asked, facts[name]) for name in asked.hosts if name in facts]
    return {case.host: lost for case in cases if case.interface in case.links and (lost := seconds(case)) > 0}


def seconds(case: Case) -> float:
    """Of one host: what the user says, or what its drivers let expect."""
    if case.asked.link_loss_seconds is not None:
        return case.asked.link_loss_seconds if _changes(case) else 0.0
    return SECONDS if RESTARTS.keys() & set(_changes(case).values()) else 0.0


def found(case: Case) -> Iterator[Finding]:
    """What happens to the link, and whether the lease is long enough for it."""
    lost = seconds(case)
    if not lost:
        return
    changed = _changes(case)
    drivers = [f"{name}: {driver} calls {RESTARTS[driver]}" for name, driver in changed.items() if driver in RESTARTS]
    why = "; ".join(drivers) or "the file says so"
    text = f"a link that may be down for {lost:g} s when its MTU changes ({why})"
    if lost > SHARE * case.asked.lease_seconds:
        remedy = f"a lease of {lost / SHARE:g} s or more: hosts that are not proved in time put everything back"
        yield case.finding(
            "link_loss", "refused", text, f"at most a quarter of the lease ({case.asked.lease_seconds:g} s)", remedy
        )
        return
    remedy = "interfaces change wave by wave, with that pause between; what goes by this link alone waits"
    yield case.finding("link_loss", "note", text, "a link that stays up", remedy)


def _changes(case: Case) -> dict[str, str]:
    """The interfaces of the host whose MTU changes, with their drivers: what is meant, what it stands on, and ports of
    bundles, which follow it."""
    below = [link for link in devices.carriers(case, case.link) if link.mtu < case.target or not case.is_raised]
    ports = [
        port for link in (case.link, *below) if link.kind in devices.BUNDLES for port in case.links.ports(link.name)
    ]
    links = {link.name: link for link in (case.link, *below, *ports) if link.mtu != case.target}
    return {name: case.driver(name) or "" for name in links}
