"""A link in the middle that is smaller than its hosts' MTU: every workload that sends full segments through it *does not
work*, with the port, its MTU and the size; what stays below it works.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from framegauge.cli.main import main
from framegauge.results.journal import Run, read
from framegauge.summary.sentence import answer

pytestmark = pytest.mark.agent

MESSAGE = "nothing of a message of 100 kB arrived"
# Each with what is said of it, in the order of the study's cells.
LOADS = [
    ("stream: {duration: 0.5 s}", "h1 to h2: nothing of a transfer arrived"),
    ("stream: {size: 100 kB, repeat: 0 s}", f"h1 to h2: {MESSAGE}"),
    ("stream: {duration: 0.5 s, reverse: true}", "h2 to h1: nothing of a transfer arrived"),
    ("rr: {response: 100 kB, duration: 0.5 s}", f"h2 to h1: {MESSAGE}"),
    ("rr: {response: 100 kB, duration: 0.5 s, rate: 50}", f"h2 to h1: {MESSAGE}"),
    ("rr: {response: 100 kB, header: 100 B, duration: 0.5 s}", f"h2 to h1: {MESSAGE}"),
    ("mixed: {rr: {duration: 0.5 s}}", "h1 to h2: nothing of a transfer arrived"),
    ("incast: {unit: 100 kB, servers: 1, rounds: 3}", f"h1 to h2: {MESSAGE}"),
    ("shuffle: {size: 100 kB}", f"{MESSAGE}, and so for 1 more flow"),
    ("users: {count: 3, response: 100 kB, duration: 0.5 s}", f"h2 to h1: {MESSAGE}, and so for 2 more flows"),
    ("arrivals: {sizes: 100 kB, load: 0.2, duration: 0.2 s}", MESSAGE),
    ("replay: {flows: flows.csv}", f"h1 to h2: {MESSAGE}"),
]
FLOWS = "id,client,server,start_seconds,bytes\n1,h1,h2,0,100000\n"


def simulated(folder: Path, loads: list[str], mtu: int = 1500) -> list[Run]:
    """Two hosts, one on each side of the link in the middle."""
    (folder / "flows.csv").write_text(FLOWS)
    sides = [{"from": one, "to": other, "mtu": mtu} for one, other in (("left", "right"), ("right", "left"))]
    bed = {"kind": "simulator", "topology": "dumbbell", "hosts": 2, "link": {"rate": "100 Mb/s"}, "links": sides}
    study: dict[str, Any] = {"testbed": bed, "factors": {"mtu": [1500, 9000]}, "blocks": 2, "stop": "blocks"}
    study["workloads"] = [yaml.safe_load(load) for load in loads]
    (folder / "s.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    main(["simulate", str(folder / "s.yaml"), "--out", str(folder / "out"), "--json"])
    return list(read(folder / "out").runs)


def test_what_never_gets_through_does_not_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = simulated(tmp_path, [load for load, _ in LOADS])
    summary = json.loads(capsys.readouterr().out)
    assert {each["verdict"] for each in summary["verdicts"]} == {"does not work"}
    assert [run.excluded for run in runs if run.level == 1500] == [[]] * (2 * len(LOADS))
    jumbo = [run for run in runs if run.level == 9000]
    assert {run.cell for run in jumbo} == set(range(len(LOADS)))
    for run in jumbo:
        (why,) = run.excluded
        assert why.startswith("does not work: ")
        assert LOADS[run.cell][1] in why
        assert " (MTU 1500) dropped " in why
        assert " too large for it, of up to 9018 bytes" in why


def test_a_middle_that_is_large_enough_and_what_fits_a_small_one_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder, load, mtu in (("a", "stream: {duration: 0.1 s}", 9000), ("b", "rr: {duration: 0.1 s}", 1500)):
        (tmp_path / folder).mkdir()
        assert [run.excluded for run in simulated(tmp_path / folder, [load], mtu)] == [[]] * 4


def lossy(folder: Path, load: str, ends: tuple[str, str], hosts: int = 2) -> tuple[int, list[Run]]:
    """A link that loses everything in one direction."""
    bed = {"kind": "simulator", "topology": "dumbbell", "hosts": hosts, "link": {"rate": "100 Mb/s"}}
    study = {
        "testbed": {**bed, "links": [{"from": ends[0], "to": ends[1], "loss": "100 %"}]},
        "factors": {"mtu": [1500, 9000]}, "workloads": [yaml.safe_load(load)], "blocks": 2, "stop": "blocks",
    }  # fmt: skip
    (folder / "flows.csv").write_text(FLOWS)
    (folder / "s.yaml").write_text(yaml.safe_dump(study, sort_keys=False))
    code = main(["simulate", str(folder / "s.yaml"), "--out", str(folder / "out"), "--json"])
    return code, list(read(folder / "out").runs)


@pytest.mark.parametrize("ends", [("left", "right"), ("right", "left")], ids=">".join)
@pytest.mark.parametrize("load", [load for load, _ in LOADS])
def test_a_link_that_loses_everything_works_at_no_mtu(
    load: str, ends: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, runs = lossy(tmp_path, load, ends)
    summary = json.loads(capsys.readouterr().out)
    assert (code, len(runs)) == (0, 4)
    for run in runs:
        (why,) = run.excluded
        assert why.startswith("does not work: h")
        assert "no data arrived" in why
        assert f"port {ends[0]}>{ends[1]} dropped " in why
        assert " that came to it (loss)" in why
    assert {each["verdict"] for each in summary["verdicts"]} == {"does not work"}
    text = answer(summary).text
    assert text.startswith("No answer: ")
    assert " does not work at MTU 1500 or at MTU 9000 (h" in text


def test_a_sender_behind_a_dead_link_is_named_beside_others_that_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, runs = lossy(tmp_path, "stream: {pattern: many-to-one, duration: 2 s}", ("h1", "left"), 4)
    capsys.readouterr()
    assert {tuple(run.excluded) for run in runs} != {()}
    for run in runs:
        (why,) = run.excluded
        assert "no data arrived; port h1>left dropped all " in why
