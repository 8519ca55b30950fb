"""Twelve senders to one receiver at 1 Gb/s: goodput, fairness and what the fabric's thread takes.

    .venv/bin/python -m bench.truth.rack [--blocks N] [--moderation "50 us"]

MTU 1500 and 9000, offloads off and on, cubic, in randomised blocks. Runs are proven and judged for fidelity
as in any study; those that are no evidence are counted, not used. Interrupts are moderated to 10000 a second: Intel's
gigabit drivers give bulk traffic 4000 and what wants low latency 20000. The more often, the more the fabric wakes up.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from bench.common import save, say, spread, warn_if_busy

from framegauge.cli import commands
from framegauge.results.journal import Run, read
from framegauge.study import file as study_file

STUDY = """
question: Does a rack of thirteen reach its ceiling?
testbed: {{kind: rack, topology: rack, hosts: 13, link: {{rate: 1 Gb/s, buffer: 512 KiB}}}}
factors:
  mtu: {{levels: [1500, 9000], baseline: 1500}}
  offloads: [off, on]
  moderation: {moderation}
workloads:
  - stream: {{duration: {duration}, pattern: many-to-one, sample: 0 s}}
control: false
blocks: {blocks}
budget: 1 h
retries: 1
margins: {{goodput: 1 %, fairness: 5 %}}
"""
# How it is printed, and where it is in a run.
FIELDS: dict[str, tuple[str, Callable[[Run], float]]] = {
    "share of ceiling": (".4f", lambda run: run.metrics["goodput"] / run.readings["ceiling_bits_per_second"]),
    "Jain": (".3f", lambda run: run.metrics["fairness"]),
    "fabric, cores": (".3f", lambda run: run.readings["fabric_cpu_share"]),
    "lateness p99, us": (".0f", lambda run: run.readings["lateness_p99_seconds"] * 1e6),
}


def figures(runs: list[Run]) -> list[dict[str, Any]]:
    """By arm: every field's values."""
    arms: dict[tuple[int, bool], list[Run]] = defaultdict(list)
    for run in runs:
        arms[run.level, run.conditions["offloads"]].append(run)
    return [
        {
            "mtu": mtu,
            "offloads": offloads,
            "excluded": sum(bool(run.excluded) for run in inside),
            **{name: [value(run) for run in inside if not run.excluded] for name, (_, value) in FIELDS.items()},
        }
        for (mtu, offloads), inside in sorted(arms.items())
    ]


def main() -> None:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=5, help="runs of every arm (default 5)")
    parser.add_argument("--moderation", default="100 us", help='of the NICs, such as "50 us" (default 100 us)')
    parser.add_argument("--duration", default="8 s", help="of each run (default 8 s)")
    options = parser.parse_args()
    warn_if_busy()
    text = STUDY.format(blocks=max(2, options.blocks), moderation=options.moderation, duration=options.duration)
    folder = commands.choose_folder("bench-rack")
    commands.run_study(study_file.parse(text, "bench/truth/rack.py"), folder, False, lambda _: None, say)
    runs = list(read(folder).runs)
    found = figures(runs)
    print(f"12 to 1 at 1 Gb/s, cubic, moderation {options.moderation}: median (lowest to highest)")
    for arm in found:
        words = f"MTU {arm['mtu']}  offloads {'on ' if arm['offloads'] else 'off'}"
        if not arm["Jain"]:
            print(f"{words}  no evidence: all {arm['excluded']} runs excluded")
            continue
        cells = "  ".join(f"{name} {spread(arm[name], form)}" for name, (form, _) in FIELDS.items())
        print(f"{words}  {cells}  {len(arm['Jain'])} runs, {arm['excluded']} excluded")
    for reason, count in Counter(line for run in runs for line in run.excluded).most_common(3):
        say(f"{count} x {reason}")
    say(f"figures: {save('bench-rack-figures', found)}")


if __name__ == "__main__":
    main()
