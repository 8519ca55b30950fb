"""Other tools' files: what is read from real ones, and that any bytes give runs or one clear line."""

from __future__ import annotations

import bz2
import gzip
import json
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from helpers.damage import damaged
from helpers.other_tools import flent_bytes, flent_text, iperf3_text
from helpers.support import ROOT
from hypothesis import given, strategies as st

from framegauge.compare.formats import flent, iperf3
from framegauge.compare.formats.samples import LARGEST_VALUE, CutOff, MovedNothing, Unreadable, one_line
from framegauge.foreign import MOST_BYTES, MOST_VALUES

REAL = ROOT / "python/tests/documents/iperf3"


def real(name):
    return iperf3.parse(name, (REAL / f"{name}.json").read_bytes())


def test_a_real_file_of_iperf3():
    (run,) = real("upload")
    text = json.loads((REAL / "upload.json").read_text())
    received, shares = text["end"]["sum_received"], text["end"]["cpu_utilization_percent"]
    assert run.conditions == {
        "direction": "upload", "flows": 1, "bidir": False, "duration_seconds": 1, "target_bits_per_second": 50_000_000,
    }  # fmt: skip
    gigabytes = received["bytes"] / 1e9
    assert run.metrics == {
        "goodput": received["bits_per_second"],
        "retransmits": 0.0,
        "local_cpu_cost": pytest.approx(shares["host_total"] / 100 * received["seconds"] / gigabytes),
        "remote_cpu_cost": pytest.approx(shares["remote_total"] / 100 * received["seconds"] / gigabytes),
    }
    assert run.began == datetime.fromtimestamp(text["start"]["timestamp"]["timesecs"], UTC)
    assert run.facts["congestion control of the sender"] == "bbr"


def test_directions_of_iperf3_are_the_clients():
    assert [run.conditions["direction"] for run in real("reverse")] == ["download"]
    assert [run.conditions["flows"] for run in real("parallel")] == [3]
    both = {run.conditions["direction"]: run.metrics for run in real("bidir")}
    end = json.loads((REAL / "bidir.json").read_text())["end"]
    assert both["upload"]["goodput"] == end["sum_received"]["bits_per_second"]
    assert both["download"]["goodput"] == end["sum_received_bidir_reverse"]["bits_per_second"]
    assert set(both["both ways"]) == {"local_cpu_cost", "remote_cpu_cost"}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ((REAL / "refused.json").read_bytes(), "iperf3 ended with an error: unable to connect to server"),
        ((REAL / "udp.json").read_bytes().replace(b'"UDP"', b'"SCTP"'), "found protocol SCTP, expected TCP or UDP"),
        (b"", "found an empty file"),
        (b"\xff\xfe", "found no JSON"),
        (b"[]", "found no JSON object"),
        (b"{}", "found no object start, expected the output of iperf3 -J"),
        (b"{}{}", "more than one JSON document"),
        (b"[" * 100_000, "found no JSON"),
        (b'{"a": ' + b"1" * 5000 + b"}", "found no JSON"),
        (json.dumps({**iperf3_text(1e9), "error": "a\nb\x1b[31m\ud800"}).encode(), "with an error: a b"),
    ],
)
def test_what_is_no_run_of_iperf3_says_so_in_one_line(data, message):
    with pytest.raises(Unreadable, match=message) as error:
        iperf3.parse("x", data)
    assert "\n" not in str(error.value)
    str(error.value).encode()


def failed(**more):
    """A file of iperf3 with an error: whether the run moved nothing, and its conditions."""
    text = {**iperf3_text(0.0), **more}
    with pytest.raises(Unreadable) as error:
        iperf3.parse("x", json.dumps(text).encode())
    return error.value.moved_nothing, getattr(error.value, "conditions", {}).get("direction")


def test_a_run_that_moved_nothing_is_one_and_tells_its_conditions():
    (run,) = iperf3.parse("x", json.dumps(iperf3_text(0.0)).encode())
    assert (run.moved_nothing, run.excluded) == (
        True,
        ["end.sum_received.bits_per_second: found 0.0, expected a rate above 0"],
    )
    assert {key: run.conditions[key] for key in ("direction", "flows", "duration_seconds")} == {
        "direction": "upload", "flows": 1, "duration_seconds": 10,
    }  # fmt: skip
    assert failed(error="interrupt - the client has terminated") == (True, "upload")
    assert failed(error="unable to send control message - port may not be available") == (True, "upload")
    # Nothing tells what was asked for where the server was not reached.
    assert failed(error="unable to connect to server: Connection timed out", start={}, end={}) == (True, None)


