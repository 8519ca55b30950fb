"""What packets take of a CPU, from real runs, and what simulations make of it."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median

import pytest
import yaml
from helpers.real import run
from helpers.support import SOAK

from framegauge.agents.pipe import Agent
from framegauge.cli.main import main
from framegauge.results.journal import Run, read
from framegauge.study import file as study_file

SHORT = {"blocks": 3, "factors": {"mtu": [1500, 9000], "offloads": False}, "workloads": [{"stream": {"size": "10 MB"}}]}
NEAR = 0.5  # of what the rack took: runs of one arm spread by up to a third there (docs/measured/cpu-model.md)


def costs(runs: list[Run], metric: str) -> dict[str, float]:
    """The median of a metric by MTU, GRO and TSO."""
    cells: dict[str, list[float]] = {}
    for each in runs:
        if metric in each.metrics:
            key = f"MTU {each.level}, GRO {each.conditions['gro']}, TSO {each.conditions['tso']}"
            cells.setdefault(key, []).append(each.metrics[metric])
    return {key: median(values) for key, values in cells.items()}


@pytest.mark.soak(6)
def test_a_model_of_this_machine(rack_agent: Agent, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs without GRO and TSO do not tell packets from aggregates, and it says so. In `make soak`, the whole preset,
    whose model gives in simulations what the rack took."""
    preset = yaml.safe_load(study_file.dump(study_file.load_preset("cpu-model")))
    asked = study_file.parse(yaml.safe_dump(preset if SOAK else {**preset, **SHORT}), "study.yaml")
    runs = run(rack_agent, asked, tmp_path / "rack")
    capsys.readouterr()
    code = main(["estimate", "--model", str(tmp_path / "rack")])
    answer = capsys.readouterr()
    if not SOAK:
        assert code == 2
        assert "the machine was busy" in answer.err or "rise and fall together" in answer.err
        return
    assert code == 0, answer.err
    (tmp_path / "cpu.yaml").write_text(answer.out)
    # Without TSO a simulation builds aggregates as well, which the rack's kernel does not.
    preset["testbed"] = {"kind": "simulator", "cpu": "cpu.yaml"}
    preset["factors"]["tso"] = True
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(preset))
    words = ["simulate", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "simulated"), "--seeds", "2", "--json"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["excluded"] == []
    simulated = list(read(tmp_path / "simulated").runs)
    for metric in ("receiver_cpu_cost", "sender_cpu_cost"):
        known, modelled = costs(runs, metric), costs(simulated, metric)
        assert len(modelled) == 6
        assert modelled == pytest.approx({key: known[key] for key in modelled}, rel=NEAR)
