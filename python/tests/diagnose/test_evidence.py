"""The packets that prove the findings, as Wireshark's own reader sees them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from helpers.captures import ACK, RST, SYN, pcap, pcapng, segment, stalled

from framegauge.cli.main import main
from framegauge.diagnose import evidence, run as diagnosis

pytestmark = [
    pytest.mark.agent,
    pytest.mark.needs("tshark"),
]


def tshark(path: Path, *fields: str) -> list[list[str]]:
    command = ["tshark", "-r", str(path), "-T", "fields", *(word for field in fields for word in ("-e", field))]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return [line.split("\t") for line in told.splitlines()]


def test_the_packets_of_each_finding_are_there_with_its_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow, refused, out = (tmp_path / name for name in ("slow.pcap", "refused.pcap", "evidence.pcapng"))
    slow.write_bytes(pcap(stalled(wait=0.4)))
    refused.write_bytes(pcap([
        (1.0, segment("10.0.0.3:1", "10.0.0.4:2", SYN, 1, mss=1460)),
        (1.01, segment("10.0.0.4:2", "10.0.0.3:1", RST | ACK, 0, 2)),
    ]))  # fmt: skip
    assert main(["diagnose", str(slow), str(refused), "--pcapng", str(out)]) == 1
    document = diagnosis.diagnose([slow, refused])
    wanted = evidence.comments(document, [slow, refused])
    rows = tshark(
        out, "frame.interface_name", "frame.time_epoch", "frame.cap_len", "frame.len", "tcp.seq_raw", "frame.comment"
    )
    assert len(rows) == sum(map(len, wanted))
    assert f"{len(rows)} packets in {out}" in capsys.readouterr().err
    assert {row[0] for row in rows} == {"slow.pcap: interface 0", "refused.pcap: interface 0"}
    comments = [row[5] for row in rows]
    (stall,) = (each for each in document["findings"] if each["kind"] == "rto_stall")
    for number in stall["packets"]:
        (comment,) = (each for each in comments if f"packet {number} of the capture" in each and "rto_stall" in each)
        assert f"rto_stall, connection 1, 400 ms lost: {stall['text']}" in comment
    assert any("connection_refused, connection 2" in each for each in comments)
    # As they were captured: their stamps, what was kept of them, and how long they were.
    (original,) = (
        row
        for row in tshark(slow, "frame.time_epoch", "frame.cap_len", "frame.len", "tcp.seq_raw", "frame.number")
        if row[4] == "27"
    )
    assert original[:4] in [row[1:5] for row in rows]
    assert original[1:3] == ["96", "1040"]


def test_interfaces_keep_their_names(tmp_path: Path) -> None:
    path, out = tmp_path / "both.pcapng", tmp_path / "evidence.pcapng"
    taps = [(at + 0.001 * tap, tap, packet) for at, packet in stalled(wait=0.4) for tap in (0, 1)]
    path.write_bytes(pcapng(sorted(taps), ["eth0", "eth1"]))
    assert main(["diagnose", str(path), "--only", "rto_stall", "--pcapng", str(out)]) == 1
    rows = tshark(out, "frame.interface_name", "frame.comment")
    assert [row[0] for row in rows].count("eth0") == [row[0] for row in rows].count("eth1") == 2
    assert {row[1].split("connection ")[1][0] for row in rows if row[0] == "eth1"} == {"2"}


def test_our_own_reader_finds_nothing_wrong_with_it(tmp_path: Path) -> None:
    slow, out = tmp_path / "slow.pcap", tmp_path / "evidence.pcapng"
    slow.write_bytes(pcap(stalled(wait=0.4)))
    assert main(["diagnose", str(slow), "--pcapng", str(out)]) == 1
    (capture,) = diagnosis.diagnose([out])["captures"]
    assert capture["packets"] == sum(map(len, evidence.comments(diagnosis.diagnose([slow]), [slow])))
    assert capture["broken"] is None


def test_only_findings_that_were_asked_for_are_proved(tmp_path: Path) -> None:
    slow, out = tmp_path / "slow.pcap", tmp_path / "evidence.pcapng"
    slow.write_bytes(pcap(stalled(wait=0.4)))
    assert main(["diagnose", str(slow), "--only", "rto_stall", "--pcapng", str(out)]) == 1
    comments = [row[0] for row in tshark(out, "frame.comment")]
    assert [each.split("\\n")[0] for each in comments] == ["packet 26 of the capture", "packet 27 of the capture"]
    assert main(["diagnose", str(slow), "--only", "zero_window", "--pcapng", str(out)]) == 0
    assert tshark(out, "frame.comment") == []


def test_a_pipe_cannot_be_read_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["diagnose", "-", "--pcapng", str(tmp_path / "out.pcapng")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == "framegauge: --pcapng: found -, which can be read once only, expected a file"
    assert list(tmp_path.iterdir()) == []
