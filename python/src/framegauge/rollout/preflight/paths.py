"""What else bears on a change: management, TCP's settings, remembered path MTUs, routes, heartbeats. Pure."""

from __future__ import annotations

import contextlib
import ipaddress
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

from framegauge.rollout.model import Finding
from framegauge.rollout.preflight import devices
from framegauge.rollout.preflight.case import Case
from framegauge.rollout.preflight.neighbours import keeps_small

__all__ = ["clamps", "far_end", "heartbeats", "management", "remembered", "router", "routes", "tcp"]

HEADERS = 40  # of IPv4 and TCP without options: what an MSS is smaller than its MTU by
MOST_SHOWN = 4
# Ceph's defaults (src/common/options/osd.yaml.in): bytes of a heartbeat, and seconds until its silence counts.
HEARTBEAT_BYTES, GRACE_SECONDS = 2000, 20.0


def management(case: Case) -> Iterator[Finding]:
    """A fault of the interface by which the host is reached leaves no way to undo it but the lease."""
    words = case.facts["session"].split()
    stacked = case.links.stack(case.interface)
    own_addresses = {entry["address"]: name for name in stacked for entry in case.told(name).get("addresses", ())}
    remedy = "use an interface that is not the way to the host, or force management: the lease puts it back"
    if len(words) == 4 and words[2] in own_addresses:
        text = f"the interface of this ssh session ({words[2]})"
        yield case.finding("management", "refused", text, "one that only carries data", remedy)
        return
    yield from _on_the_way(case, words[2] if len(words) == 4 else None)
    leads_out = any(route.get("dst") == "default" and stacked & _devices(route) for route in _listed(case))
    if leads_out and case.asked.scope == "all":
        text = "the interface of the default route"
        yield case.finding("management", "refused", text, "one that only carries data", remedy)


def _on_the_way(case: Case, session: str | None) -> Iterator[Finding]:
    """What it stands on is raised with it, and may carry the session, too: untagged, or on another VLAN."""
    stacked = case.links.stack(case.interface)
    for base in devices.carriers(case, case.link):
        carried = case.links.stack(base.name) - stacked
        if base.mtu < case.target and session in {
            entry["address"] for name in carried for entry in case.told(name).get("addresses", ())
        }:
            text = f"{base.name} below it, which carries this ssh session ({session})"
            remedy = (
                "use another way to the host, or expect a short cut: many drivers restart a NIC whose MTU changes; "
            )
            remedy += "packets to you stay as small as they are"
            yield case.finding("management", "warning", text, "a way to the host that does not change", remedy)
            return


def tcp(case: Case) -> Iterator[Finding]:
    """Settings by which TCP does not send what the path carries (ip-sysctl.rst)."""
    if case.sysctl("net.ipv4.tcp_mtu_probing") == "2" and case.is_raised:
        remedy = "sysctl -w net.ipv4.tcp_mtu_probing=1 (undo: =2): with 2 each connection begins with an MSS of 1024, "
        remedy += "which takes the gain from short ones"
        yield case.finding("mtu_probing", "warning", "net.ipv4.tcp_mtu_probing=2", "0 or 1", remedy)
    discovery = case.sysctl("net.ipv4.ip_no_pmtu_disc")
    if discovery not in (None, "0"):
        remedy = f"sysctl -w net.ipv4.ip_no_pmtu_disc=0 (undo: ={discovery})"
        yield case.finding("discovery", "warning", f"net.ipv4.ip_no_pmtu_disc={discovery}", "0", remedy)


def remembered(case: Case) -> Iterator[Finding]:
    """Path MTUs that the kernel has learned limit what is sent there, also after a raise, until they expire."""
    if not case.is_raised:
        return
    cache = [entry for entry in case.facts["check"]["path_mtu_cache"] if entry["mtu"] < case.target]
    small_entries = [entry for entry in cache if case.asked.scope == "all" or case.is_near(entry["destination"])]
    if small_entries:
        examples = ", ".join(f"{entry['destination']} {entry['mtu']}" for entry in small_entries[:MOST_SHOWN])
        more = f" and {len(small_entries) - MOST_SHOWN} more" if len(small_entries) > MOST_SHOWN else ""
        seconds = case.sysctl("net.ipv4.route.mtu_expires") or "600"
        remedy = f"ip route flush cache; ip -6 route flush cache: else TCP announces a small MSS for up to {seconds} s"
        text = f"remembered path MTUs ({examples}{more})"
        yield case.finding("path_mtu_cache", "warning", text, f"none below {case.target}", remedy)


def routes(case: Case) -> Iterator[Finding]:
    """Routes of the interface with an MTU or MSS of their own."""
    for route in _listed(case):
        destination = str(route.get("dst", "?"))
        if case.interface not in _devices(route) or not (case.asked.scope == "all" or case.is_near(destination)):
            continue
        if _is_address(destination) and keeps_small(case, destination):
            continue  # on purpose, for a neighbour that takes no more
        metrics = _metrics(route)
        for key, limit in (("mtu", case.target), ("advmss", case.target - HEADERS)):
            value = metrics.get(key)
            if not isinstance(value, int) or value >= limit:
                continue
            protocol = str(route.get("protocol", "?"))
            remedy = f"take {key} off it: ip route change {destination} dev {case.interface} {key} {limit}"
            if protocol == "dhcp":
                remedy = "its DHCP client sets it by option 26, and does so again"
            text = f"the route {destination} (proto {protocol}) with {key} {value}"
            yield case.finding("route", "warning", text, f"{limit} or none", remedy)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def far_end(case: Case) -> Iterator[Finding]:
    """A tunnel to one far end, by a route that keeps a smaller MTU: its larger packets leave in fragments."""
    overhead, remote = devices.overhead(case, case.link), case.link.data.get("remote")
    route = _route_to(case, remote) if overhead is not None and isinstance(remote, str) else None
    mtu = None if route is None else _metrics(route).get("mtu")
    if route is not None and overhead is not None and isinstance(mtu, int) and case.target + overhead > mtu:
        text = f"the route {route.get('dst')} to its far end {remote} with mtu {mtu}"
        remedy = f"release that route where the whole way carries {case.target + overhead}, or ask for {mtu - overhead}"
        yield case.finding("overlay", "refused", text, f"{case.target + overhead} or none", remedy)


