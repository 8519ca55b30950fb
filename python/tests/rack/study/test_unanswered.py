"""A middle link that is smaller than its hosts' MTU, with real kernels: what never gets through does not work, and says
which port dropped it, at which MTU and size."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from helpers.real import run, study

from framegauge.agents.pipe import Agent

METRICS = {"rr": "transactions", "datagrams": "delivered"}
LOADS = {
    "rr": ({"response": "100 kB", "duration": "0.2 s"}, "h1: 0 of 1 requests answered; port right>left (MTU 1500)"),
    "datagrams": (
        {"size": "8 KiB", "rate": 100, "duration": "0.2 s"},
        "h1: 0 of 20 datagrams arrived; port left>right",
    ),
}


@pytest.mark.parametrize("name", LOADS)
def test_what_a_port_is_too_small_for_does_not_work(rack_agent: Agent, tmp_path: Path, name: str) -> None:
    load, said = LOADS[name]
    sides = [{"from": one, "to": other, "mtu": 1500} for one, other in (("left", "right"), ("right", "left"))]
    bed = {"kind": "rack", "topology": "dumbbell", "hosts": 2, "link": {"rate": "100 Mb/s"}, "links": sides}
    asked = study(testbed=bed, workloads=[{name: load}], margins={METRICS[name]: "10 %"}, blocks=1, retries=0)
    runs = {each.level: each for each in run(rack_agent, asked, tmp_path)}
    assert not any(line.startswith("does not work") for line in runs[1500].excluded)
    reasons = [line for line in runs[9000].excluded if not line.startswith("fidelity: ")]
    assert len(reasons) == 1, reasons
    (why,) = reasons
    assert why.startswith(f"does not work: {said}")
    assert " too large for it, of up to " in why


SERVER = """
import socket, sys, time
listening = socket.create_server((sys.argv[1], 7000))
listening.accept()[0].sendall(bytes(100_000))
time.sleep(60)
"""
CLIENT = """
import json, socket, sys
with socket.create_connection((sys.argv[1], 7000)) as asked:
    left = 100_000
    while left:
        left -= len(asked.recv(left))
print(json.dumps({"bytes": 100_000}))
"""


def test_a_program_that_does_not_end_names_the_sizes_too(rack_agent: Agent, tmp_path: Path) -> None:
    server = {"host": "h2", "run": [sys.executable, "server.py", "{address}"], "ready": {"port": 7000}}
    client = {"host": "h1", "run": [sys.executable, "client.py", "{h2}"], "within": "2 s"}
    command: dict[str, Any] = {
        "name": "lump",
        "servers": [server | {"files": {"server.py": SERVER}}],
        "clients": [client | {"files": {"client.py": CLIENT}}],
        "metrics": {"got": {"json": "bytes", "unit": "B", "better": "higher"}},
    }
    sides = [{"from": one, "to": other, "mtu": 1500} for one, other in (("left", "right"), ("right", "left"))]
    bed = {"kind": "rack", "topology": "dumbbell", "hosts": 2, "link": {"rate": "100 Mb/s"}, "links": sides}
    asked = study(testbed=bed, workloads=[{"command": command}], margins={"got": "10 %"}, blocks=1, retries=0)
    runs = {each.level: each for each in run(rack_agent, asked, tmp_path)}
    (why,) = runs[9000].excluded
    assert why.startswith("does not work: ")
    assert "did not end within 2 s" in why
    assert "port right>left (MTU 1500) dropped " in why
    assert why.endswith(" too large for it, of up to 9018 bytes")
