"""The leases of all hosts of a roll-out, stage by stage. Each request goes to all hosts at the same time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from framegauge.agents.restored import unrestored
from framegauge.check.plan import Member, ask_all
from framegauge.errors import AgentFailure
from framegauge.rollout.model import Json
from framegauge.rollout.routes import Route, Value, of_answer, parse, sent_to
from framegauge.rollout.transition import STAGES, HostChange

__all__ = ["Failed", "Fleet", "differs"]

OTHER = "another lease under way"  # the agent's wording
RETRY_SECONDS = 0.5
SLACK_SECONDS = 5.0


class Failed(AgentFailure):
    """A roll-out that cannot go on; one line for each reason."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)
        super().__init__("\n".join(self.lines))


class Fleet:
    """`seconds`: of a lease; `patience_seconds`: how long a host may take to answer. `sudo`: hosts whose agent is not
    root."""

    def __init__(
        self,
        members: Sequence[Member],
        changes: Sequence[HostChange],
        seconds: float,
        patience_seconds: float,
        sudo: Iterable[str] = (),
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._members = {member.name: member for member in members}
        self._changes = {change.host: change for change in changes}
        self._seconds, self._patience, self._sudo = seconds, patience_seconds, frozenset(sudo)
        self._sleep, self._monotonic = sleep, monotonic
        self.now = {name: change.held for name, change in self._changes.items()}
        self.made: dict[str, list[str]] = {name: [] for name in self._changes}  # stages under a lease, by host
        self.kept: dict[str, list[str]] = {name: [] for name in self._changes}  # and those that stay
        self.renewed: dict[str, float] = {}  # when, of every host that has begun its lease
        self._routes: dict[str, list[Route]] = {
            name: [] for name in self._changes
        }  # through its interface, as last read
        self.lost: dict[str, str] = {}  # hosts that did not answer when something was to be put back

    def _ask(
        self, names: Iterable[str], method: str, params: Callable[[str], Json | None], patience: float | None = None
    ) -> tuple[dict[str, Json], dict[str, str]]:
        errors: dict[str, str] = {}
        members = [self._members[name] for name in names]
        answers = ask_all(members, method, lambda member: params(member.name), errors, patience or self._patience)
        return answers, errors

    def _demand(self, names: Iterable[str], method: str, params: Callable[[str], Json | None]) -> dict[str, Json]:
        answers, errors = self._ask(names, method, params)
        if errors:
            raise Failed([_named(name, why) for name, why in errors.items()])
        return answers

    def hold(self) -> None:
        """Begins a lease on every host, with its routes held; Failed if a host refuses."""
        left = set(self._changes)
        until = self._monotonic() + self._seconds + SLACK_SECONDS
        while left:
            begun = self._monotonic()
            answers, errors = self._ask(sorted(left), "lease.begin", self._first)
            for name in answers:
                self.made[name].append("hold")
                self.now[name] |= self._changes[name].stages["hold"][0]
                self.renewed[name] = begun
            left -= set(answers)
            hard = {name: why for name, why in errors.items() if OTHER not in why}
            if hard or (errors and self._monotonic() > until):
                raise Failed([_named(name, why) for name, why in (hard or errors).items()])
            if left:
                # A lease of a roll-out that was killed: it ends by itself.
                self.renew(self.renewed)
                self._sleep(RETRY_SECONDS)

    def _first(self, name: str) -> Json:
        settings = dict(self._changes[name].stages["hold"][0])
        return {"settings": settings, "seconds": self._seconds, "sudo": name in self._sudo, "stays": True}

    def go(self, stage: str, names: Sequence[str]) -> None:
        """Makes the changes of a stage on some hosts; Failed if one cannot."""
        groups = {name: self._changes[name].stages[stage] for name in names}
        for name in names:
            self.made[name].append(stage)
        for place in range(max(map(len, groups.values()), default=0)):
            meant = [name for name in names if place < len(groups[name])]
            self._demand(meant, "lease.set", lambda name, place=place: {"settings": dict(groups[name][place])})  # type: ignore[misc]
            for name in meant:
                self.now[name] |= groups[name][place]

    def renew(self, names: Iterable[str]) -> dict[str, str]:
        """Gives the leases of these hosts the whole time again; the error of each that could not."""
        begun = self._monotonic()
        answers, errors = self._ask(list(names), "lease.renew", lambda _: {})
        self.renewed |= dict.fromkeys(answers, begun)
        return errors

    def late(self, share: float) -> list[str]:
        """The hosts whose lease was not renewed for such a share of its time."""
        now = self._monotonic()
        return [name for name, when in self.renewed.items() if now - when > share * self._seconds]

    def back(self, stage: str) -> dict[str, str]:
        """Puts a stage back on every host that has made it and not kept it; the error of each that could not."""
        meant = [name for name, made in self.made.items() if stage in made and stage not in self.kept[name]]
        meant = [name for name in meant if name not in self.lost]

        def params(name: str) -> Json:
            left = [each for each in STAGES[: STAGES.index(stage)] if each in self.made[name]]
            left = [each for each in left if each not in self.kept[name]]
            return {"changes": self._changes[name].count(*left)}

        answers, errors = self._ask(meant, "lease.back", params)
        for name, answer in answers.items():
            if answer["restored"]:
                self.made[name].remove(stage)
                self.now[name] = self._until(name)
            else:
                errors[name] = ", ".join(unrestored(answer))
        self.lost |= errors
        return errors

    def _until(self, name: str) -> dict[str, str]:
        now = self._changes[name].held
        for stage in self.made[name]:
            for group in self._changes[name].stages[stage]:
                now |= group
        return now

    def keep(self, stage: str) -> None:
        """Has a stage outlast the leases, on every host; Failed if one cannot."""
        answers, errors = self._ask(
            list(self._changes), "lease.keep", lambda name: {"changes": self._changes[name].count(stage)}
        )
        for name in answers:
            self.kept[name].append(stage)
        if errors:
            raise Failed([_named(name, why) for name, why in errors.items()])

    def reopen(self, addresses: Mapping[str, Sequence[str]]) -> dict[str, int]:
        """Ends the connections of every host with the addresses of the others that keep an old MSS; how many."""

        def params(name: str) -> Json:
            return {"addresses": [each for other, found in addresses.items() if other != name for each in found]}

        answers = self._demand(list(self._changes), "lease.reopen", params)
        return {name: answer["closed"] for name, answer in answers.items()}

    def end(self) -> dict[str, str]:
        """Ends every lease, and puts back what was not kept; the error of each host that did not confirm it."""
        meant = [name for name in self.renewed if name not in self.lost]
        answers, errors = self._ask(meant, "lease.end", lambda _: {})
        errors |= {name: why for name, why in self.lost.items() if name not in meant}
        errors |= {name: ", ".join(lines) for name, answer in answers.items() if (lines := unrestored(answer))}
        return errors

    def largest(self, name: str, address: str) -> int | None:
        """The largest packet that a host is to send to an address now; None for one that is not changed."""
        if name not in self._changes:
            return None
        return sent_to(self._routes[name], self.now[name], self._changes[name].interface, address)

    def capture(self, addresses: Mapping[str, Sequence[str]]) -> set[str]:
        """Begins to capture handshakes on every host that has the privilege for it; which those are."""

        def params(name: str) -> Json:
            own = {"interface": self._changes[name].interface, "address": addresses[name][0]}
            return {**own, "sysctls": [], "count": False, "sudo": False}

        able = [name for name in self._changes if addresses[name]]
        adopted, _ = self._ask(able, "host.adopt", params)
        begun, _ = self._ask(adopted, "wire.begin", lambda _: {})
        return set(begun)

    def captured(self, names: Iterable[str], addresses: Mapping[str, Sequence[str]]) -> dict[str, dict[str, int]]:
        """The largest MSS in SYNs and SYN-ACKs that each of these hosts has sent to others since, by their address: a
        program may ask for less."""
        ours = {each: name for name, found in addresses.items() for each in found}
        answers, _ = self._ask(sorted(names), "wire.end", lambda _: {})
        found: dict[str, dict[str, int]] = {}
        for name, answer in answers.items():
            sent = [each for each in answer["syns"] if each["direction"] == "out" and each["mss_bytes"] is not None]
            found[name] = {}
            for each in sent:
                place = each["destination"].rpartition(":")[0].strip("[]")
                if place in ours:
                    found[name][place] = max(each["mss_bytes"], found[name].get(place, 0))
        return found

    def read(self, names: Iterable[str] | None = None) -> tuple[dict[str, dict[str, Json]], dict[str, str]]:
        """What the interfaces of each host have (`host.routes`), by host and interface; the error of each that
        failed."""
        meant = list(self._changes if names is None else names)
        found: dict[str, dict[str, Json]] = {name: {} for name in meant}
        errors: dict[str, str] = {}
        interfaces = {name: _interfaces(self._changes[name].before) for name in meant}
        for place in range(max(map(len, interfaces.values()), default=0)):
            asked = {name: each[place] for name, each in interfaces.items() if place < len(each) and name not in errors}
            answers, failed = self._ask(asked, "host.routes", lambda name, asked=asked: {"interface": asked[name]})  # type: ignore[misc]
            errors |= failed
            for name, answer in answers.items():
                found[name][asked[name]] = answer
                if asked[name] == self._changes[name].interface:
                    self._routes[name] = of_answer(answer["routes"])
        return {name: each for name, each in found.items() if name not in errors}, errors

    def drift(self) -> list[str]:
        """A line for each setting that is not what this roll-out has made it: something else has changed it."""
        found, errors = self.read()
        lines = [_named(name, why) for name, why in errors.items()]
        for name, interfaces in found.items():
            lines += [
                line
                for interface, answer in interfaces.items()
                for line in differs(name, interface, answer, self.now[name])
            ]
        return lines


def _interfaces(settings: Mapping[str, str]) -> list[str]:
    return [name.removeprefix("mtu:") for name in settings if name.startswith("mtu:")]


def differs(host: str, interface: str, answer: Json, expected: Mapping[str, str]) -> list[str]:
    """A line for each setting in an answer of `host.routes` that is not as expected; of an MTU nothing may be."""
    lines = []
    for kind, what in (("mtu", "an MTU"), ("mtu6", "an MTU of IPv6")):
        found, wanted = (settings.get(f"{kind}:{interface}") for settings in (answer["settings"], expected))
        if wanted is not None and found != wanted:
            lines.append(f"{host}: {interface}: found {what} of {found or 'no'} bytes, expected {wanted}")
    mtu = answer["settings"][f"mtu:{interface}"]
    for route in of_answer(answer["routes"]):
        value = parse(expected[f"routes{route.family}:{interface}"])
        if not _is(route, value, int(mtu)):
            lines.append(
                f"{host}: {interface}: the route to {route.name}: found an MTU of {route.held}, "
                f"expected {value.of(route.name)} (0: the interface's)"
            )
    return lines


def _is(route: Route, value: Value, mtu: int) -> bool:
    wanted = value.of(route.name)
    # Of IPv6 the kernel writes the MTU of an interface into routes that had asked for as much.
    return route.held == wanted or (route.family == 6 and route.held.mtu == mtu == (wanted.mtu or mtu))


def _named(name: str, why: str) -> str:
    return why if why.startswith(f"{name}:") else f"{name}: {why}"
