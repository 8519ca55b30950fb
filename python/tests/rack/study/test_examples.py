"""Every example runs on the real thing, in a short form, and proves what it claims."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from helpers.real import run
from helpers.support import ROOT, SOAK

from framegauge.agents.pipe import Agent
from framegauge.experiment import runner
from framegauge.experiment.planning import searched, workload_of
from framegauge.study import file as study_file
from framegauge.study.blocks import Slot, block_order
from framegauge.study.model import Study

# Those over ssh are run in test_ssh_study.py and test_own_cluster.py, those of Hadoop in test_hadoop.py, the live switch of
# Ceph in test_live_switch.py. Users until saturation are in test_web.py, and web-long is web but for its load. What is simulated needs no rack: the commands of
# the documentation run it.
ELSEWHERE = ("ssh-", "own-", "terasort", "ceph-live", "web-", "simulate")
EXAMPLES = sorted(each for each in (ROOT / "examples").glob("*.yaml") if not each.name.startswith(ELSEWHERE))


# What an example is about does not work in all of its arms.
SHOWS = {"storage-mixed": "does not work: h2: 0 of ", "storage-server": "does not work: h1: 0 of "}
SEVERAL = 4  # numbers of flows, of which more are cut down to the first and the last
# What each workload is cut down to; a rack keeps four hosts, or as many as the workload needs.
SHORT = {
    "stream": {"repeat": 0.1},
    "rr": {"duration": [0.5]},
    "iperf3": {"duration": [1.0]},
    "ftp": {"size": [1_000_000], "repeat": 0.1},
    "mixed": {},
    "incast": {"rounds": 2},
    "datagrams": {"duration": [1.0]},
    "quic": {"duration": [0.5]},
    "command": {},
    "iscsi": {"duration": [0.5]},
    "nfs": {"duration": [0.5]},
    "web": {"users": [4], "think": 0.1, "ramp_up": 0.3, "steady": 3.0},
    "ceph": {"duration": [2.0], "image": 16 << 20},
}


def shown_by(slot: Slot, whole: bool) -> set[str]:
    """What a run is one of: its arm with its kind of workload, each level of a factor, each parameter of the workload; if
    `whole`, and its hosts differ, its arm with all of these."""
    cell = slot.cell
    pairs = [("arm", slot.arm.name, cell.workload), *cell.factors.items()]
    pairs += [(cell.workload, name, value) for name, value in cell.parameters.items()]
    if whole and not isinstance(slot.arm.level, int):
        pairs.append((slot.arm.name, cell.index))
    return {json.dumps(pair, default=str) for pair in pairs}


def covering(slots: Sequence[Slot], whole: bool) -> list[Slot]:
    """As few runs, in their order, as have one of everything; in `make soak`, all of them."""
    if SOAK:
        return list(slots)
    shown = {slot.key: shown_by(slot, whole) for slot in slots}
    left = set().union(*shown.values())
    chosen: set[tuple[int, int, str]] = set()
    while left:
        best = max(shown, key=lambda key: len(left & shown[key]))
        chosen.add(best)
        left -= shown[best]
    return [slot for slot in slots if slot.key in chosen]


def shortened(study: Study) -> Study:
    """One block of small transfers over the longest delay, without a control. Everything else as the file has it."""
    workloads = []
    for each in study.workloads:
        parameters = each.parameters
        change: dict[str, object] = dict(SHORT[parameters.key])
        if parameters.key == "stream":
            # A load that is offered is to be met within 2 %, which one stall of a busy machine takes from a shorter time.
            change |= {"size": [1_000_000]} if each.stream.size else {"duration": [0.5 if each.stream.rate else 0.2]}
            if len(each.stream.flows) > SEVERAL:
                change["flows"] = [each.stream.flows[0], each.stream.flows[-1]]
            if study.changes:
                # Long enough for a change in the middle.
                change |= {"repeat": 0.5} if each.stream.size else {"duration": [0.5]}
        if parameters.key == "mixed":
            change["rr"] = parameters.rr.model_copy(update={"duration": [0.5]})
        workloads.append(each.model_copy(update={parameters.key: parameters.model_copy(update=change)}))
    bed = study.testbed
    if bed.topology.kind == "rack":
        least = max(each.parameters.needed_hosts()[0] for each in study.workloads)
        bed = bed.model_copy(update={"hosts": min(bed.hosts, max(4, least))})
    factors = study.factors
    if factors.rtt is not None:
        farthest = factors.rtt.model_copy(
            update={"levels": factors.rtt.levels[-1:], "baseline": factors.rtt.levels[-1]}
        )
        factors = factors.model_copy(update={"rtt": farthest})
    changes = [each.model_copy(update={"at": 0.2}) for each in study.changes]
    # A run that a busy machine has excluded proves as much as another; only to carry a load it has three attempts.
    carries = any(each.stream is not None and each.stream.rate for each in study.workloads)
    short = {
        "blocks": 1, "workloads": workloads, "retries": 2 if carries or SOAK else 0, "testbed": bed, "factors": factors, "changes": changes,
        "control": study.control and SOAK, "meters": study.meters.model_copy(update={"idle": 0.05}),
    }  # fmt: skip
    return study.model_copy(update=short)


def needed(path: Path) -> list[pytest.MarkDecorator]:
    """The programs that an example's workloads start, so that a test that cannot run is listed with its reason."""
    study = study_file.load(path)
    needs = {program for slot in block_order(study, 0) for program in workload_of(study, slot).needs}
    lacking = sorted((each.name, each.remedy) for each in needs if not each.is_there(searched()))
    return [pytest.mark.needs(name, remedy=remedy) for name, remedy in lacking]


def unexplained(excluded: Sequence[str], shown: str | None) -> list[str]:
    """Why a run is excluded, but for a machine that was too busy for it, and for what its example `SHOWS`."""
    excluded = [line for line in excluded if shown is None or not line.startswith(shown)]
    busy = any(line.startswith("fidelity: ") for line in excluded)
    return [line for line in excluded if not line.startswith(("fidelity: ", "load: ") if busy else "fidelity: ")]


@pytest.mark.soak(0.3)
@pytest.mark.parametrize("path", [pytest.param(path, marks=needed(path), id=path.stem) for path in EXAMPLES])
def test_an_example_runs_and_proves_its_treatment(
    rack_agent: Agent, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The least that leaves nothing out; what is shown is in one cell of an arm whose hosts differ.
    whole = path.stem in SHOWS
    monkeypatch.setattr(runner, "block_order", lambda asked, block: covering(block_order(asked, block), whole))
    made = run(rack_agent, shortened(study_file.load(path)), tmp_path / "out")
    runs = list({each.key: each for each in made}.values())  # of several attempts the last
    # Whether this machine is quiet enough for 1 Gb/s is not the question here, nor whether it then carries a load.
    shown = SHOWS.get(path.stem)
    assert [line for each in runs for line in unexplained(each.excluded, shown)] == []
    if shown is not None:
        assert any(line.startswith(shown) for each in runs for line in each.excluded)
    # In so short a time a flow that many others leave nothing may deliver nothing.
    values = [value for each in runs for name, value in each.metrics.items() if name != "smallest_goodput"]
    assert min(values) > 0
    assert all(each.metrics for each in runs)
