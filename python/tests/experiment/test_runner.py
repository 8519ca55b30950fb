"""The runner and the rule as a whole, on the fake rack with realistic noise."""

import dataclasses
from datetime import datetime, timedelta, timezone

import pytest
from helpers.support import PLAN

from framegauge.errors import AgentError, AgentLost, AgentTimeout, BadAnswer, ProgramFailure, Refused
from framegauge.experiment.runner import Runner
from framegauge.results.journal import Journal, read
from framegauge.study import file as study_file
from framegauge.study.blocks import block_order
from framegauge.summary.caveats import caveats
from framegauge.summary.document import summarise
from framegauge.summary.judging import compare, is_evidence
from framegauge.testbeds.base import afterwards
from framegauge.testbeds.fake.testbed import FakeModel, FakeTestbed, Fault

# Two settings that the fake rack treats alike: whatever differs was injected.
ALIKE = """
testbed: {kind: fake}
factors:
  mtu: 9000
  congestion_control: {levels: [cubic, reno]}
workloads: [{stream: {size: 10 MB}}]
treatment: congestion_control
blocks: 6
margins: {goodput: 1 %}
"""


def verdicts(folder):
    return {each.role: str(each.verdict) for each in compare(read(folder))}


@pytest.mark.thorough
@pytest.mark.parametrize("seed", range(10))
def test_the_same_rule_finds_nothing_in_nothing_and_three_percent_in_three_percent(seed, execute, tmp_path):
    study = study_file.parse(ALIKE, "x").model_copy(update={"seed": seed})
    execute(study, FakeModel(seed=seed), name="null")
    assert set(verdicts(tmp_path / "null").values()) <= {"no practical difference", "undecided"}
    loses = FakeModel(seed=seed, goodput_loss=0.03, loses=lambda up: up["congestion_control"] == "reno")
    execute(study, loses, name="loss")
    found = verdicts(tmp_path / "loss")
    assert found["treatment"] == "worse"
    assert found["control"] in ("no practical difference", "undecided")


def test_a_summary_has_exactly_its_documented_keys(study, execute, tmp_path):
    execute(study)
    found = summarise(read(tmp_path / "out"))
    assert list(found) == [
        "schema",
        "question",
        "scope",
        "ask",
        "primary",
        "faithful",
        "rules",
        "suspect",
        "family",
        "stopping",
        "trial",
        "smallest_levels",
        "verdicts",
        "unasked",
        "big_tcp",
        "interactions",
        "competitors",
        "positions",
        "why",
        "lost_time",
        "flows",
        "switch",
        "few",
        "hosts",
        "not_measured",
        "cpu",
        "caveats",
        "excluded",
        "judged_runs",
    ]
    assert (found["schema"], found["faithful"], found["not_measured"], found["excluded"]) == (1, True, [], [])
    keys = [
        "workload",
        "conditions",
        "metric",
        "unit",
        "baseline",
        "treatment",
        "ratio",
        "ci95",
        "difference",
        "margin",
        "judged",
        "together",
        "worst_case",
        "unseen_stalls",
        "assumption",
        "verdict",
        "runs",
        "warnings",
    ]
    assert all(list(verdict) == keys for verdict in found["verdicts"])
    jumbo = next(v for v in found["verdicts"] if v["treatment"]["mtu"] == 9000 and v["metric"] == "goodput")
    assert list(jumbo["baseline"]) == ["mtu", "estimate"]
    assert jumbo["baseline"]["mtu"] == 1500
    assert jumbo["verdict"] == "better"
    assert jumbo["ci95"][0] < jumbo["ratio"] < jumbo["ci95"][1]
    assert jumbo["runs"] == 18
    assert is_evidence(found)


def test_discarded_runs_are_retried_and_recorded(study, execute, tmp_path):
    once = FakeModel(faults=[Fault("late", lambda _up, number: number == 4)])
    outcome, runs = execute(study, once)
    assert outcome.runs == outcome.planned + 1 == 19
    assert [run.number for run in runs if run.excluded] == [5]
    assert sum(run.attempt for run in runs) == 1
    found = summarise(read(tmp_path / "out"))
    assert found["faithful"]
    assert found["excluded"][0]["reasons"][0].startswith("fidelity: lateness")


