"""Scenarios of other projects, read for what they provoke and rebuilt here as scenes; their confusion is told apart.

JitterTrap's pathological porcupines (github.com/acooks/jittertrap) are programs between two hosts, as here. The scripts
of packetdrill (github.com/google/packetdrill, gtests/net/tcp) play one end by hand; here both are kernels, and the wire
loses what the scripts leave out.
"""

from __future__ import annotations

from bench.diagnosis.drawing import Between, among
from bench.diagnosis.faults import DropBytes, DropFlight, DropSyn, Hold
from bench.diagnosis.programs import Asks, CutOff, Options, SplitWrites, Stream
from bench.diagnosis.scenes import LONG_RTTS, LOSSES, NO_PROBE, Scene, end_of, only, past, segments

RTTS = among(0.002, 0.005, 0.01)
WINDOWS = only("zero_window", "receiver_limited", "silly_window")

JITTERTRAP = (
    Scene("slow reader", "zero_window", Stream(segments(100, 200), read=16_384, rest=Between(0.03, 0.06),
          receiver_options=Options(receive_buffer=among(16_384, 32_768))), only("zero_window"), WINDOWS, rtt=RTTS,
          source="jittertrap receiver-starvation"),
    Scene("reader of few bytes", "none", Stream(Between(20_000, 40_000), read=512, rest=0.002,
          receiver_options=Options(receive_buffer=4096)), may=WINDOWS | only("nagle_delayed_ack"), rtt=RTTS, mtu=1500,
          source="jittertrap silly-window-syndrome"),
    Scene("write, write, read", "nagle_delayed_ack", SplitWrites(Between(10, 20), Between(4, 20), Between(50, 200)),
          only("nagle_delayed_ack"), rtt=RTTS, source="jittertrap nagle-delayed-ack"),
    Scene("reader that stops", "zero_window", Stream(segments(60, 100), late=Between(4.0, 5.0),
          receiver_options=Options(receive_buffer=16_384)), only("zero_window"), WINDOWS, rtt=RTTS,
          source="jittertrap persist-timer"),
    Scene("writer that stops", "application_limited", Stream(segments(40, 80), write=among(14_480, 28_960),
          pause=Between(0.1, 0.3)), only("application_limited"), only("sender_stall"), rtt=RTTS,
          source="jittertrap sender-stalls"),
    Scene("one reset after another", "reset", CutOff(Between(1000, 5000), 1000, count=Between(12, 20)), only("reset"),
          only("reset_storm"), rtt=RTTS, source="jittertrap rst-storm"),
)  # fmt: skip

PACKETDRILL = (
    Scene("first of ten", "fast_retransmit", Stream(segments(10, 10)), only("fast_retransmit"),
          rtt=LONG_RTTS, mtu=1500, faults=(DropBytes(0, past(0, 1)),), source="packetdrill prr-ss-10pkt-lost-1"),
    Scene("ten of thirty", "fast_retransmit", Stream(segments(60, 60)), only("fast_retransmit"),
          only("short_flow_slow_start", "rto_stall"), rtt=LONG_RTTS, mtu=1500, route="initcwnd 30",
          faults=(DropBytes(0, past(0, 4)), DropBytes(past(0, 10), past(0, 16))),
          source="packetdrill prr-ss-30pkt-lost-1_4-11_16"),
    Scene("first of four", "fast_retransmit", Stream(segments(4, 4)), only("fast_retransmit"), only("tail_loss"),
          rtt=LONG_RTTS, mtu=1500, faults=(DropBytes(0, past(0, 1)),), source="packetdrill fr-4pkt-sack"),
    Scene("bulk, pause, bulk", "idle_restart", Stream(332_000, write=166_000, pause=Between(0.8, 1.2),
          receiver_options=Options(receive_buffer=2_000_000)), only("idle_restart"),
          only("short_flow_slow_start", "application_limited"), rtt=LONG_RTTS, mtu=1500,
          source="packetdrill cubic-bulk-166k-idle-restart"),
    Scene("timeout in slow start", "rto_stall", Stream(segments(80, 120)), only("rto_stall"), LOSSES, rtt=LONG_RTTS,
          mtu=1500, sender_sysctls=NO_PROBE, faults=(DropFlight(past(0, 10)),),
          source="packetdrill cubic-rto-ss-ca-cwnd-bump"),
    Scene("probe of a tail", "tail_loss", Asks(6, 100, segments(5, 5), think=0.0), only("tail_loss"), rtt=LONG_RTTS,
          mtu=1500, faults=(DropBytes(end_of(3, 1), end_of(3, 0)),), source="packetdrill tcp tlp"),
    Scene("answers that come late once", "spurious_retransmit", Stream(segments(100, 200)),
          only("spurious_retransmit"), LOSSES | only("bufferbloat", "unexplained"), rtt=RTTS, mtu=1500,
          faults=(Hold((past(0.4, 0),), 0.35, data=False, answers=True),), source="packetdrill undo"),
    Scene("SYN without answer", "syn_loss", Asks(2, 100, 500), only("syn_loss"), rtt=RTTS, faults=(DropSyn(2),),
          source="packetdrill syn-data-timeout"),
)  # fmt: skip

OTHERS = (*JITTERTRAP, *PACKETDRILL)
