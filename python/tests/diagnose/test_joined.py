"""Several captures of one connection: where it lost, who waited for whom, and what cannot be joined."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
from helpers import pages
from helpers.captures import ACK, PSH, SYN, Packet, pcap, segment, stalled

from framegauge.cli.main import main
from framegauge.diagnose import joined as joining, run as diagnosis

pytestmark = pytest.mark.agent
DELAY = 0.002
AHEAD = 5.0
CLIENT, SERVER = "10.0.0.1:40000", "10.0.0.2:80"


def from_client(packet: bytes) -> bool:
    return packet[12:16] == bytes([10, 0, 0, 1])


def at_server(packets: list[Packet], lost: range) -> list[Packet]:
    """What the server's tap sees of what the client's tap saw, by a clock that is ahead; `lost` are packets from 0."""
    moved = [
        (at + AHEAD + (DELAY if from_client(packet) else -DELAY), packet)
        for place, (at, packet) in enumerate(packets)
        if place not in lost
    ]
    return sorted(moved, key=lambda each: each[0])


def saved(folder: Path, name: str, packets: list[Packet]) -> Path:
    path = folder / name
    path.write_bytes(pcap(packets))
    return path


@pytest.fixture
def stall(tmp_path: Path) -> tuple[Path, Path]:
    """A burst of three segments (packets 24 to 26) that never came to the server."""
    packets = stalled()
    return saved(tmp_path, "a.pcap", packets), saved(tmp_path, "b.pcap", at_server(packets, range(23, 26)))


def test_a_loss_is_placed_between_two_hosts(stall: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    client, server = stall
    words = ["diagnose", "--host", f"web={client}", "--host", f"db={server}"]
    assert main([*words, "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    jsonschema.validate(document, diagnosis.schema())
    joined = document["joined"]
    assert [(tap["name"], tap["capture"]) for tap in joined["taps"]] == [("web", 1), ("db", 2)]
    (connection,) = joined["connections"]
    assert [seen["connection"] for seen in connection["seen"]] == [1, 2]
    there, back = connection["directions"]
    (hop,) = there["hops"]
    assert hop["between"] == [1, 2]
    assert [drop["packet"] for drop in hop["drops"]] == [24, 25, 26]
    assert [(drop["begin"], drop["end"]) for drop in hop["drops"]] == [
        (11001, 12001), (12001, 13001), (13001, 14001),
    ]  # fmt: skip
    assert (hop["lost_packets"], hop["lost_bytes"], hop["unjudged_packets"]) == (3, 3000, 0)
    assert back["hops"][0]["lost_packets"] == 0
    clock = joined["taps"][1]["clock"]
    assert abs(clock["offset_seconds"] - AHEAD) <= clock["uncertainty_seconds"] <= 2 * DELAY
    assert hop["delay"]["median_seconds"] == pytest.approx(DELAY, abs=clock["uncertainty_seconds"])
    (finding,) = (each for each in diagnosis.worth_fixing(document) if each["connection"] == 1)
    lost = f"Lost in this connection: 3 packets between web and db, from {CLIENT} to {SERVER}."
    assert finding["kind"] == "rto_stall"
    assert finding["text"].endswith(lost)
    assert main(words) == 1
    told = capsys.readouterr().out
    assert f"were lost between web and db, from {CLIENT} to {SERVER}" in told
    assert "the clock of db is 5 s ahead of that of web" in told


def test_files_without_names_are_called_by_their_own(stall: tuple[Path, Path]) -> None:
    document = diagnosis.diagnose(stall)
    assert [tap["name"] for tap in document["joined"]["taps"]] == ["a", "b"]


def test_a_host_that_answers_late_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    now, packets = 1_700_000_000.0, []
    for flags, client, ack in ((SYN, True, 0), (SYN | ACK, False, 1001), (ACK, True, 5001)):
        here, there, seq = (CLIENT, SERVER, 1000 + (flags == ACK)) if client else (SERVER, CLIENT, 5000)
        now += 4 * DELAY
        packets.append((now, segment(here, there, flags, seq, ack, mss=1460 if flags & SYN else None)))
    for turn in range(10):
        now += 0.01
        packets.append((now, segment(CLIENT, SERVER, ACK | PSH, 1001 + 100 * turn, 5001 + 100 * turn, 100)))
        now += 0.3 + 2 * DELAY
        packets.append((now, segment(SERVER, CLIENT, ACK | PSH, 5001 + 100 * turn, 1101 + 100 * turn, 100)))
    hosts = {"web": saved(tmp_path, "a.pcap", packets), "db": saved(tmp_path, "b.pcap", at_server(packets, range(0)))}
    document = diagnosis.diagnose([], hosts=hosts)
    wait = document["joined"]["connections"][0]["directions"][0]["wait"]
    assert (wait["answers"], wait["between"]) == (10, [1, 2])
    assert wait["held_seconds"] == pytest.approx(3.0, abs=1e-4)
    assert wait["waited_seconds"] == pytest.approx(3.04, abs=1e-4)
    said = "db held answers back for 3 s of the 3.04 s that web waited for them"
    assert any(said in each["text"] for each in document["findings"])
    main(["diagnose", *(word for name, file in hosts.items() for word in ("--host", f"{name}={file}"))])
    assert "db held 10 answers back for 3 s of the 3.04 s that web waited" in capsys.readouterr().out


def test_what_two_places_saw_is_worth_fixing_once() -> None:
    found = [
        {"kind": kind, "connection": connection, "lost_seconds": lost}
        for kind, connection, lost in (
            ("rto_stall", 2, 0.5), ("rto_stall", 1, 0.4), ("rto_stall", 3, 0.3), ("tail_loss", 1, 0.2),
            ("incast", None, 0.0), ("incast", None, 0.0), ("aggregates", 1, 0.0),
        )
    ]  # fmt: skip
    joined = {"connections": [{"seen": [{"connection": 1}, {"connection": 2}]}]}
    worth = diagnosis.worth_fixing({"findings": found, "joined": joined})
    assert [each["connection"] for each in worth] == [2, 3, 1, None, None]
    assert len(diagnosis.worth_fixing({"findings": found, "joined": None})) == 6


def test_what_cannot_be_joined_is_one_line(
    stall: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    client, server = stall
    other = saved(tmp_path, "c.pcap", stalled("10.0.0.7:1", "10.0.0.8:2"))
    for words, said in (
        ([f"web={client}", f"db={other}"], "the captures of web and db share no connection"),
        ([f"web={client}", f"web={server}"], '--host: found the name "web" twice'),
        ([f"web={client}", f"db={client}"], f"--host: found {client} for web and for db, expected a file for each"),
        ([f"web={tmp_path / 'missing.pcap'}"], f"{tmp_path / 'missing.pcap'}: No such file"),
        (["web"], '--host: found "web", expected NAME=FILE'),
        (["web=-"], "--host web=-: expected a file"),
    ):
        assert main(["diagnose", *(word for each in words for word in ("--host", each))]) == 2, words
        (line,) = capsys.readouterr().err.splitlines()[-1:]
        assert said in line, line
    assert main(["diagnose", str(client), str(client)]) == 2
    assert f"{client}: found the same file twice" in capsys.readouterr().err
    assert main(["diagnose"]) == 2
    assert "found no capture" in capsys.readouterr().err


def test_a_copy_of_a_capture_joins_with_itself_without_loss_or_offset(stall: tuple[Path, Path], tmp_path: Path) -> None:
    copy = tmp_path / "copy.pcap"
    copy.write_bytes(stall[0].read_bytes())
    joined = diagnosis.diagnose([stall[0], copy])["joined"]
    assert [hop["lost_packets"] for each in joined["connections"][0]["directions"] for hop in each["hops"]] == [0, 0]
    assert joined["taps"][1]["clock"]["offset_seconds"] == pytest.approx(0, abs=1e-6)


def test_captures_without_a_common_connection_are_told_apart(stall: tuple[Path, Path], tmp_path: Path) -> None:
    other = saved(tmp_path, "c.pcap", stalled("10.0.0.7:1", "10.0.0.8:2"))
    assert diagnosis.diagnose([stall[0], other])["joined"] is None
    assert diagnosis.diagnose([stall[0]])["joined"] is None


def test_the_page_shows_what_the_captures_say_together(stall: tuple[Path, Path], tmp_path: Path) -> None:
    client, server = stall
    out = tmp_path / "joined.html"
    assert main(["diagnose", "--host", f"web={client}", "--host", f"d<b>={server}", "--html", str(out)]) == 1
    page = pages.check(out.read_text("utf-8"))
    captions = [each.text for each in page.all("caption")]
    assert "Where packets were lost, 1 of 1" in captions
    assert any("web → d<b>" in row.text and "3 of" in row.text for row in page.all("tr"))
    alone = tmp_path / "alone.html"
    assert main(["diagnose", str(client), "--html", str(alone)]) == 1
    assert "Between the captures" not in alone.read_text("utf-8")


@pytest.mark.parametrize(
    ("unscaled", "said"),
    [
        (
            (9, 9, 0),
            "That is certain: all 9 segments beyond that window were lost between web and db, and no other was.",
        ),
        ((9, 0, 0), "All 9 segments beyond that window came from web to db: they are dropped behind it."),
        ((9, 9, 2), ""),
        ((9, 4, 0), ""),
        ((2, 2, 0), ""),
        (None, ""),
    ],
)
def test_what_lies_beyond_a_window_without_its_scale_is_dropped_where_both_captures_say(
    unscaled: tuple[int, int, int] | None, said: str
) -> None:
    names = ("beyond_segments", "lost_segments", "others_lost_segments")
    of = None if unscaled is None else dict(zip(names, unscaled, strict=True))
    hop = {"between": [1, 2], "lost_packets": 0, "unscaled": of, "sizes": None}
    seen = [{"tap": number, "connection": number} for number in (1, 2)]
    ways = [{"hops": [each], "wait": None} for each in (hop, {**hop, "unscaled": None})]
    connection = {"client": CLIENT, "server": SERVER, "seen": seen, "directions": ways}
    taps = [{"tap": 1, "name": "web"}, {"tap": 2, "name": "db"}]
    findings = [{"kind": kind, "connection": 1, "text": "What happened."} for kind in ("unscaled_window", "rto_stall")]
    joining.annotate({"joined": {"taps": taps, "connections": [connection]}, "findings": findings})
    assert [each["text"] for each in findings] == [f"What happened. {said}".strip(), "What happened."]


def test_directions_that_were_captured_apart_tell_nothing_of_losses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As a breakout tap has them: what came to one of them was never to pass the other."""
    packets = stalled()
    there = saved(tmp_path, "there.pcap", [each for each in packets if from_client(each[1])])
    back = saved(tmp_path, "back.pcap", [each for each in packets if not from_client(each[1])])
    main(["diagnose", "--host", f"there={there}", "--host", f"back={back}"])
    printed = capsys.readouterr().out
    assert "captured at several places" in printed
    assert "no packet was lost" not in printed
    assert "cannot tell whether packets were lost between them" in printed
