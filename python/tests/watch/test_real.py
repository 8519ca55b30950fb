"""The verb against a real Prometheus server whose past is made up: ten hosts, an hour before a switch and one after."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from helpers.monitoring import START, STEP, backfilled, prometheus

from framegauge.cli import main as cli
from framegauge.watch import document, model, run, sampling
from framegauge.watch.catalogue import METRICS, USUAL
from framegauge.watch.prometheus import BadQuery, Prometheus

pytestmark = pytest.mark.needs("prometheus")

STEPS, SWITCH = 600, 270  # of STEP seconds; the time around the hour before and after
HOSTS = tuple(f"{side}{number}" for side in "ab" for number in range(1, 6))
AT = datetime.fromtimestamp(START + SWITCH * STEP, UTC).isoformat()
FILE = f"""
prometheus: %s
change: {{at: "{AT}", hosts: [a1, a2, a3, a4, a5]}}
control: [b1, b2, b3, b4, b5]
"""


def counter(generator: np.random.Generator, rates: np.ndarray, first: float = 0.0) -> np.ndarray:
    """A counter of Poisson events at these rates per second."""
    return first + np.cumsum(generator.poisson(rates * STEP))


def past() -> dict[tuple[str, tuple[tuple[str, str], ...]], np.ndarray]:
    """What a server with node_exporters would have; the `bad_` metrics of switched hosts are worse after the switch."""
    generator = np.random.default_rng(34)
    day = 1 + 0.5 * np.sin(np.linspace(0, 3, STEPS))
    after = np.arange(STEPS) >= SWITCH
    found = {}
    for number, host in enumerate(HOSTS):
        instance = ("instance", f"{host}:9100")
        eth, lo = (("device", "eth0"), instance), (("device", "lo"), instance)
        load, switched = day * (1 + 0.1 * number), after & host.startswith("a")
        rest = {
            "node_netstat_Tcp_RetransSegs": 2.0 * load, "node_netstat_TcpExt_TCPTimeouts": 0.2 * load,
            "node_netstat_Icmp_InMsgs": 0.5 * load, "bad_resets_total": load * np.where(switched, 3.18, 1.0),
            "bad_drops_total": np.where(switched, 0.5, 0.0), "good_faults_total": load * np.where(switched, 0.4, 1.0),
        }  # fmt: skip
        found |= {(name, (instance,)): counter(generator, rate, 1e4) for name, rate in rest.items()}
        for direction in ("receive", "transmit"):
            # One packet in six where frames are six times as large.
            packets = counter(generator, 5000 * load / np.where(switched, 6, 1))
            found[f"node_network_{direction}_packets_total", eth] = packets
            found[f"node_network_{direction}_bytes_total", eth] = np.cumsum(1e6 * load * STEP)
            found[f"node_network_{direction}_drop_total", eth] = np.zeros(STEPS)
            found[f"node_network_{direction}_drop_total", lo] = np.arange(STEPS) * 1e3
            found[f"node_network_{direction}_errs_total", eth] = np.zeros(STEPS)
        cpu = np.cumsum(0.3 * load * STEP * generator.normal(1, 0.05, STEPS) * np.where(switched, 0.7, 1.0))
        found["node_cpu_seconds_total", (("cpu", "0"), instance, ("mode", "softirq"))] = cpu
        found["latency_seconds", (instance,)] = 0.02 * load * generator.lognormal(0, 0.1, STEPS)
        found["bad_latency_seconds", (instance,)] = found["latency_seconds", (instance,)] * np.where(switched, 1.4, 1.0)
        gone = counter(generator, load)
        # One host restarts its exporter, and its counter begins anew.
        found["restarted_total", (instance,)] = (
            np.where(np.arange(STEPS) < 400, gone, gone - gone[399]) if host == "a2" else gone
        )
        found["silent_total", (instance,)] = np.where(switched & (host == "a3"), np.nan, gone)
    return found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with prometheus(data=backfilled(tmp_path_factory.mktemp("past"), past())) as address:
        yield address


def watched(server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], metrics: str = "") -> tuple[int, dict]:
    """The exit code, and the document by metric, which is as its schema says."""
    (tmp_path / "watch.yaml").write_text(FILE % server + metrics)
    capsys.readouterr()
    code = cli.main(["watch", str(tmp_path / "watch.yaml"), "--json"])
    out, err = capsys.readouterr()
    assert out, err
    found = json.loads(out)
    jsonschema.validate(found, document.json_schema(), format_checker=jsonschema.FormatChecker())
    return code, found | {"by": {each["metric"]: each for each in found["metrics"]}}


def of(name: str, kind: str, better: str = "lower", margin: str = "20 %", more: str = "") -> str:
    query = f"{name}{{$hosts}}"
    return f"metrics: {{m: {{query: '{query}', kind: {kind}, better: {better}, margin: {margin}{more}}}}}\n"


def test_a_switch_that_does_good_passes_with_the_usual_metrics(server, tmp_path, capsys):
    code, found = watched(server, tmp_path, capsys)
    verdicts = {name: each["verdict"] for name, each in found["by"].items()}
    assert list(verdicts) == list(USUAL)
    assert code == 0, found["answer"]
    assert found["gate"] == "go_on"
    assert verdicts["softirq_cpu"] == verdicts["received_packets"] == verdicts["bytes_per_packet"] == "better"
    assert verdicts["drops"] == "no_practical_difference"  # those of lo are none
    size = found["by"]["bytes_per_packet"]
    assert size["effect"]["estimate"] == pytest.approx(6, rel=0.05)
    assert size["switched"]["before"] == pytest.approx(200, rel=0.05)
    assert [each["with_the_switch"] for each in size["changes"]] == [True]
    assert all(
        share == 1 for each in found["metrics"] for shares in each["coverage"].values() for share in shares.values()
    )


@pytest.mark.parametrize(
    ("metrics", "verdict", "code"),
    [
        (of("bad_resets_total", "count"), "worse", 1),
        (of("bad_drops_total", "count"), "worse", 1),
        (of("bad_latency_seconds", "gauge"), "worse", 1),
        (of("bad_resets_total", "rate"), "worse", 1),
        (of("good_faults_total", "count"), "better", 0),
        (of("good_faults_total", "count", "higher"), "worse", 1),
        (of("restarted_total", "count"), "no_practical_difference", 0),
        (of("silent_total", "count"), "not_judged", 2),
        (of("no_such_metric", "gauge"), "not_judged", 2),
        (of("bad_drops_total", "count", more=", decides: false"), "worse", 2),
    ],
)
def test_the_exit_code_is_the_answer(server, tmp_path, capsys, metrics, verdict, code):
    exit_code, found = watched(server, tmp_path, capsys, metrics)
    assert (found["by"]["m"]["verdict"], exit_code) == (verdict, code), found["by"]["m"]["why"]


def test_a_counter_that_begins_anew_loses_nothing(server, tmp_path, capsys):
    _, found = watched(server, tmp_path, capsys, of("restarted_total", "count"))
    truth = sum(1 + 0.1 * number for number in range(5)) * (1 + 0.5 * np.sin(np.linspace(0, 3, STEPS)))
    inside = truth[SWITCH + 9 : SWITCH + 9 + 240].sum() * STEP
    assert found["by"]["m"]["switched"]["events_after"] == pytest.approx(inside, rel=0.03)


def test_a_host_that_stops_answering_is_named(server, tmp_path, capsys):
    _, found = watched(server, tmp_path, capsys, of("silent_total", "count"))
    assert found["by"]["m"]["why"] == (
        "Not judged: a3 has values for 5% of the time after the switch, expected 90%."
    )  # five minutes is how long Prometheus repeats a last value


def test_a_query_that_the_server_refuses_has_its_words(server, tmp_path, capsys):
    _, found = watched(
        server, tmp_path, capsys, "metrics: {m: {query: 'rate(x', kind: gauge, better: lower, margin: 5 %}}\n"
    )
    assert "found HTTP 400: 1:7: parse error" in found["by"]["m"]["why"]


def test_the_server_takes_every_query_of_the_catalogue(server, tmp_path):
    (tmp_path / "watch.yaml").write_text(FILE % server + f"metrics: [{', '.join(METRICS)}]\n")
    watch = model.load(tmp_path / "watch.yaml")
    asked = Prometheus(watch.prometheus)
    times = [START + STEP * n for n in range(4)]
    answers = {name: asked.ask(sampling.query(watch, each), times) for name, each in watch.metrics.items()}
    assert {name for name, found in answers.items() if found} == set(USUAL)
    with pytest.raises(BadQuery, match="parse error"):
        asked.ask("rate(", times)


def test_the_same_hosts_of_an_earlier_time_are_asked_for(server, tmp_path):
    file = FILE.replace("control: [b1, b2, b3, b4, b5]", "earlier: 40 min\nbefore: 10 min\nafter: 10 min") % server
    found = run.watch(model.parse(file + of("bad_drops_total", "count"), "watch.yaml"), 2e9)
    assert found.gate == run.STOP
    assert found.metrics[0].judged.own.control == (0, 0)
    calm = run.watch(model.parse(file + of("restarted_total", "rate"), "watch.yaml"), 2e9)
    assert calm.metrics[0].sampled.coverage["a1 40 min earlier"] == (1, 1)


def test_a_look_before_the_end_passes_nothing(server, tmp_path, capsys):
    """As of a switch whose time after it is not over: the same data, a longer time asked."""
    text = FILE % server
    (tmp_path / "watch.yaml").write_text(text + of("latency_seconds", "gauge"))
    watch = model.load(tmp_path / "watch.yaml")
    at = watch.change.at.timestamp()
    early, end = (run.watch(watch, at + seconds) for seconds in (1500, 3800))
    assert (early.gate, end.gate) == (run.CANNOT_SAY, run.GO_ON)
    assert early.metrics[0].judged.why.startswith(
        "Undecided: 38% of the time after the switch is over; so far: no practical"
    )
    bad = model.parse(text + of("bad_latency_seconds", "gauge"), "watch.yaml")
    assert run.watch(bad, at + 1500).gate == run.STOP
    assert run.watch(bad, at + 100).metrics[0].judged.why.startswith("Not judged: 0 of 240 steps")


def test_a_password_opens_the_server_and_is_nowhere_else(tmp_path, capsys):
    """Prometheus with basic authentication: the user `monitor`, whose password is `s3cret-word`."""
    hashed = "$2b$04$zoGi0Fg/uWWaXp8FwwUp1euHbVDPPW6.nu0wkbz/mNDw9XBlJWkhe"
    (tmp_path / "web.yml").write_text(f"basic_auth_users: {{monitor: '{hashed}'}}\n")
    (tmp_path / "password").write_text("s3cret-word\n")
    file, page = tmp_path / "watch.yaml", tmp_path / "watch.html"
    with prometheus(words=[f"--web.config.file={tmp_path}/web.yml"]) as address:
        file.write_text(FILE % address)
        assert cli.main(["watch", str(file)]) == 2
        assert "found HTTP 401, expected a token or a password that it accepts" in capsys.readouterr().err
        file.write_text(FILE % f"{{url: {address!r}, username: monitor, password_file: password}}")
        assert cli.main(["watch", str(file), "--json", "--html", str(page)]) == 2
    out, err = capsys.readouterr()
    assert "found no series of a1 and 9 more" in out
    assert "s3cret-word" not in out + err + page.read_text()
