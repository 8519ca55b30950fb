"""`framegauge simulate` as people meet it: the same bytes however it is run, and one line for what it cannot do."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from helpers.sealing import seal
from helpers.support import ROOT, STUDY

from framegauge.cli.main import main
from framegauge.files import recordings
from framegauge.results.journal import read

agent = pytest.mark.agent

FILE = """\
testbed: {kind: rack, topology: rack, hosts: 4, link: {rate: 100 Mb/s, buffer: 64 KiB}}
factors: {mtu: [1500, 9000]}
workloads:
  - stream: {duration: 50 ms, pattern: many-to-one}
  - rr: {duration: 20 ms}
blocks: 2
"""
# What differs between two runs of the same simulation.
OWN = {"environment.json", "report.html", ".lock", "results.json"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "s.yaml").write_text(FILE)
    return tmp_path / "s.yaml"


def simulate(*words: object) -> int:
    return main(["simulate", *map(str, words)])


def content(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in OWN
    }


@agent
def test_the_same_bytes_at_any_number_of_jobs(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for jobs in (1, 3):
        words = ("--jobs", jobs, "--out", tmp_path / str(jobs), "--sweep", "testbed.link.buffer=32KiB,128KiB", "--json")
        assert simulate(file, *words) == 0
        summary = json.loads(capsys.readouterr().out)
    assert content(tmp_path / "1") == content(tmp_path / "3")
    assert summary["scope"] == "simulated"
    buffers = {each["conditions"]["buffer_bytes"] for each in summary["verdicts"]}
    assert buffers == {32768, 131072}
    environment = json.loads((tmp_path / "3/environment.json").read_text())
    assert environment["simulation"]["jobs"] == 3


@agent
def test_traffic_has_the_same_bytes_at_any_number_of_jobs_and_resumes_without_its_file(tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text("bytes,probability\n1000,0.5\n100000,1\n")
    (tmp_path / "s.yaml").write_text(
        "testbed: {kind: simulator, topology: rack, hosts: 4, link: {rate: 1 Gb/s, buffer: 64 KiB}}\n"
        "factors: {mtu: [1500, 9000]}\nblocks: 2\nworkloads:\n"
        "  - arrivals: {sizes: [mine.csv, 10 kB], load: 0.4, duration: 20 ms}\n"
        "  - users: {count: 6, think: 5 ms, response: mine.csv, duration: 50 ms}\n"
        "  - incast: {unit: 20 kB, servers: 3, rounds: 3}\n"
        "  - shuffle: {size: 20 kB, at_once: 2}\n"
    )
    for jobs in (1, 3):
        assert simulate(tmp_path / "s.yaml", "--jobs", jobs, "--out", tmp_path / str(jobs)) == 0
    assert content(tmp_path / "1") == content(tmp_path / "3")
    (tmp_path / "mine.csv").write_text("bytes,probability\n7,1\n")
    lines = (tmp_path / "3/runs.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "3/runs.jsonl").write_bytes(b"".join(lines[:5]))
    seal(tmp_path / "3")
    assert main(["simulate", "--resume", "--out", str(tmp_path / "3")]) == 0
    assert (tmp_path / "3/runs.jsonl").read_bytes() == (tmp_path / "1/runs.jsonl").read_bytes()


@agent
def test_goodput_is_the_ceiling_and_latency_the_rtt(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = FILE.replace("rack, hosts: 4", "pair").replace("50 ms, pattern: many-to-one", "500 ms")
    (tmp_path / "s.yaml").write_text(text.replace("[1500, 9000]", "[1500, 9000], rtt: 1 ms"))
    assert simulate(tmp_path / "s.yaml", "--out", tmp_path / "out") == 0
    assert "scope: simulated; faithful" in capsys.readouterr().out
    for run in read(tmp_path / "out").runs:
        assert not run.excluded
        if run.workload == "stream":
            # 0.999 of 10^8 x payload / wire bytes; the steady part has whole aggregates at its ends.
            ceiling = 0.999 * 1e8 * ((1448 / 1538) if run.level == 1500 else (8948 / 9038))
            assert run.metrics["goodput"] == pytest.approx(ceiling, rel=0.01)
            assert 0.99 <= run.metrics["goodput"] / run.readings["ceiling_bits_per_second"] <= 1.0
        else:
            # Two messages on two links each at 100 Mb/s, moderation and jitter: more than the RTT, and not much.
            assert 0.001 < run.metrics["latency_p50"] < 0.0015


@agent
def test_report_and_compare_read_it(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert simulate(file, "--seeds", 3, "--out", tmp_path / "a", "--html", page) == 0
    assert len(read(tmp_path / "a").runs) == 3 * 2 * 2
    assert page.read_bytes() == (tmp_path / "a/report.html").read_bytes()
    assert "simulated" in page.read_text()
    assert "mulated on this machine" not in page.read_text()
    assert main(["report", str(tmp_path / "a"), "--decision"]) == 0
    capsys.readouterr()
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    assert "nothing is worse" in capsys.readouterr().out.lower()


@agent
def test_one_seed_that_is_named_is_one_block(file: Path, tmp_path: Path) -> None:
    assert simulate(file, "--seed", 7, "--seeds", 1, "--out", tmp_path / "a") == 0
    assert {run.block for run in read(tmp_path / "a").runs} == {0}
    assert "seed: 7" in (tmp_path / "a/study.yaml").read_text()
    assert simulate("--resume", "--out", tmp_path / "a") == 0
    assert simulate(file, "--seed", 8, "--seeds", 1, "--resume", "--out", tmp_path / "a") == 2


@agent
def test_study_runs_a_file_for_the_simulator(file: Path, tmp_path: Path) -> None:
    file.write_text(FILE.replace("kind: rack", "kind: simulator"))
    assert main(["study", str(file), "--out", str(tmp_path / "a")]) == 0
    assert simulate(file, "--out", tmp_path / "b") == 0
    assert (tmp_path / "a/runs.jsonl").read_bytes() == (tmp_path / "b/runs.jsonl").read_bytes()
    assert main(["study", "--resume", "--out", str(tmp_path / "a")]) == 0


@agent
def test_interrupted_it_ends_its_processes_and_resumes(file: Path, tmp_path: Path) -> None:
    whole, part = tmp_path / "whole", tmp_path / "part"
    file.write_text(FILE.replace("50 ms", "300 ms"))
    command = [sys.executable, "-m", "framegauge", "simulate", str(file), "--seeds", "8", "--jobs", "2"]
    assert subprocess.run([*command, "--out", str(whole)], capture_output=True, check=False).returncode == 0
    with subprocess.Popen([*command, "--out", str(part)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        process.stderr.readline()  # the first line of progress: runs are under way
        process.send_signal(signal.SIGINT)
        said = process.stderr.read().decode()
    assert process.returncode == 130
    assert "interrupted after" in said
    assert f"continue with: framegauge simulate --resume --out {part}" in said
    assert len(read(part).runs) < 32
    assert simulate("--resume", "--out", part) == 0
    assert content(whole) == content(part)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "found neither FILE nor --preset, expected one"),
        (["none.yaml"], "none.yaml: found no readable file"),
        (["FILE", "--seeds", "0"], "--seeds: found 0, expected a whole number from 1"),
        (["FILE", "--seed", "-1"], "--seed: found -1, expected a whole number from 0"),
        (["FILE", "--jobs", "0"], "--jobs: found 0, expected a whole number from 1"),
        (["FILE", "--out", "-"], "--out: found -, expected a folder"),
        (["FILE", "--json", "--html", "-"], "--json and --html: found several outputs"),
        (["FILE", "--resume"], "--resume: found no --out"),
        (["--resume", "--seeds", "3", "--out", "x"], "--seeds: found no FILE"),
        (["--resume", "--pcap-runs", "3", "--out", "x"], "--pcap-runs: found no FILE"),
        (["FILE", "--sweep", "nothing"], '--sweep: found "nothing", expected KEY=VALUE'),
    ],
)
def test_what_makes_no_sense_is_one_line(
    words: list[str], said: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate(*[file if word == "FILE" else word for word in words]) == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1, told
    assert said in told[0]


@agent
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--engine", "spark://x"], '--engine: found "spark://x", expected local or dask://HOST:PORT'),
        (["--sweep", "testbed.link.bufer=1"], 'found an unknown key, expected "buffer"'),
        (["--sweep", "factors.mtu=1500"], "the treatment, whose levels are compared anyway"),
    ],
)
def test_what_cannot_be_is_one_line(
    words: list[str], said: str, file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert simulate(file, *words, "--out", tmp_path / "out") == 2
    told = capsys.readouterr().err.strip().splitlines()
    assert len(told) == 1, told
    assert said in told[0]
    assert not (tmp_path / "out").exists()


@agent
def test_an_example_that_starts_programs_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert simulate(ROOT / "examples/ftp.yaml") == 2
    assert 'workloads.0.ftp: found "ftp", expected stream, rr, mixed, incast, or' in capsys.readouterr().err


def test_without_an_agent_it_is_said_how_to_get_one(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FRAMEGAUGE_AGENT", "/nowhere")
    assert simulate(file) == 2
    assert "missing framegauge-agent" in capsys.readouterr().err


@agent
def test_a_replay_needs_nothing_outside_its_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flows, file, out = tmp_path / "f.csv", tmp_path / "s.yaml", tmp_path / "out"
    flows.write_text("client,server,start_seconds,bytes\na,b,0,1000\n")
    file.write_text("testbed: {kind: simulator}\nfactors: {mtu: [1500, 9000]}\nworkloads: [{replay: {flows: f.csv}}]\n")
    assert simulate(file, "--seeds", "2", "--out", out) == 0
    assert simulate("--resume", "--out", out) == 0
    kept = (out / "runs.jsonl").read_bytes()
    assert recordings.read(out / "recordings/1/f.csv") == recordings.read(flows)
    # The folder moves to another machine, which has no such flows; an interrupted run is simulated as the others were.
    flows.unlink()
    moved = out.rename(tmp_path / "moved")
    lines = kept.splitlines(keepends=True)
    (moved / "runs.jsonl").write_bytes(b"".join(lines[:-1]))
    seal(moved)
    assert simulate("--resume", "--out", moved) == 0
    assert (moved / "runs.jsonl").read_bytes() == kept
    assert main(["report", str(moved)]) == 0
    # Its study file simulates the same again.
    assert simulate(moved / "study.yaml", "--out", tmp_path / "again") == 0
    assert (tmp_path / "again/runs.jsonl").read_bytes() == kept
    # The copy is what was simulated, and nothing else.
    (moved / "recordings/1/f.csv").write_text("client,server,start_seconds,bytes\na,b,0,1001\n")
    capsys.readouterr()
    assert simulate("--resume", "--out", moved) == 2
    assert "found other recorded flows than when it began" in capsys.readouterr().err
    assert (moved / "runs.jsonl").read_bytes() == kept


@agent
def test_swept_recordings_are_kept_side_by_side(tmp_path: Path) -> None:
    for name, size in (("a", 1000), ("b", 2000)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "f.csv").write_text(f"client,server,start_seconds,bytes\na,b,0,{size}\n")
    (tmp_path / "s.yaml").write_text(
        "testbed: {kind: simulator}\nfactors: {mtu: [1500, 9000]}\nworkloads: [{replay: {flows: a/f.csv}}]\n"
    )
    out, sweep = tmp_path / "out", "workloads.0.replay.flows=a/f.csv,b/f.csv"
    assert simulate(tmp_path / "s.yaml", "--seeds", "2", "--sweep", sweep, "--out", out) == 0
    kept = (out / "runs.jsonl").read_bytes()
    for number, name in ((1, "a"), (2, "b")):
        assert recordings.read(out / f"recordings/{number}/f.csv") == recordings.read(tmp_path / name / "f.csv")
        (tmp_path / name / "f.csv").unlink()
    (out / "runs.jsonl").write_bytes(b"".join(kept.splitlines(keepends=True)[:-3]))
    seal(out)
    assert simulate("--resume", "--out", out) == 0
    assert (out / "runs.jsonl").read_bytes() == kept


@agent
@pytest.mark.parametrize("place", ["../f.csv", "recordings/1/..", "/etc/passwd", "recordings/1/a/f.csv"])
def test_a_recording_is_in_the_folder_of_its_results(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    (tmp_path / "f.csv").write_text("client,server,start_seconds,bytes\na,b,0,1000\n")
    (tmp_path / "s.yaml").write_text(
        "testbed: {kind: simulator}\nfactors: {mtu: [1500, 9000]}\nworkloads: [{replay: {flows: f.csv}}]\n"
    )
    out = tmp_path / "out"
    assert simulate(tmp_path / "s.yaml", "--seeds", "2", "--out", out) == 0
    told = json.loads((out / "results.json").read_text())
    told["simulation"]["recordings"] = dict.fromkeys(told["simulation"]["recordings"], place)
    (out / "results.json").write_text(json.dumps(told))
    seal(out)
    capsys.readouterr()
    assert simulate("--resume", "--out", out) == 2
    assert "expected them" in capsys.readouterr().err


def test_a_study_is_no_simulation_to_resume(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "fake.yaml").write_text(STUDY)
    assert main(["study", str(tmp_path / "fake.yaml"), "--out", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    assert simulate("--resume", "--out", tmp_path / "out") == 2
    assert "found no simulation, expected one to resume" in capsys.readouterr().err


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a cluster of two processes, which end with it."""
    import distributed

    options: dict[str, Any] = {"dashboard_address": None, "host": "127.0.0.1"}
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, **options) as cluster:
        yield cluster.scheduler_address.replace("tcp://", "dask://")


