"""The keeper as a relay: what it passes to the agent and back, what it refuses, and whom it survives."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers.kept import AGENT, Kept, ended, state
from helpers.support import PATIENCE_SECONDS
from hypothesis import HealthCheck, given, settings, strategies as st

from framegauge.rack import keeper, state as kept

# It says what it was asked, with the id under which it was asked; `hold` waits until so many are held, and answers them
# in the other order; `seen` is all that it was ever sent.


class Asker:
    """Somebody at the socket, who can be as rude as they like."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with kept.within_reach(path) as place:
            self.socket.connect(place)  # without a timeout, with which it would not wait for a place
        self.socket.settimeout(20)
        self._lines = self.socket.makefile("rb")

    def send(self, number: object, method: object = "rack.ports", /, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def hear(self) -> Any:
        """The next message; None if they hung up."""
        line = self._lines.readline()
        return json.loads(line) if line else None

    def ask(self, number: object, method: object = "rack.ports", /, **params: Any) -> Any:
        self.send(number, method, **params)
        return self.hear()

    def close(self) -> None:
        self._lines.close()
        self.socket.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "framegauge-rack.json"


@pytest.fixture
def rack(path: Path) -> Iterator[Kept]:
    it = Kept(path, [sys.executable, "-c", AGENT])
    it.commit()
    yield it
    it.keeper.send_signal(signal.SIGTERM)
    it.ends()
    assert not path.exists()


@pytest.fixture
def ask(rack: Kept) -> Iterator[Callable[[], Asker]]:
    """Makes people who ask."""
    made: list[Asker] = []

    def make() -> Asker:
        made.append(Asker(rack.path))
        return made[-1]

    yield make
    for each in made:
        each.close()


Ask = Callable[[], Asker]


def test_answers_come_back_under_the_id_of_who_asked(ask: Ask) -> None:
    first, second = ask(), ask()
    first.send(7, "rack.set", hold=2)
    assert first.hear()["params"] == {"id": 7, "fraction": 0.25, "text": "held"}
    second.send(7, "rack.ports", hold=2)
    assert second.hear()["params"]["id"] == 7
    one, two = first.hear(), second.hear()
    assert (one["id"], two["id"]) == (7, 7)
    assert (one["result"]["asked"]["method"], two["result"]["asked"]["method"]) == ("rack.set", "rack.ports")
    assert one["result"]["asked"]["id"] != two["result"]["asked"]["id"]


def test_one_request_at_a_time_each(ask: Ask) -> None:
    eager, other = ask(), ask()
    eager.send(1, hold=2)
    assert eager.hear()["params"]["text"] == "held"
    eager.send(2)
    # The agent has not been sent the second, although it came before that of the other.
    assert [method for method, *_ in other.ask(1, "rack.set", seen=True)["result"]["seen"]] == [
        "rack.ports",
        "rack.set",
    ]
    other.send(2, hold=2)
    assert other.hear()["params"]["id"] == 2
    assert [eager.hear()["id"], eager.hear()["id"]] == [1, 2]


def test_errors_of_the_agent_come_unchanged(ask: Ask) -> None:
    answer = ask().ask(3, "rack.set", refuse=True)
    data = {"what": "a", "asked": 2, "limit": 1}
    assert answer == {"jsonrpc": "2.0", "id": 3, "error": {"code": -32003, "message": "no", "data": data}}


@pytest.mark.parametrize(
    ("method", "params"),
    [
        *(
            (method, {})
            for method in ("shutdown", "rack.down", "rack.up", "rack.bare", "hello", "cancel", "requirements")
        ),
        ("relay", {}),
        *(
            ("relay", {"host": "h1", "method": method, "params": {}})
            for method in ("shutdown", "hello", "process.spawn", "relay", ["host.read"], None)
        ),
    ],
)
def test_what_would_end_or_change_the_rack_is_not_passed_on(ask: Ask, method: str, params: Mapping[str, Any]) -> None:
    rude = ask()
    error = rude.ask(1, method, **params)["error"]
    assert error["code"] == -32601
    assert "expected one of" in error["message"]
    assert rude.ask(2, seen=True)["result"]["seen"][0][0] == "rack.ports"


@pytest.mark.parametrize(
    ("line", "code", "number"),
    [
        (b"nonsense", -32700, None),
        (b"\xff\xfe", -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"rack.ports","params":{"a":NaN}}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"rack.ports","params":{"a":1e999}}', -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"rack.ports","params":{"a":1%s}}' % (b"0" * 400), -32700, None),
        (b'{"jsonrpc":"2.0","id":1,"method":"rack.ports","params":{"a":"\\ud800"}}', -32700, None),
        (b"[" * 60_000, -32600, None),
        (b"[]", -32600, None),
        (b'{"jsonrpc":"2.0","method":"rack.ports","params":{}}', -32600, None),
        (b'{"jsonrpc":"2.0","id":true,"method":"rack.ports","params":{}}', -32600, None),
        (b'{"jsonrpc":"2.0","id":-1,"method":"rack.ports","params":{}}', -32600, None),
        (b'{"jsonrpc":"1.0","id":1,"method":"rack.ports","params":{}}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"rack.ports"}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"rack.ports","params":[]}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":3,"params":{}}', -32600, 1),
        (b'{"jsonrpc":"2.0","id":1,"method":"rack.ports","params":{"a":%s}}' % (b"[" * 200 + b"]" * 200), -32600, 1),
    ],
)
def test_what_is_no_request_is_an_error_and_no_more(ask: Ask, line: bytes, code: int, number: int | None) -> None:
    rude = ask()
    rude.socket.sendall(b"\n  \n" + line + b"\n")
    answer = rude.hear()
    assert (answer["error"]["code"], answer["id"]) == (code, number)
    assert "\n" not in answer["error"]["message"]
    assert rude.ask(2, seen=True)["result"]["seen"][0][0] == "rack.ports"


