"""Captures of ports in simulated runs: what is asked for, which runs it is of, and what is in the files."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from helpers.sealing import seal

from framegauge.cli.main import main
from framegauge.errors import InputError
from framegauge.experiment.simulated import captures, plan
from framegauge.experiment.simulated.captures import Captures
from framegauge.results import spools
from framegauge.results.journal import read
from framegauge.study.sweep import Source, points

# Bursts of four hosts into 32 KiB at 100 Mb/s: some frames are dropped at the port, and only there.
FILE = """\
testbed: {kind: simulator, topology: rack, hosts: 5, link: {rate: 100 Mb/s, buffer: 32 KiB}}
factors: {mtu: [1500, 9000]}
workloads: [{stream: {size: 100 kB, pattern: many-to-one, repeat: 0 s}}]
blocks: 2
"""
PORT = "switch>h5"


def test_ports_are_named_as_on_the_rack() -> None:
    assert captures.asked(["switch:h1", "s1>s2#2"], " 3,1,3") == Captures(("switch>h1", "s1>s2#2"), (1, 3))
    assert captures.asked([], None) == Captures()


@pytest.mark.parametrize(
    ("ports", "runs", "said"),
    [
        (["a:b", "a>b"], None, "--pcap: found a-b.pcapng for two ports"),
        ([], "1", "--pcap-runs: found no --pcap"),
        (["a:b"], "1,x", '--pcap-runs: found "1,x", expected numbers of runs'),
        (["a:b"], "0", '--pcap-runs: found "0"'),
    ],
)
def test_what_makes_no_sense_is_said(ports: list[str], runs: str | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        captures.asked(ports, runs)


def test_runs_are_those_of_the_first_block_or_those_named() -> None:
    blocks = plan.blocks(points(Source(FILE, "s.yaml"), []))
    numbers = lambda asked: [each.number for each in captures.planned(asked, blocks)]  # noqa: E731
    assert numbers(Captures((PORT,))) == [1, 2]
    assert numbers(Captures((PORT,), (2, 4))) == [2, 4]
    assert numbers(Captures()) == []
    with pytest.raises(InputError, match="found run 5, expected numbers from 1 to 4"):
        captures.planned(Captures((PORT,), (5,)), blocks)


@pytest.mark.agent
@pytest.mark.needs("tshark")
def test_a_capture_has_the_frames_that_the_port_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "s.yaml").write_text(FILE)
    out = tmp_path / "out"
    words = ["simulate", str(tmp_path / "s.yaml"), "--pcap", "switch:h5", "--pcap", "h1>switch", "--pcap-runs", "1,4"]
    assert main([*words, "--out", str(out)]) == 0
    said = capsys.readouterr().err
    assert "captures of switch>h5, h1>switch in 2 of 4 runs: at most 256 MiB for each run" in said
    assert sorted(str(path.relative_to(out / "runs")) for path in out.rglob("*.pcapng")) == [
        "1/h1-switch.pcapng", "1/switch-h5.pcapng", "4/h1-switch.pcapng", "4/switch-h5.pcapng",
    ]  # fmt: skip
    dropped, runs = 0, {run.number: run for run in read(out).runs}
    for number, port in ((1, PORT), (4, PORT), (4, "h1>switch")):
        counted = {each["port"]: each for each in spools.record(out, runs[number])["measure"]["fabric"]["ports"]}[port]
        path = out / "runs" / str(number) / f"{port.replace('>', '-')}.pcapng"
        rows = _tshark(path, "frame.interface_name", "frame.len")
        # Ethernet without its FCS of 4 bytes, as on any host.
        assert Counter(name for name, _ in rows) == Counter(
            {
                f"{port} in": counted["received_frames"],
                f"{port} out": counted["sent_frames"],
                f"{port} dropped": counted["dropped_frames"],
            }
        )
        assert sum(int(size) + 4 for name, size in rows if name.endswith("out")) == counted["sent_bytes"]
        dropped += counted["dropped_frames"]
    assert dropped > 0
    assert main(["diagnose", str(out / "runs/1/switch-h5.pcapng"), "--json"]) in (0, 1)
    found = json.loads(capsys.readouterr().out)
    assert len({(each["client"], each["server"]) for each in found["connections"]}) == 4


@pytest.mark.agent
@pytest.mark.needs("tshark")
def test_a_capture_of_a_host_has_what_it_sent_and_got(tmp_path: Path) -> None:
    # One frame in ten is lost on the way from the switch to h5, which never sees it.
    (tmp_path / "s.yaml").write_text(FILE.replace("32 KiB}}", "32 KiB}, links: [{from: switch, to: h5, loss: 10 %}]}"))
    out = tmp_path / "out"
    assert main(["simulate", str(tmp_path / "s.yaml"), "--pcap", "h5", "--pcap", PORT, "--out", str(out)]) == 0
    counted = {each["port"]: each for each in spools.record(out, read(out).runs[0])["measure"]["fabric"]["ports"]}
    rows = _tshark(out / "runs/1/h5.pcapng", "frame.interface_name", "frame.packet_flags_direction", "ip.dst")
    assert {name for name, _, _ in rows} == {"h5"}
    lost = counted[PORT]["lost_frames"]
    assert lost > 0
    assert Counter(to == "10.0.0.5" for _, _, to in rows) == {
        True: counted[PORT]["sent_frames"] - lost,
        False: counted["h5>switch"]["sent_frames"],
    }
    assert len({(way, to == "10.0.0.5") for _, way, to in rows}) == 2


# With a seed by which some of what the near flow repeats arrives: of a flow from which nothing comes any more, a receiver's
# capture does not tell that it waits.
OUTCAST = """\
seed: 2
testbed: {kind: simulator, topology: {fat-tree: {k: 4}}, link: {rate: 1 Gb/s, buffer: 64 KiB}}
factors:
  mtu: 1500
  rtt: 200 us
  congestion_control: reno
  queue: {levels: [taildrop, random_drop], baseline: taildrop}
