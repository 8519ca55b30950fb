"""What the interface, its driver and what it is stacked with carry: limits, XDP, VLANs, bonds, tunnels. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from framegauge.check.judgement.rdma import ports_of
from framegauge.rollout.model import Finding
from framegauge.rollout.preflight.case import Case
from framegauge.rollout.preflight.links import Link

__all__ = ["carriers", "limits", "open_vswitch", "overhead", "overlays", "ports", "rdma", "stack", "tunnels", "xdp"]

IPV6_LEAST = 1280  # RFC 8200, section 5
# The largest MTU with an XDP program that does not take frames in fragments, by driver: what is left of a page.
PAGE_LIMITS = {"veth": 3506, "virtio_net": 3502, "tun": 1500, "vif": 3840, "xen_netfront": 3840}
BUNDLES = ("bond", "team")
# What stands on a device whose MTU it cannot exceed.
STANDING = ("vlan", "macvlan", "macvtap", "ipvlan", "ipvtap")
# What kernels of today take from the MTU below, where it differs from packet to packet. WireGuard: IPv6, UDP and 32
# bytes of its own (drivers/net/wireguard/device.c).
OVERHEADS = {"wireguard": 80, "geneve": 50, "vxlan": 50, "gre": 24, "gretap": 38}
OVS = "openvswitch"
# Interfaces that networks of containers make for their overlays, by what they are called.
OVERLAYS = re.compile(
    r"flannel[.-].+|flannel-wg|vxlan\.calico|vxlan-v6\.calico|tunl0|wireguard\.cali|wg-v6\.cali|cilium_vxlan|cilium_geneve"
    r"|cilium_wg0|antrea-tun0|genev_sys_\d+|weave|kube-bridge"
)


def limits(case: Case) -> Iterator[Finding]:
    """What the driver takes, and whether the interface can be proved at all."""
    link, target = case.link, case.target
    driver = case.driver(link.name) or link.kind or "its driver"
    if link.most is not None and target > link.most:
        remedy = f"ask for {link.most} at most, or use another NIC or driver"
        if link.kind == "veth" and link.most == PAGE_LIMITS["veth"]:
            remedy = "unload the XDP program at its other end, or load one that takes fragments (section xdp.frags)"
        text = f"a maximum MTU of {link.most} ({driver})"
        yield case.finding("maximum", "refused", text, f"{target} or more", remedy)
    if link.least is not None and target < link.least:
        text = f"a minimum MTU of {link.least} ({driver})"
        yield case.finding("minimum", "refused", text, f"{target} or less", f"ask for {link.least} at least")
    addresses = case.told(link.name).get("addresses", ())
    if target < IPV6_LEAST and any(entry["family"] == 6 for entry in addresses):
        remedy = f"ask for {IPV6_LEAST} at least: below that the kernel takes IPv6 off the interface (RFC 8200)"
        yield case.finding("ipv6", "refused", "IPv6 addresses", f"none with an MTU of {target}", remedy)
    if not link.up:
        remedy = f"ip link set dev {link.name} up"
        yield case.finding("down", "refused", "an interface that is down", "one whose MTU packets can prove", remedy)


def xdp(case: Case) -> Iterator[Finding]:
    """An XDP program of the driver gets a frame in one page, unless it takes fragments. What the program takes cannot
    be read; of a veth the other end's maximum tells it."""
    link = case.link
    if link.xdp is None or link.xdp.mode == "generic" or not case.is_raised:
        return
    driver = case.driver(link.name) or link.kind or ""
    limit = PAGE_LIMITS.get(driver)
    peer = case.links.get(link.peer)
    if peer is not None and peer.most is not None:
        limit = peer.most
    if limit is not None and case.target <= limit:
        return
    text = f"the XDP program {link.xdp.name} ({driver or 'unknown driver'}"
    text += ")" if limit is None else f": at most {limit} without fragments)"
    remedy = "load one that takes fragments (section xdp.frags) and force xdp, or ip link set dev "
    remedy += f"{link.name} xdp off"
    severity = "warning" if limit is None else "refused"
    yield case.finding("xdp", severity, text, f"none, or one that takes frames of {case.target} bytes", remedy)  # type: ignore[arg-type]


