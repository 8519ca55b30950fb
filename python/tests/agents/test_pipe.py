import os
import platform
import sys

import pytest
from helpers.support import is_alive

from framegauge.agents import binary
from framegauge.agents.binary import find_agent, find_nodelay
from framegauge.agents.pipe import Agent
from framegauge.agents.privilege import privileged
from framegauge.agents.spools import read_spool
from framegauge.errors import (
    AgentError,
    AgentLost,
    AgentMissing,
    AgentTimeout,
    MissingRequirement,
    Refused,
    from_agent,
)

HOST = [sys.executable, "-m", "framegauge.testbeds.fake.agent", "host"]
RACK = [*HOST[:-1], "rack"]


def scripted(body):
    """An agent that greets and then does what `body` says with each message `m`."""
    script = (
        "import sys, json\n"
        "def say(**k): print(json.dumps({'jsonrpc': '2.0', **k}), flush=True)\n"
        "for line in sys.stdin:\n"
        "    m = json.loads(line)\n"
        "    if m['method'] == 'hello':\n"
        "        say(id=m['id'], result={'protocol': 1, 'agent': '0.1.0', 'role': 'host', 'pid': 1, 'user_id': 0, 'kernel': '6.1', 'cpus': 2}); continue\n"
        f"    {body}\n"
    )
    return [sys.executable, "-c", script]


def test_answers_in_any_order_reach_their_requests():
    body = "h = globals().setdefault('h', []); h.append(m); len(h) == 3 and [say(id=x['id'], result={'n': x['id']}) for x in h[::-1]]"
    agent = Agent.open(scripted(body))
    calls = [agent.begin("work") for _ in range(3)]
    assert [call.result()["n"] for call in calls] == [call.number for call in calls]
    agent.close(patience_seconds=0.05)
    assert not is_alive(agent.process_id)


def test_progress_reaches_its_request():
    seen = []
    body = (
        "[say(method='progress', params={'id': m['id'], 'fraction': f, 'text': 't'}) for f in (0.25, 0.5)]; "
        "say(id=m['id'], result={}); m['method'] == 'shutdown' and sys.exit()"
    )
    with Agent.open(scripted(body)) as agent:
        agent.request("work", on_progress=lambda fraction, text: seen.append((fraction, text)))
    assert seen == [(0.25, "t"), (0.5, "t")]


def test_a_late_answer_is_a_timeout_and_is_cancelled():
    body = (
        "m['method'] == 'cancel' and (say(id=m['params']['id'], error={'code': -32005, 'message': 'c', 'data': {}}), "
        "say(id=m['id'], result={'cancelled': True}))"
    )
    agent = Agent.open(scripted(body))
    call = agent.begin("work")
    with pytest.raises(AgentTimeout, match="work: no answer"):
        call.result(timeout_seconds=0)
    with pytest.raises(AgentError) as error:
        call.result()
    assert error.value.code == -32005
    agent.close(patience_seconds=0.05)
    assert not is_alive(agent.process_id)


def test_an_agent_that_dies_is_lost_with_its_last_words():
    agent = Agent.open(scripted("print('no more frames', file=sys.stderr, flush=True); sys.exit(7)"))
    with pytest.raises(AgentLost, match=r"exit code 7.*no more frames"):
        agent.request("work")
    with pytest.raises(AgentLost):
        agent.request("work")
    agent.close()
    assert not is_alive(agent.process_id)


def test_an_agent_that_sends_nonsense_is_lost():
    agent = Agent.open(scripted("print('hello there', flush=True)"))
    with pytest.raises(AgentLost, match="an invalid message"):
        agent.request("work")
    agent.close(patience_seconds=0.05)
    assert not is_alive(agent.process_id)


def test_a_stubborn_agent_is_ended_all_the_same():
    stubborn = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); say(id=m['id'], result={})"
    command = scripted(stubborn)
    command[-1] += "\nwhile True: signal.pause()\n"
    agent = Agent.open(command)
    agent.request("work")
    agent.close(patience_seconds=0.05)
    assert not is_alive(agent.process_id)


def test_an_agent_that_was_handed_over_is_heard_by_nobody_here():
    agent = Agent.open(scripted("say(id=m['id'], result={'cancelled': False} if m['method'] == 'cancel' else {})"))
    agent.hand_over()
    stdin, stdout, _ = agent.descriptors()
    with open(os.dup(stdout), "rb") as output:
        for number in range(3):
            os.write(stdin, b'{"jsonrpc":"2.0","id":%d,"method":"work","params":{}}\n' % number)
            # All of it is for whoever has the pipe now.
            assert output.readline() == b'{"jsonrpc": "2.0", "id": %d, "result": {}}\n' % number
    with pytest.raises(AgentLost, match="work: the agent's pipe was handed over to another process"):
        agent.request("work")
    agent.close()
    assert not is_alive(agent.process_id)


def test_closing_ends_the_agent_in_order():
    with Agent.open(HOST) as agent:
        assert agent.about["role"] == "host"
    assert not is_alive(agent.process_id)
    agent.close()


