"""What workloads compute from what they are told, and how they ask several hosts at once."""

import json
import os
import threading

import pyarrow as pa
import pytest
from helpers.support import PATIENCE_SECONDS, STUDY
from hypothesis import given, strategies as st

from framegauge.cli import commands
from framegauge.errors import AgentError, MissingRequirement, ProgramFailure, QuantityError
from framegauge.experiment import planning, refusals
from framegauge.files.placeholders import substitute
from framegauge.results.journal import read
from framegauge.study import file as study_file
from framegauge.summary.document import summarise
from framegauge.testbeds.base import PLACES, Host
from framegauge.testbeds.fake.testbed import Answered
from framegauge.workloads import curl, iperf3
from framegauge.workloads.base import jain, pairs, side_by_side
from framegauge.workloads.programs import taken_stamp
from framegauge.workloads.rr import quantile, tail
from framegauge.workloads.stream import Stream, busy_seconds

POSITIVE = st.floats(1e-3, 1e9)


@given(st.lists(POSITIVE, min_size=1, max_size=20))
def test_fairness_lies_between_one_for_all_and_one_for_one(values):
    assert 1 / len(values) - 1e-9 <= jain(values) <= 1 + 1e-9
    assert jain([values[0]] * 5) == pytest.approx(1)
    assert jain([1.0, 0.0, 0.0, 0.0]) == 0.25


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 10)), max_size=20))
def test_busy_time_is_a_union(spans):
    intervals = [(start, start + length) for start, length in spans]
    found = busy_seconds(intervals)
    assert found <= sum(length for _, length in spans) + 1e-6
    if intervals:
        assert found <= max(end for _, end in intervals) - min(start for start, _ in intervals) + 1e-6
        assert found == pytest.approx(busy_seconds(intervals * 2))
    assert busy_seconds([(0, 2), (1, 3), (5, 6)]) == 4


def test_the_slowest_flow_is_a_metric_where_there_are_several():
    """Two clients: flows of 4 and 1 MB in 2 s, and one of 3 MB in 4 s: 16, 4 and 6 Mb/s."""
    first = {"flow": [0, 1], "start_seconds": [0.5, 0.5], "end_seconds": [2.5, 2.5], "counted_seconds": [2.5, 2.5]}
    second = {"flow": [0], "start_seconds": [0.0], "end_seconds": [4.0], "counted_seconds": [4.0]}
    record = {
        "received_bytes": {"h3": 8_000_000},
        "active_seconds": 4.0,
        "runs": [{"transfers": "transfers-h1-h3"}, {"transfers": "transfers-h2-h3"}],
    }
    tables = {
        "transfers-h1-h3": pa.table({**first, "counted_bytes": [4_000_000, 1_000_000]}),
        "transfers-h2-h3": pa.table({**second, "counted_bytes": [3_000_000]}),
    }
    found = Stream(duration_seconds=4.0).metrics(record, tables)
    assert found["smallest_goodput"] == 4e6
    assert found["fairness"] == pytest.approx(26**2 / (3 * (16**2 + 4**2 + 6**2)))
    del tables["transfers-h1-h3"]
    assert "smallest_goodput" not in Stream(duration_seconds=4.0).metrics(record, tables)
    starved = {"transfers-h1-h3": pa.table({**first, "counted_bytes": [4_000_000, 0]})}
    assert Stream(duration_seconds=4.0).metrics(record, starved)["smallest_goodput"] == 0


def test_quantiles_are_ranks_and_count_what_was_never_answered():
    values = [float(value) for value in range(1, 1001)]
    assert (quantile(values, 0.5), quantile(values, 0.99), quantile(values, 0.999)) == (500, 990, 999)
    assert quantile(values[:990], 0.99, unfinished=10) == 990
    assert quantile(values[:989], 0.99, unfinished=11) is None
    assert quantile(values[:999], 0.999) is None
    found, why = tail(values[:150], 0)
    assert set(found) == {"latency_p50", "latency_p99"}
    assert why == {"latency_p999": "a run has 150 requests, but 99.9% needs 1000"}


def test_patterns():
    hosts = [Host(f"h{number}", "", None) for number in (1, 2, 3)]
    named = {
        pattern: [(client.name, server.name) for client, server in pairs(pattern, hosts)]
        for pattern in ("one-to-one", "many-to-one", "many-to-many")
    }
    assert named["one-to-one"] == [("h1", "h2")]
    assert named["many-to-one"] == [("h1", "h3"), ("h2", "h3")]
    assert len(set(named["many-to-many"])) == 6


