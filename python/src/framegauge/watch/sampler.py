"""Samples what hosts have counted, at multiples of a step, into a folder; bounded in what it costs.

Each host is asked once per step, and only once it has answered. One that is lost is reached for again in the
background, less and less often; meanwhile it has gaps, with the reason. Nothing is changed on any host.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from framegauge.agents.pipe import Agent, Pending, Requests
from framegauge.agents.ssh import Remote, host_words, open_agent
from framegauge.errors import AgentFailure, AgentTimeout, BadAnswer, FramegaugeError, InputError
from framegauge.files import inventory
from framegauge.files.machines import Machine
from framegauge.printable import one_line
from framegauge.testbeds.listed import ListedHosts, Unreachable, of_machine, placed, remote
from framegauge.watch import counters
from framegauge.watch.model import Agents, Watch
from framegauge.watch.samples import Sample, Writer

__all__ = ["Sampler", "sample", "where"]

PATIENCE_SHARE = 0.5  # of a step, for all answers
LATEST_SHARE = 0.5  # of a step: what is later belongs to the next one
TRIES = 3  # answers in a row that do not come, until a host is given up
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 2.0, 60.0
AT_ONCE = 8  # hosts that are reached for again
SAY_SECONDS = 60.0
MOST_REASON = 300
MOST_VALUES = 10_000  # of a sample; a host with two interfaces has 400
NOT_REACHED = "not reached yet"

Say = Callable[[str], None]
Open = Callable[[str], Requests]


@dataclass
class _Host:
    """A host: its agent, or since when and why it has none."""

    name: str
    agent: Requests | None = None
    why: str = NOT_REACHED
    late: int = 0
    pause: float = FIRST_PAUSE_SECONDS
    again_at: float = 0.0
    opening: Future[Requests] | None = None


class Sampler:
    """Samples hosts through their agents. `agents` are those that are there, `open_one` reaches a host anew;
    AgentFailure or InputError if it cannot."""

    def __init__(
        self,
        names: Sequence[str],
        agents: Mapping[str, Requests],
        open_one: Open,
        writer: Writer,
        step: float,
        interfaces: Sequence[str],
        say: Say,
        clock: Callable[[], float] = time.time,
        pause: Callable[[float], None] = time.sleep,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hosts = [_Host(name, agents.get(name)) for name in names]
        self._open, self._writer, self._step = open_one, writer, step
        self._asked = {"interfaces": list(interfaces)}
        self._say, self._clock, self._pause = say, clock, pause
        self._elapsed = elapsed  # for how long, which no change of the time of day changes
        self._pool = ThreadPoolExecutor(AT_ONCE, "reach")

    def run(self, until: float, seconds: float = math.inf) -> None:
        """Samples up to a time (seconds since 1970), or for so long."""
        report_time, ends = self._elapsed(), self._elapsed() + seconds
        while (now := self._clock()) < until and self._elapsed() < ends:
            due = (now // self._step + 1) * self._step
            left = min(until - now, ends - self._elapsed())
            if due - now > left:
                self._pause(max(0.0, left))
                return
            self._pause(max(0.0, due - now))
            if self._clock() - due > LATEST_SHARE * self._step:
                continue  # this process was held up: a gap
            self.take(due)
            if self._elapsed() - report_time >= SAY_SECONDS:
                report_time = self._elapsed()
                lost = [host.name for host in self._hosts if host.agent is None]
                away = f"; without {', '.join(lost)}" if lost else ""
                self._say(f"sampling {len(self._hosts) - len(lost)} of {len(self._hosts)} hosts{away}")

    def take(self, due: float) -> None:
        """One sample of every host, on disk when this returns."""
        calls: list[tuple[_Host, float, Pending]] = []
        samples: list[Sample] = []
        for host in self._hosts:
            self._reach(host)
            if host.agent is None:
                samples.append(Sample(due, host.name, gap=host.why))
                continue
            at = self._clock()
            try:
                calls.append((host, at, host.agent.begin("host.totals", self._asked)))
            except AgentFailure as error:
                samples.append(self._lost(host, at, error))
        end = self._elapsed() + PATIENCE_SHARE * self._step
        for host, at, call in calls:
            try:
                answer = call.result(max(0.001, end - self._elapsed()))
                values, indexes = counters.flat(answer)
                if len(values) > MOST_VALUES:
                    raise BadAnswer(f"found {len(values)} counters, expected at most {MOST_VALUES}")
                samples.append(Sample(at, host.name, str(answer["life"]), values, indexes))
                host.late = 0
            except FramegaugeError as error:
                samples.append(self._lost(host, at, error))
        self._writer.write(samples)

    def _lost(self, host: _Host, at: float, error: FramegaugeError) -> Sample:
        """The gap of a host that did not answer; it is given up if it is gone, or has not answered several times."""
        why = one_line(error, MOST_REASON)
        host.late += 1
        if not isinstance(error, AgentTimeout) or host.late >= TRIES:
            agent, host.agent, host.why, host.late = host.agent, None, why, 0
            host.again_at = self._elapsed() + host.pause
            self._say(f"{why if why.startswith(f'{host.name}: ') else f'{host.name}: {why}'}; its samples have a gap")
            if isinstance(agent, Agent):
                self._pool.submit(agent.close)
        return Sample(at, host.name, gap=why)

    def _reach(self, host: _Host) -> None:
        """Takes a new agent that is there, or has one reached for once its time has come."""
        if host.agent is not None:
            return
        now = self._elapsed()
        if host.opening is None:
            if now >= host.again_at:
                host.opening = self._pool.submit(self._open, host.name)
            return
        if not host.opening.done():
            return
        opening, host.opening = host.opening, None
        try:
            host.agent = opening.result()
        except FramegaugeError as error:
            host.why = one_line(error, MOST_REASON)
            host.pause = min(2 * host.pause, LONGEST_PAUSE_SECONDS)
            host.again_at = now + host.pause
            return
        host.pause = FIRST_PAUSE_SECONDS
        self._say(f"{host.name}: there again")

    def close(self) -> None:
        """Ends the agents that it reached."""
        self._pool.shutdown(wait=True, cancel_futures=True)
        for host in self._hosts:
            if host.opening is not None and not host.opening.cancelled() and host.opening.exception() is None:
                host.agent = host.opening.result()
            if isinstance(host.agent, Agent):
                host.agent.close()


def where(watch: Watch, say: Say) -> dict[str, str | Remote]:
    """How each host of a watch is reached."""
    assert watch.agents is not None
    agents = watch.agents
    known: Mapping[str, Machine] = MappingProxyType({})
    if agents.inventory is not None:
        known = {machine.name: machine for machine in inventory.load(agents.inventory, agents.group, say)}
    return {name: placed(known[name]) if name in known else _word(name, agents) for name in watch.hosts}


def _word(name: str, agents: Agents) -> str | Remote:
    way = remote(name)
    return way if isinstance(way, str) else of_machine(Machine(name=name, options=agents.options))


def sample(watch: Watch, until: float, say: Say, seconds: float = math.inf) -> None:
    """Samples the hosts of a watch up to a time (seconds since 1970), or for so long, into its folder. InputError if
    none can be reached, FolderInUse if another process samples into it."""
    assert watch.agents is not None
    ways, ending = where(watch, say), threading.Event()

    def opened(name: str) -> Requests:
        way = ways[name]
        if isinstance(way, Remote):
            return open_agent(way, host_words(way), lambda _: None, ending=ending)
        [reopened] = ListedHosts([way], lambda _: None).hosts()
        return reopened.agent

    with Writer(Path(watch.agents.folder)) as writer:
        bed = ListedHosts(list(ways.values()), say)
        agents = {host.name: host.agent for host in bed.hosts()}
        there = {name: agent for name, agent in agents.items() if not isinstance(agent, Unreachable)}
        sampler = Sampler(list(ways), there, opened, writer, watch.step, watch.agents.interfaces, say)
        try:
            if not there:
                raise InputError("agents: found no host that can be reached, expected one")
            say(f"sampling {len(there)} of {len(ways)} hosts every {watch.step:g} s into {writer.folder}")
            sampler.run(until, seconds)
        finally:
            ending.set()
            sampler.close()
            with suppress(AgentFailure):
                bed.close()