def requests() -> st.SearchStrategy[bytes]:
    """Lines that are nearly requests."""
    values = st.recursive(st.none() | st.integers() | st.floats() | st.text(), st.lists) | st.just({})
    message = st.fixed_dictionaries(
        {"jsonrpc": st.just("2.0") | values, "id": st.integers(0, 9) | values},
        optional={"method": st.sampled_from(["rack.ports", "relay", "shutdown"]) | values, "params": values},
    )
    return message.map(lambda each: json.dumps(each).encode())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b"")) | requests(), max_size=5))
def test_every_line_has_one_answer_whatever_it_is(ask: Ask, lines: list[bytes]) -> None:
    rude = ask()
    rude.socket.sendall(b"".join(line + b"\n" for line in lines))
    # The last is answered last, so whatever was before it has had its answer: one a line that is not white space.
    rude.send(10**6)
    answers = [rude.hear() for line in lines if line.strip()]
    assert all(("result" in answer) != ("error" in answer) for answer in answers)
    assert 10**6 not in [answer["id"] for answer in answers]
    assert rude.hear()["id"] == 10**6
    rude.close()


def test_a_line_without_an_end_is_an_error_and_the_end(ask: Ask) -> None:
    rude, other = ask(), ask()
    rude.socket.sendall(b"x" * keeper.LINE_BYTES)
    assert rude.hear()["error"]["code"] == -32600
    assert rude.hear() is None
    assert other.ask(1)["id"] == 1
    # One byte shorter is a line like any other.
    fits = ask()
    fits.socket.sendall(b"x" * (keeper.LINE_BYTES - 1) + b"\n")
    assert fits.hear()["error"]["code"] == -32700
    assert fits.ask(1)["id"] == 1


def test_who_hangs_up_in_the_middle_has_cancelled(ask: Ask) -> None:
    gone, other = ask(), ask()
    gone.send(5, hold=9)
    assert gone.hear()["params"]["text"] == "held"
    gone.close()
    seen = other.ask(1, seen=True)["result"]["seen"]
    assert [method for method, *_ in seen] == ["rack.ports", "cancel", "rack.ports"]
    assert seen[1][2] == {"id": seen[0][1]}  # by the id that the agent knows


def test_who_says_no_more_still_has_their_answers(ask: Ask) -> None:
    last = ask()
    last.send(1)
    last.send(2)
    last.socket.shutdown(socket.SHUT_WR)
    assert [last.hear()["id"], last.hear()["id"], last.hear()] == [1, 2, None]


def test_who_does_not_read_holds_up_nobody(ask: Ask) -> None:
    deaf, other = ask(), ask()
    size = 10_000_000  # far more than a socket takes
    deaf.send(1, bytes=size)
    deaf.send(2, seen=True)
    for number in range(3):
        assert other.ask(number, seen=True)["result"]["seen"][0][2] == {"bytes": size}
    assert len(deaf.hear()["result"]["text"]) == size
    assert len(deaf.hear()["result"]["seen"]) == 5  # the three of the other came before


