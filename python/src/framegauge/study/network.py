"""The network settings of a study file: links, shared buffers, background load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, StrictBool, StrictStr, model_validator

from framegauge.files.types import Bytes, FrameLimit, LineRate, Ppm, Problem, Seconds, Share, Sparse
from framegauge.networks import disciplines, topologies
from framegauge.study.queue import Queue

__all__ = ["Background", "LinkSettings", "SharedBuffer", "link_settings"]

SMALLEST_FRAME_BYTES = 64  # IEEE 802.3


class SharedBuffer(Sparse):
    """A buffer that the ports of a switch share: a port accepts frames while its queue is below alpha times the free
    part. `lossless` (simulator only): a switch pauses neighbours whose frames are over the threshold (IEEE 802.1Qbb).

    A. K. Choudhury, E. L. Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet Switches", 1998.
    """

    bytes: Bytes
    alpha: Annotated[float, Field(gt=0, le=1024)] = 1.0
    lossless: StrictBool | None = None

    def as_json(self) -> dict[str, Any]:
        """The settings as params of the pipe."""
        return {"bytes": self.bytes, "alpha": self.alpha, **({"lossless": True} if self.lossless else {})}


class LinkSettings(Sparse):
    """Settings of one direction of some links, in place of `link`; `*` in a name stands for any characters. `mtu: host`
    is that of the host at the link, in each arm its own: a port that takes in no larger frame than its host.
    """

    from_: Annotated[StrictStr, Field(alias="from", min_length=1)]
    to: Annotated[StrictStr, Field(min_length=1)]
    rate: LineRate | None = None
    buffer: Bytes | None = None
    delay: Seconds | None = None
    mtu: Literal["host"] | Annotated[FrameLimit, Field(ge=68, le=65535)] | None = None
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
            raise Problem((), f"{self.from_} to {self.to} alone", f"a setting for these links: one of {names}")
        if self.loss is not None and self.loss > 1:
            raise Problem(("loss",), _percent(self.loss), "at most 100 %")
        return self

    def as_json(self) -> dict[str, Any]:
        """The settings as params of the pipe."""
        settings = {_KEYS.get(name, name): value for name, value in self if value is not None}
        return settings if self.queue is None else {**settings, "queue": disciplines.as_json(self.queue)}


def link_settings(
    asked: Sequence[LinkSettings],
    ports: Sequence[tuple[str, str]],
    mtus: Mapping[str, int],
    storage_mtu: int | None = None,
) -> list[dict[str, Any]]:
    """The settings as params of the pipe, of a network with these ports and with these MTUs of hosts, and of their
    second NICs if that is another; `mtu: host` becomes an entry for each direction of a host's link."""
    all_settings: list[dict[str, Any]] = []
    for link in asked:
        settings = link.as_json()
        if not isinstance(link.mtu, str):
            all_settings.append(settings)
            continue
        if len(rest := {name: value for name, value in settings.items() if name != "mtu"}) > len(("from", "to")):
            all_settings.append(rest)
        for one, other in ports:
            end = next((end for end in (one, other) if topologies.node_of(end) in mtus), None)
            if end is not None and topologies.fits(link.from_, one) and topologies.fits(link.to, other):
                mtu = storage_mtu if storage_mtu is not None and end.endswith(".2") else mtus[topologies.node_of(end)]
                all_settings.append({"from": one, "to": other, "mtu": mtu})
    return all_settings


_KEYS = {
    "from_": "from", "rate": "bits_per_second", "buffer": "buffer_bytes", "delay": "delay_seconds", "skew": "skew_ppm",
    "phase": "phase_seconds", "jitter": "jitter_seconds", "frame": "frame_bytes", "mean_on": "mean_on_seconds",
    "mean_off": "mean_off_seconds",
}  # fmt: skip


class Background(Sparse):
    """Load that the fabric generates from host to host, on the same links as the hosts' own frames.

    `share` is relative to the rate of the first link, `rate` is on the wire. on-off sends at that rate while it is on;
    on and off times are exponentially distributed.
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
            raise Problem(("frame",), self.frame, f"{SMALLEST_FRAME_BYTES} bytes or more, including header and FCS")
        for name in ("mean_on", "mean_off"):
            if getattr(self, name) is not None and self.process != "on-off":
                raise Problem((name,), getattr(self, name), f"no such key with process: {self.process}")
        return self

    def as_json(self) -> dict[str, Any]:
        """The settings as params of the pipe."""
        settings = {_KEYS.get(name, name): value for name, value in self if value is not None}
        return {"share": self.share, "bits_per_second": self.rate, **settings}


def _percent(share: float) -> str:
    return f"{100 * share:g} %"
