"""Every example runs on the real thing, in a short form, and proves what it claims."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import ROOT

from framegauge import study_file
from framegauge.agent import Agent
from framegauge.blocks import block_order
from framegauge.planning import workload_of
from framegauge.study import Study
from rack.real import run

EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))


# What each workload is cut down to; a rack keeps four hosts.
SHORT = {
    "stream": {"repeat": 0.1},
    "rr": {"duration": [0.5]},
    "iperf3": {"duration": [1.0]},
    "ftp": {"size": [1_000_000], "repeat": 0.1},
    "mixed": {},
}


def shortened(study: Study) -> Study:
    """Two blocks of small transfers; everything else as the file has it."""
    workloads = []
    for each in study.workloads:
        parameters = each.parameters
        change: dict[str, object] = dict(SHORT[parameters.key])
        if parameters.key == "stream":
            change |= {"size": [1_000_000]} if each.stream.size else {"duration": [0.2]}
        if parameters.key == "mixed":
            change["rr"] = parameters.rr.model_copy(update={"duration": [0.5]})
        workloads.append(each.model_copy(update={parameters.key: parameters.model_copy(update=change)}))
    bed = study.testbed
    if bed.hosts is not None:
        bed = bed.model_copy(update={"hosts": min(bed.hosts, 4)})
    return study.model_copy(update={"blocks": 2, "workloads": workloads, "retries": 0, "testbed": bed})


def needed(path: Path) -> list[pytest.MarkDecorator]:
    """The programs that an example's workloads start, so that a test that cannot run is listed with its reason."""
    study = study_file.load(path)
    names = {program.name for slot in block_order(study, 0) for program in workload_of(study, slot).needs}
    return [pytest.mark.needs(*sorted(names))] if names else []


@pytest.mark.parametrize("path", [pytest.param(path, marks=needed(path), id=path.stem) for path in EXAMPLES])
def test_an_example_runs_and_proves_its_treatment(rack_agent: Agent, path: Path, tmp_path: Path) -> None:
    runs = run(rack_agent, shortened(study_file.load(path)), tmp_path / "out")
    # Whether this machine is quiet enough for 1 Gb/s is not the question here.
    reasons = {line for each in runs for line in each.excluded if not line.startswith("fidelity: ")}
    assert reasons == set()
    assert all(each.metrics and min(each.metrics.values()) > 0 for each in runs)
