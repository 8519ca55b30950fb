"""Samples of our own agents: what is kept, what is read back as series, and that a reboot or a lost host is a gap."""

from __future__ import annotations

import json
import math
from concurrent.futures import wait
from dataclasses import replace
from datetime import UTC, datetime

import jsonschema
import numpy as np
import pytest

from framegauge.cli import main as cli
from framegauge.errors import (
    AgentLost,
    AgentTimeout,
    CorruptResults,
    FolderInUse,
    InputError,
    QuantityError,
    StudyError,
)
from framegauge.statistics.verdict import Verdict
from framegauge.watch import counters, document, model, page, run, samples, sampling
from framegauge.watch.catalogue import METRICS, USUAL_OF_AGENTS
from framegauge.watch.prometheus import Series
from framegauge.watch.recorded import Recorded
from framegauge.watch.sampler import Sampler
from framegauge.watch.samples import Sample, Writer
from framegauge.watch.sampling import Times

STEP = 15.0
AT = datetime(2026, 11, 10, 13, tzinfo=UTC).timestamp() + 7.0  # between two samples
HOSTS = ("a1", "a2", "b1", "b2")
TEXT = """
agents: samples
change: {at: 2026-11-10T13:00:07Z, hosts: [a1, a2]}
control: [b1, b2]
before: 10 min
after: 10 min
metrics: [retransmits, drops, received_bytes, bytes_per_packet]
"""
NAMES = {"TcpRetransSegs": 0, "TcpOutSegs": 0}
LINK = dict.fromkeys(counters.OF_INTERFACES, 0)


def watch(folder, text=TEXT):
    return model.parse(text.replace("agents: samples", f"agents: {folder}"), "watch.yaml")


def sampled(host, number, seed, life="boot-1", index=2, factor=1.0):
    """What a host has counted in its life after so many steps: bytes and packets that flow, a retransmit now and then."""
    generator = np.random.default_rng([seed, HOSTS.index(host)])
    events = int(generator.poisson(60, number).sum())
    packets = int(factor * (number * 15_000 + generator.normal(0, 300)))
    link = LINK | {"rx_bytes": 1000 * packets, "rx_packets": packets, "mtu": 1500}
    values = NAMES | {"TcpRetransSegs": events} | {f"eth0:{name}": value for name, value in link.items()}
    return Sample(0.0, host, life, values, {"eth0": index})


