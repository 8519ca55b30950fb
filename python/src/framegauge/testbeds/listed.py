"""Hosts that exist: this one, network namespaces on it, those that ssh knows. Each has an agent; nothing is built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

from framegauge.agent import Agent, Requests, find_agent, privileged
from framegauge.errors import AgentFailure, AgentLost, InputError
from framegauge.machines import Machine
from framegauge.ssh import Remote, host_words, open_agent
from framegauge.testbeds.base import Host

__all__ = ["ListedHosts", "Unreachable", "of_machine", "remote"]

NETNS = "netns:"
NAMESPACES = Path("/run/netns")  # ip-netns(8)
AT_ONCE = 32  # logins under way


class Unreachable:
    """In place of the agent of a host that has none: every request fails with the reason."""

    def __init__(self, why: str) -> None:
        self._why = why

    def begin(self, *_: Any, **__: Any) -> NoReturn:
        """AgentLost."""
        raise AgentLost(self._why)

    def request(self, *_: Any, **__: Any) -> NoReturn:
        """AgentLost."""
        raise AgentLost(self._why)


class ListedHosts:
    """Agents on the hosts of a list; `close` ends them. A host that cannot be reached is in the list, and says why."""

    def __init__(self, hosts: Sequence[str | Remote], say: Callable[[str], None]) -> None:
        self._agents: list[Agent] = []
        self._hosts: list[Host] = []
        # Each login waits for the network most of the time; what is on this machine may ask for a password.
        with ThreadPoolExecutor(AT_ONCE, "login") as pool:
            logins = {each.name: pool.submit(_open, each, say) for each in hosts if isinstance(each, Remote)}
            try:
                for each in hosts:
                    agent: Requests
                    if isinstance(each, Remote):
                        name, agent = each.name, logins[each.name].result()
                    else:
                        name, agent = each, Agent.open(_command(each, say))
                    self._agents += [agent] if isinstance(agent, Agent) else []
                    self._hosts.append(Host(name, "", agent))
            except BaseException:
                late = [login.result() for login in logins.values() if login.exception() is None]
                self._agents += [agent for agent in late if isinstance(agent, Agent) and agent not in self._agents]
                self.close()
                raise

    def hosts(self) -> Sequence[Host]:
        """In the order of the list; their addresses are asked for by who needs them."""
        return self._hosts

    def close(self) -> None:
        """End the agents."""
        with ThreadPoolExecutor(AT_ONCE, "goodbye") as pool:
            list(pool.map(Agent.close, self._agents))


def _open(remote: Remote, say: Callable[[str], None]) -> Requests:
    try:
        return open_agent(remote, host_words(remote), say)
    except AgentFailure as error:
        say(str(error))
        return Unreachable(str(error))


def _command(name: str, say: Callable[[str], None]) -> list[str]:
    """What starts the agent of a host on this machine."""
    agent = [find_agent(), "host"]
    if name == "local":
        return agent
    if name.startswith(NETNS) and len(name) > len(NETNS):
        namespace = name.removeprefix(NETNS)
        if not (NAMESPACES / namespace).exists():
            raise InputError(f"{name}: found no network namespace {namespace}, expected one that `ip netns` lists")
        return privileged([*agent, "--netns", namespace], say)
    raise InputError(f"{name}: found no host of this kind, expected local, netns:NAME, or a name that ssh knows")


def of_machine(machine: Machine) -> Remote:
    """What ssh and the agent there are to be told."""
    return Remote(machine.name, machine.destination, machine.options, machine.agent, machine.ports)


def remote(name: str) -> str | Remote:
    """What a word of the user's stands for: a host of this machine, or one that ssh knows by it."""
    return name if name == "local" or ":" in name else Remote(name, name)
