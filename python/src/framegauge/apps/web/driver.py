"""The users of the site: a closed loop. Each opens a page with its parts, thinks, and opens the next.

They come one after another during `ramp_up`; what ends in the `steady` time after that counts. Then no operation
begins, and those under way are awaited, so that every request is answered or has failed. The result is one JSON
document.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from typing import Any

from framegauge.apps.web.browser import Browser
from framegauge.apps.web.cpu import Sampler
from framegauge.apps.web.ledger import Ledger
from framegauge.apps.web.visits import Visit

__all__ = ["DRAIN_SECONDS", "driven", "main"]

DRAIN_SECONDS = 10.0  # for operations that are under way at the end


async def _user(asked: argparse.Namespace, number: int, begins: float, ends: float, ledger: Ledger) -> None:
    visit = Visit(asked.seed, number, asked.think)
    browser = Browser(asked.address, asked.port, asked.thumbnail_bytes, ledger)
    due = begins
    try:
        for request in visit.requests():
            await asyncio.sleep(min(due, ends) - time.monotonic())
            begun = time.monotonic()
            if begun >= ends:
                return
            ledger.woke(due, begun)
            ledger.begun += 1
            whole = await browser.show(request)
            ended = time.monotonic()
            if whole:
                ledger.done(request.operation, begun, ended)
            due = ended + visit.think_seconds()
    finally:
        browser.close()


async def driven(asked: argparse.Namespace) -> dict[str, Any]:
    """A run with so many users; everything that was counted."""
    start = time.monotonic()
    steady = start + asked.ramp_up
    ends = steady + asked.steady
    ledger = Ledger(steady, ends)
    sampler = Sampler(asked.processes)
    users = [
        asyncio.create_task(_user(asked, number, start + asked.ramp_up * number / asked.users, ends, ledger))
        for number in range(asked.users)
    ]
    await asyncio.sleep(asked.ramp_up)
    await sampler.run(ends)
    _, late = await asyncio.wait(users, timeout=max(0.0, ends - time.monotonic()) + DRAIN_SECONDS)
    for each in late:
        each.cancel()
    ended = await asyncio.gather(*users, return_exceptions=True)
    for problem in ended:
        if isinstance(problem, Exception):
            raise problem
    return {"users": asked.users, **ledger.as_json(), "beyond": ledger.beyond(), "cpu": sampler.as_json()}


def _processes(text: str) -> dict[str, int]:
    return {name: int(number) for name, _, number in (each.partition("=") for each in text.split())}


def main() -> None:
    """Prints the result of a run."""
    parser = argparse.ArgumentParser(description="The users of the event calendar.")
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, default=80)
    parser.add_argument("--users", type=int, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--thumbnail-bytes", type=int, required=True)
    for name in ("think", "ramp-up", "steady"):
        parser.add_argument(f"--{name}", type=float, required=True, help="in seconds")
    parser.add_argument("--processes", type=_processes, default={}, help="NAME=PID NAME=PID: whose CPU time is read")
    json.dump(asyncio.run(driven(parser.parse_args())), sys.stdout)


if __name__ == "__main__":
    main()
