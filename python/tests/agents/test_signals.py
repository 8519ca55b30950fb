"""However an agent is told to end, it ends in order."""

from __future__ import annotations

import json
import signal
import subprocess

import pytest
from helpers.support import PATIENCE_SECONDS

from framegauge.agents.binary import find_agent

pytestmark = pytest.mark.agent


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
@pytest.mark.parametrize("role", ["host", "rack"])
def test_a_signal_ends_an_agent_in_order(role: str, number: signal.Signals) -> None:
    with subprocess.Popen(
        [find_agent(), role], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        agent.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "hello", "params": {}}) + "\n")
        agent.stdin.flush()
        assert json.loads(agent.stdout.readline())["id"] == 1
        agent.send_signal(number)
        assert agent.wait(PATIENCE_SECONDS) == 0
        assert agent.stderr is not None
        assert agent.stderr.read() == ""
