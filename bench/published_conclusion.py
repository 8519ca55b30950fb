"""What somebody who decides may take from the page of bench/reproduction.py, with the figures of this run."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from bench.published_arms import Judged, Row, Summaries, judged

from framegauge.summary import words

__all__ = ["lines"]

WIDTH = 120
LARGE, SMALL = 9000, "not measured"


def lines(rows: Sequence[Row], summaries: Summaries) -> Iterator[str]:
    """The last section: what of 2013 holds, what does not, and why."""
    full, many = _ours(rows, "short", size_bytes=10**8), _ours(rows, "many", size_bytes=10**8)
    new, middle = _ours(rows, "short", size_bytes=10**5), _ours(rows, "short", size_bytes=10**6)
    cpu = _ours(rows, "many", "receiver_cpu_cost")
    slow, lossy = _ours(rows, "ten-ms"), _arm(rows, summaries, "ten-ms", "ten-ms-loss")
    site, held = _ours(rows, "web", "operations"), _ours(rows, "web", "response_mean", nagle=True)
    window = _arm(rows, summaries, "short", "short-window")
    yield from ("## For those who decide", "")
    yield from _wrapped(
        f"**What of 2013 still holds.** Jumbo frames carry about 5 % more over a full link ({full} here with one "
        f"sender, {many} with eleven): that is the share of headers, so it does not age. Transfers of 1 MB gain a "
        f"tenth ({middle}). A receiver spends less CPU time per byte ({cpu} with eleven senders, on a virtual NIC). A "
        f"web site in tiers serves as many users as before (operations per second: {site}), and with Nagle's algorithm "
        f"on, jumbo frames make it slower (response time: {held}): turn that off first."
    )
    yield ""
    yield from _wrapped(
        f"**What does not.** Twice to four times the goodput at an RTT of 1 to 10 ms is no property of jumbo frames: "
        f"here 100 MB gain {slow} at 10 ms. The published factor comes back where frames are lost on the way ({lossy} "
        f"with one in 10,000), because TCP recovers its window by segments per RTT, and a large one is six times as "
        f"much. Such a path should be mended instead. Transfers of 100 kB gain more now than then if each opens a "
        f"connection ({new}), and about as little as then over a connection that stays open ({window})."
    )
    yield ""
    yield from _wrapped(
        "**So** expect 5 % on links that are full, less CPU time at receivers, and nothing for applications that wait "
        "for something else. Promises of multiples are about loss, windows or Nagle's algorithm, each of which has a "
        "cheaper cure than a larger MTU on every port."
    )


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, WIDTH, break_on_hyphens=False)


def _ours(rows: Sequence[Row], study: str, metric: str = "goodput", **conditions: Any) -> str:
    """Our change in the row of a study; where it has rows of several levels, at the largest MTU."""
    for asked, verdict, _ in rows:
        if verdict is None or asked.study != study or asked.metric != metric or verdict["ratio"] is None:
            continue
        at = verdict["conditions"]
        same = all(at.get(name) == value for name, value in conditions.items())
        if same and verdict["treatment"].get("mtu", LARGE) == LARGE:
            return words.change(verdict["ratio"], verdict["ci95"])
    return SMALL


def _arm(rows: Sequence[Row], summaries: Summaries, study: str, arm: str) -> str:
    """The change in an arm of a study's first row."""
    for asked, verdict, _ in rows:
        if verdict is None or asked.study != study or not asked.arms or not verdict["ci95"]:
            continue
        if verdict["treatment"].get("mtu") == LARGE:
            found: list[Judged] = [each for each in judged(summaries, asked, verdict) if each.arm.study == arm]
            if found:
                return words.change(found[0].verdict["ratio"], found[0].verdict["ci95"])
    return SMALL