@agent
@pytest.mark.thorough
def test_a_cluster_gives_the_same_bytes(scheduler: str, file: Path, tmp_path: Path) -> None:
    words = (file, "--pcap", "switch:h4")
    assert simulate(*words, "--out", tmp_path / "here") == 0
    assert simulate(*words, "--out", tmp_path / "there", "--engine", scheduler) == 0
    assert content(tmp_path / "here") == content(tmp_path / "there")
    assert "runs/1/switch-h4.pcapng" in content(tmp_path / "there")
    assert json.loads((tmp_path / "there/environment.json").read_text())["simulation"]["jobs"] == 2


FAST = """\
testbed: {kind: simulator, topology: rack, hosts: 2, link: {rate: RATE}}
factors: {mtu: {levels: [1500, 9000], baseline: 1500}}
workloads:
  - stream: {duration: DURATION}
blocks: 2
"""


@agent
@pytest.mark.parametrize(("rate", "duration"), [("10 Gb/s", "100 ms"), ("100 Gb/s", "10 ms")])
def test_a_short_run_has_the_goodput_of_its_steady_part_or_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rate: str, duration: str
) -> None:
    """By arithmetic 9000 carries 1.0516 times as much as 1500, whatever slow start makes of the first milliseconds."""
    (tmp_path / "s.yaml").write_text(FAST.replace("RATE", rate).replace("DURATION", duration))
    simulate(tmp_path / "s.yaml", "--out", tmp_path / "out", "--json")
    (verdict,) = json.loads(capsys.readouterr().out)["verdicts"] or [{"verdict": "none", "ratio": None}]
    runs = read(tmp_path / "out").runs
    if rate == "10 Gb/s":
        assert verdict["ratio"] == pytest.approx(1.0516, abs=0.002)
        assert all(run.readings["steady"]["begin_seconds"] > 0 for run in runs)
    else:
        assert verdict["ratio"] is None
        reasons = {run.readings.get("not_measured", {}).get("goodput", "") for run in runs}
        assert any(reason.startswith("too short for a bulk figure: ") for reason in reasons)


