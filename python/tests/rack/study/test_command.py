"""The workload `command` on the real rack: programs that nobody here has heard of, and what goes wrong with them."""

from __future__ import annotations

import copy
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.real import run, study

from framegauge.agents.pipe import Agent
from framegauge.results.journal import Run

# Answers each line with as many bytes as it asks for.
SERVER = """
import socketserver, sys
class Answers(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            self.wfile.write(b"x" * int(line))
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer.daemon_threads = True
with socketserver.ThreadingTCPServer((sys.argv[1], int(sys.argv[2])), Answers) as server:
    print("waiting for questions", flush=True)
    server.serve_forever()
"""
CLIENT = """
import json, os, socket, sys, time
place, port, size, count = sys.argv[1], *map(int, sys.argv[2:5])
begun = time.monotonic()
with socket.create_connection((place, port)) as asked:
    for _ in range(count):
        asked.sendall(b"%d\\n" % size)
        left = size
        while left:
            left -= len(asked.recv(left))
open("notes.txt", "w").write(f"{size * count} bytes\\n")
print(json.dumps({"bytes": size * count, "seconds": time.monotonic() - begun, "host": socket.gethostname()}))
"""
PYTHON = sys.executable
COMMAND: dict[str, Any] = {
    "name": "lines",
    "servers": [
        {
            "host": "h2", "run": [PYTHON, "server.py", "{address}", "7000"], "files": {"server.py": SERVER},
            "ready": {"port": 7000},
        }
    ],
    "clients": [
        {
            "host": "h1", "run": [PYTHON, "{run}/client.py", "{h2}", "7000", "20000", "100"],
            "files": {"client.py": CLIENT}, "within": "20 s",
        }
    ],
    "metrics": {"seconds_taken": {"json": "seconds", "unit": "s", "better": "lower"}},
    "keep": ["notes.txt"],
}  # fmt: skip


def runs_of(agent: Agent, folder: Path, change: Any = None, **rest: Any) -> list[Run]:
    command = copy.deepcopy(COMMAND)
    if change is not None:
        change(command)
    asked = {"blocks": 2, "margins": {"seconds_taken": "5 %"}, "retries": 0, **rest}
    return run(agent, study(workloads=[{"command": command}], **asked), folder)


def record(folder: Path, number: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "runs" / str(number) / "record.json").read_text())
    return found


def unexplained(runs: list[Run]) -> set[str]:
    """What excluded runs, apart from a machine that had no time for them."""
    return {line for each in runs for line in each.excluded if not line.startswith("fidelity: ")}


def test_any_program_is_measured_with_all_proofs(rack_agent: Agent, tmp_path: Path) -> None:
    runs = runs_of(rack_agent, tmp_path / "out")
    assert unexplained(runs) == set()
    for each in runs:
        found = record(tmp_path / "out", each.number)
        work, mtu = found["workload"], each.level
        assert work["printed"]["seconds_taken"] == each.metrics["seconds_taken"] > 0
        assert work["clients"][0]["host"] == "h1"
        assert json.loads(work["clients"][0]["words"])["host"] == "h1"
        assert work["kept"] == {"h1": {"notes.txt": "2000000 bytes\n"}}
        # The kernel counts the other end's FIN as a byte.
        assert 2_000_000 <= work["received_bytes"]["h1"] <= 2_000_001
        assert work["congestion_control"] == {"h1": ["cubic"], "h2": ["cubic"]}
        assert {row["mss_bytes"] for row in work["live"]} == {mtu - 52}
        served = {row["program"]: row["port"] for row in work["traffic"]["h2"]}
        assert set(served.values()) == {7000}
        frames = {host["host"]: host for host in found["measure"]["fabric"]["hosts"]}
        mean = frames["h2"]["data_frame_bytes"] / frames["h2"]["data_frames"]
        assert (mean > 5000) == (mtu == 9000)
        assert each.metrics["goodput"] > 0


@pytest.mark.parametrize("nagle", [False, True])
def test_nagle_holds_for_programs_that_have_no_such_option(rack_agent: Agent, tmp_path: Path, nagle: bool) -> None:
    runs = runs_of(rack_agent, tmp_path / "out", blocks=2, factors={"mtu": 9000, "nagle": nagle}, control=True)
    assert unexplained(runs) == set()
    for each in runs:
        found = record(tmp_path / "out", each.number)["workload"]["nodelay"]
        assert {name.partition(" ")[0] for name in found} == {"h1", "h2"}
        assert set(map(tuple, found.values())) == {(not nagle,)}


def test_a_program_that_does_not_obey_is_named(rack_agent: Agent, tmp_path: Path) -> None:
    """It sets the option by itself, without the C library."""

    def change(command: dict[str, Any]) -> None:
        command["clients"][0]["env"] = {"LD_PRELOAD": ""}

    runs = runs_of(rack_agent, tmp_path / "out", change, factors={"mtu": 9000, "nagle": False}, control=True)
    for each in runs:
        assert any("proof: TCP_NODELAY of live sockets on h1 (" in line for line in each.excluded)
        assert not any("on h2 (" in line for line in each.excluded)