def stack(case: Case) -> Iterator[Finding]:
    """What it stands on must carry it first; what stands on it is lowered with it, and not raised again."""
    link, target = case.link, case.target
    for below in carriers(case, link):
        if below.most is not None and target > below.most:
            text = f"{below.name} below it with a maximum MTU of {below.most}"
            yield case.finding("parent", "refused", text, f"{target} or more", f"ask for {below.most} at most")
        elif below.mtu < target:
            text, remedy = f"{below.name} below it with {below.mtu}", f"ip link set dev {below.name} mtu {target}"
            remedy = f"a roll-out raises it first, as {remedy} does; have its owner keep it"
            if below.master is not None:
                remedy += f". By hand, hold the routes of {below.master} before: a bridge follows its ports at once"
            yield case.finding("parent", "note", text, f"{target} or more", remedy)
    if link.elsewhere and link.kind in STANDING and case.is_raised:
        text = f"a {link.kind} on a device in another network namespace, whose MTU is not known"
        remedy = f"see that it has {target} before: the kernel refuses more than that"
        yield case.finding("parent", "warning", text, f"{target} or more", remedy)
    for above in _lowered(case, link):
        text = f"{above.name} on it with {above.mtu}"
        remedy = "lower it first, by a roll-out of its own, since others may still send as much to it; or force child: "
        remedy += (
            f"it is lowered with {link.name} then, its routes held before, and an undo raises it to {above.mtu} again"
        )
        yield case.finding("child", "refused", text, f"{target} or less", remedy)


def ports(case: Case) -> Iterator[Finding]:
    """Bonds hand their MTU to their ports; bridges drop what a port does not carry; a port does not change alone."""
    link, target = case.link, case.target
    master = case.links.get(link.master)
    if master is not None and master.kind in BUNDLES:
        remedy = f"name {master.name} as interface: it hands its MTU to its ports"
        yield case.finding("port", "refused", f"a port of the {master.kind} {master.name}", "no port", remedy)
    if master is not None and master.kind == "bridge" and case.is_raised and master.mtu < target:
        text = f"a port of the bridge {master.name}, which has {master.mtu}"
        remedy = (
            f"name {master.name} as interface: its ports that lead out of the host are raised with it. By hand, hold "
        )
        remedy += "its routes before: a bridge follows its ports at once, unless its own MTU was set"
        yield case.finding("bridge", "warning", text, f"{target}", remedy)
    for carrier in [link, *carriers(case, link)]:
        yield from _ports_of(case, carrier)


def _ports_of(case: Case, link: Link) -> Iterator[Finding]:
    """Of the interface itself, or of what it stands on, which is raised with it."""
    target = case.target
    label = "its port" if link.name == case.interface else f"the port of {link.name} below it,"
    raised = case.links.outward(link.name)  # of which `stack` tells
    for port in [candidate for candidate in case.links.ports(link.name) if candidate not in raised]:
        if port.most is not None and target > port.most:
            text = f"{label} {port.name} with a maximum MTU of {port.most}"
            yield case.finding("port", "refused", text, f"{target} or more", f"ask for {port.most} at most")
        elif link.kind in BUNDLES and port.mtu < link.mtu:
            remedy = f"ip link set dev {port.name} mtu {link.mtu}: what goes out there is dropped"
            yield case.finding("port", "warning", f"{label} {port.name} with {port.mtu}", f"{link.mtu}", remedy)
        elif link.kind == "bridge" and port.mtu < target:
            remedy = (
                f"raise what is behind it, then ip link set dev {port.name} mtu {target}: a bridge drops what a port "
            )
            remedy += "does not carry"
            yield case.finding("bridge", "warning", f"{label} {port.name} with {port.mtu}", f"{target}", remedy)


def tunnels(case: Case) -> Iterator[Finding]:
    """A tunnel with its overhead must fit into what is below it."""
    link, target = case.link, case.target
    extra = overhead(case, link)
    under = case.links.get(_underlay(case, link))
    if extra is not None and under is not None and target + extra > under.mtu:
        text = f"{under.name} below this {link.kind} with {under.mtu}"
        remedy = f"raise {under.name} to {target + extra} first, or ask for {under.mtu - extra}"
        yield case.finding("overlay", "refused", text, f"{target + extra} or more", remedy)
    for base in [link, *_lowered(case, link)]:
        on = "" if base is link else f" on {base.name}"
        for above in _tunnels_on(case, base):
            extra = overhead(case, above) or 0
            if above.mtu + extra > target:
                text = f"the {above.kind} {above.name}{on} with {above.mtu}, which takes {extra} bytes more"
                remedy = f"lower it first: ip link set dev {above.name} mtu {target - extra} (undo: mtu {above.mtu})"
                yield case.finding("overlay", "refused", text, f"at most {target - extra}", remedy)
            elif case.is_raised:
                text = f"the {above.kind} {above.name}, which keeps {above.mtu}"
                remedy = f"raise it when all its ends are raised: ip link set dev {above.name} mtu {target - extra}"
                yield case.finding("overlay", "note", text, f"up to {target - extra}", remedy)


