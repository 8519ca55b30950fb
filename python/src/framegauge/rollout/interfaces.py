"""Which interfaces of a host a roll-out changes, what they have, and which others change with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from framegauge.check.plan import Member, ask_all
from framegauge.errors import BadAnswer, InputError
from framegauge.rollout import transition
from framegauge.rollout.model import Asked, Json
from framegauge.rollout.preflight import survey
from framegauge.rollout.preflight.links import Links
from framegauge.rollout.transition import Link

__all__ = ["read"]

_Settings = Mapping[str, str]


def read(
    members: Sequence[Member],
    asked: Asked,
    facts: Mapping[str, Json],
    origin: Mapping[str, _Settings],
    errors: dict[str, str],
    partly: bool,
) -> dict[str, tuple[Link, ...]]:
    """The interfaces of every host that is meant, those beneath that are to rise with it, those on it that are lowered
    with it, and those that follow any of these by themselves; or those of `origin`. InputError if a host has no such
    interface; with `partly` it is in `errors` instead."""
    wanted: dict[str, list[str]] = {}
    ports = _ports(members, facts, errors)
    for name, known in facts.items():
        interface = asked.interfaces[name]
        there = [each["name"] for each in known["interfaces"]]
        if interface in there:
            wanted[name] = (
                _of_origin(origin[name], interface, there) if name in origin else
                [*transition.beneath(interface, known, asked.target_mtu, ports.get(name, {})), interface,
                 *transition.above(interface, known, asked.target_mtu)]
            )  # fmt: skip
            continue
        why = f"found no interface {interface}, expected one of {', '.join(there) or 'none'}"
        if not partly:
            raise InputError(f"{name}: {why}")
        errors[name] = why
    answers = _answers(members, wanted, errors)
    following = {
        name: transition.following(wanted[name], found, facts[name], asked.target_mtu)
        for name, found in answers.items() if name not in origin and name not in errors
    }  # fmt: skip
    for name, found in _answers(members, following, errors).items():
        answers[name] |= found
    made = {}
    for name, found in answers.items():
        try:
            if name not in errors:
                follow = following.get(name) or _risen(wanted[name], asked.interfaces[name], facts[name])
                made[name] = transition.links_of(asked.interfaces[name], found, follow)
        except BadAnswer as error:
            errors[name] = str(error)
    return made


def _of_origin(settings: _Settings, interface: str, there: Sequence[str]) -> list[str]:
    """The interfaces of a host that were changed, in their order."""
    changed = [each.removeprefix("mtu:") for each in settings if each.startswith("mtu:")]
    # What stood on it may be gone by now: then nothing of it is to be put back.
    on_it = changed[changed.index(interface) + 1 :] if interface in changed else []
    left = [each for each in changed if each in there or each not in on_it]
    return left if interface in changed else [*left, interface]


def _risen(changed: Sequence[str], interface: str, facts: Json) -> list[str]:
    """Those of the interfaces that were changed which follow what they stand on, or their ports, also when it rises."""
    kinds = {each["name"]: each["kind"] for each in facts["interfaces"]}
    return [each for each in changed[changed.index(interface) + 1 :] if kinds.get(each) in transition.RISING]


def _answers(
    members: Sequence[Member], wanted: Mapping[str, Sequence[str]], errors: dict[str, str]
) -> dict[str, dict[str, Json]]:
    """What `host.routes` has of these interfaces, by host and interface."""
    answers: dict[str, dict[str, Json]] = {name: {} for name in wanted}
    for place in range(max(map(len, wanted.values()), default=0)):
        meant = [each for each in members if place < len(wanted.get(each.name, ()))]
        found = ask_all(meant, "host.routes", lambda each, at=place: {"interface": wanted[each.name][at]}, errors, 30.0)  # type: ignore[misc]
        for name, answer in found.items():
            answers[name][wanted[name][place]] = answer
    return answers


def _ports(
    members: Sequence[Member], facts: Mapping[str, Json], errors: dict[str, str]
) -> dict[str, dict[str, list[str]]]:
    """Of hosts that have bridges: by bridge, its ports that lead out of the host."""
    hosts = [
        each.host
        for each in members
        if any(one["kind"] == "bridge" for one in facts.get(each.name, {"interfaces": ()})["interfaces"])
    ]
    found = {name: Links.of(each["links"]) for name, each in survey.read(hosts, errors, facts).items()} if hosts else {}
    return {
        name: {bridge: [port.name for port in links.outward(bridge)] for bridge in links.names()}
        for name, links in found.items()
    }
