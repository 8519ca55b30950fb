"""The runner of a study: each run on fresh hosts, checked, and on disk before the next begins. It never prints."""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa

from framegauge.agents.spools import MOST_BYTES, read_spool
from framegauge.errors import (
    AgentError,
    AgentLost,
    AgentTimeout,
    BadAnswer,
    CorruptResults,
    FramegaugeError,
    Lapsed,
    ProgramFailure,
)
from framegauge.evidence import (
    carried,
    conservation,
    costs,
    datagrams,
    few,
    fidelity,
    held,
    proof,
    quic,
    steady,
    switch,
    waits as queueing,
)
from framegauge.evidence.aggregates import is_asked
from framegauge.evidence.unanswered import unanswered
from framegauge.experiment import failures, taps
from framegauge.experiment.planning import conditions_of, runnable_of, stated_conditions
from framegauge.experiment.progress import FIDELITY, Attempts, Estimate, Event, Kept, has_attempts, progress, said_of
from framegauge.experiment.standing import Standing
from framegauge.experiment.taps import Diagnose
from framegauge.files.tables import Unfit, table, written
from framegauge.printable import one_line
from framegauge.quantities import print_bits_per_second
from framegauge.results.journal import Run, check_readable
from framegauge.results.runs import DOES_NOT_WORK
from framegauge.study.blocks import Slot, block_order
from framegauge.study.model import Study, arms, cells
from framegauge.testbeds.base import Conditions, Host, Json, Testbed, afterwards
from framegauge.testbeds.marks import marked
from framegauge.workloads.base import Runnable
from framegauge.workloads.few_over_time import over_time

__all__ = ["Outcome", "Runner", "load_failures", "utc"]
QUIET_SECONDS = 0.03
QUIET_LOOKS = 40
LOAD_TOLERANCE = 0.02  # of an offered load, for slow start and whole aggregates at the end
LEAST_BLOCKS = 3  # the budget never ends a study before this: fewer blocks can hardly be judged
MOST_LINES = 20  # of reasons, of one run
DIAGNOSED = ("connections", "payload_bytes", "seconds", "kinds", "captures")  # of a diagnosis, what each run tells
MORE_BLOCKS = 0.5  # of the planned blocks, which may be added if too few runs count

NONSENSE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, pa.ArrowException)


def utc() -> datetime:
    """The wall clock in UTC, used only for the start time of a run and never for durations."""
    return datetime.now(UTC)


@dataclass(frozen=True)
class Outcome:
    """How a study ended."""

    runs: int
    planned: int
    interrupted: bool = False
    out_of_budget: bool = False
    settled_after: int | None = None  # blocks, if it ended before its last one


