"""What entries of a journal, and a plan in a file, must hold to be believed. Pure.

A journal is read days later, and from it hosts are changed as root: so an entry that another program has damaged, or
somebody has changed, is refused by its key before anything is done. Unknown events and keys are those of later
versions.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    IPvAnyAddress,
    StringConstraints,
    ValidationError,
    model_validator,
)

from framegauge.printable import one_line

__all__ = ["complaint", "complaint_of_plan"]

# An MTU, that of IPv6, or that of routes (0: none of their own), of an interface: pipe/README.md.
Setting = Annotated[str, StringConstraints(pattern=r"^(?:mtu|mtu6|routes4|routes6):[^\s/:]{1,15}$")]
_ROUTE = r"[0-9a-fA-F:.]{2,45}/[0-9]{1,3}(@[0-9]{1,10})?(#[0-9]{1,10})?"
Value = Annotated[str, StringConstraints(pattern=rf"^[0-9]{{1,10}}!?( {_ROUTE}=[0-9]{{1,10}}!?)*$")]


def _with_numbers(settings: dict[str, str]) -> dict[str, str]:
    for name, value in settings.items():
        if name.startswith(("mtu:", "mtu6:")) and not value.isdecimal():
            raise ValueError(f"{name} of a number of bytes")
    return settings


Settings = Annotated[dict[Setting, Value], AfterValidator(_with_numbers)]
MTU = Annotated[int, Field(strict=True, ge=0, le=1 << 32)]
Words = list[str]
_STRICT = ConfigDict(strict=True)


class _Host(BaseModel):
    model_config = _STRICT
    hold: MTU
    before: Settings
    after: Settings


class _Begun(BaseModel):
    model_config = _STRICT
    schema_: MTU = Field(alias="schema")
    kind: Literal["apply", "undo"]
    asked: dict[str, Any]
    hosts: dict[str, _Host]
    origin: dict[str, Settings]


class _Addresses(BaseModel):
    addresses: dict[str, list[IPvAnyAddress]]


class _Plan(BaseModel):
    plan: _Addresses


class _Way(BaseModel):
    model_config = _STRICT
    diff: str
    reload: list[Words]


class _Persisting(_Way):
    host: str
    owner: str
    path: str
    whole: bool
    mode: Annotated[str, StringConstraints(pattern=r"^[0-7]{1,4}$")]
    undo: _Way


class _File(BaseModel):
    model_config = _STRICT
    host: str
    path: str


class _PlannedHost(_Host):
    interface: str

    @model_validator(mode="after")
    def _has_mtus(self) -> _PlannedHost:
        if not {f"mtu:{self.interface}"} <= self.before.keys() & self.after.keys():
            raise ValueError(f"mtu:{self.interface} before and after")
        return self


class _PlannedEdit(_Way):
    host: str
    owner: str
    path: str
    whole: bool
    undo: _Way


class _PlannedFor(BaseModel):
    model_config = _STRICT
    waves: list[Words]
    scope: Literal["subnets", "all"]


class _PlanFile(BaseModel):
    model_config = _STRICT
    question: str = ""
    asked: _PlannedFor
    hosts: dict[str, _PlannedHost]
    addresses: dict[str, Words] = {}
    changes: list[_PlannedEdit] = []


MODELS: dict[str, type[BaseModel]] = {
    "begun": _Begun, "plan": _Plan, "persisting": _Persisting, "persisted": _File, "persist_failed": _File,
    "persist_undone": _File,
}  # fmt: skip


def complaint(entry: dict[str, Any]) -> str | None:
    """Which key of an entry is not as it must be, what was found and what was expected; None if all is well."""
    model = MODELS.get(entry["event"])
    return None if model is None else _complaint(model, entry)


def complaint_of_plan(plan: dict[str, Any]) -> str | None:
    """The same of a plan."""
    return _complaint(_PlanFile, plan)


def _complaint(model: type[BaseModel], entry: dict[str, Any]) -> str | None:
    try:
        model.model_validate(entry)
    except ValidationError as error:
        [first, *_] = error.errors(include_url=False)
        where = one_line(".".join(str(step) for step in first["loc"] if step != "[key]"), 200)
        if first["type"] == "missing":
            return f"{where}: found nothing, expected a value"
        expected = first["msg"].removeprefix("Input should be ").replace("String should match", "text that matches")
        return f"{where}: found {one_line(json.dumps(first['input']), 60)}, expected {expected}"
    return None
