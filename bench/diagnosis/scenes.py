"""The scenes: one for each way to provoke a kind of finding on purpose, with what is true of it."""

# ruff: noqa: ARG005, RUF009 (draws are frozen, and what follows from a draw takes all that is known)

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from bench.diagnosis.drawing import Between, From, among, draw
from bench.diagnosis.faults import (
    Blackout,
    DropBytes,
    DropFlight,
    DropSyn,
    Fault,
    Forge,
    Freeze,
    Hold,
    Lose,
    Overtaken,
    PortMtu,
    Queue,
    Starve,
    Swap,
)  # fmt: skip
from bench.diagnosis.programs import Asks, CutOff, Options, Program, Refused, SplitWrites, Stream
from bench.diagnosis.run import KEPT_BYTES, Variant
from bench.diagnosis.taps import Cut, Flaw, Missing, OneWay, Swapped, Twice

RTTS = among(0.002, 0.005, 0.01, 0.02, 0.04)
LONG_RTTS = among(0.01, 0.02, 0.04)
MTUS = among(1500, 1500, 4000, 9000)
NO_PROBE = {"net.ipv4.tcp_early_retrans": "0"}
PROBES = among({}, NO_PROBE)


@dataclass(frozen=True)
class Scene:
    """How a kind of trouble is made. Everything may hold draws.

    `must` is what has to be found wherever a tap can know it, `may` what is true as well and need not be found.
    """

    name: str
    kind: str
    program: Program
    must: frozenset[str] = frozenset()
    may: frozenset[str] = frozenset()
    rtt: Any = RTTS
    mtu: Any = MTUS
    other_mtu: Any = None
    family: Any = among(4, 4, 6)
    offloads: Any = among(False, True)
    sender_opens: Any = among(False, True)
    faults: Sequence[Fault] = ()
    flaws: Sequence[Flaw] = ()
    sender_sysctls: Any = None
    receiver_sysctls: Any = None
    route: Any = ""
    senders: Any = 1
    far: Any = among(False, True)
    kept_bytes: int = KEPT_BYTES
    stacks: Any = (None, None)
    has_nat: bool = False
    # Earlier connections of a run are as they would be without the trouble.
    concerns_from: int = 1
    # The project that has such a scenario, and its name there; rebuilt here from its description.
    source: str = ""
    # Taps that cannot know: what they need not find.
    blind: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def variant(self, number: int) -> Variant:
        """The variant of this number: the same whenever it is asked for."""
        seed = number * 1_000_003 + sum(map(ord, self.name))
        draws = Random(f"{self.name} {number}")
        mtu = draw(self.mtu, draws)
        other = mtu if self.other_mtu is None else draw(self.other_mtu, draws)
        family, rtt = draw(self.family, draws), draw(self.rtt, draws)
        program = draw(self.program, draws)
        payload = min(mtu, other) - (52 if family == 4 else 72)
        known = (program, payload, rtt)
        faults = draw(self.faults, draws, known)
        is_far = draw(self.far, draws)
        return Variant(
            self.name, number, seed, program, rtt, (mtu, other), family, draw(self.offloads, draws),
            draw(self.sender_opens, draws), () if is_far else faults, faults if is_far else (),
            draw(self.flaws, draws, known),
            (draw(self.sender_sysctls, draws) or {}, draw(self.receiver_sysctls, draws) or {}),
            draw(self.route, draws, known), program.count if self.senders is None else draw(self.senders, draws),
            self.kept_bytes, draw(self.stacks, draws), self.has_nat,
        )  # fmt: skip


def only(*kinds: str) -> frozenset[str]:
    """These kinds."""
    return frozenset(kinds)


def segments(low: int, high: int) -> Any:
    """A number of bytes that is so many full segments of the smallest packets, and more of larger ones."""
    return Between(low * 1448, high * 1448)


def after(share: float) -> From:
    """A place in a stream."""
    return From(lambda program, payload, rtt: int(program.size * share))


def past(share: float, more: int) -> From:
    """The same, and so many segments further."""
    return From(lambda program, payload, rtt: int(program.size * share) + more * payload)


def end_of(answer: int, before: int) -> From:
    """So many segments before the end of an answer, or the end itself."""
    return From(lambda program, payload, rtt: program.answer * answer - before * payload)


