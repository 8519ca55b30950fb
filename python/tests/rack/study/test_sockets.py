"""The sockets of programs in the hosts of a rack: what they chose, what they carried, and what no look has found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from helpers.real import UP, output, spawn
from helpers.support import PATIENCE_SECONDS

from framegauge.agents.pipe import Agent
from framegauge.testbeds.rack import Relay

Json = dict[str, Any]
PORT = 7000
# Answers each request of 100 bytes with 5000, of any number of clients at once.
SERVER = """
import asyncio, sys
async def serve(reader, writer):
    try:
        while await reader.readexactly(100):
            writer.write(bytes(5000))
    except asyncio.IncompleteReadError:
        writer.close()
async def main():
    server = await asyncio.start_server(serve, sys.argv[1], int(sys.argv[2]))
    print("ready", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
CLIENT = """
import socket, sys
kept = []
for _ in range(int(sys.argv[3])):
    connection = socket.create_connection((sys.argv[1], int(sys.argv[2])))
    for _ in range(int(sys.argv[4])):
        connection.sendall(bytes(100))
        assert len(connection.recv(5000, socket.MSG_WAITALL)) == 5000
    if sys.argv[5] == "close":
        connection.close()
    kept.append(connection)
"""


@pytest.fixture(params=[4, 6], ids=["IPv4", "IPv6"])
def hosts(rack_agent: Agent, request: pytest.FixtureRequest) -> Iterator[tuple[Relay, Relay, str]]:
    up = rack_agent.request("rack.up", {**UP, "family": request.param})
    yield Relay(rack_agent, "h1"), Relay(rack_agent, "h2"), up["hosts"][1]["address"]
    rack_agent.request("rack.down")


def seen(hosts: tuple[Relay, Relay, str], connections: int, requests: int, close: str) -> list[Json]:
    """What both hosts have seen of a client with so many connections."""
    client, server, address = hosts
    serving = spawn(server, "python3", "-c", SERVER, address, str(PORT))
    while not output(server, serving):
        assert not server.request("process.wait", {"process": serving, "timeout_seconds": 0.01})["ended"]
    for host in (client, server):
        host.request("sockets.watch", {"interval_seconds": 0.02})
    running = spawn(client, "python3", "-c", CLIENT, address, str(PORT), str(connections), str(requests), close)
    ended = client.request("process.wait", {"process": running, "timeout_seconds": PATIENCE_SECONDS})
    assert ended["exit_code"] == 0, output(client, running, "stderr")
    return [host.request("sockets.watched") for host in (client, server)]


def total(watched: Json, key: str) -> int:
    return sum(each[key] for each in watched["sockets"])


def test_both_ends_of_every_connection_are_seen(hosts: tuple[Relay, Relay, str]) -> None:
    for watched, role, nodelay in zip(seen(hosts, 3, 200, "keep"), ("client", "server"), (False, True), strict=True):
        assert (len(watched["sockets"]), watched["lost"], watched["unread"]) == (3, 0, [])
        for each in watched["sockets"]:
            assert (each["role"], each["port"], each["loopback"]) == (role, PORT, False)
            # asyncio sets TCP_NODELAY as soon as it has accepted, socket leaves it off.
            assert each["nodelay"][-1] is nodelay
            assert each["congestion_control"] == ["cubic"]
            assert set(each["mss_bytes"]) == {1448 if "[" not in each["local"] else 1428}
            assert each["program"].startswith("python")


def test_short_connections_are_counted_to_the_byte(hosts: tuple[Relay, Relay, str]) -> None:
    client, server = seen(hosts, 200, 1, "close")
    assert (total(client, "connections"), total(server, "connections")) == (200, 200)
    assert (total(client, "sent_bytes"), total(server, "sent_bytes")) == (20_000, 1_000_000)
    # The kernel counts the FIN that ended a connection as a byte.
    assert 20_000 <= total(server, "received_bytes") <= 20_200
    assert all(each["program"].startswith("python") for each in server["sockets"])
    assert client["looks"] < 200, "fewer looks than connections"
