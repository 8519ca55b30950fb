"""Logins on many hosts side by side, with progress, and an end at any moment."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, NoReturn

from framegauge.agents.pipe import Agent, Requests
from framegauge.agents.ssh import Remote, host_words, open_agent
from framegauge.errors import AgentFailure, AgentLost
from framegauge.printable import one_line

__all__ = ["AT_ONCE", "Logins", "Unreachable"]

AT_ONCE = 32  # simultaneous logins
SAY_SECONDS = 5.0
# A server, or a jump host in front of many, rejects some connections while too many log in (sshd_config(5),
# MaxStartups).
TURNED_AWAY = "exchange_identification"
AGAIN_AT_ONCE = 2  # simultaneous retries of rejected logins
PAUSES_SECONDS = (1.0, 1.0, 2.0, 4.0, 8.0)


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


class Logins:
    """Logins on some hosts. `found` has the agent of each that has ended, or the reason why there is none.

    The thread that waits can be interrupted at any moment. So it shares a SimpleQueue with the others and no Condition
    or Future: a signal's exception between taking their lock and entering the block would leave the lock held, and all
    others waiting for it.
    """

    def __init__(self, remotes: Sequence[Remote], say: Callable[[str], None]) -> None:
        self.found: dict[str, Requests] = {}
        self._say, self._hosts = say, len(remotes)
        self._left, self._ended = deque(remotes), SimpleQueue[tuple[str, Requests | BaseException]]()
        self._ending, self._again = threading.Event(), threading.Semaphore(AGAIN_AT_ONCE)
        self._threads = [
            threading.Thread(target=self._run, name="login", daemon=True) for _ in range(min(AT_ONCE, len(remotes)))
        ]

    def begin(self) -> None:
        """Begins them; from then on `give_up` must be called if they are not all awaited."""
        for thread in self._threads:
            thread.start()

    def wait(self) -> None:
        """Waits until all logins have ended, and reports progress now and then; raises what a login has raised."""
        due = time.monotonic() + SAY_SECONDS
        while len(self.found) < self._hosts:
            try:
                name, outcome = self._ended.get(timeout=max(0.0, due - time.monotonic()))
            except Empty:
                self._say(f"logging in: {len(self.found)} of {self._hosts} hosts")
                due = time.monotonic() + SAY_SECONDS
                continue
            if isinstance(outcome, BaseException):
                raise outcome
            self.found[name] = outcome

    def give_up(self) -> list[Agent]:
        """Ends all logins; the agents that there are."""
        self._left.clear()
        self._ending.set()
        for thread in self._threads:
            if thread.ident is not None:  # else it was not started
                thread.join()
        late = [self._ended.get()[1] for _ in range(self._ended.qsize())]
        return [agent for agent in (*self.found.values(), *late) if isinstance(agent, Agent)]

    def _run(self) -> None:
        """One login after another, until none is left."""
        while True:
            try:
                remote = self._left.popleft()
            except IndexError:
                return
            try:
                self._ended.put((remote.name, self._open(remote)))
            except BaseException as error:
                self._ended.put((remote.name, error))

    def _open(self, remote: Remote) -> Requests:
        opened = self._try(remote)
        if isinstance(opened, Unreachable) and TURNED_AWAY in opened.why:
            with self._again:  # otherwise all would retry at the same time, and be rejected again
                for pause in PAUSES_SECONDS:
                    if isinstance(opened, Agent) or TURNED_AWAY not in opened.why or self._ending.wait(pause):
                        break
                    opened = self._try(remote)
        return opened

    def _try(self, remote: Remote) -> Agent | Unreachable:
        try:
            return open_agent(remote, host_words(remote), self._say, ending=self._ending)
        except AgentFailure as error:
            return Unreachable(one_line(error))
