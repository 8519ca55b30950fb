"""Senders with their numbers of flows on the real rack, and what few of them get beside many."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from pathlib import Path

import pytest
from helpers.real import run, study

from framegauge.agents.pipe import Agent
from framegauge.cli.main import main
from framegauge.results import spools
from framegauge.study import file as study_file


def test_each_host_has_its_flows_and_the_few_their_share(rack_agent: Agent, tmp_path: Path) -> None:
    """At one switch every host has an input port of its own: the few are h1 and h4, with a flow each beside six."""
    bed = {"kind": "rack", "topology": "rack", "hosts": 4, "link": {"rate": "50 Mb/s"}}
    senders = {"h1": 1, "h3": 6, "h4": 1}
    asked = study(
        testbed=bed, stream={"duration": "0.5 s", "senders": senders, "receiver": "h2"}, blocks=1,
        factors={"mtu": 1500}, control=True, margins={"share_of_few": "default"}, retries=0,
    )  # fmt: skip
    runs = run(rack_agent, asked, tmp_path / "out")
    assert {line for each in runs for line in each.excluded if not line.startswith("fidelity: ")} == set()
    for each in runs:
        workload = spools.record(tmp_path / "out", each)["workload"]
        assert {one["client"]: one["flows"] for one in workload["runs"]} == senders
        assert {one["server"] for one in workload["runs"]} == {"h2"}
        assert workload["served"]["h2"]["connections"] == sum(senders.values())
        rates: dict[str, list[float]] = {}
        for host, count in senders.items():
            columns = ("flow", "start_seconds", "counted_seconds", "counted_bytes")
            table = spools.columns(tmp_path / "out" / "runs" / str(each.number) / f"transfers-{host}-h2.arrow", columns)
            assert table is not None
            assert sorted(table["flow"]) == list(range(count))
            rates[host] = [
                size / (end - start) for start, end, size in zip(*(table[name] for name in columns[1:]), strict=True)
            ]
        share = statistics.fmean([*rates["h1"], *rates["h4"]]) / statistics.fmean(rates["h3"])
        assert each.metrics["share_of_few"] == pytest.approx(share)
        told = {"senders": ["h1", "h4"], "flows": 2, "many": 6, "floored": False}
        assert each.readings["few"] == told
    table = spools.table(tmp_path / "out" / "runs" / "1" / "few.parquet")
    assert table is not None
    assert {(each["sender"], each["group"]) for each in table.to_pylist()} == {
        ("h1", "few"), ("h4", "few"), ("h3", "many")
    }  # fmt: skip
    assert min(Counter(table["sender"].to_pylist()).values()) >= 2  # windows of 0.2 s


def test_a_rack_and_its_simulation_are_compared(
    rack_agent: Agent, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bed = {"kind": "rack", "topology": "rack", "hosts": 3, "link": {"rate": "50 Mb/s"}}
    asked = study(
        testbed=bed, stream={"duration": "0.3 s", "senders": {"h1": 1, "h2": 3}}, blocks=2, stop="blocks",
        factors={"mtu": 1500}, control=True, margins={"share_of_few": "default"}, retries=0,
    )  # fmt: skip
    run(rack_agent, asked, tmp_path / "rack")
    (tmp_path / "study.yaml").write_text(study_file.dump(asked))
    assert main(["simulate", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "simulated")]) in (0, 3)
    capsys.readouterr()
    main(["compare", str(tmp_path / "rack"), str(tmp_path / "simulated"), "--metric", "share_of_few", "--json"])
    document = json.loads(capsys.readouterr().out)
    (verdict,) = document["verdicts"]
    assert (verdict["metric"], verdict["unit"], verdict["margin"]) == ("share_of_few", "number", 0.25)
    assert verdict["conditions"]["senders"] == {"h1": 1, "h2": 3}  # both sides have the same, so they are matched
    assert (
        0.2 < verdict["treatment"]["estimate"] < 5
    )  # of the simulation; a busy machine has no runs to compare it with
