"""Compares what is found in a capture with what is true of it, tap by tap."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.diagnosis.run import Ran, Variant
from bench.diagnosis.scenes import Scene

# Somebody is always the limit; who it was, the kernel says (`Chronograph`).
LIMITS = frozenset({"application_limited", "network_limited", "receiver_limited"})
# Which of the kernel's counters make a finding true, wherever it is found. The host whose counters they are.
SENDER, RECEIVER = "sender", "receiver"
BY_KERNEL = {
    "fast_retransmit": ((SENDER, "TCPFastRetrans"),),
    "spurious_retransmit": (
        *(
            (host, f"TCPDSACK{name}")
            for host in (SENDER, RECEIVER)
            for name in ("Recv", "OfoRecv", "OldSent", "OfoSent")
        ),
    ),
    "reordering": ((SENDER, "TCPSACKReorder"), (SENDER, "TCPTSReorder"), (SENDER, "TCPRenoReorder")),
    "zero_window": ((RECEIVER, "TCPToZeroWindowAdv"),),
    "double_loss": ((SENDER, "TCPLostRetransmit"),),
    # The kernel does not count how often RACK's timer ran out; it is one way to begin a repair.
    "reordering_timer": ((SENDER, "TCPSackRecovery"),),
    "cwnd_collapse": (
        (SENDER, "TCPTimeouts"), (SENDER, "TCPSackRecovery"), (SENDER, "TCPRenoRecovery"),
        (SENDER, "TCPLossProbeRecovery"),
    ),
}  # fmt: skip
# A repair that began when a probe of a tail had shown the loss.
PROBED = ("TCPSackRecovery", "TCPLossProbeRecovery")
# So many repeats are a storm, wherever they come from; a flight that is lost as a whole is one.
STORM = 30
# What a tap may say that cannot know the kind.
INSTEAD = {
    "sender_stall": ("unexplained", "application_limited"),
    "rto_stall": ("unexplained", "application_limited", "fast_retransmit"),
    "tail_loss": ("unexplained", "application_limited"),
    "pmtu_black_hole": ("rto_stall", "tail_loss", "unexplained", "application_limited", "fast_retransmit"),
    "unexplained": ("sender_stall", "application_limited"),
    "outcast": ("sender_stall", "application_limited", "unexplained"),
}
# Below this share of a connection's life, a limit is wrong if it is found.
HARDLY = 0.02
# The kernel counts in ticks of 4 ms: of shorter lives its shares say little.
SHORTEST = 0.2


@dataclass(frozen=True)
class Sample:
    """One tap of one variant: the kinds that had to be found, that were true as well, and that were found."""

    scene: str
    kind: str
    number: int
    tap: str
    must: frozenset[str]
    may: frozenset[str]
    found: frozenset[str]
    flows: int

    @property
    def missed(self) -> frozenset[str]:
        return self.must - self.found

    @property
    def wrong(self) -> frozenset[str]:
        return self.found - self.must - self.may


@dataclass(frozen=True)
class Chronograph:
    """The time of a connection's life by limit, in seconds: by the kernel (the sender's TCP_INFO) or a diagnosis."""

    life: float
    idle: float
    receiver: float
    network: float


def of_kernel(ran: Ran, life: float) -> Chronograph | None:
    """None unless there was one connection, and its socket lived to tell."""
    sockets = ran.sender["sockets"]
    if len(sockets) != 1 or "busy" not in sockets[0] or life <= 0:
        return None
    busy, window = sockets[0]["busy"], sockets[0]["rwnd_limited"]
    return Chronograph(life, max(0.0, life - busy), window, busy - window)


WINDOWS = ("receiver_limited", "window_scaling_off", "zero_window", "silly_window")
NOBODY = ("application_limited", "handshake", "syn_loss")


def of_diagnosis(connection: Mapping[str, Any]) -> Chronograph:
    """The same from a connection's `time`."""
    time = connection["time"]
    idle, window = (sum(time.get(kind, 0.0) for kind in kinds) for kinds in (NOBODY, WINDOWS))
    life = connection["end_seconds"] - connection["begin_seconds"]
    return Chronograph(life, idle, window, life - idle - window)


def judge(scene: Scene, variant: Variant, ran: Ran, taps: Iterable[Mapping[str, Any]]) -> list[Sample]:
    """A sample for each tap."""
    found = []
    for tap in taps:
        kinds = frozenset(each["kind"] for each in tap["findings"])
        flows = len(tap["connections"])
        lives = [each["end_seconds"] - each["begin_seconds"] for each in tap["connections"]]
        must, may = true(scene, variant, ran, tap["interface"], lives)
        found.append(Sample(scene.name, scene.kind, variant.number, tap["interface"], must, may, kinds, flows))
    return found


def true(
    scene: Scene, variant: Variant, ran: Ran, tap: str, lives: Sequence[float]
) -> tuple[frozenset[str], frozenset[str]]:
    """What has to be found at a tap, and what may be. `lives`: of its connections, in seconds."""
    must = _by_timer(scene, ran)
    hidden = _invisible(scene, variant, ran, tap) & must
    instead = frozenset(each for kind in hidden for each in INSTEAD.get(kind, ()))
    return must - hidden, scene.may | must | _also_true(variant, ran, lives) | instead


