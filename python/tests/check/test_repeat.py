"""A repeated check keeps its beat, without waiting in a test."""

from __future__ import annotations

import urllib.error
import urllib.request

import pytest

from framegauge.check.repeat import repeat


class Time:
    """A clock that only sleeping and checking move."""

    def __init__(self) -> None:
        self.now, self.slept = 100.0, []

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_it_keeps_its_beat_and_catches_up_at_once() -> None:
    clock, lasts, seen, where = Time(), iter([1.0, 7.0, 2.0]), [], []

    def check() -> dict[str, int]:
        try:
            clock.now += next(lasts)
        except StopIteration:
            raise KeyboardInterrupt from None
        return {"number": len(seen)}

    def scrape() -> str:
        with urllib.request.urlopen(f"http://{where[0]}/metrics", timeout=10) as answer:
            return answer.read().decode()

    def serving(address: str) -> None:
        where.append(address)
        with pytest.raises(urllib.error.HTTPError, match="503"):  # nothing was checked yet
            scrape()

    with pytest.raises(KeyboardInterrupt):
        repeat(
            check, 5, ("127.0.0.1", 0), lambda document, now: f"check {document['number']} at {now:g}\n",
            serving=serving, checked=lambda _: seen.append(scrape()), sleep=clock.sleep, monotonic=lambda: clock.now,
            now=lambda: clock.now,
        )  # fmt: skip
    assert seen == ["check 0 at 101\n", "check 1 at 112\n", "check 2 at 114\n"]
    assert clock.slept == [4.0, 0.0, 3.0]
    with pytest.raises(urllib.error.URLError):  # and is served no more
        scrape()
