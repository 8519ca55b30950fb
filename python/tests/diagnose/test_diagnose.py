"""`framegauge diagnose` on captures that are written by hand: what is found, what is refused, and how it is told."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jsonschema
import pytest
from helpers.captures import ACK, PSH, RST, SYN, pcap, segment, stalled

from framegauge.cli.main import main
from framegauge.diagnose import run as diagnosis
from framegauge.diagnose.kinds import KINDS, TABLE
from framegauge.diagnose.process import asked

pytestmark = pytest.mark.agent


def saved(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def test_a_stall_is_named_with_its_packets_and_its_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, "slow.pcap", pcap(stalled(wait=0.4)))
    assert main(["diagnose", str(path), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, diagnosis.schema())
    (finding,) = diagnosis.worth_fixing(document)
    assert finding["kind"] == "rto_stall"
    assert finding["lost_seconds"] == pytest.approx(0.4, abs=1e-6)
    assert finding["packets"] == [26, 27]
    (connection,) = document["connections"]
    assert (connection["client"], connection["server"]) == ("10.0.0.1:40000", "10.0.0.2:80")
    assert connection["resent_segments"] == [3, 0]
    assert connection["bytes"] == [14_000, 0]
    life = connection["end_seconds"] - connection["begin_seconds"]
    assert sum(connection["time"].values()) == pytest.approx(life)
    assert main(["diagnose", str(path)]) == 1
    told = capsys.readouterr().out
    assert "1. rto_stall, 400 ms lost, connection 1, 10.0.0.1:40000 to 10.0.0.2:80" in told
    assert "Packets: 26, 27" in told


def test_what_is_healthy_is_said_to_be_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, "fine.pcap", pcap(stalled()[:22]))
    assert main(["diagnose", str(path)]) == 0
    assert "Nothing worth fixing was found in 1 TCP connection." in capsys.readouterr().out


@pytest.mark.parametrize("wire_bytes", [1, 60, 65_000])
def test_lengths_on_the_wire_are_those_of_ip(tmp_path: Path, wire_bytes: int) -> None:
    """Tools that cut packets, or anonymise them, overwrite the length on the wire."""
    right, overwritten = (
        diagnosis.diagnose([saved(tmp_path, name, content)])
        for name, content in {
            "right.pcap": pcap(stalled(), 60), "overwritten.pcap": pcap(stalled(), 60, wire_bytes),
        }.items()
    )  # fmt: skip
    kinds = [each["kind"] for each in right["findings"]]
    assert overwritten["connections"] == right["connections"]
    assert [each["kind"] for each in overwritten["findings"]] == kinds
    assert {"rto_stall", "truncated"} <= set(kinds)


def test_different_mss_alone_are_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    client, server = "10.0.0.1:40000", "10.0.0.2:80"
    path = saved(tmp_path, "mss.pcap", pcap([
        (1.0, segment(client, server, SYN, 1, mss=1460)),
        (1.01, segment(server, client, SYN | ACK, 9, 2, mss=8960)),
        (1.02, segment(client, server, ACK, 2, 10)),
    ]))  # fmt: skip
    assert main(["diagnose", str(path)]) == 0
    told = capsys.readouterr().out
    assert "Nothing worth fixing was found in 1 TCP connection." in told
    assert "Note: mss_mismatch, connection 1" in told
    assert "The client announces an MSS of 1460, the server of 8960" in told


def test_several_files_are_numbered_through(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    refused = [
        (1.0, segment("10.0.0.3:1", "10.0.0.4:2", SYN, 1, mss=1460)),
        (1.01, segment("10.0.0.4:2", "10.0.0.3:1", RST | ACK, 0, 2)),
    ]
    first = saved(tmp_path, "a.pcap", pcap(stalled(wait=0.3)))
    second = saved(tmp_path, "b.pcap.gz", gzip.compress(pcap(refused)))
    assert main(["diagnose", str(first), str(second), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, diagnosis.schema())
    assert [each["capture"] for each in document["captures"]] == [1, 2]
    assert {(each["kind"], each["capture"], each["connection"]) for each in diagnosis.worth_fixing(document)} == {
        ("rto_stall", 1, 1), ("connection_refused", 2, 2),
    }  # fmt: skip
    assert main(["diagnose", str(first), str(second), "--json", "--only", "connection_refused"]) == 1
    (only,) = json.loads(capsys.readouterr().out)["findings"]
    assert only["kind"] == "connection_refused"


@pytest.mark.parametrize(
    ("program", "ending", "pack"),
    [
        ("xz", "xz", lzma.compress),
        ("xz", "lzma", partial(lzma.compress, format=lzma.FORMAT_ALONE)),
        ("bzip2", "bz2", bz2.compress),
    ],
)
def test_what_other_programs_pack_is_read_where_they_are(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    program: str,
    ending: str,
    pack: Callable[[bytes], bytes],
) -> None:
    path = saved(tmp_path, f"slow.pcap.{ending}", pack(pcap(stalled(wait=0.4))))
    if shutil.which(program):
        assert main(["diagnose", str(tmp_path)]) == 1
        assert "rto_stall" in capsys.readouterr().out
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["diagnose", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"framegauge: {path}: found a file packed by {program}, and no program {program} ")


def test_cut_packets_and_open_checksums_are_told_of_the_capture(tmp_path: Path) -> None:
    # None of the packets has a checksum; those with data were cut, so that it cannot be told of them.
    (truncated, offload) = sorted(
        (
            each
            for each in diagnosis.diagnose([saved(tmp_path, "slow.pcap", pcap(stalled()))])["findings"]
            if each["kind"] in ("truncated", "checksum_offload")
        ),
        key=lambda each: each["kind"] == "checksum_offload",
    )
    assert (truncated["count"], truncated["connection"]) == (17, None)
    assert "All headers are whole" in truncated["text"]
    assert offload["connection"] == 1


def test_what_is_not_read_is_named_by_number(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two frames of Profinet, one of ARP, and SCTP in IP."""
    ip = bytes((0x45, 0, 0, 32, 0, 0, 0, 0, 64, 132, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, *bytes(12)))
    frames = [bytes(12) + kind + bytes(40) for kind in (b"\x88\x92", b"\x88\x92", b"\x08\x06")]
    frames.append(bytes(12) + b"\x08\x00" + ip)
    packets = pcap([(float(number), frame) for number, frame in enumerate(frames, start=1)])
    path = saved(tmp_path, "other.pcap", packets[:20] + b"\x01\x00\x00\x00" + packets[24:])
    assert main(["diagnose", str(path)]) == 2
    told = capsys.readouterr().out
    assert "in 4 packets (3 other than IP: 0x8892, 0x0806, 1 of another protocol: 132)." in told
    assert main(["diagnose", str(path), "--json"]) == 2
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, diagnosis.schema())
    assert document["captures"][0]["unread"] == {"not_ip": {"2054": 1, "34962": 2}, "not_tcp": {"132": 1}}


