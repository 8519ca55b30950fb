"""Runs one variant of a scene: two hosts, the wire between them, and what each of them says at the end."""

from __future__ import annotations

import ipaddress
import json
import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from bench.diagnosis import hosts, taps
from bench.diagnosis.faults import Fault
from bench.diagnosis.hosts import Host, Running
from bench.diagnosis.programs import Place, Program
from bench.diagnosis.stacks import Nat, Numbering, Stack
from bench.diagnosis.taps import Flaw, OneWay
from bench.diagnosis.wire import Captured, Wire

SECOND = 1_000_000_000
# Many flows that share a queue and wait for timers, one after another, take 18.
MOST_SECONDS = 40.0
# After the programs have ended, for the last packets.
LINGER_SECONDS = 0.02
KEPT_BYTES = 128
NETWORK = 9


@dataclass(frozen=True)
class Variant:
    """A scene with everything drawn. `rtt`: seconds. `mtus`: of the sender and the receiver."""

    scene: str
    number: int
    seed: int
    program: Program
    rtt: float
    mtus: tuple[int, int] = (1500, 1500)
    family: int = 4
    offloads: bool = False
    sender_opens: bool = True
    near: Sequence[Fault] = ()
    far: Sequence[Fault] = ()
    flaws: Sequence[Flaw] = ()
    sysctls: tuple[Mapping[str, str], Mapping[str, str]] = field(default_factory=lambda: ({}, {}))
    route: str = ""
    senders: int = 1
    kept_bytes: int = KEPT_BYTES
    # How the hosts at the sender's and the receiver's end number their packets; None: as Linux does.
    stacks: tuple[Stack | None, Stack | None] = (None, None)
    # The sender's hosts are behind a router that translates their addresses.
    has_nat: bool = False


@dataclass
class Ran:
    """What a run gave: both hosts' answers, the wire's log, and how late the wire was, in seconds."""

    sender: dict[str, Any]
    receiver: dict[str, Any]
    log: list[dict[str, Any]]
    late: float
    packets: int


@dataclass
class Played:
    """A run with its wire, whose books and packets nothing has spoilt yet."""

    ran: Ran
    wire: Wire
    variant: Variant
    own: tuple[str, ...]

    @property
    def translated(self) -> dict[tuple[bytes, int], tuple[bytes, int]]:
        """How ends of the sender's side are called behind their router, where they have one."""
        return self.wire.nat.translated() if self.wire.nat else {}

    def captured(self) -> dict[str, list[Captured]]:
        """What a capture at each tap holds, with its flaws."""
        first = packed(self.own[0])
        flaws = [OneWay(flaw.sender, first) if isinstance(flaw, OneWay) else flaw for flaw in self.variant.flaws]
        return taps.spoilt(self.wire.captured, flaws, random.Random(self.variant.seed + 1))


def addresses(family: int, host: int, count: int, network: int = NETWORK) -> tuple[str, ...]:
    """Addresses of a host; more than one stand for as many hosts."""
    if family == 6:
        prefix = "fd00" if network == NETWORK else f"fd00:{network:x}"
        return tuple(f"{prefix}:{host}::{number}" for number in range(1, count + 1))
    return tuple(f"10.{network}.{host}.{number}" for number in range(1, count + 1))


def packed(address: str) -> bytes:
    """As in a header."""
    return ipaddress.ip_address(address).packed


def run(variant: Variant, capture: Path) -> Ran:
    """Run it, and write the capture of its three taps. OSError: the hosts cannot be made; TimeoutError: one hangs."""
    played = play(variant)
    taps.write(capture, played.captured())
    return played.ran


def play(variant: Variant, network: int = NETWORK) -> Played:
    """Run it, in a network of this number. The same errors."""
    own, other = addresses(variant.family, 1, variant.senders, network), addresses(variant.family, 2, 1, network)
    made: list[Running] = []
    try:
        for side, (mine, theirs) in enumerate(((own, other), (other, own))):
            place = Place(mine, theirs, variant.sender_opens == (side == 0))
            host = Host(mine, variant.mtus[side], variant.offloads, variant.sysctls[side], variant.route)
            ready = os.pipe()
            act = partial(variant.program.run, place, side == 0, partial(_tell, ready[1]))
            made.append(hosts.start(host, act))
            os.close(ready[1])
            made[-1].ready = ready[0]
        wire = Wire(
            (made[0].device, made[1].device), int(variant.rtt / 2 * SECOND), variant.near, variant.far,
            random.Random(variant.seed), variant.offloads, variant.offloads and variant.seed % 2 == 0,
            variant.kept_bytes, *_others(variant, network),
        )  # fmt: skip
        with _in_time():
            answers = _watch(variant, made, wire)
    finally:
        hosts.end(made)
    for each in answers:
        if "problem" in each:
            raise RuntimeError(each["problem"])
    ran = Ran(answers[0], answers[1], wire.log, wire.late / SECOND, len(wire.captured))
    return Played(ran, wire, variant, own)


def _others(variant: Variant, network: int) -> tuple[tuple[Numbering | None, Numbering | None], Nat | None]:
    """What makes the hosts of a wire other than Linux."""
    first, second = (
        Numbering(stack, random.Random(f"{variant.seed} {side}")) if stack else None
        for side, stack in enumerate(variant.stacks)
    )
    router = Nat(packed(addresses(4, 3, 1, network)[0])) if variant.has_nat else None
    return (first, second), router


@contextmanager
def _in_time() -> Iterator[None]:
    """The wire runs before everything on this machine that is not in time, too: it sleeps nearly always."""
    before = os.sched_getscheduler(0)
    os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, before, os.sched_param(0))


def _tell(descriptor: int) -> None:
    os.write(descriptor, b"r")
    os.close(descriptor)


def _watch(variant: Variant, made: Sequence[Running], wire: Wire) -> list[dict[str, Any]]:
    """Both programs, the one that waits for connections first; their answers."""
    begun = time.time_ns()
    deadline = begun + int(MOST_SECONDS * SECOND)
    first = 1 if variant.sender_opens else 0
    made[first].answers.sendall(b"go")
    if not os.read(made[first].ready, 1):
        raise OSError("a host ended before its program began")
    made[1 - first].answers.sendall(b"go")
    texts = [b"", b""]
    left = {each.answers.fileno(): side for side, each in enumerate(made)}
    while left:
        if time.time_ns() > deadline:
            raise TimeoutError(f"{variant.scene} {variant.number}: a host did not end within {MOST_SECONDS:g} s")
        for ready in wire.step(list(left), deadline):
            part = made[left[ready]].answers.recv(65536)
            texts[left[ready]] += part
            if not part:
                del left[ready]
    until = time.time_ns() + int((LINGER_SECONDS + variant.rtt) * SECOND)
    while time.time_ns() < until:
        wire.step([], until)
    for each in made:
        os.close(each.ready)
    return [json.loads(text) for text in texts]
