"""Runs of a simulated study, several at a time, written in their order.

    planned ──▶ threads, each with a process of the simulator ──▶ finished, in any order ──▶ journal, by number

Nothing of a run depends on what runs beside it, and a block is begun only once it is known that the study goes on, so
the journal has the same bytes at any number of jobs. On Ctrl-C, what has finished is kept, too, if a run before it has
not; once that is filled in, the journal is put in order again.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

from framegauge.agents.pipe import Requests
from framegauge.agents.simulator import Progress, Simulated
from framegauge.errors import AgentFailure
from framegauge.experiment.planning import conditions_of, seed_of, workload_of
from framegauge.experiment.progress import Attempts, Event, exclusions, said_of
from framegauge.experiment.runner import Outcome
from framegauge.experiment.simulated.plan import Planned
from framegauge.experiment.simulated.record import Judged, judged
from framegauge.experiment.simulated.scenario import scenario
from framegauge.metrics import SHARE_OF_FEW
from framegauge.results.journal import Journal, Run
from framegauge.results.runs import MEASURED_HOSTS
from framegauge.study.cpus import MEASURED, Cpu
from framegauge.study.model import Study
from framegauge.testbeds.base import Conditions, Host, Json, Pending
from framegauge.workloads.work import Known, Work

__all__ = ["Pool", "Simulate", "nobody", "scenario_of", "simulated"]

LOOK_SECONDS = 0.2

Simulate = Callable[[Mapping[str, Any], Progress], Simulated]


class _Nobody(Requests):
    """The agent of a simulated host."""

    def begin(
        self, method: str, params: Mapping[str, Any] | None = None, on_progress: Callable[..., None] | None = None
    ) -> Pending:
        """AgentFailure: nobody is there."""
        del params, on_progress
        raise AgentFailure(f"{method}: found a simulated host, which answers no requests")


def nobody() -> Requests:
    """The agent of a simulated host: it answers nothing."""
    return _Nobody()


def scenario_of(planned: Planned) -> Json:
    """The scenario of a run."""
    return _prepared(planned)[-1]


def _prepared(planned: Planned) -> tuple[Conditions, Known, list[Host], Work, Json]:
    study, slot = planned.study, planned.slot
    conditions, workload = conditions_of(study, slot), workload_of(study, slot)
    if not isinstance(workload, Known):
        raise AgentFailure(f"{slot.cell.workload}: found a workload that cannot be simulated")
    hosts = [Host(name, name, nobody()) for name in conditions.hosts]
    work = workload.work(hosts)
    request = scenario(conditions, work, study.testbed.jitter or 0.0, seed_of(study, slot))
    if study.testbed.cpu is not None:
        request["cpu"] = _cpu(study.testbed.cpu, conditions)
    return conditions, workload, hosts, work, request


def _cpu(cpu: Cpu, conditions: Conditions) -> Json:
    return cpu.as_json(bool(conditions.tso), conditions.overlay is not None)


def _depends_on_hosts(study: Study) -> bool:
    """Whether what is compared depends on the costs of hosts, and none are stated (summary/hosts.py)."""
    return study.testbed.cpu is None and study.treatment == "mtu" and SHARE_OF_FEW in study.margin()


def _half(on_progress: Progress, place: int) -> Progress:
    """The progress of one of two simulations, of which the second is as long as the first."""

    def heard(progress: Mapping[str, Any]) -> None:
        end = progress["end_seconds"]
        on_progress({**progress, "now_seconds": progress["now_seconds"] + place * end, "end_seconds": 2 * end})

    return heard


def simulated(planned: Planned, simulate: Simulate, on_progress: Progress, capture: Sequence[str] = ()) -> Judged:
    """One run: its line, its record, its tables, and captures of these ports."""
    slot = planned.slot
    conditions, workload, hosts, work, request = _prepared(planned)
    is_double = _depends_on_hosts(planned.study)
    first_request = {**request, "capture": list(capture)} if capture else request
    answer = simulate(first_request, _half(on_progress, 0) if is_double else on_progress)
    run = Run(
        number=planned.number,
        block=slot.block,
        cell=planned.cell,
        arm=slot.arm.name,
        role=slot.arm.role,
        level=slot.arm.level,
        attempt=0,
        workload=slot.cell.workload,
        conditions=planned.conditions,
        metrics={},
        excluded=[],
        seconds=round(answer.result["end_seconds"], 6),
    )
    judged_run = judged(run, conditions, workload, hosts, work, answer)
    if not is_double:
        return judged_run
    answer = simulate({**request, "cpu": _cpu(MEASURED, conditions)}, _half(on_progress, 1))
    costly, *_ = judged(run, conditions, workload, hosts, work, answer)
    readings = {MEASURED_HOSTS: {"metrics": dict(costly.metrics), "excluded": list(costly.excluded)}}
    return replace(judged_run[0], readings={**judged_run[0].readings, **readings}), *judged_run[1:]


@dataclass
class _Costs:
    """What is known of the time that runs take: the seconds of finished ones, by cell and arm."""

    took: dict[tuple[int, str], list[float]] = field(default_factory=dict)

    def add(self, planned: Planned, seconds: float) -> None:
        """A run that has finished."""
        self.took.setdefault((planned.cell, planned.slot.arm.name), []).append(seconds)

    def guess(self, planned: Planned) -> float | None:
        """The time of a run like those before it; None before any has finished."""
        if not self.took:
            return None
        arm_times = self.took.get((planned.cell, planned.slot.arm.name))
        return statistics.fmean(arm_times or [seconds for values in self.took.values() for seconds in values])


class Pool:
    """Runs what is left of the planned blocks into a journal, `jobs` at a time."""

    def __init__(
        self,
        blocks: Sequence[Sequence[Planned]],
        journal: Journal,
        simulate: Simulate,
        jobs: int,
        *,
        stop: Callable[[], None] = lambda: None,
        on_event: Callable[[Event], None] = lambda _: None,
        settled: Callable[[int, Sequence[Run]], bool] = lambda _blocks, _runs: False,
        captured: Callable[[Planned], Sequence[str]] = lambda _: (),
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._blocks, self._journal, self._simulate, self._jobs = blocks, journal, simulate, jobs
        self._stop, self._on_event, self._settled, self._now = stop, on_event, settled, now
        self._captured = captured
        self._costs, self._attempts = _Costs(), Attempts(journal.runs)
        self._lock = threading.Lock()
        self._shares: dict[int, tuple[float, float]] = {}  # of runs under way: when each began, and how far it is
        self._total = sum(map(len, blocks))

    def run(self, may_settle: bool) -> Outcome:
        """Runs until everything is settled (asked only if it may be), done, or Ctrl-C. The first error is raised."""
        groups = self._blocks if may_settle else [[planned for block in self._blocks for planned in block]]
        for place, group in enumerate(groups):
            begins = self._attempts.last_block() < place
            if may_settle and begins and self._settled(place, self._journal.runs):
                return Outcome(len(self._journal.runs), self._total, settled_after=place)
            try:
                self._fill(group)
            except KeyboardInterrupt:
                return Outcome(len(self._journal.runs), self._total, interrupted=True)
        self._journal.put_in_order()
        return Outcome(len(self._journal.runs), self._total)

    def _fill(self, group: Sequence[Planned]) -> None:
        left = [candidate for candidate in group if not self._attempts.of(candidate.key)]
        finished: dict[int, Judged] = {}
        with ThreadPoolExecutor(self._jobs) as threads:
            running = {threads.submit(self._one, planned): planned for planned in left}
            try:
                for number in self._numbers(left, running, finished):
                    self._add(finished.pop(number))
            except BaseException:
                for future in running:
                    future.cancel()
                self._stop()
                wait(running)
                self._keep(running, finished)
                raise

    def _numbers(
        self, left: Sequence[Planned], running: Mapping[Future[Judged], Planned], finished: dict[int, Judged]
    ) -> Iterator[int]:
        """The number of each run, once it and all before it have finished."""
        waiting, order = set(running), iter(left)
        following = next(order, None)
        while following is not None:
            if following.number in finished:
                yield following.number
                following = next(order, None)
                continue
            ended, waiting = wait(waiting, LOOK_SECONDS, FIRST_COMPLETED)
            for future in ended:
                finished[running[future].number] = future.result()
            self._tell([running[future] for future in waiting], following, len(finished))

    def _one(self, planned: Planned) -> Judged:
        begun = self._now()

        def heard(progress: Mapping[str, Any]) -> None:
            share = progress["now_seconds"] / progress["end_seconds"] if progress["end_seconds"] > 0 else 0.0
            with self._lock:
                self._shares[planned.number] = begun, share

        with self._lock:
            self._shares[planned.number] = begun, 0.0
        try:
            result = simulated(planned, self._simulate, heard, self._captured(planned))
        finally:
            with self._lock:
                del self._shares[planned.number]
        with self._lock:
            self._costs.add(planned, self._now() - begun)
        return result

    def _add(self, judged_run: Judged) -> None:
        run, record, bulk = judged_run
        self._journal.add(run, record, bulk)
        if run.excluded:
            self._event(f"{run.workload}", run)

    def _keep(self, running: Mapping[Future[Judged], Planned], finished: dict[int, Judged]) -> None:
        """Keeps what has finished, whatever has not."""
        for future, planned in running.items():
            if future.done() and not future.cancelled() and future.exception() is None:
                finished.setdefault(planned.number, future.result())
        there = {run.number for run in self._journal.runs}
        for number in sorted(set(finished) - there):
            self._add(finished[number])

    def _tell(self, waiting: Sequence[Planned], following: Planned, ahead: int) -> None:
        self._event(said_of(following.slot, following.study.treatment), None, waiting, ahead)

    def _event(self, text: str, run: Run | None, waiting: Sequence[Planned] = (), ahead: int = 0) -> None:
        with self._lock:
            left, shares = self._left(waiting), sum(share for _, share in self._shares.values())
        done_count = len(self._journal.runs) + ahead
        number, share = min(done_count + 1, self._total), min(shares, self._total - done_count)
        self._on_event(Event(number, self._total, left, text, share, run, exclusions(self._journal.runs)))

    def _left(self, waiting: Sequence[Planned]) -> float:
        """About how long the rest takes, by what runs took so far; NaN while nothing is known."""
        now, total = self._now(), 0.0
        estimates = {number: (now - begun) / share for number, (begun, share) in self._shares.items() if share > 0.02}
        if not estimates and not self._costs.took:
            return float("nan")
        usual = statistics.fmean(estimates.values()) if estimates else 0.0
        for planned in waiting:
            guess = estimates.get(planned.number, self._costs.guess(planned) or usual)
            begun, share = self._shares.get(planned.number, (now, 0.0))
            total += guess * (1 - share) if share > 0.02 else max(0.0, guess - (now - begun))
        return total / self._jobs
