"""Two accounts of one exchange, compared segment by segment; the first difference in words.

Times are not those of one clock with no other program beside it: a kernel's softirq, a timer or a program's wake-up
comes late by what the machine does meanwhile. What must be equal is everything but times; of times, each segment's with
payload to `SLACK_SECONDS` and a share of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest

from bench.exchanges.cases import Case
from bench.exchanges.exchange import CLIENT, SERVER, Exchange, Segment

# A timer of 4 ms ticks, its lateness on a busy machine, and what the client's start and the ticks' phase add.
SLACK_SECONDS = 0.008
SLACK_SHARE = 0.02


@dataclass(frozen=True)
class Difference:
    """The first of a kind. Kinds are in the order in which they matter."""

    kind: str
    text: str


def differences(case: Case, kernel: Exchange, model: Exchange) -> list[Difference]:
    """One of each kind at most; none if both agree."""
    return [
        *_sent(case, kernel, model),
        *_mechanisms(kernel, model),
        *_windows(kernel, model),
        *_told(case, kernel, model),
        *_times(case, kernel, model),
    ]


def _sent(case: Case, kernel: Exchange, model: Exchange) -> Iterator[Difference]:
    """Each end's data in its order: number, length, flags, first or sent again."""
    for sender in (CLIENT, SERVER):
        pairs = zip_longest(kernel.data(sender), model.data(sender))
        for place, (one, other) in enumerate(pairs, 1):
            said = [None if each is None else (each[0].sent(), each[1]) for each in (one, other)]
            if said[0] != said[1]:
                texts = [_words(case, each) for each in (one, other)]
                yield Difference("sent", f"{sender}'s {place}: kernel {texts[0]}, model {texts[1]}")
                break


def _words(case: Case, each: tuple[Segment, bool] | None) -> str:
    if each is None:
        return "none"
    segment, again = each
    return segment.words(case.mss) + (" again" if again else "")


def _mechanisms(kernel: Exchange, model: Exchange) -> Iterator[Difference]:
    unlike = [name for name in model.counts if kernel.counts[name] != model.counts[name]]
    if unlike:
        yield Difference(
            "mechanism", "; ".join(f"{name} {kernel.counts[name]}, model {model.counts[name]}" for name in unlike)
        )


def _windows(kernel: Exchange, model: Exchange) -> Iterator[Difference]:
    if (kernel.cwnd, kernel.ssthresh) != (model.cwnd, model.ssthresh):
        text = f"cwnd {kernel.cwnd}, ssthresh {kernel.ssthresh}; model {model.cwnd}, {model.ssthresh}"
        yield Difference("cwnd", text)


def _told(case: Case, kernel: Exchange, model: Exchange) -> Iterator[Difference]:
    """What each end acknowledged, in its order."""
    for sender in (SERVER, CLIENT):
        said = [[segment for segment in each.of(sender) if not segment.is_data] for each in (kernel, model)]
        for place, (one, other) in enumerate(zip_longest(*said), 1):
            if one is None or other is None or one.told() != other.told():
                texts = ["none" if each is None else each.words(case.mss) for each in (one, other)]
                yield Difference("acknowledged", f"{sender}'s {place}: kernel {texts[0]}, model {texts[1]}")
                break


def _times(case: Case, kernel: Exchange, model: Exchange) -> Iterator[Difference]:
    for sender in (CLIENT, SERVER):
        for one, other in zip(kernel.data(sender), model.data(sender), strict=False):
            if one[0].sent() != other[0].sent():
                break
            late = one[0].seconds - other[0].seconds
            if abs(late) > SLACK_SECONDS + SLACK_SHARE * other[0].seconds:
                text = f"{_words(case, one)} at {one[0].seconds * 1e3:.1f} ms, model {other[0].seconds * 1e3:.1f} ms"
                yield Difference("time", text)
                return