def test_exclusions_in_one_arm_only_end_without_a_verdict(study, execute, tmp_path):
    # 5 of 6 first attempts against none: every block had a run that counts in the end.
    execute(study, FakeModel(faults=[Fault("late", Unlucky(0, 2, 4, 6, 8))]))
    found = summarise(read(tmp_path / "out"))
    assert not found["faithful"]
    treated = [v for v in found["verdicts"] if v["treatment"]["mtu"] == 9000]
    assert {v["verdict"] for v in treated} == {"suspect"}
    assert not is_evidence(found)


class Unlucky:
    """These of the runs with jumbo frames are late, counted from 0."""

    def __init__(self, *lost):
        self.lost, self.run = lost, -1

    def __call__(self, up, _number):
        is_jumbo = up["hosts"][0]["mtu"] == 9000
        self.run += is_jumbo
        return is_jumbo and self.run in self.lost


def test_where_too_few_runs_tell_whether_they_were_lost_at_random_there_are_more(study, execute, tmp_path):
    # 2 of 6 against none are more than a quarter; so are 2 of 7, but not of 8.
    events = []
    outcome, runs = execute(study, FakeModel(faults=[Fault("late", Unlucky(0, 2))]), on_event=events.append)
    assert (outcome.planned, outcome.runs, max(run.block for run in runs)) == (18 + 6, 18 + 6 + 2, 7)
    assert [event.total for event in events] == sorted(event.total for event in events)
    assert (events[0].total, events[-1].total, events[-1].number, events[-1].seconds_left) == (18, 24, 24, 0)
    found = summarise(read(tmp_path / "out"))
    assert found["faithful"]
    treated = next(v for v in found["verdicts"] if v["treatment"]["mtu"] == 9000 and v["metric"] == "goodput")
    assert (treated["verdict"], treated["runs"]) == ("better", 24)


def test_more_blocks_end_too_and_are_not_run_where_chance_is_excluded(study, execute, tmp_path):
    # With 3 of 9 against none after three more blocks it still cannot be told (p = 0.2).
    outcome, _ = execute(study, FakeModel(faults=[Fault("late", Unlucky(0, 2, 4))]), name="open")
    assert outcome.planned == 18 + 9
    assert not summarise(read(tmp_path / "open"))["faithful"]
    # 5 of 6 first attempts against none are not lost at random (p = 0.015).
    outcome, _ = execute(study, FakeModel(faults=[Fault("late", Unlucky(0, 2, 4, 6, 8))]), name="shown")
    assert outcome.planned == 18
    assert not summarise(read(tmp_path / "shown"))["faithful"]


def test_a_study_that_was_cut_off_is_undecided_where_more_runs_would_tell(study, execute, tmp_path):
    execute(study, FakeModel(faults=[Fault("late", Unlucky(0, 2, 4, 6, 8))]))
    saved = read(tmp_path / "out")
    few = [run for run in saved.runs if run.block < 2]
    assert any(run.excluded for run in few)
    found = {}
    for planned in (len({run.key for run in few}), 18):
        cut = dataclasses.replace(saved, runs=few, plan={**saved.plan, "planned_runs": planned})
        summary = summarise(cut)
        treated = [each for each in summary["verdicts"] if each["treatment"]["mtu"] == 9000]
        assert all("too few to tell" in each["warnings"][0] for each in treated)
        found[planned] = (summary["faithful"], {each["verdict"] for each in treated})
    assert found == {6: (False, {"suspect"}), 18: (True, {"undecided"})}


def test_a_spent_budget_leaves_no_room_for_more_blocks(study, tmp_path):
    bed = FakeTestbed(FakeModel(faults=[Fault("late", Unlucky(0, 2, 4))]))
    with Journal.create(tmp_path / "out", study_file.dump(study), PLAN) as journal:
        runner = Runner(
            study, bed, journal, wanting=lambda _: True,
            now=lambda: 1e9 if len(journal.runs) >= 21 else 0.0, pause=lambda _: None, cpu_time=lambda: 0.0,
        )  # fmt: skip
        outcome = runner.run()
    assert (outcome.runs, outcome.planned, outcome.out_of_budget) == (21, 18, False)


