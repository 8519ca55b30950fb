"""The trial before a study: which link rate does this machine carry at the moment?

    rate ──▶ up, half a second of the study's traffic, down ──▶ fidelity: carried? ──▶ the next lower rate, or the study

A run of a trial goes the way of every run and is judged by the same rules, but is none: it is not in the journal.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from framegauge.errors import InputError, TooBusy
from framegauge.experiment import busy
from framegauge.experiment.planning import HOST_OVERHEAD_SECONDS, baseline_slot
from framegauge.experiment.progress import FIDELITY, remedy
from framegauge.experiment.runner import Runner
from framegauge.printable import one_line
from framegauge.quantities import print_bits_per_second
from framegauge.results.journal import Run
from framegauge.study.model import Study
from framegauge.study.rates import at_rate
from framegauge.study.workloads import RequestResponse, Stream, Workload
from framegauge.summary import trial as words
from framegauge.testbeds.base import Testbed

__all__ = [
    "RATES", "SECONDS", "Attempt", "Trial", "applies", "attempt_at", "find", "follow", "lines", "planned", "rates_of",
    "rehearsal",
]  # fmt: skip

RATES = (10**9, 500_000_000, 200_000_000, 100_000_000)
SECONDS = 0.5  # of traffic; a fabric that falls behind does so within some milliseconds
# From the start of framegauge to the last attempt on two hosts: "too busy" comes within ten, hosts taken down and all.
LIMIT_SECONDS = 8.0
ERROR = "error: "  # begins the reason of a run that failed


@dataclass(frozen=True)
class Attempt:
    """A run of a trial: its rate, how long it took with all around it, and why the rate was not carried, if it was
    not."""

    bits_per_second: int
    seconds: float
    reasons: Sequence[str]


@dataclass(frozen=True)
class Trial:
    """What a trial found. `asked`: the rate of the study."""

    asked: int
    attempts: Sequence[Attempt]

    @property
    def carried(self) -> int | None:
        """The highest rate that was carried."""
        return max((attempt.bits_per_second for attempt in self.attempts if not attempt.reasons), default=None)

    def as_json(self, used: int) -> dict[str, Any]:
        """The trial as results keep it; `used`: the rate at which the study ran."""
        attempts = [{**asdict(attempt), "reasons": list(attempt.reasons)} for attempt in self.attempts]
        return {"asked_bits_per_second": self.asked, "bits_per_second": used, "attempts": attempts}


def applies(study: Study) -> bool:
    """Whether a study is tried first: on real hosts behind our fabric, which has a rate to keep up with."""
    capabilities = study.testbed.capabilities
    return (
        capabilities.builds_hosts
        and capabilities.has_fabric
        and not capabilities.is_invented
        and not capabilities.is_virtual
    )


def rates_of(study: Study) -> list[int]:
    """The rates to try, in order. That of the study has two attempts: one moment of bad luck does not speak against
    it."""
    own_rate = study.testbed.link.rate or RATES[0]
    return [own_rate, own_rate, *(rate for rate in RATES if rate < own_rate)]


def find(
    study: Study,
    attempt: Callable[[int], Sequence[str]],
    now: Callable[[], float] = time.monotonic,
    waited_seconds: float = 0.0,
) -> Trial:
    """Tries rates from that of the study downward until one is carried; `attempt` has the reasons why not.

    Where time runs out it leaves rates out, but not the lowest, unless attempts take many times what they should:
    whether that is carried says most. `waited_seconds`: how long the user has been waiting already, since on a busy
    machine to start takes seconds as well.
    """
    rates, attempts, slowest = rates_of(study), list[Attempt](), 0.0
    limit = LIMIT_SECONDS - waited_seconds + HOST_OVERHEAD_SECONDS * (len(study.testbed.host_names) - 2) * len(rates)
    begun, remaining = now(), rates
    while remaining:
        rate, remaining, started = remaining[0], remaining[1:], now()
        reasons = list(attempt(rate))
        took = now() - started
        attempts.append(Attempt(rate, round(took, 3), reasons))
        if not reasons:
            break
        slowest = max(slowest, took)
        affordable = int((limit - (now() - begun)) / slowest) if slowest > 0 else len(remaining)
        if affordable < 1 and slowest < LIMIT_SECONDS / 2 and remaining and remaining[-1] < rate:
            affordable = 1
        remaining = remaining[-affordable:] if affordable > 0 else []
    return Trial(rates[0], attempts)


def lines(study: Study, may_adapt: bool) -> list[str]:
    """What a plan says of the trial; nothing if there is none."""
    return [planned(rates_of(study), may_adapt)] if applies(study) else []


def planned(rates: Sequence[int], may_adapt: bool) -> str:
    """The same for these rates."""
    own_rate, *lower = (print_bits_per_second(rate) for rate in dict.fromkeys(rates))
    text = f"before the first run, a trial of some seconds: does this machine carry {own_rate} at the moment?"
    if not lower:
        return f"{text} If not, it ends"
    rest = f"the study runs at {_either(lower)} instead" if may_adapt else "it says so, and what helps"
    return f"{text} If not, {rest}; it ends if nothing is carried"


def _either(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def rehearsal(study: Study, bits_per_second: int) -> Study:
    """What is run at that rate: the study's first traffic where it is ours, else a plain stream, for a short time."""
    first = study.workloads[0].parameters
    if isinstance(first, Stream):
        brief = Workload(stream=first.model_copy(update={"size": None, "duration": [SECONDS]}))
    elif isinstance(first, RequestResponse):
        brief = Workload(rr=first.model_copy(update={"duration": [SECONDS]}))
    else:
        pattern = "one-to-one" if len(study.testbed.host_names) == 2 else "many-to-one"
        brief = Workload(stream=Stream.model_validate({"duration": f"{SECONDS} s", "pattern": pattern}))
    meters = study.meters.model_copy(update={"cpu": False, "diagnose": False, "watch": []})
    brief_study = study.model_copy(update={"workloads": [brief], "changes": [], "meters": meters, "retries": 0})
    return at_rate(brief_study, bits_per_second)


