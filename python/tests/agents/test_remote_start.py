"""A host that takes no agent, or says what it likes, while one is started there."""

from __future__ import annotations

from pathlib import Path

import pytest

from framegauge.agents import ssh
from framegauge.errors import AgentFailure


def test_a_host_that_takes_no_agent_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It asks for the agent's binary and reads none of it; what it says of the place steers no terminal."""
    program, binary = tmp_path / "ssh", tmp_path / "agent"
    program.write_text("#!/bin/sh\necho needs Linux x86_64\nprintf 'send /x\\033[2J\\n'\nexec sleep 1000\n")
    program.chmod(0o755)
    binary.write_bytes(bytes(4 << 20))
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(ssh, "COPY_SECONDS", 0.2)
    said: list[str] = []
    with pytest.raises(AgentFailure, match=r"^h1: the agent was not taken within 0\.2 s$"):
        ssh.open_agent(ssh.Remote("h1", "h1", agent=str(binary)), ["host"], said.append, start_seconds=300)
    assert said == ["h1: copying the agent (4.2 MB) to /x\N{REPLACEMENT CHARACTER}[2J"]
