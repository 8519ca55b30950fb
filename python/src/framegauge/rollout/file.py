"""Reading a roll-out's file (`files.yaml` reports what is wrong with one)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StrictBool, StrictInt, StrictStr, model_validator

from framegauge.errors import FramegaugeError, StudyError
from framegauge.files import inventory, yaml as yaml_file
from framegauge.files.machines import Machine, full, named
from framegauge.files.types import FrameLimit, Model, Problem, Seconds, as_list, nearest
from framegauge.rollout.model import Asked

__all__ = ["File", "Rollout", "json_schema", "load"]

SMALLEST_MTU = 1280  # of IPv6 (RFC 8200); the agent holds no interface below it
Version = Literal[4, 6]
VERSIONS: tuple[Version, ...] = (4, 6)
Families = Annotated[list[Version], BeforeValidator(as_list, json_schema_input_type=Version | list[Version])]
SHORTEST_LEASE, LONGEST_LEASE = 5.0, 3600.0
BETWEEN = (",", "/")  # hosts in lists, and a host and its interface


class File(Model):
    """A roll-out: a new MTU for an interface of every host.

    The hosts are `hosts`, or those of an `inventory`. `waves`: the order in which they begin to send at the new MTU,
    each a host, a list of hosts, or a group of an Ansible inventory; by default one host, then all others. `from` is
    the MTU that the interfaces have, if it matters. With `scope: subnets` only the subnets of the interface get the new
    MTU; with `all` every route through it. Changes last for `lease` unless they are kept, and are kept only while
    full-size packets pass both ways to `probes` other hosts, or to all if there are fewer. `wait`: how long each wave
    is watched before the next. `link_loss`: how long the links of these hosts are down when their MTU changes, where
    that is known better than by their drivers; interfaces then change wave by wave, so far apart. `force`: kinds of
    findings that are not to stop it. `reopen` ends connections between the hosts that keep an old MSS, so that programs
    open new ones. `switches` is a command that changes the switches when MTUs grow: it is run with the word prepare
    before the hosts, and then with confirm or undo.
    """

    question: StrictStr = "Change the MTU of these hosts?"
    hosts: list[Machine | StrictStr] | None = None
    options: list[StrictStr] = Field(default_factory=list)
    inventory: StrictStr | None = None
    waves: list[list[StrictStr] | StrictStr] | None = None
    interface: StrictStr | None = None
    mtu: FrameLimit
    from_: Annotated[FrameLimit | None, Field(alias="from")] = None
    scope: Literal["subnets", "all"] = "subnets"
    families: Families = Field(default_factory=lambda: list(VERSIONS))
    lease: Seconds = 60.0
    probes: Annotated[StrictInt, Field(ge=1, le=16)] = 3
    wait: Seconds = 10.0
    link_loss: Seconds | None = None
    force: list[StrictStr] = Field(default_factory=list)
    reopen: StrictBool = False
    switches: StrictStr | None = None

    @model_validator(mode="after")
    def _consistent(self) -> File:
        for key, value in (("mtu", self.mtu), ("from", self.from_)):
            if value is not None and not SMALLEST_MTU <= value <= 65535:
                raise Problem((key,), value, f"an MTU in bytes between {SMALLEST_MTU} and 65535, such as 9000")
        if not SHORTEST_LEASE <= self.lease <= LONGEST_LEASE:
            expected = f"between {SHORTEST_LEASE:g} s and {LONGEST_LEASE:g} s"
            raise Problem(("lease",), f"{self.lease:g} s", expected)
        if (self.hosts is None) == (self.inventory is None):
            text = "both" if self.hosts is not None else "neither"
            raise Problem((), text, "either hosts, or inventory: the name of its file")
        if self.hosts is not None:
            named(full(self.hosts), "hosts")
        return self


@dataclass(frozen=True)
class Rollout:
    """What a file asks for, and its hosts in the order of the waves."""

    path: Path
    file: File
    machines: tuple[Machine, ...]
    asked: Asked


def load(path: str | Path, running: Callable[[str], None] | None = None) -> Rollout:
    """The roll-out in a YAML file; StudyError lists all problems, and is raised for an unreadable file, too.

    Its inventory may be a program only with `running`, which is told before it is run (`inventory.load`).
    """
    text = yaml_file.read(path, "a roll-out's file")
    machines: dict[str, Machine] = {}
    waves: list[list[str]] = []

    def rules(file: File) -> Iterator[Problem]:
        machines.update({machine.name: machine for machine in _machines(file, Path(path).parent, running)})
        groups = _groups(file, Path(path).parent, machines, running)
        waves.extend(_waves(file, machines, groups))
        yield from _problems(file, machines, waves)

    file = yaml_file.parse(text, str(path), File, "rollout", rules=rules)
    names = [name for wave in waves for name in wave]
    request = Asked(
        waves=tuple(tuple(wave) for wave in waves),
        interfaces={name: machines[name].interface or file.interface or "" for name in names},
        target_mtu=file.mtu,
        old_mtu=file.from_,
        scope=file.scope,
        families=tuple(sorted(set(file.families))),
        lease_seconds=file.lease,
        forced=frozenset(file.force),
        link_loss_seconds=file.link_loss,
    )
    return Rollout(Path(path), file, tuple(machines[name] for name in names), request)


def json_schema() -> Mapping[str, Any]:
    """JSON Schema (2020-12) of a roll-out's file, for editors."""
    return yaml_file.json_schema(File, "rollout")


