"""TCP_NODELAY of real programs, switched by the preloaded library and read from their live sockets by the agent."""

from __future__ import annotations

import getpass
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers.real import output
from helpers.support import PATIENCE_SECONDS

from framegauge.agents.binary import find_agent, find_nodelay
from framegauge.agents.pipe import Agent

Json = dict[str, Any]

# Each end asks for the opposite of what the switch says, after it is connected. The server forks for each connection.
SERVER = """
import os, socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    connection, _ = listener.accept()
    if os.fork() == 0:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(sys.argv[1]))
        while connection.recv(100, socket.MSG_WAITALL):
            connection.sendall(bytes(100))
        os._exit(0)
    connection.close()
"""
# Clients stay when they are done, so that the last look of a watch sees them, however seldom it looked before.
CLIENT = """
import asyncio, socket, sys, time
async def main():
    # It connects without waiting, and sets TCP_NODELAY by itself.
    reader, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[2]))
    writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, int(sys.argv[1]))
    for _ in range(20):
        writer.write(bytes(100))
        await reader.readexactly(100)
        await asyncio.sleep(0.01)
    print("done", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
# A client that calls the kernel by itself, as Go and static programs do.
DIRECT = """
import ctypes, platform, socket, struct, sys, time
call = ctypes.CDLL(None).syscall
make, connect, set_option = {"x86_64": (41, 42, 54), "aarch64": (198, 203, 208)}[platform.machine()]
number = call(make, socket.AF_INET, socket.SOCK_STREAM, 0)
address = struct.pack("=HH4s8x", socket.AF_INET, socket.htons(int(sys.argv[2])), bytes([127, 0, 0, 1]))
assert call(connect, number, address, len(address)) == 0
value = struct.pack("=i", int(sys.argv[1]))
assert call(set_option, number, socket.IPPROTO_TCP, socket.TCP_NODELAY, value, len(value)) == 0
connection = socket.socket(fileno=number)
for _ in range(20):
    connection.sendall(bytes(100))
    connection.recv(100, socket.MSG_WAITALL)
    time.sleep(0.01)
print("done", flush=True)
time.sleep(3600)
"""
NGINX = """
daemon off; worker_processes 2; pid {folder}/pid; error_log stderr;
user {user};
events {{}}
http {{
    access_log off; tcp_nodelay {own};
    client_body_temp_path {folder}/a; proxy_temp_path {folder}/b; fastcgi_temp_path {folder}/c;
    uwsgi_temp_path {folder}/d; scgi_temp_path {folder}/e;
    server {{ listen 127.0.0.1:{port}; root {folder}; limit_rate 200k; }}
}}
"""


@pytest.fixture
def host() -> Iterator[Agent]:
    with Agent.open([find_agent(), "host"]) as agent:
        yield agent


def spawn(host: Agent, switch: str | None, *argv: str) -> int:
    environment = {"LD_PRELOAD": find_nodelay(), "FRAMEGAUGE_NODELAY": switch} if switch else {}
    return int(host.request("process.spawn", {"argv": list(argv), "environment": environment})["process"])


def first_line(host: Agent, process: int) -> str:
    until = time.monotonic() + PATIENCE_SECONDS
    while "\n" not in (text := output(host, process)):
        assert time.monotonic() < until, output(host, process, "stderr")
        time.sleep(0.01)
    return text.split()[0]


def seen(host: Agent, port: int) -> Mapping[str, Json]:
    """What a watch has seen of a port until now, by role."""
    watched = host.request("sockets.watched")
    assert watched["unread"] == []
    return {each["role"]: each for each in watched["sockets"] if each["port"] == port}


def talked(host: Agent, client: str, switch: str | None, own: bool) -> Mapping[str, Json]:
    """What is seen of a client and a server that ask for `own`."""
    server = spawn(host, switch, "python3", "-c", SERVER, str(int(own)))
    port = first_line(host, server)
    host.request("sockets.watch", {"interval_seconds": 0.005})
    assert first_line(host, spawn(host, switch, "python3", "-c", client, str(int(own)), port)) == "done"
    return seen(host, int(port))


@pytest.mark.parametrize("switch", ["on", "off"])
def test_programs_obey_the_switch_whatever_they_ask_for(host: Agent, switch: str) -> None:
    found = talked(host, CLIENT, switch, own=switch == "off")
    assert {role: each["nodelay"] for role, each in found.items()} == {
        "server": [switch == "on"],
        "client": [switch == "on"],
    }
    assert found["client"]["sent_bytes"] == 2000


def test_without_the_switch_programs_do_as_they_like(host: Agent) -> None:
    """Which also shows that changes are noticed: the server leaves it off at first, and asyncio sets it at once."""
    found = talked(host, CLIENT, None, own=True)
    assert found["server"]["nodelay"] in ([True], [False, True])
    assert True in talked(host, CLIENT, None, own=True)["client"]["nodelay"]
    assert False in talked(host, CLIENT, None, own=False)["client"]["nodelay"]


@pytest.mark.parametrize("switch", ["on", "off"])
def test_a_program_that_calls_the_kernel_by_itself_is_seen_not_to_obey(host: Agent, switch: str) -> None:
    found = talked(host, DIRECT, switch, own=switch == "off")
    assert found["server"]["nodelay"] == [switch == "on"]
    assert (switch == "off") in found["client"]["nodelay"]


@pytest.mark.needs("nginx", "curl")
@pytest.mark.parametrize(("switch", "own"), [("on", "off"), ("off", "on")])
def test_nginx_whose_workers_have_no_environment_obeys(
    host: Agent, tmp_path: Path, switch: str, own: str, free_port: int
) -> None:
    (tmp_path / "file").write_bytes(bytes(100_000))
    (tmp_path / "conf").write_text(NGINX.format(folder=tmp_path, port=free_port, own=own, user=getpass.getuser()))
    spawn(host, switch, "nginx", "-c", str(tmp_path / "conf"), "-e", "stderr")
    host.request("sockets.watch", {"interval_seconds": 0.005})
    address = f"http://127.0.0.1:{free_port}/file"
    words = ["curl", "-sf", "--retry", "20", "--retry-connrefused", "--retry-delay", "1"]
    twice = [*words, "-o", "/dev/null", address, "-o", "/dev/null", address]
    process = spawn(host, switch, *twice)
    ended = host.request("process.wait", {"process": process, "timeout_seconds": PATIENCE_SECONDS})
    assert ended["exit_code"] == 0, output(host, process, "stderr")
    found = seen(host, free_port)
    assert {role: each["nodelay"] for role, each in found.items()} == {
        "server": [switch == "on"],
        "client": [switch == "on"],
    }
    assert (found["server"]["program"], found["client"]["program"]) == ("nginx", "curl")
    assert found["server"]["sent_bytes"] > 200_000


@pytest.fixture
def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
