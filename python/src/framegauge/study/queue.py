"""The queue disciplines of switch ports, as part of a study file.

A level is a word (`sfq`), or one discipline with its parameters (`{red: {minimum: 30 KiB}}`). After validation it is
the word, or the mapping that the pipe uses: `{"kind": "red", "minimum_bytes": 30720}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import (
    AfterValidator,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    StrictBool,
    StrictInt,
    StrictStr,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from framegauge.files.types import Bytes, Factor, Problem, Seconds, Sparse, nearest, one_of

__all__ = ["Queue", "QueueFactor"]

Above0 = Annotated[StrictInt, Field(ge=1, le=2**31)]
Part = Annotated[float, Field(gt=0, le=1)]


class Discipline(Sparse):
    """The interface of a discipline's parameters. `keys`: the pipe's names where they differ; `usual`: the defaults."""

    keys: ClassVar[Mapping[str, str]] = {}
    usual: ClassVar[Mapping[str, Any]] = {}

    def given(self) -> dict[str, Any]:
        """The parameters under the pipe's names, without defaults, so that equal levels have equal forms."""
        return {
            self.keys.get(name, name): value
            for name, value in self
            if value is not None and value != self.usual.get(name)
        }


class Taildrop(Discipline):
    """Frames that do not fit are dropped. The buffer is the link's, or this many `frames`."""

    keys = {"frames": "limit_frames"}
    frames: Above0 | None = None


class RandomDrop(Taildrop):
    """When a frame does not fit, frames are drawn from the buffer, itself included, and dropped (Mankin 1990)."""


class Step(Discipline):
    """Taildrop that marks frames that arrive while the buffer holds more than `threshold` (DCTCP)."""

    keys = {"threshold": "threshold_bytes"}
    threshold: Bytes | None = None


class Red(Discipline):
    """Random early detection between two thresholds of the average queue; `ecn`: marked instead of dropped.

    With the buffer in `frames`, the thresholds are `minimum_frames` and `maximum_frames`.
    """

    keys = {"minimum": "minimum_bytes", "maximum": "maximum_bytes", "frames": "limit_frames"}
    usual = {"weight": 0.002, "probability": 0.1, "gentle": True, "ecn": False}
    minimum: Bytes | None = None
    maximum: Bytes | None = None
    minimum_frames: Annotated[StrictInt, Field(ge=0)] | None = None
    maximum_frames: Above0 | None = None
    weight: Part | None = None
    probability: Part | None = None
    gentle: StrictBool | None = None
    ecn: StrictBool | None = None
    frames: Above0 | None = None

    @model_validator(mode="after")
    def _consistent(self) -> Red:
        for name in ("minimum", "maximum"):
            if self.frames is not None and getattr(self, name) is not None:
                raise Problem((name,), getattr(self, name), f"{name}_frames: the buffer is in frames")
            if self.frames is None and getattr(self, f"{name}_frames") is not None:
                value = getattr(self, f"{name}_frames")
                raise Problem((f"{name}_frames",), value, f"{name}, or frames: the buffer is in bytes")
        for unit in ("", "_frames"):
            low, high = getattr(self, f"minimum{unit}"), getattr(self, f"maximum{unit}")
            if low is not None and high is not None and low >= high:
                raise Problem((f"minimum{unit}",), low, f"less than maximum{unit} {high}")
            if low == 0 and high is None:
                raise Problem((f"minimum{unit}",), low, f"a maximum{unit}, too: its default is three times the minimum")
        return self


class Sfq(Discipline):
    """Stochastic fairness queueing; with a `perturbation` of 0 the hash never changes."""

    keys = {"quantum": "quantum_bytes", "perturbation": "perturbation_seconds"}
    usual = {"buckets": 128, "perturbation": 10.0}
    buckets: Annotated[StrictInt, Field(ge=1, le=65535)] | None = None
    quantum: Annotated[Bytes, Field(ge=1)] | None = None
    perturbation: Seconds | None = None


class Codel(Discipline):
    """Controlled delay (RFC 8289)."""

    keys = {"target": "target_seconds", "interval": "interval_seconds"}
    usual = {"target": 0.005, "interval": 0.1, "ecn": False}
    target: Annotated[Seconds, Field(gt=0)] | None = None
    interval: Annotated[Seconds, Field(gt=0)] | None = None
    ecn: StrictBool | None = None