def test_a_block_more_that_was_interrupted_is_filled_when_the_study_goes_on(study, tmp_path):
    def stop(event):
        if event.number == 20 and event.run is None:
            raise KeyboardInterrupt

    def run(journal, on_event=lambda _: None, wanting=lambda runs: len(runs) < 20):
        return Runner(
            study, FakeTestbed(), journal, on_event=on_event, wanting=wanting,
            pause=lambda _: None, cpu_time=lambda: 0.0,
        ).run()  # fmt: skip

    with Journal.create(tmp_path / "out", study_file.dump(study), PLAN) as journal:
        assert run(journal, stop).interrupted
        assert len(journal.runs) == 19
    with Journal.resume(tmp_path / "out") as journal:
        outcome = run(journal, wanting=lambda _: False)
    assert (outcome.runs, outcome.planned, outcome.interrupted) == (21, 21, False)


def test_retries_end(study, execute):
    outcome, runs = execute(study, FakeModel(faults=[Fault("metrics_cache")]))
    assert outcome.runs == outcome.planned * 3
    assert all(run.excluded for run in runs)


def test_interrupted_anywhere_it_keeps_what_was_finished(study, execute):
    def stop(event):
        if event.number == 5 and event.run is None:
            raise KeyboardInterrupt

    outcome, runs = execute(study, on_event=stop)
    assert outcome.interrupted
    assert len(runs) == 4


def test_an_interrupt_is_not_lost_behind_a_host_that_is_gone(study, tmp_path):
    class Gone(FakeTestbed):
        def down(self):
            raise AgentError(-32007, "the agent of h1 has ended", {})

    def interrupt(_up, _number):
        raise KeyboardInterrupt

    with Journal.create(tmp_path / "out", study_file.dump(study), PLAN) as journal:
        outcome = Runner(study, Gone(FakeModel(faults=[Fault("late", interrupt)])), journal).run()
    assert outcome.interrupted


def test_what_was_not_put_back_is_said_of_the_run_after_which_it_was_so(study, tmp_path):
    """Also of what the end of the study puts back."""

    lines = [["h1: first"], ["h1: at last"], []]

    class Left(FakeTestbed):
        def unrestored(self):
            return lines.pop(0)

    with Journal.create(tmp_path / "out", study_file.dump(study), PLAN) as journal:
        runner = Runner(study, Left(FakeModel()), journal)
        for slot in block_order(study, 0)[:2]:
            lines.append([])
            runner.once(slot)
    first, second = read(tmp_path / "out").runs
    assert first.readings["not_restored"] == ["h1: first", "h1: at last"]
    assert "not_restored" not in second.readings
    assert [line for line in caveats([], "emulated", [first, second]) if "put back" in line] == [
        "not everything was put back after run 1: h1: first",
        "not everything was put back after run 1: h1: at last",
    ]


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ProgramFailure("curl on h1 did not end within 230 s"), "curl on h1 did not end within 230 s"),
        (AgentTimeout("relay: no answer within 32 s"), "the workload had not ended when its time was over (relay: no"),
    ],
)
@pytest.mark.parametrize("dropped", [0, 12])
def test_a_workload_that_fails_behind_a_port_that_is_too_small_does_not_work(
    dropped, error, said, study, tmp_path, monkeypatch
):
    """It is a result, and not tried again; without such drops it is an error, whose retries may help."""

    class Small(FakeTestbed):
        def ports(self):
            return [{"port": "left>right", "giant_frames": dropped if self.is_jumbo else 0}]

        def up(self, conditions):
            self.is_jumbo = max(conditions.mtu.values()) > 1500
            return super().up(conditions)

        def begin(self, watch=()):
            if self.is_jumbo:
                raise error
            return super().begin(watch)

    with Journal.create(tmp_path / "out", study_file.dump(study), PLAN) as journal:
        Runner(study, Small(FakeModel()), journal, pause=lambda _: None, cpu_time=lambda: 0.0).run()
    jumbo = [run for run in read(tmp_path / "out").runs if run.level == 9000]
    assert all(run.excluded[0].startswith(f"does not work: {said}" if dropped else "error: ") for run in jumbo)
    assert all(("port left>right dropped 12 frames" in run.excluded[0]) == bool(dropped) for run in jumbo)
    assert {run.attempt for run in jumbo} == ({0} if dropped else {0, 1, 2})