def rtts(count: float) -> From:
    """So many RTTs, in seconds."""
    return From(lambda program, payload, rtt: count * rtt)


BULK = Stream(segments(200, 400))
LONG = Stream(segments(600, 1000))  # enough packets, though a host with offloads shows a tenth of them
LOSSES = only("fast_retransmit")

CLEAN = (
    Scene("clean stream", "clean", Stream(segments(1, 400)), may=only("short_flow_slow_start")),
    Scene("clean asks", "clean", Asks(Between(5, 30), Between(10, 5000), Between(10, 20_000))),
    Scene(
        "clean short connections", "clean", Asks(1, Between(10, 1000), Between(10, 9000), count=50),
        rtt=among(0.002, 0.005),
    ),
    Scene("clean thinking", "clean", Asks(Between(5, 10), 200, Between(100, 9000), think=Between(0.02, 0.1))),
    Scene("clean split writes", "clean", SplitWrites(10, 100, Between(100, 1000), nodelay=True)),
)  # fmt: skip

LOSS = (
    Scene("one loss", "fast_retransmit", BULK, only("fast_retransmit"), faults=(DropBytes(after(0.3), past(0.3, 1)),)),
    Scene("losses in a row", "fast_retransmit", BULK, only("fast_retransmit"),
          faults=(DropBytes(after(0.3), past(0.3, 3)), DropBytes(after(0.7), past(0.7, 1)))),
    Scene("lost flight", "rto_stall", BULK, only("rto_stall"), LOSSES, sender_sysctls=PROBES,
          faults=(DropFlight(after(0.3), more=among(0, 0, 1)),)),
    # Reno halves its window at each loss, and gains one segment a round: three losses leave an eighth.
    Scene("collapsed window", "cwnd_collapse",
          Stream(segments(1500, 2000), sender_options=Options(congestion="reno"),
                 receiver_options=Options(receive_buffer=2_000_000)),
          only("cwnd_collapse", "fast_retransmit"), only("rto_stall", "tail_loss"), rtt=LONG_RTTS, mtu=1500,
          faults=tuple(DropBytes(after(share), past(share, 1)) for share in (0.3, 0.5, 0.62)),
          blind={"receiver": only("cwnd_collapse")}),
    Scene("dark link", "rto_stall", BULK, only("rto_stall"), LOSSES | only("double_loss"), sender_sysctls=PROBES,
          faults=(Blackout(after(0.4), among(0.25, 0.3)),)),
    Scene("lost tail", "tail_loss", Asks(10, 100, segments(4, 12), think=among(0.0, 0.03)), only("tail_loss"),
          sender_sysctls=PROBES, faults=(DropBytes(end_of(6, 1), end_of(6, 0)),)),
    Scene("lost repair", "double_loss", BULK, only("double_loss", "fast_retransmit"), only("rto_stall"),
          faults=(DropBytes(after(0.3), past(0.3, 1), copies=2),)),
    Scene("late data", "spurious_retransmit", BULK, only("spurious_retransmit"),
          LOSSES | only("bufferbloat", "unexplained"),
          faults=(Hold((after(0.4),), among(0.3, 0.4)),)),
    Scene("late answers", "spurious_retransmit", BULK, only("spurious_retransmit"),
          LOSSES | only("bufferbloat", "unexplained"),
          faults=(Hold((after(0.4),), among(0.3, 0.4), data=False, answers=True),)),
    Scene("overtaken by many", "spurious_retransmit", BULK, only("spurious_retransmit", "reordering"), LOSSES,
          rtt=LONG_RTTS, faults=(Overtaken(60, rtts(0.8)),)),
    Scene("swapped", "reordering", BULK, only("reordering"), faults=(Swap(20, among(1, 2)),)),
    # With a timer of 20 ms instead of 200, losses that need it do not spread the resends over many seconds.
    Scene("heavy loss", "retransmit_storm", Stream(segments(600, 900)), only("retransmit_storm", "fast_retransmit"),
          only("double_loss", "rto_stall", "tail_loss", "spurious_retransmit"), mtu=1500, rtt=among(0.002, 0.005),
          sender_sysctls={"net.ipv4.tcp_rto_min_us": "20000"}, faults=(Lose(among(0.1, 0.15)),)),
)  # fmt: skip