def _route_to(case: Case, address: str) -> Mapping[str, Any] | None:
    """The route of the main table that the kernel takes to an address: the narrowest, then that of least metric."""
    candidates: list[tuple[int, int, Mapping[str, Any]]] = []
    with contextlib.suppress(ValueError):
        destination = ipaddress.ip_address(address)
        for route in _listed(case, "routes" if destination.version == 4 else "routes6"):
            text, metric = str(route.get("dst")), route.get("metric")
            everywhere = "0.0.0.0/0" if destination.version == 4 else "::/0"
            with contextlib.suppress(ValueError):
                network = ipaddress.ip_network(everywhere if text == "default" else text, strict=False)
                if destination in network:
                    candidates.append((-network.prefixlen, metric if isinstance(metric, int) else 0, route))
    return min(candidates, key=lambda candidate: candidate[:2])[2] if candidates else None


def clamps(case: Case) -> Iterator[Finding]:
    """Rules of netfilter that rewrite the MSS of SYNs (nft(8), iptables-extensions(8))."""
    for rule in case.facts["check"]["mss_clamps"]["rules"] or ():
        size = rule["mss_bytes"]
        if rule["to"] == "size" and size is not None and size < case.target - HEADERS:
            where = f"the chain {rule['table']}/{rule['chain']}"
            remedy = f"take the data's subnets out of this rule, or give it {case.target - HEADERS}"
            text = f"an MSS clamped to {size} in {where}"
            yield case.finding("mss_clamp", "warning", text, f"{case.target - HEADERS} or none", remedy)


def router(case: Case) -> Iterator[Finding]:
    """A router's announcement has set a smaller MTU for IPv6 (RFC 4861, section 4.6.4), and does so again.

    One that announces just what the interface has is not seen before the change.
    """
    link = case.link
    text = case.sysctl(f"net.ipv6.conf.{link.name.replace('.', '/')}.mtu")
    if text is None or not text.isdigit() or int(text) >= link.mtu:
        return
    remedy = f"have the router announce {case.target}, or: sysctl -w net.ipv6.conf.{link.name}.accept_ra_mtu=0 "
    remedy += "(undo: =1), with networkd UseMTU=no in [IPv6AcceptRA]"
    description = f"an MTU of {text} for IPv6 on an interface with {link.mtu}"
    yield case.finding("router", "warning", description, f"{case.target}", remedy)


def heartbeats(case: Case) -> Iterator[Finding]:
    """Ceph's OSDs declare one another down when padded heartbeats are lost; a lease must end before."""
    if "ceph-osd" not in case.programs or not case.is_raised:
        return
    size, grace = HEARTBEAT_BYTES, GRACE_SECONDS
    for path in sorted(name for name in case.files if posixpath.dirname(name) == "/etc/ceph"):
        size = int(_option(case.files[path], "osd_heartbeat_min_size", size))
        grace = _option(case.files[path], "osd_heartbeat_grace", grace)
    if size + HEADERS > case.before and case.asked.lease_seconds >= grace:
        text = f"OSDs with heartbeats of {size} bytes and a grace of {grace:g} s, and a lease of "
        text += f"{case.asked.lease_seconds:g} s"
        remedy = f"a lease of {grace / 2:g} s, or ceph osd set nodown for the change (undo: ceph osd unset nodown)"
        yield case.finding("heartbeats", "warning", text, f"a lease shorter than {grace:g} s", remedy)


def _option(text: str, name: str, otherwise: float) -> float:
    """An option of ceph.conf, whose words may have spaces, dashes or underscores between them."""
    pattern = r"^\s*" + r"[ _-]+".join(name.split("_")) + r"\s*=\s*(\d{1,9}(?:\.\d{1,9})?)\s*(?:[;#].*)?$"
    values = re.findall(pattern, text, re.MULTILINE)
    return float(values[-1]) if values else otherwise


def _listed(case: Case, *keys: str) -> list[Mapping[str, Any]]:
    """Its routes, those of both versions of IP or of one."""
    return [
        route for key in keys or ("routes", "routes6") for route in case.facts[key] or () if isinstance(route, dict)
    ]  # fmt: skip


def _devices(route: Mapping[str, Any]) -> set[str]:
    hops = route.get("nexthops")
    hop_devices = [device.get("dev") for device in hops if isinstance(device, dict)] if isinstance(hops, list) else []
    return {device for device in (route.get("dev"), *hop_devices) if isinstance(device, str)}


def _metrics(route: Mapping[str, Any]) -> dict[str, Any]:
    """Of a route, as `ip -j` lists them."""
    metrics: dict[str, Any] = {}
    entries = route.get("metrics")
    for entry in entries if isinstance(entries, list) else []:
        metrics |= entry if isinstance(entry, dict) else {}
    return metrics
