"""Simulations on a Dask cluster: what becomes of them when a worker dies."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from framegauge.errors import InputError
from framegauge.experiment.progress import Event
from framegauge.experiment.simulated import engines, plan
from framegauge.experiment.simulated.pool import Pool
from framegauge.results.journal import Journal
from framegauge.study import file as study_file
from framegauge.study.sweep import Source, points

FILE = """\
testbed: {kind: simulator, link: {rate: 100 Mb/s, buffer: 64 KiB}}
factors: {mtu: [1500, 9000]}
workloads: [{stream: {duration: 100 ms}}]
blocks: 6
"""
PLAN = {"question": "?", "scope": "simulated", "treatment": "mtu", "margins": {"goodput": 0.01}}


@pytest.mark.agent
@pytest.mark.thorough
def test_a_worker_that_dies_changes_nothing(tmp_path: Path) -> None:
    import distributed

    found = points(Source(FILE, "s.yaml"), [])
    killed: list[int] = []

    def run(name: str, address: str, workers: list[int]) -> bytes:
        def kill_one(event: Event) -> None:
            if workers and not killed and event.number > 2:
                killed.append(workers[0])
                os.kill(workers[0], signal.SIGKILL)

        study = found[0].study
        with (
            engines.opened(address) as engine,
            Journal.create(tmp_path / name, study_file.dump(study), PLAN) as journal,
        ):
            pool = Pool(plan.blocks(found), journal, engine.simulate, 2, stop=engine.stop, on_event=kill_one)
            assert pool.run(may_settle=False).runs == 12
        return (tmp_path / name / "runs.jsonl").read_bytes()

    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        address = cluster.scheduler_address.replace("tcp://", "dask://")
        there = run("there", address, [worker.pid for worker in cluster.workers.values()])
    assert killed
    assert there == run("here", "local", [])


@pytest.mark.parametrize("text", ["spark://x:1", "dask://", "LOCAL", ""])
def test_another_engine_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="expected local or dask://HOST:PORT"), engines.opened(text):
        pass