HOSTS = (
    Scene("two small writes", "nagle_delayed_ack", SplitWrites(Between(8, 12), Between(10, 400), Between(10, 400)),
          only("nagle_delayed_ack")),
    Scene("paused reader", "zero_window", Stream(segments(100, 200), late=Between(0.3, 0.6),
          receiver_options=Options(receive_buffer=among(16384, 32768, 65536))), only("zero_window"),
          only("receiver_limited", "silly_window")),
    Scene("small receive buffer", "receiver_limited", Stream(segments(200, 300),
          receiver_options=Options(receive_buffer=among(16384, 24576, 32768))), only("receiver_limited"),
          only("silly_window"), rtt=LONG_RTTS, mtu=1500),
    Scene("no window scaling", "window_scaling_off", Stream(segments(700, 900)), only("window_scaling_off"),
          rtt=among(0.03, 0.04), mtu=among(1500, 4000),
          sender_sysctls=among({}, {"net.ipv4.tcp_window_scaling": "0"}),
          receiver_sysctls={"net.ipv4.tcp_window_scaling": "0"}),
    Scene("tiny receive buffer", "silly_window", Stream(Between(40_000, 80_000),
          receiver_options=Options(receive_buffer=2304)), only("silly_window"),
          only("receiver_limited", "zero_window"), mtu=9000, rtt=among(0.002, 0.005)),
    Scene("thinking", "application_limited", Asks(Between(5, 10), 200, Between(100, 9000), think=Between(0.05, 0.15)),
          only("application_limited"), rtt=among(0.002, 0.005, 0.01)),
    Scene("trickle", "application_limited", Stream(segments(10, 20), write=1448, pause=Between(0.02, 0.06),
          sender_options=Options(nodelay=True)), only("application_limited"), rtt=among(0.002, 0.005)),
    Scene("corked", "sender_stall", Stream(50_000, write=among(5000, 7000), sender_options=Options(cork=True),
          pause=Between(0.05, 0.12)), only("sender_stall"), only("application_limited"), mtu=1500,
          rtt=among(0.002, 0.005, 0.01)),
    Scene("paced", "sender_stall", Stream(segments(25, 40), sender_options=Options(pacing=among(100_000, 150_000))),
          only("sender_stall"), mtu=1500, rtt=among(0.002, 0.005)),
    # Where the last segment before it had PSH, as the kernel sets it now and then, the application may have no more.
    Scene("frozen device", "sender_stall", BULK, only("sender_stall"), only("application_limited"),
          rtt=among(0.002, 0.005, 0.01),
          faults=(Freeze((after(0.3), after(0.6)), among(0.1, 0.15)),)),
    # The kernel heeds the lock from the second connection to a host on: the first one leaves the entry that has it.
    Scene("locked window", "network_limited", Stream(segments(200, 400), count=2), only("network_limited"),
          only("short_flow_slow_start"), route=among("cwnd lock 10", "cwnd lock 20"), rtt=LONG_RTTS, concerns_from=2),
    Scene("pause between bursts", "idle_restart", Stream(segments(500, 600), write=300_000, pause=Between(1.5, 2.5)),
          only("idle_restart"), only("short_flow_slow_start"), mtu=1500, rtt=LONG_RTTS),
    Scene("deep queue", "bufferbloat", Stream(segments(400, 700)), only("bufferbloat"), mtu=1500,
          rtt=among(0.002, 0.005), faults=(Queue(among(5e6, 10e6), 4_000_000),)),
    # Reno has no HyStart, which may end slow start at any time; a large buffer is offered from the beginning.
    Scene("short flow", "short_flow_slow_start",
          Stream(segments(300, 400), sender_options=Options(congestion="reno"),
                 receiver_options=Options(receive_buffer=2_000_000)),
          only("short_flow_slow_start"), mtu=1500, rtt=LONG_RTTS),
    Scene("late answers, no probe", "unexplained", Stream(segments(60, 120)), only("unexplained"),
          only("bufferbloat"), mtu=1500,
          rtt=among(0.002, 0.005), sender_sysctls=NO_PROBE,
          faults=(Hold((after(0.3), after(0.6)), 0.12, data=False, answers=True),)),
)  # fmt: skip

