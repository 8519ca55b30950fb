"""Answers as somebody would send them who means harm: one line of error each, whatever they are."""

import contextlib
import copy
import json
import os
import random
import re
import sys
import threading

import jsonschema
import pytest
from helpers import evil
from helpers.support import PATIENCE_SECONDS, PIPE_SCHEMA as SCHEMA, ROOT, by_length, is_alive

from framegauge.agents import answers, last_words
from framegauge.agents.answers import error_of, message_of, result_of
from framegauge.agents.pipe import Agent
from framegauge.agents.spools import MOST_BYTES, PIECE_BYTES, read_spool
from framegauge.errors import AgentFailure, AgentLost, BadAnswer, FramegaugeError

METHODS = sorted(name.removesuffix(".result") for name in SCHEMA["$defs"] if name.endswith(".result"))
FAKE = [sys.executable, "-m", "framegauge.testbeds.fake.agent", "host"]


def sample(node):
    """Something that a schema allows, with every key."""
    if "$ref" in node:
        target = SCHEMA
        for step in node["$ref"].removeprefix("#/").split("/"):
            target = target[step]
        return sample(target)
    for key in ("anyOf", "oneOf"):
        if key in node:
            return sample(node[key][0])
    if "const" in node or "enum" in node:
        return node.get("const", node.get("enum", [None])[0])
    kind = node.get("type", "null")
    kind = kind if isinstance(kind, str) else kind[0]
    more = node.get("additionalProperties")
    return {
        "object": lambda: (
            {key: sample(each) for key, each in node.get("properties", {}).items()}
            | ({"x": sample(more)} if isinstance(more, dict) else {})
        ),
        "array": lambda: [sample(node["items"])],
        "string": lambda: next(text for text in _texts(node) if re.search(node.get("pattern", ""), text)),
        "integer": lambda: node.get("minimum", 0),
        "number": lambda: node.get("minimum", 0) + 0.5,
        "boolean": lambda: True,
        "null": lambda: None,
    }[kind]()


def _texts(node):
    return [{"ipv4": "10.0.0.1", "ipv6": "fd00::1"}.get(node.get("format"), "AAAA"), "1500"]


def places(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield from places(each, (*path, key))


def put(value, path, new):
    if not path:
        return new
    value = copy.deepcopy(value)
    inner = value
    for step in path[:-1]:
        inner = inner[step]
    if new is KeyError:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return value


def problem(method, answer):
    try:
        result_of(method, {"result": answer})
    except BadAnswer as error:
        return str(error)
    return None


BAD = [None, True, -1, 3, 10**19, 1.5, "", "x", "\x1b[2J\n", [], {}, [[]], {"x": {}}, KeyError]


@pytest.mark.parametrize("method", METHODS)
def test_answers_are_taken_exactly_where_the_schema_takes_them(method):
    """The judge is jsonschema. It differs from ours in whole numbers only: 1.0 and what fits no 64 bits."""
    shape = {"$ref": f"#/$defs/{method}.result", "$defs": SCHEMA["$defs"]}
    judge = jsonschema.Draft202012Validator(shape)
    good = sample(SCHEMA["$defs"][f"{method}.result"])
    assert result_of(method, {"result": good}) == good
    found = list(places(good))
    chosen = random.Random(7).sample(found, min(len(found), by_length(12, 10_000)))
    for path in chosen:
        for bad in BAD if path else BAD[:-1]:
            answer = put(good, path, bad)
            line = problem(method, answer)
            assert (line is None) == judge.is_valid(answer) or line.endswith(("expected base64", "address")), (
                path,
                bad,
                line,
            )
            assert line is None or (line.isprintable() and line.startswith(f"{method}: ")), line


def test_a_whole_number_is_written_as_one():
    good = sample(SCHEMA["$defs"]["hello.result"])
    for bad in (1.0, 10**30):
        with pytest.raises(BadAnswer, match=r"hello: pid: found 1[.0]+, expected (a valid integer|less than)"):
            result_of("hello", {"result": good | {"pid": bad}})


def test_the_error_names_the_place_what_was_found_and_what_was_expected():
    facts = sample(SCHEMA["$defs"]["check.facts.result"])
    facts["interfaces"][0]["mtu"] = "\x1b[2J9000"
    with pytest.raises(BadAnswer) as error:
        result_of("check.facts", {"result": facts})
    line = 'check.facts: interfaces.0.mtu: found "\\u001b[2J9000", expected a valid integer'
    assert str(error.value) == line
    del facts["interfaces"][0]["mtu"]
    with pytest.raises(BadAnswer, match=r"^check\.facts: interfaces\.0\.mtu: found nothing, expected a value$"):
        result_of("check.facts", {"result": facts})


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 300 + b"]" * 300,
        b'{"x":' * 300 + b"1" + b"}" * 300,
        b'{"x":NaN}',
        b'{"x":-Infinity}',
        b'{"x":"\\ud800"}',
        b'{"x":"\xed\xa0\x80"}',
        b'{"x":"\xff"}',
        b'{"x":"\x1b[2J"}',
        b"\x1b[2J",
        b"null",
        b"[]",
        b"",
        b"[" + b"[]," * 1_000_000 + b"[]]",
        b" " * (answers.LINE_BYTES + 1),
    ],
    ids=lambda line: repr(line[:9]),
)
def test_what_is_no_message_is_refused_in_one_line(line):
    with pytest.raises(BadAnswer, match="expected") as error:
        message_of(line)
    assert str(error.value).isprintable()
    assert len(str(error.value)) < 400


