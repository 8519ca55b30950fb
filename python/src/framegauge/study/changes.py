"""The changes that a study makes while its runs are under way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictStr, model_validator

from framegauge.files.types import HOST, Bytes, FrameLimit, LineRate, Problem, Seconds, Sparse, nearest, one_of
from framegauge.networks import disciplines, topologies
from framegauge.quantities import exact_seconds
from framegauge.study.queue import Queue
from framegauge.study.testbed import Testbed

__all__ = ["LEAST_APART_SECONDS", "Change", "change_problems", "changes_as_json"]

LEAST_APART_SECONDS = 1.0  # during a measurement the pipe carries one message per second (pipe/README.md)
SMALLEST_MTU_6 = 1280  # RFC 8200
# Keys of a file, and their keys in `rack.set`.
_OF_LINKS = {"rate": "bits_per_second", "delay": "delay_seconds", "buffer": "buffer_bytes", "mtu": "mtu", "up": "up"}


class Change(Sparse):
    """A change at time `at` after the start of a run's measurement, which lasts to its end: either the MTU of `hosts`,
    or settings of one direction of some links (`from` and `to`, where `*` stands for any characters)."""

    at: Annotated[Seconds, Field(gt=0)]
    hosts: Literal["all"] | list[StrictStr] | None = None
    from_: Annotated[StrictStr | None, Field(alias="from", min_length=1)] = None
    to: Annotated[StrictStr | None, Field(min_length=1)] = None
    rate: LineRate | None = None
    delay: Seconds | None = None
    mtu: Annotated[FrameLimit | None, Field(ge=68, le=65535)] = None
    buffer: Bytes | None = None
    queue: Queue | None = None
    up: StrictBool | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Change:
        if (self.hosts is None) == (self.from_ is None or self.to is None) or (self.from_ is None) != (self.to is None):
            given = ", ".join(self._given("hosts", "from_", "to")) or "none of them"
            raise Problem((), given, "hosts, or both from and to")
        if self.hosts == []:
            raise Problem(("hosts",), "none", "all, or hosts such as [h1]")
        asked = self._given(*_OF_LINKS, "queue")
        if self.hosts is not None and asked != ["mtu"]:
            raise Problem((), ", ".join(asked) or "nothing to change", "only mtu with hosts")
        if not asked:
            raise Problem((), "nothing to change", f"one of {', '.join((*_OF_LINKS, 'queue'))}")
        return self

    def _given(self, *names: str) -> list[str]:
        return [name.rstrip("_") for name in names if getattr(self, name) is not None]

    def meant(self, hosts: Sequence[str]) -> list[str]:
        """The hosts whose MTU is changed."""
        return list(hosts) if self.hosts == "all" else list(self.hosts or ())

    def as_json(self, hosts: Sequence[str]) -> list[dict[str, Any]]:
        """The params of each `rack.set` request for this change."""
        if self.hosts is not None:
            return [{"host": host, "mtu": self.mtu} for host in self.meant(hosts)]
        found = {key: getattr(self, name) for name, key in _OF_LINKS.items() if getattr(self, name) is not None}
        if self.queue is not None:
            found["queue"] = disciplines.as_json(self.queue)
        return [{"from": self.from_, "to": self.to, **found}]


def changes_as_json(changes: Sequence[Change], hosts: Sequence[str]) -> list[dict[str, Any]]:
    """Every request with its time, in order."""
    return [
        {"at_seconds": each.at, "set": asked}
        for each in sorted(changes, key=lambda each: each.at)
        for asked in each.as_json(hosts)
    ]


def change_problems(
    changes: Sequence[Change], bed: Testbed, overlays: Sequence[Any], durations: Sequence[float]
) -> Iterator[Problem]:
    """Problems with the changes. `overlays`: levels of that factor; `durations`: those of workloads that have one, in
    seconds."""
    if not changes:
        return
    if not bed.capabilities.has_fabric:
        yield Problem(("changes",), bed.kind, "no such key unless testbed.kind: rack: other networks cannot be changed")
    drawn = topologies.drawn_links(bed.topology.as_json(), bed.host_names)
    ports = [way for one, other in drawn for way in ((one, other), (other, one))]
    moments = [each.at for each in changes]
    for index, each in enumerate(changes):
        where = ("changes", index)
        near = [at for at in moments if 0 < each.at - at < LEAST_APART_SECONDS]
        if near:
            expected = f"{exact_seconds(max(near))} as another change, or {LEAST_APART_SECONDS:g} s or more after it"
            yield Problem((*where, "at"), exact_seconds(each.at), expected)
        if each.at >= min(durations, default=float("inf")):
            expected = f"less than {exact_seconds(min(durations))}, the duration of a run"
            yield Problem((*where, "at"), exact_seconds(each.at), expected)
        yield from _of_hosts(where, each, bed, overlays) if each.hosts is not None else _of_links(where, each, ports)


def _of_hosts(where: tuple[str | int, ...], each: Change, bed: Testbed, overlays: Sequence[Any]) -> Iterator[Problem]:
    mtu = each.mtu or 0
    for name in each.meant(bed.host_names):
        if name not in bed.host_names:
            yield Problem((*where, "hosts"), name, f"a host: {nearest(name, bed.host_names)}")
    if bed.family == 6 and mtu < SMALLEST_MTU_6:
        yield Problem((*where, "mtu"), mtu, f"at least {SMALLEST_MTU_6} with family: 6 (RFC 8200)")
    if each.hosts == "all" and mtu > bed.link.port_mtu:
        yield Problem(
            (*where, "mtu"), mtu, f"at most link.port_mtu {bed.link.port_mtu}: the switch drops larger frames"
        )
    if "vxlan" in overlays:
        yield Problem((*where, "hosts"), "vxlan", "no overlay: the MTU of its hosts cannot be changed")


def _of_links(where: tuple[str | int, ...], each: Change, ports: Sequence[tuple[str, str]]) -> Iterator[Problem]:
    one, other = each.from_ or "", each.to or ""
    meant = [port for port in ports if topologies.fits(one, port[0]) and topologies.fits(other, port[1])]
    if not meant:
        near = one_of([f"{near} to {far}" for near, far in ports])
        yield Problem(where, f"{one} to {other}", f"two nodes with a link (* stands for any characters): {near}")
    for key in ("queue", "buffer"):
        if getattr(each, key) is not None and any(HOST.fullmatch(topologies.node_of(near)) for near, _ in meant):
            yield Problem((*where, key), f"from {one}", "only switches in from: a host's NIC has no buffer limit")
