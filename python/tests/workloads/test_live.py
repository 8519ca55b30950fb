"""Evidence from recorded live sockets: who talked, with which settings, and what was there before."""

from __future__ import annotations

from typing import Any

from framegauge.testbeds.base import Host
from framegauge.workloads import live


class Recorded:
    """Answers `sockets.watched` with recordings, one after another."""

    def __init__(self, *recordings: list[dict[str, Any]]) -> None:
        self._left = list(recordings)

    def begin(self, method: str, params: object = None, on_progress: object = None) -> Any:
        answer = {}
        if method == "sockets.watched":
            sockets = self._left.pop(0)
            answer = {
                "looks": 9,
                "seconds": 1.0,
                "cpu_seconds": 0.01,
                "sockets": sockets,
                "unread": [],
                "more": 0,
                "lost": 0,
            }

        class Done:
            def result(self, timeout_seconds: float | None = None) -> Any:
                return answer

            def cancel(self) -> None:
                pass

        return Done()


def socket(local: str | None, remote: str | None, **rest: Any) -> dict[str, Any]:
    return {
        "process": 1, "program": "serve", "local": local, "remote": remote, "role": "server", "port": 7000,
        "loopback": False, "connections": 1, "congestion_control": ["cubic"], "nodelay": [False, True],
        "mss_bytes": [536, 8948], "sent_bytes": 0, "received_bytes": 0, **rest,
    }  # fmt: skip


def evidence(one: list[Any], other: list[Any], preloaded: tuple[str, ...] = ("h1", "h2")) -> dict[str, Any]:
    hosts = [Host("h1", "10.0.0.1", Recorded(*one)), Host("h2", "10.0.0.2", Recorded(*other))]
    watch = live.Watch(hosts)
    watch.begin()
    watch.restart()
    return live.evidence(hosts, watch.end(), preloaded)


def test_bytes_from_before_the_clients_began_do_not_count() -> None:
    before = [socket("10.0.0.2:7000", "10.0.0.1:999", received_bytes=100, sent_bytes=5)]
    after = [
        socket("10.0.0.2:7000", "10.0.0.1:999", received_bytes=160, sent_bytes=25),
        socket("10.0.0.2:7000", "10.0.0.1:1000", received_bytes=7),
    ]
    found = evidence([[], []], [before, after])
    assert found["received_bytes"] == {"h2": 67}
    assert found["sent_bytes"] == {"h2": 20}
    assert found["bytes"] == 67


def test_senders_and_receivers_are_those_of_most_bytes() -> None:
    one = socket("10.0.0.1:999", "10.0.0.2:7000", role="client", received_bytes=1000, sent_bytes=10)
    other = socket("10.0.0.2:7000", "10.0.0.1:999", received_bytes=10, sent_bytes=1000)
    found = evidence([[], [one]], [[], [other]])
    assert (found["senders"], found["receivers"]) == (["h2"], ["h1"])


def test_settings_are_read_by_host_and_program() -> None:
    quick = socket("10.0.0.2:7000", "10.0.0.1:1001", nodelay=[], congestion_control=[], program="brief")
    stubborn = socket("10.0.0.1:999", "10.0.0.2:7000", role="client", program="ask", nodelay=[False])
    found = evidence([[], [stubborn]], [[], [socket("10.0.0.2:7000", "10.0.0.1:999"), quick]])
    assert found["congestion_control"] == {"h1": ["cubic"], "h2": ["cubic"]}
    # The last reading of a connection is the one that holds.
    assert found["nodelay"] == {"h1 (ask)": [False], "h2 (serve)": [True]}
    assert found["not_proved"] == ["Nagle: no connection of brief on h2 lived long enough to be read"]
    assert evidence([[], [stubborn]], [[], [quick]], preloaded=())["nodelay"] == {}


def test_the_last_mss_of_each_pair_counts_and_others_networks_do_not() -> None:
    away = socket("10.0.0.2:443", "192.0.2.1:5000")
    sums = socket(None, None, connections=500)
    found = evidence([[], []], [[], [socket("10.0.0.2:7000", "10.0.0.1:999"), away, sums]])
    assert found["live"] == [{"host": "h2", "other": "h1", "program": "serve", "mss_bytes": 8948, "connections": 1}]
    assert found["connections"] == {"h1": 0, "h2": 502}


def test_a_host_that_talks_to_itself_proves_nothing_of_the_network() -> None:
    found = evidence([[], [socket("127.0.0.1:7000", "127.0.0.1:999", loopback=True, received_bytes=5)]], [[], []])
    assert found["bytes"] == 0
    assert (found["senders"], found["live"], found["congestion_control"]) == ([], [], {})
    assert found["not_proved"] == ["MSS: no TCP connection of these programs was seen"]