def test_a_busy_server_and_a_wrong_option_are_none_of_the_networks():
    assert failed(error="the server is busy running a test. try again later", start={}, end={}) == (False, None)
    assert failed(error="unable to set TCP/SCTP MSS", start={}, end={}) == (False, None)
    # One that was ended half-way has moved something.
    assert failed(error="interrupt - the client has terminated", end=iperf3_text(1e6)["end"]) == (False, None)


def test_a_direction_of_flent_without_any_value_moved_nothing():
    def upload(values):
        text = flent_text(values, [10.0])
        return {run.conditions.get("direction"): run for run in flent.parse("x", flent_bytes(text))}

    silent = upload([None, 0.0, None])
    assert silent["upload"].moved_nothing
    assert silent["upload"].excluded == ["upload: found no value above 0 in any stream of TCP, expected some"]
    assert silent[None].metrics == {"latency_p50": pytest.approx(0.01)}
    assert not upload([None, 0.1])["upload"].moved_nothing


@pytest.mark.parametrize("packed", [bytes, gzip.compress, bz2.compress])
def test_files_of_flent_are_read_however_they_are_packed(packed):
    (goodput,) = flent.parse("x", packed(json.dumps(flent_text([900.0])).encode()))
    assert goodput.metrics == {"goodput": pytest.approx(900e6)}


def test_a_stream_without_half_of_its_values_is_told():
    (whole,) = flent.parse("x", flent_bytes(flent_text([None, 900.0, 910.0])))
    (half,) = flent.parse("x", flent_bytes(flent_text([None, 900.0, None, 910.0])))
    assert whole.notes == []
    assert half.notes == ["TCP upload has values at 2 of 4 points in time: the mean is of these"]


def of_flent(points, streams):
    """A file of 60 s with a point each 0.2 s; a stream has values where it is told to."""
    results = {
        name: [100.0 if place in places else None for place in range(points)] for name, places in streams.items()
    }
    results["Ping (ms) ICMP"] = [0.3] * points
    metadata = {"NAME": "tcp_nup", "LENGTH": 60}
    return json.dumps(
        {"version": 4, "x_values": [place * 0.2 for place in range(points)], "results": results, "metadata": metadata}
    ).encode()


@pytest.mark.parametrize(
    ("streams", "said"),
    [
        ({"TCP upload": range(25, 325)}, ""),
        ({"TCP upload": range(25, 75)}, "data moved in 9.8 s of 60 s"),
        # One after the other.
        ({"TCP upload::1": range(25, 125), "TCP upload::2": range(125, 325), "TCP upload sum": range(25, 325)}, ""),
        (
            {"TCP upload::1": range(25, 325), "TCP upload::2": range(0), "TCP upload sum": range(25, 325)},
            "1 of 2 streams moved nothing",
        ),
    ],
)
def test_a_transfer_of_flent_that_ends_early_or_a_silent_stream_has_stalled(streams, said):
    assert [each.stalled for each in flent.parse("a.flent", of_flent(350, streams)) if each.metrics] == [said, ""]


def test_pings_that_nobody_answered_are_no_missing_metric():
    data = json.loads(of_flent(350, {"TCP upload": range(25, 325)}))
    data["results"]["Ping (ms) ICMP"] = [None] * 350
    *_, lost = flent.parse("a.flent", json.dumps(data).encode())
    assert (lost.stalled, lost.excluded, lost.lost) == (flent.UNANSWERED, [flent.UNANSWERED], False)


@pytest.mark.parametrize(("streams", "said"), [([5, 7], ""), ([0, 12, 0], "2 of 3 streams moved nothing"), ([0], "")])
def test_a_silent_stream_of_iperf3_beside_others_has_stalled(streams, said):
    document = iperf3_text(1e9)
    document["end"]["streams"] = [{"receiver": {"bytes": each}} for each in streams]
    (sample,) = iperf3.parse("a.json", json.dumps(document).encode())
    assert sample.stalled == said


def test_a_kind_of_run_that_is_not_compared_is_no_lost_run():
    other = (REAL / "udp.json").read_bytes().replace(b'"UDP"', b'"SCTP"')
    for data, lost in ((other, False), ((REAL / "refused.json").read_bytes(), True)):
        with pytest.raises(Unreadable) as error:
            iperf3.parse("x", data)
        assert error.value.lost is lost


def udp(received: dict | None, total: dict):
    """What `iperf3 -u -J` says, as far as anybody reads it."""
    document = iperf3_text(1e9)
    document["start"]["test_start"] |= {"protocol": "UDP", "blksize": 8948}
    document["end"] = {"streams": [], "sum": total} | ({} if received is None else {"sum_received": received})
    return iperf3.parse("a.json", json.dumps(document).encode())


