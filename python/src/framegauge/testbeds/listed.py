"""Hosts that exist: this one, network namespaces on it, those that ssh knows. Each has an agent; nothing is built."""

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
from framegauge.testbeds.base import Host

__all__ = ["ListedHosts", "Unreachable", "of_machine", "remote"]

NETNS = "netns:"
NAMESPACES = Path("/run/netns")  # ip-netns(8)
AT_ONCE = 32  # logins under way
SAY_SECONDS = 5.0
# A server, or a jump host before many, turns some away while too many log in (sshd_config(5), MaxStartups).
TURNED_AWAY = "exchange_identification"
AGAIN_AT_ONCE = 2  # of those that were turned away
PAUSES_SECONDS = (1.0, 1.0, 2.0, 4.0, 8.0)
OWN_FILES, FILES_A_HOST, FILES_A_LOGIN = 64, 3, 6


class Unreachable:
    """In place of the agent of a host that has none: every request fails with the reason."""

    def __init__(self, why: str) -> None:
        self.why = why

    def begin(self, *_: Any, **__: Any) -> NoReturn:
        """AgentLost."""
        raise AgentLost(self.why)

    def request(self, *_: Any, **__: Any) -> NoReturn:
        """AgentLost."""
        raise AgentLost(self.why)


class ListedHosts:
    """Agents on the hosts of a list; `close` ends them. A host that cannot be reached is in the list, and says why."""

    def __init__(self, hosts: Sequence[str | Remote], say: Callable[[str], None]) -> None:
        _make_room(len(hosts))
        ending, again = threading.Event(), threading.Semaphore(AGAIN_AT_ONCE)
        # Each login waits for the network most of the time; what is on this machine may ask for a password.
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
        """In the order of the list; their addresses are asked for by who needs them."""
        return self._hosts

    def close(self) -> None:
        """End the agents."""
        with ThreadPoolExecutor(AT_ONCE, "goodbye") as pool:
            list(pool.map(Agent.close, self._agents))


def _make_room(hosts: int) -> None:
    """Let this program hold as many files as the agents of so many hosts need; MissingRequirement if it may not."""
    needed = OWN_FILES + FILES_A_HOST * hosts + FILES_A_LOGIN * min(hosts, AT_ONCE)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or needed <= soft:
        return
    if hard != resource.RLIM_INFINITY and hard < needed:
        missing = {"name": f"open files: {needed}", "needed_for": f"{hosts} hosts", "found": f"a limit of {hard}"}
        raise MissingRequirement([missing | {"remedy": f"as root: ulimit -n {needed}"}])
    resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


def _wait_for(logins: Collection[Future[Requests]], say: Callable[[str], None]) -> None:
    """Until each has ended, and say now and then how many have."""
    waiting = set(logins)
    while waiting:
        _, waiting = wait(waiting, SAY_SECONDS)
        if waiting:
            say(f"logging in: {len(logins) - len(waiting)} of {len(logins)} hosts")


def _open(remote: Remote, say: Callable[[str], None], ending: threading.Event, again: threading.Semaphore) -> Requests:
    opened = _try(remote, say, ending)
    if isinstance(opened, Unreachable) and TURNED_AWAY in opened.why:
        with again:  # or all would come at the same moments, and be turned away again
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