def _by_timer(scene: Scene, ran: Ran) -> frozenset[str]:
    """What a scene must show: where a probe came first, no retransmission timer of the kernel ran out."""
    if "rto_stall" not in scene.must or ran.sender["counters"].get("TCPTimeouts"):
        return scene.must
    return scene.must - {"rto_stall"} | {"tail_loss"}


def _also_true(variant: Variant, ran: Ran, lives: Sequence[float]) -> frozenset[str]:
    """What is true although the scene was not made for it: the kernel says so, or the devices do."""
    kinds = {*LIMITS, "truncated"}  # nothing but headers is kept
    if variant.offloads:
        kinds |= {"aggregates", "checksum_offload"}  # checksums are left to the device, too
    counters = {SENDER: ran.sender["counters"], RECEIVER: ran.receiver["counters"]}
    for kind, evidence in BY_KERNEL.items():
        if any(counters[host].get(name) for host, name in evidence):
            kinds.add(kind)
    if any(each["what"] == "lost" and each.get("again") for each in ran.log):
        kinds.add("double_loss")  # the wire knows which repeats it has lost, whatever the kernel takes them for
    if "RetransSegs" not in ran.sender["counters"] and not variant.route:
        kinds.add("short_flow_slow_start")  # without a loss, a window grows until the transfer ends
    if variant.scene == "late answers":
        kinds.add("sender_stall")  # where the answers have passed already, the sender seems to be late
    if any(host["counters"].get("TCPSynRetrans") for host in (ran.sender, ran.receiver)):
        kinds.add("syn_loss")
    if ran.sender["counters"].get("RetransSegs", 0) >= STORM:
        kinds.add("retransmit_storm")
    probed = any(counters[SENDER].get(name) for name in PROBED) or _has_lost_a_probe(ran)
    if counters[SENDER].get("TCPLossProbes") and probed:
        kinds.add("tail_loss")
    life = lives[0] if len(lives) == 1 else 0.0
    kernel = of_kernel(ran, life)
    if kernel is not None and life >= SHORTEST:
        shares = {"application_limited": kernel.idle, "receiver_limited": kernel.receiver}
        kinds -= {kind for kind, seconds in shares.items() if seconds < HARDLY * life}
    return frozenset(kinds)


def _has_lost_a_probe(ran: Ran) -> bool:
    """Whether the first repeat that the wire lost was not that of the oldest segment, which a timer repeats first."""
    lost = [each for each in ran.log if each["what"] == "lost" and "again" in each]
    first = next((each for each in lost if each["again"]), None)
    return first is not None and first["begin"] > min(each["begin"] for each in lost if each["forth"] == first["forth"])


def _invisible(scene: Scene, variant: Variant, ran: Ran, tap: str) -> frozenset[str]:
    """What this tap cannot know, because nothing of it passed there."""
    hidden = set(scene.blind.get(tap, ()))
    is_behind = tap == "receiver" or (tap == "switch" and not variant.far)
    if scene.kind == "syn_loss":
        # A SYN that was lost before it came here leaves no trace, and neither does a SYN-ACK on its way back.
        forth = ran.log[0]["forth"]
        side = {"sender": 0, "receiver": 2}.get(tap, 1)
        lost_at = 0.5 if variant.near else 1.5
        passed = side < lost_at if forth else side > lost_at
        opener_is_sender = variant.sender_opens
        answers = forth != opener_is_sender
        if not passed and not answers:
            hidden.add("syn_loss")
    if is_behind:
        # What was lost before it came here twice is not known to be, and neither is the size of what never came.
        hidden |= {"double_loss", "pmtu_black_hole"}
        if scene.kind == "double_loss":
            hidden.add("fast_retransmit")  # neither the first copy nor the second came here
    if is_behind and (variant.family == 6 or variant.stacks[0] is not None or variant.has_nat):
        # Without IPv4's identification nothing tells that a packet was lost before it came here, but later ones. Other
        # stacks count for the whole host or not at all, and one address of a router stands for many hosts.
        hidden |= {"rto_stall", "tail_loss", "incast", "outcast", "cwnd_collapse"}
    if tap != "sender" and (variant.family == 6 or variant.scene == "frozen device"):
        hidden.add("sender_stall")
    counters = ran.receiver["counters"], ran.sender["counters"]
    # The kernel counts SYNs and SYN-ACKs as well.
    if counters[1].get("RetransSegs", 0) <= counters[1].get("TCPSynRetrans", 0):
        hidden.add("spurious_retransmit")  # no data was sent again: a probe with new data came first
    if not counters[0].get("TCPToZeroWindowAdv"):
        hidden.add("zero_window")  # the receiver read in time, or kept the window open by a little
    if not counters[0].get("TCPOFOQueue"):
        hidden.add("reordering")  # none of the packets that were held has been overtaken
    sees_acks_only = tap == "sender" or (tap == "switch" and bool(variant.far))
    if sees_acks_only and not any(counters[1].get(name) for _, name in BY_KERNEL["reordering"]):
        hidden.add("reordering")  # the receiver has put them in order before it answered
    if sees_acks_only and scene.kind == "spurious_retransmit":
        hidden.add("reordering")  # it was repeated before it arrived, and both copies look the same
    # Behind the place where answers were held, the sender seems to be late.
    if scene.kind == "unexplained" and (tap == "receiver" or (tap == "switch" and bool(variant.near))):
        hidden.add("unexplained")
    return frozenset(hidden)