class _Memory:
    """Keeps the runs of a trial for as long as it lasts."""

    def __init__(self) -> None:
        self.runs: list[Run] = []

    def add(self, run: Run, record: Mapping[str, Any], bulk: Mapping[str, bytes]) -> None:
        """Keeps the run alone."""
        del record, bulk
        self.runs.append(run)

    def amend(self, run: Run) -> None:
        """Keeps what became known of the last run."""
        self.runs[-1] = run


def attempt_at(study: Study, bed: Testbed, **clocks: Any) -> Callable[[int], Sequence[str]]:
    """Runs a rehearsal of the study at a rate, and returns the reasons why this machine does not carry it.

    Other reasons to exclude a run than that the machine was too busy, or that the run failed, say nothing about the
    rate: the study's own runs meet them, too.
    """

    def attempt(bits_per_second: int) -> Sequence[str]:
        brief = rehearsal(study, bits_per_second)
        try:
            run = Runner(brief, bed, _Memory(), **clocks).once(baseline_slot(brief))
        except InputError as error:
            # Something else of the study may need its own rate, which is then no reason against the study.
            if bits_per_second == study.testbed.link.rate:
                raise
            return [f"{ERROR}{one_line(error)}"]
        return [line.removeprefix(FIDELITY) for line in run.excluded if line.startswith((FIDELITY, ERROR))]

    return attempt


def follow(study: Study, tried: Trial, may_adapt: bool, users: Sequence[busy.User]) -> tuple[Study, str]:
    """The study as it is to be run after its trial, and what to say; TooBusy if nothing is carried.

    Only a study that `may_adapt` runs at another rate than its own: one whose file states a rate asks about that rate.
    `users` are the largest users of the CPUs during the trial.
    """
    own_rate, carried = print_bits_per_second(tried.asked), tried.carried
    reasons = [reason for attempt in tried.attempts for reason in attempt.reasons]
    if carried == tried.asked:
        return study, f"trial: this machine carries {own_rate}"
    busy_ones = [reason for reason in reasons if not reason.startswith(ERROR)]
    if carried is None and not busy_ones:
        return study, f"trial: no rate could be tried ({reasons[0]}); the study goes on at {own_rate}"
    if carried is None:
        raise TooBusy(f"too busy: {_none(tried)} carried at the moment ({busy_ones[-1]}): {remedy(users, busy_ones)}")
    does_not = f"trial: this machine does not carry {own_rate} at the moment ({reasons[0]})"
    lower = print_bits_per_second(carried)
    if not may_adapt:
        return study, f"{does_not}, but {lower}. The study keeps its rate and may lose runs: {remedy(users, busy_ones)}"
    alike = words.alike(study.treatment == "mtu", own_rate)
    return at_rate(study, carried), f"{does_not}, so the study runs at {lower}. {alike}"


def _none(trial: Trial) -> str:
    """That neither the highest nor the lowest rate that was tried is carried."""
    highest, lowest = (print_bits_per_second(trial.attempts[place].bits_per_second) for place in (0, -1))
    return f"{highest} is not" if highest == lowest else f"neither {highest} nor {lowest} is"
