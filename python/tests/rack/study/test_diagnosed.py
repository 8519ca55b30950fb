"""A study whose runs are diagnosed: where the time went is told beside the verdict, and it is what was done to them."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
import yaml
from helpers.sealing import seal
from helpers.support import PATIENCE_SECONDS

from framegauge.report.recorded import programs
from framegauge.report.recorded.rows import Found
from framegauge.report.recorded.run import recorded
from framegauge.results.journal import read
from framegauge.summary.schema import summary_schema

STUDY = {
    "question": "What does Nagle's algorithm cost?",
    "testbed": {"kind": "rack", "link": {"rate": "200 Mb/s"}},
    "factors": {"mtu": 1500, "nagle": {"levels": [False, True], "baseline": False}},
    "treatment": "nagle",
    "workloads": [
        {
            "rr": {
                "request": "200 B", "response": "1 kB", "header": "100 B", "connections": 2, "rate": 20,
                "duration": "1 s",
            }
        }
    ],
    "control": False,
    "blocks": 3,
    "stop": "blocks",
    "retries": 4,
    "margins": {"latency_p50": "10 %"},
    "meters": {"diagnose": True, "idle": "0.05 s"},
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("diagnosed")
    (place / "study.yaml").write_text(yaml.safe_dump(STUDY))
    words = [sys.executable, "-m", "framegauge", "study", str(place / "study.yaml"), "--out", str(place / "out")]
    done = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert done.returncode in (0, 3), done.stderr  # 3: the machine was too busy for a verdict
    count_all(place / "out")
    return place / "out"


def count_all(folder: Path) -> None:
    """Judges again with the runs that only a busy machine has excluded: where their time went is true of them, too."""
    runs = [json.loads(line) for line in (folder / "runs.jsonl").read_text().splitlines()]
    for run in runs:
        run["excluded"] = [reason for reason in run["excluded"] if not reason.startswith("fidelity: ")]
    (folder / "runs.jsonl").write_text("".join(json.dumps(run) + "\n" for run in runs))
    seal(folder)
    report = [sys.executable, "-m", "framegauge", "report", str(folder)]
    told = subprocess.run(report, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True).stdout
    assert "where the time of connections went:" in told
    summary = subprocess.run(
        [*report, "--json"], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=True
    ).stdout
    (folder / "summary.json").write_text(summary)
    subprocess.run(
        [*report, "--html", str(folder / "report.html")], capture_output=True, timeout=PATIENCE_SECONDS, check=True
    )


def test_the_time_of_connections_is_divided_and_adds_up(folder: Path) -> None:
    summary = json.loads((folder / "summary.json").read_text())
    jsonschema.validate(summary, summary_schema())
    (entry,) = summary["lost_time"]
    assert entry["baseline"] == {"nagle": False}
    assert entry["treatment"] == {"nagle": True}
    changes = {each["cause"]: each["change"]["share"] for each in entry["causes"]}
    assert math.fsum(changes.values()) == pytest.approx(entry["change"]["share"], abs=1e-9)
    for side in ("baseline", "treatment"):
        assert math.fsum(each[side] for each in entry["causes"]) == pytest.approx(1, abs=1e-6)
    shares = {each["cause"]: each for each in entry["causes"]}
    assert shares["nagle_delayed_ack"]["treatment"] > 0.2
    assert shares.get("nagle_delayed_ack", {"baseline": 0})["baseline"] < 0.01


def test_each_run_tells_what_was_found_and_what_capturing_cost(folder: Path) -> None:
    runs = [run for run in read(folder).runs if not run.excluded]
    assert {run.level for run in runs} == {True, False}
    for run in runs:
        found = run.readings["diagnosis"]
        assert found["connections"] == 2
        assert set(found["captures"]) == {"h1", "h2"}
        for tap in found["captures"].values():
            assert tap["packets"] == tap["kept_packets"] > 0
            assert tap["dropped_packets"] == tap["given_up_packets"] == 0
        # A finding says so if and only if Nagle's algorithm was on.
        assert ("nagle_delayed_ack" in found["kinds"]) == run.level, found["kinds"]
        record = json.loads((folder / f"runs/{run.number}/record.json").read_text())
        assert {each["kind"] for each in record["diagnosis"]["findings"]} <= set(found["kinds"])
    summary = json.loads((folder / "summary.json").read_text())
    assert any(line.startswith("packets were captured during the runs") for line in summary["caveats"])


def test_each_run_keeps_its_connections(folder: Path) -> None:
    for run in read(folder).runs:
        found = programs.captured(Found(folder, run, {}))
        assert [(flow.client, flow.server) for flow in found] == [("h1", "h2")] * 2
        asked = recorded(folder, run.number)
        for side in ("bytes", "reverse_bytes"):
            told, wanted = (sum(getattr(flow, side) for flow in flows) for flows in (found, asked))
            # Two connections begin with what says who asks, and that it is answered.
            assert wanted < told <= wanted + 2 * 100, side
        assert all(flow.end_seconds is not None and flow.end_seconds > 0.5 for flow in found)


def test_the_page_has_the_table(folder: Path) -> None:
    page = (folder / "report.html").read_text()
    assert "Where the time of connections went" in page
    assert "nagle_delayed_ack" in page
