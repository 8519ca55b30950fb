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
                "started_seconds": 100.0,
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
        "mss_bytes": [536, 8948], "sent_bytes": 0, "received_bytes": 0,
        "first_seconds": 0.1, "last_seconds": 0.9, **rest,
    }  # fmt: skip


WATCHED: dict[str, Any] = {
    "looks": 9,
    "started_seconds": 100.0,
    "seconds": 1.0,
    "cpu_seconds": 0.01,
    "lost": 0,
    "more": 0,
}


def evidence(one: list[Any], other: list[Any], preloaded: tuple[str, ...] = ("h1", "h2")) -> dict[str, Any]:
    hosts = [Host("h1", "10.0.0.1", Recorded(*one)), Host("h2", "10.0.0.2", Recorded(*other))]
    watch = live.Watch(hosts)
    watch.begin()
    watch.restart()
    return live.evidence(hosts, watch.end(), preloaded)


def test_when_single_connections_of_the_study_were_seen_is_told_by_the_clock_of_the_machine() -> None:
    seen = [
        socket("10.0.0.2:7000", "10.0.0.1:999", mss_bytes=[1448, 8948]),
        socket("10.0.0.2:7000", "10.0.0.1:998", connections=2),
        socket("10.0.0.2:7000", "10.9.9.9:997"),
        socket("10.0.0.2:7000", "10.0.0.2:996", loopback=True),
    ]
    found = evidence([[], []], [[], seen])["lifetimes"]
    assert [(each["host"], each["other"], each["mss_bytes"]) for each in found] == [("h2", "h1", [1448, 8948])]
    assert (found[0]["first_seconds"], found[0]["last_seconds"]) == (100.1, 100.9)


def test_what_a_socket_says_before_it_is_connected_and_after_it_is_closed_is_no_mss() -> None:
    """TCP_MIN_SND_MSS of 48 bytes, less 12 of timestamps: a connection that carried data may really have it."""
    seen = [
        socket("10.0.0.2:7000", "10.0.0.1:999", mss_bytes=[48, 8948, 36]), socket("10.0.0.2:7000", "10.0.0.1:998", mss_bytes=[36]),
        socket("10.0.0.2:7000", "10.0.0.1:997", mss_bytes=[36], sent_bytes=9),
    ]  # fmt: skip
    found = evidence([[], []], [[], seen])
    assert [each["mss_bytes"] for each in found["lifetimes"]] == [[8948], [36]]
    assert [each["mss_bytes"] for each in found["live"]] == [8948, 36]


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
    assert found["live"] == [
        {"host": "h2", "other": "h1", "nic": 1, "program": "serve", "mss_bytes": 8948, "connections": 1}
    ]
    assert found["connections"] == {"h1": 0, "h2": 502}


def test_a_host_without_programs_of_its_own_is_the_other_end_of_connections_all_the_same() -> None:
    """As a storage host that is only named, while a client's programs are watched."""
    hosts = [Host("client", "10.0.0.1", Recorded([])), Host("storage", "10.0.0.2", Recorded([]))]
    seen = [socket("10.0.0.1:999", "10.0.0.2:6800", role="client", mss_bytes=[1448])]
    found = live.evidence(hosts, {"client": {**WATCHED, "sockets": seen}}, ())
    assert [(row["host"], row["other"], row["mss_bytes"]) for row in found["live"]] == [("client", "storage", 1448)]
    assert found["not_proved"] == []


def test_connections_to_strangers_alone_prove_no_mtu_of_the_study() -> None:
    found = evidence([[], []], [[], [socket("10.0.0.2:443", "192.0.2.1:5000")]])
    assert found["not_proved"] == ["MSS: no connection of these programs is to another host of the study"]


def test_connections_to_the_second_nic_of_a_host_are_told_apart() -> None:
    hosts = [Host("h1", "10.0.0.1", Recorded([]), ("10.0.0.1", "10.0.1.1")), Host("h2", "10.0.0.2", Recorded([]))]
    seen = [
        socket("10.0.0.2:7000", "10.0.0.1:999", mss_bytes=[1448]),
        socket("10.0.1.2:7000", "10.0.1.1:998", mss_bytes=[8948]),
    ]
    watched = {"h1": {**WATCHED, "sockets": []}, "h2": {**WATCHED, "sockets": seen}}
    found = live.evidence(hosts, watched, ())
    assert [(row["other"], row["nic"], row["mss_bytes"]) for row in found["live"]] == [("h1", 1, 1448), ("h1", 2, 8948)]
    assert found["receivers"] == found["senders"] == []


def test_a_host_that_talks_to_itself_proves_nothing_of_the_network() -> None:
    found = evidence([[], [socket("127.0.0.1:7000", "127.0.0.1:999", loopback=True, received_bytes=5)]], [[], []])
    assert found["bytes"] == 0
    assert (found["senders"], found["live"], found["congestion_control"]) == ([], [], {})
    assert found["not_proved"] == ["MSS: no TCP connection of these programs was seen"]
