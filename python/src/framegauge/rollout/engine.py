"""Carries out a change of MTUs, or puts everything back. Never prints.

After each step full-size packets are sent between the hosts, and only then the leases of the hosts between which they
passed are renewed. So a lease is the dead man's switch of three things at once: this process, the way to the host, and
the packets. Whatever fails, everything is put back, the newest stage first, and each stage on every host before the
next one.

Stages are kept in the order in which they were made, each on every host before the next one. If this process dies in
between, some hosts keep a stage that others put back: routes that are held at the old MTU, then interfaces that take in
more than anybody sends. Nothing is lost in such a state (`parked`), and it can be finished or undone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from framegauge.errors import DiskFull
from framegauge.rollout.fleet import Failed, Fleet, differs
from framegauge.rollout.journal import Journal
from framegauge.rollout.proof import HEADERS, Proof, Prover, new_connections
from framegauge.rollout.transition import STAGES, HostChange

__all__ = ["Engine", "Outcome", "Pause", "Released", "Settings"]

LONGEST_PAUSE_SECONDS = 5.0
RENEWALS = 5  # within the time of a lease
LATEST = 0.5  # the share of a lease without a proof after which everything is put back
PROGRESS_SECONDS = 2.0
TRIES = 3  # of a proof that could not tell
LINK_UP_SECONDS = 1.0  # for a link that is up again to carry what was held back
SETTLE_SECONDS = 2.0  # for what connections have under way when their MSS falls


@dataclass(frozen=True)
class Released:
    """The wave before the next one: its hosts, when their routes were released (seconds since 1970), and the hosts of
    later waves, whose routes are held."""

    hosts: tuple[str, ...]
    at: float
    held: tuple[str, ...]


Pause = Callable[[], None]


@dataclass(frozen=True)
class Settings:
    """How a change is carried out. `needed`: with how many others full-size packets must pass. `gate`: asked before
    each wave but the first, while leases are kept; a line that says why not, or None. `link_loss_seconds`: how long a
    link may be down when its MTU changes; interfaces then change wave by wave, so that the others go on."""

    lease_seconds: float
    needed: int
    wait_seconds: float
    families: tuple[int, ...] = (4, 6)
    reopen: bool = False
    gate: Callable[[Pause, Released], str | None] | None = None
    link_loss_seconds: float = 0.0


@dataclass
class Outcome:
    """How it ended: `finished` (or `undone`, `undone_in_part`), `put_back`, `parked`, or `held` as asked; why; the
    hosts that did not confirm that they are as they were; and how many connections were ended for new ones, by host.
    """

    kind: str
    why: list[str] = field(default_factory=list)
    not_confirmed: dict[str, str] = field(default_factory=dict)
    closed: dict[str, int] = field(default_factory=dict)


class Engine:
    """One change of all hosts of a fleet. `say` is told of each step; `addresses`: of each host's interface."""

    def __init__(
        self,
        changes: Sequence[HostChange],
        fleet: Fleet,
        prover: Prover,
        journal: Journal,
        settings: Settings,
        addresses: Mapping[str, Sequence[str]],
        say: Callable[[str], None],
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
        done: str = "finished",
    ) -> None:
        self._done = done
        self._changes, self._fleet, self._prover, self._journal = list(changes), fleet, prover, journal
        self._settings, self._addresses, self._say = settings, addresses, say
        self._sleep, self._monotonic, self._now = sleep, monotonic, now
        self._released = Released((), 0.0, ())
        self._hold = min(change.hold for change in changes)
        self._mtu = max(change.mtu for change in changes)
        self._proved = self._hold  # what interfaces take in now
        self._waves = sorted({change.wave for change in changes})

    def run(self) -> Outcome:
        """The whole change. Whatever fails or interrupts it, everything is put back before this returns or raises."""
        try:
            self._prove(self._hold, "before")
            self._demand_neighbours()
            self._hold_routes()
            self._change_links()
            for number in self._waves:
                self._release(number)
            self._keep()
            outcome = self._finish()
        except Failed as error:
            return self._put_back(error.lines)
        except BaseException as error:
            self._put_back([f"{type(error).__name__}: {error}".rstrip(": ")])
            raise
        return outcome

    def hold(self) -> Outcome:
        """The first stage alone, for good: nobody sends more than the smaller MTU, and interfaces take in what they do
        now. As in `run`, it is put back if it fails."""
        try:
            self._prove(self._hold, "before")
            self._hold_routes()
            self._journal.write("keeping", stage=STAGES[0])
            self._fleet.keep(STAGES[0])
        except Failed as error:
            return self._put_back(error.lines)
        except BaseException as error:
            self._put_back([f"{type(error).__name__}: {error}".rstrip(": ")])
            raise
        outcome = Outcome("held", not_confirmed=self._fleet.end())
        self._journal.write("parked", not_confirmed=outcome.not_confirmed, kept=self._fleet.kept)
        return outcome

    def _demand_neighbours(self) -> None:
        """What no other host would send in full size, nothing can prove."""
        if names := self._prover.alone(self._mtu):
            raise Failed(
                [f"{name}: found no other host that it sends {self._mtu} bytes to, expected one" for name in names]
            )

    def _hold_routes(self) -> None:
        self._say(f"holding every route at {self._hold} bytes")
        self._journal.write("stage", stage="hold", hosts=[change.host for change in self._changes])
        self._fleet.hold()
        if any(int(change.before[f"mtu:{change.interface}"]) > change.mtu for change in self._changes):
            # What is under way was sent at the larger MTU, and is still taken in.
            self._watch(SETTLE_SECONDS)
        self._go_on()

    def _change_links(self) -> None:
        self._say(f"changing every interface to {self._mtu} bytes, while routes are held")
        names = [change.host for change in self._changes]
        self._journal.write("stage", stage="link", hosts=names)
        away = self._settings.link_loss_seconds
        if not away:
            self._fleet.go("link", names)
        for number in self._waves if away else ():
            wave = [change.host for change in self._changes if change.wave == number]
            self._say(f"wave {number + 1} of {len(self._waves)}: {', '.join(wave)}: links may be down for {away:g} s")
            self._fleet.go("link", wave)
            self._sleep(away + LINK_UP_SECONDS)
            self._prove(self._hold, f"link {number + 1}")
        self._proved = self._mtu
        self._prove(self._mtu, "link")

    def _release(self, number: int) -> None:
        names = [change.host for change in self._changes if change.wave == number]
        if number != self._waves[0]:
            self._ask_gate(number)
        self._say(f"wave {number + 1} of {len(self._waves)}: {', '.join(names)}: releasing its routes")
        self._journal.write("stage", stage="release", wave=number, hosts=names)
        held = tuple(change.host for change in self._changes if change.wave > number)
        self._released = Released(tuple(names), self._now(), held)
        self._fleet.go("release", names)
        captured = self._fleet.capture(self._addresses)
        # Which link is to blame takes seconds to tell, in which packets may be lost by now.
        proof = self._prove(self._mtu, f"release {number + 1}", blame=False)
        self._demand_new_mss(proof, captured)
        self._watch(self._settings.wait_seconds)

    def _ask_gate(self, number: int) -> None:
        if self._settings.gate is not None:
            self._say(f"asking the gate before wave {number + 1}")
            why = self._settings.gate(self._pause, self._released)
            self._journal.write("gate", wave=number, refused=why)
            if why is not None:
                raise Failed([why])

    def _demand_new_mss(self, proof: Proof, captured: set[str]) -> None:
        """New connections announce what routes allow now: by their kernels, and by SYNs where hosts may capture."""
        lines = new_connections(proof, self._fleet.largest)
        sent = self._fleet.captured(captured, self._addresses)
        for name, mss_by_address in sent.items():
            for address, mss in mss_by_address.items():
                packet = self._fleet.largest(name, address)
                expected = None if packet is None else packet - HEADERS[6 if ":" in address else 4]
                if expected is not None and mss != expected:
                    lines.append(f"{name} to {address}: found an MSS of {mss} bytes in a SYN, expected {expected}")
        self._journal.write("syns", mss_bytes=sent, not_captured=sorted(set(self._addresses) - set(sent)))
        if lines:
            raise Failed(lines)

    def _prove(self, mtu: int, when: str, blame: bool = True) -> Proof:
        self._say(f"proving that packets of {mtu} bytes pass between all of them")
        for _ in range(TRIES):
            proof = self._prover.mesh(mtu, self._progress(), blame)
            self._journal.write("proof", when=when, **proof.as_json())
            self._demand_renewed(proof)
            if proof.is_whole:
                return proof
        raise Failed(proof.lines())

    def _progress(self) -> Callable[[float, str], None]:
        """Tells of what takes long, now and then."""
        last = [self._monotonic()]

        def progress(share: float, text: str) -> None:
            if self._monotonic() - last[0] >= PROGRESS_SECONDS:
                last[0] = self._monotonic()
                self._say(f"{text}: {share:.0%}")

        return progress

    def _demand_renewed(self, proof: Proof) -> None:
        """Renews the leases of hosts that have passed; Failed if one has not for too long, or its lease is lost."""
        if proof.faults:
            raise Failed(proof.lines())
        passed = set(proof.passed) - set(proof.weak(self._settings.needed))
        errors = self._fleet.renew([name for name in self._fleet.renewed if name in passed])
        late = self._fleet.late(LATEST)
        if errors or late:
            lost = [f"{name}: the lease is lost: {why}" for name, why in errors.items()]
            raise Failed([*lost, *proof.lines(), *(f"{name}: not proved for too long" for name in late)])

    def _go_on(self) -> None:
        """One round of the dead man's switch: probes, settings read back, and leases renewed."""
        proof = self._prover.few(self._proved, self._settings.needed)
        if lines := self._fleet.drift():
            raise Failed(lines)
        self._demand_renewed(proof)

    def _pause(self) -> None:
        """A while in which leases are kept."""
        self._sleep(min(LONGEST_PAUSE_SECONDS, self._settings.lease_seconds / RENEWALS))
        self._go_on()

    def _watch(self, seconds: float) -> None:
        deadline = self._monotonic() + seconds
        while (remaining := deadline - self._monotonic()) > 0:
            self._sleep(min(remaining, LONGEST_PAUSE_SECONDS, self._settings.lease_seconds / RENEWALS))
            self._go_on()

    def _keep(self) -> None:
        self._say("keeping it: each stage on every host before the next")
        self._go_on()
        for stage in STAGES:
            self._journal.write("keeping", stage=stage)
            self._fleet.keep(stage)
        self._journal.write("kept")

    def _finish(self) -> Outcome:
        """After everything is kept: what it is now, and connections with an old MSS."""
        outcome = Outcome(self._done)
        if self._settings.reopen:
            outcome.closed = self._fleet.reopen(self._addresses)
        outcome.not_confirmed = self._fleet.end()
        answers, errors = self._fleet.read()
        after = {change.host: change.after for change in self._changes}
        outcome.why = [f"{name}: {why}" for name, why in errors.items()]
        for name, interfaces in answers.items():
            for interface, answer in interfaces.items():
                outcome.why += differs(name, interface, answer, after[name])
        self._journal.write(self._done, closed=outcome.closed, not_as_asked=outcome.why)
        return outcome

    def _put_back(self, why: Sequence[str]) -> Outcome:
        self._say("putting everything back")
        self._note("failed", why=list(why))
        for stage in reversed(STAGES):
            self._fleet.back(stage)
        not_confirmed = self._fleet.end()
        answers, errors = self._fleet.read()
        before = {change.host: change.before for change in self._changes}
        not_confirmed |= errors
        for name, interfaces in answers.items():
            for interface, answer in interfaces.items():
                for line in differs(name, interface, answer, before[name]):
                    not_confirmed.setdefault(name, line)
        kind = "parked" if any(self._fleet.kept.values()) else "put_back"
        self._note(kind, not_confirmed=not_confirmed, kept={n: k for n, k in self._fleet.kept.items() if k})
        return Outcome(kind, list(why), not_confirmed)

    def _note(self, event: str, **more: Any) -> None:
        """An entry of the journal, without which hosts are put back all the same."""
        try:
            self._journal.write(event, **more)
        except DiskFull as error:
            self._say(f"{error}: it does not know of this: {event}")
