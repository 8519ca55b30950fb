"""The margins of a study: the smallest effect worth acting on, by metric."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any

from pydantic import ConfigDict, PlainSerializer, PlainValidator, ValidationInfo, WithJsonSchema, model_validator

from framegauge import quantities
from framegauge.files.types import Model, Problem
from framegauge.loads import LOADS, waits_for_all
from framegauge.metrics import usual_margin
from framegauge.study.parameters import Parameters

__all__ = ["Margins", "usual"]

_DEFAULT = "default"


def _margin(value: object, info: ValidationInfo) -> float | None:
    if value is None:
        return None
    return usual_margin(info.field_name or "") if value == _DEFAULT else quantities.parse_share(value)


Margin = Annotated[
    float | None,
    PlainValidator(_margin),
    PlainSerializer(lambda share: None if share is None else quantities.exact_share(share)),
    WithJsonSchema(
        {
            "anyOf": [{"type": "string"}, {"type": "null"}],
            "description": f'{quantities.SHARE_EXPECTED}, or "{_DEFAULT}"',
        }
    ),
]


class Margins(Model):
    """The smallest relative effect worth acting on, by metric; only these metrics are judged.

    `default` stands for the metric's default margin; without any margins, the usual metrics of the workloads are judged
    by their defaults. The metrics that a workload `command` declares have margins under their own names.
    """

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Margin]

    goodput: Margin = None
    completion_time: Margin = None
    fairness: Margin = None
    smallest_goodput: Margin = None
    share_of_few: Margin = None
    latency_p50: Margin = None
    latency_p99: Margin = None
    latency_p999: Margin = None
    transactions: Margin = None
    delay_p50: Margin = None
    delay_p99: Margin = None
    jitter: Margin = None
    delivered: Margin = None
    slowdown_p50: Margin = None
    slowdown_p99: Margin = None
    receiver_cpu_cost: Margin = None
    sender_cpu_cost: Margin = None
    receiver_instructions: Margin = None
    sender_instructions: Margin = None
    receiver_cycles: Margin = None
    sender_cycles: Margin = None

    @model_validator(mode="after")
    def _consistent(self) -> Margins:
        shares = self.shares()
        if not shares or 0 in shares.values():
            names = ", ".join(type(self).model_fields)
            raise Problem((), shares, f"a margin above 0 % for at least one metric ({names})")
        return self

    def shares(self) -> dict[str, float]:
        """The margins that are given, as shares by metric."""
        return {name: value for name, value in self if value is not None}

    def own(self) -> list[str]:
        """The names that are none of the built-in metrics."""
        return list(self.__pydantic_extra__ or {})


def usual(given: Sequence[Parameters], own: Collection[str], cpu: bool) -> Margins:
    """The margins for a study that declares none, by its workloads and the metrics that these declare; `cpu`: whether
    CPU cost is metered."""
    metrics = {metric for parameters in given for metric in LOADS[parameters.key].judged}
    metrics |= {"share_of_few"} if any(parameters.compares_few for parameters in given) else set()
    metrics |= {_of_the_last(conditions) for parameters in given for conditions in _waiting(parameters)}
    metrics -= set() if cpu else {"receiver_cpu_cost"}
    return Margins.model_validate(dict.fromkeys([*sorted(metrics), *own], _DEFAULT))


def _waiting(parameters: Parameters) -> list[Mapping[str, Any]]:
    """The conditions in which the last of several transfers decides, if the workload's own metrics do not say so."""
    if LOADS[parameters.key].waits_for_all:
        return []
    return [condition for condition in parameters.conditions() if waits_for_all(parameters.key, condition)]


def _of_the_last(conditions: Mapping[str, Any]) -> str:
    """The metric of the last transfer: when it ends, or how fast it is if all end at a stated time."""
    return "completion_time" if "size_bytes" in conditions else "smallest_goodput"
