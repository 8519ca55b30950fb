"""Real iperf3, vsftpd and curl, as recorded on the rack: the figures by closed formulas, and every way to spoil them.

The expected figures are worked out from what the programs printed, without the code under test.
"""

from __future__ import annotations

import base64
import itertools
import json
import re
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from helpers.recorded import NAMES, Recorded, Replay, Spoil, differences, load
from helpers.schemas import conforms
from helpers.support import PIPE_SCHEMA

from framegauge.results.journal import Run, read
from framegauge.summary.document import summarise
from framegauge.testbeds.base import Json

IPERF3 = [name for name in NAMES if name.startswith("iperf3")]
FTP = [name for name in NAMES if name.startswith("ftp")]
MEASURED = {
    "iperf3-one-to-one": {"goodput"},
    "iperf3-nagle-off": {"goodput"},
    "iperf3-reverse": {"goodput"},
    "iperf3-many-to-one": {"goodput", "fairness"},
    "ftp-one-to-one": {"goodput", "completion_time"},
    "ftp-ipv6": {"goodput", "completion_time"},
    "ftp-many-to-one": {"goodput", "completion_time", "fairness"},
}
COSTS = {"sender_cpu_cost", "receiver_cpu_cost"}  # of every workload


def replayed(name: str, folder: Path, spoil: Spoil | None = None) -> list[tuple[Run, Recorded, Json]]:
    """Each run of a replay with what was recorded, and the record that is on disk now."""
    recording = load(name)
    runs = recording.replay(folder / "out", spoil)
    found = []
    for run in runs:
        record = json.loads((folder / "out" / "runs" / str(run.number) / "record.json").read_text())
        (of,) = [each for each in recording.runs if each.record["conditions"] == record["conditions"]]
        found.append((run, of, record))
    return found


def jain(values: list[float]) -> float:
    return sum(values) ** 2 / len(values) / sum(value**2 for value in values)


@pytest.mark.parametrize("name", NAMES)
def test_an_honest_run_passes_every_check_and_leaves_the_record_it_left(name: str, tmp_path: Path) -> None:
    found = replayed(name, tmp_path)
    assert len(found) == 2
    for run, of, record in found:
        assert run.excluded == []
        assert record == of.record
        assert set(run.metrics) == MEASURED[name] | COSTS
        assert all(value > 0 for value in run.metrics.values())
        assert run.metrics.get("fairness", 1) <= 1


@pytest.mark.parametrize("name", IPERF3)
def test_goodput_of_iperf3_is_bytes_over_the_time_of_all_clients(name: str, tmp_path: Path) -> None:
    for run, of, record in replayed(name, tmp_path):
        begins, ends, amount, flows, resent = [], [], 0, list[float](), 0
        for host, argv, text, _ in of.printed("iperf3"):
            if "-s" in argv:
                continue
            stamp, _, printed = text.partition("\n")
            end = json.loads(printed)["end"]
            begins.append(float(stamp))
            ends.append(float(stamp) + end["sum_received"]["seconds"])
            amount += end["sum_received"]["bytes"]
            flows += [each["receiver"]["bits_per_second"] for each in end["streams"]]
            resent += end["sum_sent"]["retransmits"]
            assert (host, argv[argv.index("-t") + 1]) in (("h1", "1"), ("h2", "1"))
            assert ("-R" in argv, "-N" in argv) == (name == "iperf3-reverse", name == "iperf3-nagle-off")
        assert len(flows) == (4 if name == "iperf3-many-to-one" else 1)
        assert run.metrics["goodput"] == pytest.approx(amount * 8 / (max(ends) - min(begins)), rel=1e-12)
        if len(flows) > 1:
            assert run.metrics["fairness"] == pytest.approx(jain(flows), rel=1e-12)
        work = record["workload"]
        assert (work["bytes"], work["retransmits"]) == (amount, resent)
        senders, receivers = (["h1", "h2"], ["h3"]) if name == "iperf3-many-to-one" else (["h1"], ["h2"])
        reverse = name == "iperf3-reverse"
        assert (work["senders"], work["receivers"]) == ((receivers, senders) if reverse else (senders, receivers))
        # The receiving hosts' interfaces have that much, and besides headers, and what was under way at the end.
        before, after = record["counters_before"], record["counters_after"]
        came = sum(
            after[host]["interface"]["rx_bytes"] - before[host]["interface"]["rx_bytes"] for host in work["receivers"]
        )
        assert amount < came < 1.2 * amount


