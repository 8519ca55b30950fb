"""Why a goodput ratio is what it is: the parts that arithmetic and measurement can name, and the unexplained rest.

In logarithms the parts add up to the whole:

- header overhead: the ratio of the two ceilings, exact (RFC 894, RFC 791, RFC 9293: bytes on the wire per segment);
- window growth: the ratio of transfer times that the slow-start model of a new connection (RFC 5681, RFC 6928) gives
  for this size, beyond the headers; only for single transfers;
- CPU: only where the hosts' CPUs, or one core of simulated hosts, were busy in an arm; then at most the ratio of the
  CPU costs per gigabyte;
- unexplained: the rest, with the interval of the whole (the parts above are not random).

The packet rate acts through the CPU: the share of the CPU cost that scales with frames follows from two arms by
Amdahl's argument, if the cost per byte is the same in both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from framegauge.statistics.ratio import Ratio

__all__ = ["BUSY", "Arm", "Part", "decompose", "frame_share"]

BUSY = 0.05  # with a smaller idle share, the hosts' CPUs were the limit
NOTHING = 5e-4  # a part below this (in logarithms) is negligible


@dataclass(frozen=True)
class Arm:
    """The figures of one arm, as typical values over its runs; None: not measured."""

    ceiling_bits_per_second: float | None = None
    predicted_seconds: float | None = None
    idle_share: float | None = None
    cpu_seconds_per_gigabyte: float | None = None  # of the end that costs more
    frames_per_gigabyte: float | None = None
    cpus: str = "the hosts' CPUs were"  # whose idle share that is


@dataclass(frozen=True)
class Part:
    """One factor of the ratio, and the evidence for it."""

    name: str
    ratio: float
    low: float | None
    high: float | None
    evidence: str


def decompose(whole: Ratio, baseline: Arm, treatment: Arm) -> list[Part]:
    """The parts of a goodput ratio (higher is better); empty without a ceiling (an unshaped link has none)."""
    before, after = baseline.ceiling_bits_per_second, treatment.ceiling_bits_per_second
    if before is None or after is None:
        return []
    header = math.log(after / before)
    parts = [Part("header overhead", math.exp(header), None, None, "goodput ceilings, exact")]
    rest = math.log(whole.ratio) - header
    if baseline.predicted_seconds and treatment.predicted_seconds:
        window = math.log(baseline.predicted_seconds / treatment.predicted_seconds) - header
        parts.append(Part("window growth", math.exp(window), None, None, "slow-start model of one new connection"))
        rest -= window
    cpu = _cpu(rest, baseline, treatment)
    if cpu is not None:
        parts.append(cpu)
        rest -= math.log(cpu.ratio)
    explained = math.log(whole.ratio) - rest
    low, high = (None if edge is None else edge / math.exp(explained) for edge in (whole.low, whole.high))
    parts.append(Part("unexplained", math.exp(rest), low, high, _unexplained(math.exp(rest), low, high)))
    return parts


def _cpu(rest: float, baseline: Arm, treatment: Arm) -> Part | None:
    """The part due to a lower CPU cost, if the CPUs of either arm were the limit."""
    idle = [arm.idle_share for arm in (baseline, treatment) if arm.idle_share is not None]
    costs = baseline.cpu_seconds_per_gigabyte, treatment.cpu_seconds_per_gigabyte
    if not idle or min(idle) >= BUSY or None in costs or not all(costs):
        return None
    possible = math.log(costs[0] / costs[1])  # type: ignore[operator]
    if possible * rest <= 0:
        return None
    part = math.copysign(min(abs(possible), abs(rest)), rest)
    return Part("CPU", math.exp(part), None, None, f"{baseline.cpus} {1 - min(idle):.0%} busy")


def _unexplained(ratio: float, low: float | None, high: float | None) -> str:
    if low is not None and high is not None and low <= 1 <= high:
        return "may be no effect: its interval includes 1"
    if abs(math.log(ratio)) < NOTHING:
        return "negligible"
    return "needs an arm that isolates its cause"


def frame_share(baseline: Arm, treatment: Arm) -> float | None:
    """The share of the baseline's CPU cost per gigabyte that scales with frames; None if it cannot be derived."""
    costs = baseline.cpu_seconds_per_gigabyte, treatment.cpu_seconds_per_gigabyte
    frames = baseline.frames_per_gigabyte, treatment.frames_per_gigabyte
    if not all(costs) or not all(frames):
        return None
    fewer = 1 - frames[1] / frames[0]  # type: ignore[operator]
    if abs(fewer) < 0.1:
        return None  # the frame counts are too alike to tell the two costs apart
    share = (1 - costs[1] / costs[0]) / fewer  # type: ignore[operator]
    return share if 0 <= share <= 1 else None
