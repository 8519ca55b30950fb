"""Networks on a real rack, shared by the tests of shapes, queues and routers."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow.ipc
from helpers.real import UP
from helpers.schemas import conforms
from helpers.support import PATIENCE_SECONDS, PIPE_SCHEMA as SCHEMA

from framegauge.agents.pipe import Agent
from framegauge.agents.spools import read_spool
from framegauge.testbeds.base import Host, Json
from framegauge.testbeds.rack import Relay
from framegauge.workloads.stream import Stream
from framegauge.workloads.transfers import flow_rates

RATE = 100_000_000
TOKEN = "5a" * 16


@contextmanager
def network(agent: Agent, hosts: int, mtu: int = 1500, **rest: Any) -> Iterator[tuple[Json, list[Host]]]:
    """A rack that is up, with what differs from the usual; its answer and hosts."""
    link = {**UP["link"], "bits_per_second": RATE, **rest.pop("link", {})}
    second = {name: rest.pop(name) for name in ("second_mtu",) if name in rest}
    named = [{"name": f"h{number}", "mtu": mtu, **second} for number in range(1, hosts + 1)]
    built = agent.request("rack.up", {**UP, "hosts": named, "link": link, **rest}, timeout_seconds=PATIENCE_SECONDS)
    try:
        yield built, [Host(each["name"], each["address"], Relay(agent, each["name"])) for each in built["hosts"]]
    finally:
        agent.request("rack.down", timeout_seconds=PATIENCE_SECONDS)


def valid(answer: Json, shape: str) -> None:
    """An answer of the agent is as pipe/schema.json says."""
    conforms(answer, {"$ref": f"#/$defs/{shape}", "$defs": SCHEMA["$defs"]})


def port_of(measured: Json, name: str) -> Json:
    """One port's counters."""
    return next(port for port in measured["fabric"]["ports"] if port["port"] == name)


def table(agent: Agent, spool: int) -> list[dict[str, Any]]:
    """The rows of a spool."""
    rows: list[dict[str, Any]] = pyarrow.ipc.open_file(io.BytesIO(read_spool(agent, spool))).read_all().to_pylist()
    return rows


def transfer(agent: Agent, hosts: list[Host], seconds: float, **meters: Any) -> tuple[Json, dict[str, float]]:
    """All hosts send to the last one; what the fabric measured, and each sender's goodput in b/s."""
    agent.request("measure.begin", meters)
    done = Stream(duration_seconds=seconds, pattern="many-to-one").run(hosts, TOKEN, None)
    measured = agent.request("measure.end")
    agents = {host.name: host.agent for host in hosts}
    spools = {
        each.name: pyarrow.ipc.open_file(io.BytesIO(read_spool(agents[each.host], each.number))).read_all()
        for each in done.spools
        if each.name.startswith("transfers")
    }
    rates = {run["client"]: 8 * sum(flow_rates(spools[run["transfers"]])) for run in done.record["runs"]}
    return measured, rates
