"""Programs whose sockets the agent may not ask are named with the reason."""

from __future__ import annotations

import sys

import pytest
from helpers.real import output, spawn

from framegauge.agents.binary import find_agent
from framegauge.agents.pipe import Agent

PROGRAM = """
import socket, time
listener = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(listener.getsockname())
server, _ = listener.accept()
print(listener.getsockname()[1], flush=True)
time.sleep(100)
"""
# As in a container whose seccomp profile lacks pidfd_getfd (number 438 on all machines): it fails with EPERM.
FORBID = """
import ctypes, os, struct, sys
rules = [(0x20, 0, 0, 0), (0x15, 0, 1, 438), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *rule) for rule in rules))
program = struct.pack("@HP", len(rules), ctypes.addressof(code))
assert ctypes.CDLL(None).prctl(22, 2, program, 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""
STRANGER = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]


def seen(agent: list[str], *program: str) -> tuple[list[dict[str, object]], list[dict[str, str]]]:
    with Agent.open(agent) as host:
        process = spawn(host, *program, sys.executable, "-c", PROGRAM)
        while not (port := output(host, process)):
            assert not host.request("process.wait", {"process": process, "timeout_seconds": 0.01})["ended"]
        host.request("sockets.watch", {"interval_seconds": 0.01})
        watched = host.request("sockets.watched")
    return [each for each in watched["sockets"] if each["port"] == int(port)], watched["unread"]


@pytest.mark.needs("setpriv")
def test_a_program_whose_descriptors_may_not_be_listed() -> None:
    agent = ["setpriv", "--bounding-set=-sys_ptrace", find_agent(), "host"]
    found, unread = seen(agent, *STRANGER)
    assert found == []
    assert [each["why"].split(": ", 1)[1] for each in unread] == ["Permission denied (os error 13)"]
    assert unread[0]["why"].startswith("read /proc/")


@pytest.mark.needs("setpriv")
def test_a_stranger_is_read_by_an_agent_with_all_rights() -> None:
    found, unread = seen([find_agent(), "host"], *STRANGER)
    assert ([each["nodelay"] for each in found], unread) == ([[False], [False]], [])


def test_a_program_whose_sockets_may_not_be_borrowed() -> None:
    found, unread = seen([sys.executable, "-c", FORBID, find_agent(), "host"])
    assert [(each["nodelay"], each["congestion_control"] != []) for each in found] == [([], True)] * 2
    assert [each["why"] for each in unread] == ["pidfd_getfd: Operation not permitted (os error 1)"]