def course(seed=1, change=lambda sample, number: sample):
    """All samples of all hosts around the switch, a bit late each."""
    first = int(AT // STEP) - 60
    for number in range(130):
        for host in HOSTS:
            at = (first + number) * STEP + 0.2
            found = change(replace(sampled(host, number, seed), at=at), number)
            if found is not None:
                yield found


def written(folder, found):
    with Writer(folder) as writer:
        writer.write(list(found))
    return folder


def judged(folder, text=TEXT):
    seen = run.watch(watch(folder, text), AT + 3600)
    return seen, {each.sampled.name: each for each in seen.metrics}


def test_what_is_written_is_read_back_also_after_a_writer_was_killed(tmp_path):
    first = Sample(
        7199.5, "a", "x", {"TcpOutSegs": 5, "cpu_softirq": 0.25, "eth0:rx_bytes": 7, "UdpInErrors": 0}, {"eth0": 2}
    )
    written(tmp_path, [first, Sample(7200.5, "a", "x", {"TcpOutSegs": 6, "UdpInErrors": 0}, {"eth0": 2})])
    (tmp_path / "19700101T02.jsonl").open("ab").write(b'{"at":7201.500,"host":"a","life":"x","val')
    written(tmp_path, [Sample(7202.5, "a", gap="the agent was lost")])
    found = list(samples.read(tmp_path, 7000, 8000))
    assert [each.at for each in found if each.life] == [7199.5, 7200.5]
    assert [each.gap for each in found if each.gap] == ["the agent was lost"]
    assert found[0].names == ["TcpOutSegs", "cpu_softirq", "UdpInErrors"]
    assert found[1].values == {"TcpOutSegs": 5, "cpu_softirq": 0.25, "eth0:rx_bytes": 7}
    # What a host has is known also to those who read less of the file than its first line.
    assert [bool(each.names) for each in samples.read(tmp_path, 7200.6, 8000)] == [True, False]


@pytest.mark.parametrize(
    "line",
    ['{"at":7200.5,"host":"a"}', '{"at":7200.5,"host":"a","life":"x","values":[],"indexes":{}}', "[[[", '{"at":7200.5,',
     '{"at":7200.5,"host":"a","life":"x","values":{"TcpOutSegs":1e999},"indexes":{}}',
     '{"at":7200.5,"host":"a","life":"x","values":{"TcpOutSegs":1' + 400 * "0" + '},"indexes":{}}'],
)  # fmt: skip
def test_what_is_no_sample_is_passed_over(line, tmp_path):
    (tmp_path / "19700101T02.jsonl").write_text(line + "\n")
    assert list(samples.read(tmp_path, 7000, 8000)) == []


def test_one_writes_at_a_time_and_not_without_end(tmp_path, monkeypatch):
    assert not samples.is_written(tmp_path)
    with Writer(tmp_path), pytest.raises(FolderInUse, match="another framegauge samples into it"):
        Writer(tmp_path)
    with Writer(tmp_path):
        assert samples.is_written(tmp_path)
    monkeypatch.setattr(samples, "MOST_BYTES", 150)
    with Writer(tmp_path) as writer:
        writer.write([Sample(7200.5, "a", "x", {"TcpOutSegs": 5})])
        with pytest.raises(InputError, match="remove files of old hours"):
            writer.write([Sample(7201.5, "a", "x", {"TcpOutSegs": 5})])


def test_names_of_counters_are_sums_and_ratios():
    assert counters.parse("TcpRetransSegs").above == ("TcpRetransSegs",)
    assert counters.parse("rx_dropped + eth0.7:tx_dropped").above == ("rx_dropped", "eth0.7:tx_dropped")
    assert counters.parse("rx_bytes / rx_packets + tx_packets").below == ("rx_packets", "tx_packets")
    for wrong in ("", "a b", "a / b / c", "rx_bytes + rx_bytes", "eth0:TcpOutSegs", "a +", "rate(x[1m])"):
        with pytest.raises(QuantityError, match="names of counters joined"):
            counters.parse(wrong)
    for name in USUAL_OF_AGENTS:
        assert counters.parse(METRICS[name].counters)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("agents: samples", "", 'found "neither", expected prometheus or agents'),
        ("agents: samples", "agents: s\nprometheus: http://p", 'found "both", expected prometheus or agents'),
        ("after: 10 min", "after: 10 min\nstep: 100 ms", 'step: found "100 ms", expected at least 500 ms'),
        (
            "[retransmits, ",
            "[conntrack_entries, ",
            'metrics: found "conntrack_entries without counters", expected counters, which',
        ),
        (
            "metrics: [retransmits, drops, received_bytes, bytes_per_packet]",
            "metrics: {x: {counters: 'rx_bytes / rx_packets', kind: rate, better: lower, margin: 5 %}}",
            "expected a sum of counters, or kind: gauge for a ratio",
        ),
        (
            "metrics: [retransmits, drops, received_bytes, bytes_per_packet]",
            "metrics: {x: {query: up, kind: gauge, better: lower, margin: 5 %}}",
            'metrics.x: found "x without counters", expected counters, which our own agents read',
        ),
    ],
)
def test_what_a_file_with_agents_must_not_say_is_one_line(old, new, message):
    with pytest.raises(StudyError) as error:
        model.parse(TEXT.replace(old, new), "watch.yaml")
    assert message in str(error.value)


def test_a_short_file_with_agents_has_all_metrics_that_they_read_and_the_schema_takes_it():
    short = model.parse("agents: s\nchange: {at: 2026-11-10T13:00:00Z, hosts: [a]}\ncontrol: [b]\n", "watch.yaml")
    assert list(short.metrics) == list(USUAL_OF_AGENTS)
    given = {"agents": {"folder": "s"}, "change": {"at": "2026-11-10T13:00:00Z", "hosts": ["a"]}, "control": ["b"]}
    jsonschema.validate(given, model.json_schema())


