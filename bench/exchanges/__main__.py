"""Runs scripted exchanges on the kernel's TCP and on the model's, and compares them segment by segment.

    python -m bench.exchanges [--only NAME] [--seeds 1000] [--write docs/measured/exchanges.md]

Needs root, for the rack's network namespaces. `--only` shows every segment of both. `--seeds` draws cases of the same
kinds instead.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path

from bench.common import say
from bench.exchanges import kernel, model, page
from bench.exchanges.cases import CASES, Case
from bench.exchanges.comparing import differences
from bench.exchanges.draws import drawn

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.errors import FramegaugeError

TRIES = 10


def main() -> None:
    options = _parser().parse_args()
    agent = find_agent()
    chosen = [drawn(seed) for seed in range(options.first, options.first + options.seeds)] or list(CASES)
    chosen = [case for case in chosen if options.only in case.name]
    found = []
    for result in _all(chosen, agent, options.runs, options.workers):
        found.append(result)
        say(result.line())
        if options.details:
            print(page.side_by_side(result))
    text = page.summary(found) if options.seeds else page.table(found, options.runs)
    if options.write:
        options.write.write_text(text)
    else:
        print(text)


def _all(cases: Iterable[Case], agent: str, runs: int, workers: int) -> Iterator[page.Result]:
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        yield from pool.imap(partial(compared, agent=agent, runs=runs), cases)


def compared(case: Case, agent: str, runs: int) -> page.Result:
    """One case. The kernel plays it so often; the model once, because it cannot do otherwise."""
    of_model = model.played(case, agent)
    played = [_kernel(case, agent) for _ in range(runs)]
    return page.Result(case, of_model, [(each, differences(case, each, of_model)) for each in played])


def _kernel(case: Case, agent: str) -> model.Exchange:
    """A machine that is too busy to build a rack in time is asked again."""
    for attempt in range(1, TRIES + 1):
        try:
            with Agent.open([agent, "rack"]) as rack:
                return kernel.played(case, rack)
        except (FramegaugeError, RuntimeError) as problem:
            if attempt == TRIES:
                # Not the error itself: another process is to be told.
                raise RuntimeError(f"{case.name}: {problem}") from None
    raise AssertionError


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m bench.exchanges", description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--details", action="store_true", help="every segment, side by side")
    parser.add_argument("--runs", type=int, default=3, help="times that the kernel plays each case")
    parser.add_argument("--workers", type=int, default=2, help="cases at a time")
    parser.add_argument("--seeds", type=int, default=0, help="so many drawn cases instead")
    parser.add_argument("--first", type=int, default=1, help="the first seed")
    parser.add_argument("--write", type=Path, help="the page to write")
    return parser


if __name__ == "__main__":
    main()