class Waiting:
    """An agent whose requests end when they are cancelled, and one of which fails."""

    def __init__(self, fails=False):
        self.fails, self.cancelled, self.asked = fails, threading.Event(), []

    def begin(self, method, params=None, on_progress=None):
        self.asked.append(method)
        return Answered({}, AgentError(-32007, "gone", {})) if self.fails else self

    def cancel(self):
        self.cancelled.set()

    def result(self, timeout_seconds=None):
        assert self.cancelled.wait(PATIENCE_SECONDS)
        raise AgentError(-32005, "cancelled", {})


def test_when_one_host_fails_the_others_are_cancelled_and_put_in_order():
    agents = [Waiting(), Waiting(fails=True), Waiting()]
    ready = threading.Barrier(3)

    def task(host):
        ready.wait(PATIENCE_SECONDS)
        try:
            host.agent.request("rr.run")
        finally:
            host.agent.begin("process.kill")

    with pytest.raises(AgentError, match="gone"):
        side_by_side([(Host(f"h{index}", "", agent), task) for index, agent in enumerate(agents)])
    assert all(agent.asked[-1] == "process.kill" for agent in agents)
    # Whoever had begun was cancelled; whoever came later did not begin.
    assert all(agent.cancelled.is_set() or agent.fails or agent.asked == ["process.kill"] for agent in agents)


def test_results_come_in_the_order_of_the_tasks():
    done = threading.Event()

    def late(_host):
        assert done.wait(PATIENCE_SECONDS)
        return "late"

    def early(_host):
        done.set()
        return "early"

    host = Host("h1", "", Waiting())
    assert side_by_side([(host, late), (host, early)]) == ["late", "early"]


GOOD_IPERF3 = {
    "end": {
        "streams": [{"receiver": {"bits_per_second": 5e8}}, {"receiver": {"bits_per_second": 4e8}}],
        "sum_sent": {"retransmits": 3},
        "sum_received": {"bytes": 112_500_000, "seconds": 1.0},
        "sender_tcp_congestion": "cubic",
        "receiver_tcp_congestion": "cubic",
    }
}


def test_iperf3_is_understood():
    found = iperf3.parse(json.dumps(GOOD_IPERF3))
    assert (found["bytes"], found["seconds"], found["retransmits"]) == (112_500_000, 1.0, 3)
    assert found["flow_bits_per_second"] == [5e8, 4e8]


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*GOOD_IPERF3["end"], "end", "x"]), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(JSON | st.text(max_size=30))
def test_anything_else_of_iperf3_is_named(value):
    text = value if isinstance(value, str) else json.dumps(value)
    with pytest.raises(ProgramFailure, match="iperf3"):
        iperf3.parse(text)


@pytest.mark.parametrize("key", GOOD_IPERF3["end"])
def test_what_iperf3_leaves_out_is_named(key):
    end = {name: value for name, value in GOOD_IPERF3["end"].items() if name != key}
    with pytest.raises(ProgramFailure, match=f"{key}: found null, expected"):
        iperf3.parse(json.dumps({"end": end}))


def line(**change):
    good = {"exitcode": 0, "errormsg": None, "size_download": 10, "time_connect": 0.001, "time_total": 0.002}
    return json.dumps(good | change)


def test_curl_is_understood():
    first, second = curl.parse("\n".join([line(size_download=1), line()]), 10, 1)
    assert (first["bytes"], second) == (1, {"bytes": 10, "connected_seconds": 0.001, "total_seconds": 0.002})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"exitcode": 18, "errormsg": "closed"}, r"transfer 1: found exit code 18 \(closed\), expected 0"),
        ({"size_download": 9}, "transfer 1: found 9 bytes, expected 10"),
        ({"time_total": "1"}, "time_total: found '1', expected a number"),
        ({"time_total": 0.0005}, "found an end before its connection"),
    ],
)
def test_what_curl_says_wrong_is_named(change, message):
    with pytest.raises(ProgramFailure, match=message):
        curl.parse("\n".join([line(size_download=1), line(**change)]), 10, 1)


@given(st.text(max_size=40), st.integers(0, 3))
def test_any_text_of_curl_is_transfers_or_a_failure(text, count):
    with pytest.raises(ProgramFailure, match="curl"):
        curl.parse(text, 10, count)


