"""A preflight from the hosts to the document. Never prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from framegauge.errors import InputError
from framegauge.files.machines import Machine
from framegauge.rollout import preflight
from framegauge.rollout.model import Asked, Finding, Json, Scope
from framegauge.rollout.preflight import survey
from framegauge.rollout.preflight.links import Links
from framegauge.rollout.preflight.schema import SCHEMA
from framegauge.testbeds.listed import ListedHosts, placed, remote

__all__ = ["KINDS", "chosen", "document", "exit_code", "named", "read"]

# What a finding is about; those that may refuse a change can be forced.
KINDS = (
    "bridge", "child", "dhcp", "discovery", "down", "file", "heartbeats", "host", "interface", "ipv6", "link_loss",
    "maximum", "minimum", "mss_clamp", "mtu_probing", "neighbour", "overlay", "ovs", "owner", "parent",
    "path_mtu_cache", "pods", "port", "management", "rdma", "route", "router", "switch", "unread", "xdp",
)  # fmt: skip
REFUSED, UNREAD = 1, 2


def named(words: Sequence[str], machines: Sequence[Machine]) -> dict[str, str | None]:
    """Each host with the interface that is named for it; `words` are HOST or HOST%INTERFACE."""
    interfaces: dict[str, str | None] = {}
    for name, interface in [*(_parts(word) for word in words), *((host.name, host.interface) for host in machines)]:
        if name in interfaces:
            raise InputError(f"rollout preflight: found host {name} twice, expected each once")
        interfaces[name] = interface
    if not interfaces:
        raise InputError(
            "rollout preflight: found no host, expected local, netns:NAME, what ssh knows, or --hosts FILE; "
            "for example: framegauge rollout preflight db1 db2 --mtu 9000"
        )
    return interfaces


def _parts(word: str) -> tuple[str, str | None]:
    name, percent, interface = word.partition("%")
    if not name or (percent and not interface):
        raise InputError(f"rollout preflight: found {word!r}, expected HOST or HOST%INTERFACE")
    return name, interface or None


def read(
    names: Sequence[str],
    machines: Sequence[Machine],
    say: Callable[[str], None],
    commands: Mapping[str, Sequence[str]] | None = None,
) -> tuple[dict[str, Json], dict[str, str]]:
    """The facts of the hosts of these names, and of a host that has none a line that says why.

    `commands` start the agents of hosts on this machine that are of no kind known to ListedHosts.
    """
    placed_hosts = {machine.name: placed(machine) for machine in machines}
    host_commands = commands or {}
    hosts = ListedHosts(
        [name if name in host_commands else placed_hosts.get(name) or remote(name) for name in names],
        say,
        host_commands,
    )
    errors: dict[str, str] = {}
    try:
        return survey.read(hosts.hosts(), errors), errors
    finally:
        hosts.close()


def chosen(
    interfaces: Mapping[str, str | None], facts: Mapping[str, Json], target_mtu: int, scope: Scope,
    lease_seconds: float, forced: frozenset[str],
) -> Asked:  # fmt: skip
    """What is asked, with the only interface of a host that has an address where none is named; InputError if there are
    several."""
    nics = {host: interface or _only(host, facts.get(host)) for host, interface in interfaces.items()}
    return Asked((tuple(nics),), nics, target_mtu, scope=scope, lease_seconds=lease_seconds, forced=forced)


def _only(host: str, facts: Json | None) -> str:
    if facts is None:
        return "?"
    with_address = [entry["name"] for entry in facts["check"]["interfaces"] if entry["addresses"]]
    if len(with_address) != 1:
        names = ", ".join(with_address) or "no interface with an address"
        raise InputError(f"{host}: found {names}, expected --interface NAME, or {host}%NAME")
    return str(with_address[0])


def document(asked: Asked, facts: Mapping[str, Json], errors: Mapping[str, str]) -> Json:
    """The result document (`framegauge schema rollout-preflight`)."""
    findings = preflight.findings(facts, asked)
    changes = preflight.edits(facts, asked)
    return {
        "schema": SCHEMA,
        "target_mtu": asked.target_mtu,
        "scope": asked.scope,
        "lease_seconds": asked.lease_seconds,
        "forced": sorted(asked.forced),
        "verdict": _verdict(findings, errors),
        "hosts": [_host(host, asked.interfaces[host], facts.get(host), errors.get(host)) for host in asked.hosts],
        "findings": [
            {"where": finding.where, "what": finding.what, "severity": finding.severity, "found": finding.found,
             "expected": finding.expected, "remedy": finding.remedy}
            for finding in findings
        ],
        "changes": [{"host": host, **edit.as_document()} for host, edits in changes.items() for edit in edits],
    }  # fmt: skip


def _host(name: str, interface: str, facts: Json | None, error: str | None) -> dict[str, Any]:
    link = None if facts is None else Links.of(facts["links"]).get(interface)
    return {
        "name": name,
        "interface": interface,
        "mtu": None if link is None else link.mtu,
        "maximum_mtu": None if link is None else link.most,
        "error": error,
    }


def _verdict(findings: Sequence[Finding], errors: Mapping[str, str]) -> str:
    """The gravest of what was found."""
    if errors:
        return "could_not_tell"
    severities = {finding.severity for finding in findings}
    return "refused" if "refused" in severities else "warnings" if "warning" in severities else "clear"


def exit_code(verdict: str) -> int:
    """Of the command that found it."""
    return {"refused": REFUSED, "could_not_tell": UNREAD}.get(verdict, 0)
