"""The network of a study: topology, links, shared buffers, background load. Pure data, validated."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    GetJsonSchemaHandler,
    SerializerFunctionWrapHandler,
    StrictBool,
    StrictInt,
    StrictStr,
    model_serializer,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from framegauge import disciplines, topologies
from framegauge.study_queue import Queue
from framegauge.study_types import (
    HOST,
    Bytes,
    FrameLimit,
    LineRate,
    Model,
    Ppm,
    Problem,
    Seconds,
    Share,
    Sparse,
    nearest,
    one_of,
)  # fmt: skip

__all__ = ["Background", "LinkSettings", "SharedBuffer", "Topology"]

RACK_HOSTS = 12
SWITCH = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
SMALLEST_FRAME_BYTES = 64  # IEEE 802.3


class Shape(Model):
    """What every topology is asked."""

    def hosts(self, asked: int | None) -> int:
        """How many it has, of so many that are asked for; Problem if they do not fit."""
        return asked or RACK_HOSTS


class Pair(Shape):
    """Two hosts on one switch."""

    def hosts(self, asked: int | None) -> int:
        """Two, without being asked."""
        if asked is not None:
            raise Problem(("hosts",), asked, "no such key unless topology: rack, or another with more than two hosts")
        return 2


class Rack(Shape):
    """All hosts on one switch."""


class Dumbbell(Shape):
    """The first `left` hosts (default: half) on one switch, the others on another, and one link between the two."""

    left: Annotated[StrictInt, Field(ge=1)] | None = None

    def hosts(self, asked: int | None) -> int:
        """At least one a side."""
        found = super().hosts(asked)
        self.left = self.left or found // 2
        if self.left >= found:
            raise Problem(
                ("topology", "dumbbell", "left"), self.left, f"1 to {found - 1}: the others of {found} hosts are right"
            )
        return found


class LeafSpine(Shape):
    """Hosts evenly on leaves, in order; each leaf is joined to each spine."""

    leaves: Annotated[StrictInt, Field(ge=1, le=64)] = 2
    spines: Annotated[StrictInt, Field(ge=1, le=64)] = 2

    def hosts(self, asked: int | None) -> int:
        """As many on each leaf."""
        found = asked or max(1, RACK_HOSTS // self.leaves) * self.leaves
        if found % self.leaves:
            raise Problem(("hosts",), found, f"a multiple of {self.leaves}: as many hosts on each leaf")
        return found


class FatTree(Shape):
    """Of switches with k ports: k pods, k^3/4 hosts (Al-Fares, Loukissas, Vahdat 2008)."""

    k: StrictInt = 4

    @model_validator(mode="after")
    def _consistent(self) -> FatTree:
        if self.k % 2 or not 2 <= self.k <= 16:
            raise Problem(("k",), self.k, "an even number from 2 to 16")
        return self

    def hosts(self, asked: int | None) -> int:
        """All that it has room for."""
        found: int = self.k**3 // 4
        if asked is not None and asked != found:
            raise Problem(("hosts",), asked, f"{found}, or no such key: a fat-tree with k {self.k} has k^3/4 hosts")
        return found


class Custom(Shape):
    """Links by name, between `switches` and hosts h1, h2, …: every host has one."""

    switches: Annotated[list[StrictStr], Field(min_length=1)]
    links: Annotated[list[Annotated[list[StrictStr], Field(min_length=2, max_length=2)]], Field(min_length=2)]

    @model_validator(mode="after")
    def _consistent(self) -> Custom:
        for index, name in enumerate(self.switches):
            if not SWITCH.fullmatch(name) or HOST.fullmatch(name):
                raise Problem(
                    ("switches", index), name, "a switch's name: letters, digits, - and _, and not that of a host"
                )
            if name in self.switches[:index]:
                raise Problem(("switches", index), name, "each switch once")
        seen: set[str] = set()
        for index, ends in enumerate(self.links):
            for problem in self._of_link(("links", index), ends, seen):
                raise problem
        for number in range(1, max(2, len(seen)) + 1):
            if f"h{number}" not in seen:
                found = ", ".join(sorted(seen, key=lambda name: (len(name), name))) or "no host"
                raise Problem(("links",), found, f"two hosts or more, h1, h2 and so on: there is no h{number}")
        apart = {*self.switches, *seen} - topologies.joined([(one, other) for one, other in self.links], "h1")
        if apart:
            raise Problem(
                ("links",), ", ".join(sorted(apart)), "a network that is connected: nothing leads there from h1"
            )
        return self

    def _of_link(self, where: tuple[str | int, ...], ends: Sequence[str], seen: set[str]) -> Sequence[Problem]:
        """What is wrong with one link; the hosts that it names join those `seen`."""
        hosts = [name for name in ends if HOST.fullmatch(name)]
        for name in ends:
            if name not in hosts and name not in self.switches:
                return [Problem(where, name, f"a host, or a switch that there is: {one_of(self.switches)}")]
        if ends[0] == ends[1]:
            return [Problem(where, " to ".join(ends), "two ends: no node has a link with itself")]
        if len(hosts) == 2:
            return [Problem(where, " to ".join(ends), "a switch at one end: hosts are not joined to each other")]
        if hosts and hosts[0] in seen:
            return [Problem(where, hosts[0], "each host once: it has one link")]
        seen.update(hosts)
        return []

    def hosts(self, asked: int | None) -> int:
        """Those that its links name."""
        found = sum(HOST.fullmatch(name) is not None for ends in self.links for name in ends)
        if asked is not None and asked != found:
            raise Problem(("hosts",), asked, f"{found}, or no such key: its links name h1 to h{found}")
        return found


SHAPES: Mapping[str, type[Shape]] = {
    "pair": Pair, "rack": Rack, "dumbbell": Dumbbell, "leaf-spine": LeafSpine, "fat-tree": FatTree, "custom": Custom,
}  # fmt: skip
LEVELLED = ("fat-tree", "leaf-spine")  # with a highest level that every packet can be sent through


class Topology(Model):
    """How hosts and switches are joined: a word, or one with its numbers (`{fat-tree: {k: 4}}`)."""

    pair: Pair | None = None
    rack: Rack | None = None
    dumbbell: Dumbbell | None = None
    leaf_spine: Annotated[LeafSpine | None, Field(alias="leaf-spine")] = None
    fat_tree: Annotated[FatTree | None, Field(alias="fat-tree")] = None
    custom: Custom | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        if isinstance(value, Mapping):
            return {key: {} if inner is None and key in SHAPES else inner for key, inner in value.items()}
        if isinstance(value, cls):
            return value
        if not isinstance(value, str):
            raise Problem((), value, f"a topology: {one_of(list(SHAPES))}")
        if value not in SHAPES:
            raise Problem((), value, nearest(value, SHAPES))
        return {value: {}}

    @model_validator(mode="after")
    def _consistent(self) -> Topology:
        if len(self.model_fields_set) != 1:
            raise Problem((), self.kind or "nothing", f"exactly one of {', '.join(SHAPES)}")
        return self

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> Any:
        given: dict[str, Any] = handler(self)[next(iter(self.model_fields_set))]
        usual = {name: field.default for name, field in type(self.shape).model_fields.items()}
        return self.kind if given == usual else {self.kind: given}

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        # custom has nothing that it could be without.
        return {"anyOf": [handler(core), {"enum": [name for name in SHAPES if name != "custom"]}]}

    @property
    def kind(self) -> str:
        """Its word: "fat-tree"."""
        return ", ".join(sorted(name.replace("_", "-") for name in self.model_fields_set))

    @property
    def shape(self) -> Shape:
        """The one that is given."""
        found: Shape = getattr(self, next(iter(self.model_fields_set)))
        return found

    def as_json(self) -> dict[str, Any]:
        """As the pipe has it; a pair is a rack of two."""
        if self.kind == "pair":
            return {"kind": "rack"}
        return {"kind": self.kind, **self.shape.model_dump()}

    def text(self) -> str | None:
        """What of it is no rack: "fat-tree (k 4)"."""
        if self.kind == "pair" or self.shape == Rack():
            return None
        numbers = [f"{name} {value}" for name, value in self.shape if isinstance(value, int)]
        if self.kind == "custom":
            numbers = [f"{len(self.as_json()['switches'])} switches", f"{len(self.as_json()['links'])} links"]
        return f"{self.kind} ({', '.join(numbers)})"


class SharedBuffer(Model):
    """What the ports of a switch share: a frame is taken while its port's queue is below alpha times what is free.

    A. K. Choudhury, E. L. Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998.
    """

    bytes: Bytes
    alpha: Annotated[float, Field(gt=0, le=1024)] = 1.0


class LinkSettings(Sparse):
    """What one direction of some links has instead; `*` in a name stands for any characters."""

    from_: Annotated[StrictStr, Field(alias="from", min_length=1)]
    to: Annotated[StrictStr, Field(min_length=1)]
    rate: LineRate | None = None
    buffer: Bytes | None = None
    delay: Seconds | None = None
    mtu: Annotated[FrameLimit, Field(ge=68, le=65535)] | None = None
    skew: Ppm | None = None
    phase: Seconds | None = None
    jitter: Seconds | None = None
    loss: Share | None = None
    tagged: StrictBool | None = None
    queue: Queue | None = None

    @model_validator(mode="after")
    def _consistent(self) -> LinkSettings:
        if len(self.as_json()) == 2:
            names = ", ".join(name for name in type(self).model_fields if name not in ("from_", "to"))
            raise Problem((), f"{self.from_} to {self.to} alone", f"what is other there: one of {names}")
        if self.loss is not None and self.loss > 1:
            raise Problem(("loss",), _percent(self.loss), "at most 100 %")
        return self

    def as_json(self) -> dict[str, Any]:
        """As the pipe has it."""
        found = {_KEYS.get(name, name): value for name, value in self if value is not None}
        return found if self.queue is None else {**found, "queue": disciplines.as_json(self.queue)}


_KEYS = {
    "from_": "from", "rate": "bits_per_second", "buffer": "buffer_bytes", "delay": "delay_seconds", "skew": "skew_ppm",
    "phase": "phase_seconds", "jitter": "jitter_seconds", "frame": "frame_bytes", "mean_on": "mean_on_seconds",
    "mean_off": "mean_off_seconds",
}  # fmt: skip


class Background(Sparse):
    """Load that the fabric makes itself, from host to host, over the links of the hosts' own frames.

    `share` is of the first link's rate, `rate` on the wire. on-off sends at that rate while it is on, both times
    exponential.
    """

    from_: Annotated[StrictStr, Field(alias="from")]
    to: StrictStr
    share: Share | None = None
    rate: LineRate | None = None
    frame: Bytes = 1518
    process: Literal["constant", "poisson", "on-off"] = "constant"
    mean_on: Annotated[Seconds, Field(gt=0)] | None = None
    mean_off: Annotated[Seconds, Field(gt=0)] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Background:
        if (self.share is None) == (self.rate is None):
            raise Problem((), "neither" if self.share is None else "both", "exactly one of share and rate")
        if self.share is not None and not 0 < self.share <= 1:
            raise Problem(("share",), _percent(self.share), "above 0 % and at most 100 %")
        if self.frame < SMALLEST_FRAME_BYTES:
            raise Problem(("frame",), self.frame, f"{SMALLEST_FRAME_BYTES} bytes or more, header and FCS included")
        for name in ("mean_on", "mean_off"):
            if getattr(self, name) is not None and self.process != "on-off":
                raise Problem((name,), getattr(self, name), f"no such key with process: {self.process}")
        return self

    def as_json(self) -> dict[str, Any]:
        """As the pipe has it."""
        found = {_KEYS.get(name, name): value for name, value in self if value is not None}
        return {"share": self.share, "bits_per_second": self.rate, **found}


def _percent(share: float) -> str:
    return f"{100 * share:g} %"
