"""Every example runs on the real thing, in a short form, and proves what it claims."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import ROOT

from framegauge import study_file
from framegauge.agent import Agent
from framegauge.study import Study
from rack.real import run

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


def shortened(study: Study) -> Study:
    """Two blocks of small transfers; everything else as the file has it."""
    workloads = [
        each.model_copy(
            update={
                "stream": each.stream.model_copy(
                    update={"size": [1_000_000], "repeat": 0.1} if each.stream.size else {"duration": [0.2]}
                )
            }
        )
        for each in study.workloads
    ]
    return study.model_copy(update={"blocks": 2, "workloads": workloads, "retries": 0})


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_proves_its_treatment(rack_agent: Agent, path: Path, tmp_path: Path) -> None:
    runs = run(rack_agent, shortened(study_file.load(path)), tmp_path / "out")
    # Whether this machine is quiet enough for 1 Gb/s is not the question here.
    reasons = {line for each in runs for line in each.excluded if not line.startswith("fidelity: ")}
    assert reasons == set()
    assert all(each.metrics["goodput"] > 0 for each in runs)
