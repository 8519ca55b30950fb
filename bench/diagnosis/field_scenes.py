"""Scenes of what other people's captures look like, most of them clean: nothing is wrong but the look.

Hosts that are not Linux, routers that translate, files that were filtered, cut, merged or begun late, connections that
rest.
"""

from __future__ import annotations

from bench.diagnosis.drawing import Between, among
from bench.diagnosis.faults import DropBytes, DropFlight, ThinAcks
from bench.diagnosis.idle import Idle
from bench.diagnosis.programs import Asks, Options, Stream
from bench.diagnosis.scenes import BULK, LOSSES, PROBES, Scene, after, only, past, segments
from bench.diagnosis.stacks import CONTROLLER, WINDOWS, Stack
from bench.diagnosis.taps import Begins, Cut, Filtered, Halves, Merged, OneWay

GROWS = only("short_flow_slow_start")
# What a file without acknowledgements, or with half of them, leaves open of a loss that is in it.
ANY_LOSS = only(
    "fast_retransmit", "rto_stall", "tail_loss", "double_loss", "spurious_retransmit", "reordering", "retransmit_storm",
    "capture_loss", "half_capture", "unexplained", "sender_stall",
)  # fmt: skip
ONE_LOSS = (DropBytes(after(0.3), past(0.3, 1)),)
GLOBAL = Stack("global", among(0, 3))
BOTH = (GLOBAL, GLOBAL)
# An embedded receiver: four segments and no more (lwIP's TCP_WND).
SMALL = Options(receive_buffer=among(4096, 8192))
SMALL_WINDOW = only("window_scaling_off", "silly_window", "zero_window")
EXCHANGES = Asks(Between(5, 30), Between(10, 1000), Between(10, 20_000))
RESTS = among(1.0, 2.0, 5.0)

STACKS = (
    Scene("Windows", "clean", Stream(segments(1, 400)), may=GROWS, family=4, offloads=False, sender_sysctls=WINDOWS,
          stacks=(GLOBAL, None)),
    Scene("Windows on both ends", "clean", EXCHANGES, family=4, offloads=False, sender_sysctls=WINDOWS,
          receiver_sysctls=WINDOWS, stacks=BOTH),
    Scene("controller", "clean", Asks(Between(5, 30), Between(10, 200), Between(10, 1000), receiver_options=SMALL),
          may=SMALL_WINDOW, family=4, mtu=1500, offloads=False, sender_sysctls=CONTROLLER,
          receiver_sysctls=CONTROLLER, stacks=BOTH),
    Scene("no identification", "clean", Stream(segments(1, 400)), may=GROWS, family=4, offloads=False,
          stacks=(Stack("zero"), Stack("zero"))),
    Scene("random identification", "clean", Stream(segments(1, 400)), may=GROWS, family=4, offloads=False,
          stacks=(Stack("random"), Stack("random"))),
    Scene("translated", "clean", Stream(segments(20, 60), count=Between(3, 6), together=True), may=GROWS, family=4,
          offloads=False, sender_opens=True, senders=None, has_nat=True),
    Scene("translated Windows", "clean", Stream(segments(20, 60), count=Between(3, 6), together=True), may=GROWS,
          family=4, offloads=False, sender_opens=True, senders=None, has_nat=True, sender_sysctls=WINDOWS,
          stacks=(GLOBAL, None)),
    Scene("an answer to each segment", "clean", Stream(segments(20, 200)), may=GROWS, route="quickack 1"),
    Scene("thin acknowledgements", "clean", Stream(segments(200, 400)), may=GROWS, offloads=False,
          faults=(ThinAcks(among(4, 8)),)),
    Scene("Windows, one loss", "fast_retransmit", BULK, LOSSES, family=4, offloads=False, sender_sysctls=WINDOWS,
          stacks=(GLOBAL, None), faults=ONE_LOSS),
    Scene("Windows, lost flight", "rto_stall", BULK, only("rto_stall"), LOSSES, family=4, offloads=False,
          sender_sysctls=WINDOWS, stacks=(GLOBAL, None), faults=(DropFlight(after(0.3)),)),
    Scene("random identification, lost flight", "rto_stall", BULK, only("rto_stall"), LOSSES, family=4,
          offloads=False, sender_sysctls=PROBES, stacks=(Stack("random"), Stack("random")),
          faults=(DropFlight(after(0.3)),)),
    Scene("controller, one loss", "fast_retransmit", BULK, LOSSES, only("window_scaling_off"), family=4, mtu=1500,
          offloads=False, sender_sysctls=CONTROLLER, stacks=BOTH, faults=ONE_LOSS),
    Scene("translated, one loss", "fast_retransmit", Stream(segments(100, 200), count=3, together=True), LOSSES,
          family=4, offloads=False, sender_opens=True, senders=None, has_nat=True, faults=ONE_LOSS),
    Scene("thin acknowledgements, one loss", "fast_retransmit", BULK, LOSSES, offloads=False,
          faults=(ThinAcks(among(4, 8)), *ONE_LOSS)),
)  # fmt: skip

FILES = (
    Scene("only data shown", "clean", BULK, may=GROWS | only("half_capture"), flaws=(Filtered("data"),)),
    Scene("handshake not shown", "clean", BULK, may=GROWS, flaws=(Filtered("established"),)),
    Scene("begun late", "clean", BULK, may=GROWS, flaws=(Begins(Between(0.1, 0.5)),)),
    Scene("only data shown, one loss", "none", BULK, may=ANY_LOSS, flaws=(Filtered("data"),), faults=ONE_LOSS),
    Scene("one way, one loss", "half_capture", BULK, only("half_capture"), ANY_LOSS,
          flaws=(OneWay(among(False, True)),), faults=ONE_LOSS),
    Scene("halves of several", "half_capture", Stream(segments(20, 60), count=3), only("half_capture"), GROWS,
          flaws=(Halves(),)),
    Scene("short records, one loss", "truncated", BULK, LOSSES | only("truncated"), flaws=(Cut(12),), faults=ONE_LOSS),
    Scene("merged taps", "capture_duplicates", BULK, only("capture_duplicates"), GROWS, offloads=False,
          flaws=(Merged(),)),
    Scene("merged taps, one loss", "capture_duplicates", BULK, LOSSES | only("capture_duplicates"), offloads=False,
          flaws=(Merged(),), faults=ONE_LOSS),
)  # fmt: skip

RESTING = (
    Scene("closed by an idle server", "clean", Idle(Between(2, 6), 200, Between(100, 9000), RESTS)),
    Scene("closed by an idle client", "clean", Idle(Between(2, 6), 200, Between(100, 9000), RESTS, by_receiver=True)),
    Scene("reset by an idle server", "reset", Idle(Between(2, 6), 200, Between(100, 9000), RESTS, cut=True),
          only("reset")),
    Scene("asked whether alive", "clean", Idle(Between(2, 6), 200, Between(100, 9000), 4.5, keepalive=True)),
    Scene("heartbeats", "clean", Asks(4, Between(10, 60), Between(10, 60), think=among(0.5, 1.0))),
)  # fmt: skip

FIELD = (*STACKS, *FILES, *RESTING)
