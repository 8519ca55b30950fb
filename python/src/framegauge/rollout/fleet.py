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
        pending_hosts = set(self._changes)
        deadline = self._monotonic() + self._seconds + SLACK_SECONDS
        while pending_hosts:
            start = self._monotonic()
            answers, errors = self._ask(sorted(pending_hosts), "lease.begin", self._first)
            for name in answers:
                self.made[name].append("hold")
                self.now[name] |= self._changes[name].stages["hold"][0]
                self.renewed[name] = start
            pending_hosts -= set(answers)
            failures = {name: why for name, why in errors.items() if OTHER not in why}
            if failures or (errors and self._monotonic() > deadline):
                raise Failed([_named(name, why) for name, why in (failures or errors).items()])
            if pending_hosts:
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
        for index in range(max(map(len, groups.values()), default=0)):
            hosts = [name for name in names if index < len(groups[name])]
            self._demand(hosts, "lease.set", lambda name, index=index: {"settings": dict(groups[name][index])})  # type: ignore[misc]
            for name in hosts:
                self.now[name] |= groups[name][index]

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
        hosts = [name for name, stages in self.made.items() if stage in stages and stage not in self.kept[name]]
        hosts = [name for name in hosts if name not in self.lost]

        def params(name: str) -> Json:
            prior_stages = [prior for prior in STAGES[: STAGES.index(stage)] if prior in self.made[name]]
            prior_stages = [prior for prior in prior_stages if prior not in self.kept[name]]
            return {"changes": self._changes[name].count(*prior_stages)}

        answers, errors = self._ask(hosts, "lease.back", params)
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
            return {"addresses": [ip for other, ips in addresses.items() if other != name for ip in ips]}

        answers = self._demand(list(self._changes), "lease.reopen", params)
        return {name: answer["closed"] for name, answer in answers.items()}

    def end(self) -> dict[str, str]:
        """Ends every lease, and puts back what was not kept; the error of each host that did not confirm it."""
        hosts = [name for name in self.renewed if name not in self.lost]
        answers, errors = self._ask(hosts, "lease.end", lambda _: {})
        errors |= {name: why for name, why in self.lost.items() if name not in hosts}
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
            target = {"interface": self._changes[name].interface, "address": addresses[name][0]}
            return {**target, "sysctls": [], "count": False, "sudo": False}

        hosts = [name for name in self._changes if addresses[name]]
        adopted, _ = self._ask(hosts, "host.adopt", params)
        begun, _ = self._ask(adopted, "wire.begin", lambda _: {})
        return set(begun)

    def captured(self, names: Iterable[str], addresses: Mapping[str, Sequence[str]]) -> dict[str, dict[str, int]]:
        """The largest MSS in SYNs and SYN-ACKs that each of these hosts has sent to others since, by their address: a
        program may ask for less."""
        known_addresses = {entry: name for name, entries in addresses.items() for entry in entries}
        answers, _ = self._ask(sorted(names), "wire.end", lambda _: {})
        entries: dict[str, dict[str, int]] = {}
        for name, answer in answers.items():
            sent = [entry for entry in answer["syns"] if entry["direction"] == "out" and entry["mss_bytes"] is not None]
            entries[name] = {}
            for entry in sent:
                address = entry["destination"].rpartition(":")[0].strip("[]")
                if address in known_addresses:
                    entries[name][address] = max(entry["mss_bytes"], entries[name].get(address, 0))
        return entries

    def read(self, names: Iterable[str] | None = None) -> tuple[dict[str, dict[str, Json]], dict[str, str]]:
        """What the interfaces of each host have (`host.routes`), by host and interface; the error of each that
        failed."""
        hosts = list(self._changes if names is None else names)
        results: dict[str, dict[str, Json]] = {name: {} for name in hosts}
        errors: dict[str, str] = {}
        interfaces = {name: _interfaces(self._changes[name].before) for name in hosts}
        for index in range(max(map(len, interfaces.values()), default=0)):
            links = {name: item[index] for name, item in interfaces.items() if index < len(item) and name not in errors}
            answers, failed = self._ask(links, "host.routes", lambda name, links=links: {"interface": links[name]})  # type: ignore[misc]
            errors |= failed
            for name, answer in answers.items():
                results[name][links[name]] = answer
                if links[name] == self._changes[name].interface:
                    self._routes[name] = of_answer(answer["routes"])
        return {name: item for name, item in results.items() if name not in errors}, errors

    def drift(self) -> list[str]:
        """A line for each setting that is not what this roll-out has made it: something else has changed it."""
        answers, errors = self.read()
        lines = [_named(name, why) for name, why in errors.items()]
        for name, interfaces in answers.items():
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
        current_mtu, target_mtu = (settings.get(f"{kind}:{interface}") for settings in (answer["settings"], expected))
        if target_mtu is not None and current_mtu != target_mtu:
            lines.append(f"{host}: {interface}: found {what} of {current_mtu or 'no'} bytes, expected {target_mtu}")
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
    target = value.of(route.name)
    # Of IPv6 the kernel writes the MTU of an interface into routes that had asked for as much.
    return route.held == target or (route.family == 6 and route.held.mtu == mtu == (target.mtu or mtu))


def _named(name: str, why: str) -> str:
    return why if why.startswith(f"{name}:") else f"{name}: {why}"
