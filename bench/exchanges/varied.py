"""Which drawn cases differ by time alone: they agree once the model's hosts are as slow as the rack's.

    python -m bench.exchanges.varied --seeds 320 --kernels DIR

`--kernels` has what the kernels did (`python -m bench.exchanges --seeds 320 --kernels DIR`). The model plays each case
that differs again, with hosts that take up to 30 or 100 us to handle a frame, by six draws, and with links whose RTT is
longer by what the fastest of the kernels' handshakes took more, or half of that.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.exchanges import model
from bench.exchanges.__main__ import kept_at
from bench.exchanges.cases import Case
from bench.exchanges.comparing import Difference, differences
from bench.exchanges.draws import drawn
from bench.exchanges.exchange import CLIENT, Exchange

from framegauge.agents.binary import find_agent

JITTERS_SECONDS = (30e-6, 100e-6)
DRAWS = range(1, 7)
MOST_SECONDS = 0.001
GRAVE = frozenset({"sent", "mechanism"})


def handshake_seconds(exchange: Exchange) -> float:
    """From the client's SYN to its next segment."""
    first, second = (segment.seconds for segment in list(exchange.of(CLIENT))[:2])
    return second - first


def varied(case: Case, runs: list[Exchange], as_it_is: Exchange, agent: str) -> Iterator[Exchange]:
    """The model's other accounts of a case."""
    more = min(map(handshake_seconds, runs)) - handshake_seconds(as_it_is)
    more = max(0.0, min(MOST_SECONDS, more))
    for longer in (0.0, more / 2, more):
        slower = replace(case, rtt_seconds=case.rtt_seconds + longer)
        for jitter in JITTERS_SECONDS:
            for seed in DRAWS:
                changed: dict[str, Any] = {"jitter_seconds": jitter, "seed": seed}
                yield model.played(slower, agent, changed)


def kind(found: list[list[Difference]]) -> str:
    """What the closest run differs in."""
    closest = min(found, key=len)
    if not closest:
        return "agrees"
    return "is sent otherwise" if GRAVE & {each.kind for each in closest} else "differs in other things"


def judged(case: Case, runs: list[Exchange], agent: str) -> str:
    """Whether it agrees, differs by time alone, or otherwise."""
    as_it_is = model.played(case, agent)
    said = kind([differences(case, run, as_it_is) for run in runs])
    if said == "agrees":
        return said
    others = varied(case, runs, as_it_is, agent)
    by_time = any(not differences(case, run, other) for other in others for run in runs)
    return f"{said}, {'by time alone' if by_time else 'not by time alone'}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.exchanges.varied", description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=320, help="how many, from the first")
    parser.add_argument("--kernels", type=Path, required=True, help="what the kernels did")
    options = parser.parse_args()
    agent = find_agent()
    counts: Counter[str] = Counter()
    for seed in range(1, options.seeds + 1):
        case = drawn(seed)
        runs = [Exchange.parsed(each) for each in json.loads(kept_at(options.kernels, case).read_text())]
        said = judged(case, runs, agent)
        counts[said] += 1
        if said.endswith("not by time alone"):
            print(f"{case.name}: {said}")
    print(", ".join(f"{said}: {count}" for said, count in counts.most_common()))


if __name__ == "__main__":
    main()
