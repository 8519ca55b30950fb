"""What a receiver costs at MTU 1500 and 9000, offloads off and on, beside what was published and measured before.

    .venv/bin/python -m bench.cost.costs [--blocks N] [--emulated]

One flow at 1 Gb/s, ten interleaved blocks with A/A controls: the verdicts with their intervals, by instructions where
the machine counts them, by CPU time everywhere. How much figures of one arm scatter says which of them to believe.
With --emulated the rack is in a machine that qemu emulates, whose counter of instructions is exact wherever this
machine hides its own (docs/why/cpu-cost.md).
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import statistics
from collections import Counter, defaultdict
from typing import Any

from bench.common import build_machine, opener_in, save, say, warn_if_busy
from rich.console import Console

from framegauge.cli import commands
from framegauge.report import terminal
from framegauge.results.journal import read
from framegauge.study import file as study_file
from framegauge.summary import document as summary

STUDY = """
question: What does a gigabyte cost its receiver?
testbed: {{kind: rack, link: {{rate: {rate}}}}}
factors:
  mtu: {{levels: [1500, 9000], baseline: 1500}}
  offloads: [off, on]
  moderation: {moderation}
workloads:
  - stream: {{{amount}, sample: 0 s}}
blocks: {blocks}
budget: 1 h
margins: {{{margins}}}
"""
HERE = {
    "rate": "1 Gb/s",
    "moderation": "100 us",
    "amount": "duration: 2 s",
    "margins": "receiver_instructions: 2 %, receiver_cpu_cost: 5 %, sender_cpu_cost: 5 %",
}
# One CPU of 10^9 instructions per second: a fifth of the rate and five times the moderation, so that an interrupt hands
# over as many frames. Its time is its instructions over again, so time is not judged.
EMULATED = {
    "rate": "200 Mb/s",
    "moderation": "500 us",
    "amount": "size: 50 MB",
    "margins": "receiver_instructions: 2 %, sender_instructions: 2 %",
}
# Published (Purdue TR 13-006): 9000 against 1500 with TSO and LRO on, many-to-one, instructions −22 %, cycles −17 %;
# one-to-one −13 %. A prototype of this fabric on another virtual machine, instructions/GB, MTU 1500 and 9000:
# offloads off 4.13–4.25 and 1.97–1.98 thousand million, TSO and LRO on at 100 us 1.34–1.37 and 1.07.
BEFORE = {(1500, False): 4.2, (9000, False): 1.98, (1500, True): 1.36, (9000, True): 1.07}


def scatter(values: list[float]) -> str:
    """Median and coefficient of variation."""
    share = statistics.stdev(values) / statistics.fmean(values) if len(values) > 1 else 0.0
    return f"{statistics.median(values):.4g} (CoV {share:.1%})"


def main() -> None:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=10, help="blocks of every arm (default 10)")
    parser.add_argument("--emulated", action="store_true", help="in a machine that qemu emulates")
    asked = parser.parse_args()
    opener = opener_in(build_machine()) if asked.emulated else commands.opened
    if not asked.emulated:
        warn_if_busy()
    folder = commands.choose_folder("bench-costs")
    regime = EMULATED if asked.emulated else HERE
    study = study_file.parse(STUDY.format(blocks=max(2, asked.blocks), **regime), "bench/cost/costs.py")
    commands.run_study(study, folder, False, lambda _: None, say, opener)
    saved = read(folder)
    terminal.show(summary.summarise(saved), Console(width=140))
    arms: dict[tuple[int, bool], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for run in saved.runs:
        if not run.excluded:
            for metric, value in run.metrics.items():
                arms[run.level, run.conditions["offloads"]][metric].append(value)
    found: list[dict[str, Any]] = []
    ending = "instructions" if asked.emulated else ""
    for (mtu, offloads), metrics in sorted(arms.items()):
        shown = [name for name in sorted(metrics) if name.startswith("receiver") and name.endswith(ending)]
        words = ", ".join(f"{name} {scatter(metrics[name])}" for name in shown)
        before = f"seen before: {BEFORE[mtu, offloads]:g}e9 instructions"
        print(f"MTU {mtu}, offloads {'on' if offloads else 'off'}: a GB: {words}; {before}")
        found.append({"mtu": mtu, "offloads": offloads, "metrics": metrics})
    for reason, count in Counter(line for run in saved.runs for line in run.excluded).most_common(3):
        say(f"{count} x {reason}")
    say(f"figures: {save('bench-costs-figures', found, emulated=asked.emulated)}")


if __name__ == "__main__":
    main()