def test_programs_of_one_host_may_talk_to_each_other(rack_agent: Agent, tmp_path: Path) -> None:
    """Their packets cross no link, and are no part of the balance."""

    def change(command: dict[str, Any]) -> None:
        server, client = copy.deepcopy(command["servers"][0]), copy.deepcopy(command["clients"][0])
        server |= {"host": "h1", "run": [PYTHON, "server.py", "127.0.0.1", "7001"], "ready": {"output": "^waiting"}}
        client |= {"run": [PYTHON, "client.py", "127.0.0.1", "7001", "5000", "50"]}
        command["servers"].append(server)
        command["clients"].append(client)

    runs = runs_of(rack_agent, tmp_path / "out", change)
    assert unexplained(runs) == set()
    for each in runs:
        work = record(tmp_path / "out", each.number)["workload"]
        assert {row["port"] for row in work["traffic"]["h1"]} == {7000}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            lambda c: c["servers"][0].update(run=["/bin/sh", "-c", "echo no more money >&2; exit 3"]),
            "error: the shell script on h2 ended before it was ready (exit code 3): no more money",
        ),
        (
            # A shell has printed its line long before, also where a CPU has to be waited for.
            lambda c: c["servers"][0].update(
                run=["/bin/sh", "-c", "echo waiting for questions; exec sleep 30"],
                ready={"port": 7009, "within": "0.3 s"},
            ),
            "on h2 was not ready: found no port 7009 open within 0.3 s: waiting for questions",
        ),
        (
            lambda c: c["servers"][0].update(ready={"output": "never said", "within": "0.3 s"}),
            "on h2 was not ready: found no output matching 'never said' within 0.3 s",
        ),
        (
            lambda c: c["servers"][0].update(ready={"file": "pid", "within": "0.3 s"}),
            "on h2 was not ready: found no file run-",
        ),
        (
            lambda c: c["clients"][0].update(run=["sleep", "60"], within="0.5 s"),
            "error: sleep on h1 did not end within 0.5 s (`within`): it printed nothing",
        ),
        (
            lambda c: c["clients"][0].update(shell="echo started; exit 7", run=None),
            "error: the shell script on h1 failed (exit code 7): started",
        ),
        (
            lambda c: c["metrics"]["seconds_taken"].update(json="duration"),
            "error: metric seconds_taken: output on h1: found nothing at 'duration', expected a number; its last lines: {",
        ),
        (
            lambda c: c["metrics"].update(seconds_taken={"output": "[0-9]+", "better": "lower"}),
            "error: metric seconds_taken: output on h1: found ",
        ),
        (
            lambda c: c["metrics"].update(seconds_taken={"output": "took ([0-9]+)", "better": "lower"}),
            "error: metric seconds_taken: output on h1: found nothing that matches 'took ([0-9]+)', expected one; its last",
        ),
        (
            lambda c: c["metrics"]["seconds_taken"].update(file="lost.json"),
            "error: metrics: lost.json on h1: read run-",
        ),
        (
            lambda c: c["servers"][0].update(shell="(sleep 0.7; kill -9 $$) & exec sleep 30", run=None, ready={"seconds": "0.1 s"})
            or c["clients"][0].update(run=["sleep", "1.5"]),
            "error: the shell script on h2 ended during the run (signal 9)",
        ),
    ],
)  # fmt: skip
def test_what_goes_wrong_is_one_line_with_the_last_words(
    rack_agent: Agent, tmp_path: Path, change: Any, expected: str
) -> None:
    def changed(command: dict[str, Any]) -> None:
        change(command)
        for step in (*command["servers"], *command["clients"]):
            if step.get("run") is None:
                step.pop("run", None)

    runs = runs_of(rack_agent, tmp_path / "out", changed, factors={"mtu": 9000}, control=True, blocks=2)
    assert len(runs) == 4
    for each in runs:
        assert len(each.excluded) == 1
        assert expected in each.excluded[0]
        assert "\n" not in each.excluded[0]


def test_nothing_of_a_run_is_left_for_the_next(rack_agent: Agent, tmp_path: Path) -> None:
    """Data, locks and ports of a server would be in its way."""

    def change(command: dict[str, Any]) -> None:
        command["prepare"] = [{"host": ["h1", "h2"], "shell": 'test -z "$(ls -A {run})" && touch {run}/lock'}]
        command["servers"][0]["shell"] = (
            "test -e lock && (sleep 100 & ) && exec {python} server.py {address} 7000".replace("{python}", PYTHON)
        )
        command["servers"][0].pop("run")
        command["after"] = [{"host": "h1", "shell": "test -e notes.txt"}]

    before = sleepers()
    runs = runs_of(rack_agent, tmp_path / "out", change)
    assert unexplained(runs) == set()
    assert sleepers() == before


def sleepers() -> set[int]:
    found = subprocess.run(["pgrep", "-x", "-f", "sleep 100"], capture_output=True, text=True, check=False).stdout
    return {int(word) for word in found.split()} - {os.getpid()}
