"""What is said where a verdict on how flows share is another with the costs of a measured machine."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from helpers import pages
from helpers.schemas import conforms

from framegauge.cli.main import main
from framegauge.report import markdown
from framegauge.report.page import html
from framegauge.report.pictures import material
from framegauge.results.journal import Saved, read
from framegauge.results.runs import MEASURED_HOSTS
from framegauge.summary import beside, hosts
from framegauge.summary.document import summarise
from framegauge.summary.schema import summary_schema
from framegauge.summary.sentence import answer

STUDY = """\
question: Does the near flow starve at jumbo frames, too?
testbed:
  kind: simulator
  topology: {fat-tree: {k: 4}}
  link: {rate: 1 Gb/s, buffer: 64 KiB, port_mtu: 9216}
factors:
  mtu: {levels: [1500, 9000], baseline: 1500}
  rtt: 200 us
  congestion_control: reno
workloads: [{stream: {duration: 300 ms, pattern: many-to-one}}]
blocks: 8
stop: blocks
margins: {share_of_few: default, goodput: 2 %}
"""
COSTS = """\
  cpu: {wakeup: 4.3 us, receive: {packet: 0 s, aggregate: 657 ns, byte: 1.2 ns},
        send: {packet: 0 s, aggregate: 233 ns, byte: 0.264 ns}}
"""


def simulated(folder: Path, text: str) -> Saved:
    folder.mkdir()
    (folder / "study.yaml").write_text(text)
    assert main(["simulate", str(folder / "study.yaml"), "--out", str(folder / "out")]) == 0
    return read(folder / "out")


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    return simulated(tmp_path_factory.mktemp("hosts") / "twice", STUDY)


@pytest.mark.agent
def test_a_verdict_that_another_machine_would_not_give_is_no_answer(saved: Saved) -> None:
    """The near flow starves on the rack at both MTUs (docs/measured/outcast.md); in 20 such simulations of 1 s it got
    240 times as much at MTU 9000 where hosts take nothing."""
    flooded = [
        replace(
            run, metrics={**run.metrics, "share_of_few": (0.02 + run.block / 1000) * (240 if run.level == 9000 else 1)}
        )
        for run in saved.runs
    ]
    saved = replace(saved, runs=flooded)
    found = summarise(saved)
    conforms(found, summary_schema())
    (change,) = filter(hosts.is_change, found["hosts"])
    assert (change["metric"], change["levels"], change["stated"]["verdict"]) == (
        "share_of_few",
        {"mtu": 9000},
        "better",
    )
    assert change["measured"]["verdict"] != "better"
    assert change["measured"]["interval"][1] < change["stated"]["interval"][0]
    assert answer(found).text.startswith("It depends on what hosts take for packets: ")
    line = beside.lines(found)[-1]
    assert "With the costs of a measured machine it is otherwise: MTU 9000: share of few " in line
    assert " in place of better" in line
    told = material.gather(saved, found)
    for text in (markdown.markdown(told), html.page(told)):
        assert " in place of better" in re.sub(r"\s+", " ", pages.as_read(text))
    assert not any("depends on what hosts take" in each for each in found["caveats"])
    level = next(each for each in found["hosts"] if not hosts.is_change(each) and each["levels"] == {"mtu": 9000})
    assert (level["stated"]["verdict"], level["measured"]["verdict"]) == ("more", "less")


@pytest.mark.agent
def test_the_second_simulation_is_that_of_a_study_which_states_these_costs(saved: Saved, tmp_path: Path) -> None:
    stated = simulated(tmp_path / "stated", STUDY.replace("factors:", f"{COSTS}factors:", 1))
    assert [run.metrics for run in stated.runs] == [run.readings[MEASURED_HOSTS]["metrics"] for run in saved.runs]
    assert not any(MEASURED_HOSTS in run.readings for run in stated.runs)
    assert summarise(stated)["hosts"] == []


@pytest.mark.agent
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("{levels: [1500, 9000], baseline: 1500}\n  rtt: 200 us", "1500\n  rtt: [200 us, 1 ms]"),
        ("margins: {share_of_few: default, goodput: 2 %}", "margins: {goodput: 2 %}"),
    ],
)
def test_what_does_not_depend_on_it_is_simulated_once(old: str, new: str, tmp_path: Path) -> None:
    assert old in STUDY
    text = STUDY.replace(old, new).replace("blocks: 8", "blocks: 2").replace("300 ms", "50 ms")
    if "[200 us, 1 ms]" in text:
        text = text.replace("workloads:", "treatment: rtt\nworkloads:")
    assert not any(MEASURED_HOSTS in run.readings for run in simulated(tmp_path / "once", text).runs)


@pytest.mark.agent
def test_where_both_agree_nothing_is_said(saved: Saved) -> None:
    same = [
        replace(run, readings={**run.readings, MEASURED_HOSTS: {"metrics": run.metrics, "excluded": []}})
        for run in saved.runs
    ]
    found = summarise(replace(saved, runs=same))
    assert found["hosts"] == []
    assert not answer(found).text.startswith("It depends")


def test_what_is_undecided_either_way_takes_back_no_claim_and_has_no_figure_without_an_interval() -> None:
    entry = {
        "workload": "stream", "conditions": {}, "metric": "share_of_few", "levels": {"mtu": 9000},
        "stated": {"verdict": "undecided", "ratio": 2.0, "interval": [0.5, 8.0]},
        "measured": {"verdict": "worse", "ratio": 1e22, "interval": None},
    }  # fmt: skip
    assert not hosts.takes_back(entry)
    assert hosts.takes_back({**entry, "stated": {**entry["stated"], "verdict": "better"}})
    line = hosts.beside({"verdicts": [], "hosts": [entry]})
    assert "MTU 9000: share of few no usable interval, worse in place of undecided" in line
