"""The senders of a stream in a study file: how many flows each host has to one receiver, and who are the few."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated

from pydantic import AfterValidator, Field, StrictStr

from framegauge.files.types import Flow, OneOrMore, Problem, one_of

__all__ = ["Few", "SendersLevels", "few_problems", "senders_problems"]


def _in_order(level: dict[str, int]) -> dict[str, int]:
    """The hosts in their order, so that the order in a file makes no difference."""
    return {host: level[host] for host in sorted(level, key=lambda host: (len(host), host))}


Senders = Annotated[dict[StrictStr, Flow], Field(min_length=1), AfterValidator(_in_order)]
SendersLevels = OneOrMore[Senders]
Few = OneOrMore[StrictStr]


def senders_problems(
    levels: Sequence[Mapping[str, int]], receiver: str | None, receivers: Mapping[str, str], hosts: Sequence[str]
) -> Iterator[Problem]:
    """Problems with hosts that a study does not have or that do not send, and with a receiver that also sends; their
    paths are relative to the parameters of the workload."""
    last = receiver or hosts[-1]
    if last not in hosts:
        yield Problem(("receiver",), last, f"a host: {one_of(hosts)}")
    for sender, host in receivers.items():
        if absent := [level for level in levels if sender not in level]:
            yield Problem(("receivers", sender), sender, f"a sender: {one_of(list(absent[0]))}")
        if host not in hosts:
            yield Problem(("receivers", sender), host, f"a host: {one_of(hosts)}")
    for index, level in enumerate(levels):
        path = ("senders", index) if len(levels) > 1 else ("senders",)
        for host in level:
            if host not in hosts:
                yield Problem((*path, host), host, f"a host: {one_of(hosts)}")
            if host in receivers.values() or (host == last and set(level) - set(receivers)):
                hint = "" if receiver or host != last else ", the last host unless receiver names another"
                yield Problem((*path, host), host, f"hosts other than the receiver{hint}")


def few_problems(few: Sequence[str], senders: Sequence[Sequence[str]]) -> Iterator[Problem]:
    """Problems with hosts that do not send, or if no other host does; `senders` are those of each condition."""
    for hosts in senders:
        if strange := [host for host in few if host not in hosts]:
            yield Problem(("few",), strange[0], f"a sender: {one_of(hosts)}")
        if set(few) >= set(hosts):
            yield Problem(("few",), ", ".join(few), "some of the senders: no other is left to compare them with")
