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
    asked: dict[str, list[str]] = {}
    for word in words:
        name, percent, interface = word.partition("%")
        if not name or (percent and not interface):
            raise InputError(f"{verb}: found {word!r}, expected HOST or HOST%INTERFACE")
        for each in _of_rack(name, say, verb):
            asked.setdefault(each, []).extend([interface] if interface else [])
    for machine in machines:
        if machine.name in asked:
            raise InputError(f"{verb}: found the host {machine.name} twice, expected it once")
        asked[machine.name] = [machine.interface] if machine.interface else []
    if not asked:
        raise InputError(
            f"{verb}: found no host, expected local, netns:NAME, rack:NAME, what ssh knows, or --hosts FILE; "
            f"for example: framegauge {verb} local --for 30s"
        )
    known = {machine.name: placed(machine) for machine in machines}
    listed = ListedHosts([known.get(name) or remote(name) for name in asked], say, _commands(asked, say, verb))
    try:
        hosts = listed.hosts()
        lost = [host.agent.why for host in hosts if isinstance(host.agent, Unreachable)]
        if len(lost) == len(hosts):
            raise InputError("\n".join(lost))
        yield [Member(host, tuple(interfaces)) for host, interfaces in zip(hosts, asked.values(), strict=True)]
    finally:
        listed.close()


def refusal(name: str, error: FramegaugeError) -> str:
    """Why a host does not begin, in one line that names it."""
    said = one_line("; ".join(str(error).splitlines()))
    return said if said.startswith(f"{name}: ") else f"{name}: {said}"


def _of_rack(name: str, say: Say, verb: str) -> list[str]:
    """The hosts that a word stands for."""
    if name != RACK + ALL:
        return [name]
    from framegauge.rack import hand

    names = hand.host_names(verb, say)
    return [name] if ALL in names else [RACK + each for each in names]


def _commands(names: Sequence[str] | dict[str, list[str]], say: Say, verb: str) -> dict[str, list[str]]:
    """The command that starts the agent of each host of the rack."""
    mine = [name for name in names if name.startswith(RACK)]
    if not mine:
        return {}
    from framegauge.rack import hand

    return {name: hand.agent_command(name.removeprefix(RACK), verb, say) for name in mine}
