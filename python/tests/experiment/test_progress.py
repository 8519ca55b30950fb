"""What is left of a study, what was lost, and when it says so."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from helpers.support import PLAN, ROOT
from rich.console import Console

from framegauge.cli.progress import Reporter
from framegauge.experiment.busy import Process, Reading
from framegauge.experiment.progress import (
    Attempts,
    Estimate,
    Event,
    Losses,
    at_most,
    exclusions,
    left,
    line,
    said_of,
    so_far,
)
from framegauge.experiment.runner import Runner
from framegauge.results.journal import Journal, Run
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.study.model import Study
from framegauge.testbeds.fake.testbed import FakeModel, FakeTestbed, Fault

TWO_CELLS = """
testbed: {kind: fake}
factors: {mtu: {levels: [1500, 9000], baseline: 1500}}
workloads: [{stream: {size: [1 MB, 1 GB]}}]
blocks: 4
stop: blocks
margins: {goodput: 1 %}
"""
LATE = ("fidelity: lateness p50 of the fabric",)


def run(number: int, cell: int = 0, seconds: float = 1.0, excluded: Sequence[str] = (), block: int = 0) -> Run:
    return Run(
        number=number, block=block, cell=cell, arm="baseline", role="baseline", level=1500, attempt=0,
        workload="stream", conditions={}, metrics={}, excluded=list(excluded), degraded=[], seconds=seconds,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(4.4, "4 s"), (119, "119 s"), (121, "2 min"), (7140, "119 min"), (7200, "2 h"), (26_720, "7 h 25 min")],
)
def test_time_is_said_as_people_say_it(seconds: float, said: str) -> None:
    assert left(seconds) == said


@pytest.mark.parametrize(("seconds", "said"), [(20, "1 min"), (61, "2 min"), (7141, "2 h"), (80_150, "22 h 16 min")])
def test_a_longest_time_is_said_in_whole_minutes(seconds: float, said: str) -> None:
    assert at_most(seconds) == said


@pytest.mark.parametrize(
    ("counts", "said"), [((5, 0, 24), "5 of 24 runs"), ((50, 46, 24), "4 of 24 runs (46 excluded)")]
)
def test_runs_that_are_tried_again_are_none_of_those_planned(counts: tuple[int, int, int], said: str) -> None:
    assert so_far(*counts) == said


def test_a_run_is_said_with_units() -> None:
    study = study_file.load(ROOT / "examples/rack.yaml")
    said = {said_of(slot, study.treatment) for slot in block_order(study, 0)}
    assert "stream, RTT 200 us, offloads off, moderation 50 us, cubic, MTU 9000" in said


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: path.stem)
def test_runs_of_every_example_are_said_in_words(path: Path) -> None:
    text = path.read_text()
    if "\nworkloads:" not in text:  # not a study
        return
    study = study_file.load(path)
    for slot in block_order(study, 0):
        assert not re.search(r"[a-z]_[a-z]+ |\bfalse\b|\btrue\b|None|[0-9]e-|\{", said_of(slot, study.treatment))


def test_what_is_left_is_what_runs_of_the_same_cell_took() -> None:
    study = study_file.parse(TWO_CELLS, "x")
    short, long = (next(slot for slot in block_order(study, 0) if slot.cell.index == cell) for cell in (0, 1))
    runs = [run(1, cell=0, seconds=2.0), run(2, cell=1, seconds=30.0), run(3, cell=0, seconds=4.0)]
    estimate = Estimate(study)
    assert estimate.seconds([short], runs) == pytest.approx(3)
    assert estimate.seconds([long], runs) == pytest.approx(30)
    assert estimate.seconds([short, long, long], runs) == pytest.approx(63)
    assert estimate.seconds([], runs) == 0


def test_a_cell_without_runs_is_as_much_longer_than_expected_as_the_others() -> None:
    study = study_file.parse(TWO_CELLS, "x")
    short, long = (next(slot for slot in block_order(study, 0) if slot.cell.index == cell) for cell in (0, 1))
    before, after = Estimate(study), Estimate(study)
    twice = [run(1, cell=0, seconds=2 * before.seconds([short], []))]
    assert after.seconds([long], twice) == pytest.approx(2 * before.seconds([long], []))


def test_retries_that_are_to_be_expected_are_in_what_is_left() -> None:
    study = study_file.parse(TWO_CELLS, "x")
    slot = next(slot for slot in block_order(study, 0) if slot.cell.index == 0)
    good = [run(number) for number in range(1, 10)]
    lost = [run(number, excluded=LATE) for number in range(1, 10)]
    hopeless = [run(number, excluded=["does not work: no answer"]) for number in range(1, 10)]
    assert Estimate(study).seconds([slot], good) == pytest.approx(1)
    assert Estimate(study).seconds([slot], lost) == pytest.approx(1 + 0.9 + 0.81)  # of two retries
    assert Estimate(study).seconds([slot], hopeless) == pytest.approx(1)  # is not tried again


def test_later_runs_are_added_to_those_it_knows() -> None:
    study = study_file.parse(TWO_CELLS, "x")
    slot = next(slot for slot in block_order(study, 0) if slot.cell.index == 0)
    estimate, runs = Estimate(study), [run(1, seconds=1.0)]
    assert estimate.seconds([slot], runs) == pytest.approx(1)
    assert estimate.seconds([slot], [*runs, run(2, seconds=3.0)]) == pytest.approx(2)


def test_exclusions_are_counted_by_their_first_reason() -> None:
    assert exclusions([run(1), run(2)]) == ""
    assert exclusions([run(1), run(2, excluded=LATE), run(3, excluded=[*LATE, "proof: MSS"])]) == "2 excluded: CPU busy"
    several = [run(1, excluded=LATE), run(2, excluded=LATE), run(3, excluded=["error: gone"]), run(4, excluded=["?"])]
    assert exclusions(several) == "4 excluded: 2 CPU busy, 1 error, 1 other"


def test_progress_says_how_many_runs_were_lost() -> None:
    event = Event(14, 24, 40.0, "stream", excluded="5 excluded: CPU busy")
    assert line(event) == "run 14 of 24 (5 excluded: CPU busy), about 40 s left: stream"
    assert line(Event(14, 24, 40.0, "stream")) == "run 14 of 24, about 40 s left: stream"
    printed = io.StringIO()
    Reporter(Console(file=printed), now=lambda: 0.0)(event)
    assert "(5 excluded: CPU busy)" in printed.getvalue()


def test_a_study_tells_it_with_every_run_and_counts_the_retries_that_are_left(study: Study, tmp_path: Path) -> None:
    """On a clock that goes on by a second whenever it is read, so that all runs take as long."""
    events: list[Event] = []
    bed = FakeTestbed(FakeModel(faults=[Fault("late", lambda _up, number: number in (0, 1))]))
    clock = map(float, itertools.count())
    with Journal.create(tmp_path / "out", study_file.dump(study), PLAN) as journal:
        Runner(
            study, bed, journal, on_event=events.append, now=lambda: next(clock), pause=lambda _: None,
            cpu_time=lambda: 0.0,
        ).run()  # fmt: skip
    ended = [event for event in events if event.run is not None]
    assert [event.excluded for event in ended[:4]] == [
        "1 excluded: CPU busy", "2 excluded: CPU busy", "2 excluded: CPU busy", "2 excluded: CPU busy",
    ]  # fmt: skip
    took = ended[0].run.seconds  # type: ignore[union-attr]
    # Of two attempts both were lost, so of those to come two in three are; the third attempt at the first is among them.
    assert ended[1].seconds_left == pytest.approx(18 * took * (1 + 2 / 3 + 4 / 9))
    assert ended[2].seconds_left == pytest.approx(17 * took * (1 + 2 / 4 + 4 / 16))
    assert ended[-1].seconds_left == 0


def hog(seconds: float, cpu_seconds: float) -> Reading:
    return Reading(seconds, {7: Process(7, 1, "hog", 5, cpu_seconds)})


def warned(study: Study, folder: Any, faults: Callable[[Any, int], bool]) -> list[str]:
    said: list[str] = []
    readings = iter(hog(float(number), number * 0.98) for number in range(100))
    losses = Losses(said.append, lambda: next(readings), own=1000)
    with Journal.create(folder, study_file.dump(study), PLAN) as journal:
        bed = FakeTestbed(FakeModel(faults=[Fault("late", faults)]))
        Runner(study, bed, journal, after_block=losses, pause=lambda _: None, cpu_time=lambda: 0.0).run()
    return said


def test_it_warns_once_after_the_first_block_most_of_whose_runs_were_lost(study: Study, tmp_path: Any) -> None:
    # A block has three slots. In the first, one run of four is lost; from then on, all.
    said = warned(study, tmp_path / "out", lambda _up, number: number == 0 or number > 3)
    assert said == [
        "9 of 9 runs of block 2 were excluded because the machine was too busy: end other programs, wait, or choose a "
        "lower testbed.link.rate; most CPU is used by hog (process 7, 98 % of a CPU)"
    ]


def test_it_does_not_warn_where_few_runs_are_lost_or_for_other_reasons(study: Study, tmp_path: Any) -> None:
    assert warned(study, tmp_path / "few", lambda _up, number: number % 4 == 0) == []
    said: list[str] = []
    losses = Losses(said.append, lambda: hog(0, 0), own=1000)
    losses(0, [run(1, excluded=["error: gone"]), run(2, excluded=["proof: MSS"])])
    assert said == []


def test_each_run_is_looked_at_once_for_all_slots_of_a_study_that_is_resumed() -> None:
    looked_at: list[int] = []

    class Noticed(Run):
        @property
        def key(self) -> tuple[int, int, str]:
            looked_at.append(self.number)
            return super().key

    runs: list[Run] = [Noticed(**vars(run(number, cell=number % 3, block=number // 3))) for number in range(1, 31)]
    attempts = Attempts(runs)
    assert [len(attempts.of((block, cell, "baseline"))) for block in range(11) for cell in range(3)].count(1) == 30
    runs.append(Noticed(**vars(run(31, cell=2, block=10))))
    assert len(attempts.of((10, 2, "baseline"))) == 1
    assert attempts.is_begun(10)
    assert not attempts.is_begun(11)
    assert attempts.last_block() == 10
    assert looked_at == list(range(1, 32))