@pytest.mark.parametrize(("count", "said"), [(1, "of the TCP connection"), (3, "of each of 3 TCP connections")])
def test_of_connections_with_one_packet_nothing_can_be_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], count: int, said: str
) -> None:
    """As of a scan, or of a capture that ended at once: whether anybody would have answered nobody knows."""
    packets = [(n * 0.01, segment(f"10.0.0.1:{40000 + n}", "10.0.0.2:80", SYN, 1000, mss=1460)) for n in range(count)]
    path = saved(tmp_path, "syns.pcap", pcap(packets))
    assert main(["diagnose", str(path)]) == 2
    assert capsys.readouterr().out.startswith(f"Cannot tell: {said} there is one packet.")


def test_of_packets_without_their_headers_nothing_can_be_judged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = saved(tmp_path, "headers.pcap", pcap(stalled(wait=0.4), kept=30))
    assert main(["diagnose", str(path)]) == 2
    told = capsys.readouterr().out
    assert told.startswith("Cannot tell: there is no TCP connection in 34 packets (34 cut in their headers)."), told


def test_what_could_be_read_of_a_damaged_file_is_used(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = pcap(stalled(wait=0.4))
    path = saved(tmp_path, "cut.pcap", whole[:-30])
    assert main(["diagnose", str(path)]) == 1
    told = capsys.readouterr().out
    assert "rto_stall" in told
    assert "read up to here only: byte " in told


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "x.pcap: found an empty file, expected a capture"),
        (b"no capture at all, but words", "byte 0 of the capture: "),
        (b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00" + bytes(12) + b"\x93\x00\x00\x00", "link type"),
    ],
)
def test_what_is_no_capture_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes, said: str
) -> None:
    path = saved(tmp_path, "x.pcap", content)
    assert main(["diagnose", str(path)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"framegauge: {path}: ")
    assert said in line


def test_wrong_words_are_told_with_what_was_expected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = saved(tmp_path, "a.pcap", pcap(stalled()))
    for words, said in (
        (["--only", "slow"], '--only: found "slow", expected one of rto_stall, '),
        (["--threshold", "pause"], '--threshold: found "pause", expected NAME=VALUE'),
        (["--threshold", "bloats=1"], '--threshold: found "bloats", expected one of pause_rtts, '),
        (["--threshold", "pause_rts=1"], "--threshold: found \"pause_rts\": did you mean 'pause_rtts'?"),
    ):
        assert main(["diagnose", str(path), *words]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line
    assert main(["diagnose", str(tmp_path / "missing.pcap")]) == 2
    assert capsys.readouterr().err == f"framegauge: {tmp_path / 'missing.pcap'}: No such file or directory\n"


def talking(number: int) -> list[tuple[float, bytes]]:
    """A client that sends a full segment each 10 ms, which is answered after 9 ms; without timestamps."""
    client, server = f"10.0.0.{number}:40000", "10.0.1.1:80"
    begin = 1_700_000_000 + number / 1000
    found = [
        (begin, segment(client, server, SYN, 1000, mss=1460)),
        (begin + 0.009, segment(server, client, SYN | ACK, 5000, 1001, mss=1460, window=64240)),
        (begin + 0.00901, segment(client, server, ACK, 1001, 5001)),
    ]
    for step in range(100):
        place = 1001 + 1460 * step
        found.append((begin + 0.01 * (step + 1), segment(client, server, ACK | PSH, place, 5001, 1460)))
        found.append((begin + 0.01 * (step + 1) + 0.009, segment(server, client, ACK, 5001, place + 1460)))
    return found


@pytest.mark.parametrize("step", [3600, -3600])
def test_a_clock_that_was_set_is_told_once_for_all_connections(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], step: int
) -> None:
    packets = sorted(packet for number in range(1, 5) for packet in talking(number))
    half = len(packets) // 2
    path = saved(tmp_path, "a.pcap", pcap(packets[:half] + [(at + step, packet) for at, packet in packets[half:]]))
    found = diagnosis.diagnose([path])
    aside = {"application_limited", "network_limited", "checksum_offload", "truncated"}
    (told,) = (each for each in found["findings"] if each["kind"] not in aside)
    assert (told["kind"], told["connection"], told["packets"]) == ("clock_jump", None, [half + 1])
    assert ("went ahead by 3599.9" if step > 0 else "went back by 3600.0") in told["text"]
    assert all(each["end_seconds"] < 1.1 for each in found["connections"])
    page = tmp_path / "a.html"
    assert main(["diagnose", str(path), "--html", str(page)]) == 0
    assert "clock_jump" in capsys.readouterr().out
    assert "clock went" in page.read_text()


def test_a_threshold_changes_what_is_found(tmp_path: Path) -> None:
    path = saved(tmp_path, "a.pcap", pcap(stalled(wait=0.05)))
    assert diagnosis.worth_fixing(diagnosis.diagnose([path]))
    assert not diagnosis.worth_fixing(diagnosis.diagnose([path], thresholds={"pause_nanoseconds": 60_000_000}))


def test_the_table_of_kinds_is_that_of_the_agent() -> None:
    # framegauge-agent diagnose --kinds > python/src/framegauge/diagnose/kinds.json
    assert TABLE.read_bytes() == asked(["--kinds"], [])


def test_the_docs_have_a_row_for_each_kind_and_limit() -> None:
    rows = Path(__file__).parents[3].joinpath("docs/reference/diagnose.md").read_text().splitlines()
    for kind in KINDS.values():
        limits = ", ".join(f"`{limit}`" for limit in kind.limits) or "-"
        assert f"| `{kind.name}` | {kind.means} | {limits} |" in rows
    settable = rows[rows.index("## Limits that can be set") :]
    for limit in {limit for kind in KINDS.values() for limit in kind.limits}:
        assert any(row.startswith("|") and f"`{limit}`" in row for row in settable), limit