def test_the_largest_honest_answer_is_taken():
    """126 paths, to 63 hosts in both families, of 1,024 flows each."""
    path = sample(SCHEMA["$defs"]["searched_path"])
    flow = {"source_port": 60000, "verdict": "carries_target", "path_mtu_bytes": None, "delivered_bytes": 9000}
    path["flows"] = 1024 * [flow | {"fragmented": False}]
    line = json.dumps({"id": 1, "result": {"paths": 126 * [path]}}, separators=(",", ":")).encode()
    message = message_of(line)
    assert len(result_of("check.run", message)["paths"]) == 126


@pytest.mark.parametrize(
    "error",
    [None, [], {}, {"code": -32006}, {"code": "x", "message": 1, "data": None}, {"code": 1, "message": "x", "data": {}},
     {"code": -32002, "message": "x", "data": {"missing": [{"name": "tap"}]}},
     {"code": -32006, "message": "two\nlines", "data": {"what": "x"}}],
)  # fmt: skip
def test_a_bad_error_is_a_bad_answer(error):
    found = error_of("rack.up", {"error": error})
    assert isinstance(found, BadAnswer)
    assert str(found).startswith("rack.up: its error: ")
    assert str(found).isprintable()


def test_words_of_errors_are_one_printable_line():
    words = "\x1b[2J\u202ex\rframegauge: forged"
    for code, data in (
        (-32006, {"what": words}),
        (-32003, {"what": words, "asked": words, "limit": [words]}),
        (-32002, {"missing": [{"name": "tap", "needed_for": words, "found": words, "remedy": words}]}),
    ):
        found = error_of("rack.up", {"error": {"code": code, "message": words, "data": data}})
        assert not isinstance(found, BadAnswer)
        assert isinstance(found, FramegaugeError)
        assert str(found).isprintable()


def spoilt(method, mode):
    """An agent of another host, over a connection that begins as ssh's does."""
    return Agent([sys.executable, "-I", "-S", evil.__file__, method, mode, *FAKE], lambda *_: None, "h2")


@pytest.mark.parametrize("mode", [mode for mode in evil.MODES if mode not in evil.SHAPELY])
def test_each_spoilt_answer_is_an_error_of_its_host_in_one_line(mode):
    agent = spoilt("check.facts", mode)
    try:
        agent.hello()
        call = agent.begin("check.facts")
        with contextlib.suppress(AgentLost):  # it may have come already, and have ended the agent
            other = agent.begin("held.begin")
        with pytest.raises(AgentFailure) as error:
            call.result(20)
        line = str(error.value)
        assert line.isprintable()
        assert len(line) < 500
        if isinstance(error.value, BadAnswer):
            assert line.startswith("h2: check.facts: ")
            assert other.result() == {}  # one bad answer takes nothing from the others
        elif isinstance(error.value, AgentLost):
            with pytest.raises(AgentLost):
                agent.request("held.end", timeout_seconds=None)
    finally:
        agent.close(patience_seconds=2.0)
    assert not is_alive(agent.process_id)
    assert not [each for each in threading.enumerate() if each.name in ("agent reader", "last words")]


@pytest.mark.parametrize("mode", evil.SHAPELY)
def test_answers_of_the_right_shape_are_taken(mode):
    agent = spoilt("check.facts", mode)
    try:
        agent.hello()
        assert agent.request("check.facts")["interfaces"]
        assert agent.request("held.begin") == {}
    finally:
        agent.close()


