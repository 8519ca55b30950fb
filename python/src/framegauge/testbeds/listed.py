"""Existing hosts: this machine, network namespaces on it, hosts reached by ssh. Each has an agent; nothing is built."""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent, Requests
from framegauge.agents.privilege import privileged
from framegauge.agents.ssh import Remote
from framegauge.errors import InputError, MissingRequirement
from framegauge.files.machines import Machine
from framegauge.printable import printable
from framegauge.testbeds.base import Host
from framegauge.testbeds.logins import AT_ONCE, Logins, Unreachable

__all__ = ["ListedHosts", "Unreachable", "is_here", "of_machine", "placed", "remote"]

NETNS = "netns:"
NAMESPACES = Path("/run/netns")  # ip-netns(8)
MOST_SHOWN = 80
OWN_FILES, FILES_A_HOST, FILES_A_LOGIN = 64, 4, 7


class ListedHosts:
    """Agents on the hosts of a list; `close` ends them. Hosts that cannot be reached are included, with the reason,
    which is the caller's to tell.

    `commands` start the agents of hosts on this machine that are of no kind known here. `gone`: a network namespace
    that is not there is a host that cannot be reached; else it is bad input.
    """

    def __init__(
        self,
        hosts: Sequence[str | Remote],
        say: Callable[[str], None],
        commands: Mapping[str, Sequence[str]] = MappingProxyType({}),
        gone: bool = False,
    ) -> None:
        _make_room(len(hosts))
        local_agents: dict[str, Agent] = {}
        missing: dict[str, Unreachable] = {}
        logins = Logins([entry for entry in hosts if isinstance(entry, Remote)], say)
        try:
            # They mostly wait for the network, so they run beside; agents on this machine may need a password.
            logins.begin()
            for entry in hosts:
                if isinstance(entry, str) and gone and _is_gone(entry):
                    missing[entry] = Unreachable(_no_namespace(entry))
                elif isinstance(entry, str):
                    local_agents[entry] = Agent.open(commands.get(entry) or _command(entry, say))
            logins.wait()
        except BaseException:
            self._agents = [*local_agents.values(), *logins.give_up()]
            self.close()
            raise
        agents: Mapping[str, Requests] = {**local_agents, **missing, **logins.found}
        self._agents = [entry for entry in agents.values() if isinstance(entry, Agent)]
        names = [entry if isinstance(entry, str) else entry.name for entry in hosts]
        self._hosts = [Host(name, "", agents[name]) for name in names]

    def hosts(self) -> Sequence[Host]:
        """The hosts in the order of the list, without addresses."""
        return self._hosts

    def close(self) -> None:
        """Ends the agents."""
        with ThreadPoolExecutor(AT_ONCE, "goodbye") as pool:
            list(pool.map(Agent.close, self._agents))


def _make_room(hosts: int) -> None:
    """Raises the limit of open files to what the agents of this many hosts need; MissingRequirement if it cannot."""
    needed = OWN_FILES + FILES_A_HOST * hosts + FILES_A_LOGIN * min(hosts, AT_ONCE)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or needed <= soft:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        missing = {"name": f"open files: {needed}", "needed_for": f"{hosts} hosts", "found": f"a limit of {hard}"}
        raise MissingRequirement([missing | {"remedy": f"as root: ulimit -n {needed}"}])
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _command(name: str, say: Callable[[str], None]) -> list[str]:
    """The command that starts the agent of a host on this machine."""
    agent = [find_agent(), "host"]
    if name == "local":
        return agent
    if name.startswith(NETNS) and len(name) > len(NETNS):
        if _is_gone(name):
            raise InputError(_no_namespace(name))
        return privileged([*agent, "--netns", name.removeprefix(NETNS)], say)
    raise InputError(
        f"{printable(name[:MOST_SHOWN])}: found no host of this kind, expected local, netns:NAME, or a host for ssh"
    )


def _is_gone(name: str) -> bool:
    """Whether it names a network namespace that is not there."""
    return name.startswith(NETNS) and len(name) > len(NETNS) and not _is_there(name.removeprefix(NETNS))


def _no_namespace(name: str) -> str:
    return f"{printable(name[:MOST_SHOWN])}: found no such network namespace, expected one that `ip netns` lists"


def _is_there(namespace: str) -> bool:
    """Whether there is a network namespace of that name, which is that of a file, and no path that leads elsewhere."""
    if "/" in namespace or namespace in (".", ".."):
        return False
    try:
        return (NAMESPACES / namespace).exists()
    except (OSError, ValueError):  # a name that is too long, or no name at all
        return False


def of_machine(machine: Machine) -> Remote:
    """The settings of a machine for ssh and its agent."""
    return Remote(machine.name, machine.destination, machine.options, machine.agent, machine.ports)


def is_here(machine: Machine) -> bool:
    """Whether a machine of an inventory is this one, or a network namespace of it. One with a destination of its own is
    reached by ssh whatever it is called."""
    return machine.ssh is None and (machine.name == "local" or machine.name.startswith(NETNS))


def placed(machine: Machine) -> str | Remote:
    """The host that a machine of an inventory stands for: what a word stands for, its name does, too."""
    return machine.name if is_here(machine) else of_machine(machine)


def remote(name: str) -> str | Remote:
    """The host that a word stands for: one on this machine, or one reached by ssh."""
    return name if name == "local" or ":" in name else Remote(name, name)