PATHS = (
    Scene(
        "path MTU discovery",
        "none",
        Stream(segments(50, 100)),
        may=LOSSES | only("short_flow_slow_start", "retransmit_storm"),
        mtu=9000,
        faults=(PortMtu(among(1500, 4000), tells=True),),
        offloads=False,
    ),
    Scene("black hole", "pmtu_black_hole", Stream(segments(30, 60)), only("pmtu_black_hole"), mtu=among(1500, 9000),
          sender_sysctls={"net.ipv4.tcp_mtu_probing": "1", "net.ipv4.tcp_rto_min_us": "50000"},
          faults=(PortMtu(1400),)),
    Scene("falling path MTU", "pmtu_black_hole", Stream(segments(60, 120)), only("pmtu_black_hole"),
          mtu=among(4000, 9000),
          sender_sysctls={"net.ipv4.tcp_mtu_probing": "1", "net.ipv4.tcp_rto_min_us": "50000"},
          faults=(PortMtu(among(1400, 1500), begin=after(0.4)),)),
    Scene("different MTUs", "mss_mismatch", Asks(5, 100, Between(100, 20_000)), only("mss_mismatch"),
          mtu=among(1500, 4000), other_mtu=among(9000, 8000)),
)  # fmt: skip

OPENING = (
    Scene("broken TCP", "protocol_violation", Stream(segments(50, 100)), only("protocol_violation"),
          only("short_flow_slow_start"), mtu=1500, offloads=False,
          faults=(Forge(among("acknowledges", "jumps", "accepts", "contradicts"), Between(5, 15)),)),
    Scene("lost SYN", "syn_loss", Asks(3, 100, 1000), only("syn_loss"), faults=(DropSyn(1),)),
    Scene("lost SYN-ACK", "syn_loss", Asks(3, 100, 1000), only("syn_loss"), faults=(DropSyn(1, answers=True),)),
    Scene("refused", "connection_refused", Refused(Between(1, 4)), only("connection_refused")),
    Scene("reset", "reset", CutOff(Between(1000, 50_000), 1000, by_receiver=among(False, True)), only("reset")),
    Scene("many resets", "reset_storm", CutOff(Between(1000, 5000), 1000, among(False, True), count=Between(11, 20),
          together=True), only("reset_storm", "reset"), senders=1),
)  # fmt: skip

TOGETHER = (
    Scene("lost flights of many", "incast", Stream(segments(60, 100), count=Between(4, 8), together=True),
          only("incast", "rto_stall"), LOSSES | only("tail_loss"), senders=None, sender_opens=True,
          rtt=LONG_RTTS, mtu=1500,
          sender_sysctls=NO_PROBE, faults=(DropFlight(From(lambda program, payload, rtt: 20 * payload)),)),
    # Where every rest ends in a loss, a tap behind it cannot know how the sender counts its packets, nor what was lost.
    Scene("starved flow", "outcast", Stream(segments(180, 220), count=Between(7, 12), together=True, alone=True),
          only("outcast"), LOSSES | only("rto_stall", "tail_loss", "double_loss", "bufferbloat", "retransmit_storm",
                                          "unexplained"),
          senders=2, sender_opens=True, rtt=among(0.002, 0.005), mtu=1500, sender_sysctls=NO_PROBE,
          faults=(Starve(Between(12, 16), Between(11, 12)), Queue(20e6, 40_000))),
)  # fmt: skip

QUALITY = (
    Scene("mirror port", "capture_duplicates", BULK, only("capture_duplicates"), flaws=(Twice(among(2000, 20_000)),)),
    Scene("lossy capture", "capture_loss", LONG, only("capture_loss"), flaws=(Missing(among(8, 12)),)),
    Scene("short records", "truncated", BULK, only("truncated"), flaws=(Cut(among(0, 4, 8)),)),
    Scene("one way", "half_capture", BULK, only("half_capture"), flaws=(OneWay(among(False, True)),)),
    Scene("swapped records", "capture_misordered", LONG, only("capture_misordered"), flaws=(Swapped(among(8, 20)),)),
    Scene("offloaded checksums", "checksum_offload", Stream(segments(60, 120)), only("checksum_offload"),
          only("short_flow_slow_start"), offloads=True, kept_bytes=65_535),
    Scene("aggregates", "aggregates", BULK, only("aggregates"), offloads=True,
          blind={"switch": only("aggregates"), "receiver": only("aggregates")}),
)  # fmt: skip

OWN = (*CLEAN, *LOSS, *HOSTS, *PATHS, *OPENING, *TOGETHER, *QUALITY)