def test_no_step_reaches_over_the_switch(tmp_path):
    """Retransmits that begin with the switch are in no step before it, whenever samples are taken."""
    folder = written(
        tmp_path,
        (
            replace(each, values=each.values | {"TcpRetransSegs": max(0, int(each.at - AT))})
            for each in course()
        ),
    )  # fmt: skip
    _, metrics = judged(folder)
    before, after = (
        metrics["retransmits"].sampled.observed.hosts[0].before,
        metrics["retransmits"].sampled.observed.hosts[0].after,
    )
    assert (before.sum(), set(after)) == (0, {15.0})


def test_series_of_samples_are_judged_exactly_as_those_of_prometheus(tmp_path):
    folder = written(tmp_path, course())
    seen, _ = judged(folder)
    made = document.document(seen)
    jsonschema.validate(made, document.json_schema(), format_checker=jsonschema.FormatChecker())
    assert (made["prometheus"], made["samples"]) == (None, str(folder))
    assert seen.gate == run.GO_ON
    asked, times = watch(folder), Times.of(watch(folder), AT + 3600)
    source = Recorded(asked)
    again = []
    for name in asked.metrics:
        given = [
            Series({"instance": each.labels["instance"], "device": each.labels["counter"]}, each.values)
            for each in source.series(asked.metrics[name], times.grid)
        ]
        again.append(sampling.sample(asked, name, given, times))
    same = document.document(run.Watched(asked, times, AT + 3600, run.judged(again, times)))
    assert same["metrics"] == made["metrics"]
    one = {"drops": asked.metrics["drops"]}  # a page takes long to draw
    small = run.Watched(asked.model_copy(update={"metrics": one}), times, AT + 3600, [seen.metrics[1]])
    assert "sampled by agents" in page.page(small)


def rebooted(host, at_number, life="boot-2"):
    """Counters of that host begin at 0, as after a reboot; within a step it may count more than before it."""

    def change(sample, number):
        if sample.host != host or number < at_number:
            return sample
        return replace(sampled(host, number - at_number, 9, life), at=sample.at)

    return change


@pytest.mark.parametrize("host", ["a1", "b2"])
def test_a_reboot_is_a_gap_and_no_effect(host, tmp_path):
    folder = written(tmp_path, course(change=rebooted(host, 80)))
    seen, metrics = judged(folder)
    values = metrics["retransmits"].sampled.whole[host]
    assert np.isnan(values).sum() == 2  # the step of the reboot, and the one after
    assert np.nanmax(values) < 200
    assert Verdict.WORSE not in {each.judged.verdict for each in seen.metrics}
    assert metrics["received_bytes"].judged.verdict is Verdict.NO_PRACTICAL_DIFFERENCE


def test_counters_that_are_larger_after_a_reboot_are_a_gap_too(tmp_path):
    """Only the life tells: the counter never falls."""

    def change(sample, number):
        if sample.host != "a1" or number < 80:
            return replace(sample, values=sample.values | {"TcpRetransSegs": 0})
        return replace(sample, life="boot-2", values=sample.values | {"TcpRetransSegs": 5000})

    _, metrics = judged(written(tmp_path, course(change=change)))
    assert np.nansum(metrics["retransmits"].sampled.whole["a1"]) == 0
    assert metrics["retransmits"].judged.verdict is not Verdict.WORSE


def test_an_interface_that_is_made_anew_is_a_gap_of_its_counters_alone(tmp_path):
    def change(sample, number):
        if sample.host != "a1" or number < 80:
            return sample
        return replace(sample, indexes={"eth0": 7}, values=sample.values | {"eth0:rx_dropped": 9999})

    _, metrics = judged(written(tmp_path, course(change=change)))
    assert np.isnan(metrics["drops"].sampled.whole["a1"]).sum() == 2
    assert np.nansum(metrics["drops"].sampled.whole["a1"]) == 0
    assert np.isfinite(metrics["retransmits"].sampled.whole["a1"]).all()


@pytest.mark.parametrize(("missing", "unknown"), [(1, 0), (3, 0), (4, 5)])
def test_samples_that_came_late_are_no_gap_in_what_was_counted(missing, unknown, tmp_path):
    """What happened between those around them is exact, up to as many steps as a rate is taken over."""

    def change(sample, number):
        return None if sample.host == "a1" and 80 <= number < 80 + missing else sample

    (tmp_path / "all").mkdir()
    _, whole = judged(written(tmp_path / "all", course()))
    _, metrics = judged(written(tmp_path, course(change=change)))
    values, same = (each["retransmits"].sampled.whole["a1"] for each in (metrics, whole))
    assert np.isnan(values).sum() == unknown
    if not unknown:
        assert values.sum() == pytest.approx(same.sum())
        differ = np.flatnonzero(~np.isclose(values, same))
        assert len(differ) <= missing + 1
        assert np.ptp(values[differ]) <= 1  # an event more or less
        assert metrics["received_bytes"].judged.verdict is Verdict.NO_PRACTICAL_DIFFERENCE


