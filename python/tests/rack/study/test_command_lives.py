"""Servers and data of the workload `command` that outlast a run, on the real rack and its kept hosts."""

from __future__ import annotations

import copy
import json
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from helpers.real import run, study

from framegauge.agents.pipe import Agent
from framegauge.results.journal import Run
from framegauge.study.blocks import block_order
from framegauge.study.model import Study

# Answers each line with as many bytes as it asks for; "again" is answered by its start alone, and "next" asks the same
# of another server, over one connection that it keeps.
SERVER = """
import os, socket, socketserver, sys
kept = None
class Answers(socketserver.StreamRequestHandler):
    def handle(self):
        global kept
        for line in self.rfile:
            if line.startswith(b"next "):
                _, place, size = line.split()
                if kept is None:
                    kept = socket.create_connection((place.decode(), 7000))
                kept.sendall(size + b"\\n")
                left = int(size)
                while left:
                    left -= len(kept.recv(left))
                line = b"1"
            self.wfile.write(b"x" * int(line))
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
with open("starts", "a") as starts:
    starts.write("started\\n")
with Server((sys.argv[1], 7000), Answers) as server:
    server.serve_forever()
"""
CLIENT = """
import json, socket, sys
place, count, question, size = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
with socket.create_connection((place, 7000)) as asked:
    for _ in range(count):
        asked.sendall(question.encode() + b"\\n")
        left = size
        while left:
            left -= len(asked.recv(left))
print(json.dumps({"starts": len(open(sys.argv[5]).readlines()) if len(sys.argv) > 5 else 1}))
"""
COMMAND: dict[str, Any] = {
    "name": "lines",
    "prepare": [{"host": "h2", "shell": "date +%s.%N > made", "lives": "study"}],
    "servers": [
        {
            "host": "h2", "run": [sys.executable, "server.py", "{address}"], "files": {"server.py": SERVER},
            "ready": {"port": 7000}, "lives": "study",
        },
        {"host": "h2", "run": ["sleep", "100"], "ready": {"seconds": "0.01 s"}},
    ],
    "clients": [
        {
            "host": "h1", "run": [sys.executable, "client.py", "{h2}", "60", "20000", "20000"],
            "files": {"client.py": CLIENT}, "within": "20 s",
        },
        {"host": "h2", "name": "looker", "shell": "echo $(cat {kept}/made) $(wc -l < {kept}/starts) starts"},
    ],
    "metrics": {
        "starts": {"output": "([0-9]+) starts", "client": "looker", "better": "lower"},
        "made_at": {"output": "^[0-9]+.[0-9]+", "client": "looker", "unit": "s", "better": "lower"},
    },
}  # fmt: skip


def asked(change: Any = None, **rest: Any) -> Study:
    command = copy.deepcopy(COMMAND)
    if change is not None:
        change(command)
    words = {"blocks": 2, "margins": {"starts": "5 %"}, "control": True, "retries": 0, **rest}
    return study(workloads=[{"command": command}], **words)


def runs_of(agent: Agent, folder: Path, change: Any = None, **rest: Any) -> list[Run]:
    return run(agent, asked(change, **rest), folder)


def records(folder: Path, runs: list[Run]) -> list[dict[str, Any]]:
    return [json.loads((folder / "runs" / str(each.number) / "record.json").read_text()) for each in runs]


def unexplained(runs: list[Run]) -> set[str]:
    """What excluded runs, apart from a machine that had no time for them."""
    return {line for each in runs for line in each.excluded if not line.startswith("fidelity: ")}


