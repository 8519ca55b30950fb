"""What noise real studies have: equal arms on the rack, block after block, for bench/truth/calibration.py.

    .venv/bin/python -m bench.truth.noise [--blocks 60]

Writes bench/truth/noise.json: of every metric the log values of three equal arms about the mean of each arm, in the
order of their blocks. Wants nothing special of the machine: its noise is what is to be known.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import statistics
import tempfile
from pathlib import Path
from typing import Any

from bench.common import say

from framegauge.cli import commands
from framegauge.results.journal import Run, read
from framegauge.study import file as study_file

NOISE = Path(__file__).resolve().parent / "noise.json"
# Two levels that differ by nothing that can matter: the NIC is told to wait a microsecond longer.
STUDY = """
question: How much do equal arms differ?
testbed: {{kind: rack, topology: pair, link: {{rate: 1 Gb/s}}}}
factors:
  mtu: 1500
  rtt: 0.2 ms
  moderation: {{levels: [50 us, 51 us], baseline: 50 us}}
workloads:
  - {workload}
treatment: moderation
blocks: {blocks}
stop: blocks
budget: 30 min
margins: {margins}
"""
ASKED = (
    ("stream: {size: 10 MB, repeat: 0.3 s}", "{goodput: 1 %, completion_time: 2 %, receiver_cpu_cost: 5 %}"),
    ("stream: {size: 100 kB, repeat: 0.3 s}", "{goodput: 1 %, completion_time: 2 %}"),
    ("rr: {request: 200 B, response: 1 kB, rate: 500, duration: 0.5 s}", "{latency_p50: 5 %, latency_p99: 10 %}"),
)


def series(runs: list[Run], metric: str) -> list[list[float]]:
    """Blocks that have all three arms: log values about each arm's mean."""
    arms = sorted({run.arm for run in runs})
    values = {(run.block, run.arm): math.log(run.metrics[metric]) for run in runs if not run.excluded}
    blocks = [block for block in sorted({run.block for run in runs}) if all((block, arm) in values for arm in arms)]
    means = {arm: statistics.fmean(values[block, arm] for block in blocks) for arm in arms}
    return [[round(values[block, arm] - means[arm], 7) for arm in arms] for block in blocks]


def main() -> None:
    """Run the studies, keep their noise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=60)
    options = parser.parse_args()
    found: dict[str, list[Any]] = {}
    for workload, margins in ASKED:
        text = STUDY.format(workload=workload, margins=margins, blocks=options.blocks)
        study = study_file.parse(text, "bench/truth/noise.py")
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "out"
            commands.run_study(study, out, False, lambda _: None, say)
            runs = list(read(out).runs)
        for metric in study.margin():
            found.setdefault(metric, []).append(series(runs, metric))
            say(f"{workload}, {metric}: {len(found[metric][-1])} blocks")
    linux = platform.release().split("-")[0]
    made_by = f"bench/truth/noise.py --blocks {options.blocks}, {platform.machine()}, Linux {linux}"
    NOISE.write_text(json.dumps({"made_by": made_by, "series": found}) + "\n")


if __name__ == "__main__":
    main()