CONFIRMED = re.compile(r"^(\d\d):(\d\d):(\d\d\.\d+) < 226 ", re.MULTILINE)


def fetched(of: Recorded) -> list[tuple[int, list[tuple[float, float, float]]]]:
    """By server: bytes, and of each file the time in all, and when its data connection stood, on curl's own clock."""
    found = []
    for _, argv, text, log in of.printed("curl"):
        assert "ftp://" in argv[-1]
        transfers = [json.loads(each) for each in text.splitlines()[1:]]
        clock = [int(hours) * 3600 + int(minutes) * 60 + float(rest) for hours, minutes, rest in CONFIRMED.findall(log)]
        assert clock == sorted(clock), "recorded over midnight"
        # The first file is the login's.
        files = [
            (each["time_total"], end - (each["time_total"] - each["time_connect"]), end)
            for each, end in zip(transfers[1:], clock[1:], strict=True)
        ]
        found.append((sum(each["size_download"] for each in transfers[1:]), files))
    return found


@pytest.mark.parametrize("name", FTP)
def test_goodput_of_ftp_is_bytes_over_the_time_with_data_connections(name: str, tmp_path: Path) -> None:
    for run, of, record in replayed(name, tmp_path):
        found = fetched(of)
        assert len(found) == (2 if name == "ftp-many-to-one" else 1)
        spans = [(begin, end) for _, files in found for _, begin, end in files]
        # Between two neighbouring moments a connection stood throughout, or none did.
        moments = sorted({moment for span in spans for moment in span})
        busy = sum(
            later - sooner
            for sooner, later in itertools.pairwise(moments)
            if any(begin <= sooner and later <= end for begin, end in spans)
        )
        amount = sum(size for size, _ in found)
        assert record["workload"]["bytes"] == amount == sum(record["workload"]["received_bytes"].values())
        # curl's log is to the microsecond.
        assert run.metrics["goodput"] == pytest.approx(amount * 8 / busy, rel=1e-4)
        times = [total for _, files in found for total, _, _ in files]
        assert run.metrics["completion_time"] == pytest.approx(statistics.median(times), rel=1e-12)
        if len(found) > 1:
            rates = [size / sum(end - begin for _, begin, end in files) for size, files in found]
            assert run.metrics["fairness"] == pytest.approx(jain(rates), rel=1e-6)
        assert (record["workload"]["senders"], record["workload"]["receivers"]) == (
            ["h2", "h3"] if name == "ftp-many-to-one" else ["h2"],
            ["h1"],
        )


def printing(program: str, change: Callable[[str], str]) -> Spoil:
    """Changes the standard output of a program where hosts have jumbo frames."""
    state: dict[str, Any] = {"is_jumbo": False, "processes": set()}

    def spoil(host: str | None, method: str, params: Json, result: Json) -> Json:
        if method == "rack.up":
            state["is_jumbo"], state["processes"] = any(each["mtu"] == 9000 for each in params["hosts"]), set()
        elif method == "process.spawn" and program in params["argv"] and "-s" not in params["argv"]:
            state["processes"].add((host, result["process"]))
        elif method == "process.output" and (host, params["process"]) in state["processes"]:
            data = base64.b64decode(result["data"])
            if state["is_jumbo"] and params["stream"] == "stdout":
                data = change(data.decode()).encode()
            return {"data": base64.b64encode(data).decode(), "size_bytes": len(data)}
        return result

    return spoil


def of_iperf3(change: Callable[[Json], Json]) -> Spoil:
    """Changes what iperf3 says in JSON."""

    def changed(text: str) -> str:
        stamp, _, printed = text.partition("\n")
        return f"{stamp}\n{json.dumps(change(json.loads(printed)))}\n"

    return printing("iperf3", changed)


def of_curl(index: int, **change: Any) -> Spoil:
    """Changes what curl says of one transfer."""

    def changed(text: str) -> str:
        stamp, *lines = text.splitlines()
        lines[index] = json.dumps(json.loads(lines[index]) | change)
        return "\n".join([stamp, *lines, ""])

    return printing("curl", changed)


