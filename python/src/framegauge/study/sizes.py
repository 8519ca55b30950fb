"""The sizes of socket buffers and messages of a stream, as part of a study file.

A level is null (the kernel tunes the buffers, calls are large), sizes, or sizes by the MTU of the hosts. After
validation it is None, or the mapping that the workload and the reports use: `{"socket_buffer_bytes": 57344,
"message_bytes": …}`. Sizes by MTU are one such mapping under each MTU, written as text because it is a JSON key.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, PlainSerializer, Tag, model_validator

from framegauge.files.types import Bytes, Problem, Sparse, as_list

__all__ = ["SizesLevels", "at_mtu", "sizes_problems"]

Level = Mapping[str, Any]


class EndSizes(Sparse):
    """Sizes that an application sets: SO_SNDBUF and SO_RCVBUF of its sockets, and the bytes of each write and read."""

    socket_buffer: Annotated[Bytes, Field(ge=4096, le=2**29)] | None = None
    message: Annotated[Bytes, Field(ge=1, le=2**24)] | None = None

    @model_validator(mode="after")
    def _consistent(self) -> EndSizes:
        if self.socket_buffer is None and self.message is None:
            raise Problem((), "nothing", "socket_buffer, message, or both")
        return self

    def level(self) -> dict[str, int]:
        """The given sizes, under the agent's names."""
        return {f"{name}_bytes": value for name, value in self if value is not None}


def _names_mtus(value: object) -> bool:
    """Whether the keys are numbers (as in a file) or digits (as in JSON)."""
    return isinstance(value, Mapping) and bool(value) and all(str(key).isdecimal() for key in value)


def _level(written: EndSizes | Mapping[int, EndSizes]) -> dict[str, Any]:
    if isinstance(written, EndSizes):
        return written.level()
    return {str(mtu): written[mtu].level() for mtu in sorted(written)}


def _written(level: Level | None) -> dict[Any, Any] | None:
    """The level as written in a file."""
    if level is None:
        return None
    if _names_mtus(level):
        return {int(mtu): _written(sizes) for mtu, sizes in level.items()}
    end_sizes = {name.removesuffix("_bytes"): value for name, value in level.items()}
    return EndSizes.model_construct(**end_sizes).model_dump(mode="json")


if TYPE_CHECKING:
    SizesLevels = list[Any]
else:
    _Sizes = Annotated[
        Annotated[EndSizes, Tag("sizes")] | Annotated[dict[int, EndSizes], Tag("by MTU")],
        Discriminator(lambda value: "by MTU" if _names_mtus(value) else "sizes"),
        AfterValidator(_level),
    ]
    _OrNone = Annotated[_Sizes | None, PlainSerializer(_written)]
    SizesLevels = Annotated[list[_OrNone], BeforeValidator(as_list, json_schema_input_type=_OrNone | list[_OrNone])]


def at_mtu(level: Level | None, mtu: Any) -> Level:
    """The sizes of a run whose hosts have this MTU; empty if the kernel chooses."""
    if level is None or not _names_mtus(level):
        return level or {}
    sizes: Level = level[str(mtu)]
    return sizes


def sizes_problems(levels: Sequence[Level | None], mtus: Sequence[Any]) -> Iterator[Problem]:
    """Problems with sizes by MTU that do not match the levels of the factor mtu."""
    for index, level in enumerate(levels):
        if level is None or not _names_mtus(level):
            continue
        path, keys = ("sizes", index), ", ".join(level)
        for mtu in mtus:
            if isinstance(mtu, Mapping):
                yield Problem(
                    path, f"sizes by MTU {keys}", "the same sizes at any MTU: hosts have different MTUs at a level"
                )
            elif str(mtu) not in level:
                yield Problem(path, f"sizes by MTU {keys}", f"sizes for MTU {mtu}, too: it is a level of factors.mtu")
        for mtu in level:
            if mtu not in map(str, mtus):
                yield Problem((*path, mtu), mtu, f"a level of factors.mtu: {', '.join(map(str, mtus))}")
