"""The trial before a study: what is tried, what follows from it, and when it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from framegauge.errors import Refused, TooBusy
from framegauge.evidence.fidelity import RIVALS
from framegauge.experiment import trial
from framegauge.experiment.busy import User
from framegauge.experiment.planning import baseline_slot, runnable_of
from framegauge.experiment.trial import Attempt, Trial
from framegauge.study import file as study_file
from framegauge.study.model import Study
from framegauge.testbeds.fake.testbed import FakeModel, FakeTestbed, Fault
from framegauge.workloads.rr import RequestResponse
from framegauge.workloads.stream import Stream

FILE = """
testbed: {kind: KIND, link: {rate: RATE}}
factors: {mtu: {levels: [1500, 9000], baseline: 1500}}
workloads: [{stream: {size: 10 MB}}]
blocks: 6
margins: {goodput: 1 %}
"""
CLOCKS: dict[str, Any] = {"pause": lambda _: None, "cpu_time": lambda: 0.0}
BUSY = "idle CPU (shared): at least 3 %, found 0.0 %"
HOG = [User("hog", 7, 0.98)]


def study(kind: str = "rack", rate: str = "1 Gb/s", **more: Any) -> Study:
    return study_file.parse(FILE.replace("KIND", kind).replace("RATE", rate), "x").model_copy(update=more)


def above(limit: int) -> FakeTestbed:
    """A machine on which the fabric is late at rates above that."""
    return FakeTestbed(FakeModel(faults=[Fault("late", lambda up, _: up["link"]["bits_per_second"] > limit)]))


def tried(given: Study, bed: FakeTestbed) -> Trial:
    return trial.find(given, trial.attempt_at(given, bed, **CLOCKS), lambda: 0.0)


def test_what_is_carried_is_found_by_runs_that_are_judged_as_all_are() -> None:
    outcome = tried(study(), above(10**9))
    assert [(attempt.bits_per_second, list(attempt.reasons)) for attempt in outcome.attempts] == [(10**9, [])]
    outcome = tried(study(), above(200_000_000))
    assert [attempt.bits_per_second for attempt in outcome.attempts] == [10**9, 10**9, 500_000_000, 200_000_000]
    assert outcome.carried == 200_000_000
    assert outcome.attempts[0].reasons[0].startswith("lateness p99 of the fabric")
    assert tried(study(), above(0)).carried is None


def test_one_moment_of_bad_luck_does_not_speak_against_a_rate() -> None:
    bed = FakeTestbed(FakeModel(faults=[Fault("late", lambda _up, number: number == 0)]))
    outcome = tried(study(), bed)
    assert (outcome.carried, len(outcome.attempts)) == (10**9, 2)


def test_nothing_is_tried_above_the_rate_of_the_study() -> None:
    assert trial.rates_of(study(rate="300 Mb/s")) == [300_000_000, 300_000_000, 200_000_000, 100_000_000]
    assert trial.rates_of(study(rate="10 Mb/s")) == [10_000_000, 10_000_000]


def test_a_testbed_is_left_as_it_was_found() -> None:
    bed = above(0)
    tried(study(), bed)
    assert bed.hosts() == []


class Clock:
    """A clock that goes on by as much as each attempt takes."""

    def __init__(self, *seconds: float) -> None:
        self.at, self._each = 100.0, iter(seconds)

    def __call__(self) -> float:
        return self.at

    def attempt(self, _: int) -> Sequence[str]:
        self.at += next(self._each)
        return [BUSY]


@pytest.mark.parametrize(
    ("seconds", "rates"),
    [
        ([1.0] * 5, [1000, 1000, 500, 200, 100]),
        ([2.0] * 5, [1000, 500, 200, 100]),  # three more fit into eight seconds: the lowest are left
        ([2.5] * 5, [1000, 200, 100]),
        ([3.4] * 5, [1000, 100]),
        ([1.0, 4.0, 1.0], [1000, 1000]),  # as slow once more would be too late
        ([1.0, 3.5, 3.4], [1000, 1000, 100]),
        ([9.0], [1000]),
    ],
)
def test_it_ends_in_time_and_leaves_the_middle_out(seconds: list[float], rates: list[int]) -> None:
    clock = Clock(*seconds)
    outcome = trial.find(study(), clock.attempt, clock)
    assert [attempt.bits_per_second // 10**6 for attempt in outcome.attempts] == rates
    assert [attempt.seconds for attempt in outcome.attempts] == pytest.approx(seconds[: len(rates)])


def test_what_the_user_has_waited_already_counts() -> None:
    clock = Clock(*[2.0] * 5)
    outcome = trial.find(study(), clock.attempt, clock, waited_seconds=3.5)
    assert [attempt.bits_per_second // 10**6 for attempt in outcome.attempts] == [1000, 100]
    outcome = trial.find(study(), clock.attempt, clock, waited_seconds=60)  # and yet the lowest says most
    assert [attempt.bits_per_second // 10**6 for attempt in outcome.attempts] == [1000, 100]
    slow = Clock(5.0)
    assert len(trial.find(study(), slow.attempt, slow, waited_seconds=4).attempts) == 1


def test_more_hosts_have_more_time() -> None:
    clock = Clock(*[3.4] * 5)
    rack = {"kind": "rack", "topology": "rack", "hosts": 62, "link": {"rate": "1 Gb/s"}}
    big = study().model_copy(update={"testbed": type(study().testbed).model_validate(rack)})
    assert len(trial.find(big, clock.attempt, clock).attempts) == 5


@pytest.mark.parametrize(("kind", "has_one"), [("rack", True), ("fake", False), ("veth", False), ("simulator", False)])
def test_only_what_our_fabric_joins_is_tried(kind: str, has_one: bool) -> None:
    text = FILE.replace("KIND", kind).replace("RATE", "1 Gb/s")
    given = study_file.parse(text if kind != "veth" else text.replace("mtu:", "rtt: 0 s, mtu:"), "x")
    assert trial.applies(given) is has_one
    assert bool(trial.lines(given, True)) is has_one


def test_presets_are_tried_and_studies_of_own_hosts_are_not() -> None:
    assert all(trial.applies(study_file.load_preset(name)) for name in study_file.presets())
    own = study_file.parse(
        "testbed: {kind: ssh, machines: [a, b]}\nfactors: {mtu: {levels: [1500, 9000], baseline: 1500}}\n"
        "workloads: [{stream: {size: 1 MB}}]\n", "x",
    )  # fmt: skip
    assert not trial.applies(own)


def brief(workload: str, hosts: int = 2, **more: Any) -> Any:
    """The workload of a rehearsal at 200 Mb/s."""
    bed = "topology: pair" if hosts == 2 else f"topology: rack, hosts: {hosts}"
    text = FILE.replace("kind: KIND", f"kind: rack, {bed}").replace("RATE", "1 Gb/s")
    text = text.replace("{stream: {size: 10 MB}}", workload).replace("margins: {goodput: 1 %}", "")
    short = trial.rehearsal(study_file.parse(text, "x").model_copy(update=more), 200_000_000)
    assert short.testbed.link.rate == 200_000_000
    assert (short.meters.cpu, short.meters.diagnose, short.changes) == (False, False, [])
    return runnable_of(short, baseline_slot(short))


def test_its_traffic_is_that_of_the_study_where_it_is_ours_and_short() -> None:
    short = brief("{stream: {size: [1 MB, 100 MB], flows: 3, reverse: true}}")
    assert isinstance(short, Stream)
    assert (short.size_bytes, short.duration_seconds, short.flows, short.reverse) == (None, 0.5, 3, True)
    short = brief("{stream: {duration: 20 s, rate: 5 Mb/s}}")
    assert (short.duration_seconds, short.offered_bits_per_second) == (0.5, 5_000_000)
    short = brief("{rr: {request: 200 B, response: 2 kB, duration: 10 s}}")
    assert isinstance(short, RequestResponse)
    assert (short.request_bytes, short.duration_seconds) == (200, 0.5)


def test_for_other_traffic_a_stream_fills_the_links() -> None:
    short = brief("{iperf3: {duration: 5 s}}")
    assert isinstance(short, Stream)
    assert (short.duration_seconds, short.pattern) == (0.5, "one-to-one")
    assert brief("{ftp: {size: 1 MB}}", hosts=4).pattern == "many-to-one"


def result(*attempts: tuple[int, Sequence[str]]) -> Trial:
    return Trial(attempts[0][0], [Attempt(rate, 1.0, reasons) for rate, reasons in attempts])


LOWER = result((10**9, [BUSY]), (10**9, [BUSY]), (500_000_000, [BUSY]), (200_000_000, []))
NOTHING = result(*((rate, [BUSY]) for rate in (10**9, 10**9, 500_000_000, 200_000_000, 100_000_000)))


def test_what_is_carried_runs_as_it_is() -> None:
    given = study()
    followed, line = trial.follow(given, result((10**9, [])), True, HOG)
    assert followed is given
    assert line == "trial: this machine carries 1 Gb/s"


def test_a_preset_takes_the_rate_that_is_carried_and_says_why() -> None:
    followed, line = trial.follow(study(), LOWER, True, HOG)
    assert followed.testbed.link.rate == 200_000_000
    assert line.startswith(
        f"trial: this machine does not carry 1 Gb/s at the moment ({BUSY}), so the study runs at 200 Mb/s"
    )
    assert "What headers take of a frame is the same at any rate" in line


def test_why_ratios_hold_is_not_said_of_what_has_nothing_to_do_with_headers() -> None:
    queues = study_file.load_preset("outcast")
    _, line = trial.follow(queues, LOWER, True, HOG)
    assert "headers" not in line
    assert "may differ at 1 Gb/s" in line


def test_a_study_that_states_its_rate_keeps_it_and_warns() -> None:
    given = study()
    followed, line = trial.follow(given, LOWER, False, HOG)
    assert followed is given
    assert "does not carry 1 Gb/s at the moment" in line
    assert "but 200 Mb/s. The study keeps its rate" in line
    assert "hog (process 7, 98 % of a CPU)" in line


@pytest.mark.parametrize("may_adapt", [True, False])
def test_where_nothing_is_carried_it_ends_and_names_who_is_busy(may_adapt: bool) -> None:
    with pytest.raises(TooBusy) as caught:
        trial.follow(study(), NOTHING, may_adapt, HOG)
    assert caught.value.exit_code == 3
    assert str(caught.value) == (
        f"too busy: neither 1 Gb/s nor 100 Mb/s is carried at the moment ({BUSY}): end other programs, wait, or choose a "
        "lower testbed.link.rate; most CPU is used by hog (process 7, 98 % of a CPU)"
    )
    with pytest.raises(TooBusy, match=r"too busy: 10 Mb/s is not carried at the moment \(idle"):
        trial.follow(study(), result((10_000_000, [BUSY])), may_adapt, HOG)
    with pytest.raises(TooBusy, match=r"\(idle CPU"):  # and not the failure after it
        trial.follow(study(), result((10**9, [BUSY]), (10**8, ["error: background"])), may_adapt, HOG)
    with pytest.raises(TooBusy, match="no other program that can be seen here uses much CPU"):
        trial.follow(study(), NOTHING, may_adapt, [])


def test_where_another_rack_goes_first_no_lower_rate_is_advised() -> None:
    reason = f"{RIVALS}: at most 2% of a CPU, found 8.4%: framegauge-agen (528)"
    for users in ([], HOG):
        with pytest.raises(TooBusy) as caught:
            trial.follow(study(), result((10**9, [reason])), True, users)
        assert str(caught.value).endswith(
            "end these programs in real time (another rack or study is one), or wait for them"
        )


def test_a_trial_that_could_not_be_made_says_nothing_about_the_machine() -> None:
    failed = ["error: h2: no such program"]
    given = study()
    followed, line = trial.follow(given, result((10**9, failed), (100_000_000, failed)), True, HOG)
    assert followed is given
    assert line == "trial: no rate could be tried (error: h2: no such program); the study goes on at 1 Gb/s"


def test_what_a_lower_rate_is_refused_for_is_no_reason_against_the_study() -> None:
    class Refusing(FakeTestbed):
        def up(self, conditions: Any) -> Any:
            if conditions.bits_per_second < 10**9:
                raise Refused("background load: requested 400 Mb/s")
            return super().up(conditions)

    outcome = tried(study(), Refusing(FakeModel(faults=[Fault("late")])))
    assert outcome.attempts[-1].reasons == ["error: background load: requested 400 Mb/s"]
    refused: Callable[[int], Sequence[str]] = trial.attempt_at(study(rate="500 Mb/s"), Refusing(), **CLOCKS)
    with pytest.raises(Refused):
        refused(500_000_000)


def test_a_plan_says_what_a_trial_may_change() -> None:
    assert trial.lines(study(), True) == [
        "before the first run, a trial of some seconds: does this machine carry 1 Gb/s at the moment? If not, the study "
        "runs at 500 Mb/s, 200 Mb/s or 100 Mb/s instead; it ends if nothing is carried"
    ]
    assert "it says so, and what helps; it ends" in trial.lines(study(), False)[0]
    assert trial.lines(study(rate="10 Mb/s"), True)[0].endswith("10 Mb/s at the moment? If not, it ends")
