"""Existing hosts: this machine, network namespaces on it, hosts reached by ssh. Each has an agent; nothing is built."""

from __future__ import annotations

import resource
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any, NoReturn

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent, Requests, privileged
from framegauge.agents.ssh import Remote, host_words, open_agent
from framegauge.errors import AgentFailure, AgentLost, InputError, MissingRequirement
from framegauge.files.machines import Machine
from framegauge.printable import one_line, printable
from framegauge.testbeds.base import Host

__all__ = ["ListedHosts", "Unreachable", "of_machine", "remote"]

NETNS = "netns:"
NAMESPACES = Path("/run/netns")  # ip-netns(8)
MOST_SHOWN = 80
AT_ONCE = 32  # simultaneous logins
SAY_SECONDS = 5.0
# A server, or a jump host in front of many, rejects some connections while too many log in (sshd_config(5),
# MaxStartups).
TURNED_AWAY = "exchange_identification"
AGAIN_AT_ONCE = 2  # simultaneous retries of rejected logins
PAUSES_SECONDS = (1.0, 1.0, 2.0, 4.0, 8.0)
OWN_FILES, FILES_A_HOST, FILES_A_LOGIN = 64, 4, 7


class Unreachable:
    """A stand-in for the agent of a host that has none: every request fails with the reason."""

    def __init__(self, why: str) -> None:
        self.why = why

    def begin(self, *_: Any, **__: Any) -> NoReturn:
        """Always raises AgentLost."""
        raise AgentLost(self.why)

    def request(self, *_: Any, **__: Any) -> NoReturn:
        """Always raises AgentLost."""
        raise AgentLost(self.why)


class ListedHosts:
    """Agents on the hosts of a list; `close` ends them. Hosts that cannot be reached are included, with the reason."""

    def __init__(self, hosts: Sequence[str | Remote], say: Callable[[str], None]) -> None:
        _make_room(len(hosts))
        ending, again = threading.Event(), threading.Semaphore(AGAIN_AT_ONCE)
        # Logins mostly wait for the network, so they run in parallel; agents on this machine may need a password.
        with ThreadPoolExecutor(AT_ONCE, "login") as pool:
            logins = {
                each.name: pool.submit(_open, each, say, ending, again) for each in hosts if isinstance(each, Remote)
            }
            here: dict[str, Agent] = {}
            try:
                for each in hosts:
                    if isinstance(each, str):
                        here[each] = Agent.open(_command(each, say))
                _wait_for(logins.values(), say)
                far = {name: login.result() for name, login in logins.items()}
            except BaseException:
                ending.set()
                late = [login.result() for login in logins.values() if not login.cancel() and not login.exception()]
                self._agents = [each for each in (*here.values(), *late) if isinstance(each, Agent)]
                self.close()
                raise
        found: Mapping[str, Requests] = {**here, **far}
        self._agents = [each for each in found.values() if isinstance(each, Agent)]
        names = [each if isinstance(each, str) else each.name for each in hosts]
        self._hosts = [Host(name, "", found[name]) for name in names]

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


def _wait_for(logins: Collection[Future[Requests]], say: Callable[[str], None]) -> None:
    """Waits until all logins have ended, and reports progress now and then."""
    waiting = set(logins)
    while waiting:
        _, waiting = wait(waiting, SAY_SECONDS)
        if waiting:
            say(f"logging in: {len(logins) - len(waiting)} of {len(logins)} hosts")


def _open(remote: Remote, say: Callable[[str], None], ending: threading.Event, again: threading.Semaphore) -> Requests:
    opened = _try(remote, say, ending)
    if isinstance(opened, Unreachable) and TURNED_AWAY in opened.why:
        with again:  # otherwise all would retry at the same time, and be rejected again
            for pause in PAUSES_SECONDS:
                if isinstance(opened, Agent) or TURNED_AWAY not in opened.why or ending.wait(pause):
                    break
                opened = _try(remote, say, ending)
    if isinstance(opened, Unreachable) and not ending.is_set():
        say(opened.why)
    return opened


def _try(remote: Remote, say: Callable[[str], None], ending: threading.Event) -> Agent | Unreachable:
    try:
        return open_agent(remote, host_words(remote), say, ending=ending)
    except AgentFailure as error:
        return Unreachable(one_line(error))


def _command(name: str, say: Callable[[str], None]) -> list[str]:
    """The command that starts the agent of a host on this machine."""
    agent, shown = [find_agent(), "host"], printable(name[:MOST_SHOWN])
    if name == "local":
        return agent
    if name.startswith(NETNS) and len(name) > len(NETNS):
        namespace = name.removeprefix(NETNS)
        if not _is_there(namespace):
            raise InputError(f"{shown}: found no such network namespace, expected one that `ip netns` lists")
        return privileged([*agent, "--netns", namespace], say)
    raise InputError(
        f"{printable(name[:MOST_SHOWN])}: found no host of this kind, expected local, netns:NAME, or a host for ssh"
    )


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


def remote(name: str) -> str | Remote:
    """The host that a word stands for: one on this machine, or one reached by ssh."""
    return name if name == "local" or ":" in name else Remote(name, name)
