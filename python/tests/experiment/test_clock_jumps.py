"""A wall clock that jumps by a day, both ways, changes no figure, no verdict and no order: it is only for people to read."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from framegauge.experiment.runner import Runner
from framegauge.results.journal import Journal, read
from framegauge.rollout import journal as rollouts
from framegauge.study import file as study_file
from framegauge.summary.document import summarise
from framegauge.testbeds.fake.testbed import FakeModel, FakeTestbed

DAY = timedelta(days=1)
NOON = datetime(2026, 3, 28, 12, tzinfo=UTC)  # in some places the night of the change to summer time is next
JUMPS = [(0,), (0, 1), (0, -1), (1, -1, 0, 0)]  # days, over and over


@pytest.mark.parametrize("days", JUMPS[1:])
def test_a_study_comes_to_the_same(days, study, tmp_path):
    summaries, runs = [], []
    for name, jumps in (("steady", JUMPS[0]), ("jumping", days)):
        clock = (NOON + each * DAY for each in itertools.cycle(jumps))
        plan = {"question": "?", "scope": "invented", "treatment": study.treatment, "margins": study.margin()}
        with Journal.create(tmp_path / name, study_file.dump(study), plan) as journal:
            ticks = itertools.count()
            Runner(
                study, FakeTestbed(FakeModel()), journal, now=lambda ticks=ticks: float(next(ticks)),
                wall=lambda clock=clock: next(clock), pause=lambda _: None, cpu_time=lambda: 0.0,
            ).run()  # fmt: skip
        saved = read(tmp_path / name)
        summaries.append(summarise(saved))
        runs.append([(run.number, run.metrics, run.excluded, run.seconds) for run in saved.runs])
        assert {run.began[:10] for run in saved.runs} == {str((NOON + day * DAY).date()) for day in jumps}
    assert runs[0] == runs[1]
    assert summaries[0] == summaries[1]


@pytest.mark.parametrize("days", JUMPS[1:])
def test_a_journal_of_a_roll_out_is_in_the_order_of_its_lines(days, tmp_path):
    clock = (NOON + each * DAY for each in itertools.cycle(days))
    old, new = {"mtu:e": "1500"}, {"mtu:e": "9000"}
    with rollouts.Journal(tmp_path, now=lambda: next(clock).timestamp()) as writer:
        writer.begin("apply", {"target_mtu": 9000}, {"a": {"hold": 1500, "before": old, "after": new}}, {"a": old})
        for event in ("stage", "proof", "kept", "finished"):
            writer.write(event)
    past = rollouts.read(tmp_path)
    assert [entry["event"] for entry in past.entries][-4:] == ["stage", "proof", "kept", "finished"]
    assert (past.outcome, past.origin, past.hold) == ("finished", {"a": old}, None)
