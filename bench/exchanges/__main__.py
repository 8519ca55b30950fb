"""Runs scripted exchanges on the kernel's TCP and on the model's, and compares them segment by segment.

    python -m bench.exchanges [--only NAME] [--seeds 1000] [--write docs/measured/exchanges.md]

Needs root, for the rack's network namespaces. `--details` shows every segment of both. `--seeds` draws cases of the
same kinds instead, and plays each until one run agrees. The page has a part for either; what is written replaces its
own.
`--kernels` keeps what the kernels did, so that another model can be compared with it, and a long run can be resumed.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from bench.common import say
from bench.exchanges import kernel, model, page
from bench.exchanges.cases import CASES, Case
from bench.exchanges.comparing import Difference, differences
from bench.exchanges.draws import drawn
from bench.exchanges.exchange import Exchange

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
    for result in _all(chosen, agent, options):
        found.append(result)
        say(result.line())
        if options.details:
            print(page.side_by_side(result))
    text = page.drawn(found, options.runs) if options.seeds else page.table(found, options.runs)
    if options.write:
        page.write(options.write, text)
    else:
        print(text)


def _all(cases: Iterable[Case], agent: str, options: argparse.Namespace) -> Iterator[page.Result]:
    told = {"agent": agent, "runs": options.runs, "enough": options.runs if not options.seeds else 1}
    with multiprocessing.get_context("fork").Pool(options.workers) as pool:
        yield from pool.imap(partial(compared, **told, kept=options.kernels), cases)


def compared(case: Case, agent: str, runs: int, enough: int, kept: Path | None) -> page.Result:
    """One case. The kernel plays it so often, or until so many agree; the model once, as it always does the same."""
    of_model = model.played(case, agent)
    path = None if kept is None else kept_at(kept, case)
    found = json.loads(path.read_text()) if path is not None and path.exists() else []
    before = [Exchange.parsed(each) for each in found]
    played: list[tuple[Exchange, list[Difference]]] = []
    while len(played) < runs and sum(not differs for _, differs in played) < enough:
        run = before[len(played)] if len(played) < len(before) else _kernel(case, agent)
        played.append((run, differences(case, run, of_model)))
    if path is not None and len(played) > len(before):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([run.as_json() for run, _ in played]))
    return page.Result(case, of_model, played)


def kept_at(kept: Path, case: Case) -> Path:
    """The file of what the kernels did with a case."""
    digest = hashlib.sha256(repr(replace(case, reason="")).encode()).hexdigest()[:20]
    return kept / f"{digest}.json"


def _kernel(case: Case, agent: str) -> Exchange:
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
    parser.add_argument("--kernels", type=Path, help="where the kernels' runs are kept, and are taken from again")
    parser.add_argument("--write", type=Path, help="the page to write")
    return parser


if __name__ == "__main__":
    main()