def test_a_request_without_a_time_limit_ends_with_its_agent():
    for reply in ("print('{\"id\":1,\"result\":' + '[' * 100000, flush=True)", "sys.exit(3)", "print(1, flush=True)"):
        agent = Agent([sys.executable, "-c", f"import sys; sys.stdin.readline(); {reply}; sys.stdin.read()"])
        call = agent.begin("check.facts")
        ended = threading.Event()

        def wait(call=call, ended=ended):
            with pytest.raises(AgentLost):
                call.result(None)
            ended.set()

        threading.Thread(target=wait, daemon=True).start()
        assert ended.wait(PATIENCE_SECONDS), reply
        agent.close()


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"id": 7, "result": {}}, "found an answer to request 7, expected one that was made"),
        ({"id": 0, "result": {}}, "found an answer to request 0, expected"),
        ({"id": "1", "result": {}}, "found an answer to request 1, expected"),
        ({"id": 1.0, "result": {}}, "found an answer to request 1.0, expected"),
        ({"result": {}}, "found an answer to request None, expected"),
        ({"id": None, "error": {"code": -32700, "message": "no\u001b JSON", "data": {}}}, "request None (no. JSON), "),
    ],
)
def test_an_answer_to_no_request_keeps_nobody_waiting(answer, told):
    """Its request would wait for its time limit, or for ever."""
    reply = f"print({json.dumps(json.dumps(answer))}, flush=True)"
    agent = Agent([sys.executable, "-c", f"import sys; sys.stdin.readline(); {reply}; sys.stdin.read()"])
    try:
        with pytest.raises(AgentLost) as error:
            agent.request("check.facts", timeout_seconds=PATIENCE_SECONDS)
    finally:
        agent.close()
    assert told.replace("no.", "no\N{REPLACEMENT CHARACTER}") in str(error.value)


def test_of_standard_error_only_the_end_is_kept():
    words = last_words.LastWords()
    for piece in (b"begun\n", b"x" * (1 << 20), b"\nthe end\x1b[2J\n"):
        os.write(words.input, piece)
    os.close(words.input)
    kept = words.end()
    words.close()
    assert len(kept) == last_words.KEPT_BYTES
    assert last_words.last_lines(kept).endswith("; the end\N{REPLACEMENT CHARACTER}[2J")


class Spool:
    """A spool whose pieces and sizes `answer` invents, of the offset."""

    def __init__(self, answer):
        self.answer, self.asked = answer, 0

    def request(self, method, params=None, **_):
        if method == "spool.drop":
            return {}
        self.asked += 1
        size, length = self.answer(params["offset_bytes"])
        return {"data": "QUFB" * (length // 3) + {0: "", 1: "QQ==", 2: "QUE="}[length % 3], "size_bytes": size}


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (lambda _: (1 << 60, PIECE_BYTES), "found a size of 1152921504606846976 bytes, expected at most 1073741824"),
        (lambda offset: (offset + 2 * PIECE_BYTES, PIECE_BYTES), "found a size of 3145728 bytes after 2097152"),
        (lambda _: (4, PIECE_BYTES), "found 1048576 bytes at 0 of 4, expected a piece of 4"),
        (lambda _: (100, 1), "found 1 bytes at 0 of 100, expected a piece of 100"),
        (lambda _: (100, 0), "found 0 bytes at 0 of 100, expected a piece of 100"),
    ],
)
def test_a_spool_that_never_ends_is_given_up(answer, error):
    source = Spool(answer)
    with pytest.raises(BadAnswer, match=error):
        read_spool(source, 3)
    assert source.asked <= 2
    assert MOST_BYTES == 1 << 30


def test_spools_of_every_size_are_read():
    for size in (0, 1, PIECE_BYTES, PIECE_BYTES + 1):
        assert len(read_spool(Spool(lambda offset, size=size: (size, min(PIECE_BYTES, size - offset))), 1)) == size


def test_the_schema_has_every_requirement_that_the_agent_may_name():
    sources = [ROOT / "crates/drivers/src/rack/requirements.rs", ROOT / "crates/agent/src/rack/speed.rs"]
    text = "".join(source.read_text() for source in sources)
    named = set(re.findall(r'name: "([^"]+)"', text)) | set(re.findall(r'^\s*"(CAP_\w+)",$', text, re.MULTILINE))
    assert len(named) > 10
    assert named == set(SCHEMA["$defs"]["requirement"]["properties"]["name"]["enum"])
