"""What the CPUs of simulated hosts take for packets, as part of a study file, or in a file of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field, StrictInt, StrictStr

from framegauge.errors import StudyError
from framegauge.files import yaml as yaml_file
from framegauge.files.types import Model, Problem, Seconds, nearest

__all__ = ["MEASURED", "Cpu", "of_file", "problems"]

NAPI_WEIGHT = 64  # packets that Linux polls at once (NAPI_POLL_WEIGHT)


class Cost(Model):
    """The time that a core takes: for each `packet` (the driver), each `aggregate`, or packet that is none (the stack),
    and each `byte` of payload (copies and checksums). `overlay` is for each packet of an overlay beside, whose outer
    headers software takes off or puts on."""

    packet: Annotated[Seconds, Field(le=1e-3)]
    aggregate: Annotated[Seconds, Field(le=1e-3)]
    byte: Annotated[Seconds, Field(le=1e-6)] = 0.0
    overlay: Annotated[Seconds, Field(le=1e-3)] = 0.0

    def as_json(self, has_overlay: bool = False) -> dict[str, float]:
        """As the scenario has it."""
        packet = self.packet + self.overlay if has_overlay else self.packet
        return {"packet_seconds": packet, "aggregate_seconds": self.aggregate, "byte_seconds": self.byte}


class Cpu(Model):
    """The CPUs of hosts in simulations: `cores`, each with a queue of the NIC, to which flows belong by their hash.

    What packets take of a core as they arrive is `receive`, as they are sent `send`. A core polls up to `batch` packets
    at once; each time that it begins to, it is woken, which takes `wakeup`. `hosts` are those that it is about; all,
    unless they are named.
    """

    cores: Annotated[StrictInt, Field(ge=1, le=1024)] = 1
    wakeup: Annotated[Seconds, Field(le=1e-3)] = 0.0
    receive: Cost
    send: Cost
    batch: Annotated[StrictInt, Field(ge=1, le=65_536)] = NAPI_WEIGHT
    hosts: list[StrictStr] | None = None

    def as_json(self, cuts: bool, has_overlay: bool = False) -> dict[str, Any]:
        """As the scenario has it; `cuts`: the NIC cuts aggregates (TSO)."""
        return {
            "cores": self.cores, "wakeup_seconds": self.wakeup, "receive": self.receive.as_json(has_overlay),
            "send": self.send.as_json(has_overlay), "batch": self.batch, "hosts": self.hosts, "tso": cuts,
        }  # fmt: skip


# A virtual machine with Linux 6.18 (docs/measured/cpu-model.md), for runs beside those whose hosts take nothing.
MEASURED = Cpu.model_validate(
    {
        "wakeup": "4.3 us",
        "receive": {"packet": "0 s", "aggregate": "657 ns", "byte": "1.2 ns"},
        "send": {"packet": "0 s", "aggregate": "233 ns", "byte": "0.264 ns"},
    }
)


def of_file(name: str, read: Callable[[str], str] | None) -> dict[str, Any]:
    """The model in a YAML file beside the study, whose text `read` gets; Problem if it cannot be one."""
    if read is None:
        raise Problem((), name, "a mapping with receive and send: there is no file beside this study")
    try:
        document = yaml_file.data(read(name), name)
    except (OSError, ValueError, StudyError) as error:
        raise Problem((), name, f"a file that can be read ({error})") from None
    if not isinstance(document, Mapping):
        raise Problem((), name, "a file with the keys receive and send (framegauge docs simulate)")
    return dict(document)


def problems(cpu: Cpu, names: Sequence[str]) -> Iterator[Problem]:
    """Problems with hosts that are not there."""
    for index, name in enumerate(cpu.hosts or ()):
        if name not in names:
            yield Problem(("cpu", "hosts", index), name, f"a host: {nearest(name, names)}")