def _machines(file: File, folder: Path, running: Callable[[str], None] | None) -> list[Machine]:
    if file.inventory is not None:
        return inventory.load(folder / file.inventory, running=running)
    return [host.model_copy(update={"options": [*file.options, *host.options]}) for host in full(file.hosts or [])]


def _groups(
    file: File, folder: Path, machines: Mapping[str, Machine], running: Callable[[str], None] | None
) -> dict[str, list[str]]:
    """The hosts of the groups that waves name."""
    words = [item for item in file.waves or () if isinstance(item, str) and item not in machines]
    if file.inventory is None or not words:
        return {}
    try:
        return {word: [item.name for item in inventory.load(folder / file.inventory, word, running)] for word in words}
    except StudyError:
        raise
    except FramegaugeError as error:
        raise StudyError([str(error)]) from None


def _waves(file: File, machines: Mapping[str, Machine], groups: Mapping[str, list[str]]) -> list[list[str]]:
    if file.waves is None:
        first, *others = machines
        return [[first], others] if others else [[first]]
    return [groups.get(wave, [wave]) if isinstance(wave, str) else list(wave) for wave in file.waves]


def _problems(file: File, machines: Mapping[str, Machine], waves: list[list[str]]) -> Iterator[Problem]:
    counts = Counter(name for wave in waves for name in wave)
    for index, wave in enumerate(waves):
        where = ("waves", index) if file.waves is not None else ("hosts",)
        if not wave:
            yield Problem(where, "no hosts", "a host, a list of hosts, or a group of the inventory")
        for name in wave:
            if name not in machines:
                yield Problem(where, name, f"a host or a group of the inventory: {nearest(name, machines)}")
            elif counts[name] > 1:
                yield Problem(where, name, "each host in one wave")
    missing = [name for name in machines if name not in counts]
    if missing:
        yield Problem(("waves",), f"no wave with {', '.join(missing)}", "every host in one wave")
    if len(machines) < 2:
        yield Problem((), f"{len(machines)} host", "two hosts or more: packets between them are the proof")
    for machine in machines.values():
        if any(mark in machine.name for mark in BETWEEN):
            # A gate, and a program for switches, are told of hosts in lists.
            yield Problem((), f"the host {machine.name}", f"a name without any of {' '.join(BETWEEN)}")
        if machine.interface is None and file.interface is None:
            yield Problem((), f"no interface for {machine.name}", "interface: here, or with the host")
        if machine.read_only:
            yield Problem((), f"{machine.name}, a read_only host", "hosts that may be changed")
