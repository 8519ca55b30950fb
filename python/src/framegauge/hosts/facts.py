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
    listed = ListedHosts([placed(each) for each in machines], say)
    try:
        errors: dict[str, str] = {}
        facts = check_plan.read_facts([check_plan.Member(host) for host in listed.hosts()], errors)
        about = {host.name: getattr(host.agent, "about", {}) for host in listed.hosts()}
    finally:
        listed.close()
    return {
        "schema": 1,
        "hosts": [
            {
                "name": each.name, "ssh": each.destination, "read_only": each.read_only, "interface": each.interface,
                "ports": each.ports,
                "error": errors.get(each.name), "user_id": about[each.name].get("user_id"),
                "cpus": about[each.name].get("cpus"), "agent": about[each.name].get("path"),
                "facts": facts.get(each.name),
            }
            for each in machines
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
        rest = ", ".join(
            word
            for word in (
                f"Linux {facts['kernel']}", settings.get("net.ipv4.tcp_congestion_control"), facts.get("clock_source"),
                "read only" if host["read_only"] else None,
            )
            if word
        )  # fmt: skip
        for each in facts["interfaces"]:
            if host["interface"] in (None, each["name"]):
                yield [host["name"], *_interface(each), rest]


def _interface(each: Mapping[str, Any]) -> list[str]:
    speed, most = each["bits_per_second"], each["maximum_mtu"]
    on = [name for name, value in (each["offloads"] or {}).items() if value]
    under = f" over {each['parent']} (-{each['overhead_bytes']} B)" if each["overhead_bytes"] else ""
    return [
        each["name"] + under,
        each["driver"] or each["kind"] or "?",
        print_bits_per_second(speed) if speed else "?",
        f"{each['mtu']} of {most}" if most else str(each["mtu"]),
        " ".join(on) or "none",
    ]


def _ports(host: Json) -> str:
    if host["ports"] is not None:
        low, _, high = host["ports"].partition("-")
        return f"{low} to {high or low}"
    given = host["facts"]["sysctls"] if host["facts"] is not None else {}
    found = given.get("net.ipv4.ip_local_port_range", "").split()
    low, high = found if len(found) == 2 else EPHEMERAL.split()
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
        *(f"  {to}TCP ports {ports}, for the transfers and requests of a study" for to, ports in opened),
        *(
            f"  {to}UDP ports {ports}, for the probes of a check, and of a study after it raised an MTU"
            for to, ports in opened
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