def test_a_server_and_data_stay_while_hosts_get_other_mtus(rack_agent: Agent, tmp_path: Path) -> None:
    runs = runs_of(rack_agent, tmp_path / "out")
    assert unexplained(runs) == set()
    assert {each.level for each in runs} == {1500, 9000}
    found = records(tmp_path / "out", runs)
    assert len({each["workload"]["printed"]["made_at"] for each in found}) == 1
    assert {each["workload"]["printed"]["starts"] for each in found} == {1}
    assert [each["workload"]["lasting_runs"] for each in found] == list(range(len(runs)))
    for each, record in zip(runs, found, strict=True):
        # Of the kernel's live sockets, of SYNs on the wire, and of the fabric's frames.
        assert {row["mss_bytes"] for row in record["workload"]["live"]} == {each.level - 52}
        frames = {host["host"]: host for host in record["measure"]["fabric"]["hosts"]}["h2"]
        assert (frames["data_frame_bytes"] / frames["data_frames"] > 5000) == (each.level == 9000)
        assert each.readings["ceiling_bits_per_second"] == pytest.approx(ceiling(each.level))
        assert each.readings["lasting_runs"] == record["workload"]["lasting_runs"]


def ceiling(mtu: int) -> float:
    """At 200 Mb/s, IPv4 with timestamps."""
    return 200_000_000 * (mtu - 52) / (mtu + 38)


def test_a_connection_that_keeps_a_smaller_mss_excludes_the_run(rack_agent: Agent, tmp_path: Path) -> None:
    """Opened at 9000, it follows a lower MTU; opened at 1500, it keeps the MSS that its ends announced."""

    def change(command: dict[str, Any]) -> None:
        command["servers"][0]["host"] = ["h2", "h3"]
        command["clients"][0]["run"] = [sys.executable, "client.py", "{h2}", "60", "next {h3} 20000", "1"]

    bed = {"kind": "rack", "topology": "rack", "hosts": 3, "link": {"rate": "200 Mb/s"}}
    # The order of the arms is drawn: one in which 1500 comes first.
    seed = next(
        seed
        for seed in range(99)
        if block_order(asked(change, control=False, testbed=bed, seed=seed), 0)[0].arm.level == 1500
    )
    runs = runs_of(rack_agent, tmp_path, change, control=False, testbed=bed, seed=seed)
    raised: list[bool] = []
    opened = 0
    for each, record in zip(runs, records(tmp_path, runs), strict=True):
        proofs = [line for line in each.excluded if not line.startswith("fidelity: ")]
        opened = opened if record["workload"]["lasting_runs"] else each.level
        raised.append(opened < each.level)
        assert any("MSS of live sockets" in line and "h3" in line for line in proofs) == raised[-1], each.excluded
        assert proofs == [] or raised[-1]
    assert True in raised


def test_a_server_that_ends_between_runs_is_told_and_started_anew(rack_agent: Agent, tmp_path: Path) -> None:
    script = (
        "echo $$ > pid; echo started >> starts; until test -e stop; do sleep 0.05; done; echo had enough >&2; exit 3"
    )
    stop = "touch {kept}/stop; while kill -0 $(cat {kept}/pid) && ! grep -q zombie /proc/$(cat {kept}/pid)/status; do :; done"

    def change(command: dict[str, Any]) -> None:
        command["servers"] = [{"host": "h2", "shell": script, "ready": {"file": "starts"}, "lives": "study"}]
        command["clients"] = [command["clients"][1]]
        command["after"] = [{"host": "h2", "shell": stop}]

    runs = runs_of(rack_agent, tmp_path / "out", change)
    line = "error: the shell script on h2 ended between two runs (exit code 3): had enough"
    assert [line in each.excluded for each in runs] == [bool(number % 2) for number in range(len(runs))]


def test_an_arm_is_what_lives_for_an_arm(rack_agent: Agent, tmp_path: Path) -> None:
    def change(command: dict[str, Any]) -> None:
        command["prepare"][0]["lives"] = "arm"

    runs = runs_of(rack_agent, tmp_path / "out", change)
    assert unexplained(runs) == set()
    made = [each["workload"]["lasting_runs"] for each in records(tmp_path / "out", runs)]
    same = [before.level == each.level for before, each in pairwise(runs)]
    assert [each > 0 for each in made[1:]] == same
