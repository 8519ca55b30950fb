"""The changes that a study makes while its runs are under way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictStr, model_validator

from framegauge.files.types import HOST, Bytes, FrameLimit, LineRate, Problem, Seconds, Share, Sparse, nearest, one_of
from framegauge.networks import disciplines, topologies
from framegauge.quantities import exact_seconds, exact_share
from framegauge.study import network_rules
from framegauge.study.parameters import Parameters
from framegauge.study.queue import Queue
from framegauge.study.testbed import Testbed

__all__ = ["LEAST_APART_SECONDS", "Change", "change_problems", "changes_as_json"]

LEAST_APART_SECONDS = 1.0  # during a measurement the pipe carries one message per second (pipe/README.md)
SMALLEST_MTU_6 = 1280  # RFC 8200
# Keys of a file, and their keys in `rack.set`.
_NUMBERS = {"public": 1, "storage": 2}  # of hosts' NICs, by their network
_OF_LINKS = {
    "rate": "bits_per_second", "delay": "delay_seconds", "loss": "loss", "buffer": "buffer_bytes", "mtu": "mtu",
    "up": "up",
}  # fmt: skip


class Change(Sparse):
    """A change at time `at` after the start of a run's measurement, which lasts to its end: either the MTU of `hosts`,
    of all their NICs or of those on one `network`, or settings of one direction of some links (`from` and `to`, where
    `*` stands for any characters); in simulations the `loss` of a link, and the MTU of routers, too. The storage
    network is that of the second NICs.

    `hold` has all of these hosts keep to the smaller MTU, by their routes, until the last has the new one, and raises
    ports that would drop larger frames before. `reopen` then ends their connections, so that programs open new ones.
    """

    at: Annotated[Seconds, Field(gt=0)]
    hosts: Literal["all"] | list[StrictStr] | None = None
    network: Literal["public", "storage"] | None = None
    from_: Annotated[StrictStr | None, Field(alias="from", min_length=1)] = None
    to: Annotated[StrictStr | None, Field(min_length=1)] = None
    rate: LineRate | None = None
    delay: Seconds | None = None
    loss: Share | None = None
    mtu: Annotated[FrameLimit | None, Field(ge=68, le=65535)] = None
    buffer: Bytes | None = None
    queue: Queue | None = None
    up: StrictBool | None = None
    hold: StrictBool = False
    reopen: StrictBool = False

    @model_validator(mode="after")
    def _consistent(self) -> Change:
        if (self.hosts is None) == (self.from_ is None or self.to is None) or (self.from_ is None) != (self.to is None):
            names = ", ".join(self._given("hosts", "from_", "to")) or "none of them"
            raise Problem((), names, "hosts, or both from and to")
        if self.hosts == []:
            raise Problem(("hosts",), "none", "all, or hosts such as [h1]")
        keys = self._given(*_OF_LINKS, "queue")
        if self.hosts is None and (self.hold or self.reopen):
            raise Problem((), "hold" if self.hold else "reopen", "hosts beside it")
        if self.hosts is not None and keys != ["mtu"] and not (self.reopen and not keys):
            raise Problem((), ", ".join(keys) or "nothing to change", "only mtu with hosts, and reopen")
        if self.network is not None and (self.hosts is None or self.mtu is None):
            raise Problem(("network",), self.network, "hosts and mtu beside it")
        if self.hold and self.mtu is None:
            raise Problem(("hold",), True, "mtu beside it")
        if self.loss is not None and self.loss > 1:
            raise Problem(("loss",), exact_share(self.loss), "at most 100 %")
        if not keys and not self.reopen:
            raise Problem((), "nothing to change", f"one of {', '.join((*_OF_LINKS, 'queue'))}")
        return self

    def _given(self, *names: str) -> list[str]:
        return [name.rstrip("_") for name in names if getattr(self, name) is not None]

    def meant(self, hosts: Sequence[str]) -> list[str]:
        """The hosts whose MTU is changed."""
        return list(hosts) if self.hosts == "all" else list(self.hosts or ())

    def as_json(
        self, hosts: Sequence[str], now: Mapping[str, int] | None = None, port_mtu: int = 0
    ) -> list[dict[str, Any]]:
        """The params of each `rack.set` request for this change. `now`: the MTUs of NICs before it, by which routes
        are held; without them, holding is left out."""
        if self.hosts is None:
            settings = {key: getattr(self, name) for name, key in _OF_LINKS.items() if getattr(self, name) is not None}
            if self.queue is not None:
                settings["queue"] = disciplines.as_json(self.queue)
            return [{"from": self.from_, "to": self.to, **settings}]
        host_names = self.meant(hosts)
        names = host_names if self.network is None else [f"{name}.{_NUMBERS[self.network]}" for name in host_names]
        steps: list[dict[str, Any]] = [] if self.mtu is None else [{"host": name, "mtu": self.mtu} for name in names]
        if self.hold and self.mtu is not None and now is not None:
            # As MTUs of running clusters are changed by OpenShift: no host sends what another cannot take in.
            least = min(self.mtu, *(now[end] for name in names for end in _ends(name)))
            ports = [{"from": "*", "to": "*", "mtu": self.mtu}] if self.mtu > port_mtu else []
            held, released = ([{"host": name, "route_mtu": mtu} for name in names] for mtu in (least, 0))
            steps = [*held, *ports, *steps, *released]
        return steps + ([{"host": name, "reopen": True} for name in host_names] if self.reopen else [])


def _ends(name: str) -> list[str]:
    """The NICs that a name stands for; a host may have two."""
    return [name] if "." in name else [f"{name}.{number}" for number in _NUMBERS.values()]


def changes_as_json(
    changes: Sequence[Change],
    hosts: Sequence[str],
    mtus: Mapping[str, int] | None = None,
    port_mtu: int = 0,
    storage_mtu: int | None = None,
    link_loss: float = 0.0,
) -> list[dict[str, Any]]:
    """Every request with its time, in order. `mtus`: those of the hosts at the beginning; `storage_mtu`: that of all
    second NICs, if it is another. `link_loss`: for how long the link of a NIC is down whose MTU becomes another."""
    requests: list[dict[str, Any]] = []
    now: dict[str, int] | None = None
    if mtus is not None:
        second = dict.fromkeys(mtus, storage_mtu) if storage_mtu is not None else mtus
        now = {end: entry[name] for name in mtus for end, entry in zip(_ends(name), (mtus, second), strict=True)}
    for entry in sorted(changes, key=lambda entry: entry.at):
        for request in entry.as_json(hosts, now, port_mtu):
            requests.append({"at_seconds": entry.at, "set": request})
            if now is not None and "host" in request and "mtu" in request:
                ends = _ends(request["host"])
                if link_loss and any(now[end] != request["mtu"] for end in ends):
                    requests += _restarted(request["host"], entry.at, link_loss)
                now |= dict.fromkeys(ends, request["mtu"])
            if "from" in request and request.get("mtu") and entry.hold:
                port_mtu = request["mtu"]
    return sorted(requests, key=lambda entry: entry["at_seconds"])


def _restarted(end: str, at: float, link_loss: float) -> list[dict[str, Any]]:
    """The requests by which the links of a host, or of one of its NICs, are down for a while, both ways."""
    ways = ((end, "*"), ("*", end))
    return [
        {"at_seconds": moment, "set": {"from": one, "to": other, "up": up}}
        for moment, up in ((at, False), (at + link_loss, True))
        for one, other in ways
    ]


def change_problems(
    changes: Sequence[Change], bed: Testbed, overlays: Sequence[Any], workloads: Sequence[Parameters]
) -> Iterator[Problem]:
    """Problems with the changes. `overlays`: levels of that factor; `workloads`: their parameters."""
    if not changes:
        return
    every = [one for entry in workloads for one in entry.conditions()]
    durations = [one["duration_seconds"] for one in every if "duration_seconds" in one]
    stuck = [entry.key for entry in workloads if not entry.reconnects]
    if not bed.capabilities.has_fabric:
        expected = "no such key unless testbed.kind: rack or simulator: other networks cannot be changed"
        yield Problem(("changes",), bed.kind, expected)
    links = topologies.drawn_links(bed.topology.as_json(), bed.host_names)
    ports = [port for one, other in links for port in ((one, other), (other, one))]
    moments = [entry.at for entry in changes]
    yield from _link_loss(changes, bed, min(durations, default=float("inf")))
    for index, entry in enumerate(changes):
        path = ("changes", index)
        near = [at for at in moments if 0 < entry.at - at < LEAST_APART_SECONDS]
        if near and not bed.capabilities.is_virtual:
            expected = f"{exact_seconds(max(near))} as another change, or {LEAST_APART_SECONDS:g} s or more after it"
            yield Problem((*path, "at"), exact_seconds(entry.at), expected)
        if entry.at >= min(durations, default=float("inf")):
            expected = f"less than {exact_seconds(min(durations))}, the duration of a run"
            yield Problem((*path, "at"), exact_seconds(entry.at), expected)
        if entry.reopen and stuck:
            expected = f"no such key with workload {stuck[0]}: it ends with its connections"
            yield Problem((*path, "reopen"), True, expected)
        if entry.loss is not None and not bed.capabilities.is_virtual:
            expected = "no such key unless testbed.kind: simulator: what a link loses is proved for whole runs"
            yield Problem((*path, "loss"), entry.loss, expected)
        yield from _of_hosts(path, entry, bed, overlays) if entry.hosts is not None else _of_links(path, entry, ports)


def _link_loss(changes: Sequence[Change], bed: Testbed, duration: float) -> Iterator[Problem]:
    """Problems with the moments at which links that a change of MTUs took down are up again."""
    lost = bed.nic.link_loss
    backs = {entry.at + lost for entry in changes if lost and entry.hosts is not None and entry.mtu is not None}
    for back in sorted(backs):
        near = [entry.at for entry in changes if 0 < abs(entry.at - back) < LEAST_APART_SECONDS]
        near += [entry for entry in backs if 0 < abs(entry - back) < LEAST_APART_SECONDS]
        if near:
            expected = f"{LEAST_APART_SECONDS:g} s or more between a link that is up again and any other change"
            yield Problem(("testbed", "nic", "link_loss"), exact_seconds(lost), expected)
        if back >= duration:
            expected = f"links that are up again before {exact_seconds(duration)}, the duration of a run"
            yield Problem(("testbed", "nic", "link_loss"), exact_seconds(lost), expected)


def _of_hosts(path: tuple[str | int, ...], change: Change, bed: Testbed, overlays: Sequence[Any]) -> Iterator[Problem]:
    mtu, names = change.mtu or 0, list(bed.host_names)
    if bed.capabilities.is_virtual:
        names += topologies.routers(bed.topology.as_json())
    for name in change.meant(bed.host_names):
        if name not in names:
            yield Problem((*path, "hosts"), name, f"a host: {nearest(name, names)}")
    if change.network is not None and bed.nics_of_hosts < len(_NUMBERS):
        expected = "no such key unless hosts have a second NIC (topology: {rack: {nics: 2}} gives each two)"
        yield Problem((*path, "network"), change.network, expected)
    if bed.family == 6 and change.mtu is not None and mtu < SMALLEST_MTU_6:
        yield Problem((*path, "mtu"), mtu, f"at least {SMALLEST_MTU_6} with family: 6 (RFC 8200)")
    if change.hosts == "all" and mtu > bed.link.port_mtu and not change.hold:
        expected = f"at most link.port_mtu {bed.link.port_mtu}, or hold: true, which raises it before"
        yield Problem((*path, "mtu"), mtu, f"{expected}: the switch drops larger frames")
    if (built := network_rules.overlays(overlays)) and change.mtu is not None:
        yield Problem((*path, "hosts"), built[0], "no overlay: the MTU of its hosts cannot be changed")


def _of_links(path: tuple[str | int, ...], change: Change, ports: Sequence[tuple[str, str]]) -> Iterator[Problem]:
    one, other = change.from_ or "", change.to or ""
    matches = [port for port in ports if topologies.fits(one, port[0]) and topologies.fits(other, port[1])]
    if not matches:
        near = one_of([f"{near} to {far}" for near, far in ports])
        yield Problem(path, f"{one} to {other}", f"two nodes with a link (* stands for any characters): {near}")
    for key in ("queue", "buffer"):
        if getattr(change, key) is not None and any(HOST.fullmatch(topologies.node_of(near)) for near, _ in matches):
            yield Problem((*path, key), f"from {one}", "only switches in from: a host's NIC has no buffer limit")