def test_events_of_iperf3_line_by_line_are_one_run():
    whole = iperf3_text(1e9)
    events = [("start", whole["start"]), *[("interval", {"sum": {}})] * 3, ("end", whole["end"])]
    lines = [json.dumps({"event": name, "data": data}).encode() for name, data in events]
    (run,) = iperf3.parse("a.json", b"\n".join(lines) + b"\n")
    assert run.metrics["goodput"] == 1e9
    with pytest.raises(CutOff):
        iperf3.parse("a.json", b"\n".join(lines[:-1]))
    failed = json.dumps({"event": "error", "data": "unable to receive results"}).encode()
    with pytest.raises(MovedNothing, match="unable to receive results"):
        iperf3.parse("a.json", b"\n".join([lines[0], failed]))


def test_a_real_file_of_udp():
    (run,) = real("udp")
    assert run.metrics["goodput"] == pytest.approx(20.18e6, rel=1e-3)
    assert (run.metrics["delivered"], run.metrics["jitter"]) == (1, pytest.approx(13.5e-6, rel=1e-2))
    assert (run.conditions["protocol"], run.facts["bytes of a datagram"]) == ("UDP", "32768")


def test_of_udp_what_the_receiver_saw_counts_and_not_what_was_sent():
    seen = {
        "bits_per_second": 3e8,
        "bytes": 375e6,
        "seconds": 10,
        "jitter_ms": 0.02,
        "lost_packets": 70,
        "packets": 100,
    }
    sent = {**seen, "bits_per_second": 1e9}
    (run,) = udp(seen, sent)
    assert run.metrics == {"goodput": 3e8, "delivered": pytest.approx(0.3), "jitter": pytest.approx(20e-6)}
    # Before 3.10 the rate is the sender's; a receiver that was not heard has seen no jitter.
    (run,) = udp(None, sent)
    assert run.metrics == {"delivered": pytest.approx(0.3), "jitter": pytest.approx(20e-6)}
    with pytest.raises(Unreadable, match="nothing of what the receiver has seen") as error:
        udp(None, {**sent, "jitter_ms": 0, "lost_packets": 0})
    assert not error.value.lost
    (run,) = udp({**seen, "bits_per_second": 0, "bytes": 0, "jitter_ms": 0, "lost_packets": 0, "packets": 0}, sent)
    assert run.moved_nothing
    (run,) = udp(None, {**sent, "jitter_ms": 0, "lost_packets": 100})
    assert run.moved_nothing


def test_a_file_of_flent():
    text = flent_text([None, 900.0, 910.0, None, 920.0], [10.0, None, 30.0, 20.0, 20.0])
    goodput, latency = flent.parse("x", flent_bytes(text))
    assert goodput.metrics == {"goodput": pytest.approx(910e6)}
    assert goodput.conditions == {"direction": "upload", "test": "tcp_1up", "duration_seconds": 60, "upload_flows": 1}
    assert latency.metrics == {"latency_p50": pytest.approx(0.020)}
    assert "direction" not in latency.conditions
    assert goodput.began == datetime(2026, 11, 21, 10, tzinfo=UTC)


def series(**found):
    text = flent_text([1.0])
    text["results"] = {name.replace("_", " "): values for name, values in found.items()}
    return {run.conditions.get("direction"): run.metrics for run in flent.parse("x", flent_bytes(text))}


def test_totals_of_flent_by_direction():
    both = series(TCP_upload_BE=[1.0], TCP_upload_BK=[2.0], TCP_upload_avg=[1.5], TCP_upload_sum=[3.0],
                  TCP_download_sum=[7.0], TCP_totals=[10.0])  # fmt: skip
    assert both == {"upload": {"goodput": 3e6}, "download": {"goodput": 7e6}}
    assert series(TCP_cubic=[1.0], TCP_reno=[2.0], TCP_totals=[3.0]) == {"both ways": {"goodput": 3e6}}
    # Two streams without a total are not one stream, nor is a stream's state.
    with pytest.raises(Unreadable, match="neither a total of TCP nor a single stream"):
        series(TCP_upload_1=[1.0], TCP_upload_2=[1.0])


def test_pings_of_flent():
    text = flent_text([1.0], [5.0])
    text["results"] |= {"Ping (ms) UDP BE": [15.0], "Ping (ms) UDP BE::jitter": [900.0]}
    assert flent.parse("x", flent_bytes(text))[1].metrics == {"latency_p50": pytest.approx(0.010)}
    text["results"]["Ping (ms) avg"] = [7.0]
    assert flent.parse("x", flent_bytes(text))[1].metrics == {"latency_p50": pytest.approx(0.007)}


def test_the_time_of_an_old_file_of_flent_is_that_of_an_unknown_place():
    text = flent_text([1.0])
    text["metadata"]["TIME"] = "2015-07-13T21:38:31.530151"
    assert flent.parse("x", flent_bytes(text))[0].began is None


