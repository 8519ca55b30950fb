"""Hosts that exist: this one, and network namespaces on it. Each has an agent of its own; nothing is built."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from framegauge.agent import Agent, find_agent, privileged
from framegauge.errors import InputError
from framegauge.testbeds.base import Host

__all__ = ["ListedHosts"]

NETNS = "netns:"
NAMESPACES = Path("/run/netns")  # ip-netns(8)


class ListedHosts:
    """Agents on the hosts of a list; `close` ends them."""

    def __init__(self, names: Sequence[str], say: Callable[[str], None]) -> None:
        self._agents: list[Agent] = []
        self._hosts: list[Host] = []
        try:
            for name in names:
                agent = Agent.open(_command(name, say))
                self._agents.append(agent)
                self._hosts.append(Host(name, "", agent))
        except BaseException:
            self.close()
            raise

    def hosts(self) -> Sequence[Host]:
        """In the order of the list; their addresses are asked for by who needs them."""
        return self._hosts

    def close(self) -> None:
        """End the agents."""
        for agent in self._agents:
            agent.close()


def _command(name: str, say: Callable[[str], None]) -> list[str]:
    """What starts the agent of a host."""
    agent = [find_agent(), "host"]
    if name == "local":
        return agent
    if name.startswith(NETNS) and len(name) > len(NETNS):
        namespace = name.removeprefix(NETNS)
        if not (NAMESPACES / namespace).exists():
            raise InputError(f"{name}: found no network namespace {namespace}, expected one that `ip netns` lists")
        return privileged([*agent, "--netns", namespace], say)
    raise InputError(f"{name}: found no host of this kind, expected local, netns:NAME, or a host of --testbed FILE")
