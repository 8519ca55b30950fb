"""Makes the recordings of this folder anew, by real programs on the emulated rack.

    sudo -E PYTHONPATH=python/tests .venv/bin/python python/tests/recorded/make.py [NAME ...]

It needs what a study of these workloads needs: root, the agent, iperf3, vsftpd and curl. A name is that of a recording;
without one all are made, which takes some minutes. Each is a study of one block. Of each of its runs the conversation
with the agent is kept, and the record. A run that a busy machine has spoilt, or whose costs it has, is tried again; if
none is left, or another check fails, nothing is kept. `python/tests/helpers/recorded.py` replays recordings.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from helpers.real import run, study
from helpers.recorded import NAMES, Exchange, Recorded, Recorder, Recording, path_of, save

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent
from framegauge.testbeds.rack import RackTestbed

ATTEMPTS = 20
PAIR = {"kind": "rack", "link": {"rate": "200 Mb/s"}}
RACK = {**PAIR, "topology": "rack", "hosts": 3}
MIXED = {"mtu": {"levels": [1500, {"default": 9000, "h2": 1500}], "baseline": 1500}}
IPERF3 = {"duration": "1 s"}
FTP = {"size": "1 MB", "repeat": "0.2 s"}
BOTH = {"goodput": "1 %", "completion_time": "2 %"}

# IPv4 and IPv6, one MTU and two, so that together they have everything that the programs may meet.
MADE: Mapping[str, Mapping[str, Any]] = {
    "iperf3-one-to-one": {"testbed": PAIR, "workloads": [{"iperf3": IPERF3}]},
    "iperf3-nagle-off": {"testbed": PAIR, "factors": {"nagle": False}, "workloads": [{"iperf3": IPERF3}]},
    "iperf3-reverse": {"testbed": {**PAIR, "family": 6}, "workloads": [{"iperf3": {**IPERF3, "reverse": True}}]},
    "iperf3-many-to-one": {
        "testbed": {**RACK, "family": 6}, "factors": MIXED, "workloads": [{"iperf3": {**IPERF3, "pattern": "many-to-one", "flows": 2}}],
    },
    "ftp-one-to-one": {"testbed": RACK, "workloads": [{"ftp": FTP}], "margins": BOTH},
    "ftp-ipv6": {"testbed": {**PAIR, "family": 6}, "workloads": [{"ftp": FTP}], "margins": BOTH},
    "ftp-many-to-one": {
        "testbed": RACK, "factors": MIXED, "workloads": [{"ftp": {**FTP, "size": "17 MB", "pattern": "many-to-one"}}], "margins": BOTH,
    },
}  # fmt: skip
assert tuple(sorted(MADE)) == NAMES


def split(heard: Sequence[Exchange]) -> list[list[Exchange]]:
    """The conversation of each run, which begins with the building of its hosts."""
    begins = [number for number, each in enumerate(heard) if each.method == "rack.up"]
    return [list(heard[begin:end]) for begin, end in zip(begins, [*begins[1:], None], strict=True)]


def make(agent: Agent, name: str) -> None:
    """One recording, tried again while the machine is busy."""
    for last in (*[False] * (ATTEMPTS - 1), True):
        try:
            attempt(agent, name)
            return
        except Busy as error:
            if last:
                raise SystemExit(f"{name}: the machine was too busy: {error}; try again") from None


class Busy(Exception):
    """The machine was."""


def attempt(agent: Agent, name: str) -> None:
    """One recording; Busy if other programs have spoilt a run."""
    asked = study(question=f"What do the programs of {name} say?", blocks=1, **MADE[name])
    recorder = Recorder(agent)
    with tempfile.TemporaryDirectory() as place:
        results = Path(place, "out")
        runs = run(agent, asked, results, RackTestbed(recorder))
        kept: dict[str, Recorded] = {}
        for each, said in zip(runs, split(recorder.heard), strict=True):
            if wrong := [line for line in each.excluded if not line.startswith("fidelity: ")]:
                raise SystemExit(f"{name}: {'; '.join(wrong)}")
            if not each.excluded and "receiver_cpu_cost" in each.metrics:
                record = json.loads((results / "runs" / str(each.number) / "record.json").read_text())
                kept[each.arm] = Recorded(said, record)
        if kept.keys() != {each.arm for each in runs}:
            reasons = [line for each in runs for line in each.excluded]
            raise Busy("; ".join(reasons) or "other programs used the hosts' CPUs, so that costs are missing")
    # A study file must ask for two blocks.
    save(Recording(name, asked.model_copy(update={"blocks": 2}), list(kept.values())))
    print(f"{name}: {len(kept)} runs, {path_of(name).stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    with Agent.open([find_agent(), "rack"]) as opened:
        for chosen in sys.argv[1:] or NAMES:
            make(opened, chosen)