class Runner:
    """One study on one testbed into one journal."""

    def __init__(
        self,
        study: Study,
        testbed: Testbed,
        journal: Kept,
        *,
        on_event: Callable[[Event], None] = lambda _: None,
        degraded: Sequence[str] = (),
        settled: Callable[[int, Sequence[Run]], bool] = lambda _blocks, _runs: False,
        wanting: Callable[[Sequence[Run]], bool] = lambda _runs: False,
        after_block: Callable[[int, Sequence[Run]], None] = lambda _block, _runs: None,
        now: Callable[[], float] = time.monotonic,
        wall: Callable[[], datetime] = utc,
        pause: Callable[[float], None] = time.sleep,
        cpu_time: Callable[[], float] = time.process_time,
        diagnose: Diagnose | None = None,
    ) -> None:
        self._study, self._testbed, self._journal = study, testbed, journal
        self._standing = Standing(testbed)
        self._on_event, self._degraded, self._settled, self._wanting = on_event, list(degraded), settled, wanting
        self._now, self._wall, self._pause, self._cpu_time = now, wall, pause, cpu_time
        self._diagnose = diagnose if study.meters.diagnose else None
        self._planned = study.blocks * len(cells(study)) * len(arms(study))
        self._estimate, self._after_block = Estimate(study), after_block
        self._attempts = Attempts(journal.runs)

    def run(self) -> Outcome:
        """Runs until everything is settled, the study is finished, the budget is spent, or Ctrl-C. Errors that retries
        cannot help are raised."""
        with afterwards(self._end):
            return self._blocks()

    def once(self, slot: Slot) -> Run:
        """One run of a slot by itself."""
        with afterwards(self._end):
            self._once(slot)
        return self._journal.runs[-1]

    def _end(self) -> None:
        """Ends what outlasted the last run; what was not put back then belongs to that run."""
        self._standing.end()
        if (lines := self._testbed.unrestored()) and self._journal.runs:
            self._journal.amend(_left(self._journal.runs[-1], lines))

    def _blocks(self) -> Outcome:
        begun = self._now()
        try:
            for block in range(self._study.blocks):
                begins = self._attempts.last_block() < block
                if begins and self._settled(block, self._journal.runs):
                    return self._outcome(settled_after=block)
                slots = [slot for slot in block_order(self._study, block) if self._attempts_left(slot)]
                spent = self._now() - begun
                if slots and block >= LEAST_BLOCKS and spent + self._guess(slots) > self._study.budget:
                    return self._outcome(out_of_budget=True)
                self._fill(slots)
            self._more(begun)
        except KeyboardInterrupt:
            return self._outcome(interrupted=True)
        return self._outcome()

    def _fill(self, slots: Sequence[Slot]) -> None:
        for slot in slots:
            while self._attempts_left(slot):
                self._once(slot)
        if slots:
            self._after_block(slots[0].block, self._journal.runs)

    def _more(self, begun: float) -> None:
        """Runs further blocks as long as they are needed and the budget allows. That depends on which runs were
        excluded, and not on the values of the others, so the intervals remain valid."""
        for block in range(self._study.blocks, self._study.blocks + math.ceil(MORE_BLOCKS * self._study.blocks)):
            slots = block_order(self._study, block)
            is_begun = self._attempts.is_begun(block)
            has_room = self._now() - begun + self._guess(slots) <= self._study.budget
            if not (is_begun or (has_room and self._wanting(self._journal.runs))):
                return
            self._planned += len(slots)
            self._fill(slots)

    def _outcome(self, **how: Any) -> Outcome:
        return Outcome(len(self._journal.runs), self._planned, **how)

    def _attempts_left(self, slot: Slot) -> bool:
        return has_attempts(self._attempts.of(slot.key), self._study.retries)

    def _guess(self, slots: Sequence[Slot]) -> float:
        return self._estimate.seconds(slots, self._journal.runs)

    def _event(self, slot: Slot, text: str, fraction: float = 0.0, run: Run | None = None) -> None:
        at = progress(self._study, self._estimate, slot, self._journal.runs, self._planned, run is not None)
        self._on_event(replace(at, text=text, fraction=fraction, run=run))

    def _once(self, slot: Slot) -> None:
        """One attempt at a slot: run it, check it, save it."""
        text = said_of(slot, self._study.treatment)
        self._event(slot, text)
        conditions, workload = conditions_of(self._study, slot), runnable_of(self._study, slot)
        begun = self._now()
        run = Run(
            number=1 + max((earlier_run.number for earlier_run in self._journal.runs), default=0),
            block=slot.block,
            cell=slot.cell.index,
            arm=slot.arm.name,
            role=slot.arm.role,
            level=slot.arm.level,
            attempt=len(self._attempts.of(slot.key)),
            workload=slot.cell.workload,
            conditions=stated_conditions(self._study, slot),
            metrics={},
            excluded=[],
            degraded=self._degraded,
            began=self._wall().astimezone(UTC).isoformat(timespec="milliseconds"),
        )
        record: Json = {"conditions": conditions.as_json()}
        bulk: dict[str, bytes] = {}
        with afterwards(self._standing.settle):
            try:
                self._measure(conditions, workload, record, bulk, lambda part, step: self._event(slot, step, part))
                run = _checked(run, conditions, workload, record, bulk, self._study.margin())
                # That the machine was too busy says nothing against what stands on the hosts.
                if all(line.startswith(FIDELITY) for line in run.excluded):
                    self._standing.stay()
            except (AgentError, AgentLost, AgentTimeout, BadAnswer, Lapsed, ProgramFailure) as error:
                # Repeating does not help if the agent does not understand the request.
                if isinstance(error, AgentError) and -32700 <= error.code <= -32600:
                    raise
                if isinstance(error, AgentLost | Lapsed) and not self._testbed.outlives_agents:
                    raise
                run = replace(run, excluded=[failures.reason(self._testbed, record, error)])
            except NONSENSE as error:
                # Of hosts that are not ours, answers may have the right shape and still make no sense together.
                if self._testbed.is_private or isinstance(error, FramegaugeError):
                    raise
                run, record, bulk = _nonsense(run, conditions, error)
        if lines := self._testbed.unrestored():
            run = _left(run, lines)
        if not self._testbed.is_private:
            try:
                run = replace(run, excluded=_few(run.excluded), degraded=_few(run.degraded))
                check_readable(run, record)
            except (*NONSENSE, CorruptResults) as error:
                run, record, bulk = _nonsense(run, conditions, error)
        run = replace(run, seconds=round(self._now() - begun, 6))
        self._journal.add(run, record, bulk)
        self._event(slot, text, 1.0, run)

    def _measure(
        self,
        conditions: Conditions,
        workload: Runnable,
        record: Json,
        bulk: dict[str, bytes],
        on_progress: Callable[[float, str], None],
    ) -> None:
        """Everything between up and down; fills `record` and `bulk`."""
        bed, meters = self._testbed, self._study.meters
        record["rack"] = self._standing.up(conditions, workload)
        if self._standing.is_kept:  # new ports have dropped nothing
            record[failures.BEFORE] = failures.ports_so_far(self._testbed)
        hosts = bed.hosts()
        record["before"] = _ask(hosts, "host.read")
        if meters.wire:
            # Before `prepared`, so that connections of that time show their MSS, too. The count of aggregates looks at
            # every packet, so it is asked for only where it proves something.
            _ask(hosts, "wire.begin", {"aggregates": True} if is_asked(conditions) else None)
        workload = self._standing.ready(workload, hosts)
        tapped = taps.captured(hosts, self._diagnose, on_progress)
        # The captures outlast the workload's connections, so that they have their ends.
        with tapped as diagnosis, workload.prepared(hosts, secrets.token_hex(16)) as go:
            if meters.cpu:
                _ask(hosts, "cpu.begin")
                self._pause(meters.idle)
                record["cpu_idle"] = _ask(hosts, "cpu.end")
            # Wait for quiet first: packets that hosts send when they come up must not be metered.
            record["counters_before"] = self._quiet(hosts)
            record["begun_seconds"] = bed.begin(meters.watch)
            own_seconds = self._cpu_time()
            if meters.cpu:
                _ask(hosts, "cpu.begin")
            reading = marked(hosts if meters.cpu else (), conditions.changes, record["begun_seconds"], self._now)
            with bed.changing(conditions.changes, record["begun_seconds"]) as changes, reading as marks:
                outcome = go(on_progress)
            record["changes"], record["workload"] = changes, outcome.record
            record |= {"marks": marks} if marks else {}
            # Before the last reading of the counters, because removing the CPU meter takes the kernel about 10 ms.
            if meters.cpu:
                record["cpu"] = _ask(hosts, "cpu.end")
            record["counters_after"] = self._quiet(hosts)
            record["controller_seconds"] = self._cpu_time() - own_seconds
            record["measure"] = bed.end()
        if diagnosis:
            bulk |= taps.flows(diagnosis)
            record["diagnosis"] = diagnosis
        if alone_bytes := outcome.record.get("alone_bytes"):
            record["predicted_seconds"] = bed.predict(conditions, alone_bytes)
        if meters.wire:
            record["wire"] = _ask(hosts, "wire.end")
        record["after"] = _ask(hosts, "host.read")
        agents = {host.name: host.agent for host in hosts}
        for spool in outcome.spools:
            bulk[spool.name] = read_spool(agents[spool.host], spool.number)
        fabric = record["measure"]["fabric"]
        for name, key in (("drops", "drops"), ("queues", "series"), ("events", "events")):
            if fabric is not None and fabric.get(key) is not None:
                bulk[name] = bed.fetch(fabric[key])

    def _quiet(self, hosts: Sequence[Host]) -> Json:
        """The counters of every host once two readings in a row are equal, so that nothing is still under way. If
        others use the network, too, it is never quiet, and a pause must do."""
        last = _ask(hosts, "host.counters")
        if not self._testbed.is_private:
            self._pause(QUIET_SECONDS)
            return _ask(hosts, "host.counters")
        for _ in range(QUIET_LOOKS):
            self._pause(QUIET_SECONDS)
            now = _ask(hosts, "host.counters")
            if all(now[name]["interface"] == last[name]["interface"] for name in now):
                return now
            last = now
        raise AgentTimeout(f"the hosts were not quiet after {QUIET_LOOKS * QUIET_SECONDS:g} s")