WHOLE = flent_bytes(flent_text([1.0] * 300))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "found an empty file"),
        (b"{}", "found no results or no metadata"),
        (b"neither", "found no gzip file"),
        (WHOLE[:-30], "cut off, expected a whole one"),
        (WHOLE[:40] + b"xxxx" + WHOLE[44:], "found no gzip file|cut off|found no JSON"),
        (gzip.compress(b"{}", mtime=0), "found no results or no metadata"),
        (flent_bytes({**flent_text([1.0]), "version": 9}), "found format 9 of flent, expected at most 4"),
        (bz2.compress(json.dumps(flent_text([1.0])).encode())[:-20], "found a bzip2 file that is cut off"),
    ],
)
def test_what_is_no_run_of_flent_says_so_in_one_line(data, message):
    with pytest.raises(Unreadable, match=message) as error:
        flent.parse("x", data)
    assert "\n" not in str(error.value)


def lists():
    return b'{"version":4,"results":[' + b"[]," * ((MOST_BYTES - 100) // 3) + b"[]]}"


def objects():
    """Just below the limit."""
    return b'{"start":[' + b'{"a":0.5},' * (MOST_VALUES // 2 - 10) + b"{}]}"


def blanks():
    return b"{}" + b" " * MOST_BYTES


def packed(data):
    return gzip.compress(data, 1)


COMMAND = """
import sys
from framegauge.cli.main import main
code = main(["compare", *sys.argv[1:]])
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(status["VmHWM"].split()[0], file=sys.stderr)
sys.exit(code)
"""


@pytest.mark.parametrize(
    ("parse", "data", "said"),
    [
        (flent.parse, lambda: packed(blanks()), f"found more than {MOST_BYTES} bytes unpacked"),
        (flent.parse, lambda: packed(lists()), f"found more than {MOST_VALUES} values"),
        (iperf3.parse, lists, f"found more than {MOST_VALUES} values"),
        (iperf3.parse, blanks, f"found {MOST_BYTES + 2} bytes, expected at most {MOST_BYTES}"),
        (iperf3.parse, objects, "found no object start"),
    ],
    ids=["blanks", "packed lists", "lists", "long", "objects"],
)
def test_what_would_take_too_much_memory_is_refused_in_one_line(parse, data, said):
    with pytest.raises(Unreadable, match=said) as error:
        parse("x", data())
    assert "\n" not in str(error.value)


@pytest.mark.thorough
def test_files_made_to_take_memory_take_little(tmp_path):
    """Peak memory of the command: 7 GB and 1.7 GB before there was a limit; 360 MB here, libraries included."""
    for side in ("a", "b"):
        (tmp_path / side).mkdir()
    (tmp_path / "a/lists.flent.gz").write_bytes(packed(lists()))
    (tmp_path / "a/blanks.flent.gz").write_bytes(packed(blanks()))
    (tmp_path / "b/lists.json").write_bytes(lists())
    (tmp_path / "b/objects.json").write_bytes(objects())
    (tmp_path / "b/long.json").write_bytes(blanks())
    command = [sys.executable, "-c", COMMAND, str(tmp_path / "a"), str(tmp_path / "b")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    said, peak = done.stderr.splitlines()
    assert said.startswith("framegauge: ")
    assert int(peak) * 1024 < 500e6, peak


def holds(parse, data):
    try:
        found = parse("x", data)
    except Unreadable as error:
        assert "\n" not in str(error)  # noqa: PT017
        assert str(error).encode()  # noqa: PT017
        return
    assert found
    for run in found:
        assert all(0 <= value <= LARGEST_VALUE for value in run.metrics.values())
        json.dumps([run.conditions, dict(run.facts), run.metrics], allow_nan=False).encode()
        assert all(text == one_line(text) for text in run.facts.values())


@given(st.binary(max_size=300))
def test_any_bytes_are_a_run_or_one_line(data):
    holds(iperf3.parse, data)
    holds(flent.parse, data)
    holds(flent.parse, gzip.compress(data))


@given(st.data())
def test_any_damage_to_a_file_is_a_run_or_one_line(data):
    holds(iperf3.parse, json.dumps(data.draw(damaged(iperf3_text(1e9)))).encode())
    both = json.loads((REAL / "bidir.json").read_text())
    holds(iperf3.parse, json.dumps(data.draw(damaged(both))).encode())
    holds(flent.parse, flent_bytes(data.draw(damaged(flent_text([None, 1.0], [2.0, 3.0])))))


@given(st.text(max_size=500))
def test_one_line_is_one_line_that_can_be_printed(text):
    found = one_line(text)
    assert found.isprintable()
    assert len(found) <= 200
    found.encode()