@given(
    st.floats(0, 1e7),
    st.floats(-0.4, 0.4),
    st.lists(st.floats(0.001, 800), min_size=1, max_size=5),
    st.integers(0, 86_399),
)
def test_a_log_of_curl_says_when_transfers_ended(first, error, gaps, offset):
    """Also over midnight; to the microsecond that is printed, whatever curl has added in whole seconds."""
    ends, lines = [first], ["< 220 (vsFTPd 3.0.3)\n"]
    for gap in gaps:
        ends.append(ends[-1] + gap)
    for end in ends:
        micros = round((end + offset) * 1e6) % 86_400_000_000
        minutes, rest = divmod(micros, 60_000_000)
        lines.append(f"{minutes // 60:02}:{minutes % 60:02}:{rest / 1e6:09.6f} < 226 Transfer complete.\n")
    assert curl.completions("".join(lines), first + error, len(ends)) == pytest.approx(ends, abs=1e-4)
    with pytest.raises(ProgramFailure, match=f"found {len(ends)} confirmed transfers"):
        curl.completions("".join(lines), first, len(ends) + 1)


@given(st.text(max_size=40))
def test_any_text_has_a_stamp_or_is_a_failure(text):
    assert taken_stamp("x", "1800000000.250000000\nrest") == (1_800_000_000.25, "rest")
    with pytest.raises(ProgramFailure, match="expected the time of its start"):
        taken_stamp("x", f"x{text}")


def test_a_missing_program_is_one_line_before_anything_is_built(tmp_path, monkeypatch):
    text = STUDY.replace("kind: fake", "kind: rack").replace("stream: {size: 10 MB}", "ftp: {size: 1 MB}")
    study = study_file.parse(text, "x")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "curl").write_text("#!/bin/sh\n")
    (tmp_path / "bin" / "curl").chmod(0o755)
    missing = planning.missing_programs(study, str(tmp_path / "bin"))
    monkeypatch.setattr(refusals, "missing_programs", lambda _: missing)
    with pytest.raises(MissingRequirement) as error:
        commands.run_study(study, tmp_path / "out", False, lambda _: None, lambda _: None)
    assert str(error.value) == (
        "missing vsftpd (needed for workload ftp): found no such program; apt-get install vsftpd"
    )
    assert error.value.exit_code == 2
    assert not (tmp_path / "out").exists()


def test_only_roots_own_folders_are_searched(monkeypatch):
    """sudo starts the agent of any other user, and does not pass on their PATH."""
    monkeypatch.setenv("PATH", "/opt/of-mine/bin")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert planning.searched() == f"/opt/of-mine/bin:{PLACES}"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert planning.searched() == PLACES


def test_a_metric_that_nobody_has_is_named_with_the_reason(execute, tmp_path):
    text = STUDY.replace("stream: {size: 10 MB}", "rr: {rate: 100}").replace(
        "{goodput: 1 %, completion_time: 2 %}", "{latency_p50: 1 %, latency_p999: 2 %, fairness: 1 %}"
    )
    execute(study_file.parse(text, "x"))
    found = summarise(read(tmp_path / "out"))
    assert {each["metric"] for each in found["verdicts"]} == {"latency_p50"}
    assert found["not_measured"] == [
        {"metric": "fairness", "why": "no workload of this study measures it"},
        {"metric": "latency_p999", "why": "a run has 100 requests, but 99.9% needs 1000"},
    ]


ADDRESSES = {"h1": "10.77.0.1", "h2": "fd77::2", "h1.2": "10.77.1.1"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{h2}", "fd77::2"),
        ("ftp://[{h2}]/x?from={h1}", "ftp://[fd77::2]/x?from=10.77.0.1"),
        ("{h1.2}:80", "10.77.1.1:80"),
        ("no host", "no host"),
        ("", ""),
        ("{{h2}} is {h2}", "{h2} is fd77::2"),
        ("awk '{ print $1 }' {} {", "awk '{ print $1 }' {} {"),
    ],
)
def test_names_of_hosts_become_their_addresses(text, expected):
    assert substitute(text, ADDRESSES) == expected


def test_an_unknown_host_is_one_line_with_the_known_ones():
    with pytest.raises(QuantityError) as error:
        substitute("-c {h3} -t {h1}", ADDRESSES)
    assert str(error.value) == 'found "{h3}", expected one of {h1}, {h2}, {h1.2}, or {{h3}} for the word itself'
