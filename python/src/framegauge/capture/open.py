"""Opens the hosts of a capture or an estimate: this machine, network namespaces, hosts of the rack that is up, or over
ssh."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from framegauge.errors import AgentFailure, FramegaugeError, InputError, MissingRequirement, Refused
from framegauge.files.machines import Machine
from framegauge.printable import one_line
from framegauge.testbeds.base import Host
from framegauge.testbeds.listed import ListedHosts, Unreachable, placed, remote

__all__ = ["RACK", "REFUSALS", "Member", "opened", "refusal"]

RACK = "rack:"
REFUSALS = (AgentFailure, MissingRequirement, Refused)  # how a host's answer to a request can end
ALL = "all"

Say = Callable[[str], None]


@dataclass(frozen=True)
class Member:
    """A host and the interfaces that are named for it; none: its usual ones."""

    host: Host
    interfaces: tuple[str, ...]


@contextmanager
def opened(
    words: Sequence[str], machines: Sequence[Machine], say: Say, verb: str = "capture"
) -> Iterator[list[Member]]:
    """The members of a capture, or of another verb's work. `words` are HOST or HOST%INTERFACE, where `rack:all` stands
    for all hosts of the rack; `machines` are hosts of an inventory, which come after them. A host that cannot be
    reached is among them, with the reason, as one that is lost; InputError if none can be."""
    by_host: dict[str, list[str]] = {}
    for word in words:
        name, percent, interface = word.partition("%")
        if not name or (percent and not interface):
            raise InputError(f"{verb}: found {word!r}, expected HOST or HOST%INTERFACE")
        for host_name in _of_rack(name, say, verb):
            by_host.setdefault(host_name, []).extend([interface] if interface else [])
    for machine in machines:
        if machine.name in by_host:
            raise InputError(f"{verb}: found the host {machine.name} twice, expected it once")
        by_host[machine.name] = [machine.interface] if machine.interface else []
    if not by_host:
        raise InputError(
            f"{verb}: found no host, expected local, netns:NAME, rack:NAME, what ssh knows, or --hosts FILE; "
            f"for example: framegauge {verb} local --for 30s"
        )
    placements = {machine.name: placed(machine) for machine in machines}
    opened_hosts = ListedHosts(
        [placements.get(name) or remote(name) for name in by_host], say, _commands(by_host, say, verb)
    )
    try:
        hosts = opened_hosts.hosts()
        reasons = [host.agent.why for host in hosts if isinstance(host.agent, Unreachable)]
        if len(reasons) == len(hosts):
            raise InputError("\n".join(reasons))
        yield [Member(host, tuple(interfaces)) for host, interfaces in zip(hosts, by_host.values(), strict=True)]
    finally:
        opened_hosts.close()


def refusal(name: str, error: FramegaugeError) -> str:
    """Why a host does not begin, in one line that names it."""
    line = one_line("; ".join(str(error).splitlines()))
    return line if line.startswith(f"{name}: ") else f"{name}: {line}"


def _of_rack(name: str, say: Say, verb: str) -> list[str]:
    """The hosts that a word stands for."""
    if name != RACK + ALL:
        return [name]
    from framegauge.rack import hand

    names = hand.host_names(verb, say)
    return [name] if ALL in names else [RACK + host_name for host_name in names]


def _commands(names: Sequence[str] | dict[str, list[str]], say: Say, verb: str) -> dict[str, list[str]]:
    """The command that starts the agent of each host of the rack."""
    rack_names = [name for name in names if name.startswith(RACK)]
    if not rack_names:
        return {}
    from framegauge.rack import hand

    return {name: hand.agent_command(name.removeprefix(RACK), verb, say) for name in rack_names}