@agent
def test_where_nothing_arrives_that_is_the_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bed = "hosts: 2, topology: dumbbell, links: [{from: left, to: right, loss: 100 %}], link: {rate: 1 Gb/s}"
    file = FAST.replace("topology: rack, hosts: 2, link: {rate: RATE}", bed).replace("DURATION", "50 ms")
    (tmp_path / "s.yaml").write_text(file)
    simulate(tmp_path / "s.yaml", "--out", tmp_path / "out")
    said = capsys.readouterr().out.replace("\n", " ")
    assert (
        "No answer: stream does not work at MTU 1500 or at MTU 9000 (h1 to h2: no data arrived; port left>right dropped "
        "the 1 frame that came to it (loss))." in said
    )


@agent
def test_a_run_that_ends_before_anything_can_arrive_does_not_blame_the_network(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s.yaml").write_text(FAST.replace("RATE", "1 Gb/s").replace("DURATION", "150 us"))
    simulate(tmp_path / "s.yaml", "--out", tmp_path / "out")
    assert "because goodput was not measured: nothing arrived in any run" in capsys.readouterr().out.replace("\n", " ")


@agent
def test_a_core_that_limits_is_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """14 us for a packet of 1448 bytes are 827 Mb/s; six times fewer fill the link. h1 takes nothing for what it sends."""
    (tmp_path / "s.yaml").write_text(
        """\
testbed:
  kind: simulator
  topology: pair
  link: {rate: 1 Gb/s, buffer: 256 KiB}
  cpu: {hosts: [h2], receive: {packet: 14 us, aggregate: 0 s}, send: {packet: 0 s, aggregate: 0 s}}
factors: {mtu: [1500, 9000], offloads: off}
workloads: [{stream: {duration: 50 ms}}]
blocks: 3
stop: blocks
"""
    )
    assert simulate(tmp_path / "s.yaml", "--out", tmp_path / "out", "--json") == 0
    (entry,) = json.loads(capsys.readouterr().out)["why"]
    parts = {part["name"]: part for part in entry["parts"]}
    (busy,) = re.findall(r"the hosts' busiest core was (\d+)% busy", parts["CPU"]["evidence"])
    assert 90 <= int(busy) <= 100
    assert parts["CPU"]["ratio"] == pytest.approx(entry["ratio"] / parts["header overhead"]["ratio"])
    assert parts["unexplained"]["ratio"] == pytest.approx(1.0)
