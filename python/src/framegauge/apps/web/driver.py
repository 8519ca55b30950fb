"""The users of the site: a closed loop. Each opens a page with its parts, thinks, and opens the next.

They come one after another during `ramp_up`; what ends in the `steady` time after that counts. With several numbers of
users that is one step of several: as long as the operations keep their limits, more users come, for another step. At
the end no operation begins, and those under way are awaited, so that every request is answered or has failed. The
result is one JSON document.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import time
from dataclasses import dataclass
from typing import Any

from framegauge.apps.web.browser import Browser
from framegauge.apps.web.cpu import Sampler
from framegauge.apps.web.ledger import Ledger, Window
from framegauge.apps.web.limits import LIMITS, SHARE, Rule
from framegauge.apps.web.visits import Visit

__all__ = ["DRAIN_SECONDS", "Step", "driven", "main", "saturation"]

DRAIN_SECONDS = 10.0  # for operations that are under way at the end


class _Clock:
    """Wakes users at their moments, and all of them at the end, which is known only when the last step is judged."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._asleep: set[asyncio.Future[None]] = set()
        self.is_over = False

    async def until(self, moment: float) -> bool:
        """Sleeps until a moment, or the end; whether the run goes on."""
        wait = moment - time.monotonic()
        if wait > 0 and not self.is_over:
            waking: asyncio.Future[None] = self._loop.create_future()
            timer = self._loop.call_later(wait, _wake, waking)
            self._asleep.add(waking)
            try:
                await waking
            finally:
                timer.cancel()
                self._asleep.discard(waking)
        return not self.is_over

    def end(self) -> None:
        """Wakes everyone; nothing begins from now on."""
        self.is_over = True
        for waking in list(self._asleep):
            _wake(waking)


def _wake(waking: asyncio.Future[None]) -> None:
    if not waking.done():
        waking.set_result(None)


@dataclass(frozen=True)
class Step:
    """A number of users, and what was measured with it."""

    users: int
    window: Window
    sampler: Sampler

    def as_json(self, rule: Rule) -> dict[str, Any]:
        """Everything but single requests, in base units."""
        return {"users": self.users, **self.window.as_json(rule), "cpu": self.sampler.as_json()}


async def _user(options: argparse.Namespace, number: int, begins: float, clock: _Clock, site: _Site) -> None:
    visit, browser, ledger = Visit(options.seed, number, options.think), site.browsers[number], site.ledger
    due = begins
    for request in visit.requests():
        if not await clock.until(due):
            return
        begin = time.monotonic()
        ledger.woke(due, begin)
        ledger.begins(number, request.operation, begin)
        is_whole = await browser.show(request)
        ledger.ends(number)
        end = time.monotonic()
        if is_whole:
            ledger.done(request.operation, begin, end)
        due = end + visit.think_seconds()


class _Site:
    """All users and their browsers, which have their connections until the end of the run."""

    def __init__(self, asked: argparse.Namespace) -> None:
        self.ledger = Ledger(0.0, 0.0)
        self.browsers: list[Browser] = []
        self._asked, self._clock = asked, _Clock()
        self._users: list[asyncio.Task[None]] = []

    def more(self, users: int, begins: float) -> None:
        """Has more users come, up to a number, evenly over the ramp-up."""
        options, ledger = self._asked, self.ledger
        first = len(self._users)
        for number in range(first, users):
            self.browsers.append(
                Browser(options.address, options.port, options.thumbnail_bytes, ledger, options.connections)
            )
            moment = begins + options.ramp_up * (number - first) / (users - first)
            self._users.append(asyncio.create_task(_user(options, number, moment, self._clock, self)))

    async def end(self) -> int | None:
        """Ends the run: awaits what is under way. The number of requests that the balancer has counted itself; None if
        one has failed, whose connection may still be in use."""
        self._clock.end()
        _, late = await asyncio.wait(self._users, timeout=DRAIN_SECONDS)
        for task in late:
            task.cancel()
        for problem in await asyncio.gather(*self._users, return_exceptions=True):
            if isinstance(problem, Exception):
                raise problem
        requests = None if self.ledger.failures else await self.browsers[0].count()
        for browser in self.browsers:
            browser.close()
        return requests


async def driven(asked: argparse.Namespace) -> dict[str, Any]:
    """A run with so many users, or with ever more; everything that was counted."""
    rule, site = Rule(asked.limits, asked.share), _Site(asked)
    steps: list[Step] = []
    sampling: list[asyncio.Task[None]] = []
    begins = time.monotonic()
    for users in asked.users:
        steady = begins + asked.ramp_up
        ends = steady + asked.steady
        steps.append(Step(users, site.ledger.open(steady, ends), Sampler(asked.processes)))
        site.more(users, begins)
        await asyncio.sleep(steady - time.monotonic())
        sampling.append(asyncio.create_task(steps[-1].sampler.run(ends)))
        await asyncio.sleep(ends - time.monotonic())
        site.ledger.close()
        if steps[-1].window.judged(rule)["beyond"]:
            break
        begins = ends
    requests = await site.end()
    await asyncio.gather(*sampling)
    results = [step.as_json(rule) for step in steps]
    passing = [index for index, step in enumerate(results) if not step["beyond"]]
    best = passing[-1] if passing else 0
    counts = site.ledger.as_json()
    counts["requests"]["received"] = requests
    document = {**results[best], **steps[best].window.details(), **counts}
    return {**document, "steps": results, "saturation": saturation(results)} if len(asked.users) > 1 else document


def saturation(told: list[dict[str, Any]]) -> dict[str, Any]:
    """The highest number of users with whom all limits held, and their operations; 0 if a run does not show it, because
    the limits held in all of its steps or in none."""
    passing = [step for step in told if not step["beyond"]]
    if not passing or len(passing) == len(told):
        return {"users": 0, "operations_per_second": 0.0}
    return {name: passing[-1][name] for name in ("users", "operations_per_second")}


def _pairs(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in text.split())}


def _processes(text: str) -> dict[str, int]:
    return {name: int(number) for name, number in _pairs(text).items()}


def _limits(text: str) -> dict[str, float]:
    return {name: float(seconds) for name, seconds in _pairs(text).items()}


def main() -> None:
    """Prints the result of a run."""
    parser = argparse.ArgumentParser(description="The users of the event calendar.")
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, default=80)
    parser.add_argument("--users", type=int, nargs="+", required=True, help="how many; several: one step for each")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--thumbnail-bytes", type=int, required=True)
    parser.add_argument("--connections", type=int, required=True, help="of each user")
    for name in ("think", "ramp-up", "steady"):
        parser.add_argument(f"--{name}", type=float, required=True, help="in seconds")
    parser.add_argument("--limits", type=_limits, default=dict(LIMITS), help="OPERATION=SECONDS OPERATION=SECONDS")
    parser.add_argument("--share", type=float, default=SHARE, help="of each operation that must keep its limit")
    parser.add_argument("--processes", type=_processes, default={}, help="NAME=PID NAME=PID: whose CPU time is read")
    _, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard_limit, hard_limit))  # the connections of all users
    json.dump(asyncio.run(driven(parser.parse_args())), sys.stdout)


if __name__ == "__main__":
    main()
