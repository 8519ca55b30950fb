"""The golden transcripts, replayed on the fake agent, and over real pipes through agent.py."""

import json
import subprocess
import sys

import jsonschema
import pytest
from helpers.schemas import conforms
from helpers.support import PIPE_SCHEMA as SCHEMA, ROOT

from framegauge.agents.pipe import Agent
from framegauge.errors import AgentError, Refused
from framegauge.testbeds.fake.agent import FakeAgent

FILES = sorted((ROOT / "pipe/transcripts").glob("*.jsonl"))
KINDS = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict}


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def differences(wanted, found, where=""):
    """What in `found` is not as `wanted`, where {"$any": kind} stands for any value of that kind."""
    if isinstance(wanted, dict) and wanted.keys() == {"$any"}:
        fits = isinstance(found, KINDS[wanted["$any"]]) and (wanted["$any"] == "boolean") == isinstance(found, bool)
        return [] if fits else [f"{where}: {found!r} is no {wanted['$any']}"]
    if isinstance(wanted, dict) and isinstance(found, dict) and wanted.keys() == found.keys():
        return [line for key in wanted for line in differences(wanted[key], found[key], f"{where}.{key}")]
    if isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        pairs = enumerate(zip(wanted, found, strict=True))
        return [line for place, pair in pairs for line in differences(*pair, f"{where}[{place}]")]
    return [] if wanted == found and type(wanted) is type(found) else [f"{where}: {found!r} is not {wanted!r}"]


def check_message(message, methods):
    """Validate a message against the schema, an answer also against its method's result."""
    conforms(message, SCHEMA)
    if "result" in message:
        name = methods[message["id"]]
        conforms(message["result"], {"$ref": f"#/$defs/{name}.result", "$defs": SCHEMA["$defs"]})


def command(path):
    return [sys.executable, "-m", "framegauge.testbeds.fake.agent", path.name.split("-")[0]]


def test_there_are_transcripts_for_both_roles_and_the_schema_is_valid():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert {path.name.split("-")[0] for path in FILES} == {"rack", "host"}
    assert len(FILES) >= 18


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_fake_agent_follows_the_transcript(path):
    methods, answers, agent = {}, [], FakeAgent(path.name.split("-")[0])
    for line in lines(path):
        if "receive" in line:
            found = json.loads(answers.pop(0))
            assert differences(line["receive"], found) == []
            check_message(found, methods)
            continue
        text = line.get("send_raw") or json.dumps(line["send"])
        if "send" in line:
            methods[line["send"]["id"]] = line["send"]["method"]
        answers.append(json.dumps(agent.take(text.encode() + b"\n")))
    assert answers == []
    agent.close()


@pytest.mark.parametrize("path", [FILES[0], FILES[-1]], ids=lambda path: path.stem)
def test_it_does_so_over_pipes_and_ends_when_its_input_does(path):
    sent = [line.get("send_raw") or json.dumps(line["send"]) for line in lines(path) if "receive" not in line]
    done = subprocess.run(command(path), input="\n".join(sent) + "\n", capture_output=True, text=True, check=True)
    wanted = [line["receive"] for line in lines(path) if "receive" in line]
    for answer, found in zip(wanted, done.stdout.splitlines(), strict=True):
        assert differences(answer, json.loads(found)) == []


class Recorder:
    """Keeps what agent.py really wrote: it must be the transcript, message for message."""

    def __init__(self, pipe):
        self.lines, self._pipe = [], pipe

    def write(self, data):
        self.lines.append(data)
        return self._pipe.write(data)

    def __getattr__(self, name):
        return getattr(self._pipe, name)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "path", [path for path in FILES if "send_raw" not in path.read_text()], ids=lambda path: path.stem
)
def test_agent_py_sends_and_understands_the_transcript(path):
    conversation = lines(path)
    agent = Agent(command(path))
    sent = agent._process.stdin = Recorder(agent._process.stdin)
    for asked, answer in zip(conversation[::2], conversation[1::2], strict=True):
        request, wanted = asked["send"], answer["receive"]
        call = agent.begin(request["method"], request["params"])
        assert call.number == request["id"] == wanted["id"]
        if "error" in wanted:
            with pytest.raises((AgentError, Refused)) as error:
                call.result()
            if isinstance(error.value, Refused):
                limit = wanted["error"]["data"]["limit"]
                assert wanted["error"]["code"] == -32003
                assert f"the limit here is {limit}" in str(error.value)
                continue
            found = {"code": error.value.code, "message": error.value.message, "data": error.value.data}
            assert differences(wanted["error"], found) == []
        else:
            assert differences(wanted["result"], call.result()) == []
    agent.close()
    written = [json.loads(line) for line in sent.lines]
    assert written[: len(conversation) // 2] == [line["send"] for line in conversation[::2]]


def test_every_request_that_is_sent_fits_the_schema():
    """Whatever the transcripts send on purpose: only the requests meant to be wrong may not fit."""
    validator = jsonschema.Draft202012Validator(SCHEMA)
    for path in FILES:
        conversation = lines(path)
        for asked, answer in zip(conversation[::2], conversation[1::2], strict=True):
            wrong = answer["receive"].get("error", {}).get("code") in (-32700, -32600, -32601, -32602)
            assert "send" in asked or wrong
            if "send" in asked and not wrong:
                assert validator.is_valid(asked["send"]), path.name