def answering(host: str, method: str, change: Callable[[Json], Json]) -> Spoil:
    """Changes a host's answers to a method where hosts have jumbo frames."""
    state = {"is_jumbo": False}

    def spoil(name: str | None, asked: str, params: Json, result: Json) -> Json:
        if asked == "rack.up":
            state["is_jumbo"] = any(each["mtu"] == 9000 for each in params["hosts"])
        return change(result) if state["is_jumbo"] and (name, asked) == (host, method) else result

    return spoil


def ended(**change: Any) -> Callable[[Json], Json]:
    """The end of iperf3's report with other values."""
    return lambda told: {**told, "end": {**told["end"], **change}}


def faster(told: Json) -> Json:
    """A receiver that claims more than the link carries."""
    received = told["end"]["sum_received"]
    return ended(sum_received={**received, "bytes": int(1.2 * received["bytes"])})(told)


def reno(watched: Json) -> Json:
    """Sockets of another congestion control."""
    return {**watched, "sockets": [{**each, "congestion_control": ["reno"]} for each in watched["sockets"]]}


def unhurried(_host: str | None, method: str, _params: Json, result: Json) -> Json:
    """A machine with time left, whatever it had when the run was recorded: only such runs have a verdict."""
    if method != "measure.end":
        return result
    fabric = result["fabric"]
    return {
        **result,
        "cpus": [{**cpu, "idle_seconds": 0.05 * result["elapsed_seconds"]} for cpu in result["cpus"]],
        "held": [{**cpu, "seconds": 0.0, "longest_seconds": 0.0} for cpu in result["held"]],
        "fabric": {**fabric, "lateness": dict.fromkeys(fabric["lateness"], 0)},
    }


