"""What the pipe to an agent takes: seconds to a greeted agent, and requests per second.

    .venv/bin/python -m bench.hosts.pipe [--rounds 7] [--against FOLDER]

Each round starts agents one after another, greets them, and asks the last one thing after another, then many at once.
`--against` names another clone with its agent built, whose code takes turns with this one in the same run; the ratios
have their spread.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

REQUESTS = 2000
ONE = """
import json, sys, time
from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent

def ready():
    global agent
    begun = time.perf_counter()
    agent = Agent.open([find_agent(), "host"])
    return time.perf_counter() - begun

first = ready()
following = []
for _ in range(20):
    agent.close()
    following.append(ready())
following = sorted(following)[10]
begun = time.perf_counter()
for _ in range(COUNT):
    agent.request("cancel", {"id": 0})
alone = COUNT / (time.perf_counter() - begun)
begun = time.perf_counter()
for call in [agent.begin("cancel", {"id": 0}) for _ in range(COUNT)]:
    call.result()
together = COUNT / (time.perf_counter() - begun)
agent.close()
print(json.dumps({
    "seconds to the first agent of a process": first, "seconds to each following one": following,
    "requests/s, one by one": alone, "requests/s, at once": together,
}))
"""


def measure(clone: Path) -> dict[str, float]:
    """One round of a clone's code with its own agent."""
    environment = {**os.environ, "PYTHONPATH": str(clone / "python/src")}
    environment.pop("FRAMEGAUGE_AGENT", None)
    script = ONE.replace("COUNT", str(REQUESTS))
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True, cwd=clone
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main() -> None:
    """Print the medians, and the ratios to the other clone."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--against", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    clones = [Path(__file__).resolve().parents[2], *([options.against.resolve()] if options.against else [])]
    rounds = [[measure(clone) for clone in clones] for _ in range(options.rounds)]
    for key in rounds[0][0]:
        line = f"{key}: {statistics.median(each[0][key] for each in rounds):.4g}"
        if options.against:
            ratios = sorted(each[0][key] / each[1][key] for each in rounds)
            other = statistics.median(each[1][key] for each in rounds)
            line += f", there {other:.4g}; ratio {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        print(line)


if __name__ == "__main__":
    main()
