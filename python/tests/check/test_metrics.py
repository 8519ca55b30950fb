"""The server of metrics among strangers."""

from __future__ import annotations

import socket
import threading
import time
import urllib.request

import pytest

from framegauge import listening
from framegauge.check import metrics


@pytest.fixture
def where(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(listening.Server, "connection_seconds", 0.2)
    with metrics.served(("127.0.0.1", 0)) as (address, publish):
        publish("framegauge_up 1\n")
        host, _, port = address.rpartition(":")
        yield host, int(port)


def count_threads(counted: list[int], ended: threading.Event) -> None:
    while not ended.wait(0.001):
        counted.append(threading.active_count())


def test_silent_strangers_get_few_threads_and_little_time(where, capfd):
    strangers, counted, ended = [], [], threading.Event()
    before = threading.active_count() + 1  # the one that counts
    watch = threading.Thread(target=count_threads, args=(counted, ended))
    watch.start()
    for _ in range(5 * listening.MOST_CONNECTIONS):
        strangers.append(socket.create_connection(where, timeout=10))
        strangers[-1].sendall(b"GET /metr")  # they speak, and stop
    until = time.monotonic() + 30
    scraped = b""
    while not scraped and time.monotonic() < until:
        try:
            scraped = urllib.request.urlopen(f"http://{where[0]}:{where[1]}/metrics", timeout=10).read()
        except OSError:  # all are taken
            time.sleep(0.02)
    ended.set()
    watch.join()
    assert scraped == b"framegauge_up 1\n"
    assert 0 < max(counted) - before <= listening.MOST_CONNECTIONS
    for each in strangers:
        with each:
            each.settimeout(10)
            try:
                while each.recv(1000):
                    pass
            except ConnectionResetError:
                pass
    assert capfd.readouterr().err == ""
