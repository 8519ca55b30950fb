"""Facts about the hosts of an inventory that affect frames and TCP, and the ports that a firewall must allow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from framegauge.check import plan as check_plan
from framegauge.files.machines import Machine
from framegauge.quantities import print_bits_per_second
from framegauge.testbeds.base import Json
from framegauge.testbeds.listed import ListedHosts, placed

__all__ = ["explained", "gather", "table"]

EPHEMERAL = "32768 60999"  # the kernel's own default (ip-sysctl.rst)


def gather(machines: Sequence[Machine], say: Callable[[str], None]) -> Json:
    """The facts of every host; a host that cannot be reached is listed with its error."""
    opened_hosts = ListedHosts([placed(node) for node in machines], say)
    try:
        errors: dict[str, str] = {}
        facts = check_plan.read_facts([check_plan.Member(host) for host in opened_hosts.hosts()], errors)
        greetings = {host.name: getattr(host.agent, "about", {}) for host in opened_hosts.hosts()}
    finally:
        opened_hosts.close()
    return {
        "schema": 1,
        "hosts": [
            {
                "name": node.name, "ssh": node.destination, "read_only": node.read_only, "interface": node.interface,
                "ports": node.ports,
                "error": errors.get(node.name), "user_id": greetings[node.name].get("user_id"),
                "cpus": greetings[node.name].get("cpus"), "agent": greetings[node.name].get("path"),
                "facts": facts.get(node.name),
            }
            for node in machines
        ],
    }  # fmt: skip


def table(document: Json) -> Iterator[list[str]]:
    """The rows of a table: host, interface, driver, speed, MTU and its maximum, offloads, stacking, kernel and TCP."""
    for host in document["hosts"]:
        if host["error"] is not None:
            yield [host["name"], "-", "", "", "", "", host["error"]]
            continue
        facts = host["facts"]
        settings = facts["sysctls"]
        details = ", ".join(
            word
            for word in (
                f"Linux {facts['kernel']}", settings.get("net.ipv4.tcp_congestion_control"), facts.get("clock_source"),
                "read only" if host["read_only"] else None,
            )
            if word
        )  # fmt: skip
        for interface in facts["interfaces"]:
            if host["interface"] in (None, interface["name"]):
                yield [host["name"], *_interface(interface), details]


def _interface(interface: Mapping[str, Any]) -> list[str]:
    speed, largest_mtu = interface["bits_per_second"], interface["maximum_mtu"]
    offloads = [name for name, value in (interface["offloads"] or {}).items() if value]
    parent = f" over {interface['parent']} (-{interface['overhead_bytes']} B)" if interface["overhead_bytes"] else ""
    return [
        interface["name"] + parent,
        interface["driver"] or interface["kind"] or "?",
        print_bits_per_second(speed) if speed else "?",
        f"{interface['mtu']} of {largest_mtu}" if largest_mtu else str(interface["mtu"]),
        " ".join(offloads) or "none",
    ]


def _ports(host: Json) -> str:
    if host["ports"] is not None:
        low, _, high = host["ports"].partition("-")
        return f"{low} to {high or low}"
    sysctls = host["facts"]["sysctls"] if host["facts"] is not None else {}
    bounds = sysctls.get("net.ipv4.ip_local_port_range", "").split()
    low, high = bounds if len(bounds) == 2 else EPHEMERAL.split()
    return f"{low} to {high} (its ephemeral ports; `ports` in the inventory sets others)"


def explained(document: Json) -> list[str]:
    """Lines that explain what a firewall must allow, and what is done on each host."""
    names = ", ".join(host["name"] for host in document["hosts"])
    ranges: dict[str, list[str]] = {}
    agents: dict[str, list[str]] = {}
    for host in document["hosts"]:
        ranges.setdefault(_ports(host), []).append(host["name"])
        if host["agent"] is not None:
            agents.setdefault(host["agent"], []).append(host["name"])
    to_all = len(ranges) == 1
    opened = [("" if to_all else f"to {', '.join(hosts)}: ", ports) for ports, hosts in ranges.items()]
    return [
        "From this machine to each host: the port of your ssh (by its configuration and jump hosts), and no other.",
        f"Between the hosts ({names}), each to each other:",
        *(f"  {prefix}TCP ports {ports}, for the transfers and requests of a study" for prefix, ports in opened),
        *(
            f"  {prefix}UDP ports {ports}, for the probes of a check, and of a study after it raised an MTU"
            for prefix, ports in opened
        ),
        "  ICMP and ICMPv6 of types 'fragmentation needed' and 'packet too big', which every path needs",
        "A port is open only during a measurement. A connection or probe without the token of its run, which is new",
        "each time, is refused without an answer, and counted; no answer is larger than its request.",
        *(f"The agent runs from {path} on {', '.join(hosts)}." for path, hosts in agents.items()),
        "Measuring needs no privilege; only changes (MTU, offloads, queues, sysctls) use `sudo -n`, for one command",
        "that `framegauge study FILE --dry-run` prints. With such a sudo rule, anyone who can write to the command's",
        "file is root: copy the agent to /usr/local/bin/framegauge-agent as root, where it is looked for first, and",
        "name that file in the rule.",
    ]