@pytest.mark.parametrize("wall", [0, 9])
def test_what_was_counted_around_the_switch_is_not_shared_by_both_sides(wall, tmp_path):
    """Neither over the switch, nor over the end of the time that is left out, where the sample at that time is missing.
    Events begin there."""
    assert watch(tmp_path).settles == 9

    def change(sample, number):
        counted = int(STEP) * max(0, number - 60 - wall)
        missing = sample.host == "a1" and number == 60 + wall
        return None if missing else replace(sample, values=sample.values | {"TcpRetransSegs": counted})

    _, metrics = judged(written(tmp_path, course(change=change)))
    host = metrics["retransmits"].sampled.observed.hosts[0]
    assert np.nansum(host.before) == 0
    assert set(host.after[np.isfinite(host.after)]) == {STEP}
    assert np.isnan([*host.before, *host.after]).sum() == 1


def test_a_host_that_goes_away_is_not_judged_and_the_reason_is_told(tmp_path):
    def change(sample, number):
        gone = sample.host == "a2" and number >= 75
        return Sample(sample.at, "a2", gap="a2: the agent was lost (exit code 255)") if gone else sample

    seen, metrics = judged(written(tmp_path, course(change=change)))
    assert seen.gate == run.CANNOT_SAY
    assert {each.judged.verdict for each in metrics.values()} == {Verdict.NOT_JUDGED}
    why = metrics["retransmits"].judged.why
    assert why.startswith("Not judged: a2 has values for 1")
    assert why.endswith("expected 90% (a2: the agent was lost (exit code 255)).")


def test_reboots_again_and_again_are_not_judged(tmp_path):
    """Every other sample is of another life: nothing is known of the host."""
    change = lambda sample, number: replace(sample, life=f"boot-{number // 2}") if sample.host == "b1" else sample  # noqa: E731
    seen, metrics = judged(written(tmp_path, course(change=change)))
    assert seen.gate == run.CANNOT_SAY
    assert "it began anew about" in metrics["retransmits"].judged.why


def test_a_real_effect_is_found_beside_a_reboot(tmp_path):
    """The check of the checker: ten times the retransmits on switched hosts, one of which was started anew."""
    reboot = rebooted("b2", 70)

    def change(sample, number):
        found = reboot(sample, number)
        more = 600 * max(0, number - 62) if found.host[0] == "a" else 0
        return replace(found, values=found.values | {"TcpRetransSegs": found.values["TcpRetransSegs"] + more})

    seen, metrics = judged(written(tmp_path, course(change=change)))
    assert (seen.gate, metrics["retransmits"].judged.verdict) == (run.STOP, Verdict.WORSE)


def test_a_counter_that_hosts_do_not_have_is_not_0(tmp_path):
    text = TEXT.replace("[retransmits, drops, received_bytes, bytes_per_packet]",
                        "{x: {counters: TcpRetransSeg, kind: count, better: lower, margin: 5 %}}")  # fmt: skip
    seen, metrics = judged(written(tmp_path, course()), text)
    assert seen.gate == run.CANNOT_SAY
    assert metrics["x"].judged.why == 'Not judged: found no counter TcpRetransSeg on a1, expected "TcpRetransSegs".'


def test_levels_and_ratios_are_those_of_the_samples(tmp_path):
    text = TEXT.replace("[retransmits, drops, received_bytes, bytes_per_packet]",
                        "{mtu: {counters: 'eth0:mtu', kind: gauge, better: higher, margin: 5 %}, bytes_per_packet: default}")  # fmt: skip
    _, metrics = judged(written(tmp_path, course()), text)
    assert set(metrics["mtu"].sampled.whole["a1"]) == {1500}
    assert set(np.round(metrics["bytes_per_packet"].sampled.whole["b1"], 6)) == {1000}