@pytest.mark.parametrize("first", [KeyboardInterrupt(), AgentLost("gone"), None], ids=["interrupt", "error", "none"])
def test_what_failed_first_passes_on(first):
    last = AgentError(-32007, "the agent of h1 has ended", {})

    def fail():
        raise last

    def go():
        with afterwards(fail):
            if first is not None:
                raise first

    with pytest.raises(type(first or last)) as caught:
        go()
    assert caught.value is (first or last)


def _refuse(_):
    raise BadAnswer("h2: held.end: held: found null, expected a valid list")


def _burst(found):
    found["elapsed_seconds"] = float("inf")
    return found


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (_refuse, "error: h2: held.end: held: found null, expected a valid list"),
        (lambda _: {}, "error: the hosts' answers make no sense (KeyError: "),
        (lambda found: found | {"cpus": 3}, "error: the hosts' answers make no sense (TypeError: "),
        (_burst, "error: the hosts' answers make no sense (ValueError: "),
    ],
)
def test_nonsense_of_hosts_that_are_not_ours_excludes_a_run(spoil, said, study, tmp_path, monkeypatch):
    ended, real = [], FakeTestbed.end

    class Theirs(FakeTestbed):
        is_private = False

        def end(self):
            ended.append(None)
            return spoil(real(self)) if len(ended) == 3 else real(self)

    with Journal.create(tmp_path / "out", study_file.dump(study), PLAN) as journal:
        outcome = Runner(study, Theirs(FakeModel()), journal, pause=lambda _: None, cpu_time=lambda: 0.0).run()
    third = read(tmp_path / "out").runs[2]
    assert outcome.runs > 10
    assert len(third.excluded) == 1
    assert third.excluded[0].startswith(said)
    # Of our own agents it is a mistake of ours, which nothing hides.
    if spoil is not _refuse:
        monkeypatch.setattr(Theirs, "is_private", True)
        ended.clear()
        with (
            Journal.create(tmp_path / "ours", study_file.dump(study), PLAN) as journal,
            pytest.raises((KeyError, TypeError, ValueError)),
        ):
            Runner(study, Theirs(FakeModel()), journal, pause=lambda _: None, cpu_time=lambda: 0.0).run()


def test_a_limit_of_the_device_ends_the_study(study, execute):
    with pytest.raises(Refused, match="MTU of h1: requested 9000, the limit here is 4000"):
        execute(study, FakeModel(largest_mtu=4000))


def test_a_request_that_is_not_understood_ends_the_study(study, execute, monkeypatch):
    from framegauge.testbeds.rack import RackTestbed

    monkeypatch.setattr(RackTestbed, "begin", lambda self, _: self._agent.request("no.such"))
    with pytest.raises(AgentError, match="no method"):
        execute(study)


def test_a_spent_budget_ends_after_a_whole_block(study, execute, tmp_path):
    from framegauge.testbeds.fake.testbed import FakeTestbed

    hours = iter(range(0, 10**9, 100))
    short = study.model_copy(update={"budget": 60.0})
    with Journal.create(tmp_path / "out", study_file.dump(short), PLAN) as journal:
        outcome = Runner(
            short, FakeTestbed(), journal, now=lambda: float(next(hours)), pause=lambda _: None, cpu_time=lambda: 0.0
        ).run()
    assert outcome.out_of_budget
    assert outcome.runs == 3 * 3


def test_a_run_says_when_it_began_in_utc(study, tmp_path):
    east = timezone(timedelta(hours=2))
    minutes = (datetime(2026, 11, 21, 12, tzinfo=east) + timedelta(minutes=step) for step in range(1000))
    with Journal.create(tmp_path / "out", study_file.dump(study), PLAN) as journal:
        Runner(study, FakeTestbed(), journal, wall=lambda: next(minutes), pause=lambda _: None).run()
    began = [run.began for run in read(tmp_path / "out").runs]
    assert began[:2] == ["2026-11-21T10:00:00.000+00:00", "2026-11-21T10:01:00.000+00:00"]
    assert began == sorted(began)


def test_progress_counts_to_the_end(study, execute):
    events = []
    execute(study, on_event=events.append)
    assert [event.number for event in events if event.run is not None] == list(range(1, 19))
    assert {event.total for event in events} == {18}
    assert events[-1].seconds_left == 0
    left = [event.seconds_left for event in events if event.run is not None]
    assert left[0] > left[-1]