def test_what_the_agent_says_to_nobody_is_passed_over(ask: Ask) -> None:
    gone, other = ask(), ask()
    nothing = ("nonsense", "[]", "{}", '{"id":null}', '{"id":[]}', '{"method":"progress","params":{"id":99}}')
    gone.send(1, say="\n".join(nothing))
    assert other.ask(2)["id"] == 2


def test_more_than_the_most_wait_until_one_leaves(ask: Ask) -> None:
    there = [ask() for _ in range(keeper.MOST_CLIENTS)]
    assert [each.ask(number)["id"] for number, each in enumerate(there)] == list(range(keeper.MOST_CLIENTS))
    next_one = ask()
    next_one.send(1, seen=True)
    # Whatever is asked meanwhile is answered, and the one that waits has not been heard.
    assert len(there[0].ask(1, seen=True)["result"]["seen"]) == keeper.MOST_CLIENTS + 1
    there[3].close()
    assert len(next_one.hear()["result"]["seen"]) == keeper.MOST_CLIENTS + 2


def test_only_its_user_may_open_the_socket(ask: Ask, path: Path) -> None:
    ask()
    about = os.stat(keeper.socket_path(str(path)))
    assert about.st_mode & 0o777 == 0o600
    assert about.st_uid == os.geteuid()


def test_a_rack_goes_while_it_is_asked(path: Path) -> None:
    it = Kept(path, [sys.executable, "-c", AGENT])
    it.commit()
    asker = Asker(path)
    asker.send(1, hold=2)
    assert asker.hear()["params"]["text"] == "held"
    # An answer larger than a pipe takes is on its way, and nobody will hear it.
    other = Asker(path)
    other.send(1, bytes=10_000_000)
    it.keeper.send_signal(signal.SIGTERM)
    it.ends()
    assert asker.hear() is None
    asker.close()
    other.close()
    assert not path.exists()


def test_an_agent_that_goes_while_it_is_asked_hangs_up_on_all(path: Path) -> None:
    it = Kept(path, [sys.executable, "-c", AGENT])
    it.commit()
    asker = Asker(path)
    assert asker.ask(1, end=True) is None
    asker.close()
    it.ends()
    assert json.loads(path.read_text())["state"] == "ended"


def test_nobody_is_heard_before_the_rack_is_committed(path: Path) -> None:
    for commits in (True, False):
        it = Kept(path, [sys.executable, "-c", AGENT])
        early = Asker(path)
        early.send(1, seen=True)
        if commits:
            it.commit()
            assert early.hear()["id"] == 1
            it.keeper.send_signal(signal.SIGTERM)
        it.ours.close()
        it.ends()
        with contextlib.suppress(ConnectionResetError):  # which says that nobody read what they sent
            assert early.hear() is None
        early.close()


def test_a_keeper_removes_its_socket_without_a_state_too_and_no_other(path: Path) -> None:
    it = Kept(path, [sys.executable, "-c", AGENT])
    it.commit()
    path.unlink()
    it.keeper.send_signal(signal.SIGTERM)
    it.ends()
    it = Kept(path, [sys.executable, "-c", AGENT])
    it.commit()
    path.unlink()
    with kept.listen(path):  # another rack was built, because this one's state had gone
        it.keeper.send_signal(signal.SIGTERM)
        assert it.keeper.wait(PATIENCE_SECONDS) == 0
        place = Path(keeper.socket_path(str(path)))
        assert place.exists()
        place.unlink()
    it.ends()


def test_a_killed_keepers_socket_is_swept_with_its_state(path: Path) -> None:
    Path(keeper.socket_path(str(path))).touch()
    keeper.replace(str(path), state(ended()))
    assert kept.current(path, lambda _: None) is None
    assert list(path.parent.iterdir()) == []
    # And one whose state was removed by hand, by the next that listens.
    Path(keeper.socket_path(str(path))).touch()
    with kept.listen(path) as listening:
        assert listening.getsockname().endswith(".sock")


def test_a_socket_in_a_deep_folder_is_reached(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 100) / "framegauge-rack.json"  # a name of a socket has 108 bytes at most
    deep.parent.mkdir()
    with kept.listen(deep):
        Asker(deep).close()