def _nonsense(run: Run, conditions: Conditions, error: Exception) -> tuple[Run, Json, dict[str, bytes]]:
    """A run of which nothing is kept but that its hosts' answers make no sense."""
    why = f"the hosts' answers make no sense ({type(error).__name__}: {one_line(error)})"
    bare_run = replace(run, excluded=[f"error: {why}"], metrics={}, readings={}, degraded=[])
    return bare_run, {"conditions": conditions.as_json()}, {}


def _left(run: Run, lines: Sequence[str]) -> Run:
    """A run with what was not put back after it."""
    old_lines = run.readings.get("not_restored", [])
    return replace(run, readings={**run.readings, "not_restored": _few([*old_lines, *lines])})


def _few(lines: Sequence[str]) -> list[str]:
    """What is said of a run in so many lines: a host can give as many reasons as it likes."""
    more = [f"and {len(lines) - MOST_LINES} more"] if len(lines) > MOST_LINES else []
    return [one_line(line) for line in lines[:MOST_LINES]] + more


def _ask(hosts: Sequence[Host], method: str, params: Mapping[str, Any] | None = None) -> Json:
    return {host.name: host.agent.request(method, params) for host in hosts}


def _checked(
    run: Run,
    conditions: Conditions,
    workload: Runnable,
    record: Json,
    bulk: dict[str, bytes],
    judged: Collection[str],
) -> Run:
    """The run with its metrics, and with all reasons to exclude it; adds the table of what flows carried over time."""
    tables = {name: _table(data) for name, data in bulk.items()}
    work = record["workload"]
    work |= few.sharing(conditions, record)
    work |= workload.evidence(work, tables)
    metrics = workload.metrics(work, tables) | costs.metrics(record)
    if (course := over_time(work, tables)) is not None:
        bulk["few"] = written(course)
    # A run with changes has no steady part, and no ceiling that holds throughout.
    part = None if conditions.changes else steady.of_streams(work, tables)
    metrics, short = steady.bulk(metrics, part, conditions.rtt_seconds)
    metrics, no_tails = held.without_tails(metrics, conditions, record)
    assessment = fidelity.assess(conditions, record)
    excluded = [f"proof: {line}" for line in proof.failures(conditions, record)]
    excluded += [f"conservation: {line}" for line in conservation.disagreements(conditions, record)]
    excluded += [f"load: {line}" for line in load_failures(work.get("offered_bits_per_second"), metrics.get("goodput"))]
    excluded += [f"conservation: {line}" for line in costs.disagreements(record)]
    late = conservation.caught_up(conditions, record, part)
    excluded += [f"{FIDELITY}{line}" for line in (*assessment.reasons, *late)]
    excluded += [f"{DOES_NOT_WORK}{line}" for line in unanswered(record, tables.get("drops"))]
    readings = {**assessment.readings, **proof.readings(record), **costs.readings(record), **queueing.readings(record)}
    readings |= few.readings(record) | carried.readings(record) | switch.readings(record) | datagrams.readings(record)
    readings |= quic.readings(record)
    readings["ceiling_bits_per_second"] = conservation.ceiling(conditions, record)
    readings["steady"] = None if part is None else part.as_json()
    readings["predicted_seconds"] = record.get("predicted_seconds")
    if old := record["rack"].get("old_connections"):
        readings["old_connections"] = old
    if "lasting_runs" in work:
        readings["lasting_runs"] = work["lasting_runs"]
    if found_in := record.get("diagnosis"):
        readings["diagnosis"] = {name: found_in[name] for name in DIAGNOSED}
    if strangers := work.get("refused"):
        readings["refused_connections"] = strangers
    lacking = {metric: why for metric, why in costs.not_measured(record).items() if metric in judged}
    if lacking := work.get("not_measured", {}) | lacking | short | no_tails:
        readings["not_measured"] = lacking
    unproved = [*work.get("not_proved", []), *proof.unproved(conditions, record)]
    unproved += [] if "wire" in record else ["MSS on the wire: the meter is off"]
    degraded = [*run.degraded, *(f"not proved: {line}" for line in unproved)]
    degraded += [f"not measured: {line}" for line in fidelity.not_measured(record)]
    return replace(run, metrics=metrics, excluded=excluded, readings=readings, degraded=degraded)


def load_failures(offered: float | None, carried: float | None) -> Iterator[str]:
    """Reasons if a run did not carry the offered load."""
    if offered is not None and (carried is None or abs(carried / offered - 1) > LOAD_TOLERANCE):
        goodput = "none" if carried is None else print_bits_per_second(carried)
        yield f"found a goodput of {goodput}, expected the offered {print_bits_per_second(offered)}"


def _table(data: bytes) -> pa.Table:
    try:
        return table(data, MOST_BYTES)
    except Unfit as error:
        raise BadAnswer(f"the agent's spool: {error}") from None
