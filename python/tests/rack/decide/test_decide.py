"""Decisions on racks whose right answer is known, from nothing to the page, as users start them."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from helpers.schemas import conforms
from helpers.support import PATIENCE_SECONDS, ROOT

from framegauge.cli import main as cli
from framegauge.decide import page
from framegauge.results.journal import read

# At 200 Mb/s, which leaves time for others. Headers alone give 5.2 % more goodput with MTU 9000: four points more than
# the margin, six times, each over at least 0.2 s. That is far from what a neighbour on this machine takes away.
RACK = "testbed: {kind: rack, topology: rack, hosts: 3, link: {rate: 200 Mb/s, port_mtu: 9216}"
REST = "factors: {mtu: [1500, 9000]}\ncontrol: false\n"
STREAM = "workloads: [{stream: {size: 5 MB, repeat: 0.1 s}}]\nmargins: {goodput: 1 %}\nblocks: 6\nretries: 1\n"
# A request and its response are one small packet each, whatever the MTU is. Equality takes eight blocks at least.
SMALL = "workloads: [{rr: {request: 100 B, response: 100 B, duration: 0.2 s}}]\nmargins: {latency_p50: 50 %}\nblocks: 8\nretries: 1\n"
FIDELITY = "fidelity: "


def decided(folder: Path, text: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the document of a decision on the rack of this workload's file."""
    (folder / "mine.yaml").write_text(text)
    code = cli.main(["decide", "--rack", "--workload", str(folder / "mine.yaml"), "--out", str(folder / "out")])
    document = json.loads((folder / "out/decision.json").read_text())
    conforms(document, page.schema())
    return code, document


def is_right(code: int, document: dict[str, Any], folder: Path, choice: str, expected: int) -> None:
    """That it is the right answer, unless something held up this machine: then none is claimed."""
    excluded = [line for run in read(folder / "study").runs for line in run.excluded]
    assert not [line for line in excluded if not line.startswith(FIDELITY)], excluded
    if excluded and document["choice"] == "cannot_tell":
        assert document["brings"] == "open"
        return
    assert (document["choice"], code, document["exit_code"]) == (choice, expected, expected), document["text"]


def test_where_jumbo_frames_help_the_answer_is_to_do_it(tmp_path: Path) -> None:
    """Interrupted during the study, and resumed."""
    (tmp_path / "mine.yaml").write_text(f"{RACK}}}\n{STREAM}{REST}")
    command = [sys.executable, "-m", "framegauge", "decide"]
    first = subprocess.Popen(
        [*command, "--rack", "--workload", str(tmp_path / "mine.yaml"), "--out", str(tmp_path / "out")],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    runs = tmp_path / "out/study/runs.jsonl"
    while first.poll() is None and not (runs.exists() and runs.read_bytes().count(b"\n") >= 2):
        time.sleep(0.02)
    first.send_signal(signal.SIGINT)
    said = first.communicate(timeout=PATIENCE_SECONDS)[0]
    assert first.returncode == 130, said
    assert f"continue with: framegauge decide --resume --out {tmp_path / 'out'}" in said
    checks = {name: (tmp_path / f"out/check-{name}.json").stat().st_mtime_ns for name in ("present", "raised")}
    before = read(tmp_path / "out/study").runs
    code = cli.main(["decide", "--resume", "--out", str(tmp_path / "out")])
    document = json.loads((tmp_path / "out/decision.json").read_text())
    assert {name: (tmp_path / f"out/check-{name}.json").stat().st_mtime_ns for name in checks} == checks
    assert read(tmp_path / "out/study").runs[: len(before)] == before
    assert (document["paths"], document["present_mtu"]) == ("clear", 1500)
    is_right(code, document, tmp_path / "out", "do_it", 0)
    assert (tmp_path / "out/decision.html").read_text().count(
        "<section"
    ) == 8  # with the matrix of the paths and the chart


def test_where_they_make_no_difference_the_answer_is_no(tmp_path: Path) -> None:
    code, document = decided(tmp_path, f"{RACK}}}\n{SMALL}{REST}")
    is_right(code, document, tmp_path / "out", "do_not", 1)
    if document["choice"] == "do_not":
        assert document["brings"] == "nothing"


def test_a_port_that_stays_at_1500_forbids_it_before_any_study(tmp_path: Path) -> None:
    text = f"{RACK}, links: [{{from: switch, to: h2, mtu: 1500}}]}}\n{STREAM}{REST}"
    code, document = decided(tmp_path, text)
    assert (code, document["choice"], document["paths"]) == (1, "do_not", "fault")
    assert "2 of 6 pairs do not carry packets of 9000 bytes" in document["text"]
    assert not (tmp_path / "out/study").exists()


@pytest.mark.parametrize(("lab", "choice"), [("switch-port-1500", "do_not"), ("clean", "cannot_tell")])
def test_a_lab_is_checked_and_not_studied(lab: str, choice: str, tmp_path: Path) -> None:
    path = ROOT / f"examples/faults/{lab}.yaml"
    code = cli.main(["decide", "--testbed", str(path), "--out", str(tmp_path / "out")])
    document = json.loads((tmp_path / "out/decision.json").read_text())
    assert (document["choice"], code) == (choice, document["exit_code"])
    assert document["brings"] == "not measured"
