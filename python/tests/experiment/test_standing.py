"""What stands between two runs: which hosts stay, what is started anew, and what is told of it beforehand."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from framegauge.errors import AgentLost, BadAnswer
from framegauge.experiment.programs import program_lines
from framegauge.experiment.standing import Standing
from framegauge.study import file as study_file
from framegauge.testbeds.base import Host

STUDY = """
testbed: {kind: rack}
factors: {mtu: [1500, 9000]}
workloads:
  - command:
      name: store
      prepare: [{host: h2, run: [fill, "{kept}"], lives: study}]
      servers: [{host: h2, run: [serve], lives: arm}, {host: h1, run: [look]}]
      clients: [{host: h1, run: [ask]}]
      metrics: {answers: {output: "[0-9]+", better: higher}}
"""


class Bed:
    """Hosts with a number for each time they were built; they can be given any conditions but "other"."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self._built, self._up = 0, False

    def up(self, conditions: Any) -> dict[str, Any]:
        assert not self._up
        self._built, self._up = self._built + 1, True
        self.log.append(f"up {conditions}")
        return {"built": self._built}

    def again(self, conditions: Any) -> dict[str, Any] | None:
        assert self._up
        if conditions == "other":
            return None
        self.log.append(f"again {conditions}")
        return {"built": self._built}

    def hosts(self) -> list[Host]:
        return [Host("h1", "10.0.0.1", f"agent {self._built}")]  # type: ignore[arg-type]

    def down(self) -> None:
        assert self._up
        self._up = False
        self.log.append("down")


@dataclass(frozen=True)
class Work:
    """A workload whose part that outlasts runs is a word in the log."""

    log: list[str]
    name: str = "work"
    lasts: bool = True
    what: str = "part"
    fails: Exception | None = None
    runs: int | None = field(default=None)

    def lasting_key(self, hosts: Any) -> str:
        return self.what

    @contextmanager
    def lasting(self, hosts: Any) -> Any:
        self.log.append(f"start {self.what}")
        yield self.what
        self.log.append(f"stop {self.what}")
        if self.fails is not None:
            raise self.fails

    def beside(self, lasting: Any, runs: int) -> Work:
        assert lasting == self.what
        return replace(self, runs=runs)


def course(*runs: tuple[Any, Work, bool], bed: Bed) -> list[int | None]:
    """How many runs before each have used what it uses; a run is conditions, a workload, and whether it counts."""
    standing, found = Standing(bed), []  # type: ignore[arg-type]
    for conditions, work, counts in runs:
        standing.up(conditions, work)
        found.append(standing.ready(work, bed.hosts()).runs)  # type: ignore[attr-defined]
        if counts:
            standing.stay()
        standing.settle()
    standing.end()
    return found


def test_hosts_stay_as_long_as_what_runs_on_them():
    bed = Bed()
    work = Work(bed.log)
    assert course((1500, work, True), (9000, work, True), (1500, work, True), bed=bed) == [0, 1, 2]
    assert bed.log == ["up 1500", "start part", "again 9000", "again 1500", "stop part", "down"]


def test_a_run_that_does_not_count_leaves_nothing_to_the_next():
    bed = Bed()
    work = Work(bed.log)
    assert course((1500, work, False), (9000, work, True), bed=bed) == [0, 0]
    assert bed.log == ["up 1500", "start part", "stop part", "down", "up 9000", "start part", "stop part", "down"]


def test_other_words_other_conditions_and_other_workloads_start_it_anew():
    bed = Bed()
    work = Work(bed.log)
    other, plain = replace(work, what="another"), Work(bed.log, "plain", lasts=False)
    runs = [
        (1, work, True),
        (1, other, True),
        ("other", other, True),
        (1, plain, True),
        (1, plain, True),
        (1, work, True),
    ]
    assert course(*runs, bed=bed) == [0, 0, 0, None, None, 0]
    assert bed.log == [
        "up 1", "start part", "again 1", "stop part", "start another", "stop another", "down", "up other",
        "start another", "stop another", "down", "up 1", "down", "up 1", "down", "up 1", "start part", "stop part",
        "down",
    ]  # fmt: skip


@pytest.mark.parametrize("fails", [AgentLost("gone"), BadAnswer("h1: process.kill: found null")])
def test_hosts_go_down_though_what_ran_on_them_cannot_be_ended(fails: Exception):
    bed = Bed()
    assert course((1, Work(bed.log, fails=fails), False), bed=bed) == [0]
    assert bed.log[-1] == "down"


def test_it_is_told_beforehand_what_stays():
    study = study_file.parse(STUDY, "study.yaml")
    assert program_lines(study) == [
        "  store, before on h2, kept for the study: fill '{kept}'",
        "  store, server on h2, kept for the arm: serve",
        "  store, server on h1: look",
        "  store, client on h1: ask",
    ]
