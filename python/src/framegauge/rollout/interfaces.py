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
    targets: dict[str, list[str]] = {}
    ports = _ports(members, facts, errors)
    for name, host_facts in facts.items():
        interface = asked.interfaces[name]
        names = [entry["name"] for entry in host_facts["interfaces"]]
        if interface in names:
            targets[name] = (
                _of_origin(origin[name], interface, names) if name in origin else
                [*transition.beneath(interface, host_facts, asked.target_mtu, ports.get(name, {})), interface,
                 *transition.above(interface, host_facts, asked.target_mtu)]
            )  # fmt: skip
            continue
        why = f"found no interface {interface}, expected one of {', '.join(names) or 'none'}"
        if not partly:
            raise InputError(f"{name}: {why}")
        errors[name] = why
    answers = _answers(members, targets, errors)
    following = {
        name: transition.following(targets[name], host_answers, facts[name], asked.target_mtu)
        for name, host_answers in answers.items() if name not in origin and name not in errors
    }  # fmt: skip
    for name, host_answers in _answers(members, following, errors).items():
        answers[name] |= host_answers
    links = {}
    for name, host_answers in answers.items():
        try:
            if name not in errors:
                follow = following.get(name) or _risen(targets[name], asked.interfaces[name], facts[name])
                links[name] = transition.links_of(asked.interfaces[name], host_answers, follow)
        except BadAnswer as error:
            errors[name] = str(error)
    return links


def _of_origin(settings: _Settings, interface: str, present_names: Sequence[str]) -> list[str]:
    """The interfaces of a host that were changed, in their order."""
    changed = [name.removeprefix("mtu:") for name in settings if name.startswith("mtu:")]
    # What stood on it may be gone by now: then nothing of it is to be put back.
    upper_names = changed[changed.index(interface) + 1 :] if interface in changed else []
    interfaces = [name for name in changed if name in present_names or name not in upper_names]
    return interfaces if interface in changed else [*interfaces, interface]


def _risen(changed: Sequence[str], interface: str, facts: Json) -> list[str]:
    """Those of the interfaces that were changed which follow what they stand on, or their ports, also when it rises."""
    kinds = {entry["name"]: entry["kind"] for entry in facts["interfaces"]}
    return [entry for entry in changed[changed.index(interface) + 1 :] if kinds.get(entry) in transition.RISING]


def _answers(
    members: Sequence[Member], stacks: Mapping[str, Sequence[str]], errors: dict[str, str]
) -> dict[str, dict[str, Json]]:
    """What `host.routes` has of these interfaces, by host and interface."""
    answers: dict[str, dict[str, Json]] = {name: {} for name in stacks}
    for step in range(max(map(len, stacks.values()), default=0)):
        batch = [host for host in members if step < len(stacks.get(host.name, ()))]
        result = ask_all(batch, "host.routes", lambda host, at=step: {"interface": stacks[host.name][at]}, errors, 30.0)  # type: ignore[misc]
        for name, answer in result.items():
            answers[name][stacks[name][step]] = answer
    return answers


def _ports(
    members: Sequence[Member], facts: Mapping[str, Json], errors: dict[str, str]
) -> dict[str, dict[str, list[str]]]:
    """Of hosts that have bridges: by bridge, its ports that lead out of the host."""
    hosts = [
        item.host
        for item in members
        if any(interface["kind"] == "bridge" for interface in facts.get(item.name, {"interfaces": ()})["interfaces"])
    ]
    table = {name: Links.of(item["links"]) for name, item in survey.read(hosts, errors, facts).items()} if hosts else {}
    return {
        name: {bridge: [port.name for port in links.outward(bridge)] for bridge in links.names()}
        for name, links in table.items()
    }
