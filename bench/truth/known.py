"""Studies on the real rack whose truth is known: do they come out right, every time?

    .venv/bin/python -m bench.truth.known [--repetitions 20] [--only larger|equal|burn]

- larger: MTU 1500 against 9000 at 1 Gb/s is +5.16 % by arithmetic: "better", and the interval holds that, to 0.3 %.
- equal: 9000 against 9000: "no practical difference".
- burn: the receiver of one arm burns three per cent of a CPU besides: its CPU cost is "worse", by so much as three per
  cent of a CPU are of what it costs, and its goodput is as it was.

Each repetition is a study with a seed of its own, and stops by itself.
"""

# ruff: noqa: T201 (its output is its purpose)

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from bench.common import save, say, warn_if_busy

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.agents.privilege import privileged
from framegauge.cli import commands
from framegauge.study import file as study_file
from framegauge.study.model import Study
from framegauge.testbeds.base import Conditions, Json, Testbed
from framegauge.testbeds.rack import RackTestbed

ARITHMETIC, TOLERANCE = 1.05158, 0.003
BURNT = 8999  # the MTU of the arm that burns; one byte less is nothing
BURN_SHARE = 0.03  # of one CPU
STUDY = """
question: Does a study with a known truth come out right?
testbed: {{kind: rack, link: {{rate: 1 Gb/s}}}}
factors:
  mtu: {{levels: {levels}, baseline: {baseline}}}
  rtt: 0.2 ms
workloads:
  - stream: {{duration: 0.7 s}}
control: {control}
blocks: {blocks}
budget: 15 min
margins: {margins}
seed: {seed}
"""
ASKED: dict[str, dict[str, Any]] = {
    "larger": {"levels": [1500, 9000], "baseline": 1500, "control": "true", "blocks": 20, "margins": "{goodput: 1 %}"},
    "equal": {"levels": [9000], "baseline": 9000, "control": "true", "blocks": 20, "margins": "{goodput: 1 %}"},
    "burn": {
        "levels": [9000, BURNT],
        "baseline": 9000,
        "control": "false",
        "blocks": 100,
        "margins": "{goodput: 1 %, receiver_cpu_cost: 1 %}",
    },
}
# Waits for the run, as what a host does before one is taken off its cost; then in pieces, so that no run is disturbed
# more than another. Its own waking up and counting is part of the share.
BURN = """
import signal, sys, time
share = float(sys.argv[1])
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
signal.sigwait({signal.SIGUSR1})
began, spent = time.monotonic(), time.process_time()
while True:
    time.sleep(0.02)
    while time.process_time() - spent < share * (time.monotonic() - began):
        pass
"""
STARTS_WITHIN = 0.2  # seconds that an interpreter takes to start


class Burning(RackTestbed):
    """A rack on which the receiver burns a share of a CPU while a run of one MTU is measured."""

    def __init__(self, agent: Agent, share: float) -> None:
        super().__init__(agent)
        self._share, self._burner = share, 0

    def up(self, conditions: Conditions) -> Json:
        """As ever; in one arm the receiver has a program that will burn, until the next rack ends its programs."""
        state = super().up(conditions)
        self._burner = 0
        if self._share and conditions.mtu["h2"] == BURNT:
            argv = [sys.executable, "-S", "-c", BURN, str(self._share)]
            asked = {"argv": argv, "directory": None}
            self._burner = self.hosts()[1].agent.request("process.spawn", asked)["process"]
            time.sleep(STARTS_WITHIN)
        return state

    def begin(self, watch: Sequence[str] = ()) -> None:
        """As ever, and then burns."""
        super().begin(watch)
        if self._burner:
            asked = {"process": self._burner, "signal": signal.SIGUSR1}
            self.hosts()[1].agent.request("process.signal", asked)


def opener(share: float) -> Callable[[Study, commands.Say], AbstractContextManager[Testbed]]:
    """Opens a rack whose receiver burns so much in one arm; 0: in none."""

    @contextmanager
    def opened(_: Study, tell: commands.Say) -> Iterator[Testbed]:
        bed = Burning(Agent.open(privileged([find_agent(), "rack"], tell)), share)
        try:
            yield bed
        finally:
            bed.close()

    return opened


def once(case: str, seed: int) -> dict[str, Any]:
    """The summary of one study."""
    asked = ASKED[case] | {"seed": seed}
    study = study_file.parse(STUDY.format(**asked), "bench/truth/known.py")
    with tempfile.TemporaryDirectory() as folder:
        return commands.run_study(
            study, Path(folder) / "out", False, lambda _: None, say, opener(BURN_SHARE if case == "burn" else 0.0)
        ).summary


def held_up(summary: dict[str, Any]) -> bool:
    """Whether the study says itself that it is no evidence, and for no other reason than that the machine was busy."""
    reasons = [reason for run in summary["excluded"] for reason in run["reasons"]]
    return not summary["faithful"] and bool(reasons) and all(each.startswith("fidelity: ") for each in reasons)


def wrong(case: str, summary: dict[str, Any]) -> list[str]:
    """What of a summary is not the truth."""
    lines = list(summary["suspect"])
    goodput = next(each["baseline"]["estimate"] for each in summary["verdicts"] if each["metric"] == "goodput")
    for each in summary["verdicts"]:
        arm = "A/A" if each["baseline"]["mtu"] == each["treatment"]["mtu"] else "treatment"
        burnt = case == "burn" and each["metric"] == "receiver_cpu_cost"
        expected = (
            "better" if case == "larger" and arm == "treatment" else "worse" if burnt else "no practical difference"
        )
        # A control may be undecided: the study does not wait for it.
        right = (expected, "undecided") if arm == "A/A" and case != "equal" else (expected,)
        if each["verdict"] not in right:
            lines.append(f"{arm} {each['metric']}: {each['verdict']}, ratio {each['ratio']:.4f} {each['ci95']}")
        if case == "larger" and arm == "treatment":
            low, high = each["ci95"]
            if not low - TOLERANCE <= ARITHMETIC <= high + TOLERANCE:
                lines.append(f"{low:.4f} to {high:.4f} does not hold {ARITHMETIC}")
        if burnt:
            low, high = each["ci95"]
            truth = 1 + BURN_SHARE / (each["baseline"]["estimate"] * goodput / 8e9)
            if not low - TOLERANCE <= truth <= high + TOLERANCE:
                lines.append(f"{low:.4f} to {high:.4f} does not hold {truth:.4f}")
    return lines


def main() -> None:
    """Run, print, save."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--only", choices=tuple(ASKED))
    options = parser.parse_args()
    warn_if_busy()
    figures = []
    for case in [options.only] if options.only else ASKED:
        right = 0
        for seed in range(1, options.repetitions + 1):
            summary = once(case, seed)
            lines = wrong(case, summary)
            right += not lines
            main_one = summary["verdicts"][-1]
            figures.append({"case": case, "seed": seed, "wrong": lines, "verdicts": summary["verdicts"]})
            result = "right" if not lines else "WRONG: " + "; ".join(lines)
            print(f"{case} {seed}: {result}; {main_one['metric']} {main_one['ratio']:.4f} {main_one['ci95']} "
                  f"after {summary['stopping']['blocks']} blocks", flush=True)  # fmt: skip
        print(f"{case}: {right} of {options.repetitions} right", flush=True)
    say(f"figures: {save('bench-known', figures)}")


if __name__ == "__main__":
    main()