class FqCodel(Codel):
    """Flow queues with controlled delay (RFC 8290)."""

    keys = {**Codel.keys, "quantum": "quantum_bytes"}
    usual = {**Codel.usual, "buckets": 1024, "quantum": 1518}
    buckets: Annotated[StrictInt, Field(ge=1, le=65535)] | None = None
    quantum: Annotated[Bytes, Field(ge=1)] | None = None


class Priority(Discipline):
    """Strict priority: packets of DSCP class CS5 and above first, all others last."""

    keys = {"frames": "limit_frames"}
    usual = {"bands": 2}
    bands: Annotated[StrictInt, Field(ge=1, le=8)] | None = None
    frames: Above0 | None = None


class Blackout(Discipline):
    """Taildrop with occasional blackouts: after `mean_off` on average, the frames of an input port are dropped for the
    time of `run_length` full frames back to back, at most that many."""

    keys = {"mean_off": "mean_off_seconds", "run_length": "frames", "frames": "limit_frames"}
    usual = {"mean_off": 0.005, "run_length": 12}
    mean_off: Annotated[Seconds, Field(gt=0)] | None = None
    run_length: Above0 | None = None
    input_port: StrictStr | None = None
    frames: Above0 | None = None


DISCIPLINES: Mapping[str, type[Discipline]] = {
    "taildrop": Taildrop, "random_drop": RandomDrop, "step": Step, "red": Red, "sfq": Sfq, "codel": Codel,
    "fq_codel": FqCodel, "priority": Priority, "blackout": Blackout,
}  # fmt: skip


class _Written(Sparse):
    """One discipline as written in a file."""

    taildrop: Taildrop | None = None
    random_drop: RandomDrop | None = None
    step: Step | None = None
    red: Red | None = None
    sfq: Sfq | None = None
    codel: Codel | None = None
    fq_codel: FqCodel | None = None
    priority: Priority | None = None
    blackout: Blackout | None = None

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        if isinstance(value, Mapping):
            return {key: {} if inner is None and key in DISCIPLINES else inner for key, inner in value.items()}
        if not isinstance(value, str):
            raise Problem((), value, f"a queue discipline: {one_of(list(DISCIPLINES))}")
        if value not in DISCIPLINES:
            raise Problem((), value, nearest(value, DISCIPLINES))
        return {value: {}}

    @model_validator(mode="after")
    def _consistent(self) -> _Written:
        keys = sorted(self.model_fields_set)
        if len(keys) != 1:
            raise Problem((), ", ".join(keys) or "nothing", f"exactly one of {', '.join(DISCIPLINES)}")
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [handler(core), {"enum": list(DISCIPLINES)}]}

    def level(self) -> str | dict[str, Any]:
        """The level: the word, or a mapping if there are parameters."""
        kind = next(iter(self.model_fields_set))
        parameters: dict[str, Any] = getattr(self, kind).given()
        return {"kind": kind, **parameters} if parameters else kind


def _written(level: str | Mapping[str, Any]) -> str | dict[str, Any]:
    """The level as written in a file."""
    if isinstance(level, str):
        return level
    shape = DISCIPLINES[level["kind"]]
    names = {key: name for name, key in shape.keys.items()}
    discipline = shape.model_construct(**{names.get(key, key): value for key, value in level.items() if key != "kind"})
    return {level["kind"]: discipline.model_dump(mode="json")}


if TYPE_CHECKING:
    Queue = Any
else:
    Queue = Annotated[_Written, AfterValidator(_Written.level), PlainSerializer(_written)]


class QueueFactor(Factor[Queue]):
    """The factor `queue`; a single mapping such as `{red: {minimum: 30 KiB}}` is one level."""

    @model_validator(mode="before")
    @classmethod
    def _short_form(cls, value: object) -> object:
        if isinstance(value, list):
            return {"levels": value}
        # A misspelt `levels` holds a list; the parameters of a discipline are a mapping, or nothing.
        if isinstance(value, Mapping) and any(
            key == "levels" or (isinstance(inner, list) and key not in DISCIPLINES) for key, inner in value.items()
        ):
            return value
        return {"levels": [value]}