SPOILT: dict[str, tuple[str, Spoil, str]] = {
    "iperf3 that cannot connect": (
        "iperf3-one-to-one", of_iperf3(lambda _: {"start": {}, "end": {}, "error": "unable to connect to server"}),
        "error: iperf3: unable to connect to server",
    ),
    "one of several that cannot": (
        "iperf3-many-to-one", of_iperf3(lambda _: {"start": {}, "end": {}, "error": "unable to connect to server"}),
        "error: iperf3: unable to connect to server",
    ),
    "iperf3 that was cut off": (
        "iperf3-one-to-one", printing("iperf3", lambda text: text[:400]), "error: iperf3 -J: found '{",
    ),
    "iperf3 without a time": (
        "iperf3-one-to-one", printing("iperf3", lambda text: text.partition("\n")[2]),
        "error: iperf3: found '{",
    ),
    "iperf3 that says nothing": (
        "iperf3-one-to-one", printing("iperf3", lambda text: text.partition("\n")[0] + "\n"),
        "error: iperf3 on h1: ",
    ),
    "iperf3 without flows": (
        "iperf3-reverse", of_iperf3(ended(streams=[])), "error: iperf3 -J: found 0 streams in 1",
    ),
    "iperf3 with another congestion control": (
        "iperf3-one-to-one", of_iperf3(ended(sender_tcp_congestion="reno")),
        "proof: congestion control of live sockets on h1: requested cubic, found reno",
    ),
    "iperf3 that claims too much": (
        "iperf3-one-to-one", of_iperf3(faster), "conservation: goodput of h2 at MTU 9000",
    ),
    "curl that lost its connection": (
        "ftp-one-to-one", of_curl(-1, exitcode=18, errormsg="transfer closed with bytes remaining"),
        "error: curl: transfer 25: found exit code 18 (transfer closed with bytes remaining), expected 0",
    ),
    "curl with a short file": (
        "ftp-one-to-one", of_curl(2, size_download=999_999),
        "error: curl: transfer 2: found 999999 bytes, expected 1000000",
    ),
    "curl with a file too few": (
        "ftp-one-to-one", printing("curl", lambda text: text[: text.rstrip().rindex("\n") + 1]),
        "error: curl: found 25 transfers, expected 26",
    ),
    "one of several curls": (
        "ftp-many-to-one", of_curl(-1, exitcode=18, errormsg="closed"), "error: curl: transfer 2: found exit code 18 (closed)",
    ),
    "curl that cannot log in": (
        "ftp-one-to-one", printing("curl", lambda text: text.partition("\n")[0] + "\n"), "error: curl on h1: ",
    ),
    "vsftpd with another congestion control": (
        "ftp-one-to-one", answering("h2", "sockets.watched", reno),
        "proof: congestion control of live sockets on h2: requested cubic, found reno",
    ),
    "another MTU": (
        "ftp-one-to-one",
        answering("h2", "host.read", lambda read: {**read, "mtu": 8999}),
        "proof: MTU of h2",
    ),
    "a server that never listens": (
        "ftp-one-to-one",
        answering("h2", "process.ready", lambda _: {"ready": False, "seconds": 10.0, "ending": None}),
        "error: vsftpd on h2 was not ready",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", SPOILT)
def test_what_a_program_gets_wrong_discards_its_run_with_the_reason(what: str, tmp_path: Path) -> None:
    name, spoil, reason = SPOILT[what]
    found = replayed(name, tmp_path, spoil)
    assert [9000 in record["conditions"]["mtu"].values() for _, _, record in found].count(True) == 1
    for run, _, record in found:
        if 9000 in record["conditions"]["mtu"].values():
            assert any(line.startswith(reason) for line in run.excluded), run.excluded
        else:
            assert run.excluded == []


def test_what_cannot_be_proved_is_said_with_every_verdict(tmp_path: Path) -> None:
    runs = load("iperf3-nagle-off").replay(tmp_path / "out", unhurried, blocks=6)
    assert [run.excluded for run in runs] == [[]] * 12
    verdict = summarise(read(tmp_path / "out"))["verdicts"][0]
    assert any("not proved: Nagle: iperf3 was started with -N" in line for line in verdict["warnings"])


@pytest.mark.parametrize("name", NAMES)
def test_what_is_sent_to_the_agent_and_comes_back_fits_the_schema(name: str) -> None:
    """A replay asks what was asked when it was recorded, and nothing else."""
    defs, seen = PIPE_SCHEMA["$defs"], set()
    for run in load(name).runs:
        for each in run.said:
            conforms(each.params, {"$ref": f"#/$defs/{each.method}.params", "$defs": defs})
            conforms(each.result, {"$ref": f"#/$defs/{each.method}.result", "$defs": defs})
            seen.add(each.method)
    assert {"rack.up", "host.read", "measure.end", "wire.end", "spool.read"} <= seen
    assert {"process.spawn", "process.output", "process.wait", "process.kill"} <= seen
    if name in FTP:
        assert {"sockets.watched", "process.ready", "host.folder", "host.files", "host.clear"} <= seen


def test_a_replay_answers_nothing_that_was_not_asked() -> None:
    (run, _) = load("iperf3-one-to-one").runs
    replay = Replay([run])
    (up,) = run.answers("rack.up")
    assert replay.request("rack.up", up.params) == up.result
    with pytest.raises(AssertionError, match=r"process\.spawn of h1: not asked, or not so often, when"):
        replay.request("relay", {"host": "h1", "method": "process.spawn", "params": {"argv": ["iperf3", "-u"]}})
    with pytest.raises(AssertionError, match=r"rack\.up: not asked"):
        Replay([run]).request("rack.up", {**up.params, "family": 6})


def test_a_record_of_another_shape_is_told_from_the_recording() -> None:
    record = load("ftp-one-to-one").runs[0].record
    fresh = json.loads(json.dumps(record))
    assert differences(fresh, record) == []
    fresh["workload"]["fetched"][0]["calls"][0]["transfers"][-1]["speed"] = 1.5
    fresh["workload"]["bytes"] = str(fresh["workload"]["bytes"])
    del fresh["after"]
    fresh["wire"]["h1"]["syns"] = []  # of which nothing is known
    fresh["counters_before"]["h1"]["nstat"] = {"TcpNewCounter": 0}  # of another kernel
    found = differences(fresh, record)
    assert ".workload.fetched[].calls[].transfers[].speed: number only in what is fresh" in found
    assert ".workload.bytes: str only in what is fresh" in found
    assert ".workload.bytes: number only in what is recorded" in found
    rest = [line for line in found if not line.startswith((".workload.", ".after"))]
    assert rest == []
    assert ".after: object only in what is recorded" in found