def rdma(case: Case) -> Iterator[Finding]:
    """Ports of RDMA on it, or on what stands on it or below: each has a path MTU that depends on the interface's."""
    names = {case.link.name, *case.links.stack(case.link.name), *(link.name for link in carriers(case, case.link))}
    for port in ports_of(case.facts["check"]):
        complaint = port.wrong(case.target) if port.interface in names else None
        if complaint is None:
            continue
        path, least = port.largest
        lowered = case.target < case.before and (port.offered(case.target) or 0) < (port.active or 0)
        remedy = f"nothing has to be done: from {least} on RDMA uses {path}, but for programs with one of their own"
        if lowered:
            remedy = "stop what uses RDMA there first: its packets will be giants"
        yield case.finding("rdma", "warning" if lowered else "note", complaint, f"{least} or more for {path}", remedy)


def open_vswitch(case: Case) -> Iterator[Finding]:
    """Open vSwitch sets the MTU of its ports back, unless `mtu_request` asks for it (ovs-vswitchd.conf.db(5))."""
    link, target = case.link, case.target
    master = case.links.get(link.master)
    is_own = OVS in (link.kind, case.driver(link.name)) or (master is not None and master.kind == OVS)
    if not is_own and not (link.master or "").startswith("ovs-"):
        return
    row = next((record for record in case.facts["ovs"] or () if record.get("name") == link.name), None)
    request = None if row is None else row.get("mtu_request")
    if request == target:
        return
    undo = f"set interface {link.name} mtu_request={request}" if request else f"clear interface {link.name} mtu_request"
    remedy = f"ovs-vsctl set interface {link.name} mtu_request={target} (undo: ovs-vsctl {undo})"
    state_text = "an unknown mtu_request" if case.facts["ovs"] is None else f"mtu_request {request or 'unset'}"
    yield case.finding("ovs", "warning", f"a port of Open vSwitch with {state_text}", f"mtu_request {target}", remedy)


def overhead(case: Case, link: Link) -> int | None:
    """What a tunnel takes; None if the interface is none."""
    value = case.told(link.name).get("overhead_bytes")
    return value if isinstance(value, int) else OVERHEADS.get(link.kind or "")


def overlays(case: Case) -> list[Link]:
    """The interfaces of networks of containers."""
    links = [case.links.get(name) for name in case.links.names() if OVERLAYS.fullmatch(name)]
    return [link for link in links if link is not None]


def _underlay(case: Case, link: Link) -> str | None:
    """The name of what a tunnel's packets leave by."""
    parent = case.told(link.name).get("parent")
    return parent if isinstance(parent, str) else link.parent


def carriers(case: Case, link: Link) -> list[Link]:
    """What has to carry its frames, the nearest first: what it stands on, and a bridge's ports that lead out."""
    results: list[Link] = []
    queue = [link]
    while queue:
        carrier = queue.pop(0)
        if overhead(case, carrier) is not None:
            continue
        parent = case.links.get(carrier.parent)
        lower = [*([parent] if parent is not None else []), *case.links.outward(carrier.name)]
        new_links = [lower_link for lower_link in lower if lower_link not in results and lower_link is not link]
        results += new_links
        queue += new_links
    return results


def _lowered(case: Case, link: Link) -> list[Link]:
    """What stands on it, and on that, and has more than is asked for: the kernel lowers it with it."""
    results: list[Link] = []
    queue = [link.name]
    while queue:
        uppers = [
            upper
            for upper in case.links.above(queue.pop())
            if upper.mtu > case.target and overhead(case, upper) is None and upper not in results
        ]
        results += uppers
        queue += [upper.name for upper in uppers]
    return results


def _tunnels_on(case: Case, link: Link) -> list[Link]:
    candidates = [case.links.get(candidate) for candidate in case.links.names()]
    return [
        candidate
        for candidate in candidates
        if candidate is not None and overhead(case, candidate) is not None and _underlay(case, candidate) == link.name
    ]