treatment: queue
workloads: [{stream: {duration: 2 s, pattern: many-to-one}}]
blocks: 2
"""


@pytest.mark.agent
@pytest.mark.thorough
def test_a_starving_near_flow_is_told_from_the_receivers_own_capture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.yaml").write_text(OUTCAST)
    out = tmp_path / "out"
    assert main(["simulate", str(tmp_path / "s.yaml"), "--pcap", "h16", "--out", str(out)]) in (0, 3)
    for run in list(map(json.loads, (out / "runs.jsonl").read_text().splitlines()))[:2]:
        capsys.readouterr()
        assert main(["diagnose", str(out / f"runs/{run['number']}/h16.pcapng"), "--json"]) in (0, 1)
        diagnosis = json.loads(capsys.readouterr().out)
        (near,) = (one["connection"] for one in diagnosis["connections"] if one["client"].startswith("10.0.0.15:"))
        told = [each["text"] for each in diagnosis["findings"] if each["kind"] == "outcast"]
        if run["level"] == "taildrop":
            assert run["metrics"]["share_of_few"] < 0.2
            (text,) = told
            numbers = text.partition("(connections ")[2].partition(")")[0].split(", ")
            assert str(near) in numbers
            assert len(numbers) < 8
        else:
            assert told == []


def _tshark(path: Path, *fields: str) -> list[list[str]]:
    program = shutil.which("tshark")
    assert program is not None
    command = [program, "-r", str(path), "-T", "fields", *(word for field in fields for word in ("-e", field))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.mark.agent
def test_a_port_that_is_not_there_is_one_line_before_anything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.yaml").write_text(FILE)
    words = ["simulate", str(tmp_path / "s.yaml"), "--out", str(tmp_path / "out"), "--pcap", "switch:h6"]
    assert main(words) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1
    assert '--pcap: found no port "switch>h6", expected one such as switch>h5' in told[0]
    assert not (tmp_path / "out").exists()


@pytest.mark.agent
def test_what_is_resumed_has_its_captures(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(FILE)
    out = tmp_path / "out"
    assert main(["simulate", str(tmp_path / "s.yaml"), "--out", str(out), "--pcap", PORT, "--jobs", "1"]) == 0
    kept = {path: path.read_bytes() for path in out.rglob("*.pcapng")}
    # As if it had ended after the first run.
    first = (out / "runs.jsonl").read_bytes().splitlines(keepends=True)[0]
    (out / "runs.jsonl").write_bytes(first)
    shutil.rmtree(out / "runs/2")
    seal(out)
    assert main(["simulate", "--resume", "--out", str(out)]) == 0
    assert {path: path.read_bytes() for path in out.rglob("*.pcapng")} == kept
