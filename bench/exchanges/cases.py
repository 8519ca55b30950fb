"""The cases: what goes over a connection, and which of its frames the network loses, marks or holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from bench.exchanges.reasons import REASONS

Step = Mapping[str, Any]
Rule = Mapping[str, Any]

# A quarter of a millisecond for a full segment: a program can read each before the next one comes, and the
# acknowledgements of a window last less than half an RTT, at which CUBIC leaves slow start (HyStart).
BITS_PER_SECOND = 50_000_000
BUFFER_BYTES = 4_000_000
# Of the line: what a host has not sent yet waits in its own queue, of which its TCP knows (small queues).
SHAPER_FACTOR = 0.999
# The largest super-segment, but for two segments, which may always go together.
AGGREGATE_BYTES = 10_000
# While fewer than 31 segments are under way a super-segment has two there, by whichever RTT near it a kernel measures:
# where they end decides what is acknowledged.
RTT_SECONDS = 0.02
# An Ethernet frame of a segment without payload has 70 bytes, of ARP 64, of a SYN 78.
ANY, PAYLOAD = 66, 100
MSS = {1500: 1448, 9000: 8948}


def one(segments: float, mtu: int = 1500, **more: Any) -> tuple[Step, ...]:
    """One transfer to the server, which then answers with a byte."""
    message = {"from": "client", "bytes": round(segments * MSS[mtu]), **more}
    return message, {"from": "server", "bytes": 1}


@dataclass(frozen=True)
class Case:
    """What both ends do, what their TCP is set to, and the script of the links of either way.

    `data` is the script of the frames that the client sends, `acks` of those that the server does.
    `reason`: why kernel and model differ there, where that is known.
    """

    name: str
    steps: Sequence[Step] = one(30)
    data: Sequence[Rule] = ()
    acks: Sequence[Rule] = ()
    mtu: int = 1500
    rtt_seconds: float = RTT_SECONDS
    congestion: str = "cubic"
    sack: bool = True
    ecn: bool = False
    nodelay: bool = False
    linger_seconds: float = 0.05
    reason: str = ""
    group: str = field(default="", compare=False)

    @property
    def mss(self) -> int:
        """Payload of a full segment."""
        return MSS[self.mtu]

    @property
    def shaper_burst_bytes(self) -> int:
        """What a host's shaper lets through at once: a super-segment of two frames. It would be cut if it did not fit,
        and each piece count by its memory."""
        return 2 * (self.mtu + 38) + 100

    def link(self) -> dict[str, Any]:
        """The links, in the words of `rack.up`."""
        return {
            "bits_per_second": BITS_PER_SECOND, "rtt_seconds": self.rtt_seconds, "buffer_bytes": BUFFER_BYTES,
            "port_mtu": 9216,
        }  # fmt: skip

    def links(self) -> list[dict[str, Any]]:
        """The scripts, likewise."""
        scripts = {"h1": self.data, "h2": self.acks}
        return [
            {"from": host, "to": "switch", "script": [dict(rule) for rule in rules]}
            for host, rules in scripts.items()
            if rules
        ]


def lose(*frames: int, least: int = PAYLOAD) -> Rule:
    """Frames that are lost, by their numbers among those with payload."""
    return {"frames": list(frames), "at_least_bytes": least, "act": "lose"}


def hold(seconds: float, *frames: int, least: int = PAYLOAD) -> Rule:
    """Frames that come so much later."""
    return {"frames": list(frames), "at_least_bytes": least, "act": {"hold_seconds": seconds}}


def mark(*frames: int) -> Rule:
    """Frames that are marked (CE)."""
    return {"frames": list(frames), "at_least_bytes": PAYLOAD, "act": "mark"}


def _span(first: int, last: int) -> tuple[int, ...]:
    return tuple(range(first, last + 1))


# What a case needs of the numbers of a clean run: the client sends SYN, ACK, data, ACK of the answer, FIN, ACK of the
# FIN; the server SYN-ACK, acknowledgements, answer, FIN.
SYN, HANDSHAKE_ACK = 1, 2
SMALL = ({"from": "client", "bytes": 4000, "write_bytes": 400}, {"from": "server", "bytes": 1})
APART = ({**SMALL[0], "write_gap_seconds": 0.003}, SMALL[1])
PAIRS = ({"from": "client", "bytes": 600, "first_write_bytes": 100}, {"from": "server", "bytes": 100}) * 3
TALK = ({"from": "client", "bytes": 300}, {"from": "server", "bytes": 3000}) * 4


def _losses() -> tuple[Case, ...]:
    single = [
        Case(f"segment {number} of 30 lost", data=[lose(number)])
        for number in (1, 2, 3, 5, 9, 10, 11, 20, 27, 28, 29, 30)
    ]
    runs = [
        Case(f"segments {first} to {last} lost", data=[lose(*_span(first, last))])
        for first, last in ((3, 4), (5, 7), (11, 15), (1, 10), (2, 10), (26, 30), (29, 30), (8, 12))
    ]
    scattered = [
        Case("two windows with losses", data=[lose(4, 22)]),
        Case("three losses in a window", data=[lose(2, 5, 8)]),
        Case("every second segment of a window lost", data=[lose(2, 4, 6, 8, 10)]),
        Case("only segment lost", steps=one(1), data=[lose(1)]),
        Case("both segments lost", steps=one(2), data=[lose(1, 2)]),
        Case("resend lost again", data=[lose(3, 17)]),
        Case("first segment and its resend lost", data=[lose(1, 12)]),
        Case("last segment and its probe lost", data=[lose(30, 31)]),
        Case("last segment, probe and resend lost", data=[lose(30, 31, 32)]),
    ]
    return (Case("nothing lost"), *single, *runs, *scattered)


def _settings() -> tuple[Case, ...]:
    return (
        *(Case(f"Reno, segment {number} lost", data=[lose(number)], congestion="reno") for number in (3, 20, 30)),
        Case("Reno, segments 5 to 7 lost", data=[lose(5, 6, 7)], congestion="reno"),
        *(Case(f"without SACK, segment {number} lost", data=[lose(number)], sack=False) for number in (3, 20, 30)),
        Case("without SACK, segments 5 and 8 lost", data=[lose(5, 8)], sack=False),
        *(
            Case(f"MTU 9000, segment {number} of 20 lost", one(20, 9000), data=[lose(number)], mtu=9000)
            for number in (1, 3, 15, 20)
        ),
        Case("MTU 9000, nothing lost", one(20, 9000), mtu=9000),
        Case("RTT 1 ms, segment 3 lost", data=[lose(3)], rtt_seconds=0.001),
        Case("RTT 1 ms, last segment lost", data=[lose(30)], rtt_seconds=0.001),
        Case("RTT 10 ms, segment 3 lost", data=[lose(3)], rtt_seconds=0.01),
        Case("RTT 50 ms, segment 3 lost", data=[lose(3)], rtt_seconds=0.05),
        Case("RTT 50 ms, last segment lost", data=[lose(30)], rtt_seconds=0.05),
        Case("RTT 50 ms, nothing lost", one(100), rtt_seconds=0.05),
    )


def _bbr() -> tuple[Case, ...]:
    first, answer = one(20)
    cases = (
        Case("BBR, nothing lost"),
        *(Case(f"BBR, segment {number} lost", data=[lose(number)]) for number in (3, 11, 20, 30)),
        Case("BBR, segments 5 to 7 lost", data=[lose(5, 6, 7)]),
        Case("BBR, segments 1 to 10 lost", data=[lose(*_span(1, 10))]),
        Case("BBR, last segment and its probe lost", data=[lose(30, 31)]),
        Case("BBR, MTU 9000, nothing lost", one(20, 9000), mtu=9000),
        Case("BBR, RTT 10 ms, nothing lost", one(100), rtt_seconds=0.01),
        Case("BBR, RTT 50 ms, segment 3 lost", data=[lose(3)], rtt_seconds=0.05),
        Case("BBR, idle for 1 s", (first, answer, {**first, "think_seconds": 1.0}, answer)),
        Case("BBR, requests and answers", TALK),
    )
    return tuple(replace(case, congestion="bbr") for case in cases)


def _acknowledgements() -> tuple[Case, ...]:
    return (
        Case("an acknowledgement lost", acks=[lose(4, least=ANY)]),
        Case("five acknowledgements lost", acks=[lose(3, 4, 5, 6, 7, least=ANY)]),
        Case("all acknowledgements of a window lost", acks=[lose(*_span(2, 11), least=ANY)]),
        Case("an acknowledgement held for 8 ms", acks=[hold(0.008, 5, least=ANY)]),
        Case("all acknowledgements held for 300 ms", acks=[hold(0.3, *_span(2, 11), least=ANY)]),
        Case("all acknowledgements held for 60 ms", acks=[hold(0.06, *_span(2, 11), least=ANY)]),
    )


def _reordered() -> tuple[Case, ...]:
    return (
        Case("segment 3 overtaken by one", data=[hold(0.0004, 3)]),
        Case("segment 3 overtaken by three", data=[hold(0.0009, 3)]),
        Case("segment 11 held for 2 ms", data=[hold(0.002, 11)]),
        Case("segment 11 held for 4 ms", data=[hold(0.004, 11)]),
        Case("segment 11 held for 8 ms", data=[hold(0.008, 11)]),
        Case("segment 11 held for 30 ms", data=[hold(0.03, 11)]),
        Case("segment 11 held for 30 ms, without SACK", data=[hold(0.03, 11)], sack=False),
        Case("segments 11 and 20 held for 8 ms", data=[hold(0.008, 11, 20)]),
        Case("last segment held for 60 ms", data=[hold(0.06, 30)]),
        Case("last segment held for 300 ms", data=[hold(0.3, 30)]),
    )


def _applications() -> tuple[Case, ...]:
    first, answer = one(20)

    def again(seconds: float) -> tuple[Step, ...]:
        return first, answer, {**first, "think_seconds": seconds}, answer

    return (
        Case("small writes", SMALL),
        Case("small writes 3 ms apart", APART),
        Case("small writes 3 ms apart without Nagle", APART, nodelay=True),
        Case("small writes 3 ms apart without Nagle, one lost", APART, nodelay=True, data=[lose(3)]),
        Case("head and body in two writes", PAIRS),
        Case("head and body in two writes without Nagle", PAIRS, nodelay=True),
        Case("requests and answers", TALK),
        Case("requests and answers, a request lost", TALK, data=[lose(2)]),
        Case("requests and answers, an answer lost", TALK, acks=[lose(2)]),
        Case("idle for 1 s", again(1.0)),
        Case("idle for 100 ms", again(0.1)),
        Case("idle for 1 s, then a loss", again(1.0), data=[lose(23)]),
        Case("reader pauses for 100 ms", one(30, reader_waits_seconds=0.1)),
        Case("reader pauses until the window is closed", one(100, reader_waits_seconds=0.15)),
        Case("reader pauses for 1 s with the window closed", one(100, reader_waits_seconds=1.0)),
    )


def _marks() -> tuple[Case, ...]:
    return (
        Case("ECN, nothing marked", ecn=True),
        Case("ECN, segment 5 marked", data=[mark(5)], ecn=True),
        Case("ECN, segments 5 and 6 marked", data=[mark(5, 6)], ecn=True),
        Case("ECN, two windows marked", data=[mark(5, 25)], ecn=True),
        Case("ECN, one marked, one lost", data=[mark(5), lose(8)], ecn=True),
        Case("ECN with Reno, segment 12 marked", data=[mark(12)], ecn=True, congestion="reno"),
    )


def _ends() -> tuple[Case, ...]:
    return (
        Case("SYN lost", data=[lose(SYN, least=ANY)]),
        Case("SYN lost twice", data=[lose(SYN, 2, least=ANY)]),
        Case("SYN-ACK lost", acks=[lose(SYN, least=ANY)], data=()),
        Case("acknowledgement of the handshake lost", data=[lose(HANDSHAKE_ACK, least=ANY)]),
        Case("FIN lost", steps=one(10), data=[lose(14, least=ANY)], linger_seconds=1.0),
        Case("FIN of the server lost", steps=one(10), acks=[lose(13, least=ANY)], linger_seconds=1.0),
        Case("answer lost", steps=one(10), acks=[lose(12, least=ANY)]),
    )


CASES: tuple[Case, ...] = tuple(
    replace(case, group=group, reason=REASONS.get(case.name, ""))
    for group, cases in {
        "losses": _losses(),
        "settings": _settings(),
        "BBR": _bbr(),
        "acknowledgements": _acknowledgements(),
        "reordering": _reordered(),
        "applications": _applications(),
        "marks": _marks(),
        "beginning and end": _ends(),
    }.items()
    for case in cases
)