def test_without_a_folder_the_gate_cannot_say(tmp_path, capsys):
    file = tmp_path / "watch.yaml"
    file.write_text(TEXT)
    assert cli.main(["watch", str(file)]) == 2
    assert "samples: found no such folder, expected one of samples" in capsys.readouterr().err
    assert cli.main(["watch", str(file), "--for", "1 h"]) == 2
    assert "--for: found it without --sample" in capsys.readouterr().err
    written(tmp_path / "samples", course())
    assert cli.main(["watch", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["gate"] == "go_on"
    assert cli.main(["watch", str(file), "--switched", "a1,a2", "--control", "b1,b2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["control_hosts"] == ["b1", "b2"]


class Answers:
    """An agent that has counted `count`; what is in `failing` is raised instead of its next answers."""

    def __init__(self):
        self.count, self.asked, self.failing, self.more = 0, 0, [], {}

    def begin(self, method, params):
        assert (method, params) == ("host.totals", {"interfaces": ["eth0"]})
        self.asked += 1
        return self

    def result(self, timeout_seconds):
        assert timeout_seconds > 0
        if self.failing:
            raise self.failing.pop(0)
        self.count += 1
        link = {"interface": "eth0", "index": 2, **LINK}
        cpu = dict.fromkeys(counters.STATES, 0.5)
        return {"life": "x", "interfaces": [link], "cpu": cpu, "receive_softirqs": 1, "transmit_softirqs": 2,
                "counters": {"TcpRetransSegs": self.count, **self.more}}  # fmt: skip


class Clock:
    def __init__(self, now):
        self.now = now

    def __call__(self):
        return self.now

    def pause(self, seconds):
        self.now += seconds + 0.01  # never woken up too early


def taken(tmp_path, agents, reach, seconds, late=()):
    """What was sampled, and what was said; `late`: how long the process is held up, by due time."""
    clock, said = Clock(7190.3), []
    held = dict(late)

    def pause(length):
        # Time is made up, and threads that reach for hosts take some: it stands still for them.
        wait([host.opening for host in sampler._hosts if host.opening is not None])
        clock.pause(length)
        clock.now += held.pop(round(clock.now), 0.0)

    with Writer(tmp_path) as writer:
        sampler = Sampler(list(agents), {name: each for name, each in agents.items() if each is not None}, reach, writer,
                          1.0, ["eth0"], said.append, clock, pause, clock)  # fmt: skip
        try:
            sampler.run(7190.3 + seconds)
        finally:
            sampler.close()
    return [each for each in samples.read(tmp_path, 7000, 8000) if each.life or each.gap], said


def test_every_host_is_asked_once_per_step_at_its_multiples(tmp_path):
    agents = {"a": Answers(), "b": Answers()}
    found, _ = taken(tmp_path, agents, None, 5.2)
    assert [(each.host, round(each.at, 2)) for each in found if each.host == "a"] == [
        ("a", 7191.01), ("a", 7192.01), ("a", 7193.01), ("a", 7194.01), ("a", 7195.01),
    ]  # fmt: skip
    assert [each.values["TcpRetransSegs"] for each in found if each.host == "b"] == [1, 2, 3, 4, 5]
    assert agents["a"].asked == 5


def test_a_host_that_is_lost_has_gaps_with_the_reason_until_it_is_there_again(tmp_path):
    agents, again = {"a": Answers(), "b": Answers()}, Answers()
    agents["a"].failing = [AgentLost("a: the agent was lost (exit code 255)")]
    found, said = taken(tmp_path, agents, lambda name: again, 12)
    mine = [each for each in found if each.host == "a"]
    assert len(mine) == len([each for each in found if each.host == "b"])
    assert mine[0].gap == "a: the agent was lost (exit code 255)"
    assert [bool(each.gap) for each in mine] == sorted((bool(each.gap) for each in mine), reverse=True)
    assert mine[-1].values["TcpRetransSegs"] == again.count > 0
    assert agents["a"].asked == 1
    assert said[0] == "a: the agent was lost (exit code 255); its samples have a gap"
    assert "a: there again" in said


def test_a_host_that_does_not_answer_is_given_up_after_several_times_and_reached_for_less_and_less_often(tmp_path):
    reached = []

    def reach(name):
        reached.append(name)
        raise InputError("a: no route")

    agents = {"a": Answers()}
    agents["a"].failing = [AgentTimeout("no answer")] * 100
    found, _ = taken(tmp_path, agents, reach, 100)
    assert agents["a"].asked == 3
    assert {each.gap for each in found} == {"no answer", "a: no route"}
    assert 2 <= len(reached) <= 6  # after 2, 4, 8, 16 and 32 s


def test_a_host_with_counters_without_end_is_given_up(tmp_path):
    agents = {"a": Answers(), "b": Answers()}
    agents["a"].more = {f"Tcp{number}": 1 for number in range(20_000)}
    found, _ = taken(tmp_path, agents, lambda name: agents["b"], 3.2)
    assert next(each.gap for each in found if each.host == "a") == "found 20020 counters, expected at most 10000"
    assert sum(path.stat().st_size for path in tmp_path.glob("*.jsonl")) < 10_000


def test_what_a_host_calls_its_counters_is_one_line(tmp_path):
    strange = lambda sample, number: replace(sample, values=sample.values | {"TcpRetransSeg\x1b[2J\nGo on": 1})  # noqa: E731
    text = TEXT.replace("[retransmits, drops, received_bytes, bytes_per_packet]",
                        "{x: {counters: TcpRetransSegG, kind: count, better: lower, margin: 5 %}}")  # fmt: skip
    _, metrics = judged(written(tmp_path, course(change=strange)), text)
    assert "found no counter TcpRetransSegG on a1" in metrics["x"].judged.why
    assert metrics["x"].judged.why.isprintable()


def test_a_process_that_was_held_up_leaves_a_gap_and_catches_nothing_up(tmp_path):
    found, _ = taken(tmp_path, {"a": Answers()}, None, 8.2, {7193: 2.7})
    assert [round(each.at) for each in found] == [7191, 7192, 7196, 7197, 7198]


def test_a_sample_that_was_changed_is_said_with_its_line(tmp_path):
    written(tmp_path, [Sample(at, "a", "x", {"TcpOutSegs": 12345.0}, {"eth0": 2}) for at in (7201.0, 7202.0)])
    path = tmp_path / "19700101T02.jsonl"
    whole = path.read_text()
    first, second = whole.splitlines(keepends=True)
    assert len(list(samples.read(tmp_path, 7200.0, 7300.0))) == 3
    path.write_text(first + second.replace("12345", "12346"))
    with pytest.raises(CorruptResults, match=r"19700101T02\.jsonl:2: seal: found another line than was sealed"):
        list(samples.read(tmp_path, 7200.0, 7300.0))
    # Those of older versions have no seal, and a line that a kill has cut is no sample.
    path.write_text(first.partition(', "seal"')[0] + "}\n" + second[:-20] + "\n")
    assert [each.at for each in samples.read(tmp_path, 7200.0, 7300.0) if each.values] == [7201.0]


@pytest.mark.parametrize("jump", [-86_400.0, 86_400.0])
def test_a_time_of_day_that_jumps_changes_neither_how_long_nor_how_often(tmp_path, jump):
    class Silent(Answers):
        """It does not answer, and is waited for in time that passes."""

        def result(self, timeout_seconds):
            assert timeout_seconds <= 1.0
            raise AgentTimeout("b: host.totals: no answer")

    passed, said = Clock(100.0), []
    agents, again = {"a": Answers(), "b": Silent()}, []

    def reach(name):
        again.append(passed())
        return Answers()

    def pause(length):
        wait([host.opening for host in sampler._hosts if host.opening is not None])
        passed.pause(length)

    def of_day():
        return 7_200_000.0 + passed() + (jump if passed() > 106 else 0.0)

    with Writer(tmp_path) as writer:
        sampler = Sampler(list(agents), agents, reach, writer, 1.0, ["eth0"], said.append, of_day, pause, passed)
        try:
            sampler.run(math.inf, 30.0)
        finally:
            sampler.close()
    assert passed() == pytest.approx(130, abs=1.1)
    found = [json.loads(line) for path in tmp_path.glob("*.jsonl") for line in path.read_text().splitlines()]
    mine = sorted(each["at"] for each in found if each["host"] == "a" and "values" in each)
    assert 26 <= len(mine) <= 31
    assert again
    assert any(each["host"] == "b" and "values" in each for each in found)