def test_error_answers_have_classes():
    assert isinstance(from_agent(-32002, "m", {"missing": [{"name": "tap"}]}), MissingRequirement)
    refused = from_agent(-32003, "too large", {"what": "MTU of h2", "asked": 65535, "limit": 65521})
    assert isinstance(refused, Refused)
    assert str(refused) == "MTU of h2: requested 65535, the limit here is 65521 (too large)"


def test_a_spool_is_read_whole_and_dropped():
    data, asked = os.urandom(3 * (1 << 20) + 17), []

    class Source:
        def request(self, method, params=None, **_):
            asked.append(method)
            if method == "spool.drop":
                return {}
            import base64

            piece = data[params["offset_bytes"] :][: params["length_bytes"]]
            return {"data": base64.b64encode(piece).decode(), "size_bytes": len(data)}

    assert read_spool(Source(), 1) == data
    assert asked == ["spool.read"] * 4 + ["spool.drop"]


def test_a_missing_binary_says_how_to_get_it(tmp_path):
    with pytest.raises(AgentMissing, match="expected an executable file"):
        find_agent({"FRAMEGAUGE_AGENT": str(tmp_path / "none")})
    with pytest.raises(AgentMissing, match="cannot start"):
        Agent([str(tmp_path / "none")])


def test_agents_are_looked_for_in_their_order(tmp_path, monkeypatch):
    def made(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(0o755)

    monkeypatch.setattr(binary, "PACKAGED", tmp_path / "package/framegauge-agent")
    monkeypatch.setattr(binary, "CLONE", tmp_path / "clone")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "venv/bin/python"))
    path = {"PATH": str(tmp_path / "path")}
    with pytest.raises(AgentMissing, match=f"install the wheel that carries it for this machine, {platform.machine()}"):
        find_agent(path)
    (tmp_path / "clone").mkdir()
    (tmp_path / "clone/Cargo.toml").touch()
    with pytest.raises(AgentMissing, match="not found: build it with `make agent`, or name it in FRAMEGAUGE_AGENT"):
        find_agent(path)
    last_to_first = [
        tmp_path / "path/framegauge-agent",
        tmp_path / "clone/target/release/framegauge-agent",
        tmp_path / f"clone/target/{platform.machine()}-unknown-linux-gnu/release/framegauge-agent",
        tmp_path / "venv/bin/framegauge-agent",
        tmp_path / "package/framegauge-agent",
    ]
    for each in last_to_first:
        made(each)
        assert find_agent(path) == str(each)
        with pytest.raises(AgentMissing, match=r"libframegauge_nodelay.so was not found: build it with `make agent`"):
            find_nodelay(path)
    assert find_agent(path | {"FRAMEGAUGE_AGENT": str(last_to_first[0])}) == str(last_to_first[0])
    # The library that programs are started with is beside the agent that is used, or else where agents are.
    elsewhere = path | {"FRAMEGAUGE_AGENT": str(last_to_first[0])}
    for each in (last_to_first[1], last_to_first[2], last_to_first[4], last_to_first[0]):
        made(each.with_name(binary.NODELAY))
        assert find_nodelay(elsewhere) == str(each.with_name(binary.NODELAY))
    assert find_nodelay(path) == str(last_to_first[4].with_name(binary.NODELAY))
    library = tmp_path / "a folder/library.so"
    with pytest.raises(AgentMissing, match=r"library\.so, expected a file"):
        find_nodelay(path | {"FRAMEGAUGE_NODELAY_LIBRARY": str(library)})
    made(library)
    with pytest.raises(AgentMissing, match="expected a path without spaces and colons"):
        find_nodelay(path | {"FRAMEGAUGE_NODELAY_LIBRARY": str(library)})


def test_root_needs_no_sudo_and_others_are_told():
    said = []
    assert privileged(["agent", "rack"], said.append, user_id=0) == ["agent", "rack"]
    assert said == []
    with pytest.raises(
        MissingRequirement, match=r"missing privilege .*found no sudo; run framegauge as root, or install sudo"
    ):
        privileged(["agent"], said.append, user_id=1000, environment={"PATH": "/nonexistent"})


@pytest.mark.parametrize(("code", "works"), [(0, True), (1, False)])
def test_sudo_is_used_and_said(tmp_path, code, works):
    sudo = tmp_path / "sudo"
    sudo.write_text(f"#!/bin/sh\nexit {code}\n")
    sudo.chmod(0o755)
    said = []

    def ask():
        return privileged(["agent", "rack"], said.append, user_id=1000, environment={"PATH": str(tmp_path)})

    if works:
        assert ask() == [str(sudo), "-n", "--", "agent", "rack"]
    else:
        with pytest.raises(MissingRequirement, match="sudo refused") as caught:
            ask()
        # A rule for the agent where it is would make root of whoever can write to that file.
        assert "a file that only root can write to (sudo install agent /usr/local/bin/framegauge-agent)" in str(
            caught.value
        )
        assert "set FRAMEGAUGE_AGENT=/usr/local/bin/framegauge-agent, and allow that file" in str(caught.value)
        assert "any program as root" in str(caught.value)
    assert said == ["starting an agent through sudo (network namespaces and TAP need root; Python stays unprivileged)"]
